//! Copies of an error's class that other loaders have, and errors of such a class.
//!
//! A copy is whatever a loader on the stack has loaded under the error's name, and so it may be
//! anybody's: no constructor of it is run, and nothing of it is called. It is taken for a copy if
//! it directly extends what the error extends, has the fields of the error and leaves
//! `fillInStackTrace` alone. Which class a loader has loaded the VM itself is asked, so no
//! loader's code runs and nothing is loaded.

use std::ffi::CStr;

use jvmti_bindings::sys::jni;

use super::errors::Figures;
use super::java::{FieldId, Global, Jni, Local, call};
use super::tools::{FrameBuffer, JvmTi};

/// Frames looked at for loaders at the most.
const MOST_FRAMES: usize = 256;

const FILL_IN: (&CStr, &CStr) = (c"fillInStackTrace", c"()Ljava/lang/Throwable;");
const FIGURES: [&str; 4] = [
    "liveBytes",
    "limitBytes",
    "standardErrorBytes",
    "requestedBytes",
];

/// What is needed to find and make copies of one error.
pub(super) struct Copies {
    /// The error's name as `ClassLoader` wants it.
    name: Global,
    loader_class: Global,
    find_loaded: usize,
    /// What the error extends, and the constructor of that.
    parent: Global,
    constructor: usize,
    fill_in: usize,
}

impl Copies {
    /// For the error of this class, whose internal name is `name`.
    pub(super) fn find(jni: &Jni, name: &CStr, class: &Local<'_>) -> Option<Copies> {
        let dotted = name.to_str().ok()?.replace('/', ".");
        let loader_class = jni.boot_class("java/lang/ClassLoader")?;
        let descriptor = c"(Ljava/lang/String;)Ljava/lang/Class;";
        let find_loaded = jni.method_id(&loader_class, c"findLoadedClass0", descriptor)?;
        let parent = class.super_class()?;
        Some(Copies {
            name: jni.new_string(&dotted)?.global()?,
            loader_class: loader_class.global()?,
            find_loaded,
            constructor: jni.method_id(&parent, c"<init>", c"()V")?,
            fill_in: jni.method_id(&parent, FILL_IN.0, FILL_IN.1)?,
            parent: parent.global()?,
        })
    }

    /// The copy that the code on the calling thread's stack means, the nearest to the allocation
    /// first; `None` where it means `own`, the boot loader's, or none at all.
    pub(super) fn seen<'j>(&self, jni: &'j Jni, tools: &JvmTi, own: &Global) -> Option<Local<'j>> {
        let mut frames = FrameBuffer::<MOST_FRAMES>::new();
        let count = tools.stack(0, MOST_FRAMES, &mut frames).unwrap_or(0);
        let mut asked: Option<Local<'j>> = None;
        for depth in 0..count {
            let method = frames.method(depth)?;
            // SAFETY: the method is on this thread's own stack, which keeps its class loaded.
            let class = unsafe { tools.declaring_class(jni, method) };
            let Ok(Some(class)) = class else { continue };
            let Ok(Some(loader)) = tools.loader_of(jni, &class) else {
                continue;
            };
            if asked.as_ref().is_some_and(|asked| asked.is_same(&loader)) {
                continue;
            }
            if let Some(found) = self.loaded_by(jni, &loader) {
                return (!found.is_same_as(own)).then_some(found);
            }
            asked = Some(loader);
        }
        None
    }

    fn loaded_by<'j>(&self, jni: &'j Jni, loader: &Local<'_>) -> Option<Local<'j>> {
        let arguments = [jni::jvalue { l: self.name.raw() }];
        let class = call!(
            jni,
            CallNonvirtualObjectMethodA,
            loader.raw(),
            self.loader_class.raw(),
            self.find_loaded as jni::jmethodID,
            arguments.as_ptr()
        );
        let failed = jni.clear_exception();
        // SAFETY: a call that did not throw returns a fresh local reference or null.
        unsafe { Local::adopt(jni, class) }.filter(|_| !failed)
    }

    /// An error of this class. `None` where it is no copy, or cannot be made.
    pub(super) fn make<'j>(
        &self,
        jni: &'j Jni,
        class: &Local<'_>,
        figures: &Figures<'_>,
    ) -> Option<Local<'j>> {
        let parent = class.super_class()?;
        let fill_in = jni.method_id(class, FILL_IN.0, FILL_IN.1)?;
        if !parent.is_same_as(&self.parent) || fill_in != self.fill_in {
            return None;
        }
        let account = jni.field(class, "account", "Ljava/lang/String;")?;
        let mut fields: [Option<FieldId>; 4] = [None; 4];
        for (field, name) in fields.iter_mut().zip(FIGURES) {
            *field = Some(jni.field(class, name, "J")?);
        }
        let error = call!(jni, AllocObject, class.raw());
        let failed = jni.clear_exception();
        // SAFETY: AllocObject returns a fresh local reference or null.
        let error = unsafe { Local::adopt(jni, error) }.filter(|_| !failed)?;
        call!(
            jni,
            CallNonvirtualVoidMethodA,
            error.raw(),
            self.parent.raw(),
            self.constructor as jni::jmethodID,
            std::ptr::null()
        );
        if jni.clear_exception() {
            return None;
        }
        error.set(account, figures.account);
        let numbers = [
            figures.live_bytes,
            figures.limit_bytes,
            figures.standard_error_bytes,
            figures.requested_bytes,
        ];
        for (field, number) in fields.into_iter().zip(numbers) {
            error.set_long(field?, i64::try_from(number).unwrap_or(i64::MAX));
        }
        Some(error)
    }
}
