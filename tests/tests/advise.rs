//! `heapwarden advise` over recorded days of a fleet, in a real Prometheus.

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::prometheus::Prometheus;
use heapwarden_tests::recorded_fleet::{Account, Jvm, Recording, service};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const DAY: i64 = 86_400;
const MIB: f64 = 1_048_576.0;
const LIMIT: Duration = Duration::from_secs(120);
/// A name that would end a table's cell, a code span and a line, and drive a terminal.
const HOSTILE: &str = "bad|`name`\n# x \u{1b}[2J<b>";

const fn nobody(live_mib: fn(f64) -> f64) -> Account {
    Account {
        name: "_unaccounted",
        kind: "reserved",
        from_day: 0.0,
        live_mib,
        beneath_mib: 0.0,
    }
}

/// More in the afternoon than at night.
fn wave(days: f64) -> f64 {
    10.0 * (days * std::f64::consts::TAU).sin()
}

/// When the recording ends. The command is told so: it may take minutes to be built.
fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(since.as_secs()).expect("before the end of time") / 300 * 300
}

/// A Prometheus that remembers these.
fn prometheus(recording: &Recording) -> (Prometheus, TempDir) {
    let folder = TempDir::new().expect("a temporary folder");
    recording.write(folder.path());
    let prometheus = Prometheus::start("scrape_configs: []\n", folder.path());
    (prometheus, folder)
}

fn advise(prometheus: &Prometheus, end: i64, arguments: &[&str]) -> Finished {
    let url = format!("http://{}", prometheus.address());
    let end = end.to_string();
    let command: &Path = artifacts::command();
    command::run(
        Command::new(command)
            .args(["advise", "--prometheus", &url, "--end", &end])
            .args(arguments),
        LIMIT,
    )
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr))
}

/// A week: two JVMs that are too full, one of them because of a service that grows; two with
/// room; and a newcomer with the most room of all, of which three hours are known.
fn a_week_of_a_fleet(end: i64) -> Recording {
    let begin = end - 7 * DAY;
    let mut fleet = Recording::default();
    let mut add = |instance, heap_max_mib, from: i64, accounts: &[Account]| {
        let jvm = Jvm {
            job: "tomcat",
            instance,
            heap_max_mib,
            down_days: None,
            accounts,
        };
        fleet.jvm(&jvm, begin, (from..=end).step_by(300));
    };
    let growing = [
        service("/shop", |days| 350.0 + 20.0 * days),
        service("/blog", |_| 200.0),
        service("/wiki", |days| 140.0 + wave(days)),
        service(HOSTILE, |_| 10.0),
        nobody(|_| 60.0),
        Account {
            name: "xml",
            kind: "library",
            from_day: 0.0,
            live_mib: |_| 5.0,
            beneath_mib: 0.0,
        },
    ];
    add("growing:9464", 1024.0, begin, &growing);
    let full = [
        service("/mail", |days| 300.0 + wave(days)),
        service("/calendar", |_| 310.0),
        service("/docs", |_| 250.0),
        nobody(|_| 60.0),
    ];
    add("full:9464", 1024.0, begin, &full);
    let roomy = [
        service("/docs", |_| 250.0),
        service("/api", |days| 300.0 + wave(days)),
        nobody(|_| 60.0),
    ];
    add("roomy:9464", 2048.0, begin, &roomy);
    let small = [service("/api", |_| 200.0), nobody(|_| 60.0)];
    add("small:9464", 1024.0, begin, &small);
    let newcomer = [service("/new", |_| 100.0), nobody(|_| 60.0)];
    add("newcomer:9464", 8192.0, end - 10_800, &newcomer);
    fleet
}

#[test]
fn the_service_that_is_the_cause_moves_to_where_there_is_room() {
    let end = now();
    let (prometheus, _folder) = prometheus(&a_week_of_a_fleet(end));
    let finished = advise(&prometheus, end, &["--format", "json"]);
    assert!(finished.status.success(), "{}", finished.stderr);
    let advice = json(&finished);
    assert_eq!(advice["verdict"], "move", "{advice:#}");
    assert_eq!(advice["plan"]["unrelieved_bytes"], 0);
    assert_eq!(advice["plan"]["is_optimal"], true);

    // /shop alone relieves the one, and fits into the large one only. Of the other's services any
    // would do, /docs is the lightest, and the large one has a /docs already.
    let moves: BTreeMap<&str, &Value> = advice["moves"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["service"].as_str().expect("a name"), one))
        .collect();
    let way = |name: &str| {
        let one = moves.get(name).unwrap_or_else(|| panic!("{advice:#}"));
        (
            one["from"]["instance"].clone(),
            one["to"]["instance"].clone(),
        )
    };
    assert_eq!(moves.len(), 2, "{advice:#}");
    assert_eq!(way("/shop"), ("growing:9464".into(), "roomy:9464".into()));
    assert_eq!(way("/docs"), ("full:9464".into(), "small:9464".into()));

    // The bytes that /shop will truly hold in a week lie within the bounds that the plan counts on.
    let shop = moves["/shop"];
    let truth = (350.0 + 14.0 * 20.0) * MIB;
    let frees = shop["frees"]["low_bytes"].as_f64().expect("a number");
    let needs = shop["needs"]["high_bytes"].as_f64().expect("a number");
    assert!(frees < truth && truth < needs, "{shop:#}");
    assert!(frees > 0.9 * truth && needs < 1.15 * truth, "{shop:#}");
    assert!(shop["to_percent_after"].as_f64().expect("a number") <= 80.0);
    let reasons = shop["reasons"].to_string();
    assert!(
        reasons.contains("more than any other service there"),
        "{reasons}"
    );

    let growing = &advice["jvms"][0];
    assert_eq!(growing["jvm"]["instance"], "growing:9464");
    let days = growing["exhaustion"]["seconds"].as_f64().expect("it grows") / DAY as f64;
    let truth = (1024.0 - 914.0) / 20.0;
    assert!((days - truth).abs() < 1.0, "{days} instead of {truth}");

    let newcomer = &advice["unassessed"][0];
    assert_eq!(newcomer["jvm"]["instance"], "newcomer:9464");
    let missing = newcomer["missing"].as_str().expect("a sentence");
    assert!(missing.contains("wait until there are 1d"), "{missing}");
    let movable: Vec<&Value> = advice["jvms"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|jvm| jvm["services"].as_array().into_iter().flatten())
        .map(|service| &service["service"])
        .collect();
    assert!(movable.contains(&&Value::from(HOSTILE)));
    assert!(
        !movable.contains(&&Value::from("xml")) && !movable.contains(&&Value::from("_unaccounted"))
    );

    for format in ["table", "markdown"] {
        let text = advise(&prometheus, end, &["--format", format]).stdout;
        println!("{text}");
        assert!(text.contains("2 moves of services would relieve 2 pressed JVMs"));
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
        assert!(text.contains("bad"), "the hostile one is shown");
        assert!(!text.lines().any(|line| line.starts_with("# x")), "{text}");
    }

    // Less ahead, and nobody is too full but the one that is so now.
    let soon = json(&advise(
        &prometheus,
        end,
        &["--format", "json", "--horizon", "1h", "--fill", "95%"],
    ));
    assert_eq!(soon["verdict"], "nothing_to_move", "{soon:#}");
}

#[test]
fn a_balanced_fleet_has_nothing_to_move() {
    let end = now();
    let begin = end - 3 * DAY;
    let mut fleet = Recording::default();
    for instance in ["a:1", "b:1"] {
        let accounts = [
            service("/shop", |days| 300.0 + wave(days)),
            service("/blog", |_| 100.0),
            nobody(|_| 60.0),
        ];
        let jvm = Jvm {
            job: "tomcat",
            instance,
            heap_max_mib: 1024.0,
            down_days: None,
            accounts: &accounts,
        };
        fleet.jvm(&jvm, begin, (begin..=end).step_by(300));
    }
    let (prometheus, _folder) = prometheus(&fleet);
    let finished = advise(&prometheus, end, &["--range", "3d"]);
    assert!(finished.status.success(), "{}", finished.stderr);
    let headline = finished.stdout.lines().next().unwrap_or_default();
    assert_eq!(headline, "Nothing to move: no JVM is pressed.");

    let nobody = advise(&prometheus, end, &["--match", "{job=\"jetty\"}"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        nobody.stderr.contains("has no metrics of Heapwarden"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn ten_minutes_are_too_short_for_advice() {
    let end = now();
    let accounts = [service("/shop", |_| 950.0), nobody(|_| 60.0)];
    let mut fleet = Recording::default();
    for instance in ["a:1", "b:1"] {
        let jvm = Jvm {
            job: "tomcat",
            instance,
            heap_max_mib: 1024.0,
            down_days: None,
            accounts: &accounts,
        };
        fleet.jvm(&jvm, end - 600, (end - 600..=end).step_by(15));
    }
    let (prometheus, _folder) = prometheus(&fleet);
    for arguments in [&[] as &[&str], &["--range", "10m"]] {
        let finished = advise(&prometheus, end, arguments);
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
        assert!(finished.stderr.contains("no advice"), "{}", finished.stderr);
        let missing = "only: wait until there are 1d";
        assert_eq!(
            finished.stdout.matches(missing).count(),
            2,
            "{}",
            finished.stdout
        );
    }
    let refused = json(&advise(&prometheus, end, &["--format", "json"]));
    assert_eq!(refused["verdict"], "refused");
    assert_eq!(refused["moves"], Value::Array(Vec::new()));
}
