//! Counts of refusals by the place of the throw: what allocating threads share with the enforcer.
//!
//! In mode `enforce` a refusal is an error that was thrown; in `observe` one that would have been. Each
//! account has a table, which comes to the thread with the [`super::refusal_details`] of the account: so a
//! count goes to the account that the error names. All of it is lock-free, and no name is looked up here:
//! the first thread at a place hands its methods over, and the enforcer names them.
//!
//! # Rules
//! 1. A place is a [`PlaceKey`] of three numbers. A slot gets them one after the other, each once, by a
//!    compare-and-exchange from 0, and keeps them. All threads try the slots in the same order, and go on to
//!    the next only where a number differs for good. So a place has one slot, and no thread waits (model:
//!    `a_place_has_one_slot`).
//! 2. A refusal is counted once: in the slot of its place, or, if all slots are taken, as *elsewhere*. Counts
//!    are taken out by a swap (model: `no_refusal_is_lost`).
//! 3. Of the threads at a slot, one hands the methods over. If it cannot, the next one tries again.
//! 4. Requests and background work have slots of their own: a busy service is refused at so many places of its
//!    requests that its one cleaner would find no room.
//! 5. A slot is named once, by the enforcer. Nothing of it is given back; an account gets a new table.

use std::sync::{Arc, OnceLock};

use crate::ledger::Chunks;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

use super::place_name::PlaceName;

/// Places of one account at the most, of requests and of background work each.
#[cfg(not(loom))]
pub const MAX_OF_KIND: usize = 16;
/// Few, because loom tracks each of them.
#[cfg(loom)]
pub const MAX_OF_KIND: usize = 2;
/// All places of one account.
pub const MAX_PLACES: usize = 2 * MAX_OF_KIND;

/// A place, by numbers that the VM gives to methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlaceKey {
    /// The account's method that gets the error.
    pub frame: u64,
    /// The account's method with which its own code begins, above the unit of work.
    pub entry: u64,
    /// The method with which the unit of work begins; `None` if the program has delimited it by a scope.
    pub unit: Option<u64>,
    /// Whether the thread serves a request.
    pub is_request: bool,
}

impl PlaceKey {
    /// None of the numbers is 0.
    fn numbers(self) -> [u64; 3] {
        // Neither an address nor a serial number of a method is as large as 2^62.
        let unit = self.unit.map_or(2, |unit| unit << 2 | 3);
        let of_request = u64::from(self.is_request);
        [self.frame, self.entry, unit << 1 | of_request].map(|number| number.wrapping_add(1))
    }
}

/// The slots of requests, or those of background work.
fn slots_of(is_request: bool) -> std::ops::Range<u32> {
    let first = if is_request { 0 } else { MAX_OF_KIND as u32 };
    first..first + MAX_OF_KIND as u32
}

/// One place and its count.
#[derive(Debug, Default)]
struct Slot {
    key: [AtomicU64; 3],
    count: AtomicU64,
    /// 1 once its methods were handed over.
    is_handed_over: AtomicU32,
    /// `None` in it: its methods are gone.
    name: OnceLock<Option<PlaceName>>,
}

impl Slot {
    /// Whether the slot is, or now becomes, that of these numbers.
    fn takes(&self, numbers: [u64; 3]) -> bool {
        self.key.iter().zip(numbers).all(|(place, number)| {
            let before = place.load(Ordering::Relaxed);
            before == number
                || before == 0
                    && match place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed)
                    {
                        Ok(_) => true,
                        Err(now) => now == number,
                    }
        })
    }

    fn is_free(&self) -> bool {
        self.key[0].load(Ordering::Relaxed) == 0
    }
}

/// The counts of one account. See the module.
#[derive(Debug)]
pub struct PlaceCounts {
    /// Committed by the first refusal: most accounts never have one.
    slots: Chunks<Slot, MAX_PLACES>,
    elsewhere: AtomicU64,
}

/// The refusals taken out of the counts of an account, by place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Refusals at places that have names.
    pub named: Vec<(PlaceName, u64)>,
    /// Refusals at places that got no slot, or whose methods are gone.
    pub elsewhere: u64,
}

impl PlaceCounts {
    /// Nothing was counted yet.
    pub fn new() -> Arc<PlaceCounts> {
        Arc::new(PlaceCounts {
            slots: Chunks::new(MAX_PLACES as u32),
            elsewhere: AtomicU64::new(0),
        })
    }

    /// The slot of a place; `None` if there is no room. On the allocating thread that is refused, before the
    /// throw. It allocates at the first refusal of the account.
    pub fn slot(&self, key: PlaceKey) -> Option<u32> {
        let numbers = key.numbers();
        let mut slots = slots_of(key.is_request);
        slots.find(|&slot| {
            let slot = self.slots.get_or_grow(slot);
            slot.is_some_and(|slot| slot.takes(numbers))
        })
    }

    /// Whether the calling thread shall hand over the methods of a slot (rule 3). One load, as a rule.
    pub fn takes_over_naming(&self, slot: u32) -> bool {
        self.slots.get(slot).is_some_and(|slot| {
            slot.is_handed_over.load(Ordering::Relaxed) == 0
                && slot.is_handed_over.swap(1, Ordering::Relaxed) == 0
        })
    }

    /// The methods could not be handed over: the next thread tries again.
    pub fn gives_up_naming(&self, slot: u32) {
        if let Some(slot) = self.slots.get(slot) {
            slot.is_handed_over.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a refusal at a slot, or elsewhere.
    pub fn count(&self, slot: Option<u32>) {
        let slot = slot.and_then(|slot| self.slots.get(slot));
        let count = slot.map_or(&self.elsewhere, |slot| &slot.count);
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Names the place of a slot; `None`: its methods are gone. On the enforcer's thread.
    pub fn name(&self, slot: u32, name: Option<PlaceName>) {
        if let Some(slot) = self.slots.get(slot) {
            // It is named once; a second name would be the same.
            let _ = slot.name.set(name);
        }
    }

    /// Whether every slot of requests is taken, or of background work.
    pub fn is_full(&self, is_request: bool) -> bool {
        let last = self.slots.get(slots_of(is_request).end - 1);
        last.is_some_and(|slot| !slot.is_free())
    }

    /// Takes out what was counted, but for places that have no name yet.
    pub fn drain(&self) -> Drained {
        let mut drained = Drained {
            named: Vec::new(),
            elsewhere: self.elsewhere.swap(0, Ordering::Relaxed),
        };
        for slot in self.slots() {
            let Some(name) = slot.name.get() else {
                continue;
            };
            let count = slot.count.swap(0, Ordering::Relaxed);
            match name {
                _ if count == 0 => {}
                Some(name) => drained.named.push((name.clone(), count)),
                None => drained.elsewhere += count,
            }
        }
        drained
    }

    /// Returns the number of refusals that were counted and not taken out yet.
    pub fn pending(&self) -> u64 {
        let counts = self.slots().map(|slot| slot.count.load(Ordering::Relaxed));
        counts.sum::<u64>() + self.elsewhere.load(Ordering::Relaxed)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        (0..MAX_PLACES as u32).map_while(|slot| self.slots.get(slot))
    }

    /// Native memory held, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        self.slots.committed_bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(frame: u64, entry: u64, unit: Option<u64>, is_request: bool) -> PlaceKey {
        PlaceKey {
            frame,
            entry,
            unit,
            is_request,
        }
    }

    #[test]
    fn one_thread_hands_a_place_over_and_the_next_if_it_could_not() {
        let counts = PlaceCounts::new();
        assert_eq!(
            counts.committed_bytes(),
            PlaceCounts::new().committed_bytes()
        );
        let slot = counts.slot(key(1, 1, None, false)).unwrap();
        assert!(counts.takes_over_naming(slot) && !counts.takes_over_naming(slot));
        counts.gives_up_naming(slot);
        assert!(counts.takes_over_naming(slot));
        assert!(counts.committed_bytes() > PlaceCounts::new().committed_bytes());
    }

    proptest! {
        /// However many places there are: each has one slot as long as there is room, and the sum of all
        /// counts is the number of refusals.
        #[test]
        fn every_refusal_is_counted_at_its_place(
            refusals in proptest::collection::vec((0u64..9, 0u64..3, 0u64..4, any::<bool>()), 0..400),
            drained_after in 0usize..400,
        ) {
            let counts = PlaceCounts::new();
            let mut expected = std::collections::HashMap::new();
            let mut of_slots = std::collections::HashMap::new();
            let (mut elsewhere, mut first) = ([0, 0], 0);
            for (index, &(frame, entry, unit, is_request)) in refusals.iter().enumerate() {
                let key = key(frame, entry, unit.checked_sub(1), is_request);
                let slot = counts.slot(key);
                counts.count(slot);
                match slot {
                    Some(slot) => {
                        prop_assert_eq!(*of_slots.entry(slot).or_insert(key), key);
                        *expected.entry(key).or_insert(0u64) += 1;
                    }
                    None => elsewhere[usize::from(is_request)] += 1,
                }
                if index == drained_after {
                    first = counts.drain().elsewhere;
                }
            }
            prop_assert_eq!(of_slots.len(), expected.len(), "no place has two slots");
            for is_request in [false, true] {
                let taken = of_slots.values().filter(|key| key.is_request == is_request);
                prop_assert_eq!(counts.is_full(is_request), taken.count() == MAX_OF_KIND);
                prop_assert!(elsewhere[usize::from(is_request)] == 0 || counts.is_full(is_request));
            }
            for (&slot, key) in &of_slots {
                counts.name(slot, Some(PlaceName::numbered(*key)));
            }
            prop_assert_eq!(counts.pending() + first, refusals.len() as u64);
            let drained = counts.drain();
            prop_assert_eq!(drained.elsewhere + first, elsewhere.iter().sum::<u64>());
            prop_assert_eq!(drained.named.len(), expected.len());
            for (key, count) in expected {
                prop_assert!(drained.named.contains(&(PlaceName::numbered(key), count)));
            }
            prop_assert_eq!(counts.drain(), Drained::default());
        }
    }

    #[test]
    fn places_whose_methods_are_gone_count_as_elsewhere_and_nameless_ones_wait() {
        let counts = PlaceCounts::new();
        for frame in 1..4 {
            counts.count(counts.slot(key(frame, frame, Some(7), true)));
        }
        counts.name(counts.slot(key(2, 2, Some(7), true)).unwrap(), None);
        let drained = counts.drain();
        assert_eq!((drained.elsewhere, drained.named.len()), (1, 0));
        assert_eq!(counts.pending(), 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    fn key(frame: u64, unit: u64) -> PlaceKey {
        PlaceKey {
            frame,
            entry: frame,
            unit: Some(unit),
            is_request: false,
        }
    }

    fn refuse(counts: &PlaceCounts, key: PlaceKey) -> Option<u32> {
        let slot = counts.slot(key);
        counts.count(slot);
        slot
    }

    /// Rule 1: two threads at one place, and one at another place with the same frame.
    #[test]
    fn a_place_has_one_slot() {
        loom::model(|| {
            let counts = PlaceCounts::new();
            let others = [key(1, 1), key(1, 2)].map(|key| {
                let counts = counts.clone();
                thread::spawn(move || refuse(&counts, key))
            });
            let own = refuse(&counts, key(1, 1));
            let [same, other] = others.map(|thread| thread.join().unwrap());
            assert!(own.is_some() && other.is_some());
            assert_eq!(own, same);
            assert_ne!(own, other);
        });
    }

    /// Rule 2: the enforcer takes the counts out while threads count, one of them where there is no room.
    #[test]
    fn no_refusal_is_lost() {
        loom::model(|| {
            let counts = PlaceCounts::new();
            for slot in 0..MAX_OF_KIND as u64 {
                let slot = counts.slot(key(slot, 1)).expect("room");
                counts.name(slot, None);
            }
            let others = [key(0, 1), key(9, 1)].map(|key| {
                let counts = counts.clone();
                thread::spawn(move || refuse(&counts, key))
            });
            let first = counts.drain().elsewhere;
            for thread in others {
                thread.join().unwrap();
            }
            assert_eq!(first + counts.drain().elsewhere, 2);
        });
    }
}
