//! The attribute `Code` of a method (§4.7.3).

use std::collections::BTreeSet;

use crate::attributes::{CodeAttribute, parse_attributes};
use crate::error::RewriteError;
use crate::input::Input;
use crate::instructions::Instruction;

/// The most bytes that the code of a method may have: one less than 2 to the 16.
pub(crate) const MAX_CODE_BYTES: usize = 65_535;

/// The code of one method, read and understood: each jump, range and table names instructions.
#[derive(Debug)]
pub struct Code<'a> {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) bytecode: &'a [u8],
    pub(crate) handlers: Vec<Handler>,
    attributes: Vec<(u16, &'a [u8])>,
    /// By offset, and one past the end: whether an instruction begins there.
    begins: Vec<bool>,
}

/// A row of the exception table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handler {
    pub(crate) start: u16,
    pub(crate) end: u16,
    pub(crate) handler: u16,
    pub(crate) class: u16,
}

impl<'a> Code<'a> {
    /// `bytes` is what the attribute holds behind its length.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Code<'a>, RewriteError> {
        let mut input = Input::new(bytes, "a method's code");
        let max_stack = input.u2()?;
        let max_locals = input.u2()?;
        let length = input.u4()? as usize;
        if length == 0 || length > MAX_CODE_BYTES {
            return Err(RewriteError::Form("the length of a method's code"));
        }
        let bytecode = input.take(length)?;
        let mut begins = vec![false; length];
        begins.push(true);
        let mut offset = 0;
        while (offset as usize) < length {
            begins[offset as usize] = true;
            offset += Instruction::parse(bytecode, offset)?.length();
        }
        let mut handlers = Vec::new();
        for _ in 0..input.u2()? {
            handlers.push(Handler {
                start: input.u2()?,
                end: input.u2()?,
                handler: input.u2()?,
                class: input.u2()?,
            });
        }
        let mut attributes = Vec::new();
        for _ in 0..input.u2()? {
            let name = input.u2()?;
            let length = input.u4()? as usize;
            attributes.push((name, input.take(length)?));
        }
        input.end()?;
        let code = Code {
            max_stack,
            max_locals,
            bytecode,
            handlers,
            attributes,
            begins,
        };
        code.check()?;
        Ok(code)
    }

    /// Its instructions in their order.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction<'a>> + use<'a> {
        let bytecode = self.bytecode;
        let mut offset = 0;
        std::iter::from_fn(move || {
            if offset as usize == bytecode.len() {
                return None;
            }
            let instruction = Instruction::parse(bytecode, offset).expect("read before");
            offset += instruction.length();
            Some(instruction)
        })
    }

    /// Where its handlers of exceptions begin, each once.
    #[must_use]
    pub fn handler_offsets(&self) -> BTreeSet<u32> {
        (self.handlers.iter())
            .map(|row| u32::from(row.handler))
            .collect()
    }

    /// The instruction that begins at `offset`.
    pub(crate) fn instruction(&self, offset: u32) -> Instruction<'a> {
        Instruction::parse(self.bytecode, offset).expect("read before")
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u32 {
        self.bytecode.len() as u32
    }

    /// Whether an instruction begins at `offset`.
    pub(crate) fn begins(&self, offset: i64) -> bool {
        let at = usize::try_from(offset).ok();
        at.is_some_and(|at| at < self.bytecode.len() && self.begins[at])
    }

    /// As [`Code::begins`], or the end of the code.
    pub(crate) fn begins_or_ends(&self, offset: i64) -> bool {
        offset == i64::from(self.len_bytes()) || self.begins(offset)
    }

    /// The attributes of the code, understood. `name` gives the text of a constant.
    pub(crate) fn attributes(
        &self,
        name: impl Fn(u16) -> Result<&'a [u8], RewriteError>,
    ) -> Result<Vec<CodeAttribute<'a>>, RewriteError> {
        parse_attributes(&self.attributes, name)
    }

    fn check(&self) -> Result<(), RewriteError> {
        let named = |what, offset: i64, is: bool| match is {
            true => Ok(()),
            false => Err(RewriteError::Offset { what, offset }),
        };
        for instruction in self.instructions() {
            for place in instruction.jump_places() {
                let target = instruction.target(place);
                named("a jump", target, self.begins(target))?;
            }
        }
        for row in &self.handlers {
            let (start, end) = (i64::from(row.start), i64::from(row.end));
            let handler = i64::from(row.handler);
            named("a handler's range", start, self.begins(start))?;
            named("a handler's range", end, self.begins_or_ends(end))?;
            named("a handler", handler, self.begins(handler))?;
        }
        Ok(())
    }
}
