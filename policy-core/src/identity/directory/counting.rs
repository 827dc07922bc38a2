//! What a reading takes from the directory. It takes it in one short step under the directory's lock, so
//! that it holds no lock while it scans all records or makes rows.
//!
//! # Rules
//! 1. A reading first scans the records and counts by number. Then it looks up the names.
//! 2. Between these two steps a number may be given back and get a new owner. The reading drops the
//!    counts under such a number, because a number is given back only when no record names it any
//!    more. [`Directory::begin_counting`] and [`Directory::end_counting`] tell which numbers these are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Directory;
use crate::identity::classes::ClassId;
use crate::ledger::PurseId;

/// The account of each purse that belongs to one, by number.
pub type Names = HashMap<PurseId, Arc<str>>;

/// The numbers that were given back while records were counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The purses that were closed.
    pub purses: HashSet<PurseId>,
    /// The classes that were forgotten.
    pub classes: HashSet<ClassId>,
}

/// One count that is under way.
#[derive(Debug)]
#[must_use = "the directory notes ended numbers until the counting ends"]
pub struct Counting(u64);

/// The counts that are under way, each with what has ended meanwhile.
#[derive(Debug, Default)]
pub(super) struct Countings {
    next: u64,
    under_way: Vec<(u64, Ended)>,
}

impl Directory {
    /// Starts to note the numbers that are given back. Several threads may count at the same time;
    /// reporting threads.
    pub fn begin_counting(&mut self) -> Counting {
        let number = self.countings.next;
        self.countings.next += 1;
        self.countings.under_way.push((number, Ended::default()));
        Counting(number)
    }

    /// Stops noting; returns the numbers that were given back since [`Directory::begin_counting`].
    pub fn end_counting(&mut self, counting: Counting) -> Ended {
        let mut ended = Ended::default();
        self.countings.under_way.retain_mut(|(number, found)| {
            let is_it = *number == counting.0;
            if is_it {
                ended = std::mem::take(found);
            }
            !is_it
        });
        ended
    }

    /// Notes that a purse was closed, for each count that is under way.
    pub fn purse_ended(&mut self, purse: PurseId) {
        for (_, ended) in &mut self.countings.under_way {
            ended.purses.insert(purse);
        }
    }

    /// Notes that a class was forgotten, for each count that is under way.
    pub fn class_ended(&mut self, class: ClassId) {
        for (_, ended) in &mut self.countings.under_way {
            ended.classes.insert(class);
        }
    }

    /// The account of each purse. Copies the map once after each change of the directory.
    pub fn names(&mut self) -> Arc<Names> {
        match &self.names {
            Some((version, names)) if *version == self.version => names.clone(),
            _ => {
                let names = Arc::new(self.of_purse.clone());
                self.names = Some((self.version, names.clone()));
                names
            }
        }
    }
}
