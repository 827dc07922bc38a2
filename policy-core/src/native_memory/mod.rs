//! Native memory by who pays for it: each block that Java code takes is entered with its payer, and taken out when it
//! is given back. Exact: no sample, no estimate.
//!
//! # Rules
//! 1. A block is its payer's from its entry on, whoever frees it.
//! 2. A purse's sum is raised before the block is entered and lowered after it is taken out: a sum is never below the
//!    blocks, and zero when there are none.
//! 3. A block that finds no place is nobody's and counted ([`NativeMemory::unentered_blocks`]); when it is freed it is
//!    unknown, as one that was made before the agent came.
//! 4. A purse that has blocks is not closed ([`NativeMemory::is_used_by`]): its number would be another account's when
//!    they are freed.
//!
//! Allocating threads enter blocks and take them out without a lock (`blocks`).

mod blocks;
pub mod gates;

use std::sync::atomic::AtomicBool;

use crate::ledger::{Chunks, PurseId};
use crate::sync::{AtomicU64, Ordering, places};
use crate::usage::ByPurse;

use blocks::Blocks;
use gates::Gates;

/// The way on which Java code has taken a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By a direct buffer. `-XX:MaxDirectMemorySize` bounds the sum.
    Direct,
    /// By an arena, or by `Unsafe.allocateMemory` itself.
    Unsafe,
}

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Who pays for it.
    pub payer: PurseId,
    /// How it was taken.
    pub way: Way,
    /// Its size, at most [`MAX_BLOCK_BYTES`].
    pub size_bytes: u64,
}

const SIZE_BITS: u32 = 47;

/// The largest size of a block; a larger one is entered with this. No process has as much.
pub const MAX_BLOCK_BYTES: u64 = (1 << SIZE_BITS) - 1;

impl Block {
    /// As one word: size | way | payer, 47, 1 and 16 bits, from the top.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        let way = match self.way {
            Way::Direct => 0,
            Way::Unsafe => 1 << u16::BITS,
        };
        self.size_bytes.min(MAX_BLOCK_BYTES) << (u64::BITS - SIZE_BITS)
            | way
            | u64::from(self.payer.get())
    }

    /// The block of a word of [`Block::to_bits`].
    #[must_use]
    pub fn from_bits(bits: u64) -> Block {
        Block {
            payer: PurseId::new(bits as u16),
            way: match bits >> u16::BITS & 1 {
                0 => Way::Direct,
                _ => Way::Unsafe,
            },
            size_bytes: bits >> (u64::BITS - SIZE_BITS),
        }
    }
}

/// The live bytes of one purse.
#[derive(Debug, Default)]
struct Sums {
    direct_bytes: AtomicU64,
    unsafe_bytes: AtomicU64,
    /// Whoever takes the sum of both across this wakes the enforcer; 0: nobody does.
    wake_above_bytes: AtomicU64,
    /// The least that both were since the enforcer asked; 0: it has not.
    lowest_bytes: AtomicU64,
    /// All direct bytes ever taken.
    direct_taken_bytes: AtomicU64,
}

impl Sums {
    fn of(&self, way: Way) -> &AtomicU64 {
        match way {
            Way::Direct => &self.direct_bytes,
            Way::Unsafe => &self.unsafe_bytes,
        }
    }

    fn both(&self) -> u64 {
        let bytes = [Way::Direct, Way::Unsafe].map(|way| self.of(way).load(Ordering::Relaxed));
        bytes[0].saturating_add(bytes[1])
    }
}

const PURSES: u32 = places(1 << u16::BITS);

#[cfg(not(loom))]
const SUMS_PER_CHUNK: usize = 64;
#[cfg(loom)]
const SUMS_PER_CHUNK: usize = 2;

/// The native memory of all accounts. See the module.
#[derive(Debug)]
pub struct NativeMemory {
    blocks: Blocks,
    sums: Chunks<Sums, SUMS_PER_CHUNK>,
    /// The limits of accounts.
    pub gates: Gates,
    unentered_blocks: AtomicU64,
    assumed_blocks: AtomicU64,
    is_seen: AtomicBool,
}

impl Default for NativeMemory {
    fn default() -> Self {
        NativeMemory {
            blocks: Blocks::new(),
            sums: Chunks::new(PURSES),
            gates: Gates::default(),
            unentered_blocks: AtomicU64::new(0),
            assumed_blocks: AtomicU64::new(0),
            is_seen: AtomicBool::new(false),
        }
    }
}

impl NativeMemory {
    /// From now on each block that Java code takes is entered.
    pub fn is_seen_from_now(&self) {
        self.is_seen.store(true, Ordering::Release);
    }

    /// Whether blocks are entered at all.
    pub fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Acquire)
    }

    /// Enters a block that the allocator has just given; its address is not 0. Any thread, lock-free; allocates at the
    /// first touch of a part of the table. Returns whether the payer's sum has gone across the mark of
    /// [`NativeMemory::wake_above`].
    pub fn taken(&self, address: u64, block: Block) -> bool {
        let Some(sums) = self.sums.get_or_grow(block.payer.get().into()) else {
            self.unentered_blocks.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let sum = sums.of(block.way);
        let bytes = block.size_bytes.min(MAX_BLOCK_BYTES);
        sum.fetch_add(bytes, Ordering::Relaxed);
        if !self.blocks.enter(address, block.to_bits()) {
            sum.fetch_sub(bytes, Ordering::Relaxed);
            self.unentered_blocks.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if block.way == Way::Direct {
            sums.direct_taken_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        let mark = sums.wake_above_bytes.load(Ordering::Relaxed);
        mark != 0 && {
            let now = sums.both();
            now > mark && now.saturating_sub(bytes) <= mark
        }
    }

    /// Sets the sum of a purse above which the enforcer is to look: the block that takes it there is told of. 0: none is.
    /// Another block at the same moment may hide it; the enforcer looks by itself, too.
    pub fn wake_above(&self, purse: PurseId, bytes: u64) {
        if let Some(sums) = self.sums.get_or_grow(purse.get().into()) {
            sums.wake_above_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Takes out a block that the allocator is about to get back, or to make larger or smaller (`is_resized`: it is taken
    /// again at once, so the sum is not low meanwhile). `None`: it is unknown. Any thread, lock-free.
    pub fn given_back(&self, address: u64, is_resized: bool) -> Option<Block> {
        let block = Block::from_bits(self.blocks.take_out(address)?);
        if let Some(sums) = self.sums.get(block.payer.get().into()) {
            (sums.of(block.way)).fetch_sub(block.size_bytes, Ordering::Relaxed);
            let lowest = &sums.lowest_bytes;
            if !is_resized && lowest.load(Ordering::Relaxed) > 0 {
                lowest.fetch_min(sums.both(), Ordering::Relaxed);
            }
        }
        Some(block)
    }

    /// All direct bytes that a purse has ever taken: what a collection may find dead.
    pub fn direct_taken_by(&self, purse: PurseId) -> u64 {
        (self.sums.get(purse.get().into()))
            .map_or(0, |sums| sums.direct_taken_bytes.load(Ordering::Relaxed))
    }

    /// From now on the least is noted that a purse has. The enforcer.
    pub fn note_lowest(&self, purse: PurseId) {
        if let Some(sums) = self.sums.get(purse.get().into()) {
            // In this order: what is given back in between counts.
            sums.lowest_bytes.store(u64::MAX, Ordering::SeqCst);
            sums.lowest_bytes.fetch_min(sums.both(), Ordering::SeqCst);
        }
    }

    /// The least that a purse has had since [`NativeMemory::note_lowest`].
    pub fn lowest_of(&self, purse: PurseId) -> u64 {
        (self.sums.get(purse.get().into()))
            .map_or(0, |sums| sums.lowest_bytes.load(Ordering::Relaxed))
    }

    /// The live bytes of each purse that has some. Not on an allocating thread.
    pub fn used(&self, way: Way) -> ByPurse {
        let sums = (0..self.sums.capacity()).filter_map(|number| {
            let bytes = self.sums.get(number)?.of(way).load(Ordering::Relaxed);
            (bytes > 0).then(|| (PurseId::new(number as u16), bytes))
        });
        sums.collect()
    }

    /// Whether a purse has blocks. Any thread.
    pub fn is_used_by(&self, purse: PurseId) -> bool {
        self.used_by(purse) > 0
    }

    /// The live bytes of a purse. Two loads; any thread.
    pub fn used_by(&self, purse: PurseId) -> u64 {
        (self.sums.get(purse.get().into())).map_or(0, Sums::both)
    }

    /// Blocks that found no place, ever.
    pub fn unentered_blocks(&self) -> u64 {
        self.unentered_blocks.load(Ordering::Relaxed)
    }

    /// So many blocks were charged as their thread's block before them. Any thread.
    pub fn assumed(&self, blocks: u64) {
        self.assumed_blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    /// Blocks that were charged as their thread's block before, ever.
    pub fn assumed_blocks(&self) -> u64 {
        self.assumed_blocks.load(Ordering::Relaxed)
    }

    /// Native memory held by the table itself, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        self.blocks.committed_bytes() + self.sums.committed_bytes() + self.gates.committed_bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SHOP: PurseId = PurseId::new(1);
    const LAST: PurseId = PurseId::new(u16::MAX);

    fn block(payer: PurseId, way: Way, size_bytes: u64) -> Block {
        Block {
            payer,
            way,
            size_bytes,
        }
    }

    #[test]
    fn a_block_is_one_word() {
        for way in [Way::Direct, Way::Unsafe] {
            for payer in [PurseId::UNACCOUNTED, SHOP, LAST] {
                for size in [0, 1, 4096, MAX_BLOCK_BYTES] {
                    let block = block(payer, way, size);
                    assert_eq!(Block::from_bits(block.to_bits()), block);
                }
            }
        }
    }

    #[test]
    fn a_block_is_its_payers_until_it_is_given_back() {
        let memory = NativeMemory::default();
        memory.taken(0x1000, block(SHOP, Way::Direct, 100));
        memory.taken(0x2000, block(SHOP, Way::Unsafe, 30));
        memory.taken(0x3000, block(LAST, Way::Direct, 7));
        assert_eq!(memory.used(Way::Direct), [(SHOP, 100), (LAST, 7)].into());
        assert_eq!(memory.direct_taken_by(SHOP), 100);
        assert_eq!(memory.used(Way::Unsafe), [(SHOP, 30)].into());
        assert!(memory.is_used_by(SHOP) && memory.is_used_by(LAST));
        assert!(!memory.is_used_by(PurseId::UNACCOUNTED));
        let first = memory.given_back(0x1000, false);
        assert_eq!(first, Some(block(SHOP, Way::Direct, 100)));
        assert_eq!(memory.given_back(0x1000, false), None, "it is unknown now");
        assert_eq!(memory.direct_taken_by(SHOP), 100);
        assert!(memory.is_used_by(SHOP), "the other way counts too");
        assert!(memory.given_back(0x2000, false).is_some());
        assert!(!memory.is_used_by(SHOP));
        assert_eq!(memory.used(Way::Unsafe), ByPurse::new());
        assert_eq!(memory.used(Way::Direct), [(LAST, 7)].into());
    }

    #[test]
    fn the_least_that_a_purse_has_had_is_noted_when_it_is_asked_for() {
        let memory = NativeMemory::default();
        memory.note_lowest(SHOP);
        assert_eq!(memory.lowest_of(SHOP), 0);
        memory.taken(0x1000, block(SHOP, Way::Direct, 100));
        memory.taken(0x2000, block(SHOP, Way::Unsafe, 30));
        memory.note_lowest(SHOP);
        assert_eq!(memory.lowest_of(SHOP), 130);
        memory.taken(0x3000, block(SHOP, Way::Unsafe, 7));
        assert_eq!(memory.lowest_of(SHOP), 130);
        memory.given_back(0x1000, true);
        memory.taken(0x1000, block(SHOP, Way::Direct, 110));
        assert_eq!(memory.lowest_of(SHOP), 130, "it was only made larger");
        memory.given_back(0x1000, false);
        memory.taken(0x1000, block(SHOP, Way::Direct, 500));
        assert_eq!(memory.lowest_of(SHOP), 37);
        memory.note_lowest(SHOP);
        assert_eq!(memory.lowest_of(SHOP), 537);
    }

    #[test]
    fn the_block_that_takes_a_purse_across_its_mark_is_told_of() {
        let memory = NativeMemory::default();
        let take = |address, way, bytes| memory.taken(address, block(SHOP, way, bytes));
        assert!(!take(0x1000, Way::Direct, 1_000), "there is no mark");
        memory.wake_above(SHOP, 1_100);
        assert!(!take(0x2000, Way::Unsafe, 100));
        assert!(take(0x3000, Way::Direct, 1));
        assert!(!take(0x4000, Way::Direct, 1), "it is above it already");
        assert!(!memory.taken(0x5000, block(LAST, Way::Direct, 5_000)));
        memory.given_back(0x1000, false);
        memory.wake_above(SHOP, 0);
        assert!(!take(0x1000, Way::Direct, 1_000));
    }

    #[test]
    fn more_than_any_process_has_is_charged_as_it_is_refunded() {
        let memory = NativeMemory::default();
        memory.taken(0x1000, block(SHOP, Way::Direct, u64::MAX));
        assert_eq!(memory.used(Way::Direct)[&SHOP], MAX_BLOCK_BYTES);
        assert!(memory.given_back(0x1000, false).is_some());
        assert!(!memory.is_used_by(SHOP));
    }

    /// The allocator gives an address again as soon as it has it back, to whatever thread.
    #[test]
    fn threads_that_share_an_allocator_leave_nothing_behind() {
        use std::sync::Mutex;
        let memory = NativeMemory::default();
        let free = Mutex::new((1..=64u64).map(|number| number * 16).collect::<Vec<_>>());
        std::thread::scope(|scope| {
            for number in 0..4u16 {
                let (memory, free) = (&memory, &free);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for turn in 0..20_000u64 {
                        if (turn + u64::from(number)) % 3 != 0 {
                            let address = free.lock().expect("no panic").pop();
                            let Some(address) = address else { continue };
                            let taken = block(PurseId::new(number), Way::Unsafe, turn + 1);
                            memory.taken(address, taken);
                            held.push((address, taken));
                        } else if let Some((address, taken)) = held.pop() {
                            assert_eq!(memory.given_back(address, false), Some(taken));
                            free.lock().expect("no panic").insert(0, address);
                        }
                    }
                    for (address, taken) in held {
                        assert_eq!(memory.given_back(address, false), Some(taken));
                    }
                });
            }
        });
        assert_eq!(memory.used(Way::Unsafe), ByPurse::new());
        assert_eq!(memory.unentered_blocks(), 0);
    }
}
