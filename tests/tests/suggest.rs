//! Limits from what was observed: a real Prometheus with days of recorded accounts, and a live JVM.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::java;
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::prometheus::Prometheus;
use heapwarden_tests::recorded_fleet::{Account, Jvm, Recording, service};
use serde_json::Value;
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const DAY: i64 = 86_400;
/// Days recorded: less than the 15 that Prometheus keeps.
const DAYS: i64 = 12;
/// Days from which limits are suggested, the first ones.
const OBSERVED_DAYS: i64 = 4;
/// Days for which growth is given room.
const HORIZON_DAYS: i64 = 2;
const SCRAPE_SECONDS: usize = 150;
const MIB: f64 = 1_048_576.0;
/// A tenant that would like to write the policy.
const HOSTILE: &str = "evil\"]\n[[account]]\nservice = \"*\"\nlimit = \"1B";

/// Longest that one command may take on a busy machine, building aside.
const LIMIT: Duration = Duration::from_secs(180);

fn heapwarden(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command.env_remove("HEAPWARDEN_PROMETHEUS");
    command::run(command.args(arguments), LIMIT)
}

#[track_caller]
fn assert_code(finished: &Finished, code: i32) {
    assert_eq!(
        finished.status.code(),
        Some(code),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
}

const FIRST: [Account; 7] = [
    Account {
        beneath_mib: 90.0,
        ..service("/rooms", |_| 30.0)
    },
    service("/steady", |_| 200.0),
    service("/wave", |days| 100.0 + 40.0 * (TAU * days).sin()),
    service("/growing", |days| 20.0 + 40.0 * days),
    // Half an hour, four times a day.
    service("/spiky", |days| {
        if (4.0 * days).fract() < 1.0 / 12.0 {
            150.0
        } else {
            50.0
        }
    }),
    service("/tiny", |_| 0.5),
    service(HOSTILE, |_| 50.0),
];

const SECOND: [Account; 2] = [
    service("/steady", |_| 260.0),
    Account {
        from_day: 1.0,
        ..service("/late", |_| 80.0)
    },
];

/// An hour in the middle of the period observed.
const DOWN: (f64, f64) = (2.0, 2.0 + 1.0 / 24.0);

/// Both JVMs' days.
fn record(start: i64) -> Recording {
    let mut recording = Recording::default();
    for (instance, down_days, accounts) in [
        ("a:9464", None, &FIRST[..]),
        ("b:9464", Some(DOWN), &SECOND),
    ] {
        let jvm = Jvm {
            job: "tomcat",
            instance,
            heap_max_mib: 1024.0,
            down_days,
            accounts,
        };
        let times = (start..start + DAYS * DAY).step_by(SCRAPE_SECONDS);
        recording.jvm(&jvm, start, times);
    }
    recording
}

/// A Prometheus that has the record, and when the record began.
struct Fleet {
    folder: TempDir,
    url: String,
    start: i64,
    _prometheus: Prometheus,
}

impl Fleet {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let start = i64::try_from(now.as_secs()).expect("before the end of time") - DAYS * DAY;
        record(start).write(folder.path());
        let prometheus = Prometheus::start("scrape_configs: []\n", folder.path());
        Self {
            url: format!("http://{}", prometheus.address()),
            folder,
            start,
            _prometheus: prometheus,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `heapwarden SUBCOMMAND` over the days from the start of the record to `end`.
    fn run(&self, subcommand: &[&str], from_day: i64, to_day: i64) -> Finished {
        let end = (self.start + to_day * DAY).to_string();
        let range = format!("{}d", to_day - from_day);
        let mut arguments = subcommand.to_vec();
        arguments.extend(["--prometheus", &self.url, "--range", &range, "--end", &end]);
        heapwarden(&arguments)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

#[test]
fn steady_services_never_hit_what_was_suggested_and_a_growing_one_does() {
    let fleet = Fleet::start();
    let policy = fleet.path("suggested.toml");
    let horizon = format!("{HORIZON_DAYS}d");
    let suggest = ["suggest", "--horizon", &horizon, "--output", text(&policy)];
    let suggested = fleet.run(&suggest, 0, OBSERVED_DAYS);
    assert_code(&suggested, 0);
    let written = std::fs::read_to_string(&policy).expect("it was written");

    // The policy is one, as the agent will read it.
    let check = heapwarden(&["check", text(&policy)]);
    assert_code(&check, 0);
    assert!(
        check.stdout.contains(": ok\n"),
        "no warning: {}{}",
        check.stdout,
        check.stderr
    );
    let table: toml::Table = written.parse().expect("TOML");
    assert_eq!(table["enforcement"]["mode"].as_str(), Some("observe"));
    let accounts = table["account"].as_array().expect("accounts");
    let services: Vec<&str> = accounts
        .iter()
        .filter_map(|one| one["service"].as_str())
        .collect();
    assert_eq!(
        services,
        ["/growing", "/late", "/rooms", "/spiky", "/steady", "/wave"],
        "{written}"
    );
    for said in [
        "No limit for /tiny: the standard error",
        "interval = \"8KiB\" would do",
        "No limit for evil",
        "The largest of 2 accounts: /steady of tomcat b:9464",
        "MiB a day (",
        "% of its heap of 1024.0 MiB",
    ] {
        assert!(written.contains(said), "{said}\n{written}");
    }
    let of = |service: &str, key: &str| {
        let account = accounts
            .iter()
            .find(|one| one["service"].as_str() == Some(service));
        let size = account.expect("listed")[key]
            .as_str()
            .expect("text")
            .to_owned();
        size.strip_suffix("MiB")
            .expect("in MiB")
            .parse::<f64>()
            .expect("a number")
    };
    // Of both JVMs the larger, with room for error and rounding but no more than that.
    assert!(
        (260.0..=320.0).contains(&of("/steady", "soft-limit")),
        "{written}"
    );
    assert!(
        (140.0..=176.0).contains(&of("/wave", "soft-limit")),
        "{written}"
    );
    assert!(
        (150.0..=176.0).contains(&of("/spiky", "soft-limit")),
        "{written}"
    );
    // With the scopes beneath it.
    assert!(
        (120.0..=144.0).contains(&of("/rooms", "soft-limit")),
        "{written}"
    );
    let growing = 20.0 + 40.0 * (OBSERVED_DAYS + HORIZON_DAYS) as f64;
    assert!(
        (growing..growing * 1.2).contains(&of("/growing", "soft-limit")),
        "{written}"
    );

    // Nobody is hit in what was observed, nor until the horizon.
    let replay = ["replay", text(&policy), "--json"];
    for (from, to) in [
        (0, OBSERVED_DAYS),
        (OBSERVED_DAYS, OBSERVED_DAYS + HORIZON_DAYS),
    ] {
        assert_code(&fleet.run(&replay, from, to), 0);
    }
    // After it, the growing one is, and nobody else.
    let later = fleet.run(&replay, OBSERVED_DAYS, DAYS);
    assert_code(&later, 3);
    let json: Value = serde_json::from_str(&later.stdout).expect("JSON");
    let refused = json["refused"].as_array().expect("a list");
    assert_eq!(refused.len(), 1, "{}", later.stdout);
    assert_eq!(refused[0]["account"], "/growing");
    assert_eq!(refused[0]["jvm"]["instance"], "a:9464");
    assert_eq!(
        refused[0]["episodes"].as_array().map(Vec::len),
        Some(1),
        "{json}"
    );
    // From the day it passes its limit to the end, by three errors (2 % of it) later at the most.
    let limit = of("/growing", "limit");
    let passes = DAYS as f64 - (limit - 20.0) / 40.0;
    let late = 0.06 * limit / 40.0;
    let days = refused[0]["seconds"].as_f64().expect("a number") / DAY as f64;
    assert!(
        (passes - late..passes + 0.1).contains(&days),
        "{days} of {passes} days: {json}"
    );
    let table = fleet.run(&["replay", text(&policy)], OBSERVED_DAYS, DAYS);
    assert_code(&table, 3);
    assert!(
        table
            .stdout
            .contains("1 of 7 with a limit would have been refused"),
        "{}",
        table.stdout
    );

    // A policy in use keeps its text; a share of the heap is a limit like any other.
    let used = fleet.path("used.toml");
    std::fs::write(
        &used,
        "# Ours.\n[[account]]\nname = \"both\"\nservice = \"/s*\"   # steady and spiky\nlimit = \"20%\"\n",
    )
    .expect("writable");
    assert_code(&fleet.run(&["replay", text(&used)], 0, OBSERVED_DAYS), 3);
    let suggest = ["suggest", "--policy", text(&used), "--output", text(&used)];
    assert_code(&fleet.run(&suggest, 0, OBSERVED_DAYS), 0);
    let revised = std::fs::read_to_string(&used).expect("written");
    assert!(
        revised.contains(
            "# Ours.\n[[account]]\nname = \"both\"\nservice = \"/s*\"   # steady and spiky\n"
        ),
        "{revised}"
    );
    assert!(
        revised.contains("No limit for /wave: no account of the policy matches it"),
        "{revised}"
    );
    assert_code(&heapwarden(&["check", text(&used)]), 0);
    assert_code(&fleet.run(&["replay", text(&used)], 0, OBSERVED_DAYS), 0);

    refuses_what_does_not_suffice(&fleet);
}

/// Asserts that `suggest` and `replay` fail where no limit can be told, with one message that says what to do.
fn refuses_what_does_not_suffice(fleet: &Fleet) {
    let end = (fleet.start + 3 * DAY).to_string();
    let url = fleet.url.as_str();
    let short = [
        "suggest",
        "--prometheus",
        url,
        "--end",
        &end,
        "--range",
        "6h",
    ];
    let refused = heapwarden(&short);
    assert_code(&refused, 1);
    assert!(
        refused.stderr.contains("a day at least") && refused.stdout.is_empty(),
        "{}",
        refused.stderr
    );
    let allowed = heapwarden(&[&short[..], &["--allow-short"]].concat());
    assert_code(&allowed, 0);
    for (arguments, said) in [
        (
            &[
                "suggest",
                "--prometheus",
                url,
                "--range",
                "1d",
                "--end",
                "86400",
            ][..],
            "no metrics of Heapwarden",
        ),
        (
            &["suggest", "--prometheus", url, "--match", "{job=}"],
            "Prometheus rejects the query",
        ),
        (
            &["suggest", "--prometheus", url, "--match", "{job=\"none\"}"],
            "no metrics of Heapwarden",
        ),
        (
            &["suggest", "--prometheus", url, "--jvm-label", "job"],
            "--jvm-label job,instance",
        ),
        (
            &["suggest", "--prometheus", &format!("{url}/elsewhere")],
            "path prefix",
        ),
        (
            &["suggest", "--prometheus", "http://127.0.0.1:1"],
            "cannot reach Prometheus",
        ),
        (&["suggest"], "give --prometheus URL"),
        (
            &["replay", "/nonexistent", "--prometheus", url],
            "cannot be read",
        ),
    ] {
        let failed = heapwarden(arguments);
        assert_code(&failed, 1);
        assert!(failed.stderr.contains(said), "{said}: {}", failed.stderr);
        assert_eq!(
            failed.stderr.matches("heapwarden: ").count(),
            1,
            "{}",
            failed.stderr
        );
    }
}

#[test]
fn a_live_jvm_is_enough_for_a_first_suggestion() {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.ServiceHost")
        .argument(java::classes().tenant())
        .policy("[sampling]\ninterval = \"8KiB\"\ncpu-budget = \"none\"\n")
        .start();
    jvm.ask("deploy svc-a");
    jvm.ask("call svc-a own 100000 400");
    let held = jvm.settled().holding("svc-a").live_bytes / MIB;
    let address = jvm.address().to_string();
    let policy = jvm.folder().join("suggested.toml");
    let live = ["--live", &address, "--for", "20s"];
    let suggest = ["suggest", "--quantile", "0.8", "--output", text(&policy)];
    assert_code(&heapwarden(&[&suggest[..], &live].concat()), 0);
    let written = std::fs::read_to_string(&policy).expect("written");
    let table: toml::Table = written.parse().expect("TOML");
    let account = &table["account"][0];
    assert_eq!(account["service"].as_str(), Some("svc-a"), "{written}");
    let soft = account["soft-limit"]
        .as_str()
        .and_then(|size| size.strip_suffix("MiB"));
    let soft: f64 = soft.expect("in MiB").parse().expect("a number");
    assert!((held..held * 1.3).contains(&soft), "{held}: {written}");
    assert!(written.contains("look again later"), "{written}");
    let replay = heapwarden(&[&["replay", text(&policy)][..], &live].concat());
    assert_code(&replay, 0);
    std::fs::write(&policy, "[[account]]\nservice = \"*\"\nlimit = \"30MiB\"\n").expect("writable");
    let replay = heapwarden(
        &[
            &["replay", text(&policy)][..],
            &["--live", &address, "--for", "3s"],
        ]
        .concat(),
    );
    assert_code(&replay, 3);
    assert!(replay.stdout.contains("svc-a"), "{}", replay.stdout);
    jvm.finish();
}
