//! The question that the planner is asked in each step, and its answer.

use std::time::{Duration, Instant};

use crate::ledger::Epoch;
use crate::ports::Means;

/// The evidence that the enforcer lacks, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing.
    None,
    /// Which objects survive a collection of young memory: moves [`crate::ledger::Epochs::boundary`]. If the collector
    /// offers no young collections, one of old memory answers it too.
    Young,
    /// Which objects survive a collection of old memory: moves [`crate::ledger::Epochs::covered`]. A young collection
    /// comes first if the collector offers one, because it may be enough.
    Covering,
}

/// The action that the enforcer is to take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing until an event wakes the enforcer, or for so long.
    Wait(Duration),
    /// Allocate for a moment, then [`super::CollectionPlanner::gave_up`] if there is no room.
    ProvokeYoung,
    /// Plant an old canary and ask for a collection: then [`super::CollectionPlanner::started`], and
    /// [`super::CollectionPlanner::returned`] if this means waits; [`super::CollectionPlanner::refused`] if it fails.
    Start(Means),
    /// Ask G1 once more for the collection in flight; then [`super::CollectionPlanner::asked_again`].
    AskAgain,
    /// Restore G1's flag; then [`super::CollectionPlanner::was_put_back`].
    PutBack,
}

/// The facts about collections at the time of a step.
#[derive(Debug, Clone, Copy)]
pub struct CollectorStatus {
    /// The time of the step.
    pub now: Instant,
    /// The current epoch.
    pub epoch: Epoch,
    /// The youngest epoch of which any collection has proved the survivors.
    pub boundary: Option<Epoch>,
    /// The youngest epoch of which a collection of old memory has proved the survivors.
    pub covered: Option<Epoch>,
    /// The value that `covered` will have once all refunds have arrived; never less than `covered`.
    pub proof: Option<Epoch>,
    /// Whether a concurrent cycle has run since the last request; `None` if the kernel does not
    /// show it.
    pub cycle_ran: Option<bool>,
    /// How long all processors together would have worked on collections so far; `None` if the kernel
    /// does not show it.
    pub collector_time: Option<Duration>,
}

/// A collection that the budget has paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// `young`, `concurrent` or `full`, the label in the metrics.
    pub kind: &'static str,
    /// How long it took, by the clock.
    pub took: Duration,
    /// The time that was taken from the budget: see the module.
    pub cost: Duration,
}
