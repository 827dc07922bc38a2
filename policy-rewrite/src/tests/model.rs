//! Made-up methods: written as a class file, and compared with a rewritten one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::attributes::Kind;
use crate::input::{Input, Output};
use crate::instructions::{INVOKESTATIC, SIPUSH, padding};
use crate::{ClassFile, Instruction};

/// On which side of an instruction something is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    After,
}

impl Side {
    /// Returns the number that its mark pushes.
    pub(super) fn mark(self) -> i32 {
        match self {
            Side::Before => 0x1111,
            Side::After => 0x2222,
        }
    }
}

/// An instruction; jumps name others by their place in the list.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Nop,
    Increment,
    New,
    /// A call of a constructor.
    Construct,
    Return,
    Jump(usize),
    LongJump(usize),
    /// The default first.
    Table(Vec<usize>),
    Lookup(Vec<usize>),
}

/// A frame without its offset; labels of uninitialised objects are places in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Same,
    Item(Vec<usize>),
    Chop(u8),
    Append(Vec<usize>),
    Full(Vec<usize>, Vec<usize>),
}

/// A method's code with all that names its instructions.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) instructions: Vec<Operation>,
    pub(super) handlers: Vec<(usize, usize, usize)>,
    pub(super) frames: Option<BTreeMap<usize, Frame>>,
    lines: Vec<usize>,
    locals: Vec<(usize, usize)>,
    /// Kinds of target with the instruction that they name.
    annotations: Vec<(u8, usize)>,
    pub(super) unknown_attribute: bool,
    pub(super) is_constructor: bool,
    pub(super) max_locals: u16,
}

impl Body {
    pub(super) fn returning() -> Body {
        Body {
            instructions: vec![Operation::Return],
            handlers: Vec::new(),
            frames: None,
            lines: Vec::new(),
            locals: Vec::new(),
            annotations: Vec::new(),
            unknown_attribute: false,
            is_constructor: false,
            max_locals: 1,
        }
    }

    pub(super) fn of_nops(count: usize) -> Body {
        let mut body = Body::returning();
        body.instructions = vec![Operation::Nop; count];
        body.instructions.push(Operation::Return);
        body
    }

    /// A jump, so many instructions of one byte, and its target.
    pub(super) fn jump_over(count: usize) -> Body {
        let mut body = Body::of_nops(count);
        body.instructions.insert(0, Operation::Jump(count + 1));
        body
    }

    /// Where each instruction begins, and the end.
    pub(super) fn offsets(&self) -> Vec<u32> {
        let mut offsets = vec![0];
        for operation in &self.instructions {
            let at = *offsets.last().unwrap();
            let length = match operation {
                Operation::Nop | Operation::Return => 1,
                Operation::Increment
                | Operation::New
                | Operation::Construct
                | Operation::Jump(_) => 3,
                Operation::LongJump(_) => 5,
                Operation::Table(targets) => 13 + padding(at) + (targets.len() - 1) * 4,
                Operation::Lookup(targets) => 9 + padding(at) + (targets.len() - 1) * 8,
            };
            offsets.push(at + length as u32);
        }
        offsets
    }

    fn code(&self) -> Vec<u8> {
        let offsets = self.offsets();
        let mut code = Vec::new();
        for (operation, &at) in self.instructions.iter().zip(&offsets) {
            let distance = |target: usize| offsets[target].wrapping_sub(at);
            match operation {
                Operation::Nop => code.put_u1(0x00),
                Operation::Return => code.put_u1(0xb1),
                Operation::Increment => code.extend_from_slice(&[0x84, 0, 1]),
                Operation::New => code.extend_from_slice(&[0xbb, 0, 2]),
                Operation::Construct => code.extend_from_slice(&[0xb7, 0, CONSTRUCTOR]),
                Operation::Jump(target) => {
                    code.put_u1(0xa7);
                    code.put_u2(distance(*target) as u16);
                }
                Operation::LongJump(target) => {
                    code.put_u1(0xc8);
                    code.put_u4(distance(*target));
                }
                Operation::Table(targets) => {
                    code.put_u1(0xaa);
                    code.resize(code.len() + padding(at), 0);
                    code.put_u4(distance(targets[0]));
                    code.put_u4(7);
                    code.put_u4(7 + targets.len() as u32 - 2);
                    targets[1..]
                        .iter()
                        .for_each(|target| code.put_u4(distance(*target)));
                }
                Operation::Lookup(targets) => {
                    code.put_u1(0xab);
                    code.resize(code.len() + padding(at), 0);
                    code.put_u4(distance(targets[0]));
                    code.put_u4(targets.len() as u32 - 1);
                    for (key, target) in (10..).zip(&targets[1..]) {
                        code.put_u4(key);
                        code.put_u4(distance(*target));
                    }
                }
            }
        }
        code
    }

    fn frames(&self, offsets: &[u32]) -> Option<Vec<u8>> {
        let frames = self.frames.as_ref()?;
        let mut map = Vec::new();
        map.put_u2(frames.len() as u16);
        let mut last: Option<u32> = None;
        let types = |map: &mut Vec<u8>, labels: &[usize]| {
            for label in labels {
                map.put_u1(8);
                map.put_u2(offsets[*label] as u16);
            }
        };
        for (index, frame) in frames {
            let at = offsets[*index];
            let distance = last.map_or(at, |last| at - last - 1);
            last = Some(at);
            match frame {
                Frame::Same if distance < 64 => map.put_u1(distance as u8),
                Frame::Same => {
                    map.put_u1(251);
                    map.put_u2(distance as u16);
                }
                Frame::Item(labels) if distance < 64 => {
                    map.put_u1(64 + distance as u8);
                    types(&mut map, labels);
                }
                Frame::Item(labels) => {
                    map.put_u1(247);
                    map.put_u2(distance as u16);
                    types(&mut map, labels);
                }
                Frame::Chop(count) => {
                    map.put_u1(251 - count);
                    map.put_u2(distance as u16);
                }
                Frame::Append(labels) => {
                    map.put_u1(251 + labels.len() as u8);
                    map.put_u2(distance as u16);
                    types(&mut map, labels);
                }
                Frame::Full(locals, stack) => {
                    map.put_u1(255);
                    map.put_u2(distance as u16);
                    for labels in [locals, stack] {
                        map.put_u2(labels.len() as u16);
                        types(&mut map, labels);
                    }
                }
            }
        }
        Some(map)
    }
}

const TEXTS: [&str; 11] = [
    "Test",
    "java/lang/Object",
    "method",
    "()V",
    "Code",
    "StackMapTable",
    "LineNumberTable",
    "LocalVariableTable",
    "RuntimeVisibleTypeAnnotations",
    "Offsets",
    "<init>",
];
/// The constant of the constructor of the superclass, behind that of its name and type.
const CONSTRUCTOR: u8 = 4 + TEXTS.len() as u8;

/// A class whose only method has this body. Constants 1 and 2 are the class and its superclass, the texts
/// come behind them.
pub(super) fn class_with(body: &Body) -> Vec<u8> {
    let text = |wanted: &str| {
        let at = TEXTS.iter().position(|text| *text == wanted);
        3 + at.unwrap() as u16
    };
    let offsets = body.offsets();
    let at = |index: usize| offsets[index] as u16;
    let mut attributes: Vec<(u16, Vec<u8>)> = Vec::new();
    if let Some(map) = body.frames(&offsets) {
        attributes.push((text("StackMapTable"), map));
    }
    let mut lines = Vec::new();
    lines.put_u2(body.lines.len() as u16);
    for (number, index) in (1..).zip(&body.lines) {
        lines.put_u2(at(*index));
        lines.put_u2(number);
    }
    attributes.push((text("LineNumberTable"), lines));
    let mut locals = Vec::new();
    locals.put_u2(body.locals.len() as u16);
    for (start, end) in &body.locals {
        locals.put_u2(at(*start));
        locals.put_u2(at(*end) - at(*start));
        locals.extend_from_slice(&[0, text("Test") as u8, 0, text("Test") as u8, 0, 0]);
    }
    attributes.push((text("LocalVariableTable"), locals));
    let mut annotations = Vec::new();
    annotations.put_u2(body.annotations.len() as u16);
    for (target, index) in &body.annotations {
        annotations.put_u1(*target);
        match target {
            0x40 => {
                annotations.put_u2(1);
                annotations.put_u2(at(*index));
                annotations.put_u2(0);
                annotations.put_u2(0);
            }
            0x47 => {
                annotations.put_u2(at(*index));
                annotations.put_u1(0);
            }
            _ => annotations.put_u2(at(*index)),
        }
        // A path of one step, and a value within an array within an annotation.
        annotations.extend_from_slice(&[1, 0, 0, 0, 3, 0, 1, 0, 3, b'@', 0, 3, 0, 1, 0, 3]);
        annotations.extend_from_slice(&[b'[', 0, 2, b'I', 0, 3, b'e', 0, 3, 0, 3]);
    }
    attributes.push((text("RuntimeVisibleTypeAnnotations"), annotations));
    if body.unknown_attribute {
        attributes.push((text("Offsets"), vec![0, 0]));
    }

    let code = body.code();
    let mut held = Vec::new();
    held.put_u2(4);
    held.put_u2(body.max_locals);
    held.put_u4(code.len() as u32);
    held.extend_from_slice(&code);
    held.put_u2(body.handlers.len() as u16);
    for (start, end, handler) in &body.handlers {
        for index in [start, end, handler] {
            held.put_u2(at(*index));
        }
        held.put_u2(0);
    }
    held.put_u2(attributes.len() as u16);
    for (name, bytes) in attributes {
        held.put_u2(name);
        held.put_u4(bytes.len() as u32);
        held.extend_from_slice(&bytes);
    }

    let mut class = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 61];
    class.put_u2(u16::from(CONSTRUCTOR) + 1);
    for name in ["Test", "java/lang/Object"] {
        class.put_u1(7);
        class.put_u2(text(name));
    }
    for text in TEXTS {
        class.put_u1(1);
        class.put_u2(text.len() as u16);
        class.extend_from_slice(text.as_bytes());
    }
    class.put_u1(12);
    class.put_u2(text("<init>"));
    class.put_u2(text("()V"));
    class.put_u1(10);
    class.put_u2(2);
    class.put_u2(u16::from(CONSTRUCTOR) - 1);
    let (flags, name) = match body.is_constructor {
        true => (0x01, "<init>"),
        false => (0x09, "method"),
    };
    // Public; itself, its superclass; no interface, no field, one method.
    for number in [
        0x21,
        1,
        2,
        0,
        0,
        1,
        flags,
        text(name),
        text("()V"),
        1,
        text("Code"),
    ] {
        class.put_u2(number);
    }
    class.put_u4(held.len() as u32);
    class.extend_from_slice(&held);
    class.put_u2(0);
    class
}

/// Bodies with everything that names instructions.
pub(super) fn body() -> impl Strategy<Value = Body> {
    (1_usize..40).prop_flat_map(|count| {
        // One more stands at the end: a return.
        let index = || 0..=count;
        let targets = || prop::collection::vec(index(), 2..5);
        let operation = prop_oneof![
            // Many, so that distances of frames pass 63.
            4 => Just(Operation::Nop),
            6 => Just(Operation::Increment),
            2 => Just(Operation::New),
            1 => Just(Operation::Return),
            3 => index().prop_map(Operation::Jump),
            1 => index().prop_map(Operation::LongJump),
            1 => targets().prop_map(Operation::Table),
            1 => targets().prop_map(Operation::Lookup),
        ];
        let labels = |count| prop::collection::vec(index(), count);
        let frame = prop_oneof![
            2 => Just(Frame::Same),
            2 => labels(1..2_usize).prop_map(Frame::Item),
            1 => (1_u8..4).prop_map(Frame::Chop),
            1 => labels(1..4).prop_map(Frame::Append),
            1 => (labels(0..3), labels(0..3)).prop_map(|(locals, stack)| Frame::Full(locals, stack)),
        ];
        let range = (index(), index()).prop_map(|(one, other)| (one.min(other), one.max(other)));
        let annotated = prop_oneof![Just(0x40_u8), Just(0x44), Just(0x47)];
        (
            prop::collection::vec(operation, count),
            prop::collection::vec((range.clone(), index()), 0..4),
            prop::option::of(prop::collection::btree_map(index(), frame, 0..8)),
            prop::collection::vec(index(), 0..5),
            prop::collection::vec(range, 0..4),
            prop::collection::vec((annotated, index()), 0..4),
        )
            .prop_map(move |(mut instructions, ranges, frames, lines, locals, annotations)| {
                instructions.push(Operation::Return);
                // An end may be the end of the code.
                let handlers = ranges.into_iter().map(|((start, end), at)| (start, end + 1, at));
                Body {
                    instructions,
                    handlers: handlers.collect(),
                    frames,
                    lines,
                    locals: locals.into_iter().map(|(start, end)| (start, end + 1)).collect(),
                    annotations,
                    unknown_attribute: false,
                    is_constructor: false,
                    max_locals: 1,
                }
            })
    })
}

/// Where the old instructions stand in a rewritten method.
struct Found<'a> {
    instructions: Vec<Instruction<'a>>,
    /// With the marks before each; at the end, the end.
    starts: Vec<u32>,
    /// The marks in their order: before or after which instruction.
    marks: Vec<(usize, Side)>,
}

fn find<'a>(code: &crate::Code<'a>, guarded: bool) -> Result<Found<'a>, TestCaseError> {
    let mut found = Found {
        instructions: Vec::new(),
        starts: Vec::new(),
        marks: Vec::new(),
    };
    let mut all = code.instructions();
    if guarded {
        let opcodes: Vec<u8> = all.by_ref().take(3).map(|part| part.opcode).collect();
        prop_assert_eq!(opcodes, [INVOKESTATIC, 0x99, 0xb1]);
    }
    let mut start = None;
    while let Some(next) = all.next() {
        if next.opcode == SIPUSH {
            let index = found.instructions.len();
            if next.operands == [0x11, 0x11] {
                start.get_or_insert(next.offset);
                found.marks.push((index, Side::Before));
            } else {
                prop_assert_eq!(next.operands, [0x22, 0x22]);
                prop_assert!(
                    start.is_none(),
                    "after one, but behind what is before the next"
                );
                found.marks.push((index - 1, Side::After));
            }
            let call = all.next();
            prop_assert_eq!(call.map(|call| call.opcode), Some(INVOKESTATIC));
        } else {
            found.starts.push(start.take().unwrap_or(next.offset));
            found.instructions.push(next);
        }
    }
    found.starts.push(code.len_bytes());
    Ok(found)
}

/// The instructions, what they name, and all tables are those of `body`.
pub(super) fn check(body: &Body, new: &[u8], guarded: bool) -> Result<(), TestCaseError> {
    let class = ClassFile::parse(new).unwrap();
    let code = class.methods()[0].code().unwrap().unwrap();
    let found = find(&code, guarded)?;
    prop_assert_eq!(found.instructions.len(), body.instructions.len());
    for (instruction, operation) in found.instructions.iter().zip(&body.instructions) {
        let named: Vec<usize> = match operation {
            Operation::Jump(target) | Operation::LongJump(target) => vec![*target],
            Operation::Table(targets) | Operation::Lookup(targets) => targets.clone(),
            _ => Vec::new(),
        };
        let starts = named.iter().map(|target| i64::from(found.starts[*target]));
        let places = instruction.jump_places();
        let targets = places.map(|place| instruction.target(place));
        prop_assert!(targets.eq(starts), "{:?} is {:?}", operation, instruction);
        let opcode = match operation {
            Operation::Nop => 0x00,
            Operation::Return => 0xb1,
            Operation::Increment => 0x84,
            Operation::New => 0xbb,
            Operation::Construct => 0xb7,
            Operation::Jump(_) => 0xa7,
            Operation::LongJump(_) => 0xc8,
            Operation::Table(_) => 0xaa,
            Operation::Lookup(_) => 0xab,
        };
        prop_assert_eq!(instruction.opcode, opcode);
        if let Operation::Lookup(targets) = operation {
            let pairs = &instruction.operands[padding(instruction.offset) + 8..];
            let keys = pairs.chunks(8).map(|pair| u32::from(pair[3]));
            prop_assert!(keys.eq(10..10 + targets.len() as u32 - 1));
        }
    }
    let start = |index: usize| found.starts[index] as u16;
    let handlers = code
        .handlers
        .iter()
        .map(|row| (row.start, row.end, row.handler));
    let expected = body.handlers.iter();
    prop_assert!(handlers.eq(expected.map(|(one, two, three)| (
        start(*one),
        start(*two),
        start(*three)
    ))));

    let attributes = code.attributes(|index| class.pool().text(index)).unwrap();
    let bytes = |kind| {
        let found = attributes.iter().find(|attribute| attribute.kind == kind);
        found.map(|attribute| attribute.bytes)
    };
    let mut lines = Vec::new();
    lines.put_u2(body.lines.len() as u16);
    for (number, index) in (1..).zip(&body.lines) {
        lines.put_u2(start(*index));
        lines.put_u2(number);
    }
    prop_assert_eq!(bytes(Kind::LineNumbers), Some(&lines[..]));
    let locals = bytes(Kind::LocalVariables).unwrap();
    let ranges = locals[2..].chunks(10).map(|row| {
        let number = |at: usize| u16::from_be_bytes([row[at], row[at + 1]]);
        (number(0), number(0) + number(2))
    });
    prop_assert!(
        ranges.eq(body
            .locals
            .iter()
            .map(|(one, two)| (start(*one), start(*two))))
    );
    check_annotations(body, &found, bytes(Kind::TypeAnnotations).unwrap())?;
    check_frames(body, &found, bytes(Kind::StackMapTable), guarded)
}

fn check_annotations(body: &Body, found: &Found<'_>, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut input = Input::new(bytes, "annotations");
    prop_assert_eq!(usize::from(input.u2().unwrap()), body.annotations.len());
    for (target, index) in &body.annotations {
        prop_assert_eq!(input.u1().unwrap(), *target);
        let named = match target {
            0x40 => {
                input.take(2).unwrap();
                found.starts[*index]
            }
            _ => found.instructions[*index].offset,
        };
        prop_assert_eq!(u32::from(input.u2().unwrap()), named);
        let rest = match target {
            0x40 => 4,
            0x47 => 1,
            _ => 0,
        };
        input.take(rest + 27).unwrap();
    }
    prop_assert!(input.end().is_ok());
    Ok(())
}

fn check_frames(
    body: &Body,
    found: &Found<'_>,
    map: Option<&[u8]>,
    guarded: bool,
) -> Result<(), TestCaseError> {
    let mut expected: Vec<(u32, Frame)> = Vec::new();
    let label = |index: &usize| found.instructions[*index].offset as usize;
    let labels = |indexes: &[usize]| indexes.iter().map(label).collect::<Vec<usize>>();
    for (index, frame) in body.frames.iter().flatten() {
        let moved = match frame {
            Frame::Same => Frame::Same,
            Frame::Item(item) => Frame::Item(labels(item)),
            Frame::Chop(count) => Frame::Chop(*count),
            Frame::Append(more) => Frame::Append(labels(more)),
            Frame::Full(locals, stack) => Frame::Full(labels(locals), labels(stack)),
        };
        expected.push((found.starts[*index], moved));
    }
    let at_entry = body
        .frames
        .as_ref()
        .is_some_and(|frames| frames.contains_key(&0));
    if guarded && !at_entry {
        expected.insert(0, (found.starts[0], Frame::Same));
    }
    let Some(map) = map else {
        prop_assert!(body.frames.is_none() && !guarded);
        return Ok(());
    };
    prop_assert_eq!(frames_of(map), expected);
    Ok(())
}

/// The frames of a map with their offsets, read without the code under test.
fn frames_of(map: &[u8]) -> Vec<(u32, Frame)> {
    let mut frames = Vec::new();
    let mut next_offset = 0;
    let count = u16::from_be_bytes([map[0], map[1]]);
    let mut bytes = map[2..].iter().copied();
    let mut one = || bytes.next().unwrap();
    for _ in 0..count {
        let tag = one();
        let distance = match tag {
            0..=63 => u32::from(tag),
            64..=127 => u32::from(tag) - 64,
            _ => u32::from(u16::from_be_bytes([one(), one()])),
        };
        let at = next_offset + distance;
        next_offset = at + 1;
        let mut labels = |count: Option<u8>| -> Vec<usize> {
            let count = count.map_or_else(|| u16::from_be_bytes([one(), one()]), u16::from);
            let label = |_| {
                assert_eq!(one(), 8);
                usize::from(u16::from_be_bytes([one(), one()]))
            };
            (0..count).map(label).collect()
        };
        let frame = match tag {
            0..=63 | 251 => Frame::Same,
            64..=127 | 247 => Frame::Item(labels(Some(1))),
            248..=250 => Frame::Chop(251 - tag),
            252..=254 => Frame::Append(labels(Some(tag - 251))),
            _ => Frame::Full(labels(None), labels(None)),
        };
        frames.push((at, frame));
    }
    assert_eq!(bytes.next(), None);
    frames
}

/// The marks are those that were asked for, in that order at each place.
pub(super) fn check_marks(
    body: &Body,
    new: &[u8],
    places: &[(usize, Side)],
    guarded: bool,
) -> Result<(), TestCaseError> {
    let class = ClassFile::parse(new).unwrap();
    let code = class.methods()[0].code().unwrap().unwrap();
    let found = find(&code, guarded)?;
    let goes_on = |index: usize| {
        let operation = &body.instructions[index];
        matches!(
            operation,
            Operation::Nop | Operation::Increment | Operation::New | Operation::Construct
        )
    };
    let asked = places.iter().copied();
    let mut expected: Vec<(usize, Side)> = asked
        .filter(|(index, side)| *side == Side::Before || goes_on(*index))
        .collect();
    expected.sort_unstable();
    prop_assert_eq!(found.marks, expected);
    Ok(())
}
