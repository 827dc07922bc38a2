//! Builds the test programs and runs them: those that mostly wait side by side, those that measure
//! time alone.
//!
//! Cargo would run them one after the other, and most of them wait for a JVM most of the time. A
//! per-test runner (cargo-nextest) takes minutes to build on a fresh machine, and starts a process
//! for each test; here the tests of one program share what is expensive to make.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use heapwarden_harness::repository;

use super::context::{Context, cargo};
use super::runner::{self, Summary};
use super::share::{Share, share};
use crate::{interrupt, process};

/// Lines of a program that is running are shown at once if they start so.
const NOTE: &str = "note: ";

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binary {
    /// Its target's name; `(unit)` behind those of libraries and commands.
    name: String,
    executable: PathBuf,
    /// The folder of its package, which Cargo runs it in.
    folder: PathBuf,
}

/// How a program ended.
struct Ended {
    name: String,
    log: PathBuf,
    result: Result<()>,
    summaries: Vec<Summary>,
    failed: Vec<String>,
    took: Duration,
}

/// Builds every test program of the workspace.
pub(super) fn build(context: &Context) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    let mut command = cargo(&["test", "--workspace", "--profile", "checks"]);
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    process::run_lines(&mut command, Some(context.deadline), |line| {
        binaries.extend(parse(line));
    })?;
    if binaries.is_empty() {
        bail!("Cargo built no test program");
    }
    Ok(binaries)
}

/// The test program that a message of Cargo's reports, if it reports one.
fn parse(line: &str) -> Option<Binary> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let name = message["target"]["name"].as_str()?;
    let is_integration = message["target"]["kind"][0] == "test";
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    Some(Binary {
        name: if is_integration {
            name.to_owned()
        } else {
            format!("{name} (unit)")
        },
        executable: executable.into(),
        folder: manifest.parent()?.to_owned(),
    })
}

/// Runs them all, and adds their summaries in the order of their names.
///
/// # Errors
/// The tests that failed, and the programs that ended without saying which.
pub(super) fn run(
    context: &Context,
    binaries: Vec<Binary>,
    summaries: &mut Vec<Summary>,
) -> Result<()> {
    let logs = repository::target().join("xtask/tests");
    fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
    println!(
        "{} programs; what each prints is in {}",
        binaries.len(),
        logs.display()
    );
    let mut ended = schedule(context, binaries, &logs);
    interrupt::check()?;
    ended.sort_by_key(|one| std::cmp::Reverse(one.took));
    println!("\ntimes of the test programs:");
    for one in &ended {
        println!("  {:>6.1} s  {}", one.took.as_secs_f64(), one.name);
    }
    ended.sort_by(|a, b| a.name.cmp(&b.name));
    let mut failed = Vec::new();
    for one in ended {
        failed.extend(
            one.failed
                .iter()
                .map(|test| format!("{}: {test}", one.name)),
        );
        if let Err(error) = one.result
            && one.failed.is_empty()
        {
            failed.push(format!("{}: {error:#}", one.name));
        }
        summaries.extend(one.summaries);
    }
    if !failed.is_empty() {
        bail!("{} failed:\n    {}", failed.len(), failed.join("\n    "));
    }
    Ok(())
}

/// Runs the programs: as many side by side as there are processors for, then the others alone.
fn schedule(context: &Context, binaries: Vec<Binary>, logs: &std::path::Path) -> Vec<Ended> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let budget = u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(10);
    let mut waiting: Vec<(Share, Binary)> = binaries
        .into_iter()
        .map(|binary| (share(&binary.name), binary))
        .collect();
    // The longest first, so that none is left over at the end; those that run alone last.
    waiting.sort_by_key(|(share, _)| (share.alone, std::cmp::Reverse(share.seconds)));
    let mut waiting = VecDeque::from(waiting);
    let mut ended = Vec::new();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut running: Vec<(String, u32)> = Vec::new();
        loop {
            let used: u32 = running.iter().map(|(_, tenths)| tenths).sum();
            let next = waiting.iter().position(|(share, _)| {
                running.is_empty() || (!share.alone && used + share.tenths_of_a_core <= budget)
            });
            if let Some(at) = next.filter(|_| !interrupt::requested()) {
                let (share, binary) = waiting.remove(at).expect("it was just found");
                // Nothing else fits beside one that runs alone.
                let tenths = if share.alone {
                    budget
                } else {
                    share.tenths_of_a_core
                };
                running.push((binary.name.clone(), tenths));
                let sender = sender.clone();
                scope.spawn(move || run_one(context, binary, share, logs, &sender));
                continue;
            }
            if running.is_empty() {
                return;
            }
            let one: Ended = receiver.recv().expect("a program is running");
            running.retain(|(name, _)| *name != one.name);
            show(&one);
            ended.push(one);
        }
    });
    ended
}

fn run_one(
    context: &Context,
    binary: Binary,
    share: Share,
    logs: &std::path::Path,
    to: &Sender<Ended>,
) {
    let begun = Instant::now();
    let log = logs.join(format!("{}.log", binary.name.replace(' ', "-")));
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
        .arg(&binary.executable)
        .arg(format!("--test-threads={}", share.threads))
        .current_dir(&binary.folder)
        .env("CARGO_MANIFEST_DIR", &binary.folder)
        // Both were just built: no test needs to see to that again.
        .env("HEAPWARDEN_LIBRARY", repository::agent())
        .env("HEAPWARDEN_COMMAND", repository::command());
    if context.long {
        command.env("HEAPWARDEN_TEST_LONG", "1");
    }
    let mut summaries = Vec::new();
    let mut failed = Vec::new();
    let result = File::create(&log)
        .with_context(|| format!("{} cannot be written", log.display()))
        .and_then(|mut file| {
            process::run_lines(&mut command, Some(context.deadline), |line| {
                // The log is for people: if it cannot be written, the run goes on.
                let _ = writeln!(file, "{line}");
                if let Some(note) = line.strip_prefix(NOTE) {
                    println!("  {}: {note}", binary.name);
                }
                summaries.extend(Summary::parse(line));
                failed.extend(runner::failed_test(line).map(str::to_owned));
            })
        });
    // The receiver waits for as many as it has started.
    let _ = to.send(Ended {
        name: binary.name,
        log,
        result,
        summaries,
        failed,
        took: begun.elapsed(),
    });
}

/// Prints what came of a program, and all that it printed if it failed.
fn show(one: &Ended) {
    if one.result.is_err() {
        println!("--- {} failed; it printed:", one.name);
        println!("{}", fs::read_to_string(&one.log).unwrap_or_default());
    }
    for summary in &one.summaries {
        println!("{}: {}", one.name, summary.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_cargos_messages() {
        let of = |kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/tests/Cargo.toml",
                "target":{{"name":"limits","kind":["{kind}"]}},"profile":{{"test":{test}}},
                "executable":"/r/target/limits-1"}}"#
            )
        };
        let binary = parse(&of("test", true)).unwrap();
        assert_eq!(binary.name, "limits");
        assert_eq!(binary.folder, PathBuf::from("/r/tests"));
        assert_eq!(parse(&of("lib", true)).unwrap().name, "limits (unit)");
        assert_eq!(parse(&of("bin", false)), None);
        assert_eq!(parse("   Compiling x"), None);
    }
}
