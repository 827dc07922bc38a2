//! Real programs refused for minutes wherever the agent finds it safe, beside neighbours that must
//! not notice: the Java compiler, XSLT, H2, an application in Jetty, and a bazaar of everything that
//! the JDK has. The neighbours share the JDK's caches and pools and the same Jetty, and run copies
//! of the tenants' code in loaders of their own.
//!
//! `test-refuse=storm` makes every sample of the tenants due. The interval changes all the time: with
//! short ones a run is refused early, with long ones deep in its work or not at all.

use heapwarden_tests::java;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::server::installed;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the storm lasts, unless `HEAPWARDEN_TEST_STORM_SECONDS` says otherwise.
const STORM: Duration = Duration::from_secs(300);
/// Between two changes of the interval.
const GUST: Duration = Duration::from_secs(10);
const INTERVALS: [&str; 4] = ["64KiB", "4KiB", "1MiB", "256KiB"];
/// A change of the policy is in force within this, on a machine that is busy with the storm.
const IN_FORCE: Duration = Duration::from_secs(20);

const TENANTS: [&str; 5] = ["compiler", "transformer", "bazaar", "database", "shop"];
const NEIGHBOURS: [&str; 3] = ["bazaar-neighbour", "database-neighbour", "shop-neighbour"];

/// Each tenant is refused at least so often, and all of them together.
const REFUSALS_EACH: f64 = 200.0;
const REFUSALS: f64 = 5_000.0;

fn policy(mode: &str, interval: &str) -> String {
    format!(
        r#"
[sampling]
interval = "{interval}"

[enforcement]
mode = "{mode}"

[[account]]
name = "compiler"
packages = ["com.sun.tools.javac.*"]
limit = "64KiB"

[[account]]
name = "transformer"
packages = ["com.sun.org.apache.*"]
limit = "64KiB"

[[account]]
name = "bazaar"
service = "bazaar"
limit = "64KiB"

[[account]]
name = "database"
service = "database"
limit = "64KiB"
# H2's Transaction.rollback swallows whatever error comes out of it (2.3.232), a plain one of the JVM
# too, and then the next update of the same row waits for ever: the operator's remedy.
never-interrupt = ["org.h2.mvstore.tx"]

[[account]]
name = "shop"
service = "/shop"
limit = "64KiB"
"#
    )
}

fn duration() -> Duration {
    std::env::var("HEAPWARDEN_TEST_STORM_SECONDS").map_or(STORM, |seconds| {
        let seconds = seconds
            .parse()
            .expect("HEAPWARDEN_TEST_STORM_SECONDS is a number");
        eprintln!("HEAPWARDEN_TEST_STORM_SECONDS: {seconds} s instead of {STORM:?}");
        Duration::from_secs(seconds)
    })
}

/// One line of the victim's status.
#[derive(Debug)]
struct Runs {
    right: u64,
    refused: u64,
    line: String,
}

/// Reads the status and asserts what must hold at any time: nobody gave a wrong answer, met a
/// poisoned class or hangs.
fn runs(jvm: &Jvm, status: &[String]) -> BTreeMap<String, Runs> {
    let runs: BTreeMap<String, Runs> = status
        .iter()
        .map(|line| {
            let count = |word: &str| -> u64 {
                let rest = line.split_once(&format!(" {word} ")).map(|(_, rest)| rest);
                rest.and_then(|rest| rest.split(' ').next()?.parse().ok())
                    .unwrap_or_else(|| panic!("no {word} in {line}"))
            };
            assert_eq!(
                (count("wrong"), count("hung")),
                (0, 0),
                "{line}\n{}",
                jvm.log()
            );
            let name = line.split(' ').next().unwrap_or_default();
            let found = Runs {
                right: count("right"),
                refused: count("refused"),
                line: line.clone(),
            };
            (name.to_owned(), found)
        })
        .collect();
    for name in TENANTS.iter().chain(&NEIGHBOURS) {
        assert!(runs.contains_key(*name), "{name} is not in {status:?}");
    }
    runs
}

fn put_in_force(jvm: &Jvm, path: &Path, mode: &str, interval: &str) {
    let before = jvm.accounts().0["policy"]["generation"].as_u64();
    fs::write(path, policy(mode, interval)).expect("the case's folder is writable");
    jvm.until(
        IN_FORCE,
        &format!("{mode} at {interval} is in force"),
        |accounts| accounts.0["policy"]["generation"].as_u64() > before,
    );
}

fn survive(vm: &Vm) {
    let builder = victim(vm, "victim.Storm")
        .argument(java::classes().tenant())
        .argument(installed().join("storm"))
        .heap("768m")
        .option("test-refuse=storm")
        .policy(&policy("observe", INTERVALS[0]));
    let path = builder.policy_path();
    let mut jvm = builder.start();
    jvm.ask("learn");
    jvm.ask("begin");

    let end = Instant::now() + duration();
    let mut gust = 0;
    while Instant::now() < end {
        put_in_force(&jvm, &path, "enforce", INTERVALS[gust % INTERVALS.len()]);
        std::thread::sleep(GUST.min(end.saturating_duration_since(Instant::now())));
        gust += 1;
        let status = jvm.ask("status");
        runs(&jvm, &status);
    }

    put_in_force(&jvm, &path, "observe", INTERVALS[0]);
    let status = jvm.ask("end");
    let runs = runs(&jvm, &status);
    let metrics = jvm.metrics();
    let refusals: BTreeMap<&str, f64> = TENANTS
        .iter()
        .map(|tenant| {
            let count = metrics.of_account("heapwarden_account_refusals_total", tenant);
            (*tenant, count.unwrap_or_default())
        })
        .collect();
    let mut deferred: BTreeMap<&str, f64> = BTreeMap::new();
    for (labels, count) in metrics.series("heapwarden_account_deferred_refusals_total") {
        *deferred.entry(labels["reason"].as_str()).or_default() += count;
    }
    let lines: Vec<&str> = runs.values().map(|runs| runs.line.as_str()).collect();
    eprintln!(
        "{vm}: refusals {refusals:?}\n{vm}: deferred {deferred:?}\n{}",
        lines.join("\n")
    );
    for tenant in TENANTS {
        assert!(refusals[tenant] >= REFUSALS_EACH, "{tenant}: {refusals:?}");
        assert!(runs[tenant].refused > 0, "{}", runs[tenant].line);
    }
    assert!(refusals.values().sum::<f64>() >= REFUSALS, "{refusals:?}");
    for neighbour in NEIGHBOURS {
        assert!(runs[neighbour].right > 0, "{}", runs[neighbour].line);
        let refused = metrics.of_account("heapwarden_account_refusals_total", neighbour);
        assert_eq!(refused.unwrap_or_default(), 0.0, "{neighbour} has no limit");
    }

    // The programs are as they were: each answers as it did before.
    jvm.ask("verify");
    jvm.finish();
}

/// Five minutes on every JDK, two at a time.
#[test]
fn programs_and_their_neighbours_survive_a_storm_of_refusals() {
    on_each(&every_jdk_with(Collector::G1), survive);
}
