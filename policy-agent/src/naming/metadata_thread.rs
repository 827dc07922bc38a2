//! The metadata thread: names classes, inspects methods and puts policies in force.
//!
//! It enters new scopes, makes routes, names the classes that samples have met, inspects the methods that due threads
//! have met, and names those on the stacks of sites, which it also clears. When a policy with package accounts comes, it classifies all loaded classes, which only an
//! attached thread can do. It calls no Java code.

use std::time::Duration;

use policy_core::Core;
use policy_jvm::{Jni, JvmTi};

use crate::agent::Agent;
use crate::exact::ExactAccounts;
use crate::identity::classes::Kind;
use crate::identity::names;
use crate::jvm::method_inspection::inspect_methods;
use crate::jvm::scan::scan;
use crate::jvm::site_stack;
use crate::ledger::Tag;
use crate::options::{TestNames, TestPanic};
use crate::policy::enact;
use crate::references::NewClass;
use crate::sites::of_policy::PolicyRows;

/// The longest sleep; a new class or policy wakes the metadata thread earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(2);

/// Classes named before the thread checks for a new policy: a tenant that makes classes without end must
/// not delay an operator's change.
const MOST_AT_A_TIME: usize = 1000;

/// How late a test has classes named.
const LATE_NAMES: Duration = Duration::from_secs(2);

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni) {
    agent.metadata_thread.listen();
    let mut policy_rows = PolicyRows::default();
    while !agent.stopping() {
        while let Some(new) = agent.core.identity.new_scopes.pop() {
            agent
                .core
                .directory()
                .enter_scope(new.purse, new.name, new.loader);
        }
        agent.core.enforcement.routes.make_wanted(&agent.core);
        let mut named = 0;
        while named < MOST_AT_A_TIME
            && let Some(new) = agent.references.new_classes.pop()
        {
            if named == 0 && agent.options().test_names == Some(TestNames::LateClasses) {
                std::thread::sleep(LATE_NAMES);
            }
            name(&agent.core, &agent.jvmti, jni, new);
            named += 1;
        }
        if named < MOST_AT_A_TIME {
            agent.class_names.finished();
        }
        inspect_methods(agent, jni);
        site_stack::name_methods(agent, jni);
        if let Some(policy) = agent.policy.take_incoming() {
            if agent.options().test_panic == Some(TestPanic::Metadata) {
                std::panic::resume_unwind(Box::new("a test asked for it"));
            }
            enact::apply(agent, jni, policy);
            ExactAccounts::adopt(agent, jni);
        }
        agent.policy.log_waiting();
        if let Some(message) = policy_rows.ask(&agent.core, &agent.policy.in_force()) {
            tracing::warn!("{message}");
        }
        agent.core.sites.tend(&agent.core.ledger, agent.uptime_ms());
        if agent.metadata_thread.take_rescan() {
            scan(agent, jni, agent.core.identity.classifies());
        }
        agent.costs.thread_is("metadata");
        if named == MOST_AT_A_TIME {
            continue;
        }
        agent.metadata_thread.wait(LONGEST_SLEEP);
    }
}

/// Names a class and sets its claims and kind.
fn name(core: &Core, jvmti: &JvmTi, jni: &Jni, new: NewClass) {
    if let Some(class) = new.weak.upgrade(jni) {
        let classes = &core.identity.classes;
        if let Ok(signature) = jvmti.signature_of(&class) {
            classes.set_claims(new.id, core.identity.claims_of(&signature));
            classes.set_kind(new.id, Kind::of(&signature));
            core.name_class(new.id, names::java_name(&signature));
        }
        let tag = jvmti.tag(&class).ok().and_then(Tag::decode);
        if matches!(tag, Some(Tag::Class(handle)) if classes.of_tag(handle) != new.id) {
            // Two threads numbered it at the same time; the tag is the other's.
            classes.discard(new.id);
        }
    }
    jni.release(new.weak);
}
