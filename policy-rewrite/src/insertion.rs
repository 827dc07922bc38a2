//! The edit of one method: the code to insert, and where.

use std::collections::BTreeMap;

use crate::class_file::Method;
use crate::code::Code;
use crate::error::RewriteError;
use crate::input::Output;
use crate::insertions::{Insertions, NewLocal, put_local};
use crate::instructions::{
    ATHROW, BIPUSH, ICONST_0, ICONST_1, IFEQ, ILOAD, INVOKESTATIC, IRETURN, ISTORE, Instruction,
    RETURN,
};
use crate::pool::AppendedConstants;
use crate::snippet::Snippet;
use crate::tally::{MAX_STACK, Tally};

/// The code to insert into one method. Several snippets at one place stand in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub struct MethodEdit {
    guard: Option<Guard>,
    brackets: Vec<Bracket>,
    before: BTreeMap<u32, Vec<Snippet>>,
    after: BTreeMap<u32, Vec<Snippet>>,
}

/// Code at the entry of a method, and code at each of its returns that gets what the first gave. The number
/// is kept in a local variable of its own, which each frame of the stack map then names.
#[derive(Debug, Clone)]
pub struct Bracket {
    /// Leaves one `int` on the stack.
    pub enter: Snippet,
    /// The class and name of a static method that takes the `int` and returns nothing.
    pub leave: (&'static str, &'static str),
    /// Whether `leave` takes behind the `int` how many instructions of its own the method has run, as an `int` or a
    /// `long`: there are to be two methods of its name. What a block has behind an instruction that throws counts
    /// too.
    pub counts_instructions: bool,
    /// The call that runs where a handler of the method begins; `None`: nothing.
    pub again: Option<Again>,
    /// Whether `leave` runs as well if the method ends with an exception. Not if that comes out of the call by which
    /// a constructor calls another one of its object, nor in the few constructors of which it is not clear where
    /// that is.
    pub escapes: bool,
}

/// A static method that takes the `int` of a bracket and a number, and returns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Its class and name.
    pub method: (&'static str, &'static str),
    /// The number.
    pub number: i32,
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
    /// A method with an `int` result, which is then this.
    ReturningInt(i8),
}

impl MethodEdit {
    /// Asks at the entry of the method, before all else; the last guard given counts.
    pub fn guard(&mut self, guard: Guard) {
        self.guard = Some(guard);
    }

    /// Brackets the method: behind its entry and before its returns, also where jumps lead to them. A later
    /// bracket stands within an earlier one.
    pub fn bracket(&mut self, bracket: Bracket) {
        self.brackets.push(bracket);
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
            && self.brackets.is_empty()
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
        let (before, after) = (side(&self.before, false)?, side(&self.after, true)?);
        let beneath = code.max_stack.checked_add(most);
        let mut max_stack = beneath.ok_or(RewriteError::Full("the operand stack"))?;
        let mut guard = None;
        if let Some(Guard { ask, leave }) = &self.guard {
            check_guard(method, ask, *leave)?;
            check_locals(ask, code)?;
            max_stack = max_stack.max(ask.most());
            guard = Some(assemble_guard(ask, *leave, constants)?);
        }
        let mut assembled = Insertions {
            is_guarded: self.guard.is_some(),
            entry: guard,
            before,
            after,
            escape: None,
            max_stack,
            max_locals: code.max_locals,
            new_locals: Vec::new(),
        };
        if !self.brackets.is_empty() {
            if self.guard.is_some() {
                return Err(RewriteError::Insertion(
                    "a guard and a bracket in one method",
                ));
            }
            // The numbers lie on all that is there at a return, or on an exception.
            let counts = self.brackets.iter().any(|one| one.counts_instructions);
            let numbers = if counts { 1 + MAX_STACK } else { 2 };
            let beneath = code.max_stack.checked_add(most.max(numbers));
            let beneath = beneath.ok_or(RewriteError::Full("the operand stack"))?;
            assembled.max_stack = max_stack.max(beneath);
            self.assemble_brackets(code, constants, &mut assembled)?;
        }
        Ok(assembled)
    }

    fn assemble_brackets(
        &self,
        code: &Code<'_>,
        constants: &mut AppendedConstants,
        into: &mut Insertions,
    ) -> Result<(), RewriteError> {
        let (mut entry, mut end, mut escape) = (Vec::new(), Vec::new(), Vec::new());
        let mut again = Vec::new();
        for bracket in &self.brackets {
            let enter = &bracket.enter;
            if enter.depth() != 1 {
                return Err(RewriteError::Insertion(
                    "a bracket that does not begin with one number",
                ));
            }
            check_locals(enter, code)?;
            let local = into.add_local(NewLocal::Int)?;
            into.max_stack = into.max_stack.max(enter.most());
            entry.extend(enter.assemble(constants)?);
            put_local(&mut entry, ISTORE, local);
            let (class, name) = bracket.leave;
            let mut leave = Vec::new();
            put_local(&mut leave, ILOAD, local);
            let mut taken = "(I)V";
            if bracket.counts_instructions {
                let tally = Tally::of(code, into)?;
                tally.begin(&mut entry);
                tally.count(&mut into.before, constants)?;
                tally.push(&mut leave);
                taken = tally.leave_descriptor();
            }
            leave.put_u1(INVOKESTATIC);
            leave.put_u2(constants.method(class, name, taken)?);
            if bracket.escapes {
                escape.splice(0..0, leave.iter().copied());
            }
            end.splice(0..0, leave);
            if let Some(Again { method, number }) = &bracket.again {
                put_local(&mut again, ILOAD, local);
                again.extend(Snippet::new().push_int(*number).assemble(constants)?);
                again.put_u1(INVOKESTATIC);
                again.put_u2(constants.method(method.0, method.1, "(II)V")?);
            }
        }
        into.entry = Some(entry);
        if !again.is_empty() {
            for handler in code.handler_offsets() {
                into.before.entry(handler).or_default().extend(&again);
            }
        }
        for instruction in code.instructions().filter(Instruction::is_return) {
            into.before
                .entry(instruction.offset)
                .or_default()
                .extend(&end);
        }
        if !escape.is_empty() {
            escape.put_u1(ATHROW);
            let class = constants.class(b"java/lang/Throwable")?;
            into.escape = Some((escape, class));
        }
        Ok(())
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
        Leave::ReturningInt(_) => b")I",
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
        Leave::ReturningInt(value) => &[BIPUSH, value.cast_unsigned(), IRETURN],
    };
    code.put_u1(IFEQ);
    code.put_u2(3 + exit.len() as u16);
    code.extend_from_slice(exit);
    Ok(code)
}
