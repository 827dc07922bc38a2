//! The measurements, run by run.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::plan::Curve;
use crate::machine::Machine;

/// One run of one JVM.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    pub(crate) curve: Curve,
    /// The value that the curve varies.
    pub(crate) x: f64,
    pub(crate) setting: String,
    /// The round, from 0; only runs of one round are compared.
    pub(crate) pair: u32,
    #[serde(flatten)]
    pub(crate) amount: Amount,
    /// Nanoseconds of the processor that the agent says it took meanwhile; none without the agent.
    pub(crate) agent_cpu_ns: Option<f64>,
    /// Pauses while it was timed.
    pub(crate) pauses: usize,
    pub(crate) pauses_ms: f64,
    pub(crate) longest_pause_ms: f64,
    /// The agent's figures of an account whose size the program knew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) readings: Vec<Reading>,
}

/// The work of a program, and the time that it took, by its own word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) operations: u64,
    pub(crate) checksum: i64,
    pub(crate) allocated_bytes: u64,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
}

/// The true size of an account, and the agent's estimate of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Reading {
    pub(crate) true_bytes: f64,
    pub(crate) live_bytes: f64,
    pub(crate) standard_error_bytes: f64,
}

/// A run that failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) point: String,
    pub(crate) setting: String,
    pub(crate) error: String,
}

/// All runs.
#[derive(Debug, Serialize)]
pub(crate) struct Runs {
    pub(crate) machine: Machine,
    pub(crate) jdk: String,
    pub(crate) flags: Vec<String>,
    pub(crate) pairs: u32,
    pub(crate) runs: Vec<Run>,
    pub(crate) failures: Vec<Failure>,
}

impl Amount {
    /// From the program's lines, one of which is JSON.
    ///
    /// # Errors
    /// Where there is none, or it says that nothing was done.
    pub(crate) fn read(lines: &[String]) -> Result<Amount> {
        let amount: Amount = lines
            .iter()
            .rev()
            .find_map(|line| serde_json::from_str(line).ok())
            .with_context(|| format!("the program told no figures but {lines:?}"))?;
        ensure!(
            amount.wall_ns > 0 && amount.cpu_ns > 0 && amount.allocated_bytes > 0,
            "the program did nothing: {amount:?}"
        );
        Ok(amount)
    }

    /// Returns the figures that must be the same in all runs of a point.
    fn work(&self) -> (u64, i64, u64) {
        (self.operations, self.checksum, self.allocated_bytes)
    }
}

impl Runs {
    /// Adds a run.
    ///
    /// # Errors
    /// Where it did other work than the runs of its point before.
    pub(crate) fn add(&mut self, run: Run) -> Result<()> {
        let same_point = |before: &&Run| before.curve == run.curve && before.x == run.x;
        if let Some(before) = self.runs.iter().find(same_point) {
            let (ours, theirs) = (run.amount.work(), before.amount.work());
            ensure!(
                ours == theirs,
                "its work is {ours:?} and was {theirs:?} before"
            );
        }
        self.runs.push(run);
        Ok(())
    }

    /// How often a point has failed with a setting.
    pub(crate) fn failures_of(&self, point: &str, setting: &str) -> usize {
        let same = |failure: &&Failure| failure.point == point && failure.setting == setting;
        self.failures.iter().filter(same).count()
    }

    /// The runs of a point with a setting.
    pub(crate) fn of<'a>(
        &'a self,
        curve: Curve,
        x: f64,
        setting: &'a str,
    ) -> impl Iterator<Item = &'a Run> {
        self.runs
            .iter()
            .filter(move |run| run.curve == curve && run.x == x && run.setting == setting)
    }

    /// A figure of a point with a setting, against the same of plain Java in the same round.
    pub(crate) fn against_plain(
        &self,
        curve: Curve,
        x: f64,
        setting: &str,
        of: impl Fn(&Run, &Run) -> f64,
    ) -> Vec<f64> {
        self.of(curve, x, setting)
            .filter_map(|run| {
                let plain = self
                    .of(curve, x, "plain")
                    .find(|plain| plain.pair == run.pair)?;
                Some(of(run, plain))
            })
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn run(curve: Curve, x: f64, setting: &str, pair: u32, cpu_ns: u64) -> Run {
        Run {
            curve,
            x,
            setting: setting.to_owned(),
            pair,
            amount: Amount {
                operations: 10,
                checksum: 7,
                allocated_bytes: 1 << 30,
                wall_ns: 1_000_000_000,
                cpu_ns,
            },
            agent_cpu_ns: (setting != "plain").then_some(1e6),
            pauses: 3,
            pauses_ms: 6.0,
            longest_pause_ms: 3.0,
            readings: Vec::new(),
        }
    }

    pub(crate) fn runs(runs: Vec<Run>) -> Runs {
        Runs {
            machine: Machine::of_a_test(),
            jdk: "25".to_owned(),
            flags: vec!["-Xmx1g".to_owned()],
            pairs: 2,
            runs,
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_programs_figures_are_found_among_its_lines() {
        let line =
            "{\"operations\":5,\"checksum\":-3,\"allocated_bytes\":99,\"wall_ns\":7,\"cpu_ns\":9}";
        let lines = ["{\"true_bytes\":1}".to_owned(), line.to_owned()];
        assert_eq!(Amount::read(&lines).unwrap().checksum, -3);
        assert!(Amount::read(&lines[..1]).is_err());
        assert!(Amount::read(&[line.replace("99", "0")]).is_err());
    }

    #[test]
    fn other_work_is_not_compared() {
        let mut all = runs(vec![run(Curve::Threads, 1.0, "plain", 0, 5)]);
        let mut other = run(Curve::Threads, 1.0, "agent", 0, 5);
        other.amount.checksum = 8;
        let error = all.add(other).unwrap_err().to_string();
        assert!(error.contains("its work is (10, 8,"), "{error}");
        all.add(run(Curve::Threads, 2.0, "agent", 0, 5)).unwrap();
    }

    #[test]
    fn only_runs_of_one_round_are_compared() {
        let all = runs(vec![
            run(Curve::Threads, 1.0, "plain", 0, 100),
            run(Curve::Threads, 1.0, "agent", 0, 110),
            run(Curve::Threads, 1.0, "agent", 1, 500),
            run(Curve::Threads, 2.0, "plain", 1, 100),
        ]);
        let ratios = all.against_plain(Curve::Threads, 1.0, "agent", |ours, plain| {
            ours.amount.cpu_ns as f64 / plain.amount.cpu_ns as f64
        });
        assert_eq!(ratios, [1.1]);
    }
}
