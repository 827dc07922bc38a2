//! Stack maps (§4.7.4): their frames say of the offsets at which they stand how far each is from the one
//! before. Frames are moved, never computed.

use crate::class_file::{ClassFile, Method};
use crate::error::RewriteError;
use crate::escape::Escape;
use crate::input::{Input, Output};
use crate::insertions::NewLocal;
use crate::pool::AppendedConstants;
use crate::relocation::Relocation;

const WHAT: &str = "a stack map";
/// The most slots that the arguments of a method have (§4.3.3).
const MAX_ARGUMENTS: usize = 255;
const SAME: u8 = 63;
const SAME_WITH_ITEM: u8 = 127;
const SAME_WITH_ITEM_EXTENDED: u8 = 247;
const SAME_EXTENDED: u8 = 251;
const FULL: u8 = 255;

/// The tag of the next frame, and the offset at which it stands; `old` is that of the frame before.
fn head(input: &mut Input<'_>, old: Option<u16>) -> Result<(u8, u16), RewriteError> {
    let tag = input.u1()?;
    let distance = match tag {
        0..=SAME => u16::from(tag),
        64..=SAME_WITH_ITEM => u16::from(tag - 64),
        SAME_WITH_ITEM_EXTENDED..=FULL => input.u2()?,
        _ => return Err(RewriteError::Form(WHAT)),
    };
    let at = match old {
        None => Some(distance),
        Some(old) => old.checked_add(distance).and_then(|sum| sum.checked_add(1)),
    };
    Ok((tag, at.ok_or(RewriteError::Form(WHAT))?))
}

/// The map with its frames moved, and with one more for the target of a guard, if there is one.
pub(crate) fn relocated(bytes: &[u8], moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    let mut input = Input::new(bytes, WHAT);
    let count = input.u2()?;
    let mut frames = Frames::default();
    let mut old: Option<u16> = None;
    for _ in 0..count {
        let (tag, next) = head(&mut input, old)?;
        // A loop that begins with the method has a frame where the guard leads to: for both.
        if moved.guarded && old.is_none() && next != 0 {
            frames.put(0, moved.start(0, WHAT)?, &[])?;
        }
        let mut types = Vec::new();
        let mut copy = |input: &mut Input<'_>, count: u16| {
            (0..count).try_for_each(|_| copy_type(input, &mut types, moved))
        };
        match tag {
            64..=SAME_WITH_ITEM | SAME_WITH_ITEM_EXTENDED => copy(&mut input, 1)?,
            252..=254 => copy(&mut input, u16::from(tag - SAME_EXTENDED))?,
            FULL => {
                for _ in 0..2 {
                    let count = input.u2()?;
                    types.put_u2(count);
                    for _ in 0..count {
                        copy_type(&mut input, &mut types, moved)?;
                    }
                }
            }
            _ => {}
        }
        frames.put(tag, moved.start(next, WHAT)?, &types)?;
        old = Some(next);
    }
    input.end()?;
    if moved.guarded && old.is_none() {
        frames.put(0, moved.start(0, WHAT)?, &[])?;
    }
    frames.finish()
}

/// The type of a local variable as a frame has it (§4.7.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalType(Vec<u8>);

impl LocalType {
    const TOP: u8 = 0;
    const INTEGER: u8 = 1;
    const FLOAT: u8 = 2;
    const DOUBLE: u8 = 3;
    const LONG: u8 = 4;
    const UNINITIALIZED_THIS: u8 = 6;
    const OBJECT: u8 = 7;

    fn object(class: u16) -> LocalType {
        let mut bytes = vec![LocalType::OBJECT];
        bytes.put_u2(class);
        LocalType(bytes)
    }

    fn uninitialized_this() -> LocalType {
        LocalType(vec![LocalType::UNINITIALIZED_THIS])
    }

    fn slots(&self) -> u16 {
        match self.0[0] {
            LocalType::DOUBLE | LocalType::LONG => 2,
            _ => 1,
        }
    }
}

impl NewLocal {
    fn tag(self) -> u8 {
        match self {
            NewLocal::Int => LocalType::INTEGER,
            NewLocal::Long => LocalType::LONG,
        }
    }
}

/// The local variables at the entry of a method, from which its first frame is told (§4.10.1.6). `room` as in
/// [`with_locals`].
pub(crate) fn first_locals(
    class: &ClassFile<'_>,
    method: &Method<'_>,
    constants: &mut AppendedConstants,
    room: &mut usize,
) -> Result<Vec<LocalType>, RewriteError> {
    const STATIC: u16 = 0x0008;
    let mut locals = Vec::new();
    if method.access_flags() & STATIC == 0 {
        locals.push(match method.name() {
            b"<init>" => LocalType::uninitialized_this(),
            _ => LocalType::object(class.this),
        });
    }
    let wrong = RewriteError::Form("a method's descriptor");
    // Many methods may share a long one.
    let full = RewriteError::Full(WHAT);
    *room = room.checked_sub(method.descriptor().len()).ok_or(full)?;
    let mut rest = method
        .descriptor()
        .strip_prefix(b"(")
        .ok_or(wrong.clone())?;
    while !rest.starts_with(b")") {
        if locals.len() > MAX_ARGUMENTS {
            return Err(wrong);
        }
        let dimensions = rest.iter().take_while(|byte| **byte == b'[').count();
        let element = rest.get(dimensions).ok_or(wrong.clone())?;
        let end = match element {
            b'L' => {
                rest.iter()
                    .position(|byte| *byte == b';')
                    .ok_or(wrong.clone())?
                    + 1
            }
            _ => dimensions + 1,
        };
        let (field, next) = rest.split_at(end);
        locals.push(match (dimensions, element) {
            (0, b'L') => LocalType::object(constants.class(&field[1..end - 1])?),
            (0, b'D') => LocalType(vec![LocalType::DOUBLE]),
            (0, b'J') => LocalType(vec![LocalType::LONG]),
            (0, b'F') => LocalType(vec![LocalType::FLOAT]),
            (0, b'B' | b'C' | b'I' | b'S' | b'Z') => LocalType(vec![LocalType::INTEGER]),
            (1.., _) => LocalType::object(constants.class(field)?),
            _ => return Err(wrong),
        });
        rest = next;
    }
    Ok(locals)
}

/// The parts of which the frames of a method with new local variables are made.
#[derive(Debug)]
pub(crate) struct NewFrames<'n> {
    /// The local variables at the entry.
    pub(crate) first: Vec<LocalType>,
    /// How many slots of them the method had, and what it gets behind these.
    pub(crate) most: u16,
    pub(crate) added: &'n [NewLocal],
    /// Of a constructor: the old offset up to which `this` is uninitialised.
    pub(crate) initialised: Option<u16>,
    /// The constant of `Throwable`, for handlers.
    pub(crate) throwable: u16,
}

/// The map with its frames moved and written in full, each with the new local variables; and one more for each of
/// the handlers behind the code, which has these alone. `None`: the frames do not say of `this` what the handlers of
/// a constructor need.
///
/// `room` is what the class has left for frames, in bytes; frames in full take room by the number of local variables.
pub(crate) fn with_locals(
    bytes: &[u8],
    moved: &Relocation<'_>,
    new: &NewFrames<'_>,
    handlers: &[Escape],
    room: &mut usize,
) -> Result<Option<Vec<u8>>, RewriteError> {
    let (most, added) = (new.most, new.added);
    let mut locals = new.first.clone();
    let mut input = Input::new(bytes, WHAT);
    let count = input.u2()?;
    let mut frames = Frames::default();
    let mut old: Option<u16> = None;
    for _ in 0..count {
        let (tag, next) = head(&mut input, old)?;
        let typed = |input: &mut Input<'_>| {
            let mut bytes = Vec::new();
            copy_type(input, &mut bytes, moved)?;
            Ok::<_, RewriteError>(LocalType(bytes))
        };
        let mut stack: Vec<LocalType> = Vec::new();
        match tag {
            64..=SAME_WITH_ITEM | SAME_WITH_ITEM_EXTENDED => stack.push(typed(&mut input)?),
            248..=250 => {
                let left = locals.len().checked_sub(usize::from(SAME_EXTENDED - tag));
                locals.truncate(left.ok_or(RewriteError::Form(WHAT))?);
            }
            252..=254 => {
                for _ in 0..tag - SAME_EXTENDED {
                    locals.push(typed(&mut input)?);
                }
            }
            FULL => {
                locals.clear();
                for _ in 0..input.u2()? {
                    locals.push(typed(&mut input)?);
                }
                for _ in 0..input.u2()? {
                    stack.push(typed(&mut input)?);
                }
            }
            _ => {}
        }
        if let (Some(initialised), [_, ..]) = (new.initialised, handlers) {
            let is_before = locals.contains(&LocalType::uninitialized_this());
            if is_before != (next <= initialised) {
                return Ok(None);
            }
        }
        let types = full_frame(&locals, (most, added), &stack, room)?;
        frames.put(FULL, moved.start(next, WHAT)?, &types)?;
        old = Some(next);
    }
    input.end()?;
    for handler in handlers {
        let this = [LocalType::uninitialized_this()];
        let locals = if handler.is_before { &this[..] } else { &[] };
        let stack = [LocalType::object(new.throwable)];
        let types = full_frame(locals, (most, added), &stack, room)?;
        frames.put(FULL, handler.handler, &types)?;
    }
    frames.finish().map(Some)
}

/// Writes a full frame from behind its offset on: these local variables, the new ones behind the room for `most`, and
/// the stack.
fn full_frame(
    locals: &[LocalType],
    (most, added): (u16, &[NewLocal]),
    stack: &[LocalType],
    room: &mut usize,
) -> Result<Vec<u8>, RewriteError> {
    let used: u32 = locals.iter().map(|local| u32::from(local.slots())).sum();
    let free = u32::from(most).checked_sub(used);
    let free = free.ok_or(RewriteError::Form(WHAT))?;
    let mut types = Vec::new();
    let full = RewriteError::Full(WHAT);
    let length = locals.len() as u32 + free + added.len() as u32;
    // A type has three bytes at most.
    let bytes = length as usize + 2 * locals.len() + 3 * stack.len();
    *room = room.checked_sub(bytes).ok_or(full.clone())?;
    types.put_u2(u16::try_from(length).map_err(|_| full)?);
    locals
        .iter()
        .for_each(|local| types.extend_from_slice(&local.0));
    types.resize(types.len() + free as usize, LocalType::TOP);
    types.extend(added.iter().map(|local| local.tag()));
    types.put_u2(stack.len() as u16);
    stack
        .iter()
        .for_each(|item| types.extend_from_slice(&item.0));
    Ok(types)
}

/// The map of a method that had none, for the target of its guard.
pub(crate) fn of_guard(moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    relocated(&[0, 0], moved)
}

fn copy_type(
    input: &mut Input<'_>,
    output: &mut Vec<u8>,
    moved: &Relocation<'_>,
) -> Result<(), RewriteError> {
    let tag = input.u1()?;
    output.put_u1(tag);
    match tag {
        0..=6 => {}
        7 => output.put_u2(input.u2()?),
        // An object that the `new` at this offset made.
        8 => output.put_u2(moved.instruction(input.u2()?, WHAT)?),
        _ => return Err(RewriteError::Form(WHAT)),
    }
    Ok(())
}

/// Frames as they are written.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    count: u16,
    last: Option<u16>,
}

impl Frames {
    /// Appends a frame at the offset `at`, of the kind of `tag`.
    fn put(&mut self, tag: u8, at: u16, types: &[u8]) -> Result<(), RewriteError> {
        let distance = match self.last {
            None => Some(at),
            Some(last) => at.checked_sub(last).and_then(|more| more.checked_sub(1)),
        };
        let distance = distance.ok_or(RewriteError::Form(WHAT))?;
        let short = u8::try_from(distance).ok().filter(|short| *short <= SAME);
        match (tag, short) {
            (0..=SAME, Some(short)) => self.bytes.put_u1(short),
            (64..=SAME_WITH_ITEM, Some(short)) => self.bytes.put_u1(64 + short),
            (0..=SAME, None) => self.long(SAME_EXTENDED, distance),
            (64..=SAME_WITH_ITEM, None) => self.long(SAME_WITH_ITEM_EXTENDED, distance),
            _ => self.long(tag, distance),
        }
        self.bytes.extend_from_slice(types);
        self.last = Some(at);
        let full = RewriteError::Full(WHAT);
        self.count = self.count.checked_add(1).ok_or(full)?;
        Ok(())
    }

    fn long(&mut self, tag: u8, distance: u16) {
        self.bytes.put_u1(tag);
        self.bytes.put_u2(distance);
    }

    fn finish(self) -> Result<Vec<u8>, RewriteError> {
        let mut map = Vec::with_capacity(self.bytes.len() + 2);
        map.put_u2(self.count);
        map.extend_from_slice(&self.bytes);
        Ok(map)
    }
}
