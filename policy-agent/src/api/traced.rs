//! Purses of tests that leak: stacks are taken of what they are charged.
//!
//! A thread of the host only notes its wish. The agent's thread that takes the next reading asks for the
//! stacks, and reads the sites with it.

use std::sync::{Mutex, MutexGuard};

use policy_core::Core;

use crate::ledger::PurseId;
use crate::sites::reading::{self, SitesReading};
use crate::sites::wanted::{Asker, Row};

/// Purses at the most: tests that leak are few at a time. Further ones get no stacks.
const MOST: usize = 16;

/// The purses. See the module.
#[derive(Debug, Default)]
pub(crate) struct Traced(Mutex<Wishes>);

#[derive(Debug, Default)]
struct Wishes {
    purses: Vec<PurseId>,
    /// They differ from what was asked for.
    is_new: bool,
}

impl Traced {
    /// From the next reading on, stacks are taken of what this purse is charged; or no more.
    pub(crate) fn trace(&self, purse: PurseId, on: bool) {
        let mut wishes = self.wishes();
        let before = wishes.purses.len();
        wishes.purses.retain(|&one| one != purse);
        if on && wishes.purses.len() < MOST {
            wishes.purses.push(purse);
        }
        wishes.is_new |= on || before != wishes.purses.len();
    }

    /// Asks for the stacks. The sites of all accounts, if any purse is traced. On a thread of the agent that
    /// takes a reading.
    pub(crate) fn read(&self, core: &Core) -> Option<SitesReading> {
        let mut wishes = self.wishes();
        let is_any = !wishes.purses.is_empty();
        if std::mem::take(&mut wishes.is_new) {
            let of = |&purse: &PurseId| Row { purse, class: None };
            let rows = wishes.purses.iter().map(of).collect();
            drop(wishes);
            core.sites.set_wanted(Asker::Tests, rows);
        } else {
            drop(wishes);
        }
        is_any.then(|| reading::read(core))
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purses(traced: &Traced) -> Vec<u16> {
        let wishes = traced.wishes();
        wishes.purses.iter().map(|purse| purse.get()).collect()
    }

    #[test]
    fn purses_come_and_go_and_are_bounded() {
        let traced = Traced::default();
        for number in 1..=20 {
            traced.trace(PurseId::new(number), true);
            traced.trace(PurseId::new(number), true);
        }
        assert_eq!(purses(&traced).len(), MOST);
        assert!(traced.wishes().is_new);
        for number in 1..=20 {
            traced.trace(PurseId::new(number), false);
        }
        assert_eq!(purses(&traced), [0; 0]);
        traced.wishes().is_new = false;
        traced.trace(PurseId::new(3), false);
        assert!(!traced.wishes().is_new, "nothing to ask for");
    }
}
