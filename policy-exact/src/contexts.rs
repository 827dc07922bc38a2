//! Contexts: the code that counts allocations by the path of calls that leads to them.
//!
//! Each method of the named packages in which anything may be counted (the module `quiet`) stands in a bracket: at its
//! entry the thread's place in the tree becomes that of the method beneath its caller, at its end what it was, also if
//! it ends with an exception. Only an exception that comes out of the constructor of a superclass runs no such end in
//! that of the class; so each handler of such a method makes its place anew.
//!
//! | behind | code | counts |
//! | --- | --- | --- |
//! | `new C` | `sipush type; made(int)` | an object of the type |
//! | `newarray`, `anewarray` | `dup; made(array)` | an array of its elements' type, and the elements |
//! | `multianewarray` | `dup; sipush dimensions; sipush type; made(array, int, int)` | all arrays that it makes, and their elements |
//!
//! References are one type of elements, as in the profiler JP, whose tuples these are. Nothing else is counted:
//! neither clones, nor what the JDK allocates for its callers.
//!
//! Where executed bytecodes are wanted, also quiet methods stand in a bracket unless they are small, and each method tells
//! at the end of its bracket how many of its own instructions it has run.

use policy_rewrite::{
    Again, Bracket, ClassFile, Code, ConstantPool, Instruction, Method, MethodEdit, RewriteError,
    Snippet,
};

use crate::sites::Allocation;

/// The class that counts, in the boot loader.
pub const CONTEXTS: &str = "java/lang/HeapwardenContexts";

/// The numbers of types of arrays, by their elements, beginning with 1; behind them come [`CALLS`] and those of
/// instances.
pub const ELEMENTS: [&str; 9] = [
    "boolean",
    "char",
    "float",
    "double",
    "byte",
    "short",
    "int",
    "long",
    "reference",
];
const REFERENCES: i32 = ELEMENTS.len() as i32;
/// Under this number stand the calls of a context that have ended, and the instructions that they have run.
pub const CALLS: i32 = REFERENCES + 1;

/// The numbers that the inserted code carries.
pub struct Contexts<'p> {
    /// Of a method of this class, by its name and descriptor.
    pub method: &'p mut dyn FnMut(&[u8], &[u8]) -> i32,
    /// Of a class that is instantiated, by its internal name: more than [`CALLS`].
    pub class: &'p mut dyn FnMut(&[u8]) -> i32,
    /// Whether executed bytecodes are counted.
    pub bytecodes: bool,
}

/// Adds to `edit` what a method needs.
pub(crate) fn count(
    class: &ClassFile<'_>,
    method: &Method<'_>,
    code: &Code<'_>,
    numbers: &mut Contexts<'_>,
    edit: &mut MethodEdit,
) -> Result<(), RewriteError> {
    for instruction in code.instructions() {
        if let Some(snippet) = behind(class.pool(), &instruction, numbers)? {
            edit.after(instruction.offset, snippet);
        }
    }
    let number = (numbers.method)(method.name(), method.descriptor());
    let enter = Snippet::new().push_int(number);
    edit.bracket(Bracket {
        enter: enter.invoke_static(CONTEXTS, "enter", "(I)I")?,
        leave: (CONTEXTS, "leave"),
        counts_instructions: numbers.bytecodes,
        again: Some(Again {
            method: (CONTEXTS, "again"),
            number,
        }),
        escapes: true,
    });
    Ok(())
}

fn behind(
    pool: &ConstantPool<'_>,
    instruction: &Instruction<'_>,
    numbers: &mut Contexts<'_>,
) -> Result<Option<Snippet>, RewriteError> {
    let Some(allocation) = Allocation::of(pool, instruction)? else {
        return Ok(None);
    };
    let (snippet, descriptor) = match allocation {
        Allocation::Instance { name } => {
            let snippet = Snippet::new().push_int((numbers.class)(name));
            (snippet, "(I)V")
        }
        Allocation::Array(descriptor) => (Snippet::new().duplicate(), descriptor),
        Allocation::Arrays { name, dimensions } => {
            let snippet = Snippet::new().duplicate().push_int(dimensions);
            let snippet = snippet.push_int(last(name, dimensions));
            (snippet, "([Ljava/lang/Object;II)V")
        }
    };
    snippet
        .invoke_static(CONTEXTS, "made", descriptor)
        .map(Some)
}

/// The type of the arrays in the last of so many dimensions of an array with this name.
fn last(name: &[u8], dimensions: i32) -> i32 {
    let element = name.get(dimensions as usize..).unwrap_or_default();
    let number = match element {
        b"Z" => 1,
        b"C" => 2,
        b"F" => 3,
        b"D" => 4,
        b"B" => 5,
        b"S" => 6,
        b"I" => 7,
        b"J" => 8,
        _ => REFERENCES,
    };
    debug_assert!(number <= REFERENCES);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dimension_of_numbers_has_a_type_of_its_own() {
        for (name, dimensions, expected) in [
            (&b"[[[I"[..], 3, "int"),
            (b"[[[I", 2, "reference"),
            (b"[[Z", 2, "boolean"),
            (b"[[Ljava/lang/Object;", 2, "reference"),
            (b"[[LI;", 2, "reference"),
            (b"[J", 1, "long"),
        ] {
            let number = last(name, dimensions);
            assert_eq!(ELEMENTS[number as usize - 1], expected);
        }
    }
}
