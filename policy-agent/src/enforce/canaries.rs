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

impl OldCanaries {
    const STOCK: usize = 2;
    /// How many may wait for a collection that comes anyway, and for any.
    const MOST_FOR_WISHES: usize = 8;
    const MOST: usize = 64;
    /// With so many pairs of arrays out, no more are planted: a pair takes two regions of G1's.
    const MOST_PAIRS: usize = 2;

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
        let class = jni.unloadable_class().and_then(|class| class.global());
        if let Some(class) = class.filter(|_| self.out.len() < Self::MOST)
            && self.drop_class(agent, jni, class, epoch)
        {
            let arrays = false;
            self.out.push(Planted { epoch, arrays });
        }
    }

    /// Drops the oldest class of the stock, and two large arrays: new ones of so many `elements` where
    /// there is room, or else those that were kept.
    pub(super) fn plant(
        &mut self,
        agent: &Agent,
        jni: &Jni,
        epoch: Epoch,
        elements: Option<i32>,
    ) -> bool {
        if self.out.len() >= Self::MOST {
            return false;
        }
        let mut planted = false;
        if !self.stock.is_empty() {
            let class = self.stock.remove(0);
            planted = self.drop_class(agent, jni, class, epoch);
        }
        let mut arrays = false;
        if self.may_plant_arrays() {
            let made = elements.and_then(|elements| jni.array_pair(elements));
            let tag = |array: &Local<'_>| {
                let tag = Tag::OldCanary(epoch).encode();
                agent.tools.set_tag(array, tag).is_ok()
            };
            if let Some([one, other]) = made {
                arrays = tag(&one) | tag(&other);
            } else if let Some(kept) = self.pair.take() {
                for array in kept {
                    arrays |= array.local(jni).is_some_and(|array| tag(&array));
                    jni.release_global(array);
                }
            }
        }
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
        let epochs = self.out.iter().rev().map(|planted| planted.epoch);
        epochs.take(1).find(|&planted| planted >= epoch)
    }

    /// The youngest whose arrays are out, if it was planted in `epoch` or later.
    pub(super) fn youngest_pair_since(&self, epoch: Epoch) -> Option<Epoch> {
        let pairs = self.out.iter().rev().filter(|planted| planted.arrays);
        let epochs = pairs.map(|planted| planted.epoch);
        epochs.take(1).find(|&planted| planted >= epoch)
    }

    /// Whether few enough pairs of arrays are out for one more.
    pub(super) fn may_plant_arrays(&self) -> bool {
        let pairs = self.out.iter().filter(|planted| planted.arrays);
        self.out.len() < Self::MOST && pairs.count() < Self::MOST_PAIRS
    }

    /// Those of `epoch` and earlier are dead.
    pub(super) fn died(&mut self, epoch: Epoch) {
        self.out.retain(|planted| planted.epoch > epoch);
    }
}
