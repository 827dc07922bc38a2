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
//! 1. The number of a scope is the number of its purse. Only a live scope is charged. The agent checks
//!    this, because a thread's current scope is a number in the program's memory.
//! 2. Everything that can cause a charge holds the object: the table of names, a thread inside the
//!    scope, a task that took it along. So a dead scope gets no more charges, and its purse is closed
//!    when it is empty ([`super::cleaning`]).
//! 3. A scope belongs to the service of its loader, even if the loader is named later or again. The
//!    directory knows the service; allocating threads read it from
//!    [`above`](super::Identity::above).
//! 4. Scopes take at most half of all purses, so that purses are left for services.
//! 5. Until the first scope is used, an allocating thread spends one load on scopes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::ledger::{Chunks, PurseId, ScopeTag};
use crate::sync::places;

use super::entry_state::EntryState;
use super::loaders::LoaderId;

/// The most scopes at once.
const MAX_SCOPES: u32 = 1 << 15;

/// A scope that was opened, for the metadata thread to enter in the directory.
#[derive(Debug)]
pub struct NewScope {
    /// The purse of the scope; its number is the number of the scope.
    pub purse: PurseId,
    /// The name that the program gave it.
    pub name: String,
    /// The class loader under which it was named; [`LoaderId::BOOT`] outside any service.
    pub loader: LoaderId,
}

/// A mistake of the program in its use of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Misuse {
    /// Closed more than once.
    ClosedTwice,
    /// Closed while one opened later was still open.
    OutOfOrder,
    /// Closed on a thread other than its own.
    ForeignThread,
    /// Nested too deeply: the scope has no effect.
    TooDeep,
    /// The name is not valid.
    BadName,
    /// No room for another name: charged to `_other`.
    Folded,
}

impl Misuse {
    /// All misuses, each at the index that is its number.
    pub const ALL: [Misuse; 6] = [
        Misuse::ClosedTwice,
        Misuse::OutOfOrder,
        Misuse::ForeignThread,
        Misuse::TooDeep,
        Misuse::BadName,
        Misuse::Folded,
    ];

    /// The label of `heapwarden_scope_misuse_total`.
    pub fn name(self) -> &'static str {
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
pub struct Scopes {
    entries: Chunks<EntryState, 1024>,
    deaths: AtomicU32,
    /// Opened and not recycled.
    taken: AtomicU32,
    used: AtomicBool,
    inherited: AtomicBool,
    misuses: [AtomicU64; Misuse::ALL.len()],
}

impl Scopes {
    /// A table without scopes.
    pub fn new() -> Scopes {
        Scopes {
            entries: Chunks::new(places(1 << u16::BITS)),
            deaths: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            used: AtomicBool::new(false),
            inherited: AtomicBool::new(false),
            misuses: Default::default(),
        }
    }

    fn entry(&self, purse: PurseId) -> Option<&EntryState> {
        self.entries.get(u32::from(purse.get()))
    }

    /// Reserves a place for a scope; false if none is left. The caller then opens a scope, or gives
    /// the place back with [`Scopes::leave`].
    pub fn enter(&self) -> bool {
        let room = |taken: u32| (taken < MAX_SCOPES).then_some(taken + 1);
        (self.taken)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok()
    }

    /// Gives a reserved place back.
    pub fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes a purse that was just opened the purse of a scope. `displaced` is the tag that the
    /// scope's object carries now, or 0. Returns the tag to put on the object; `None` if the system
    /// has no memory.
    pub fn open(&self, purse: PurseId, displaced: i64) -> Option<ScopeTag> {
        let number = u32::from(purse.get());
        let entry = self.entries.get_or_grow(number)?;
        entry.open(displaced);
        ScopeTag::new(number, entry.generation())
    }

    /// Whether a thread may be in this scope. Two loads; any thread.
    pub fn is_live(&self, purse: PurseId) -> bool {
        self.entry(purse).is_some_and(EntryState::is_live)
    }

    /// Ends a scope whose object was freed or never tagged. Returns the displaced tag to refund (0
    /// for none), or `None` if the scope had ended before. Atomics only: called from `ObjectFree`.
    pub fn died(&self, tag: ScopeTag) -> Option<i64> {
        let entry = self.entries.get(tag.index())?;
        let displaced = entry.end(tag.generation())?;
        self.deaths.fetch_add(1, Ordering::Release);
        Some(displaced)
    }

    /// How many scopes have ended so far.
    pub fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Whether the scope of this purse has ended and its purse is still to be closed.
    pub fn is_dead(&self, purse: PurseId) -> bool {
        self.entry(purse).is_some_and(EntryState::is_dead)
    }

    /// Frees a dead scope whose purse was closed, before the purse is given back. The enforcer's
    /// thread.
    pub fn recycle(&self, purse: PurseId) {
        if self.entry(purse).is_some_and(EntryState::recycle) {
            self.leave();
        }
    }

    /// Threads may be in scopes from now on, and in inherited ones.
    pub fn use_them(&self, inherited: bool) {
        self.used.store(true, Ordering::Release);
        self.inherited.fetch_or(inherited, Ordering::Release);
    }

    /// Whether any thread may be in a scope, and whether in an inherited one. Any thread.
    pub fn in_use(&self) -> (bool, bool) {
        (
            self.used.load(Ordering::Relaxed),
            self.inherited.load(Ordering::Relaxed),
        )
    }

    /// Counts a misuse. Any thread, one atomic add.
    pub fn count_misuse(&self, misuse: Misuse) {
        self.misuses[misuse as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often each misuse was counted, by label.
    pub fn misuses(&self) -> Vec<(&'static str, u64)> {
        let count = |misuse: Misuse| self.misuses[misuse as usize].load(Ordering::Relaxed);
        Misuse::ALL.map(|m| (m.name(), count(m))).to_vec()
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
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
        assert!((0..MAX_SCOPES).all(|_| scopes.enter()));
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
