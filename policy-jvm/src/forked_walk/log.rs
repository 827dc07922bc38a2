//! The log of references: what a walk writes down, in a compact form.
//!
//! A *compact address* numbers the eight-byte words of the 64 MiB pieces of the heap in the order in which
//! objects were met in them. One *record* describes one object that has references:
//!
//! ```text
//! from (4)  class and flags (4)  bytes of references (4)  [own tag (8)]  references  padding to 4
//! reference: to (4), label (1 to 5)
//! ```
//!
//! A label is `index << 3 | kind`, as a variable-length number. The index of an array's element is the
//! distance from the element before it, because most arrays are full. Class references are not written: the
//! class of the record implies them.

use super::memory::{Plain, Sharing, Table};

/// Pieces of the heap at the most: 32 GiB of pieces in which there is an object.
pub(super) const MAX_PIECES: usize = 512;
const PIECE_SHIFT: u32 = 26;
const WORDS_SHIFT: u32 = PIECE_SHIFT - 3;
/// Compact addresses at the most.
pub(super) const PLACES: usize = MAX_PIECES << WORDS_SHIFT;
const HEADER_BYTES: usize = 12;
const OWN_TAG: u32 = 1 << 31;
const CLASS_MASK: u32 = 0x00ff_ffff;
/// The number of a class that is not in the table.
pub(super) const UNKNOWN_CLASS: u32 = CLASS_MASK;
/// Longest reference, in bytes.
const MAX_REFERENCE_BYTES: usize = 9;

/// How one object refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    /// By the instance field with this index, as JVM TI counts them.
    Field(u32),
    /// By the element of an array.
    Element(u32),
    /// By the static field with this index, as JVM TI counts them.
    Static(u32),
    /// A class by its loader.
    Loader,
    /// A class by its super class.
    SuperClass,
    /// A class by its constant pool.
    ConstantPool,
    /// A class by an interface, its signers or its protection domain.
    OfClass,
    /// An object by its class.
    Class,
}

impl Via {
    /// The label's number, without the index.
    fn kind(self) -> u32 {
        match self {
            Via::Field(_) => 0,
            Via::Element(_) => 1,
            Via::Static(_) => 2,
            Via::Loader => 3,
            Via::SuperClass => 4,
            Via::ConstantPool => 5,
            Via::OfClass => 6,
            Via::Class => 7,
        }
    }

    fn index(self) -> u32 {
        match self {
            Via::Field(index) | Via::Element(index) | Via::Static(index) => index,
            _ => 0,
        }
    }

    /// As one number, for the wire.
    pub(super) fn pack(self) -> u32 {
        self.index().min(u32::MAX >> 3) << 3 | self.kind()
    }

    pub(super) fn unpack(packed: u32) -> Via {
        let index = packed >> 3;
        match packed & 7 {
            0 => Via::Field(index),
            1 => Via::Element(index),
            2 => Via::Static(index),
            3 => Via::Loader,
            4 => Via::SuperClass,
            5 => Via::ConstantPool,
            6 => Via::OfClass,
            _ => Via::Class,
        }
    }
}

/// Addresses as compact numbers.
pub(super) struct Pieces {
    /// Open addressing by piece: its number plus one, and its index.
    slots: Table<u64>,
    found: Table<u32>,
    count: u32,
    last: (u64, u32),
}

const SLOTS: usize = 4 * MAX_PIECES;

impl Pieces {
    pub(super) fn new(sharing: Sharing) -> Option<Pieces> {
        Some(Pieces {
            slots: Table::new(SLOTS, sharing)?,
            found: Table::new(SLOTS, sharing)?,
            count: 0,
            last: (u64::MAX, 0),
        })
    }

    /// The compact number of an address; `None` if there are too many pieces.
    #[inline]
    pub(super) fn compact(&mut self, address: u64) -> Option<u32> {
        let piece = address >> PIECE_SHIFT;
        let index = if piece == self.last.0 {
            self.last.1
        } else {
            let index = self.index(piece)?;
            self.last = (piece, index);
            index
        };
        let word = (address >> 3) as u32 & ((1 << WORDS_SHIFT) - 1);
        Some(index << WORDS_SHIFT | word)
    }

    /// All compact numbers given are below this.
    pub(super) fn used_places(&self) -> usize {
        (self.count as usize) << WORDS_SHIFT
    }

    fn index(&mut self, piece: u64) -> Option<u32> {
        let mut slot = (piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS;
        loop {
            match self.slots[slot] {
                0 => break,
                known if known == piece + 1 => return Some(self.found[slot]),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
        if self.count as usize == MAX_PIECES {
            return None;
        }
        self.slots[slot] = piece + 1;
        self.found[slot] = self.count;
        self.count += 1;
        Some(self.count - 1)
    }
}

/// The log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The log while it is written.
pub(super) struct Log {
    bytes: Table<u8>,
    used: usize,
    /// Where the record that is being written begins, and the last element of it.
    open: Option<usize>,
    open_from: u32,
    last_element: u32,
    pub(super) records: u32,
}

impl Log {
    pub(super) fn new(bytes: usize, sharing: Sharing) -> Option<Log> {
        Some(Log {
            bytes: Table::new(bytes, sharing)?,
            used: 0,
            open: None,
            open_from: 0,
            last_element: 0,
            records: 0,
        })
    }

    fn put(&mut self, at: usize, word: u32) {
        self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Whether the record that is open is of this object.
    #[inline]
    pub(super) fn is_of(&self, from: u32) -> bool {
        self.open.is_some() && self.open_from == from
    }

    /// Begins the record of an object.
    pub(super) fn begin(&mut self, from: u32, class: u32, own_tag: i64) -> Result<(), Full> {
        self.finish();
        let at = self.used;
        if at + HEADER_BYTES + 8 + 4 > self.bytes.len() {
            return Err(Full);
        }
        let has_tag = own_tag != 0;
        let flags = if has_tag { OWN_TAG } else { 0 };
        self.put(at, from);
        self.put(at + 4, class & CLASS_MASK | flags);
        self.put(at + 8, 0);
        self.used = at + HEADER_BYTES;
        if has_tag {
            let end = self.used + 8;
            self.bytes[self.used..end].copy_from_slice(&own_tag.to_le_bytes());
            self.used = end;
        }
        self.open = Some(at);
        self.open_from = from;
        self.last_element = 0;
        self.records += 1;
        Ok(())
    }

    /// Adds a reference of the record that is open.
    #[inline]
    pub(super) fn refer(&mut self, to: u32, via: Via) -> Result<(), Full> {
        let mut at = self.used;
        if at + MAX_REFERENCE_BYTES + 4 > self.bytes.len() {
            return Err(Full);
        }
        self.put(at, to);
        at += 4;
        let index = match via {
            Via::Element(index) => {
                let distance = index.wrapping_sub(self.last_element);
                self.last_element = index;
                distance
            }
            other => other.index(),
        };
        let mut label = u64::from(index) << 3 | u64::from(via.kind());
        while label >= 0x80 {
            self.bytes[at] = label as u8 | 0x80;
            label >>= 7;
            at += 1;
        }
        self.bytes[at] = label as u8;
        self.used = at + 1;
        Ok(())
    }

    /// Ends the record that is open.
    pub(super) fn finish(&mut self) {
        let Some(at) = self.open.take() else { return };
        let has_tag = self.word(at + 4) & OWN_TAG != 0;
        let references = at + HEADER_BYTES + if has_tag { 8 } else { 0 };
        self.put(at + 8, (self.used - references) as u32);
        self.used = self.used.next_multiple_of(4);
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.bytes, at)
    }

    /// Returns the bytes of all records, after [`Log::finish`].
    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.used.min(self.bytes.len())]
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    found.map_or(0, u32::from_le_bytes)
}

/// A record, read.
#[derive(Clone, Copy)]
pub(super) struct Record<'l> {
    pub(super) from: u32,
    pub(super) class: u32,
    pub(super) own_tag: i64,
    references: &'l [u8],
    /// Where the next record begins.
    pub(super) next: usize,
}

/// The record at a position of a log; `None` behind its end.
#[inline]
pub(super) fn record(log: &[u8], at: usize) -> Option<Record<'_>> {
    if at + HEADER_BYTES > log.len() {
        return None;
    }
    let (from, class, bytes) = (word(log, at), word(log, at + 4), word(log, at + 8) as usize);
    let mut begin = at + HEADER_BYTES;
    let mut own_tag = 0;
    if class & OWN_TAG != 0 {
        own_tag = i64::from_le_bytes(log.get(begin..begin + 8)?.try_into().ok()?);
        begin += 8;
    }
    Some(Record {
        from,
        class: class & CLASS_MASK,
        own_tag,
        references: log.get(begin..begin + bytes)?,
        next: (begin + bytes).next_multiple_of(4),
    })
}

impl<'l> Record<'l> {
    /// The references: to whom, and by what.
    pub(super) fn references(&self) -> References<'l> {
        References {
            rest: self.references,
            last_element: 0,
        }
    }
}

/// An iterator over the references of a record.
pub(super) struct References<'l> {
    rest: &'l [u8],
    last_element: u32,
}

impl Iterator for References<'_> {
    type Item = (u32, Via);

    #[inline]
    fn next(&mut self) -> Option<(u32, Via)> {
        let (to, mut rest) = self.rest.split_first_chunk::<4>()?;
        let mut label = 0u64;
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            label |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 35 {
                break;
            }
        }
        self.rest = rest;
        let index = (label >> 3) as u32;
        let via = match label & 7 {
            1 => {
                self.last_element = self.last_element.wrapping_add(index);
                Via::Element(self.last_element)
            }
            kind => Via::unpack((index << 3) | kind as u32),
        };
        Some((u32::from_le_bytes(*to), via))
    }
}

/// The VM's reason to keep an object alive by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootKind {
    /// A global reference of native code.
    JniGlobal,
    /// A class or an object that the VM itself keeps.
    System,
    /// An object whose monitor is held or waited for.
    Monitor,
    /// A local variable of a method that runs.
    StackLocal,
    /// A local reference of native code.
    JniLocal,
    /// A thread.
    Thread,
    /// Something else of the VM.
    Other,
}

/// A root as the walk meets it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RawRoot {
    pub(super) thread_id: u64,
    pub(super) method: u64,
    pub(super) own_tag: u64,
    pub(super) to: u32,
    pub(super) kind: u32,
    pub(super) depth: u32,
    pub(super) slot: u32,
}

// SAFETY: integers alone, without padding.
unsafe impl Plain for RawRoot {}

/// An object that was looked for, as the walk meets it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RawTarget {
    pub(super) tag: u64,
    pub(super) at: u32,
    pub(super) class: u32,
}

// SAFETY: integers alone, without padding.
unsafe impl Plain for RawTarget {}

impl RootKind {
    pub(super) fn of(kind: u32) -> RootKind {
        match kind {
            0 => RootKind::JniGlobal,
            1 => RootKind::System,
            2 => RootKind::Monitor,
            3 => RootKind::StackLocal,
            4 => RootKind::JniLocal,
            5 => RootKind::Thread,
            _ => RootKind::Other,
        }
    }

    /// Whether it lasts no longer than a call.
    pub fn is_of_a_stack(self) -> bool {
        matches!(self, RootKind::StackLocal | RootKind::JniLocal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_full_log_says_so() {
        let mut log = Log::new(4096, Sharing::Private).unwrap();
        log.begin(7, 3, -5).unwrap();
        let first = [
            (1, Via::Field(0)),
            (2, Via::Static(300)),
            (u32::MAX, Via::Loader),
        ];
        for (to, via) in first {
            log.refer(to, via).unwrap();
        }
        log.begin(8, UNKNOWN_CLASS, 0).unwrap();
        let elements = [0, 1, 2, 1 << 20, (1 << 20) + 1].map(|index| (9, Via::Element(index)));
        for (to, via) in elements {
            log.refer(to, via).unwrap();
        }
        log.finish();
        assert_eq!(log.records, 2);
        let one = record(log.written(), 0).unwrap();
        assert_eq!((one.from, one.class, one.own_tag), (7, 3, -5));
        assert_eq!(one.references().collect::<Vec<_>>(), first);
        let two = record(log.written(), one.next).unwrap();
        assert_eq!((two.from, two.class, two.own_tag), (8, UNKNOWN_CLASS, 0));
        assert_eq!(two.references().collect::<Vec<_>>(), elements);
        assert!(record(log.written(), two.next).is_none());

        let mut small = Log::new(64, Sharing::Private).unwrap();
        small.begin(1, 1, 0).unwrap();
        let full = (0..64).find_map(|to| small.refer(to, Via::Loader).err());
        assert_eq!(full, Some(Full));
    }

    #[test]
    fn addresses_of_pieces_anywhere_become_small_numbers_until_there_are_too_many() {
        let mut pieces = Pieces::new(Sharing::Private).unwrap();
        let (low, high) = (0x0000_7000_0000_0000u64, 0x0000_0004_0000_0008u64);
        let numbers = [low, high, low + 8].map(|address| pieces.compact(address).unwrap());
        assert_eq!(numbers, [0, (1 << WORDS_SHIFT) + 1, 1]);
        for piece in 0..MAX_PIECES as u64 - 2 {
            assert!(pieces.compact(piece << PIECE_SHIFT | 1 << 45).is_some());
        }
        assert_eq!(pieces.compact(1 << 46), None);
        assert_eq!(pieces.compact(low), Some(0));
    }

    #[test]
    fn labels_survive_packing() {
        for via in [
            Via::Field(5),
            Via::Element(0),
            Via::Static(77),
            Via::Loader,
            Via::SuperClass,
            Via::ConstantPool,
            Via::OfClass,
            Via::Class,
        ] {
            assert_eq!(Via::unpack(via.pack()), via);
        }
    }
}
