//! A set of numbers (keys) of fixed capacity. Each key has an index for as long as it is in the set.
//!
//! The hash of a key selects a bucket of [`PLACES`] places. A key that finds its bucket full is refused;
//! at a quarter of the capacity that happens to about one key in a million, at half to one in a hundred.
//!
//! # Rules
//! 1. Between two clearings places are only filled, each once, by an exchange from 0.
//! 2. A thread reads the whole bucket first, because after a clearing there may be free places before the
//!    one that holds its key. If the key is not there, the thread tries the places that it saw free, in
//!    ascending order, and takes a place that another thread has just filled with the same key. So a key
//!    has one index: every place before it was filled with another key when it got its place (model:
//!    `a_key_has_one_index`).
//! 3. Keys are removed only while no other thread uses the set ([`super::entrance`]).
//!
//! Places are read without ordering: a thread that learns of an index from a record has synchronised with
//! the thread that read the place before it wrote the record, and reads of one place do not go back in time.

use crate::sync::{AtomicU64, Ordering};

/// Places in a bucket: two cache lines.
#[cfg(not(loom))]
const PLACES: usize = 16;
/// Few, because loom tracks each of them.
#[cfg(loom)]
const PLACES: usize = 2;

/// A set of keys. See the module.
#[derive(Debug)]
pub(super) struct Keys {
    places: Box<[AtomicU64]>,
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Keys {
    /// An empty set. `capacity` is a multiple of the bucket's size.
    pub(super) fn new(capacity: usize) -> Keys {
        Keys {
            places: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn bucket(&self, key: u64) -> std::ops::Range<usize> {
        let bucket = mix(key) as usize % (self.places.len() / PLACES);
        bucket * PLACES..(bucket + 1) * PLACES
    }

    /// The index of a key, which enters the set if it is not in it. The key is not 0. `None` if there is no
    /// room. Lock-free, any thread; allocates nothing.
    pub(super) fn index(&self, key: u64) -> Option<u32> {
        let mut free = [false; PLACES];
        let bucket = self.bucket(key);
        let first = bucket.start;
        for (free, place) in free.iter_mut().zip(bucket) {
            match self.places[place].load(Ordering::Relaxed) {
                0 => *free = true,
                found if found == key => return Some(place as u32),
                _ => {}
            }
        }
        let free = (first..).zip(free).filter(|(_, free)| *free);
        free.map(|(place, _)| place)
            .find(|&place| {
                let taken = self.places[place].compare_exchange(
                    0,
                    key,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                taken.err().is_none_or(|found| found == key)
            })
            .map(|place| place as u32)
    }

    /// The key at an index; 0 for none. Any thread.
    pub(super) fn key(&self, index: u32) -> u64 {
        let place = self.places.get(index as usize);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// How many keys there are. Reads the whole set.
    pub(super) fn len(&self) -> usize {
        let filled = |place: &&AtomicU64| place.load(Ordering::Relaxed) != 0;
        self.places.iter().filter(filled).count()
    }

    pub(super) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Removes the keys whose index is not to be kept. While no other thread uses the set.
    pub(super) fn retain(&self, keep: impl Fn(u32) -> bool) {
        for (index, place) in (0..).zip(&self.places) {
            if !keep(index) {
                place.store(0, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        size_of_val(&*self.places) as u64
    }
}
