//! Closes purses that nobody refers to any more.
//!
//! # Rule
//! A purse is closed when its owner is gone, its charge is zero, and no record names it in any role. The
//! caller decides that the owner is *gone*, which means more than "undeployed": the collector has freed
//! the class loader. A thread that has looked up the purse holds that loader for as long as it can still
//! charge the purse, by a reference to the loader or by a frame of its code. So no charge can follow the
//! death of the loader, and one scan of the records is enough. If a caller closes a purse too early all
//! the same, a late sample and its refund both go to the next owner: one sample is misplaced, no sum is
//! wrong.
//!
//! Runs on the enforcer's thread, which scans the records once for all purses that it wants to close.

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
