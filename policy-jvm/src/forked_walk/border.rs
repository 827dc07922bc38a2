//! The border of a slice: where it begins and ends.

/// The owners that bound a slice, the array that it begins at, and the bytes that it has met.
pub(super) struct Slice<'r> {
    /// The holder of each thread and class loader, by its tag. Sorted by tag.
    owned: &'r [(i64, u8)],
    /// The array that it begins at, once it is met: as the referrer of the very first reference.
    pub(super) start: Option<u32>,
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
    pub(super) fn holder(&self, tag: i64) -> Option<u8> {
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
