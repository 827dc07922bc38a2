//! The question, inserted at the entry of a server's method. Which methods, `servers` declares.

use policy_rewrite::{ClassFile, Guard, MethodEdit, RewriteError, Rewriter, Snippet};

use crate::servers::Point;

/// The class that is asked, whose copies have names of their own: an application may have several servers among its
/// libraries, in one loader.
const GUARD: policy_jvm::ClassFile = policy_jvm::ClassFile::new(
    "dev/heapwarden/door/Guard",
    include_bytes!("../../java/classes/dev/heapwarden/door/Guard.class"),
);

/// The flag of a static method, §4.6.
const ACC_STATIC: u16 = 0x0008;

/// Why the question cannot be inserted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotInserted {
    /// The class has no such method.
    #[error("its {class} has no method {method} with the parameters that are known")]
    NoMethod {
        /// The class, in source form.
        class: String,
        /// The method.
        method: &'static str,
    },
    /// The class file is not understood, or has no room.
    #[error("its class file: {0}")]
    ClassFile(#[from] RewriteError),
}

impl Point {
    /// The class that is asked: its internal name, and its file. Pure.
    ///
    /// # Errors
    /// As [`NotInserted`] says: never, for the files that there are.
    pub(super) fn guard(&self) -> Result<(String, Vec<u8>), NotInserted> {
        let name = self.guard_name();
        let file = ClassFile::parse(GUARD.bytes())?.renamed(&name)?;
        Ok((name, file))
    }

    fn guard_name(&self) -> String {
        let door = self.door.name();
        let door = door.rsplit('/').next().unwrap_or(door);
        format!("{}Of{door}", GUARD.name())
    }

    /// The class file with the question inserted. Pure.
    ///
    /// # Errors
    /// As [`NotInserted`] says; the class is then left alone.
    pub(super) fn insert(&self, file: &[u8]) -> Result<Vec<u8>, NotInserted> {
        let missing = || NotInserted::NoMethod {
            class: crate::identity::names::java_name(self.class),
            method: self.method,
        };
        let class = ClassFile::parse(file)?;
        let method = class.methods().iter().find(|method| {
            method.name() == self.method.as_bytes()
                && method.access_flags() & ACC_STATIC == 0
                && (self.descriptors.iter()).any(|known| known.as_bytes() == method.descriptor())
        });
        let method = method.ok_or_else(missing)?;
        let mut edit = MethodEdit::default();
        edit.guard(Guard {
            ask: self.question()?,
            leave: self.leave,
        });
        let mut rewriter = Rewriter::new(&class);
        rewriter.edit(method, &edit)?;
        rewriter.finish().ok_or_else(missing)
    }

    /// `Guard.isShut(...)`.
    fn question(&self) -> Result<Snippet, RewriteError> {
        let mut ask = Snippet::new();
        for &local in self.loads {
            ask = ask.load_reference(local);
        }
        let objects = "Ljava/lang/Object;".repeat(self.loads.len());
        ask.invoke_static(&self.guard_name(), "isShut", &format!("({objects})Z"))
    }
}

#[cfg(test)]
mod tests {
    use policy_rewrite::Leave;

    use super::*;

    const ALOAD: u8 = 0x19;
    const INVOKESTATIC: u8 = 0xb8;
    const IFEQ: u8 = 0x99;

    /// Points in classes of our own, with results of each kind.
    fn ours() -> [(Point, &'static [u8]); 3] {
        let leaving_true = Point {
            method: "wants",
            descriptors: &["(I)V", "(Ljava/lang/String;Ljava/lang/String;)Z"],
            loads: &[0, 1, 2],
            ..some_point()
        };
        let leaving = Point {
            method: "settle",
            descriptors: &["(Ljava/lang/String;)V"],
            loads: &[0, 1],
            leave: Leave::Returning,
            ..some_point()
        };
        let class =
            include_bytes!("../../java/classes/dev/heapwarden/agent/Subscription.class").as_slice();
        let leaving_two = Point {
            method: "hashCode",
            descriptors: &["()I"],
            loads: &[0],
            leave: Leave::ReturningInt(2),
            ..some_point()
        };
        let key =
            include_bytes!("../../java/classes/dev/heapwarden/agent/LoaderKey.class").as_slice();
        [(leaving_true, class), (leaving, class), (leaving_two, key)]
    }

    fn some_point() -> Point {
        Point {
            name: "Ours",
            class: "Ldev/heapwarden/agent/Subscription;",
            method: "",
            descriptors: &[],
            loads: &[],
            leave: Leave::ReturningBoolean(true),
            door: GUARD,
            fork: None,
            needs: None,
        }
    }

    #[test]
    fn the_question_stands_at_the_entry_and_only_there() {
        for (point, file) in ours() {
            let inserted = point.insert(file).unwrap();
            let (before, after) = (
                ClassFile::parse(file).unwrap(),
                ClassFile::parse(&inserted).unwrap(),
            );
            for (old, new) in before.methods().iter().zip(after.methods()) {
                let opcodes = |method: &policy_rewrite::Method<'_>| -> Vec<u8> {
                    let code = method.code().unwrap();
                    let code = code.iter().flat_map(|code| code.instructions());
                    code.map(|instruction| instruction.opcode).collect()
                };
                let (old_code, new_code) = (opcodes(old), opcodes(new));
                if new.name() != point.method.as_bytes() {
                    assert_eq!(old_code, new_code);
                    continue;
                }
                let mut expected = vec![ALOAD; point.loads.len()];
                expected.extend([INVOKESTATIC, IFEQ]);
                assert!(new_code.starts_with(&expected), "{new_code:x?}");
                assert!(new_code.ends_with(&old_code));
            }
            let guard = point.guard_name();
            assert!(inserted.windows(guard.len()).any(|w| w == guard.as_bytes()));
        }
    }

    #[test]
    fn each_door_is_asked_by_a_class_of_its_own_which_has_the_question() {
        let mut names = std::collections::BTreeSet::new();
        for (_, point) in crate::servers::points() {
            let (name, file) = point.guard().unwrap();
            let class = ClassFile::parse(&file).unwrap();
            assert_eq!(class.name(), name.as_bytes());
            let objects = "Ljava/lang/Object;".repeat(point.loads.len());
            let question = format!("({objects})Z");
            let mut methods = class.methods().iter();
            assert!(
                methods.any(|method| method.name() == b"isShut"
                    && method.descriptor() == question.as_bytes())
            );
            assert!(names.insert(name));
        }
    }

    #[test]
    fn a_class_of_another_release_is_left_alone_with_a_reason() {
        let [(mut point, file), ..] = ours();
        point.descriptors = &["(Ljava/lang/String;)Z"];
        let why = point.insert(file).unwrap_err().to_string();
        assert_eq!(
            why,
            "its dev.heapwarden.agent.Subscription has no method wants with the parameters that are known"
        );
        let why = point.insert(b"no class").unwrap_err().to_string();
        assert_eq!(why, "its class file: it is not a class file");
    }
}
