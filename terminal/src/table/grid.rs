//! Cells under each other, as plain text.

use std::io::{self, Write};

use super::Align;
use crate::printable;

/// Spaces between two columns.
const GAP: usize = 2;

/// A table whose columns are declared once: each title with where its texts stand.
#[derive(Debug)]
pub struct Grid {
    aligns: Vec<Align>,
    /// The titles, and the rows.
    lines: Vec<Vec<String>>,
}

impl Grid {
    /// One with these columns and no rows yet.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Grid {
        let columns = columns.into_iter();
        let (titles, aligns) = columns
            .map(|(title, align)| (title.to_owned(), align))
            .unzip();
        Grid {
            aligns,
            lines: vec![titles],
        }
    }

    /// Adds a row. Its cells must be printable; it may have fewer than there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.lines.push(cells.into_iter().collect());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.lines.len() <= 1
    }

    /// Writes titles and rows, each after `indent` spaces; every column is as wide as its widest cell.
    ///
    /// # Errors
    /// Output that cannot be written.
    pub fn write(&self, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| printable::columns(cell)).max()
        };
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| width(column).unwrap_or_default())
            .collect();
        for line in &self.lines {
            let mut text = " ".repeat(indent);
            for ((cell, width), align) in line.iter().zip(&widths).zip(&self.aligns) {
                let padding = " ".repeat(width.saturating_sub(printable::columns(cell)));
                match align {
                    Align::Left => text.extend([cell.as_str(), &padding]),
                    Align::Right => text.extend([padding.as_str(), cell]),
                }
                text.push_str(&" ".repeat(GAP));
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_stand_to_the_right_and_short_lines_are_filled() {
        let columns = [
            ("NAME", Align::Left),
            ("SIZE", Align::Right),
            ("WHY", Align::Left),
        ];
        let mut grid = Grid::new(columns);
        assert!(grid.is_empty());
        grid.row(["価格", "7", "x"].map(str::to_owned));
        grid.row(["all".to_owned()]);
        let mut out = Vec::new();
        grid.write(2, &mut out).unwrap();
        let expected = "  NAME  SIZE  WHY\n  価格     7  x\n  all\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
