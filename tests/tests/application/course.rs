//! The course that every application goes through: loaded past its limit, read, emptied, loaded again.

use super::Application;
use heapwarden_harness::http::Answer;
use heapwarden_tests::command;
use heapwarden_tests::jdk::Vm;
use heapwarden_tests::server::{Installation, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT_MIB: u64 = 96;
const HEAP: &str = "1g";
/// Bytes a second that all clients together load, if the application can take them.
const PACE_BYTES: f64 = 10.0 * (1 << 20) as f64;
const LOADERS: u32 = 2;
/// The limit is passed after ten seconds at the full pace. An application that takes no 503 in this time is
/// not stopped.
const LOADING: Duration = Duration::from_secs(240);
/// The promise: below the limit again after a delete that was acknowledged.
const SOON: Duration = Duration::from_secs(15);
/// Loads after the recovery.
const AGAIN: u32 = 10;
/// How often what is missing is asked for again.
const CENSUSES: u32 = 3;
const REST: Duration = Duration::from_millis(100);

/// What differs between the courses of applications.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    /// Another application of the same server, which answers `done`.
    pub(crate) neighbour: Option<&'static str>,
    /// Whether all of it must be there after a restart.
    pub(crate) restart: bool,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            neighbour: Some(super::NEIGHBOUR),
            restart: false,
        }
    }
}

/// What was measured: how much the application held when it was turned away for the first time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overshoot {
    /// Live after a collection, the loaders stopped at the first 503.
    pub(crate) held_bytes: f64,
    bytes_per_second: f64,
    /// Loads that were acknowledged, and that got another error than the door's.
    acknowledged: usize,
    errors: usize,
    refusals: u64,
    waited: Duration,
    /// From the first acknowledged delete.
    recovery: Duration,
}

impl Overshoot {
    /// Of the limit.
    pub(crate) fn ratio(&self) -> f64 {
        self.held_bytes / (LIMIT_MIB << 20) as f64
    }
}

impl fmt::Display for Overshoot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: f64| bytes / (1 << 20) as f64;
        write!(
            out,
            "{:.1} MiB/s | {LIMIT_MIB} MiB | {:.1} MiB | {:.2} | {} | {} | {} | {:.1} s | {:.1} s",
            mib(self.bytes_per_second),
            mib(self.held_bytes),
            self.ratio(),
            self.acknowledged,
            self.errors,
            self.refusals,
            self.waited.as_secs_f64(),
            self.recovery.as_secs_f64()
        )
    }
}

/// The columns of [`Overshoot`]'s line.
pub(crate) const COLUMNS: &str = "loaded | limit | held at the first 503 | of the limit | loads acknowledged | other errors | refusals thrown | waits | below the limit after";

fn policy(mode: &str, account: &str) -> String {
    format!(
        "[enforcement]\nmode = \"{mode}\"\n\n[[account]]\nservice = \"{account}\"\nlimit = \"{LIMIT_MIB}MiB\"\n"
    )
}

/// What clients know.
#[derive(Debug, Default)]
struct Known {
    acknowledged: BTreeSet<u32>,
    errors: Vec<String>,
    broken: Vec<String>,
}

/// An application under load.
struct Site<'a> {
    application: &'a dyn Application,
    server: Server,
    next: AtomicU32,
    stopped: AtomicBool,
    known: Mutex<Known>,
}

/// All of it, on one VM.
///
/// # Panics
/// If anything of the promise is not kept, but for the overshoot, which the caller judges.
pub(crate) fn run(vm: &Vm, application: &dyn Application, course: Course) -> Overshoot {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let account = application.account();
    let start = |mode: &str| {
        let site = Installation::with_heap(HEAP).collector(vm.collector);
        application.start(site, vm, data.path(), &policy(mode, account))
    };
    let mut site = Site {
        application,
        server: start("enforce"),
        next: AtomicU32::new(0),
        stopped: AtomicBool::new(false),
        known: Mutex::default(),
    };
    site.wait_for_neighbour(course.neighbour);
    application.prepare(&site.server);
    site.wait_for_door();
    let begun = Instant::now();
    site.load_past_limit(course.neighbour);
    let elapsed = begun.elapsed();
    let (refusals, waited) = site.enforced();
    let held = site.held(vm);
    site.assert_whole("over its limit");
    let acknowledged = site.acknowledged();
    if course.restart {
        site.assert_no_thread_died();
        site.server.finish();
        site.server = start("observe");
        site.assert_whole("after a restart");
        std::fs::write(site.server.policy(), policy("enforce", account)).expect("writable");
        site.wait_until("enforced again", |account| account["door"] == "shut");
    }
    let recovery = site.assert_recovers();
    site.assert_takes_loads_again();
    if let Some(path) = course.neighbour {
        site.server.ask(path);
    }
    site.assert_no_thread_died();
    let known = site.known.into_inner().expect("no panic holds it");
    let log = site.server.finish();
    let overshoot = Overshoot {
        held_bytes: held,
        bytes_per_second: held / elapsed.as_secs_f64(),
        acknowledged,
        errors: known.errors.len(),
        refusals,
        waited,
        recovery,
    };
    assert!(
        known.broken.is_empty(),
        "{overshoot}: {:#?}\n{log}",
        known.broken
    );
    overshoot
}

impl Site<'_> {
    fn account(&self) -> serde_json::Value {
        let accounts = self.server.accounts();
        accounts
            .find(self.application.account())
            .cloned()
            .unwrap_or_default()
    }

    fn wait_until(&self, what: &str, wanted: impl Fn(&serde_json::Value) -> bool) {
        let met = command::poll(command::PATIENCE, || {
            thread::sleep(REST);
            wanted(&self.account()).then_some(())
        });
        assert!(
            met.is_some(),
            "{what}: {}\n{}",
            self.account(),
            self.server.log()
        );
    }

    fn wait_for_neighbour(&self, neighbour: Option<&str>) {
        let Some(path) = neighbour else { return };
        let up = command::poll(command::PATIENCE, || {
            thread::sleep(REST);
            let answer = self.server.get(path).ok()?;
            (answer.status == 200).then_some(())
        });
        assert!(up.is_some(), "{path} is not up:\n{}", self.server.log());
    }

    fn wait_for_door(&self) {
        self.wait_until("there is a door", |account| account["door"] == "open");
    }

    /// Loads until the first 503, and reads what was acknowledged meanwhile.
    fn load_past_limit(&self, neighbour: Option<&str>) {
        let deadline = Instant::now() + LOADING;
        let ran_out = thread::scope(|scope| {
            let loaders: Vec<_> = (0..LOADERS)
                .map(|_| scope.spawn(|| self.load_until_stopped(deadline)))
                .collect();
            scope.spawn(|| self.read_until_stopped());
            scope.spawn(|| self.ask_neighbour_until_stopped(neighbour));
            let ended: Vec<bool> = loaders
                .into_iter()
                .map(|loader| loader.join().expect("it does not panic"))
                .collect();
            self.stopped.store(true, Relaxed);
            ended.contains(&true)
        });
        assert!(
            !ran_out,
            "never turned away within {LOADING:?}: {}\n{}",
            self.account(),
            self.server.log()
        );
    }

    /// Returns whether there was no time left.
    fn load_until_stopped(&self, deadline: Instant) -> bool {
        let pause = Duration::from_secs_f64(
            f64::from(LOADERS) * self.application.load_bytes() as f64 / PACE_BYTES,
        );
        while !self.stopped.load(Relaxed) {
            if Instant::now() > deadline {
                self.stopped.store(true, Relaxed);
                return true;
            }
            let begun = Instant::now();
            let number = self.next.fetch_add(1, Relaxed);
            let answer = self.application.load(&self.server, number);
            let mut known = self.known.lock().expect("no panic holds it");
            match answer {
                Ok(answer) if answer.status == 503 => {
                    self.stopped.store(true, Relaxed);
                    if let Some(wrong) = wrong_refusal(&answer) {
                        known.broken.push(wrong);
                    }
                }
                Ok(answer) if (200..300).contains(&answer.status) => {
                    known.acknowledged.insert(number);
                }
                Ok(answer) => known.errors.push(format!("{}", answer.status)),
                Err(error) => known.errors.push(error.to_string()),
            }
            drop(known);
            thread::sleep(pause.saturating_sub(begun.elapsed()));
        }
        false
    }

    /// An answer with the status of success has all of a load.
    fn read_until_stopped(&self) {
        while !self.stopped.load(Relaxed) {
            thread::sleep(2 * REST);
            let number = {
                let known = self.known.lock().expect("no panic holds it");
                let all = known.acknowledged.len();
                let nth = (self.next.load(Relaxed) as usize * 7 + 3) % all.max(1);
                known.acknowledged.iter().nth(nth).copied()
            };
            let Some(number) = number else { continue };
            let Ok(answer) = self.application.read(&self.server, number) else {
                continue;
            };
            let entries = self.application.entries(&answer);
            if answer.status == 200 && entries != self.application.load_entries() {
                let mut known = self.known.lock().expect("no panic holds it");
                known.broken.push(format!(
                    "load {number} was read as {entries} entries with the status of success"
                ));
            }
        }
    }

    fn ask_neighbour_until_stopped(&self, neighbour: Option<&str>) {
        let Some(path) = neighbour else { return };
        while !self.stopped.load(Relaxed) {
            let answer = self.server.get(path);
            if !answer.as_ref().is_ok_and(|answer| answer.status == 200) {
                let mut known = self.known.lock().expect("no panic holds it");
                known.broken.push(format!("the neighbour: {answer:?}"));
            }
            thread::sleep(2 * REST);
        }
    }

    fn acknowledged(&self) -> usize {
        let known = self.known.lock().expect("no panic holds it");
        known.acknowledged.len()
    }

    /// Refusals that were thrown, and what was waited in all.
    fn enforced(&self) -> (u64, Duration) {
        let account = self.account();
        let count = |name: &str| account[name].as_u64().unwrap_or_default();
        (
            count("refusals_total"),
            Duration::from_millis(count("wait_milliseconds_total")),
        )
    }

    /// Live bytes after a collection.
    fn held(&self, vm: &Vm) -> f64 {
        let collect = || {
            let id = self.server.id().to_string();
            let collected = command::run(
                Command::new(vm.jdk.program("jcmd")).args([id.as_str(), "GC.run"]),
                command::PATIENCE,
            );
            assert!(collected.status.success(), "{collected:?}");
        };
        let holding = self.server.settled_by(collect, self.application.account());
        holding.live_bytes
    }

    /// Sends a request again until it is neither turned away nor failed.
    fn persist(&self, what: &str, send: impl Fn() -> std::io::Result<Answer>) -> Answer {
        let mut last = None;
        let answer = command::poll(command::PATIENCE, || {
            let answer = send();
            if let Ok(answer) = &answer
                && (200..300).contains(&answer.status)
            {
                return Some(answer.clone());
            }
            last = Some(answer);
            thread::sleep(REST);
            None
        });
        answer.unwrap_or_else(|| {
            panic!(
                "{what}: {last:?}\n{}\n{}",
                self.account(),
                self.server.log()
            )
        })
    }

    fn census(&self) -> BTreeMap<u32, u64> {
        let answer = self.persist("a census", || self.application.ask_census(&self.server));
        self.application.census(&answer)
    }

    /// What was acknowledged is there, and nothing is there by half. An answer with the status of success that
    /// has less than a later one is broken, which is another matter.
    fn assert_whole(&self, when: &str) {
        let mut missing = self.missing();
        for _ in 0..CENSUSES {
            if missing.is_none() {
                return;
            }
            thread::sleep(10 * REST);
            let later = self.missing();
            if later.is_none() {
                let mut known = self.known.lock().expect("no panic holds it");
                known.broken.push(format!(
                    "{when}: a census answered 200 with a part: {missing:?}"
                ));
            }
            missing = later;
        }
        assert!(
            missing.is_none(),
            "{when}: {missing:?}\n{}",
            self.server.log()
        );
    }

    /// What an answer lacks.
    fn missing(&self) -> Option<String> {
        let census = self.census();
        let known = self.known.lock().expect("no panic holds it");
        let whole = self.application.load_entries();
        let lost = (known.acknowledged.iter())
            .filter(|number| census.get(number) != Some(&whole))
            .count();
        let halves = census.values().filter(|&&entries| entries != whole).count();
        (lost > 0 || halves > 0).then(|| {
            format!(
                "of {} acknowledged loads {lost} are not there, {halves} of {} loads by half",
                known.acknowledged.len(),
                census.len()
            )
        })
    }

    /// Deletes everything, and says how long it took from there until the account was below its limit.
    fn assert_recovers(&self) -> Duration {
        let loads = self.next.load(Relaxed);
        let delete = || self.application.delete(&self.server, loads);
        self.persist("a delete", delete);
        let begun = Instant::now();
        let limit = LIMIT_MIB << 20;
        let recovered = command::poll(command::PATIENCE, || {
            let account = self.account();
            if account["door"] == "open" && account["live_bytes"].as_u64() < Some(limit) {
                return Some(begun.elapsed());
            }
            // An error or the door's answer: it is sent again.
            let _ = delete();
            thread::sleep(5 * REST);
            None
        });
        let within = recovered.is_some_and(|elapsed| elapsed <= SOON);
        assert!(
            within,
            "below its limit after {recovered:?}: {}\n{}",
            self.account(),
            self.server.log()
        );
        recovered.unwrap_or_default()
    }

    fn assert_takes_loads_again(&self) {
        let mut again = BTreeSet::new();
        for _ in 0..AGAIN {
            let number = self.next.fetch_add(1, Relaxed);
            self.persist("a load after the recovery", || {
                self.application.load(&self.server, number)
            });
            again.insert(number);
        }
        self.known.lock().expect("no panic holds it").acknowledged = again;
        self.assert_whole("after the recovery");
    }

    fn assert_no_thread_died(&self) {
        let killed = (self.server.metrics()).sum("heapwarden_account_threads_killed_total");
        assert!(killed == 0.0, "{killed} threads\n{}", self.server.log());
    }
}

/// What is wrong with the door's answer.
fn wrong_refusal(answer: &Answer) -> Option<String> {
    let seconds = answer.headers.get("retry-after");
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    let right = seconds >= Some(1) && answer.body.contains("over its memory limit");
    (!right).then(|| format!("a refusal: {answer:?}"))
}
