//! Canaries that only a collection of old memory frees: a stock of them, and those planted.

use crate::agent::Agent;
use crate::jvm::java::{Global, Jni};
use crate::ledger::{Epoch, Tag};

/// Old canaries: those in stock, and those planted and not known to be dead.
///
/// G1 takes what survives the beginning of its cycle in young memory for live in that cycle.
/// So classes are made beforehand: when one is dropped it is old by then, as a rule.
#[derive(Default)]
pub(super) struct OldCanaries {
    stock: Vec<Global>,
    out: Vec<Epoch>,
    cannot_be_made: bool,
}

impl OldCanaries {
    const STOCK: usize = 2;
    /// How many may wait for a collection that comes anyway, and for any.
    const MOST_FOR_WISHES: usize = 8;
    const MOST: usize = 64;
    /// With so many out, arrays are not planted any more: a pair takes two regions of G1's.
    const MOST_WITH_ARRAYS: usize = 2;

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
        for class in self.stock.drain(..) {
            jni.release_global(class);
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

    /// Drops a class of the stock, and where there is room two large arrays.
    pub(super) fn plant(
        &mut self,
        agent: &Agent,
        jni: &Jni,
        epoch: Epoch,
        arrays: Option<i32>,
    ) -> bool {
        if self.out.len() >= Self::MOST {
            return false;
        }
        let tag = Tag::OldCanary(epoch).encode();
        let mut planted = false;
        if !self.stock.is_empty() {
            let class = self.stock.remove(0);
            if self.plant_instance(agent, jni, &class, epoch)
                && let Some(class) = class.local(jni)
            {
                planted |= agent.tools.set_tag(&class, tag).is_ok();
            }
            jni.release_global(class);
        }
        let arrays = arrays.filter(|_| self.out.len() < Self::MOST_WITH_ARRAYS);
        if let Some(pair) = arrays.and_then(|elements| jni.array_pair(elements)) {
            for array in &pair {
                planted |= agent.tools.set_tag(array, tag).is_ok();
            }
        }
        if planted {
            self.out.push(epoch);
        }
        planted
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
            self.out.push(epoch);
        }
        planted
    }

    /// Whether one is out that was planted in `epoch` or later.
    pub(super) fn waits_since(&self, epoch: Epoch) -> bool {
        self.youngest_since(epoch).is_some()
    }

    /// The youngest that is out, if it was planted in `epoch` or later.
    pub(super) fn youngest_since(&self, epoch: Epoch) -> Option<Epoch> {
        self.out.last().copied().filter(|&planted| planted >= epoch)
    }

    /// Those of `epoch` and earlier are dead.
    pub(super) fn died(&mut self, epoch: Epoch) {
        self.out.retain(|&planted| planted > epoch);
    }
}
