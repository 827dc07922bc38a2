//! The collection in flight: how far it is, and what it costs.

use std::time::{Duration, Instant};

use crate::ledger::Epoch;
use crate::ports::Means;

use super::super::natural_work::NaturalWork;

/// The collection in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) collection: Collection,
    /// The epoch in which it was asked for; the proof must reach it.
    pub(super) epoch: Epoch,
    pub(super) asked: Instant,
    /// [`super::CollectorStatus::collector_time`] when it was asked for.
    pub(super) collector_time: Option<Duration>,
    pub(super) stage: Stage,
    /// When the death that proves it was first seen; its refunds arrive from then on.
    pub(super) proved: Option<Instant>,
}

/// Which memory to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    Young,
    Covering(Means),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Asked for. At `looked` it had not begun yet; or, if the kernel does not show cycles, no
    /// pause had ended yet.
    Asked { looked: Instant },
    /// G1's cycle is running; `again` is when the planner last asked for it once more.
    Running {
        began: Instant,
        again: Option<Instant>,
    },
    /// Paid for; its refunds are awaited.
    Over { at: Instant },
}

impl InFlight {
    /// Returns the time that the budget is charged for it, if it took so long by the clock.
    pub(super) fn cost(
        &self,
        natural: &NaturalWork,
        took: Duration,
        collector_time: Option<Duration>,
    ) -> Duration {
        match (self.collection, self.collector_time, collector_time) {
            (Collection::Covering(Means::Full), ..) => took,
            (_, Some(before), Some(after)) => natural.beyond(took, after.saturating_sub(before)),
            _ => took,
        }
    }
}
