//! The values of the agent's JVM TI tags.
//!
//! A tag is a `jlong` that JVM TI keeps for an object; zero means untagged. Layout, from
//! the top: bit 63 zero, then the kind, then what the kind needs:
//!
//! ```text
//! object   0 | 001 | generation (32) | index (28)
//! class    0 | 010 | generation (32) | 0000 index (24)
//! loader   0 | 011 | generation (32) | 0000 index (24)
//! canary   0 | 100 | 0 (27) old (1)  | epoch (32)
//! scope    0 | 101 | generation (32) | 0000 index (24)
//! thread   0 | 110 | 0 (28)          | index (32)
//! ```
//!
//! An index is used again after its object is gone; the generation tells a late or
//! doubled `ObjectFree` of an earlier owner from the present one. Kinds start at 1, so
//! no tag is zero. [`Tag::decode`] refuses every value that [`Tag::encode`] cannot
//! give: a foreign tag is never taken for ours.

use super::epoch::Epoch;

const PAYLOAD_BITS: u32 = 60;
const INDEX_BITS: u32 = 28;
const KIND_OBJECT: u64 = 1;
const KIND_CLASS: u64 = 2;
const KIND_LOADER: u64 = 3;
const KIND_CANARY: u64 = 4;
const KIND_SCOPE: u64 = 5;
const KIND_THREAD: u64 = 6;
const OLD: u64 = 1 << 32;

/// An index below 2^`BITS` with the generation of its present owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle<const BITS: u32> {
    index: u32,
    generation: u32,
}

/// The tag of a sampled object: names a record of the ledger.
pub type ObjectTag = Handle<INDEX_BITS>;
/// The tag of a class.
pub type ClassTag = Handle<24>;
/// The tag of a class loader.
pub type LoaderTag = Handle<24>;
/// The tag of the object that stands for a scope.
pub type ScopeTag = Handle<24>;

impl<const BITS: u32> Handle<BITS> {
    /// How many indices there are.
    pub const INDICES: u32 = 1 << BITS;

    /// `None` if the index does not fit.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Option<Self> {
        const { assert!(BITS <= INDEX_BITS) };
        if index < Self::INDICES {
            Some(Self { index, generation })
        } else {
            None
        }
    }

    /// The place in its table.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Which of the successive owners of that place.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    const fn payload(self) -> u64 {
        (self.generation as u64) << INDEX_BITS | self.index as u64
    }

    const fn from_payload(payload: u64) -> Option<Self> {
        let index = payload & ((1 << INDEX_BITS) - 1);
        Self::new(index as u32, (payload >> INDEX_BITS) as u32)
    }
}

/// A tag, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// A sampled object: a record of the ledger.
    Object(ObjectTag),
    /// A class.
    Class(ClassTag),
    /// A class loader.
    Loader(LoaderTag),
    /// A canary: its death proves a collection (see [`super::epoch`]).
    Canary(Epoch),
    /// A canary whose death proves one that covers old memory too.
    OldCanary(Epoch),
    /// An object that stands for a scope in the program: while it lives, the scope can be charged.
    Scope(ScopeTag),
    /// A thread, while the heap is walked: so a walk recognises it. Its death means nothing.
    Thread(u32),
}

impl Tag {
    /// Which bits of a tag tell that it is that of a sampled object, and what they are.
    pub const OF_OBJECTS: (i64, i64) = (
        !((1 << PAYLOAD_BITS) - 1),
        (KIND_OBJECT << PAYLOAD_BITS) as i64,
    );

    /// The `jlong` for `SetTag`; positive, never zero.
    #[must_use]
    pub const fn encode(self) -> i64 {
        let (kind, payload) = match self {
            Self::Object(handle) => (KIND_OBJECT, handle.payload()),
            Self::Class(handle) => (KIND_CLASS, handle.payload()),
            Self::Loader(handle) => (KIND_LOADER, handle.payload()),
            Self::Canary(epoch) => (KIND_CANARY, epoch.get() as u64),
            Self::OldCanary(epoch) => (KIND_CANARY, OLD | epoch.get() as u64),
            Self::Scope(handle) => (KIND_SCOPE, handle.payload()),
            Self::Thread(index) => (KIND_THREAD, index as u64),
        };
        (kind << PAYLOAD_BITS | payload) as i64
    }

    /// The inverse of [`Tag::encode`]; `None` for zero and for any tag not ours.
    #[must_use]
    pub const fn decode(tag: i64) -> Option<Self> {
        let bits = tag as u64;
        let payload = bits & ((1 << PAYLOAD_BITS) - 1);
        match bits >> PAYLOAD_BITS {
            KIND_OBJECT => match Handle::from_payload(payload) {
                Some(handle) => Some(Self::Object(handle)),
                None => None,
            },
            KIND_CLASS => match Handle::from_payload(payload) {
                Some(handle) => Some(Self::Class(handle)),
                None => None,
            },
            KIND_LOADER => match Handle::from_payload(payload) {
                Some(handle) => Some(Self::Loader(handle)),
                None => None,
            },
            KIND_SCOPE => match Handle::from_payload(payload) {
                Some(handle) => Some(Self::Scope(handle)),
                None => None,
            },
            KIND_THREAD if payload <= u32::MAX as u64 => Some(Self::Thread(payload as u32)),
            KIND_CANARY if payload < OLD => Some(Self::Canary(Epoch::new(payload as u32))),
            KIND_CANARY if payload < OLD << 1 => Some(Self::OldCanary(Epoch::new(payload as u32))),
            _ => None,
        }
    }
}
