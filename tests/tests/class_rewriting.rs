//! The class rewriter against every class of the JDK's base and compiler: two libraries for class files,
//! HotSpot's verifier, and a compiler that was rewritten itself are the judges.

use heapwarden_tests::fixture::files_below;
use heapwarden_tests::jdk::{JAVAC, Jdk, every_jdk, every_jdk_for, is_long, newest};
use heapwarden_tests::{artifacts, command, java, libraries};
use policy_exact::{Contexts, Left, Plan};
use policy_rewrite::{
    Again, Bracket, ClassFile, Guard, Leave, MethodEdit, RewriteError, Rewriter, Snippet,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const MODULES: [&str; 2] = ["java.base", "jdk.compiler"];
const NEW: u8 = 0xbb;
const ARRAYS: [u8; 3] = [0xbc, 0xbd, 0xc5];
const CALLS: [u8; 2] = [0xb6, 0xb9];

fn class_files(jdk: &Jdk, flags: &[&str], arguments: &[&Path]) -> String {
    class_files_with(jdk, &[], flags, arguments)
}

/// With these jars on the class path too.
fn class_files_with(jdk: &Jdk, jars: &[PathBuf], flags: &[&str], arguments: &[&Path]) -> String {
    let victims = java::classes().victims();
    let class_path = [&[victims], jars].concat();
    let class_path = std::env::join_paths(class_path).expect("no colon in them");
    let finished = command::run(
        Command::new(jdk.program("java"))
            .args(flags)
            .arg("-cp")
            .arg(class_path)
            .arg("victim.ClassFiles")
            .args(arguments),
        LIMIT,
    );
    assert!(finished.status.success(), "{jdk}: {finished:?}");
    finished.stdout
}

/// How many of what was inserted, and which methods were not understood or had no room.
#[derive(Debug, Default)]
struct Inserted {
    guards: usize,
    brackets: usize,
    snippets: usize,
    refused: Vec<String>,
}

fn call(name: &str, descriptor: &str, pushed: Snippet) -> Snippet {
    let called = pushed.invoke_static("java/lang/RewriteMark", name, descriptor);
    called.expect("the descriptor fits")
}

/// A class with all that can be inserted: a guard at each entry or a bracket around the method, a mark before each call of an instance
/// method, a mark after each `new`, and one after each new array that looks at it.
fn rewrite(bytes: &[u8], inserted: &mut Inserted) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).unwrap_or_else(|error| panic!("{error}"));
    let mut rewriter = Rewriter::new(&class);
    let mark = call("mark", "()V", Snippet::new());
    let made = call("made", "(Ljava/lang/Object;)V", Snippet::new().duplicate());
    for method in class.methods() {
        let code = method.code().unwrap_or_else(|error| panic!("{error}"));
        let Some(code) = code else { continue };
        let mut edit = MethodEdit::default();
        let mut snippets = 0;
        for instruction in code.instructions() {
            snippets += 1;
            match instruction.opcode {
                NEW => edit.after(instruction.offset, mark.clone()),
                opcode if ARRAYS.contains(&opcode) => edit.after(instruction.offset, made.clone()),
                opcode if CALLS.contains(&opcode) => edit.before(instruction.offset, mark.clone()),
                _ => snippets -= 1,
            }
        }
        // Methods with names of an odd length stand in brackets too, initialisers and constructors among others.
        let leave = match method.descriptor() {
            _ if method.name().starts_with(b"<") || method.name().len() % 2 == 1 => None,
            descriptor if descriptor.ends_with(b")V") => Some(Leave::Returning),
            descriptor if descriptor.ends_with(b")Z") => Some(Leave::ReturningBoolean(true)),
            _ => None,
        };
        if let Some(leave) = leave {
            let ask = call("leaves", "()Z", Snippet::new());
            edit.guard(Guard { ask, leave });
        }
        let is_bracketed = leave.is_none();
        if is_bracketed {
            let enter = call("enter", "()I", Snippet::new());
            let leave = ("java/lang/RewriteMark", "leave");
            // One that counts instructions, and runs where handlers begin and exceptions leave; and one within it
            // that does not.
            let again = Again {
                method: ("java/lang/RewriteMark", "again"),
                number: 1_000_000,
            };
            edit.bracket(Bracket {
                enter: enter.clone(),
                leave,
                counts_instructions: true,
                again: Some(again),
                escapes: true,
            });
            edit.bracket(Bracket {
                enter,
                leave,
                counts_instructions: false,
                again: None,
                escapes: false,
            });
        }
        match rewriter.edit(method, &edit) {
            Ok(()) => {
                inserted.brackets += usize::from(is_bracketed);
                inserted.guards += usize::from(leave.is_some());
                inserted.snippets += snippets;
            }
            Err(RewriteError::MethodTooLong) => {
                let [class, method] = [class.name(), method.name()].map(String::from_utf8_lossy);
                inserted.refused.push(format!("{class}.{method}"));
            }
            Err(error) => panic!("{}: {error}", String::from_utf8_lossy(class.name())),
        }
    }
    rewriter.finish()
}

/// Compiles the class that every rewritten one calls into the patch of `java.base`.
fn compile_mark(jdk: &Jdk, into: &Path) {
    let sources = artifacts::repository().join("tests/rewriting");
    let patch = format!("java.base={}", sources.display());
    let compiled = command::run(
        Command::new(jdk.program("javac"))
            .args(["-Xlint:all", "-Werror", "--patch-module", &patch, "-d"])
            .arg(into)
            .arg(sources.join("java/lang/RewriteMark.java")),
        LIMIT,
    );
    assert!(compiled.status.success(), "{jdk}: {}", compiled.stderr);
}

#[test]
fn every_class_of_the_jdk_works_as_before_with_insertions_everywhere() {
    const TEST: &str = "every_class_of_the_jdk_works_as_before_with_insertions_everywhere";
    for jdk in every_jdk_for(TEST, JAVAC) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [plain, patches] = ["plain", "patches"].map(|name| folder.path().join(name));
        let modules = MODULES.map(Path::new);
        class_files(
            jdk,
            &[],
            &[&[Path::new("dump"), &plain], &modules[..]].concat(),
        );

        let mut inserted = Inserted::default();
        let classes = files_below(&plain);
        assert!(classes.len() > 7_000, "{jdk}: {} classes", classes.len());
        for (name, path) in &classes {
            let bytes = std::fs::read(path).expect("readable");
            let rewritten = rewrite(&bytes, &mut inserted);
            let to = patches.join(name);
            std::fs::create_dir_all(to.parent().expect("it has one")).expect("writable");
            std::fs::write(to, rewritten.as_ref().unwrap_or(&bytes)).expect("writable");
        }
        eprintln!("{jdk}: {} classes, {inserted:?}", classes.len());
        assert!(
            inserted.guards > 8_000 && inserted.brackets > 40_000 && inserted.snippets > 100_000,
            "{jdk}"
        );
        // Tables of characters and time zones in code are as long as code may be.
        assert!(inserted.refused.len() < 20, "{jdk}: {:?}", inserted.refused);
        assert_verified(jdk, &[], &patches, &plain, 7_000);
        // HotSpot runs code of these while it is not far enough up to call another class's methods.
        for early in ["java/lang", "jdk/internal"] {
            std::fs::remove_dir_all(patches.join("java.base").join(early)).expect("it was written");
        }
        compile_mark(jdk, &patches.join("java.base"));
        assert_same_compiler(jdk, folder.path(), &patches);
    }
}

/// A library for class files that knows nothing of ours finds no error.
fn assert_verified(jdk: &Jdk, jars: &[PathBuf], patches: &Path, plain: &Path, least: u64) {
    let asm = ["org.objectweb.asm", "org.objectweb.asm.util"]
        .map(|package| format!("--add-exports=java.base/jdk.internal.{package}=ALL-UNNAMED"));
    // The library that is public from JDK 24 on needs no flag.
    let mut flags: Vec<&str> = match jdk.feature {
        ..24 => asm.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    flags.push("--add-modules=ALL-SYSTEM");
    let arguments = [Path::new("verify"), patches, plain];
    let found = class_files_with(jdk, jars, &flags, &arguments);
    eprintln!("{jdk}: {found}");
    assert!(!found.contains("error"), "{jdk}: {found}");
    let (judged, not) = (count(&found, "judged"), count(&found, "not"));
    // Some classes of the JDK's own it does not take as they are.
    assert!(judged > least && not < judged / 20, "{jdk}: {found}");
}

/// The number behind a word at the start of a line.
fn count(told: &str, what: &str) -> u64 {
    let line = told.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or_else(|| panic!("{told}"))
}

/// Compiles the sources of the victims.
fn compile_victims(jdk: &Jdk, flags: &[&str], into: &Path) -> String {
    let sources = artifacts::repository().join("tests/java/victim");
    let sources: Vec<PathBuf> = files_below(&sources).into_values().collect();
    let boot = artifacts::repository().join("policy-agent/java/classes");
    let parts = [java::classes().victims(), boot].map(|part| part.display().to_string());
    let class_path = PathBuf::from(parts.join(":"));
    let mut arguments = vec![Path::new("compile"), &class_path, into];
    arguments.extend(sources.iter().map(PathBuf::as_path));
    class_files(jdk, flags, &arguments)
}

fn assert_same_files(jdk: &Jdk, before: &Path, after: &Path) {
    let (before, after) = (files_below(before), files_below(after));
    assert!(before.len() > 20 && before.keys().eq(after.keys()), "{jdk}");
    for (name, path) in &before {
        let [one, other] = [path, &after[name]].map(|path| std::fs::read(path).expect("readable"));
        assert!(one == other, "{jdk}: {} differs", name.display());
    }
}

/// A class with all that counts for contexts, executed bytecodes too.
fn with_contexts(bytes: &[u8], methods: &mut i32) -> Option<Vec<u8>> {
    let mut method = |_: &[u8], _: &[u8]| {
        *methods += 1;
        *methods
    };
    let mut plan = Plan {
        account: None,
        number: &mut |_| None,
        accounts: false,
        contexts: Some(Contexts {
            method: &mut method,
            class: &mut |_| 12,
            bytecodes: true,
        }),
    };
    let outcome = policy_exact::rewrite(bytes, &mut plan);
    let is_long = |left: &Left| *left == Left::Refused(RewriteError::MethodTooLong);
    assert!(outcome.left.iter().all(is_long), "{:?}", outcome.left);
    outcome.bytes
}

#[test]
fn a_compiler_that_counts_its_contexts_is_verified_and_works_as_before() {
    const TEST: &str = "a_compiler_that_counts_its_contexts_is_verified_and_works_as_before";
    for jdk in every_jdk_for(TEST, JAVAC) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [plain, patches] = ["plain", "patches"].map(|name| folder.path().join(name));
        let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
        let arguments = [Path::new("dump"), &plain, Path::new(MODULES[1])];
        class_files(jdk, &[], &arguments);
        let mut methods = 0;
        for (name, path) in &files_below(&plain) {
            let bytes = std::fs::read(path).expect("readable");
            let rewritten = with_contexts(&bytes, &mut methods);
            let to = patches.join(name);
            std::fs::create_dir_all(to.parent().expect("it has one")).expect("writable");
            std::fs::write(to, rewritten.as_ref().unwrap_or(&bytes)).expect("writable");
        }
        assert!(methods > 10_000, "{jdk}: {methods}");
        assert_verified(jdk, &[], &patches, &plain, 1_000);
        // The counter itself, as the agent defines it.
        let counter = artifacts::repository().join("policy-agent/java/classes");
        let flags = [
            format!(
                "--patch-module={}={}",
                MODULES[1],
                patches.join(MODULES[1]).display()
            ),
            format!("--patch-module=java.base={}", counter.display()),
            "--add-opens=java.base/java.lang=ALL-UNNAMED".to_owned(),
            "-XX:+UnlockDiagnosticVMOptions".to_owned(),
            "-XX:+BytecodeVerificationLocal".to_owned(),
            "-XX:+BytecodeVerificationRemote".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        compile_victims(jdk, &[], &before);
        let told = compile_victims(jdk, &flags, &after);
        assert!(told.contains("status 0\n"), "{jdk}: {told}");
        assert!(count(&told, "contexts") > 10_000, "{jdk}: {told}");
        assert_same_files(jdk, &before, &after);
    }
}

/// A class with counters for accounts and contexts, and with the brackets of both.
fn with_all_counters(bytes: &[u8], told: &mut BTreeMap<String, usize>) -> Option<Vec<u8>> {
    let mut plan = Plan {
        account: Some(70_000),
        number: &mut |_| Some(40_000),
        accounts: true,
        contexts: Some(Contexts {
            method: &mut |_, _| 50_000,
            class: &mut |_| 60_000,
            bytecodes: true,
        }),
    };
    let outcome = policy_exact::rewrite(bytes, &mut plan);
    for left in &outcome.left {
        *told.entry(format!("{left:?}")).or_default() += 1;
    }
    outcome.bytes
}

/// All that the agent counts, in every class of the JDK and of the libraries (`--long`; otherwise of two libraries on
/// the oldest and the newest JDK: the newest judges none of before Java 6). HotSpot's verifier sees the same in `exact_libraries`.
#[test]
fn every_class_of_libraries_and_of_the_jdk_passes_the_jdks_own_verifiers_with_counters() {
    let jdks: Vec<&Jdk> = match is_long() {
        true => every_jdk().iter().collect(),
        false => vec![&every_jdk()[0], newest()],
    };
    for jdk in jdks {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copies = folder.path().join("libraries");
        std::fs::create_dir(&copies).expect("writable");
        let wanted = libraries::wanted(&copies);
        let [plain, counting] = ["plain", "counting"].map(|name| folder.path().join(name));
        class_files(jdk, &[], &[Path::new("unpack"), &plain, wanted]);
        if is_long() {
            class_files(jdk, &[], &[Path::new("dump"), &plain]);
        }
        let (mut told, mut rewritten) = (BTreeMap::new(), 0_usize);
        let classes = files_below(&plain);
        for (name, path) in &classes {
            let bytes = std::fs::read(path).expect("readable");
            // Without insertions it is what it was, with them it has all that was there.
            policy_exact::oracle::check(&bytes);
            if let Some(new) = with_all_counters(&bytes, &mut told) {
                rewritten += 1;
                let to = counting.join(name);
                std::fs::create_dir_all(to.parent().expect("it has one")).expect("writable");
                std::fs::write(to, new).expect("writable");
            }
        }
        eprintln!("{jdk}: {rewritten} of {} classes, {told:?}", classes.len());
        let known = ["Old", "ThreadMachinery", "Refused(MethodTooLong)"];
        let unknown: Vec<_> = told
            .keys()
            .filter(|left| !known.contains(&left.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{jdk}: {told:?}");
        assert!(rewritten > classes.len() / 2, "{jdk}");
        let least = if is_long() { 15_000 } else { 700 };
        let jars: Vec<PathBuf> = files_below(wanted).into_values().collect();
        assert_verified(jdk, &jars, &counting, &plain, least);
    }
}

/// The rewritten compiler on the rewritten base, with HotSpot's verifier for both, makes the class files
/// that the JDK's own makes.
fn assert_same_compiler(jdk: &Jdk, folder: &Path, patches: &Path) {
    let run = |flags: &[&str], into: &Path| compile_victims(jdk, flags, into);
    let patch =
        |module: &str| format!("--patch-module={module}={}", patches.join(module).display());
    let patched = MODULES.map(patch);
    let mut flags = vec![
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+BytecodeVerificationLocal",
        "-XX:+BytecodeVerificationRemote",
    ];
    flags.extend(patched.iter().map(String::as_str));
    let [before, after] = ["before", "after"].map(|name| folder.join(name));
    let told = run(&[], &before);
    assert!(told.contains("status 0\nplain"), "{jdk}: {told}");
    let told = run(&flags, &after);
    assert!(told.contains("status 0\n"), "{jdk}: {told}");
    let (marks, asked) = (count(&told, "marks"), count(&told, "asked"));
    let (bracketed, left) = (count(&told, "bracketed"), count(&told, "left"));
    eprintln!("{jdk}: {marks} marks, asked {asked} times, {left} of {bracketed} brackets left");
    // Few calls end with an exception.
    assert!(
        left > 1_000_000 && left > bracketed / 10 * 9,
        "{jdk}: {told}"
    );
    assert!(marks > 1_000_000 && asked > 1_000_000, "{jdk}: {told}");
    assert_same_files(jdk, &before, &after);
}
