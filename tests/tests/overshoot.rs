//! How far beyond its limit a service gets that leaks as fast as it can: a distribution.
//!
//! A limit of 256 MiB in a heap of 2 GiB; small objects and arrays of 1 MB, one thread and
//! eight. What counts is what the program itself knows it holds when it is refused for the
//! first time, beyond the limit and three standard errors.

use heapwarden_tests::jdk::{Vm, every_vm, on_each};
use heapwarden_tests::jvm::victim;
use std::sync::Mutex;

const MIB: f64 = (1 << 20) as f64;
const LIMIT_BYTES: f64 = 256.0 * MIB;
/// Threads and bytes of an array.
const LEAKS: [(u32, u32); 4] = [(1, 200), (8, 200), (1, 1_000_000), (8, 1_000_000)];
const RUNS: usize = 5;
/// The promise, as shares of the limit.
const MEDIAN: f64 = 0.05;
const MOST: f64 = 0.10;

const POLICY: &str = r#"
[enforcement]
mode = "enforce"

[[account]]
name = "tenant"
packages = ["com.acme.tenant"]
limit = "256MiB"
"#;

/// One run: bytes held at the first refusal, beyond limit and margin, as a share of the limit.
fn overshoot(vm: &Vm, threads: u32, length: u32) -> f64 {
    let mut jvm = victim(vm, "victim.Tenants")
        .heap("2g")
        .policy(POLICY)
        .start();
    let answer = jvm.ask(&format!("leak {threads} {length} 4000000000 0"));
    let words: Vec<&str> = answer[0].split(' ').collect();
    assert_eq!(
        words[..2],
        ["refused", "dev.heapwarden.MemoryQuotaExceededError"],
        "{vm}, {threads} threads, {length} bytes: the heap is never exhausted"
    );
    let held: f64 = words[3].parse().expect("a number of bytes");
    let account = jvm.accounts();
    let error = account.holding("tenant").standard_error_bytes;
    drop(jvm);
    (held - LIMIT_BYTES - 3.0 * error) / LIMIT_BYTES
}

#[test]
fn a_leak_is_stopped_within_a_few_percent_of_its_limit() {
    let table = Mutex::new(Vec::new());
    on_each(every_vm(), |vm| {
        let mut all = Vec::new();
        for (threads, length) in LEAKS {
            let runs: Vec<f64> = (0..RUNS).map(|_| overshoot(vm, threads, length)).collect();
            all.extend_from_slice(&runs);
            let shown: Vec<String> = runs.iter().map(|r| format!("{:+.1}", r * 100.0)).collect();
            table.lock().expect("no panic holds it").push(format!(
                "{vm}: {threads} threads, arrays of {length} bytes: {} %",
                shown.join(" ")
            ));
        }
        all.sort_by(f64::total_cmp);
        let (median, most) = (all[all.len() / 2], all[all.len() - 1]);
        eprintln!(
            "{vm}: overshoot in percent of the limit over {} runs: least {:+.1}, median {:+.1}, most {:+.1}",
            all.len(),
            all[0] * 100.0,
            median * 100.0,
            most * 100.0
        );
        let table = table.lock().expect("no panic holds it").join("\n");
        assert!(median <= MEDIAN, "{vm}: median {median}\n{table}");
        assert!(most <= MOST, "{vm}: most {most}\n{table}");
    });
    eprintln!(
        "{}",
        table.into_inner().expect("no panic holds it").join("\n")
    );
}
