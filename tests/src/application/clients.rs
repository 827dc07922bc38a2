//! The clients of an application under load, and what they know.

use super::contract::Application;
use super::outcome::Answers;
use crate::server::Server;
use heapwarden_harness::http::{self, Answer};
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes a second that all clients together load, if the application can take them.
const PACE_BYTES: f64 = 10.0 * (1 << 20) as f64;
const LOADERS: u32 = 2;
/// Pauses of those who look on.
pub(super) const REST: Duration = Duration::from_millis(100);
const BETWEEN_EXPORTS: Duration = Duration::from_secs(2);
/// Other errors than the door's that are kept word for word.
const MAX_REMARKS: usize = 5;
const MAX_REMARK_CHARS: usize = 300;

/// The findings of all clients of a site: acknowledged loads, answers by kind, remarks, and the account's figures.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) acknowledged: BTreeSet<u32>,
    /// When each load of the first phase was acknowledged, since [`Site::begun`].
    pub(super) times: Vec<Duration>,
    /// When a load was turned away for the first time, or failed.
    pub(super) stopped_at: Option<Duration>,
    pub(super) answers: Answers,
    pub(super) neighbour_failures: u64,
    pub(super) remarks: Vec<String>,
    pub(super) wrong_refusals: bool,
    /// Of the account, over all times that somebody looked.
    pub(super) highest_bytes: f64,
    pub(super) ineffective: Option<String>,
}

impl Known {
    /// Counts an answer; true if it is a success.
    pub(super) fn count(&mut self, what: &str, answer: &io::Result<Answer>) -> bool {
        let (counter, remark) = match answer {
            Ok(answer) if (200..300).contains(&answer.status) => return true,
            Ok(answer) if is_of_door(answer) => {
                self.answers.turned_away += 1;
                let wrong = wrong_refusal(answer);
                self.wrong_refusals |= wrong.is_some();
                self.remarks.extend(wrong);
                return false;
            }
            Ok(answer) => {
                let counter = if answer.status >= 500 {
                    &mut self.answers.server_errors
                } else {
                    &mut self.answers.other_errors
                };
                (counter, format!("{}: {}", answer.status, answer.body))
            }
            Err(error) if http::cut(error).is_some() => (&mut self.answers.cut, error.to_string()),
            Err(error) => (&mut self.answers.none, error.to_string()),
        };
        *counter += 1;
        self.remark(format!("{what}: {remark}"));
        false
    }

    pub(super) fn remark(&mut self, remark: String) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks
                .push(remark.chars().take(MAX_REMARK_CHARS).collect());
        }
    }
}

/// Until when loads are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until {
    /// A load that is turned away ends it; without a door, one that fails.
    pub(super) refused: bool,
    /// So many have been sent since the server was started.
    pub(super) sent: u32,
    pub(super) deadline: Instant,
    /// Whether everything is exported every now and then.
    pub(super) exports: bool,
}

/// An application under load.
pub(super) struct Site<'a> {
    pub(super) application: &'a dyn Application,
    pub(super) server: Server,
    pub(super) door: bool,
    pub(super) neighbour: Option<&'static str>,
    pub(super) begun: Instant,
    pub(super) next: AtomicU32,
    stopped: AtomicBool,
    known: Mutex<Known>,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        application: &'a dyn Application,
        server: Server,
        door: bool,
        neighbour: Option<&'static str>,
    ) -> Self {
        Self {
            application,
            server,
            door,
            neighbour,
            begun: Instant::now(),
            next: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics who holds it")
    }

    pub(super) fn account(&self) -> serde_json::Value {
        let accounts = self.server.accounts();
        accounts
            .find(self.application.account())
            .cloned()
            .unwrap_or_default()
    }

    /// The same clients with another server, and what is wrong with the end of this one.
    pub(super) fn restarted(self, start: impl FnOnce() -> Server) -> (Option<String>, Self) {
        let (_, complaint) = self.server.end();
        let server = start();
        (complaint, Self { server, ..self })
    }

    pub(super) fn into_parts(self) -> (Server, Known) {
        let known = self.known.into_inner().expect("nobody panics who holds it");
        (self.server, known)
    }

    /// Loads, and reads meanwhile; returns whether a load was turned away or failed in time.
    pub(super) fn load(&self, until: Until) -> bool {
        self.stopped.store(false, Relaxed);
        thread::scope(|scope| {
            let loaders: Vec<_> = (0..LOADERS)
                .map(|_| scope.spawn(|| self.load_until_stopped(until)))
                .collect();
            scope.spawn(|| self.read_until_stopped());
            scope.spawn(|| self.ask_neighbour_until_stopped());
            scope.spawn(|| self.watch_until_stopped());
            if until.exports {
                scope.spawn(|| self.export_until_stopped());
            }
            for loader in loaders {
                loader.join().expect("it does not panic");
            }
            self.stopped.store(true, Relaxed);
        });
        self.known().stopped_at.is_some()
    }

    fn load_until_stopped(&self, until: Until) {
        let pause = Duration::from_secs_f64(
            f64::from(LOADERS) * self.application.load_bytes() as f64 / PACE_BYTES,
        );
        while !self.stopped.load(Relaxed) && Instant::now() < until.deadline {
            if self.next.load(Relaxed) >= until.sent {
                return;
            }
            let begun = Instant::now();
            let number = self.next.fetch_add(1, Relaxed);
            let answer = self.application.load(&self.server, number);
            let ended = self.begun.elapsed();
            let mut known = self.known();
            let refusal = if self.door {
                answer.as_ref().is_ok_and(is_of_door)
            } else {
                true
            };
            if known.count("a load", &answer) {
                known.acknowledged.insert(number);
                if until.refused {
                    known.times.push(ended);
                }
            } else if refusal {
                known.stopped_at.get_or_insert(ended);
                if until.refused {
                    self.stopped.store(true, Relaxed);
                }
            }
            drop(known);
            thread::sleep(pause.saturating_sub(begun.elapsed()));
        }
    }

    /// An answer with the status of success has all of a load.
    fn read_until_stopped(&self) {
        while !self.stopped.load(Relaxed) {
            thread::sleep(2 * REST);
            let number = {
                let known = self.known();
                let all = known.acknowledged.len();
                let nth = (self.next.load(Relaxed) as usize * 7 + 3) % all.max(1);
                known.acknowledged.iter().nth(nth).copied()
            };
            let Some(number) = number else { continue };
            let answer = self.application.read(&self.server, number);
            let entries = answer
                .as_ref()
                .map(|answer| self.application.entries(answer));
            let mut known = self.known();
            if known.count("a read", &answer)
                && let Ok(entries) = entries
                && entries != self.application.load_entries()
            {
                known.answers.partial += 1;
                known.remark(format!(
                    "load {number} was read as {entries} entries with the status of success"
                ));
            }
        }
    }

    /// An answer with the status of success has all that was acknowledged before the question.
    fn export_until_stopped(&self) {
        let mut last = Instant::now();
        while !self.stopped.load(Relaxed) {
            thread::sleep(REST);
            if last.elapsed() < BETWEEN_EXPORTS {
                continue;
            }
            last = Instant::now();
            let expected = self.known().acknowledged.len() as u64 * self.application.load_entries();
            let Some(answer) = self.application.export(&self.server) else {
                return;
            };
            let entries = answer
                .as_ref()
                .map(|answer| self.application.entries(answer));
            let mut known = self.known();
            if known.count("an export", &answer)
                && let Ok(entries) = entries
                && entries < expected
            {
                known.answers.partial += 1;
                known.remark(format!("{expected} entries were exported as {entries}"));
            }
        }
    }

    fn ask_neighbour_until_stopped(&self) {
        let Some(path) = self.neighbour else { return };
        while !self.stopped.load(Relaxed) {
            let answer = self.server.get(path);
            if !answer.as_ref().is_ok_and(|answer| answer.status == 200) {
                let mut known = self.known();
                known.neighbour_failures += 1;
                known.remark(format!("the neighbour: {answer:?}"));
            }
            thread::sleep(2 * REST);
        }
    }

    fn watch_until_stopped(&self) {
        while !self.stopped.load(Relaxed) {
            self.look();
            thread::sleep(2 * REST);
        }
    }

    /// Takes in what the agent says of the account now.
    pub(super) fn look(&self) -> serde_json::Value {
        let account = self.account();
        let live = account["live_bytes"].as_f64().unwrap_or_default();
        let mut known = self.known();
        known.highest_bytes = known.highest_bytes.max(live);
        if let Some(reason) = account["ineffective"]["reason"].as_str() {
            known.ineffective = Some(reason.to_owned());
        }
        account
    }
}

/// Whether it is the door's answer: an application's own 503 says something else.
fn is_of_door(answer: &Answer) -> bool {
    answer.status == 503 && answer.body.contains("over its memory limit")
}

/// Describes an answer of the door whose `retry-after` is missing, no number or below one second; `None` if it is
/// right.
fn wrong_refusal(answer: &Answer) -> Option<String> {
    let seconds = answer.headers.get("retry-after");
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    (seconds < Some(1)).then(|| format!("a refusal: {answer:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn answer(status: u16, body: &str, retry_after: Option<&str>) -> io::Result<Answer> {
        let headers = retry_after.map(|text| ("retry-after".to_owned(), text.to_owned()));
        Ok(Answer {
            status,
            headers: BTreeMap::from_iter(headers),
            body: body.to_owned(),
        })
    }

    #[test]
    fn each_kind_of_answer_has_its_count() {
        let mut known = Known::default();
        let refusal = "/shop is over its memory limit";
        assert!(known.count("a load", &answer(204, "", None)));
        assert!(!known.count("a load", &answer(503, refusal, Some("1"))));
        assert!(!known.wrong_refusals);
        known.count("a load", &answer(503, refusal, None));
        assert!(known.wrong_refusals);
        known.count("a load", &answer(503, "busy", None));
        known.count("a load", &answer(400, "", None));
        known.count("a load", &Err(io::ErrorKind::ConnectionReset.into()));
        let expected = Answers {
            turned_away: 2,
            server_errors: 1,
            other_errors: 1,
            none: 1,
            ..Answers::default()
        };
        assert_eq!(known.answers, expected);
        assert_eq!(known.answers.failed(), 3);
    }
}
