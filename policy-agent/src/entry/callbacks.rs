//! The agent's action at each event of the VM.

use policy_jvm::kinds::Class;
use policy_jvm::{Events, Jni, Ref, SampledAllocation, StartedThread};

use crate::allocation::recognizer::Recognizer;
use crate::allocation::sample;
use crate::ground::Ground;
use crate::ledger::Tag;

use super::agent::Agent;

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

    fn thread_started(&self, jni: &Jni, started: &StartedThread<'_>) {
        if let Some(agent) = Agent::get() {
            agent.census.started(agent.ground, jni, started);
            if !started.is_agents && agent.ground.core.samples_are_taken() {
                sample::thread_started(agent.ground, jni);
            }
        }
    }

    fn class_prepared(&self, jni: &Jni, class: &Ref<'_, Class>) {
        if let Some(agent) = Agent::get() {
            (agent.method_doors).class_prepared(agent.ground, jni, class);
            class_prepared(agent.ground, jni, class);
        }
    }

    fn collection_finished(&self) {
        if let Some(ground) = Ground::get() {
            ground.core.collection_finished();
        }
    }

    fn object_freed(&self, tag: i64) {
        if let Some(agent) = Agent::get() {
            let ground = agent.ground;
            let refund = || ground.costs.of_refund(|| ground.core.freed(tag));
            agent.collecting.refunds.report(refund);
        }
    }

    fn object_sampled(&self, jni: &Jni, allocation: &SampledAllocation<'_>) {
        if let Some(ground) = Ground::get() {
            sample::charge(ground, jni, allocation);
        }
    }
}

/// A class was prepared: enters its loader and classifies its package before any of its code can allocate.
fn class_prepared(ground: &Ground, jni: &Jni, class: &Ref<'_, Class>) {
    let recognizer = Recognizer { ground, jni };
    if !ground.core.identity.classifies() {
        if let Ok(Some(loader)) = ground.jvmti.loader_of(jni, class) {
            recognizer.loader(&loader);
        }
        return;
    }
    let Ok(signature) = ground.jvmti.signature_of(class) else {
        return;
    };
    let claims = ground.core.identity.claims_of(&signature);
    match ground.jvmti.tag(class).map(|tag| (tag, Tag::decode(tag))) {
        Ok((_, Some(Tag::Class(handle)))) => {
            let id = ground.core.identity.classes.of_tag(handle);
            ground.core.identity.classes.set_claims(id, claims);
        }
        Ok((tag, _)) => {
            let id = recognizer.new_class(class, tag, claims);
            // Again, because a new policy may have scanned all classes meanwhile, or the entry may be
            // of another thread that met the class at the same time and set no claims.
            let now = ground.core.identity.claims_of(&signature);
            ground.core.identity.classes.set_claims(id, now);
        }
        Err(_) => {}
    }
}
