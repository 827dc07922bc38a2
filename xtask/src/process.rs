//! Child processes that cannot outlive this one's interest in them.
//!
//! Each child leads a process group of its own, so that a Ctrl-C in the terminal reaches it only
//! through us, and what it started itself (a compiler, a forked JVM) is ended with it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::interrupt;

/// How long a child may take to end after `SIGTERM`.
const TERMINATION_MAXIMUM: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running child, ended when dropped.
pub(crate) struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Starts a command without standard input.
    pub(crate) fn start(command: &mut Command) -> Result<Running> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        Ok(Running { child, name })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("{} cannot be waited for", self.name))
    }

    /// Waits for its end; ends it on a request to stop or at the deadline.
    fn wait(mut self, deadline: Option<Instant>) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            interrupt::check()?;
            if deadline.is_some_and(|end| Instant::now() >= end) {
                bail!(
                    "{} did not end within the time it had, and was ended",
                    self.name
                );
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn signal(&self, signal: Signal) {
        // The group lives as long as one of its processes does. An error says that none is left.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(Signal::TERM);
        let end = Instant::now() + TERMINATION_MAXIMUM;
        while Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command, deadline: Option<Instant>) -> Result<()> {
    let text = describe(command);
    let status = Running::start(command)?.wait(deadline)?;
    succeeded(&text, status)
}

/// Runs a command to its end and gives each line of its standard output to `line`.
///
/// Where it fails, the lines have all been given before the error is returned.
pub(crate) fn run_lines(
    command: &mut Command,
    deadline: Option<Instant>,
    mut line: impl FnMut(&str) + Send,
) -> Result<()> {
    let text = describe(command);
    let mut running = Running::start(command.stdout(Stdio::piped()))?;
    let output = running.child.stdout.take().expect("it is piped");
    let status = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // By bytes: what a test prints need not be UTF-8.
            for bytes in BufReader::new(output).split(b'\n') {
                match bytes {
                    Ok(bytes) => line(String::from_utf8_lossy(&bytes).trim_end_matches('\r')),
                    Err(_) => return,
                }
            }
        });
        let status = running.wait(deadline);
        let _ = reader.join();
        status
    })?;
    succeeded(&text, status)
}

/// Runs a command to its end with all of its output in a file, whose last lines tell of a failure.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
    let errors = file.try_clone().context("a file handle cannot be copied")?;
    run(command.stdout(file).stderr(errors), None).with_context(|| {
        format!(
            "the last lines of {}:\n{}",
            log.display(),
            last_lines(log, 25)
        )
    })
}

/// The end of a log file, for an error message.
pub(crate) fn last_lines(log: &Path, count: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn succeeded(text: &str, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    Ok(())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        let _ = write!(text, " {}", argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_arrive_before_the_failure_is_reported() {
        let mut lines = Vec::new();
        let error = run_lines(&mut shell("echo one; echo two; exit 3"), None, |line| {
            lines.push(line.to_owned());
        })
        .unwrap_err();
        assert_eq!(lines, ["one", "two"]);
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_child_past_its_deadline_is_ended_with_what_it_started() {
        let begun = Instant::now();
        // The grandchild holds the pipe open: only ending the whole group ends the reading.
        let deadline = Some(begun + Duration::from_millis(200));
        let error = run_lines(&mut shell("sleep 60 & sleep 60"), deadline, |_| ()).unwrap_err();
        assert!(error.to_string().contains("was ended"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_dropped_child_is_ended() {
        let running = Running::start(&mut shell("exec sleep 60")).unwrap();
        let pid = running.id();
        drop(running);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
