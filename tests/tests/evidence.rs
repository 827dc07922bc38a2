//! Evidence: garbage in old memory never leads to a refusal, held objects do, and the agent asks for the
//! cheapest collection that proves it.

use heapwarden_harness::busy::Busy;
use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, every_vm, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Metrics;
use std::time::{Duration, Instant};

// An account that holds and is idle is known as well as its samples were taken, whatever the machine.
const POLICY: &str = r#"
[sampling]
cpu-budget = "none"

[[account]]
name = "orders"
packages = ["com.acme.orders"]
limit = "100MiB"
"#;
const LIMIT_BYTES: f64 = 100.0 * 1024.0 * 1024.0;
/// Longest that a verdict may take on a busy machine: the budget makes it wait as well.
const VERDICT: Duration = Duration::from_secs(90);
/// A figure above its limit is looked at after five seconds; a cycle and its refunds take some more.
const SECOND_LOOK: Duration = Duration::from_secs(60);
/// Until then an answer has what was charged before it was asked for.
const STEP: Duration = Duration::from_secs(1);
/// Until then a collection is known to the enforcer.
const STEP_SEEN: Duration = Duration::from_secs(20);

const COLLECTIONS: &str = "heapwarden_evidence_collections_total";
const SECONDS: &str = "heapwarden_evidence_seconds_total";
const PERIODIC: &str = "G1PeriodicGCInterval";
const LOAD: &str = "G1PeriodicGCSystemLoadThreshold";

/// A small young generation and early promotion, so that old garbage is soon made; a heap from
/// the start so large that the collector has no reason of its own to collect old memory.
fn start(vm: &Vm, flags: &[&str]) -> Jvm {
    let mut builder = victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .heap("1g")
        .flag("-Xms1g")
        .flag("-Xmn64m")
        .flag("-XX:MaxTenuringThreshold=1")
        .flag("-Xlog:gc*:file=gc.log")
        .policy(POLICY);
    for flag in flags {
        builder = builder.flag(flag);
    }
    builder.start()
}

/// Holds so many MB, in old memory where there is such.
fn hold_old(jvm: &mut Jvm, mb: u32) {
    jvm.ask(&format!("hold com.acme.orders bytes:1000*{mb}000"));
    for _ in 0..6 {
        jvm.ask("churn - bytes:60000*500");
    }
}

fn collections(metrics: &Metrics, kind: &str) -> f64 {
    metrics
        .value(COLLECTIONS, &[("kind", kind)])
        .unwrap_or_else(|| panic!("no {COLLECTIONS} of kind {kind}"))
}

/// By G1, evidence of old memory was taken by concurrent cycles, which are counted, and nothing was
/// collected in a full pause.
fn assert_gently(jvm: &Jvm, metrics: &Metrics) {
    let log = std::fs::read_to_string(jvm.folder().join("gc.log")).expect("the collector's log");
    let told = format!("{}\n{log}", jvm.log());
    assert!(log.contains("(G1 Periodic Collection)"), "{told}");
    assert!(collections(metrics, "concurrent") > 0.0, "{told}");
    assert_eq!(collections(metrics, "full"), 0.0);
    assert!(!log.contains("Pause Full"), "{log}");
}

/// Asserts that the flag which asks for cycles is as it was. It may be set for another look just now.
fn assert_put_back(jvm: &mut Jvm) {
    let is_back = poll(VERDICT, || (flag(jvm, PERIODIC) == "flag 0").then_some(()));
    assert!(is_back.is_some(), "{}", jvm.log());
}

fn flag(jvm: &mut Jvm, name: &str) -> String {
    jvm.ask(&format!("flag {name}")).join(" ")
}

#[test]
fn garbage_in_old_memory_is_refunded_and_never_convicts() {
    on_each(every_vm(), |vm| {
        let mut jvm = start(vm, &[]);
        // One batch may stay for ever, for it is within the limit.
        for _ in 0..5 {
            hold_old(&mut jvm, 65);
            jvm.ask("drop");
        }
        jvm.until(VERDICT, "the garbage is refunded", |accounts| {
            let orders = accounts.holding("orders");
            // Where there is no concurrent collection, nobody looks at what may be within its error.
            let may_stay = match vm.collector {
                Collector::Serial | Collector::Parallel => 3.0 * orders.standard_error_bytes,
                _ => 0.0,
            };
            orders.charged_bytes < LIMIT_BYTES + may_stay
        });
        // Counted when its refunds are known to be in, which is later than when they are.
        let metrics = poll(VERDICT, || {
            let metrics = jvm.metrics();
            let waits = vm.collector == Collector::G1 && collections(&metrics, "concurrent") == 0.0;
            (!waits).then_some(metrics)
        })
        .unwrap_or_else(|| jvm.metrics());
        let refused = metrics.of_account("heapwarden_account_would_refuse_total", "orders");
        assert_eq!(refused, Some(0.0));
        assert!(!jvm.log().contains("over its limit"), "{}", jvm.log());
        if vm.collector == Collector::G1 {
            assert_gently(&jvm, &metrics);
            assert_put_back(&mut jvm);
        }
        jvm.finish();
    });
}

#[test]
fn what_is_held_in_old_memory_convicts_until_it_is_let_go() {
    on_each(every_vm(), |vm| {
        let mut jvm = start(vm, &[]);
        hold_old(&mut jvm, 150);
        let state = |state: &'static str| {
            move |accounts: &heapwarden_tests::scrape::Accounts| {
                accounts
                    .find("orders")
                    .is_some_and(|account| account["state"] == state)
            }
        };
        jvm.until(VERDICT, "it is over its limit", state("over"));
        jvm.ask("drop");
        jvm.until(VERDICT, "it is admitted again", state("open"));
        let metrics = jvm.metrics();
        // ZGC collects all memory of its own accord, and then nothing need be asked for.
        let asked = metrics.sum(COLLECTIONS) > 0.0;
        assert!(
            asked || vm.collector == Collector::Z,
            "no evidence was taken"
        );
        assert_eq!(metrics.sum(SECONDS) > 0.0, asked, "evidence takes time");
        if vm.collector == Collector::G1 {
            assert_gently(&jvm, &metrics);
            assert_put_back(&mut jvm);
        }
        jvm.finish();
    });
}

/// So little above its limit that it may be within its error, where no verdict comes: on an idle G1 nothing would
/// collect what it has let go.
#[test]
fn an_idle_account_that_has_let_go_is_seen_below_its_limit() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = start(vm, &[]);
        let charged = |accounts: &heapwarden_tests::scrape::Accounts| {
            accounts.holding("orders").charged_bytes
        };
        hold_old(&mut jvm, 95);
        // By small steps, each known before the next: an answer may be a moment old, and far beyond its limit the account
        // would be suspect.
        let mut before = charged(&jvm.accounts());
        while before <= LIMIT_BYTES {
            jvm.ask("hold com.acme.orders bytes:1000*1000");
            let more = poll(STEP, || {
                Some(charged(&jvm.accounts())).filter(|now| *now > before)
            });
            before = more.unwrap_or(before);
        }
        assert!(jvm.accounts().is_in_state("orders", "open"));
        jvm.ask("drop");
        jvm.until(SECOND_LOOK, "what it let go is gone", |accounts| {
            charged(accounts) < LIMIT_BYTES / 2.0
        });
        jvm.finish();
    });
}

#[test]
fn a_flag_that_the_operator_changes_meanwhile_stays_as_he_made_it() {
    const THEIRS: &str = "flag 86400000";
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = start(vm, &[]);
        hold_old(&mut jvm, 150);
        let mut seen = false;
        let begin = Instant::now();
        while begin.elapsed() < VERDICT {
            if flag(&mut jvm, PERIODIC) != "flag 0" {
                assert_eq!(flag(&mut jvm, &format!("{PERIODIC} 86400000")), THEIRS);
                seen = true;
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(seen, "the flag was never changed: {}", jvm.log());
        // By the next request the operator's interval bars the way; a full collection is the next.
        jvm.until(VERDICT, "it is over its limit", |accounts| {
            accounts
                .find("orders")
                .is_some_and(|account| account["state"] == "over")
        });
        assert_eq!(flag(&mut jvm, PERIODIC), THEIRS);
        jvm.finish();
    });
}

/// The cycles that G1 has begun for its periodic flag.
fn periodic_cycles(jvm: &Jvm) -> f64 {
    let log = std::fs::read_to_string(jvm.folder().join("gc.log")).expect("the collector's log");
    let begun = "(Concurrent Start) (G1 Periodic Collection)";
    let begun = (log.lines()).filter(|line| line.ends_with("ms") && line.contains(begun));
    begun.count() as f64
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").expect("Linux");
    let latest = text.split(' ').next().and_then(|word| word.parse().ok());
    latest.expect("the load of the last minute")
}

/// Has the account grow from one collection to the next, up to nine tenths of its limit: it is never suspect. Whether G1
/// was kept ready at the end of any step; the load's threshold is `load` otherwise.
fn grown_until_ready(jvm: &mut Jvm, load: &str) -> bool {
    const GROWTH_BYTES: f64 = 5e6;
    let is_loaded = poll(VERDICT, || (load_average() >= 0.1).then_some(()));
    assert!(is_loaded.is_some(), "a busy thread is a load");
    let survived = |jvm: &Jvm| jvm.accounts().holding("orders").live_bytes;
    let mut before = 0.0;
    (0..18).any(|_| {
        jvm.ask(&format!(
            "hold com.acme.orders bytes:1000*{}",
            GROWTH_BYTES / 1000.0
        ));
        jvm.ask("churn - bytes:60000*1500");
        // The enforcer knows a growth by what it sees after each step's collection. On a busy machine that is late; and
        // whoever grows on meanwhile and then stands was not seen to grow.
        let seen = poll(STEP_SEEN, || {
            let now = survived(jvm);
            (now >= before + GROWTH_BYTES / 2.0).then_some(now)
        });
        before = seen.unwrap_or(before);
        std::thread::sleep(Duration::from_millis(200));
        flag(jvm, LOAD) != load
    })
}

/// G1 looks for a request once a second by itself.
#[test]
fn near_its_limit_a_growing_account_finds_g1_ready_and_no_cycle_comes_before_its_time() {
    // Without any load G1 is not kept ready.
    let _busy = Busy::start(1).expect("a process can be started");
    let cases: [(&[&str], bool); 3] = [
        (&[], true),
        (&["-XX:G1PeriodicGCSystemLoadThreshold=1000"], false),
        (&["-XX:-G1PeriodicGCInvokesConcurrent"], false),
    ];
    for (flags, is_kept_ready) in cases {
        let vms = every_jdk_with(Collector::G1);
        let vms = if is_kept_ready { &vms[..] } else { &vms[..1] };
        on_each(vms, |vm| {
            let mut jvm = start(vm, flags);
            let load = flag(&mut jvm, LOAD);
            let mut was_ready = grown_until_ready(&mut jvm, &load);
            if is_kept_ready {
                // On a busy machine the enforcer learns of it late.
                let is_ready = |jvm: &mut Jvm| (flag(jvm, LOAD) != load).then_some(());
                was_ready = was_ready || poll(VERDICT, || is_ready(&mut jvm)).is_some();
            }
            assert_eq!(was_ready, is_kept_ready, "{flags:?}: {}", jvm.log());
            // An account that stands needs no verdict soon.
            assert_put_back(&mut jvm);
            let is_back = poll(VERDICT, || (flag(&mut jvm, LOAD) == load).then_some(()));
            assert!(is_back.is_some(), "{}: {}", flag(&mut jvm, LOAD), jvm.log());
            std::thread::sleep(Duration::from_millis(100));
            // A leak's statistic may have asked for a cycle; for each 10 ms that the agent gets no processor one more
            // may have begun.
            let unasked = poll(VERDICT, || {
                let asked = collections(&jvm.metrics(), "concurrent");
                (periodic_cycles(&jvm) <= 6.0 * asked).then_some(())
            });
            assert!(
                unasked.is_some(),
                "{} began: {}",
                periodic_cycles(&jvm),
                jvm.log()
            );
            jvm.finish();
        });
    }
}

/// With his threshold nothing holds cycles back, or something holds back those that the agent asks for.
#[test]
fn flags_that_the_operator_changes_while_g1_is_kept_ready_stay_as_he_made_them() {
    let _busy = Busy::start(1).expect("a process can be started");
    for (name, theirs, other) in [(LOAD, "1000.0", PERIODIC), (PERIODIC, "86400000", LOAD)] {
        on_each(&every_jdk_with(Collector::G1)[..1], |vm| {
            let mut jvm = start(vm, &[]);
            let before = flag(&mut jvm, other);
            let load = flag(&mut jvm, LOAD);
            let is_ready = grown_until_ready(&mut jvm, &load)
                || poll(VERDICT, || (flag(&mut jvm, LOAD) != load).then_some(())).is_some();
            assert!(is_ready, "{}", jvm.log());
            let theirs_told = format!("flag {theirs}");
            assert_eq!(flag(&mut jvm, &format!("{name} {theirs}")), theirs_told);
            let is_back = poll(VERDICT, || (flag(&mut jvm, other) == before).then_some(()));
            assert!(
                is_back.is_some(),
                "{}: {}",
                flag(&mut jvm, other),
                jvm.log()
            );
            // A look comes each tenth of a second, on a busy machine later: not one cycle after another for 20 s.
            let begun = periodic_cycles(&jvm);
            let asked = collections(&jvm.metrics(), "concurrent");
            assert!(begun <= 6.0 * asked + 150.0, "{begun}, {asked}");
            hold_old(&mut jvm, 60);
            jvm.until(VERDICT, "it is over its limit", |accounts| {
                accounts.is_in_state("orders", "over")
            });
            assert_eq!(flag(&mut jvm, name), theirs_told);
            jvm.finish();
        });
    }
}

#[test]
fn where_g1_would_not_mark_concurrently_the_next_rung_is_taken() {
    let cases: [(&[&str], &str, &str); 3] = [
        (
            &["-XX:-G1PeriodicGCInvokesConcurrent"],
            "full",
            "JvmtiEnv ForceGarbageCollection",
        ),
        (
            &[
                "-XX:G1PeriodicGCInterval=86400000",
                "-XX:+ExplicitGCInvokesConcurrent",
            ],
            "concurrent",
            "System.gc()",
        ),
        (
            &[
                "-XX:G1PeriodicGCInterval=86400000",
                "-XX:+ExplicitGCInvokesConcurrent",
                "-XX:+DisableExplicitGC",
            ],
            "full",
            "JvmtiEnv ForceGarbageCollection",
        ),
    ];
    for (flags, kind, cause) in cases {
        on_each(&every_jdk_with(Collector::G1), |vm| {
            let mut jvm = start(vm, flags);
            let before = flag(&mut jvm, PERIODIC);
            hold_old(&mut jvm, 150);
            jvm.until(VERDICT, "it is over its limit", |accounts| {
                accounts
                    .find("orders")
                    .is_some_and(|account| account["state"] == "over")
            });
            // The proof may be there before the call that waits for the collection has returned.
            let is_counted = || (collections(&jvm.metrics(), kind) > 0.0).then_some(());
            assert!(poll(VERDICT, is_counted).is_some(), "{flags:?}");
            let log = std::fs::read_to_string(jvm.folder().join("gc.log")).expect("a log");
            assert!(log.contains(cause), "{flags:?}: {log}");
            assert_eq!(flag(&mut jvm, PERIODIC), before);
            jvm.finish();
        });
    }
}

#[test]
fn where_classes_are_never_unloaded_only_g1_and_whole_collections_prove() {
    on_each(every_vm(), |vm| {
        let mut jvm = start(vm, &["-Xnoclassgc"]);
        hold_old(&mut jvm, 150);
        if matches!(vm.collector, Collector::Serial | Collector::Parallel) {
            let said = "nothing will be refused";
            jvm.until(VERDICT, "it says that nothing can be proved", |_| {
                jvm.log().contains(said)
            });
            assert_eq!(collections(&jvm.metrics(), "full"), 0.0);
        } else {
            jvm.until(VERDICT, "it is over its limit", |accounts| {
                accounts
                    .find("orders")
                    .is_some_and(|account| account["state"] == "over")
            });
        }
        jvm.finish();
    });
}

/// The promise: a suspicion ends within this, in a verdict or in acquittal, also where the agent's threads get
/// a fraction of a processor.
const SUSPICION: Duration = Duration::from_secs(15);
const DELAY: &str = "heapwarden_verdict_delay_seconds";

/// How often suspicions ended, and how long they took in all.
fn suspicions(jvm: &Jvm) -> (f64, Duration) {
    let metrics = jvm.metrics();
    let seconds = metrics.sum(&format!("{DELAY}_sum"));
    (
        metrics.sum(&format!("{DELAY}_count")),
        Duration::from_secs_f64(seconds),
    )
}

#[test]
fn a_suspicion_ends_soon_on_a_busy_machine_too() {
    // Four for each processor: the JVM's threads get a fifth of the time that they want.
    let processors = std::thread::available_parallelism().map_or(1, |some| some.get() as u32);
    let mut busy = Busy::start(4 * processors).expect("busy processes");
    // A busy machine is a burden on the tests beside it: two VMs, whose evidence differs most.
    let with = |collector| every_jdk_with(collector).pop();
    let vms = [with(Collector::G1), with(Collector::Z)];
    for vm in vms.iter().flatten() {
        let mut jvm = start(vm, &[]);
        // One that leaks is convicted, one whose old garbage stands beyond its limit is acquitted.
        for (mb, ends_in) in [(150, "over"), (0, "open"), (65, "open"), (65, "open")] {
            let before = suspicions(&jvm);
            if mb == 0 {
                jvm.ask("drop");
            } else {
                hold_old(&mut jvm, mb);
                if ends_in == "open" {
                    jvm.ask("drop");
                }
            }
            jvm.until(VERDICT, ends_in, |accounts| {
                accounts.is_in_state("orders", ends_in)
            });
            let after = suspicions(&jvm);
            let took = after.1.saturating_sub(before.1);
            let many = (after.0 - before.0).max(1.0);
            assert!(
                took <= SUSPICION.mul_f64(many),
                "{vm}: {many} suspicions took {took:?}\n{}",
                jvm.log()
            );
        }
        assert!(suspicions(&jvm).0 >= 1.0, "{vm}: nobody was suspected");
        jvm.finish();
    }
    assert!(busy.runs(), "the machine was not busy");
}
