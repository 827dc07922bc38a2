//! The metadata thread: names classes, inspects methods and puts policies in force.
//!
//! It enters new scopes, makes routes, names the classes that samples have met, inspects the methods that due threads
//! have met, and names those on the stacks of sites, which it also clears. When a policy with package accounts comes, it classifies all loaded classes, which only an
//! attached thread can do. It calls no Java code.

use std::sync::Arc;
use std::time::Duration;

use policy_config::Policy;
use policy_core::Core;
use policy_jvm::{Jni, JvmTi};

use crate::allocation::method_inspection::inspect_methods;
use crate::allocation::scan::scan;
use crate::allocation::site_stack;
use crate::ground::Ground;
use crate::identity::classes::Kind;
use crate::identity::names;
use crate::ledger::Tag;
use crate::options::{TestNames, TestPanic};
use crate::references::NewClass;
use crate::sites::of_policy::PolicyRows;

/// The longest sleep; a new class or policy wakes the metadata thread earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(2);

/// Classes named before the thread checks for a new policy: a tenant that makes classes without end must
/// not delay an operator's change.
const MAX_AT_A_TIME: usize = 1000;

/// How late a test has classes named.
const LATE_NAMES: Duration = Duration::from_secs(2);

/// Runs until the agent stops. `adopt` puts a policy in force.
pub(crate) fn run(ground: &'static Ground, jni: &Jni, adopt: &dyn Fn(Arc<Policy>)) {
    ground.metadata_thread.listen();
    let mut policy_rows = PolicyRows::default();
    while !ground.stopping() {
        while let Some(new) = ground.core.identity.new_scopes.pop() {
            ground
                .core
                .directory()
                .enter_scope(new.purse, new.name, new.loader);
        }
        ground.core.enforcement.routes.make_wanted(&ground.core);
        let mut named = 0;
        while named < MAX_AT_A_TIME
            && let Some(new) = ground.references.new_classes.pop()
        {
            if named == 0 && ground.options().test_names == Some(TestNames::LateClasses) {
                std::thread::sleep(LATE_NAMES);
            }
            name(&ground.core, &ground.jvmti, jni, new);
            named += 1;
        }
        if named < MAX_AT_A_TIME {
            ground.class_names.finished();
        }
        inspect_methods(ground, jni);
        site_stack::name_methods(ground, jni);
        if let Some(policy) = ground.policy.take_incoming() {
            if ground.options().test_panic == Some(TestPanic::Metadata) {
                std::panic::resume_unwind(Box::new("a test asked for it"));
            }
            adopt(policy);
        }
        ground.policy.log_waiting();
        if let Some(message) = policy_rows.ask(&ground.core, &ground.policy.in_force()) {
            tracing::warn!("{message}");
        }
        ground
            .core
            .sites
            .tend(&ground.core.ledger, ground.uptime_ms());
        if ground.metadata_thread.take_rescan() {
            scan(ground, jni, ground.core.identity.classifies());
        }
        ground.costs.thread_is("metadata");
        if named == MAX_AT_A_TIME {
            continue;
        }
        ground.metadata_thread.wait(LONGEST_SLEEP);
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
