//! One JVM under measurement, which speaks in lines and waits to be looked at.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use heapwarden_harness::proc_files;
use heapwarden_harness::process::{self, Guard};

use crate::jdk::Jdk;
use crate::scrape::Listener;

/// Silence after which a program is taken to be stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a JVM that is to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a process must use no processor to be calm, and how often that is looked for.
const CALM_LOOK: Duration = Duration::from_millis(30);
const MAX_CALM_LOOKS: u32 = 20;
/// The kernel's ticks of CPU time.
const TICKS_PER_SECOND: f64 = 100.0;
/// A flag of JVMs that are compared: what is compiled is waited for. In the background, each compiles at
/// other moments, from other profiles: one allocates twice as much as the next for the same work, and
/// takes a tenth longer.
pub(crate) const ALIKE: &str = "-Xbatch";

/// How a JVM ended that was looked at every so often.
///
/// # Errors
/// Where it goes on for longer than a minute.
pub(crate) fn end(jvm: &mut Guard, look_every: Duration) -> Result<ExitStatus> {
    process::wait_looking_every(look_every, jvm.child(), PATIENCE)
        .with_context(|| format!("the JVM did not end within {} s", PATIENCE.as_secs()))
}

/// A running JVM, ended when dropped.
pub(crate) struct Jvm {
    child: Guard,
    input: ChildStdin,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Jvm {
    /// Starts a JVM whose standard error goes to `log`.
    pub(crate) fn start(jdk: &Jdk, arguments: &[String], log: &Path) -> Result<Jvm> {
        let errors = std::fs::File::create(log)
            .with_context(|| format!("{} cannot be written", log.display()))?;
        let mut java = jdk.java();
        java.args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = Guard::start(&mut java).context("java cannot be started")?;
        let input = child.child().stdin.take().expect("it is piped");
        let output = child.child().stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        process::each_line(output, move |line| {
            // Nobody may be listening any more.
            let _ = sender.send(line);
        });
        Ok(Jvm {
            child,
            input,
            lines,
            log: log.to_owned(),
        })
    }

    /// The lines up to the one that says `word`, at which the program waits.
    pub(crate) fn until(&mut self, word: &str) -> Result<Vec<String>> {
        self.until_within(word, PATIENCE)
    }

    /// The same, with a patience of its own: the longest silence.
    pub(crate) fn until_within(&mut self, word: &str, patience: Duration) -> Result<Vec<String>> {
        self.until_one_of(&[word], patience)
            .map(|(_, before)| before)
    }

    /// The first of `words` that it says, and the lines up to it.
    pub(crate) fn until_one_of<'a>(
        &mut self,
        words: &[&'a str],
        patience: Duration,
    ) -> Result<(&'a str, Vec<String>)> {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(patience) {
                Ok(line) => match words.iter().find(|word| line == **word) {
                    Some(word) => return Ok((word, before)),
                    None => before.push(line),
                },
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "the JVM said nothing for {} s; {}",
                        patience.as_secs(),
                        self.told()
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!(
                        "the JVM ended before it said {}; {}",
                        words.join(" or "),
                        self.told()
                    )
                }
            }
        }
    }

    /// Lets the program go on.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        self.input
            .write_all(b"\n")
            .with_context(|| format!("the JVM takes no orders; {}", self.told()))
    }

    /// Lets it go on to its end, which must be a good one.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.go_on()?;
        let status = end(&mut self.child, LOOK_EVERY).with_context(|| self.told())?;
        if !status.success() {
            bail!("the JVM failed ({status}); {}", self.told());
        }
        Ok(())
    }

    /// The agent's listener. The run file is there once it is bound.
    pub(crate) fn listener(&self, run_file: &Path) -> Result<Listener> {
        for _ in 0..200 {
            if let Some(listener) = Listener::of_run_file(run_file) {
                return Ok(listener);
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the agent has bound no listener; {}", self.told());
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads a file of the process from `/proc/PID`, such as `status`.
    pub(crate) fn proc_file(&self, name: &str) -> Result<String> {
        let id = self.child.id();
        proc_files::read(id, name).with_context(|| format!("/proc/{id}/{name} cannot be read"))
    }

    /// Waits until the process uses no processor, or not for long: what a program leaves to be done
    /// behind it (compiling, collecting) does not fall into what runs next.
    pub(crate) fn calm_down(&self) -> Result<()> {
        let mut ticks = cpu_ticks(&self.proc_file("stat")?)?;
        for _ in 0..MAX_CALM_LOOKS {
            thread::sleep(CALM_LOOK);
            let before = ticks;
            ticks = cpu_ticks(&self.proc_file("stat")?)?;
            if ticks == before {
                break;
            }
        }
        Ok(())
    }

    /// CPU time of the process so far, in seconds, to 10 ms.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let ticks = cpu_ticks(&self.proc_file("stat")?)?;
        Ok(ticks as f64 / TICKS_PER_SECOND)
    }

    /// Memory of the process that is resident, in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        status_bytes(&self.proc_file("status")?, "VmRSS")
    }

    fn told(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        if text.trim().is_empty() {
            "it printed no error".to_owned()
        } else {
            format!("its errors:\n{}", text.trim_end())
        }
    }
}

/// An amount of memory in `/proc/PID/status`, such as `VmRSS`, in bytes.
pub(crate) fn status_bytes(status: &str, field: &str) -> Result<u64> {
    proc_files::bytes(status, field).with_context(|| format!("the process's status has no {field}"))
}

/// CPU time in `/proc/PID/stat`, in the kernel's ticks: 10 ms.
fn cpu_ticks(stat: &str) -> Result<u64> {
    let mut numbers = proc_files::behind_name(stat)
        .skip(11)
        .map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(user)), Some(Ok(system))) => Ok(user + system),
        _ => bail!("the process's CPU time is not in {stat:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 17 0 0 20";
        assert_eq!(cpu_ticks(stat).unwrap(), 167);
        assert!(cpu_ticks("12 (java) S 1 2 3").is_err());
    }
}
