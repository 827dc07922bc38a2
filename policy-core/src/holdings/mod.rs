//! Holdings: what each account holds by class, how old it is and how large its objects are.
//!
//! One pass over the records sums them by payer and class, and within that by *cohort*: the births between
//! two marks of the clock. Leak tests, ages, tables, snapshots and differences all read such a pass.
//!
//! * [`times`]: when an epoch was, as a bounded table of marks, and how many covering collections the
//!   births before each mark have been through.
//! * [`tally`]: the pass and its rows.
//! * [`histogram`]: ages and sizes of a row as the bins that are published.
//!
//! # Who does it
//! The enforcer notes the marks ([`Holdings::note`]), and wakes the holdings thread after each covering
//! collection. That thread makes the pass ([`Pace::take_if_due`]) and rests for
//! `RESTS` times as long as it took, so that passes use at most a small share of one processor. A reading
//! of the accounts makes a pass of its own in its scan. No allocating thread comes here.

pub mod histogram;
mod passing;
pub mod tally;
pub mod times;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use crate::identity::directory::counting::Names;
use crate::ledger::Epoch;
use crate::snapshot::UNACCOUNTED;
use crate::wakeup::Wakeup;

pub use histogram::Bin;
pub use tally::{Cohort, Row, RowKey, Sums, Tally};
pub use times::{EpochTimes, Mark};

/// After a pass the holdings thread rests for so many times its duration.
const RESTS: u32 = 100;
/// The shortest time between the beginnings of two passes.
const SHORTEST_REST: Duration = Duration::from_secs(1);

/// The state of holdings: the marks, and the latest pass. Any agent thread.
#[derive(Debug, Default)]
pub struct Holdings {
    times: Mutex<EpochTimes>,
    /// Wakes the thread that makes the passes.
    pub wakeup: Wakeup,
    latest: ArcSwapOption<Pass>,
    is_off: AtomicBool,
}

/// One pass over the records after a covering collection.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Everything born up to here has been through that collection.
    pub covered: Epoch,
    /// When it was made, in milliseconds since the agent was made.
    pub at_ms: u64,
    /// How many covering collections there were so far.
    pub covers: u32,
    /// Whether all that is charged counts as live.
    pub is_charged: bool,
    /// The rows, with the marks that bound their cohorts.
    pub tally: Tally,
    /// The account of each purse, when the pass was made.
    pub accounts: Arc<Names>,
    /// The names of the classes of the rows; those that have none are left out.
    pub classes: HashMap<u32, Arc<str>>,
}

impl Pass {
    /// How many marks there are up to the last whose births the latest covering collection has decided on;
    /// `None`: all count as decided ([`Pass::take_charged`]).
    #[must_use]
    pub fn decided_marks(&self) -> Option<usize> {
        if self.is_charged {
            return None;
        }
        let marks = self.tally.times.marks();
        Some(marks.partition_point(|mark| mark.epoch <= self.covered))
    }

    /// The name of the account that pays for a row.
    #[must_use]
    pub fn account_name(&self, row: &Row) -> Arc<str> {
        (self.accounts.get(&row.key.payer)).map_or_else(|| UNACCOUNTED.into(), Arc::clone)
    }

    /// The account that pays for a row.
    #[must_use]
    pub fn account(&self, row: &Row) -> &str {
        self.accounts
            .get(&row.key.payer)
            .map_or(UNACCOUNTED, |name| name)
    }

    /// The class of a row; `None` if it has no name.
    #[must_use]
    pub fn class(&self, row: &Row) -> Option<&str> {
        self.classes.get(&row.key.class).map(|name| &**name)
    }
}

impl Holdings {
    /// Nobody watches holdings and leaks in this run: to measure what that costs. Before the first thread of
    /// the agent starts.
    pub fn turn_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }

    /// Whether they are [turned off](Holdings::turn_off). The enforcer.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    fn times(&self) -> MutexGuard<'_, EpochTimes> {
        self.times.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Notes what time it is in the current epoch, and how far collections of old memory have come. Wakes
    /// the holdings thread if there was one, and returns whether there was. The enforcer, in each turn; a lock that is held for moments.
    pub fn note(&self, current: Epoch, covered: Option<Epoch>, now_ms: u64) -> bool {
        let has_moved = self.times().note(current, covered, now_ms);
        if has_moved {
            self.wakeup.wake();
        }
        has_moved
    }

    /// The marks so far. Copies some kilobytes.
    #[must_use]
    pub fn marks(&self) -> EpochTimes {
        self.times().clone()
    }

    /// How many covering collections the enforcer has noted.
    #[must_use]
    pub fn covers(&self) -> u32 {
        self.times().covers()
    }

    /// The latest pass; `None` before the first covering collection.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Pass>> {
        self.latest.load_full()
    }

    /// Native bytes held, at most: the marks and the latest pass.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        let latest = self.latest.load();
        let pass = latest.as_ref().map_or(0, |pass| pass.tally.memory_bytes());
        size_of::<Holdings>() as u64 + times::MEMORY_BYTES + pass
    }
}

/// Paces the passes of one thread.
#[derive(Debug, Default)]
pub struct Pace {
    not_before: Option<Instant>,
    covers: u32,
}

impl Pace {
    /// Whether the rest after the latest pass is over.
    #[must_use]
    pub fn is_rested(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|then| now >= then)
    }

    /// Rests after a pass that began and ended then.
    pub fn rest(&mut self, begun: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(begun);
        self.not_before = Some(ended + (took * RESTS).max(SHORTEST_REST));
    }
}

#[cfg(test)]
mod tests;
