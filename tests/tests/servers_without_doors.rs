//! Servers of others that have no door of their own, past a limit on their packages: databases, brokers, caches,
//! engines, schedulers and reactive applications. Each is loaded past its limit, asked for reads and deletes while
//! it is over, lets go, and works again. One that keeps its data on disk is loaded once more, killed and started.
//!
//! What must hold: the process lives and no thread of it dies of a refusal; each call gets an answer; a neighbour in
//! the same JVM answers 200; the account stops at its door, or within its reserve, or the agent reports that its
//! refusals do nothing; reads and deletes are answered while it is over; what was acknowledged is there, also after
//! the kill; after letting go the account is below its limit within 15 s and takes work.
//!
//! The short ones run always, on one VM; `--long` runs all, on G1 and ZGC, which takes half an hour.
//! `HEAPWARDEN_TEST_SERVERS=h2,kafka` chooses, and `HEAPWARDEN_TEST_RUNS` says how often. A table is printed at the end.

use heapwarden_harness::{http, ports};
use heapwarden_tests::artifacts;
use heapwarden_tests::command;
use heapwarden_tests::doorless;
use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long};
use heapwarden_tests::jvm::{Jvm, victim};
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The most that a load may leave in an account, of its limit: with a door what is gained until the verdict; without one what
/// the reserve lets through as well.
const BEYOND_WITH_DOOR: f64 = 1.5;
const BEYOND_WITHOUT: f64 = 2.25;
/// Units of one command.
const BATCH: u64 = 16;
/// So much is sent at most, acknowledged or not, of the limit.
const MOST_OF_LIMIT: u64 = 3;
/// The load goes on so long after the first error, in `--long` and otherwise.
const OVER: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(3)];
const LOADING: Duration = Duration::from_secs(120);
/// A report comes within this time.
const REPORT: Duration = Duration::from_secs(15);
/// The account is below its limit within this time after the first delete.
const BACK: Duration = Duration::from_secs(15);
/// So long is looked, to say how late it was.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: u64 = 8;
const REST: Duration = Duration::from_millis(50);
/// Rounds while it is over, each with an attempt to add, reads and a delete.
const STEADY_ROUNDS: u64 = 12;
const READS_OF_ROUND: u64 = 10;
/// Of the reads and deletes while it is over.
const ANSWERED: f64 = 0.99;

/// A server, and whose memory it is.
#[derive(Debug, Clone, Copy)]
struct Subject {
    /// Folder in `tests/doorless`, and shipped policy if there is one.
    name: &'static str,
    title: &'static str,
    /// Its account, where no policy is shipped.
    packages: &'static [&'static str],
    /// Lines of that account, such as a door.
    account: &'static str,
    /// Names in the shipped policy, and what stands for them here.
    renamed: &'static [(&'static str, &'static str)],
    /// Ports that its host is told.
    ports: usize,
    /// Whether the host is its own client.
    embedded: bool,
    /// Oldest and newest Java that it runs on.
    java: u32,
    newest_java: u32,
    /// Above what it holds by itself.
    limit_mib: u64,
    unit_bytes: u64,
    batch: u64,
    /// Between two batches.
    rest: Duration,
    /// The most that it may hold with a door, of the limit.
    most: f64,
    /// Whether units can be let go one by one.
    deletes: bool,
    /// Whether what it acknowledged outlives the process.
    durable: bool,
    /// Whether it runs without `--long`.
    short: bool,
    heap: &'static str,
}

/// What most of them have in common.
const USUAL: Subject = Subject {
    name: "",
    title: "",
    packages: &[],
    account: "",
    renamed: &[],
    ports: 1,
    embedded: false,
    java: 17,
    newest_java: u32::MAX,
    limit_mib: 32,
    unit_bytes: 32_768,
    batch: BATCH,
    rest: REST,
    most: BEYOND_WITH_DOOR,
    deletes: true,
    durable: false,
    short: false,
    heap: "768m",
};

const DOOR_OF_SHELF: &str = "door = [\"app.Shelf#hold\"]\nrefuse-with = \"exception\"\n";

impl Subject {
    fn limit_bytes(&self) -> f64 {
        (self.limit_mib << 20) as f64
    }
}

const SUBJECTS: [Subject; 18] = [
    Subject {
        name: "h2",
        // It makes a thread for each connection: docs/limitations.md, many new threads.
        title: "H2 2.3, TCP server",
        ..USUAL
    },
    Subject {
        name: "hsqldb",
        title: "HSQLDB 2.7, server",
        durable: true,
        ..USUAL
    },
    Subject {
        name: "zookeeper",
        title: "ZooKeeper 3.9",
        // Beside the nodes it keeps its latest 500 requests.
        limit_mib: 96,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "kafka",
        title: "Kafka 3.9, KRaft",
        ports: 2,
        // On ZGC, without compressed references, the broker itself holds 34 MB.
        limit_mib: 64,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "artemis",
        title: "Artemis 2.39",
        ..USUAL
    },
    Subject {
        name: "hazelcast",
        title: "Hazelcast 5.3",
        limit_mib: 64,
        ..USUAL
    },
    Subject {
        name: "cassandra",
        title: "Cassandra 5.0",
        ports: 2,
        // It sets a security manager.
        newest_java: 17,
        limit_mib: 96,
        deletes: false,
        durable: true,
        ..USUAL
    },
    Subject {
        name: "quartz",
        title: "Quartz 2.5",
        renamed: &[
            ("com.acme.jobs.ImportJob", "app.Hold"),
            ("com.acme.jobs.*", "app"),
        ],
        ports: 0,
        embedded: true,
        short: true,
        ..USUAL
    },
    Subject {
        name: "webflux",
        title: "Spring WebFlux 6.2, no door",
        packages: &["app"],
        // An `OutOfMemoryError` is fatal to Reactor: it would cut the connection.
        account: "throw = \"error\"\n",
        ..USUAL
    },
    Subject {
        name: "webflux",
        title: "Spring WebFlux 6.2, a door",
        packages: &["app"],
        account: DOOR_OF_SHELF,
        ..USUAL
    },
    Subject {
        name: "helidon",
        title: "Helidon SE 4.2, no door",
        packages: &["app"],
        java: 21,
        ..USUAL
    },
    Subject {
        name: "helidon",
        title: "Helidon SE 4.2, a door",
        packages: &["app"],
        account: DOOR_OF_SHELF,
        java: 21,
        ..USUAL
    },
    Subject {
        name: "activemq",
        title: "ActiveMQ 6.1",
        short: true,
        ..USUAL
    },
    Subject {
        name: "elasticmq",
        title: "ElasticMQ 1.6, no door",
        packages: &["org.elasticmq.*", "org.apache.pekko.*"],
        ..USUAL
    },
    Subject {
        name: "elasticmq",
        title: "ElasticMQ 1.6, a door",
        packages: &["org.elasticmq.*", "org.apache.pekko.*"],
        account: "door = [\"org.elasticmq.rest.sqs.SendMessageDirectives#doSendMessage\"]\nrefuse-with = \"exception\"\n",
        ..USUAL
    },
    Subject {
        name: "flowable",
        title: "Flowable 7.1 with H2",
        ports: 0,
        embedded: true,
        short: true,
        ..USUAL
    },
    Subject {
        name: "fuseki",
        title: "Jena Fuseki 5.2",
        limit_mib: 160,
        unit_bytes: 20 << 20,
        batch: 1,
        rest: Duration::from_secs(1),
        // A probe is a load of its own: while clients go on loading, probes use the reserve up.
        most: BEYOND_WITHOUT,
        heap: "1536m",
        ..USUAL
    },
    Subject {
        name: "connect",
        title: "Kafka Connect 3.9, two sinks",
        packages: &["heavy"],
        account: "door = [\"heavy.HeavyTask#put\"]\nrefuse-with = \"exception\"\n",
        ports: 3,
        embedded: true,
        ..USUAL
    },
];

/// Calls that were answered, of those that were sent.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    done: u64,
    sent: u64,
}

impl Share {
    fn add(&mut self, done: u64, sent: u64) {
        self.done += done;
        self.sent += sent;
    }

    fn is_enough(self) -> bool {
        self.done as f64 >= ANSWERED * self.sent as f64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.done, self.sent)
    }
}

/// Units that were acknowledged in a time.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    units: u64,
    time: Duration,
}

impl Pace {
    fn add(&mut self, units: u64, time: Duration) {
        self.units += units;
        self.time += time;
    }

    fn per_second(self) -> f64 {
        self.units as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// What was seen of one server on one VM.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Live bytes of late, of the limit.
    share: f64,
    highest: f64,
    /// What the first load left in it, by what the client was told, of the limit. What the agent calls live has old
    /// garbage in it until a covering collection.
    loaded: f64,
    acknowledged: u64,
    errors: u64,
    /// Of the errors, those without a whole answer.
    cut: u64,
    last_error: String,
    turned_away: u64,
    refusals: u64,
    deferred: String,
    waits_ms: u64,
    duress: bool,
    killed: u64,
    reported: bool,
    lives: bool,
    neighbour: Share,
    slowest: Duration,
    before: Pace,
    near: Pace,
    after: Pace,
    reads: Share,
    deletes: Share,
    /// Whether it was over when they were sent.
    was_over: bool,
    kept: String,
    /// How long it took to let go.
    dropped: Duration,
    recovered: Option<Duration>,
    works_again: bool,
    restarted: String,
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
        check(self.killed == 0, format!("{} threads killed", self.killed));
        let bound = if self.turned_away > 0 {
            subject.most
        } else {
            BEYOND_WITHOUT
        };
        check(
            self.loaded <= bound || self.reported,
            format!(
                "took {:.2} of its limit, and nothing was reported",
                self.loaded
            ),
        );
        check(
            self.highest > 0.9,
            format!("held only {:.2} of its limit", self.highest),
        );
        check(self.was_over, "was not over its limit".to_owned());
        check(
            self.cut == 0,
            format!("{} calls without an answer", self.cut),
        );
        check(
            self.neighbour.done == self.neighbour.sent,
            format!("the neighbour answered {}", self.neighbour),
        );
        check(
            self.duress || self.waits_ms == 0,
            format!("waited {} ms", self.waits_ms),
        );
        check(self.reads.is_enough(), format!("reads: {}", self.reads));
        check(
            self.deletes.is_enough(),
            format!("deletes: {}", self.deletes),
        );
        check(self.kept == "all", format!("kept: {}", self.kept));
        check(
            self.recovered.is_some_and(|after| after <= BACK),
            format!("below its limit {:?} after letting go", self.recovered),
        );
        check(self.works_again, "does not work again".to_owned());
        check(
            self.restarted.is_empty() || self.restarted == "all",
            format!("kept after a restart: {}", self.restarted),
        );
        failures
    }
}

const COLUMNS: &str = "highest live, of the limit | acknowledged | errors | of them cut | turned away | thrown | deferred | waits | killed | reported | neighbour | reads while over | deletes while over | units/s before, near, after | kept | dropped after | below the limit after | works again | kept after a restart";

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match self.recovered {
            Some(after) => format!("{:.1} s", after.as_secs_f64()),
            None => "never".to_owned(),
        };
        let yes = |is: bool| if is { "yes" } else { "no" };
        write!(
            out,
            "{:.2} | {} | {} | {} | {} | {} | {} | {} ms{} | {} | {} | {}, {} ms at most | {} | {} | {:.0}, {:.0}, {:.0} | {} | {:.1} s | {after} | {} | {}",
            self.highest,
            self.acknowledged,
            self.errors,
            self.cut,
            self.turned_away,
            self.refusals,
            self.deferred,
            self.waits_ms,
            if self.duress { ", duress" } else { "" },
            self.killed,
            yes(self.reported),
            self.neighbour,
            self.slowest.as_millis(),
            self.reads,
            self.deletes,
            self.before.per_second(),
            self.near.per_second(),
            self.after.per_second(),
            self.kept,
            self.dropped.as_secs_f64(),
            yes(self.works_again),
            self.restarted,
        )
    }
}

/// The policy that is shipped for the server, with this limit and in force; if there is none, a limit and what the
/// subject says. The account is called `loaded`.
fn policy(subject: &Subject) -> String {
    let shipped = artifacts::repository()
        .join("examples/policies/servers")
        .join(format!("{}.toml", subject.name));
    let Ok(mut text) = fs::read_to_string(&shipped) else {
        return format!(
            "[enforcement]\nmode = \"enforce\"\n\n[[account]]\nname = \"loaded\"\npackages = {:?}\nlimit = \"{}MiB\"\n{}",
            subject.packages, subject.limit_mib, subject.account
        );
    };
    for (shipped, here) in subject.renamed {
        text = text.replace(shipped, here);
    }
    let replaced = |line: &str| match line.split_once(" = ").map(|(key, _)| key) {
        Some("mode") => "mode = \"enforce\"".to_owned(),
        Some("name") => "name = \"loaded\"".to_owned(),
        Some("limit") => format!("limit = \"{}MiB\"", subject.limit_mib),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(replaced).collect();
    lines.join("\n") + "\n"
}

/// A server that runs, its client, and the neighbour.
struct Course<'a> {
    subject: &'a Subject,
    /// `None`: the client is the server.
    host: Option<Jvm>,
    client: Jvm,
    neighbour: SocketAddr,
}

impl<'a> Course<'a> {
    fn start(vm: &Vm, subject: &'a Subject, data: &Path) -> Self {
        let class_path = doorless::class_path(subject.name);
        let neighbour = ports::free();
        let ports: Vec<String> = (0..subject.ports)
            .map(|_| ports::free().to_string())
            .collect();
        let mut builder = victim(vm, "doorless.Main")
            .class_path(class_path.clone())
            .heap(subject.heap)
            .policy(&policy(subject))
            .argument(neighbour.to_string());
        for port in &ports {
            builder = builder.argument(port);
        }
        builder = builder.argument(data);
        if let Some(flags) = doorless::flags(subject.name) {
            builder = builder.flag(&flags);
        }
        let started = builder.start();
        let (host, client) = if subject.embedded {
            (None, started)
        } else {
            let mut client = victim(vm, "Client").class_path(class_path).without_agent();
            client = client.argument(&ports[0]);
            (Some(started), client.start())
        };
        let neighbour = SocketAddr::from((Ipv4Addr::LOCALHOST, neighbour));
        Self {
            subject,
            host,
            client,
            neighbour,
        }
    }

    fn jvm(&mut self) -> &mut Jvm {
        self.host.as_mut().unwrap_or(&mut self.client)
    }

    /// Adds what the account and the neighbour say now, and says whether the account is over its limit.
    fn observe(&mut self, row: &mut Row) -> bool {
        let asked = Instant::now();
        let answer = http::get(self.neighbour, "/");
        row.slowest = row.slowest.max(asked.elapsed());
        let answered = answer.is_ok_and(|answer| answer.status == 200);
        row.neighbour.add(u64::from(answered), 1);

        let subject = self.subject;
        let jvm = self.jvm();
        let accounts = jvm.accounts();
        let Some(account) = accounts.find("loaded") else {
            return false;
        };
        let number = |key: &str| account[key].as_u64().unwrap_or_default();
        let share = number("live_bytes") as f64 / subject.limit_bytes();
        // A count reads all that there is: a collection in its middle shows copies.
        if row.kept.is_empty() {
            row.highest = row.highest.max(share);
        }
        row.share = share;
        row.turned_away = number("admission_refusals_total");
        row.refusals = number("refusals_total");
        row.killed = number("threads_killed_total");
        row.waits_ms = number("wait_milliseconds_total");
        row.reported |= account["ineffective"].is_object();
        row.deferred = deferred(account);
        row.duress |= jvm.metrics().sum("heapwarden_duress") > 0.0;
        accounts.is_in_state("loaded", "over")
    }

    /// One command that repeats a call: how many were answered well, and how many were sent.
    fn repeat(&mut self, order: &str, units: u64, row: &mut Row) -> (u64, u64) {
        let answer = self.client.ask(&format!("{order} {units}"));
        let mut words = answer[0].splitn(4, ' ');
        let mut number = || {
            words
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0u64)
        };
        let (done, errors) = (number(), number());
        row.cut += number();
        if let Some(error) = words.next().filter(|text| !text.is_empty()) {
            row.last_error = format!("{order}: {error}");
        }
        (done, done + errors)
    }

    /// Until it is known to be stopped, or cannot be.
    fn load_past_limit(&mut self, row: &mut Row) -> u64 {
        let subject = self.subject;
        let units_of_limit = ((subject.limit_mib << 20) / subject.unit_bytes) as f64;
        let over = OVER[usize::from(!is_long())];
        let begun = Instant::now();
        let mut first_error = None;
        let (mut sent, mut held) = (0, 0);
        while sent < MOST_OF_LIMIT * units_of_limit as u64
            && begun.elapsed() < LOADING
            && first_error.is_none_or(|at: Instant| at.elapsed() < over)
        {
            self.observe(row);
            let asked = Instant::now();
            let (done, all) = self.repeat("load", subject.batch, row);
            let share = row.share;
            if (0.1..0.5).contains(&share) {
                row.before.add(done, asked.elapsed());
            } else if (0.8..1.0).contains(&share) && done == all {
                row.near.add(done, asked.elapsed());
            }
            held += done;
            row.acknowledged += done;
            row.errors += all - done;
            if done < all && first_error.is_none() {
                first_error = Some(Instant::now());
            }
            sent += subject.batch;
            thread::sleep(subject.rest);
        }
        row.loaded = (held * subject.unit_bytes) as f64 / subject.limit_bytes();
        held
    }

    /// `held`: units that can be deleted. Returns how many were.
    fn read_and_delete(&mut self, held: u64, row: &mut Row) -> u64 {
        row.was_over = command::poll(REPORT, || self.observe(row).then_some(())).is_some();
        // What nothing stops is reported some seconds after that.
        let _ = command::poll(REPORT, || {
            self.observe(row);
            let is_told = row.turned_away > 0 || row.refusals > 0 || row.reported;
            if !is_told {
                let (done, _) = self.repeat("load", 1, row);
                row.acknowledged += done;
            }
            thread::sleep(4 * REST);
            is_told.then_some(())
        });
        let mut deleted = 0;
        for _ in 0..STEADY_ROUNDS {
            self.observe(row);
            let (done, all) = self.repeat("load", 1, row);
            row.acknowledged += done;
            row.errors += all - done;
            let (done, all) = self.repeat("read", READS_OF_ROUND, row);
            row.reads.add(done, all);
            if self.subject.deletes && deleted < held {
                let (done, all) = self.repeat("delete", 1, row);
                row.deletes.add(done, all);
                deleted += done;
            }
            thread::sleep(REST);
        }
        deleted
    }

    /// What a patient operator gets: asks again until it is not answered with an error any more.
    fn persist(&mut self, order: &str) -> Option<String> {
        command::poll(PATIENCE, || {
            let answer = self.client.ask(order).pop()?;
            thread::sleep(REST);
            (!answer.starts_with("error")).then_some(answer)
        })
    }

    /// What is there of so many units.
    fn kept(&mut self, units: u64) -> String {
        match self.persist("count") {
            Some(count) => match units.saturating_sub(count.parse().unwrap_or(0)) {
                0 => "all".to_owned(),
                missing => format!("all but {missing} of {units}"),
            },
            None => "nobody answers".to_owned(),
        }
    }

    fn let_go(&mut self, row: &mut Row) {
        let begun = Instant::now();
        if self.persist("drop").is_none() {
            return;
        }
        row.dropped = begun.elapsed();
        row.recovered = command::poll(PATIENCE, || {
            self.observe(row);
            let subject = self.subject;
            let accounts = self.jvm().accounts();
            let live = accounts.holding("loaded").live_bytes;
            let open = accounts.is_in_state("loaded", "open");
            thread::sleep(2 * REST);
            (open && live < subject.limit_bytes()).then(|| begun.elapsed())
        });
    }

    fn work_again(&mut self, row: &mut Row) {
        let mut again = 0;
        let works = command::poll(REPORT, || {
            let (done, _) = self.repeat("load", 1, row);
            again += done;
            (again >= AGAIN.min(self.subject.batch)).then_some(())
        });
        row.works_again = works.is_some();
        let asked = Instant::now();
        let (done, _) = self.repeat("load", self.subject.batch * 4, row);
        row.after.add(done, asked.elapsed());
    }
}

/// The most frequent reasons.
fn deferred(account: &serde_json::Value) -> String {
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
    shown.join(", ")
}

/// The course of one server. What is seen goes into the row, also if the JVM ends.
fn run(vm: &Vm, subject: &Subject, row: &mut Row) {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut course = Course::start(vm, subject, data.path());
    let held = course.load_past_limit(row);
    // Those that are added while it is over are not counted: it may hold more, never less.
    let deleted = course.read_and_delete(held, row);
    row.kept = course.kept(held - deleted);
    course.let_go(row);
    course.work_again(row);
    course.observe(row);
    course.jvm().ask("gc");
    row.lives = true;
    tell(&mut course);
    if !subject.durable {
        return;
    }
    let _ = course.persist("drop");
    let mut second = Row::default();
    let held = course.load_past_limit(&mut second);
    // Kills it.
    drop(course);
    let mut course = Course::start(vm, subject, data.path());
    row.restarted = course.kept(held);
}

/// The account's largest classes, the first lines of the agent's log, and the last.
fn tell(course: &mut Course<'_>) {
    let name = course.subject.name;
    let jvm = course.jvm();
    let accounts = jvm.accounts();
    let account = accounts.find("loaded").cloned().unwrap_or_default();
    say(&format!(
        "    {name}: {} with live {} and charged {}",
        account["state"], account["live_bytes"], account["charged_bytes"]
    ));
    for class in account["classes"].as_array().into_iter().flatten().take(4) {
        say(&format!(
            "    {name}: {} with {} live bytes",
            class["class"], class["live_bytes"]
        ));
    }
    for (labels, value) in (jvm.metrics()).series("heapwarden_evidence_collections_total") {
        say(&format!(
            "    {name}: evidence collections {labels:?} {value}"
        ));
    }
    let log = jvm.log();
    let lines: Vec<&str> = (log.lines())
        .filter(|line| line.contains("heapwarden"))
        .collect();
    let (first, rest) = lines.split_at(lines.len().min(20));
    for line in first.iter().chain(&rest[rest.len().saturating_sub(20)..]) {
        say(&format!("    {name}: {line}"));
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// G1 on the oldest JDK that the server runs on, and ZGC on the newest, which is the generational one if the
/// server can have it. Without `--long` the first alone.
fn vms(subject: &Subject) -> Vec<Vm> {
    let releases = subject.java..=subject.newest_java;
    let able = || {
        every_vm()
            .iter()
            .filter(|vm| releases.contains(&vm.jdk.feature))
    };
    let g1 = able().find(|vm| vm.collector == Collector::G1);
    let z = able().rev().find(|vm| vm.collector == Collector::Z);
    let both = g1.into_iter().chain(z).cloned();
    both.take(if is_long() { 2 } else { 1 }).collect()
}

/// Runs of each server on each VM: `HEAPWARDEN_TEST_RUNS`, else one.
fn runs() -> usize {
    let chosen = std::env::var("HEAPWARDEN_TEST_RUNS").ok();
    chosen.and_then(|runs| runs.parse().ok()).unwrap_or(1)
}

/// Whether `HEAPWARDEN_TEST_SERVERS` names it, or it is not set and the subject runs.
fn is_wanted(subject: &Subject) -> bool {
    match std::env::var("HEAPWARDEN_TEST_SERVERS") {
        Ok(list) => list.split(',').any(|name| name == subject.name),
        Err(_) => is_long() || subject.short,
    }
}

#[test]
fn servers_without_a_door_live_through_their_limits() {
    let mut table = Vec::new();
    let mut failed = Vec::new();
    for subject in SUBJECTS.iter().filter(|subject| is_wanted(subject)) {
        for vm in vms(subject).into_iter().flat_map(|vm| vec![vm; runs()]) {
            let mut row = Row::default();
            let ended = catch_unwind(AssertUnwindSafe(|| run(&vm, subject, &mut row)));
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
            let failures = row.failures(subject);
            if !failures.is_empty() {
                say(&format!("    FAILED: {}", failures.join("; ")));
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
