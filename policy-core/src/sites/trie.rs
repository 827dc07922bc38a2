//! The stacks that were taken, as a trie: each node is a frame, and its parent is the frame above it,
//! nearer to the allocation. So stacks that begin alike share their nodes, and a stack that finds no room
//! is cut at the caller's end and still has the frames nearest to the allocation.
//!
//! A node is one word: its parent, its method and the index of its bytecode. Methods are numbered by a table
//! of their own, which has the numbers of the VM. Neither table looks up a name.

use crate::sync::{AtomicU32, Ordering};

use super::allocated::Allocated;
use super::keys::Keys;
use super::node::{NODE_BITS, Node};

/// Methods at the most.
#[cfg(not(loom))]
const METHODS: usize = 1 << 14;
/// Frames of all stacks together at the most. They are a MiB.
#[cfg(not(loom))]
const NODES: usize = 1 << 17;
#[cfg(loom)]
const METHODS: usize = 4;
#[cfg(loom)]
const NODES: usize = 4;

const METHOD_BITS: u32 = 20;
const POSITION_BITS: u32 = 16;
/// A node is not 0.
const NODE: u64 = 1 << (NODE_BITS + METHOD_BITS + POSITION_BITS);
/// The method number of the frames that were left out.
const LEFT_OUT: u32 = (1 << METHOD_BITS) - 1;
/// The bytecode indexes from 0 to 65,534 are stored plus one; 0 is native code.
const MAX_POSITION: u32 = (1 << POSITION_BITS) - 1;

const _: () = assert!(NODES < 1 << NODE_BITS && METHODS < LEFT_OUT as usize);

/// A frame as a node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    /// A frame of a method, by its number in this trie.
    Frame {
        /// The method.
        method: u32,
        /// The index of the bytecode that it executes; `None` in native code.
        bci: Option<u32>,
    },
    /// Frames were left out here.
    LeftOut,
}

/// The trie. See the module.
#[derive(Debug)]
pub(super) struct Trie {
    methods: Keys,
    nodes: Keys,
    /// 1 for each method that was handed over to be named.
    handed_over: Box<[AtomicU32]>,
    /// The sums of the allocations at each node; they live as long as the nodes.
    pub(super) allocated: Allocated,
}

impl Trie {
    pub(super) fn new() -> Trie {
        Trie {
            methods: Keys::new(METHODS),
            nodes: Keys::new(NODES),
            handed_over: (0..METHODS.div_ceil(32))
                .map(|_| AtomicU32::new(0))
                .collect(),
            allocated: Allocated::new(),
        }
    }

    /// The number of a method. `None` if there is no room.
    pub(super) fn method(&self, key: u64) -> Option<u32> {
        // Neither an address nor a serial number is the largest number.
        self.methods.index(key.wrapping_add(1))
    }

    /// The VM's number of a method; `None` if the number is not in use.
    pub(super) fn method_key(&self, method: u32) -> Option<u64> {
        self.methods.key(method).checked_sub(1)
    }

    /// The node of a frame below `parent`. `None` if there is no room.
    pub(super) fn node(&self, parent: Node, step: Step) -> Option<Node> {
        let (method, position) = match step {
            Step::Frame { method, bci } => (method, bci.map_or(0, |bci| bci.saturating_add(1))),
            Step::LeftOut => (LEFT_OUT, 0),
        };
        let word = u64::from(parent.0) << (METHOD_BITS + POSITION_BITS)
            | u64::from(method) << POSITION_BITS
            | u64::from(position.min(MAX_POSITION));
        let index = self.nodes.index(NODE | word)?;
        Some(Node(index + 1))
    }

    /// The parent of a node and its frame; `None` for the root, and a node that is not in use.
    pub(super) fn up(&self, node: Node) -> Option<(Node, Step)> {
        let word = self.nodes.key(node.0.checked_sub(1)?);
        if word & NODE == 0 {
            return None;
        }
        let parent = (word >> (METHOD_BITS + POSITION_BITS)) as u32 & ((1 << NODE_BITS) - 1);
        let method = (word >> POSITION_BITS) as u32 & ((1 << METHOD_BITS) - 1);
        let position = word as u32 & MAX_POSITION;
        let step = match method {
            LEFT_OUT => Step::LeftOut,
            method => Step::Frame {
                method,
                bci: position.checked_sub(1),
            },
        };
        Some((Node(parent), step))
    }

    /// The frames of a stack, from the allocation down.
    pub(super) fn stack(&self, node: Node) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = node;
        while let Some((parent, step)) = self.up(at) {
            steps.push(step);
            at = parent;
        }
        steps.reverse();
        steps
    }

    /// Whether the calling thread shall hand over a method to be named: true for one thread. One load, as a
    /// rule.
    pub(super) fn hands_over(&self, method: u32) -> bool {
        let bit = 1 << (method % 32);
        self.handed_over
            .get(method as usize / 32)
            .is_some_and(|word| {
                word.load(Ordering::Relaxed) & bit == 0
                    && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
            })
    }

    /// The method could not be handed over: the next thread tries again.
    pub(super) fn gives_up(&self, method: u32) {
        if let Some(word) = self.handed_over.get(method as usize / 32) {
            word.fetch_and(!(1 << (method % 32)), Ordering::Relaxed);
        }
    }

    /// Keeps the nodes that are `used` with all that lead to them, and their methods. Returns the methods
    /// that were kept. While no other thread uses the trie.
    pub(super) fn clear_unused(&self, used: impl Iterator<Item = Node>) -> Vec<bool> {
        let mut nodes = vec![false; self.nodes.capacity()];
        let mut methods = vec![false; self.methods.capacity()];
        for mut node in used {
            while let Some((parent, step)) = self.up(node) {
                if std::mem::replace(&mut nodes[node.0 as usize - 1], true) {
                    break;
                }
                if let Step::Frame { method, .. } = step
                    && let Some(kept) = methods.get_mut(method as usize)
                {
                    *kept = true;
                }
                node = parent;
            }
        }
        self.nodes.retain(|index| nodes[index as usize]);
        self.methods.retain(|index| methods[index as usize]);
        for (method, _) in (0..).zip(&methods).filter(|(_, kept)| !**kept) {
            self.gives_up(method);
        }
        methods
    }

    /// Whether half of the nodes or of the methods are in use. Reads both tables.
    pub(super) fn is_filling(&self) -> bool {
        [&self.nodes, &self.methods]
            .iter()
            .any(|keys| keys.len() * 2 > keys.capacity())
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        self.methods.committed_bytes()
            + self.nodes.committed_bytes()
            + size_of_val(&*self.handed_over) as u64
            + self.allocated.committed_bytes()
    }
}
