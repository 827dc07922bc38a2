//! Readings of the accounts with all that is known beside them, for the listener, snapshots and programs.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use policy_core::Core;
use policy_core::cohorts::{Cohorts, Mark};

use crate::ground::Ground;
use crate::reading::{self, Taken};

use super::desk::Desk;

/// The longest pause between two collections that have not used up the evidence budget, in milliseconds.
const PAUSE_MS: u64 = 1_000;

/// Takes readings of all that is published. On a thread of the agent.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    ground: &'static Ground,
    desk: &'static Desk,
}

impl Reader {
    /// Readings that say what the documents of `desk` take.
    pub(crate) fn new(ground: &'static Ground, desk: &'static Desk) -> Reader {
        Reader { ground, desk }
    }

    /// The core that is read.
    pub(crate) fn core(&self) -> &'static Core {
        &self.ground.core
    }

    /// Takes a reading of all that is published.
    pub(crate) fn read(&self) -> Taken {
        let ground = self.ground;
        self.completed(reading::read(&ground.core, || {
            (ground.policy.unchanging(), ground.policy.published())
        }))
    }

    /// As [`Reader::read`], with what classes hold by cohort.
    pub(crate) fn read_with_cohorts(&self, cuts: Vec<Mark>) -> (Taken, Cohorts) {
        let ground = self.ground;
        let (taken, cohorts) = reading::read_with_cohorts(&ground.core, cuts, || {
            (ground.policy.unchanging(), ground.policy.published())
        });
        (self.completed(taken), cohorts)
    }

    /// Adds what the core does not know.
    fn completed(&self, mut taken: Taken) -> Taken {
        let ground = self.ground;
        let snapshot = &mut taken.snapshot;
        let panics = ground.panics();
        snapshot.sampling.samples = snapshot.sampling.samples.saturating_sub(panics);
        snapshot.sampling.dropped.push(("panic", panics));
        snapshot.sampling.callback_p50_ns = ground.costs.sample_ns(0.5);
        snapshot.sampling.callback_p99_ns = ground.costs.sample_ns(0.99);
        snapshot.heap.live_age_seconds = (ground.core.ledger.epochs().confirmed_ms())
            .map(|then| ground.uptime_ms().saturating_sub(then) as f64 / 1e3);
        let until_allowed_ms =
            (ground.core.enforcement.evidence_allowed_ms()).saturating_sub(ground.uptime_ms());
        snapshot.duress = ground.core.enforcement.duress();
        snapshot.evidence_budget_used_up_seconds =
            (until_allowed_ms > PAUSE_MS).then_some(until_allowed_ms as f64 / 1e3);
        let judged_ms = snapshot.leaks.at_ms;
        snapshot.leaks_judged_at = (judged_ms > 0)
            .then(|| Duration::from_millis(ground.uptime_ms().saturating_sub(judged_ms)))
            .and_then(|ago| SystemTime::now().checked_sub(ago));
        snapshot.process = ground.process().clone();
        snapshot.capabilities = ground.published_capabilities();
        snapshot.cpu_seconds = ground.costs.seconds();
        snapshot.build = ground.build();
        let mut memory = snapshot.memory_bytes.iter_mut();
        if let Some((_, bytes)) = memory.find(|(part, _)| *part == "identity") {
            *bytes += ground.references.committed_bytes();
        }
        (snapshot.memory_bytes).push(("snapshots", self.desk.committed_bytes()));
        (snapshot.memory_bytes).push(("history", ground.remembered_bytes.load(Ordering::Relaxed)));
        if let Some(contexts) = snapshot.exact.as_ref().and_then(|exact| exact.contexts) {
            (snapshot.memory_bytes).push(("contexts", contexts.memory_bytes));
        }
        taken
    }
}
