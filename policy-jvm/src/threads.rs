//! The VM, and threads that are attached to it.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use jvmti_bindings::sys::jni;

use crate::env::Jni;
use crate::error::JvmTiError;
use crate::guard;
use crate::jvmti::JvmTi;
use crate::kinds::Thread;
use crate::refs::{Handle, Ref};
use crate::vm_buffers::BufferFields;
use crate::vm_flags::{ChangedFlag, FlagChange, FlagKept};

/// The VM of this process, set when an entry point is called. It outlives the agent.
static VM: AtomicPtr<jni::JavaVM> = AtomicPtr::new(ptr::null_mut());

/// Whether the function table has the entry for virtual threads, which came with JDK 21: one of the three below.
/// Found out at the first question, on a thread that is attached: in `Agent_OnLoad` no thread is, and the VM gives no
/// environment then, so an answer from there was "no" for good.
static VIRTUAL_THREADS: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const MISSING: u8 = 1;
const KNOWN: u8 = 2;

/// The VM, for threads to attach to. Any thread.
#[derive(Debug, Clone, Copy)]
pub struct Vm {
    raw: *mut jni::JavaVM,
}

// SAFETY: the invocation interface may be called from any thread, and the VM outlives the agent.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

/// Runs `work` with the environment of the calling thread, if it is attached to the VM.
pub(crate) fn with_current<T>(work: impl FnOnce(&Jni) -> T) -> Option<T> {
    let raw = VM.load(Ordering::Acquire);
    (!raw.is_null()).then_some(Vm { raw })?.here(work)
}

impl Vm {
    /// # Safety
    /// `raw` must be the `JavaVM*` that the VM passed to an agent entry point.
    pub(crate) unsafe fn from_raw(raw: *mut jni::JavaVM) -> Vm {
        let vm = Vm { raw };
        VM.store(raw, Ordering::Release);
        vm
    }

    /// A new environment of the tools interface.
    pub(crate) fn tools(&self) -> Result<JvmTi, JvmTiError> {
        // SAFETY: `raw` is what the VM passed to an agent entry point, by `from_raw`'s contract.
        unsafe { JvmTi::of(self.raw) }
    }

    /// Changes a flag, or without `may_write` reads it. With it, only inside `Agent_OnLoad`.
    pub(crate) fn change_flag(
        &self,
        change: &FlagChange,
        may_write: bool,
    ) -> Result<ChangedFlag, FlagKept> {
        // SAFETY: `raw` is the live VM's invocation interface, whose functions are libjvm's. `Start` is made by an
        // entry point, says which one it was, and is given to its work alone.
        unsafe { change.make((**self.raw).GetEnv as *const c_void, may_write) }
    }

    /// Where this VM keeps a thread's allocation buffer.
    pub(crate) fn buffer_fields(&self) -> Result<BufferFields, FlagKept> {
        // SAFETY: as in `Vm::change_flag`.
        unsafe { BufferFields::find((**self.raw).GetEnv as *const c_void) }
    }

    /// The environment of the calling thread, if it is attached and the VM knows this version of JNI.
    fn environment(&self, version: jni::jint) -> Option<*mut jni::JNIEnv> {
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `raw` is the live VM's invocation interface; GetEnv writes one pointer.
        let code = unsafe { ((**self.raw).GetEnv)(self.raw, &mut env, version) };
        (code == 0 && !env.is_null()).then_some(env.cast())
    }

    /// Runs `work` with the JNI environment of the calling thread; runs nothing and returns `None` if it
    /// is not attached.
    pub fn here<T>(&self, work: impl FnOnce(&Jni) -> T) -> Option<T> {
        let env = self.environment(jni::JNI_VERSION_10)?;
        // SAFETY: GetEnv returned this thread's environment, and `work` gets it by reference, inside
        // whatever native frame or attachment there is.
        Some(work(&unsafe { Jni::from_raw(env) }))
    }

    /// Attaches the calling thread as a daemon (it never keeps the JVM from ending) under `name`, runs
    /// `work` and detaches it. `None` if it cannot be attached or `work` panics. The thread belongs to
    /// the agent from then on ([`guard::belongs_to_agent`]).
    ///
    /// For threads that are not attached, and are the agent's own.
    pub fn attached_as_daemon<T>(&self, name: &str, work: impl FnOnce(&Jni) -> T) -> Option<T> {
        guard::belongs_to_agent();
        if self.here(|_| ()).is_some() {
            return None;
        }
        let name = CString::new(name).ok()?;
        let mut arguments = jni::JavaVMAttachArgs {
            version: jni::JNI_VERSION_10,
            name: name.as_ptr().cast_mut(),
            group: ptr::null_mut(),
        };
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `raw` is the live VM's invocation interface; the arguments and the name they point to
        // outlive the call.
        let code = unsafe {
            ((**self.raw).AttachCurrentThreadAsDaemon)(
                self.raw,
                &mut env,
                (&raw mut arguments).cast(),
            )
        };
        if code != 0 || env.is_null() {
            return None;
        }
        let done = guard::contain(|| {
            // SAFETY: the attach returned this thread's environment, which is used on this thread only and
            // not after the detach below.
            work(&unsafe { Jni::from_raw(env.cast()) })
        });
        // SAFETY: this thread attached itself above and holds no Java frames; the `Jni` is gone.
        unsafe { ((**self.raw).DetachCurrentThread)(self.raw) };
        done
    }
}

impl Ref<'_, Thread> {
    /// Whether this thread is a virtual one. No exception may be pending. One call; any thread.
    pub fn is_virtual(&self) -> bool {
        has_virtual_threads(self.jni())
            && crate::env::call!(self.jni(), IsVirtualThread, self.raw().0) != 0
    }
}

/// Whether the environment's table has the entry.
fn has_virtual_threads(env: &Jni) -> bool {
    let known = VIRTUAL_THREADS.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == KNOWN;
    }
    let has_them = crate::env::call!(env, GetVersion) >= jni::JNI_VERSION_21;
    let found = if has_them { KNOWN } else { MISSING };
    VIRTUAL_THREADS.store(found, Ordering::Relaxed);
    has_them
}
