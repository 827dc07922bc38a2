//! The holdings thread: sums up, after covering collections, what each account holds by class and age. It
//! calls no Java code and is not attached to the JVM.

use std::time::{Duration, Instant};

use policy_core::holdings::Pace;

use crate::agent::Agent;

/// The longest sleep; a covering collection wakes the thread earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// Runs until the agent stops. On a thread of the agent's own.
pub(crate) fn run(agent: &'static Agent) {
    agent.core.holdings.wakeup.listen();
    let mut pace = Pace::default();
    while !agent.stopping() {
        let taken = pace.take_if_due(&agent.core, Instant::now, agent.uptime_ms());
        let wait = taken.err().unwrap_or_default();
        agent.costs.thread_is("holdings");
        agent.core.holdings.wakeup.wait(wait.min(LONGEST_SLEEP));
    }
}
