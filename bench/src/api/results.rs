//! The scores by round, and the figures that follow from them.

use anyhow::{Context, Result};
use serde::Serialize;

use super::jmh::Score;
use super::setting::Setting;
use crate::jdk::Jdk;
use crate::machine::Machine;
use crate::stats::{median, range};
use crate::verdicts::Verdict;

/// The benchmark with which all others are compared: a thread-local that is set and removed.
const BASELINE: &str = "threadLocalSetAndRemove";
/// The least that a thread-local can cost: set, and set to null, the entry left in the thread.
const BARE_BASELINE: &str = "threadLocalSetTwice";
/// The operation that the aim in time is about.
const ENTER_AND_CLOSE: &str = "sameName";
/// Those that the aim in bytes is about.
const NO_GARBAGE: [&str; 3] = [ENTER_AND_CLOSE, "sameNameAroundWork", "runAroundWork"];
/// The benchmarks of a request at a door: while no account is shut, and while another account is.
const AT_DOORS: [&str; 2] = ["requestAtOpenDoor", "requestWhileAnotherDoorIsShut"];
/// The most that it is to take.
const MAX_AT_DOOR_NS: f64 = 100.0;
/// Largest ratio of it to the baseline that the project aims at.
const MAX_RATIO: f64 = 2.0;
/// Bytes that round to none: JMH spreads its own few objects over the operations.
const NO_BYTES: f64 = 0.5;

/// A whole run of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) iteration_millis: u32,
    pub(crate) scopes: Vec<Row>,
    pub(crate) allocations: Vec<Row>,
}

/// One benchmark under one setting, by rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) jdk: String,
    pub(crate) setting: Setting,
    pub(crate) benchmark: String,
    pub(crate) ns: Vec<f64>,
    /// To the baseline of the same round; empty of allocations.
    pub(crate) ratios: Vec<f64>,
    /// To the bare baseline of the same round; empty of allocations.
    pub(crate) bare_ratios: Vec<f64>,
    pub(crate) allocated_bytes: Vec<f64>,
    /// Half of the agent's callbacks took at most this, by its own clock; of allocations with it.
    pub(crate) callback_p50_ns: Vec<f64>,
    /// The same, 99 % of them.
    pub(crate) callback_p99_ns: Vec<f64>,
}

impl Row {
    /// The middle one of the rounds' ratios.
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.ratios)
    }

    /// The same, to the bare baseline.
    pub(crate) fn bare_ratio(&self) -> f64 {
        median(&self.bare_ratios)
    }

    /// Bytes that one operation allocates, in the worst round.
    pub(crate) fn most_allocated_bytes(&self) -> f64 {
        range(&self.allocated_bytes).1
    }
}

impl Results {
    pub(crate) fn new(machine: Machine, rounds: u32, iteration_millis: u32) -> Results {
        Results {
            machine,
            rounds,
            iteration_millis,
            scopes: Vec::new(),
            allocations: Vec::new(),
        }
    }

    /// Adds one round of the scopes' benchmarks.
    ///
    /// # Errors
    /// Where the baseline is not among them.
    pub(crate) fn add_scopes(
        &mut self,
        jdk: &Jdk,
        setting: Setting,
        scores: &[Score],
    ) -> Result<()> {
        let ns_of = |name: &str| {
            let found = scores.iter().find(|score| score.name == name);
            let found = found.with_context(|| format!("{name} was not measured"))?;
            Ok::<f64, anyhow::Error>(found.ns)
        };
        let (baseline_ns, bare_ns) = (ns_of(BASELINE)?, ns_of(BARE_BASELINE)?);
        let (baselines, others): (Vec<&Score>, Vec<&Score>) = scores
            .iter()
            .partition(|score| [BASELINE, BARE_BASELINE].contains(&score.name.as_str()));
        for score in baselines.into_iter().chain(others) {
            let row = row(&mut self.scopes, jdk, setting, &score.name);
            row.ns.push(score.ns);
            row.ratios.push(score.ns / baseline_ns);
            row.bare_ratios.push(score.ns / bare_ns);
            row.allocated_bytes.push(score.allocated_bytes);
        }
        Ok(())
    }

    /// Adds one round of the allocations'.
    ///
    /// # Errors
    /// Where one is none.
    pub(crate) fn add_allocations(
        &mut self,
        jdk: &Jdk,
        setting: Setting,
        scores: &[Score],
    ) -> Result<()> {
        for score in scores {
            anyhow::ensure!(!score.scope.is_empty(), "{} has no scope", score.name);
            let row = row(&mut self.allocations, jdk, setting, &score.scope);
            if let Some((p50, p99)) = score.callback_ns {
                row.callback_p50_ns.push(p50);
                row.callback_p99_ns.push(p99);
            }
            row.ns.push(score.ns);
            row.allocated_bytes.push(score.allocated_bytes);
        }
        Ok(())
    }

    /// The aims, for each JDK, with the agent.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let with_agent = || {
            let rows = self.scopes.iter();
            rows.filter(|row| row.setting == Setting::Sampled)
        };
        for row in with_agent().filter(|row| row.benchmark == ENTER_AND_CLOSE) {
            let (low, high) = range(&row.ratios);
            verdicts.push(Verdict::new(
                format!(
                    "{}: to enter and close takes at most {MAX_RATIO} times a thread-local's set \
                     and remove",
                    row.jdk
                ),
                row.ratio() <= MAX_RATIO,
                format!("{:.2} times ({low:.2}-{high:.2})", row.ratio()),
            ));
            verdicts.push(Verdict::new(
                format!(
                    "{}: the same against a value set and then null, the entry left",
                    row.jdk
                ),
                row.bare_ratio() <= MAX_RATIO,
                format!("{:.2} times", row.bare_ratio()),
            ));
        }
        for row in with_agent().filter(|row| AT_DOORS.contains(&row.benchmark.as_str())) {
            verdicts.push(Verdict::new(
                format!(
                    "{}: {} takes less than {MAX_AT_DOOR_NS} ns and allocates nothing",
                    row.jdk, row.benchmark
                ),
                median(&row.ns) < MAX_AT_DOOR_NS && row.most_allocated_bytes() < NO_BYTES,
                format!(
                    "{:.1} ns, {:.1} bytes",
                    median(&row.ns),
                    row.most_allocated_bytes()
                ),
            ));
        }
        for row in with_agent().filter(|row| NO_GARBAGE.contains(&row.benchmark.as_str())) {
            verdicts.push(Verdict::new(
                format!("{}: {} allocates nothing", row.jdk, row.benchmark),
                row.most_allocated_bytes() < NO_BYTES,
                format!("{:.1} bytes", row.most_allocated_bytes()),
            ));
        }
        verdicts
    }
}

fn row<'a>(rows: &'a mut Vec<Row>, jdk: &Jdk, setting: Setting, benchmark: &str) -> &'a mut Row {
    let same =
        |row: &Row| row.jdk == jdk.name() && row.setting == setting && row.benchmark == benchmark;
    let index = rows.iter().position(same).unwrap_or_else(|| {
        rows.push(Row {
            jdk: jdk.name(),
            setting,
            benchmark: benchmark.to_owned(),
            ns: Vec::new(),
            ratios: Vec::new(),
            bare_ratios: Vec::new(),
            allocated_bytes: Vec::new(),
            callback_p50_ns: Vec::new(),
            callback_p99_ns: Vec::new(),
        });
        rows.len() - 1
    });
    &mut rows[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_at_a_door_is_judged_by_its_time_and_by_what_it_allocates() {
        let at_door = |ns: f64, bytes: f64| {
            let mut results = measured(&[ns; 3], &[1.0; 3], &[bytes; 3]);
            results.scopes[0].benchmark = AT_DOORS[1].to_owned();
            let verdicts = results.verdicts();
            assert_eq!(verdicts.len(), 1);
            verdicts[0].met()
        };
        assert!(at_door(99.0, 0.0));
        assert!(!at_door(101.0, 0.0));
        assert!(!at_door(9.0, 16.0));
    }

    fn measured(ns: &[f64], ratios: &[f64], bytes: &[f64]) -> Results {
        let mut results = Results::new(Machine::here(), 2, 500);
        results.scopes.push(Row {
            jdk: "25".to_owned(),
            setting: Setting::Sampled,
            benchmark: ENTER_AND_CLOSE.to_owned(),
            ns: ns.to_vec(),
            ratios: ratios.to_vec(),
            bare_ratios: ratios.to_vec(),
            allocated_bytes: bytes.to_vec(),
            callback_p50_ns: Vec::new(),
            callback_p99_ns: Vec::new(),
        });
        results
    }

    #[test]
    fn the_aims_are_judged_by_the_middle_ratio_and_the_worst_allocation() {
        let good = measured(&[9.0; 3], &[1.0, 1.2, 5.0], &[0.001, 0.0, 0.0]);
        assert!(good.verdicts().iter().all(|verdict| verdict.met()));
        let bad = measured(&[9.0; 3], &[2.2, 2.4, 1.0], &[0.0, 24.0, 0.0]);
        assert!(bad.verdicts().iter().all(|verdict| !verdict.met()));
    }
}
