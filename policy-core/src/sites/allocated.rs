//! Allocations at each stack since it is taken, whether they survived or not: sums by stack, purse and class.
//!
//! # Rules
//! 1. A stack of level l stands for 2^l samples (`budget`, rule 1), and its sample for what the ledger charged. So
//!    the sums estimate, without bias, what was allocated since stacks are taken of the row.
//! 2. A key (stack, purse, class) that finds no room counts for the purse and class without a stack. If that finds
//!    none either, the sample is not counted here and [`Allocated::add`] says so.
//! 3. Sums are only added to, by threads that are inside ([`super::entrance`]). The clearing thread alone removes
//!    keys. It keeps those of wanted rows. If the tables fill, only the heaviest [`KEPT_WHEN_FULL`] keep a stack that
//!    no record has; the sums of the others count without a stack. So no clearing changes what a row has in all.
//! 4. A purse or class whose number is to be given out again has its sums set to zero before ([`Allocated::forget`]).
//!    No thread adds to them then, because nothing names their owner any more.

use std::collections::{HashMap, HashSet};

use crate::ledger::PurseId;
use crate::sampling::weight::Charge;
use crate::sync::{AtomicU64, Ordering};

use super::keys::Keys;
use super::node::{NODE_BITS, Node};

/// Keys at the most: 640 KiB.
#[cfg(not(loom))]
const CAPACITY: usize = 1 << 14;
#[cfg(loom)]
const CAPACITY: usize = 2;
/// Rule 3. Each has up to 17 frames: together at most an eighth of the trie.
const KEPT_WHEN_FULL: usize = 1_000;

const PURSE_BITS: u32 = 16;
const CLASS_BITS: u32 = 27;
/// A key is not 0.
const MARK: u64 = 1 << (NODE_BITS + PURSE_BITS + CLASS_BITS);
const _: () = assert!(NODE_BITS + PURSE_BITS + CLASS_BITS == 63);

/// The sum of the allocations at a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sum {
    /// Bytes, as the stacks estimate them.
    pub(super) bytes: u64,
    /// Objects, in units of [`crate::sampling::weight::OBJECT_UNIT`].
    pub(super) objects: u64,
    /// Stacks that this rests on.
    pub(super) stacks: u64,
    /// The sum of the squares of what each stack stands for, in bytes².
    pub(super) squares: f64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.objects = self.objects.saturating_add(other.objects);
        self.stacks = self.stacks.saturating_add(other.stacks);
        self.squares += other.squares;
    }
}

/// Whose a sum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The stack; the root, if it is not kept.
    pub(super) node: Node,
    pub(super) purse: PurseId,
    pub(super) class: u32,
}

impl Key {
    /// `None` for a class beyond all numbers that are given out.
    fn pack(self) -> Option<u64> {
        let class = u64::from(self.class);
        (class < 1 << CLASS_BITS).then(|| {
            MARK | class << (NODE_BITS + PURSE_BITS)
                | u64::from(self.purse.get()) << NODE_BITS
                | u64::from(self.node.0)
        })
    }

    fn unpack(word: u64) -> Option<Key> {
        (word & MARK != 0).then(|| Key {
            node: Node(word as u32 & ((1 << NODE_BITS) - 1)),
            purse: PurseId::new((word >> NODE_BITS) as u16),
            class: (word >> (NODE_BITS + PURSE_BITS)) as u32 & ((1 << CLASS_BITS) - 1),
        })
    }
}

#[derive(Debug, Default)]
struct Place {
    bytes: AtomicU64,
    objects: AtomicU64,
    stacks: AtomicU64,
    /// The bits of an `f64`.
    squares: AtomicU64,
}

impl Place {
    fn new() -> Place {
        Place {
            bytes: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            stacks: AtomicU64::new(0),
            squares: AtomicU64::new(0),
        }
    }

    /// Lock-free.
    fn add(&self, sum: Sum) {
        self.bytes.fetch_add(sum.bytes, Ordering::Relaxed);
        self.objects.fetch_add(sum.objects, Ordering::Relaxed);
        self.stacks.fetch_add(sum.stacks, Ordering::Relaxed);
        let mut before = self.squares.load(Ordering::Relaxed);
        while let Err(found) = self.squares.compare_exchange_weak(
            before,
            (f64::from_bits(before) + sum.squares).to_bits(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            before = found;
        }
    }

    fn sum(&self) -> Sum {
        Sum {
            bytes: self.bytes.load(Ordering::Relaxed),
            objects: self.objects.load(Ordering::Relaxed),
            stacks: self.stacks.load(Ordering::Relaxed),
            squares: f64::from_bits(self.squares.load(Ordering::Relaxed)),
        }
    }

    fn clear(&self) {
        for word in [&self.bytes, &self.objects, &self.stacks, &self.squares] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// The sums. See the module.
#[derive(Debug)]
pub(super) struct Allocated {
    keys: Keys,
    places: Box<[Place]>,
}

impl Allocated {
    pub(super) fn new() -> Allocated {
        Allocated {
            keys: Keys::new(CAPACITY),
            places: (0..CAPACITY).map(|_| Place::new()).collect(),
        }
    }

    /// Counts a sample whose stack stands for 2^level of them. False if there was no room. A thread that is inside;
    /// lock-free.
    pub(super) fn add(&self, key: Key, level: u32, charge: &Charge) -> bool {
        let stands_for = 1u64 << level;
        let bytes = charge.bytes.saturating_mul(stands_for);
        self.add_sum(
            key,
            Sum {
                bytes,
                objects: charge.objects.saturating_mul(stands_for),
                stacks: 1,
                squares: (bytes as f64).powi(2),
            },
        )
    }

    /// Rule 2.
    fn add_sum(&self, key: Key, sum: Sum) -> bool {
        let without = Key {
            node: Node::ROOT,
            ..key
        };
        let index = (key.pack().and_then(|word| self.keys.index(word)))
            .or_else(|| without.pack().and_then(|word| self.keys.index(word)));
        let place = index.and_then(|index| self.places.get(index as usize));
        if let Some(place) = place {
            place.add(sum);
        }
        place.is_some()
    }

    /// All sums. Agent threads.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, Sum)> + '_ {
        (0..).zip(&self.places).filter_map(|(index, place)| {
            let key = Key::unpack(self.keys.key(index))?;
            let sum = place.sum();
            (sum.stacks > 0).then_some((key, sum))
        })
    }

    /// Rule 4.
    pub(super) fn forget(&self, is_gone: impl Fn(PurseId, u32) -> bool) {
        for (index, place) in (0..).zip(&self.places) {
            if let Some(key) = Key::unpack(self.keys.key(index))
                && is_gone(key.purse, key.class)
            {
                place.clear();
            }
        }
    }

    /// Rule 3: adds the stacks that it keeps to `used`, which has those of the records. While no other thread uses
    /// the tables.
    pub(super) fn clear_unused(
        &self,
        is_wanted: impl Fn(PurseId, u32) -> bool,
        is_filling: bool,
        used: &mut HashSet<Node>,
    ) {
        let mut kept: Vec<(Key, Sum)> = self.all().collect();
        kept.retain(|(key, _)| is_wanted(key.purse, key.class));
        if is_filling || self.is_filling() {
            kept.sort_unstable_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
            for (key, _) in kept.iter_mut().skip(KEPT_WHEN_FULL) {
                if !used.contains(&key.node) {
                    key.node = Node::ROOT;
                }
            }
        }
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        for (key, sum) in kept {
            sums.entry(key).or_default().add(sum);
            used.insert(key.node);
        }
        self.keys.retain(|_| false);
        self.places.iter().for_each(Place::clear);
        for (key, sum) in sums {
            self.add_sum(key, sum);
        }
    }

    /// Whether half of the keys are in use. Reads all of them.
    pub(super) fn is_filling(&self) -> bool {
        self.keys.len() * 2 > self.keys.capacity()
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        self.keys.committed_bytes() + size_of_val(&*self.places) as u64
    }
}
