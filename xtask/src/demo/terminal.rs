//! Lines that are redrawn in place where there is a terminal, and only now and then printed where
//! the output goes elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The width taken where the terminal does not tell its own.
const WIDTH_OTHERWISE: usize = 100;
/// How often lines are printed where there is no terminal.
const PRINT_EVERY: Duration = Duration::from_secs(5);

/// Standard output.
pub(crate) struct Terminal {
    is_terminal: bool,
    drawn: usize,
    printed: Option<Instant>,
}

impl Terminal {
    /// Finds out what standard output is.
    pub(crate) fn new() -> Terminal {
        Terminal {
            is_terminal: io::stdout().is_terminal(),
            drawn: 0,
            printed: None,
        }
    }

    /// Whether lines are redrawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Puts these lines in place of those last drawn.
    pub(crate) fn redraw(&mut self, lines: &[String]) {
        let width = rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col))
            .filter(|width| *width > 0)
            .unwrap_or(WIDTH_OTHERWISE);
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        for line in lines {
            // A line that wraps would be two, and the next redraw would start too low.
            text.extend(line.chars().take(width.saturating_sub(1)));
            text.push_str("\x1b[K\n");
        }
        // A terminal that has gone is noticed by the process, not by the drawing.
        let _ = io::stdout().write_all(text.as_bytes());
        let _ = io::stdout().flush();
        self.drawn = lines.len();
    }

    /// Prints a line, unless one was printed just before.
    pub(crate) fn print_now_and_then(&mut self, line: impl FnOnce() -> String) {
        if self
            .printed
            .is_some_and(|last| last.elapsed() < PRINT_EVERY)
        {
            return;
        }
        self.printed = Some(Instant::now());
        println!("{}", line());
    }

    /// Leaves what was drawn last where it is.
    pub(crate) fn leave(&mut self) {
        self.drawn = 0;
        self.printed = None;
    }
}
