//! Who holds what whom, as a table.

use std::io::{self, Write};

use policy_report::Holders;

use super::paths_text::{how, pause, predicted, stops};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, amount, write_grid};

/// Widest name of an account, in columns.
const MAX_ACCOUNT_COLUMNS: usize = 30;
/// Most rows.
const MAX_ROWS: usize = 400;

const TITLES: [&str; 4] = ["HELD BY", "MADE BY", "LIVE ± ERROR", "BY NOBODY ELSE"];
const ALIGNS: [Align; 4] = [Align::Left, Align::Left, Align::Right, Align::Right];
const MADE_TITLES: [&str; 3] = ["MADE BY", "LIVE ± ERROR", "HELD BY SEVERAL"];
const MADE_ALIGNS: [Align; 3] = [Align::Left, Align::Right, Align::Right];

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
    let mut lines = vec![TITLES.map(str::to_owned).to_vec()];
    lines.extend(holders.holders.iter().take(MAX_ROWS).map(|row| {
        vec![
            name(&row.holder),
            name(&row.made_by),
            amount::estimate(row.live_bytes, row.standard_error_bytes),
            amount::bytes(row.exclusive_bytes),
        ]
    }));
    write_grid(&ALIGNS, &lines, 2, out)?;
    if let more @ 1.. = holders.holders.len().saturating_sub(MAX_ROWS) {
        writeln!(out, "  and {more} more rows (see --json)")?;
    }
    writeln!(
        out,
        "\nWhat is held by several is in several rows. What each account made:\n"
    )?;
    let mut lines = vec![MADE_TITLES.map(str::to_owned).to_vec()];
    lines.extend(holders.made.iter().take(MAX_ROWS).map(|row| {
        vec![
            name(&row.made_by),
            amount::estimate(row.live_bytes, row.standard_error_bytes),
            amount::bytes(row.shared_bytes),
        ]
    }));
    write_grid(&MADE_ALIGNS, &lines, 2, out)
}
