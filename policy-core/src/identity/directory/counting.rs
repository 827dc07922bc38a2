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

impl Directory {
    /// Starts to note the numbers that are given back. One reading at a time; reporting threads.
    pub fn begin_counting(&mut self) {
        self.ended = Some(Ended::default());
    }

    /// Stops noting; returns the numbers that were given back since [`Directory::begin_counting`].
    pub fn end_counting(&mut self) -> Ended {
        self.ended.take().unwrap_or_default()
    }

    /// Notes that a purse was closed, if a reading counts now.
    pub fn purse_ended(&mut self, purse: PurseId) {
        if let Some(ended) = &mut self.ended {
            ended.purses.insert(purse);
        }
    }

    /// Notes that a class was forgotten, if a reading counts now.
    pub fn class_ended(&mut self, class: ClassId) {
        if let Some(ended) = &mut self.ended {
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
