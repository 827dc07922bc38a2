//! Cells under each other, as plain text.

use std::io::{self, Write};

use super::Align;
use crate::printable;

/// Spaces between two columns.
const GAP: usize = 2;

/// Writes the lines, each after `indent` spaces; every column is as wide as its widest cell. The cells must be
/// printable. A line may have fewer cells than there are columns.
///
/// # Errors
/// Output that cannot be written.
pub fn write_grid(
    aligns: &[Align],
    lines: &[Vec<String>],
    indent: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| printable::columns(cell)).max()
    };
    let widths: Vec<usize> = (0..aligns.len())
        .map(|column| width(column).unwrap_or_default())
        .collect();
    for line in lines {
        let mut text = " ".repeat(indent);
        for ((cell, width), align) in line.iter().zip(&widths).zip(aligns) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_stand_to_the_right_and_short_lines_are_filled() {
        let line = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let lines = [
            line(&["NAME", "SIZE", "WHY"]),
            line(&["価格", "7", "x"]),
            line(&["all"]),
        ];
        let mut out = Vec::new();
        let aligns = [Align::Left, Align::Right, Align::Left];
        write_grid(&aligns, &lines, 2, &mut out).unwrap();
        let expected = "  NAME  SIZE  WHY\n  価格     7  x\n  all\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
