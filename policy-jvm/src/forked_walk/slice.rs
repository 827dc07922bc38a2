//! A slice of the heap: what some accounts' own classes and threads reach, without what belongs to others.
//!
//! The walk begins at an array of the agent's own, whose elements are the class objects and threads of these accounts.
//! So it looks at no stack and at no root of the VM. It ends wherever it comes to something that belongs to somebody
//! else or to nobody: a class object, a thread or a class loader. An object that is no such thing belongs to whom it is
//! reached by.
//!
//! # Rules
//! 1. A path that a slice finds is true: each of its references was there in the one stop of the slice.
//! 2. That a slice does not find an object shows nothing.
//! 3. A stack holds nothing in a slice: what is held by a stack alone is found in the walk from the roots.

use jvmti_bindings::sys::jvmti;

use super::log::RawRoot;
use super::recorder::{Call, Failure, Recorder};

/// The kind of a root that is a thread.
const THREAD: u32 = 5;

/// What a slice is of.
pub(super) struct Slice<'r> {
    /// The holder of each thread and class loader, by its tag. Sorted by tag.
    owned: &'r [(i64, u8)],
    /// The array that it begins at, once it is met: as the referrer of the very first reference.
    start: Option<u32>,
    /// The bytes of the objects that were met.
    pub(super) bytes: u64,
}

impl<'r> Slice<'r> {
    pub(super) fn new(owned: &'r [(i64, u8)]) -> Slice<'r> {
        Slice {
            owned,
            start: None,
            bytes: 0,
        }
    }

    /// The holder of a thread or class loader; `None` for any other object.
    fn holder(&self, tag: i64) -> Option<u8> {
        if tag == 0 {
            return None;
        }
        let found = self.owned.binary_search_by_key(&tag, |owned| owned.0);
        found.ok().map(|index| self.owned[index].1)
    }
}

/// Where a reference of a slice leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// To a class object or a thread that the slice begins with.
    Start,
    /// To what it looks into.
    Inside,
    /// To what belongs to somebody else, or to the class of the array itself.
    Border,
}

impl Recorder<'_> {
    /// Where a reference leads: always inside in a walk of the whole heap.
    #[inline]
    pub(super) fn place(&mut self, call: &Call, ends: (u32, u32), class: u32, tag: i64) -> Place {
        let Some(slice) = &mut self.slice else {
            return Place::Inside;
        };
        let (from, to) = ends;
        if *slice.start.get_or_insert(from) == from {
            return match call.kind {
                jvmti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT => Place::Start,
                _ => Place::Border,
            };
        }
        let classes = self.classes;
        let holder = match classes.is_mirror(class) {
            true => Some(classes.holder(classes.number(tag))),
            false => slice.holder(tag),
        };
        if holder == Some(0) {
            return Place::Border;
        }
        if !self.seen.contains(to) {
            slice.bytes += call.size.unsigned_abs();
            if classes.is_skipped(class) {
                self.seen.insert(to);
            }
        }
        Place::Inside
    }

    /// Takes note of what a slice begins with: a thread is a root, and of a class object its static fields are.
    pub(super) fn start(&mut self, to: u32, class: u32, tag: i64) -> Result<bool, Failure> {
        if !self.classes.is_mirror(class) {
            self.add_root(RawRoot {
                to,
                own_tag: tag as u64,
                kind: THREAD,
                ..RawRoot::default()
            })?;
        }
        Ok(self.visit(to, class))
    }
}
