//! The reasons for which evidence is wanted, and the collections that each accepts.

use super::super::collection_planner::Need;

/// A need, and what it may cost the program.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceNeed {
    pub(super) need: Need,
    pub(super) by: By,
}

/// The collections that may answer a need.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Any.
    Any,
    /// A concurrent cycle that nobody waits for.
    UnattendedCycle,
    /// A concurrent cycle.
    ConcurrentCycle,
}

impl EvidenceNeed {
    /// By any collection.
    pub fn for_verdicts(need: Need) -> EvidenceNeed {
        let by = By::Any;
        EvidenceNeed { need, by }
    }

    /// Only by a concurrent cycle that nobody waits for. If the collector offers none, nothing happens. Patient.
    pub fn gently(need: Need) -> EvidenceNeed {
        let by = By::UnattendedCycle;
        EvidenceNeed { need, by }
    }

    /// Only by a concurrent cycle, for which the enforcer may have to wait. If the collector offers none,
    /// nothing happens. Patient.
    pub fn concurrently(need: Need) -> EvidenceNeed {
        let by = By::ConcurrentCycle;
        EvidenceNeed { need, by }
    }

    /// Whether no verdict waits for the answer: see [`super::super::collection_planner`].
    pub(super) fn is_patient(self) -> bool {
        match self.by {
            By::Any => false,
            By::UnattendedCycle | By::ConcurrentCycle => true,
        }
    }
}

/// Why memory is to be collected, if not for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Charges exceed the heap: deaths must be told.
    Refunds,
    /// The heap is full, and nothing can be allocated that would prove a collection.
    FullHeap,
}

impl Reason {
    /// The label in the metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Reason::Refunds => "refunds",
            Reason::FullHeap => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verdict's may overdraw the budget.
    #[test]
    fn only_what_no_verdict_waits_for_is_patient() {
        assert!(!EvidenceNeed::for_verdicts(Need::Covering).is_patient());
        assert!(EvidenceNeed::gently(Need::Covering).is_patient());
        assert!(EvidenceNeed::concurrently(Need::Covering).is_patient());
    }
}
