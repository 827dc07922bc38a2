//! A simulated heap: objects that are truly held or not, collections with the snapshot each
//! kind takes, and refunds that come later, in batches.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::core::Core;
use crate::ledger::{Epoch, PurseId, Tag};
use crate::ports::{CollectorKind as Collector, Delivery};
use crate::sampling::simulation::Rng;

use super::simulation::Fault;

/// Bytes truly held, by purse.
pub(super) type Held = HashMap<PurseId, u64>;

#[derive(Debug, Clone)]
struct Object {
    id: u64,
    /// The purse that is charged for it, where it is data.
    purse: Option<PurseId>,
    bytes: u64,
    /// It is held.
    holder: Option<Holder>,
    /// 0 for none.
    tag: i64,
    old: bool,
    /// Found dead by a marking that has not ended.
    condemned: bool,
}

/// Who refers to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Thread(usize),
    /// The program itself: loaders, and what stands for scopes.
    Program,
}

impl Object {
    /// The epoch that its death proves, of an old canary.
    fn old_canary(&self) -> Option<Epoch> {
        match Tag::decode(self.tag) {
            Some(Tag::OldCanary(epoch)) => Some(epoch),
            _ => None,
        }
    }
}

/// Deaths to be reported, in this order.
struct Batch {
    deaths: VecDeque<Object>,
    /// The bytes of each purse that were held when a collection of all memory took its snapshot.
    held: Option<Rc<Held>>,
    begun: bool,
}

struct Cycle {
    ends_ms: u64,
    held: Rc<Held>,
}

/// The heap of one JVM.
pub(super) struct Heap {
    pub(super) collector: Collector,
    objects: Vec<Object>,
    next_id: u64,
    batches: VecDeque<Batch>,
    /// No batch begins to be reported before.
    stalled_until_ms: u64,
    cycle: Option<Cycle>,
    pub used_after_gc: u64,
    /// By the epoch that a collection of all memory proves: what it found held.
    pub(super) proofs: HashMap<Epoch, Rc<Held>>,
    /// The births of tagged data, for collectors whose every death is a proof.
    births: HashMap<i64, Epoch>,
    fault: Option<Fault>,
    rng: Rng,
}

impl Heap {
    pub(super) fn new(collector: Collector, seed: u64, fault: Option<Fault>) -> Heap {
        Heap {
            collector,
            objects: Vec::new(),
            next_id: 0,
            batches: VecDeque::new(),
            stalled_until_ms: 0,
            cycle: None,
            used_after_gc: 0,
            proofs: HashMap::new(),
            births: HashMap::new(),
            fault,
            rng: Rng(seed),
        }
    }

    /// A new object, held by a thread. Its number.
    pub(super) fn allocate(&mut self, purse: PurseId, bytes: u64, thread: usize) -> u64 {
        self.put(Some(purse), bytes, Some(Holder::Thread(thread)), 0)
    }

    /// It is tracked.
    pub(super) fn tag(&mut self, id: u64, tag: i64, birth: Epoch) {
        if let Some(object) = self.objects.iter_mut().rfind(|object| object.id == id) {
            object.tag = tag;
            self.births.insert(tag, birth);
        }
    }

    /// An object that the program holds, with a tag.
    pub(super) fn hold(&mut self, tag: i64) -> u64 {
        self.put(None, 0, Some(Holder::Program), tag)
    }

    /// An object that nobody refers to: a canary.
    pub(super) fn plant(&mut self, tag: i64) {
        self.put(None, 0, None, tag);
    }

    fn put(&mut self, purse: Option<PurseId>, bytes: u64, holder: Option<Holder>, tag: i64) -> u64 {
        self.next_id += 1;
        let mut object = Object {
            id: self.next_id,
            purse,
            bytes,
            holder,
            tag,
            old: false,
            condemned: false,
        };
        // Classes are no young collection's, nor are large arrays.
        object.old = object.old_canary().is_some() && self.collector != Collector::GenerationalZgc;
        self.objects.push(object);
        self.next_id
    }

    /// The program lets go of one object.
    pub(super) fn let_go(&mut self, id: u64) {
        if let Some(object) = self.objects.iter_mut().rfind(|object| object.id == id) {
            object.holder = None;
        }
    }

    /// A thread lets go of so many quarters of what it holds, but not of what it is still in the
    /// allocation of: the callback has that in its hand, and with it the purse that it is charged to.
    pub(super) fn let_go_of(&mut self, thread: usize, quarters: u8, in_hand: Option<u64>) {
        let held = (self.objects.iter_mut()).filter(|object| {
            object.holder == Some(Holder::Thread(thread)) && Some(object.id) != in_hand
        });
        for (index, object) in held.enumerate() {
            if index % 4 < usize::from(quarters) {
                object.holder = None;
            }
        }
    }

    pub(super) fn held_by_purse(&self) -> Held {
        let mut held = Held::new();
        for object in &self.objects {
            if let (Some(purse), Some(_)) = (object.purse, object.holder) {
                *held.entry(purse).or_default() += object.bytes;
            }
        }
        held
    }

    pub(super) fn used(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    // Collections. Where all memory is collected at once, young ones report no deaths; nor do those
    // of generational ZGC, whose collections of old memory leave garbage that is young.

    pub(super) fn young(&mut self, core: &Core) {
        match self.collector {
            Collector::Whole => {}
            Collector::GenerationalZgc => self.grow_old(),
            _ => {
                self.bury(|o| !o.old && o.holder.is_none(), None);
                self.grow_old();
            }
        }
        self.pause(core);
    }

    /// Everything in one pause.
    pub(super) fn full(&mut self, core: &Core) {
        self.cycle = None;
        let held = Rc::new(self.held_by_purse());
        self.bury(|o| o.holder.is_none(), Some(held));
        self.grow_old();
        self.pause(core);
    }

    /// The pause that begins a marking of all memory.
    pub(super) fn begin_cycle(&mut self, core: &Core, ends_ms: u64) {
        if self.cycle.is_some() || self.collector == Collector::StopTheWorld {
            return;
        }
        let held = Rc::new(self.held_by_purse());
        if self.collector == Collector::G1 {
            self.bury(|o| !o.old && o.holder.is_none(), None);
        }
        let leaves_young = self.collector == Collector::GenerationalZgc;
        for object in &mut self.objects {
            object.condemned = object.holder.is_none() && (object.old || !leaves_young);
        }
        if self.collector == Collector::G1 {
            self.grow_old();
        }
        self.cycle = Some(Cycle { ends_ms, held });
        self.pause(core);
    }

    /// Its end: what was dead at the snapshot is freed, and nothing that was born since.
    pub(super) fn end_cycle(&mut self, core: &Core) {
        if let Some(cycle) = self.cycle.take() {
            self.bury(|o| o.condemned, Some(cycle.held));
            self.pause(core);
        }
    }

    pub(super) fn cycle_ends_ms(&self) -> Option<u64> {
        self.cycle.as_ref().map(|cycle| cycle.ends_ms)
    }

    fn bury(&mut self, is_dead: impl Fn(&Object) -> bool, held: Option<Rc<Held>>) {
        let (dead, left) = std::mem::take(&mut self.objects)
            .into_iter()
            .partition(is_dead);
        self.objects = left;
        let mut deaths: Vec<Object> = dead;
        deaths.retain(|o| o.tag != 0);
        for index in (1..deaths.len()).rev() {
            let other = self.rng.below(index as u64 + 1);
            deaths.swap(index, other as usize);
        }
        self.batches.push_back(Batch {
            deaths: deaths.into(),
            held,
            begun: false,
        });
    }

    fn grow_old(&mut self) {
        for object in &mut self.objects {
            object.old = true;
        }
    }

    fn pause(&mut self, core: &Core) {
        self.used_after_gc = self.used();
        if self.fault == Some(Fault::LateNotes) {
            let _ = core.ledger.epochs().gc_finished();
            core.enforcer.wake();
        } else {
            core.collection_finished();
        }
    }

    // Refunds: batch after batch, in any order inside a batch.

    /// The thread that reports deaths is set aside until then, be it in the middle of a batch.
    pub(super) fn stall(&mut self, until_ms: u64) {
        self.stalled_until_ms = until_ms;
    }

    /// Returns the state of the thread that reports deaths, as the kernel shows it.
    pub(super) fn delivery(&self) -> Delivery {
        match self.batches.front() {
            Some(batch) if batch.begun && !batch.deaths.is_empty() => Delivery::UnderWay,
            _ => Delivery::Complete,
        }
    }

    /// Reports `count` deaths of data, or all there are.
    pub(super) fn report(&mut self, core: &Core, now_ms: u64, count: usize) {
        let mut reported = 0;
        while reported < count {
            if now_ms < self.stalled_until_ms {
                return;
            }
            let Some(batch) = self.batches.front_mut() else {
                return;
            };
            batch.begun = true;
            let Some(object) = batch.deaths.pop_front() else {
                self.batches.pop_front();
                continue;
            };
            let birth = self.births.remove(&object.tag);
            let canary = match Tag::decode(object.tag) {
                Some(Tag::Canary(epoch)) => Some(epoch),
                _ => birth,
            };
            let proved = match self.collector {
                Collector::Whole => object.old_canary().or(canary),
                _ => object.old_canary(),
            };
            if let (Some(epoch), Some(held)) = (proved, &batch.held) {
                self.proofs.entry(epoch).or_insert_with(|| held.clone());
            }
            let frees = core.ledger.frees_total();
            core.freed(object.tag);
            if birth.is_some() {
                assert!(core.ledger.frees_total() > frees, "refunded twice");
                reported += 1;
            }
        }
    }
}
