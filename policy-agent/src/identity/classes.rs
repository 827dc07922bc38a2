//! Loaded classes: which loader a class came from and whose its code is.
//!
//! An entry is opened when a class is first seen (at its preparation, or in a sample) and
//! named by a generation-checked id in the class object's JVM TI tag. Two threads that see
//! a new class at once may both open an entry; the tag written last wins. Either is right while
//! it lasts, and the other, the *twin*, ends in one of three ways: each thread looks at the tag
//! again when it has written its own; the clerk does when it names the class; and with a loader
//! end all entries of its classes, because a loader is not collected before its classes are.
//! What is left are twins of classes that are never unloaded: of each as many at the most as
//! threads met it first in the same few instructions.
//!
//! The claim of a class is kept twice, one side for the policy in force and one for the
//! policy being prepared, so that a reload classifies every class before it is switched to,
//! in one step.

use crate::ledger::PurseId;
use crate::ledger::{Chunks, IndexPool};
use crate::ledger::{ClassTag, Tag};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::bill::Claim;
use super::life::Life;
use super::loaders::LoaderId;

/// Classes tracked at once at the most; later ones stay unknown and are counted.
const MOST_CLASSES: u32 = 1 << 20;

/// A class entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClassId(pub(crate) u32);

impl ClassId {
    pub(crate) const UNKNOWN: ClassId = ClassId(crate::ledger::UNKNOWN_CLASS);
}

/// One of the two classifications kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side(pub(crate) usize);

impl Side {
    pub(crate) fn other(self) -> Side {
        Side(1 - self.0)
    }
}

/// What kind of thing the instances of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The class has not been looked at yet.
    #[default]
    Unknown,
    /// An instance of a class.
    Instance,
    /// A string.
    Text,
    /// An array of a primitive type.
    Primitives,
    /// An array of references, but of none of the next.
    References,
    /// An `Object[]`: the VM makes such for a class's resolved references.
    Objects,
    /// What the VM makes for itself: classes, method handles, mirrors of methods.
    OfVm,
}

impl Kind {
    /// The kind of a class by its signature (`Ljava/lang/String;`, `[B`).
    pub(crate) fn of(signature: &str) -> Kind {
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
    life: Life,
    loader: AtomicU32,
    claims: [AtomicU32; 2],
    /// Whether the resolver has been asked for the name.
    asked: AtomicBool,
    kind: AtomicU8,
}

/// The table of classes.
pub(crate) struct Classes {
    pool: IndexPool,
    entries: Chunks<Entry, 1024>,
    /// Entries that died since the agent was loaded.
    deaths: AtomicU32,
}

fn pack(claim: Claim) -> u32 {
    match claim {
        Claim::Nobody => 0,
        Claim::Account(purse) => 1 << 16 | u32::from(purse.get()),
        Claim::Library(purse) => 2 << 16 | u32::from(purse.get()),
    }
}

fn unpack(packed: u32) -> Claim {
    let purse = PurseId::new(packed as u16);
    match packed >> 16 {
        1 => Claim::Account(purse),
        2 => Claim::Library(purse),
        _ => Claim::Nobody,
    }
}

impl Classes {
    pub(crate) fn new() -> Classes {
        Classes {
            pool: IndexPool::new(MOST_CLASSES, 1),
            entries: Chunks::new(MOST_CLASSES),
            deaths: AtomicU32::new(0),
        }
    }

    /// Opens an entry. `displaced` is the tag that the class object carries now, or 0.
    /// `None` when the table is full.
    pub(crate) fn open(
        &self,
        loader: LoaderId,
        claims: [Claim; 2],
        displaced: i64,
    ) -> Option<ClassId> {
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
        entry.life.open(displaced);
        Some(ClassId(index))
    }

    fn entry(&self, id: ClassId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// The tag to put on the class object.
    pub(crate) fn tag(&self, id: ClassId) -> Option<i64> {
        let generation = self.entry(id)?.life.generation();
        Some(Tag::Class(ClassTag::new(id.0, generation)?).encode())
    }

    /// The id in a class tag; `UNKNOWN` for a tag of an earlier life of the entry.
    pub(crate) fn of_tag(&self, tag: ClassTag) -> ClassId {
        let id = ClassId(tag.index());
        match self.entry(id) {
            Some(e) if e.life.generation() == tag.generation() => id,
            _ => ClassId::UNKNOWN,
        }
    }

    /// Which of the successive owners of the entry.
    pub(crate) fn generation(&self, id: ClassId) -> u32 {
        self.entry(id).map_or(0, |e| e.life.generation())
    }

    pub(crate) fn loader(&self, id: ClassId) -> LoaderId {
        LoaderId(
            self.entry(id)
                .map_or(0, |e| e.loader.load(Ordering::Relaxed)),
        )
    }

    /// Whose the code of the class is by package.
    pub(crate) fn claim(&self, id: ClassId, side: Side) -> Claim {
        self.entry(id).map_or(Claim::Nobody, |e| {
            unpack(e.claims[side.0].load(Ordering::Relaxed))
        })
    }

    pub(crate) fn set_claim(&self, id: ClassId, side: Side, claim: Claim) {
        if let Some(e) = self.entry(id) {
            e.claims[side.0].store(pack(claim), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_claims(&self, id: ClassId, claims: [Claim; 2]) {
        for (side, claim) in claims.into_iter().enumerate() {
            self.set_claim(id, Side(side), claim);
        }
    }

    /// What its instances are; unknown until the clerk has named the class.
    pub(crate) fn kind(&self, id: ClassId) -> Kind {
        self.entry(id).map_or(Kind::Unknown, |e| {
            Kind::unpack(e.kind.load(Ordering::Relaxed))
        })
    }

    pub(crate) fn set_kind(&self, id: ClassId, kind: Kind) {
        if let Some(e) = self.entry(id) {
            e.kind.store(kind as u8, Ordering::Relaxed);
        }
    }

    /// True for the one caller that shall ask the resolver for the name.
    pub(crate) fn ask_name(&self, id: ClassId) -> bool {
        self.entry(id).is_some_and(|e| {
            !e.asked.load(Ordering::Relaxed) && !e.asked.swap(true, Ordering::Relaxed)
        })
    }

    /// The resolver could not be asked: the next sample tries again.
    pub(crate) fn forget_asking(&self, id: ClassId) {
        if let Some(e) = self.entry(id) {
            e.asked.store(false, Ordering::Relaxed);
        }
    }

    /// The class object is gone. Returns the displaced tag to refund, 0 for none; `None` if
    /// that was known. Atomics only: called from `ObjectFree`.
    pub(crate) fn died(&self, tag: ClassTag) -> Option<i64> {
        self.end(self.entry(ClassId(tag.index()))?, tag.generation())
    }

    /// The class carries another entry's tag, or none of ours: the displaced tag is not this
    /// one's to refund.
    pub(crate) fn discard(&self, id: ClassId) {
        if let Some(entry) = self.entry(id) {
            let _ = self.end(entry, entry.life.generation());
        }
    }

    /// Ends the classes of the loaders that `gone` names; hands their displaced tags to
    /// `refund`. For the janitor.
    pub(crate) fn end_with_loaders(
        &self,
        gone: impl Fn(LoaderId) -> bool,
        mut refund: impl FnMut(i64),
    ) {
        for id in (0..self.pool.high_water()).map(ClassId) {
            let Some(entry) = self.entry(id) else {
                continue;
            };
            if entry.life.is_live()
                && gone(LoaderId(entry.loader.load(Ordering::Relaxed)))
                && let Some(displaced) = self.end(entry, entry.life.generation())
            {
                refund(displaced);
            }
        }
    }

    fn end(&self, entry: &Entry, generation: u32) -> Option<i64> {
        let displaced = entry.life.end(generation)?;
        self.deaths.fetch_add(1, Ordering::Release);
        Some(displaced)
    }

    /// How many entries have died so far.
    pub(crate) fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// The dead entries. For the janitor.
    pub(crate) fn dead(&self) -> Vec<ClassId> {
        (0..self.pool.high_water())
            .map(ClassId)
            .filter(|&id| self.entry(id).is_some_and(|e| e.life.is_dead()))
            .collect()
    }

    /// Frees a dead entry that nothing refers to any more. For the janitor alone.
    pub(crate) fn recycle(&self, id: ClassId) {
        let Some(entry) = self.entry(id) else { return };
        if entry.life.recycle() {
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
