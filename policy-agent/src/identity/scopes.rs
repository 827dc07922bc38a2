//! Scopes: tenants that the program names through the Java API.
//!
//! A scope is a name inside a service, or outside any. It has one purse for each class loader
//! under which it was named, and the program holds an object that stands for that purse (the
//! API's `Context`), tagged with the scope's number:
//!
//! ```text
//! free ──open──▶ live ──ObjectFree of its object──▶ dead ──purse empty──▶ free
//! ```
//!
//! # Rules
//! 1. A scope's number is its purse's. Only a live one is charged: what a thread claims to be in
//!    is a number in the program's memory, and is checked.
//! 2. Whoever can be charged holds the object: the table of names, a thread inside the scope, a
//!    task that took it along. So a scope that is dead is charged no more, and its purse ends
//!    when it is empty ([`super::cleaning`]).
//! 3. A scope belongs to the service of its loader, whatever that is found to be and whenever:
//!    the directory knows, and allocating threads see it in
//!    [`above`](super::Identity::above).
//! 4. Scopes take half of all purses at the most: no program can name so many that a service finds
//!    none.
//! 5. While nobody has used a scope, an allocating thread spends one load on all this.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::ledger::{Chunks, PurseId, ScopeTag};

use super::life::Life;
use super::loaders::LoaderId;

/// Scopes at once at the most.
const MOST_SCOPES: u32 = 1 << 15;

/// A scope that was opened, for the clerk to enter in the directory.
#[derive(Debug)]
pub(crate) struct NewScope {
    pub(crate) purse: PurseId,
    pub(crate) name: String,
    /// [`LoaderId::BOOT`] outside any service.
    pub(crate) loader: LoaderId,
}

/// What a program did with its scopes that it should not have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Misuse {
    /// Closed more than once.
    ClosedTwice,
    /// Closed while one opened later was still open.
    OutOfOrder,
    /// Closed on a thread other than its own.
    ForeignThread,
    /// Nested too deeply: the scope has no effect.
    TooDeep,
    /// A name that is none.
    BadName,
    /// No room for another name: charged to `_other`.
    Folded,
}

impl Misuse {
    /// All, each at the index that is its number.
    pub(crate) const ALL: [Misuse; 6] = [
        Misuse::ClosedTwice,
        Misuse::OutOfOrder,
        Misuse::ForeignThread,
        Misuse::TooDeep,
        Misuse::BadName,
        Misuse::Folded,
    ];

    /// The label of `heapwarden_scope_misuse_total`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Misuse::ClosedTwice => "closed_twice",
            Misuse::OutOfOrder => "out_of_order",
            Misuse::ForeignThread => "foreign_thread",
            Misuse::TooDeep => "too_deep",
            Misuse::BadName => "bad_name",
            Misuse::Folded => "folded",
        }
    }
}

/// The table of scopes, by purse.
pub(crate) struct Scopes {
    entries: Chunks<Life, 1024>,
    deaths: AtomicU32,
    /// Opened and not recycled.
    taken: AtomicU32,
    used: AtomicBool,
    inherited: AtomicBool,
    misuses: [AtomicU64; Misuse::ALL.len()],
}

impl Scopes {
    pub(crate) fn new() -> Scopes {
        Scopes {
            entries: Chunks::new(1 << u16::BITS),
            deaths: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            used: AtomicBool::new(false),
            inherited: AtomicBool::new(false),
            misuses: Default::default(),
        }
    }

    fn entry(&self, purse: PurseId) -> Option<&Life> {
        self.entries.get(u32::from(purse.get()))
    }

    /// Takes a place for a scope; false where there is none left. Whoever has one opens a scope,
    /// or gives it back by [`Scopes::leave`].
    pub(crate) fn enter(&self) -> bool {
        let room = |taken: u32| (taken < MOST_SCOPES).then_some(taken + 1);
        (self.taken)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok()
    }

    /// Gives a place back.
    pub(crate) fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes a purse that was just opened a scope's. `displaced` is the tag that the object
    /// carries now, or 0. The tag to put on it; `None` without memory.
    pub(crate) fn open(&self, purse: PurseId, displaced: i64) -> Option<ScopeTag> {
        let number = u32::from(purse.get());
        let life = self.entries.get_or_grow(number)?;
        life.open(displaced);
        ScopeTag::new(number, life.generation())
    }

    /// Whether a thread may be in this scope. Two loads; any thread.
    pub(crate) fn is_live(&self, purse: PurseId) -> bool {
        self.entry(purse).is_some_and(Life::is_live)
    }

    /// The object that stood for the scope is gone, or was never tagged. Returns the displaced
    /// tag to refund, 0 for none; `None` if that was known. Atomics only: called from
    /// `ObjectFree`.
    pub(crate) fn died(&self, tag: ScopeTag) -> Option<i64> {
        let life = self.entries.get(tag.index())?;
        let displaced = life.end(tag.generation())?;
        self.deaths.fetch_add(1, Ordering::Release);
        Some(displaced)
    }

    /// How many scopes have ended so far.
    pub(crate) fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Whether the scope of this purse has ended and its purse is still to be closed.
    pub(crate) fn is_dead(&self, purse: PurseId) -> bool {
        self.entry(purse).is_some_and(Life::is_dead)
    }

    /// The purse of a dead scope was closed. For the janitor, before it gives the purse back.
    pub(crate) fn recycle(&self, purse: PurseId) {
        if self.entry(purse).is_some_and(Life::recycle) {
            self.leave();
        }
    }

    /// Threads may be in scopes from now on, and in inherited ones.
    pub(crate) fn use_them(&self, inherited: bool) {
        self.used.store(true, Ordering::Release);
        self.inherited.fetch_or(inherited, Ordering::Release);
    }

    /// Whether any thread may be in a scope, and whether in an inherited one. Any thread.
    pub(crate) fn in_use(&self) -> (bool, bool) {
        (
            self.used.load(Ordering::Relaxed),
            self.inherited.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn count_misuse(&self, misuse: Misuse) {
        self.misuses[misuse as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted, by label.
    pub(crate) fn misuses(&self) -> Vec<(&'static str, u64)> {
        let count = |misuse: Misuse| self.misuses[misuse as usize].load(Ordering::Relaxed);
        Misuse::ALL.map(|m| (m.name(), count(m))).to_vec()
    }

    /// Native bytes held.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.entries.committed_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_scope_is_one_and_a_number_used_again_is_another() {
        let scopes = Scopes::new();
        let purse = PurseId::new(7);
        assert!(!scopes.is_live(purse));
        let tag = scopes.open(purse, 42).unwrap();
        assert!(scopes.is_live(purse));
        assert_eq!(scopes.died(tag), Some(42));
        assert_eq!(scopes.died(tag), None);
        assert!(!scopes.is_live(purse) && scopes.is_dead(purse));
        scopes.recycle(purse);
        let next = scopes.open(purse, 0).unwrap();
        assert_ne!(next, tag);
        assert_eq!(scopes.died(tag), None, "a tag of the scope before");
        assert!(scopes.is_live(purse));
        assert_eq!(scopes.deaths(), 1);
    }

    #[test]
    fn scopes_leave_room_for_services() {
        let scopes = Scopes::new();
        assert!((0..MOST_SCOPES).all(|_| scopes.enter()));
        assert!(!scopes.enter());
        let tag = scopes.open(PurseId::new(7), 0).unwrap();
        scopes.died(tag);
        assert!(!scopes.enter(), "its purse is still to be closed");
        scopes.recycle(PurseId::new(7));
        scopes.recycle(PurseId::new(7));
        assert!(scopes.enter() && !scopes.enter());
    }

    #[test]
    fn misuses_have_distinct_names_at_their_numbers() {
        let names: std::collections::HashSet<_> = Misuse::ALL.iter().map(|m| m.name()).collect();
        assert_eq!(names.len(), Misuse::ALL.len());
        for (index, misuse) in Misuse::ALL.into_iter().enumerate() {
            assert_eq!(misuse as usize, index);
        }
    }
}
