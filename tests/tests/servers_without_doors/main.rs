//! Servers of others that have no door of their own, past a limit on their packages: databases, brokers, caches,
//! engines, schedulers and reactive applications. Each is loaded past its limit, asked for reads and deletes while
//! it is over, lets go, and works again. One that keeps its data on disk is loaded once more, killed and started.
//!
//! Each run must meet these conditions: the process lives and no thread of it dies of a refusal; each call gets an
//! answer; a neighbour in the same JVM answers 200; the account stops at its door, or within its reserve, or the agent
//! reports that its refusals do nothing; reads and deletes are answered while it is over; what was acknowledged is
//! there, also after the kill; after letting go the account is below its limit within 15 s and takes work.
//!
//! The short ones run always, on one VM; `--long` runs all, on G1 and ZGC, which takes half an hour.
//! `HEAPWARDEN_TEST_SERVERS=h2,kafka` chooses, and `HEAPWARDEN_TEST_RUNS` says how often. A table is printed at the end.

mod course;
mod figures;
mod subjects;

use figures::{COLUMNS, Row};
use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use subjects::{SUBJECTS, Subject};

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// G1 on the oldest JDK that the server runs on, and ZGC on the newest, which is the generational one if the
/// server can have it. Without `--long` the first alone.
fn vms(subject: &Subject) -> Vec<Vm> {
    let releases = subject.java..=subject.newest_java;
    let able = || {
        every_vm()
            .iter()
            .filter(|vm| releases.contains(&vm.jdk.feature))
    };
    let g1 = able().find(|vm| vm.collector == Collector::G1);
    let z = able().rev().find(|vm| vm.collector == Collector::Z);
    let both = g1.into_iter().chain(z).cloned();
    both.take(if is_long() { 2 } else { 1 }).collect()
}

/// Runs of each server on each VM: `HEAPWARDEN_TEST_RUNS`, else one.
fn runs() -> usize {
    let chosen = std::env::var("HEAPWARDEN_TEST_RUNS").ok();
    chosen.and_then(|runs| runs.parse().ok()).unwrap_or(1)
}

/// Whether `HEAPWARDEN_TEST_SERVERS` names it, or it is not set and the subject runs.
fn is_wanted(subject: &Subject) -> bool {
    match std::env::var("HEAPWARDEN_TEST_SERVERS") {
        Ok(list) => list.split(',').any(|name| name == subject.name),
        Err(_) => is_long() || subject.short,
    }
}

#[test]
fn servers_without_a_door_live_through_their_limits() {
    let mut table = Vec::new();
    let mut failed = Vec::new();
    for subject in SUBJECTS.iter().filter(|subject| is_wanted(subject)) {
        for vm in vms(subject).into_iter().flat_map(|vm| vec![vm; runs()]) {
            let mut row = Row::default();
            let ended = catch_unwind(AssertUnwindSafe(|| course::run(&vm, subject, &mut row)));
            let title = subject.title;
            let line = format!("| {title} | {vm} | {row} |");
            say(&line);
            if !row.last_error.is_empty() {
                say(&format!("    last error: {}", row.last_error));
            }
            table.push(line);
            if let Err(panic) = ended {
                let text = panic.downcast_ref::<String>().cloned();
                failed.push(format!("{title}, {vm}: {}", text.unwrap_or_default()));
            }
            let failures = row.failures(subject);
            if !failures.is_empty() {
                say(&format!("    FAILED: {}", failures.join("; ")));
                failed.push(format!("{title}, {vm}: {}", failures.join("; ")));
            }
        }
    }
    say(&format!("| server | VM | {COLUMNS} |"));
    for line in &table {
        say(line);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
