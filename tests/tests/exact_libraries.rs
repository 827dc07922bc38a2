//! Counters and contexts in every class of large libraries and of the JDK: HotSpot's verifier takes each that it
//! takes as it was.
//!
//! `cargo xtask test --long` links all of the libraries (`tests/libraries`) and all of the JDK's modules on every JDK;
//! otherwise Kotlin's library and an old one on one JDK, and one module of the JDK. What the JDK's own libraries for
//! class files say of the same, [`class_rewriting`](../class_rewriting.rs) asks.

use std::fmt::Write as _;

use heapwarden_tests::jdk::{Collector, Vm, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::libraries;
use heapwarden_tests::scrape::Metrics;

const VERIFIED: [&str; 3] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
];
const SKIPPED: &str = "heapwarden_exact_classes_skipped_total";
const REASONS: [&str; 6] = [
    "old",
    "not_understood",
    "too_long",
    "not_modifiable",
    "thread_machinery",
    "too_many_classes",
];

/// Accounts of all libraries together, so that their methods stand in brackets of accounts, and contexts of them with
/// executed bytecodes.
fn policy() -> String {
    let packages = libraries::PACKAGES;
    let mut policy =
        format!("[exact]\naccounts = true\ncontexts = {packages:?}\nbytecodes = true\n");
    write!(
        policy,
        "[[account]]\nname = \"libraries\"\npackages = {packages:?}\n"
    )
    .expect("a string takes all");
    policy
}

fn verified(builder: Builder) -> Builder {
    (VERIFIED.iter()).fold(builder.heap("768m"), |builder, flag| builder.flag(flag))
}

fn skipped(metrics: &Metrics, reason: &str) -> f64 {
    let value = metrics.value(SKIPPED, &[("reason", reason)]);
    value.expect("published")
}

/// Asserts that the order is answered the same without and with the agent; returns the JVM with it, and how many
/// classes were linked.
fn linked(vm: &Vm, order: &str, flags: &[&str]) -> (Jvm, u32) {
    let linking = || {
        let builder = verified(victim(vm, "victim.LinkedClasses"));
        flags
            .iter()
            .fold(builder, |builder, flag| builder.flag(flag))
    };
    let mut plain = linking().without_agent().start();
    let before = plain.ask(order);
    plain.finish();
    let mut jvm = linking().policy(&policy()).start();
    let after = jvm.ask(order);
    let last = after.last().expect("an answer");
    let metrics = jvm.metrics();
    let rewritten = metrics.value("heapwarden_exact_classes_rewritten_total", &[]);
    let told = REASONS.map(|reason| format!("{reason} {}", skipped(&metrics, reason)));
    eprintln!("{vm}: {last}, {rewritten:?} class files rewritten; skipped: {told:?}");
    assert!(
        jvm.log()
            .contains("contexts are counted of antlr.* and 7 more"),
        "{}",
        jvm.log()
    );
    let differing: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(differing.is_empty(), "{vm}: {differing:?}");
    assert_eq!(before, after, "{vm}");
    for reason in ["not_understood", "not_modifiable"] {
        assert_eq!(skipped(&metrics, reason), 0.0, "{vm}: {}", jvm.log());
    }
    let linked: u32 = (last.split(' ').nth(1))
        .and_then(|count| count.parse().ok())
        .expect("a number");
    // Interfaces without code, and classes that neither allocate nor call, have nothing to count.
    assert!(
        rewritten >= Some(f64::from(linked) / 2.0),
        "{vm}: {rewritten:?}"
    );
    (jvm, linked)
}

#[test]
fn every_class_that_verifies_does_so_with_counters() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let jars = libraries::wanted(folder.path());
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let (jvm, linked) = linked(vm, &format!("link {}", jars.display()), &[]);
        let least = if is_long() { 13_000 } else { 1_100 };
        assert!(linked > least, "{vm}: {linked}");
        assert!(skipped(&jvm.metrics(), "old") > 100.0, "{vm}");
        jvm.finish();
    });
}

#[test]
fn every_class_of_the_jdk_that_verifies_does_so_with_counters() {
    let modules = if is_long() { "ALL" } else { "java.logging" };
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let flags = ["--add-modules=ALL-SYSTEM"];
        let (jvm, linked) = linked(vm, &format!("modules {modules}"), &flags);
        let least = if is_long() { 6_000 } else { 50 };
        assert!(linked > least, "{vm}: {linked}");
        jvm.finish();
    });
}
