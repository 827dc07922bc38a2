//! Brackets that end with exceptions too: the handlers that are added cover exactly what they should, and those that
//! were there keep their order and ranges.
//!
//! Which instructions of the new code are old is known by their opcodes: the code of brackets has none of those that
//! methods are made up of.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::model::{Body, Frame, Operation, body, class_with};
use super::only_method;
use crate::code::{Code, Handler};
use crate::{Again, Bracket, ClassFile, MethodEdit, RewriteError, Rewriter, Snippet};

const CLASS: &str = "test/Mark";
const ISTORE: u8 = 0x36;
const ILOAD: u8 = 0x15;
const SIPUSH: u8 = 0x11;
const INVOKESTATIC: u8 = 0xb8;
const ATHROW: u8 = 0xbf;
pub(super) const OLD_MAX_LOCALS: u16 = 40;

fn bracket(escapes: bool, again: bool) -> Bracket {
    let enter = Snippet::new().push_int(7);
    Bracket {
        enter: enter.invoke_static(CLASS, "enter", "(I)I").unwrap(),
        leave: (CLASS, "leave"),
        counts_instructions: false,
        again: again.then_some(Again {
            method: (CLASS, "again"),
            number: 7,
        }),
        escapes,
    }
}

/// With a bracket that ends with exceptions too and, within it, one that does not.
fn rewritten(bytes: &[u8], inner: bool) -> Result<Vec<u8>, RewriteError> {
    let class = ClassFile::parse(bytes).unwrap();
    let mut edit = MethodEdit::default();
    edit.bracket(bracket(true, true));
    if inner {
        edit.bracket(bracket(false, false));
    }
    let mut rewriter = Rewriter::new(&class);
    rewriter.edit(&only_method(&class), &edit)?;
    Ok(rewriter.finish().expect("it has an edit"))
}

/// Methods and constructors. Those of the latter call others in several places or none, have frames that say
/// of `this` what is so, and frames that do not.
fn bodies() -> impl Strategy<Value = Body> {
    let construct = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    let frame = prop_oneof![
        3 => Just(None),
        1 => (any::<bool>(), 1_u8..3).prop_map(Some),
    ];
    (body(), any::<bool>(), construct, frame).prop_map(|(mut body, is_constructor, at, other)| {
        body.max_locals = OLD_MAX_LOCALS;
        body.is_constructor = is_constructor;
        if is_constructor {
            let last = body.instructions.len() - 1;
            for place in at {
                body.instructions[place.index(last.max(1)).min(last)] = Operation::Construct;
            }
            body.instructions[last] = Operation::Return;
            let split = initialised_at(&body).unwrap_or(last);
            for (place, frame) in body.frames.iter_mut().flatten() {
                // After the call nothing has `this`; before it all frames that do not set all of them do.
                *frame = match (*place <= split, &frame) {
                    (false, _) => Frame::Full(vec![0], vec![]),
                    (true, Frame::Full(..) | Frame::Chop(_)) => Frame::Same,
                    (true, frame) => (*frame).clone(),
                };
            }
            if let (Some((first, count)), Some(frames)) = (other, &mut body.frames) {
                let place = match first {
                    true => frames.first_entry(),
                    false => frames.last_entry(),
                };
                place.into_iter().for_each(|mut place| {
                    place.insert(Frame::Chop(count));
                });
            }
        }
        body
    })
}

/// The place of the call of another constructor: the one before which nothing new is left to be constructed.
fn initialised_at(body: &Body) -> Option<usize> {
    let mut made = 0;
    let mut found = Vec::new();
    for (place, operation) in body.instructions.iter().enumerate() {
        match operation {
            Operation::New => made += 1,
            Operation::Construct if made > 0 => made -= 1,
            Operation::Construct => found.push(place),
            _ => {}
        }
    }
    match found[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Whether each frame has `this`, uninitialised, up to the call and not behind it; `None`: it takes away more local
/// variables than there are.
fn frames_agree(body: &Body, split: usize) -> Option<bool> {
    // By local variable, whether it is `this`.
    let mut locals = vec![true];
    let mut agree = true;
    for (place, frame) in body.frames.iter().flatten() {
        match frame {
            Frame::Same | Frame::Item(_) => {}
            Frame::Chop(count) => {
                let left = locals.len().checked_sub(usize::from(*count))?;
                locals.truncate(left);
            }
            Frame::Append(more) => locals.extend(more.iter().map(|_| false)),
            Frame::Full(all, _) => locals = all.iter().map(|_| false).collect(),
        }
        agree &= locals.contains(&true) == (*place <= split);
    }
    Some(agree)
}

fn chops_too_much(body: &Body) -> bool {
    let mut locals = usize::from(body.is_constructor);
    for frame in body.frames.iter().flatten().map(|(_, frame)| frame) {
        match frame {
            Frame::Same | Frame::Item(_) => {}
            Frame::Chop(count) => match locals.checked_sub(usize::from(*count)) {
                Some(left) => locals = left,
                None => return true,
            },
            Frame::Append(more) => locals += more.len(),
            Frame::Full(all, _) => locals = all.len(),
        }
        // More than there is room for.
        if locals > usize::from(OLD_MAX_LOCALS) {
            return true;
        }
    }
    false
}

/// The new places of the old instructions, and where the last of them ends: (start with what is inserted before,
/// itself, end).
fn places(body: &Body, code: &Code<'_>) -> Result<Vec<(u16, u16, u16)>, TestCaseError> {
    let inserted = [ISTORE, ILOAD, SIPUSH, INVOKESTATIC, ATHROW];
    let mut places = Vec::new();
    // Behind the entry, which ends with the last number that is kept.
    let mut start = 0;
    let mut is_entry = true;
    for found in code.instructions() {
        let end = (found.offset + found.length()) as u16;
        if is_entry && found.opcode == ISTORE {
            start = end;
        } else if !inserted.contains(&found.opcode) {
            places.push((start, found.offset as u16, end));
            start = end;
        }
        is_entry &= [SIPUSH, INVOKESTATIC, ISTORE].contains(&found.opcode);
    }
    prop_assert_eq!(places.len(), body.instructions.len());
    Ok(places)
}

fn rows(handlers: &[Handler]) -> Vec<(u16, u16, u16, u16)> {
    let row = |row: &Handler| (row.start, row.end, row.handler, row.class);
    handlers.iter().map(row).collect()
}

fn check(body: &Body, new: &[u8], inner: bool) -> Result<(), TestCaseError> {
    let class = ClassFile::parse(new).unwrap();
    let code = class.methods()[0].code().unwrap().unwrap();
    let places = places(body, &code)?;
    let end = places[places.len() - 1].2;
    let start = |place: usize| places.get(place).map_or(end, |place| place.0);
    let (kept, added) = code.handlers.split_at(body.handlers.len());
    let moved = |(from, to, at): &(usize, usize, usize)| (start(*from), start(*to), start(*at), 0);
    prop_assert_eq!(
        rows(kept),
        body.handlers.iter().map(moved).collect::<Vec<_>>()
    );

    // iload, invokestatic, athrow.
    let handler_bytes = 2 + 3 + 1;
    let expected = match (body.is_constructor, initialised_at(body)) {
        (false, _) => vec![(start(0), end, end, 0)],
        (true, Some(split)) if frames_agree(body, split) == Some(true) => {
            let may_throw = |one: &Operation| !matches!(one, Operation::Nop);
            let is_before = body.instructions[..split].iter().any(may_throw);
            let behind = places[split].2;
            match is_before {
                true => vec![
                    (start(0), places[split].1, end, 0),
                    (behind, end, end + handler_bytes, 0),
                ],
                false => vec![(behind, end, end, 0)],
            }
        }
        (true, _) => Vec::new(),
    };
    prop_assert_eq!(rows(added), expected.clone());
    let length = usize::from(end) + expected.len() * usize::from(handler_bytes);
    prop_assert_eq!(code.bytecode.len(), length);
    for (_, _, at, _) in expected {
        let handler = &code.bytecode[usize::from(at)..][..usize::from(handler_bytes)];
        let local = OLD_MAX_LOCALS as u8;
        prop_assert_eq!(&handler[..3], &[ILOAD, local, INVOKESTATIC]);
        prop_assert_eq!(handler[5], ATHROW);
    }
    prop_assert_eq!(code.max_locals, OLD_MAX_LOCALS + 1 + u16::from(inner));
    // The checks of the fuzz target's oracle: frames, bytes, order.
    let old = class_with(body);
    crate::oracle::check_rewritten(&ClassFile::parse(&old).unwrap(), new);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_bracket_covers_the_method_and_what_was_covered_stays_covered(
        body in bodies(),
        inner in any::<bool>(),
    ) {
        match rewritten(&class_with(&body), inner) {
            Ok(new) => {
                prop_assert!(!chops_too_much(&body));
                check(&body, &new, inner)?;
            }
            Err(why) => {
                prop_assert!(chops_too_much(&body), "{}", why);
                prop_assert_eq!(why, RewriteError::Form("a stack map"));
            }
        }
    }
}

#[test]
fn constructors_of_all_kinds_are_made_up() {
    // That the property above is not empty: how many handlers the constructors get.
    let mut seen = [0; 3];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2_000 {
        let tree = bodies().new_tree(&mut runner).expect("made up");
        let body = proptest::strategy::ValueTree::current(&tree);
        if let (true, Ok(new)) = (body.is_constructor, rewritten(&class_with(&body), false)) {
            let class = ClassFile::parse(&new).unwrap();
            let code = class.methods()[0].code().unwrap().unwrap();
            seen[code.handlers.len() - body.handlers.len()] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

/// A constructor that ends with the call of the other: no verifier takes it, and no range may be empty.
#[test]
fn a_constructor_whose_code_goes_on_behind_its_end_gets_no_handler() {
    let mut body = Body::returning();
    body.is_constructor = true;
    body.max_locals = OLD_MAX_LOCALS;
    body.instructions = vec![Operation::Increment, Operation::Construct];
    let new = rewritten(&class_with(&body), false).unwrap();
    let class = ClassFile::parse(&new).unwrap();
    let code = class.methods()[0].code().unwrap().unwrap();
    assert!(code.handlers.is_empty());
}

/// The class with its method so many times.
fn repeated(bytes: &[u8], times: u16) -> Vec<u8> {
    // Behind the pool: access, itself, its superclass, no interfaces, no fields.
    let methods = ClassFile::parse(bytes).unwrap().pool_range.end + 10;
    let mut new = bytes[..methods].to_vec();
    new.extend_from_slice(&times.to_be_bytes());
    for _ in 0..times {
        new.extend_from_slice(&bytes[methods + 2..bytes.len() - 2]);
    }
    new.extend_from_slice(&[0, 0]);
    new
}

/// Frames that are written in full name all local variables, of which a class file announces many with two bytes. Both
/// with frames of the method's and with that of the handler alone.
#[test]
fn what_frames_of_a_class_take_has_a_bound() {
    for frames in [0, 12] {
        let mut body = Body::of_nops(20);
        body.max_locals = 65_000;
        body.frames = (frames > 0).then(|| (0..frames).map(|at| (at, Frame::Same)).collect());
        let bytes = repeated(&class_with(&body), 300);
        let class = ClassFile::parse(&bytes).unwrap();
        let mut rewriter = Rewriter::new(&class);
        let mut edit = MethodEdit::default();
        edit.bracket(bracket(true, true));
        let edits = class
            .methods()
            .iter()
            .map(|method| rewriter.edit(method, &edit));
        let edits: Vec<_> = edits.collect();
        let taken = edits.iter().filter(|edit| edit.is_ok()).count();
        assert!((1..100).contains(&taken), "{taken}");
        let full = Err(RewriteError::Full("a stack map"));
        assert!(edits[taken..].iter().all(|edit| *edit == full), "{edits:?}");
        // It has the bound too.
        crate::oracle::check_rewritten(&class, &rewriter.finish().expect("some were taken"));
    }
}

/// Constants that a refused edit had appended are gone, and a later edit appends them anew.
#[test]
fn constants_of_a_refused_edit_are_appended_again() {
    let mut body = Body::of_nops(3);
    body.max_locals = OLD_MAX_LOCALS;
    let bytes = repeated(&class_with(&body), 3);
    let class = ClassFile::parse(&bytes).unwrap();
    let mut rewriter = Rewriter::new(&class);
    let call = |name: &str| Snippet::new().invoke_static(CLASS, name, "()V").unwrap();
    let edit = |names: &[&str], beyond: bool| {
        let mut edit = MethodEdit::default();
        names.iter().for_each(|name| edit.before(0, call(name)));
        if beyond {
            edit.before(60_000, call("beyond"));
        }
        edit
    };
    let [one, two, three] = [0, 1, 2].map(|at| class.methods()[at].clone());
    assert_eq!(rewriter.edit(&one, &edit(&["first"], false)), Ok(()));
    let refused = rewriter.edit(&two, &edit(&["second", "third"], true));
    assert!(
        matches!(refused, Err(RewriteError::Offset { .. })),
        "{refused:?}"
    );
    assert_eq!(
        rewriter.edit(&three, &edit(&["third", "first", "second"], false)),
        Ok(())
    );
    let new = rewriter.finish().expect("it has edits");
    let class = ClassFile::parse(&new).unwrap();
    let called: Vec<Vec<&[u8]>> = (class.methods().iter())
        .map(|method| {
            let code = method.code().unwrap().unwrap();
            let calls = code
                .instructions()
                .filter(|found| found.opcode == INVOKESTATIC);
            calls
                .map(|call| class.pool().member(call.constant().unwrap()).unwrap().name)
                .collect()
        })
        .collect();
    assert_eq!(called[0], [b"first"]);
    assert!(called[1].is_empty());
    assert_eq!(called[2], [&b"third"[..], b"first", b"second"]);
    assert!(!new.windows(6).any(|window| window == b"beyond"));
}

/// As long as code may be: what does not fit is refused, and what just fits is written.
#[test]
fn a_method_that_is_too_long_with_its_handler_is_refused() {
    let length = |nops: usize| {
        let mut body = Body::of_nops(nops);
        body.max_locals = OLD_MAX_LOCALS;
        rewritten(&class_with(&body), false).map(|new| {
            let class = ClassFile::parse(&new).unwrap();
            class.methods()[0].code().unwrap().unwrap().len_bytes()
        })
    };
    // sipush, invokestatic, istore; iload, invokestatic, return; iload, invokestatic, athrow.
    let added = (3 + 3 + 2) + (2 + 3) + (2 + 3 + 1);
    let nops = 65_535 - 1 - added;
    assert_eq!(length(nops), Ok(65_535));
    assert_eq!(length(nops + 1), Err(RewriteError::MethodTooLong));
    // The whole method fits without its handler.
    assert_eq!(length(nops + 6), Err(RewriteError::MethodTooLong));
    assert_eq!(length(65_534), Err(RewriteError::MethodTooLong));
}
