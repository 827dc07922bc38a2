//! Exact accounts: every class is given code that counts its allocations (`policy-exact` says which), and a
//! thread of the agent gathers the counts.
//!
//! Off until a policy wants them; then [`thread`] begins, defines the class that counts
//! (`policy-agent/java.base/java/lang`), and has the JVM load the code of all loaded classes anew. From then on
//! [`Hook`] gives counters to each class that is loaded. Switched off again, the code goes, the counts stay.

mod counter;
mod hook;
mod natives;
mod numbers;
pub(crate) mod thread;

use std::sync::atomic::{AtomicBool, Ordering};

use policy_jvm::Jni;

use crate::agent::Agent;
use crate::wakeup::Wakeup;

pub(crate) use counter::Counter;
use hook::Hook;
use numbers::Numbers;

/// The state of exact accounts. See the module.
pub(crate) struct ExactAccounts {
    /// What the policy in force wants.
    wanted: AtomicBool,
    /// The thread was started.
    begun: AtomicBool,
    /// Classes are given counters whenever their code is loaded.
    inserting: AtomicBool,
    numbers: Numbers,
    hook: Hook,
    /// Ends the thread's rest.
    pub(crate) wakeup: Wakeup,
}

impl ExactAccounts {
    pub(crate) fn new() -> ExactAccounts {
        ExactAccounts {
            wanted: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            inserting: AtomicBool::new(false),
            numbers: Numbers::default(),
            hook: Hook,
            wakeup: Wakeup::default(),
        }
    }

    /// A policy was put in force. The first time that one wants exact accounts, gives counters to what is loaded,
    /// so that at the start no code of the program runs without them, and starts the thread. The metadata
    /// thread, or at the start.
    pub(crate) fn adopt(agent: &'static Agent, jni: &Jni) {
        let exact = &agent.exact;
        let wanted = agent.policy.in_force().exact.accounts;
        exact.wanted.store(wanted, Ordering::Release);
        if wanted && !exact.begun.swap(true, Ordering::AcqRel) {
            match thread::begin(agent, jni) {
                Ok(counter) => agent.start_exact(counter),
                Err(why) => tracing::error!("exact accounts are not kept: {why}"),
            }
        }
        exact.wakeup.wake();
    }

    fn is_inserting(&self) -> bool {
        self.inserting.load(Ordering::Acquire)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}
