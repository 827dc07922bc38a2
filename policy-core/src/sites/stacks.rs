//! Whole stacks, with what survived and was allocated there: for profiles, which group them by themselves.
//!
//! # Rules
//! 1. The sums are those of the places ([`super::survivors`], rules 1 and 2), before grouping and scaling. They are
//!    estimates of their own; whoever publishes them beside an account makes them fit.
//! 2. What was allocated at a stack that is not kept has no stack here. Its row has it anyway.
//! 3. Stacks are bounded. The largest of survivors are kept first, then those where most was allocated.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use crate::sampling::weight::OBJECT_UNIT;

pub use super::frames::Frame;
use super::frames::frames;
use super::names::Names;
use super::node::Node;
use super::survivors::{Count, Most, Sums};
use super::trie::Trie;

/// The objects and bytes that were allocated at a stack, or that survived of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Amount {
    fn of(sums: Sums) -> Amount {
        Amount {
            objects: (sums.objects / OBJECT_UNIT as f64).round() as u64,
            bytes: sums.bytes.round() as u64,
        }
    }
}

/// A stack.
#[derive(Debug, Clone)]
pub struct Stack {
    /// From the allocation down; never empty.
    pub frames: Vec<Frame>,
    /// The survivors of the allocations here since stacks are taken.
    pub live: Amount,
    /// The allocations here since stacks are taken.
    pub allocated: Amount,
}

impl<K: Hash + Eq + Clone> Count<K> {
    /// The largest stacks of all rows.
    pub(super) fn stacks(self, trie: &Trie, names: &Names, most: Most) -> HashMap<K, Vec<Stack>> {
        let mut all: Vec<(K, Node, Amount, Amount)> = Vec::new();
        for (row, (_, stacks)) in self.rows {
            let kept = stacks.into_iter().filter(|(node, _)| *node != Node::ROOT);
            all.extend(kept.map(|(node, of)| {
                let (live, allocated) = (Amount::of(of.sums), Amount::of(of.allocated));
                (row.clone(), node, live, allocated)
            }));
        }
        all.sort_unstable_by_key(|(_, node, live, _)| (Reverse(live.bytes), *node));
        let mut others = all.split_off(all.len().min(most.live));
        others.sort_unstable_by_key(|(_, node, _, allocated)| (Reverse(allocated.bytes), *node));
        others.truncate(most.allocated);
        all.append(&mut others);
        let mut rows: HashMap<K, Vec<Stack>> = HashMap::new();
        for (row, node, live, allocated) in all {
            rows.entry(row).or_default().push(Stack {
                frames: frames(trie, names, node),
                live,
                allocated,
            });
        }
        rows
    }
}
