//! The instructions that a method runs, counted in local variables of its own.
//!
//! An `int` counts by blocks (the module `blocks`): one instruction for each. It cannot overflow between two blocks
//! that head loops; there a `long` takes it over, in methods that have any.

use std::collections::BTreeMap;

use crate::blocks::{self, Block};
use crate::code::Code;
use crate::error::RewriteError;
use crate::input::Output;
use crate::insertions::{Insertions, NewLocal, put_local};
use crate::instructions::{
    I2L, ICONST_0, IINC, ILOAD, ISTORE, LADD, LCONST_0, LLOAD, LSTORE, WIDE,
};
use crate::pool::AppendedConstants;
use crate::snippet::Snippet;

/// The slots of the operand stack that [`Tally::push`] and [`Tally::count`] need at most, beside one more number.
pub(crate) const MAX_STACK: u16 = 5;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tally {
    blocks: Vec<Block>,
    /// Counts since the last block that heads a loop.
    since: u16,
    /// The local variable with all counts before that; `None`: no block heads a loop.
    before: Option<u16>,
}

impl Tally {
    /// With new local variables of the method.
    pub(crate) fn of(code: &Code<'_>, into: &mut Insertions) -> Result<Tally, RewriteError> {
        let blocks = blocks::of(code);
        let has_loops = blocks.iter().any(|block| block.heads_loop);
        Ok(Tally {
            blocks,
            since: into.add_local(NewLocal::Int)?,
            before: match has_loops {
                true => Some(into.add_local(NewLocal::Long)?),
                false => None,
            },
        })
    }

    /// At the entry of the method.
    pub(crate) fn begin(&self, entry: &mut Vec<u8>) {
        entry.put_u1(ICONST_0);
        put_local(entry, ISTORE, self.since);
        if let Some(before) = self.before {
            entry.put_u1(LCONST_0);
            put_local(entry, LSTORE, before);
        }
    }

    /// Where blocks begin.
    pub(crate) fn count(
        &self,
        at: &mut BTreeMap<u32, Vec<u8>>,
        constants: &mut AppendedConstants,
    ) -> Result<(), RewriteError> {
        for block in &self.blocks {
            let code = at.entry(block.offset).or_default();
            match self.before.filter(|_| block.heads_loop) {
                Some(before) => {
                    self.push(code);
                    put_local(code, LSTORE, before);
                    let count = i32::from(block.instructions);
                    code.extend(Snippet::new().push_int(count).assemble(constants)?);
                    put_local(code, ISTORE, self.since);
                }
                None => add(code, self.since, block.instructions),
            }
        }
        Ok(())
    }

    /// Pushes what was counted.
    pub(crate) fn push(&self, code: &mut Vec<u8>) {
        match self.before {
            None => put_local(code, ILOAD, self.since),
            Some(before) => {
                put_local(code, LLOAD, before);
                put_local(code, ILOAD, self.since);
                code.extend_from_slice(&[I2L, LADD]);
            }
        }
    }

    /// Of a method that takes the number of a bracket and what [`Tally::push`] pushes.
    pub(crate) fn leave_descriptor(&self) -> &'static str {
        match self.before {
            None => "(II)V",
            Some(_) => "(IJ)V",
        }
    }
}

/// Adds a number to an `int`.
fn add(code: &mut Vec<u8>, local: u16, mut number: u16) {
    if let (Ok(local), Ok(small)) = (u8::try_from(local), i8::try_from(number)) {
        code.extend_from_slice(&[IINC, local, small as u8]);
        return;
    }
    while number > 0 {
        let some = number.min(i16::MAX as u16);
        code.extend_from_slice(&[WIDE, IINC]);
        code.put_u2(local);
        code.put_u2(some);
        number -= some;
    }
}
