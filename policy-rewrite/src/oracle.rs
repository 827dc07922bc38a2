//! Properties of each class that was read and of each that was rewritten: checked by the fuzz target and by
//! the tests that replay its corpus. The product does not call it.
//!
//! It reads what was written with the parser of this crate, and the stack maps with a reader of its own. What
//! it cannot know is which instruction of the new code is which of the old one; the property tests beside the
//! rewriter do.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::attributes::Kind;
use crate::class_file::FIRST_WITH_FRAMES;
use crate::code::{Code, Handler};
use crate::input::Input;
use crate::instructions::{Shape, padding};
use crate::rewriter::{MAX_FRAME_BYTES, MAX_FRAME_BYTES_BY_BYTE};
use crate::{ClassFile, Instruction, Method, MethodEdit, RewriteError, Rewriter, Snippet};

/// How often a byte of a class file may be there again in the rewritten one, stack maps aside: the shortest
/// instruction is a return, before which two brackets end, and a block is counted.
const MAX_GROWTH: usize = 60;
const MAX_REASON_BYTES: usize = 1_000;

/// A reason is one line of bounded length.
///
/// # Panics
/// If it is not, which is a bug of this crate. So all functions of this module.
pub fn check_reason(why: &RewriteError) {
    let told = why.to_string();
    assert!(!told.is_empty() && told.len() <= MAX_REASON_BYTES);
    assert!(!told.contains(char::is_control), "{told:?}");
}

/// Nothing inserted: the class is not written; or, if all its code is written afresh, byte for byte as it was.
pub fn check_unchanged(class: &ClassFile<'_>) {
    assert_eq!(Rewriter::new(class).finish(), None);
    let mut rewriter = Rewriter::new(class);
    let mut is_padded_with_zeros = true;
    for method in class.methods() {
        let code = match method.code() {
            Ok(Some(code)) => code,
            Ok(None) => continue,
            Err(why) => {
                check_reason(&why);
                continue;
            }
        };
        let mut edit = MethodEdit::default();
        for instruction in code.instructions() {
            edit.before(instruction.offset, Snippet::new());
        }
        match rewriter.edit(method, &edit) {
            Ok(()) => {
                // The bytes before the numbers of a switch mean nothing, and are written as 0.
                is_padded_with_zeros &= code.instructions().all(|found| match found.shape() {
                    Shape::Switch { .. } => {
                        let padding = &found.operands[..padding(found.offset)];
                        padding.iter().all(|byte| *byte == 0)
                    }
                    _ => true,
                });
            }
            Err(why) => check_reason(&why),
        }
    }
    if let Some(new) = rewriter.finish() {
        assert_eq!(new.len(), class.bytes.len());
        assert!(!is_padded_with_zeros || new == class.bytes);
    }
}

/// `after` is the class with something inserted: it is read again, it has all that was there, and what was added
/// is in order.
pub fn check_rewritten(before: &ClassFile<'_>, after: &[u8]) {
    let new = ClassFile::parse(after).expect("what was written is read again");
    let old_bytes = before.bytes;
    let most = MAX_FRAME_BYTES + (MAX_GROWTH + MAX_FRAME_BYTES_BY_BYTE) * old_bytes.len();
    assert!(after.len() <= most, "{} bytes", after.len());
    let (old_pool, new_pool) = (before.pool_range.clone(), new.pool_range.clone());
    assert!(old_bytes[..old_pool.start] == after[..new_pool.start]);
    let constants = &old_bytes[old_pool.start + 2..old_pool.end];
    assert!(after[new_pool.start + 2..new_pool.end].starts_with(constants));
    assert_eq!(before.methods().len(), new.methods().len());
    let (mut old_at, mut new_at) = (old_pool.end, new_pool.end);
    for (old, edited) in before.methods().iter().zip(new.methods()) {
        let ranges = (old.code_range(), edited.code_range());
        let (Some(old_range), Some(new_range)) = ranges else {
            assert!(old.code_range().is_none() && edited.code_range().is_none());
            continue;
        };
        assert!(old_bytes[old_at..old_range.start] == after[new_at..new_range.start]);
        (old_at, new_at) = (old_range.end, new_range.end);
        if old_bytes[old_range] != after[new_range] {
            check_method(&new, old, edited);
        }
    }
    assert!(old_bytes[old_at..] == after[new_at..]);
}

fn check_method(class: &ClassFile<'_>, old: &Method<'_>, new: &Method<'_>) {
    let code = |method: &Method<'_>| method.code().expect("understood").is_some();
    assert!(code(old) && code(new));
    let (Ok(Some(old_code)), Ok(Some(code))) = (old.code(), new.code()) else {
        return;
    };
    assert!(code.max_stack >= old_code.max_stack && code.max_locals >= old_code.max_locals);
    let mut left = code.instructions();
    for instruction in old_code.instructions() {
        let is_there = left.any(|found| is_same(&instruction, &found));
        assert!(is_there, "{instruction:?} is missing");
    }
    let (kept, added) = code.handlers.split_at(old_code.handlers.len());
    check_kept(&old_code.handlers, kept);
    check_added(&code, new, added);
    if class.version() >= FIRST_WITH_FRAMES {
        // Frames that are only moved may have more than they should, as they had.
        let is_anew = code.max_locals > old_code.max_locals;
        check_frames(class, &code, added, is_anew.then_some(code.max_locals));
    }
}

/// But for where it stands and leads to.
fn is_same(old: &Instruction<'_>, new: &Instruction<'_>) -> bool {
    if old.opcode != new.opcode {
        return false;
    }
    let rest = |found: &Instruction<'_>| {
        let skipped = match found.shape() {
            Shape::Switch { .. } => padding(found.offset),
            _ => 0,
        };
        let width = match found.shape() {
            Shape::Jump16 => 2,
            _ => 4,
        };
        let mut operands = found.operands.to_vec();
        for place in found.jump_places() {
            operands[place..place + width].fill(0);
        }
        operands.split_off(skipped)
    };
    rest(old) == rest(new)
}

/// Rows that were there are there in their order, and offsets that they name keep theirs.
fn check_kept(old: &[Handler], new: &[Handler]) {
    let mut moved = BTreeMap::new();
    for (old, new) in old.iter().zip(new) {
        assert_eq!(old.class, new.class);
        for (from, to) in [
            (old.start, new.start),
            (old.end, new.end),
            (old.handler, new.handler),
        ] {
            assert_eq!(*moved.entry(from).or_insert(to), to);
        }
    }
    let places: Vec<u16> = moved.into_values().collect();
    assert!(places.is_sorted_by(|one, other| one < other));
}

/// Rows for what leaves the method with an exception: behind all others, one after the other.
fn check_added(code: &Code<'_>, method: &Method<'_>, added: &[Handler]) {
    let most = if method.name() == b"<init>" { 2 } else { 1 };
    assert!(added.len() <= most, "{added:?}");
    let Some(first) = added.first() else { return };
    for row in added {
        assert!(row.start < row.end && row.end <= first.handler, "{row:?}");
        assert_eq!(row.class, 0);
    }
    let last = added[added.len() - 1];
    assert_eq!(last.end, first.handler, "to the end of what was there");
    if let [one, other] = added {
        assert!(one.end < other.start && one.handler < other.handler);
        let length = usize::from(other.handler - one.handler);
        let [one, other] = [one.handler, other.handler].map(usize::from);
        assert!(code.bytecode[one..other] == code.bytecode[other..other + length]);
    }
}

/// Each frame stands at an instruction, and has no more local variables than there are; each handler that was
/// added has one.
fn check_frames(
    class: &ClassFile<'_>,
    code: &Code<'_>,
    added: &[Handler],
    max_locals: Option<u16>,
) {
    let attributes = code.attributes(|index| class.pool().text(index));
    let attributes = attributes.expect("understood");
    let map = attributes
        .iter()
        .find(|found| found.kind == Kind::StackMapTable);
    let places = match map {
        Some(map) => places(map.bytes, max_locals).expect("as the specification has it"),
        None => Vec::new(),
    };
    assert!(places.iter().all(|place| code.begins(i64::from(*place))));
    for row in added {
        assert!(places.contains(&u32::from(row.handler)), "{row:?}");
    }
}

/// Where the frames of a map stand.
fn places(map: &[u8], max_locals: Option<u16>) -> Result<Vec<u32>, RewriteError> {
    const WHAT: &str = "a stack map";
    let mut input = Input::new(map, WHAT);
    let mut places = Vec::new();
    let mut next = 0_u32;
    for _ in 0..input.u2()? {
        let tag = input.u1()?;
        let distance = match tag {
            0..=127 => u32::from(tag % 64),
            247..=255 => u32::from(input.u2()?),
            _ => return Err(RewriteError::Form(WHAT)),
        };
        places.push(next + distance);
        next += distance + 1;
        let types = |range: Range<u16>, input: &mut Input<'_>| {
            let mut slots = 0_u32;
            for _ in range {
                let kind = input.u1()?;
                slots += if matches!(kind, 3 | 4) { 2 } else { 1 };
                input.take(if matches!(kind, 7 | 8) { 2 } else { 0 })?;
            }
            Ok::<u32, RewriteError>(slots)
        };
        match tag {
            64..=127 | 247 => drop(types(0..1, &mut input)?),
            252..=254 => drop(types(0..u16::from(tag - 251), &mut input)?),
            255 => {
                let locals = input.u2()?;
                let slots = types(0..locals, &mut input)?;
                let most = max_locals.map_or(slots, u32::from);
                assert!(slots <= most, "{slots} slots");
                let stack = input.u2()?;
                types(0..stack, &mut input)?;
            }
            _ => {}
        }
    }
    input.end()?;
    Ok(places)
}
