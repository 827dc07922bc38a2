//! A large fleet in a real Prometheus: `advise` reads the accounts of pressed JVMs alone, `suggest` those
//! of one team, and neither takes more than a gigabyte. By default a smaller fleet than the one that
//! `docs/fleet.md` speaks of, which `--long` has.

use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::Collector;
use heapwarden_tests::prometheus::{Prometheus, promtool};
use heapwarden_tests::simulated_fleet::{self as fleet, PRESSED_EVERY, TEAM};
use heapwarden_tests::{artifacts, jdk, jvm, scrape};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const RULES: &str = "deploy/prometheus/heapwarden.fleet.rules.yml";
const RULE_TESTS: &str = "deploy/prometheus/heapwarden.fleet.rules.test.yml";
const LIMIT: Duration = Duration::from_secs(600);
/// The most that the command may map: more than the memory it may use.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;
/// More accounts than are read as a whole.
const JVMS: usize = 400;
const JVMS_LONG: usize = 10_000;

#[test]
fn promtool_accepts_the_recording_rules_and_they_record_what_their_tests_say() {
    let path = |file| artifacts::repository().join(file);
    for (arguments, file) in [
        (&["check", "rules"][..], RULES),
        (&["test", "rules"][..], RULE_TESTS),
    ] {
        let finished = promtool(arguments, &path(file));
        assert!(finished.status.success(), "{finished:?}");
        assert!(finished.stdout.contains("SUCCESS"), "{finished:?}");
    }
}

/// Series of an account with limits, however it is used.
const SERIES_OF_AN_ACCOUNT: usize = 25;
/// Those that come with what happens: pairs, reasons, suspects.
const OCCASIONAL: [&str; 3] = [
    "heapwarden_principal_live_bytes",
    "heapwarden_account_deferred_refusals_total",
    "heapwarden_leak_growth_bytes_per_second",
];

#[test]
fn a_jvm_sends_as_many_series_as_the_document_counts() {
    let vm = &jdk::every_jdk_with(Collector::G1)[0];
    let policy = "[sampling]\ninterval = \"exact\"\n[[account]]\nname = \"orders\"\n\
                  packages = [\"com.acme.orders\"]\nsoft-limit = \"90MiB\"\nlimit = \"100MiB\"\n";
    let mut jvm = jvm::victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .policy(policy)
        .start();
    jvm.ask("hold com.acme.orders bytes:1000*200");
    jvm.settled();
    let page = scrape::get(jvm.address(), "/metrics").body;
    let samples = || page.lines().filter(|line| !line.starts_with('#'));
    let of_account = samples().filter(|line| {
        line.contains("account=\"orders\"") && !OCCASIONAL.iter().any(|name| line.starts_with(name))
    });
    assert_eq!(of_account.count(), SERIES_OF_AN_ACCOUNT, "{page}");
    let of_jvm = samples().filter(|line| !line.contains("account=")).count();
    assert!(
        (250..370).contains(&of_jvm),
        "{of_jvm} series of the JVM itself"
    );
    let document = artifacts::repository().join("docs/fleet.md");
    let document = std::fs::read_to_string(document).expect("it is there");
    assert!(document.contains(&format!("{SERIES_OF_AN_ACCOUNT} series")));
    assert!(document.contains("about 310"));
    jvm.finish();
}

/// Runs the command where it can have no more than a gigabyte, and tells how long it took.
fn heapwarden(prometheus: &Prometheus, end: i64, arguments: &[&str]) -> Finished {
    let begun = Instant::now();
    let finished = command::run(
        Command::new("prlimit")
            .arg(format!("--as={ADDRESS_SPACE_BYTES}"))
            .arg(artifacts::command())
            .args(arguments)
            .args(["--prometheus", &format!("http://{}", prometheus.address())])
            .args(["--rollups", "--timeout", "5m", "--end", &end.to_string()]),
        LIMIT,
    );
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{}: {seconds:.1} s", arguments[0]);
    finished
}

#[test]
fn advice_and_limits_for_a_large_fleet() {
    let jvms = if jdk::is_long() { JVMS_LONG } else { JVMS };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let end = i64::try_from(now.as_secs()).expect("before the end of time") / 3600 * 3600;
    let folder = TempDir::new().expect("a temporary folder");
    let begun = Instant::now();
    fleet::write(folder.path(), jvms, end);
    eprintln!(
        "{jvms} JVMs written: {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let prometheus = Prometheus::start("scrape_configs: []\n", folder.path());

    let advised = heapwarden(
        &prometheus,
        end,
        &["advise", "--step", "30m", "--format", "json"],
    );
    assert_eq!(advised.status.code(), Some(0), "{}", advised.stderr);
    let advice: Value = serde_json::from_str(&advised.stdout).expect("JSON");
    assert_eq!(advice["verdict"], "move", "{:#}", advice["plan"]);
    let names = |list: &Value, jvm: fn(&Value) -> &Value| -> BTreeSet<String> {
        let jvms = list.as_array().expect("a list").iter().map(jvm);
        jvms.map(|jvm| jvm["instance"].as_str().expect("a name").to_owned())
            .collect()
    };
    let judged = names(&advice["jvms"], |one| &one["jvm"]);
    let unassessed = names(&advice["unassessed"], |one| &one["jvm"]);
    // Of some, by chance, readings look as if they depended on each other: they are not judged.
    eprintln!("{} JVMs are not judged", unassessed.len());
    assert!(unassessed.len() * 50 <= jvms, "{:#}", advice["unassessed"]);
    assert_eq!(judged.len() + unassessed.len(), jvms);
    let mut pressed: BTreeSet<String> = (0..jvms)
        .filter(|jvm| fleet::is_pressed(*jvm))
        .map(fleet::instance)
        .collect();
    assert_eq!(pressed.len(), jvms.div_ceil(PRESSED_EVERY));
    pressed.retain(|jvm| judged.contains(jvm));
    let roomy: BTreeSet<String> = (0..jvms)
        .filter(|jvm| fleet::is_roomy(*jvm))
        .map(fleet::instance)
        .collect();
    let moves = advice["moves"].as_array().expect("a list");
    let of = |one: &Value, end: &str| one[end]["instance"].as_str().unwrap_or_default().to_owned();
    let sources: BTreeSet<String> = moves.iter().map(|one| of(one, "from")).collect();
    assert_eq!(sources, pressed);
    let (first, twin) = (fleet::instance(1), fleet::instance(fleet::TWIN));
    let mut to_twin = 0;
    for one in moves {
        assert!(roomy.contains(&of(one, "to")), "{one:#}");
        if of(one, "to") == twin {
            // It has the most room, and a service of each name of the first pressed JVM.
            assert_ne!(of(one, "from"), first, "{one:#}");
            to_twin += 1;
        }
    }
    eprintln!("{} moves, {to_twin} to the twin", moves.len());
    assert_eq!(advice["plan"]["unrelieved_bytes"], 0);
    let notes = advice["notes"].to_string();
    assert!(
        notes.contains("the accounts of those alone that are pressed"),
        "{notes}"
    );

    let policy = folder.path().join("team.toml");
    let text =
        format!("[[account]]\nname = \"team-app\"\nservice = \"{TEAM}app\"\nlimit = \"1GiB\"\n");
    std::fs::write(&policy, text).expect("writable");
    let policy = policy.to_str().expect("UTF-8");
    let account = format!("{TEAM}*");
    let suggested = heapwarden(
        &prometheus,
        end,
        &[
            "suggest",
            "--step",
            "30m",
            "--policy",
            policy,
            "--account",
            &account,
        ],
    );
    assert_eq!(suggested.status.code(), Some(0), "{}", suggested.stderr);
    // From 40 to 42 MiB everywhere, and a quarter more.
    let limit = (suggested.stdout.lines())
        .find_map(|line| line.strip_prefix("limit = "))
        .unwrap_or_else(|| panic!("{}", suggested.stdout));
    let mib: f64 = limit
        .trim_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .expect("MiB");
    assert!((48.0..70.0).contains(&mib), "{}", suggested.stdout);
}
