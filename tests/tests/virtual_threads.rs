//! A refused virtual thread never holds its carrier: its neighbours on the same carrier go on.

use std::time::Duration;

use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Builder, victim};

const SOON: Duration = Duration::from_secs(90);
/// Of the tenant, each refused again and again; of its neighbours.
const GREEDY: usize = 100;
const GOOD: usize = 4;
const SECONDS: usize = 8;
/// So many bytes have a sample, for practical purposes.
const LENGTH: usize = 60_000;

/// A small limit, and a unit of work on every thread. All virtual threads share one carrier.
fn neighbours(vm: &Vm) -> Builder {
    let policy = r#"
[sampling]
interval = "4KiB"
cpu-budget = "none"

[enforcement]
mode = "enforce"

[[account]]
name = "tenant"
packages = ["com.acme.tenant"]
work = ["com.acme.tenant"]
limit = "16MiB"
"#;
    victim(vm, "victim.VirtualNeighbours")
        .heap("256m")
        .flag("-Djdk.virtualThreadScheduler.parallelism=1")
        .flag("-Djdk.virtualThreadScheduler.maxPoolSize=1")
        .policy(policy)
}

/// Held for the tenth of a second that a platform thread is slowed, a hundred refused threads would leave the carrier
/// to a neighbour every ten seconds. So each second must see neighbours run, on a slow machine too.
fn assert_progress(vm: &Vm, builder: Builder) {
    let mut jvm = builder.start();
    jvm.ask(&format!("take {LENGTH} 400"));
    jvm.until(SOON, "the account is over", |accounts| {
        accounts.is_in_state("tenant", "over")
    });
    let answer = jvm.ask(&format!("crowd {GREEDY} {GOOD} {SECONDS} {LENGTH}"));
    assert_eq!(answer.len(), SECONDS);
    eprintln!("{vm}: {answer:?}");
    for second in &answer {
        let words: Vec<&str> = second.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let (good, refused, other) = (number(1), number(3), number(5));
        assert!(
            good > 0 && refused > 0 && other == 0,
            "{vm}: {answer:#?}\n{}",
            jvm.accounts().brief()
        );
    }
    let accounts = jvm.accounts();
    let tenant = accounts.find("tenant").expect("it is listed");
    assert_eq!(tenant["wait_milliseconds_total"], 0, "{vm}: {tenant:#}");
    jvm.finish();
}

fn with_virtual_threads() -> Vec<Vm> {
    let mut vms = every_jdk_with(Collector::G1);
    vms.retain(|vm| vm.jdk.feature >= 21);
    assert!(!vms.is_empty(), "no JDK has virtual threads");
    vms
}

#[test]
fn a_refused_virtual_thread_does_not_hold_its_carrier() {
    on_each(&with_virtual_threads(), |vm| {
        assert_progress(vm, neighbours(vm));
    });
}
