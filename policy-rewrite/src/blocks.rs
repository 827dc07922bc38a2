//! Basic blocks: which instructions run together, for counting them with one addition.
//!
//! # Rules
//! 1. A block begins with the method, where a jump leads to, where a handler begins, and behind each instruction that
//!    jumps or never goes on to the next.
//! 2. All instructions of a block count as it begins. An exception in the middle leaves the rest counted.
//! 3. Each cycle of the method's code runs through a block that [heads a loop](Block::heads_loop): one to which a jump
//!    leads backward, or a handler that begins before the end of its own range. So between two of these no instruction
//!    runs twice, and less is counted than the method has bytes.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::instructions::Shape;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) offset: u32,
    /// How many it has.
    pub(crate) instructions: u16,
    pub(crate) heads_loop: bool,
}

/// The blocks of a method in their order.
pub(crate) fn of(code: &Code<'_>) -> Vec<Block> {
    // By offset: whether it heads a loop.
    let mut begins = BTreeMap::from([(0, false)]);
    let mut begin =
        |offset: u32, heads_loop: bool| *begins.entry(offset).or_default() |= heads_loop;
    for instruction in code.instructions() {
        for place in instruction.jump_places() {
            // Checked when the code was read.
            let target = instruction.target(place) as u32;
            begin(target, target <= instruction.offset);
        }
        if instruction.shape() != Shape::Fixed || !instruction.falls_through() {
            begin(instruction.offset + instruction.length(), false);
        }
    }
    for row in &code.handlers {
        begin(u32::from(row.handler), row.handler < row.end);
    }
    let mut blocks: Vec<Block> = Vec::with_capacity(begins.len());
    for instruction in code.instructions() {
        match (begins.get(&instruction.offset), blocks.last_mut()) {
            (None, Some(block)) => block.instructions += 1,
            (heads_loop, _) => blocks.push(Block {
                offset: instruction.offset,
                instructions: 1,
                heads_loop: heads_loop.is_some_and(|heads| *heads),
            }),
        }
    }
    blocks
}

impl Code<'_> {
    /// Whether any of its instructions may run twice in one call.
    #[must_use]
    pub fn has_loops(&self) -> bool {
        of(self).iter().any(|block| block.heads_loop)
    }
}
