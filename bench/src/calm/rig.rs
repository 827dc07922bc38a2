//! The built parts, and one run of the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::cases::{HEAP_MIB, LIMIT_MIB, Variant, Vm};
use super::results::Figures;
use crate::build;
use crate::jdk::Jdk;
use crate::jvm::{ALIKE, Jvm};
use crate::scrape::Listener;

const CPU_SECONDS: &str = "heapwarden_agent_cpu_seconds_total";
const LIMIT_BYTES: u64 = LIMIT_MIB << 20;
/// How often the account is looked at while operations are counted.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a policy that was written may take to be in force, and how often that is looked for.
const LONGEST_RELOAD: Duration = Duration::from_secs(10);
const RELOAD_LOOK: Duration = Duration::from_millis(50);
/// The program is silent while it settles and while it counts; it may be late by so much.
const LATE: Duration = Duration::from_secs(60);

/// Everything that is built.
pub(crate) struct Rig {
    folder: PathBuf,
    agent: PathBuf,
    classes: PathBuf,
    settle_seconds: u32,
    seconds: u32,
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
        let folder = build::fresh_folder("calm")?;
        let agent = build::agent_or(agent, &folder)?;
        Ok(Rig {
            classes: build::java(jdk, "calm", &[], &folder)?,
            agent,
            folder,
            settle_seconds,
            seconds,
        })
    }

    /// Runs one JVM that holds this share of the limit, in percent.
    pub(crate) fn run(&self, vm: &Vm, share: u32, variant: Variant) -> Result<Figures> {
        let config = self.folder.join("heapwarden.toml");
        let write = |policy: &str| {
            fs::write(&config, policy)
                .with_context(|| format!("{} cannot be written", config.display()))
        };
        let (at_start, reload) = variant.policies();
        write(&at_start)?;
        let run_file = self.folder.join("run.json");
        let _ = fs::remove_file(&run_file);
        let mut jvm = Jvm::start(
            &vm.jdk,
            &self.arguments(vm, share, &config, &run_file),
            &self.folder.join("jvm.log"),
        )?;
        let held = counts(&jvm.until("ready")?, "held ")?;
        let listener = jvm.listener(&run_file)?;
        if let Some(policy) = reload {
            write(&policy)?;
            await_limit(&listener)?;
        }
        let patience = Duration::from_secs(u64::from(self.settle_seconds.max(self.seconds))) + LATE;
        jvm.go_on()?;
        jvm.until_within("settled", patience)?;
        let agent_before = listener.metrics()?.sum(CPU_SECONDS)?;
        let process_before = jvm.cpu_seconds()?;
        jvm.go_on()?;
        let (lines, looks) = looked_at(&listener, || jvm.until_within("measured", patience))?;
        let process = jvm.cpu_seconds()? - process_before;
        let agent = listener.metrics()?.sum(CPU_SECONDS)? - agent_before;
        let document = listener.accounts()?;
        jvm.finish()?;

        let counted = counts(&lines, "counted ")?;
        let (&[held_bytes], &[operations_per_second, slowest_per_second, errors]) =
            (held.as_slice(), counted.as_slice())
        else {
            bail!("the program said {held:?} and {counted:?}");
        };
        let account = tenant(&document)?;
        let number = |key: &str| {
            let found = account[key].as_f64();
            found.with_context(|| format!("the account has no {key}"))
        };
        let limit = LIMIT_BYTES as f64;
        Ok(Figures {
            operations_per_second,
            slowest_per_second,
            errors,
            held_share: held_bytes / limit,
            live_share: number("live_bytes")? / limit,
            wait_seconds: number("wait_milliseconds_total")? / 1e3,
            refusals: number("refusals_total")? + number("admission_refusals_total")?,
            not_open_share: f64::from(looks.not_open) / f64::from(looks.all.max(1)),
            state: account["state"].as_str().unwrap_or_default().to_owned(),
            duress: document["enforcement"]["duress"].as_bool(),
            agent_cpu_share: agent / process,
        })
    }

    fn arguments(&self, vm: &Vm, share: u32, config: &Path, run_file: &Path) -> Vec<String> {
        let mut arguments = vec![
            format!(
                "-agentpath:{}=config={},listen=127.0.0.1:0,run-file={}",
                self.agent.display(),
                config.display(),
                run_file.display()
            ),
            format!("-Xms{HEAP_MIB}m"),
            format!("-Xmx{HEAP_MIB}m"),
            ALIKE.to_owned(),
        ];
        arguments.extend(vm.flags.iter().map(|flag| (*flag).to_owned()));
        arguments.extend([
            "-cp".to_owned(),
            self.classes.display().to_string(),
            "calm.Calm".to_owned(),
            (LIMIT_BYTES * u64::from(share) / 100).to_string(),
            self.settle_seconds.to_string(),
            self.seconds.to_string(),
        ]);
        arguments
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

fn await_limit(listener: &Listener) -> Result<()> {
    let begun = Instant::now();
    while tenant(&listener.accounts()?)?["limit_bytes"] != LIMIT_BYTES {
        ensure!(
            begun.elapsed() < LONGEST_RELOAD,
            "the limit is not in force {} s after it was written",
            LONGEST_RELOAD.as_secs()
        );
        thread::sleep(RELOAD_LOOK);
    }
    Ok(())
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
