//! The inserted code and its places, in small classes that are made here. That the JVM takes the result, and that it
//! counts right, the tests with a JVM show (`class_rewriting`, `exact_accounts`).

mod contexts;
mod quiet;

use super::*;

const PUBLIC_STATIC: u16 = 0x0009;
/// Such a method has no code.
const NATIVE: u16 = 0x0100;
const RETURN: u8 = 0xb1;
const ARETURN: u8 = 0xb0;
const ACONST_NULL: u8 = 0x01;
const ALOAD_0: u8 = 0x2a;
const POP: u8 = 0x57;
const ICONST_2: u8 = 0x05;
const ATHROW: u8 = 0xbf;

/// A class file with a method, and others that were begun before it.
struct Class {
    name: &'static str,
    version: u16,
    method: (&'static str, &'static str),
    access_flags: u16,
    others: Vec<Other>,
    constants: Vec<Vec<u8>>,
    code: Vec<u8>,
    /// Start, end and handler.
    handlers: Vec<[u16; 3]>,
}

/// A method's access flags, name, descriptor and code.
type Other = (u16, &'static str, &'static str, Vec<u8>);

impl Class {
    fn named(name: &'static str) -> Class {
        Class {
            name,
            // Without stack maps.
            version: 49,
            method: ("run", "()V"),
            access_flags: PUBLIC_STATIC,
            others: Vec::new(),
            constants: Vec::new(),
            code: Vec::new(),
            handlers: Vec::new(),
        }
    }

    fn method(mut self, name: &'static str, descriptor: &'static str) -> Class {
        self.method = (name, descriptor);
        self
    }

    fn access_flags(mut self, flags: u16) -> Class {
        self.access_flags = flags;
        self
    }

    /// The method is done, and another begins. It has no handlers.
    fn and(mut self) -> Class {
        assert!(self.handlers.is_empty());
        let code = std::mem::take(&mut self.code);
        let (name, descriptor) = self.method;
        self.others
            .push((self.access_flags, name, descriptor, code));
        self
    }

    fn constant(&mut self, bytes: Vec<u8>) -> u16 {
        self.constants.push(bytes);
        self.constants.len() as u16
    }

    fn text(&mut self, text: &str) -> u16 {
        let mut bytes = vec![1];
        bytes.extend((text.len() as u16).to_be_bytes());
        bytes.extend(text.as_bytes());
        self.constant(bytes)
    }

    fn pair(&mut self, tag: u8, first: u16, second: u16) -> u16 {
        let mut bytes = vec![tag];
        bytes.extend(first.to_be_bytes());
        bytes.extend(second.to_be_bytes());
        self.constant(bytes)
    }

    fn class(&mut self, name: &str) -> u16 {
        let name = self.text(name);
        let mut bytes = vec![7];
        bytes.extend(name.to_be_bytes());
        self.constant(bytes)
    }

    /// A constant of a method (tag 10) or a field (9).
    fn member(&mut self, tag: u8, class: &str, name: &str, descriptor: &str) -> u16 {
        let class = self.class(class);
        let (name, descriptor) = (self.text(name), self.text(descriptor));
        let name_and_type = self.pair(12, name, descriptor);
        self.pair(tag, class, name_and_type)
    }

    fn byte(mut self, byte: u8) -> Class {
        self.code.push(byte);
        self
    }

    fn with_index(mut self, opcode: u8, index: u16) -> Class {
        self.code.push(opcode);
        self.code.extend(index.to_be_bytes());
        self
    }

    fn new_instance(mut self, class: &str) -> Class {
        let index = self.class(class);
        self.with_index(0xbb, index)
    }

    fn call(mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> Class {
        let index = self.member(10, class, name, descriptor);
        self.with_index(opcode, index)
    }

    fn bytes(mut self) -> Vec<u8> {
        let this = self.class(self.name);
        let above = self.class("java/lang/Object");
        let code_name = self.text("Code");
        let mut methods = std::mem::take(&mut self.others);
        let code = std::mem::take(&mut self.code);
        methods.push((self.access_flags, self.method.0, self.method.1, code));
        let names: Vec<[u16; 2]> = (methods.iter())
            .map(|(_, name, descriptor, _)| [self.text(name), self.text(descriptor)])
            .collect();
        let put = |bytes: &mut Vec<u8>, values: &[u16]| {
            bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        };
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0];
        put(&mut bytes, &[self.version, self.constants.len() as u16 + 1]);
        bytes.extend(self.constants.concat());
        put(&mut bytes, &[PUBLIC_STATIC, this, above, 0, 0]);
        put(&mut bytes, &[methods.len() as u16]);
        let last = methods.len() - 1;
        for (at, ((flags, _, _, code), [name, descriptor])) in methods.iter().zip(names).enumerate()
        {
            let handlers: &[_] = if at == last { &self.handlers } else { &[] };
            if flags & NATIVE != 0 {
                put(&mut bytes, &[*flags, name, descriptor, 0]);
                continue;
            }
            put(&mut bytes, &[*flags, name, descriptor, 1, code_name]);
            let length = 12 + code.len() + 8 * handlers.len();
            bytes.extend((length as u32).to_be_bytes());
            put(&mut bytes, &[4, 4]);
            bytes.extend((code.len() as u32).to_be_bytes());
            bytes.extend(code);
            put(&mut bytes, &[handlers.len() as u16]);
            for [start, end, handler] in handlers {
                put(&mut bytes, &[*start, *end, *handler, 0]);
            }
            put(&mut bytes, &[0]);
        }
        // The class has no attributes.
        put(&mut bytes, &[0]);
        bytes
    }

    /// Returns the method's instructions after the rewriting, `None` if nothing was inserted, and the reasons for what
    /// was left.
    fn rewritten(self, account: Option<i32>, numbers: &[&str]) -> (Option<Vec<String>>, Vec<Left>) {
        let bytes = self.bytes();
        let mut plan = Plan {
            account,
            number: &mut |class| {
                let at = numbers.iter().position(|name| name.as_bytes() == class);
                at.map(|at| at as i32)
            },
            accounts: true,
            contexts: None,
        };
        let Outcome { bytes, left } = rewrite(&bytes, &mut plan);
        (bytes.map(|bytes| shown(&bytes)), left)
    }
}

/// The instructions of the one method: calls of the counter by their names, all others by their opcodes.
fn shown(bytes: &[u8]) -> Vec<String> {
    let class = ClassFile::parse(bytes).expect("a class file");
    let code = class.methods()[0].code().expect("understood");
    (code.expect("it has code").instructions())
        .map(|instruction| {
            let called = match instruction.opcode {
                0xb8 => class
                    .pool()
                    .member(instruction.constant().unwrap_or(0))
                    .ok(),
                _ => None,
            };
            match called.filter(|member| member.class == COUNTER.as_bytes()) {
                Some(member) => [member.name, member.descriptor]
                    .map(String::from_utf8_lossy)
                    .concat(),
                None => format!("{:02x}", instruction.opcode),
            }
        })
        .collect()
}

/// Returns the calls of the counter among these instructions.
fn calls(shown: &[String]) -> Vec<&str> {
    let is_call = |instruction: &&str| instruction.len() > 2;
    shown.iter().map(String::as_str).filter(is_call).collect()
}

#[test]
fn a_new_instance_is_counted_by_the_number_of_its_class() {
    let class = Class::named("a/B")
        .new_instance("a/C")
        .byte(POP)
        .new_instance("a/D")
        .byte(POP)
        .byte(RETURN);
    let (found, left) = class.rewritten(None, &["a/C", "a/D"]);
    let found = found.expect("it is rewritten");
    let made = "made(Ljava/lang/Class;I)V";
    // The class constant is pushed by either form of `ldc`.
    assert_eq!(calls(&found), [made, made]);
    let at = found.iter().position(|shown| shown == made).expect("there");
    assert_eq!(found[0], "bb");
    assert!(["12", "13"].contains(&found[1].as_str()), "{found:?}");
    assert_eq!(&found[at + 1..][..2], ["57", "bb"]);
    assert_eq!(left, []);
}

#[test]
fn a_class_without_a_number_is_told_and_the_others_are_counted() {
    let class = Class::named("a/B")
        .new_instance("a/C")
        .byte(POP)
        .new_instance("a/E")
        .byte(POP)
        .new_instance("a/F")
        .byte(POP)
        .byte(RETURN);
    let (found, left) = class.rewritten(None, &["a/C"]);
    assert_eq!(calls(&found.expect("it is rewritten")).len(), 1);
    assert_eq!(left, [Left::NoNumber]);
}

#[test]
fn arrays_are_counted_by_their_kind() {
    let kinds = [
        (4, "[Z"),
        (5, "[C"),
        (6, "[F"),
        (7, "[D"),
        (8, "[B"),
        (9, "[S"),
        (10, "[I"),
        (11, "[J"),
    ];
    for (kind, descriptor) in kinds {
        let class = Class::named("a/B")
            .byte(ICONST_2)
            .byte(0xbc)
            .byte(kind)
            .byte(ARETURN)
            .method("run", "()Ljava/lang/Object;");
        let (found, _) = class.rewritten(None, &[]);
        let made = format!("made({descriptor})V");
        let expected = ["05", "bc", "59", made.as_str(), "b0"];
        assert_eq!(found.expect("it is rewritten"), expected);
    }
    let mut class = Class::named("a/B").byte(ICONST_2);
    let index = class.class("a/C");
    let class = class.with_index(0xbd, index).byte(POP).byte(RETURN);
    let (found, _) = class.rewritten(None, &[]);
    let made = "made([Ljava/lang/Object;I)V";
    let expected = ["05", "bd", "59", "11", made, "57", "b1"];
    assert_eq!(found.expect("it is rewritten"), expected);
}

#[test]
fn a_tree_of_arrays_is_counted_with_its_dimensions() {
    let of = |dimensions: u8, descriptor: &str| {
        let mut class = Class::named("a/B").byte(ICONST_2).byte(ICONST_2);
        let index = class.class(descriptor);
        let class = class.with_index(0xc5, index).byte(dimensions).byte(POP);
        let (found, _) = class.byte(RETURN).rewritten(None, &[]);
        let found = found.expect("it is rewritten");
        calls(&found).join(" ")
    };
    assert_eq!(of(2, "[[I"), "madeNested([Ljava/lang/Object;I)V");
    // It may be of numbers, of which no reference is taken for an array of objects.
    assert_eq!(of(1, "[I"), "madeObject(Ljava/lang/Object;)V");
}

#[test]
fn calls_of_code_that_allocates_out_of_sight_are_counted_where_they_return() {
    let counted = |opcode, class, name, descriptor| {
        let class = Class::named("a/B")
            .byte(ALOAD_0)
            .call(opcode, class, name, descriptor)
            .byte(POP)
            .byte(RETURN)
            .method("run", "(Ljava/lang/Object;)V");
        let (found, _) = class.rewritten(None, &[]);
        found.is_some_and(|found| calls(&found) == ["madeObject(Ljava/lang/Object;)V"])
    };
    let clone = "()Ljava/lang/Object;";
    assert!(counted(0xb6, "[I", "clone", clone));
    assert!(counted(0xb6, "[Ljava/lang/String;", "clone", clone));
    assert!(counted(0xb7, "java/lang/Object", "clone", clone));
    // The class counts for itself.
    assert!(!counted(0xb6, "a/C", "clone", clone));
    let copy = "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;";
    assert!(counted(0xb8, "java/util/Arrays", "copyOf", copy));
    assert!(!counted(0xb8, "java/util/Arrays", "copyOf", "([II)[I"));
}

#[test]
fn a_method_that_the_compiler_may_replace_takes_back_what_its_body_counted() {
    let copy = "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;";
    let mut class = Class::named("java/util/Arrays")
        .method("copyOf", copy)
        .byte(ICONST_2);
    let index = class.class("java/lang/Object");
    let class = class.with_index(0xbd, index).byte(ARETURN);
    let (found, _) = class.rewritten(None, &[]);
    let expected = [
        "05",
        "bd",
        "59",
        "11",
        "made([Ljava/lang/Object;I)V",
        "59",
        "takeBack(Ljava/lang/Object;)V",
        "b0",
    ];
    assert_eq!(found.expect("it is rewritten"), expected);
}

#[test]
fn code_of_an_account_stands_in_a_bracket() {
    let class = Class::named("a/B")
        .new_instance("a/C")
        .byte(POP)
        .byte(RETURN)
        .rewritten(Some(7), &["a/C"]);
    let found = class.0.expect("it is rewritten");
    let expected = ["enter(I)I", "made(Ljava/lang/Class;I)V", "leave(I)V"];
    assert_eq!(calls(&found), expected);
    assert_eq!(found.last().map(String::as_str), Some("b1"));
}

#[test]
fn a_handler_makes_the_account_its_own_again() {
    let mut class = Class::named("a/B")
        .new_instance("a/C")
        .byte(POP)
        .byte(RETURN)
        // The handler.
        .byte(POP)
        .byte(RETURN);
    class.handlers.push([0, 4, 5]);
    let found = class
        .rewritten(Some(7), &["a/C"])
        .0
        .expect("it is rewritten");
    let expected = [
        "enter(I)I",
        "made(Ljava/lang/Class;I)V",
        "leave(I)V",
        "again(I)V",
        "leave(I)V",
    ];
    assert_eq!(calls(&found), expected);
    // Before the handler's own first instruction.
    let again = found.iter().position(|shown| shown == "again(I)V");
    assert_eq!(found[again.expect("there") + 1], "57");
}

#[test]
fn a_method_that_ends_with_an_exception_has_no_end_of_its_bracket() {
    let class = Class::named("a/B")
        .byte(ACONST_NULL)
        .call(0xb8, "a/C", "call", "()V")
        .byte(ATHROW);
    let found = class.rewritten(Some(7), &[]).0.expect("it is rewritten");
    assert_eq!(calls(&found), ["enter(I)I"]);
}

#[test]
fn what_neither_allocates_nor_calls_is_left_as_it_is() {
    let class = Class::named("a/B").byte(ACONST_NULL).byte(POP).byte(RETURN);
    assert_eq!(class.rewritten(Some(7), &[]), (None, vec![]));
    let class = Class::named("a/B")
        .call(0xb8, "a/C", "call", "()V")
        .byte(RETURN);
    assert_eq!(class.rewritten(None, &[]), (None, vec![]));
}

#[test]
fn some_classes_are_left_alone_and_told() {
    let allocating = |name| {
        Class::named(name)
            .new_instance("a/C")
            .byte(POP)
            .byte(RETURN)
    };
    let mut old = allocating("a/B");
    old.version = 48;
    assert_eq!(old.rewritten(None, &["a/C"]), (None, vec![Left::Old]));
    for machinery in ["java/lang/VirtualThread", "jdk/internal/vm/Continuation"] {
        let found = allocating(machinery).rewritten(Some(1), &["a/C"]);
        assert_eq!(found, (None, vec![Left::ThreadMachinery]));
    }
    for ours in [
        COUNTER,
        "dev/heapwarden/agent/Bridge",
        "dev/heapwarden/door/Guard",
    ] {
        assert_eq!(allocating(ours).rewritten(None, &["a/C"]), (None, vec![]));
    }
    let mut plan = Plan {
        account: None,
        number: &mut |_| None,
        accounts: true,
        contexts: None,
    };
    let Outcome { bytes, left } = rewrite(b"no class file", &mut plan);
    assert!(bytes.is_none());
    assert!(matches!(left[..], [Left::Refused(_)]), "{left:?}");
}

#[test]
fn what_decides_on_a_threads_account_tells_the_counter() {
    let of = |class: Class| {
        let found = class.rewritten(None, &[]).0.expect("it is rewritten");
        calls(&found).join(" ")
    };
    let class = Class::named("java/lang/Thread")
        .byte(RETURN)
        .method("setContextClassLoader", "(Ljava/lang/ClassLoader;)V");
    assert_eq!(of(class), "changed(Ljava/lang/Thread;)V");
    let class = Class::named("java/lang/VirtualThread")
        .byte(RETURN)
        .method("mount", "()V");
    assert_eq!(of(class), "mounted(Ljava/lang/Thread;)V");
    for method in ["push", "pop"] {
        let class = Class::named("dev/heapwarden/agent/Cell")
            .byte(RETURN)
            .method(method, "()V");
        assert_eq!(of(class), "changed()V");
    }
    for lock in ["interruptLock", "blockerLock"] {
        let mut class = Class::named("java/lang/Thread")
            .byte(ALOAD_0)
            .byte(ACONST_NULL);
        let field = class.member(9, "java/lang/Thread", lock, "Ljava/lang/Object;");
        let class = class
            .with_index(0xb5, field)
            .byte(RETURN)
            .method("<init>", "()V");
        assert_eq!(of(class), "adopt(Ljava/lang/Thread;)V");
    }
}
