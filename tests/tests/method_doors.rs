//! Doors that a policy has put at methods: calls of an account over its limit are turned away before any of their
//! code runs, with each kind of error, and nobody else's are.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, api_user};
use heapwarden_tests::other_agent;
use heapwarden_tests::stats;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// Limits in MiB, and what is held: within the reserve, so that no error is thrown in the middle.
const LIMIT: u64 = 32;
const HELD: u64 = 40;
const DESK: &str = "com.acme.desk.Desk";
const METHODS: [&str; 6] = ["order", "take", "outer", "visit", "withDoor", "stock"];
/// The words by which a policy chooses the error, each with the class that is thrown.
const KINDS: [(&str, &str); 3] = [
    ("oom", "dev.heapwarden.MemoryQuotaExceededError"),
    ("error", "dev.heapwarden.AllocationRefusedError"),
    ("exception", "dev.heapwarden.MemoryQuotaExceededException"),
];

/// The key `door` with methods of the desk.
fn door() -> String {
    let methods = METHODS.map(|method| format!("\"{DESK}#{method}\""));
    format!("door = [{}]\n", methods.join(", "))
}

fn enforced(accounts: &str) -> String {
    format!(
        "[sampling]\ninterval = \"8KiB\"\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n\n{accounts}"
    )
}

/// The desk's account of packages, with `more` keys, and its neighbours'.
fn policy(more: &str) -> String {
    enforced(&format!(
        "[[account]]\nname = \"desk\"\npackages = [\"com.acme.desk\", \"com.acme.late\"]\nlimit = \"{LIMIT}MiB\"\n{more}\n\n\
         [[account]]\nname = \"counter\"\npackages = [\"com.acme.counter\"]\nlimit = \"{LIMIT}MiB\"\n\
         door = [\"com.acme.counter.Counter#serve\"]\n"
    ))
}

fn program(vm: &Vm, policy: &str) -> Builder {
    api_user(vm, "victim.DoorsAtMethods")
        .heap("512m")
        .policy(policy)
}

/// One answer. Fails unless what was turned away did not run.
fn call(jvm: &mut Jvm, order: &str) -> String {
    let answer = jvm.ask(order).join("\n");
    let (text, ran) = answer.rsplit_once(' ').unwrap_or((&answer, ""));
    assert!(
        !text.contains("in the middle"),
        "{order}: {answer}\n{}",
        jvm.log()
    );
    if text.starts_with("turned away") {
        assert_eq!(ran, "0", "{order}: {answer}");
        assert!(
            text.contains("turned away at its door"),
            "{order}: {answer}"
        );
    } else if text == "in" && !order.contains("hold") && !order.contains("drop") {
        assert_ne!(ran, "0", "{order}: {answer}");
    }
    text.to_owned()
}

/// Calls until the answer is as wanted.
fn persist(jvm: &mut Jvm, order: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut last = String::new();
    let met = poll(PATIENCE, || {
        last = call(jvm, order);
        thread::sleep(Duration::from_millis(30));
        wanted(&last).then(|| last.clone())
    });
    met.unwrap_or_else(|| panic!("{order}: still {last}\n{}", jvm.log()))
}

fn is_away(answer: &str) -> bool {
    answer.starts_with("turned away")
}

/// Makes the desk hold more than its limit; ends at its door's first answer.
fn fill(jvm: &mut Jvm, holds: &str, order: &str) -> String {
    assert_eq!(call(jvm, &format!("{holds} hold {HELD}")), "in");
    jvm.ask("gc");
    persist(jvm, order, is_away)
}

/// Lets go, until calls come in one after the other.
fn empty(jvm: &mut Jvm, drops: &str, order: &str) {
    assert_eq!(call(jvm, &format!("{drops} drop")), "in");
    let done = poll(PATIENCE, || {
        jvm.ask("gc");
        (0..10).all(|_| call(jvm, order) == "in").then_some(())
    });
    assert!(done.is_some(), "it stays shut\n{}", jvm.log());
}

fn write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).expect("the case's folder is writable");
}

#[test]
fn calls_of_an_account_over_its_limit_are_turned_away_with_each_kind_and_no_others() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = program(vm, &policy(""));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        // The class is loaded and its methods have run: the door comes by a reload.
        assert_eq!(call(&mut jvm, "desk order"), "in");
        for (word, class) in KINDS {
            write(
                &path,
                &policy(&format!("{}refuse-with = \"{word}\"", door())),
            );
            jvm.until_logged("com.acme.desk.Desk#order has a door, in 3 method(s)");
            let answer = fill(&mut jvm, "desk", "desk order");
            let wanted = format!("turned away {class}: account \"desk\" is over its memory limit");
            let is_kind = |answer: &str| answer.starts_with(&wanted);
            if !is_kind(&answer) {
                persist(&mut jvm, "desk order", is_kind);
            }
            for what in ["overload", "static", "outer", "failing"] {
                persist(&mut jvm, &format!("desk {what}"), is_kind);
            }
            if call(&mut jvm, "virtual order") != "none" {
                persist(&mut jvm, "virtual order", is_kind);
            }
            for _ in 0..50 {
                assert_eq!(call(&mut jvm, "neighbour"), "in", "{vm}");
            }
            // A probe comes in now and then, also through two doors: the inner one does not ask.
            persist(&mut jvm, "desk outer", |answer| answer == "in");
            // An exception that the method throws itself ends the probe as well.
            persist(&mut jvm, "desk failing", |answer| answer == "threw");
            persist(&mut jvm, "desk order", |answer| answer == "in");
            empty(&mut jvm, "desk", "desk order");
        }
        let accounts = jvm.accounts();
        let desk = accounts.find("desk").expect("listed");
        assert!(
            desk["admission_refusals_total"].as_u64() > Some(20),
            "{desk}"
        );
        assert_eq!(
            desk["refusals_total"], 0,
            "{vm}: nothing was thrown in the middle: {desk}"
        );
        jvm.finish();
    });
}

#[test]
fn a_class_that_is_loaded_later_has_its_door_at_once_and_loses_it_with_the_policy() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let late = "door = [\"com.acme.late.Late#order\", \"com.acme.desk.Desk#order\", \"com.acme.desk.Desk#absent\"]\nrefuse-with = \"exception\"";
        let builder = program(vm, &policy(late));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.until_logged("com.acme.desk.Desk has no method absent with code");
        fill(&mut jvm, "desk", "desk order");
        call(&mut jvm, "late");
        jvm.until_logged("com.acme.late.Late#order has a door");
        persist(&mut jvm, "late", is_away);

        // Without them the account has no door any more. One call that comes in may be a probe; so many are none.
        write(&path, &policy(""));
        for order in ["late", "desk order"] {
            let all_in = poll(PATIENCE, || {
                let mut calls = (0..20).map(|_| call(&mut jvm, order));
                calls.all(|answer| answer == "in").then_some(())
            });
            assert!(all_in.is_some(), "{vm}: {order}\n{}", jvm.log());
        }
        let log = jvm.finish();
        assert_eq!(log.matches("no method absent").count(), 1, "{vm}: {log}");
    });
}

#[test]
fn what_is_inside_is_not_asked_again() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = program(vm, &policy(&door())).start();
        jvm.until_logged("com.acme.desk.Desk#visit has a door");
        jvm.ask("begin visit");
        jvm.ask("desk visited");
        fill(&mut jvm, "desk", "desk order");
        jvm.ask("desk go-on");
        assert_eq!(call(&mut jvm, "end"), "in");
        jvm.finish();
    });
}

#[test]
fn scopes_and_services_have_doors_at_methods() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let accounts = format!(
            "[[account]]\nscope = \"tenant-*\"\nlimit = \"{LIMIT}MiB\"\n{0}\n\n\
             [[account]]\nservice = \"shop\"\nlimit = \"{LIMIT}MiB\"\n{0}refuse-with = \"error\"\n",
            door()
        );
        let mut jvm = program(vm, &enforced(&accounts)).start();
        jvm.until_logged("com.acme.desk.Desk#order has a door");
        let answer = fill(&mut jvm, "scope tenant-1", "scope tenant-1 order");
        assert!(answer.contains("account \"tenant-1\""), "{vm}: {answer}");
        for _ in 0..20 {
            assert_eq!(call(&mut jvm, "scope tenant-2 order"), "in", "{vm}");
            assert_eq!(call(&mut jvm, "desk order"), "in", "{vm}");
        }
        empty(&mut jvm, "scope tenant-1", "scope tenant-1 order");

        jvm.ask("deploy shop");
        jvm.ask("deploy other");
        let answer = fill(&mut jvm, "service shop", "service shop order");
        assert!(
            answer.contains("AllocationRefusedError: account \"shop\""),
            "{vm}: {answer}"
        );
        persist(&mut jvm, "bare shop order", is_away);
        for _ in 0..20 {
            assert_eq!(call(&mut jvm, "service other order"), "in", "{vm}");
            assert_eq!(call(&mut jvm, "bare other order"), "in", "{vm}");
        }
        empty(&mut jvm, "service shop", "service shop order");
        jvm.finish();
    });
}

/// Beyond limit and reserve an error ends what came through the door, and nothing else while the heap has room: what
/// the policy left without a door is what lets go.
#[test]
fn errors_hit_what_came_through_the_door_and_nothing_beside_it() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let account = format!(
            "[[account]]\nscope = \"tenant\"\nlimit = \"{LIMIT}MiB\"\n{}",
            door()
        );
        let mut jvm = program(vm, &enforced(&account)).start();
        jvm.until_logged("com.acme.desk.Desk#stock has a door");
        let answer = jvm.ask(&format!("scope tenant stock {}", 10 * LIMIT));
        let refused = "turned away dev.heapwarden.MemoryQuotaExceededError: account \"tenant\"";
        assert!(answer[0].starts_with(refused), "{vm}: {answer:?}");
        let held = |jvm: &Jvm| {
            let accounts = jvm.accounts();
            let account = accounts.find("tenant").expect("it is listed");
            account["live_bytes"].as_u64().expect("a number")
        };
        // It came in while the door was open, so it had the reserve.
        assert!(held(&jvm) >= (2 * LIMIT) << 20, "{vm}: {}", jvm.log());
        for _ in 0..8 {
            assert_eq!(call(&mut jvm, "scope tenant hold 2"), "in", "{vm}");
        }
        jvm.until(
            PATIENCE,
            "what came beside the door is told of",
            |accounts| {
                let account = accounts.find("tenant").expect("it is listed");
                account["deferred_by_reason"]["no-door"]
                    .as_u64()
                    .is_some_and(|deferred| deferred > 0)
            },
        );
        empty(&mut jvm, "scope tenant", "scope tenant order");
        jvm.finish();
    });
}

#[test]
fn another_agent_does_not_take_a_door_out() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm, &policy(&door())).start();
        jvm.until_logged("com.acme.desk.Desk#order has a door");
        fill(&mut jvm, "desk", "desk order");
        other_agent::transform_afresh(jvm.id(), &[DESK]);
        jvm.until_logged("another agent has changed com.acme.desk.Desk: its doors are there again");
        persist(&mut jvm, "desk order", is_away);
        persist(&mut jvm, "desk static", is_away);
        jvm.finish();
    });
}

/// Bytes that a `write` or a `copy` keeps and a `read` throws away: arrays of 1,000 bytes, their headers, references.
const NOTE_BYTES: u64 = 40 * (16 + 1_000) + 16 + 4 * 40;
/// The time in which prices are learned: more than the shortest window.
const LEARNING: Duration = Duration::from_secs(14);
/// Calls that copied, at least, when their figures are judged.
const LEAST_COPIES: u64 = 120;
/// Calls while the door is shut, after the first moments.
const STEADY: Duration = Duration::from_secs(8);
/// The shortest pause between two probes once two have come in, and how many come in before that.
const PROBE_PAUSE: Duration = Duration::from_millis(400);
const FIRST_PROBES: u64 = 3;

/// How many of so many calls came in.
fn many(jvm: &mut Jvm, times: u64, what: &str) -> u64 {
    let answer = jvm.ask(&format!("many {times} {what}")).join("\n");
    (answer.parse()).unwrap_or_else(|_| panic!("{what}: {answer}\n{}", jvm.log()))
}

/// A figure of a route of the desk.
fn figure(account: &Value, method: &str, name: &str) -> Option<u64> {
    let routes = account["routes"].as_array()?;
    let route = format!("{DESK}#{method}");
    routes.iter().find(|one| one["route"] == *route)?[name].as_u64()
}

/// Does something, and looks at the account, until it is so.
fn until_desk(
    jvm: &mut Jvm,
    what: &str,
    mut is_so: impl FnMut(&Value) -> bool,
    mut meanwhile: impl FnMut(&mut Jvm),
) -> Value {
    let mut account = Value::Null;
    let met = poll(PATIENCE, || {
        meanwhile(jvm);
        jvm.ask("gc");
        account = jvm.accounts().find("desk").cloned().unwrap_or_default();
        thread::sleep(Duration::from_millis(200));
        is_so(&account).then_some(())
    });
    assert!(met.is_some(), "{what}: {account:#}\n{}", jvm.log());
    account
}

/// The bytes that calls allocate and keep are known by method, and those of an inner call count for the outer.
/// A call that keeps nothing is a probe all the same: its arguments are not in the price.
#[test]
fn methods_with_doors_have_figures_and_no_price_lets_a_call_in() {
    // Before JDK 25, arrays of a thousand bytes may count for too much (JDK-8356372).
    let newest = every_jdk_with(Collector::G1).pop().expect("there is one");
    on_each(&[newest], |vm| {
        let methods = ["read", "write", "copy"].map(|method| format!("\"{DESK}#{method}\""));
        let limit = 2 * LIMIT;
        let account = format!(
            "[[account]]\nname = \"desk\"\npackages = [\"com.acme.desk\"]\nlimit = \"{limit}MiB\"\ndoor = [{}]\n",
            methods.join(", ")
        );
        let mut jvm = program(vm, &enforced(&account)).start();
        jvm.until_logged("com.acme.desk.Desk#copy has a door");

        // A method has a route some time after its first call.
        let (mut read, mut wrote, mut copied) = (0, 0, 0);
        let begun = until_desk(
            &mut jvm,
            "methods have routes",
            |account| {
                ["read", "write", "copy"]
                    .iter()
                    .all(|method| figure(account, method, "calls_total") > Some(0))
            },
            |jvm| {
                read += many(jvm, 1, "read");
                wrote += many(jvm, 1, "write");
                copied += many(jvm, 1, "copy");
            },
        );
        let early =
            |method, calls: u64| calls - figure(&begun, method, "calls_total").expect("a number");
        let early = [
            early("read", read),
            early("write", wrote),
            early("copy", copied),
        ];
        let began = Instant::now();
        // A slow machine makes few calls in that time: the bytes of each are told from at least so many.
        while began.elapsed() < LEARNING || copied < LEAST_COPIES {
            read += many(&mut jvm, 60, "read");
            wrote += many(&mut jvm, 4, "write");
            copied += many(&mut jvm, 2, "copy");
            jvm.ask("gc");
            thread::sleep(Duration::from_millis(200));
        }
        let account = until_desk(
            &mut jvm,
            "what methods cost",
            |account| {
                let figure = |method, name| figure(account, method, name).unwrap_or(0);
                let is_true = |method, calls: u64| {
                    let error = figure(method, "standard_error_bytes");
                    let live = figure(method, "live_bytes");
                    error > 0
                        && live.abs_diff(calls * NOTE_BYTES) as f64
                            <= stats::outermost(2) * error as f64
                };
                let is_kept = |method| {
                    let kept = figure(method, "kept_bytes_per_call");
                    kept > NOTE_BYTES * 4 / 5 && kept < NOTE_BYTES * 6 / 5
                };
                is_true("write", wrote - early[1])
                    && is_true("copy", copied - early[2])
                    && is_kept("write")
                    && is_kept("copy")
                    && figure("read", "kept_bytes_per_call") < 1_024
                    && figure("read", "allocated_bytes_per_call") > NOTE_BYTES * 4 / 5
                    && figure("read", "allocated_bytes_per_call") < NOTE_BYTES * 6 / 5
            },
            |_| (),
        );
        println!(
            "{vm}: {read} read, {wrote} wrote, {copied} copied: {:#}",
            account["routes"]
        );
        let truth = [("read", read), ("write", wrote), ("copy", copied)];
        for ((method, calls), early) in truth.into_iter().zip(early) {
            let counted = figure(&account, method, "calls_total");
            assert_eq!(counted, Some(calls - early), "{method}: {account:#}");
            assert_eq!(figure(&account, method, "refused_total"), Some(0));
        }
        let routes = account["routes"].as_array().expect("a list");
        let of_routes: u64 = routes.iter().filter_map(|r| r["live_bytes"].as_u64()).sum();
        assert!(
            Some(of_routes) <= account["live_bytes"].as_u64(),
            "{account:#}"
        );

        // It fills up.
        let mut rounds = 0;
        let filled = poll(PATIENCE, || {
            jvm.ask("gc");
            // Within the reserve, however late a busy machine has its verdict.
            rounds += 1;
            let times = if rounds <= 12 { 200 } else { 1 };
            (many(&mut jvm, times, "write") < times).then_some(())
        });
        assert!(filled.is_some(), "{}", jvm.log());
        many(&mut jvm, 100, "read");
        let began = Instant::now();
        let (mut asked, mut came, mut wrote, mut went) = (0, 0, 0, 0);
        while began.elapsed() < STEADY {
            came += many(&mut jvm, 40, "read");
            went += many(&mut jvm, 5, "write") + many(&mut jvm, 5, "copy");
            (asked, wrote) = (asked + 40, wrote + 10);
            thread::sleep(Duration::from_millis(20));
        }
        let pauses = began.elapsed().as_millis() / PROBE_PAUSE.as_millis();
        let most_probes = FIRST_PROBES + u64::try_from(pauses).expect("a few");
        println!(
            "{vm}: {came} of {asked} reads came in, {went} of {wrote} writes, {most_probes} may"
        );
        assert!(asked + wrote > 2 * most_probes, "{asked}: too slow");
        assert!(
            came + went <= most_probes,
            "{came} of {asked} and {went} of {wrote}, {most_probes} may"
        );
        let refused_before = asked + wrote - came - went;
        let account = until_desk(
            &mut jvm,
            "refused calls are told",
            |account| {
                let refused = |method| figure(account, method, "refused_total").unwrap_or(0);
                ["read", "write", "copy"].map(refused).iter().sum::<u64>() >= refused_before
            },
            |_| (),
        );
        assert_eq!(
            account["refusals_total"], 0,
            "nothing was thrown: {account:#}"
        );
        empty(&mut jvm, "desk", "desk write");
        jvm.finish();
    });
}

#[test]
fn a_door_allocates_nothing_while_nobody_is_over() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = program(vm, &policy(&door())).start();
        jvm.until_logged("com.acme.desk.Desk#withDoor has a door");
        let answer = jvm.ask("cost 1000000");
        // The time too, for people: the machine may be busy.
        println!("{vm}: {answer:?}");
        let bytes = (answer.iter()).find_map(|line| line.strip_prefix("bytes"));
        let bytes: f64 = bytes.expect("told").trim().parse().expect("a number");
        // Of a million calls not one allocates.
        assert!(bytes < 100_000.0, "{vm}: {answer:?}");
        jvm.finish();
    });
}
