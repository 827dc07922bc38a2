//! One run of a point in a JVM of its own, and what is read of it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::hello;
use super::plan::{Point, Program};
use super::rig::Rig;
use super::runs::{Amount, Reading, Run};
use super::settings::Setting;
use crate::gc_log::Pauses;
use crate::jvm::Jvm;
use crate::scrape::Listener;

/// Longest silence of a program, where every allocation is sampled and the machine is busy.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long something that the agent is to say is waited for, and how often it is asked.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks at which an account must be the same.
const SETTLED_LOOKS: u32 = 15;

const ALLOCATED: &str = "heapwarden_account_allocated_bytes_total";
const UNACCOUNTED: &str = "heapwarden_account_allocated_bytes_total{account=\"_unaccounted\"}";
const INTERVAL: &str = "heapwarden_sampling_interval_bytes";
const LIVE_OBJECTS: &str = "heapwarden_account_live_objects";
const DROPPED: &str = "heapwarden_samples_dropped_total";
const CPU_SECONDS: &str = "heapwarden_agent_cpu_seconds_total";
const SAMPLES: &str = "heapwarden_samples_total";

/// The interval after [`Setting::then`].
const DEFAULT_INTERVAL_BYTES: f64 = 65_536.0;
/// Parts of what is due that must be charged, and alive; chance takes less.
const LEAST_CHARGED: f64 = 0.8;
const LEAST_ALIVE: f64 = 0.9;
/// Part of the samples that may be dropped.
const MAX_DROPPED: f64 = 0.01;

/// The figures of one run: the program's, the agent's, and those from the JVM's log.
#[derive(Default)]
struct Told {
    amount: Amount,
    agent_cpu_ns: Option<f64>,
    pauses: Pauses,
    readings: Vec<Reading>,
}

/// Finds out how many operations of a point take the time that is to be measured, in plain Java.
///
/// # Errors
/// Where the program fails or hangs.
pub(crate) fn calibrate(rig: &Rig, point: &Point) -> Result<u64> {
    let run = measure(rig, point, &point.settings[0], 0, 0)?;
    Ok(run.amount.operations)
}

/// One run of so many operations, as the run of a round.
///
/// # Errors
/// Where the JVM or the program fails or hangs, or the agent did not do its work: what does nothing
/// costs nothing.
pub(crate) fn measure(
    rig: &Rig,
    point: &Point,
    setting: &Setting,
    operations: u64,
    pair: u32,
) -> Result<Run> {
    for stale in [rig.shop.run_file(), rig.shop.gc_log()] {
        let _ = fs::remove_file(stale);
    }
    if let Some(policy) = &setting.policy {
        rig.shop.write_policy(policy)?;
    }
    let arguments = rig.arguments(point, setting, operations);
    let told = if point.program == Program::Hello {
        Told {
            amount: hello::measure(rig, &arguments, setting.policy.is_some())?,
            ..Told::default()
        }
    } else {
        conversation(rig, point, setting, &arguments)?
    };
    let pauses = told.pauses;
    Ok(Run {
        curve: point.curve,
        x: point.x,
        setting: setting.name.clone(),
        pair,
        amount: told.amount,
        agent_cpu_ns: told.agent_cpu_ns,
        pauses: pauses.ms.len(),
        pauses_ms: pauses.ms.iter().fold(0.0, |sum, ms| sum + ms),
        longest_pause_ms: pauses.ms.iter().copied().fold(0.0, f64::max),
        readings: told.readings,
    })
}

/// A program that says where it is and waits to be looked at.
fn conversation(rig: &Rig, point: &Point, setting: &Setting, arguments: &[String]) -> Result<Told> {
    let mut jvm = rig.shop.start(&rig.jdk, arguments)?;
    jvm.until_within("ready", PATIENCE)?;
    let listener = match setting.policy {
        Some(_) => Some(jvm.listener(&rig.shop.run_file())?),
        None => None,
    };
    if let (Some(listener), Some(policy)) = (&listener, &setting.then) {
        rig.shop.write_policy(policy)?;
        until(listener, "the new interval", |listener| {
            Ok(listener.metric(INTERVAL)? == DEFAULT_INTERVAL_BYTES)
        })?;
    }
    jvm.go_on()?;
    jvm.until_within("begin", PATIENCE)?;
    if let Some(listener) = listener.as_ref().filter(|_| point.held_objects > 0) {
        let due = LEAST_ALIVE * point.held_objects as f64;
        until(listener, "live objects", |listener| {
            Ok(listener.metrics()?.sum(LIVE_OBJECTS)? >= due)
        })?;
    }
    let log_before = log(rig)?.len();
    let agent_before = listener.as_ref().map(cpu_ns).transpose()?;
    jvm.go_on()?;
    let readings = match point.program {
        Program::Account => readings(&mut jvm, point, listener.as_ref())?,
        Program::Work | Program::Hello => Vec::new(),
    };
    let amount = Amount::read(&jvm.until_within("end", PATIENCE)?)?;
    let log = log(rig)?;
    let timed = log.get(log_before..).context("the log has shrunk")?;
    let pauses = Pauses::of(timed);
    let agent_after = listener.as_ref().map(cpu_ns).transpose()?;
    if let Some(listener) = &listener {
        check(listener, &amount)?;
    }
    jvm.finish()?;
    Ok(Told {
        amount,
        agent_cpu_ns: agent_after
            .zip(agent_before)
            .map(|(after, before)| after - before),
        pauses,
        readings,
    })
}

/// Reads the processor time that the agent says it has taken, in nanoseconds.
fn cpu_ns(listener: &Listener) -> Result<f64> {
    Ok(1e9 * listener.metrics()?.sum(CPU_SECONDS)?)
}

fn log(rig: &Rig) -> Result<String> {
    fs::read_to_string(rig.shop.gc_log()).context("the JVM has logged no collections")
}

/// Reads the account each time that the program holds what it is to hold; nothing without the agent.
fn readings(jvm: &mut Jvm, point: &Point, listener: Option<&Listener>) -> Result<Vec<Reading>> {
    let rounds = point.arguments.last().and_then(|word| word.parse().ok());
    let mut readings = Vec::new();
    for _ in 0..rounds.unwrap_or(0) {
        let lines = jvm.until_within("held", PATIENCE)?;
        if let Some(listener) = listener {
            readings.push(reading(listener, true_bytes(&lines)?)?);
        }
        jvm.go_on()?;
    }
    Ok(readings)
}

fn true_bytes(lines: &[String]) -> Result<f64> {
    lines
        .last()
        .and_then(|line| serde_json::from_str::<Value>(line).ok()?["true_bytes"].as_f64())
        .filter(|bytes| *bytes > 0.0)
        .with_context(|| format!("the program holds nothing: {lines:?}"))
}

/// The account once all garbage is refunded: what is charged is alive, and the same at all looks of a
/// while. The JVM looks for dead objects for some time before it tells of the first.
fn reading(listener: &Listener, true_bytes: f64) -> Result<Reading> {
    let mut before = None;
    let mut same = 0;
    let mut reading = None;
    until(listener, "the refunds", |listener| {
        let accounts = listener.accounts()?;
        let mut all = accounts["accounts"].as_array().into_iter().flatten();
        let account = all
            .find(|account| account["name"] == "tenant")
            .context("there is no account of the tenant")?;
        let figure = |key: &str| account[key].as_f64().context("an account without figures");
        let (live_bytes, charged_bytes) = (figure("live_bytes")?, figure("charged_bytes")?);
        let is_still = live_bytes == charged_bytes && before == Some(live_bytes);
        same = if is_still { same + 1 } else { 0 };
        before = Some(live_bytes);
        reading = Some(Reading {
            true_bytes,
            live_bytes,
            standard_error_bytes: figure("standard_error_bytes")?,
        });
        Ok(same >= SETTLED_LOOKS)
    })?;
    reading.context("the account was not read")
}

/// The program's accounts must have been charged for nearly all, and hardly a sample dropped.
fn check(listener: &Listener, amount: &Amount) -> Result<()> {
    let metrics = listener.metrics()?;
    let charged = metrics.sum(ALLOCATED)? - metrics.value(UNACCOUNTED)?;
    let due = LEAST_CHARGED * amount.allocated_bytes as f64;
    ensure!(
        charged >= due,
        "{charged} bytes were charged where {due} were due at least: this is no measurement"
    );
    let (samples, dropped) = (metrics.sum(SAMPLES)?, metrics.sum(DROPPED)?);
    ensure!(
        dropped <= MAX_DROPPED * samples,
        "{dropped} of {samples} samples were dropped: this is no measurement"
    );
    Ok(())
}

fn until(
    listener: &Listener,
    what: &str,
    mut is_so: impl FnMut(&Listener) -> Result<bool>,
) -> Result<()> {
    let begun = Instant::now();
    while !is_so(listener)? {
        if begun.elapsed() > LONGEST_WAIT {
            bail!(
                "the agent did not come to {what} within {} s",
                LONGEST_WAIT.as_secs()
            );
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_holds_nothing_is_told_from_one_that_does() {
        let line = |bytes: i64| [format!("{{\"true_bytes\":{bytes}}}")];
        assert_eq!(true_bytes(&line(5)).unwrap(), 5.0);
        assert!(true_bytes(&line(0)).is_err());
        assert!(true_bytes(&[]).is_err());
    }
}
