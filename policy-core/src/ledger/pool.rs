//! A bounded, lock-free allocator of indices.
//!
//! # Rules
//! 1. An index is handed out to one owner at a time; [`IndexPool::push`] gives it back,
//!    once, by its owner. (Who might free twice guards it by a generation: the slab.)
//! 2. Free indices are kept in a Treiber stack. Its head holds the top and a counter of
//!    35 bits that every change advances, so that a head seen twice is the same head
//!    (ABA: it would take 2^35 changes within one thread's few instructions). A link
//!    read from an index that another thread has taken meanwhile is thrown away,
//!    because the exchange of the head then fails.
//! 3. Never-used indices are taken in blocks: the first goes to the caller, the others
//!    are linked privately and spliced on in one exchange.
//! 4. Free indices are used again before fresh ones, so memory follows the need.
//!
//! To keep threads off one cache line there are several stacks; a block belongs to one
//! of them, so that neighbouring places are freed to, and mostly reused by, the same
//! threads. A caller names the stack it would like (`hint`), and looks at the others
//! before it takes fresh indices.
//!
//! While one thread is between taking the last block and splicing it, another can be
//! told `None` though a few indices are about to be free: a dropped sample at the edge
//! of a full table, never a lost index.

use super::chunks::Chunks;
use super::tag::ObjectTag;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const INDEX_BITS: u32 = 29;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

#[cfg(not(loom))]
const BLOCK: u32 = 64;
#[cfg(loom)]
const BLOCK: u32 = 2;

#[cfg(not(loom))]
const LINKS_PER_CHUNK: usize = 1024;
#[cfg(loom)]
const LINKS_PER_CHUNK: usize = 2;

/// The head of a stack on a cache line of its own: counter, and top index + 1 (0: empty).
#[derive(Debug)]
#[repr(align(64))]
struct Head(AtomicU64);

const fn head_after(old: u64, top: u64) -> u64 {
    ((old >> INDEX_BITS) + 1) << INDEX_BITS | top
}

/// Hands out indices below a fixed capacity.
#[derive(Debug)]
pub struct IndexPool {
    heads: Box<[Head]>,
    /// The first index never handed out.
    fresh: Head,
    /// For each free index, the one below it in its stack, + 1.
    links: Chunks<AtomicU32, LINKS_PER_CHUNK>,
}

impl IndexPool {
    /// A pool of the indices `0..capacity` in `stacks` stacks (at least one). More than
    /// 2^28 indices, the width of a tag, are never handed out.
    #[must_use]
    pub fn new(capacity: u32, stacks: usize) -> Self {
        Self {
            heads: (0..stacks.max(1))
                .map(|_| Head(AtomicU64::new(0)))
                .collect(),
            fresh: Head(AtomicU64::new(0)),
            links: Chunks::new(capacity.min(ObjectTag::INDICES)),
        }
    }

    /// Takes an index. Lock-free, any thread; allocates at the first touch of a chunk of
    /// links. `None` when all are taken (or no native memory is left).
    #[must_use]
    pub fn pop(&self, hint: usize) -> Option<u32> {
        self.pop_freed(hint)
            .or_else(|| self.pop_fresh(hint))
            // Between the two looks another thread may have spliced the last block.
            .or_else(|| self.pop_freed(hint))
    }

    fn pop_freed(&self, hint: usize) -> Option<u32> {
        (0..self.heads.len())
            .find_map(|step| self.unlink(&self.heads[(hint + step) % self.heads.len()].0))
    }

    fn unlink(&self, head: &AtomicU64) -> Option<u32> {
        let mut seen = head.load(Ordering::Acquire);
        loop {
            let index = (seen & INDEX_MASK).checked_sub(1)? as u32;
            let below = self.links.get(index)?.load(Ordering::Relaxed);
            match head.compare_exchange_weak(
                seen,
                head_after(seen, u64::from(below)),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(index),
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    fn pop_fresh(&self, hint: usize) -> Option<u32> {
        let mut first = self.fresh.0.load(Ordering::Relaxed);
        let end = loop {
            // Beyond the capacity, or no memory: nothing was taken yet, nothing is lost.
            // Blocks are aligned and divide a chunk, so all links of it are there.
            self.links.get_or_grow(first as u32)?;
            let end = (first + u64::from(BLOCK)).min(u64::from(self.links.capacity()));
            match self.fresh.0.compare_exchange_weak(
                first,
                end,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break end,
                Err(now) => first = now,
            }
        };
        for index in first + 1..end - 1 {
            // The place above, + 1.
            self.links
                .get(index as u32)?
                .store(index as u32 + 2, Ordering::Relaxed);
        }
        if first + 1 < end {
            let head = &self.heads[hint % self.heads.len()].0;
            self.splice(head, first as u32 + 1, end as u32 - 1);
        }
        Some(first as u32)
    }

    /// Gives `index` back. Lock-free, any thread; only the owner, once. An index that
    /// this pool never handed out is ignored.
    pub fn push(&self, index: u32) {
        let home = (index / BLOCK) as usize % self.heads.len();
        self.splice(&self.heads[home].0, index, index);
    }

    /// Puts the chain from `top` to `bottom`, already linked, on a stack.
    fn splice(&self, head: &AtomicU64, top: u32, bottom: u32) {
        // Links are committed before their index is handed out.
        let Some(bottom) = self.links.get(bottom) else {
            return;
        };
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            bottom.store((seen & INDEX_MASK) as u32, Ordering::Relaxed);
            // Release: who pops it sees the links, and all its owner did before.
            match head.compare_exchange_weak(
                seen,
                head_after(seen, u64::from(top) + 1),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Every index ever handed out is below this. Any thread.
    #[must_use]
    pub fn high_water(&self) -> u32 {
        self.fresh.0.load(Ordering::Acquire) as u32
    }

    /// How many indices there can be.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.links.capacity()
    }

    /// Commits the links of the indices below `upto`. For a background thread.
    pub fn grow_ahead(&self, upto: u32) -> bool {
        self.links.grow_ahead(upto)
    }

    /// Native memory held, in bytes.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        size_of_val(&*self.heads) as u64 + self.links.committed_bytes()
    }
}
