//! A simulated heap: objects that are truly held or not, collections with the snapshot each
//! kind takes, and refunds that come later, in batches.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::enforce::couriers::Delivery;
use crate::enforce::gate::Gates;
use crate::jvm::collections::Collector;
use crate::ledger::{Epoch, Ledger, ObjectTag, PurseId};
use crate::sampling::simulation::Rng;

use super::jvm::Fault;

/// Bytes truly held, by purse.
pub(super) type Held = HashMap<PurseId, u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Data(PurseId),
    Canary,
    OldCanary,
}

#[derive(Debug, Clone)]
struct Object {
    id: u64,
    what: What,
    bytes: u64,
    /// The thread that refers to it.
    holder: Option<usize>,
    tag: Option<ObjectTag>,
    /// Of data that is tracked, the epoch of its charge; of canaries, theirs.
    epoch: Epoch,
    old: bool,
    /// Found dead by a marking that has not ended.
    condemned: bool,
}

/// Deaths to be reported, in this order.
struct Batch {
    deaths: VecDeque<Object>,
    /// What was held when a collection of all memory took its snapshot.
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
    pub(super) used_after_gc: u64,
    /// By the epoch that a collection of all memory proves: what it found held.
    pub(super) proofs: HashMap<Epoch, Rc<Held>>,
    deaths_cover_all: bool,
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
            deaths_cover_all: false,
            fault,
            rng: Rng(seed),
        }
    }

    /// A new object, held by `holder`. Its number.
    pub(super) fn allocate(&mut self, purse: PurseId, bytes: u64, holder: usize) -> u64 {
        self.put(What::Data(purse), bytes, Some(holder), Epoch::default())
    }

    /// It is tracked.
    pub(super) fn tag(&mut self, id: u64, tag: ObjectTag, birth: Epoch) {
        if let Some(object) = self.objects.iter_mut().rfind(|object| object.id == id) {
            object.tag = Some(tag);
            object.epoch = birth;
        }
    }

    pub(super) fn plant_canary(&mut self, epoch: Epoch) {
        self.put(What::Canary, 0, None, epoch);
    }

    pub(super) fn plant_old_canary(&mut self, epoch: Epoch) {
        self.put(What::OldCanary, 0, None, epoch);
    }

    fn put(&mut self, what: What, bytes: u64, holder: Option<usize>, epoch: Epoch) -> u64 {
        self.next_id += 1;
        self.objects.push(Object {
            id: self.next_id,
            what,
            bytes,
            holder,
            tag: None,
            epoch,
            old: what == What::OldCanary,
            condemned: false,
        });
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
        let held = (self.objects.iter_mut())
            .filter(|object| object.holder == Some(thread) && Some(object.id) != in_hand);
        for (index, object) in held.enumerate() {
            if index % 4 < usize::from(quarters) {
                object.holder = None;
            }
        }
    }

    pub(super) fn held_by_purse(&self) -> Held {
        let mut held = Held::new();
        for object in &self.objects {
            if let (What::Data(purse), Some(_)) = (object.what, object.holder) {
                *held.entry(purse).or_default() += object.bytes;
            }
        }
        held
    }

    pub(super) fn used(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    // Collections. Where all memory is collected at once, young ones report no deaths: so it is
    // with generational ZGC.

    pub(super) fn young(&mut self, ledger: &Ledger, gates: &Gates) {
        if self.collector != Collector::Whole {
            self.bury(|o| !o.old && o.holder.is_none(), None);
            self.grow_old();
        }
        self.pause(ledger, gates);
    }

    /// Everything in one pause.
    pub(super) fn full(&mut self, ledger: &Ledger, gates: &Gates) {
        self.cycle = None;
        let held = Rc::new(self.held_by_purse());
        self.bury(|o| o.holder.is_none(), Some(held));
        self.grow_old();
        self.pause(ledger, gates);
    }

    /// The pause that begins a marking of all memory.
    pub(super) fn begin_cycle(&mut self, ledger: &Ledger, gates: &Gates, ends_ms: u64) {
        if self.cycle.is_some() || self.collector == Collector::StopTheWorld {
            return;
        }
        let held = Rc::new(self.held_by_purse());
        if self.collector == Collector::G1 {
            self.bury(|o| !o.old && o.holder.is_none(), None);
        }
        for object in &mut self.objects {
            object.condemned = object.holder.is_none();
        }
        if self.collector == Collector::G1 {
            self.grow_old();
        }
        self.cycle = Some(Cycle { ends_ms, held });
        self.pause(ledger, gates);
    }

    /// Its end: what was dead at the snapshot is freed, and nothing that was born since.
    pub(super) fn end_cycle(&mut self, ledger: &Ledger, gates: &Gates) {
        if let Some(cycle) = self.cycle.take() {
            self.bury(|o| o.condemned, Some(cycle.held));
            self.pause(ledger, gates);
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
        deaths.retain(|o| o.tag.is_some() || !matches!(o.what, What::Data(_)));
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

    fn pause(&mut self, ledger: &Ledger, gates: &Gates) {
        self.used_after_gc = self.used();
        let epoch = ledger.epochs().gc_finished();
        if self.fault != Some(Fault::LateNotes) {
            gates.begin(epoch);
        }
    }

    // Refunds: batch after batch, in any order inside a batch.

    /// From now on every death proves a collection of all memory.
    pub(super) fn deaths_cover_all(&mut self, ledger: &Ledger) {
        self.deaths_cover_all = true;
        ledger.epochs().deaths_cover_all();
    }

    /// The thread that reports deaths is set aside until then, be it in the middle of a batch.
    pub(super) fn stall(&mut self, until_ms: u64) {
        self.stalled_until_ms = until_ms;
    }

    /// What the kernel shows of the thread that reports deaths.
    pub(super) fn delivery(&self) -> Delivery {
        match self.batches.front() {
            Some(batch) if batch.begun && !batch.deaths.is_empty() => Delivery::UnderWay,
            _ => Delivery::Complete,
        }
    }

    /// Reports `count` deaths of objects, or all there are.
    pub(super) fn report(&mut self, ledger: &Ledger, now_ms: u64, count: usize) {
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
            let is_proof = object.what == What::OldCanary || self.deaths_cover_all;
            if let (true, Some(held)) = (is_proof, &batch.held) {
                (self.proofs.entry(object.epoch)).or_insert_with(|| held.clone());
            }
            match (object.what, object.tag) {
                (What::Canary, _) => ledger.epochs().died(object.epoch),
                (What::OldCanary, _) => ledger.epochs().old_died(object.epoch),
                (What::Data(_), Some(tag)) => {
                    assert!(ledger.refund(tag), "refunded twice");
                    reported += 1;
                }
                (What::Data(_), None) => {}
            }
        }
    }
}
