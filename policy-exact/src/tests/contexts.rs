//! Contexts in code of before Java 6, with subroutines, and in methods that are as long as they may be.

use super::*;
use crate::Contexts;

const JSR: u8 = 0xa8;
const RET: u8 = 0xa9;
const ASTORE_1: u8 = 0x4c;
const ASTORE_2: u8 = 0x4d;
const ALOAD_1: u8 = 0x2b;
const NOP: u8 = 0x00;
const GOTO: u8 = 0xa7;
const INVOKESPECIAL: u8 = 0xb7;

fn with_contexts(bytes: &[u8], accounts: bool) -> Outcome {
    with(bytes, accounts, false)
}

fn with(bytes: &[u8], accounts: bool, bytecodes: bool) -> Outcome {
    let mut plan = Plan {
        account: Some(7),
        number: &mut |_| Some(3),
        accounts,
        contexts: Some(Contexts {
            method: &mut |_, _| 5,
            class: &mut |_| 11,
            bytecodes,
        }),
    };
    rewrite(bytes, &mut plan)
}

/// The opcodes of the one method, calls of the contexts by their names.
fn names(bytes: &[u8]) -> Vec<String> {
    let class = ClassFile::parse(bytes).expect("a class file");
    let code = class.methods()[0].code().expect("understood");
    (code.expect("it has code").instructions())
        .map(|found| {
            let called = class.pool().member(found.constant().unwrap_or(0)).ok();
            match called.filter(|member| member.class == CONTEXTS.as_bytes()) {
                Some(member) => String::from_utf8_lossy(member.name).into_owned(),
                None => format!("{:02x}", found.opcode),
            }
        })
        .collect()
}

/// `try { } finally { new C(); }` as compilers made it before Java 6.
fn with_subroutine() -> Class {
    let class = Class::named("a/B")
        .with_index(JSR, 10)
        .byte(RETURN)
        // The handler of everything.
        .byte(ASTORE_1)
        .with_index(JSR, 5)
        .byte(ALOAD_1)
        .byte(ATHROW)
        // The subroutine.
        .byte(ASTORE_2)
        .new_instance("a/C")
        .byte(POP)
        .byte(RET)
        .byte(2);
    let mut class = Class {
        version: 46,
        ..class
    };
    class.handlers.push([0, 4, 4]);
    class
}

#[test]
fn subroutines_of_old_code_are_counted_and_called_where_they_are() {
    let bytes = with_subroutine().bytes();
    let Outcome { bytes: new, left } = with_contexts(&bytes, true);
    // Accounts have no constant of a class to push there.
    assert_eq!(left, [Left::Old]);
    let new = new.expect("it is rewritten");
    let expected = [
        "11", "enter", "36", // The entry.
        "a8", "15", "leave", "b1", // The end: not where the subroutine returns.
        "15", "11", "again", "4c", "a8", "2b", "bf", // The handler.
        "4d", "bb", "11", "made", "57", "a9", // The subroutine.
        "15", "leave", "bf", // The handler that was added.
    ];
    assert_eq!(names(&new), expected);
    let class = ClassFile::parse(&new).expect("a class file");
    let code = class.methods()[0].code().expect("understood");
    let jumps: Vec<u32> = (code.expect("it has code").instructions())
        .filter(|found| found.opcode == JSR)
        .map(|found| found.offset + u32::from(found.operands[1]))
        .collect();
    // Both lead to where the return address is kept.
    assert_eq!(jumps.len(), 2);
    assert_eq!(jumps[0], jumps[1]);
    policy_rewrite::oracle::check_rewritten(&ClassFile::parse(&bytes).expect("one"), &new);
}

#[test]
fn an_old_constructor_ends_its_bracket_only_where_it_returns() {
    let class = Class::named("a/B")
        .byte(ALOAD_0)
        .call(INVOKESPECIAL, "java/lang/Object", "<init>", "()V")
        .new_instance("a/C")
        .byte(POP)
        .byte(RETURN)
        .method("<init>", "()V");
    let class = Class {
        version: 46,
        ..class
    };
    let new = with_contexts(&class.bytes(), false).bytes;
    let shown = names(&new.expect("it is rewritten"));
    // No frame can say there whether its object is initialised.
    assert_eq!(shown.iter().filter(|name| *name == "leave").count(), 1);
    assert_eq!(shown.last().map(String::as_str), Some("b1"));
}

/// A method of so many bytes that makes one object.
fn long(bytes: usize) -> Vec<u8> {
    let mut class = Class::named("a/B").new_instance("a/C").byte(POP);
    let rest = bytes - class.code.len() - 1;
    class.code.extend(std::iter::repeat_n(NOP, rest));
    class.byte(RETURN).bytes()
}

#[test]
fn a_method_at_the_limit_is_left_as_it_is_and_told() {
    // sipush, enter, istore; sipush, made; iload, leave; and iload, leave, athrow.
    let contexts = (3 + 3 + 2) + (3 + 3) + (2 + 3) + (2 + 3 + 1);
    let rewritten = |bytes, accounts| {
        let Outcome { bytes, left } = with_contexts(&long(bytes), accounts);
        assert_eq!(bytes.is_none(), !left.is_empty(), "{left:?}");
        left.is_empty()
    };
    assert!(rewritten(65_535 - contexts, false));
    assert!(!rewritten(65_535 - contexts + 1, false));
    // ldc, sipush, made; sipush, enter, istore; iload, leave: accounts have no handler.
    let accounts = (2 + 3 + 3) + (3 + 3 + 2) + (2 + 3);
    assert!(rewritten(65_535 - contexts - accounts, true));
    assert!(!rewritten(65_535 - contexts - accounts + 1, true));
    for bytes in [65_535, 65_534] {
        let outcome = with_contexts(&long(bytes), true);
        assert_eq!(outcome.bytes, None);
        assert_eq!(outcome.left, [Left::Refused(RewriteError::MethodTooLong)]);
    }
}

/// The descriptors of the calls of `leave`.
fn leaves(bytes: &[u8]) -> Vec<String> {
    let class = ClassFile::parse(bytes).expect("a class file");
    let code = class.methods()[0].code().expect("understood");
    (code.expect("it has code").instructions())
        .filter_map(|found| class.pool().member(found.constant().unwrap_or(0)).ok())
        .filter(|member| member.class == CONTEXTS.as_bytes() && member.name == b"leave")
        .map(|member| String::from_utf8_lossy(member.descriptor).into_owned())
        .collect()
}

#[test]
fn a_method_tells_its_bytecodes_where_there_is_room_for_that() {
    let contexts = (3 + 3 + 2) + (3 + 3) + (2 + 3) + (2 + 3 + 1);
    // iconst, istore; twice a wide iinc, which adds 32,767 at most; and iload for each end.
    let bytecodes = (1 + 2) + 2 * 6 + 2 + 2;
    for (bytes, descriptor) in [
        (100, "(II)V"),
        (65_535 - contexts - bytecodes, "(II)V"),
        (65_535 - contexts - bytecodes + 1, "(I)V"),
        (65_535 - contexts, "(I)V"),
    ] {
        let Outcome { bytes: new, left } = with(&long(bytes), false, true);
        assert_eq!(left, []);
        let new = new.expect("it is rewritten");
        assert_eq!(leaves(&new), [descriptor; 2], "{bytes}");
    }
    let outcome = with(&long(65_535 - contexts + 1), false, true);
    assert_eq!(outcome.left, [Left::Refused(RewriteError::MethodTooLong)]);
}

#[test]
fn a_quiet_method_has_bytecodes_unless_it_is_small() {
    let quiet = Class::named("a/B").byte(NOP).byte(RETURN).bytes();
    assert_eq!(with_contexts(&quiet, false).bytes, None);
    assert_eq!(with(&quiet, false, true).bytes, None);
    let endless = Class::named("a/B").with_index(GOTO, 0).bytes();
    assert_eq!(with_contexts(&endless, false).bytes, None);
    let new = with(&endless, false, true).bytes.expect("it is rewritten");
    let expected = [
        "11", "enter", "36", "03", "36", "09", "37", // The entry.
        "16", "15", "85", "61", "37", "11", "36",
        "a7", // What was counted before, and one instruction more.
        "15", "16", "15", "85", "61", "leave", "bf", // The handler that was added.
    ];
    assert_eq!(names(&new), expected);
    assert_eq!(leaves(&new), ["(IJ)V"]);
}
