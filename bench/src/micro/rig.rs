//! The built parts, and one run of them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use super::cases::{DEPTHS, INTERVAL_BYTES, Policy};
use crate::build;
use crate::jdk::Jdk;
use crate::jvm::Jvm;
use crate::workshop::Workshop;

/// Lowest frames of a cold stack that are the same in every sample: `main` and the loop.
const FRAMES_KNOWN: usize = 2;

/// Whose callback is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The agent as built.
    Ours,
    /// The bare JVM TI calls.
    Bare,
}

/// The policy and the program of one JVM.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The agent's policy, and with it how many frames the bare agent fetches.
    pub(crate) policy: Policy,
    /// Package accounts in the policy.
    pub(crate) accounts: usize,
    /// Whether each stack's methods are new.
    pub(crate) cold: bool,
    /// Class of `bench/java/micro`, and its arguments.
    pub(crate) program: Vec<String>,
}

/// The stopwatch's figures of one phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timed {
    pub(crate) depth: usize,
    pub(crate) samples: u64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
}

/// Everything that is built, for one JDK.
pub(crate) struct Rig {
    jdk: Jdk,
    shop: Workshop,
    bare: PathBuf,
    stopwatch: PathBuf,
}

impl Rig {
    /// Builds all.
    pub(crate) fn build(jdk: &Jdk) -> Result<Rig> {
        let chains = DEPTHS.map(|depth| build::chain_source("micro", depth));
        let shop = Workshop::build("micro", jdk, &chains, None)?;
        Ok(Rig {
            bare: build::c_agent(jdk, "bare_agent", &shop.folder)?,
            stopwatch: build::c_agent(jdk, "stopwatch", &shop.folder)?,
            jdk: jdk.clone(),
            shop,
        })
    }

    /// Where the agent writes its address.
    pub(crate) fn run_file(&self) -> PathBuf {
        self.shop.run_file()
    }

    /// The option string of an agent for a job at an interval, 0 for every allocation.
    fn options(&self, who: Who, job: &Job, interval_bytes: u64) -> Result<String> {
        if who == Who::Bare {
            return Ok(format!(
                "interval={interval_bytes},frames={},new={},known={FRAMES_KNOWN}",
                job.policy.frames(),
                u8::from(job.cold)
            ));
        }
        let interval = match interval_bytes {
            0 => "exact".to_owned(),
            bytes => format!("{}KiB", bytes >> 10),
        };
        (self.shop).write_policy(&job.policy.file(&interval, job.accounts))?;
        Ok(self.shop.options())
    }

    /// Starts a job with `flags` for the JVM; timed jobs have the stopwatch in between.
    pub(crate) fn start(
        &self,
        who: Who,
        job: &Job,
        interval_bytes: u64,
        timed: bool,
        flags: &[&str],
    ) -> Result<Jvm> {
        let library = match who {
            Who::Ours => &self.shop.agent,
            Who::Bare => &self.bare,
        };
        let load = |library: &Path, rest: &str| format!("{}={rest}", library.display());
        let mut agent = load(library, &self.options(who, job, interval_bytes)?);
        if timed {
            agent = load(&self.stopwatch, &agent);
        }
        let mut arguments = vec![
            format!("-agentpath:{agent}"),
            "--enable-native-access=ALL-UNNAMED".to_owned(),
        ];
        arguments.extend(self.shop.class_path());
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        arguments.extend(job.program.iter().cloned());
        self.shop.start(&self.jdk, &arguments)
    }

    /// Runs a job to its end and returns its phases, after a look at whether the agent charged
    /// whom it should: what charges nobody is fast for no good reason.
    pub(crate) fn time(&self, who: Who, job: &Job) -> Result<Vec<Timed>> {
        let flags = ["-XX:+UseG1GC", "-Xms512m", "-Xmx512m"];
        let mut jvm = self.start(who, job, INTERVAL_BYTES, true, &flags)?;
        let timed = phases(&jvm.until("done")?)?;
        if who == Who::Ours {
            let accounts = jvm.listener(&self.run_file())?.accounts()?;
            let samples: u64 = timed.iter().map(|t| t.samples).sum();
            check(&accounts, job, samples)?;
        }
        jvm.finish()?;
        Ok(timed)
    }
}

fn phases(lines: &[String]) -> Result<Vec<Timed>> {
    let timed: Vec<Timed> = lines.iter().filter_map(|line| phase(line)).collect();
    if timed.is_empty() {
        bail!("the program timed nothing");
    }
    Ok(timed)
}

/// A line `timed PHASE DEPTH SAMPLES P50 P99`.
fn phase(line: &str) -> Option<Timed> {
    let words: Vec<&str> = line.strip_prefix("timed ")?.split(' ').collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some(Timed {
        depth: number(1)? as usize,
        samples: number(2)?,
        p50_ns: number(3)? as f64,
        p99_ns: number(4)? as f64,
    })
}

/// The payer must have been charged for nearly all that was timed, and hardly a sample dropped.
fn check(accounts: &serde_json::Value, job: &Job, samples: u64) -> Result<()> {
    let paid: f64 = accounts["accounts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|account| {
            let name = account["name"].as_str().unwrap_or_default();
            name.starts_with(job.policy.payer())
        })
        .filter_map(|account| account["allocated_bytes_total"].as_f64())
        .sum();
    let due = samples as f64 * INTERVAL_BYTES as f64;
    ensure!(
        paid >= 0.9 * due,
        "accounts {}* were charged {paid} bytes and {due} were due ({}): this is no measurement",
        job.policy.payer(),
        job.policy.name()
    );
    let dropped = accounts["sampling"]["dropped"].as_f64().unwrap_or(f64::MAX);
    ensure!(
        dropped <= 0.01 * samples as f64,
        "{dropped} of {samples} samples were dropped: this is no measurement"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job() -> Job {
        Job {
            policy: Policy::TopFrame,
            accounts: 1,
            cold: false,
            program: Vec::new(),
        }
    }

    #[test]
    fn phases_are_read_from_what_the_program_prints() {
        let lines = ["hello", "timed warm 20 1000 350 2940"].map(str::to_owned);
        let expected = Timed {
            depth: 20,
            samples: 1000,
            p50_ns: 350.0,
            p99_ns: 2940.0,
        };
        assert_eq!(phases(&lines).unwrap(), [expected]);
        assert!(phases(&lines[..1]).is_err());
    }

    #[test]
    fn a_run_that_charges_somebody_else_is_no_measurement() {
        let accounts = |name: &str, dropped: u64| {
            json!({"sampling": {"dropped": dropped},
                "accounts": [{"name": name, "allocated_bytes_total": 100 * INTERVAL_BYTES}]})
        };
        assert!(check(&accounts("top", 0), &job(), 100).is_ok());
        assert!(check(&accounts("_unaccounted", 0), &job(), 100).is_err());
        assert!(check(&accounts("top", 50), &job(), 100).is_err());
    }
}
