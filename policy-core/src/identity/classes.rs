//! Loaded classes: which loader a class came from and whose its code is.
//!
//! The first thread that sees a class opens an entry for it, in `ClassPrepare` or at a sample. The JVM
//! TI tag of the class object holds the id of the entry and its generation.
//!
//! Two threads that see a new class at the same time may both open an entry; the tag written last
//! wins. Both entries are correct while they last. The other entry, the *twin*, ends in one of three
//! ways:
//! * Each thread reads the tag again after it has written its own.
//! * The metadata thread reads the tag when it names the class.
//! * All entries of a loader's classes end with the loader, because the classes are collected no later
//!   than their loader.
//!
//! Only twins of classes that are never unloaded stay. A class has at most as many of them as threads
//! that met it first at the same moment.
//!
//! Each class has two claims: one side for the policy in force, one for the policy that is being
//! prepared. So a reload classifies every class first and then switches sides in one step.

use crate::ledger::PurseId;
use crate::ledger::{Chunks, IndexPool};
use crate::ledger::{ClassTag, Tag};
use crate::sync::places;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::attribution::Claim;
use super::entry_state::EntryState;
use super::loaders::LoaderId;

/// The most classes tracked at once. Later ones stay unknown.
const MAX_CLASSES: u32 = 1 << 20;

/// A class entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

impl ClassId {
    /// The class of an object whose class is not tracked.
    pub const UNKNOWN: ClassId = ClassId(crate::ledger::UNKNOWN_CLASS);
}

/// One of the two classifications kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side(pub usize);

impl Side {
    /// The side that is not this one.
    pub fn other(self) -> Side {
        Side(1 - self.0)
    }
}

/// The sort of objects that the instances of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Kind {
    /// The class has not been looked at yet.
    #[default]
    Unknown,
    /// An instance of a class.
    Instance,
    /// A string.
    Text,
    /// An array of a primitive type.
    Primitives,
    /// An array of references that is not one of the following kinds.
    References,
    /// An `Object[]`. The VM makes these for a class's resolved references, too.
    Objects,
    /// An object that the VM makes for itself: a class, a method handle, a mirror of a method.
    OfVm,
}

impl Kind {
    /// The kind of a class by its signature (`Ljava/lang/String;`, `[B`).
    pub fn of(signature: &str) -> Kind {
        let element = signature.trim_start_matches('[');
        let dimensions = signature.len() - element.len();
        match element {
            "Ljava/lang/String;" if dimensions == 0 => Kind::Text,
            "Ljava/lang/Object;" if dimensions == 1 => Kind::Objects,
            _ if Kind::of_vm(element) => Kind::OfVm,
            _ if dimensions == 0 => Kind::Instance,
            _ if dimensions == 1 && !element.starts_with('L') => Kind::Primitives,
            _ => Kind::References,
        }
    }

    fn of_vm(element: &str) -> bool {
        const CLASSES: [&str; 6] = [
            "Ljava/lang/Class;",
            "Ljava/lang/Module;",
            "Ljava/lang/StackTraceElement;",
            "Ljava/lang/StackFrameInfo;",
            "Ljava/security/ProtectionDomain;",
            "Ljdk/internal/vm/StackChunk;",
        ];
        CLASSES.contains(&element)
            || element.starts_with("Ljava/lang/invoke/")
            || element.starts_with("Ljava/lang/reflect/")
    }

    #[inline]
    fn unpack(packed: u8) -> Kind {
        const ALL: [Kind; 7] = [
            Kind::Unknown,
            Kind::Instance,
            Kind::Text,
            Kind::Primitives,
            Kind::References,
            Kind::Objects,
            Kind::OfVm,
        ];
        ALL.get(usize::from(packed)).copied().unwrap_or_default()
    }
}

#[derive(Default)]
struct Entry {
    state: EntryState,
    loader: AtomicU32,
    claims: [AtomicU32; 2],
    /// Whether the metadata thread has been asked for the name.
    asked: AtomicBool,
    kind: AtomicU8,
    /// Which rule of the policy thins its samples, counted from 1; 0 for none.
    thinned_by: AtomicU8,
}

/// The table of classes.
pub struct Classes {
    pool: IndexPool,
    entries: Chunks<Entry, 1024>,
    /// Entries that died since the agent was loaded.
    deaths: AtomicU32,
}

fn pack(claim: Claim) -> u32 {
    match claim {
        // The program's classes are known by their loader.
        Claim::Nobody | Claim::Program(_) => 0,
        Claim::Account(purse) => 1 << 16 | u32::from(purse.get()),
        Claim::Library(purse) => 2 << 16 | u32::from(purse.get()),
    }
}

#[inline]
fn unpack(packed: u32) -> Claim {
    let purse = PurseId::new(packed as u16);
    match packed >> 16 {
        1 => Claim::Account(purse),
        2 => Claim::Library(purse),
        _ => Claim::Nobody,
    }
}

impl Classes {
    /// An empty table.
    pub fn new() -> Classes {
        Classes {
            pool: IndexPool::new(places(MAX_CLASSES), 1),
            entries: Chunks::new(places(MAX_CLASSES)),
            deaths: AtomicU32::new(0),
        }
    }

    /// Opens an entry. `displaced` is the tag that the class object carries now, or 0.
    /// `None` when the table is full.
    pub fn open(&self, loader: LoaderId, claims: [Claim; 2], displaced: i64) -> Option<ClassId> {
        let index = self.pool.pop(0)?;
        let Some(entry) = self.entries.get_or_grow(index) else {
            self.pool.push(index);
            return None;
        };
        entry.loader.store(loader.0, Ordering::Relaxed);
        for (slot, claim) in entry.claims.iter().zip(claims) {
            slot.store(pack(claim), Ordering::Relaxed);
        }
        entry.asked.store(false, Ordering::Relaxed);
        entry.kind.store(Kind::Unknown as u8, Ordering::Relaxed);
        entry.thinned_by.store(0, Ordering::Relaxed);
        entry.state.open(displaced);
        Some(ClassId(index))
    }

    #[inline]
    fn entry(&self, id: ClassId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// The tag to put on the class object. Any thread.
    pub fn tag(&self, id: ClassId) -> Option<i64> {
        let generation = self.entry(id)?.state.generation();
        Some(Tag::Class(ClassTag::new(id.0, generation)?).encode())
    }

    /// The id in a class tag; `UNKNOWN` for a tag of an earlier owner of the entry. Any thread.
    pub fn of_tag(&self, tag: ClassTag) -> ClassId {
        let id = ClassId(tag.index());
        match self.entry(id) {
            Some(e) if e.state.generation() == tag.generation() => id,
            _ => ClassId::UNKNOWN,
        }
    }

    /// Which of the successive owners of the entry this is; counts from 0 and wraps.
    #[inline]
    pub fn generation(&self, id: ClassId) -> u32 {
        self.entry(id).map_or(0, |e| e.state.generation())
    }

    /// The loader that defined the class; the boot loader for an unknown class. Any thread.
    #[inline]
    pub fn loader(&self, id: ClassId) -> LoaderId {
        LoaderId(
            self.entry(id)
                .map_or(0, |e| e.loader.load(Ordering::Relaxed)),
        )
    }

    /// Which account owns the code of the class, by its package. Any thread.
    #[inline]
    pub fn claim(&self, id: ClassId, side: Side) -> Claim {
        self.entry(id).map_or(Claim::Nobody, |e| {
            unpack(e.claims[side.0].load(Ordering::Relaxed))
        })
    }

    /// Sets the claim on one side. Any thread, one store.
    pub fn set_claim(&self, id: ClassId, side: Side, claim: Claim) {
        if let Some(e) = self.entry(id) {
            e.claims[side.0].store(pack(claim), Ordering::Relaxed);
        }
    }

    /// Sets the claims on both sides. Any thread.
    pub fn set_claims(&self, id: ClassId, claims: [Claim; 2]) {
        for (side, claim) in claims.into_iter().enumerate() {
            self.set_claim(id, Side(side), claim);
        }
    }

    /// Returns the sort of objects that the instances of the class are; unknown until the metadata thread has named the
    /// class.
    pub fn kind(&self, id: ClassId) -> Kind {
        self.entry(id).map_or(Kind::Unknown, |e| {
            Kind::unpack(e.kind.load(Ordering::Relaxed))
        })
    }

    /// Records what the instances of the class are. The metadata thread.
    pub fn set_kind(&self, id: ClassId, kind: Kind) {
        if let Some(e) = self.entry(id) {
            e.kind.store(kind as u8, Ordering::Relaxed);
        }
    }

    /// Which rule of the policy thins its samples. One load; any thread.
    #[inline]
    pub fn thinned_by(&self, id: ClassId) -> Option<usize> {
        let rule = self.entry(id)?.thinned_by.load(Ordering::Relaxed);
        usize::from(rule).checked_sub(1)
    }

    /// Sets which rule of the policy thins its samples. The metadata thread.
    pub fn set_thinned_by(&self, id: ClassId, rule: Option<usize>) {
        if let Some(e) = self.entry(id) {
            let rule = rule.and_then(|rule| u8::try_from(rule + 1).ok());
            e.thinned_by.store(rule.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Every class that ever had an entry, those that have ended included.
    pub fn all(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.pool.high_water()).map(ClassId)
    }

    /// True for one caller, which then asks the metadata thread for the name. Any thread.
    pub fn ask_name(&self, id: ClassId) -> bool {
        self.entry(id).is_some_and(|e| {
            !e.asked.load(Ordering::Relaxed) && !e.asked.swap(true, Ordering::Relaxed)
        })
    }

    /// The metadata thread could not be asked; the next sample tries again.
    pub fn forget_asking(&self, id: ClassId) {
        if let Some(e) = self.entry(id) {
            e.asked.store(false, Ordering::Relaxed);
        }
    }

    /// Ends the entry of a class object that was freed. Returns the displaced tag to refund (0 for
    /// none), or `None` if the entry had ended before. Atomics only: called from `ObjectFree`.
    pub fn died(&self, tag: ClassTag) -> Option<i64> {
        self.end(self.entry(ClassId(tag.index()))?, tag.generation())
    }

    /// Ends an entry whose tag the class object does not carry. Nobody refunds its displaced tag.
    pub fn discard(&self, id: ClassId) {
        if let Some(entry) = self.entry(id) {
            let _ = self.end(entry, entry.state.generation());
        }
    }

    /// Ends the classes of the loaders for which `gone` is true, and passes their displaced tags to
    /// `refund`. The enforcer's thread ([`super::cleaning`]).
    pub fn end_with_loaders(&self, gone: impl Fn(LoaderId) -> bool, mut refund: impl FnMut(i64)) {
        for id in (0..self.pool.high_water()).map(ClassId) {
            let Some(entry) = self.entry(id) else {
                continue;
            };
            if entry.state.is_live()
                && gone(LoaderId(entry.loader.load(Ordering::Relaxed)))
                && let Some(displaced) = self.end(entry, entry.state.generation())
            {
                refund(displaced);
            }
        }
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

    /// The dead entries that are not recycled yet. The enforcer's thread.
    pub fn dead(&self) -> Vec<ClassId> {
        (0..self.pool.high_water())
            .map(ClassId)
            .filter(|&id| self.entry(id).is_some_and(|e| e.state.is_dead()))
            .collect()
    }

    /// Frees a dead entry that nothing refers to any more. The enforcer's thread alone.
    pub fn recycle(&self, id: ClassId) {
        let Some(entry) = self.entry(id) else { return };
        if entry.state.recycle() {
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
    fn kinds_are_read_off_signatures_and_survive_packing() {
        for (signature, kind) in [
            ("Lcom/acme/Shop;", Kind::Instance),
            ("Ljava/lang/Object;", Kind::Instance),
            ("Lcom/acme/Shop$$Lambda.0x0000000800c01000;", Kind::Instance),
            ("Ljava/lang/String;", Kind::Text),
            ("[Ljava/lang/String;", Kind::References),
            ("[B", Kind::Primitives),
            ("[[B", Kind::References),
            ("[Ljava/lang/Object;", Kind::Objects),
            ("[[Ljava/lang/Object;", Kind::References),
            ("Ljava/lang/Class;", Kind::OfVm),
            ("[Ljava/lang/Class;", Kind::OfVm),
            ("Ljava/lang/invoke/MethodType;", Kind::OfVm),
            ("Ljava/lang/reflect/Method;", Kind::OfVm),
            ("Ljava/lang/Classy;", Kind::Instance),
        ] {
            assert_eq!(Kind::of(signature), kind, "{signature}");
            assert_eq!(Kind::unpack(kind as u8), kind);
        }
        assert_eq!(Kind::unpack(Kind::Unknown as u8), Kind::Unknown);
    }

    #[test]
    fn a_recycled_entry_forgets_its_kind() {
        let classes = Classes::new();
        let id = classes.open(LoaderId::BOOT, [Claim::Nobody; 2], 0).unwrap();
        classes.set_kind(id, Kind::Text);
        assert_eq!(classes.kind(id), Kind::Text);
        classes.discard(id);
        classes.recycle(id);
        let again = classes.open(LoaderId::BOOT, [Claim::Nobody; 2], 0).unwrap();
        assert_eq!(again, id);
        assert_eq!(classes.kind(again), Kind::Unknown);
    }

    #[test]
    fn with_a_loader_end_its_classes_and_no_others() {
        let classes = Classes::new();
        let open = |loader, displaced| {
            classes
                .open(LoaderId(loader), [Claim::Nobody; 2], displaced)
                .unwrap()
        };
        let (first, twin, other) = (open(1, 7), open(1, 7), open(2, 8));
        let tag = ClassTag::new(first.0, 0).unwrap();
        assert_eq!(classes.died(tag), Some(7));
        let mut refunded = Vec::new();
        classes.end_with_loaders(|loader| loader == LoaderId(1), |tag| refunded.push(tag));
        assert_eq!(refunded, [7], "the twin's; that of the first was given");
        assert_eq!(classes.dead(), [first, twin]);
        classes.end_with_loaders(|_| true, |tag| refunded.push(tag));
        assert_eq!(refunded, [7, 8]);
        assert_eq!(classes.dead(), [first, twin, other]);
        assert_eq!(classes.deaths(), 3);
    }
}
