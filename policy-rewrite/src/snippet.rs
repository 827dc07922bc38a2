//! Straight-line code to insert, and what it needs of the stack.

use crate::error::RewriteError;
use crate::input::Output;
use crate::instructions::{ALOAD, DUP, ILOAD, INVOKESTATIC, LDC, LDC_W, LDC2_W, SIPUSH};
use crate::pool::AppendedConstants;

/// Straight-line code that may only read: local variables, constants, the results of static methods. It is
/// built for no class and can be inserted into many.
///
/// Whether the local variables have the types that it loads them with, and whether its methods exist and may
/// be called from where it is inserted, is the caller's to know: the JVM's verifier and linker decide.
#[derive(Debug, Clone, Default)]
pub struct Snippet {
    operations: Vec<Operation>,
    depth: u16,
    most: u16,
}

#[derive(Debug, Clone)]
enum Operation {
    /// An opcode and a local variable.
    Load(u8, u8),
    Duplicate,
    Int(i32),
    Long(i64),
    /// The constant of the class's own pool.
    Own(u16),
    InvokeStatic {
        class: String,
        name: String,
        descriptor: String,
    },
}

impl Snippet {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Snippet {
        Snippet::default()
    }

    /// Pushes the reference in the local variable `index`; 0 is `this` of an instance method.
    #[must_use]
    pub fn load_reference(self, index: u8) -> Snippet {
        self.then(Operation::Load(ALOAD, index), 1)
    }

    /// Pushes the `int` in the local variable `index`.
    #[must_use]
    pub fn load_int(self, index: u8) -> Snippet {
        self.then(Operation::Load(ILOAD, index), 1)
    }

    /// Pushes the top of the stack again, which must be no `long` or `double`: of the method's own stack if
    /// the snippet has pushed nothing.
    #[must_use]
    pub fn duplicate(self) -> Snippet {
        self.then(Operation::Duplicate, 1)
    }

    /// Pushes an `int`.
    #[must_use]
    pub fn push_int(self, value: i32) -> Snippet {
        self.then(Operation::Int(value), 1)
    }

    /// Pushes a `long`.
    #[must_use]
    pub fn push_long(self, value: i64) -> Snippet {
        self.then(Operation::Long(value), 2)
    }

    /// Pushes the constant at `index` of the pool of the class into which it is inserted: an `int`, a
    /// string, a class; no `long` or `double`. A snippet with one is good for that class alone.
    #[must_use]
    pub fn push_own_constant(self, index: u16) -> Snippet {
        self.then(Operation::Own(index), 1)
    }

    /// Calls a static method of a class (not of an interface) with what the snippet has pushed.
    ///
    /// # Errors
    /// If the descriptor is none, or takes more than was pushed.
    pub fn invoke_static(
        mut self,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<Snippet, RewriteError> {
        let (arguments, result) = slots(descriptor)?;
        let left = self.depth.checked_sub(arguments);
        self.depth = left.ok_or(RewriteError::Insertion(
            "a call that takes more than was pushed for it",
        ))?;
        let call = Operation::InvokeStatic {
            class: class.to_owned(),
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
        };
        Ok(self.then(call, result))
    }

    fn then(mut self, operation: Operation, pushed: u16) -> Snippet {
        self.operations.push(operation);
        self.depth = self.depth.saturating_add(pushed);
        self.most = self.most.max(self.depth);
        self
    }

    /// Returns the slots that it leaves on the stack.
    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }

    /// The most that it has on the stack, in slots.
    pub(crate) fn most(&self) -> u16 {
        self.most
    }

    /// The highest local variable that it reads.
    pub(crate) fn highest_local(&self) -> Option<u8> {
        let locals = self
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Load(_, index) => Some(*index),
                _ => None,
            });
        locals.max()
    }

    /// Its bytes in a class to whose pool `constants` are appended.
    pub(crate) fn assemble(
        &self,
        constants: &mut AppendedConstants,
    ) -> Result<Vec<u8>, RewriteError> {
        let mut code = Vec::new();
        for operation in &self.operations {
            match operation {
                Operation::Load(opcode, index) => code.extend_from_slice(&[*opcode, *index]),
                Operation::Duplicate => code.put_u1(DUP),
                Operation::Int(value) => {
                    if let Ok(short) = i16::try_from(*value) {
                        code.put_u1(SIPUSH);
                        code.extend_from_slice(&short.to_be_bytes());
                    } else {
                        code.put_u1(LDC_W);
                        code.put_u2(constants.integer(*value)?);
                    }
                }
                Operation::Long(value) => {
                    code.put_u1(LDC2_W);
                    code.put_u2(constants.long(*value)?);
                }
                Operation::Own(index) => match u8::try_from(*index) {
                    Ok(short) => code.extend_from_slice(&[LDC, short]),
                    Err(_) => {
                        code.put_u1(LDC_W);
                        code.put_u2(*index);
                    }
                },
                Operation::InvokeStatic {
                    class,
                    name,
                    descriptor,
                } => {
                    code.put_u1(INVOKESTATIC);
                    code.put_u2(constants.method(class, name, descriptor)?);
                }
            }
        }
        Ok(code)
    }
}

/// The slots of a method's arguments and of its result (§4.3.3).
fn slots(descriptor: &str) -> Result<(u16, u16), RewriteError> {
    let wrong = RewriteError::Insertion("a method descriptor that is none");
    let inner = descriptor.strip_prefix('(').ok_or(wrong.clone())?;
    let (arguments, result) = inner.split_once(')').ok_or(wrong.clone())?;
    let mut rest = arguments;
    let mut total = 0_u16;
    while !rest.is_empty() {
        let (slots, left) = field(rest).ok_or(wrong.clone())?;
        total = total.saturating_add(slots);
        rest = left;
    }
    match result {
        "V" => Ok((total, 0)),
        _ => match field(result) {
            Some((slots, "")) => Ok((total, slots)),
            _ => Err(wrong),
        },
    }
}

/// The slots of the first field descriptor, and what follows it.
fn field(text: &str) -> Option<(u16, &str)> {
    let element = text.trim_start_matches('[');
    let is_array = element.len() < text.len();
    let kind = element.chars().next()?;
    let rest = match kind {
        'B' | 'C' | 'F' | 'I' | 'S' | 'Z' | 'D' | 'J' => &element[1..],
        'L' => &element[element.find(';')? + 1..],
        _ => return None,
    };
    let wide = !is_array && matches!(kind, 'D' | 'J');
    Some((if wide { 2 } else { 1 }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_by_the_descriptor() {
        for (descriptor, expected) in [
            ("()V", (0, 0)),
            ("(IJ)D", (3, 2)),
            ("([JLjava/lang/String;[[Lx/Y;Z)I", (4, 1)),
            ("(D[D)[J", (3, 1)),
        ] {
            assert_eq!(slots(descriptor), Ok(expected), "{descriptor}");
        }
        for none in [
            "", "()", "(V)V", "(L)V", "I", "(I)VV", "()VI", "(Lx)V", "(I", "([)V",
        ] {
            assert!(slots(none).is_err(), "{none}");
        }
    }

    #[test]
    fn the_stack_is_followed() {
        let snippet = Snippet::new().load_reference(1).push_long(3).duplicate();
        assert_eq!((snippet.depth(), snippet.most()), (4, 4));
        let called = snippet.invoke_static("a/B", "c", "(Lx/Y;JI)Z").unwrap();
        assert_eq!((called.depth(), called.most()), (1, 4));
        assert_eq!(called.highest_local(), Some(1));
        assert!(called.invoke_static("a/B", "c", "(ZI)V").is_err());
    }
}
