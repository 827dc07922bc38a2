//! The JVM TI environment, with checked calls.

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::{jni, jvmti};
use std::ptr;

use crate::env::Jni;
use crate::error::JvmTiError;
use crate::kinds::{Class, Thread};
use crate::refs::{Handle, Local, Ref};

pub(crate) fn check(error: jvmti::jvmtiError) -> Result<(), JvmTiError> {
    if error == jvmti::jvmtiError::NONE {
        Ok(())
    } else {
        Err(JvmTiError::of(error.raw()))
    }
}

/// The agent's JVM TI environment. Any thread that is attached.
#[derive(Debug, Clone, Copy)]
pub struct JvmTi {
    raw: *mut jvmti::jvmtiEnv,
}

// SAFETY: a JVM TI environment may be used by any thread attached to its VM (JVM TI specification,
// "Environments"), and ours is never disposed.
unsafe impl Send for JvmTi {}
// SAFETY: as above; JVM TI functions are thread-safe.
unsafe impl Sync for JvmTi {}

/// Calls a slot of the environment's function table.
macro_rules! tools_call {
    ($tools:expr, $slot:ident $(, $argument:expr)*) => {{
        let raw = $tools.raw();
        // SAFETY: `raw` came from GetEnv and is never disposed, so both the environment and its function
        // table are valid for the life of the VM.
        match unsafe { (*(*raw).functions).$slot } {
            // SAFETY: the slot is the VM's own implementation; the arguments are valid by the signature of
            // the enclosing function, which takes handles, not raw pointers, or argues for its own.
            Some(function) => $crate::jvmti::check(unsafe { function(raw $(, $argument)*) }),
            None => Err($crate::error::JvmTiError::NOT_AVAILABLE),
        }
    }};
}
pub(crate) use tools_call;

impl JvmTi {
    /// Asks the VM for a JVM TI environment.
    ///
    /// # Safety
    /// `vm` must be the `JavaVM*` that the VM passed to an agent entry point.
    pub(crate) unsafe fn of(vm: *mut jni::JavaVM) -> Result<JvmTi, JvmTiError> {
        // SAFETY: by this function's own contract.
        let env = unsafe { Jvmti::from_java_vm_raw(vm) };
        env.map(|env| JvmTi { raw: env.raw() })
            .map_err(JvmTiError::of)
    }

    /// # Safety
    /// As [`JvmTi::of`]; or the value must not be used.
    #[cfg(test)]
    pub(crate) unsafe fn from_raw(raw: *mut jvmti::jvmtiEnv) -> JvmTi {
        JvmTi { raw }
    }

    pub(crate) fn raw(&self) -> *mut jvmti::jvmtiEnv {
        self.raw
    }

    /// The wrapper of `jvmti-bindings`, for the calls that are not on a hot path.
    pub(crate) fn wrapper(&self) -> Jvmti {
        // SAFETY: `raw` is valid for the life of the VM.
        unsafe { Jvmti::from_raw(self.raw) }
    }

    /// A system property as the VM sees it; available from `Agent_OnLoad` on.
    pub fn system_property(&self, name: &str) -> Option<String> {
        self.wrapper().get_system_property(name).ok()
    }

    /// Sets the mean distance between samples, in bytes; each thread follows at its next draw.
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn set_sampling_interval(&self, bytes: u64) -> Result<(), JvmTiError> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        tools_call!(self, SetHeapSamplingInterval, bytes)
    }

    /// The tag of an object, 0 when it has none. One call; any thread.
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn tag(&self, object: &impl Handle) -> Result<i64, JvmTiError> {
        let mut tag = 0;
        tools_call!(self, GetTag, object.raw().0, &mut tag)?;
        Ok(tag)
    }

    /// Tags an object. One call; any thread.
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn set_tag(&self, object: &impl Handle, tag: i64) -> Result<(), JvmTiError> {
        tools_call!(self, SetTag, object.raw().0, tag)
    }

    /// The `java.lang.Thread` of the calling thread: the virtual thread if it runs one.
    pub fn current_thread<'j>(&self, jni: &'j Jni) -> Option<Local<'j, Thread>> {
        let mut thread = ptr::null_mut();
        tools_call!(self, GetCurrentThread, &mut thread).ok()?;
        // SAFETY: JVM TI returns a fresh local reference of this thread, to a thread.
        unsafe { Local::adopt(jni, thread) }
    }

    /// The loader of a class; `None` for the boot loader. One call; any thread.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn loader_of<'j>(
        &self,
        jni: &'j Jni,
        class: &impl Handle<Kind = Class>,
    ) -> Result<Option<Local<'j>>, JvmTiError> {
        let mut loader = ptr::null_mut();
        tools_call!(self, GetClassLoader, class.raw().0, &mut loader)?;
        // SAFETY: JVM TI returns a fresh local reference of this thread, or null.
        Ok(unsafe { Local::adopt(jni, loader) })
    }

    /// The JVM signature of a class (`Ljava/lang/String;`, `[B`). Allocates native memory: not for
    /// allocating threads.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn signature_of(&self, class: &impl Handle<Kind = Class>) -> Result<String, JvmTiError> {
        // SAFETY: a handle is a live reference on this thread, of this kind to a class.
        unsafe { self.wrapper().get_class_signature(class.raw().0) }
            .map(|(signature, _)| signature)
            .map_err(|error| JvmTiError::of(error.raw()))
    }

    /// The source file of a class (`Cart.java`); `None` if its class file does not name it. Allocates native
    /// memory: not for allocating threads.
    pub fn source_file_of(&self, class: &impl Handle<Kind = Class>) -> Option<String> {
        // SAFETY: as in `JvmTi::signature_of`.
        unsafe { self.wrapper().get_source_file_name(class.raw().0) }.ok()
    }

    /// Looks at every class loaded now. Not for allocating threads.
    ///
    /// JVM TI hands out one local reference for each of what may be a hundred thousand classes. They live
    /// in a frame of their own, and `look` works in a second frame above it: to `-Xcheck:jni`, which counts
    /// the references of the topmost frame at each call, there are never many. Each is deleted after use,
    /// so the lower frame is empty when it is the topmost one again.
    pub fn each_loaded_class(&self, jni: &Jni, mut look: impl FnMut(&Jni, &Ref<'_, Class>)) {
        jni.in_frame(|jni| {
            let classes = self.wrapper().get_loaded_classes().unwrap_or_default();
            let classes: Vec<Local<'_, Class>> = classes
                .into_iter()
                // SAFETY: JVM TI returns fresh local references of this thread, to classes.
                .filter_map(|class| unsafe { Local::adopt(jni, class) })
                .collect();
            jni.in_frame(|jni| {
                for class in classes {
                    // SAFETY: the reference is live until `class` is dropped, after `look`.
                    if let Some(class) = unsafe { Ref::borrow(jni, class.raw().0) } {
                        look(jni, &class);
                    }
                }
            });
        });
    }

    /// Collects the heap and returns when that is done. Stops the world if the collector has no other
    /// way. Not on an allocating thread.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn collect(&self) -> Result<(), JvmTiError> {
        tools_call!(self, ForceGarbageCollection)
    }
}
