//! A JVM that does next to nothing, from its start to its end.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use heapwarden_harness::process::Guard;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::rig::Rig;
use super::runs::Amount;
use crate::jvm;

/// How often the JVM is looked at: its end is known as well as that.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// A word that is in the JVM's output if the agent is in the JVM.
const AGENT_LOGS: &str = "heapwarden";

/// Runs it. The processor time is all that of the JVM, which no other child's end may meet.
///
/// # Errors
/// Where it fails or hangs, or the agent is not in it where it is to be.
pub(crate) fn measure(rig: &Rig, arguments: &[String], has_agent: bool) -> Result<Amount> {
    let log = rig.shop.file("jvm.log");
    let errors = File::create(&log).with_context(|| format!("{}", log.display()))?;
    let cpu_before = children_cpu_ns()?;
    let begun = Instant::now();
    let mut java = rig.jdk.java();
    java.args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    let mut child = Guard::start(&mut java).context("java cannot be started")?;
    let ended = jvm::end(&mut child, LOOK_EVERY);
    let wall = begun.elapsed();
    let status = ended?;
    ensure!(status.success(), "the JVM failed ({status})");
    let told = fs::read_to_string(&log).unwrap_or_default();
    ensure!(
        told.contains(AGENT_LOGS) == has_agent,
        "the JVM's errors are not those of one {} the agent: {told}",
        if has_agent { "with" } else { "without" }
    );
    Ok(Amount {
        operations: 1,
        wall_ns: u64::try_from(wall.as_nanos())?,
        cpu_ns: children_cpu_ns()?.saturating_sub(cpu_before),
        ..Amount::default()
    })
}

/// Processor time of all children that have ended.
fn children_cpu_ns() -> Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("no resource usage")?;
    let ns = usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds();
    Ok(u64::try_from(ns)?)
}
