//! How far beyond its limit a service gets: at a pace of 10 MiB a second, a distribution; as fast as it can, not to the
//! end of the heap.
//!
//! Nobody is held before there is evidence while the heap has room. So what is promised is by pace: what a leak takes
//! until a collection has shown it. What counts is what the program itself knows it holds when it is refused for the
//! first time, beyond the limit and three standard errors.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::Collector::{GenerationalZ, Z};
use heapwarden_tests::jdk::{Vm, is_long, on_each, some_vms};
use heapwarden_tests::jvm::{Jvm, victim};
use std::sync::Mutex;
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;
const LIMIT_BYTES: f64 = 256.0 * MIB;
/// Bytes of an array, and bytes a second.
const PACED: (u32, u32) = (2_000, 10 << 20);
/// Threads and bytes of an array of leaks at full speed. Eight threads with arrays of 1 MB take more than a quarter of
/// this heap in the time in which a concurrent collector can show that it is short (`docs/limitations.md`).
const FULL_SPEED: [(u32, u32); 3] = [(1, 200), (8, 200), (1, 1_000_000)];
/// Runs of the paced leak; `--long` makes them five.
const RUNS: usize = 1;
const LONG_RUNS: usize = 5;
/// The promise, as shares of the limit: of the median over all VMs, and of each run.
const MEDIAN: f64 = 0.10;
const MOST: f64 = 0.25;

const POLICY: &str = r#"
[enforcement]
mode = "enforce"

[[account]]
name = "tenant"
packages = ["com.acme.tenant"]
work = ["com.acme.tenant"]
limit = "256MiB"
"#;

/// Has the service hold a little, and waits until its limit is in force. An account begins with its first
/// sample, and the agent needs some milliseconds to know whose it is, more on a busy machine: eight
/// threads that begin their lives with a leak can make 100 MB of arrays meanwhile (`docs/limitations.md`).
fn assert_in_force(jvm: &mut Jvm) {
    jvm.ask("leak 1 1000 2000000 0");
    let known = poll(PATIENCE, || {
        let accounts = jvm.accounts();
        accounts.find("tenant").is_some().then_some(())
    });
    assert!(known.is_some(), "{}", jvm.log());
    std::thread::sleep(Duration::from_millis(300));
}

fn start(vm: &Vm) -> Jvm {
    let mut jvm = victim(vm, "victim.LimitedTenant")
        .heap("2g")
        .policy(POLICY)
        .start();
    assert_in_force(&mut jvm);
    jvm
}

/// Returns the bytes that the tenant held when the agent's error came. Panics if another error came, or none.
fn held(vm: &Vm, answer: &[String]) -> f64 {
    let words: Vec<&str> = answer[0].split(' ').collect();
    assert_eq!(
        words[..2],
        ["refused", "dev.heapwarden.MemoryQuotaExceededError"],
        "{vm}: {answer:?}"
    );
    words[3].parse().expect("a number of bytes")
}

/// One run at a pace: bytes held at the first refusal, beyond limit and margin, as a share of the limit.
fn overshoot(vm: &Vm) -> f64 {
    let (length, pace) = PACED;
    let mut jvm = start(vm);
    let answer = jvm.ask(&format!("drip {length} 1500000000 {pace}"));
    let held = held(vm, &answer);
    let account = jvm.accounts();
    let error = account.holding("tenant").standard_error_bytes;
    let waited = jvm.metrics().sum("heapwarden_account_wait_seconds_total");
    assert_eq!(waited, 0.0, "{vm}: the heap has room");
    let beyond = (held - LIMIT_BYTES - 3.0 * error) / LIMIT_BYTES;
    if beyond > MOST {
        // The log tells what the agent was waiting for.
        eprintln!("{vm}: {beyond:.3}\n{}", jvm.log());
    }
    drop(jvm);
    beyond
}

#[test]
fn a_leak_at_a_pace_is_stopped_near_its_limit() {
    let all = Mutex::new(Vec::new());
    on_each(&some_vms(0), |vm| {
        let runs = if is_long() { LONG_RUNS } else { RUNS };
        for _ in 0..runs {
            let beyond = overshoot(vm);
            eprintln!("{vm}: {:+.1} % of the limit", beyond * 100.0);
            assert!(beyond <= MOST, "{vm}: {beyond}");
            all.lock().expect("no panic holds it").push(beyond);
        }
    });
    let mut all = all.into_inner().expect("no panic holds it");
    all.sort_by(f64::total_cmp);
    let median = all[all.len() / 2];
    assert!(median <= MEDIAN, "median {median}: {all:?}");
}

/// However fast it is: what the heap has room for it may take, and the JVM's own error does not come.
#[test]
fn a_leak_at_full_speed_never_exhausts_the_heap() {
    // Where generations are collected concurrently, it may: docs/limitations.md.
    let may_be_late =
        |vm: &Vm| vm.collector == GenerationalZ || vm.collector == Z && vm.jdk.feature >= 23;
    let vms: Vec<Vm> = some_vms(1)
        .into_iter()
        .filter(|vm| !may_be_late(vm))
        .collect();
    on_each(&vms, |vm| {
        for (threads, length) in FULL_SPEED {
            let mut jvm = start(vm);
            let answer = jvm.ask(&format!("leak {threads} {length} 4000000000 0"));
            let held = held(vm, &answer);
            eprintln!(
                "{vm}: {threads} threads, arrays of {length} bytes: refused at {:.0} MiB of 2048",
                held / MIB
            );
            drop(jvm);
        }
    });
}
