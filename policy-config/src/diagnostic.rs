//! Problems of a policy file, and their places in the text.

use std::ops::Range;

/// How bad a [`Diagnostic`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The file is rejected.
    Error,
    /// The file is accepted, but something in it is probably not what was meant.
    Warning,
}

/// A second place in the text that explains a [`Diagnostic`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Byte range in the source, on character boundaries.
    pub span: Range<usize>,
    /// A few words, such as "first defined here".
    pub message: String,
}

/// One problem of a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it rejects the file.
    pub severity: Severity,
    /// One sentence without its full stop: a single line of printable text, whatever the file
    /// contains.
    pub message: String,
    /// Byte range in the source, within it and on character boundaries; may be empty.
    pub span: Range<usize>,
    /// Advice on how to mend the file.
    pub hint: Option<String>,
    /// Another place that belongs to the problem, such as the first of two duplicates.
    pub related: Option<Label>,
}

/// A place in a text, both numbers counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters (not bytes).
    pub column: usize,
}

impl Diagnostic {
    /// True if this rejects the file.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Where the problem starts in `source`, which must be the text that was parsed.
    pub fn position(&self, source: &str) -> Position {
        position_of(source, self.span.start)
    }

    /// The line on which the problem starts, counted from 1.
    pub fn line(&self, source: &str) -> usize {
        self.position(source).line
    }

    /// The column in characters at which the problem starts, counted from 1.
    pub fn column(&self, source: &str) -> usize {
        self.position(source).column
    }

    /// One line for a log: `file:line:column: message (hint)`; a warning begins with `warning: `.
    pub fn render(&self, file: &str, source: &str) -> String {
        let Position { line, column } = self.position(source);
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        let mut text = format!("{file}:{line}:{column}: {severity}{}", self.message);
        if let Some(hint) = &self.hint {
            text.push_str(" (");
            text.push_str(hint);
            text.push(')');
        }
        text
    }
}

/// The position of byte `offset`, or of the end of `source` if it lies beyond.
fn position_of(source: &str, offset: usize) -> Position {
    let before = &source[..floor_boundary(source, offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The closest character boundary at or before `offset`, within `source`.
fn floor_boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// `span` made to lie within `source` and on character boundaries.
pub(crate) fn clamp_span(source: &str, span: &Range<usize>) -> Range<usize> {
    let start = floor_boundary(source, span.start);
    let mut end = span.end.clamp(start, source.len());
    while !source.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Most diagnostics that are kept while a file is read; a hostile file has a hundred thousand. Far
/// more than are shown, so that nearly all are in file order.
const MAX_KEPT: usize = 1000;

/// Collects diagnostics while a file is read, in the order they are found.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// The first [`MAX_KEPT`], and behind them the latest of those beyond.
    found: Vec<Diagnostic>,
    /// How many of those beyond were dropped.
    dropped: usize,
    has_errors: bool,
}

impl Sink {
    /// Records an error and returns it, so that a hint or a label can be added.
    pub(crate) fn error(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Error, span, message.into())
    }

    /// Records a warning and returns it, so that a hint or a label can be added.
    pub(crate) fn warning(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Warning, span, message.into())
    }

    fn push(&mut self, severity: Severity, span: Range<usize>, message: String) -> &mut Diagnostic {
        self.has_errors |= severity == Severity::Error;
        if self.found.len() > MAX_KEPT {
            self.found.pop();
            self.dropped += 1;
        }
        self.found.push(Diagnostic {
            severity,
            message,
            span,
            hint: None,
            related: None,
        });
        self.found.last_mut().expect("just pushed")
    }

    /// True if any error was recorded.
    pub(crate) fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// The diagnostics in file order, at most `cap` of them (errors are kept rather than warnings), and
    /// one more that counts the rest.
    pub(crate) fn finish(self, source: &str, cap: usize) -> Vec<Diagnostic> {
        let mut found = self.found;
        found.sort_by_key(|one| (one.span.start, one.span.end));
        let left_out = found.len().saturating_sub(cap) + self.dropped;
        if left_out > 0 {
            // Stable, so that each group stays in file order.
            found.sort_by_key(|one| !one.is_error());
            found.truncate(cap);
            found.sort_by_key(|one| (one.span.start, one.span.end));
            found.push(Diagnostic {
                severity: if self.has_errors {
                    Severity::Error
                } else {
                    Severity::Warning
                },
                message: format!("{left_out} more problems are not shown"),
                span: source.len()..source.len(),
                hint: Some("fix those above first".into()),
                related: None,
            });
        }
        for one in &mut found {
            one.span = clamp_span(source, &one.span);
            if let Some(label) = &mut one.related {
                label.span = clamp_span(source, &label.span);
            }
        }
        found
    }
}

impl Diagnostic {
    pub(crate) fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn related(&mut self, span: Range<usize>, message: &str) -> &mut Self {
        self.related = Some(Label {
            span,
            message: message.into(),
        });
        self
    }
}

/// Longest piece of the user's text that a message repeats, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// `text` between backticks. It is escaped, so that a file cannot forge lines of the log or control a
/// terminal, and cut, so that it cannot flood the log.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == MAX_QUOTED_CHARS {
            quoted.push('…');
            break;
        }
        match character {
            '"' | '\'' => quoted.push(character),
            _ if character.is_control() => quoted.extend(character.escape_debug()),
            _ if is_invisible(character) => quoted.extend(character.escape_unicode()),
            _ => quoted.extend(character.escape_debug()),
        }
    }
    quoted.push('`');
    quoted
}

/// True for invisible characters that move the cursor or change the reading direction. They are not
/// allowed in names, which appear in logs and dashboards.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{2028}' | '\u{2029}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = "ab\ncäd\n";
        assert_eq!(position_of(source, 0), Position { line: 1, column: 1 });
        let after_umlaut = source.find('d').unwrap();
        assert_eq!(
            position_of(source, after_umlaut),
            Position { line: 2, column: 3 }
        );
        assert_eq!(
            position_of(source, source.len()),
            Position { line: 3, column: 1 }
        );
        assert_eq!(position_of(source, 999), Position { line: 3, column: 1 });
    }

    #[test]
    fn spans_are_clamped_to_characters() {
        assert_eq!(clamp_span("aäb", &(2..2)), 1..3);
        assert_eq!(clamp_span("aäb", &(2..99)), 1..4);
        assert_eq!(clamp_span("", &(5..9)), 0..0);
        #[expect(clippy::reversed_empty_ranges, reason = "that is the case under test")]
        let reversed = 3..1;
        assert_eq!(clamp_span("abcd", &reversed), 3..3);
    }

    #[test]
    fn rendering_is_one_line() {
        let mut sink = Sink::default();
        sink.error(3..4, "bad key").hint("use another");
        sink.warning(0..1, "odd");
        let found = sink.finish("ab\ncd", 10);
        assert_eq!(
            found[0].render("p.toml", "ab\ncd"),
            "p.toml:1:1: warning: odd"
        );
        assert_eq!(
            found[1].render("p.toml", "ab\ncd"),
            "p.toml:2:1: bad key (use another)"
        );
    }

    #[test]
    fn a_flood_is_cut_with_errors_kept_first() {
        let mut sink = Sink::default();
        for index in 0..10 {
            sink.warning(index..index + 1, "warning");
        }
        sink.error(10..11, "error");
        let found = sink.finish("0123456789ab", 3);
        let messages: Vec<_> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "warning",
                "warning",
                "error",
                "8 more problems are not shown"
            ]
        );
        assert_eq!(found[3].severity, Severity::Error);
    }

    #[test]
    fn what_is_not_kept_still_counts_and_still_rejects() {
        let mut sink = Sink::default();
        for index in 0..5000 {
            sink.warning(index..index, "warning");
        }
        sink.error(0..0, "error");
        sink.warning(0..0, "warning");
        assert!(sink.has_errors());
        assert!(sink.found.len() <= MAX_KEPT + 1);
        let found = sink.finish("", 10);
        assert_eq!(found.len(), 11);
        assert_eq!(found[10].message, "4992 more problems are not shown");
        assert!(
            found[10].is_error(),
            "the policy is refused, and something says so"
        );
    }

    #[test]
    fn quoting_escapes_and_cuts() {
        assert_eq!(quote("a\nb\u{1b}[31m"), r"`a\nb\u{1b}[31m`");
        assert_eq!(quote("say \"hi\" ä"), "`say \"hi\" ä`");
        assert_eq!(quote("x\u{202e}y"), r"`x\u{202e}y`");
        assert_eq!(quote(&"x".repeat(100)).chars().count(), 60 + 3);
    }
}
