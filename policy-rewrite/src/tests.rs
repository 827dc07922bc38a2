//! Properties of rewritten classes. Methods are made up at random as lists of instructions whose jumps,
//! ranges, frames and lines name instructions by their place in the list. What a rewritten class names is
//! found again by the place of each old instruction between the marks that were inserted.

mod brackets;
mod model;
mod tally;

use proptest::prelude::*;

use crate::{ClassFile, Guard, Leave, Method, MethodEdit, RewriteError, Rewriter, Snippet};
use model::{Body, Side, body, class_with};

fn mark(side: Side) -> Snippet {
    let pushed = Snippet::new().push_int(side.mark());
    pushed.invoke_static("test/Mark", "mark", "(I)V").unwrap()
}

fn guard() -> Guard {
    let ask = Snippet::new().invoke_static("test/Mark", "ask", "()Z");
    Guard {
        ask: ask.unwrap(),
        leave: Leave::Returning,
    }
}

fn only_method<'a>(class: &ClassFile<'a>) -> Method<'a> {
    class.methods()[0].clone()
}

/// Where snippets go: before or after instructions by their place in the list.
fn places(body: &Body) -> impl Strategy<Value = Vec<(usize, Side)>> + use<> {
    let count = body.instructions.len();
    let side = prop_oneof![Just(Side::Before), Just(Side::After)];
    prop::collection::vec((0..count, side), 0..12)
}

fn rewritten(
    class: &ClassFile<'_>,
    body: &Body,
    places: &[(usize, Side)],
    guarded: bool,
) -> Result<Option<Vec<u8>>, RewriteError> {
    let method = only_method(class);
    let offsets = body.offsets();
    let code = method.code().unwrap().unwrap();
    let mut edit = MethodEdit::default();
    for &(index, side) in places {
        let offset = offsets[index];
        match side {
            Side::Before => edit.before(offset, mark(side)),
            Side::After if code.instruction(offset).falls_through() => {
                edit.after(offset, mark(side));
            }
            Side::After => {}
        }
    }
    if guarded {
        edit.guard(guard());
    }
    let mut rewriter = Rewriter::new(class);
    rewriter.edit(&method, &edit)?;
    Ok(rewriter.finish())
}

fn body_and_places() -> impl Strategy<Value = (Body, Vec<(usize, Side)>, bool)> {
    body().prop_flat_map(|body| {
        let places = places(&body);
        (Just(body), places, any::<bool>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn everything_that_named_an_instruction_names_it_still(
        (body, places, guarded) in body_and_places(),
    ) {
        let bytes = class_with(&body);
        let class = ClassFile::parse(&bytes).unwrap();
        match rewritten(&class, &body, &places, guarded).unwrap() {
            None => prop_assert!(!guarded),
            Some(new) => model::check(&body, &new, guarded)?,
        }
    }

    #[test]
    fn what_was_inserted_stands_where_it_was_asked_for(
        (body, places, guarded) in body_and_places(),
    ) {
        let bytes = class_with(&body);
        let class = ClassFile::parse(&bytes).unwrap();
        if let Some(new) = rewritten(&class, &body, &places, guarded).unwrap() {
            model::check_marks(&body, &new, &places, guarded)?;
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_rewritten_and_never_panic(
        body in body(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = class_with(&body);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Some(new) = rewritten_everywhere(&bytes) {
            prop_assert!(ClassFile::parse(&new).is_ok());
        }
    }
}

/// With a mark before each instruction of each method that is understood, and a guard where it fits.
fn rewritten_everywhere(bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let mut rewriter = Rewriter::new(&class);
    for method in class.methods() {
        let Ok(Some(code)) = method.code() else {
            continue;
        };
        let mut edit = MethodEdit::default();
        edit.guard(guard());
        for instruction in code.instructions() {
            edit.before(instruction.offset, mark(Side::Before));
        }
        let _ = rewriter.edit(method, &edit);
    }
    rewriter.finish()
}

#[test]
fn a_class_without_an_edit_is_not_written() {
    let bytes = class_with(&Body::returning());
    let class = ClassFile::parse(&bytes).unwrap();
    let mut rewriter = Rewriter::new(&class);
    let edited = rewriter.edit(&only_method(&class), &MethodEdit::default());
    assert_eq!((edited, rewriter.finish()), (Ok(()), None));
}

#[test]
fn a_refused_edit_leaves_nothing_behind() {
    let body = Body::of_nops(65_530);
    let bytes = class_with(&body);
    let class = ClassFile::parse(&bytes).unwrap();
    let refused = rewritten(&class, &body, &[(3, Side::Before)], false);
    assert_eq!(refused, Err(RewriteError::MethodTooLong));
    let mut rewriter = Rewriter::new(&class);
    let mut edit = MethodEdit::default();
    edit.before(0, mark(Side::Before));
    assert!(rewriter.edit(&only_method(&class), &edit).is_err());
    assert_eq!(
        rewriter.constants.written(),
        (class.pool().count(), &[][..])
    );
    assert_eq!(rewriter.finish(), None);
}

#[test]
fn a_jump_that_would_become_too_long_is_refused() {
    // 32,767 is as far as it may go.
    let body = Body::jump_over(32_764);
    let bytes = class_with(&body);
    let class = ClassFile::parse(&bytes).unwrap();
    let inside = rewritten(&class, &body, &[(5, Side::Before)], false);
    assert_eq!(inside, Err(RewriteError::MethodTooLong));
    let outside = rewritten(&class, &body, &[(0, Side::Before)], false).unwrap();
    model::check(&body, &outside.expect("it is rewritten"), false).unwrap();
}

#[test]
fn what_the_rules_do_not_allow_is_refused() {
    let body = Body::returning();
    let bytes = class_with(&body);
    let class = ClassFile::parse(&bytes).unwrap();
    let method = only_method(&class);
    let refused = |fill: &dyn Fn(&mut MethodEdit)| {
        let mut edit = MethodEdit::default();
        fill(&mut edit);
        Rewriter::new(&class).edit(&method, &edit).unwrap_err()
    };
    let last = body.offsets()[body.instructions.len() - 1];
    for error in [
        refused(&|edit| edit.after(last, mark(Side::After))),
        refused(&|edit| edit.before(0, Snippet::new().push_int(1))),
        refused(&|edit| edit.before(0, Snippet::new().load_int(200))),
        refused(&|edit| {
            edit.guard(Guard {
                ask: Snippet::new().push_int(1),
                leave: Leave::ReturningBoolean(true),
            });
        }),
        refused(&|edit| {
            edit.guard(Guard {
                ask: Snippet::new(),
                leave: Leave::Returning,
            });
        }),
    ] {
        assert!(matches!(error, RewriteError::Insertion(_)), "{error}");
    }
    let beyond = refused(&|edit| edit.before(60_000, mark(Side::Before)));
    let offset = 60_000;
    let what = "an insertion";
    assert_eq!(beyond, RewriteError::Offset { what, offset });
}

#[test]
fn unknown_attributes_of_code_are_refused_by_name() {
    let mut body = Body::returning();
    body.unknown_attribute = true;
    let bytes = class_with(&body);
    let class = ClassFile::parse(&bytes).unwrap();
    let refused = rewritten(&class, &body, &[(0, Side::Before)], false);
    assert_eq!(refused, Err(RewriteError::Attribute("Offsets".to_owned())));
}

#[test]
fn versions_that_it_was_not_written_for_are_refused() {
    let mut bytes = class_with(&Body::returning());
    bytes[7] = 70;
    assert_eq!(
        ClassFile::parse(&bytes).err(),
        Some(RewriteError::Version(70))
    );
    bytes[0] = 0;
    assert_eq!(
        ClassFile::parse(&bytes).err(),
        Some(RewriteError::NotAClassFile)
    );
}
