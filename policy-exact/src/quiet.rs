//! Methods in which no context can count anything, whatever they do: they need no place in the tree.
//!
//! A method is *quiet* if it allocates nothing and calls nothing but quiet methods. Those of other classes are
//! unknown, but for a few of the JDK, which has no contexts: they neither allocate for their callers' contexts nor
//! call back. Those of the same class are known where no subclass can replace them: constructors, and what is static,
//! private or final. So most constructors are quiet, and what reads a field by way of a method.
//!
//! Methods that call each other are quiet until something in them is not: the largest set for which the rule holds.
//!
//! Where executed bytecodes are counted, those of quiet methods would be missing. A method is *small* if it is quiet, has
//! no loop, and calls nothing of its class but small methods; none of those that call each other is. Small methods
//! alone have no place in the tree then: what each of them runs is bounded by its code, and a place for each getter
//! made programs up to fourteen times slower.

use std::collections::HashMap;

use policy_rewrite::{ClassFile, Instruction, Method};

use crate::sites::{self, INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL};

const PRIVATE_STATIC_OR_FINAL: u16 = 0x0002 | 0x0008 | 0x0010;

/// Static methods of the JDK, by class.
const STATIC: [(&str, &[&str]); 3] = [
    (
        "java/lang/Math",
        &["abs", "max", "min", "sqrt", "floor", "ceil"],
    ),
    (
        "java/lang/System",
        &[
            "arraycopy",
            "currentTimeMillis",
            "identityHashCode",
            "nanoTime",
        ],
    ),
    ("java/lang/Thread", &["currentThread"]),
];

/// Methods of the JDK that no subclass replaces.
const FINAL: [(&str, &[&str]); 9] = [
    ("java/lang/Object", &["getClass"]),
    (
        "java/lang/String",
        &[
            "length", "charAt", "isEmpty", "hashCode", "equals", "indexOf",
        ],
    ),
    ("java/lang/Integer", &["intValue"]),
    ("java/lang/Long", &["longValue"]),
    ("java/lang/Double", &["doubleValue"]),
    ("java/lang/Float", &["floatValue"]),
    ("java/lang/Boolean", &["booleanValue"]),
    ("java/lang/Character", &["charValue"]),
    ("java/lang/Byte", &["byteValue"]),
];

/// The methods of a class by name and descriptor.
type Own<'c> = HashMap<(&'c [u8], &'c [u8]), usize>;

fn own<'c>(class: &ClassFile<'c>) -> Own<'c> {
    (class.methods().iter().enumerate())
        .map(|(at, method)| ((method.name(), method.descriptor()), at))
        .collect()
}

/// Which methods of a class are quiet, in their order.
pub(crate) fn methods(class: &ClassFile<'_>) -> Vec<bool> {
    let own = own(class);
    let mut callers = vec![Vec::new(); class.methods().len()];
    let mut noisy = Vec::new();
    for (at, method) in class.methods().iter().enumerate() {
        let mut is_quiet = matches!(method.code(), Ok(Some(_)));
        let code = method.code().ok().flatten();
        for instruction in code.iter().flat_map(|code| code.instructions()) {
            if !is_quiet {
                break;
            }
            match call(class, &own, &instruction) {
                Call::None | Call::Quiet => {}
                Call::Own(callee) => callers[callee].push(at),
                Call::Unknown => is_quiet = false,
            }
        }
        if !is_quiet {
            noisy.push(at);
        }
    }
    let mut quiet = vec![true; class.methods().len()];
    while let Some(at) = noisy.pop() {
        if std::mem::replace(&mut quiet[at], false) {
            noisy.append(&mut callers[at]);
        }
    }
    quiet
}

/// Which of the quiet methods are small.
pub(crate) fn small(class: &ClassFile<'_>, quiet: &[bool]) -> Vec<bool> {
    let own = own(class);
    let count = class.methods().len();
    // Callees that are not known to be small; `None`: the method is not, whatever they are.
    let mut left: Vec<Option<usize>> = vec![None; count];
    let mut callers = vec![Vec::new(); count];
    for (at, method) in class
        .methods()
        .iter()
        .enumerate()
        .filter(|(at, _)| quiet[*at])
    {
        let Some(code) = method
            .code()
            .ok()
            .flatten()
            .filter(|code| !code.has_loops())
        else {
            continue;
        };
        let mut callees = 0;
        for instruction in code.instructions() {
            if let Call::Own(callee) = call(class, &own, &instruction) {
                callees += 1;
                callers[callee].push(at);
            }
        }
        left[at] = Some(callees);
    }
    let mut small = vec![false; count];
    let mut found: Vec<usize> = (0..count).filter(|at| left[*at] == Some(0)).collect();
    while let Some(at) = found.pop() {
        small[at] = true;
        for caller in &callers[at] {
            if let Some(callees) = &mut left[*caller] {
                *callees -= 1;
                if *callees == 0 {
                    found.push(*caller);
                }
            }
        }
    }
    small
}

/// The callee of an instruction, as far as it tells whether anything is allocated.
enum Call {
    None,
    Quiet,
    /// A method of the class, by its place among them.
    Own(usize),
    /// Something else, or it allocates.
    Unknown,
}

fn call(class: &ClassFile<'_>, own: &Own<'_>, instruction: &Instruction<'_>) -> Call {
    if !sites::may_allocate(instruction.opcode) {
        return Call::None;
    }
    let member = match instruction.opcode {
        INVOKEVIRTUAL | INVOKESPECIAL | INVOKESTATIC => {
            class.pool().member(instruction.constant().unwrap_or(0))
        }
        _ => return Call::Unknown,
    };
    let Ok(member) = member else {
        return Call::Unknown;
    };
    if member.class == class.name() {
        return match own.get(&(member.name, member.descriptor)) {
            Some(&at) if is_settled(&class.methods()[at]) => Call::Own(at),
            _ => Call::Unknown,
        };
    }
    let is_in = |table: &[(&str, &[&str])]| {
        (table.iter())
            .filter(|(owner, _)| owner.as_bytes() == member.class)
            .any(|(_, names)| names.iter().any(|name| name.as_bytes() == member.name))
    };
    let is_quiet = match instruction.opcode {
        INVOKESTATIC => is_in(&STATIC),
        INVOKEVIRTUAL => is_in(&FINAL),
        _ => member.class == b"java/lang/Object" && member.name == b"<init>",
    };
    match is_quiet {
        true => Call::Quiet,
        false => Call::Unknown,
    }
}

/// Whether a call that names the method runs it and no other.
fn is_settled(method: &Method<'_>) -> bool {
    method.access_flags() & PRIVATE_STATIC_OR_FINAL != 0 || method.name() == b"<init>"
}
