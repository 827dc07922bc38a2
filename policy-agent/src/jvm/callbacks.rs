//! The event trampolines: one a JVM TI event, each a line or two.
//!
//! No policy lives here. Every body runs inside [`guard::contain`].

use jvmti_bindings::sys::{jni, jvmti};

use crate::agent::Agent;
use crate::ledger::Tag;

use super::guard::{self, Latch};
use super::java::Jni;
use super::sample::{self, Event};
use super::sight::Sight;

/// The table for `SetEventCallbacks`.
pub(crate) fn table() -> jvmti::jvmtiEventCallbacks {
    let mut table = jvmti::jvmtiEventCallbacks::default();
    table.VMInit = Some(vm_init);
    table.VMDeath = Some(vm_death);
    table.ClassPrepare = Some(class_prepare);
    table.GarbageCollectionFinish = Some(collection_finished);
    table.ObjectFree = Some(object_freed);
    table.SampledObjectAlloc = Some(object_sampled);
    table
}

unsafe extern "system" fn vm_init(_: *mut jvmti::jvmtiEnv, env: *mut jni::JNIEnv, _: jni::jthread) {
    guard::contain(|| {
        if let Some(agent) = Agent::get() {
            // SAFETY: the VM passes this thread's environment.
            agent.start(&unsafe { Jni::from_raw(env) });
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut jvmti::jvmtiEnv, _: *mut jni::JNIEnv) {
    guard::contain(|| {
        if let Some(agent) = Agent::get() {
            agent.stop();
        }
    });
}

unsafe extern "system" fn class_prepare(
    _: *mut jvmti::jvmtiEnv,
    env: *mut jni::JNIEnv,
    _: jni::jthread,
    class: jni::jclass,
) {
    guard::contain(|| {
        if let (Some(agent), Some(_latch)) = (Agent::get(), Latch::enter()) {
            // SAFETY: the VM passes this thread's environment and a valid class.
            unsafe { prepared(agent, &Jni::from_raw(env), class) };
        }
    });
}

/// A class was prepared: its loader becomes known, and its package is classified, before
/// any of its code can allocate.
///
/// # Safety
/// `class` must be a valid class reference on this thread, whose environment `jni` is.
unsafe fn prepared(agent: &Agent, jni: &Jni, class: jni::jclass) {
    let sight = Sight { agent, jni };
    if !agent.identity.classifies() {
        // SAFETY: by this function's own contract.
        if let Ok(Some(loader)) = unsafe { agent.tools.class_loader(jni, class) } {
            sight.loader(&loader);
        }
        return;
    }
    // SAFETY: by this function's own contract.
    unsafe {
        let Ok(signature) = agent.tools.signature(class) else {
            return;
        };
        let claims = agent.identity.claims_of(&signature);
        match agent.tools.tag_of(class).map(|tag| (tag, Tag::decode(tag))) {
            Ok((_, Some(Tag::Class(handle)))) => {
                let id = agent.identity.classes.of_tag(handle);
                agent.identity.classes.set_claims(id, claims);
            }
            Ok((tag, _)) => {
                let id = sight.new_class(class, tag, claims);
                // A new policy may have been prepared, and all classes scanned, meanwhile; or
                // the entry is of a thread that met the class at the same time, without claims.
                let now = agent.identity.claims_of(&signature);
                agent.identity.classes.set_claims(id, now);
            }
            Err(_) => {}
        }
    }
}

unsafe extern "system" fn collection_finished(_: *mut jvmti::jvmtiEnv) {
    guard::contain(|| {
        if let Some(agent) = Agent::get() {
            let epoch = agent.ledger.epochs().gc_finished();
            agent.enforcement.gates.begin(epoch);
            agent.warden.wake();
        }
    });
}

unsafe extern "system" fn object_freed(_: *mut jvmti::jvmtiEnv, tag: jni::jlong) {
    guard::contain(|| {
        if let Some(agent) = Agent::get() {
            agent
                .couriers
                .report(|| agent.costs.of_refund(|| agent.freed(tag)));
        }
    });
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
        if let (Some(agent), Some(_latch)) = (Agent::get(), Latch::enter()) {
            let event = Event {
                thread,
                object,
                class,
                size_bytes: size.max(0) as u64,
            };
            // SAFETY: the VM passes this thread's environment and the event's references.
            unsafe { sample::charge(agent, &Jni::from_raw(env), &event) };
        }
    });
}
