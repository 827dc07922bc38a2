//! Purses: the smallest things that are charged.
//!
//! # Rules
//! 1. What came in and what went back are two sums that only grow (modulo 2^64);
//!    charged is their difference. A charge is then three adds rather than five, the
//!    allocated totals come for nothing, and allocating threads and the freeing thread
//!    write to different cache lines. Differences modulo 2^64 are exact as long as the
//!    charged amount itself fits (shown in [`crate::sampling::weight`]).
//! 2. A refund is added with Release, and the refunded sums are read first, with
//!    Acquire: every refund that a reader sees comes with its charge, so no reader sees
//!    a negative amount.
//! 3. The sum of allocated objects counts in 2^-16 and would wrap after 2^48 objects,
//!    days of the fastest allocation. [`WideCounter`] carries.
//! 4. A purse is open or closed; [`PurseId::UNACCOUNTED`] is always open. Only the enforcer closes
//!    purses, when nothing refers to them and their charge is zero (see [`super::closing`]). It gives
//!    the number back in a second step, so that it can forget the owner in between. Closing does not
//!    change the sums; it sets the base from which the totals of the next owner start. So a charge
//!    that races with the closing is not lost: it is in the sums of the next owner, and so will be
//!    its refund.

use super::chunks::Chunks;
use super::classes::{Budget, ClassTable, ClassTotals, MAX_CLASS_TABLE_BYTES};
use super::pool::IndexPool;
use super::thinned::ThinnedPlace;
use crate::sampling::{Charge, weight::OBJECT_UNIT};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The number of a purse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PurseId(u16);

impl PurseId {
    /// The reserved purse of charges that belong to no other; always open.
    pub const UNACCOUNTED: Self = Self(0);

    /// The purse of this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The amounts of one purse, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Charges less refunds.
    pub charged: Charge,
    /// Bytes ever charged, since the purse was opened.
    pub allocated_bytes: u64,
    /// Objects ever charged, rounded down.
    pub allocated_objects: u64,
    /// Variance of `allocated_bytes`, in the units of [`Charge::variance`].
    pub allocated_variance: u64,
    /// The allocations that inserted code has counted since the purse was opened.
    pub exact: Exact,
}

/// Allocations counted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exact {
    /// Their bytes.
    pub bytes: u64,
    /// Their number.
    pub objects: u64,
}

impl std::ops::AddAssign for Exact {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.objects = self.objects.wrapping_add(other.objects);
    }
}

impl std::ops::Sub for Exact {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_sub(other.bytes),
            objects: self.objects.wrapping_sub(other.objects),
        }
    }
}

/// The sum of two totals: for accounts, which are sums of purses.
impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.charged += other.charged;
        self.allocated_bytes = self.allocated_bytes.wrapping_add(other.allocated_bytes);
        self.allocated_objects = (self.allocated_objects).wrapping_add(other.allocated_objects);
        self.allocated_variance = (self.allocated_variance).wrapping_add(other.allocated_variance);
        self.exact += other.exact;
    }
}

/// A counter of 2^-16 objects that may pass 2^64.
///
/// It counts how often its top bit flipped. The thread whose add flips it counts the
/// flip a moment later; a reader that comes between finds the bit at odds with the
/// parity of the count, and knows that one flip is still to be counted. (It cannot be
/// two: the next flip is 2^47 objects away.)
#[derive(Debug, Default)]
struct WideCounter {
    low: AtomicU64,
    flips: AtomicU64,
}

impl WideCounter {
    fn add(&self, amount: u64) {
        let before = self.low.fetch_add(amount, Ordering::Relaxed);
        if (before ^ before.wrapping_add(amount)) >> 63 != 0 {
            self.flips.fetch_add(1, Ordering::Release);
        }
    }

    /// The amount modulo 2^64.
    fn low(&self) -> u64 {
        self.low.load(Ordering::Relaxed)
    }

    /// All of it.
    fn wide(&self) -> u128 {
        // Flips first: the bit can then only be ahead of the count, by one.
        let flips = self.flips.load(Ordering::Acquire);
        let low = self.low();
        let flips = flips + ((flips & 1) ^ (low >> 63));
        u128::from(flips >> 1) << 64 | u128::from(low)
    }
}

/// Written by allocating threads: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Allocated {
    bytes: AtomicU64,
    objects: WideCounter,
    variance: AtomicU64,
    classes: ClassTable,
}

/// Written by the thread that reports frees, and by the enforcer: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Refunded {
    bytes: AtomicU64,
    objects: AtomicU64,
    variance: AtomicU64,
    open: AtomicU32,
    /// The latest change of the interval when it was opened.
    opened: AtomicU32,
    /// The bytes, objects and variance that earlier owners had allocated.
    base_bytes: AtomicU64,
    base_objects: AtomicU64,
    base_variance: AtomicU64,
    /// The widest interval for which a sample of a class was passed over; 0 for none. Allocating threads
    /// write it, once for each wider interval.
    passed_over_bytes: AtomicU64,
}

/// Written by the thread that gathers what inserted code has counted, and by the enforcer.
#[derive(Debug, Default)]
struct ExactPlace {
    bytes: AtomicU64,
    objects: AtomicU64,
    /// The bytes and objects that earlier owners had allocated.
    base_bytes: AtomicU64,
    base_objects: AtomicU64,
}

impl ExactPlace {
    fn read(&self) -> Exact {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Exact {
            bytes: load(&self.bytes).wrapping_sub(load(&self.base_bytes)),
            objects: load(&self.objects).wrapping_sub(load(&self.base_objects)),
        }
    }

    fn add(&self, gained: Exact) {
        self.bytes.fetch_add(gained.bytes, Ordering::Relaxed);
        self.objects.fetch_add(gained.objects, Ordering::Relaxed);
    }

    /// Begins anew behind what was read.
    fn begin(&self, read: Exact) {
        self.base_bytes.fetch_add(read.bytes, Ordering::Relaxed);
        (self.base_objects).fetch_add(read.objects, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Purse {
    allocated: Allocated,
    refunded: Refunded,
    exact: ExactPlace,
    thinned: ThinnedPlace,
}

impl Purse {
    fn objects_ever(&self) -> u64 {
        (self.allocated.objects.wide() / u128::from(OBJECT_UNIT)) as u64
    }

    fn totals(&self) -> Totals {
        // Rule 2: refunds first.
        let bytes = self.refunded.bytes.load(Ordering::Acquire);
        let objects = self.refunded.objects.load(Ordering::Acquire);
        let variance = self.refunded.variance.load(Ordering::Acquire);
        let allocated_bytes = self.allocated.bytes.load(Ordering::Relaxed);
        let allocated_variance = self.allocated.variance.load(Ordering::Relaxed);
        Totals {
            charged: Charge {
                bytes: allocated_bytes.wrapping_sub(bytes),
                objects: self.allocated.objects.low().wrapping_sub(objects),
                variance: allocated_variance.wrapping_sub(variance),
            },
            allocated_bytes: allocated_bytes
                .wrapping_sub(self.refunded.base_bytes.load(Ordering::Relaxed)),
            allocated_objects: (self.objects_ever())
                .saturating_sub(self.refunded.base_objects.load(Ordering::Relaxed)),
            allocated_variance: allocated_variance
                .wrapping_sub(self.refunded.base_variance.load(Ordering::Relaxed)),
            exact: self.exact.read(),
        }
    }
}

/// A closed purse with its final amounts. The purse can be opened again after this value is given back,
/// which is possible once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the purse's number is lost unless it is given back"]
pub struct Closed {
    /// The purse.
    pub purse: PurseId,
    /// Its final totals; the charge is zero.
    pub totals: Totals,
    /// Its allocated bytes by class ([`super::UNKNOWN_CLASS`] for the rest).
    pub classes: Vec<(u32, u64)>,
}

#[cfg(not(loom))]
const PURSES_PER_CHUNK: usize = 64;
#[cfg(loom)]
const PURSES_PER_CHUNK: usize = 2;

/// All purses of a ledger.
#[derive(Debug)]
pub(crate) struct Purses {
    purses: Chunks<Purse, PURSES_PER_CHUNK>,
    pool: IndexPool,
    class_budget: Budget,
}

impl Purses {
    /// [`PurseId::UNACCOUNTED`] and room for others up to `capacity` (at most 65,536).
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << u16::BITS);
        let this = Self {
            purses: Chunks::new(capacity),
            pool: IndexPool::new(capacity, 1),
            class_budget: Budget::new(MAX_CLASS_TABLE_BYTES),
        };
        let reserved = this.open(0);
        debug_assert_eq!(reserved, Some(PurseId::UNACCOUNTED));
        this
    }

    /// Opens a purse; `change` is the latest change of the interval. Lock-free, any thread;
    /// allocates at the first touch of a chunk.
    pub(crate) fn open(&self, change: u32) -> Option<PurseId> {
        let index = self.pool.pop(0)?;
        let Some(purse) = self.purses.get_or_grow(index) else {
            self.pool.push(index);
            return None;
        };
        purse.thinned.reset();
        purse.refunded.passed_over_bytes.store(0, Ordering::Relaxed);
        purse.refunded.opened.store(change, Ordering::Relaxed);
        purse.refunded.open.store(1, Ordering::Release);
        Some(PurseId(index as u16))
    }

    fn get(&self, id: PurseId) -> Option<&Purse> {
        self.purses.get(u32::from(id.0))
    }

    pub(crate) fn charge(&self, id: PurseId, class: u32, charge: &Charge) {
        if let Some(purse) = self.get(id) {
            let allocated = &purse.allocated;
            allocated.bytes.fetch_add(charge.bytes, Ordering::Relaxed);
            allocated.objects.add(charge.objects);
            allocated
                .variance
                .fetch_add(charge.variance, Ordering::Relaxed);
            allocated.classes.add(class, charge, &self.class_budget);
        }
    }

    pub(crate) fn refund(&self, id: PurseId, charge: &Charge) {
        if let Some(purse) = self.get(id) {
            let refunded = &purse.refunded;
            refunded.bytes.fetch_add(charge.bytes, Ordering::Release);
            refunded
                .objects
                .fetch_add(charge.objects, Ordering::Release);
            refunded
                .variance
                .fetch_add(charge.variance, Ordering::Release);
        }
    }

    pub(crate) fn count_exact(&self, id: PurseId, gained: Exact) {
        if let Some(purse) = self.get(id) {
            purse.exact.add(gained);
        }
    }

    pub(crate) fn totals(&self, id: PurseId) -> Totals {
        self.get(id).map_or_else(Totals::default, Purse::totals)
    }

    /// A sample was passed over that would have been kept as under this interval. Allocating threads.
    pub(crate) fn passed_over(&self, id: PurseId, interval_bytes: u64) {
        if let Some(purse) = self.get(id) {
            let widest = &purse.refunded.passed_over_bytes;
            if widest.load(Ordering::Relaxed) < interval_bytes {
                widest.fetch_max(interval_bytes, Ordering::Relaxed);
            }
        }
    }

    /// The widest interval for which a sample of a class was passed over; 0 for none.
    pub(crate) fn passed_over_bytes(&self, id: PurseId) -> u64 {
        let widest = |purse: &Purse| purse.refunded.passed_over_bytes.load(Ordering::Relaxed);
        self.get(id).map_or(0, widest)
    }

    /// The sums over its thinned arrays; `None` if it was never opened.
    pub(crate) fn thinned(&self, id: PurseId) -> Option<&ThinnedPlace> {
        self.get(id).map(|purse| &purse.thinned)
    }

    /// The latest change of the interval when it was opened.
    pub(crate) fn opened(&self, id: PurseId) -> u32 {
        self.get(id)
            .map_or(0, |purse| purse.refunded.opened.load(Ordering::Relaxed))
    }

    pub(crate) fn classes(&self, id: PurseId, each: impl FnMut(u32, ClassTotals)) {
        if let Some(purse) = self.get(id) {
            purse.allocated.classes.for_each(each);
        }
    }

    pub(crate) fn is_open(&self, id: PurseId) -> bool {
        self.get(id)
            .is_some_and(|purse| purse.refunded.open.load(Ordering::Acquire) == 1)
    }

    /// Closes a purse that holds nothing; `None` if it is not open, still holds a charge, or
    /// is the reserved one. The enforcer alone.
    pub(crate) fn close(&self, id: PurseId) -> Option<Closed> {
        let purse = self.get(id)?;
        let totals = purse.totals();
        if id == PurseId::UNACCOUNTED || totals.charged != Charge::default() {
            return None;
        }
        // One closes it, so that there is one to give back.
        purse
            .refunded
            .open
            .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        let refunded = &purse.refunded;
        refunded
            .base_bytes
            .fetch_add(totals.allocated_bytes, Ordering::Relaxed);
        refunded
            .base_objects
            .fetch_add(totals.allocated_objects, Ordering::Relaxed);
        refunded
            .base_variance
            .fetch_add(totals.allocated_variance, Ordering::Relaxed);
        purse.exact.begin(totals.exact);
        let mut classes = Vec::new();
        purse
            .allocated
            .classes
            .drain(|class, totals| classes.push((class, totals.bytes)));
        Some(Closed {
            purse: id,
            totals,
            classes,
        })
    }

    /// Makes the number of a closed purse free: it may be opened again from now on.
    pub(crate) fn give_back(&self, closed: Closed) {
        self.pool.push(u32::from(closed.purse.0));
    }

    /// Every purse ever opened has a number below this.
    pub(crate) fn high_water(&self) -> u32 {
        // Numbers are taken in blocks: those not yet opened are closed.
        self.pool.high_water()
    }

    /// Commits memory for every purse below `margin` beyond those ever used.
    pub(crate) fn grow_ahead(&self, margin: u32) -> bool {
        let upto = self.high_water().saturating_add(margin);
        self.pool.grow_ahead(upto) && self.purses.grow_ahead(upto)
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.purses.committed_bytes() + self.pool.committed_bytes() + self.class_budget.used_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_counter_passes_a_word() {
        let counter = WideCounter::default();
        let step = 3u64 << 61;
        for turn in 1..=40u128 {
            counter.add(step);
            assert_eq!(counter.wide(), turn * u128::from(step));
        }
    }

    #[test]
    fn a_flip_not_yet_counted_is_known_by_its_parity() {
        for flips in 0..8u64 {
            let counter = WideCounter::default();
            // The low word after that many flips, counted and about to be.
            let low = (flips & 1) << 63 | 5;
            counter.low.store(low, Ordering::Relaxed);
            for counted in [flips, flips.saturating_sub(1)] {
                counter.flips.store(counted, Ordering::Relaxed);
                let expected = u128::from(flips >> 1) << 64 | u128::from(low);
                assert_eq!(counter.wide(), expected, "{counted} of {flips}");
            }
        }
    }
}
