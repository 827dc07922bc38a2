//! What is to be inserted into one method.

use std::collections::BTreeMap;

use crate::class_file::Method;
use crate::code::Code;
use crate::error::RewriteError;
use crate::input::Output;
use crate::instructions::{
    ICONST_0, ICONST_1, IFEQ, ILOAD, INVOKESTATIC, IRETURN, ISTORE, Instruction, RETURN, WIDE,
};
use crate::pool::AppendedConstants;
use crate::snippet::Snippet;

/// What to insert into one method. Several snippets at one place stand in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub struct MethodEdit {
    guard: Option<Guard>,
    bracket: Option<Bracket>,
    before: BTreeMap<u32, Vec<Snippet>>,
    after: BTreeMap<u32, Vec<Snippet>>,
}

/// Code at the entry of a method, and code at each of its returns that gets what the first gave. The number
/// is kept in a local variable of its own, which each frame of the stack map then names.
///
/// If the method ends with an exception, nothing runs.
#[derive(Debug, Clone)]
pub struct Bracket {
    /// Leaves one `int` on the stack.
    pub enter: Snippet,
    /// The class and name of a static method that takes the `int` and returns nothing.
    pub leave: (&'static str, &'static str),
}

/// A question at the entry of a method.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Leaves one `int` (or `boolean`) on the stack: zero lets the call go on, all else leaves the method.
    /// It may load the arguments.
    pub ask: Snippet,
    /// How the method is left.
    pub leave: Leave,
}

/// How a guard leaves a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// A method without a result.
    Returning,
    /// A method with a `boolean` result, which is then this.
    ReturningBoolean(bool),
}

impl MethodEdit {
    /// Asks at the entry of the method, before all else; the last guard given counts.
    pub fn guard(&mut self, guard: Guard) {
        self.guard = Some(guard);
    }

    /// Brackets the method: behind its entry and before its returns, also where jumps lead to them; the last
    /// bracket given counts.
    pub fn bracket(&mut self, bracket: Bracket) {
        self.bracket = Some(bracket);
    }

    /// Runs `snippet` before the instruction at `offset`, also where a jump leads to it.
    pub fn before(&mut self, offset: u32, snippet: Snippet) {
        self.before.entry(offset).or_default().push(snippet);
    }

    /// Runs `snippet` when the instruction at `offset` has completed.
    pub fn after(&mut self, offset: u32, snippet: Snippet) {
        self.after.entry(offset).or_default().push(snippet);
    }

    /// Whether nothing is to be inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.guard.is_none()
            && self.bracket.is_none()
            && self.before.is_empty()
            && self.after.is_empty()
    }

    /// Checks it against the method and writes its code.
    pub(crate) fn assemble(
        &self,
        method: &Method<'_>,
        code: &Code<'_>,
        constants: &mut AppendedConstants,
    ) -> Result<Insertions, RewriteError> {
        let mut most = 0;
        let mut side = |snippets: &BTreeMap<u32, Vec<Snippet>>, after: bool| {
            let mut placed = BTreeMap::new();
            for (&offset, snippets) in snippets {
                if !code.begins(i64::from(offset)) {
                    let offset = i64::from(offset);
                    let what = "an insertion";
                    return Err(RewriteError::Offset { what, offset });
                }
                if after && !code.instruction(offset).falls_through() {
                    return Err(RewriteError::Insertion(
                        "code after an instruction that never goes on to the next",
                    ));
                }
                let mut bytes = Vec::new();
                for snippet in snippets {
                    if snippet.depth() != 0 {
                        return Err(RewriteError::Insertion("code that leaves something pushed"));
                    }
                    check_locals(snippet, code)?;
                    most = most.max(snippet.most());
                    bytes.extend(snippet.assemble(constants)?);
                }
                placed.insert(offset, bytes);
            }
            Ok(placed)
        };
        let (mut before, after) = (side(&self.before, false)?, side(&self.after, true)?);
        let beneath = code.max_stack.checked_add(most);
        let mut max_stack = beneath.ok_or(RewriteError::Full("the operand stack"))?;
        let mut guard = None;
        if let Some(Guard { ask, leave }) = &self.guard {
            check_guard(method, ask, *leave)?;
            check_locals(ask, code)?;
            max_stack = max_stack.max(ask.most());
            guard = Some(assemble_guard(ask, *leave, constants)?);
        }
        let mut entry = guard;
        let mut max_locals = code.max_locals;
        if let Some(Bracket { enter, leave }) = &self.bracket {
            if self.guard.is_some() {
                return Err(RewriteError::Insertion(
                    "a guard and a bracket in one method",
                ));
            }
            if enter.depth() != 1 {
                return Err(RewriteError::Insertion(
                    "a bracket that does not begin with one number",
                ));
            }
            check_locals(enter, code)?;
            let full = RewriteError::Full("the local variables");
            let local = code.max_locals;
            max_locals = local.checked_add(1).ok_or(full)?;
            max_stack = max_stack.max(enter.most());
            // The number lies on all that is there at a return.
            let beneath = code.max_stack.checked_add(most.max(1));
            max_stack = max_stack.max(beneath.ok_or(RewriteError::Full("the operand stack"))?);
            let mut bytes = enter.assemble(constants)?;
            put_local(&mut bytes, ISTORE, local);
            entry = Some(bytes);
            let mut end = Vec::new();
            put_local(&mut end, ILOAD, local);
            end.put_u1(INVOKESTATIC);
            end.put_u2(constants.method(leave.0, leave.1, "(I)V")?);
            for instruction in code.instructions().filter(Instruction::is_return) {
                let place: &mut Vec<u8> = before.entry(instruction.offset).or_default();
                place.extend_from_slice(&end);
            }
        }
        Ok(Insertions {
            is_guarded: self.guard.is_some(),
            entry,
            before,
            after,
            max_stack,
            max_locals,
        })
    }
}

/// An instruction that names a local variable.
fn put_local(code: &mut Vec<u8>, opcode: u8, local: u16) {
    match u8::try_from(local) {
        Ok(short) => code.extend_from_slice(&[opcode, short]),
        Err(_) => {
            code.extend_from_slice(&[WIDE, opcode]);
            code.put_u2(local);
        }
    }
}

fn check_locals(snippet: &Snippet, code: &Code<'_>) -> Result<(), RewriteError> {
    match snippet.highest_local() {
        Some(index) if u16::from(index) >= code.max_locals => Err(RewriteError::Insertion(
            "code that reads a local variable which the method does not have",
        )),
        _ => Ok(()),
    }
}

fn check_guard(method: &Method<'_>, ask: &Snippet, leave: Leave) -> Result<(), RewriteError> {
    // `this` of a constructor is not initialised there, and it must be before it is left.
    if method.name().starts_with(b"<") {
        return Err(RewriteError::Insertion(
            "a guard in a constructor or initialiser",
        ));
    }
    if ask.depth() != 1 {
        return Err(RewriteError::Insertion(
            "a guard that does not leave one answer",
        ));
    }
    let result: &[u8] = match leave {
        Leave::Returning => b")V",
        Leave::ReturningBoolean(_) => b")Z",
    };
    match method.descriptor().ends_with(result) {
        true => Ok(()),
        false => Err(RewriteError::Insertion(
            "a guard whose result is not the method's",
        )),
    }
}

/// `ask; ifeq on; [iconst] return; on:`
fn assemble_guard(
    ask: &Snippet,
    leave: Leave,
    constants: &mut AppendedConstants,
) -> Result<Vec<u8>, RewriteError> {
    let mut code = ask.assemble(constants)?;
    let exit: &[u8] = match leave {
        Leave::Returning => &[RETURN],
        Leave::ReturningBoolean(false) => &[ICONST_0, IRETURN],
        Leave::ReturningBoolean(true) => &[ICONST_1, IRETURN],
    };
    code.put_u1(IFEQ);
    code.put_u2(3 + exit.len() as u16);
    code.extend_from_slice(exit);
    Ok(code)
}

/// The bytes to insert into one method, by place.
#[derive(Debug)]
pub(crate) struct Insertions {
    is_guarded: bool,
    entry: Option<Vec<u8>>,
    before: BTreeMap<u32, Vec<u8>>,
    after: BTreeMap<u32, Vec<u8>>,
    /// What the method needs of the operand stack with them.
    pub(crate) max_stack: u16,
    /// The local variables with that of a bracket, which is the last.
    pub(crate) max_locals: u16,
}

impl Insertions {
    /// Whether a guard stands at the entry, whose jump needs a frame.
    pub(crate) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// What stands at the entry, a guard or the beginning of a bracket.
    pub(crate) fn entry(&self) -> Option<&[u8]> {
        self.entry.as_deref()
    }

    pub(crate) fn before(&self, offset: u32) -> &[u8] {
        self.before.get(&offset).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn after(&self, offset: u32) -> &[u8] {
        self.after.get(&offset).map_or(&[], Vec::as_slice)
    }
}
