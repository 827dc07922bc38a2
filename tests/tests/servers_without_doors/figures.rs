//! The figures of one server, and the conditions that they must meet.

use super::subjects::{BEYOND_WITHOUT, Subject};
use std::fmt;
use std::time::Duration;

/// The account is below its limit within this time after the first delete.
const BACK: Duration = Duration::from_secs(15);
/// Of the reads and deletes while it is over.
const ANSWERED: f64 = 0.99;

/// Calls that were answered, of those that were sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) done: u64,
    pub(super) sent: u64,
}

impl Share {
    pub(super) fn add(&mut self, done: u64, sent: u64) {
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
pub(super) struct Pace {
    pub(super) units: u64,
    pub(super) time: Duration,
}

impl Pace {
    pub(super) fn add(&mut self, units: u64, time: Duration) {
        self.units += units;
        self.time += time;
    }

    fn per_second(self) -> f64 {
        self.units as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// The figures of one server on one VM.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// Live bytes of late, of the limit.
    pub(super) share: f64,
    pub(super) highest: f64,
    /// The share of the limit that the first load left in it, by what the client was told. The agent's live bytes have
    /// old garbage in them until a covering collection.
    pub(super) loaded: f64,
    pub(super) acknowledged: u64,
    pub(super) errors: u64,
    /// Of the errors, those without a whole answer.
    pub(super) cut: u64,
    pub(super) last_error: String,
    pub(super) turned_away: u64,
    pub(super) refusals: u64,
    pub(super) deferred: String,
    pub(super) waits_ms: u64,
    pub(super) duress: bool,
    pub(super) killed: u64,
    pub(super) reported: bool,
    pub(super) lives: bool,
    pub(super) neighbour: Share,
    pub(super) slowest: Duration,
    pub(super) before: Pace,
    pub(super) near: Pace,
    pub(super) after: Pace,
    pub(super) reads: Share,
    pub(super) deletes: Share,
    /// Whether it was over when they were sent.
    pub(super) was_over: bool,
    pub(super) kept: String,
    /// How long it took to let go.
    pub(super) dropped: Duration,
    pub(super) recovered: Option<Duration>,
    pub(super) works_again: bool,
    pub(super) restarted: String,
}

impl Row {
    /// Returns a sentence for each condition that is not met.
    pub(super) fn failures(&self, subject: &Subject) -> Vec<String> {
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

pub(super) const COLUMNS: &str = "highest live, of the limit | acknowledged | errors | of them cut | turned away | thrown | deferred | waits | killed | reported | neighbour | reads while over | deletes while over | units/s before, near, after | kept | dropped after | below the limit after | works again | kept after a restart";

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
