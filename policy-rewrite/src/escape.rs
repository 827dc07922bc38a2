//! The handlers of exceptions that leave a method: their ranges and their frames.
//!
//! A handler of everything stands behind the code. Its frame names none of the method's local variables, so it is
//! true wherever an exception comes from. Only a constructor needs two: until it has called another constructor its
//! object is uninitialised, and a handler has to say so (§4.10.1.6). Of that call itself there can be no handler:
//! HotSpot takes `this` as initialised and as uninitialised there, and no frame can say both.
//!
//! Where a constructor calls the other is found by counting `new`: compilers call the constructor of what they have
//! made before that of `this`. The method's own frames must agree, which say whether `this` is initialised; else,
//! and where code puts something else into the place of `this`, the constructor gets no handler.

use crate::class_file::{ClassFile, FIRST_WITH_FRAMES, Method};
use crate::code::Code;
use crate::error::RewriteError;
use crate::relocation::Relocation;

const NEW: u8 = 0xbb;
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESPECIAL_BYTES: u16 = 3;
/// From here on opcodes do more than to push what is there, and so do those that push constants of the pool.
const IALOAD: u8 = 0x2e;
const LDC: u8 = 0x12;
const LDC2_W: u8 = 0x14;

/// One handler. It covers the code from `start` to `end`, new offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Escape {
    pub(crate) start: u16,
    pub(crate) end: u16,
    /// Where it stands itself.
    pub(crate) handler: u16,
    /// Whether `this` is uninitialised in its range.
    pub(crate) is_before: bool,
}

/// The old offset at which a constructor calls the constructor beneath it, or another of its class.
pub(crate) fn initialised_at(
    class: &ClassFile<'_>,
    code: &Code<'_>,
) -> Result<Option<u16>, RewriteError> {
    let (mut made, mut found) = (0_u32, None);
    for instruction in code.instructions() {
        match instruction.opcode {
            NEW => made += 1,
            INVOKESPECIAL => {
                let called = class.pool().member(instruction.constant().unwrap_or(0))?;
                if called.name != b"<init>" {
                    continue;
                }
                if let Some(less) = made.checked_sub(1) {
                    made = less;
                } else if found.is_some() {
                    return Ok(None);
                } else {
                    found = Some(instruction.offset as u16);
                }
            }
            _ if instruction.stores_first_local() => return Ok(None),
            _ => {}
        }
    }
    Ok(found)
}

/// The handlers of a method, each of so many bytes.
pub(crate) fn handlers(
    class: &ClassFile<'_>,
    method: &Method<'_>,
    code: &Code<'_>,
    moved: &Relocation<'_>,
    initialised: Option<u16>,
    bytes: usize,
) -> Result<Vec<Escape>, RewriteError> {
    const WHAT: &str = "a handler";
    let fits = |position: usize| u16::try_from(position).map_err(|_| RewriteError::MethodTooLong);
    let (start, end) = (moved.start(0, WHAT)?, fits(moved.length)?);
    let whole = Escape {
        start,
        end,
        handler: end,
        is_before: false,
    };
    if method.name() != b"<init>" {
        return Ok(vec![whole]);
    }
    let Some(at) = initialised.filter(|_| class.version() >= FIRST_WITH_FRAMES) else {
        return Ok(Vec::new());
    };
    let middle = moved.instruction(at, WHAT)?;
    let behind = middle + INVOKESPECIAL_BYTES;
    // Code that goes on behind its end, which no verifier takes: a range may not be empty.
    if behind == end {
        return Ok(Vec::new());
    }
    let mut handlers = Vec::new();
    if may_throw_before(code, at) {
        handlers.push(Escape {
            end: middle,
            is_before: true,
            ..whole
        });
    }
    handlers.push(Escape {
        start: behind,
        handler: fits(moved.length + handlers.len() * bytes)?,
        ..whole
    });
    Ok(handlers)
}

/// Whether more than arguments and small numbers is passed on to the other constructor.
fn may_throw_before(code: &Code<'_>, at: u16) -> bool {
    code.instructions()
        .take_while(|found| found.offset < u32::from(at))
        .any(|found| found.opcode >= IALOAD || (LDC..=LDC2_W).contains(&found.opcode))
}
