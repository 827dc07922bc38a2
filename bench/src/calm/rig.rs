//! The built parts, and one run of the program.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cases::{Given, HEAP_MIB, LIMIT_MIB, Mode, Variant, Vm, in_turn};
use super::results::{Figures, Run};
use crate::jdk::Jdk;
use crate::jvm::{ALIKE, Jvm};
use crate::scrape::Listener;
use crate::workshop::Workshop;

const CPU_SECONDS: &str = "heapwarden_agent_cpu_seconds_total";
const LIMIT_BYTES: u64 = LIMIT_MIB << 20;
/// How often the account is looked at while operations are counted.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a policy that was written may take to be in force, and how often that is looked for.
const LONGEST_RELOAD: Duration = Duration::from_secs(10);
const RELOAD_LOOK: Duration = Duration::from_millis(50);
/// How long a new policy is left alone before operations are counted.
const AFTER_RELOAD: Duration = Duration::from_secs(1);
/// The program is silent while it settles and while it counts; it may be late by so much.
const LATE: Duration = Duration::from_secs(60);

/// Everything that is built.
pub(crate) struct Rig {
    shop: Workshop,
    settle_seconds: u32,
    seconds: u32,
}

/// The running program.
struct Program {
    jvm: Jvm,
    listener: Listener,
    held_bytes: f64,
    told: Told,
}

/// The account's totals of waiting and refusals when they were last read; 0 before the first reading.
#[derive(Default)]
struct Told {
    wait_seconds: f64,
    refusals: f64,
}

/// Looks at the account.
#[derive(Default)]
struct Looks {
    all: u32,
    not_open: u32,
}

impl Rig {
    /// Builds all, with a JDK that is as old as any; programs settle and are counted for so long.
    pub(crate) fn build(
        jdk: &Jdk,
        agent: Option<&Path>,
        settle_seconds: u32,
        seconds: u32,
    ) -> Result<Rig> {
        Ok(Rig {
            shop: Workshop::build("calm", jdk, &[], agent)?,
            settle_seconds,
            seconds,
        })
    }

    /// Runs one JVM that holds this share of the limit, in percent.
    pub(crate) fn run(&self, vm: &Vm, share: u32, variant: Variant) -> Result<Figures> {
        self.shop.write_policy(&variant.policy())?;
        let mut program = self.start(vm, share, 1)?;
        let figures = program.count(self)?;
        program.jvm.finish()?;
        Ok(figures)
    }

    /// The same of one JVM in which the three policies take turns, `rounds` times; tells of each turn.
    pub(crate) fn run_by_turns(
        &self,
        vm: &Vm,
        share: u32,
        rounds: u32,
        mut tell: impl FnMut(Run),
    ) -> Result<()> {
        let variants = Variant::all(Given::Reload);
        self.shop.write_policy(&variants[0].policy())?;
        let mut program = self.start(vm, share, rounds * variants.len() as u32)?;
        for round in 0..rounds {
            for variant in in_turn(&variants, round) {
                self.shop.write_policy(&variant.policy())?;
                await_policy(&program.listener, variant)?;
                thread::sleep(AFTER_RELOAD);
                tell(Run {
                    round,
                    variant,
                    figures: program.count(self)?,
                });
            }
        }
        program.jvm.finish()
    }

    /// Starts the program, which holds what it shall and has settled.
    fn start(&self, vm: &Vm, share: u32, counts_wanted: u32) -> Result<Program> {
        let run_file = self.shop.run_file();
        let _ = fs::remove_file(&run_file);
        let arguments = self.arguments(vm, share, counts_wanted);
        let mut jvm = self.shop.start(&vm.jdk, &arguments)?;
        let held = counts(&jvm.until("ready")?, "held ")?;
        let &[held_bytes] = held.as_slice() else {
            bail!("the program said {held:?}");
        };
        let listener = jvm.listener(&run_file)?;
        jvm.go_on()?;
        jvm.until_within("settled", self.patience())?;
        Ok(Program {
            jvm,
            listener,
            held_bytes,
            told: Told::default(),
        })
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(u64::from(self.settle_seconds.max(self.seconds))) + LATE
    }

    fn arguments(&self, vm: &Vm, share: u32, counts_wanted: u32) -> Vec<String> {
        let mut arguments = vec![
            self.shop.agent_path(),
            format!("-Xms{HEAP_MIB}m"),
            format!("-Xmx{HEAP_MIB}m"),
            ALIKE.to_owned(),
        ];
        arguments.extend(vm.flags.iter().map(|flag| (*flag).to_owned()));
        arguments.extend(self.shop.class_path());
        arguments.extend([
            "calm.Calm".to_owned(),
            (LIMIT_BYTES * u64::from(share) / 100).to_string(),
            self.settle_seconds.to_string(),
            self.seconds.to_string(),
            counts_wanted.to_string(),
        ]);
        arguments
    }
}

impl Program {
    /// Has it count its operations, and looks at it meanwhile.
    fn count(&mut self, rig: &Rig) -> Result<Figures> {
        let Program { jvm, listener, .. } = self;
        let agent_before = listener.metrics()?.sum(CPU_SECONDS)?;
        let process_before = jvm.cpu_seconds()?;
        jvm.go_on()?;
        let (lines, looks) = looked_at(listener, || jvm.until_within("measured", rig.patience()))?;
        let process = jvm.cpu_seconds()? - process_before;
        let agent = listener.metrics()?.sum(CPU_SECONDS)? - agent_before;
        let document = listener.accounts()?;
        let counted = counts(&lines, "counted ")?;
        let &[operations_per_second, slowest_per_second, errors] = counted.as_slice() else {
            bail!("the program said {counted:?}");
        };
        let account = tenant(&document)?;
        let number = |key: &str| {
            let found = account[key].as_f64();
            found.with_context(|| format!("the account has no {key}"))
        };
        let told = Told {
            wait_seconds: number("wait_milliseconds_total")? / 1e3,
            refusals: number("refusals_total")? + number("admission_refusals_total")?,
        };
        let before = std::mem::replace(&mut self.told, told);
        let limit = LIMIT_BYTES as f64;
        Ok(Figures {
            operations_per_second,
            slowest_per_second,
            errors,
            held_share: self.held_bytes / limit,
            live_share: number("live_bytes")? / limit,
            wait_seconds: self.told.wait_seconds - before.wait_seconds,
            refusals: self.told.refusals - before.refusals,
            not_open_share: f64::from(looks.not_open) / f64::from(looks.all.max(1)),
            state: account["state"].as_str().unwrap_or_default().to_owned(),
            duress: document["enforcement"]["duress"].as_bool(),
            agent_cpu_share: agent / process,
        })
    }
}

/// The numbers of the line that begins so.
fn counts(lines: &[String], word: &str) -> Result<Vec<f64>> {
    let line = lines.iter().find_map(|line| line.strip_prefix(word));
    let line = line.with_context(|| format!("the program said no {word}"))?;
    let numbers = line.split(' ').map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .with_context(|| format!("no numbers: {line}"))
}

/// Looks at the account again and again while `meanwhile` runs.
fn looked_at<T>(listener: &Listener, meanwhile: impl FnOnce() -> Result<T>) -> Result<(T, Looks)> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| -> Result<Looks> {
            let mut looks = Looks::default();
            while !done.load(Ordering::Relaxed) {
                let document = listener.accounts()?;
                looks.all += 1;
                looks.not_open += u32::from(tenant(&document)?["state"] != "open");
                thread::park_timeout(LOOK_EVERY);
            }
            Ok(looks)
        });
        let result = meanwhile();
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        let looks = watcher.join().expect("it does not panic");
        Ok((result?, looks?))
    })
}

/// Waits until the policy of this variant is in force.
fn await_policy(listener: &Listener, variant: Variant) -> Result<()> {
    let mode = match variant.mode {
        Some(Mode::Enforce) => "enforce",
        Some(Mode::Observe) | None => "observe",
    };
    let begun = Instant::now();
    loop {
        let document = listener.accounts()?;
        let limit_bytes = tenant(&document)?["limit_bytes"].as_u64();
        if limit_bytes == variant.limit_bytes() && document["policy"]["mode"] == mode {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < LONGEST_RELOAD,
            "the policy is not in force {} s after it was written",
            LONGEST_RELOAD.as_secs()
        );
        thread::sleep(RELOAD_LOOK);
    }
}

fn tenant(document: &Value) -> Result<&Value> {
    let mut accounts = document["accounts"].as_array().into_iter().flatten();
    accounts
        .find(|account| account["name"] == "tenant")
        .context("there is no account of the tenant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_their_word() {
        let lines = ["held 7".to_owned(), "counted 1.5 2 0".to_owned()];
        assert_eq!(counts(&lines, "counted ").unwrap(), [1.5, 2.0, 0.0]);
        assert!(counts(&lines, "lost ").is_err());
        assert!(counts(&["held much".to_owned()], "held ").is_err());
    }
}
