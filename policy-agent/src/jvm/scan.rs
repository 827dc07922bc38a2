//! A look at every loaded class: for a policy that classifies, and for loaders that were
//! there before the agent.
//!
//! JVM TI hands out one local reference for each of what may be a hundred thousand classes.
//! They live in a frame of their own, and the work is done in a second frame above it: to
//! `-Xcheck:jni`, which counts the references of the topmost frame at each call, there are
//! never many. Each is deleted as it is done with, so that the lower frame is empty when it
//! comes to the top again.

use crate::agent::Agent;
use crate::identity::bill::Claim;
use crate::ledger::Tag;

use super::java::{Jni, Local};
use super::sight::Sight;

/// Enters the loaders of all loaded classes and, where `classify` says so, gives every class
/// its claims. On an attached agent thread, or at the start.
pub(crate) fn scan(agent: &Agent, jni: &Jni, classify: bool) {
    jni.in_frame(|| {
        let classes = agent.tools.loaded_classes(jni);
        jni.in_frame(|| {
            for class in classes {
                enter(Sight { agent, jni }, &class, classify);
            }
        });
    });
}

fn enter(sight: Sight<'_>, class: &Local<'_>, classify: bool) {
    let (agent, jni) = (sight.agent, sight.jni);
    if !classify {
        if let Ok(Some(loader)) = agent.tools.loader_of(jni, class) {
            sight.loader(&loader);
        }
        return;
    }
    let Ok(signature) = agent.tools.signature_of(class) else {
        return;
    };
    let claims = agent.identity.claims_of(&signature);
    let tag = agent.tools.tag(class).unwrap_or(0);
    match Tag::decode(tag) {
        Some(Tag::Class(handle)) => {
            let classes = &agent.identity.classes;
            classes.set_claims(classes.of_tag(handle), claims);
        }
        // A class that nobody claims is entered when it is first met; its loader now.
        _ if claims == [Claim::Nobody; 2] => {
            if let Ok(Some(loader)) = agent.tools.loader_of(jni, class) {
                sight.loader(&loader);
            }
        }
        _ => {
            // SAFETY: a `Local` is a valid reference of this thread.
            let id = unsafe { sight.new_class(class.raw(), tag, claims) };
            // It may be the entry of a thread that met the class at the same time.
            agent.identity.classes.set_claims(id, claims);
        }
    }
}
