//! The clerk: the thread that knows classes by name, and puts policies in force.
//!
//! It enters new scopes, names the classes that samples have met, judges the methods that due threads have met,
//! and classifies all loaded classes when a policy with package accounts comes, because only
//! an attached thread can. It calls no Java code.

use std::time::Duration;

use crate::agent::Agent;
use crate::jvm::java::{Jni, Weak};
use crate::jvm::scan::scan;
use crate::jvm::study::study;
use crate::ledger::Tag;
use crate::options::TestPanic;
use crate::policy::enact;

use super::classes::{ClassId, Kind};
use super::naming;

/// The longest sleep; a new class or policy wakes the clerk earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(2);

/// Classes named between two looks at the policy: a tenant that makes classes without end
/// must not keep an operator's change waiting.
const MOST_AT_A_TIME: usize = 1000;

/// A class that a sample has met, for the clerk to name.
pub(crate) struct NewClass {
    pub(crate) id: ClassId,
    pub(crate) weak: Weak,
}

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni) {
    agent.clerk.listen();
    while !agent.stopping() {
        while let Some(new) = agent.identity.new_scopes.pop() {
            agent
                .directory()
                .enter_scope(new.purse, new.name, new.loader);
        }
        let mut named = 0;
        while named < MOST_AT_A_TIME
            && let Some(new) = agent.identity.new_classes.pop()
        {
            name(agent, jni, new);
            named += 1;
        }
        study(agent, jni);
        if let Some(policy) = agent.policy.take_incoming() {
            if agent.options().test_panic == Some(TestPanic::Clerk) {
                std::panic::resume_unwind(Box::new("a test asked for it"));
            }
            enact::apply(agent, jni, policy);
        }
        agent.policy.tell();
        if agent.clerk.take_rescan() {
            scan(agent, jni, agent.identity.classifies());
        }
        agent.costs.thread_is("clerk");
        if named == MOST_AT_A_TIME {
            continue;
        }
        agent.clerk.wait(LONGEST_SLEEP);
    }
}

fn name(agent: &Agent, jni: &Jni, new: NewClass) {
    if let Some(class) = new.weak.upgrade(jni) {
        let classes = &agent.identity.classes;
        if let Ok(signature) = agent.tools.signature_of(&class) {
            classes.set_claims(new.id, agent.identity.claims_of(&signature));
            classes.set_kind(new.id, Kind::of(&signature));
            agent
                .directory()
                .name_class(new.id, naming::java_name(&signature));
        }
        let tag = agent.tools.tag(&class).ok().and_then(Tag::decode);
        if matches!(tag, Some(Tag::Class(handle)) if classes.of_tag(handle) != new.id) {
            // Two threads numbered it at once; the tag is the other's.
            classes.discard(new.id);
        }
    }
    jni.release(new.weak);
}
