//! Of which samples stacks are taken: rows, each an account's purse and a class, or a purse and all classes.
//!
//! # Rules
//! 1. While nobody wants a stack, a sample costs one load (`Wanted::any`).
//! 2. The rows of all askers are published together, in one step.
//! 3. Each asker has at most [`MAX_ROWS`] rows. Those beyond are left out, and the asker is told how many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::ledger::PurseId;

/// Rows of one asker at the most.
pub const MAX_ROWS: usize = 4096;

/// Who asks for stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The detector of leaks: for its suspects.
    Leaks,
    /// The policy: `sites` of `[leaks]`.
    Policy,
    /// Tests of a program, of what they allocate themselves.
    Tests,
}

impl Asker {
    const COUNT: usize = 3;
}

/// A purse, and one of its classes or all of them, of which stacks are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// The purse that is charged.
    pub purse: PurseId,
    /// The class, by the ledger's numbering; `None` for all classes.
    pub class: Option<u32>,
}

impl Row {
    /// A number for each row. Those of a purse with all classes come last.
    fn number(self) -> u64 {
        let class = self.class.map_or(1 << 32, u64::from);
        u64::from(self.purse.get()) << 33 | class
    }
}

/// Rows, looked up by purse first.
#[derive(Debug, Default)]
struct Set {
    /// A bit for each purse that has a row.
    purses: Vec<u64>,
    /// The numbers of the rows, ascending.
    rows: Vec<u64>,
}

impl Set {
    fn of(rows: impl Iterator<Item = Row>) -> Set {
        let mut set = Set {
            purses: vec![0; (1 << 16) / 64],
            rows: Vec::new(),
        };
        for row in rows {
            let purse = usize::from(row.purse.get());
            set.purses[purse / 64] |= 1 << (purse % 64);
            set.rows.push(row.number());
        }
        set.rows.sort_unstable();
        set.rows.dedup();
        set
    }

    fn has(&self, purse: PurseId, class: u32) -> bool {
        let number = usize::from(purse.get());
        let has_purse =
            (self.purses.get(number / 64)).is_some_and(|word| word >> (number % 64) & 1 != 0);
        has_purse
            && [Some(class), None].into_iter().any(|class| {
                (self.rows)
                    .binary_search(&Row { purse, class }.number())
                    .is_ok()
            })
    }
}

/// The wanted rows. See the module.
#[derive(Debug)]
pub(super) struct Wanted {
    any: AtomicBool,
    set: ArcSwap<Set>,
    askers: Mutex<[Vec<Row>; Asker::COUNT]>,
}

/// The outcome of a request: whether the rows changed, and how many were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whether the rows of all askers have changed.
    pub changed: bool,
    /// Rows beyond [`MAX_ROWS`], which were left out.
    pub left_out: usize,
}

impl Wanted {
    pub(super) fn new() -> Wanted {
        Wanted {
            any: AtomicBool::new(false),
            set: ArcSwap::default(),
            askers: Mutex::default(),
        }
    }

    /// Whether any row is wanted. One load; any thread.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether stacks are wanted of this purse and class. Lock-free; any thread.
    pub(super) fn has(&self, purse: PurseId, class: u32) -> bool {
        self.set.load().has(purse, class)
    }

    /// The purses that have a row. Agent threads.
    pub(super) fn purses(&self) -> Vec<PurseId> {
        let askers = self.askers.lock().unwrap_or_else(|e| e.into_inner());
        let mut purses: Vec<PurseId> = askers.iter().flatten().map(|row| row.purse).collect();
        purses.sort_unstable();
        purses.dedup();
        purses
    }

    /// Replaces the rows of an asker. Agent threads.
    pub(super) fn set(&self, asker: Asker, mut rows: Vec<Row>) -> Asked {
        rows.sort_unstable();
        rows.dedup();
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        let mut askers = self.askers.lock().unwrap_or_else(|e| e.into_inner());
        let own = &mut askers[asker as usize];
        let changed = *own != rows;
        if changed {
            *own = rows;
            let set = Set::of(askers.iter().flatten().copied());
            let any = !set.rows.is_empty();
            self.set.store(set.into());
            self.any.store(any, Ordering::Relaxed);
        }
        Asked { changed, left_out }
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        let set = self.set.load();
        ((set.purses.capacity() + set.rows.capacity()) * size_of::<u64>()) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn row(purse: u16, class: Option<u32>) -> Row {
        Row {
            purse: PurseId::new(purse),
            class,
        }
    }

    #[test]
    fn rows_of_two_askers_add_up_and_go_with_theirs() {
        let wanted = Wanted::new();
        assert!(!wanted.any());
        wanted.set(
            Asker::Leaks,
            vec![row(3, Some(7)), row(3, Some(7)), row(4, Some(u32::MAX))],
        );
        wanted.set(Asker::Policy, vec![row(5, None)]);
        let has = |purse, class| wanted.has(PurseId::new(purse), class);
        assert!(wanted.any() && has(3, 7) && has(4, u32::MAX));
        assert!(!has(3, 8) && !has(4, 7) && !has(7, 7));
        assert!(has(5, 0) && has(5, u32::MAX));
        assert!(wanted.set(Asker::Leaks, Vec::new()).changed);
        assert!(!wanted.set(Asker::Leaks, Vec::new()).changed);
        assert!(!has(3, 7) && has(5, 7));
        wanted.set(Asker::Tests, vec![row(5, Some(7))]);
        wanted.set(Asker::Policy, Vec::new());
        assert!(wanted.any() && has(5, 7) && !has(5, 8));
        wanted.set(Asker::Tests, Vec::new());
        assert!(!wanted.any() && !has(5, 7));
    }

    #[test]
    fn rows_are_bounded() {
        let wanted = Wanted::new();
        let rows = (0..2 * MAX_ROWS as u32).map(|class| row(1, Some(class)));
        let asked = wanted.set(Asker::Leaks, rows.collect());
        assert_eq!(asked.left_out, MAX_ROWS);
        assert!(wanted.has(PurseId::new(1), 0));
        assert!(!wanted.has(PurseId::new(1), 2 * MAX_ROWS as u32 - 1));
    }
}
