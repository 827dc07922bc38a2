//! The ledger: what is charged, to whom, until when.
//!
//! A *purse* is the smallest thing that is charged. An account is a sum of purses; the directory
//! ([`crate::identity::directory`]) knows which. A *record* is one tracked sampled object. The ledger knows
//! neither names nor the JVM.
//!
//! # Invariants
//! 1. A refund takes back the very integers that the charge added: when every tag that
//!    [`Ledger::charge`] gave was refunded or cancelled, in any order, from any threads,
//!    every purse's charged bytes, objects and variance are zero.
//! 2. At rest, the charged sums over the purses equal the sums over the records. In
//!    motion, a purse is charged before its record is published and refunded after it
//!    is removed: the purses are never below the records.
//! 3. A record is refunded once; a stale or doubled free is counted and ignored.
//! 4. [`Ledger::charge`], [`Ledger::cancel`] and [`Ledger::refund`] take no lock, wait
//!    for nobody, and allocate only at the first touch of a chunk, which
//!    [`Ledger::grow_ahead`] does for them on a background thread.
//! 5. Everything is bounded: records, purses, class tables, intervals.
//!
//! Modules: [`tag`] (the values of JVM TI tags), `slab` over `pool` over `chunks` (records), `charges`, `purse`,
//! `classes` and `thinned` (sums), [`epoch`] (which charges are live), `closing` (of purses).

mod charges;
mod chunks;
mod classes;
mod closing;
mod counters;
pub mod epoch;
mod pool;
mod purse;
mod slab;
pub mod tag;
mod thinned;

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod watched;

pub use chunks::Chunks;
pub use classes::{ClassTotals, MAX_CLASS_TABLE_BYTES, UNKNOWN_CLASS};
pub use closing::PurseSet;
pub use counters::DropReason;
pub use epoch::{Epoch, Epochs, Quiet, QuietWindow};
pub use pool::IndexPool;
pub use purse::{Closed, Exact, PurseId, Totals};
pub use slab::{MAX_OBJECT_BYTES, SiteId};
pub use tag::{ClassTag, LoaderTag, ObjectTag, ScopeTag, Tag};

use crate::sampling::thinning_error::{Drawn, Thinned};
use crate::sampling::{Charge, IntervalId, Intervals, unseen_at_most_bytes, weight};
use crate::sync::{AtomicU64, Ordering};
use charges::Charges;
use counters::{Drops, Striped};
use purse::Purses;
use slab::{InsertError, Record, Slab};
use thinned::ThinnedPlace;

/// How much a ledger can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Tracked objects, at most 2^28; 36 bytes of native memory each, as they are used.
    pub records: u32,
    /// Purses, at most 65,536 with the reserved one.
    pub purses: u32,
}

/// A sampled object that is to be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The purse that is charged.
    pub payer: PurseId,
    /// The purse of the account whose code allocated.
    pub agent_account: PurseId,
    /// The purse of the account on whose behalf it allocated.
    pub principal: PurseId,
    /// The class, by the caller's numbering; [`UNKNOWN_CLASS`] if it has none.
    pub class: u32,
    /// The size of the object, as the event gives it.
    pub size_bytes: u64,
    /// The interval under which it was drawn
    /// ([`crate::sampling::ThreadInterval::weigh_with`]).
    pub interval: IntervalId,
    /// Where it was allocated; [`SiteId::NONE`] if no stack was taken.
    pub site: SiteId,
}

#[cfg(test)]
impl Sample {
    /// A sample for tests: of no class, and of this account in every role.
    pub(crate) fn of(payer: PurseId, size_bytes: u64, interval: IntervalId) -> Sample {
        Sample {
            payer,
            agent_account: payer,
            principal: payer,
            class: UNKNOWN_CLASS,
            size_bytes,
            interval,
            site: SiteId::NONE,
        }
    }
}

#[cfg(test)]
impl Ledger {
    /// Charges a [`Sample::of`] under the interval in force.
    ///
    /// # Panics
    /// If there is no room.
    pub(crate) fn charge_to(&self, payer: PurseId, size_bytes: u64) -> ObjectTag {
        let sample = Sample::of(payer, size_bytes, self.intervals().current());
        self.charge(&sample).expect("there is room")
    }
}

/// A sample was not charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sample dropped: {}", reason.name())]
pub struct Dropped {
    /// The reason, which is counted already.
    pub reason: DropReason,
}

/// An object that was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freed {
    /// Its size.
    pub size_bytes: u64,
    /// The epoch in which it was charged.
    pub birth: Epoch,
}

/// One record, as a scan finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRecord {
    /// Its tag.
    pub tag: ObjectTag,
    /// The purse that is charged.
    pub payer: PurseId,
    /// The purse of the account whose code allocated.
    pub agent_account: PurseId,
    /// The purse of the account on whose behalf it allocated.
    pub principal: PurseId,
    /// The class, by the caller's numbering.
    pub class: u32,
    /// The epoch in which it was charged.
    pub birth: Epoch,
    /// The size of the object.
    pub size_bytes: u64,
    /// The charge for it.
    pub charge: Charge,
    /// Whether it was born at or before the boundary at the start of the scan: it survived a
    /// collection and counts as live.
    pub survived: bool,
    /// Its share of live bytes, if it survived: its charge, unless its sample was thinned and no
    /// collection has decided on it yet. In that case the collections that it survived have freed
    /// the arrays that it stands for and could not free it, so it counts for itself alone.
    pub live: Charge,
    /// Whether its sample was thinned.
    pub is_thinned: bool,
    /// Where it was allocated; [`SiteId::NONE`] if no stack was taken.
    pub site: SiteId,
}

#[cfg(not(loom))]
const STRIPES: usize = 16;
#[cfg(loom)]
const STRIPES: usize = 1;

/// Spreads native threads over the stripes; any answer is right.
#[cfg(not(loom))]
fn thread_hint() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HINT: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread whose locals are gone already shares the first stripe.
    HINT.try_with(|hint| {
        if hint.get() == usize::MAX {
            hint.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        hint.get()
    })
    .unwrap_or(0)
}
#[cfg(loom)]
fn thread_hint() -> usize {
    0
}

/// The ledger of one JVM.
#[derive(Debug)]
pub struct Ledger {
    slab: Slab,
    purses: Purses,
    epochs: Epochs,
    intervals: Intervals,
    samples: Striped,
    drops: Drops,
    frees: AtomicU64,
    stale_frees: AtomicU64,
    /// A floating-point number, as its bits; 0 for 1.
    error_factor: AtomicU64,
}

impl Ledger {
    /// An empty ledger; the interval is HotSpot's default until
    /// [`Intervals::set`].
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self {
            slab: Slab::new(capacity.records, STRIPES),
            purses: Purses::new(capacity.purses),
            epochs: Epochs::default(),
            intervals: Intervals::default(),
            samples: Striped::new(STRIPES),
            drops: Drops::default(),
            frees: AtomicU64::new(0),
            stale_frees: AtomicU64::new(0),
            error_factor: AtomicU64::new(0),
        }
    }

    /// The epochs and what is live.
    #[must_use]
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The sampling intervals.
    #[must_use]
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// By what every stated error is multiplied, 1 or more: see [`crate::sum_against_heap`]. Any thread.
    #[must_use]
    pub fn error_factor(&self) -> f64 {
        f64::from_bits(self.error_factor.load(Ordering::Relaxed)).max(1.0)
    }

    /// Sets it. The enforcer.
    pub fn set_error_factor(&self, factor: f64) {
        (self.error_factor).store(factor.to_bits(), Ordering::Relaxed);
    }

    /// Opens a purse, or `None` when all are in use: charge
    /// [`PurseId::UNACCOUNTED`] then. Lock-free; any thread.
    #[must_use]
    pub fn open_purse(&self) -> Option<PurseId> {
        self.purses.open(self.intervals.changes())
    }

    /// Charges a sampled object, on the allocating thread. Lock-free, some ten atomics.
    ///
    /// # Errors
    /// [`Dropped`] when no record is free. The object is then part of the allocated
    /// totals, but not tracked: nothing stays charged.
    pub fn charge(&self, sample: &Sample) -> Result<ObjectTag, Dropped> {
        self.charge_weighed(sample).map(|(tag, _)| tag)
    }

    /// Like [`Ledger::charge`]; also returns the charge.
    ///
    /// # Errors
    /// As [`Ledger::charge`].
    pub fn charge_weighed(&self, sample: &Sample) -> Result<(ObjectTag, Charge), Dropped> {
        let hint = thread_hint();
        let size_bytes = sample.size_bytes.min(MAX_OBJECT_BYTES);
        let charge = weight::charge(size_bytes, self.intervals.bytes(sample.interval));
        self.samples.increment(hint);
        // Invariant 2: the purse first.
        self.purses.charge(sample.payer, sample.class, &charge);
        if let Some(thinned) = self.thinned_place(sample.payer, sample.interval) {
            thinned.kept(charge.variance);
        }
        let record = Record {
            payer: sample.payer,
            agent_account: sample.agent_account,
            principal: sample.principal,
            interval: sample.interval,
            class: sample.class,
            birth: self.epochs.current(),
            size_bytes,
            site: sample.site,
        };
        let inserted = self.slab.insert(hint, &record).map_err(|error| {
            self.refund_to(sample.payer, sample.interval, &charge);
            let reason = match error {
                InsertError::Full => DropReason::TableFull,
                InsertError::NoMemory => DropReason::NoMemory,
            };
            self.drops.count(reason);
            Dropped { reason }
        });
        inserted.map(|tag| (tag, charge))
    }

    /// Takes a charge back because the object could not be tagged: it stays in the
    /// allocated totals, and the sample counts as dropped. On the allocating thread.
    pub fn cancel(&self, tag: ObjectTag) -> bool {
        let cancelled = self.take_back(tag).is_some();
        if cancelled {
            self.drops.count(DropReason::TagFailed);
        }
        cancelled
    }

    /// Whether the object of this tag was not freed yet, as far as frees are taken in. One load; any thread.
    #[must_use]
    pub fn is_live(&self, tag: ObjectTag) -> bool {
        self.slab.is_live(tag)
    }

    /// Refunds an object that was freed; false if that was done before (counted, see
    /// [`Ledger::stale_frees`]). In `ObjectFree`: lock-free, a few atomics.
    pub fn refund(&self, tag: ObjectTag) -> bool {
        self.refund_told(tag).is_some()
    }

    /// Like [`Ledger::refund`]; returns the object that was freed, or `None` if that was done before.
    pub fn refund_told(&self, tag: ObjectTag) -> Option<Freed> {
        let record = self.take_back(tag)?;
        // The death of any object proves a collection of its epoch, as the death of a canary does.
        self.epochs.died(record.birth);
        self.frees.fetch_add(1, Ordering::Release);
        Some(Freed {
            size_bytes: record.size_bytes,
            birth: record.birth,
        })
    }

    fn take_back(&self, tag: ObjectTag) -> Option<Record> {
        let Some(record) = self.slab.remove(tag) else {
            self.stale_frees.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let charge = self.charge_of(&record);
        self.refund_to(record.payer, record.interval, &charge);
        Some(record)
    }

    fn refund_to(&self, payer: PurseId, interval: IntervalId, charge: &Charge) {
        self.purses.refund(payer, charge);
        if let Some(thinned) = self.thinned_place(payer, interval) {
            thinned.refunded(charge.variance);
        }
    }

    /// Where the variance of a sample under this interval is counted besides; `None` for samples that
    /// were not thinned.
    fn thinned_place(&self, payer: PurseId, interval: IntervalId) -> Option<&ThinnedPlace> {
        if !self.intervals.is_thinned(interval) {
            return None;
        }
        self.purses.thinned(payer)
    }

    /// Adds a large array of `size_bytes` to the error of a purse ([`crate::sampling::thinning_error`]).
    /// It was drawn under the first of these intervals and is kept as under the second, or passed
    /// over. An array that is kept is also charged, under the second. Lock-free, a few atomics; on
    /// the allocating thread.
    pub fn thin(
        &self,
        payer: PurseId,
        size_bytes: u64,
        (drawn, wider): (IntervalId, IntervalId),
        is_kept: bool,
    ) {
        let size_bytes = size_bytes.min(MAX_OBJECT_BYTES);
        let wider_bytes = self.intervals.bytes(wider);
        let array = Drawn::of(size_bytes, self.intervals.bytes(drawn), wider_bytes);
        if let Some(thinned) = self.purses.thinned(payer) {
            thinned.drawn(&array, (!is_kept).then_some(wider_bytes));
        }
    }

    /// A sample of a class was passed over that would have been kept as under this interval
    /// ([`crate::sampling::class_thinning`]). Lock-free; on the allocating thread.
    pub fn pass_over(&self, payer: PurseId, interval: IntervalId) {
        self.purses
            .passed_over(payer, self.intervals.bytes(interval));
    }

    /// The widest interval for which a sample of a class was passed over, since the purse was opened; 0 for
    /// none. Any thread.
    #[must_use]
    pub fn passed_over_bytes(&self, purse: PurseId) -> u64 {
        self.purses.passed_over_bytes(purse)
    }

    /// The sums over a purse's thinned arrays. Any thread.
    #[must_use]
    pub fn thinned(&self, purse: PurseId) -> Thinned {
        let place = self.purses.thinned(purse);
        place.map_or_else(Thinned::default, ThinnedPlace::read)
    }

    /// Takes the freed arrays off the error of thinning, after a collection that has decided on large
    /// arrays and whose refunds are in. The enforcer alone.
    pub fn settle_thinned(&self) {
        for number in 0..self.purse_high_water() {
            if let Some(thinned) = self.purses.thinned(PurseId::new(number as u16)) {
                thinned.settle();
            }
        }
    }

    /// Returns the charge of a record, which follows from its size and its interval.
    fn charge_of(&self, record: &Record) -> Charge {
        weight::charge(record.size_bytes, self.intervals.bytes(record.interval))
    }

    /// Adds what inserted code has counted for a purse. One thread gathers it.
    pub fn count_exact(&self, purse: PurseId, gained: Exact) {
        self.purses.count_exact(purse, gained);
    }

    /// The amounts of a purse; zero if it was never opened. Any thread.
    #[must_use]
    pub fn totals(&self, purse: PurseId) -> Totals {
        self.purses.totals(purse)
    }

    /// How many bytes a purse may hold without a single sample; more have no sample in fewer than 5 %
    /// of cases. Depends on the widest interval in force since the purse was opened. Takes a lock:
    /// reporting threads.
    #[must_use]
    pub fn unseen_at_most_bytes(&self, purse: PurseId) -> u64 {
        let opened = self.purses.opened(purse);
        unseen_at_most_bytes(self.intervals.widest_since(opened))
    }

    /// Calls `each` with a class of a purse and what was ever allocated of it; [`UNKNOWN_CLASS`] is the
    /// sum of those that found no place.
    pub fn allocated_by_class(&self, purse: PurseId, each: impl FnMut(u32, ClassTotals)) {
        self.purses.classes(purse, each);
    }

    /// Every open purse has a number below this. With [`Ledger::is_open`], enumerates them.
    #[must_use]
    pub fn purse_high_water(&self) -> u32 {
        self.purses.high_water()
    }

    /// All open purses. Any thread.
    pub fn open_purses(&self) -> impl Iterator<Item = PurseId> {
        (0..self.purse_high_water())
            .map(|number| PurseId::new(number as u16))
            .filter(|&purse| self.is_open(purse))
    }

    /// Whether a purse is open. Any thread.
    #[must_use]
    pub fn is_open(&self, purse: PurseId) -> bool {
        self.purses.is_open(purse)
    }

    /// Calls `each` for every record, on a reporting thread, while charges and refunds
    /// go on: each record is whole; one that comes or goes meanwhile may be missed.
    ///
    /// `survived` is by the boundary as it was at the start.
    pub fn scan(&self, mut each: impl FnMut(&LiveRecord)) {
        #[cfg(test)]
        watched::scan_begins();
        let boundary = self.epochs.boundary();
        let large_decided = self.epochs.large_decided();
        let mut charges = Charges::default();
        for index in 0..self.slab.high_water() {
            if let Some((tag, record)) = self.slab.read(index) {
                let charge = charges.of(record.size_bytes, record.interval, || {
                    self.charge_of(&record)
                });
                let is_thinned = self.intervals.is_thinned(record.interval);
                let is_undecided = is_thinned && Some(record.birth) > large_decided;
                each(&LiveRecord {
                    tag,
                    payer: record.payer,
                    agent_account: record.agent_account,
                    principal: record.principal,
                    class: record.class,
                    birth: record.birth,
                    size_bytes: record.size_bytes,
                    charge,
                    survived: boundary.is_some_and(|boundary| record.birth <= boundary),
                    live: if is_undecided {
                        weight::charge(record.size_bytes, 0)
                    } else {
                        charge
                    },
                    is_thinned,
                    site: record.site,
                });
            }
        }
    }

    /// Erases the site of the record with this tag. If the record is gone, the one in its place may lose
    /// its site: it counts as one without a stack. Any thread, one atomic.
    pub fn erase_site(&self, tag: ObjectTag) {
        self.slab.erase_site(tag.index());
    }

    /// The purses that some record names as payer, agent account or principal.
    #[must_use]
    pub fn referenced_purses(&self) -> PurseSet {
        let mut referenced = PurseSet::empty();
        for index in 0..self.slab.high_water() {
            if let Some((_, record)) = self.slab.read(index) {
                referenced.insert(record.payer);
                referenced.insert(record.agent_account);
                referenced.insert(record.principal);
            }
        }
        referenced
    }

    /// Samples that came, dropped ones included.
    #[must_use]
    pub fn samples_total(&self) -> u64 {
        self.samples.sum()
    }

    /// Counts a sample that was dropped before it came to a charge.
    pub fn count_dropped(&self, reason: DropReason) {
        self.drops.count(reason);
    }

    /// Samples dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason)
    }

    /// How many objects were refunded: the input of [`QuietWindow`].
    #[must_use]
    pub fn frees_total(&self) -> u64 {
        self.frees.load(Ordering::Acquire)
    }

    /// Frees of tags that named no live record: always 0 unless the JVM reports an
    /// object twice.
    #[must_use]
    pub fn stale_frees(&self) -> u64 {
        self.stale_frees.load(Ordering::Relaxed)
    }

    /// Commits memory for that many records and purses beyond those ever used, so that
    /// allocating threads find it there. For a background thread; false if the system
    /// has none.
    pub fn grow_ahead(&self, records: u32, purses: u32) -> bool {
        self.slab.grow_ahead(records) && self.purses.grow_ahead(purses)
    }

    /// Native memory held, in bytes.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        size_of::<Self>() as u64
            + self.slab.committed_bytes()
            + self.purses.committed_bytes()
            + (crate::sampling::interval::MAX_INTERVALS * size_of::<u64>()) as u64
    }
}
