//! The facts about the machine that a reader of saved results must know, and nothing that names it.

use std::fmt;
use std::process::Command;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::build;

/// The machine and the moment of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Processor model, as the kernel has it.
    pub(crate) cpu: String,
    /// Processors that this process may use.
    pub(crate) cores: usize,
    /// Mean number of runnable tasks in the minute before the run: noise, if above 1.
    pub(crate) load_average_before: f64,
    /// Commit of the sources, `+` where they were changed since.
    pub(crate) commit: String,
    /// Day in UTC.
    pub(crate) date: String,
}

impl Machine {
    /// This machine, now.
    pub(crate) fn here() -> Machine {
        Machine {
            cpu: cpu_model(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            load_average_before: load_average(),
            commit: commit(),
            date: said_by("date", &["-u", "+%Y-%m-%d"]),
        }
    }

    /// The end of the sentence that says where and of what a run was.
    pub(crate) fn told(&self) -> String {
        format!(
            "{} cores of {}, load average before {:.1}, commit {}",
            self.cores, self.cpu, self.load_average_before, self.commit
        )
    }

    /// One that no test was run on.
    #[cfg(test)]
    pub(crate) fn of_a_test() -> Machine {
        Machine {
            cpu: "a processor".to_owned(),
            cores: 2,
            load_average_before: 0.1,
            commit: "abc".to_owned(),
            date: "2026-01-01".to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} cores, {}", self.cores, self.cpu)
    }
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, model)| model.trim().to_owned(),
        )
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0)
}

fn commit() -> String {
    let changed = said_by(
        "git",
        &[
            "status",
            "--porcelain",
            "--",
            "Cargo.lock",
            "policy-agent",
            "policy-config",
            "bench/c",
            "bench/java",
            "bench/src",
        ],
    );
    let mark = if changed.is_empty() { "" } else { "+" };
    format!(
        "{}{mark}",
        said_by("git", &["rev-parse", "--short", "HEAD"])
    )
}

/// Runs a program in the repository's root and returns its output; empty where there is no such
/// program, or it fails.
fn said_by(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .current_dir(build::root())
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
