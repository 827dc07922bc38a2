//! Exact accounts as a whole: whether inserted code counts, and what it cannot count.
//!
//! The counts are in the purses ([`crate::ledger::Ledger::count_exact`]).
//!
//! # The remainder
//! The JVM has a figure of its own for what its threads allocate. Its growth less the growth of all counts is
//! what code cannot count (the JVM's own, native code's, hidden classes'), less what was counted and never
//! made, because the compiler proved it unneeded. [`Compared`] sums both growths over the times in which the
//! counters were in all classes; so counts plus remainder are the JVM's figure by construction. A look reads
//! both one after the other, so the remainder is off by what is allocated in between; that does not add up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a class, or a method of one, is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The class file is older than Java 5, whose code cannot name classes as values.
    Old,
    /// The rewriter does not understand something of it.
    NotUnderstood,
    /// A method would become longer than 64 KB, or the class would have too many constants.
    TooLong,
    /// The JVM does not let it be changed, or refused the new code.
    NotModifiable,
    /// It is a part of the JDK's own machinery of virtual threads, where nothing may be called.
    ThreadMachinery,
    /// More classes are instantiated than the counter has numbers for.
    TooManyClasses,
}

impl Skip {
    /// All of them.
    pub const ALL: [Skip; 6] = [
        Skip::Old,
        Skip::NotUnderstood,
        Skip::TooLong,
        Skip::NotModifiable,
        Skip::ThreadMachinery,
        Skip::TooManyClasses,
    ];

    /// As it is published.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Skip::Old => "old",
            Skip::NotUnderstood => "not_understood",
            Skip::TooLong => "too_long",
            Skip::NotModifiable => "not_modifiable",
            Skip::ThreadMachinery => "thread_machinery",
            Skip::TooManyClasses => "too_many_classes",
        }
    }
}

/// The bytes allocated while counters were in all classes, counted in two ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// The growth of the JVM's own figure for its threads, in bytes.
    pub jvm_bytes: u64,
    /// The bytes that inserted code counted meanwhile, for all accounts together.
    pub counted_bytes: u64,
}

impl Compared {
    /// Returns the bytes that the JVM has seen and inserted code has not; negative where more was counted and never
    /// made.
    #[must_use]
    pub fn remainder_bytes(self) -> i64 {
        // Each is less than 2^63 for any time that a JVM can run.
        self.jvm_bytes.wrapping_sub(self.counted_bytes) as i64
    }
}

/// Sums both growths from look to look. The thread that gathers counts has one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Comparison {
    last: Option<Compared>,
    sum: Compared,
}

impl Comparison {
    /// Counters were taken out, or are put in: what was allocated since the latest look is in neither sum.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// A look: both figures since whenever. Returns the sums over all looks that were not interrupted.
    pub fn look(&mut self, now: Compared) -> Compared {
        if let Some(last) = self.last {
            let since = |now: u64, last: u64| now.saturating_sub(last);
            self.sum.jvm_bytes += since(now.jvm_bytes, last.jvm_bytes);
            self.sum.counted_bytes += since(now.counted_bytes, last.counted_bytes);
        }
        self.last = Some(now);
        self.sum
    }
}

/// The calls and objects that calling contexts could not count as they should.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextOverflow {
    /// Contexts in the tree, the root not counted.
    pub contexts: u64,
    /// Calls that found no room for a context, and objects that were counted for the context above, by reason: the
    /// tree is too deep, has too many contexts, or too many types in them.
    pub by_reason: [(u64, u64); 3],
    /// Objects that were not counted at all.
    pub lost_objects: u64,
    /// Bytes of the tree, on the Java heap and beside it.
    pub memory_bytes: u64,
}

impl ContextOverflow {
    /// The reasons as they are published.
    pub const REASONS: [&'static str; 3] = ["depth", "contexts", "types"];
}

/// See the module.
#[derive(Debug, Default)]
pub struct ExactCounting {
    counting: AtomicBool,
    is_on: AtomicBool,
    compared: Mutex<Option<Compared>>,
    /// Of accounts, not of contexts alone.
    accounts: AtomicBool,
    /// Locked by the agent's threads alone.
    contexts: Mutex<Option<ContextOverflow>>,
    rewritten: AtomicU64,
    skipped: [AtomicU64; Skip::ALL.len()],
    lost_objects: AtomicU64,
}

/// One reading of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactStatus {
    /// Counters are in all classes now.
    pub is_on: bool,
    /// Counts beside the JVM's own figure; `None` before two looks, or if the JVM does not say.
    pub compared: Option<Compared>,
    /// Class files that were given counters since the agent was loaded.
    pub rewritten: u64,
    /// Class files of which something has no counters, by reason.
    pub skipped: Vec<(&'static str, u64)>,
    /// Objects that threads could not count while they were being made.
    pub lost_objects: u64,
    /// Of calling contexts; `None` if there were none.
    pub contexts: Option<ContextOverflow>,
}

impl ExactCounting {
    /// Inserted code counts, or has counted.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        self.counting.load(Ordering::Relaxed)
    }

    /// Inserted code counts for accounts, or has.
    #[must_use]
    pub fn counts_accounts(&self) -> bool {
        self.accounts.load(Ordering::Relaxed)
    }

    /// Inserted code counts for accounts from now on.
    pub fn begin_accounts(&self) {
        self.accounts.store(true, Ordering::Relaxed);
    }

    fn contexts(&self) -> MutexGuard<'_, Option<ContextOverflow>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The figures of calling contexts are these.
    pub fn contexts_are(&self, figures: ContextOverflow) {
        *self.contexts() = Some(figures);
    }

    /// Inserted code counts from now on.
    pub fn begin(&self) {
        self.counting.store(true, Ordering::Relaxed);
    }

    /// Whether counters are in all classes now. One load; any thread.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Counters are in all classes from now on, or in none.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Stores the latest comparison. Agent threads.
    pub fn set_compared(&self, compared: Compared) {
        *self.compared() = Some(compared);
    }

    fn compared(&self) -> MutexGuard<'_, Option<Compared>> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A class file was given counters.
    pub fn rewritten(&self) {
        self.rewritten.fetch_add(1, Ordering::Relaxed);
    }

    /// Something of a class file has no counters.
    pub fn skipped(&self, why: Skip) {
        self.skipped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// So many objects were lost since the start.
    pub fn lost(&self, objects: u64) {
        self.lost_objects.store(objects, Ordering::Relaxed);
    }

    /// A reading; `None` if nothing was ever counted.
    #[must_use]
    pub fn status(&self) -> Option<ExactStatus> {
        self.is_counting().then(|| ExactStatus {
            is_on: self.is_on(),
            compared: *self.compared(),
            rewritten: self.rewritten.load(Ordering::Relaxed),
            skipped: (Skip::ALL.iter())
                .map(|why| {
                    let count = self.skipped[*why as usize].load(Ordering::Relaxed);
                    (why.as_str(), count)
                })
                .collect(),
            lost_objects: self.lost_objects.load(Ordering::Relaxed),
            contexts: *self.contexts(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_growths_are_summed_over_the_same_times() {
        let figures = |jvm_bytes, counted_bytes| Compared {
            jvm_bytes,
            counted_bytes,
        };
        let mut comparison = Comparison::default();
        assert_eq!(comparison.look(figures(1000, 50)), Compared::default());
        assert_eq!(comparison.look(figures(1500, 540)), figures(500, 490));
        comparison.interrupt();
        assert_eq!(comparison.look(figures(9000, 600)), figures(500, 490));
        let sum = comparison.look(figures(9100, 720));
        assert_eq!(sum, figures(600, 610));
        assert_eq!(sum.remainder_bytes(), -10);
        assert_eq!(figures(7, 3).remainder_bytes(), 4);
    }

    #[test]
    fn nothing_is_told_before_it_counts_and_each_reason_has_its_place() {
        let exact = ExactCounting::default();
        exact.skipped(Skip::Old);
        assert_eq!(exact.status(), None);
        exact.begin();
        for (place, why) in Skip::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, place);
            exact.skipped(why);
        }
        let skipped = exact.status().unwrap().skipped;
        assert_eq!(skipped[0], ("old", 2));
        assert!(skipped[1..].iter().all(|(_, count)| *count == 1));
    }
}
