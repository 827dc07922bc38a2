//! The JVM TI environment: the calls the agent makes, checked.

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::{jni, jvmti};
use std::mem::MaybeUninit;
use std::ptr;

use super::java::{Jni, Local};

/// A JVM TI error code, printed with its specification name where it is common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) i32);

impl Failure {
    /// `JVMTI_ERROR_NOT_AVAILABLE`: a capability is held by another agent.
    pub(crate) const NOT_AVAILABLE: Failure = Failure(98);
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Failure::NOT_AVAILABLE => write!(f, "JVM TI error 98 (NOT_AVAILABLE)"),
            Failure(99) => write!(f, "JVM TI error 99 (MUST_POSSESS_CAPABILITY)"),
            Failure(112) => write!(f, "JVM TI error 112 (WRONG_PHASE)"),
            Failure(code) => write!(f, "JVM TI error {code}"),
        }
    }
}

fn check(error: jvmti::jvmtiError) -> Result<(), Failure> {
    if error == jvmti::jvmtiError::NONE {
        Ok(())
    } else {
        Err(Failure(error.raw()))
    }
}

/// A method as HotSpot names it while its class is loaded. Never dereferenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MethodId(pub(crate) usize);

/// Room for the frames of one fetch; not initialised, because most samples fetch none.
pub(crate) struct FrameBuffer<const N: usize> {
    buffer: [MaybeUninit<jvmti::jvmtiFrameInfo>; N],
    filled: usize,
}

impl<const N: usize> FrameBuffer<N> {
    pub(crate) fn new() -> FrameBuffer<N> {
        FrameBuffer {
            buffer: [const { MaybeUninit::uninit() }; N],
            filled: 0,
        }
    }

    /// The method of the frame at `index` of the last fetch.
    pub(crate) fn method(&self, index: usize) -> Option<MethodId> {
        self.place(index).map(|(method, _)| method)
    }

    /// The method of the frame at `index` of the last fetch, and the index of the bytecode that
    /// it stands at; none in native code.
    pub(crate) fn place(&self, index: usize) -> Option<(MethodId, Option<u32>)> {
        if index >= self.filled {
            return None;
        }
        // SAFETY: GetStackTrace has written the first `filled` frames.
        let info = unsafe { self.buffer[index].assume_init_ref() };
        Some((
            MethodId(info.method as usize),
            u32::try_from(info.location).ok(),
        ))
    }
}

/// The agent's JVM TI environment.
#[derive(Clone, Copy)]
pub(crate) struct JvmTi {
    raw: *mut jvmti::jvmtiEnv,
}

// SAFETY: a JVM TI environment may be used by any thread attached to its VM (JVM TI
// specification, "Environments"), and ours is never disposed.
unsafe impl Send for JvmTi {}
// SAFETY: as above; JVM TI functions are thread-safe.
unsafe impl Sync for JvmTi {}

/// Calls a slot of the environment's function table.
macro_rules! call {
    ($self:ident, $slot:ident $(, $argument:expr)*) => {{
        // SAFETY: `raw` came from GetEnv and is never disposed, so both the environment
        // and its function table are valid for the life of the VM.
        match unsafe { (*(*$self.raw).functions).$slot } {
            // SAFETY: the slot is the VM's own implementation; the arguments are valid by
            // the signature of the enclosing method, which takes handles, not raw
            // pointers, or states its own contract.
            Some(function) => check(unsafe { function($self.raw $(, $argument)*) }),
            None => Err(Failure::NOT_AVAILABLE),
        }
    }};
}

impl JvmTi {
    /// Asks the VM for a JVM TI environment.
    ///
    /// # Safety
    /// `vm` must be the `JavaVM*` that the VM passed to an agent entry point.
    pub(crate) unsafe fn of(vm: *mut jni::JavaVM) -> Result<JvmTi, i32> {
        // SAFETY: by this function's own contract.
        unsafe { Jvmti::from_java_vm_raw(vm) }.map(|env| JvmTi { raw: env.raw() })
    }

    /// The crate's wrapper, for the calls that are not on a hot path.
    fn wrapper(&self) -> Jvmti {
        // SAFETY: `raw` is valid for the life of the VM.
        unsafe { Jvmti::from_raw(self.raw) }
    }

    /// A system property as the VM sees it; available from `Agent_OnLoad` on.
    pub(crate) fn system_property(&self, name: &str) -> Option<String> {
        self.wrapper().get_system_property(name).ok()
    }

    /// Acquires the capabilities that `choose` sets.
    pub(crate) fn acquire(
        &self,
        choose: impl FnOnce(&mut jvmti::jvmtiCapabilities),
    ) -> Result<(), Failure> {
        let mut wanted = jvmti::jvmtiCapabilities::default();
        choose(&mut wanted);
        self.wrapper()
            .add_capabilities(&wanted)
            .map_err(|e| Failure(e.raw()))
    }

    /// Installs the event callbacks.
    pub(crate) fn install(&self, callbacks: jvmti::jvmtiEventCallbacks) -> Result<(), Failure> {
        self.wrapper()
            .set_event_callbacks(callbacks)
            .map_err(|e| Failure(e.raw()))
    }

    /// Switches an event on or off for all threads. `ObjectFree` only before the VM is live:
    /// later it can deadlock the VM (see [`crate::enforce::warden`]).
    pub(crate) fn event(&self, event: jvmti::jvmtiEvent, on: bool) -> Result<(), Failure> {
        let mode = if on {
            jvmti::JVMTI_ENABLE
        } else {
            jvmti::JVMTI_DISABLE
        };
        call!(self, SetEventNotificationMode, mode, event, ptr::null_mut())
    }

    /// Sets the mean distance between samples, in bytes; each thread follows at its next draw.
    pub(crate) fn set_sampling_interval(&self, bytes: u64) -> Result<(), Failure> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        call!(self, SetHeapSamplingInterval, bytes)
    }

    /// The tag of an object, 0 when it has none.
    pub(crate) fn tag(&self, object: &Local<'_>) -> Result<i64, Failure> {
        // SAFETY: a `Local` is a valid reference on its own thread.
        unsafe { self.tag_of(object.raw()) }
    }

    /// The tag of an object, 0 when it has none.
    ///
    /// # Safety
    /// `object` must be a valid, non-null reference on the calling thread.
    pub(crate) unsafe fn tag_of(&self, object: jni::jobject) -> Result<i64, Failure> {
        let mut tag = 0;
        call!(self, GetTag, object, &mut tag)?;
        Ok(tag)
    }

    /// Tags an object.
    pub(crate) fn set_tag(&self, object: &Local<'_>, tag: i64) -> Result<(), Failure> {
        // SAFETY: a `Local` is a valid reference on its own thread.
        unsafe { self.set_tag_of(object.raw(), tag) }
    }

    /// Tags an object.
    ///
    /// # Safety
    /// `object` must be a valid, non-null reference on the calling thread.
    pub(crate) unsafe fn set_tag_of(&self, object: jni::jobject, tag: i64) -> Result<(), Failure> {
        call!(self, SetTag, object, tag)
    }

    /// Fills `frames` with at most `wanted` frames of the calling thread's stack from `start`
    /// on (0 is the top), and returns how many there were.
    pub(crate) fn stack<const N: usize>(
        &self,
        start: usize,
        wanted: usize,
        frames: &mut FrameBuffer<N>,
    ) -> Result<usize, Failure> {
        frames.filled = 0;
        let wanted = wanted.min(N);
        let mut count = 0;
        let start = i32::try_from(start).unwrap_or(i32::MAX);
        // A null thread means the calling one.
        let result = call!(
            self,
            GetStackTrace,
            ptr::null_mut(),
            start,
            wanted as i32,
            frames.buffer.as_mut_ptr().cast(),
            &mut count
        );
        match result {
            Ok(()) => {}
            // ILLEGAL_ARGUMENT: `start` is beyond the bottom of the stack.
            Err(Failure(103)) => return Ok(0),
            Err(failure) => return Err(failure),
        }
        frames.filled = usize::try_from(count).unwrap_or(0).min(wanted);
        Ok(frames.filled)
    }

    /// The `java.lang.Thread` of the calling thread: the virtual one where it runs one.
    pub(crate) fn current_thread<'j>(&self, jni: &'j Jni) -> Option<Local<'j>> {
        let mut thread = ptr::null_mut();
        call!(self, GetCurrentThread, &mut thread).ok()?;
        // SAFETY: JVM TI returns a fresh local reference of this thread.
        unsafe { Local::adopt(jni, thread) }
    }

    /// The class that declares a method on the calling thread's stack.
    ///
    /// # Safety
    /// `method` must come from [`JvmTi::stack`] on this thread and still be on its stack,
    /// which keeps its class loaded.
    pub(crate) unsafe fn declaring_class<'j>(
        &self,
        jni: &'j Jni,
        method: MethodId,
    ) -> Result<Option<Local<'j>>, Failure> {
        let mut class = ptr::null_mut();
        call!(
            self,
            GetMethodDeclaringClass,
            method.0 as jni::jmethodID,
            &mut class
        )?;
        // SAFETY: JVM TI returns a fresh local reference of this thread.
        Ok(unsafe { Local::adopt(jni, class) })
    }

    /// The loader of a class; `None` for the boot loader.
    ///
    /// # Safety
    /// `class` must be a valid class reference on the calling thread.
    pub(crate) unsafe fn class_loader<'j>(
        &self,
        jni: &'j Jni,
        class: jni::jclass,
    ) -> Result<Option<Local<'j>>, Failure> {
        let mut loader = ptr::null_mut();
        call!(self, GetClassLoader, class, &mut loader)?;
        // SAFETY: JVM TI returns a fresh local reference of this thread.
        Ok(unsafe { Local::adopt(jni, loader) })
    }

    /// The JVM signature of a class (`Ljava/lang/String;`, `[B`). Allocates: not for
    /// allocating threads.
    ///
    /// # Safety
    /// `class` must be a valid class reference on the calling thread.
    pub(crate) unsafe fn signature(&self, class: jni::jclass) -> Result<String, Failure> {
        // SAFETY: by this function's own contract.
        unsafe { self.wrapper().get_class_signature(class) }
            .map(|(signature, _)| signature)
            .map_err(|e| Failure(e.raw()))
    }

    /// As [`JvmTi::class_loader`].
    pub(crate) fn loader_of<'j>(
        &self,
        jni: &'j Jni,
        class: &Local<'_>,
    ) -> Result<Option<Local<'j>>, Failure> {
        // SAFETY: a `Local` is a valid reference of this thread; callers pass classes.
        unsafe { self.class_loader(jni, class.raw()) }
    }

    /// As [`JvmTi::signature`].
    pub(crate) fn signature_of(&self, class: &Local<'_>) -> Result<String, Failure> {
        // SAFETY: a `Local` is a valid reference of this thread; callers pass classes.
        unsafe { self.signature(class.raw()) }
    }

    /// The instance methods that a class declares itself: id, name, descriptor. Links nothing.
    pub(crate) fn instance_methods(&self, class: &Local<'_>) -> Vec<(MethodId, String, String)> {
        const ACC_STATIC: i32 = 0x0008;
        // SAFETY: a `Local` is valid on its own thread; callers pass classes.
        let Ok(ids) = (unsafe { self.wrapper().get_class_methods(class.raw()) }) else {
            return Vec::new();
        };
        ids.into_iter()
            .filter_map(|id| {
                // SAFETY: the id was just returned for a class that `class` keeps loaded.
                let modifiers = unsafe { self.wrapper().get_method_modifiers(id) }.ok()?;
                if modifiers & ACC_STATIC != 0 {
                    return None;
                }
                // SAFETY: as above.
                let (name, descriptor, _) = unsafe { self.wrapper().get_method_name(id) }.ok()?;
                Some((MethodId(id as usize), name, descriptor))
            })
            .collect()
    }

    /// The name of a method, `None` where the VM has no memory for it. The caller holds the class that
    /// declares it: HotSpot means to answer for the id of an unloaded method with an error, but has
    /// crashed over one that was being unloaded (JDK-8268364, JDK-8339725). Not for allocating threads.
    pub(crate) fn method_name(&self, method: MethodId) -> Option<String> {
        let id = method.0 as jni::jmethodID;
        // SAFETY: the id was handed out by the VM for a class that the caller keeps loaded.
        let (name, _, _) = unsafe { self.wrapper().get_method_name(id) }.ok()?;
        Some(name)
    }

    /// The line of the source at an index of a method's bytecode, where the class file tells; its class
    /// is held as for [`JvmTi::method_name`]. Not for allocating threads.
    pub(crate) fn line(&self, method: MethodId, bci: u32) -> Option<i32> {
        let id = method.0 as jni::jmethodID;
        // SAFETY: as in [`JvmTi::method_name`].
        let lines = unsafe { self.wrapper().get_line_number_table(id) }.ok()?;
        lines
            .iter()
            .filter(|line| line.start_location <= i64::from(bci))
            .max_by_key(|line| line.start_location)
            .map(|line| line.line_number)
    }

    /// Whether a method is native; its class is held as for [`JvmTi::method_name`]. Not for allocating
    /// threads.
    pub(crate) fn is_native(&self, method: MethodId) -> Option<bool> {
        let id = method.0 as jni::jmethodID;
        // SAFETY: as in [`JvmTi::method_name`].
        unsafe { self.wrapper().is_method_native(id) }.ok()
    }

    /// The instructions of a method as its class file has them, `None` where there are none; its class
    /// is held as for [`JvmTi::method_name`]. Not for allocating threads.
    pub(crate) fn bytecodes(&self, method: MethodId) -> Option<Vec<u8>> {
        let id = method.0 as jni::jmethodID;
        // SAFETY: as in [`JvmTi::method_name`].
        unsafe { self.wrapper().get_bytecodes(id) }.ok()
    }

    /// Every class loaded now. Not for allocating threads.
    pub(crate) fn loaded_classes<'j>(&self, jni: &'j Jni) -> Vec<Local<'j>> {
        self.wrapper()
            .get_loaded_classes()
            .unwrap_or_default()
            .into_iter()
            // SAFETY: JVM TI returns fresh local references of this thread.
            .filter_map(|class| unsafe { Local::adopt(jni, class) })
            .collect()
    }

    /// Collects the heap and returns when that is done. Stops the world on collectors that
    /// have no other way. Only on the warden's thread.
    pub(crate) fn collect(&self) -> Result<(), Failure> {
        call!(self, ForceGarbageCollection)
    }
}
