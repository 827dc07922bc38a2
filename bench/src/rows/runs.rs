//! The measurements, run by run: all that is saved, and from which every figure follows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::memory::Memory;
use super::settings::Setting;
use crate::machine::Machine;

/// One invocation's runs, or several's put together.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) machine: Machine,
    pub(crate) jdk: String,
    pub(crate) collector: String,
    /// The JVM's flags that all runs had.
    pub(crate) flags: Vec<String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) failures: Vec<Failure>,
}

/// One JVM.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) row: String,
    pub(crate) setting: Setting,
    /// Number of the round: the runs of one row and round are compared with each other.
    pub(crate) pair: u32,
    pub(crate) program: Program,
    /// Used by the heap after full collections, after the timed part.
    pub(crate) live_bytes: u64,
    /// At the end of the timed part.
    pub(crate) memory: Memory,
    /// After the full collections.
    pub(crate) memory_after_collection: Memory,
    /// Of the timed part, as all that follows.
    pub(crate) collections: usize,
    pub(crate) pauses_ms: f64,
    pub(crate) longest_pause_ms: f64,
    /// Of Heapwarden.
    pub(crate) agent: Option<AgentFigures>,
}

/// The workload's own figures of its timed part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) checksum: String,
    pub(crate) iterations: u32,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) iteration_ns: Vec<u64>,
    pub(crate) operations: u64,
}

/// The agent's figures of itself, over the timed part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentFigures {
    /// By its parts, such as `callbacks`.
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
    /// Samples that were charged.
    pub(crate) samples: f64,
    /// Samples that were not.
    pub(crate) dropped: f64,
    /// At its end.
    pub(crate) memory_bytes: f64,
    /// Of the allocated bytes since the start, those that an account of the policy has.
    pub(crate) accounted_share: f64,
}

/// A run that did not come to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) row: String,
    pub(crate) setting: Setting,
    pub(crate) pair: u32,
    pub(crate) error: String,
}

impl Runs {
    /// Adds a run.
    ///
    /// # Errors
    /// Where it did other work than the row's runs before it.
    pub(crate) fn add(&mut self, run: Run) -> Result<()> {
        let of_row = self.runs.iter().find(|before| before.row == run.row);
        if let Some(before) = of_row {
            ensure!(
                run.program.work() == before.program.work(),
                "its work is {:?} and was {:?} before",
                run.program.work(),
                before.program.work()
            );
        }
        self.runs.push(run);
        Ok(())
    }

    /// How often this row has failed with this setting.
    pub(crate) fn failures_of(&self, row: &str, setting: Setting) -> usize {
        let same = |failure: &&Failure| failure.row == row && failure.setting == setting;
        self.failures.iter().filter(same).count()
    }

    /// Puts the runs of an earlier invocation before these, as rounds of their own.
    ///
    /// # Errors
    /// Where they can't be compared: another JDK, collector, flags, processor, or work.
    pub(crate) fn add_earlier(&mut self, earlier: Runs) -> Result<()> {
        let same = [
            ("JDK", &self.jdk, &earlier.jdk),
            ("collector", &self.collector, &earlier.collector),
            ("processor", &self.machine.cpu, &earlier.machine.cpu),
        ];
        for (what, ours, theirs) in same {
            ensure!(ours == theirs, "another {what}: {theirs}, not {ours}");
        }
        ensure!(
            self.flags == earlier.flags,
            "other flags: {}",
            earlier.flags.join(" ")
        );
        let mut commits: Vec<&str> = earlier.machine.commit.split(", ").collect();
        for commit in self.machine.commit.split(", ") {
            if !commits.contains(&commit) {
                commits.push(commit);
            }
        }
        self.machine.commit = commits.join(", ");
        let load = &mut self.machine.load_average_before;
        *load = load.max(earlier.machine.load_average_before);
        let next = earlier.next_pair();
        for run in &mut self.runs {
            run.pair += next;
        }
        for failure in &mut self.failures {
            failure.pair += next;
        }
        self.runs.splice(0..0, earlier.runs);
        self.failures.splice(0..0, earlier.failures);
        self.check_work()
    }

    /// The number of a round after all of these.
    pub(crate) fn next_pair(&self) -> u32 {
        let runs = self.runs.iter().map(|run| run.pair);
        let all = runs.chain(self.failures.iter().map(|failure| failure.pair));
        all.max().map_or(0, |last| last + 1)
    }

    /// All runs of a row must have done the same work.
    fn check_work(&self) -> Result<()> {
        let rows: BTreeSet<&str> = self.runs.iter().map(|run| run.row.as_str()).collect();
        for row in rows {
            let of_row = self.runs.iter().filter(|run| run.row == row);
            let work: BTreeSet<_> = of_row.map(|run| run.program.work()).collect();
            ensure!(
                work.len() == 1,
                "the runs of {row} did different work: {work:?}"
            );
        }
        Ok(())
    }
}

impl AgentFigures {
    /// CPU time of all its parts.
    pub(crate) fn all_cpu_seconds(&self) -> f64 {
        self.cpu_seconds.values().sum()
    }
}

impl Program {
    /// Returns the figures that must be the same in each run of a row: iterations, and the checksum
    /// of what they did.
    fn work(&self) -> (u32, &str) {
        (self.iterations, &self.checksum)
    }

    /// From the workload's lines: one of them is JSON. A tool in the JVM may print some of its own.
    ///
    /// # Errors
    /// Where there is none, or it says that nothing was done.
    pub(crate) fn read(lines: &[String]) -> Result<Program> {
        let program: Program =
            serde_json::from_value(json_line(lines)?).context("the workload's figures")?;
        ensure!(program.iterations > 0, "the workload did nothing");
        ensure!(
            program.wall_ns > 0 && program.cpu_ns > 0,
            "the workload took no time"
        );
        Ok(program)
    }
}

/// Of the workload's lines after its collections.
pub(crate) fn live_bytes(lines: &[String]) -> Result<u64> {
    json_line(lines)?["live_bytes"]
        .as_u64()
        .context("the workload does not say what is alive")
}

fn json_line(lines: &[String]) -> Result<Value> {
    lines
        .iter()
        .find(|line| line.starts_with('{'))
        .and_then(|line| serde_json::from_str(line).ok())
        .with_context(|| format!("the workload printed no JSON but {lines:?}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run with figures that are all the same but for these.
    pub(crate) fn run(row: &str, setting: Setting, pair: u32, wall_ns: u64) -> Run {
        let memory = Memory {
            peak_resident_bytes: 200 << 20,
            resident_bytes: 200 << 20,
            anonymous_bytes: 180 << 20,
            native_bytes: 80 << 20,
        };
        Run {
            row: row.to_owned(),
            setting,
            pair,
            program: Program {
                checksum: "7".to_owned(),
                iterations: 6,
                wall_ns,
                cpu_ns: wall_ns,
                allocated_bytes: 1 << 30,
                iteration_ns: vec![wall_ns / 6; 6],
                operations: 60,
            },
            live_bytes: 10 << 20,
            memory,
            memory_after_collection: memory,
            collections: 4,
            pauses_ms: 12.0,
            longest_pause_ms: 5.0,
            agent: setting.is_ours().then_some(AgentFigures {
                cpu_seconds: reported(wall_ns as f64 / 1e9 / 100.0),
                samples: 100.0,
                dropped: 0.0,
                memory_bytes: 1e6,
                accounted_share: 1.0,
            }),
        }
    }

    /// Figures of an agent with one part.
    pub(crate) fn reported(cpu_seconds: f64) -> BTreeMap<String, f64> {
        BTreeMap::from([("callbacks".to_owned(), cpu_seconds)])
    }

    pub(crate) fn runs(runs: Vec<Run>) -> Runs {
        Runs {
            machine: Machine::of_a_test(),
            jdk: "25".to_owned(),
            collector: "G1".to_owned(),
            flags: vec!["-Xmx1g".to_owned()],
            runs,
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_workloads_line_is_found_among_others() {
        let line = "{\"row\":\"fop\",\"checksum\":\"ab\",\"iterations\":6,\"wall_ns\":7,\"cpu_ns\":9,\
                    \"allocated_bytes\":5,\"iteration_ns\":[1,2],\"operations\":3}";
        let lines = ["Profiling started".to_owned(), line.to_owned()];
        let program = Program::read(&lines).unwrap();
        assert_eq!((program.wall_ns, program.cpu_ns), (7, 9));
        assert_eq!(program.checksum, "ab");
        assert!(Program::read(&lines[..1]).is_err());
        let idle = line.replace("\"wall_ns\":7", "\"wall_ns\":0");
        assert!(Program::read(&[idle]).is_err());
        assert_eq!(live_bytes(&["{\"live_bytes\":12}".to_owned()]).unwrap(), 12);
        assert!(live_bytes(&["{\"live_bytes\":-1}".to_owned()]).is_err());
    }

    #[test]
    fn saved_runs_are_read_back_and_put_before() {
        let earlier = runs(vec![run("fop", Setting::Plain, 3, 100)]);
        let text = serde_json::to_string(&earlier).unwrap();
        let mut now = runs(vec![run("fop", Setting::Plain, 0, 200)]);
        now.add_earlier(serde_json::from_str(&text).unwrap())
            .unwrap();
        let pairs: Vec<u32> = now.runs.iter().map(|run| run.pair).collect();
        assert_eq!(pairs, [3, 4]);
    }

    #[test]
    fn other_work_or_another_jdk_is_not_put_together() {
        let mut now = runs(vec![run("fop", Setting::Plain, 0, 200)]);
        let mut other = runs(vec![run("fop", Setting::Plain, 0, 200)]);
        other.runs[0].program.iterations = 2;
        let error = now.add_earlier(other).unwrap_err().to_string();
        assert!(error.contains("different work"), "{error}");
        let mut other = runs(Vec::new());
        other.jdk = "17".to_owned();
        let error = now.add_earlier(other).unwrap_err().to_string();
        assert!(error.contains("another JDK: 17"), "{error}");
    }
}
