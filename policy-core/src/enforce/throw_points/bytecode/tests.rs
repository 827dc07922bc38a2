//! Examples by hand, and generated methods against a plain fixpoint over their instructions.

use proptest::prelude::*;

use super::*;

#[test]
fn a_call_that_makes_an_instance_counts_as_one() {
    // invokevirtual, areturn
    let code = Code::read(&[0xb6, 0, 1, 0xb0]);
    assert_eq!([0, 3].map(|bci| code.site(bci)), [Site::Call, Site::Other]);
    let code = code.with_calls_for_instances();
    assert_eq!(
        [0, 3].map(|bci| code.site(bci)),
        [Site::Instance, Site::Other]
    );
}

/// `try { f(); } catch (E e) { g(); } return;`, as javac writes it.
const CATCHING: [u8; 11] = [
    0xb8, 0, 1, // 0: invokestatic f
    0xa7, 0, 7,    // 3: goto 10
    0x4b, // 6: astore_0
    0xb8, 0, 2,    // 7: invokestatic g
    0xb1, // 10: return
];

fn handlers(code: &Code) -> Vec<(u32, u32)> {
    let ends = |range: &Range<u32>| (range.start, range.end);
    code.handlers.iter().map(ends).collect()
}

#[test]
fn a_catch_block_is_a_handler_and_what_follows_is_not() {
    let code = Code::read(&CATCHING);
    assert_eq!(handlers(&code), [(6, 10)]);
    assert!(!code.in_handler(0));
    assert!(code.in_handler(7));
    assert!(!code.in_handler(10));
    assert_eq!(code.site(0), Site::Call);
    assert_eq!(code.site(3), Site::Other);
    assert_eq!(code.site(10), Site::Other);
}

#[test]
fn only_the_copy_of_a_finally_block_that_exceptions_take_is_a_handler() {
    // try { f(); } finally { h(); }: h twice, the second time before athrow.
    let code = Code::read(&[
        0xb8, 0, 1, // 0: f
        0xb8, 0, 2, // 3: h
        0xa7, 0, 9,    // 6: goto 15
        0x4b, // 9: astore_0
        0xb8, 0, 2,    // 10: h
        0x2a, // 13: aload_0
        0xbf, // 14: athrow
        0xb1, // 15: return
    ]);
    assert_eq!(handlers(&code), [(9, 15)]);
}

#[test]
fn a_finally_block_shared_by_jsr_is_reached_both_ways() {
    let code = Code::read(&[
        0xb8, 0, 1, // 0: f
        0xa8, 0, 11,   // 3: jsr 14
        0xb1, // 6: return
        0x4b, // 7: astore_0
        0xa8, 0, 6,    // 8: jsr 14
        0x2a, // 11: aload_0
        0xbf, // 12: athrow
        0x00, // 13: nop
        0x4c, // 14: astore_1
        0xb8, 0, 2, // 15: h
        0xa9, 1, // 18: ret 1
    ]);
    assert_eq!(handlers(&code), [(7, 14)]);
    assert!(!code.in_handler(15));
}

#[test]
fn every_allocating_instruction_is_known() {
    let code = Code::read(&[
        0xbb, 0, 1, // 0: new
        0xbc, 10, // 3: newarray
        0xbd, 0, 1, // 5: anewarray
        0xc5, 0, 1, 2, // 8: multianewarray
        0xb9, 0, 1, 1, 0, // 12: invokeinterface
        0xba, 0, 1, 0, 0, // 17: invokedynamic
        0x12, 1,    // 22: ldc
        0xb1, // 24: return
    ]);
    let sites: Vec<_> = (0..25).map(|bci| code.site(bci)).collect();
    let known = [
        (0, Site::Instance),
        (3, Site::PrimitiveArray),
        (5, Site::ReferenceArray),
        (8, Site::ArrayOfArrays),
        (12, Site::Call),
    ];
    for (bci, site) in sites.into_iter().enumerate() {
        let expected = known.iter().find(|(at, _)| *at == bci);
        assert_eq!(site, expected.map_or(Site::Other, |k| k.1), "{bci}");
    }
}

#[test]
fn nothing_is_known_of_bad_code() {
    for bad in [
        &[0xfe][..],                                           // reserved
        &[0xb8, 0],                                            // cut short
        &[0xa7, 0, 1, 0xb1],                                   // into itself
        &[0xa7, 0x7f, 0xff],                                   // out of the method
        &[0xc4, 0x00, 0, 0],                                   // wide nop
        &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff],  // a table without end
        &[0xab, 0, 0, 0, 0, 0, 0, 12, 0xff, 0xff, 0xff, 0xff], // of negative length
    ] {
        assert_eq!(Code::read(bad), Code::unknown(), "{bad:x?}");
    }
    assert!(Code::unknown().in_handler(0));
    assert_eq!(Code::unknown().site(0), Site::Other);
    assert_eq!(Code::read(&[]), Code::default());
    assert_eq!(Code::read(&vec![0; 65_536]), Code::unknown());
}

/// An instruction by what control does; targets are indices of instructions.
#[derive(Debug, Clone)]
enum Abstract {
    Plain(u8),
    Wide,
    Iinc,
    If(u8, usize),
    Goto(usize),
    GotoW(usize),
    Jsr(usize),
    Ret,
    Return(u8),
    Table(i32, Vec<usize>),
    Lookup(Vec<usize>),
}

fn instruction() -> impl Strategy<Value = Abstract> {
    let target = || 0..64usize;
    prop_oneof![
        6 => prop_oneof![0x00u8..=0x0f, 0x1au8..=0x35, Just(0xc2u8), Just(0xbeu8)]
            .prop_map(Abstract::Plain),
        1 => Just(Abstract::Wide),
        1 => Just(Abstract::Iinc),
        4 => (prop_oneof![0x99u8..=0xa6, Just(0xc6u8), Just(0xc7u8)], target())
            .prop_map(|(op, to)| Abstract::If(op, to)),
        3 => target().prop_map(Abstract::Goto),
        1 => target().prop_map(Abstract::GotoW),
        1 => target().prop_map(Abstract::Jsr),
        1 => Just(Abstract::Ret),
        2 => prop_oneof![0xacu8..=0xb1, Just(0xbfu8)].prop_map(Abstract::Return),
        1 => (-9..9i32, prop::collection::vec(target(), 1..5))
            .prop_map(|(low, to)| Abstract::Table(low, to)),
        1 => prop::collection::vec(target(), 1..5).prop_map(Abstract::Lookup),
    ]
}

fn length(instruction: &Abstract, at: usize) -> usize {
    let padded = 4 - at % 4;
    match instruction {
        Abstract::Plain(_) | Abstract::Return(_) => 1,
        Abstract::Wide => 4,
        Abstract::Iinc => 6,
        Abstract::If(..) | Abstract::Goto(_) | Abstract::Jsr(_) => 3,
        Abstract::GotoW(_) => 5,
        Abstract::Ret => 2,
        Abstract::Table(_, to) => padded + 8 + 4 * to.len(),
        Abstract::Lookup(to) => padded + 8 * to.len(),
    }
}

/// The bytes, and where each instruction starts, with the end as the last.
fn assemble(program: &[Abstract]) -> (Vec<u8>, Vec<usize>) {
    let mut starts = vec![0];
    for instruction in program {
        let at = starts[starts.len() - 1];
        starts.push(at + length(instruction, at));
    }
    let mut bytes = Vec::new();
    for (index, instruction) in program.iter().enumerate() {
        let at = starts[index];
        let near = |to: &usize| (starts[to % program.len()] as i64 - at as i64) as i16;
        let far = |to: &usize| (starts[to % program.len()] as i64 - at as i64) as i32;
        match instruction {
            Abstract::Plain(op) | Abstract::Return(op) => bytes.push(*op),
            Abstract::Wide => bytes.extend([0xc4, 0x15, 1, 0]),
            Abstract::Iinc => bytes.extend([0xc4, 0x84, 1, 0, 0, 1]),
            Abstract::If(op, to) => {
                bytes.push(*op);
                bytes.extend(near(to).to_be_bytes());
            }
            Abstract::Goto(to) => {
                bytes.push(0xa7);
                bytes.extend(near(to).to_be_bytes());
            }
            Abstract::Jsr(to) => {
                bytes.push(0xa8);
                bytes.extend(near(to).to_be_bytes());
            }
            Abstract::GotoW(to) => {
                bytes.push(0xc8);
                bytes.extend(far(to).to_be_bytes());
            }
            Abstract::Ret => bytes.extend([0xa9, 1]),
            Abstract::Table(low, to) => {
                bytes.push(0xaa);
                bytes.resize(at + 4 - at % 4, 0);
                bytes.extend(far(&to[0]).to_be_bytes());
                bytes.extend(low.to_be_bytes());
                bytes.extend((low + to.len() as i32 - 2).to_be_bytes());
                for to in &to[1..] {
                    bytes.extend(far(to).to_be_bytes());
                }
            }
            Abstract::Lookup(to) => {
                bytes.push(0xab);
                bytes.resize(at + 4 - at % 4, 0);
                bytes.extend(far(&to[0]).to_be_bytes());
                bytes.extend((to.len() as i32 - 1).to_be_bytes());
                for (key, to) in to[1..].iter().enumerate() {
                    bytes.extend((key as i32).to_be_bytes());
                    bytes.extend(far(to).to_be_bytes());
                }
            }
        }
        bytes.resize(starts[index + 1], 0);
    }
    (bytes, starts)
}

/// The definition: the smallest set that has the first instruction and all successors.
fn reachable(program: &[Abstract]) -> Vec<bool> {
    let mut reached = vec![false; program.len()];
    reached[0] = true;
    loop {
        let before = reached.clone();
        for index in 0..program.len() {
            if !reached[index] {
                continue;
            }
            let (falls, targets): (bool, Vec<usize>) = match &program[index] {
                Abstract::Plain(_) | Abstract::Wide | Abstract::Iinc => (true, vec![]),
                Abstract::If(_, to) | Abstract::Jsr(to) => (true, vec![*to]),
                Abstract::Goto(to) | Abstract::GotoW(to) => (false, vec![*to]),
                Abstract::Ret | Abstract::Return(_) => (false, vec![]),
                Abstract::Table(_, to) | Abstract::Lookup(to) => (false, to.clone()),
            };
            for to in targets {
                reached[to % program.len()] = true;
            }
            if falls {
                reached[index + 1] = true;
            }
        }
        if reached == before {
            return reached;
        }
    }
}

proptest! {
    #[test]
    fn what_no_jump_leads_to_is_a_handler(
        mut program in prop::collection::vec(instruction(), 0..40),
    ) {
        program.push(Abstract::Return(0xb1));
        let (bytes, starts) = assemble(&program);
        let code = Code::read(&bytes);
        for (index, reached) in reachable(&program).into_iter().enumerate() {
            prop_assert_eq!(
                code.in_handler(starts[index] as u32),
                !reached,
                "instruction {} of {:?}", index, program
            );
        }
        prop_assert!(!code.in_handler(bytes.len() as u32));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x99u8..=0xc9, Just(0u8)], 0..200),
        bci in any::<u32>(),
    ) {
        let code = Code::read(&bytes);
        let _ = (code.in_handler(bci), code.site(bci), code.heap_bytes());
        for pair in code.handlers.windows(2) {
            prop_assert!(pair[0].end < pair[1].start);
        }
    }
}
