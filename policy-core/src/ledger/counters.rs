//! Counters of the ledger as a whole, kept off the paths that contend.

use crate::sync::{AtomicU64, Ordering};

/// Why a sample was not charged to a record. Names are published as the `reason` label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum DropReason {
    /// Every record is taken: the object is counted as allocated, but not tracked.
    TableFull,
    /// The system had no native memory for another chunk of records.
    NoMemory,
    /// The JVM refused the tag: the charge was taken back at once.
    TagFailed,
}

impl DropReason {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::TableFull, Self::NoMemory, Self::TagFailed];

    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TableFull => "table_full",
            Self::NoMemory => "no_memory",
            Self::TagFailed => "tag_failed",
        }
    }
}

/// One counter for each [`DropReason`].
#[derive(Debug, Default)]
pub(crate) struct Drops([AtomicU64; DropReason::ALL.len()]);

impl Drops {
    pub(crate) fn count(&self, reason: DropReason) {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize].load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

/// A counter in several cache lines, for threads to count side by side.
#[derive(Debug)]
pub(crate) struct Striped(Box<[Stripe]>);

impl Striped {
    pub(crate) fn new(stripes: usize) -> Self {
        Self((0..stripes.max(1)).map(|_| Stripe::default()).collect())
    }

    pub(crate) fn increment(&self, hint: usize) {
        self.0[hint % self.0.len()]
            .0
            .fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0
            .iter()
            .map(|stripe| stripe.0.load(Ordering::Relaxed))
            .sum()
    }
}
