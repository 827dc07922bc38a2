//! The code of a door at a method: a bracket that asks at the entry and tells the end. Pure.

use policy_rewrite::{Bracket, ClassFile, Method, MethodEdit, RewriteError, Rewriter, Snippet};

/// The internal name of the class that is asked.
pub(super) const DOOR: &str = "java/lang/HeapwardenDoor";
const LEAVE: (&str, &str) = (DOOR, "leave");

/// The first number of a door. From here on, numbers have one form in bytecode, also where another agent has
/// written the method anew.
pub(super) const FIRST_NUMBER: i32 = 1_000;
/// The last one: the largest that has this form.
pub(super) const LAST_NUMBER: i32 = 32_767;

const SIPUSH: u8 = 0x11;
const INVOKESTATIC: u8 = 0xb8;

/// A door to be put at all methods of a name in one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The name of the methods.
    pub(super) method: String,
    /// The door's number, of [`FIRST_NUMBER`] to [`LAST_NUMBER`].
    pub(super) number: i32,
}

/// The result of an edit of a class file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edited {
    /// The new one; `None` if no method has got a door.
    pub(super) file: Option<Vec<u8>>,
    /// The names that no method with code has.
    pub(super) missing: Vec<String>,
    /// Methods that are left without a door, and why.
    pub(super) left: Vec<(String, RewriteError)>,
}

/// The class file with doors at all methods of these names that have code, but constructors and initialisers.
///
/// # Errors
/// If the class file is not understood.
pub(super) fn insert(file: &[u8], doors: &[Named]) -> Result<Edited, RewriteError> {
    let class = ClassFile::parse(file)?;
    let mut rewriter = Rewriter::new(&class);
    let mut edited = Edited::default();
    for door in doors {
        let mut is_there = false;
        for method in class.methods() {
            if !is_meant(method, &door.method) {
                continue;
            }
            is_there = true;
            let mut edit = MethodEdit::default();
            edit.bracket(bracket(door.number)?);
            if let Err(why) = rewriter.edit(method, &edit) {
                edited.left.push((door.method.clone(), why));
            }
        }
        if !is_there {
            edited.missing.push(door.method.clone());
        }
    }
    edited.file = rewriter.finish();
    Ok(edited)
}

fn is_meant(method: &Method<'_>, name: &str) -> bool {
    const WITHOUT_CODE: u16 = 0x0100 | 0x0400;
    !name.starts_with('<')
        && method.name() == name.as_bytes()
        && method.access_flags() & WITHOUT_CODE == 0
}

fn bracket(number: i32) -> Result<Bracket, RewriteError> {
    Ok(Bracket {
        enter: Snippet::new()
            .push_int(number)
            .invoke_static(DOOR, "enter", "(I)I")?,
        leave: LEAVE,
        counts_instructions: false,
        again: None,
        escapes: true,
    })
}

/// Whether the code of a method asks at the door of this number.
pub(super) fn asks(code: &[u8], number: i32) -> bool {
    let [.., high, low] = number.to_be_bytes();
    let call = [SIPUSH, high, low, INVOKESTATIC];
    code.windows(call.len()).any(|part| part == call)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] =
        include_bytes!("../../java/classes/dev/heapwarden/agent/Subscription.class");

    fn named(method: &str, number: i32) -> Named {
        let method = method.to_owned();
        Named { method, number }
    }

    fn codes(file: &[u8], name: &str) -> Vec<Vec<u8>> {
        let class = ClassFile::parse(file).unwrap();
        let methods = class.methods().iter();
        methods
            .filter(|method| method.name() == name.as_bytes())
            .map(|method| {
                let code = method.code().unwrap().expect("it has code");
                let instructions = code.instructions();
                instructions
                    .flat_map(|found| [&[found.opcode], found.operands].concat())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn all_methods_of_the_name_ask_before_anything_of_them_and_others_are_left_alone() {
        let doors = [named("wants", 1_000), named("settle", 1_001)];
        let edited = insert(FILE, &doors).unwrap();
        assert_eq!((edited.missing, edited.left), (vec![], vec![]));
        let file = edited.file.unwrap();
        for door in &doors {
            let codes = codes(&file, &door.method);
            assert!(!codes.is_empty());
            for code in codes {
                let [.., high, low] = door.number.to_be_bytes();
                assert!(code.starts_with(&[SIPUSH, high, low, INVOKESTATIC]));
                assert!(asks(&code, door.number) && !asks(&code, door.number + 7));
            }
        }
        assert_eq!(codes(&file, "deliver"), codes(FILE, "deliver"));
    }

    #[test]
    fn what_is_not_there_is_told_and_constructors_have_no_doors() {
        let edited = insert(FILE, &[named("absent", 1_000), named("<init>", 1_001)]).unwrap();
        assert_eq!(edited.missing, ["absent", "<init>"]);
        assert_eq!(edited.file, None);
        assert!(insert(b"no class", &[]).is_err());
    }

    #[test]
    fn numbers_have_one_form() {
        for number in [FIRST_NUMBER, LAST_NUMBER] {
            assert!(i16::try_from(number).is_ok() && i8::try_from(number).is_err());
        }
    }
}
