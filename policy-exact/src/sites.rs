//! Where a class allocates.

use policy_rewrite::{
    ClassFile, Code, ConstantPool, Instruction, Method, MethodEdit, RewriteError, Snippet,
};

/// The class that counts, in the boot loader.
pub const COUNTER: &str = "java/lang/HeapwardenCounter";

const PUTFIELD: u8 = 0xb5;
pub(crate) const INVOKEVIRTUAL: u8 = 0xb6;
pub(crate) const INVOKESPECIAL: u8 = 0xb7;
pub(crate) const INVOKESTATIC: u8 = 0xb8;
const INVOKEDYNAMIC: u8 = 0xba;
const NEW: u8 = 0xbb;
const NEWARRAY: u8 = 0xbc;
const ANEWARRAY: u8 = 0xbd;
const MULTIANEWARRAY: u8 = 0xc5;

const OBJECT_RESULT: &[u8] = b")Ljava/lang/Object;";

/// An instruction behind which something has to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site<'a> {
    /// A new instance of a class, by its constant and name.
    Instance { constant: u16, name: &'a [u8] },
    /// A new array of primitives; the descriptor of the method that counts it.
    Array(&'static str),
    /// A new array of references, by the name of its elements' class.
    References { element: &'a [u8] },
    /// Arrays in arrays.
    Arrays { dimensions: i32 },
    /// A new object of any kind lies on the stack.
    Object,
}

/// The name of the class of arrays whose elements are of the class with this name: both as class files have them.
pub(crate) fn array_of_references(element: &[u8]) -> Vec<u8> {
    match element {
        [b'[', ..] => [b"[", element].concat(),
        _ => [b"[L", element, b";"].concat(),
    }
}

impl<'a> Site<'a> {
    /// Returns the allocation that the instruction makes; `None` if it makes none, or none that is counted at it.
    pub(crate) fn of(
        pool: &ConstantPool<'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Option<Site<'a>>, RewriteError> {
        let constant = instruction.constant().unwrap_or(0);
        Ok(match instruction.opcode {
            NEW => Some(Site::Instance {
                constant,
                name: pool.class(constant)?,
            }),
            NEWARRAY => array_of(instruction.operands[0]).map(Site::Array),
            ANEWARRAY => Some(Site::References {
                element: pool.class(constant)?,
            }),
            MULTIANEWARRAY => match instruction.operands[2] {
                // It may be of numbers.
                1 => Some(Site::Object),
                dimensions => Some(Site::Arrays {
                    dimensions: i32::from(dimensions),
                }),
            },
            INVOKEVIRTUAL | INVOKESPECIAL | INVOKESTATIC => {
                let member = pool.member(constant)?;
                let (class, name, descriptor) = (member.class, member.name, member.descriptor);
                is_allocating_call(instruction.opcode, class, name, descriptor)
                    .then_some(Site::Object)
            }
            _ => None,
        })
    }
}

/// The allocation that an instruction makes itself, as contexts have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation<'a> {
    /// An instance of the class of this name.
    Instance { name: &'a [u8] },
    /// An array; the descriptor of the method that counts it.
    Array(&'static str),
    /// Arrays in arrays: the name of the outermost, and how many of its dimensions; more than one.
    Arrays { name: &'a [u8], dimensions: i32 },
}

impl<'a> Allocation<'a> {
    /// `None` if it allocates nothing itself.
    pub(crate) fn of(
        pool: &ConstantPool<'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Option<Allocation<'a>>, RewriteError> {
        let constant = instruction.constant().unwrap_or(0);
        Ok(match instruction.opcode {
            NEW => Some(Allocation::Instance {
                name: pool.class(constant)?,
            }),
            NEWARRAY => array_of(instruction.operands[0]).map(Allocation::Array),
            ANEWARRAY => Some(Allocation::Array(OF_REFERENCES)),
            MULTIANEWARRAY => {
                let name = pool.class(constant)?;
                Some(match (instruction.operands[2], name) {
                    (1, [b'[', kind]) => {
                        Allocation::Array(of_primitives(*kind).unwrap_or(OF_REFERENCES))
                    }
                    (1, _) => Allocation::Array(OF_REFERENCES),
                    (dimensions, name) => Allocation::Arrays {
                        name,
                        dimensions: i32::from(dimensions),
                    },
                })
            }
            _ => None,
        })
    }
}

const OF_REFERENCES: &str = "([Ljava/lang/Object;)V";

/// By the letter of a descriptor.
fn of_primitives(kind: u8) -> Option<&'static str> {
    array_of(match kind {
        b'Z' => 4,
        b'C' => 5,
        b'F' => 6,
        b'D' => 7,
        b'B' => 8,
        b'S' => 9,
        b'I' => 10,
        b'J' => 11,
        _ => return None,
    })
}

/// Whether the method that holds such an instruction may allocate or call what does.
pub(crate) fn may_allocate(opcode: u8) -> bool {
    matches!(
        opcode,
        INVOKEVIRTUAL..=INVOKEDYNAMIC | NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY
    )
}

/// The operand of `newarray` (§6.5).
fn array_of(kind: u8) -> Option<&'static str> {
    Some(match kind {
        4 => "([Z)V",
        5 => "([C)V",
        6 => "([F)V",
        7 => "([D)V",
        8 => "([B)V",
        9 => "([S)V",
        10 => "([I)V",
        11 => "([J)V",
        _ => return None,
    })
}

/// Calls of native code, and of code that the compiler may replace: the object comes back.
fn is_allocating_call(opcode: u8, class: &[u8], name: &[u8], descriptor: &[u8]) -> bool {
    match (opcode, class, name) {
        (INVOKEVIRTUAL, [b'[', ..], b"clone") => true,
        (INVOKESPECIAL, b"java/lang/Object", b"clone") => true,
        (INVOKESTATIC, b"java/lang/reflect/Array", b"newArray") => true,
        (INVOKEVIRTUAL, b"jdk/internal/misc/Unsafe", b"allocateInstance") => {
            descriptor.ends_with(OBJECT_RESULT)
        }
        // Reflection before its methods are turned into bytecode or method handles.
        (
            INVOKESTATIC,
            b"jdk/internal/reflect/NativeConstructorAccessorImpl"
            | b"jdk/internal/reflect/DirectConstructorHandleAccessor$NativeAccessor",
            b"newInstance0",
        ) => true,
        _ => REPLACEABLE.iter().any(|(owner, method, with)| {
            (class, name, descriptor) == (owner.as_bytes(), method.as_bytes(), with.as_bytes())
        }),
    }
}

/// Methods whose bodies allocate what they return, and which the compiler may replace by code of its own.
const REPLACEABLE: [(&str, &str, &str); 4] = [
    (
        "java/util/Arrays",
        "copyOf",
        "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;",
    ),
    (
        "java/util/Arrays",
        "copyOfRange",
        "([Ljava/lang/Object;IILjava/lang/Class;)[Ljava/lang/Object;",
    ),
    (
        "jdk/internal/misc/Unsafe",
        "allocateUninitializedArray0",
        "(Ljava/lang/Class;I)Ljava/lang/Object;",
    ),
    ("java/lang/StringUTF16", "toBytes", "([CII)[B"),
];

/// Whether it is one of those.
pub(crate) fn is_replaceable(class: &[u8], method: &Method<'_>) -> bool {
    REPLACEABLE.iter().any(|(owner, name, descriptor)| {
        class == owner.as_bytes()
            && method.name() == name.as_bytes()
            && method.descriptor() == descriptor.as_bytes()
    })
}

/// Inserts the calls that single classes of the JDK need beside: for their threads, scopes and trees of arrays.
pub(crate) fn of_the_jdk(
    class: &ClassFile<'_>,
    method: &Method<'_>,
    code: &Code<'_>,
    edit: &mut MethodEdit,
) -> Result<(), RewriteError> {
    let with_thread = |name| {
        let this = Snippet::new().load_reference(0);
        this.invoke_static(COUNTER, name, "(Ljava/lang/Thread;)V")
    };
    let mut before_returns = |snippet: Snippet| {
        for instruction in code.instructions().filter(|found| found.is_return()) {
            edit.before(instruction.offset, snippet.clone());
        }
    };
    match (class.name(), method.name()) {
        (b"java/lang/Thread", b"setContextClassLoader") => before_returns(with_thread("changed")?),
        (b"java/lang/VirtualThread", b"mount") => before_returns(with_thread("mounted")?),
        (b"dev/heapwarden/agent/Cell", b"push" | b"pop") => {
            before_returns(Snippet::new().invoke_static(COUNTER, "changed", "()V")?);
        }
        (b"java/lang/Thread", b"<init>") => {
            for instruction in code.instructions().filter(|found| found.opcode == PUTFIELD) {
                let field = class.pool().member(instruction.constant().unwrap_or(0))?;
                if matches!(field.name, b"interruptLock" | b"blockerLock") {
                    edit.after(instruction.offset, with_thread("adopt")?);
                }
            }
        }
        (b"java/lang/reflect/Array", b"newInstance") => {
            for instruction in code
                .instructions()
                .filter(|found| found.opcode == INVOKESTATIC)
            {
                let called = class.pool().member(instruction.constant().unwrap_or(0))?;
                if called.name == b"multiNewArray" {
                    // The array of dimensions is the second argument.
                    let snippet = Snippet::new().duplicate().load_reference(1);
                    let descriptor = "(Ljava/lang/Object;[I)V";
                    let snippet = snippet.invoke_static(COUNTER, "madeMany", descriptor)?;
                    edit.after(instruction.offset, snippet);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_the_names_that_the_jvm_gives_them() {
        assert_eq!(array_of_references(b"com/acme/Cart"), b"[Lcom/acme/Cart;");
        assert_eq!(array_of_references(b"[I"), b"[[I");
        assert_eq!(array_of_references(b"[La/B;"), b"[[La/B;");
    }
}
