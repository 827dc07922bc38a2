//! Class loaders: which service a loader belongs to.
//!
//! The first thread that allocates under a loader, or prepares a class of it, opens an entry with a
//! purse of its own. So every byte is charged to a purse at once. The loader thread names the loader
//! later:
//!
//! ```text
//! pending ──named──────────▶ service   (its own purse; the name decides the account)
//!    ├─child of a service───▶ service   (the parent's purse from now on)
//!    ├─the class path───────▶ program   (its own purse: pays for what nobody else does)
//!    └─of no service────────▶ nobody    (builtin, container, unnamed: frames decide)
//! ```
//!
//! The application class loader is the program's before it is named ([`Loaders::presume_program`]): while it is
//! pending, each of its frames would claim what it makes for the accounts of packages beneath it, and the program
//! would keep that for as long as it lives. If it turns out to be a container's, it becomes nobody's.
//!
//! The thread that numbers a loader stores a weak reference to it beside the entry before any other
//! thread learns of the entry. (The agent does this, because it knows Java objects.) The loader thread
//! finds a loader by this reference if the queue of new loaders was full. Every entry has had such a
//! reference, so the end of each is noticed (see [`super::entry_state`], rule 1).
//!
//! Charges from the pending time belong to the account that the loader is found to be part of,
//! because the directory maps purses to accounts when they are read. A loader may be named again
//! later: some containers name their loader only after its first use.

use crate::ledger::PurseId;
use crate::ledger::{Chunks, IndexPool};
use crate::ledger::{LoaderTag, Tag};
use crate::sync::places;
use std::sync::atomic::{AtomicU32, Ordering};

use super::entry_state::EntryState;

/// The most loaders tracked at once. The number of purses is the tighter bound.
const MAX_LOADERS: u32 = 1 << 18;

/// A loader entry; 0 is the boot loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoaderId(pub u32);

impl LoaderId {
    /// The boot loader, which is not tagged and belongs to no service.
    pub const BOOT: LoaderId = LoaderId(0);
}

/// The owner of a loader, and the purse that charges through it go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderOwner {
    /// Not named yet; charges go to its own purse.
    Pending(PurseId),
    /// A service, or the child of one; charges go to this purse.
    Service(PurseId),
    /// The program itself, or a child of its loader. This purse is charged only for what would be
    /// nobody's otherwise.
    Program(PurseId),
    /// Names no service.
    Nobody,
}

impl LoaderOwner {
    /// The purse of the service that is charged, if any.
    #[inline]
    pub fn purse(self) -> Option<PurseId> {
        match self {
            LoaderOwner::Pending(purse) | LoaderOwner::Service(purse) => Some(purse),
            LoaderOwner::Program(_) | LoaderOwner::Nobody => None,
        }
    }

    /// The purse of the service or the program.
    #[inline]
    pub fn any_purse(self) -> Option<PurseId> {
        match self {
            LoaderOwner::Program(purse) => Some(purse),
            owner => owner.purse(),
        }
    }

    fn pack(self) -> u32 {
        match self {
            LoaderOwner::Nobody => 0,
            LoaderOwner::Pending(purse) => 1 << 16 | u32::from(purse.get()),
            LoaderOwner::Service(purse) => 2 << 16 | u32::from(purse.get()),
            LoaderOwner::Program(purse) => 3 << 16 | u32::from(purse.get()),
        }
    }

    #[inline]
    fn unpack(packed: u32) -> LoaderOwner {
        let purse = PurseId::new(packed as u16);
        match packed >> 16 {
            1 => LoaderOwner::Pending(purse),
            2 => LoaderOwner::Service(purse),
            3 => LoaderOwner::Program(purse),
            _ => LoaderOwner::Nobody,
        }
    }
}

#[derive(Default)]
struct Entry {
    state: EntryState,
    owner: AtomicU32,
}

/// The table of loaders.
pub struct Loaders {
    pool: IndexPool,
    entries: Chunks<Entry, 1024>,
    /// Loaders freed by the collector since the agent was loaded.
    deaths: AtomicU32,
    /// Entries that belong to a service or are pending. While there are none, no frame is looked at for one.
    claimants: AtomicU32,
    /// Entries that are the program's. While there are none, no frame is looked at for it.
    programs: AtomicU32,
    /// The number of the JDK's platform loader; that of the boot loader, if it is not known.
    platform: AtomicU32,
}

impl Loaders {
    /// A table that holds the boot loader alone.
    pub fn new() -> Loaders {
        let loaders = Loaders {
            pool: IndexPool::new(places(MAX_LOADERS), 1),
            entries: Chunks::new(places(MAX_LOADERS)),
            deaths: AtomicU32::new(0),
            claimants: AtomicU32::new(0),
            programs: AtomicU32::new(0),
            platform: AtomicU32::new(LoaderId::BOOT.0),
        };
        // Index 0 is LoaderId::BOOT, which stays Nobody.
        let _ = loaders.pool.pop(0);
        loaders
    }

    /// Opens an entry. `displaced` is the tag that the loader object carries now, or 0. `None` when
    /// the table is full. Any thread.
    pub fn open(&self, owner: LoaderOwner, displaced: i64) -> Option<LoaderId> {
        let index = self.pool.pop(0)?;
        let Some(entry) = self.entries.get_or_grow(index) else {
            self.pool.push(index);
            return None;
        };
        self.store_owner(entry, owner);
        entry.state.open(displaced);
        Some(LoaderId(index))
    }

    #[inline]
    fn entry(&self, id: LoaderId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// The tag to put on the loader object.
    pub fn tag(&self, id: LoaderId) -> Option<i64> {
        let generation = self.entry(id)?.state.generation();
        Some(Tag::Loader(LoaderTag::new(id.0, generation)?).encode())
    }

    /// The id in a loader tag, or `None` for a tag of an earlier owner of the entry. Any thread.
    pub fn of_tag(&self, tag: LoaderTag) -> Option<LoaderId> {
        let entry = self.entry(LoaderId(tag.index()))?;
        (entry.state.generation() == tag.generation()).then_some(LoaderId(tag.index()))
    }

    /// Returns the owner of the loader; `Nobody` for an unknown one. Any thread.
    #[inline]
    pub fn owner(&self, id: LoaderId) -> LoaderOwner {
        if id == LoaderId::BOOT {
            return LoaderOwner::Nobody;
        }
        self.entry(id).map_or(LoaderOwner::Nobody, |e| {
            LoaderOwner::unpack(e.owner.load(Ordering::Relaxed))
        })
    }

    /// Sets what is known of the loader: the thread that opened the entry, then the loader thread.
    pub fn set_owner(&self, id: LoaderId, owner: LoaderOwner) {
        if let Some(e) = self.entry(id) {
            self.store_owner(e, owner);
        }
    }

    fn store_owner(&self, entry: &Entry, owner: LoaderOwner) {
        let before = LoaderOwner::unpack(entry.owner.swap(owner.pack(), Ordering::Relaxed));
        let count = |counter: &AtomicU32, counts: fn(LoaderOwner) -> bool| match (
            counts(before),
            counts(owner),
        ) {
            (false, true) => {
                counter.fetch_add(1, Ordering::Release);
            }
            (true, false) => {
                counter.fetch_sub(1, Ordering::Release);
            }
            _ => {}
        };
        count(&self.claimants, |owner| owner.purse().is_some());
        count(&self.programs, |owner| {
            matches!(owner, LoaderOwner::Program(_))
        });
    }

    /// Takes a pending loader for the program's until it is named: see the module. At the start.
    pub fn presume_program(&self, id: LoaderId) {
        if let LoaderOwner::Pending(purse) = self.owner(id) {
            self.set_owner(id, LoaderOwner::Program(purse));
        }
    }

    /// Whether some loader is a service or is not named yet. One load; any thread.
    pub fn any_claimant(&self) -> bool {
        self.claimants.load(Ordering::Acquire) > 0
    }

    /// Whether the program has an account. One load; any thread.
    pub fn has_program(&self) -> bool {
        self.programs.load(Ordering::Acquire) > 0
    }

    /// Says which loader is the JDK's platform loader. At the start.
    pub fn set_platform(&self, id: LoaderId) {
        self.platform.store(id.0, Ordering::Relaxed);
    }

    /// Whether a loader has classes of the JDK only: the boot loader and the platform loader. One load; any
    /// thread.
    pub fn is_of_jdk(&self, id: LoaderId) -> bool {
        id == LoaderId::BOOT || id.0 == self.platform.load(Ordering::Relaxed)
    }

    /// Every entry that was ever opened has a number below this.
    pub fn high_water(&self) -> u32 {
        self.pool.high_water()
    }

    /// The dead entries that are not recycled yet. The enforcer's thread.
    pub fn dead(&self) -> Vec<LoaderId> {
        self.entries_where(|entry| entry.state.is_dead())
    }

    /// Whether the entry is dead and not recycled yet.
    pub fn is_dead(&self, id: LoaderId) -> bool {
        self.entry(id).is_some_and(|entry| entry.state.is_dead())
    }

    fn entries_where(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<LoaderId> {
        (1..self.pool.high_water())
            .map(LoaderId)
            .filter(|&id| self.entry(id).is_some_and(&wanted))
            .collect()
    }

    /// Ends the entry of a loader object that was freed. Returns the displaced tag to refund (0 for
    /// none), or `None` if the entry had ended before. Atomics only: called from `ObjectFree`.
    pub fn died(&self, tag: LoaderTag) -> Option<i64> {
        self.end(self.entry(LoaderId(tag.index()))?, tag.generation())
    }

    /// Like [`Loaders::died`], for an entry whose weak reference is cleared. The enforcer's thread.
    pub fn vanished(&self, id: LoaderId) -> Option<i64> {
        let entry = self.entry(id)?;
        self.end(entry, entry.state.generation())
    }

    /// Ends an entry whose tag could not be put on its loader. The loader lives and keeps the tag
    /// that it had. Called by the thread that opened the entry.
    pub fn discard(&self, id: LoaderId) {
        // The tag that it would have displaced is still in place, so it is not refunded.
        let _ = self.vanished(id);
    }

    fn end(&self, entry: &Entry, generation: u32) -> Option<i64> {
        let displaced = entry.state.end(generation)?;
        self.deaths.fetch_add(1, Ordering::Release);
        Some(displaced)
    }

    /// How many entries have died so far.
    pub fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Frees a dead entry whose purse is closed and whose classes are gone. The enforcer's thread.
    pub fn recycle(&self, id: LoaderId) {
        let Some(entry) = self.entry(id) else { return };
        if entry.state.recycle() {
            self.store_owner(entry, LoaderOwner::Nobody);
            self.pool.push(id.0);
        }
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
        self.entries.committed_bytes() + self.pool.committed_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_survive_packing() {
        for owner in [
            LoaderOwner::Nobody,
            LoaderOwner::Pending(PurseId::new(0)),
            LoaderOwner::Pending(PurseId::new(u16::MAX)),
            LoaderOwner::Service(PurseId::new(17)),
        ] {
            assert_eq!(LoaderOwner::unpack(owner.pack()), owner);
        }
    }

    #[test]
    fn a_recycled_entry_does_not_answer_to_its_old_tag() {
        let loaders = Loaders::new();
        let id = loaders
            .open(LoaderOwner::Pending(PurseId::new(3)), 0)
            .unwrap();
        assert_eq!(loaders.owner(id).purse(), Some(PurseId::new(3)));
        let tag = LoaderTag::new(id.0, 0).unwrap();
        assert_eq!(loaders.of_tag(tag), Some(id));
        loaders.died(tag);
        loaders.recycle(id);
        assert_eq!(loaders.of_tag(tag), None);
        assert_eq!(loaders.owner(LoaderId::BOOT), LoaderOwner::Nobody);
    }

    #[test]
    fn a_presumed_program_claims_no_frame_and_ends_as_what_it_is() {
        let loaders = Loaders::new();
        let purse = PurseId::new(3);
        let id = loaders.open(LoaderOwner::Pending(purse), 0).unwrap();
        assert!(loaders.any_claimant() && !loaders.has_program());
        loaders.presume_program(id);
        assert_eq!(loaders.owner(id), LoaderOwner::Program(purse));
        assert!(!loaders.any_claimant() && loaders.has_program());
        loaders.set_owner(id, LoaderOwner::Nobody);
        loaders.presume_program(id);
        assert_eq!(loaders.owner(id), LoaderOwner::Nobody);
        assert!(!loaders.any_claimant() && !loaders.has_program());
    }

    /// Two threads number one loader: one tag stays on it, and both entries end.
    #[test]
    fn twins_end_each_once_with_the_tag_that_both_displaced() {
        let loaders = Loaders::new();
        let numbered = || loaders.open(LoaderOwner::Nobody, 77).unwrap();
        let (winner, twin) = (numbered(), numbered());
        let tag = LoaderTag::new(winner.0, 0).unwrap();
        assert_eq!(loaders.died(tag), Some(77));
        assert_eq!(loaders.vanished(winner), None, "its weak reference is late");
        assert_eq!(loaders.dead(), [winner]);
        assert_eq!(loaders.vanished(twin), Some(77));
        assert_eq!(loaders.deaths(), 2);
        for id in [winner, twin] {
            assert!(loaders.is_dead(id));
            loaders.recycle(id);
        }
        assert_eq!(loaders.dead(), []);
        let next = loaders.open(LoaderOwner::Nobody, 78).unwrap();
        assert!([winner, twin].contains(&next));
        assert_eq!(loaders.died(tag), None, "a tag of the owner before");
        assert_eq!(loaders.dead(), []);
    }

    #[test]
    fn an_entry_whose_tag_did_not_stay_gives_nothing_to_refund() {
        let loaders = Loaders::new();
        let id = loaders.open(LoaderOwner::Nobody, 77).unwrap();
        loaders.discard(id);
        assert!(loaders.is_dead(id));
        assert_eq!(loaders.vanished(id), None);
    }
}
