//! Counts and cost of the collections that the agent asked for.

use std::sync::Mutex;
use std::time::Duration;

use crate::events;
use crate::snapshot as report;

/// Counts the collections that the agent asked for, by kind, and what the budget was charged for them. Any
/// agent thread; takes a lock.
#[derive(Debug)]
pub struct EvidenceLog(Mutex<Vec<(&'static str, u64, Duration)>>);

impl Default for EvidenceLog {
    /// Every kind exists from the start, so that a scrape sees each counter's first increment.
    fn default() -> EvidenceLog {
        let kinds = ["young", "concurrent", "full", "refunds"];
        EvidenceLog(Mutex::new(
            kinds.map(|kind| (kind, 0, Duration::ZERO)).into(),
        ))
    }
}

impl EvidenceLog {
    /// Adds a collection of this kind, which took so long by the clock and cost the budget so much.
    pub fn add(&self, kind: &'static str, took: Duration, cost: Duration) {
        events::evidence_collection(kind, took);
        let mut log = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match log.iter_mut().find(|(k, ..)| *k == kind) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum += cost;
            }
            None => log.push((kind, 1, cost)),
        }
    }

    /// The counts so far, for a report.
    pub fn read(&self) -> Vec<report::Evidence> {
        let log = self.0.lock().unwrap_or_else(|e| e.into_inner());
        log.iter()
            .map(|&(kind, collections, cost)| report::Evidence {
                kind,
                collections,
                seconds: cost.as_secs_f64(),
            })
            .collect()
    }
}
