//! The agent's action at each event of the VM.

use policy_jvm::kinds::Class;
use policy_jvm::{Events, Jni, Ref, SampledAllocation};

use crate::agent::Agent;
use crate::ledger::Tag;

use super::recognizer::Recognizer;
use super::sample;

/// Hands each event to the agent, once there is one.
pub(super) struct Callbacks;

impl Events for Callbacks {
    fn vm_init(&self, jni: &Jni) {
        if let Some(agent) = Agent::get() {
            agent.start(jni);
        }
    }

    fn vm_death(&self) {
        if let Some(agent) = Agent::get() {
            agent.stop();
        }
    }

    fn thread_started(&self, jni: &Jni) {
        if let Some(agent) = Agent::get() {
            sample::thread_started(agent, jni);
        }
    }

    fn class_prepared(&self, jni: &Jni, class: &Ref<'_, Class>) {
        if let Some(agent) = Agent::get() {
            class_prepared(agent, jni, class);
        }
    }

    fn collection_finished(&self) {
        if let Some(agent) = Agent::get() {
            agent.core.collection_finished();
        }
    }

    fn object_freed(&self, tag: i64) {
        if let Some(agent) = Agent::get() {
            agent
                .refund_threads
                .report(|| agent.costs.of_refund(|| agent.core.freed(tag)));
        }
    }

    fn object_sampled(&self, jni: &Jni, allocation: &SampledAllocation<'_>) {
        if let Some(agent) = Agent::get() {
            sample::charge(agent, jni, allocation);
        }
    }
}

/// A class was prepared: enters its loader and classifies its package before any of its code can allocate.
fn class_prepared(agent: &Agent, jni: &Jni, class: &Ref<'_, Class>) {
    agent.method_doors.class_prepared(agent, jni, class);
    let recognizer = Recognizer { agent, jni };
    if !agent.core.identity.classifies() {
        if let Ok(Some(loader)) = agent.jvmti.loader_of(jni, class) {
            recognizer.loader(&loader);
        }
        return;
    }
    let Ok(signature) = agent.jvmti.signature_of(class) else {
        return;
    };
    let claims = agent.core.identity.claims_of(&signature);
    match agent.jvmti.tag(class).map(|tag| (tag, Tag::decode(tag))) {
        Ok((_, Some(Tag::Class(handle)))) => {
            let id = agent.core.identity.classes.of_tag(handle);
            agent.core.identity.classes.set_claims(id, claims);
        }
        Ok((tag, _)) => {
            let id = recognizer.new_class(class, tag, claims);
            // Again, because a new policy may have scanned all classes meanwhile, or the entry may be
            // of another thread that met the class at the same time and set no claims.
            let now = agent.core.identity.claims_of(&signature);
            agent.core.identity.classes.set_claims(id, now);
        }
        Err(_) => {}
    }
}
