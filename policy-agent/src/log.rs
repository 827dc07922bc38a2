//! The agent's log: standard error, or a file. Rust only, no Java logging is touched.
//!
//! Never used on an allocating thread or in a collection pause. A line that cannot be written (a full disk,
//! a closed pipe) is lost without further effect. The library would report that with `eprintln!`, which
//! panics if standard error is what fails.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// `[heapwarden 2026-11-23T21:42:17.123456Z]`: whose line it is among those of the program, and the wall
/// clock after RFC 3339, in UTC.
struct Stamp;

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str("[heapwarden ")?;
        SystemTime.format_time(writer)?;
        writer.write_str("]")
    }
}

/// Writes what can be written, and never fails.
struct Unfailing<W>(W);

impl<W: Write> Write for Unfailing<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// Installs the log for this copy of the agent. If the file cannot be opened, the log goes to standard
/// error and says so.
pub(crate) fn install(file: Option<&Path>) {
    let builder = tracing_subscriber::fmt()
        .with_timer(Stamp)
        .with_target(false)
        .with_ansi(false)
        .log_internal_errors(false);
    let opened = file.map(|path| {
        (
            path,
            OpenOptions::new().create(true).append(true).open(path),
        )
    });
    // It fails only at a second load, which logs a line of its own.
    let _ = match opened {
        Some((_, Ok(file))) => {
            // A line is one `write` to the end of the file: no lock is needed.
            let file = Arc::new(file);
            let writer = move || Unfailing(file.clone());
            tracing::subscriber::set_global_default(builder.with_writer(writer).finish())
        }
        other => {
            let writer = || Unfailing(io::stderr());
            let set = tracing::subscriber::set_global_default(builder.with_writer(writer).finish());
            if let Some((path, Err(error))) = other {
                tracing::warn!(
                    "the log file {} cannot be opened ({error}); the log goes to standard error",
                    path.display()
                );
            }
            set
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_wall_clock() {
        let mut text = String::new();
        Stamp.format_time(&mut Writer::new(&mut text)).unwrap();
        let time = (text.strip_prefix("[heapwarden ")).and_then(|text| text.strip_suffix("Z]"));
        let time = time.unwrap_or_else(|| panic!("{text}"));
        let shape: String = (time.chars())
            .map(|c| if c.is_ascii_digit() { '9' } else { c })
            .collect();
        assert_eq!(shape, "9999-99-99T99:99:99.999999", "{text}");
        assert!(time > "2025", "{text}");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_without_an_error() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!((&full).write(b"a line").is_err());
        let mut writer = Unfailing(&full);
        assert_eq!(writer.write(b"a line").unwrap(), 6);
        writer.write_all(b"another").unwrap();
        writer.flush().unwrap();
    }
}
