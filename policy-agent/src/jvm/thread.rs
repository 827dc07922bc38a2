//! The agent's own threads: attached as daemons, deaf to signals, never charged.

use jvmti_bindings::sys::jni;
use std::ffi::{CString, c_void};
use std::io;
use std::ptr;
use std::thread::JoinHandle;

use crate::threads;

use super::guard;
use super::java::Jni;

/// The VM, for threads to attach to.
#[derive(Clone, Copy)]
pub(crate) struct Vm {
    raw: *mut jni::JavaVM,
}

// SAFETY: the invocation interface may be called from any thread, and the VM outlives the
// agent.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

impl Vm {
    /// # Safety
    /// `raw` must be the `JavaVM*` that the VM passed to an agent entry point.
    pub(crate) unsafe fn from_raw(raw: *mut jni::JavaVM) -> Vm {
        Vm { raw }
    }

    /// The JNI environment of the calling thread, if it is attached.
    pub(crate) fn current(&self) -> Option<Jni> {
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `raw` is the live VM's invocation interface; GetEnv writes one pointer.
        let code = unsafe { ((**self.raw).GetEnv)(self.raw, &mut env, jni::JNI_VERSION_10) };
        if code != 0 || env.is_null() {
            return None;
        }
        // SAFETY: GetEnv returned this thread's environment.
        Some(unsafe { Jni::from_raw(env.cast()) })
    }

    /// Runs `work` on a new thread that is attached as a daemon (it never keeps the JVM from
    /// ending) under `name`, and detached when `work` ends.
    pub(crate) fn spawn(
        self,
        name: &'static str,
        work: impl FnOnce(&Jni) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        threads::spawn(name, move || {
            guard::belongs_to_agent();
            guard::contain(|| self.attached(name, work));
        })
    }

    fn attached(self, name: &str, work: impl FnOnce(&Jni)) {
        let Ok(name) = CString::new(name) else { return };
        let mut arguments = jni::JavaVMAttachArgs {
            version: jni::JNI_VERSION_10,
            name: name.as_ptr().cast_mut(),
            group: ptr::null_mut(),
        };
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `raw` is the live VM's invocation interface; the arguments and the name
        // they point to outlive the call.
        let code = unsafe {
            ((**self.raw).AttachCurrentThreadAsDaemon)(
                self.raw,
                &mut env,
                (&raw mut arguments).cast(),
            )
        };
        if code != 0 || env.is_null() {
            return;
        }
        // SAFETY: the attach returned this thread's environment, which is used on this
        // thread only and not after the detach below.
        let jni = unsafe { Jni::from_raw(env.cast()) };
        guard::contain(|| work(&jni));
        // SAFETY: this thread attached itself above and holds no Java frames.
        unsafe { ((**self.raw).DetachCurrentThread)(self.raw) };
    }
}
