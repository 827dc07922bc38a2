//! The holdings thread: sums up, after covering collections, what each account holds by class and age, and
//! judges what leaks. It calls no Java code and is not attached to the JVM.

use std::time::{Duration, Instant};

use policy_core::holdings::Pace;
use policy_core::leaks::watch::Watch;

use crate::ground::Ground;

/// The longest sleep; a covering collection wakes the thread earlier.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// Runs until the agent stops, and calls `looked` after each look. On a thread of the agent's own.
pub(crate) fn run(ground: &'static Ground, looked: &dyn Fn()) {
    let core = &ground.core;
    core.holdings.wakeup.listen();
    let mut pace = Pace::default();
    let mut watch = Watch::default();
    while !ground.stopping() {
        let begun = Instant::now();
        let wait = match pace.take_if_due(core, Instant::now, ground.uptime_ms()) {
            Ok(pass) => {
                let policy = ground.policy.in_force();
                for line in watch.took(core, &pass, &policy) {
                    tracing::warn!("{line}");
                }
                pace.rest(begun, Instant::now());
                Duration::ZERO
            }
            Err(wait) => {
                if pace.is_rested(begun) && watch.peek(core, ground.uptime_ms()) {
                    pace.rest(begun, Instant::now());
                }
                for line in watch.refresh(core, &ground.policy.in_force(), ground.uptime_ms()) {
                    tracing::warn!("{line}");
                }
                wait
            }
        };
        looked();
        ground.costs.thread_is("holdings");
        core.holdings.wakeup.wait(wait.min(LONGEST_SLEEP));
    }
}
