//! Where an account over its limit is refused, and where it is not because something would break.
//!
//! Every allocation of the account is sampled, and every one that is due counts as over
//! (`test-refuse=storm`), so that each place is judged each time it is visited. The naive mode
//! refuses everywhere: it shows that the places would break.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// Longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Where refusals are expected, and nothing is broken by them.
const OPEN: [&str; 16] = [
    "instance",
    "array",
    "arrays",
    "clone",
    "text",
    "builder",
    "library",
    "below",
    "lambda",
    "stream",
    "list",
    "map",
    "linked",
    "sorted",
    "concurrent",
    "compute",
];
/// Where none are, and why.
const CLOSED: [(&str, &str); 12] = [
    ("catch", "handler"),
    ("finally", "handler"),
    ("close", "handler"),
    ("initialiser", "clinit"),
    ("loader", "class-loading"),
    ("timer", "timer"),
    ("periodic", "timer"),
    ("logger", "logging"),
    ("uncaught", "uncaught"),
    ("cleaner", "references"),
    ("deque", "jdk"),
    ("transfer", "jdk"),
];
const MORE: &str = "interrupt-through = [\"java.util.concurrent.*\"]\n\
                    never-interrupt = [\"com.acme.orders.deep.*\"]\n";

fn policy(more: &str) -> String {
    format!(
        "[sampling]\ninterval = \"exact\"\n[enforcement]\nmode = \"enforce\"\n\
         [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders.*\"]\n\
         work = [\"com.acme.orders.*\"]\nlimit = \"1MiB\"\n{more}\
         [[account]]\nname = \"xml\"\npackages = [\"org.lib.xml.*\"]\ncharge = \"caller\"\n"
    )
}

fn places(vm: &Vm, how: &str) -> Builder {
    victim(vm, "victim.ThrowPoints")
        .policy(&policy(""))
        .option(&format!("test-refuse={how}"))
}

/// How often an error came out of a place, and how often something was broken.
fn visit(jvm: &mut Jvm, place: &str) -> (u32, u32) {
    let answer = jvm.ask(&format!("place {place}"));
    let words: Vec<&str> = answer[0].split(' ').collect();
    match words[..] {
        ["refused", refused, "harmed", harmed] => (
            refused.parse().expect("a number"),
            harmed.parse().expect("a number"),
        ),
        _ => panic!("{answer:?}"),
    }
}

fn deferred(jvm: &Jvm, reason: &str) -> f64 {
    let labels = [("account", "orders"), ("reason", reason)];
    jvm.metrics()
        .value("heapwarden_account_deferred_refusals_total", &labels)
        .unwrap_or(0.0)
}

/// Visits a place until an error has come out of it. What is met for the first time is put off
/// until it is known, however long that takes on a busy machine.
fn assert_open(jvm: &mut Jvm, place: &str) {
    let met = poll(LIMIT, || {
        let (refused, harmed) = visit(jvm, place);
        assert_eq!(harmed, 0, "{place} was broken");
        (refused > 0).then_some(())
    });
    assert!(met.is_some(), "{place} is never refused");
}

/// Visits a place until it has been put off for that reason.
fn assert_closed(jvm: &mut Jvm, place: &str, reason: &str) {
    let before = deferred(jvm, reason);
    let met = poll(LIMIT, || {
        assert_eq!(visit(jvm, place), (0, 0), "refused, harmed in {place}");
        (deferred(jvm, reason) > before).then_some(())
    });
    assert!(met.is_some(), "{place} was not put off as {reason}");
}

#[test]
fn an_account_is_refused_where_nothing_breaks_and_nowhere_else() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = places(vm, "storm");
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("await");
        for place in OPEN {
            assert_open(&mut jvm, place);
        }
        for (place, reason) in CLOSED {
            assert_closed(&mut jvm, place, reason);
        }

        fs::write(&path, policy(MORE)).expect("writable");
        jvm.until(LIMIT, "the policy is in force", |accounts| {
            accounts.0["policy"]["generation"] == 2
        });
        jvm.ask("await");
        assert_open(&mut jvm, "transfer");
        assert_closed(&mut jvm, "below", "policy");
        assert_closed(&mut jvm, "periodic", "timer");
        assert_open(&mut jvm, "array");

        let log = jvm.finish();
        assert!(log.contains("hook done, refused 0"), "{log}");
        assert!(log.contains("com.acme.orders.Places.array, line "), "{log}");
    });
}

#[test]
fn what_is_refused_anywhere_breaks() {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = places(&vm, "naive").start();
    jvm.ask("await");
    let unbroken: BTreeSet<&str> = CLOSED
        .iter()
        .map(|(place, _)| *place)
        .filter(|place| visit(&mut jvm, place) == (0, 0))
        .collect();
    assert!(unbroken.is_empty(), "naive refusals spare {unbroken:?}");
}

/// Names of the reviewed table that no JDK knows by themselves: other people's loggers and
/// containers, our own classes, and the hidden ones that method handles are compiled to.
fn is_none_of_the_jdks(name: &str) -> bool {
    ["*.", "dev.", "java.lang.invoke.LambdaForm$"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[test]
fn what_the_reviewed_table_names_exists() {
    let folder = artifacts::repository().join("policy-core/src/enforce/throw_points");
    let tables = [("reviewed.toml", "rule"), ("units.toml", "unit")].map(|(file, row)| {
        let text = fs::read_to_string(folder.join(file)).expect("readable");
        let table: toml::Table = text.parse().expect("TOML");
        table[row].as_array().expect("rows").clone()
    });
    let mut unknown: BTreeSet<&str> = tables
        .iter()
        .flatten()
        .flat_map(|row| row["at"].as_array().expect("names"))
        .map(|name| name.as_str().expect("a name"))
        .filter(|name| !is_none_of_the_jdks(name))
        .collect();
    assert!(unknown.len() > 100, "{unknown:?}");
    let names = unknown.iter().copied().collect::<Vec<_>>().join("\n");
    // A name of one release only is as good: the table serves all.
    for vm in every_jdk_with(Collector::Serial) {
        let builder = victim(&vm, "victim.KnownNames").without_agent();
        let file = builder.folder().join("names");
        fs::write(&file, &names).expect("writable");
        let output = builder.argument(file).run(LIMIT);
        assert!(output.status.success(), "{vm}: {}", output.stderr);
        for line in output.stdout.lines() {
            if let Some(name) = line.strip_prefix("known ") {
                unknown.remove(name);
            }
        }
    }
    assert!(unknown.is_empty(), "no JDK found here has {unknown:?}");
}
