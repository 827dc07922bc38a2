//! The observations of an application on its course, and which of them break a promise.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The promise: below the limit again after a delete that was acknowledged.
const SOON: Duration = Duration::from_secs(15);
/// Beyond this share of the limit an account that is not turned away must be reported.
const UNREPORTED: f64 = 1.275;

/// Counts of the requests that clients got no success for, or only a part, by kind. A load, a read, a count of
/// everything: all are requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The door's `503`.
    pub turned_away: u64,
    /// `500` and above, but for the door's.
    pub server_errors: u64,
    /// Another status that is not success.
    pub other_errors: u64,
    /// The connection ended before a status.
    pub none: u64,
    /// The status came and the end of the body did not.
    pub cut: u64,
    /// Whole by HTTP, with the status of success, and with a part of what it should have.
    pub partial: u64,
}

impl Answers {
    /// Neither success nor the door's, and not whole.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.server_errors + self.other_errors + self.none + self.cut
    }
}

/// Counts of the loads that are not there as they should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Acknowledged, and not there in full.
    pub lost: u64,
    /// There by a part, acknowledged or not.
    pub halves: u64,
}

/// One course on one VM.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether the account had a door.
    pub door: bool,
    /// The limit of the account.
    pub limit_bytes: u64,
    /// Live after a collection, the clients stopped at the first request that was turned away (with a
    /// door) or failed (without one).
    pub held_bytes: f64,
    /// One standard error of what was charged at that request.
    pub standard_error_bytes: f64,
    /// The same when a course that goes on loading has ended it.
    #[serde(default)]
    pub held_in_the_end_bytes: f64,
    /// The most that the agent said was live.
    pub highest_bytes: f64,
    /// How fast it was loaded until then.
    pub bytes_per_second: f64,
    /// From the load that passed the limit to that request: see `lag`. None: the limit was not passed.
    pub lag_seconds: Option<f64>,
    /// Whether a request was turned away, or failed, at all.
    pub stopped: bool,
    /// Loads that were acknowledged.
    pub acknowledged: u64,
    /// Requests without success, or with a part only.
    pub answers: Answers,
    /// None: nobody said what is there.
    pub losses: Option<Losses>,
    /// The same after a restart, if there was one and it said.
    pub losses_after_restart: Option<Losses>,
    /// Whether there was a restart.
    pub restarted: bool,
    /// Errors that the agent threw.
    pub refusals: u64,
    /// Seconds that the agent made threads and requests wait, all added up.
    pub waited_seconds: f64,
    /// Threads that it counted as ended by an error of its own.
    pub killed: u64,
    /// The reason for which the agent said that its refusals do not stop the account.
    pub ineffective: Option<String>,
    /// From the first acknowledged delete to being below the limit.
    pub recovery_seconds: Option<f64>,
    /// Whether loads were taken again afterwards, and were there in full.
    pub works_again: bool,
    /// Requests to the neighbour that were not answered `200`.
    pub neighbour_failures: u64,
    /// Answers of the door that are not as they must be, and the first few of other errors.
    pub remarks: Vec<String>,
    /// Whether one of the remarks is about the door.
    pub wrong_refusals: bool,
    /// The first fault found at a server's end: it still ran, had crashed, or its log has a failure or complaints.
    /// None: it ended well.
    pub complaint: Option<String>,
}

impl Outcome {
    /// Held at the first refusal, of the limit.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.held_bytes / self.limit_bytes as f64
    }

    /// Whether the limit was reached at all: a slow application on a busy machine may not get there in time.
    #[must_use]
    pub fn reached_limit(&self) -> bool {
        self.stopped || self.highest_ratio() > 1.0
    }

    /// The most that was live, of the limit.
    #[must_use]
    pub fn highest_ratio(&self) -> f64 {
        self.highest_bytes.max(self.held_bytes) / self.limit_bytes as f64
    }

    /// The most that was live after a collection, with the clients stopped, of the limit. Between collections
    /// old garbage, and what requests that are inside need, count as live.
    #[must_use]
    fn grown_ratio(&self) -> f64 {
        self.held_in_the_end_bytes.max(self.held_bytes) / self.limit_bytes as f64
    }

    /// Which promises are not kept, but for the overshoot at the door, which is judged over several runs.
    ///
    /// Without a door, errors break what they break; it is counted. But the account does not grow without
    /// a word, and the neighbour does not notice.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                failures.push(what);
            }
        };
        let neighbour = self.neighbour_failures;
        check(neighbour == 0, format!("the neighbour: {neighbour} times"));
        if !self.door {
            let grown = self.grown_ratio();
            check(
                grown <= UNREPORTED || self.ineffective.is_some(),
                format!("held {grown:.2} of its limit, and nothing was reported"),
            );
            return failures;
        }
        check(self.stopped, "never turned away".to_owned());
        check(
            !self.wrong_refusals,
            "a refusal without its header lines".to_owned(),
        );
        let partial = self.answers.partial;
        check(
            partial == 0,
            format!("{partial} answers of 200 with a part"),
        );
        let mut censuses = vec![("over its limit", self.losses)];
        if self.restarted {
            censuses.push(("after a restart", self.losses_after_restart));
        }
        for (when, losses) in censuses {
            let whole = losses.is_some_and(|losses| losses == Losses::default());
            check(whole, format!("{when}: {losses:?}"));
        }
        let soon = self
            .recovery_seconds
            .is_some_and(|seconds| seconds <= SOON.as_secs_f64());
        check(
            soon,
            format!("below its limit after {:?} s", self.recovery_seconds),
        );
        check(self.works_again, "it does not work again".to_owned());
        check(self.killed == 0, format!("{} threads died", self.killed));
        if let Some(complaint) = &self.complaint {
            check(false, complaint.clone());
        }
        failures
    }
}

/// The columns of [`Outcome`]'s line.
pub const COLUMNS: &str = "door | loaded | limit | held at the first refusal | of the limit | highest, of the limit | lag | acknowledged | 503 | server errors | other errors | no answer | cut | 200 with a part | lost / halves | after a restart | errors thrown | waits | threads killed | ineffective | below the limit after | works again";

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let losses = |losses: Option<Losses>| {
            losses.map_or_else(
                || "unknown".to_owned(),
                |losses| format!("{} / {}", losses.lost, losses.halves),
            )
        };
        let seconds = |seconds: Option<f64>| {
            seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1} s"))
        };
        let yes = |is: bool| if is { "yes" } else { "no" };
        let answers = &self.answers;
        let cells = [
            yes(self.door).to_owned(),
            format!("{:.1} MiB/s", mib(self.bytes_per_second)),
            format!("{:.0} MiB", mib(self.limit_bytes as f64)),
            format!("{:.1} MiB", mib(self.held_bytes)),
            format!("{:.2}", self.ratio()),
            format!("{:.2}", self.highest_ratio()),
            seconds(self.lag_seconds),
            self.acknowledged.to_string(),
            answers.turned_away.to_string(),
            answers.server_errors.to_string(),
            answers.other_errors.to_string(),
            answers.none.to_string(),
            answers.cut.to_string(),
            answers.partial.to_string(),
            losses(self.losses),
            if self.restarted {
                losses(self.losses_after_restart)
            } else {
                "-".to_owned()
            },
            self.refusals.to_string(),
            format!("{:.1} s", self.waited_seconds),
            self.killed.to_string(),
            self.ineffective.clone().unwrap_or_else(|| "-".to_owned()),
            self.recovery_seconds
                .map_or_else(|| "never".to_owned(), |after| format!("{after:.1} s")),
            yes(self.works_again).to_owned(),
        ];
        write!(out, "{}", cells.join(" | "))
    }
}

/// From the acknowledgement of the load that passed the limit to the time `stopped`.
///
/// Every load holds the same, so the one that passed the limit follows from what was held before the first
/// (`empty_bytes`), what was held in the end, and when each was acknowledged.
pub(super) fn lag(
    acknowledged: &[Duration],
    stopped: Duration,
    empty_bytes: f64,
    held_bytes: f64,
    limit_bytes: f64,
) -> Option<Duration> {
    let share = (limit_bytes - empty_bytes) / (held_bytes - empty_bytes);
    let passing = (share * acknowledged.len() as f64).ceil();
    if !(1.0..=acknowledged.len() as f64).contains(&passing) {
        return None;
    }
    let at = acknowledged.get(passing as usize - 1)?;
    Some(stopped.saturating_sub(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(door: bool) -> Outcome {
        Outcome {
            door,
            limit_bytes: 100,
            held_bytes: 104.0,
            highest_bytes: 110.0,
            stopped: true,
            losses: Some(Losses::default()),
            recovery_seconds: Some(2.0),
            works_again: true,
            ..Outcome::default()
        }
    }

    #[test]
    fn the_lag_begins_with_the_load_that_passed_the_limit() {
        let times: Vec<Duration> = (1..=10).map(Duration::from_secs).collect();
        // 10 of base and 11 a load: the limit of 98 is passed with the eighth.
        let found = lag(&times, Duration::from_secs(12), 10.0, 120.0, 98.0);
        assert_eq!(found, Some(Duration::from_secs(4)));
        let under = lag(&times, Duration::from_secs(12), 10.0, 90.0, 98.0);
        assert_eq!(under, None);
        assert_eq!(lag(&[], Duration::ZERO, 0.0, 2.0, 1.0), None);
    }

    #[test]
    fn each_promise_of_a_door_can_be_broken() {
        assert_eq!(good(true).failures(), [""; 0]);
        type Spoil = fn(&mut Outcome);
        let spoils: [Spoil; 10] = [
            |one| one.stopped = false,
            |one| one.wrong_refusals = true,
            |one| one.answers.partial = 1,
            |one| one.losses = None,
            |one| one.restarted = true,
            |one| one.recovery_seconds = Some(15.1),
            |one| one.works_again = false,
            |one| one.killed = 1,
            |one| one.neighbour_failures = 1,
            |one| one.complaint = Some("it crashed".to_owned()),
        ];
        for spoil in spoils {
            let mut one = good(true);
            spoil(&mut one);
            assert_eq!(one.failures().len(), 1, "{one:?}");
        }
    }

    #[test]
    fn without_a_door_growth_must_be_reported() {
        let mut one = good(false);
        one.losses = None;
        assert_eq!(one.failures(), [""; 0]);
        one.highest_bytes = 128.0;
        assert_eq!(one.failures(), [""; 0], "for a moment");
        one.held_in_the_end_bytes = 128.0;
        assert_eq!(one.failures().len(), 1);
        one.ineffective = Some("jdk".to_owned());
        assert_eq!(one.failures(), [""; 0]);
    }
}
