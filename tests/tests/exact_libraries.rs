//! Counters in every class of large libraries: HotSpot's verifier takes each that it takes as it was.
//!
//! Maven fetches the libraries (`tests/libraries`). `cargo xtask test --long` links all of them on every JDK;
//! otherwise Kotlin's library on one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use heapwarden_tests::fixture::up_to_date;
use heapwarden_tests::jdk::{Collector, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, victim};
use heapwarden_tests::{artifacts, command};

const VERIFIED: [&str; 3] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
];

/// The folder with the libraries.
fn libraries() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let target = artifacts::repository().join("target/libraries");
        up_to_date("libraries", &["tests/libraries"], &[&target], || {
            let build = command::run(
                Command::new("mvn")
                    .args(["--batch-mode", "--quiet", "package"])
                    .arg(format!("-Dlibraries.directory={}", target.display()))
                    .current_dir(artifacts::repository().join("tests/libraries")),
                Duration::from_secs(600),
            );
            assert!(
                build.status.success(),
                "the libraries cannot be fetched (Maven is needed: apt-get install maven):\n{}\n{}",
                build.stdout,
                build.stderr
            );
        });
        target
    })
}

/// The libraries to link: all, or in a short run a folder with Kotlin's alone.
fn wanted(folder: &Path) -> &Path {
    if is_long() {
        return libraries();
    }
    for entry in std::fs::read_dir(libraries()).expect("readable") {
        let jar = entry.expect("readable").path();
        let name = jar.file_name().expect("it has one");
        if name.to_string_lossy().starts_with("kotlin-stdlib") {
            std::fs::copy(&jar, folder.join(name)).expect("writable");
        }
    }
    folder
}

fn verified(builder: Builder) -> Builder {
    (VERIFIED.iter()).fold(builder.heap("512m"), |builder, flag| builder.flag(flag))
}

#[test]
fn every_class_that_verifies_does_so_with_counters() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jars = wanted(folder.path());
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let order = format!("link {}", jars.display());
        let mut plain = verified(victim(vm, "victim.LinkedClasses").without_agent()).start();
        let before = plain.ask(&order);
        plain.finish();
        let policy = "[exact]\naccounts = true\n";
        let mut jvm = verified(victim(vm, "victim.LinkedClasses").policy(policy)).start();
        let after = jvm.ask(&order);
        let linked = after.last().expect("an answer");
        let metrics = jvm.metrics();
        let rewritten = metrics.value("heapwarden_exact_classes_rewritten_total", &[]);
        let skipped = |reason: &str| {
            let labels = [("reason", reason)];
            let value = metrics.value("heapwarden_exact_classes_skipped_total", &labels);
            value.expect("published")
        };
        let reasons = [
            "old",
            "not_understood",
            "too_long",
            "not_modifiable",
            "thread_machinery",
            "too_many_classes",
        ];
        let told = reasons.map(|reason| format!("{reason} {}", skipped(reason)));
        eprintln!("{vm}: {linked}, {rewritten:?} class files rewritten; skipped: {told:?}");
        assert_eq!(before, after, "{vm}");
        let classes: u32 = (linked.rsplit(' ').next())
            .and_then(|count| count.parse().ok())
            .expect("a number");
        assert!(classes > 900, "{vm}: {linked}");
        assert!(
            rewritten >= Some(f64::from(classes) / 2.0),
            "{vm}: {rewritten:?}"
        );
        assert_eq!(skipped("not_understood"), 0.0, "{vm}");
        assert_eq!(skipped("not_modifiable"), 0.0, "{vm}: {}", jvm.log());
        jvm.finish();
    });
}
