//! A table as plain text.

use std::io::{self, Write};

use super::{Column, Grid, Row};
use crate::printable;

/// The rows' texts and each column's width, the head counted.
pub fn layout(columns: &[Column], rows: &[Row<'_>]) -> (Vec<Vec<String>>, Vec<usize>) {
    let mut widths: Vec<usize> = columns
        .iter()
        .map(|column| printable::columns(column.title()))
        .collect();
    let mut lines = Vec::with_capacity(rows.len());
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|column| column.cell(row)).collect();
        for (width, cell) in widths.iter_mut().zip(&cells) {
            *width = printable::columns(cell).max(*width);
        }
        lines.push(cells);
    }
    (lines, widths)
}

/// Writes the head and all rows, each line after `indent` spaces.
pub fn write_rows(
    columns: &[Column],
    rows: &[Row<'_>],
    indent: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let titles = columns.iter().map(|one| (one.title(), one.align()));
    let mut grid = Grid::new(titles);
    for row in rows {
        grid.row(columns.iter().map(|column| column.cell(row)));
    }
    grid.write(indent, out)
}

#[cfg(test)]
mod tests {
    use super::super::Rates;
    use super::*;
    type Account = policy_report::Account<'static>;

    #[test]
    fn columns_stand_under_each_other() {
        let account = |name: &str, live_bytes| Account {
            name: name.to_owned().into(),
            kind: "service".into(),
            live_bytes,
            ..Account::default()
        };
        let accounts = [account("価格", 5 << 20), account("a-longer-name", 7)];
        let rows: Vec<Row<'_>> = accounts
            .iter()
            .map(|account| Row {
                jvm: 0,
                address: "a:1",
                account,
                rates: Rates::default(),
                is_stale: false,
            })
            .collect();
        let mut out = Vec::new();
        let columns = [Column::Account, Column::Live, Column::Percent];
        write_rows(&columns, &rows, 2, &mut out).unwrap();
        let expected = "  ACCOUNT         LIVE ± ERROR  %\n\
                        \x20 価格           5.0 ± 0.0 MiB  -\n\
                        \x20 a-longer-name        7 ± 0 B  -\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
