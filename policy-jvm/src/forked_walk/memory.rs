//! Tables in mappings of their own, made without `malloc`.

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

/// Types for which every pattern of bits is a value, zeros included.
///
/// # Safety
/// The type must have no invalid bit pattern, no padding that is read, and nothing to drop.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: every bit pattern of an integer is a value.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Who sees what is written to a table after a fork.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The process that writes.
    Private,
    /// Parent and child.
    Shared,
}

/// A table of fixed length, at first all zeros. Pages take memory when they are first written.
pub(super) struct Table<T: Plain> {
    base: NonNull<T>,
    length: usize,
}

// SAFETY: the table owns its mapping, like a `Box<[T]>`.
unsafe impl<T: Plain + Send> Send for Table<T> {}

impl<T: Plain> Table<T> {
    /// Maps a table; `None` if the kernel refuses. A system call, no `malloc`.
    pub(super) fn new(length: usize, sharing: Sharing) -> Option<Table<T>> {
        let bytes = length.max(1).checked_mul(size_of::<T>())?;
        let visible = match sharing {
            Sharing::Private => libc::MAP_PRIVATE,
            Sharing::Shared => libc::MAP_SHARED,
        };
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                visible | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(base.cast())?;
        Some(Table { base, length })
    }
}

impl<T: Plain> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has `length` elements, page-aligned and initialised by the kernel with zeros,
        // which are values of a `Plain` type; it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }
}

impl<T: Plain> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` makes it the only reference of this process.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl<T: Plain> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: `base` and the length are those of a mapping that this value owns.
        unsafe {
            libc::munmap(
                self.base.as_ptr().cast(),
                self.length.max(1) * size_of::<T>(),
            )
        };
    }
}

/// A set of compact addresses, one bit each.
pub(super) struct Bits(Table<u64>);

impl Bits {
    /// A set of numbers below `places`.
    pub(super) fn new(places: usize, sharing: Sharing) -> Option<Bits> {
        Table::new(places.div_ceil(64), sharing).map(Bits)
    }

    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// Adds a number; true if it was not there.
    #[inline]
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let Some(word) = self.0.get_mut(number as usize / 64) else {
            return false;
        };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.0
    }
}
