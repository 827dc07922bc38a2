//! Duress: the heap itself is short. Limits that sum up to more than the heap bind then, the account furthest beyond
//! its limit is refused first, and nobody else notices.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, some_vms};
use heapwarden_tests::jvm::{Jvm, tenants_host};
use heapwarden_tests::scrape::Accounts;

/// Ten tenants in a heap of 512 MiB, each with a limit of 15 % of it: 150 % in all.
const TENANTS: usize = 10;
/// The memory that each tenant holds at first, in MiB: below that limit.
const HELD_MIB: u64 = 16;
/// More than the heap.
const ALL_MIB: u64 = 2_000;

/// Who holds and is idle is known as well as its samples were taken: on a slow machine the budget would widen the
/// interval, and an account that stands half beyond its limit may stay within three errors of it.
fn policy(when: &str, limit: &str) -> String {
    format!(
        "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\nwhen = \"{when}\"\n\n[[account]]\nscope = \"tenant-*\"\nlimit = \"{limit}\"\n"
    )
}

fn start(vm: &Vm, when: &str, limit: &str) -> Jvm {
    let mut jvm = tenants_host(vm)
        .heap("512m")
        .policy(&policy(when, limit))
        .start();
    for tenant in 0..TENANTS {
        let answer = jvm.ask(&format!("leak tenant-{tenant} {HELD_MIB}"));
        assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
    }
    jvm
}

/// Errors thrown so far in all tenants but these.
fn refusals_of_others(accounts: &Accounts, but: &[usize]) -> u64 {
    let others = (0..TENANTS).filter(|tenant| !but.contains(tenant));
    others
        .filter_map(|tenant| {
            let account = accounts.find(&format!("tenant-{tenant}"))?;
            account["refusals_total"].as_u64()
        })
        .sum()
}

fn assert_refused(jvm: &mut Jvm, vm: &Vm, tenant: usize) {
    let answer = jvm.ask(&format!("leak tenant-{tenant} {ALL_MIB}"));
    let refused = format!("refused tenant-{tenant} ");
    assert!(
        answer[0].starts_with(&refused),
        "{vm}: {answer:?}\n{}",
        jvm.log()
    );
}

/// One leaks, then two: each is refused by the agent before the JVM's own error, and the others are not.
#[test]
fn limits_may_sum_up_to_more_than_the_heap() {
    on_each(&some_vms(2), |vm| {
        let mut jvm = start(vm, "always", "15%");
        assert_refused(&mut jvm, vm, 0);
        assert_eq!(refusals_of_others(&jvm.accounts(), &[0]), 0, "{vm}");
        assert_refused(&mut jvm, vm, 1);
        let accounts = jvm.accounts();
        assert_eq!(refusals_of_others(&accounts, &[0, 1]), 0, "{vm}");
        // Those that did nothing go on.
        for tenant in [0, 1] {
            jvm.ask(&format!("drop tenant-{tenant}"));
        }
        for tenant in 2..TENANTS {
            let answer = jvm.ask(&format!("leak tenant-{tenant} 1"));
            assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
        }
        jvm.finish();
    });
}

/// With limits that bind where the heap is short, all may go beyond theirs before, and then the furthest is refused. Not
/// on Serial and Parallel: near its end such a heap has one collection for all that is left (`docs/limitations.md`).
#[test]
fn where_limits_bind_in_duress_alone_the_furthest_beyond_is_refused() {
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(every_jdk_with(Collector::GenerationalZ));
    on_each(&vms, |vm| {
        // All are beyond their limits of 10 MiB.
        let mut jvm = start(vm, "heap-is-short", "2%");
        jvm.until(PATIENCE, "they are over", |accounts| {
            (0..TENANTS).all(|tenant| accounts.is_in_state(&format!("tenant-{tenant}"), "over"))
        });
        assert_eq!(refusals_of_others(&jvm.accounts(), &[]), 0, "{vm}");
        assert_eq!(jvm.metrics().sum("heapwarden_duress"), 0.0, "{vm}");
        assert_refused(&mut jvm, vm, 3);
        assert_eq!(refusals_of_others(&jvm.accounts(), &[3]), 0, "{vm}");
        jvm.ask("drop tenant-3");
        jvm.settled();
        jvm.until(PATIENCE, "the heap has room", |accounts| {
            accounts.0["enforcement"]["duress"] == false
        });
        let answer = jvm.ask("leak tenant-4 8");
        assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
        assert_eq!(refusals_of_others(&jvm.accounts(), &[3]), 0, "{vm}");
        jvm.finish();
    });
}
