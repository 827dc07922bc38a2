//! Which class declares a method: a cache from method id to class id.
//!
//! The cache is lossy: a fixed array of slots that threads read and overwrite without locks. A slot is
//! a key (the VM's method id) and a value. The high half of the value is the class id and the
//! generation of its entry, the low half a check of the key. A reader that meets a half-written slot
//! sees a check that does not match its key and treats it as a miss. So the two words need no order.
//!
//! Entries of unloaded classes need no removal. HotSpot never reuses the id of an unloaded method while
//! the VM runs (it keeps the memory of ids because agents may hold them; since JDK 25 ids are serial
//! numbers), so nobody asks for such a key again.

use std::sync::atomic::{AtomicU64, Ordering};

use super::classes::{ClassId, Classes};

const SLOTS: usize = 1 << 15;
const PROBES: usize = 4;

/// The bits of a class id. The remaining bits of the half word hold the generation.
const CLASS_BITS: u32 = 20;
const CLASS_MASK: u32 = (1 << CLASS_BITS) - 1;
const GENERATION_MASK: u32 = u32::MAX >> CLASS_BITS;

/// The first of the `PROBES` slots that may hold a key; they share one cache line.
fn home(hash: u64) -> usize {
    hash as usize % SLOTS / PROBES * PROBES
}

struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// The cache. 512 KiB.
pub struct MethodClasses {
    slots: Box<[Slot]>,
}

fn mix(key: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl MethodClasses {
    /// An empty cache. At start-up.
    pub fn new() -> MethodClasses {
        MethodClasses {
            slots: (0..SLOTS)
                .map(|_| Slot {
                    key: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                })
                .collect(),
        }
    }

    /// The class that declares the method, if it is in the cache and its entry was not recycled
    /// since. A few loads; any thread.
    #[inline]
    pub fn get(&self, method: usize, classes: &Classes) -> Option<ClassId> {
        let (class, generation) = self.find(method)?;
        (classes.generation(class) & GENERATION_MASK == generation).then_some(class)
    }

    fn find(&self, method: usize) -> Option<(ClassId, u32)> {
        let hash = mix(method as u64);
        for probe in 0..PROBES {
            let slot = &self.slots[home(hash) + probe];
            if slot.key.load(Ordering::Relaxed) == method as u64 {
                let value = slot.value.load(Ordering::Relaxed);
                if value as u32 == (hash >> 32) as u32 && value != 0 {
                    let class = (value >> 32) as u32;
                    return Some((ClassId(class & CLASS_MASK), class >> CLASS_BITS));
                }
            }
        }
        None
    }

    /// Stores the class of a method in an empty slot or over an old entry. Any thread; never blocks.
    pub fn put(&self, method: usize, class: ClassId, classes: &Classes) {
        self.store(method, class, classes.generation(class) & GENERATION_MASK);
    }

    fn store(&self, method: usize, class: ClassId, generation: u32) {
        if class.0 > CLASS_MASK {
            return;
        }
        let hash = mix(method as u64);
        let home = home(hash);
        let place = (0..PROBES)
            .map(|probe| home + probe)
            .find(|&i| {
                let key = self.slots[i].key.load(Ordering::Relaxed);
                key == 0 || key == method as u64
            })
            // Otherwise overwrite one of the old entries, picked by the hash.
            .unwrap_or(home + (hash >> 60) as usize % PROBES);
        let slot = &self.slots[place];
        slot.value.store(0, Ordering::Relaxed);
        slot.key.store(method as u64, Ordering::Relaxed);
        slot.value.store(
            u64::from(generation << CLASS_BITS | class.0) << 32 | hash >> 32,
            Ordering::Relaxed,
        );
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
        (SLOTS * size_of::<Slot>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_answers_with_another_methods_class() {
        let methods = std::sync::Arc::new(MethodClasses::new());
        let threads: Vec<_> = (0..4u64)
            .map(|seed| {
                let methods = methods.clone();
                std::thread::spawn(move || {
                    let mut hits = 0;
                    for n in 0..400_000u64 {
                        // Many more methods than slots, so that entries are overwritten.
                        let method = (mix(n ^ seed) % 200_000 + 1) as usize * 8;
                        match methods.find(method) {
                            Some((class, generation)) => {
                                assert_eq!(generation as usize, method % 1000 / 8);
                                assert_eq!(class.0 as usize, method / 8);
                                hits += 1;
                            }
                            None => methods.store(
                                method,
                                ClassId((method / 8) as u32),
                                (method % 1000 / 8) as u32,
                            ),
                        }
                    }
                    hits
                })
            })
            .collect();
        let hits: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert!(hits > 0);
    }
}
