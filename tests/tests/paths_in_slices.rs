//! Walks in place where ten services share a JVM: first what the account itself holds, and the whole heap only if
//! something is missing and the pause is accepted; a slice that is given up costs nothing but its pause.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::walks::{FINE, LIMIT, assert_no_traces, line};
use policy_report::{Holders, Paths};
use std::process::Command;

/// The first release on which a walk is given up cheaply.
const FIRST_WITH_SLICES: u32 = 21;
const ENTRY: &str = "victim.paths.service.Shop$Entry";
const POOLED: &str = "victim.paths.service.Shop$Pooled";
const GIVEN: &str = "victim.paths.service.Shop$Given";
/// Entries of each service but the small one: 6 MB.
const ENTRIES: u32 = 20_000;
/// How many slices are given up one after the other, where nobody says otherwise.
const STORM: u32 = 50;

fn is_zgc(vm: &Vm) -> bool {
    matches!(vm.collector, Collector::Z | Collector::GenerationalZ)
}

/// ZGC, which cannot be forked, of each JDK with slices, and G1 of the newest.
fn with_slices() -> Vec<Vm> {
    let able = every_vm().iter().filter(|vm| {
        vm.jdk.feature >= FIRST_WITH_SLICES && (is_long() || is_zgc(vm) || vm.jdk.feature > 21)
    });
    let of_two = |vm: &&Vm| is_long() || is_zgc(vm) || vm.collector == Collector::G1;
    let found: Vec<Vm> = able.filter(of_two).cloned().collect();
    assert!(!found.is_empty(), "no JDK with slices");
    found
}

/// The services with what they hold, and their accounts at rest.
fn ten(vm: &Vm) -> (Jvm, Accounts) {
    let mut jvm = victim(vm, "victim.paths.TenServices")
        .policy(FINE)
        .heap("400m")
        .start();
    jvm.ask(&format!("hold {ENTRIES}"));
    let accounts = jvm.settled();
    (jvm, accounts)
}

/// Returns the live bytes of a class of an account, 0 if it is not listed.
fn live_of(accounts: &Accounts, account: &str, class: &str) -> u64 {
    let found = accounts.find(account).and_then(|account| {
        let mut classes = account["classes"].as_array()?.iter();
        classes.find(|one| one["class"] == class)?["live_bytes"].as_u64()
    });
    found.unwrap_or(0)
}

/// The agent knows each object that it knew before: those of the services' classes are never freed.
#[track_caller]
fn assert_same(before: &Accounts, jvm: &mut Jvm, vm: &Vm) {
    let after = jvm.settled();
    for number in 0..10 {
        let name = format!("s{number}");
        for class in [ENTRY, POOLED, GIVEN] {
            let one = live_of(before, &name, class);
            assert_eq!(
                one,
                live_of(&after, &name, class),
                "{vm}: {class} of {name}"
            );
            let is_made = class != GIVEN || name == "s9";
            assert_eq!(one > 0, is_made, "{vm}: {class} of {name}");
        }
    }
}

fn ask(jvm: &Jvm, arguments: &[&str]) -> Finished {
    let mut asked = Command::new(artifacts::command());
    asked.args(arguments).env("NO_COLOR", "1");
    command::run(asked.arg(jvm.id().to_string()), LIMIT)
}

/// Asks for what holds a class of a service, in place and for at most so long at a time.
fn in_place(jvm: &Jvm, of: (&str, &str), accepted: &str) -> Paths<'static> {
    // A fork that may not stop it at all is never begun.
    let finished = ask(
        jvm,
        &[
            "paths",
            "--json",
            "--max-pause",
            "0ms",
            "--in-place",
            accepted,
            "--account",
            of.0,
            "--class",
            of.1,
        ],
    );
    let code = finished.status.code();
    let found: Paths<'_> = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {finished:#?}\n{}", jvm.log()));
    let expected = match (found.paths.is_empty(), found.undecided) {
        (false, _) => 0,
        (true, 0) => 3,
        (true, _) => 1,
    };
    assert_eq!(code, Some(expected), "{finished:#?}");
    assert_eq!(found.walk.how, "in-place", "{found:#?}");
    let chains: u64 = found.paths.iter().map(|chain| chain.objects).sum();
    assert_eq!(
        chains + found.unreached + found.undecided,
        found.looked_for,
        "{found:#?}"
    );
    let first: u64 = found.walk.stops.iter().map(|stop| stop.found).sum();
    assert_eq!(first, chains, "{found:#?}");
    found
}

/// Each stop: of what, and how it ended.
fn stops<'p>(found: &'p Paths<'_>) -> Vec<(&'p str, &'p str)> {
    let stops = found.walk.stops.iter();
    stops.map(|stop| (&*stop.of, &*stop.ended)).collect()
}

fn lines(found: &Paths<'_>) -> Vec<String> {
    let mut lines: Vec<String> = found.paths.iter().map(line).collect();
    lines.sort();
    lines.dedup();
    lines
}

const OF_ENTRY: &str = "static victim.paths.service.Shop.ENTRIES > java.util.HashMap table > java.util.HashMap$Node[] [*] > java.util.HashMap$Node value";
const OF_POOLED: &str = "thread \"pool\" > java.lang.Thread \"pool\" threadLocals > java.lang.ThreadLocal$ThreadLocalMap table > java.lang.ThreadLocal$ThreadLocalMap$Entry[] [*] > java.lang.ThreadLocal$ThreadLocalMap$Entry value > java.util.ArrayList elementData > java.lang.Object[] [*]";
const OF_GIVEN: &str = "static victim.paths.TenServices.HELD_OUTSIDE > java.util.ArrayList elementData > java.lang.Object[] [*] > java.util.ArrayList elementData > java.lang.Object[] [*]";

#[test]
fn what_the_account_itself_holds_is_found_in_the_first_stop_and_the_rest_only_if_accepted() {
    on_each(&with_slices(), |vm| {
        let (mut jvm, before) = ten(vm);
        // Its own static field, and its own thread.
        for (class, chain) in [(ENTRY, OF_ENTRY), (POOLED, OF_POOLED)] {
            let own = in_place(&jvm, ("s3", class), "120s");
            assert_eq!(stops(&own), [("slice", "done")], "{vm}: {own:#?}");
            assert!(lines(&own).contains(&chain.to_owned()), "{vm}: {own:#?}");
            assert_eq!((own.unreached, own.undecided), (0, 0), "{vm}: {own:#?}");
            assert_eq!(own.walk.one_stop_because, None);
            assert_eq!(own.walk.pause_ms, own.walk.stops[0].pause_ms);
            if !is_zgc(vm) {
                let forked = ask(
                    &jvm,
                    &[
                        "paths",
                        "--json",
                        "--max-pause",
                        "20s",
                        "--account",
                        "s3",
                        "--class",
                        class,
                    ],
                );
                let forked: Paths<'_> = serde_json::from_str(&forked.stdout).expect("the document");
                assert_eq!(forked.walk.how, "forked");
                assert_eq!(lines(&own), lines(&forked), "{vm}");
                assert!(forked.walk.stops.is_empty());
            }
        }
        // Held outside: the slice finds nothing, and the whole heap everything.
        let outside = in_place(&jvm, ("s9", GIVEN), "120s");
        assert_eq!(
            stops(&outside),
            [("slice", "done"), ("whole", "done")],
            "{vm}: {outside:#?}"
        );
        assert_eq!(outside.walk.stops[0].found, 0, "{vm}: {outside:#?}");
        assert_eq!(lines(&outside), [OF_GIVEN], "{vm}: {outside:#?}");
        assert_eq!((outside.unreached, outside.undecided), (0, 0));
        let [slice, whole] = &outside.walk.stops[..] else {
            panic!("{outside:#?}")
        };
        assert!(whole.references > 5 * slice.references, "{outside:#?}");
        println!(
            "{vm}: slice of s9 {} ms, whole {} ms (predicted {} ms)",
            slice.pause_ms, whole.pause_ms, whole.predicted_ms
        );
        // The same, but the whole heap is predicted to take longer than what is accepted: 60 MB at 5 s for each GiB.
        let left = in_place(&jvm, ("s9", GIVEN), "200ms");
        assert_eq!(stops(&left)[1], ("whole", "not-made"), "{vm}: {left:#?}");
        assert_eq!(left.undecided, left.looked_for, "{vm}: {left:#?}");
        assert_eq!(left.unreached, 0);
        let text = ask(
            &jvm,
            &[
                "paths",
                "--max-pause",
                "0ms",
                "--in-place",
                "200ms",
                "--account",
                "s9",
                "--class",
                GIVEN,
            ],
        );
        for part in ["stop 2, the whole heap: not made", "was not shown"] {
            assert!(text.stdout.contains(part), "{vm}: {text:#?}");
        }
        // So short that the slice itself is given up.
        let given_up = in_place(&jvm, ("s3", ENTRY), "1ms");
        assert_eq!(
            stops(&given_up),
            [("slice", "given-up"), ("whole", "not-made")],
            "{vm}: {given_up:#?}"
        );
        assert!(given_up.undecided > 0, "{vm}: {given_up:#?}");
        // Who has not agreed is told both.
        let asked = ask(
            &jvm,
            &[
                "paths",
                "--max-pause",
                "0ms",
                "--account",
                "s3",
                "--class",
                ENTRY,
            ],
        );
        assert_eq!(asked.status.code(), Some(1), "{asked:#?}");
        assert!(
            asked.stderr.contains("for what s3 itself holds, and"),
            "{asked:#?}"
        );
        // The JVM goes on, and the agent knows each object as before.
        assert_same(&before, &mut jvm, vm);
        assert_no_traces(&jvm, jvm.id());
        jvm.finish();
    });
}

#[test]
fn where_a_slice_cannot_help_there_is_one_stop_and_the_answer_says_why() {
    let old = every_vm()
        .iter()
        .find(|vm| vm.jdk.feature < FIRST_WITH_SLICES && vm.collector == Collector::G1);
    let new = with_slices().into_iter().next_back();
    let vms: Vec<Vm> = old.cloned().into_iter().chain(new).collect();
    on_each(&vms, |vm| {
        let (jvm, _) = ten(vm);
        let has_slices = vm.jdk.feature >= FIRST_WITH_SLICES;
        if !has_slices {
            let one = in_place(&jvm, ("s3", ENTRY), "120s");
            assert_eq!(stops(&one), [("whole", "done")], "{vm}: {one:#?}");
            let why = one.walk.one_stop_because.clone().unwrap_or_default();
            assert!(why.contains("JDK 21"), "{one:#?}");
            assert_eq!(lines(&one), [OF_ENTRY]);
        }
        let holders = ask(
            &jvm,
            &[
                "holders",
                "--json",
                "--max-pause",
                "0ms",
                "--in-place",
                "120s",
            ],
        );
        let holders: Holders<'_> = serde_json::from_str(&holders.stdout).expect("the document");
        let stops = &holders.walk.stops;
        assert_eq!((stops.len(), &*stops[0].of), (1, "whole"), "{holders:#?}");
        assert!(holders.walk.one_stop_because.is_some());
        // Holders are about the whole heap: what was seen of it is no answer.
        let late = ask(
            &jvm,
            &["holders", "--max-pause", "0ms", "--in-place", "1ms"],
        );
        assert_eq!(late.status.code(), Some(1), "{late:#?}");
        assert!(late.stderr.contains("not done within 0.001 s"), "{late:#?}");
        jvm.finish();
    });
}

#[test]
fn a_storm_of_slices_that_are_given_up_leaves_no_trace_in_a_jvm_that_allocates() {
    let runs = std::env::var("HEAPWARDEN_TEST_RUNS").ok();
    let count = runs.and_then(|runs| runs.parse().ok()).unwrap_or(STORM);
    let mut vms = with_slices();
    if !is_long() {
        vms.truncate(1);
    }
    on_each(&vms, |vm| {
        let (mut jvm, before) = ten(vm);
        let whole = in_place(&jvm, ("s3", ENTRY), "120s");
        jvm.ask("begin");
        let mut pauses = Vec::new();
        for _ in 0..count {
            let given_up = in_place(&jvm, ("s3", ENTRY), "1ms");
            assert_eq!(stops(&given_up)[0], ("slice", "given-up"), "{given_up:#?}");
            pauses.push(given_up.walk.pause_ms);
        }
        pauses.sort_by(f64::total_cmp);
        println!(
            "{vm}: {count} slices given up after 1 ms: the JVM stood still for {} ms in the middle, {} ms at most; a whole slice: {} ms",
            pauses[pauses.len() / 2],
            pauses[pauses.len() - 1],
            whole.walk.pause_ms
        );
        let again = in_place(&jvm, ("s3", ENTRY), "120s");
        assert_eq!(lines(&again), lines(&whole));
        jvm.ask("end");
        assert_same(&before, &mut jvm, vm);
        assert_no_traces(&jvm, jvm.id());
        jvm.finish();
    });
}
