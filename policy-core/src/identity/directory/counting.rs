//! The data that a reading takes from the directory. It takes them in one short step under the directory's lock, so
//! that it holds no lock while it scans all records or makes rows.
//!
//! # Rules
//! 1. A reading first scans the records and counts by number. Then it looks up the names.
//! 2. Between these two steps a number may be given back and get a new owner. The reading drops the
//!    counts under such a number, because a number is given back only when no record names it any
//!    more. `Directory::begin_counting` and `end_counting` tell which numbers these are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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

impl Countings {
    /// Starts to note the numbers that are given back.
    pub(super) fn begin(&mut self) -> Counting {
        let number = self.next;
        self.next += 1;
        self.under_way.push((number, Ended::default()));
        Counting(number)
    }

    /// Stops noting; returns the numbers that were given back since.
    pub(super) fn end(&mut self, counting: Counting) -> Ended {
        let mut ended = Ended::default();
        self.under_way.retain_mut(|(number, found)| {
            let is_it = *number == counting.0;
            if is_it {
                ended = std::mem::take(found);
            }
            !is_it
        });
        ended
    }

    /// Returns the numbers that have ended so far, for each count that is under way.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Ended> {
        self.under_way.iter_mut().map(|(_, ended)| ended)
    }
}
