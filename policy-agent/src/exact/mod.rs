//! Exact accounts: every class is given code that counts its allocations (`policy-exact` says which), and a
//! thread of the agent gathers the counts.
//!
//! Off until a policy wants them; then [`thread`] begins, defines the class that counts
//! (`policy-agent/java.base/java/lang`), and has the JVM load the code of all loaded classes anew. From then on
//! [`Hook`] gives counters to each class that is loaded. Switched off again, the code goes, the counts stay.
//!
//! Contexts go the same way, with or without accounts: their code stands in the classes of the named packages, and
//! in those of the JDK that say which thread runs (the module `contexts`).

mod contexts;
mod counter;
mod hook;
mod names;
mod natives;
mod numbers;
pub(crate) mod thread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use policy_config::Exact;
use policy_jvm::Jni;

use crate::agent::Agent;
use crate::report::profile::Stacks;
use crate::wakeup::Wakeup;

use contexts::Contexts;
pub(crate) use counter::Counter;
use hook::Hook;
use numbers::Numbers;

/// Returns allocations of calling contexts as stacks by account and class; empty if none was counted. Agent threads.
pub(crate) fn stacks_of_contexts(agent: &Agent) -> Stacks {
    agent.exact.contexts.stacks(account_of_code(agent))
}

/// The answer of `/api/v1/contexts`. Agent threads.
pub(crate) fn contexts_document(agent: &Agent) -> Vec<u8> {
    let packages = &agent.policy.in_force().exact.contexts;
    let packages = packages.iter().map(ToString::to_string).collect();
    let account = account_of_code(agent);
    agent.exact.contexts.document(packages, account)
}

/// The name of the account that code of a number belongs to.
fn account_of_code(agent: &Agent) -> impl Fn(i32) -> Option<Arc<str>> {
    let names = agent.core.directory().names();
    let numbers = &agent.exact.numbers;
    move |code| {
        let purse = numbers.purse(&agent.core.identity, code)?;
        names.get(&purse).cloned()
    }
}

/// The state of exact accounts. See the module.
pub(crate) struct ExactAccounts {
    /// The setting that the policy in force wants.
    wanted: Mutex<Arc<Exact>>,
    /// The setting that loaded classes have code for.
    applied: Mutex<Arc<Exact>>,
    /// The thread was started.
    begun: AtomicBool,
    /// Classes are given counters whenever their code is loaded.
    inserting: AtomicBool,
    numbers: Numbers,
    contexts: Contexts,
    hook: Hook,
    /// Ends the thread's rest.
    pub(crate) wakeup: Wakeup,
}

impl ExactAccounts {
    pub(crate) fn new() -> ExactAccounts {
        ExactAccounts {
            wanted: Mutex::default(),
            applied: Mutex::default(),
            begun: AtomicBool::new(false),
            inserting: AtomicBool::new(false),
            numbers: Numbers::default(),
            contexts: Contexts::new(),
            hook: Hook,
            wakeup: Wakeup::default(),
        }
    }

    /// A policy was put in force. The first time that one wants exact accounts, gives counters to what is loaded,
    /// so that at the start no code of the program runs without them, and starts the thread. The metadata
    /// thread, or at the start.
    pub(crate) fn adopt(agent: &'static Agent, jni: &Jni) {
        let exact = &agent.exact;
        let wanted = Arc::new(agent.policy.in_force().exact.clone());
        let begins = wanted.is_wanted();
        *exact.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        if begins && !exact.begun.swap(true, Ordering::AcqRel) {
            match thread::begin(agent, jni) {
                Ok(counter) => agent.start_exact(counter),
                Err(why) => tracing::error!("exact accounts are not kept: {why}"),
            }
        }
        exact.wakeup.wake();
    }

    /// Whether loaded classes are given code at present. Any thread that loads classes: one load.
    fn is_inserting(&self) -> bool {
        self.inserting.load(Ordering::Acquire)
    }

    /// Returns the setting of the policy. Any thread that loads classes: the lock is held for a copy of a pointer.
    fn wanted(&self) -> Arc<Exact> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.clone()
    }

    /// Returns the setting that loaded classes have code for. The thread that switches, at the start or later.
    fn applied(&self) -> Arc<Exact> {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.clone()
    }

    /// Loaded classes have code for this.
    fn was_applied(&self, exact: Arc<Exact>) {
        *self.applied.lock().unwrap_or_else(PoisonError::into_inner) = exact;
    }
}
