//! The bytes that are inserted, and the local variables that they need.

use std::collections::BTreeMap;

use crate::error::RewriteError;
use crate::input::Output;
use crate::instructions::WIDE;

/// A local variable that a method gets, whose frames then name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewLocal {
    Int,
    Long,
}

impl NewLocal {
    /// How many numbers of local variables it takes.
    pub(crate) fn slots(self) -> u16 {
        match self {
            NewLocal::Int => 1,
            NewLocal::Long => 2,
        }
    }
}

/// An instruction that names a local variable.
pub(crate) fn put_local(code: &mut Vec<u8>, opcode: u8, local: u16) {
    match u8::try_from(local) {
        Ok(short) => code.extend_from_slice(&[opcode, short]),
        Err(_) => {
            code.extend_from_slice(&[WIDE, opcode]);
            code.put_u2(local);
        }
    }
}

/// The bytes to insert into one method, by place.
#[derive(Debug)]
pub(crate) struct Insertions {
    pub(crate) is_guarded: bool,
    pub(crate) entry: Option<Vec<u8>>,
    pub(crate) before: BTreeMap<u32, Vec<u8>>,
    pub(crate) after: BTreeMap<u32, Vec<u8>>,
    /// The code of a handler of whatever leaves the method by an exception, and the constant of `Throwable`.
    pub(crate) escape: Option<(Vec<u8>, u16)>,
    /// The slots of the operand stack that the method needs with them.
    pub(crate) max_stack: u16,
    /// The local variables with those of brackets, which are the last.
    pub(crate) max_locals: u16,
    /// Those of brackets.
    pub(crate) new_locals: Vec<NewLocal>,
}

impl Insertions {
    /// One more local variable of the method; gives its number.
    pub(crate) fn add_local(&mut self, kind: NewLocal) -> Result<u16, RewriteError> {
        let local = self.max_locals;
        let full = RewriteError::Full("the local variables");
        self.max_locals = local.checked_add(kind.slots()).ok_or(full)?;
        self.new_locals.push(kind);
        Ok(local)
    }

    /// Whether a guard stands at the entry, whose jump needs a frame.
    pub(crate) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Returns the code at the entry, a guard or the beginning of a bracket; `None` if there is neither.
    pub(crate) fn entry(&self) -> Option<&[u8]> {
        self.entry.as_deref()
    }

    /// The code of a handler of everything, and the constant of `Throwable`.
    pub(crate) fn escape(&self) -> Option<(&[u8], u16)> {
        let (code, class) = self.escape.as_ref()?;
        Some((code, *class))
    }

    pub(crate) fn before(&self, offset: u32) -> &[u8] {
        self.before.get(&offset).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn after(&self, offset: u32) -> &[u8] {
        self.after.get(&offset).map_or(&[], Vec::as_slice)
    }
}
