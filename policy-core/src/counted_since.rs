//! The counted and sampled allocations of each purse since counters were put in: the parts of
//! [`crate::live_by_ratio`].
//!
//! The base is one moment for all purses: what the totals were then, and which records were there. A record
//! carries the epoch of its birth; those of the epoch of the switch that were there are remembered one by one, so
//! that every later record is known to be younger. Read while threads allocate, the base is off by what they
//! allocate in that moment.
//!
//! Counts and samples are read together at each gathering, up to which both are known. Nothing here runs on an
//! allocating thread.
//!
//! The module [`classes`] has the same by class.

pub mod classes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ledger::{Epoch, Exact, Ledger, LiveRecord, ObjectTag, PurseId};

use classes::{CountedClasses, OfClasses};

/// See the module.
#[derive(Debug, Default)]
pub struct CountedSince {
    state: Mutex<Option<State>>,
    classes: Mutex<CountedClasses>,
}

#[derive(Debug)]
struct State {
    base: Arc<Base>,
    purses: HashMap<PurseId, Marks>,
}

/// The moment of the switch.
#[derive(Debug)]
pub struct Base {
    epoch: Epoch,
    /// Records of that epoch that were there.
    before: HashSet<ObjectTag>,
    /// The latest change of the sampling interval.
    interval_change: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    base: Sums,
    latest: Sums,
}

/// Sums of one purse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Counted by inserted code, in bytes.
    pub counted_bytes: u64,
    /// The same by samples.
    pub allocated_bytes: u64,
    /// Its variance, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub allocated_variance: u64,
}

impl Sums {
    fn of(ledger: &Ledger, purse: PurseId) -> Sums {
        let totals = ledger.totals(purse);
        Sums {
            counted_bytes: totals.exact.bytes,
            allocated_bytes: totals.allocated_bytes,
            allocated_variance: totals.allocated_variance,
        }
    }

    fn since(self, base: Sums) -> Sums {
        Sums {
            counted_bytes: self.counted_bytes.saturating_sub(base.counted_bytes),
            allocated_bytes: self.allocated_bytes.saturating_sub(base.allocated_bytes),
            allocated_variance: (self.allocated_variance).saturating_sub(base.allocated_variance),
        }
    }
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.counted_bytes = self.counted_bytes.saturating_add(other.counted_bytes);
        self.allocated_bytes = self.allocated_bytes.saturating_add(other.allocated_bytes);
        self.allocated_variance =
            (self.allocated_variance).saturating_add(other.allocated_variance);
    }
}

impl Base {
    /// Whether the object was allocated since the switch.
    #[must_use]
    pub fn is_since(&self, record: &LiveRecord) -> bool {
        record.birth > self.epoch
            || record.birth == self.epoch && !self.before.contains(&record.tag)
    }

    /// The widest sampling interval since the switch, in bytes. Takes a lock: agent threads.
    #[must_use]
    pub fn interval_bytes(&self, ledger: &Ledger) -> u64 {
        ledger.intervals().widest_since(self.interval_change)
    }
}

impl CountedSince {
    /// Counters are in all classes from now on. The thread that gathers.
    pub fn begin(&self, ledger: &Ledger) {
        let epoch = ledger.epochs().current();
        let interval_change = ledger.intervals().changes();
        let mut before = HashSet::new();
        ledger.scan(|record| {
            if record.birth == epoch {
                before.insert(record.tag);
            }
        });
        let mark = |purse| {
            let sums = Sums::of(ledger, purse);
            let marks = Marks {
                base: sums,
                latest: sums,
            };
            (purse, marks)
        };
        let purses = ledger.open_purses().map(mark).collect();
        let base = Arc::new(Base {
            epoch,
            before,
            interval_change,
        });
        *self.state() = Some(State { base, purses });
        self.classes().begin(ledger);
    }

    /// Counters are taken out.
    pub fn end(&self) {
        *self.state() = None;
        self.classes().end();
    }

    /// So much more was counted of classes, by their names. The thread that gathers.
    pub fn count_classes(&self, gained: impl IntoIterator<Item = (PurseId, Arc<str>, Exact)>) {
        let mut classes = self.classes();
        for (purse, class, gained) in gained {
            classes.count(purse, class, gained);
        }
    }

    /// All that was counted is in the purses. The thread that gathers.
    pub fn gathered(&self, ledger: &Ledger) {
        if let Some(state) = &mut *self.state() {
            for purse in ledger.open_purses() {
                state.purses.entry(purse).or_default().latest = Sums::of(ledger, purse);
            }
        }
        self.classes().gathered(ledger);
    }

    /// A purse was closed: its next owner begins at zero. The enforcer.
    pub fn closed(&self, purse: PurseId) {
        if let Some(state) = &mut *self.state() {
            state.purses.remove(&purse);
        }
        self.classes().closed(purse);
    }

    /// The base, and the sums of each purse since; `None` while nothing is counted.
    #[must_use]
    pub fn read(&self) -> Option<(Arc<Base>, HashMap<PurseId, Sums>)> {
        let state = self.state();
        let state = state.as_ref()?;
        let sums = (state.purses.iter())
            .map(|(&purse, marks)| (purse, marks.latest.since(marks.base)))
            .collect();
        Some((Arc::clone(&state.base), sums))
    }

    /// Returns the count of each class; empty if nothing ever was counted. This may copy a hundred thousand rows.
    #[must_use]
    pub fn read_classes(&self) -> OfClasses {
        self.classes().read()
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn classes(&self) -> MutexGuard<'_, CountedClasses> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Capacity, Exact};

    fn allocate(ledger: &Ledger, purse: PurseId, size_bytes: u64) {
        let tag = ledger.charge_to(purse, size_bytes);
        let exact = Exact {
            bytes: size_bytes,
            objects: 1,
        };
        ledger.count_exact(purse, exact);
        let _ = tag;
    }

    fn ledger() -> (Ledger, PurseId) {
        let ledger = Ledger::new(Capacity {
            records: 100,
            purses: 10,
        });
        ledger.intervals().set(0).expect("every object");
        let purse = ledger.open_purse().expect("there is room");
        (ledger, purse)
    }

    #[test]
    fn only_what_comes_after_the_switch_is_in_the_sums_and_among_the_records() {
        let (ledger, purse) = ledger();
        let counted = CountedSince::default();
        assert!(counted.read().is_none());
        allocate(&ledger, purse, 1000);
        counted.begin(&ledger);
        allocate(&ledger, purse, 16);
        assert_eq!(counted.read().unwrap().1[&purse], Sums::default());
        counted.gathered(&ledger);
        let (base, sums) = counted.read().unwrap();
        let expected = Sums {
            counted_bytes: 16,
            allocated_bytes: 16,
            allocated_variance: 0,
        };
        assert_eq!(sums[&purse], expected);
        let mut since = Vec::new();
        ledger.scan(|record| since.push((record.size_bytes, base.is_since(record))));
        since.sort_unstable();
        assert_eq!(since, [(16, true), (1000, false)]);
        counted.end();
        assert!(counted.read().is_none());
    }

    #[test]
    fn a_purse_that_is_opened_later_begins_at_zero() {
        let (ledger, purse) = ledger();
        let counted = CountedSince::default();
        counted.begin(&ledger);
        allocate(&ledger, purse, 64);
        let later = ledger.open_purse().expect("there is room");
        allocate(&ledger, later, 24);
        counted.gathered(&ledger);
        let sums = counted.read().unwrap().1;
        assert_eq!(sums[&later].counted_bytes, 24);
        counted.closed(purse);
        assert!(!counted.read().unwrap().1.contains_key(&purse));
    }
}
