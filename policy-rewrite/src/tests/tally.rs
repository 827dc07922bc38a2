//! Methods that count their instructions, run by an interpreter: what a method tells at its end is what it has run.
//!
//! The same choices are made for a method as it was and as it was rewritten: where a switch leads, and where an
//! exception is thrown. Inserted instructions are known by their opcodes, and by the local variables that they add to.

use proptest::prelude::*;

use super::brackets::OLD_MAX_LOCALS;
use super::model::{Body, body, class_with};
use super::only_method;
use crate::blocks;
use crate::code::{Code, Handler};
use crate::instructions::{
    ATHROW, I2L, ICONST_0, IINC, ILOAD, INVOKESTATIC, ISTORE, Instruction, LADD, LCONST_0, LLOAD,
    LSTORE, SIPUSH, WIDE,
};
use crate::{Bracket, ClassFile, MethodEdit, Rewriter, Snippet};

const CLASS: &str = "test/Mark";
const ENTERED: i64 = 7;
/// Instructions of the method after which a run is given up.
const MAX_STEPS: usize = 3_000;
const BIPUSH: u8 = 0x10;

/// How a run has ended, or where it was given up.
#[derive(Debug, Default, PartialEq)]
struct Ran {
    /// Instructions of the method itself.
    instructions: u64,
    thrown: u64,
    /// The numbers of instructions that `leave` was told, once for each time.
    told: Vec<u64>,
    is_given_up: bool,
}

struct Machine<'a> {
    class: &'a ClassFile<'a>,
    code: &'a Code<'a>,
    /// Of inserted code.
    stack: Vec<i64>,
    locals: Vec<i64>,
}

fn operand(instruction: &Instruction<'_>) -> usize {
    match instruction.opcode {
        WIDE => usize::from(u16::from_be_bytes([
            instruction.operands[1],
            instruction.operands[2],
        ])),
        _ => usize::from(instruction.operands[0]),
    }
}

impl Machine<'_> {
    /// Runs an inserted instruction; false if it is the method's own.
    fn inserted(&mut self, instruction: &Instruction<'_>, told: &mut Vec<u64>) -> bool {
        let opcode = match instruction.opcode {
            WIDE => instruction.operands[0],
            opcode => opcode,
        };
        match opcode {
            ICONST_0..=0x08 => self.stack.push(i64::from(opcode - ICONST_0)),
            LCONST_0 => self.stack.push(0),
            BIPUSH => self.stack.push(i64::from(instruction.operands[0] as i8)),
            SIPUSH => {
                let value = [instruction.operands[0], instruction.operands[1]];
                self.stack.push(i64::from(i16::from_be_bytes(value)));
            }
            ILOAD | LLOAD => self.stack.push(self.locals[operand(instruction)]),
            ISTORE | LSTORE => self.locals[operand(instruction)] = self.popped(),
            I2L => {}
            LADD => {
                let sum = self.popped() + self.popped();
                self.stack.push(sum);
            }
            IINC if operand(instruction) >= usize::from(OLD_MAX_LOCALS) => {
                let by = match instruction.opcode {
                    WIDE => i64::from(i16::from_be_bytes([
                        instruction.operands[3],
                        instruction.operands[4],
                    ])),
                    _ => i64::from(instruction.operands[1] as i8),
                };
                let local = operand(instruction);
                self.locals[local] += by;
                // No loop without taking it over.
                assert!(self.locals[local] <= i64::from(self.code.len_bytes()));
            }
            INVOKESTATIC => {
                let called = self.class.pool().member(instruction.constant().unwrap());
                match called.unwrap().name {
                    b"enter" => {
                        self.popped();
                        self.stack.push(ENTERED);
                    }
                    b"leave" => {
                        told.push(self.popped() as u64);
                        assert_eq!(self.popped(), ENTERED);
                    }
                    other => panic!("{}", String::from_utf8_lossy(other)),
                }
            }
            _ => return false,
        }
        true
    }

    fn popped(&mut self) -> i64 {
        self.stack.pop().expect("something was pushed")
    }
}

/// Runs the only method of a class. The choices are by the instructions of the method: the first byte of one below 16
/// throws there, and the second says where a switch leads.
fn run(bytes: &[u8], choices: &[(u8, u8)]) -> Ran {
    let class = ClassFile::parse(bytes).unwrap();
    let method = only_method(&class);
    let code = method.code().unwrap().unwrap();
    let mut machine = Machine {
        class: &class,
        code: &code,
        stack: Vec::new(),
        locals: vec![0; usize::from(code.max_locals)],
    };
    let mut ran = Ran::default();
    let mut at = 0;
    loop {
        let instruction = code.instruction(at);
        if machine.inserted(&instruction, &mut ran.told) {
            at += instruction.length();
            continue;
        }
        if instruction.opcode == ATHROW {
            // The handler that was added.
            return ran;
        }
        if ran.instructions as usize == MAX_STEPS {
            ran.is_given_up = true;
            return ran;
        }
        let (throws, to) = choices[ran.instructions as usize % choices.len()];
        ran.instructions += 1;
        if instruction.is_return() {
            assert!(machine.stack.is_empty());
            return ran;
        }
        let targets: Vec<u32> = (instruction.jump_places())
            .map(|place| instruction.target(place) as u32)
            .collect();
        if targets.is_empty() && throws < 16 {
            ran.thrown += 1;
            let covers = |row: &&Handler| {
                (u32::from(row.start)..u32::from(row.end)).contains(&instruction.offset)
            };
            match code.handlers.iter().find(covers) {
                Some(row) => at = u32::from(row.handler),
                None => return ran,
            }
            machine.stack.clear();
            continue;
        }
        at = match targets.as_slice() {
            [] => instruction.offset + instruction.length(),
            targets => targets[usize::from(to) % targets.len()],
        };
    }
}

/// With a bracket that counts.
fn rewritten(bytes: &[u8]) -> Vec<u8> {
    let class = ClassFile::parse(bytes).unwrap();
    let mut edit = MethodEdit::default();
    let enter = Snippet::new().push_int(7);
    edit.bracket(Bracket {
        enter: enter.invoke_static(CLASS, "enter", "(I)I").unwrap(),
        leave: (CLASS, "leave"),
        counts_instructions: true,
        again: None,
        escapes: true,
    });
    let mut rewriter = Rewriter::new(&class);
    rewriter.edit(&only_method(&class), &edit).unwrap();
    let new = rewriter.finish().expect("it has an edit");
    crate::oracle::check_rewritten(&class, &new);
    new
}

fn bodies() -> impl Strategy<Value = Body> {
    body().prop_map(|mut body| {
        body.max_locals = OLD_MAX_LOCALS;
        // Made up at random, they may say what no verifier takes.
        body.frames = None;
        body
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_method_tells_how_many_instructions_it_has_run(
        body in bodies(),
        choices in prop::collection::vec((16_u8.., any::<u8>()), 1..40),
    ) {
        let bytes = class_with(&body);
        let (before, after) = (run(&bytes, &choices), run(&rewritten(&bytes), &choices));
        prop_assert_eq!(after.instructions, before.instructions);
        prop_assert_eq!(after.is_given_up, before.is_given_up);
        let told = if before.is_given_up { vec![] } else { vec![before.instructions] };
        prop_assert_eq!(after.told, told);
    }

    #[test]
    fn an_exception_leaves_at_most_the_rest_of_its_block_counted(
        body in bodies(),
        choices in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
    ) {
        let bytes = class_with(&body);
        let (before, after) = (run(&bytes, &choices), run(&rewritten(&bytes), &choices));
        prop_assert_eq!(after.instructions, before.instructions);
        let class = ClassFile::parse(&bytes).unwrap();
        let code = only_method(&class).code().unwrap().unwrap();
        let longest = blocks::of(&code).iter().map(|block| block.instructions).max();
        let most = before.thrown * u64::from(longest.unwrap() - 1);
        match after.told.as_slice() {
            [] => prop_assert!(before.is_given_up),
            [told] => {
                let more = told.checked_sub(before.instructions);
                prop_assert!(more.is_some_and(|more| more <= most), "{told} of {before:?}");
            }
            more => prop_assert!(false, "{more:?}"),
        }
    }
}

/// As they are met in a loop with a switch, a handler, and code that nothing leads to.
#[test]
fn blocks_begin_where_code_comes_from_elsewhere() {
    use super::model::Operation::{Increment, Jump, Nop, Return, Table};
    let mut body = Body::returning();
    body.instructions = vec![
        Nop,
        Increment,
        Table(vec![3, 5]),
        Increment,
        Jump(1),
        Nop,
        Increment,
        Return,
    ];
    body.handlers = vec![(0, 3, 6)];
    let offsets = body.offsets();
    let class_bytes = class_with(&body);
    let class = ClassFile::parse(&class_bytes).unwrap();
    let code = only_method(&class).code().unwrap().unwrap();
    let found: Vec<(usize, u16, bool)> = blocks::of(&code)
        .iter()
        .map(|block| {
            let at = offsets.iter().position(|offset| *offset == block.offset);
            (at.unwrap(), block.instructions, block.heads_loop)
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, 1, false),
            (1, 2, true),
            (3, 2, false),
            (5, 1, false),
            (6, 2, false)
        ]
    );
}
