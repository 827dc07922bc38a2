//! Calls of an environment that take or give objects.

use crate::env::{CALL_CAPACITY, Jni, call};
use crate::guard;
use crate::kinds::{Anything, Class, Throwable};
use crate::refs::{Handle, Local};

impl Jni {
    /// Leaves an exception pending on the calling thread. The VM throws it when the native code returns.
    /// False if the VM refuses. Afterwards the native code must not call Java or JVM TI. An exception
    /// that is already pending stays.
    pub fn throw(&self, exception: &impl Handle<Kind = Throwable>) -> bool {
        !self.is_exception_pending() && call!(self, Throw, exception.raw().0) == 0
    }

    /// Like [`Jni::with`], for work that returns an object; `None` also if it returns null.
    pub(crate) fn with_object<T>(
        &self,
        work: impl for<'f> FnOnce(
            &mut jni::JNIEnv<'f>,
        ) -> jni::errors::Result<jni::objects::JObject<'f>>,
    ) -> Option<Local<'_, T>> {
        if guard::is_hosts_event() {
            return None;
        }
        // SAFETY: as in `Jni::with`.
        let mut env = unsafe { jni::JNIEnv::from_raw(self.env.cast()) }.ok()?;
        let done = env.with_local_frame_returning_local(CALL_CAPACITY, work);
        let failed = self.clear_exception();
        let object = done.ok()?.into_raw();
        // SAFETY: `jni` returns a fresh local reference of the frame below, or null; the caller's `T` is
        // what the work returns, which each caller argues.
        unsafe { Local::adopt(self, object.cast()) }.filter(|_| !failed)
    }

    /// A class by its internal name (`java/lang/Object`), as the boot loader or, for other names than
    /// the JDK's, the system class loader finds it. Runs Java code if it is not loaded.
    pub fn boot_class(&self, name: &str) -> Option<Local<'_, Class>> {
        // FindClass returns a class.
        self.with_object(|env| Ok(env.find_class(name)?.into()))
    }

    /// Allocates an array of bytes and drops it; false when there is no memory for it. Any thread.
    pub fn allocate_bytes(&self, bytes: usize) -> bool {
        let array = call!(self, NewByteArray, i32::try_from(bytes).unwrap_or(i32::MAX));
        let failed = self.clear_exception();
        // SAFETY: NewByteArray returns a fresh local reference or null.
        unsafe { Local::<Anything>::adopt(self, array) }.is_some() && !failed
    }
}
