//! Arrays larger than half of a G1 region, which a sample keeps from being given back early: a
//! service that makes and drops them does not fill old memory for being watched, and its figures
//! stay right.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::stats;
use heapwarden_tests::truth::Truth;
use std::time::{Duration, Instant};

const HEAP: &str = "512m";
const HEAP_BYTES: f64 = 512.0 * 1024.0 * 1024.0;
/// Orders, arrays an order, and their length: 2.2 GB in all, of which 22 MB are held at once.
const ORDERS: usize = 100;
const ARRAYS: usize = 20;
const BYTES: usize = 1_100_000;
/// Longest that a verdict may take on a busy machine: the budget makes it wait as well.
const VERDICT: Duration = Duration::from_secs(90);
/// After so long an answer tells of all that was.
const UP_TO_DATE: Duration = Duration::from_millis(1_100);
/// How often a JVM is started until the agent leaves it a second without a cycle.
const TRIES: u32 = 5;

/// A heap of full size from the start, so that the collector has no reason of its own for a
/// concurrent cycle: nothing is ever held but what an order makes.
fn start(vm: &Vm, heap: &str, policy: &str) -> Jvm {
    start_with(vm, heap, policy, &[])
}

fn start_with(vm: &Vm, heap: &str, policy: &str, flags: &[&str]) -> Jvm {
    let mut builder = victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .argument("com.acme.billing")
        .heap(heap)
        .flag(&format!("-Xms{heap}"))
        .flag("-XX:G1HeapRegionSize=1m")
        .flag("-Xlog:gc*:file=gc.log")
        .policy(policy);
    for flag in flags {
        builder = builder.flag(flag);
    }
    builder.start()
}

/// Orders so many arrays, and returns their bytes.
fn order(jvm: &mut Jvm, arrays: usize) -> u64 {
    let order = format!("churn com.acme.orders bytes:{BYTES}*{arrays}");
    Truth::of(&jvm.ask(&order)).bytes
}

/// Until the agent knows its collector, and all that was made before is gone.
fn settle(jvm: &mut Jvm) {
    // One by one: what is made before the agent knows of regions is kept, all of it. (So are some 200
    // that the program makes before its first order, to warm up.)
    let end = Instant::now() + PATIENCE;
    while thinned(jvm) == 0.0 {
        assert!(Instant::now() < end, "nothing is thinned: {}", jvm.log());
        order(jvm, 1);
        std::thread::sleep(Duration::from_millis(250));
    }
    // On a slow machine that is so much that the agent asks for a cycle.
    jvm.settled();
}

/// Makes and drops, as a service does that has run for a while. The bytes of it.
fn churn(jvm: &mut Jvm) -> f64 {
    settle(jvm);
    let made_bytes: u64 = (0..ORDERS).map(|_| order(jvm, ARRAYS)).sum();
    made_bytes as f64
}

fn thinned(jvm: &Jvm) -> f64 {
    let metrics = jvm.metrics();
    let thinned = metrics.value("heapwarden_samples_thinned_total", &[]);
    thinned.expect("the agent publishes it")
}

fn gc_log(jvm: &Jvm) -> String {
    std::fs::read_to_string(jvm.folder().join("gc.log")).expect("the collector's log")
}

/// How many old collections there were: cycles that went to their end, and full ones. (With a large
/// array G1 begins a cycle where the heap is 45 % full, but calls it off if its first pause has found
/// old memory emptier.)
fn old_collections(log: &str) -> usize {
    let old = ["Concurrent Mark Cycle", "Pause Full"];
    // At the end of each stands the time that it took.
    let is_end = |line: &&str| line.ends_with("ms") && old.iter().any(|old| line.contains(old));
    log.lines().filter(is_end).count()
}

const ACCOUNTS: &str = "[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n\
                        [[account]]\nname = \"billing\"\npackages = [\"com.acme.billing\"]\n";

#[test]
fn what_comes_and_goes_brings_no_old_collection_and_is_charged_within_its_error() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        // The answers are up to a second old. If the agent has asked for a cycle within this second, which then
        // refunds, nothing can be said of the charge.
        let (jvm, truth_bytes, holding) = (0..TRIES)
            .find_map(|_| {
                let mut jvm = start(vm, HEAP, ACCOUNTS);
                settle(&mut jvm);
                // A cycle that this has called off has told its end by now.
                let before = gc_log(&jvm).len();
                let made_bytes: u64 = (0..ORDERS).map(|_| order(&mut jvm, ARRAYS)).sum();
                assert_eq!(
                    old_collections(&gc_log(&jvm)[before..]),
                    0,
                    "{}",
                    gc_log(&jvm)
                );
                std::thread::sleep(UP_TO_DATE);
                let holding = jvm.accounts().holding("orders");
                // One that is under way may have refunded already.
                let is_begun = gc_log(&jvm)[before..].contains("Concurrent Mark Cycle");
                (!is_begun).then_some((jvm, made_bytes as f64, holding))
            })
            .expect("a second without a cycle");
        let thinned = thinned(&jvm);
        assert!(thinned > 500.0, "{thinned} of 2,000: {}", jvm.log());

        // Nothing was refunded, so all that was allocated is charged.
        let error = holding.charged_bytes - truth_bytes;
        let told = format!("{vm}: {holding:?} for {truth_bytes}");
        stats::judge_family(&[(told, error / holding.standard_error_bytes)]);
        // But most of it is not there, and not taken for live.
        assert!(holding.live_bytes < HEAP_BYTES / 2.0, "{holding:?}");
        let advice = "-XX:G1HeapRegionSize";
        let told = poll(PATIENCE, || jvm.log().contains(advice).then_some(()));
        assert!(told.is_some(), "{}", jvm.log());
        jvm.finish();
    });
}

/// Cycles that the agent counts as asked for, and those that the collector began for it.
fn cycles(jvm: &Jvm) -> (f64, f64) {
    let kind = [("kind", "concurrent")];
    let counted = (jvm.metrics()).value("heapwarden_evidence_collections_total", &kind);
    let begun = "Pause Young (Concurrent Start) (G1 Periodic Collection)";
    let begun = (gc_log(jvm).lines())
        .filter(|line| line.ends_with("ms") && line.contains(begun))
        .count();
    (counted.expect("the agent publishes it"), begun as f64)
}

/// Has `orders` arrays at a time wait until a cycle is asked for, and for what comes of it.
fn what_waits_is_decided(vm: &Vm, orders: &[usize]) {
    let policy =
        "[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\nlimit = \"90%\"\n";
    // Cycles of G1's own would decide as well, before any is asked for.
    let late = "-XX:InitiatingHeapOccupancyPercent=90";
    let mut jvm = start_with(vm, HEAP, policy, &[late, "-XX:-G1UseAdaptiveIHOP"]);
    // Of one region each.
    let order = |jvm: &mut Jvm, arrays: usize| {
        jvm.ask(&format!("churn com.acme.orders bytes:1000000*{arrays}"));
    };
    // While little waits, canaries are planted now and then for a cycle that comes anyway. They are
    // young, and must not stand in the way of those that die with the cycle asked for.
    order(&mut jvm, 20);
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(old_collections(&gc_log(&jvm)), 0, "{}", gc_log(&jvm));
    for &arrays in orders {
        order(&mut jvm, arrays);
        std::thread::sleep(Duration::from_millis(300));
        if cycles(&jvm).1 > 0.0 {
            break;
        }
    }
    jvm.until(PATIENCE, "what waited is refunded", |accounts| {
        cycles(&jvm).0 > 0.0 && accounts.holding("orders").charged_bytes < HEAP_BYTES / 8.0
    });
    // Others would have come by now.
    std::thread::sleep(Duration::from_secs(3));
    let (counted, begun) = cycles(&jvm);
    let told = || format!("{counted}, {begun}: {}\n{}", jvm.log(), gc_log(&jvm));
    // For each 10 ms that the agent gets no processor one more may begin. A dozen are what it takes
    // until young canaries are old.
    assert!(begun > 0.0 && begun <= 6.0, "{}", told());
    assert!(!gc_log(&jvm).contains("Pause Full"), "{}", told());
    jvm.finish();
}

#[test]
fn what_waits_is_decided_by_a_cycle_that_is_asked_for() {
    // Beyond a quarter of the heap, and not so much that it could be over its limit.
    let orders = [10; 30];
    on_each(&every_jdk_with(Collector::G1), |vm| {
        what_waits_is_decided(vm, &orders);
    });
}

#[test]
fn in_a_heap_that_is_half_full_as_well() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        what_waits_is_decided(vm, &[300]);
    });
}

#[test]
fn a_cache_of_another_account_is_known_once_a_collection_has_decided() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        // Its allowances are four times as large: of the cache some 40 arrays are sampled, where two
        // would tell nothing of their error either.
        let mut jvm = start(vm, "2g", ACCOUNTS);
        churn(&mut jvm);
        let order = format!("hold com.acme.billing bytes:{BYTES}*100");
        let truth = Truth::of(&jvm.ask(&order)).bytes as f64;
        let accounts = jvm.settled();
        let billing = accounts.holding("billing");
        let error = billing.live_bytes - truth;
        assert!(billing.standard_error_bytes > 1e6, "thinned: {billing:?}");
        let told = format!("{vm}: {billing:?} for {truth}");
        stats::judge_family(&[(told, error / billing.standard_error_bytes)]);
        let orders = accounts.holding("orders");
        assert_eq!(orders.charged_bytes, 0.0, "{orders:?}");
        jvm.finish();
    });
}

/// Whatever is thinned, an account at its limit is known to this share of it (docs/policy.md).
const KNOWN_TO: f64 = 0.03;

#[test]
fn an_account_with_a_limit_is_known_closely_while_another_churns() {
    const MIB: f64 = 1024.0 * 1024.0;
    const LIMIT: f64 = 100.0 * MIB;
    // Within a budget the interval may be wider on a slow machine, whatever the limit. This is about thinning.
    let budget = "[sampling]\ncpu-budget = \"none\"\n";
    let policy = format!("{budget}{ACCOUNTS}limit = \"100MiB\"\n");
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = start(vm, HEAP, &policy);
        churn(&mut jvm);
        let hold = |jvm: &mut Jvm, arrays: usize| {
            let order = format!("hold com.acme.billing bytes:{BYTES}*{arrays}");
            Truth::of(&jvm.ask(&order)).bytes as f64
        };
        let mut truth = hold(&mut jvm, 85);
        let accounts = jvm.settled();
        let billing = accounts.holding("billing");
        // Thinned as the other account is, it would be known to a third.
        let stated = billing.standard_error_bytes;
        assert!(stated <= KNOWN_TO * LIMIT, "{billing:?}");
        let error = (billing.live_bytes - truth).abs();
        assert!(error <= 3.0 * stated + BYTES as f64, "{billing:?}, {truth}");
        assert!(
            accounts.is_in_state("billing", "open"),
            "{}",
            accounts.brief()
        );
        churn(&mut jvm);
        truth += hold(&mut jvm, 20);
        assert!(truth > 1.05 * LIMIT);
        jvm.until(VERDICT, "it is over its limit", |accounts| {
            accounts.is_in_state("billing", "over")
        });
        jvm.finish();
    });
}
