//! The Java half of the API: its classes in the boot loader, and calls into it.
//!
//! Copies of the API, in whatever loaders, find the class `dev.heapwarden.agent.Bridge` in the
//! boot loader and share what it keeps. Sources are in `policy-agent/java`; see
//! [`super::errors`] for how they become class files.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni;

use crate::api::pressure::{Change, Standing};

use super::cells::Cells;
use super::errors::{ClassFile, class_file};
use super::java::{Global, Jni, Local, call};
use super::natives;
use super::tools::JvmTi;

/// All classes but the first, which natives are bound to before any other can be initialised.
/// Superclasses and interfaces come before those that have them.
const CLASSES: [ClassFile; 18] = [
    class_file!("agent/Agent"),
    class_file!("agent/NativeAgent"),
    class_file!("agent/Inherited"),
    class_file!("agent/Context"),
    class_file!("agent/Cell"),
    class_file!("agent/Cells"),
    class_file!("agent/Loaders"),
    class_file!("agent/LoaderKey"),
    class_file!("agent/LoaderProbe"),
    class_file!("agent/Home"),
    class_file!("agent/ScopeName"),
    class_file!("agent/Names"),
    class_file!("agent/Services"),
    class_file!("agent/Misuse"),
    class_file!("agent/Subscription"),
    class_file!("agent/Delivery"),
    class_file!("agent/Subscriptions"),
    class_file!("agent/Bridge"),
];
const NATIVES: ClassFile = class_file!("agent/Natives");

/// The bridge. See the module.
pub(crate) struct Bridge {
    cells: Cells,
    class: Global,
    announce: usize,
    tidy: usize,
    long_class: Global,
    value_of: usize,
    object_class: Global,
    /// The self-test found what was written elsewhere than where it is looked for.
    blind: AtomicBool,
}

impl Bridge {
    /// Defines the classes and binds their natives. Runs Java code: not on an allocating thread.
    /// Says why where it cannot be.
    pub(crate) fn define(jni: &Jni, tools: &JvmTi) -> Result<Bridge, String> {
        // Of two copies of the library (the flag twice, by two paths) each numbers scopes by itself, and
        // the natives would be those of the later one.
        let bound = (jni.boot_new(&NATIVES))
            .ok_or("another copy of the agent in this JVM serves it, or it cannot be defined")?;
        natives::bind(jni, &bound)?;
        let mut classes = Vec::new();
        for file in &CLASSES {
            classes.push(jni.boot_defined(tools, file)?);
        }
        // Not looked up by name again: other loaders may have classes of these names.
        let [.., inherited, _, cell, cells] = &classes[..6] else {
            unreachable!("there are more")
        };
        let cells = Cells::find(jni, cells, cell, inherited)?;
        let last = &classes[classes.len() - 1];
        let method = |class: &Local<'_>, name, descriptor| {
            (jni.static_method(class, name, descriptor))
                .ok_or_else(|| "the bridge has not the methods that it should have".to_owned())
        };
        let boot = |name| {
            jni.boot_class(name)
                .ok_or_else(|| format!("{name} is not to be found"))
        };
        let kept = |class: &Local<'_>| class.global().ok_or("the VM has no memory for a reference");
        let long_class = boot("java/lang/Long")?;
        Ok(Bridge {
            cells,
            announce: method(
                last,
                c"announce",
                c"(Ljava/lang/String;Ljava/lang/String;IJJJJJ)V",
            )?,
            tidy: method(last, c"tidy", c"()V")?,
            class: kept(last)?,
            value_of: method(&long_class, c"valueOf", c"(J)Ljava/lang/Long;")?,
            long_class: kept(&long_class)?,
            object_class: kept(&boot("java/lang/Object")?)?,
            blind: AtomicBool::new(false),
        })
    }

    /// Where threads carry their scopes.
    pub(super) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Whether the agent sees what threads carry, as far as is known. Any thread.
    pub(crate) fn sees_scopes(&self) -> bool {
        !self.blind.load(Ordering::Relaxed)
    }

    /// The self-test failed.
    pub(super) fn is_blind(&self) {
        if !self.blind.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the agent does not find scopes where this JDK keeps the locals of a thread; scopes have no effect, and what they would be charged is their services'"
            );
        }
    }

    /// Tells the Java half that something has changed; it returns at once. On the herald.
    pub(crate) fn announce(
        &self,
        jni: &Jni,
        change: Change,
        standing: &Standing,
        parent: Option<&str>,
    ) {
        let Some(account) = jni.new_string(&standing.account) else {
            return;
        };
        let parent = parent.and_then(|parent| jni.new_string(parent));
        let long = |j: i64| jni::jvalue { j };
        let bytes = |bytes: u64| long(i64::try_from(bytes).unwrap_or(i64::MAX));
        let limit = |limit: Option<u64>| limit.map_or(long(-1), bytes);
        let figures = &standing.figures;
        let arguments = [
            jni::jvalue { l: account.raw() },
            jni::jvalue {
                l: parent.as_ref().map_or(ptr::null_mut(), Local::raw),
            },
            jni::jvalue { i: change as i32 },
            bytes(figures.live_bytes),
            bytes(figures.charged_bytes),
            bytes(figures.standard_error_bytes),
            limit(figures.soft_limit_bytes),
            limit(figures.limit_bytes),
        ];
        self.call(jni, self.announce, arguments.as_ptr());
    }

    /// Lets the Java half let go of loaders that are gone. On the herald.
    pub(crate) fn tidy(&self, jni: &Jni) {
        self.call(jni, self.tidy, ptr::null());
    }

    fn call(&self, jni: &Jni, method: usize, arguments: *const jni::jvalue) {
        call!(
            jni,
            CallStaticVoidMethodA,
            self.class.raw(),
            method as jni::jmethodID,
            arguments
        );
        jni.clear_exception();
    }

    /// A `Long`. `None` where the heap has no room.
    pub(super) fn boxed<'j>(&self, jni: &'j Jni, number: u64) -> Option<Local<'j>> {
        let arguments = [jni::jvalue {
            j: i64::try_from(number).unwrap_or(i64::MAX),
        }];
        let boxed = call!(
            jni,
            CallStaticObjectMethodA,
            self.long_class.raw(),
            self.value_of as jni::jmethodID,
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: a call that did not throw returns a fresh local reference or null.
        unsafe { Local::adopt(jni, boxed) }.filter(|_| !failed)
    }

    /// An array of `Object`. `None` where the heap has no room.
    pub(super) fn objects<'j>(&self, jni: &'j Jni, objects: &[Local<'_>]) -> Option<Local<'j>> {
        let length = i32::try_from(objects.len()).ok()?;
        let array = call!(
            jni,
            NewObjectArray,
            length,
            self.object_class.raw(),
            ptr::null_mut()
        );
        jni.clear_exception();
        // SAFETY: NewObjectArray returns a fresh local reference or null.
        let array = unsafe { Local::adopt(jni, array) }?;
        for (index, object) in (0..).zip(objects) {
            call!(jni, SetObjectArrayElement, array.raw(), index, object.raw());
        }
        (!jni.clear_exception()).then_some(array)
    }
}
