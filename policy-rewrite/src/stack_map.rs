//! Stack maps (§4.7.4): their frames say of the offsets at which they stand how far each is from the one
//! before. Frames are moved, never computed.

use crate::error::RewriteError;
use crate::input::{Input, Output};
use crate::relocation::Relocation;

const WHAT: &str = "a stack map";
const SAME: u8 = 63;
const SAME_WITH_ITEM: u8 = 127;
const SAME_WITH_ITEM_EXTENDED: u8 = 247;
const SAME_EXTENDED: u8 = 251;
const FULL: u8 = 255;

/// The map with its frames moved, and with one more for the target of a guard, if there is one.
pub(crate) fn relocated(bytes: &[u8], moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    let mut input = Input::new(bytes, WHAT);
    let count = input.u2()?;
    let mut frames = Frames::default();
    let mut old: Option<u16> = None;
    for _ in 0..count {
        let tag = input.u1()?;
        let distance = match tag {
            0..=SAME => u16::from(tag),
            64..=SAME_WITH_ITEM => u16::from(tag - 64),
            SAME_WITH_ITEM_EXTENDED..=FULL => input.u2()?,
            _ => return Err(RewriteError::Form(WHAT)),
        };
        let next = match old {
            None => Some(distance),
            Some(old) => old.checked_add(distance).and_then(|sum| sum.checked_add(1)),
        };
        let next = next.ok_or(RewriteError::Form(WHAT))?;
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
