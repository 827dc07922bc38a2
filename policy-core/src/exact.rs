//! Exact accounts as a whole: whether inserted code counts, and what it cannot count.
//!
//! What it has counted is in the purses ([`crate::ledger::Ledger::count_exact`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// See the module.
#[derive(Debug, Default)]
pub struct ExactCounting {
    counting: AtomicBool,
    rewritten: AtomicU64,
    skipped: [AtomicU64; Skip::ALL.len()],
    lost_objects: AtomicU64,
}

/// One reading of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactStatus {
    /// Class files that were given counters since the agent was loaded.
    pub rewritten: u64,
    /// Class files of which something has no counters, by reason.
    pub skipped: Vec<(&'static str, u64)>,
    /// Objects that threads could not count while they were being made.
    pub lost_objects: u64,
}

impl ExactCounting {
    /// Inserted code counts, or has counted.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        self.counting.load(Ordering::Relaxed)
    }

    /// Inserted code counts from now on.
    pub fn begin(&self) {
        self.counting.store(true, Ordering::Relaxed);
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
            rewritten: self.rewritten.load(Ordering::Relaxed),
            skipped: (Skip::ALL.iter())
                .map(|why| {
                    let count = self.skipped[*why as usize].load(Ordering::Relaxed);
                    (why.as_str(), count)
                })
                .collect(),
            lost_objects: self.lost_objects.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
