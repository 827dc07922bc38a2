//! Properties that hold for any bytes that the JVM gives the agent as a class file, and for what the agent makes
//! of them: counters for accounts, for contexts, for both, the question of a door, and the call where threads end.
//! Checked by the fuzz target and by the tests that replay its corpus. The product does not call it.

#[cfg(test)]
mod tests;

use policy_rewrite::oracle::{check_reason, check_rewritten, check_unchanged};
use policy_rewrite::{
    ClassFile, Code, Guard, Leave, Method, MethodEdit, RewriteError, Rewriter, Snippet,
};

use crate::{Contexts, Left, Outcome, Plan, rewrite};

/// A number that is an operand of its instruction, and one that is a constant.
const NUMBERS: [i32; 2] = [7, 70_000];
/// The kinds of counters to insert, as (accounts, contexts, bytecodes of contexts).
type Wanted = (bool, bool, bool);
const WANTED: [Wanted; 5] = [
    (true, false, false),
    (false, true, false),
    (false, true, true),
    (true, true, false),
    (true, true, true),
];
/// The references that the question of a door loads at most.
const MAX_LOADS: u8 = 5;
const STATIC: u16 = 0x0008;

/// Reads `bytes` as a class, inserts all that the agent inserts, and checks what callers rely on.
///
/// # Panics
/// If a property does not hold, which is a bug of this crate or of `policy-rewrite`.
pub fn check(bytes: &[u8]) {
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(why) => {
            check_reason(&why);
            let Outcome { bytes, left } = rewritten(bytes, None, (true, true, true), NUMBERS[0]);
            assert_eq!((bytes, left), (None, vec![Left::Refused(why)]));
            return;
        }
    };
    check_unchanged(&class);
    check_inserted(&class);
    for wanted in WANTED {
        for (account, number) in [None, Some(NUMBERS[0]), Some(NUMBERS[1])]
            .into_iter()
            .zip([NUMBERS[0], NUMBERS[1], NUMBERS[0]])
        {
            let outcome = rewritten(bytes, account, wanted, number);
            outcome.left.iter().for_each(check_left);
            assert!(outcome.left.len() <= class.methods().len() + 2);
            let Some(new) = outcome.bytes else { continue };
            check_rewritten(&class, &new);
            // The agent's other insertions come into a class that has its counters.
            if wanted == (true, true, true) && account.is_some() {
                check_inserted(&ClassFile::parse(&new).expect("checked before"));
            }
        }
    }
}

fn rewritten(
    bytes: &[u8],
    account: Option<i32>,
    (accounts, contexts, bytecodes): Wanted,
    number: i32,
) -> Outcome {
    let mut method = |_: &[u8], _: &[u8]| number;
    let mut class = |name: &[u8]| number + name.len() as i32;
    let mut plan = Plan {
        account,
        // Some have none.
        number: &mut |name| (name.len() % 16 != 15).then_some(number),
        accounts,
        contexts: contexts.then_some(Contexts {
            method: &mut method,
            class: &mut class,
            bytecodes,
        }),
    };
    rewrite(bytes, &mut plan)
}

fn check_left(left: &Left) {
    match left {
        Left::Old | Left::ThreadMachinery | Left::NoNumber => {}
        Left::Refused(why) => check_reason(why),
    }
}

/// A question at the entry of each method that can have one, and a call at the entry of each.
fn check_inserted(class: &ClassFile<'_>) {
    for edit in [question, call] {
        let mut rewriter = Rewriter::new(class);
        for method in class.methods() {
            let Ok(Some(code)) = method.code() else {
                continue;
            };
            let edited = edit(method, &code).and_then(|edit| rewriter.edit(method, &edit));
            if let Err(why) = edited {
                check_reason(&why);
            }
        }
        if let Some(new) = rewriter.finish() {
            check_rewritten(class, &new);
        }
    }
}

fn question(method: &Method<'_>, code: &Code<'_>) -> Result<MethodEdit, RewriteError> {
    let loads = match method.access_flags() & STATIC {
        0 => MAX_LOADS.min(code.len_bytes() as u8 % 8),
        _ => 0,
    };
    let ask = (0..loads).fold(Snippet::new(), Snippet::load_reference);
    let objects = "Ljava/lang/Object;".repeat(loads.into());
    let mut edit = MethodEdit::default();
    edit.guard(Guard {
        ask: ask.invoke_static(
            "dev/heapwarden/door/Guard",
            "isShut",
            &format!("({objects})Z"),
        )?,
        leave: match method.descriptor().ends_with(b"Z") {
            true => Leave::ReturningBoolean(code.len_bytes() & 1 == 0),
            false => Leave::Returning,
        },
    });
    Ok(edit)
}

fn call(_: &Method<'_>, _: &Code<'_>) -> Result<MethodEdit, RewriteError> {
    let call = Snippet::new().load_reference(0).load_reference(1);
    let mut edit = MethodEdit::default();
    edit.before(
        0,
        call.invoke_static(
            "dev/heapwarden/agent/Uncaught",
            "ended",
            "(Ljava/lang/Thread;Ljava/lang/Throwable;)V",
        )?,
    );
    Ok(edit)
}
