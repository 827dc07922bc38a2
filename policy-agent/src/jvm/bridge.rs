//! The bridge: defines the classes of the API's Java half in the boot loader, and calls them.
//!
//! Copies of the API, in whatever loaders, find the class `dev.heapwarden.agent.Bridge` in the
//! boot loader and share its state. Sources are in `policy-agent/java`; see
//! [`super::errors`] for how they become class files.

use std::sync::atomic::{AtomicBool, Ordering};

use policy_jvm::kinds::{Class, JavaClass, JavaString};
use policy_jvm::{ClassFile, Jni, JvmTi, Local, Ref, StaticMethod, Value};

use crate::pressure::{AccountPressure, Change};

use super::errors::class_file;
use super::thread_scopes::ThreadScopes;

/// All classes but [`NATIVES`], which comes first: its native methods are bound before another class can be
/// initialised. Superclasses and interfaces come before the classes that need them.
const CLASSES: [ClassFile; 35] = [
    class_file!("agent/Agent"),
    class_file!("agent/NativeAgent"),
    class_file!("agent/RoutePath"),
    class_file!("agent/Inherited"),
    class_file!("agent/Context"),
    class_file!("agent/Cell"),
    class_file!("agent/Cells"),
    class_file!("agent/Loaders"),
    class_file!("agent/LoaderKey"),
    class_file!("agent/LoaderProbe"),
    class_file!("agent/ServiceRoutes$Route"),
    class_file!("agent/ServiceRoutes"),
    class_file!("agent/LoaderNumbers$Known"),
    class_file!("agent/LoaderNumbers"),
    class_file!("agent/Container"),
    class_file!("agent/Door"),
    class_file!("agent/LibraryDoor"),
    class_file!("agent/EventLoopDoor"),
    class_file!("agent/RequestTarget"),
    class_file!("agent/NettyRequest"),
    class_file!("agent/NettyAnswer"),
    class_file!("agent/Entry"),
    class_file!("agent/AskedProbe"),
    class_file!("agent/Inside"),
    class_file!("agent/Doors"),
    class_file!("agent/Uncaught"),
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
/// The place after `Cells`.
const CELLS_END: usize = 7;
const NATIVES: ClassFile = class_file!("agent/Natives");

/// `java.lang.Long`.
struct Long;

impl JavaClass for Long {
    const NAME: &'static str = "java/lang/Long";
}

/// The bridge. See the module.
pub(crate) struct Bridge {
    thread_scopes: ThreadScopes,
    watch_native_memory: StaticMethod,
    announce: StaticMethod,
    tidy: StaticMethod,
    value_of: StaticMethod,
    /// The self-test did not find what the Java half wrote.
    blind: AtomicBool,
}

impl Bridge {
    /// Defines the classes; `bind` binds the native methods of the one it is given. Runs Java code: not on an
    /// allocating thread.
    ///
    /// # Errors
    /// The reason, as a sentence, if that is not possible.
    pub(crate) fn define(
        jni: &Jni,
        jvmti: &JvmTi,
        bind: impl FnOnce(&Jni, &Ref<'_, Class>) -> Result<(), String>,
    ) -> Result<Bridge, String> {
        // Two copies of the library (the flag given twice, with two paths) would number scopes each in its
        // own way, and the native methods would be those of the later one.
        let bound = (jni.define_new_in_boot(&NATIVES))
            .ok_or("another copy of the agent in this JVM serves it, or it cannot be defined")?;
        bind(jni, &bound)?;
        // By their places, not by name: other loaders may have classes of these names. References to the
        // others are dropped at once, since the VM promises room for few.
        let [first @ .., bridge] = &CLASSES;
        let mut classes = Vec::new();
        for (place, file) in first.iter().enumerate() {
            let class = jni.define_in_boot(jvmti, file);
            let class = class.map_err(|why| why.to_string())?;
            if place < CELLS_END {
                classes.push(class);
            }
        }
        let [.., inherited, _, cell, cells] = &classes[..] else {
            return Err("a class of the bridge is missing".to_owned());
        };
        let thread_scopes = ThreadScopes::find(jni, jvmti, cells, cell, inherited)?;
        let last = &(jni.define_in_boot(jvmti, bridge)).map_err(|why| why.to_string())?;
        let method = |class: &Ref<'_, Class>, name, descriptor| {
            (class.static_method(name, descriptor))
                .ok_or_else(|| "a method of the bridge is missing".to_owned())
        };
        let long = jni.boot_class(Long::NAME);
        let long = long.ok_or("there is no class java/lang/Long")?;
        Ok(Bridge {
            thread_scopes,
            watch_native_memory: method(&bound, "watchNativeMemory", "()V")?,
            announce: method(
                last,
                "announce",
                "(Ljava/lang/String;Ljava/lang/String;IJJJJJ)V",
            )?,
            tidy: method(last, "tidy", "()V")?,
            value_of: method(&long, "valueOf", "(J)Ljava/lang/Long;")?,
            blind: AtomicBool::new(false),
        })
    }

    /// Where threads keep their scopes.
    pub(crate) fn thread_scopes(&self) -> &ThreadScopes {
        &self.thread_scopes
    }

    /// Whether the agent sees the scopes of threads, as far as is known. Any thread.
    pub(crate) fn sees_scopes(&self) -> bool {
        !self.blind.load(Ordering::Relaxed)
    }

    /// The self-test failed.
    pub(crate) fn self_test_failed(&self) {
        if !self.blind.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the agent cannot read the thread-locals of this JDK; scopes have no effect, and their allocations are charged to their services"
            );
        }
    }

    /// Has native memory watched, from Java code of the boot loader. At the start.
    pub(crate) fn watch_native_memory(&self, jni: &Jni) {
        self.watch_native_memory.run(jni, &[]);
    }

    /// Announces a change to the Java half, which returns at once. On the notifier.
    pub(crate) fn announce(
        &self,
        jni: &Jni,
        change: Change,
        pressure: &AccountPressure,
        parent: Option<&str>,
    ) {
        let Some(account) = jni.new_string(&pressure.account) else {
            return;
        };
        let parent = parent.and_then(|parent| jni.new_string(parent));
        let bytes = |bytes: u64| Value::long(i64::try_from(bytes).unwrap_or(i64::MAX));
        let limit = |limit: Option<u64>| limit.map_or(Value::long(-1), bytes);
        let figures = &pressure.figures;
        self.announce.run(
            jni,
            &[
                Value::object(&account),
                (parent.as_ref()).map_or(Value::null::<JavaString>(), Value::object),
                Value::int(change as i32),
                bytes(figures.live_bytes),
                bytes(figures.charged_bytes),
                bytes(figures.standard_error_bytes),
                limit(figures.soft_limit_bytes),
                limit(figures.limit_bytes),
            ],
        );
    }

    /// Makes the Java half forget loaders that are gone. On the notifier.
    pub(crate) fn tidy(&self, jni: &Jni) {
        self.tidy.run(jni, &[]);
    }

    /// A `Long`. `None` if the heap has no room.
    pub(crate) fn boxed<'j>(&self, jni: &'j Jni, number: u64) -> Option<Local<'j>> {
        let number = Value::long(i64::try_from(number).unwrap_or(i64::MAX));
        let boxed = self.value_of.object::<Long>(jni, &[number]);
        boxed.map(Local::upcast)
    }
}
