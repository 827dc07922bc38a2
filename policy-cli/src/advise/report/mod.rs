//! Advice on paper: JSON, and text as a terminal's table or a ticket's Markdown.

mod columns;
mod text;

use std::io::{self, Write};

use clap::ValueEnum;

use super::advice::Advice;

/// How the advice is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For a terminal
    Table,
    /// For programs
    Json,
    /// For a ticket
    Markdown,
}

/// Writes the advice. Without `all`, JVMs that the advice is not about are counted, not listed;
/// JSON has all.
///
/// # Errors
/// Where it cannot be written.
pub(super) fn write(
    advice: &Advice,
    format: Format,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, advice)?;
            writeln!(out)
        }
        Format::Table => text::write(advice, text::Look::Terminal, all, out),
        Format::Markdown => text::write(advice, text::Look::Markdown, all, out),
    }
}

/// `1.2 GiB`, with a sign where it is below 0.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes.abs();
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let sign = if bytes < 0.0 { "-" } else { "" };
    let digits = usize::from(unit > 0 && scaled < 99.95);
    format!("{sign}{scaled:.digits$} {}", UNITS[unit])
}

/// `81 %`.
pub(super) fn percent(percent: f64) -> String {
    format!("{percent:.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_short() {
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(1023.99), "1.0 KiB");
        assert_eq!(bytes(-1.5 * 1_048_576.0), "-1.5 MiB");
        assert_eq!(bytes(256.0 * 1_048_576.0), "256 MiB");
        assert_eq!(
            bytes(1e30),
            format!("{:.0} TiB", 1e30 / 1_099_511_627_776.0)
        );
        assert_eq!(percent(80.4), "80 %");
    }
}
