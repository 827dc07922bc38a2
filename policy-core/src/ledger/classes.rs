//! Bytes and objects allocated by class within one purse.
//!
//! # Rules
//! 1. Insert-only open addressing in three tiers of growing size, each built when the
//!    one before has no place along a class's probe path. A class is looked for along
//!    one fixed path and inserted at its first free place by one exchange; a loser looks
//!    again at that same place. So a class has one entry, and readers that sum by class
//!    would not mind a second.
//! 2. Bytes of a class that finds no place go to `other`: no bytes are lost, only their class.
//! 3. Tiers are bought from a budget shared by all purses, so that a tenant with many
//!    purses and many classes cannot make this table grow without bound.
//! 4. Clearing (when a purse is closed) keeps the tiers for the next owner. A charge that races with
//!    the clearing may count for the class that takes the place next. So the caller clears only
//!    purses that nobody charges.

use once_cell::race::OnceBox;

use super::chunks::boxed_array;
use crate::sampling::{Charge, weight::OBJECT_UNIT};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The class of objects whose class is not known; kept under `other`.
pub const UNKNOWN_CLASS: u32 = u32::MAX;

#[cfg(not(loom))]
const TIER_SLOTS: [usize; 3] = [64, 512, 4096];
#[cfg(loom)]
const TIER_SLOTS: [usize; 3] = [1, 1, 1];

/// How far a class is looked for in one tier.
const PROBES: usize = 8;

/// Native memory that all class tables together may take, in bytes.
pub const MAX_CLASS_TABLE_BYTES: u64 = 64 << 20;

/// The bytes taken of [`MAX_CLASS_TABLE_BYTES`] so far; shared by the purses of one ledger.
#[derive(Debug)]
pub(crate) struct Budget {
    used_bytes: AtomicU64,
    limit_bytes: u64,
}

impl Budget {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            used_bytes: AtomicU64::new(0),
            limit_bytes,
        }
    }

    fn take(&self, bytes: u64) -> bool {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.limit_bytes {
            self.give_back(bytes);
            return false;
        }
        true
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// The sum of all allocations ever made of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Bytes.
    pub bytes: u64,
    /// Estimated number of objects.
    pub objects: u64,
}

/// [`Sums::objects`] counts in units of one part in this many: a sum of 2^56 objects does not wrap, and
/// the rounding of a sample that stands for one object is none.
const OBJECT_PARTS: u64 = 1 << 8;

#[derive(Debug, Default)]
struct Sums {
    bytes: AtomicU64,
    objects: AtomicU64,
}

impl Sums {
    fn add(&self, charge: &Charge) {
        self.bytes.fetch_add(charge.bytes, Ordering::Relaxed);
        let parts = charge.objects / (OBJECT_UNIT / OBJECT_PARTS);
        self.objects.fetch_add(parts, Ordering::Relaxed);
    }

    fn read(&self) -> ClassTotals {
        ClassTotals {
            bytes: self.bytes.load(Ordering::Relaxed),
            objects: rounded(self.objects.load(Ordering::Relaxed)),
        }
    }

    fn take(&self) -> ClassTotals {
        ClassTotals {
            bytes: self.bytes.swap(0, Ordering::Relaxed),
            objects: rounded(self.objects.swap(0, Ordering::Relaxed)),
        }
    }
}

fn rounded(parts: u64) -> u64 {
    parts.saturating_add(OBJECT_PARTS / 2) / OBJECT_PARTS
}

#[derive(Debug, Default)]
struct Slot {
    /// Class + 1; 0 is free.
    key: AtomicU32,
    sums: Sums,
}

#[derive(Debug)]
struct Tier<const N: usize>(OnceBox<[Slot; N]>);

impl<const N: usize> Default for Tier<N> {
    fn default() -> Self {
        let tier = Self(OnceBox::new());
        if cfg!(loom) {
            // As in `chunks`: loom does not see what `once_cell` synchronises.
            tier.install();
        }
        tier
    }
}

impl<const N: usize> Tier<N> {
    fn get(&self) -> &[Slot] {
        self.0.get().map_or(&[], |slots| slots.as_slice())
    }

    fn get_or_build(&self, budget: &Budget) -> &[Slot] {
        match self.0.get() {
            Some(slots) => slots,
            None => self.build(budget),
        }
    }

    #[cold]
    fn build(&self, budget: &Budget) -> &[Slot] {
        let bytes = size_of::<[Slot; N]>() as u64;
        if budget.take(bytes) && !self.install() {
            budget.give_back(bytes);
        }
        self.get()
    }

    fn install(&self) -> bool {
        boxed_array().is_some_and(|slots| self.0.set(slots).is_ok())
    }
}

/// Finds or makes the entry of `key`; `None` if its path is full.
fn entry(slots: &[Slot], key: u32) -> Option<&Sums> {
    // Fibonacci hashing; class ids are small consecutive numbers.
    let hash = (key.wrapping_mul(0x9E37_79B1) >> 16) as usize;
    for step in 0..PROBES.min(slots.len()) {
        // Tiers have powers of two of slots.
        let slot = &slots[(hash + step) & (slots.len() - 1)];
        let found = match slot.key.load(Ordering::Relaxed) {
            0 => slot
                .key
                .compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|winner| winner, |_| key),
            found => found,
        };
        if found == key {
            return Some(&slot.sums);
        }
    }
    None
}

/// Bytes and objects by class.
#[derive(Debug, Default)]
pub(crate) struct ClassTable {
    small: Tier<{ TIER_SLOTS[0] }>,
    medium: Tier<{ TIER_SLOTS[1] }>,
    large: Tier<{ TIER_SLOTS[2] }>,
    other: Sums,
}

impl ClassTable {
    /// Adds a charge to `class`. Lock-free, any thread; allocates when a tier is built.
    pub(crate) fn add(&self, class: u32, charge: &Charge, budget: &Budget) {
        let place = class.checked_add(1).and_then(|key| {
            entry(self.small.get_or_build(budget), key)
                .or_else(|| entry(self.medium.get_or_build(budget), key))
                .or_else(|| entry(self.large.get_or_build(budget), key))
        });
        place.unwrap_or(&self.other).add(charge);
    }

    /// Calls `each` for every class with bytes, [`UNKNOWN_CLASS`] standing for what has no entry of its
    /// own.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32, ClassTotals)) {
        for slot in self.slots() {
            let key = slot.key.load(Ordering::Relaxed);
            tell(&mut each, key, slot.sums.read());
        }
        tell(&mut each, 0, self.other.read());
    }

    /// Takes everything out, calling `each` as [`ClassTable::for_each`].
    pub(crate) fn drain(&self, mut each: impl FnMut(u32, ClassTotals)) {
        for slot in self.slots() {
            let key = slot.key.swap(0, Ordering::Relaxed);
            tell(&mut each, key, slot.sums.take());
        }
        tell(&mut each, 0, self.other.take());
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.small
            .get()
            .iter()
            .chain(self.medium.get())
            .chain(self.large.get())
    }
}

fn tell(each: &mut impl FnMut(u32, ClassTotals), key: u32, totals: ClassTotals) {
    if totals.bytes != 0 {
        each(key.checked_sub(1).unwrap_or(UNKNOWN_CLASS), totals);
    }
}
