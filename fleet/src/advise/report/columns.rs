//! Tables: aligned for a terminal, or in Markdown.

use std::io::{self, Write};

use heapwarden_terminal::printable::{columns, escaped};

/// A cell.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// Ours: flush right.
    Value(String),
    /// Somebody's choice: flush left, escaped.
    Name(String),
}

/// Writes the rows below their heads.
pub(super) fn write(
    heads: &[&str],
    rows: &[Vec<Cell>],
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| cell.shown(look)).collect())
        .collect();
    let is_name = |column: usize| {
        rows.first()
            .and_then(|row| row.get(column))
            .is_some_and(|cell| matches!(cell, Cell::Name(_)))
    };
    let widths: Vec<usize> = (heads.iter().enumerate())
        .map(|(column, head)| {
            let cells = shown.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| columns(cell))
                .max()
                .unwrap_or(0)
                .max(head.len())
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, cell) in cells.enumerate() {
            line.push_str(match (look, column) {
                (Look::Markdown, 0) => "| ",
                (Look::Markdown, _) => " | ",
                (Look::Terminal, _) => "  ",
            });
            let pad = " ".repeat(widths[column].saturating_sub(columns(cell)));
            if is_name(column) {
                line.push_str(cell);
                line.push_str(&pad);
            } else {
                line.push_str(&pad);
                line.push_str(cell);
            }
        }
        match look {
            Look::Markdown => line + " |",
            Look::Terminal => line.trim_end().to_owned(),
        }
    };
    writeln!(out, "{}", line(&mut heads.iter().copied()))?;
    if look == Look::Markdown {
        let rules: Vec<String> = (widths.iter().enumerate())
            .map(|(column, width)| {
                let dashes = "-".repeat(width.saturating_sub(1).max(2));
                if is_name(column) {
                    format!("{dashes}-")
                } else {
                    format!("{dashes}:")
                }
            })
            .collect();
        writeln!(out, "{}", line(&mut rules.iter().map(String::as_str)))?;
    }
    for row in &shown {
        writeln!(out, "{}", line(&mut row.iter().map(String::as_str)))?;
    }
    writeln!(out)
}

impl Cell {
    fn shown(&self, look: Look) -> String {
        match self {
            Cell::Value(text) => text.clone(),
            Cell::Name(text) => name(text, look),
        }
    }
}

/// `81 %`.
pub(in crate::advise) fn percent(percent: f64) -> String {
    format!("{percent:.0} %")
}

/// Where it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Terminal,
    Markdown,
}

/// A name that somebody chose: without controls, and in Markdown as code, where nothing in it is
/// a link, an image, a mention or the end of a cell.
pub(super) fn name(text: &str, look: Look) -> String {
    let text = escaped(text);
    if look == Look::Terminal {
        return text.into_owned();
    }
    // A run of backticks ends code that began with as many, so begin with one more.
    let longest = text
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() {
        " "
    } else {
        ""
    };
    // Tables are cut into cells before code is looked for.
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_code_in_markdown() {
        let markdown = |text| name(text, Look::Markdown);
        assert_eq!(markdown("/shop"), "`/shop`");
        assert_eq!(markdown("a|b"), "`a\\|b`");
        assert_eq!(markdown("a`b``c"), "```a`b``c```");
        assert_eq!(markdown("`"), "`` ` ``");
        assert_eq!(markdown("![x](http://e)@all"), "`![x](http://e)@all`");
        assert_eq!(markdown("a\n\n# b"), "`a\\u{a}\\u{a}# b`");
        assert_eq!(name("a\x1b[2Jb", Look::Terminal), "a\\u{1b}[2Jb");
    }

    proptest! {
        #[test]
        fn no_name_breaks_out_of_its_row(text in "\\PC*|.*|[`|\\\\]{0,9}") {
            for look in [Look::Terminal, Look::Markdown] {
                let mut out = Vec::new();
                let row = vec![Cell::Name(text.clone()), Cell::Value("1".into())];
                write(&["name", "n"], &[row], look, &mut out).unwrap();
                let out = String::from_utf8(out).unwrap();
                let lines = if look == Look::Markdown { 4 } else { 3 };
                prop_assert_eq!(out.split('\n').count(), lines + 1, "{:?}", out);
                prop_assert!(out.chars().all(|c| c == '\n' || !c.is_control()));
                if look == Look::Markdown {
                    let row = out.lines().nth(2).unwrap();
                    let bare = row.replace("\\|", "");
                    prop_assert_eq!(bare.matches('|').count(), 3, "{:?}", row);
                }
            }
        }
    }
}
