//! How far a run has come.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// One line that says where the run is; where nobody watches, one line a step.
pub(crate) struct Progress {
    steps: u32,
    step: &'static str,
    begun: Instant,
    terminal: bool,
    shown: Option<u32>,
}

impl Progress {
    /// Of a run of so many rounds that begins now.
    pub(crate) fn new(rounds: u32) -> Progress {
        Progress::of("round", rounds)
    }

    /// Of so many steps, each called so.
    pub(crate) fn of(step: &'static str, steps: u32) -> Progress {
        Progress {
            steps,
            step,
            begun: Instant::now(),
            terminal: std::io::stdout().is_terminal(),
            shown: None,
        }
    }

    /// This step, from 0, is at `what`.
    pub(crate) fn show(&mut self, done: u32, what: &str) {
        let (step, number, of) = (self.step, done + 1, self.steps);
        let seconds = self.begun.elapsed().as_secs();
        let left = match done {
            0 => String::new(),
            done => format!(
                ", about {} s to go",
                seconds * u64::from(of.saturating_sub(done)) / u64::from(done)
            ),
        };
        let line = format!("{step} {number} of {of}: {what} ({seconds} s{left})");
        if self.terminal {
            print!("\r\x1b[K{line}");
            let _ = std::io::stdout().flush();
        } else if self.shown != Some(done) {
            println!("{line}");
        }
        self.shown = Some(done);
    }

    /// The last step has ended.
    pub(crate) fn done(&self) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        println!("{clear}measured in {} s\n", self.begun.elapsed().as_secs());
    }
}
