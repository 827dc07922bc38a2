//! Lines of aligned columns.

use std::io::{self, Write};

use heapwarden_terminal::printable;

/// Spaces between two columns.
const GAP: usize = 2;

/// Writes each line, its cells beneath those of the lines above; the columns of `right` end at the same place.
pub(super) fn write<const N: usize>(
    lines: &[[String; N]],
    right: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| printable::columns(&line[column]));
        cells.max().unwrap_or_default()
    });
    for line in lines {
        let mut text = " ".repeat(GAP);
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(printable::columns(cell)));
            let (before, behind) = match right.contains(&column) {
                true => (padding, String::new()),
                false => (String::new(), padding),
            };
            text.push_str(&before);
            text.push_str(cell);
            text.push_str(&behind);
            text.push_str(&" ".repeat(GAP));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}
