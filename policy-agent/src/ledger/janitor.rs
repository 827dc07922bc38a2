//! Closing of purses that nobody refers to any more.
//!
//! # Rule
//! A purse is closed when its owner is gone, its charge is zero, and no record names it in
//! any role. *Gone* is the caller's word, and means more than "undeployed": the class loader
//! was freed by the collector. A thread that has looked the purse up holds that loader for
//! as long as it can still charge it (by a reference to the loader, or by a frame of its
//! code), so no charge is on its way when the loader is dead, and one look at the records is
//! enough. Should a caller retire a purse too early all the same, the late sample goes to the
//! next owner and its refund with it: one sample misplaced, no sum wrong.
//!
//! On a background thread, which reads the slab once for all that it wants to close.

use super::Ledger;
use super::purse::{Closed, PurseId};
use crate::sampling::Charge;

/// A set of purses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurseSet(Box<[u64]>);

impl PurseSet {
    /// The empty set.
    #[must_use]
    pub fn empty() -> Self {
        Self(vec![0; (1 << u16::BITS) / 64].into_boxed_slice())
    }

    /// Puts a purse in.
    pub fn insert(&mut self, purse: PurseId) {
        let number = usize::from(purse.get());
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Whether it is in.
    #[must_use]
    pub fn contains(&self, purse: PurseId) -> bool {
        let number = usize::from(purse.get());
        self.0[number / 64] >> (number % 64) & 1 == 1
    }
}

impl Ledger {
    /// Closes a purse whose owner is gone, if the rule allows it; `referenced` is what
    /// [`Ledger::referenced_purses`] gave after the owner was gone. The caller forgets the owner
    /// and then gives the purse back with [`Ledger::give_back`]: nobody opens it in between, so
    /// that the caller's books never have two owners of one purse.
    pub fn close_purse(&self, purse: PurseId, referenced: &PurseSet) -> Option<Closed> {
        let idle = self.is_open(purse)
            && !referenced.contains(purse)
            && self.totals(purse).charged == Charge::default();
        if idle { self.purses.close(purse) } else { None }
    }

    /// Makes a closed purse's number free.
    pub fn give_back(&self, closed: Closed) {
        self.purses.give_back(closed);
    }
}
