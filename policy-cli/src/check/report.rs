//! Prints diagnostics with the source line and a caret.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, ThemeCharacters, ThemeStyles,
};
use policy_config::{Diagnostic, Severity};

/// Longest source line that is printed, in bytes; a file with a longer one gets one
/// plain line for each diagnostic.
const MAX_LINE_BYTES: usize = 2000;

/// Columns of the output if it is not a terminal.
const PLAIN_WIDTH: usize = 100;

/// How diagnostics look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// For a terminal: colours and box characters.
    Fancy,
    /// For a pipe, a log or a dumb terminal: ASCII only.
    Plain,
}

impl Look {
    /// The look for standard error; `NO_COLOR` and `TERM=dumb` are respected.
    pub(crate) fn of(is_terminal: bool) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_terminal && !no_color && !dumb {
            Look::Fancy
        } else {
            Look::Plain
        }
    }

    fn handler(self) -> GraphicalReportHandler {
        let handler = match self {
            Look::Fancy => GraphicalReportHandler::new_themed(GraphicalTheme::unicode()),
            Look::Plain => {
                let theme = GraphicalTheme {
                    characters: ThemeCharacters::ascii(),
                    styles: ThemeStyles::none(),
                };
                GraphicalReportHandler::new_themed(theme).with_width(PLAIN_WIDTH)
            }
        };
        handler.with_links(false).without_syntax_highlighting()
    }
}

/// Writes every diagnostic of one file.
pub(crate) fn write(
    file: &str,
    source: &str,
    diagnostics: &[Diagnostic],
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let printable = Arc::new(printable(source));
    let fits = printable.lines().all(|line| line.len() <= MAX_LINE_BYTES);
    let handler = look.handler();
    for diagnostic in diagnostics {
        let problem = Problem {
            diagnostic,
            source: NamedSource::new(file, Arc::clone(&printable)),
        };
        let mut text = String::new();
        if fits && handler.render_report(&mut text, &problem).is_ok() {
            writeln!(out, "{}", text.trim_end())?;
        } else {
            writeln!(out, "{}", diagnostic.render(file, source))?;
        }
    }
    Ok(())
}

/// `source` byte for byte, but without characters that control a terminal, and with a line end after
/// the last line, so that a caret can point there.
fn printable(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + 1);
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        let ends_line = character == '\r' && characters.peek() == Some(&'\n');
        if character.is_control() && !matches!(character, '\n' | '\t') && !ends_line {
            text.extend(std::iter::repeat_n('?', character.len_utf8()));
        } else {
            text.push(character);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// One diagnostic in the form that miette needs.
#[derive(Debug)]
struct Problem<'a> {
    diagnostic: &'a Diagnostic,
    source: NamedSource<Arc<String>>,
}

impl Problem<'_> {
    /// The span; if it is empty, the character at it, so that there is something to mark.
    fn underlined(&self) -> Range<usize> {
        let Range { start, end } = self.diagnostic.span;
        let here = self.source.inner()[start..].chars().next();
        let one = here.map_or(0, char::len_utf8);
        start..end.max(start + one)
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Problem<'_> {}

impl miette::Diagnostic for Problem<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        let hint = self.diagnostic.hint.as_ref()?;
        Some(Box::new(hint))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let here = LabeledSpan::new_primary_with_span(None, self.underlined());
        let related = self.diagnostic.related.as_ref().map(|label| {
            LabeledSpan::new_with_span(Some(label.message.clone()), label.span.clone())
        });
        Some(Box::new(std::iter::once(here).chain(related)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_masked_in_place() {
        assert_eq!(
            printable("a\u{1b}[31m\u{9b}b\r\nc\rd\te"),
            "a?[31m??b\r\nc?d\te\n"
        );
    }

    #[test]
    fn very_long_lines_are_not_repeated() {
        let source = format!("k = 1 # {}", "x".repeat(5000));
        let parsed = policy_config::parse(&source);
        let mut out = Vec::new();
        write("p", &source, &parsed.diagnostics, Look::Plain, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("p:1:1: unknown key `k`"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn every_look_shows_the_message_and_the_hint() {
        let source = "[agent]\nlisten = 1\n";
        let parsed = policy_config::parse(source);
        for look in [Look::Fancy, Look::Plain] {
            let mut out = Vec::new();
            write("p", source, &parsed.diagnostics, look, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("must be a string"), "{text}");
            assert!(text.contains("127.0.0.1:9464"), "{text}");
            assert_eq!(text.contains('\u{1b}'), look == Look::Fancy, "{text}");
        }
    }
}
