//! The errors of a refusal: their class files are what the sources say, and a program sees the same
//! class from every loader.

use heapwarden_tests::fixture::files_below;
use heapwarden_tests::jdk::{
    Collector, JAVAC, Jdk, Vm, every_jdk_for, every_jdk_with, on_each, some_vms,
};
use heapwarden_tests::jvm::{Builder, victim};
use heapwarden_tests::{artifacts, command, java};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = command::PATIENCE;

/// Reads all files below a folder, and returns their contents by their paths in it.
fn class_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_below(folder).into_iter();
    files
        .map(|(name, path)| (name, std::fs::read(path).expect("readable")))
        .collect()
}

/// Compiles sources as `cargo xtask classes` does.
fn compile(jdk: &Jdk, release: &str, sources: &[PathBuf], into: &Path) {
    let compiled = command::run(
        Command::new(jdk.program("javac"))
            .args(["--release", release, "-g:source,lines"])
            .args(["-XDstringConcat=inline", "-Xlint:all", "-Werror", "-d"])
            .arg(into)
            .args(sources),
        LIMIT,
    );
    assert!(compiled.status.success(), "{jdk}: {}", compiled.stderr);
}

/// As `cargo xtask classes` does with what belongs to `java.lang`.
fn compile_java_lang(jdk: &Jdk, into: &Path) {
    let patch = artifacts::repository().join("policy-agent/java.base");
    let compiled = command::run(
        Command::new(jdk.program("javac"))
            .args(["-source", "17", "-target", "17", "-g:source,lines"])
            .args(["-XDstringConcat=inline", "-Xlint:all,-options", "-Werror"])
            .arg("--patch-module")
            .arg(format!("java.base={}", patch.display()))
            .arg("-d")
            .arg(into)
            .args(java::sources_below(&patch)),
        LIMIT,
    );
    assert!(compiled.status.success(), "{jdk}: {}", compiled.stderr);
}

#[test]
fn the_class_files_are_what_every_compiler_makes_of_the_sources() {
    let java = artifacts::repository().join("policy-agent/java");
    let errors =
        artifacts::repository().join("java-api/heapwarden-api/src/main/java/dev/heapwarden");
    let committed = class_files(&java.join("classes"));
    // The errors are those sources of the API of which a class file is committed.
    let errors: Vec<PathBuf> = committed
        .keys()
        .filter(|file| file.parent() == Some(Path::new("dev/heapwarden")))
        .map(|file| {
            let name = file.file_name().expect("class files have names");
            errors.join(name).with_extension("java")
        })
        .collect();
    assert_eq!(errors.len(), 5, "{errors:?}");
    let test = "the_class_files_are_what_every_compiler_makes_of_the_sources";
    for jdk in every_jdk_for(test, JAVAC) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        compile(jdk, "11", &errors, folder.path());
        let bridge = java::sources_below(&java.join("dev"));
        compile(jdk, "17", &bridge, folder.path());
        compile_java_lang(jdk, folder.path());
        let made = class_files(folder.path());
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&committed), names(&made), "{jdk}");
        for (name, bytes) in &made {
            assert!(
                committed[name] == *bytes,
                "{jdk} makes another {}: run `cargo xtask classes` and commit what it writes",
                name.display()
            );
        }
    }
}

fn program(vm: &Vm) -> Builder {
    victim(vm, "victim.QuotaErrors").argument(java::classes().tenant())
}

/// Runs the program with the agent; its loaders agree, and it says `what`.
fn assert_agreed(builder: &Builder, what: &str) {
    let finished = builder.run(LIMIT);
    assert!(
        finished.status.success() && finished.stdout.contains(what),
        "{finished:?}"
    );
    assert!(
        finished.stdout.contains("all loaders agree"),
        "{finished:?}"
    );
}

#[test]
fn every_loader_sees_the_same_class() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        assert_agreed(&program(vm), "");
    });
}

#[test]
fn a_named_module_sees_the_same_class() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = program(vm)
            .flag("--module-path")
            .flag(&java::classes().module().display().to_string())
            .flag("--add-modules=quota.module");
        assert_agreed(&builder, "seen from module quota.module");
    });
}

/// As when a later version ships the same package for the boot class path.
#[test]
fn classes_on_the_boot_class_path_are_no_trouble() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let classes = artifacts::repository().join("policy-agent/java/classes");
        let builder = program(vm).flag(&format!("-Xbootclasspath/a:{}", classes.display()));
        assert_agreed(&builder, "");
    });
}

/// The program's own copies, on the class path, must not come between.
#[test]
fn classes_on_the_class_path_do_not_hide_them() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let classes = artifacts::repository().join("policy-agent/java/classes");
        let victims = java::classes().victims();
        let plain = program(vm).command();
        let mut command = Command::new(plain.get_program());
        for argument in plain.get_args() {
            if Path::new(argument) == victims {
                command.arg(format!("{}:{}", classes.display(), victims.display()));
            } else {
                command.arg(argument);
            }
        }
        let finished = command::run(&mut command, LIMIT);
        assert!(
            finished.stdout.contains("all loaders agree"),
            "{finished:?}"
        );
    });
}

#[test]
fn without_the_agent_there_is_no_such_class() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let finished = command::run(&mut program(vm).without_agent().command(), LIMIT);
        assert!(
            finished
                .stderr
                .contains("NoClassDefFoundError: dev/heapwarden/MemoryQuotaExceeded"),
            "{finished:?}"
        );
    });
}

/// A JVM in which every sample of the account `orders` is refused, safe or not.
fn refusing(vm: &Vm, throw: &str, interval: &str, look: &str) -> Builder {
    let policy = format!(
        "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n\
         [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n\
         limit = \"64KiB\"\nthrow = \"{throw}\"\n"
    );
    victim(vm, "victim.ThrownErrors")
        .argument(throw)
        .argument((64 << 10).to_string())
        .argument(look)
        .policy(&policy)
        .option("test-refuse=naive")
        // It ends the JVM where the VM itself reports exhaustion, which a refusal must not be.
        .flag("-XX:+ExitOnOutOfMemoryError")
}

fn assert_delivered(builder: &Builder) {
    let finished = builder.run(LIMIT);
    assert!(
        finished.status.success() && finished.stdout.contains("delivered"),
        "{finished:?}"
    );
}

#[test]
fn each_throw_delivers_its_class_with_the_figures() {
    on_each(&some_vms(1), |vm| {
        for throw in ["oom", "error", "exception"] {
            assert_delivered(&refusing(vm, throw, "64KiB", "figures"));
        }
    });
}

/// With so small a young generation that the heap can be filled to less than the error wants.
#[test]
fn on_a_full_heap_the_error_made_beforehand_is_thrown() {
    on_each(&every_jdk_with(Collector::Serial), |vm| {
        for throw in ["oom", "error", "exception"] {
            let builder = refusing(vm, throw, "exact", "full")
                .heap("32m")
                .flag("-Xmn2m");
            assert_delivered(&builder);
        }
    });
}
