//! The count of each class, by the purse that pays: all of it, and since counters were put in, beside what
//! samples say of the same time.
//!
//! Counts are by the name of a class, because code names classes before there are any; samples are by the number that
//! the identity gave it. They meet by name, in a reading. Bounded: beyond [`MAX_ROWS`] the counts of further classes are
//! those of [`UNKNOWN`].

use std::collections::HashMap;
use std::sync::Arc;

use crate::ledger::{ClassTotals, Exact, Ledger, PurseId};

/// Most pairs of a purse and a class that are told apart.
pub const MAX_ROWS: usize = 200_000;
/// The class of what has no name, here as in readings.
pub const UNKNOWN: &str = "?";

/// The exact count of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// All of it.
    pub ever: Exact,
    /// Of it, before the switch.
    before: Exact,
}

impl Counted {
    /// In bytes, since the switch.
    #[must_use]
    pub fn bytes_since(&self) -> u64 {
        positive((self.ever - self.before).bytes)
    }

    /// All of it, as it is published: what was taken back a moment before it is counted anew is none.
    #[must_use]
    pub fn published(&self) -> Exact {
        Exact {
            bytes: positive(self.ever.bytes),
            objects: positive(self.ever.objects),
        }
    }

    /// Adds what was counted of the same class elsewhere.
    pub fn add(&mut self, other: &Counted) {
        self.ever += other.ever;
        self.before += other.before;
    }
}

/// A sum modulo 2^64 of what may be negative for a moment.
fn positive(sum: u64) -> u64 {
    if sum > i64::MAX as u64 { 0 } else { sum }
}

/// By purse and class.
#[derive(Debug, Clone, Default)]
pub struct OfClasses {
    /// The exact counts, by name.
    pub counted: HashMap<PurseId, HashMap<Arc<str>, Counted>>,
    /// The allocations since the switch as samples estimate them, by number; empty while nothing is counted.
    pub sampled: HashMap<PurseId, HashMap<u32, ClassTotals>>,
}

type Sampled = HashMap<(PurseId, u32), ClassTotals>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CountedClasses {
    counted: HashMap<PurseId, HashMap<Arc<str>, Counted>>,
    rows: usize,
    /// The sampled totals at the switch, and at the latest gathering; `None` while nothing is counted.
    sampled: Option<(Sampled, Sampled)>,
}

impl CountedClasses {
    pub(super) fn begin(&mut self, ledger: &Ledger) {
        for counted in self.counted.values_mut().flat_map(HashMap::values_mut) {
            counted.before = counted.ever;
        }
        let now = sampled(ledger);
        self.sampled = Some((now.clone(), now));
    }

    pub(super) fn end(&mut self) {
        self.sampled = None;
    }

    pub(super) fn count(&mut self, purse: PurseId, class: Arc<str>, gained: Exact) {
        let classes = self.counted.entry(purse).or_default();
        let is_new = !classes.contains_key(&class);
        let class = if is_new && self.rows >= MAX_ROWS {
            UNKNOWN.into()
        } else {
            self.rows += usize::from(is_new);
            class
        };
        classes.entry(class).or_default().ever += gained;
    }

    pub(super) fn gathered(&mut self, ledger: &Ledger) {
        if let Some((_, latest)) = &mut self.sampled {
            *latest = sampled(ledger);
        }
    }

    pub(super) fn closed(&mut self, purse: PurseId) {
        let rows = self.counted.remove(&purse).map_or(0, |gone| gone.len());
        self.rows = self.rows.saturating_sub(rows);
        if let Some((base, latest)) = &mut self.sampled {
            base.retain(|(payer, _), _| *payer != purse);
            latest.retain(|(payer, _), _| *payer != purse);
        }
    }

    pub(super) fn read(&self) -> OfClasses {
        let mut of_classes = OfClasses {
            counted: self.counted.clone(),
            sampled: HashMap::new(),
        };
        let Some((base, latest)) = &self.sampled else {
            return of_classes;
        };
        for (&(purse, class), now) in latest {
            let base = base.get(&(purse, class)).copied().unwrap_or_default();
            // The number of a class that is gone may have a new owner, which begins at zero.
            let base = match base.bytes > now.bytes {
                true => ClassTotals::default(),
                false => base,
            };
            let since = ClassTotals {
                bytes: now.bytes - base.bytes,
                objects: now.objects.saturating_sub(base.objects),
            };
            let of_purse = of_classes.sampled.entry(purse).or_default();
            of_purse.insert(class, since);
        }
        of_classes
    }
}

fn sampled(ledger: &Ledger) -> Sampled {
    let mut sampled = Sampled::new();
    for purse in ledger.open_purses() {
        ledger.allocated_by_class(purse, |class, totals| {
            sampled.insert((purse, class), totals);
        });
    }
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(bytes: u64, objects: u64) -> Exact {
        Exact { bytes, objects }
    }

    #[test]
    fn what_is_taken_back_first_is_none_until_it_is_counted() {
        let mut classes = CountedClasses::default();
        let purse = PurseId::new(3);
        let name: Arc<str> = "byte[]".into();
        classes.count(purse, Arc::clone(&name), exact(0, 0) - exact(24, 1));
        assert_eq!(
            classes.read().counted[&purse][&name].published(),
            exact(0, 0)
        );
        classes.count(purse, Arc::clone(&name), exact(40, 2));
        let counted = classes.read().counted[&purse][&name];
        assert_eq!(
            (counted.published(), counted.bytes_since()),
            (exact(16, 1), 16)
        );
    }

    #[test]
    fn the_time_before_the_switch_is_in_all_but_not_in_since() {
        let ledger = Ledger::new(crate::ledger::Capacity {
            records: 10,
            purses: 10,
        });
        let mut classes = CountedClasses::default();
        let purse = PurseId::new(3);
        let name: Arc<str> = "com.acme.Cart".into();
        classes.count(purse, Arc::clone(&name), exact(100, 4));
        classes.begin(&ledger);
        classes.count(purse, Arc::clone(&name), exact(25, 1));
        let counted = classes.read().counted[&purse][&name];
        assert_eq!(
            (counted.published(), counted.bytes_since()),
            (exact(125, 5), 25)
        );
        classes.closed(purse);
        assert!(classes.read().counted.is_empty());
        assert_eq!(classes.rows, 0);
    }

    #[test]
    fn beyond_the_bound_classes_are_not_told_apart() {
        let mut classes = CountedClasses {
            rows: MAX_ROWS - 1,
            ..CountedClasses::default()
        };
        let purse = PurseId::new(3);
        for class in ["a.A", "b.B", "c.C", "a.A"] {
            classes.count(purse, class.into(), exact(16, 1));
        }
        let counted = &classes.read().counted[&purse];
        assert_eq!(counted["a.A"].ever, exact(32, 2));
        assert_eq!(counted[UNKNOWN].ever, exact(32, 2));
        assert_eq!(counted.len(), 2);
    }
}
