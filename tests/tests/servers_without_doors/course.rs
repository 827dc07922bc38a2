//! The course that each server runs: it is loaded past its limit, asked while it is over, lets go, and works again.

use super::figures::Row;
use super::say;
use super::subjects::{REST, Subject, policy};
use heapwarden_harness::{http, ports};
use heapwarden_tests::command;
use heapwarden_tests::doorless;
use heapwarden_tests::jdk::{Vm, is_long};
use heapwarden_tests::jvm::{Jvm, victim};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// So much is sent at most, acknowledged or not, of the limit.
const MAX_OF_LIMIT: u64 = 3;
/// The load goes on so long after the first error, in `--long` and otherwise.
const OVER: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(3)];
const LOADING: Duration = Duration::from_secs(120);
/// A report comes within this time.
const REPORT: Duration = Duration::from_secs(15);
/// So long is looked, to say how late it was.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: u64 = 8;
/// Rounds while it is over, each with an attempt to add, reads and a delete.
const STEADY_ROUNDS: u64 = 12;
const READS_OF_ROUND: u64 = 10;

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
        while sent < MAX_OF_LIMIT * units_of_limit as u64
            && begun.elapsed() < LOADING
            && first_error.is_none_or(|at: Instant| at.elapsed() < over)
        {
            self.observe(row);
            let asked = Instant::now();
            let (done, all) = self.repeat("load", subject.batch, row);
            let share = row.share;
            if (0.1..0.8).contains(&share) {
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
        // An account that nothing stops is reported some seconds after that.
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

    /// Asks again until the answer is no error, as a patient operator does; `None` if none such comes.
    fn persist(&mut self, order: &str) -> Option<String> {
        command::poll(PATIENCE, || {
            let answer = self.client.ask(order).pop()?;
            thread::sleep(REST);
            (!answer.starts_with("error")).then_some(answer)
        })
    }

    /// Says how many of so many units are there.
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
pub(super) fn run(vm: &Vm, subject: &Subject, row: &mut Row) {
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
    for figure in ["collections", "seconds"] {
        for (labels, value) in
            (jvm.metrics()).series(&format!("heapwarden_evidence_{figure}_total"))
        {
            say(&format!("    {name}: evidence {figure} {labels:?} {value}"));
        }
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
