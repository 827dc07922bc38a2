//! The agent's log: standard error, or a file. Rust only, no Java logging is touched.
//!
//! Never used on an allocating thread or in a collection pause.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Seconds since the epoch are what every other log of the host can be matched with;
/// a calendar would need a time zone.
struct Uptime(std::time::Instant);

impl FormatTime for Uptime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(
            writer,
            "[heapwarden {:.3}s]",
            self.0.elapsed().as_secs_f64()
        )
    }
}

/// Installs the log for this copy of the agent. A file that cannot be opened is told on
/// standard error, which is then used.
pub(crate) fn install(file: Option<&Path>) {
    let builder = tracing_subscriber::fmt()
        .with_timer(Uptime(std::time::Instant::now()))
        .with_target(false)
        .with_ansi(false);
    let opened = file.map(|path| {
        (
            path,
            OpenOptions::new().create(true).append(true).open(path),
        )
    });
    // A second installation means a second load, which says so itself.
    let _ = match opened {
        Some((_, Ok(file))) => {
            tracing::subscriber::set_global_default(builder.with_writer(Mutex::new(file)).finish())
        }
        other => {
            let set = tracing::subscriber::set_global_default(
                builder.with_writer(std::io::stderr).finish(),
            );
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
