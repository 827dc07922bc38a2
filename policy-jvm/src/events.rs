//! The event trampolines: one per JVM TI event, each a line or two inside [`guard::contain`].

use std::ptr;
use std::sync::OnceLock;

use jvmti_bindings::sys::{jni, jvmti};

use crate::bound_natives;
use crate::env::Jni;
use crate::error::JvmTiError;
use crate::guard::{self, Latch};
use crate::jvmti::{JvmTi, tools_call};
use crate::kinds::{Anything, Class, Thread};
use crate::refs::Ref;
use crate::rewriting;

/// Handles events.
///
/// A panic is counted, and the event dropped. No handler may block; `collection_finished` and
/// `object_freed` run where neither JNI nor JVM TI may be called, perhaps while the world stands still:
/// they touch atomics only.
pub trait Events: Sync {
    /// The VM is ready to run Java code. On its main thread.
    fn vm_init(&self, jni: &Jni);
    /// The VM shuts down.
    fn vm_death(&self);
    /// A platform thread begins: none of its code has run. On that thread, as [`Events::class_prepared`].
    fn thread_started(&self, jni: &Jni, started: &StartedThread<'_>);
    /// A class was prepared: none of its code has run. On the thread that needs it; not on one of the
    /// agent's, and not while the agent works on the thread.
    fn class_prepared(&self, jni: &Jni, class: &Ref<'_, Class>);
    /// A collection's pause has ended.
    fn collection_finished(&self);
    /// A tagged object was freed.
    fn object_freed(&self, tag: i64);
    /// An allocation was sampled. On the allocating thread, as [`Events::class_prepared`]; an exception
    /// that is left pending is thrown where the object is allocated.
    fn object_sampled(&self, jni: &Jni, allocation: &SampledAllocation<'_>);
}

/// A thread that has just started.
#[derive(Debug)]
pub struct StartedThread<'e> {
    /// The thread, which is the calling one.
    pub thread: Option<Ref<'e, Thread>>,
    /// It is one of the agent's own.
    pub is_agents: bool,
}

/// A sampled allocation as the event describes it.
#[derive(Debug)]
pub struct SampledAllocation<'e> {
    /// The allocating thread: the virtual thread if it runs one and the VM shows them.
    pub thread: Option<Ref<'e, Thread>>,
    /// The object. JDK 28 may report value objects, which have no identity.
    pub object: Option<Ref<'e>>,
    /// The object's class.
    pub class: Option<Ref<'e, Class>>,
    /// The object's size.
    pub size_bytes: u64,
}

/// A JVM TI event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// [`Events::vm_init`].
    VmInit,
    /// [`Events::vm_death`].
    VmDeath,
    /// [`Events::thread_started`].
    ThreadStart,
    /// [`Events::class_prepared`].
    ClassPrepare,
    /// [`Events::collection_finished`].
    GarbageCollectionFinish,
    /// [`Events::object_freed`].
    ObjectFree,
    /// [`Events::object_sampled`].
    SampledObjectAlloc,
    /// A native method is bound to a function, which is noted for [`Jni::watch_native_memory`].
    NativeMethodBind,
}

impl Event {
    fn raw(self) -> jvmti::jvmtiEvent {
        match self {
            Event::VmInit => jvmti::JVMTI_EVENT_VM_INIT,
            Event::VmDeath => jvmti::JVMTI_EVENT_VM_DEATH,
            Event::ThreadStart => jvmti::JVMTI_EVENT_THREAD_START,
            Event::ClassPrepare => jvmti::JVMTI_EVENT_CLASS_PREPARE,
            Event::GarbageCollectionFinish => jvmti::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
            Event::ObjectFree => jvmti::JVMTI_EVENT_OBJECT_FREE,
            Event::SampledObjectAlloc => jvmti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
            Event::NativeMethodBind => jvmti::JVMTI_EVENT_NATIVE_METHOD_BIND,
        }
    }
}

/// The handler of all events.
static HANDLER: OnceLock<&'static dyn Events> = OnceLock::new();

impl JvmTi {
    /// Sets the handler of all enabled events. If this is called several times, the first handler stays.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn install(&self, handler: &'static dyn Events) -> Result<(), JvmTiError> {
        let _ = HANDLER.set(handler);
        self.wrapper()
            .set_event_callbacks(table())
            .map_err(|error| JvmTiError::of(error.raw()))
    }

    /// Enables an event for all threads.
    ///
    /// `ObjectFree` and `SampledObjectAlloc` count from the live phase on only; `ObjectFree` is to be
    /// enabled once and not switched again: HotSpot then waits for a flush of frees without a safepoint
    /// check, which can deadlock it (seen on 17.0.15 with ZGC).
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn enable(&self, event: Event) -> Result<(), JvmTiError> {
        self.switch(event, jvmti::JVMTI_ENABLE)
    }

    /// Disables an event for all threads: not `ObjectFree` (see [`JvmTi::enable`]).
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn disable(&self, event: Event) -> Result<(), JvmTiError> {
        self.switch(event, jvmti::JVMTI_DISABLE)
    }

    fn switch(&self, event: Event, mode: jvmti::jvmtiEventMode) -> Result<(), JvmTiError> {
        tools_call!(
            self,
            SetEventNotificationMode,
            mode,
            event.raw(),
            ptr::null_mut()
        )
    }
}

/// The table for `SetEventCallbacks`.
fn table() -> jvmti::jvmtiEventCallbacks {
    let mut table = jvmti::jvmtiEventCallbacks::default();
    table.VMInit = Some(vm_init);
    table.VMDeath = Some(vm_death);
    table.ThreadStart = Some(thread_start);
    table.ClassPrepare = Some(class_prepare);
    table.ClassFileLoadHook = Some(rewriting::class_file_loaded);
    table.GarbageCollectionFinish = Some(collection_finished);
    table.ObjectFree = Some(object_freed);
    table.SampledObjectAlloc = Some(object_sampled);
    table.NativeMethodBind = Some(bound_natives::native_method_bound);
    table
}

unsafe extern "system" fn vm_init(_: *mut jvmti::jvmtiEnv, env: *mut jni::JNIEnv, _: jni::jthread) {
    guard::contain(|| {
        if let Some(handler) = HANDLER.get() {
            // SAFETY: the VM passes this thread's environment, which is used in this call alone.
            handler.vm_init(&unsafe { Jni::from_raw(env) });
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut jvmti::jvmtiEnv, _: *mut jni::JNIEnv) {
    guard::contain(|| HANDLER.get().map(|handler| handler.vm_death()));
}

unsafe extern "system" fn thread_start(
    _: *mut jvmti::jvmtiEnv,
    env: *mut jni::JNIEnv,
    thread: jni::jthread,
) {
    guard::contain(|| {
        let latch = Latch::enter();
        let is_agents = guard::is_agents();
        let (Some(handler), true) = (HANDLER.get(), latch.is_some() || is_agents) else {
            return;
        };
        // SAFETY: as in `vm_init`.
        let jni = unsafe { Jni::from_raw(env) };
        let started = StartedThread {
            // SAFETY: the event's reference is to a thread and valid in this call.
            thread: unsafe { Ref::<Thread>::borrow(&jni, thread) },
            is_agents,
        };
        handler.thread_started(&jni, &started);
    });
}

unsafe extern "system" fn class_prepare(
    _: *mut jvmti::jvmtiEnv,
    env: *mut jni::JNIEnv,
    _: jni::jthread,
    class: jni::jclass,
) {
    guard::contain(|| {
        let (Some(handler), Some(_latch)) = (HANDLER.get(), Latch::enter()) else {
            return;
        };
        // SAFETY: as in `vm_init`.
        let jni = unsafe { Jni::from_raw(env) };
        // SAFETY: the event's reference is to a class and valid in this call.
        if let Some(class) = unsafe { Ref::<Class>::borrow(&jni, class) } {
            handler.class_prepared(&jni, &class);
        }
    });
}

unsafe extern "system" fn collection_finished(_: *mut jvmti::jvmtiEnv) {
    guard::contain(|| HANDLER.get().map(|handler| handler.collection_finished()));
}

unsafe extern "system" fn object_freed(_: *mut jvmti::jvmtiEnv, tag: jni::jlong) {
    guard::contain(|| HANDLER.get().map(|handler| handler.object_freed(tag)));
}

unsafe extern "system" fn object_sampled(
    _: *mut jvmti::jvmtiEnv,
    env: *mut jni::JNIEnv,
    thread: jni::jthread,
    object: jni::jobject,
    class: jni::jclass,
    size: jni::jlong,
) {
    guard::contain(|| {
        let (Some(handler), Some(_latch)) = (HANDLER.get(), Latch::enter()) else {
            return;
        };
        // SAFETY: as in `vm_init`.
        let jni = unsafe { Jni::from_raw(env) };
        // SAFETY: the event's references are null or valid in this call, and of these kinds.
        let allocation = unsafe {
            SampledAllocation {
                thread: Ref::<Thread>::borrow(&jni, thread),
                object: Ref::<Anything>::borrow(&jni, object),
                class: Ref::<Class>::borrow(&jni, class),
                size_bytes: size.max(0) as u64,
            }
        };
        handler.object_sampled(&jni, &allocation);
    });
}
