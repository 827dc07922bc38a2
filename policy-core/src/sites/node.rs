//! A stack's number, which is that of its outermost frame, and how a record keeps it.

use super::budget;
use crate::ledger::SiteId;

/// Bits of an index of a node, plus one; 0 is the root.
pub(super) const NODE_BITS: u32 = 20;

/// A node of the trie; the root, if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Node(pub(super) u32);

impl Node {
    /// The parent of all first frames.
    pub(super) const ROOT: Node = Node(0);
}

/// The node and the level in a record.
pub(super) fn unpack(site: SiteId) -> (u32, Node) {
    let number = site.get();
    (number >> NODE_BITS, Node(number & ((1 << NODE_BITS) - 1)))
}

/// The site of a record whose stack stands for 2^level.
pub(super) fn pack(level: u32, node: Node) -> SiteId {
    const _: () = assert!(NODE_BITS + 4 == SiteId::BITS && budget::MAX_LEVEL < 16);
    match node {
        Node::ROOT => SiteId::NONE,
        node => SiteId::new(level << NODE_BITS | node.0),
    }
}
