//! The runs of applications of others, and how the promise was kept.

use serde::{Deserialize, Serialize};

use heapwarden_tests::application::outcome::Outcome;

use crate::machine::Machine;
use crate::stats::{median, range};
use crate::verdicts::{self, Verdict};

/// The promise: held beyond the limit at the first 503, as shares of the limit.
const MEDIAN_OVERSHOOT: f64 = 0.05;
const MAX_OVERSHOOT: f64 = 0.15;
/// Runs from which a median is more than one run.
const ENOUGH: usize = 3;
/// Standard errors that an account is granted.
const MARGIN: f64 = 3.0;

/// A whole run of the benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    /// Processes that kept processors busy, besides whatever else the machine did.
    pub(super) busy_processes: u32,
    pub(super) rounds: u32,
    pub(super) share: u32,
    pub(super) runs: Vec<Run>,
    /// Runs that ended without a figure.
    pub(super) failed: Vec<String>,
}

/// One application in one JVM.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) application: String,
    pub(super) jdk: u32,
    pub(super) collector: String,
    pub(super) outcome: Outcome,
}

impl Run {
    /// Held beyond the limit at the first request that was turned away, as a share of the limit.
    pub(super) fn beyond(&self) -> f64 {
        self.outcome.ratio() - 1.0
    }

    /// The part of it that every account is granted.
    pub(super) fn margin(&self) -> f64 {
        MARGIN * self.outcome.standard_error_bytes / self.outcome.limit_bytes as f64
    }

    pub(super) fn jvm(&self) -> String {
        format!("JDK {} {}", self.jdk, self.collector)
    }
}

/// The distinct values of a key, in order.
fn distinct<K: Ord>(runs: &[&Run], key: impl Fn(&Run) -> K) -> Vec<K> {
    let mut keys: Vec<K> = runs.iter().map(|run| key(run)).collect();
    keys.sort();
    keys.dedup();
    keys
}

impl Results {
    /// The runs that reached the limit: the others say nothing of a door.
    fn reached(&self) -> Vec<&Run> {
        let runs = self.runs.iter();
        runs.filter(|run| run.outcome.reached_limit()).collect()
    }

    /// The runs that reached the limit, of each value of a key.
    pub(super) fn grouped<K: Ord>(&self, key: impl Fn(&Run) -> K) -> Vec<(K, Vec<&Run>)> {
        let reached = self.reached();
        distinct(&reached, &key)
            .into_iter()
            .map(|value| {
                let runs = reached.iter().copied();
                let same = runs.filter(|run| key(run) == value).collect();
                (value, same)
            })
            .collect()
    }

    /// Each aim against what was measured.
    pub(super) fn verdicts(&self) -> Vec<Verdict> {
        let percent = |share: f64| format!("{:+.1} %", share * 100.0);
        let medians =
            self.grouped(|run| run.collector.clone())
                .into_iter()
                .map(|(collector, runs)| {
                    let beyond: Vec<f64> = runs.iter().map(|run| run.beyond()).collect();
                    (median(&beyond), runs.len(), collector)
                });
        let (share, count, collector) = medians
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default();
        let outcome = match share <= MEDIAN_OVERSHOOT {
            _ if count < ENOUGH => verdicts::Outcome::CannotTell,
            true => verdicts::Outcome::Met,
            false => verdicts::Outcome::Missed,
        };
        let mut verdicts = vec![Verdict {
            aim: "held beyond the limit at the first 503: median within 5 % with each collector"
                .to_owned(),
            outcome,
            measured: format!(
                "the worst is {} of {count} runs with {collector}",
                percent(share)
            ),
        }];
        let reached = self.reached();
        let beyond: Vec<f64> = reached.iter().map(|run| run.beyond()).collect();
        verdicts.push(Verdict::new(
            "never over 15 %".to_owned(),
            range(&beyond).1 <= MAX_OVERSHOOT,
            format!("the worst is {}", percent(range(&beyond).1)),
        ));
        let refused = reached.iter().filter(|run| run.outcome.refusals > 0);
        let refused = refused.count();
        verdicts.push(Verdict::new(
            "no error is thrown before the door has shut".to_owned(),
            refused == 0,
            format!("{refused} of {} runs", reached.len()),
        ));
        let stopped = reached.iter().filter(|run| run.outcome.stopped).count();
        verdicts.push(Verdict::new(
            "every application that reaches its limit is turned away".to_owned(),
            stopped == reached.len() && self.failed.is_empty(),
            format!(
                "{stopped} of {} runs; {} did not reach it in time, and {} have no figure",
                reached.len(),
                self.runs.len() - reached.len(),
                self.failed.len()
            ),
        ));
        verdicts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn results(shares: &[f64]) -> Results {
        let run = |share: &f64| Run {
            application: "a store".to_owned(),
            jdk: 25,
            collector: "G1".to_owned(),
            outcome: Outcome {
                limit_bytes: 1_000,
                held_bytes: 1_000.0 * (1.0 + share),
                standard_error_bytes: 5.0,
                stopped: true,
                ..Outcome::default()
            },
        };
        Results {
            machine: Machine {
                cpu: "a processor".to_owned(),
                cores: 1,
                load_average_before: 0.0,
                commit: String::new(),
                date: "2026-01-01".to_owned(),
            },
            busy_processes: 0,
            rounds: 1,
            share: 1,
            runs: shares.iter().map(run).collect(),
            failed: Vec::new(),
        }
    }

    fn met(results: &Results) -> Vec<bool> {
        results.verdicts().iter().map(Verdict::met).collect()
    }

    #[test]
    fn each_aim_can_be_missed() {
        assert_eq!(met(&results(&[0.04, 0.045, 0.06])), [true; 4]);
        assert_eq!(
            met(&results(&[0.06, 0.06, 0.01])),
            [false, true, true, true]
        );
        assert_eq!(
            met(&results(&[0.01, 0.01, 0.16])),
            [true, false, true, true]
        );
        let mut thrown = results(&[0.01, 0.01, 0.01]);
        thrown.runs[1].outcome.refusals = 1;
        assert_eq!(met(&thrown), [true, true, false, true]);
        let mut never = results(&[0.01, 0.01, 0.01]);
        never.runs[1].outcome.stopped = false;
        assert_eq!(met(&never), [true, true, true, false]);
        never.runs[1].outcome.held_bytes = 990.0;
        assert!(met(&never)[3], "it did not reach its limit");
        let mut failed = results(&[0.01, 0.01, 0.01]);
        failed.failed.push("a store".to_owned());
        assert_eq!(met(&failed), [true, true, true, false]);
    }

    #[test]
    fn two_runs_have_no_median() {
        let verdicts = results(&[0.01, 0.01]).verdicts();
        assert_eq!(verdicts[0].outcome, verdicts::Outcome::CannotTell);
    }

    #[test]
    fn shares_are_of_the_limit() {
        let results = results(&[0.03]);
        assert!((results.runs[0].beyond() - 0.03).abs() < 1e-9);
        assert!((results.runs[0].margin() - 0.015).abs() < 1e-9);
    }
}
