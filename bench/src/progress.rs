//! How far a run has come.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// One line that says where the run is; one line a round where nobody watches.
pub(crate) struct Progress {
    rounds: u32,
    begun: Instant,
    terminal: bool,
    shown: Option<u32>,
}

impl Progress {
    /// Of a run of so many rounds that begins now.
    pub(crate) fn new(rounds: u32) -> Progress {
        Progress {
            rounds,
            begun: Instant::now(),
            terminal: std::io::stdout().is_terminal(),
            shown: None,
        }
    }

    /// This round, from 0, is at `what`.
    pub(crate) fn show(&mut self, round: u32, what: &str) {
        let (number, of) = (round + 1, self.rounds);
        let seconds = self.begun.elapsed().as_secs();
        if self.terminal {
            print!("\r\x1b[Kround {number} of {of}: {what} ({seconds} s)");
            let _ = std::io::stdout().flush();
        } else if self.shown != Some(round) {
            println!("round {number} of {of} ({seconds} s)");
        }
        self.shown = Some(round);
    }

    /// The last round has ended.
    pub(crate) fn done(&self) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        println!("{clear}measured in {} s\n", self.begun.elapsed().as_secs());
    }
}
