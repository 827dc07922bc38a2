//! Real programs refused for minutes wherever the agent finds it safe, beside neighbours that must
//! not notice: the Java compiler, XSLT, H2, an application in Jetty, and a bazaar of everything that
//! the JDK has. The neighbours share the JDK's caches and pools and the same Jetty, and run copies
//! of the tenants' code in loaders of their own.
//!
//! `test-refuse=storm` makes every sample of the tenants due. The interval changes all the time: with
//! short ones a run is refused early, with long ones deep in its work or not at all.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::java;
use heapwarden_tests::jdk::{
    Collector, JAVAC, Vm, every_jdk_for, every_jdk_with, is_long, on_each,
};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Metrics;
use heapwarden_tests::server::installed;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the storm lasts at least, unless `HEAPWARDEN_TEST_STORM_SECONDS` says otherwise; `--long`
/// makes it three minutes.
const STORM: Duration = Duration::from_secs(45);
const LONG_STORM: Duration = Duration::from_secs(180);
/// And how much longer at the most, until every tenant was refused often enough.
const EXTENSION: Duration = Duration::from_secs(600);
/// Between two changes of the interval.
const GUST: Duration = Duration::from_secs(10);
const INTERVALS: [&str; 4] = ["64KiB", "4KiB", "1MiB", "256KiB"];

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
cpu-budget = "none"

[enforcement]
mode = "{mode}"

[[account]]
name = "compiler"
packages = ["com.sun.tools.javac.*"]
work = ["java.lang.Thread#run"]
limit = "64KiB"

[[account]]
name = "transformer"
packages = ["com.sun.org.apache.*"]
work = ["java.lang.Thread#run"]
limit = "64KiB"

[[account]]
name = "bazaar"
service = "bazaar"
work = ["java.lang.Thread#run"]
limit = "64KiB"

[[account]]
name = "database"
service = "database"
work = ["java.lang.Thread#run"]
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
    let usual = if is_long() { LONG_STORM } else { STORM };
    std::env::var("HEAPWARDEN_TEST_STORM_SECONDS").map_or(usual, |seconds| {
        let seconds = seconds
            .parse()
            .expect("HEAPWARDEN_TEST_STORM_SECONDS is a number");
        eprintln!("HEAPWARDEN_TEST_STORM_SECONDS: {seconds} s instead of {usual:?}");
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
    for name in programs() {
        assert!(runs.contains_key(name), "{name} is not in {status:?}");
    }
    runs
}

fn put_in_force(jvm: &Jvm, path: &Path, mode: &str, interval: &str) {
    let before = jvm.accounts().0["policy"]["generation"].as_u64();
    fs::write(path, policy(mode, interval)).expect("the case's folder is writable");
    jvm.until(
        PATIENCE,
        &format!("{mode} at {interval} is in force"),
        |accounts| accounts.0["policy"]["generation"].as_u64() > before,
    );
}

fn programs() -> impl Iterator<Item = &'static str> {
    TENANTS.into_iter().chain(NEIGHBOURS)
}

/// How often each tenant was refused.
fn refusals(metrics: &Metrics) -> BTreeMap<&'static str, f64> {
    TENANTS
        .into_iter()
        .map(|tenant| {
            let count = metrics.of_account("heapwarden_account_refusals_total", tenant);
            (tenant, count.unwrap_or_default())
        })
        .collect()
}

/// Whether every tenant was refused often enough, some of its runs ended by that, and every neighbour
/// gave an answer meanwhile.
fn is_enough(refusals: &BTreeMap<&str, f64>, runs: &BTreeMap<String, Runs>) -> bool {
    refusals.values().all(|count| *count >= REFUSALS_EACH)
        && refusals.values().sum::<f64>() >= REFUSALS
        && TENANTS.iter().all(|tenant| runs[*tenant].refused > 0)
        && NEIGHBOURS.iter().all(|name| runs[*name].right > 0)
}

fn survive(vm: &Vm) {
    let builder = victim(vm, "victim.RefusalStress")
        .argument(java::classes().tenant())
        .argument(installed().join("storm"))
        .heap("768m")
        .option("test-refuse=storm")
        .policy(&policy("observe", INTERVALS[0]));
    let path = builder.policy_path();
    let mut jvm = builder.start();
    for program in programs() {
        jvm.ask(&format!("learn {program}"));
    }
    jvm.ask("begin");

    let begin = Instant::now();
    let least = duration();
    for interval in INTERVALS.iter().cycle() {
        put_in_force(&jvm, &path, "enforce", interval);
        std::thread::sleep(GUST);
        let status = jvm.ask("status");
        let runs = runs(&jvm, &status);
        let lasted = begin.elapsed();
        let enough = is_enough(&refusals(&jvm.metrics()), &runs);
        if lasted >= least && enough || lasted >= least + EXTENSION {
            break;
        }
    }
    let lasted = begin.elapsed();

    put_in_force(&jvm, &path, "observe", INTERVALS[0]);
    let status = jvm.ask("end");
    let runs = runs(&jvm, &status);
    let metrics = jvm.metrics();
    let refusals = refusals(&metrics);
    let mut deferred: BTreeMap<&str, f64> = BTreeMap::new();
    for (labels, count) in metrics.series("heapwarden_account_deferred_refusals_total") {
        *deferred.entry(labels["reason"].as_str()).or_default() += count;
    }
    let lines: Vec<&str> = runs.values().map(|runs| runs.line.as_str()).collect();
    eprintln!(
        "{vm}: {lasted:.0?}, refusals {refusals:?}\n{vm}: deferred {deferred:?}\n{}",
        lines.join("\n")
    );
    assert!(is_enough(&refusals, &runs), "{refusals:?}");
    for neighbour in NEIGHBOURS {
        let refused = metrics.of_account("heapwarden_account_refusals_total", neighbour);
        assert_eq!(refused.unwrap_or_default(), 0.0, "{neighbour} has no limit");
    }

    // The programs are as they were: each answers as it did before.
    for program in programs() {
        jvm.ask(&format!("verify {program}"));
    }
    jvm.finish();
}

/// On every JDK that has the compiler, which is one of the programs; longer on a slow machine.
#[test]
fn programs_and_their_neighbours_survive_a_storm_of_refusals() {
    let able = every_jdk_for(
        "programs_and_their_neighbours_survive_a_storm_of_refusals",
        JAVAC,
    );
    let mut vms = every_jdk_with(Collector::G1);
    vms.retain(|vm| able.contains(&&vm.jdk));
    on_each(&vms, survive);
}
