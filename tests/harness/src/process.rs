//! Child processes that end: with a time limit, or with the value that owns them.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// A child process. Killed by its own id and waited for when dropped, unless it has ended.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts a command.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        command.spawn().map(Self)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// The child itself: its pipes, for example.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The exit status, if it has ended.
    ///
    /// # Panics
    /// If the system cannot say.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child can be waited for")
    }

    /// Waits for its end, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        wait(&mut self.0, limit)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Takes from a JVM to be started the options that the environment has for it and for the agent.
pub fn without_surroundings(command: &mut Command) -> &mut Command {
    for variable in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"] {
        command.env_remove(variable);
    }
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("HEAPWARDEN_") {
            command.env_remove(variable);
        }
    }
    command
}

/// Gives each line of a child's output to `take`, on a thread of its own. By bytes: what a JVM prints need not be
/// UTF-8.
pub fn each_line(
    output: impl Read + Send + 'static,
    mut take: impl FnMut(String) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            take(String::from_utf8_lossy(&line).into_owned());
        }
    })
}

/// Waits for the end of a child, at most `limit`.
///
/// # Panics
/// If the system cannot say whether it has ended.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    wait_looking_every(Duration::from_millis(10), child, limit)
}

/// The same, for who measures when it ends.
///
/// # Panics
/// As [`wait`].
pub fn wait_looking_every(
    look_every: Duration,
    child: &mut Child,
    limit: Duration,
) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(look_every);
    }
}

/// Calls `answer` every 20 ms until it returns a value, at most `limit`.
pub fn poll<T>(limit: Duration, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = answer() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a command that installs something, to its end.
///
/// # Errors
/// A sentence with the line to type, if it cannot be started or fails.
pub fn run(command: &mut Command, remedy: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} cannot be started; type: {remedy}"))?;
    ensure!(
        status.success(),
        "{command:?} failed ({status}); type: {remedy}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_dropped_child_is_killed() {
        let mut child = Guard::start(Command::new("sleep").arg("60")).unwrap();
        let pid = child.id();
        assert_eq!(child.wait(Duration::from_millis(20)), None);
        drop(child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn the_status_of_a_child_that_ends_is_returned() {
        let mut child = Guard::start(&mut Command::new("false")).unwrap();
        let status = child.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(1));
        assert_eq!(child.ended(), Some(status));
    }

    #[test]
    fn polling_ends_with_the_value_or_the_limit() {
        let mut left = 2;
        let found = poll(Duration::from_secs(60), || {
            left -= 1;
            (left == 0).then_some("x")
        });
        assert_eq!(found, Some("x"));
        assert_eq!(poll(Duration::ZERO, || None::<()>), None);
    }
}
