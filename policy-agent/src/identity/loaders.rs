//! Class loaders: which service a loader belongs to.
//!
//! A loader is seen first by a thread that allocates under it or prepares a class of it.
//! That thread opens an entry with a purse of its own, so that every byte has a home at
//! once, and leaves the naming to the resolver:
//!
//! ```text
//! pending ──named──────────▶ service   (its own purse; the name decides the account)
//!    ├────child of a service▶ service   (the parent's purse from now on)
//!    └────nobody's──────────▶ nobody    (builtin, container, unnamed: frames decide)
//! ```
//!
//! The entry keeps a weak reference to its loader for the resolver, from before anyone but the
//! numbering thread knows of it until the resolver takes it: what the resolver's queue has no
//! room for is found by that. Every entry that is known has one, or had: so there is none whose
//! end nobody would hear of (see [`super::life`], rule 1).
//!
//! What was charged to the purse while it was pending follows its owner, because the
//! directory maps purses to accounts when it reads them, not when they are charged. A
//! verdict can also come back to pending-like naming later: a container may name its loader
//! only after it has begun to use it.

use crate::ledger::PurseId;
use crate::ledger::{Chunks, IndexPool};
use crate::ledger::{LoaderTag, Tag};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::jvm::weak::{Weak, WeakSlot};

use super::life::Life;

/// Loaders tracked at once at the most. Purses are the tighter bound.
const MOST_LOADERS: u32 = 1 << 18;

/// A loader entry; 0 is the boot loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LoaderId(pub(crate) u32);

impl LoaderId {
    pub(crate) const BOOT: LoaderId = LoaderId(0);
}

/// What is known of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not named yet; charges go to its own purse.
    Pending(PurseId),
    /// A service, or the child of one; charges go to this purse.
    Service(PurseId),
    /// Names no service.
    Nobody,
}

impl Verdict {
    /// The purse that is charged, if any.
    pub(crate) fn purse(self) -> Option<PurseId> {
        match self {
            Verdict::Pending(purse) | Verdict::Service(purse) => Some(purse),
            Verdict::Nobody => None,
        }
    }

    fn pack(self) -> u32 {
        match self {
            Verdict::Nobody => 0,
            Verdict::Pending(purse) => 1 << 16 | u32::from(purse.get()),
            Verdict::Service(purse) => 2 << 16 | u32::from(purse.get()),
        }
    }

    fn unpack(packed: u32) -> Verdict {
        let purse = PurseId::new(packed as u16);
        match packed >> 16 {
            1 => Verdict::Pending(purse),
            2 => Verdict::Service(purse),
            _ => Verdict::Nobody,
        }
    }
}

#[derive(Default)]
struct Entry {
    life: Life,
    verdict: AtomicU32,
    /// Until the resolver takes it.
    weak: WeakSlot,
}

/// The table of loaders.
pub(crate) struct Loaders {
    pool: IndexPool,
    entries: Chunks<Entry, 1024>,
    /// Loaders freed by the collector since the agent was loaded.
    deaths: AtomicU32,
    /// Entries whose verdict is not `Nobody`: while there are none, frames need no look.
    claimants: AtomicU32,
}

impl Loaders {
    pub(crate) fn new() -> Loaders {
        let loaders = Loaders {
            pool: IndexPool::new(MOST_LOADERS, 1),
            entries: Chunks::new(MOST_LOADERS),
            deaths: AtomicU32::new(0),
            claimants: AtomicU32::new(0),
        };
        // Index 0 is LoaderId::BOOT, which stays Nobody.
        let _ = loaders.pool.pop(0);
        loaders
    }

    /// Opens an entry. `displaced` is the tag that the loader object carries now, or 0.
    pub(crate) fn open(&self, verdict: Verdict, displaced: i64) -> Option<LoaderId> {
        let index = self.pool.pop(0)?;
        let Some(entry) = self.entries.get_or_grow(index) else {
            self.pool.push(index);
            return None;
        };
        self.set_verdict(entry, verdict);
        entry.life.open(displaced);
        Some(LoaderId(index))
    }

    fn entry(&self, id: LoaderId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// The tag to put on the loader object.
    pub(crate) fn tag(&self, id: LoaderId) -> Option<i64> {
        let generation = self.entry(id)?.life.generation();
        Some(Tag::Loader(LoaderTag::new(id.0, generation)?).encode())
    }

    /// The id in a loader tag, or `None` for a tag of an earlier life of the entry.
    pub(crate) fn of_tag(&self, tag: LoaderTag) -> Option<LoaderId> {
        let entry = self.entry(LoaderId(tag.index()))?;
        (entry.life.generation() == tag.generation()).then_some(LoaderId(tag.index()))
    }

    pub(crate) fn verdict(&self, id: LoaderId) -> Verdict {
        if id == LoaderId::BOOT {
            return Verdict::Nobody;
        }
        self.entry(id).map_or(Verdict::Nobody, |e| {
            Verdict::unpack(e.verdict.load(Ordering::Relaxed))
        })
    }

    pub(crate) fn judge(&self, id: LoaderId, verdict: Verdict) {
        if let Some(e) = self.entry(id) {
            self.set_verdict(e, verdict);
        }
    }

    fn set_verdict(&self, entry: &Entry, verdict: Verdict) {
        let before = entry.verdict.swap(verdict.pack(), Ordering::Relaxed);
        match (Verdict::unpack(before), verdict) {
            (Verdict::Nobody, Verdict::Nobody) => {}
            (Verdict::Nobody, _) => {
                self.claimants.fetch_add(1, Ordering::Release);
            }
            (_, Verdict::Nobody) => {
                self.claimants.fetch_sub(1, Ordering::Release);
            }
            _ => {}
        }
    }

    /// Whether some loader is a service, or may yet be one. One load.
    pub(crate) fn any_claimant(&self) -> bool {
        self.claimants.load(Ordering::Acquire) > 0
    }

    /// Leaves the loader's weak reference to the resolver. By the thread that numbered it.
    pub(crate) fn introduce(&self, id: LoaderId, weak: Weak) {
        if let Some(entry) = self.entry(id) {
            entry.weak.put(weak);
        }
    }

    /// The weak reference of a loader that the resolver has not met yet. Each is taken once.
    pub(crate) fn meet(&self, id: LoaderId) -> Option<Weak> {
        self.entry(id)?.weak.take()
    }

    /// The entries that the resolver has not met yet.
    pub(crate) fn unmet(&self) -> Vec<LoaderId> {
        self.such(|entry| !entry.weak.is_empty())
    }

    /// The dead entries that are not recycled yet. For the janitor.
    pub(crate) fn dead(&self) -> Vec<LoaderId> {
        self.such(|entry| entry.life.is_dead())
    }

    /// Whether the entry is dead and not recycled yet.
    pub(crate) fn is_dead(&self, id: LoaderId) -> bool {
        self.entry(id).is_some_and(|entry| entry.life.is_dead())
    }

    fn such(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<LoaderId> {
        (1..self.pool.high_water())
            .map(LoaderId)
            .filter(|&id| self.entry(id).is_some_and(&wanted))
            .collect()
    }

    /// The loader object is gone. Returns the displaced tag to refund, 0 for none; `None` if
    /// that was known. Atomics only: called from `ObjectFree`.
    pub(crate) fn died(&self, tag: LoaderTag) -> Option<i64> {
        self.end(self.entry(LoaderId(tag.index()))?, tag.generation())
    }

    /// As [`Loaders::died`], where a weak reference of the entry was found cleared.
    pub(crate) fn vanished(&self, id: LoaderId) -> Option<i64> {
        let entry = self.entry(id)?;
        self.end(entry, entry.life.generation())
    }

    /// The entry's tag could not be put on its loader, which lives and keeps the tag that it
    /// had. By the thread that numbered it.
    pub(crate) fn discard(&self, id: LoaderId) {
        // What it would have displaced is not refunded.
        let _ = self.vanished(id);
    }

    fn end(&self, entry: &Entry, generation: u32) -> Option<i64> {
        let displaced = entry.life.end(generation)?;
        self.deaths.fetch_add(1, Ordering::Release);
        Some(displaced)
    }

    /// How many loaders have died so far.
    pub(crate) fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Frees a dead entry whose purse is gone and whose classes are gone. For the janitor.
    pub(crate) fn recycle(&self, id: LoaderId) {
        let Some(entry) = self.entry(id) else { return };
        if entry.life.recycle() {
            self.set_verdict(entry, Verdict::Nobody);
            self.pool.push(id.0);
        }
    }

    /// Native bytes held.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.entries.committed_bytes() + self.pool.committed_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_packing() {
        for verdict in [
            Verdict::Nobody,
            Verdict::Pending(PurseId::new(0)),
            Verdict::Pending(PurseId::new(u16::MAX)),
            Verdict::Service(PurseId::new(17)),
        ] {
            assert_eq!(Verdict::unpack(verdict.pack()), verdict);
        }
    }

    #[test]
    fn a_recycled_entry_does_not_answer_to_its_old_tag() {
        let loaders = Loaders::new();
        let id = loaders.open(Verdict::Pending(PurseId::new(3)), 0).unwrap();
        assert_eq!(loaders.verdict(id).purse(), Some(PurseId::new(3)));
        let tag = LoaderTag::new(id.0, 0).unwrap();
        assert_eq!(loaders.of_tag(tag), Some(id));
        loaders.died(tag);
        loaders.recycle(id);
        assert_eq!(loaders.of_tag(tag), None);
        assert_eq!(loaders.verdict(LoaderId::BOOT), Verdict::Nobody);
    }

    /// Two threads number one loader: one tag stays on it, and both entries end.
    #[test]
    fn twins_end_each_once_with_the_tag_that_both_displaced() {
        let loaders = Loaders::new();
        let numbered = || loaders.open(Verdict::Nobody, 77).unwrap();
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
        let next = loaders.open(Verdict::Nobody, 78).unwrap();
        assert!([winner, twin].contains(&next));
        assert_eq!(loaders.died(tag), None, "a tag of the life before");
        assert_eq!(loaders.dead(), []);
    }

    #[test]
    fn an_entry_whose_tag_did_not_stay_gives_nothing_to_refund() {
        let loaders = Loaders::new();
        let id = loaders.open(Verdict::Nobody, 77).unwrap();
        loaders.discard(id);
        assert!(loaders.is_dead(id));
        assert_eq!(loaders.vanished(id), None);
    }
}
