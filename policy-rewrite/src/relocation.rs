//! Where each instruction stands after the insertions.
//!
//! At a boundary between two instructions stand, in this order: what was inserted after the one above,
//! what was inserted before the one below, the one below. So an old offset has two new ones: its *start*,
//! before what was inserted before it (jumps, ranges, lines and frames name this), and the *instruction*
//! itself (labels of uninitialised objects and annotations name this).
//!
//! One pass is enough: the length of an instruction depends on its own place alone (the padding of a
//! switch), never on the place of a later one, because no jump is made longer.

use crate::code::{Code, MAX_CODE_BYTES};
use crate::error::RewriteError;
use crate::insertions::Insertions;
use crate::instructions::{Instruction, Shape, padding};

/// From old offsets of one method's code to new ones.
#[derive(Debug)]
pub(crate) struct Relocation<'c> {
    code: &'c Code<'c>,
    /// By old offset; only the places where an instruction begins, and the end, are filled.
    starts: Vec<u16>,
    instructions: Vec<u16>,
    /// The new length of the code.
    pub(crate) length: usize,
    /// Whether a guard stands at the entry.
    pub(crate) guarded: bool,
}

impl<'c> Relocation<'c> {
    pub(crate) fn of(
        code: &'c Code<'c>,
        insertions: &Insertions,
    ) -> Result<Relocation<'c>, RewriteError> {
        let length = code.bytecode.len();
        let (mut starts, mut instructions) = (vec![0; length + 1], vec![0; length + 1]);
        let fits = |position: usize| match position <= MAX_CODE_BYTES {
            true => Ok(position as u16),
            false => Err(RewriteError::MethodTooLong),
        };
        let mut position = insertions.entry().map_or(0, <[u8]>::len);
        for instruction in code.instructions() {
            let old = instruction.offset;
            starts[old as usize] = fits(position)?;
            position += insertions.before(old).len();
            instructions[old as usize] = fits(position)?;
            position += moved_length(&instruction, position as u32) + insertions.after(old).len();
        }
        starts[length] = fits(position)?;
        Ok(Relocation {
            code,
            starts,
            instructions,
            length: position,
            guarded: insertions.is_guarded(),
        })
    }

    /// The new start of the instruction at `old`, which `what` names.
    pub(crate) fn start(&self, old: u16, what: &'static str) -> Result<u16, RewriteError> {
        let is = self.code.begins(i64::from(old));
        self.checked(&self.starts, old, what, is)
    }

    /// As [`Relocation::start`], or the new end of the code.
    pub(crate) fn start_or_end(&self, old: u16, what: &'static str) -> Result<u16, RewriteError> {
        let is = self.code.begins_or_ends(i64::from(old));
        self.checked(&self.starts, old, what, is)
    }

    /// The new offset of the instruction itself.
    pub(crate) fn instruction(&self, old: u16, what: &'static str) -> Result<u16, RewriteError> {
        let is = self.code.begins(i64::from(old));
        self.checked(&self.instructions, old, what, is)
    }

    fn checked(
        &self,
        places: &[u16],
        old: u16,
        what: &'static str,
        is: bool,
    ) -> Result<u16, RewriteError> {
        let offset = i64::from(old);
        match is {
            true => Ok(places[usize::from(old)]),
            false => Err(RewriteError::Offset { what, offset }),
        }
    }

    /// Appends `instruction` at its new place, with its jumps corrected.
    pub(crate) fn write(
        &self,
        instruction: &Instruction<'_>,
        output: &mut Vec<u8>,
    ) -> Result<(), RewriteError> {
        let new = output.len() as u32;
        output.push(instruction.opcode);
        let shape = instruction.shape();
        // How much earlier the operands of a switch begin or end than they did.
        let (old_padding, new_padding) = match shape {
            Shape::Switch { .. } => (padding(instruction.offset), padding(new)),
            _ => (0, 0),
        };
        output.resize(output.len() + new_padding, 0);
        let operands = output.len();
        output.extend_from_slice(&instruction.operands[old_padding..]);
        for place in instruction.jump_places() {
            let target = instruction.target(place);
            let moved = self.starts[target as usize];
            let distance = i32::from(moved) - new as i32;
            let at = operands + place - old_padding;
            if shape == Shape::Jump16 {
                let short = i16::try_from(distance).map_err(|_| RewriteError::MethodTooLong)?;
                output[at..at + 2].copy_from_slice(&short.to_be_bytes());
            } else {
                output[at..at + 4].copy_from_slice(&distance.to_be_bytes());
            }
        }
        Ok(())
    }
}

fn moved_length(instruction: &Instruction<'_>, new: u32) -> usize {
    let length = instruction.length() as usize;
    match instruction.shape() {
        Shape::Switch { .. } => length - padding(instruction.offset) + padding(new),
        _ => length,
    }
}
