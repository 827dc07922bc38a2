//! Runs a command to its end within a time, and never longer.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest that a test waits for what must come, however busy the machine is. It is no promise of
/// the product's, and a sound machine never waits so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a finished command left.
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
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = read_all(child.stdout.take().expect("piped above"));
    let stderr = read_all(child.stderr.take().expect("piped above"));
    let status = wait(&mut child, limit);
    if status.is_none() {
        // Its own child by its own id; the readers end with the pipes.
        let _ = child.kill();
        let _ = child.wait();
    }
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

/// Waits at most `limit` for the child's end.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Asks `answer` every 20 ms until it gives a value, at most `limit`.
pub fn poll<T>(limit: Duration, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = answer() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
