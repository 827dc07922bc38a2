//! The JNI environment of a thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use jvmti_bindings::sys::jni as sys;

use crate::guard;

/// How many local references a call through `jni` may need besides its result.
pub(crate) const CALL_CAPACITY: i32 = 16;
/// The capacity of a frame of local references.
const FRAME_CAPACITY: i32 = 1024;

/// The JNI environment of the calling thread.
///
/// It is handed out by reference alone, for as long as the native code runs that the VM has called, or
/// the thread is attached. Neither `Send` nor `Sync`: it belongs to one thread.
#[derive(Debug)]
pub struct Jni {
    pub(crate) env: *mut sys::JNIEnv,
    /// Set while another frame of local references lies above this environment's. It makes no
    /// references then, because they would be deleted with that frame.
    suspended: Cell<bool>,
    _thread: PhantomData<*mut ()>,
}

/// Calls a slot of the JNI function table.
macro_rules! call {
    ($jni:expr, $slot:ident $(, $argument:expr)*) => {{
        let jni: &$crate::env::Jni = $jni;
        // SAFETY: `env` is valid on this thread by `Jni::from_raw`'s contract; the references passed
        // are live ones of this thread or global ones, and ids are of their classes, by the contracts
        // of the types that hold them.
        unsafe { ((**jni.env).$slot)(jni.env $(, $argument)*) }
    }};
}
pub(crate) use call;

impl Jni {
    /// # Safety
    /// `env` must be the JNI environment of the calling thread and stay valid for as long as the value
    /// lives, which must not be longer than the native frame that it was passed to, or the thread's
    /// attachment. The value must not be moved out to safe code.
    pub(crate) unsafe fn from_raw(env: *mut sys::JNIEnv) -> Jni {
        Jni {
            env,
            suspended: Cell::new(false),
            _thread: PhantomData,
        }
    }

    /// Where the JVM keeps the calling thread: a number that no other living thread has, and that a later one may have
    /// again.
    #[must_use]
    pub fn thread_address(&self) -> usize {
        // HotSpot's environment is a part of its thread.
        self.env as usize
    }

    /// Whether local references may be made now.
    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.get()
    }

    /// Forgets a pending Java exception; true when there was one.
    pub(crate) fn clear_exception(&self) -> bool {
        let pending = self.is_exception_pending();
        if pending {
            call!(self, ExceptionClear);
        }
        pending
    }

    /// Whether a Java exception is pending on this thread.
    pub fn is_exception_pending(&self) -> bool {
        call!(self, ExceptionCheck) != 0
    }

    /// Runs `work` with the environment of the crate `jni`, in a frame of local references of its own;
    /// `None` if it fails. Exceptions are swallowed. Inside an event on a thread of the host nothing is
    /// run, because no names may be looked up there.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut jni::JNIEnv<'_>) -> jni::errors::Result<T>,
    ) -> Option<T> {
        if guard::is_hosts_event() {
            return None;
        }
        // SAFETY: `env` is this thread's environment by `Jni::from_raw`'s contract. The second handle on
        // it is gone before this one is used again, and `work` does not see this one's frame.
        let mut env = unsafe { jni::JNIEnv::from_raw(self.env.cast()) }.ok()?;
        let done = env.with_local_frame(CALL_CAPACITY, work);
        let failed = self.clear_exception();
        done.ok().filter(|_| !failed)
    }

    /// Runs `work` in a frame of local references of its own. If the VM has no memory for the frame, it
    /// runs nothing and returns `None`. Meanwhile only the environment passed to `work` makes
    /// references.
    pub(crate) fn in_frame<T>(&self, work: impl for<'f> FnOnce(&'f Jni) -> T) -> Option<T> {
        if call!(self, PushLocalFrame, FRAME_CAPACITY) != 0 {
            self.clear_exception();
            return None;
        }
        self.suspended.set(true);
        // Also if `work` panics.
        let _frame = LocalFrame(self);
        // SAFETY: the environment is this one's, and the value lives no longer than it.
        let inner = unsafe { Jni::from_raw(self.env) };
        Some(work(&inner))
    }
}

/// The topmost frame of local references; dropping this pops it.
struct LocalFrame<'j>(&'j Jni);

impl Drop for LocalFrame<'_> {
    fn drop(&mut self) {
        call!(self.0, PopLocalFrame, ptr::null_mut());
        self.0.suspended.set(false);
    }
}
