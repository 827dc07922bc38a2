//! A busy machine: processes that use all the processor time they get.

use std::process::{Command, Stdio};

use crate::process::Guard;

/// Counts, and looks now and then whether its starter still runs: one that was interrupted cannot end what
/// it started.
const SPIN: &str =
    "while kill -0 \"$0\" 2>/dev/null; do n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done; done";

/// Busy processes, each ended by its own id when this is dropped.
#[derive(Debug)]
pub struct Busy(Vec<Guard>);

impl Busy {
    /// Starts so many.
    ///
    /// # Errors
    /// If `sh` cannot be started.
    pub fn start(processes: u32) -> std::io::Result<Busy> {
        let one = |_| {
            Guard::start(
                Command::new("sh")
                    .args(["-c", SPIN])
                    .arg(std::process::id().to_string())
                    .stdin(Stdio::null())
                    .stdout(Stdio::null()),
            )
        };
        (0..processes).map(one).collect::<Result<_, _>>().map(Busy)
    }

    /// Whether all of them still run.
    pub fn runs(&mut self) -> bool {
        self.0.iter_mut().all(|process| process.ended().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn busy_processes_run_until_they_are_dropped() {
        let mut busy = Busy::start(2).unwrap();
        let ids: Vec<u32> = busy.0.iter().map(Guard::id).collect();
        thread::sleep(Duration::from_millis(500));
        assert!(busy.runs());
        drop(busy);
        for id in ids {
            assert!(!Path::new(&format!("/proc/{id}")).exists());
        }
    }
}
