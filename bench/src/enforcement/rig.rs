//! The built parts, and one run of each program.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cases::{CHURN_PERCENT, HEAP, LENGTH, LIMIT_BYTES, Leak, Vm, policy};
use super::our_pauses::our_pauses_ms;
use crate::gc_log;
use crate::jdk::Jdk;
use crate::jvm::Jvm;
use crate::scrape::Listener;
use crate::workshop::Workshop;

/// Packages of the errors that the agent throws.
const OURS: &str = "dev.heapwarden.";
/// Standard errors that an account is granted.
const MARGIN: f64 = 3.0;
/// How often the agent is asked while a state is awaited, and for how long.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LONGEST_RECOVERY: Duration = Duration::from_secs(120);
/// The kinds of collections that the agent asks for.
pub(crate) const KINDS: [&str; 4] = ["young", "concurrent", "full", "refunds"];

/// A leak that was stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stopped {
    /// Held beyond limit and margin at the first refusal, as a share of the limit.
    pub(crate) first: f64,
    /// The same when each thread had been refused.
    pub(crate) last: f64,
    /// From the crossing of the limit to the first refusal.
    pub(crate) lag_ms: f64,
    /// From the first array to the crossing.
    pub(crate) fill_ms: f64,
}

/// The evidence and the refusals of a service that ran for a while.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    /// Wall time.
    pub(crate) seconds: f64,
    /// Of wall time, by what the agent says of its collections.
    pub(crate) evidence_seconds: f64,
    /// Collections by kind, in the order of [`KINDS`].
    pub(crate) collections: [f64; KINDS.len()],
    /// Pauses of collections that the agent asked for, by the JVM's log.
    pub(crate) pauses_ms: Vec<f64>,
    /// Refusals.
    pub(crate) refusals: f64,
}

/// Everything that is built.
pub(crate) struct Rig(Workshop);

/// A program under way, which has said that it is ready.
struct Run {
    jvm: Jvm,
    listener: Listener,
    gc_log: PathBuf,
    /// How long the log was when the program was ready: what comes before is none of its cost.
    log_bytes: usize,
    begun: Instant,
    before: Evidence,
}

/// The agent's totals of its evidence at a moment: seconds, and collections by kind.
struct Evidence {
    seconds: f64,
    collections: [f64; KINDS.len()],
}

impl Rig {
    /// Builds all, with a JDK that is as old as any.
    pub(crate) fn build(jdk: &Jdk) -> Result<Rig> {
        Workshop::build("enforcement", jdk, &[], None).map(Rig)
    }

    /// Lets it leak until each thread has been refused; with `recovery`, then lets it drop
    /// everything and returns the milliseconds until it is admitted again.
    pub(crate) fn leak(
        &self,
        vm: &Vm,
        leak: Leak,
        recovery: bool,
    ) -> Result<(Stopped, Option<f64>)> {
        let program = [
            "enforcement.Leak".to_owned(),
            leak.threads.to_string(),
            leak.length.to_string(),
            LIMIT_BYTES.to_string(),
        ];
        let mut run = self.start(vm, true, &program)?;
        run.jvm.go_on()?;
        let lines = run.jvm.until("held")?;
        let account = tenant(&run.listener)?;
        ensure!(
            account["state"] == "over",
            "refused, and its state is {}",
            account["state"]
        );
        let error = account["standard_error_bytes"]
            .as_f64()
            .context("an account without a standard error")?;
        let stopped = stopped(&lines, error)?;
        run.jvm.go_on()?;
        run.jvm.until("dropped")?;
        let recovered = if recovery {
            Some(until_open(&run.listener)?.as_secs_f64() * 1e3)
        } else {
            None
        };
        run.end()?;
        Ok((stopped, recovered))
    }

    /// Lets it live at its limit for so many seconds.
    pub(crate) fn bounce(&self, vm: &Vm, seconds: u32) -> Result<Cost> {
        let program = [
            "enforcement.Bounce".to_owned(),
            LENGTH.to_string(),
            LIMIT_BYTES.to_string(),
            seconds.to_string(),
        ];
        let mut run = self.start(vm, true, &program)?;
        run.jvm.go_on()?;
        run.jvm.until("bounced")?;
        let cost = run.cost()?;
        ensure!(cost.refusals > 0.0, "it was not refused once");
        run.end()?;
        Ok(cost)
    }

    /// Lets it hold most of its limit and churn for so many seconds: arrays a second.
    pub(crate) fn churn(&self, vm: &Vm, limited: bool, seconds: u32) -> Result<(f64, Cost)> {
        let program = [
            "enforcement.Churn".to_owned(),
            LENGTH.to_string(),
            LIMIT_BYTES.to_string(),
            CHURN_PERCENT.to_string(),
            (seconds * 1_000).to_string(),
        ];
        let mut run = self.start(vm, limited, &program)?;
        run.jvm.go_on()?;
        let lines = run.jvm.until("churned")?;
        let cost = run.cost()?;
        run.end()?;
        let speed = lines
            .iter()
            .find_map(|line| line.strip_prefix("churned ")?.parse().ok())
            .context("the program churned nothing")?;
        Ok((speed, cost))
    }

    fn start(&self, vm: &Vm, limited: bool, program: &[String]) -> Result<Run> {
        let Rig(shop) = self;
        shop.write_policy(&policy(limited))?;
        let (run_file, gc_log) = (shop.run_file(), shop.gc_log());
        for stale in [&run_file, &gc_log] {
            let _ = fs::remove_file(stale);
        }
        let mut arguments = vec![
            shop.agent_path(),
            vm.collector.flag().to_owned(),
            HEAP.to_owned(),
            gc_log::flag(&gc_log),
        ];
        arguments.extend(shop.class_path());
        arguments.extend_from_slice(program);
        let mut jvm = shop.start(&vm.jdk, &arguments)?;
        jvm.until("ready")?;
        let listener = jvm.listener(&run_file)?;
        let before = Evidence::now(&listener)?;
        let log_bytes = fs::metadata(&gc_log).map_or(0, |log| log.len() as usize);
        Ok(Run {
            jvm,
            listener,
            gc_log,
            log_bytes,
            begun: Instant::now(),
            before,
        })
    }
}

impl Run {
    /// Returns the cost since the program was ready.
    fn cost(&self) -> Result<Cost> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let after = Evidence::now(&self.listener)?;
        let log = fs::read_to_string(&self.gc_log).context("the JVM has logged no collections")?;
        let mut collections = after.collections;
        for (after, before) in collections.iter_mut().zip(self.before.collections) {
            *after -= before;
        }
        Ok(Cost {
            seconds,
            evidence_seconds: after.seconds - self.before.seconds,
            collections,
            pauses_ms: our_pauses_ms(log.get(self.log_bytes..).unwrap_or_default()),
            refusals: tenant(&self.listener)?["refusals_total"]
                .as_f64()
                .context("an account without refusals")?,
        })
    }

    fn end(mut self) -> Result<()> {
        self.jvm.go_on()?;
        self.jvm.until("done")?;
        self.jvm.finish()
    }
}

impl Evidence {
    fn now(listener: &Listener) -> Result<Evidence> {
        let figure = |family: &str, kind: &str| {
            listener.metric(&format!("heapwarden_evidence_{family}{{kind=\"{kind}\"}}"))
        };
        let mut evidence = Evidence {
            seconds: 0.0,
            collections: [0.0; KINDS.len()],
        };
        for (collections, kind) in evidence.collections.iter_mut().zip(KINDS) {
            *collections = figure("collections_total", kind)?;
            evidence.seconds += figure("seconds_total", kind)?;
        }
        Ok(evidence)
    }
}

fn tenant(listener: &Listener) -> Result<Value> {
    let accounts = listener.accounts()?;
    let found = accounts["accounts"].as_array().into_iter().flatten();
    found
        .into_iter()
        .find(|account| account["name"] == "tenant")
        .cloned()
        .context("there is no account of the tenant")
}

fn until_open(listener: &Listener) -> Result<Duration> {
    let begun = Instant::now();
    while tenant(listener)?["state"] != "open" {
        if begun.elapsed() > LONGEST_RECOVERY {
            bail!(
                "it let go and was not admitted within {} s",
                LONGEST_RECOVERY.as_secs()
            );
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(begun.elapsed())
}

/// Reads `refused CLASS HELD_FIRST HELD_LAST FILL_NS LAG_NS`.
fn stopped(lines: &[String], standard_error_bytes: f64) -> Result<Stopped> {
    let words: Vec<&str> = lines
        .iter()
        .find_map(|line| line.strip_prefix("refused "))
        .context("the program was not refused")?
        .split(' ')
        .collect();
    let class = words.first().copied().unwrap_or_default();
    ensure!(
        class.starts_with(OURS),
        "the heap was exhausted before a refusal: {class}"
    );
    let number = |index: usize| -> Result<f64> {
        words
            .get(index)
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("no number {index} in {words:?}"))
    };
    let limit = LIMIT_BYTES as f64;
    let beyond = |held: f64| (held - limit - MARGIN * standard_error_bytes) / limit;
    Ok(Stopped {
        first: beyond(number(1)?),
        last: beyond(number(2)?),
        fill_ms: number(3)? / 1e6,
        lag_ms: number(4)? / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_leak_is_read() {
        let held = LIMIT_BYTES + LIMIT_BYTES / 10;
        let line = format!(
            "refused dev.heapwarden.MemoryQuotaExceededError {LIMIT_BYTES} {held} 4000000 1000000"
        );
        let expected = Stopped {
            first: -0.03,
            last: 0.07,
            lag_ms: 1.0,
            fill_ms: 4.0,
        };
        let read = stopped(&[line], LIMIT_BYTES as f64 / 100.0).unwrap();
        assert!((read.first - expected.first).abs() < 1e-6, "{read:?}");
        assert!((read.last - expected.last).abs() < 1e-6, "{read:?}");
        assert_eq!((read.lag_ms, read.fill_ms), (1.0, 4.0));
    }

    #[test]
    fn an_exhausted_heap_is_no_refusal() {
        let line = "refused java.lang.OutOfMemoryError 1 1 1 1".to_owned();
        assert!(stopped(&[line], 0.0).is_err());
    }
}
