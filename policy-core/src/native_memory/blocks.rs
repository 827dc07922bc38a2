//! The table of live blocks: from an address to one word about it.
//!
//! # States of a place
//! ```text
//!   free ---- enter: exchange, word, then key (Release) ---> address
//!    ^  (claimed in between)                                    |
//!    +-- key (Release) <-- word <-- take out: exchange ---------+
//! ```
//!
//! # Rules
//! 1. An address is live once: the allocator gives it to nobody else before it has it back. A block is entered after the
//!    allocator gave it and before the program sees it, and taken out before the allocator gets it back. So no two
//!    threads work on one address, unless a program frees a block twice; then one of them finds it, by the exchange.
//! 2. Who has claimed a place alone reads and writes its word.
//! 3. An address has two buckets in each level. It is entered in the first free place of them, level by level, and
//!    never moves. A look for it goes through all these buckets as far as any block has ever come, so it needs no
//!    trace of what was there before, and a table that was once full is as good as new.
//! 4. Each level has four times the buckets of the one before; its memory is committed as it is touched.
//! 5. Nobody waits: a claimed place is passed by. It is another address's.

use crate::ledger::Chunks;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// No allocator gives these two addresses.
const FREE: u64 = 0;
const CLAIMED: u64 = 1;

#[cfg(not(loom))]
mod shape {
    pub(super) const PLACES: usize = 8;
    /// Buckets: all levels together have room for 5.6 million blocks.
    pub(super) const LEVELS: [u32; 6] = [1 << 9, 1 << 11, 1 << 13, 1 << 15, 1 << 17, 1 << 19];
    /// A page of memory: the few blocks that a nearly full level passes on commit little of the next one.
    pub(super) const BUCKETS_PER_CHUNK: usize = 32;
}
/// Loom tracks each place: two levels, each with one bucket.
#[cfg(loom)]
mod shape {
    pub(super) const PLACES: usize = 1;
    pub(super) const LEVELS: [u32; 2] = [1, 1];
    pub(super) const BUCKETS_PER_CHUNK: usize = 1;
}
use shape::{BUCKETS_PER_CHUNK, LEVELS, PLACES};

#[derive(Debug, Default)]
struct Place {
    key: AtomicU64,
    word: AtomicU64,
}

impl Place {
    fn enter(&self, address: u64, word: u64) -> bool {
        let is_free = self.key.load(Ordering::Relaxed) == FREE;
        // Acquire: the word of the one before was read before the place became free.
        let claimed = is_free
            && (self.key)
                .compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if claimed {
            self.word.store(word, Ordering::Relaxed);
            self.key.store(address, Ordering::Release);
        }
        claimed
    }

    fn take_out(&self, address: u64) -> Option<u64> {
        if self.key.load(Ordering::Relaxed) != address {
            return None;
        }
        self.key
            .compare_exchange(address, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        let word = self.word.load(Ordering::Relaxed);
        self.key.store(FREE, Ordering::Release);
        Some(word)
    }
}

/// One or two cache lines' worth of places.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([Place; PLACES]);

/// See the module.
#[derive(Debug)]
pub(super) struct Blocks {
    levels: [Chunks<Bucket, BUCKETS_PER_CHUNK>; LEVELS.len()],
    /// How many levels blocks have come to, ever.
    reached: AtomicU32,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks {
            levels: LEVELS.map(Chunks::new),
            reached: AtomicU32::new(0),
        }
    }

    /// Enters an address with its word. False if there is no place, or no memory for one. Any thread.
    pub(super) fn enter(&self, address: u64, word: u64) -> bool {
        if address <= CLAIMED {
            return false;
        }
        for (level, buckets) in self.levels.iter().enumerate() {
            for index in buckets_of(address, buckets.capacity()) {
                let Some(bucket) = buckets.get_or_grow(index) else {
                    continue;
                };
                // Before the block is in: who frees it has to look as far.
                if self.reached.load(Ordering::Relaxed) <= level as u32 {
                    (self.reached).fetch_max(level as u32 + 1, Ordering::Relaxed);
                }
                if bucket.0.iter().any(|place| place.enter(address, word)) {
                    return true;
                }
            }
        }
        false
    }

    /// Takes an address out and returns its word. `None`: it is not there. Any thread.
    pub(super) fn take_out(&self, address: u64) -> Option<u64> {
        if address <= CLAIMED {
            return None;
        }
        let reached = self.reached.load(Ordering::Relaxed) as usize;
        self.levels[..reached].iter().find_map(|buckets| {
            let buckets_of = buckets_of(address, buckets.capacity()).into_iter();
            let mut buckets = buckets_of.filter_map(|index| buckets.get(index));
            buckets.find_map(|bucket| bucket.0.iter().find_map(|place| place.take_out(address)))
        })
    }

    /// Native memory held, in bytes.
    pub(super) fn committed_bytes(&self) -> u64 {
        self.levels.iter().map(Chunks::committed_bytes).sum()
    }
}

/// The two buckets of an address among `count`, a power of two. The multipliers are those of SplitMix64 (Steele, Lea and
/// Flood, 2014).
fn buckets_of(address: u64, count: u32) -> [u32; 2] {
    [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb].map(|multiplier: u64| {
        let mixed = (address ^ address >> 30).wrapping_mul(multiplier);
        (mixed >> 32) as u32 & (count - 1)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_once_with_its_word() {
        let blocks = Blocks::new();
        assert_eq!(blocks.take_out(0x1000), None);
        assert!(blocks.enter(0x1000, 7));
        assert_eq!(blocks.take_out(0x1010), None);
        assert_eq!(blocks.take_out(0x1000), Some(7));
        assert_eq!(blocks.take_out(0x1000), None);
        assert!(blocks.enter(0x1000, 8), "the allocator gives it again");
        assert_eq!(blocks.take_out(0x1000), Some(8));
    }

    /// A program may hand in whatever it likes.
    #[test]
    fn addresses_that_no_allocator_gives_are_not_there() {
        let blocks = Blocks::new();
        // So many that each bucket of the first level has its memory, and free places.
        let addresses = || (1..=2_000u64).map(|number| number * 16);
        assert!(addresses().all(|address| blocks.enter(address, address)));
        for address in [FREE, CLAIMED] {
            assert!(!blocks.enter(address, 1));
            assert_eq!(blocks.take_out(address), None);
        }
        assert!(addresses().all(|address| blocks.take_out(address) == Some(address)));
    }

    /// Far more than the first level has room for, in the patterns of allocators.
    #[test]
    fn all_of_many_blocks_are_found_however_they_lie() {
        for stride in [16, 48, 1 << 12, (1 << 20) + 64] {
            let blocks = Blocks::new();
            let addresses =
                || (1..=200_000u64).map(move |number| 0x7f00_0000_0000 + number * stride);
            for address in addresses() {
                assert!(blocks.enter(address, !address));
            }
            let held = blocks.committed_bytes();
            for address in addresses() {
                assert_eq!(blocks.take_out(address), Some(!address), "stride {stride}");
            }
            for address in addresses() {
                assert!(blocks.enter(address, address));
            }
            assert_eq!(blocks.committed_bytes(), held, "places are used again");
            // A place has 16 bytes, and levels grow by four.
            assert!(held < 200_000 * 16 * 5, "{held} bytes");
        }
    }

    #[test]
    fn a_full_table_says_so_and_goes_on_when_a_place_is_free() {
        let blocks = Blocks::new();
        // Whatever is entered under one address has these buckets alone.
        let address = 16;
        let buckets = LEVELS.map(|count| match buckets_of(address, count) {
            [first, second] if first == second => 1,
            _ => 2,
        });
        let room = buckets.into_iter().sum::<usize>() * PLACES;
        let entered = (0..room + 3).filter(|_| blocks.enter(address, 1)).count();
        assert_eq!(entered, room);
        assert!(!blocks.enter(address, 1));
        assert_eq!(blocks.take_out(address), Some(1));
        assert!(blocks.enter(address, 1));
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// The allocator gives an address to another thread as soon as it has it back.
    #[test]
    fn threads_that_use_one_place_in_turn_read_their_own_words() {
        loom::model(|| {
            let blocks = Arc::new(Blocks::new());
            let other = {
                let blocks = blocks.clone();
                thread::spawn(move || {
                    let entered = blocks.enter(32, 2);
                    assert_eq!(blocks.take_out(32), entered.then_some(2));
                })
            };
            // A place that has just become free may still look taken: there are only two here.
            for word in [1, 3] {
                let entered = blocks.enter(16, word);
                assert_eq!(blocks.take_out(16), entered.then_some(word));
            }
            other.join().expect("the other thread failed");
            assert!(blocks.enter(16, 4) && blocks.enter(32, 5), "both are free");
        });
    }

    #[test]
    fn of_two_threads_that_free_a_block_one_finds_it() {
        loom::model(|| {
            let blocks = Arc::new(Blocks::new());
            assert!(blocks.enter(16, 1));
            let other = {
                let blocks = blocks.clone();
                thread::spawn(move || blocks.take_out(16))
            };
            let found = blocks.take_out(16);
            let others = other.join().expect("the other thread failed");
            assert!(found.is_some() != others.is_some());
            assert_eq!(found.or(others), Some(1));
        });
    }
}
