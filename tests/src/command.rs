//! Runs a command to its end within a time, and never longer.

use std::io::{Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use heapwarden_harness::process::Guard;
pub use heapwarden_harness::process::poll;

/// Longest that a test waits for what must come, however busy the machine is. It is no promise of
/// the product's, and a sound machine never waits so long.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// The exit status and the outputs of a command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs `command` with no input and collects both outputs.
///
/// # Panics
/// If it cannot be started or has not ended after `limit`; it is killed then.
pub fn run(command: &mut Command, limit: Duration) -> Finished {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child =
        Guard::start(command).unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = read_all(child.child().stdout.take().expect("piped above"));
    let stderr = read_all(child.child().stderr.take().expect("piped above"));
    let status = child.wait(limit);
    // Killed if it still runs; the readers end with the pipes.
    drop(child);
    let stdout = stdout.join().expect("the reader does not panic");
    let stderr = stderr.join().expect("the reader does not panic");
    let Some(status) = status else {
        panic!("{command:?} still ran after {limit:?}\nstdout: {stdout}\nstderr: {stderr}");
    };
    Finished {
        status,
        stdout,
        stderr,
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Says on the terminal what is not tested here, and why.
pub fn left_out(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "note: {test} is left out: {why}");
}
