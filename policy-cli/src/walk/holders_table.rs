//! Who holds what whom, as a table.

use std::io::{self, Write};

use policy_report::Holders;

use super::paths_text::{how, pause, predicted, stops};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of an account, in columns.
const MAX_ACCOUNT_COLUMNS: usize = 30;
/// Most rows.
const MAX_ROWS: usize = 400;

/// The columns of the matrix, and of the sums that it divides.
const HELD: [(&str, Align); 4] = [
    ("HELD BY", Align::Left),
    ("MADE BY", Align::Left),
    ("LIVE ± ERROR", Align::Right),
    ("BY NOBODY ELSE", Align::Right),
];
const MADE: [(&str, Align); 3] = [
    ("MADE BY", Align::Left),
    ("LIVE ± ERROR", Align::Right),
    ("HELD BY SEVERAL", Align::Right),
];

/// Writes the matrix and the sums that it divides.
pub(super) fn write(holders: &Holders<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} references, walked {}; the JVM stood still for {} (predicted: {})",
        amount::count(holders.walk.references),
        how(&holders.walk),
        pause(holders.walk.pause_ms),
        predicted(&holders.walk),
    )?;
    stops(&holders.walk, out)?;
    writeln!(out)?;
    let name = |text: &str| printable::fitted_name(text, MAX_ACCOUNT_COLUMNS).into_owned();
    let mut grid = Grid::new(HELD);
    for row in holders.holders.iter().take(MAX_ROWS) {
        grid.row([
            name(&row.holder),
            name(&row.made_by),
            amount::estimate(row.live_bytes, row.standard_error_bytes),
            amount::bytes(row.exclusive_bytes),
        ]);
    }
    grid.write(2, out)?;
    if let more @ 1.. = holders.holders.len().saturating_sub(MAX_ROWS) {
        writeln!(out, "  and {more} more rows (see --json)")?;
    }
    writeln!(
        out,
        "\nWhat is held by several is in several rows. What each account made:\n"
    )?;
    let mut grid = Grid::new(MADE);
    for row in holders.made.iter().take(MAX_ROWS) {
        grid.row([
            name(&row.made_by),
            amount::estimate(row.live_bytes, row.standard_error_bytes),
            amount::bytes(row.shared_bytes),
        ]);
    }
    grid.write(2, out)
}
