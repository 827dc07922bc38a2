//! Canaries that only a collection of old memory frees: a stock of them, and those planted.

use crate::agent::Agent;
use crate::jvm::java::{Global, Jni, Local};
use crate::ledger::{Epoch, Tag};

/// Old canaries: those in stock, and those planted and not known to be dead.
///
/// G1 takes what survives the beginning of its cycle in young memory for live in that cycle.
/// So classes are made beforehand: when one is dropped it is old by then, as a rule. It is not
/// where young collections are few, for a class takes up to fifteen of them to get old: then it
/// dies with the last of a dozen cycles. Arrays are never young, and die with the first. A pair of
/// them is kept as well, for when there is no room for another.
#[derive(Default)]
pub(super) struct OldCanaries {
    stock: Vec<Global>,
    pair: Option<[Global; 2]>,
    out: Vec<Planted>,
    cannot_be_made: bool,
}

/// What was planted at once.
#[derive(Debug, Clone, Copy)]
struct Planted {
    epoch: Epoch,
    /// Two arrays were, with a class or without.
    arrays: bool,
}

/// What a canary is planted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    /// Somebody who would be helped by a collection that comes anyway.
    Wish,
    /// A collection that is being asked for.
    Request,
}

/// Two large arrays to be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrays {
    New { elements: i32 },
    Kept,
}

impl OldCanaries {
    const STOCK: usize = 2;
    /// How many may wait for a collection that comes anyway, and for any.
    const MOST_FOR_WISHES: usize = 8;
    const MOST: usize = 64;
    /// With so many pairs of arrays out, no more are planted: a pair takes two regions of G1's. For a
    /// mere wish one at a time, so that there are some left for requests: one that is withdrawn leaves
    /// its pair behind, which does not prove what the next is to prove.
    const MOST_PAIRS: usize = 4;
    const MOST_PAIRS_FOR_WISHES: usize = 1;

    /// Whether one more may be planted for a wish alone.
    pub(super) fn few_are_out(&self) -> bool {
        self.out.len() < Self::MOST_FOR_WISHES
    }

    /// Whether classes are missing that can be made.
    pub(super) fn is_short(&self) -> bool {
        self.stock.len() < Self::STOCK && !self.cannot_be_made
    }

    /// None are needed any more.
    pub(super) fn give_up(&mut self, jni: &Jni) {
        self.cannot_be_made = true;
        for object in self
            .stock
            .drain(..)
            .chain(self.pair.take().into_iter().flatten())
        {
            jni.release_global(object);
        }
    }

    /// Makes what is missing of the stock. Not at a full heap.
    pub(super) fn keep_stock(&mut self, jni: &Jni) {
        while self.is_short() {
            match jni.unloadable_class().and_then(|class| class.global()) {
                Some(class) => self.stock.push(class),
                None => self.cannot_be_made = true,
            }
        }
    }

    /// Whether a pair of arrays is missing.
    pub(super) fn is_short_of_a_pair(&self) -> bool {
        self.pair.is_none()
    }

    /// Makes a pair of arrays for when there will be no room.
    pub(super) fn keep_pair(&mut self, jni: &Jni, elements: i32) {
        self.pair = jni.array_pair(elements).and_then(|[one, other]| {
            let (one, other) = (one.global()?, other.global());
            match other {
                Some(other) => Some([one, other]),
                None => {
                    jni.release_global(one);
                    None
                }
            }
        });
    }

    /// Makes a class and drops it. The stock gets old meanwhile.
    pub(super) fn plant_class(&mut self, agent: &Agent, jni: &Jni, epoch: Epoch) {
        if self.cannot_be_made || self.out.len() >= Self::MOST {
            return;
        }
        let class = jni.unloadable_class().and_then(|class| class.global());
        if class.is_some_and(|class| self.drop_class(agent, jni, class, epoch)) {
            let arrays = false;
            self.out.push(Planted { epoch, arrays });
        }
    }

    /// Drops the oldest class of the stock, and two large arrays where `arrays` says which.
    pub(super) fn plant(
        &mut self,
        agent: &Agent,
        jni: &Jni,
        epoch: Epoch,
        arrays: Option<Arrays>,
    ) -> bool {
        if self.out.len() >= Self::MOST {
            return false;
        }
        let mut planted = false;
        if !self.stock.is_empty() {
            let class = self.stock.remove(0);
            planted = self.drop_class(agent, jni, class, epoch);
        }
        let tag = |array: &Local<'_>| {
            let tag = Tag::OldCanary(epoch).encode();
            agent.tools.set_tag(array, tag).is_ok()
        };
        let arrays = match arrays {
            Some(Arrays::New { elements }) => jni
                .array_pair(elements)
                .is_some_and(|[one, other]| tag(&one) | tag(&other)),
            Some(Arrays::Kept) => {
                let mut tagged = false;
                for array in self.pair.take().into_iter().flatten() {
                    tagged |= array.local(jni).is_some_and(|array| tag(&array));
                    jni.release_global(array);
                }
                tagged
            }
            None => false,
        };
        planted |= arrays;
        if planted {
            self.out.push(Planted { epoch, arrays });
        }
        planted
    }

    /// Tags a class and an instance of it, and lets go of them.
    fn drop_class(&self, agent: &Agent, jni: &Jni, class: Global, epoch: Epoch) -> bool {
        let tag = Tag::OldCanary(epoch).encode();
        let dropped = self.plant_instance(agent, jni, &class, epoch)
            && class
                .local(jni)
                .is_some_and(|class| agent.tools.set_tag(&class, tag).is_ok());
        jni.release_global(class);
        dropped
    }

    /// An instance, which the class outlives: should this be generational ZGC, and nobody have
    /// told so, then the class does not die before what is young now is old.
    fn plant_instance(&self, agent: &Agent, jni: &Jni, class: &Global, epoch: Epoch) -> bool {
        jni.allocate(class).is_some_and(|instance| {
            let tag = Tag::Canary(epoch).encode();
            agent.tools.set_tag(&instance, tag).is_ok()
        })
    }

    /// Allocates and drops an object. With generational ZGC alone it is a proof.
    pub(super) fn plant_young(&mut self, agent: &Agent, jni: &Jni, epoch: Epoch) -> bool {
        let canary = (agent.object_class())
            .filter(|_| self.out.len() < Self::MOST)
            .and_then(|class| jni.allocate(class));
        let tag = Tag::OldCanary(epoch).encode();
        let planted = canary.is_some_and(|canary| agent.tools.set_tag(&canary, tag).is_ok());
        if planted {
            let arrays = false;
            self.out.push(Planted { epoch, arrays });
        }
        planted
    }

    /// The youngest that is out, if it was planted in `epoch` or later.
    pub(super) fn youngest_since(&self, epoch: Epoch) -> Option<Epoch> {
        let youngest = self.out.last()?.epoch;
        (youngest >= epoch).then_some(youngest)
    }

    /// The youngest whose arrays are out, if it was planted in `epoch` or later.
    pub(super) fn youngest_pair_since(&self, epoch: Epoch) -> Option<Epoch> {
        let youngest = self.out.iter().rfind(|planted| planted.arrays)?.epoch;
        (youngest >= epoch).then_some(youngest)
    }

    /// The arrays to plant for `whom`, of so many `elements` where there is room for new ones; none
    /// while enough are out. Those that were kept are for requests.
    pub(super) fn arrays_for(&self, whom: Whom, elements: Option<i32>) -> Option<Arrays> {
        let pairs = self.out.iter().filter(|planted| planted.arrays).count();
        let (most, kept) = match whom {
            Whom::Wish => (Self::MOST_PAIRS_FOR_WISHES, None),
            Whom::Request => (Self::MOST_PAIRS, self.pair.as_ref().map(|_| Arrays::Kept)),
        };
        let new = elements.map(|elements| Arrays::New { elements });
        new.or(kept)
            .filter(|_| pairs < most && self.out.len() < Self::MOST)
    }

    /// Those of `epoch` and earlier are dead.
    pub(super) fn died(&mut self, epoch: Epoch) {
        self.out.retain(|planted| planted.epoch > epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(pairs: usize, classes: usize) -> OldCanaries {
        let planted = |arrays| Planted {
            epoch: Epoch::new(7),
            arrays,
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
    fn classes_that_are_out_do_not_stand_in_the_way_of_arrays_and_wishes_leave_places() {
        let elements = Some(9);
        let new = Some(Arrays::New { elements: 9 });
        for (pairs, for_a_wish, for_a_request) in [
            (0, new, new),
            (1, None, new),
            (3, None, new),
            (4, None, None),
        ] {
            let canaries = out(pairs, 8);
            assert_eq!(canaries.arrays_for(Whom::Wish, elements), for_a_wish);
            assert_eq!(canaries.arrays_for(Whom::Request, elements), for_a_request);
        }
        // Nothing was kept, and there is no room.
        assert_eq!(out(0, 0).arrays_for(Whom::Request, None), None);
        assert_eq!(
            out(0, OldCanaries::MOST).arrays_for(Whom::Request, elements),
            None
        );
    }

    #[test]
    fn what_is_proved_takes_all_that_were_planted_before() {
        let mut canaries = out(1, 1);
        canaries.out.push(Planted {
            epoch: Epoch::new(9),
            arrays: false,
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
}
