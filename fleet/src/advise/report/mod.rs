//! Advice on paper: JSON, and text as a terminal's table or a ticket's Markdown.

mod columns;
mod text;

use columns::Look;
pub(super) use columns::percent;

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
        Format::Table => text::write(advice, Look::Terminal, all, out),
        Format::Markdown => text::write(advice, Look::Markdown, all, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short() {
        assert_eq!(percent(80.4), "80 %");
    }
}
