//! The course that every application goes through: loaded past its limit, read, emptied, loaded again.

use super::clients::{REST, Site, Until};
use super::contract::{Application, NEIGHBOUR};
use super::outcome::{Losses, Outcome, lag};
use crate::command;
use crate::jdk::{Vm, compiler};
use crate::server::{Installation, Server};
use heapwarden_harness::http::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT_MIB: u64 = 96;
const LIMIT_BYTES: u64 = LIMIT_MIB << 20;
const HEAP: &str = "1g";
/// The limit is passed after ten seconds at the full pace; a store on disk takes 0.4 MiB/s on a busy machine. An
/// application that takes no 503 in this time is not stopped.
const LOADING: Duration = Duration::from_secs(600);
/// Loads that go on go on for so long at most, or until this many limits have been sent.
const PRESSING: Duration = Duration::from_secs(90);
const PRESSED_LIMITS: u64 = 3;
/// Loads after the recovery.
const AGAIN: u32 = 10;
/// How often what is missing is asked for again.
const CENSUSES: u32 = 3;
/// Until a snapshot shows what a collection has found.
const TAKEN_IN: Duration = Duration::from_millis(600);
/// How long it is watched whether an account is over its limit after a restart.
const OVER_AGAIN: Duration = Duration::from_secs(15);

/// The options in which one course differs from another.
#[derive(Debug, Clone)]
pub struct Course {
    /// Another application of the same server, which answers `done`.
    pub neighbour: Option<&'static str>,
    /// Whether all of it must be there after a restart.
    pub restart: bool,
    /// Whether the account has a door.
    pub door: bool,
    /// Whether the clients go on loading after the first refusal, until three limits have been sent.
    pub pressed: bool,
    /// Whether it ends when it is known what was held at the first refusal: nothing is counted, let go of or
    /// loaded again.
    pub brief: bool,
    /// An agent that is not the one under test, and no `-Xcheck:jni`: for measurements.
    pub measured: Option<PathBuf>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            neighbour: Some(NEIGHBOUR),
            restart: false,
            door: true,
            pressed: false,
            brief: false,
            measured: None,
        }
    }
}

impl Course {
    fn policy(&self, mode: &str, account: &str) -> String {
        let door = if self.door { "auto" } else { "off" };
        format!(
            "[enforcement]\nmode = \"{mode}\"\n\n[[account]]\nservice = \"{account}\"\nlimit = \"{LIMIT_MIB}MiB\"\ndoor = \"{door}\"\n"
        )
    }

    fn start(&self, vm: &Vm, application: &dyn Application, data: &Path, mode: &str) -> Server {
        let mut site = Installation::with_heap(HEAP).collector(vm.collector);
        if let Some(library) = &self.measured {
            site = site.library(library).as_in_production();
        }
        let policy = self.policy(mode, application.account());
        application.start(site, vm, data, &policy)
    }
}

/// All of it, on one VM. What is seen is judged by [`Outcome::failures`]; the log of the server's last run
/// comes with it.
///
/// # Panics
/// If the server cannot be started or set up, has no door although it should, or its JVM ends by itself.
pub fn run(vm: &Vm, application: &dyn Application, course: &Course) -> (Outcome, String) {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let server = course.start(vm, application, data.path(), "enforce");
    let mut site = Site::new(application, server, course.door, course.neighbour);
    site.wait_for_neighbour();
    application.prepare(&site.server);
    if course.door {
        site.wait_until("there is a door", |account| account["door"] == "open");
    }
    site.collect(vm);
    thread::sleep(TAKEN_IN);
    let empty = site.account()["live_bytes"].as_f64().unwrap_or_default();
    let mut outcome = Outcome {
        door: course.door,
        limit_bytes: LIMIT_BYTES,
        ..Outcome::default()
    };
    site.load_past_limit(vm, course, empty, &mut outcome);
    outcome.acknowledged = site.known().acknowledged.len() as u64;
    if !course.brief {
        outcome.losses = site.losses();
    }
    let account = site.look();
    let count = |name: &str| account[name].as_u64().unwrap_or_default();
    outcome.refusals = count("refusals_total");
    outcome.waited_seconds = count("wait_milliseconds_total") as f64 / 1e3;
    if course.brief {
        outcome.killed = count("threads_killed_total");
        return finished(site, outcome);
    }
    if course.restart {
        outcome.restarted = true;
        outcome.killed = count("threads_killed_total");
        let (complaint, restarted) =
            site.restarted(|| course.start(vm, application, data.path(), "observe"));
        site = restarted;
        outcome.complaint = complaint;
        outcome.losses_after_restart = site.losses();
        let policy = course.policy("enforce", application.account());
        std::fs::write(site.server.policy(), policy).expect("writable");
        site.wait_for_enforcement();
    }
    outcome.recovery_seconds = site.recover().map(|after| after.as_secs_f64());
    outcome.works_again = outcome.recovery_seconds.is_some() && site.takes_loads_again();
    let killed = site.look()["threads_killed_total"].as_u64();
    outcome.killed += killed.unwrap_or_default();
    finished(site, outcome)
}

/// Ends the server, and adds what the clients know.
fn finished(site: Site<'_>, mut outcome: Outcome) -> (Outcome, String) {
    let (server, known) = site.into_parts();
    outcome.highest_bytes = known.highest_bytes;
    outcome.answers = known.answers;
    outcome.neighbour_failures = known.neighbour_failures;
    outcome.ineffective = known.ineffective;
    outcome.wrong_refusals = known.wrong_refusals;
    outcome.remarks = known.remarks;
    let (log, complaint) = server.end();
    outcome.complaint = outcome.complaint.or(complaint);
    (outcome, log)
}

impl Site<'_> {
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

    fn wait_for_neighbour(&self) {
        let Some(path) = self.neighbour else { return };
        let up = command::poll(command::PATIENCE, || {
            thread::sleep(REST);
            let answer = self.server.get(path).ok()?;
            (answer.status == 200).then_some(())
        });
        assert!(up.is_some(), "{path} is not up:\n{}", self.server.log());
    }

    /// After a restart a store need not be over its limit: it has lost much, or takes less room when it is
    /// read from the disk than when it grew.
    fn wait_for_enforcement(&self) {
        if self.door {
            self.wait_until("there is a door again", |account| account["door"] != "none");
        }
        let _ = command::poll(OVER_AGAIN, || {
            thread::sleep(REST);
            (self.account()["state"] == "over").then_some(())
        });
    }

    /// Loads until the first refusal, reads what is held then, and loads on if the course wants it.
    fn load_past_limit(&self, vm: &Vm, course: &Course, empty: f64, outcome: &mut Outcome) {
        let pressed = PRESSED_LIMITS * LIMIT_BYTES / self.application.load_bytes();
        let pressed = u32::try_from(pressed).unwrap_or(u32::MAX);
        outcome.stopped = self.load(Until {
            refused: true,
            sent: if course.door { u32::MAX } else { pressed },
            deadline: Instant::now() + LOADING,
            exports: course.pressed,
        });
        let elapsed = self.begun.elapsed();
        let error = self.account()["standard_error_bytes"].as_f64();
        outcome.standard_error_bytes = error.unwrap_or_default();
        outcome.held_bytes = self.held(vm);
        outcome.bytes_per_second = (outcome.held_bytes - empty) / elapsed.as_secs_f64();
        {
            let known = self.known();
            let lag = known.stopped_at.and_then(|stopped| {
                lag(
                    &known.times,
                    stopped,
                    empty,
                    outcome.held_bytes,
                    LIMIT_BYTES as f64,
                )
            });
            outcome.lag_seconds = lag.map(|lag| lag.as_secs_f64());
        }
        if course.pressed {
            self.load(Until {
                refused: false,
                sent: pressed,
                deadline: Instant::now() + PRESSING,
                exports: true,
            });
            outcome.held_in_the_end_bytes = self.held(vm);
        }
    }

    fn collect(&self, vm: &Vm) {
        let id = self.server.id().to_string();
        // A Java runtime has no jcmd; that of another JDK does.
        let own = vm.jdk.program("jcmd");
        let jcmd = if own.exists() {
            own
        } else {
            compiler().program("jcmd")
        };
        let collected = command::run(
            Command::new(jcmd).args([id.as_str(), "GC.run"]),
            command::PATIENCE,
        );
        assert!(collected.status.success(), "{collected:?}");
    }

    /// Live bytes after a collection.
    fn held(&self, vm: &Vm) -> f64 {
        let holding = (self.server).settled_by(|| self.collect(vm), self.application.account());
        holding.live_bytes
    }

    /// Sends a request again until it is neither turned away nor failed. None: it never was answered so.
    fn persist(&self, what: &str, send: impl Fn() -> std::io::Result<Answer>) -> Option<Answer> {
        command::poll(command::PATIENCE, || {
            let answer = send();
            if self.known().count(what, &answer) {
                return answer.ok();
            }
            thread::sleep(REST);
            None
        })
    }

    fn census(&self) -> Option<BTreeMap<u32, u64>> {
        let answer = self.persist("a census", || self.application.ask_census(&self.server))?;
        Some(self.application.census(&answer))
    }

    /// Counts the acknowledged loads that are not there in full, and the loads that are there by half; `None` if no
    /// census is answered. Asks again while there are any: an answer with the status of success that has less than a
    /// later one has only a part, which is another matter.
    fn losses(&self) -> Option<Losses> {
        let mut losses = self.count_losses()?;
        for _ in 0..CENSUSES {
            if losses == Losses::default() {
                break;
            }
            thread::sleep(10 * REST);
            let later = self.count_losses()?;
            if later.lost < losses.lost {
                let mut known = self.known();
                known.answers.partial += 1;
                known.remark(format!(
                    "a census answered 200 with a part: {losses:?}, later {later:?}"
                ));
            }
            losses = later;
        }
        Some(losses)
    }

    fn count_losses(&self) -> Option<Losses> {
        let census = self.census()?;
        let known = self.known();
        let whole = self.application.load_entries();
        let lost = (known.acknowledged.iter()).filter(|number| census.get(number) != Some(&whole));
        let halves = census.values().filter(|&&entries| entries != whole);
        Some(Losses {
            lost: lost.count() as u64,
            halves: halves.count() as u64,
        })
    }

    /// Deletes everything, and says how long it took from there until the account was below its limit.
    fn recover(&self) -> Option<Duration> {
        let loads = self.next.load(Relaxed);
        let delete = || self.application.delete(&self.server, loads);
        self.persist("a delete", delete)?;
        let begun = Instant::now();
        command::poll(command::PATIENCE, || {
            let account = self.look();
            let open = if self.door {
                account["door"] == "open"
            } else {
                account["state"] == "open"
            };
            if open && account["live_bytes"].as_u64() < Some(LIMIT_BYTES) {
                return Some(begun.elapsed());
            }
            // An error or the door's answer: it is sent again.
            let answer = delete();
            self.known().count("a delete", &answer);
            thread::sleep(5 * REST);
            None
        })
    }

    fn takes_loads_again(&self) -> bool {
        let mut again = BTreeSet::new();
        for _ in 0..AGAIN {
            let number = self.next.fetch_add(1, Relaxed);
            let taken = self.persist("a load after the recovery", || {
                self.application.load(&self.server, number)
            });
            if taken.is_none() {
                return false;
            }
            again.insert(number);
        }
        self.known().acknowledged = again;
        let neighbour = self.neighbour.is_none_or(|path| {
            let answer = self.server.get(path);
            answer.is_ok_and(|answer| answer.status == 200 && answer.body.contains("done"))
        });
        neighbour && self.losses() == Some(Losses::default())
    }
}
