//! Modules: who may use whose classes.

use jvmti_bindings::sys::jni;

use crate::env::{Jni, call};
use crate::error::JvmTiError;
use crate::jvmti::{JvmTi, tools_call};
use crate::kinds::{Anything, Class};
use crate::refs::{Handle, Local, Ref};

impl JvmTi {
    /// Lets the module of `reader` use the public classes of the module of `read`, as a `requires` would:
    /// the boot loader's unnamed module, say, which no named module reads by itself. For good, and harmless
    /// if it is so already. Runs Java code of the JDK: not on an allocating thread.
    ///
    /// # Errors
    /// As JVM TI says; [`JvmTiError::NOT_AVAILABLE`] if the VM does not tell the modules.
    pub fn add_module_reads(
        &self,
        reader: &Ref<'_, Class>,
        read: &Ref<'_, Class>,
    ) -> Result<(), JvmTiError> {
        let jni = reader.jni();
        let (Some(from), Some(to)) = (module_of(jni, reader), module_of(jni, read)) else {
            return Err(JvmTiError::NOT_AVAILABLE);
        };
        let added = tools_call!(self, AddModuleReads, from.raw().0, to.raw().0);
        jni.clear_exception();
        added
    }
}

/// `Class.getModule()`, which is never null once the VM has started.
fn module_of<'j>(jni: &'j Jni, class: &Ref<'_, Class>) -> Option<Local<'j, Anything>> {
    let raw: jni::jobject = call!(jni, GetModule, class.raw().0);
    let failed = jni.clear_exception();
    // SAFETY: GetModule returns a fresh local reference of this thread, or null.
    unsafe { Local::adopt(jni, raw) }.filter(|_| !failed)
}
