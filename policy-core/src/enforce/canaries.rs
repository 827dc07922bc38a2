//! Old canaries: objects that only a collection of old memory frees. Their deaths prove such a
//! collection. The enforcer keeps a stock of them and remembers those that it has planted.

use std::time::Duration;

use crate::ledger::{Epoch, Tag};
use crate::ports::Canaries;

/// Old canaries: those in stock, and those planted and not known to be dead. On the enforcer's
/// thread.
///
/// A G1 cycle treats objects that were young when it began as live. So classes are made in advance:
/// when one is dropped it is usually old. If young collections are rare it is still young, because a
/// class needs up to fifteen of them to get old; then it dies only in the last of a dozen cycles.
/// Large arrays are never young and die in the first cycle. One pair of them is kept in stock, for
/// when the heap has no room for another.
#[derive(Default)]
pub struct OldCanaries {
    /// Classes in stock.
    stock: usize,
    /// Whether a pair of arrays is in stock.
    pair: bool,
    out: Vec<Planted>,
    cannot_be_made: bool,
}

/// The canaries that were planted together.
#[derive(Debug, Clone, Copy)]
struct Planted {
    epoch: Epoch,
    /// Two arrays are among them.
    arrays: bool,
    /// Nobody needed it when it was planted.
    ahead: bool,
}

/// The reason for which a canary is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedFor {
    /// An open need, which a collection that comes anyway may answer.
    Need,
    /// A collection that the enforcer is about to ask for.
    Request,
    /// A collection that was asked for and has not begun: what a later canary proves is younger.
    Again,
}

/// Which two large arrays to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// New ones.
    New {
        /// The length of each, in references.
        elements: i32,
    },
    /// The pair in stock.
    Kept,
}

impl OldCanaries {
    const STOCK: usize = 2;
    /// How many may be out before none is planted for a need, and before none is planted at all.
    const MAX_FOR_NEEDS: usize = 8;
    const MOST: usize = 64;
    /// At most so many pairs of arrays are out, because a pair takes two G1 regions. A need gets
    /// only one, so that some are left for requests: a request that is withdrawn leaves its pair
    /// behind, and that pair does not prove what the next request needs.
    const MAX_PAIRS: usize = 4;
    const MAX_PAIRS_FOR_NEEDS: usize = 1;
    /// How many of those that were planted ahead may be out, and from how many on they become rarer: the
    /// next one waits half as long again as the one before it. So the youngest one that an
    /// unannounced collection frees was planted in the last third of the time since the one before
    /// it, however long that was.
    const MAX_AHEAD: usize = 32;
    const AHEAD_WITHOUT_WAITING: usize = 4;

    /// Whether one more may be planted for a need alone.
    pub fn few_are_out(&self) -> bool {
        self.out.len() - self.ahead() < Self::MAX_FOR_NEEDS
    }

    fn ahead(&self) -> usize {
        self.out.iter().filter(|planted| planted.ahead).count()
    }

    /// How long after one canary was planted ahead the next is due, if it is `shortest` while few are out.
    pub fn ahead_again(&self, shortest: Duration) -> Duration {
        let more = self.ahead().saturating_sub(Self::AHEAD_WITHOUT_WAITING);
        shortest.mul_f64(1.5f64.powi(more.min(Self::MAX_AHEAD) as i32))
    }

    fn has_room_ahead(&self) -> bool {
        self.ahead() < Self::MAX_AHEAD && self.out.len() < Self::MOST
    }

    /// Whether the stock lacks classes that can be made.
    pub fn is_short(&self) -> bool {
        self.stock < Self::STOCK && !self.cannot_be_made
    }

    /// Releases the stock; no more classes are made.
    pub fn give_up(&mut self, jvm: &(impl Canaries + ?Sized)) {
        self.cannot_be_made = true;
        self.stock = 0;
        self.pair = false;
        jvm.release_stock();
    }

    /// Fills up the stock of classes. Must not be called at a full heap.
    pub fn keep_stock(&mut self, jvm: &(impl Canaries + ?Sized)) {
        while self.is_short() {
            if jvm.stock_class() {
                self.stock += 1;
            } else {
                self.cannot_be_made = true;
            }
        }
    }

    /// Whether the stock lacks a pair of arrays.
    pub fn is_short_of_a_pair(&self) -> bool {
        !self.pair
    }

    /// Puts a pair of arrays of `elements` references each into the stock.
    pub fn keep_pair(&mut self, jvm: &(impl Canaries + ?Sized), elements: i32) {
        self.pair = jvm.stock_arrays(elements);
    }

    /// Makes a new class and drops it, ahead of any need; the stock stays as it is and gets old.
    pub fn plant_class_ahead(&mut self, jvm: &(impl Canaries + ?Sized), epoch: Epoch) {
        if self.cannot_be_made || !self.has_room_ahead() {
            return;
        }
        let (class, instance) = class_tags(epoch);
        if jvm.plant_class(class, instance) {
            self.out.push(Planted {
                epoch,
                arrays: false,
                ahead: true,
            });
        }
    }

    /// As [`OldCanaries::plant_young`], ahead of any need.
    pub fn plant_young_ahead(&mut self, jvm: &(impl Canaries + ?Sized), epoch: Epoch) {
        if self.has_room_ahead() && jvm.plant(Tag::OldCanary(epoch).encode()) {
            self.out.push(Planted {
                epoch,
                arrays: false,
                ahead: true,
            });
        }
    }

    /// Drops the oldest class in stock, and the two large arrays that `arrays` names. Returns whether
    /// anything was planted.
    pub fn plant(
        &mut self,
        jvm: &(impl Canaries + ?Sized),
        epoch: Epoch,
        arrays: Option<Arrays>,
    ) -> bool {
        if self.out.len() >= Self::MOST {
            return false;
        }
        let mut planted = false;
        let (class, instance) = class_tags(epoch);
        if self.stock > 0 {
            self.stock -= 1;
            planted = jvm.drop_stocked_class(class, instance);
        }
        let arrays = match arrays {
            Some(Arrays::New { elements }) => jvm.plant_arrays(elements, class),
            Some(Arrays::Kept) => std::mem::take(&mut self.pair) && jvm.drop_stocked_arrays(class),
            None => false,
        };
        planted |= arrays;
        if planted {
            self.out.push(Planted {
                epoch,
                arrays,
                ahead: false,
            });
        }
        planted
    }

    /// Allocates and drops an object. Its death is a proof with generational ZGC only.
    pub fn plant_young(&mut self, jvm: &(impl Canaries + ?Sized), epoch: Epoch) -> bool {
        let planted = self.out.len() < Self::MOST && jvm.plant(Tag::OldCanary(epoch).encode());
        if planted {
            self.out.push(Planted {
                epoch,
                arrays: false,
                ahead: false,
            });
        }
        planted
    }

    /// The epoch of the youngest canary that is out, if it was planted in `epoch` or later.
    pub fn youngest_since(&self, epoch: Epoch) -> Option<Epoch> {
        let youngest = self.out.last()?.epoch;
        (youngest >= epoch).then_some(youngest)
    }

    /// The epoch of the youngest pair of arrays that is out, if it was planted in `epoch` or later.
    pub fn youngest_pair_since(&self, epoch: Epoch) -> Option<Epoch> {
        let youngest = self.out.iter().rfind(|planted| planted.arrays)?.epoch;
        (youngest >= epoch).then_some(youngest)
    }

    /// The arrays to plant for `purpose`; `None` while enough are out. `elements` is the length of new
    /// ones, if the heap has room for them. The pair in stock is for requests only.
    pub fn arrays_for(&self, purpose: PlantedFor, elements: Option<i32>) -> Option<Arrays> {
        let pairs = self.out.iter().filter(|planted| planted.arrays).count();
        let (most, kept) = match purpose {
            PlantedFor::Need => (Self::MAX_PAIRS_FOR_NEEDS, None),
            PlantedFor::Again => (Self::MAX_PAIRS - 1, None),
            PlantedFor::Request => (Self::MAX_PAIRS, self.pair.then_some(Arrays::Kept)),
        };
        let new = elements.map(|elements| Arrays::New { elements });
        new.or(kept)
            .filter(|_| pairs < most && self.out.len() < Self::MOST)
    }

    /// Forgets the canaries of `epoch` and earlier: they are dead.
    pub fn died(&mut self, epoch: Epoch) {
        self.out.retain(|planted| planted.epoch > epoch);
    }
}

/// The tags of a class that is a canary, and of its instance. The class lives longer than the
/// instance. So even if the collector is generational ZGC and the agent does not know it, the class
/// dies only after all memory that is young now has become old.
fn class_tags(epoch: Epoch) -> (i64, i64) {
    (Tag::OldCanary(epoch).encode(), Tag::Canary(epoch).encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(pairs: usize, classes: usize) -> OldCanaries {
        let planted = |arrays| Planted {
            epoch: Epoch::new(7),
            arrays,
            ahead: false,
        };
        let pairs = std::iter::repeat_n(planted(true), pairs);
        OldCanaries {
            out: pairs
                .chain(std::iter::repeat_n(planted(false), classes))
                .collect(),
            ..OldCanaries::default()
        }
    }

    #[test]
    fn classes_that_are_out_do_not_stand_in_the_way_of_arrays_and_needs_leave_places() {
        let elements = Some(9);
        let new = Some(Arrays::New { elements: 9 });
        for (pairs, for_a_need, for_a_request) in [
            (0, new, new),
            (1, None, new),
            (3, None, new),
            (4, None, None),
        ] {
            let canaries = out(pairs, 8);
            assert_eq!(canaries.arrays_for(PlantedFor::Need, elements), for_a_need);
            assert_eq!(
                canaries.arrays_for(PlantedFor::Request, elements),
                for_a_request
            );
        }
        // Nothing was kept, and there is no room.
        assert_eq!(out(0, 0).arrays_for(PlantedFor::Request, None), None);
        assert_eq!(
            out(0, OldCanaries::MOST).arrays_for(PlantedFor::Request, elements),
            None
        );
    }

    #[test]
    fn what_is_proved_takes_all_that_were_planted_before() {
        let mut canaries = out(1, 1);
        canaries.out.push(Planted {
            epoch: Epoch::new(9),
            arrays: false,
            ahead: false,
        });
        assert_eq!(canaries.youngest_since(Epoch::new(8)), Some(Epoch::new(9)));
        assert_eq!(canaries.youngest_pair_since(Epoch::new(8)), None);
        assert_eq!(
            canaries.youngest_pair_since(Epoch::new(7)),
            Some(Epoch::new(7))
        );
        canaries.died(Epoch::new(8));
        assert_eq!(canaries.youngest_since(Epoch::new(0)), Some(Epoch::new(9)));
        assert_eq!(canaries.youngest_pair_since(Epoch::new(0)), None);
    }

    #[test]
    fn those_planted_ahead_become_rarer_and_leave_places_for_needs() {
        let mut canaries = out(0, 0);
        let shortest = Duration::from_secs(5);
        let mut waited = Duration::ZERO;
        let mut last = Duration::ZERO;
        while canaries.has_room_ahead() {
            let again = canaries.ahead_again(shortest);
            assert!(again >= last);
            last = again;
            waited += again;
            canaries.out.push(Planted {
                epoch: Epoch::new(1),
                arrays: false,
                ahead: true,
            });
        }
        assert!(canaries.few_are_out() && canaries.out.len() < OldCanaries::MOST);
        let days = waited.as_secs() / 86_400;
        assert!(days >= 2, "they last for {days} days");
        // The last wait is a third of all.
        assert!(last < waited.mul_f64(0.35), "{last:?} of {waited:?}");
    }
}
