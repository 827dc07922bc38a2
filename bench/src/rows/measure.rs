//! One run of a workload, and what is read of it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::memory::Memory;
use super::published::Row;
use super::rig::Rig;
use super::runs::{AgentFigures, Program, Run, live_bytes};
use super::settings::Setting;
use crate::gc_log::{self, Pauses};
use crate::jvm::Jvm;
use crate::scrape::{Listener, Metrics};

/// Longest silence of a workload: its warm-up, or its timed part, where every allocation is
/// sampled and the machine has other work to do.
const PATIENCE: Duration = Duration::from_secs(900);

const CPU_SECONDS: &str = "heapwarden_agent_cpu_seconds_total";
const MEMORY_BYTES: &str = "heapwarden_agent_memory_bytes";
const SAMPLES: &str = "heapwarden_samples_total";
const DROPPED: &str = "heapwarden_samples_dropped_total";
const REFUSALS: &str = "heapwarden_account_refusals_total";
const ALLOCATED: &str = "heapwarden_account_allocated_bytes_total";
const UNACCOUNTED: &str = "heapwarden_account_allocated_bytes_total{account=\"_unaccounted\"}";

/// What the agent says at a moment.
struct Said {
    cpu_seconds: BTreeMap<String, f64>,
    samples: f64,
    dropped: f64,
}

/// Runs a row in a JVM of its own, as the run of a round.
///
/// # Errors
/// Where the JVM or the workload fails or hangs, or the agent did not do its work: what does
/// nothing costs nothing.
pub(crate) fn measure(rig: &Rig, row: &Row, setting: Setting, pair: u32) -> Result<Run> {
    for stale in [rig.run_file(), rig.gc_log()] {
        let _ = fs::remove_file(stale);
    }
    let arguments = rig.arguments(row, setting)?;
    let mut jvm = Jvm::start(&rig.jdk, &arguments, &rig.file("jvm.log"))?;
    jvm.until_within("begin", PATIENCE)?;
    let listener = match setting.is_ours() {
        true => Some(jvm.listener(&rig.run_file())?),
        false => None,
    };
    let before = listener.as_ref().map(Said::now).transpose()?;
    let log_before = log(rig)?.len();
    jvm.go_on()?;
    let lines = jvm.until_within("end", PATIENCE)?;
    let log = log(rig)?;
    let heap = gc_log::heap(&log);
    // Before the agent is asked: its answer takes memory.
    let memory = Memory::of(&jvm, heap)?;
    let agent = match (&listener, &before) {
        (Some(listener), Some(before)) => Some(figures(listener, before, setting)?),
        _ => None,
    };
    let program = Program::read(&lines)?;
    jvm.go_on()?;
    let live_bytes = live_bytes(&jvm.until_within("collected", PATIENCE)?)?;
    let memory_after_collection = Memory::of(&jvm, heap)?;
    jvm.finish()?;
    let timed = log
        .get(log_before..)
        .context("the log of collections has shrunk")?;
    let pauses = Pauses::of(timed);
    Ok(Run {
        row: row.name.to_owned(),
        setting,
        pair,
        program,
        live_bytes,
        memory,
        memory_after_collection,
        collections: pauses.collections,
        // Not `sum`: of nothing, that is -0.
        pauses_ms: pauses.ms.iter().fold(0.0, |sum, ms| sum + ms),
        longest_pause_ms: pauses.ms.iter().copied().fold(0.0, f64::max),
        agent,
    })
}

fn log(rig: &Rig) -> Result<String> {
    fs::read_to_string(rig.gc_log()).context("the JVM has logged no collections")
}

impl Said {
    fn now(listener: &Listener) -> Result<Said> {
        Said::of(&listener.metrics()?)
    }

    fn of(metrics: &Metrics) -> Result<Said> {
        Ok(Said {
            cpu_seconds: metrics.by_label(CPU_SECONDS)?,
            samples: metrics.sum(SAMPLES)?,
            dropped: metrics.sum(DROPPED)?,
        })
    }
}

fn figures(listener: &Listener, before: &Said, setting: Setting) -> Result<AgentFigures> {
    let metrics = listener.metrics()?;
    let after = Said::of(&metrics)?;
    let allocated = metrics.sum(ALLOCATED)?;
    let mut cpu_seconds = after.cpu_seconds;
    for (part, seconds) in &mut cpu_seconds {
        *seconds -= before.cpu_seconds.get(part).copied().unwrap_or(0.0);
    }
    let figures = AgentFigures {
        cpu_seconds,
        samples: after.samples - before.samples,
        dropped: after.dropped - before.dropped,
        memory_bytes: metrics.sum(MEMORY_BYTES)?,
        accounted_share: 1.0 - metrics.value(UNACCOUNTED)? / allocated.max(1.0),
    };
    ensure!(figures.samples > 0.0, "the agent took no sample");
    ensure!(
        !setting.has_accounts() || figures.accounted_share > 0.0,
        "the agent charged no account of its policy"
    );
    let refusals = metrics.sum(REFUSALS)?;
    ensure!(refusals == 0.0, "the agent refused {refusals} allocations");
    Ok(figures)
}
