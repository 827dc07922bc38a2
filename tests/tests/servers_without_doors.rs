//! Servers of others that have no door, past a limit on their packages: brokers, databases, schedulers and
//! reactive applications. Each is loaded past its limit, lets go, and works again.
//!
//! What must hold: the process lives and no thread of it dies of a refusal; the account stops at its limit
//! and the reserve, or the agent reports that its refusals do nothing; what was acknowledged is there; after
//! letting go the account is below its limit and takes work. Runs in `--long` only: some minutes for each
//! collector. `HEAPWARDEN_TEST_SERVERS=h2,kafka` chooses. A table is printed at the end.

use heapwarden_harness::ports;
use heapwarden_tests::artifacts;
use heapwarden_tests::command;
use heapwarden_tests::doorless;
use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long};
use heapwarden_tests::jvm::{Jvm, victim};
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

/// Of the limit. What is beyond limit and reserve is in the bound of `applications`, too.
const RESERVE: f64 = 0.125;
const OVERSHOOT: f64 = 0.15;
/// Units of one command.
const BATCH: u64 = 16;
/// Bytes of a unit.
const UNIT_BYTES: u64 = 32_768;
/// So much is sent at most, acknowledged or not, of the limit.
const MOST_OF_LIMIT: u64 = 3;
/// Commands that end without anything acknowledged before the load is over.
const FRUITLESS: u32 = 8;
const LOADING: Duration = Duration::from_secs(120);
/// A suspicion ends, and a report comes, within this time.
const REPORT: Duration = Duration::from_secs(15);
/// On a busy machine a slowed broker deletes for minutes.
const RECOVERY: Duration = Duration::from_secs(180);
const AGAIN: u64 = 8;
const REST: Duration = Duration::from_millis(50);

/// A server, and whose memory it is.
#[derive(Debug, Clone, Copy)]
struct Subject {
    /// Folder in `tests/doorless`.
    name: &'static str,
    title: &'static str,
    packages: &'static [&'static str],
    /// Ports that its host is told.
    ports: usize,
    /// Whether the host is its own client.
    embedded: bool,
    /// Oldest and newest Java that it runs on.
    java: u32,
    newest_java: u32,
    /// Above what it holds by itself.
    limit_mib: u64,
    /// Whether each call must have an answer, be it an error: its clients have no timeout and wait for ever.
    answers_all: bool,
}

impl Subject {
    fn limit_bytes(&self) -> f64 {
        (self.limit_mib << 20) as f64
    }
}

const SUBJECTS: [Subject; 10] = [
    Subject {
        name: "h2",
        title: "H2 2.3, TCP server",
        packages: &["org.h2.*"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "zookeeper",
        title: "ZooKeeper 3.9",
        packages: &["org.apache.zookeeper.*", "org.apache.jute.*"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "kafka",
        title: "Kafka 3.9, KRaft",
        packages: &["kafka.*", "org.apache.kafka.*"],
        ports: 2,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        // On ZGC, without compressed references, the broker itself holds 34 MB.
        limit_mib: 64,
        answers_all: false,
    },
    Subject {
        name: "artemis",
        title: "Artemis 2.39",
        packages: &["org.apache.activemq.artemis.*"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "quartz",
        title: "Quartz 2.5",
        packages: &["app"],
        ports: 0,
        embedded: true,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "webflux",
        title: "Spring WebFlux 6.2",
        packages: &["app"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "helidon",
        title: "Helidon SE 4.2",
        packages: &["app"],
        ports: 1,
        embedded: false,
        java: 21,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "hsqldb",
        title: "HSQLDB 2.7, server",
        packages: &["org.hsqldb.*"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 32,
        answers_all: false,
    },
    Subject {
        name: "hazelcast",
        title: "Hazelcast 5.3",
        packages: &["com.hazelcast.*"],
        ports: 1,
        embedded: false,
        java: 17,
        newest_java: u32::MAX,
        limit_mib: 64,
        answers_all: true,
    },
    Subject {
        name: "cassandra",
        title: "Cassandra 5.0",
        packages: &["org.apache.cassandra.*"],
        ports: 2,
        embedded: false,
        java: 17,
        // It sets a security manager.
        newest_java: 17,
        limit_mib: 96,
        answers_all: false,
    },
];

/// What was seen of one server on one VM.
#[derive(Debug, Clone, Default)]
struct Row {
    highest: f64,
    acknowledged: u64,
    errors: u64,
    /// Of the errors, those without a whole answer.
    cut: u64,
    last_error: String,
    refusals: u64,
    deferred: String,
    killed: f64,
    reported: bool,
    lives: bool,
    kept: String,
    recovered: Option<Duration>,
    works_again: bool,
}

impl Row {
    /// What is not as it must be.
    fn failures(&self, subject: &Subject) -> Vec<String> {
        let mut failures = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                failures.push(what);
            }
        };
        check(self.lives, "the JVM ended".to_owned());
        check(
            self.killed == 0.0,
            format!("{} threads killed", self.killed),
        );
        let bound = 1.0 + RESERVE + OVERSHOOT;
        check(
            self.highest <= bound || self.reported,
            format!(
                "held {:.2} of its limit, and nothing was reported",
                self.highest
            ),
        );
        check(
            self.highest > 0.9,
            format!("held only {:.2} of its limit", self.highest),
        );
        check(
            self.cut == 0 || !subject.answers_all,
            format!("{} calls without an answer", self.cut),
        );
        check(self.kept == "all", format!("kept: {}", self.kept));
        check(
            self.recovered.is_some(),
            format!("not below its limit {RECOVERY:?} after letting go"),
        );
        check(self.works_again, "does not work again".to_owned());
        failures
    }
}

const COLUMNS: &str = "highest live, of the limit | acknowledged | errors | of them cut | refusals | deferred | threads killed | reported | kept | below the limit after | works again";

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match self.recovered {
            Some(after) => format!("{:.1} s", after.as_secs_f64()),
            None => "never".to_owned(),
        };
        let yes = |is: bool| if is { "yes" } else { "no" };
        write!(
            out,
            "{:.2} | {} | {} | {} | {} | {} | {} | {} | {} | {after} | {}",
            self.highest,
            self.acknowledged,
            self.errors,
            self.cut,
            self.refusals,
            self.deferred,
            self.killed,
            yes(self.reported),
            self.kept,
            yes(self.works_again)
        )
    }
}

/// The policy that is shipped for the server, with this limit and in force; if there is none, a limit and
/// nothing else. The account is called `loaded`.
fn policy(subject: &Subject) -> String {
    let shipped = artifacts::repository()
        .join("examples/policies/servers")
        .join(format!("{}.toml", subject.name));
    // The policy for Quartz names packages of an imagined application.
    let text = match fs::read_to_string(&shipped) {
        Ok(text) if !subject.embedded => text,
        _ => {
            say(&format!("note: {} has no shipped policy", subject.name));
            return format!(
                "[enforcement]\nmode = \"enforce\"\n\n[[account]]\nname = \"loaded\"\npackages = {:?}\nlimit = \"{}MiB\"\n",
                subject.packages, subject.limit_mib
            );
        }
    };
    let replaced = |line: &str| match line.split_once(" = ").map(|(key, _)| key) {
        Some("mode") => "mode = \"enforce\"".to_owned(),
        Some("name") => "name = \"loaded\"".to_owned(),
        Some("limit") => format!("limit = \"{}MiB\"", subject.limit_mib),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(replaced).collect();
    lines.join("\n") + "\n"
}

/// Adds what the account says now.
fn observe(host: &Jvm, subject: &Subject, row: &mut Row) {
    let accounts = host.accounts();
    let Some(account) = accounts.find("loaded") else {
        return;
    };
    let live = account["live_bytes"].as_f64().unwrap_or_default();
    row.highest = row.highest.max(live / subject.limit_bytes());
    row.refusals = account["refusals_total"].as_u64().unwrap_or_default();
    row.killed = account["threads_killed_total"].as_f64().unwrap_or_default();
    let reasons = account["deferred_by_reason"].as_object();
    let mut reasons: Vec<(u64, &String)> = reasons
        .into_iter()
        .flatten()
        .filter_map(|(reason, count)| Some((count.as_u64()?, reason)))
        .filter(|(count, _)| *count > 0)
        .collect();
    reasons.sort_unstable();
    let most = reasons.iter().rev().take(3);
    let shown: Vec<String> = most
        .map(|(count, reason)| format!("{reason} {count}"))
        .collect();
    row.deferred = shown.join(", ");
    let ineffective = (host.metrics()).of_account("heapwarden_account_ineffective", "loaded");
    row.reported |= ineffective.is_some_and(|value| value > 0.0);
}

/// One load command: acknowledged, errors; adds what of them was cut.
fn load(client: &mut Jvm, units: u64, row: &mut Row) -> (u64, u64) {
    let answer = client.ask(&format!("load {units}"));
    let mut words = answer[0].splitn(4, ' ');
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0u64)
    };
    let (acknowledged, errors) = (number(), number());
    row.cut += number();
    if let Some(error) = words.next().filter(|text| !text.is_empty()) {
        error.clone_into(&mut row.last_error);
    }
    (acknowledged, errors)
}

fn load_past_limit(host: &mut Option<Jvm>, client: &mut Jvm, subject: &Subject, row: &mut Row) {
    let most_units = MOST_OF_LIMIT * (subject.limit_mib << 20) / UNIT_BYTES;
    let begun = Instant::now();
    let (mut sent, mut fruitless) = (0, 0);
    while sent < most_units && fruitless < FRUITLESS && begun.elapsed() < LOADING {
        let jvm = host.as_mut().unwrap_or(client);
        observe(jvm, subject, row);
        let (acknowledged, errors) = load(client, BATCH, row);
        row.acknowledged += acknowledged;
        row.errors += errors;
        sent += BATCH;
        fruitless = if acknowledged == 0 { fruitless + 1 } else { 0 };
        thread::sleep(REST);
    }
    // A report may come a while after the growth.
    let jvm = host.as_mut().unwrap_or(client);
    let bound = 1.0 + RESERVE + OVERSHOOT;
    let _ = command::poll(REPORT, || {
        observe(jvm, subject, row);
        thread::sleep(10 * REST);
        (row.highest <= bound || row.reported).then_some(())
    });
}

/// Asks until the answer is no error.
fn persist(client: &mut Jvm, order: &str) -> Option<String> {
    command::poll(RECOVERY, || {
        let answer = client.ask(order).pop()?;
        thread::sleep(REST);
        (!answer.starts_with("error")).then_some(answer)
    })
}

/// The course of one server. What is seen goes into the row, also if the JVM ends.
fn run(vm: &Vm, subject: &Subject, row: &mut Row) {
    let class_path = doorless::class_path(subject.name);
    let ports: Vec<String> = (0..subject.ports)
        .map(|_| ports::free().to_string())
        .collect();
    let mut builder = victim(vm, "Host")
        .class_path(class_path.clone())
        .heap("768m")
        .policy(&policy(subject));
    for port in &ports {
        builder = builder.argument(port);
    }
    if let Some(flags) = doorless::flags(subject.name) {
        builder = builder.flag(&flags);
    }
    let started = builder.start();
    let (mut host, mut client) = if subject.embedded {
        (None, started)
    } else {
        let mut client = victim(vm, "Client").class_path(class_path).without_agent();
        client = client.argument(&ports[0]);
        let client = client.start();
        (Some(started), client)
    };
    row.lives = false;
    load_past_limit(&mut host, &mut client, subject, row);
    row.kept = match persist(&mut client, "count") {
        Some(count) => {
            let missing = (row.acknowledged).saturating_sub(count.parse().unwrap_or(0));
            if missing == 0 {
                "all".to_owned()
            } else {
                format!("all but {missing}")
            }
        }
        None => "nobody answers".to_owned(),
    };
    let begun = Instant::now();
    let dropped = persist(&mut client, "drop").is_some();
    let jvm = host.as_mut().unwrap_or(&mut client);
    if dropped {
        row.recovered = command::poll(RECOVERY, || {
            observe(jvm, subject, row);
            let accounts = jvm.accounts();
            let live = accounts.holding("loaded").live_bytes;
            let open = accounts.is_in_state("loaded", "open");
            thread::sleep(5 * REST);
            (open && live < subject.limit_bytes()).then(|| begun.elapsed())
        });
    }
    let mut again = 0;
    let works = command::poll(REPORT, || {
        let (acknowledged, _) = load(&mut client, 1, row);
        again += acknowledged;
        (again >= AGAIN).then_some(())
    });
    row.works_again = works.is_some();
    let jvm = host.as_mut().unwrap_or(&mut client);
    observe(jvm, subject, row);
    jvm.ask("gc");
    row.lives = true;
    let account = jvm.accounts();
    let account = account.find("loaded").cloned().unwrap_or_default();
    say(&format!(
        "    {}: {} with live {} and charged {}",
        subject.name, account["state"], account["live_bytes"], account["charged_bytes"]
    ));
    for class in account["classes"].as_array().into_iter().flatten().take(6) {
        say(&format!(
            "    {}: {} with {} live bytes",
            subject.name, class["class"], class["live_bytes"]
        ));
    }
    // The first lines, and the last.
    let log = jvm.log();
    let lines: Vec<&str> = (log.lines())
        .filter(|line| line.contains("heapwarden"))
        .collect();
    let (first, rest) = lines.split_at(lines.len().min(20));
    for line in first.iter().chain(&rest[rest.len().saturating_sub(20)..]) {
        say(&format!("    {}: {line}", subject.name));
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// G1 on the oldest JDK that the server runs on, and ZGC on the newest, which is the generational one if the
/// server can have it.
fn vms(subject: &Subject) -> Vec<Vm> {
    let releases = subject.java..=subject.newest_java;
    let able = || {
        every_vm()
            .iter()
            .filter(|vm| releases.contains(&vm.jdk.feature))
    };
    let g1 = able().find(|vm| vm.collector == Collector::G1);
    let z = able().rev().find(|vm| vm.collector == Collector::Z);
    g1.into_iter().chain(z).cloned().collect()
}

#[test]
fn servers_without_a_door_live_through_their_limits() {
    if !is_long() {
        say("note: servers_without_doors runs in --long only");
        return;
    }
    let wanted = std::env::var("HEAPWARDEN_TEST_SERVERS").ok();
    let mut table = Vec::new();
    let mut failed = Vec::new();
    for subject in &SUBJECTS {
        if let Some(list) = &wanted
            && !list.split(',').any(|name| name == subject.name)
        {
            let name = subject.name;
            say(&format!(
                "note: {name} is left out by HEAPWARDEN_TEST_SERVERS"
            ));
            continue;
        }
        for vm in vms(subject) {
            let mut row = Row::default();
            let ended = catch_unwind(AssertUnwindSafe(|| run(&vm, subject, &mut row)));
            let failures = row.failures(subject);
            let title = subject.title;
            let line = format!("| {title} | {vm} | {row} |");
            say(&line);
            if !row.last_error.is_empty() {
                say(&format!("    last error: {}", row.last_error));
            }
            table.push(line);
            if let Err(panic) = ended {
                let text = panic.downcast_ref::<String>().cloned();
                failed.push(format!("{title}, {vm}: {}", text.unwrap_or_default()));
            }
            if !failures.is_empty() {
                failed.push(format!("{title}, {vm}: {}", failures.join("; ")));
            }
        }
    }
    say(&format!("| server | VM | {COLUMNS} |"));
    for line in &table {
        say(line);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
