//! A table of fixed capacity whose memory is committed chunk by chunk.
//!
//! Rules:
//! 1. A place never moves and is never given back: a reference stays good as long as
//!    the table, so readers need no protection.
//! 2. The first thread that touches a chunk builds it. If several do, the first to install its chunk
//!    wins and the others drop theirs. No thread waits for another.
//! 3. If the system has no memory, the answer is `None`; the process does not abort.
//!
//! Under loom every chunk is committed at once: `once_cell` does the installation, and the models
//! check what is stored in the table.

use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};

/// Builds a boxed array without a copy on the stack; `None` when there is no memory.
pub(crate) fn boxed_array<T: Default, const N: usize>() -> Option<Box<[T; N]>> {
    let mut items = Vec::new();
    items.try_reserve_exact(N).ok()?;
    items.resize_with(N, T::default);
    items.into_boxed_slice().try_into().ok()
}

/// `capacity` places of `T`, committed `N` at a time.
#[derive(Debug)]
pub struct Chunks<T, const N: usize> {
    chunks: Box<[OnceBox<[T; N]>]>,
    capacity: u32,
    committed_chunks: AtomicU64,
}

impl<T: Default, const N: usize> Chunks<T, N> {
    /// An empty table; nothing is committed but its directory of one pointer a chunk.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let this = Self {
            chunks: (0..(capacity as usize).div_ceil(N))
                .map(|_| OnceBox::new())
                .collect(),
            capacity,
            committed_chunks: AtomicU64::new(0),
        };
        if cfg!(loom) {
            this.grow_ahead(capacity);
        }
        this
    }

    /// How many places there can be.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The place `index`, if its chunk is committed. Any thread, one load.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        if index >= self.capacity {
            return None;
        }
        let index = index as usize;
        self.chunks[index / N].get().map(|chunk| &chunk[index % N])
    }

    /// The place `index`, committing its chunk if need be. Any thread, lock-free; it
    /// allocates at the first touch of a chunk. `None` beyond the capacity and when the
    /// system has no memory.
    #[must_use]
    pub fn get_or_grow(&self, index: u32) -> Option<&T> {
        if index >= self.capacity {
            return None;
        }
        let chunk = self.commit(index as usize / N)?;
        Some(&chunk[index as usize % N])
    }

    #[inline]
    fn commit(&self, chunk: usize) -> Option<&[T; N]> {
        match self.chunks[chunk].get() {
            Some(places) => Some(places),
            None => self.build(chunk),
        }
    }

    #[cold]
    fn build(&self, chunk: usize) -> Option<&[T; N]> {
        if self.chunks[chunk].set(boxed_array()?).is_ok() {
            self.committed_chunks.fetch_add(1, Ordering::Relaxed);
        }
        self.chunks[chunk].get()
    }

    /// Commits the places below `upto` (clipped to the capacity), so that allocating
    /// threads find them there. For a background thread; false if memory ran out.
    pub fn grow_ahead(&self, upto: u32) -> bool {
        let upto = upto.min(self.capacity) as usize;
        (0..upto.div_ceil(N)).all(|chunk| self.commit(chunk).is_some())
    }

    /// Native memory held, in bytes: the directory and the committed chunks.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        let directory = size_of_val(&*self.chunks) as u64;
        let chunks = self.committed_chunks.load(Ordering::Relaxed);
        directory + chunks * size_of::<[T; N]>() as u64
    }
}
