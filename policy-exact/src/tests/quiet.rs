//! Which methods have no place in the tree of contexts.

use super::*;
use crate::quiet;

const INVOKEVIRTUAL: u8 = 0xb6;
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESTATIC: u8 = 0xb8;
const PUBLIC: u16 = 0x0001;
const PRIVATE: u16 = 0x0002;
const STATIC: u16 = 0x0008;
const FINAL: u16 = 0x0010;

fn quiet_methods(class: Class) -> Vec<bool> {
    let bytes = class.byte(RETURN).bytes();
    quiet::methods(&ClassFile::parse(&bytes).expect("a class file"))
}

#[test]
fn what_allocates_or_calls_what_is_unknown_is_not_quiet() {
    let class = || Class::named("a/B");
    assert_eq!(quiet_methods(class()), [true]);
    assert_eq!(
        quiet_methods(class().new_instance("a/C").byte(POP)),
        [false]
    );
    for (opcode, owner, name, descriptor, expected) in [
        (INVOKESPECIAL, "java/lang/Object", "<init>", "()V", true),
        (INVOKESPECIAL, "a/Above", "<init>", "()V", false),
        (INVOKESTATIC, "java/lang/Math", "max", "(II)I", true),
        (
            INVOKESTATIC,
            "java/lang/Math",
            "multiplyExact",
            "(II)I",
            false,
        ),
        (INVOKEVIRTUAL, "java/lang/String", "length", "()I", true),
        // A virtual call of a name that only the static table has.
        (INVOKEVIRTUAL, "java/lang/Math", "max", "(II)I", false),
        (
            INVOKEVIRTUAL,
            "java/lang/Object",
            "toString",
            "()Ljava/lang/String;",
            false,
        ),
        (INVOKEVIRTUAL, "java/util/ArrayList", "size", "()I", false),
    ] {
        let found = quiet_methods(class().call(opcode, owner, name, descriptor));
        assert_eq!(found, [expected], "{owner}.{name}");
    }
}

#[test]
fn a_method_of_the_class_is_known_where_none_can_replace_it() {
    for (flags, name, expected) in [
        (PRIVATE, "get", true),
        (PUBLIC | FINAL, "get", true),
        (PUBLIC, "get", false),
        (PUBLIC, "<init>", true),
    ] {
        let called = Class::named("a/B")
            .access_flags(flags)
            .method(name, "()V")
            .byte(RETURN);
        let class = (called.and().method("run", "()V")).call(INVOKEVIRTUAL, "a/B", name, "()V");
        assert_eq!(quiet_methods(class), [true, expected], "{flags:#x} {name}");
    }
    let inherited = Class::named("a/B").call(INVOKESTATIC, "a/B", "above", "()V");
    assert_eq!(quiet_methods(inherited), [false]);
}

/// first -> second -> third -> first, and fourth -> second.
fn circle(third_allocates: bool) -> Class {
    let call = |class: Class, callee| class.call(INVOKESTATIC, "a/B", callee, "()V");
    let class = Class::named("a/B").method("first", "()V");
    let class = call(class, "second").byte(RETURN).and();
    let class = call(class.method("second", "()V"), "third")
        .byte(RETURN)
        .and();
    let mut class = class.method("third", "()V");
    if third_allocates {
        class = class.new_instance("a/C").byte(POP);
    }
    let class = call(class, "first").byte(RETURN).and();
    call(class.method("fourth", "()V"), "second")
}

#[test]
fn methods_that_call_each_other_are_quiet_until_one_allocates() {
    assert_eq!(quiet_methods(circle(false)), [true; 4]);
    assert_eq!(quiet_methods(circle(true)), [false; 4]);
}

/// Each method calls the next, and the last allocates.
#[test]
fn a_long_chain_is_followed_to_its_end() {
    const NAMES: [&str; 2] = ["even", "odd"];
    let mut class = Class::named("a/B");
    let link = |at: usize| format!("()L{};", "x".repeat(at));
    // Their descriptors tell them apart.
    let links: Vec<&'static str> = (0..400).map(|at| &*link(at).leak()).collect();
    for at in 0..links.len() - 1 {
        class = class
            .method(NAMES[at % 2], links[at])
            .call(INVOKESTATIC, "a/B", NAMES[(at + 1) % 2], links[at + 1])
            .byte(RETURN)
            .and();
    }
    let last = links.len() - 1;
    let class = class.method(NAMES[last % 2], links[last]);
    let noisy = class.new_instance("a/C").byte(POP);
    assert_eq!(quiet_methods(noisy), vec![false; links.len()]);
}

#[test]
fn native_methods_may_call_back() {
    let class = Class::named("a/B").access_flags(NATIVE | STATIC);
    let class = class.method("native", "()V").and().access_flags(STATIC);
    let class = class
        .method("run", "()V")
        .call(INVOKESTATIC, "a/B", "native", "()V");
    assert_eq!(quiet_methods(class), [false, false]);
}

fn small_methods(class: Class) -> Vec<bool> {
    let bytes = class.byte(RETURN).bytes();
    let class = ClassFile::parse(&bytes).expect("a class file");
    quiet::small(&class, &quiet::methods(&class))
}

#[test]
fn what_may_run_long_is_not_small() {
    const GOTO: u8 = 0xa7;
    assert_eq!(small_methods(Class::named("a/B")), [true]);
    assert_eq!(
        small_methods(Class::named("a/B").with_index(GOTO, 3)),
        [true]
    );
    assert_eq!(
        small_methods(Class::named("a/B").with_index(GOTO, 0)),
        [false]
    );
    let noisy = Class::named("a/B").new_instance("a/C").byte(POP);
    assert_eq!(small_methods(noisy), [false]);
    // None of those that call each other, nor what calls them.
    assert_eq!(small_methods(circle(false)), [false; 4]);
    let two = Class::named("a/B").method("get", "()V").byte(RETURN).and();
    let two = two.method("run", "()V");
    let call = |class: Class| class.call(INVOKESTATIC, "a/B", "get", "()V");
    assert_eq!(small_methods(call(call(two))), [true, true]);
}
