//! The difference as text.

use std::io::{self, Write};

use policy_report::Snapshot;

use super::difference::{AccountChange, Change, Difference};
use super::sites::{SiteChange, SiteChanges};
use heapwarden_terminal::clock;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// Most accounts and classes that are printed, unless all are asked for.
const MAX_ROWS: usize = 30;
/// Widest name of an account, in columns.
const MAX_ACCOUNT_COLUMNS: usize = 30;
/// Widest name of a class, in columns.
const MAX_CLASS_COLUMNS: usize = 50;

/// Widest name of a place, in columns.
const MAX_PLACE_COLUMNS: usize = 80;

/// The user's options: all rows instead of the largest, and a table by time of birth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) all: bool,
    pub(super) ages: bool,
}

/// Writes what is compared, the accounts and the classes.
pub(super) fn write(
    found: &Difference,
    sites: &SiteChanges,
    [old, new]: [&Snapshot<'_>; 2],
    wanted: Wanted,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "OLD  {}", about(old))?;
    writeln!(out, "NEW  {}", about(new))?;
    writeln!(out, "{}", relation(found, old, new))?;
    writeln!(
        out,
        "Heap in use after GC: {} -> {}.",
        amount::bytes(old.heap.used_after_gc_bytes),
        amount::bytes(new.heap.used_after_gc_bytes)
    )?;
    if found.total.is_none() {
        writeln!(out)?;
        return writeln!(
            out,
            "Nothing came and nothing went. A change below {} may have no sample.",
            amount::bytes(found.unseen_bytes)
        );
    }
    let most = if wanted.all { usize::MAX } else { MAX_ROWS };
    let changed: Vec<&AccountChange> = (found.accounts.iter())
        .filter(|account| !account.change.is_none())
        .collect();
    writeln!(out)?;
    let rows = (changed.iter().take(most)).map(|account| {
        let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS).into_owned();
        row(vec![name], &account.change)
    });
    let total = row(vec!["(all)".into()], &found.total);
    let table: Vec<Vec<String>> = rows.chain([total]).collect();
    write_table(&["ACCOUNT"], &table, out)?;
    more(changed.len(), most, "accounts", out)?;

    writeln!(out)?;
    let mut classes: Vec<(&str, &str, &Change)> = (changed.iter())
        .flat_map(|account| account.classes.iter().map(move |class| (account, class)))
        .filter(|(_, class)| !class.change.is_none())
        .map(|(account, class)| (account.name.as_str(), class.class.as_str(), &class.change))
        .collect();
    classes.sort_by_key(|(_, _, change)| {
        std::cmp::Reverse((change.is_significant(), change.bytes().unsigned_abs()))
    });
    let rows = (classes.iter().take(most)).map(|(account, class, change)| {
        let account = printable::fitted_name(account, MAX_ACCOUNT_COLUMNS).into_owned();
        let class = printable::fitted_name(class, MAX_CLASS_COLUMNS).into_owned();
        row(vec![account, class], change)
    });
    let table: Vec<Vec<String>> = rows.collect();
    write_table(&["ACCOUNT", "CLASS"], &table, out)?;
    more(classes.len(), most, "classes", out)?;
    if wanted.ages {
        write_births(&changed, most, out)?;
    }
    write_sites(sites, most, out)?;
    writeln!(out)?;
    writeln!(
        out,
        "* is further from zero than three of its standard errors. A change below {} may have no sample.",
        amount::bytes(found.unseen_bytes)
    )
}

fn write_births(changed: &[&AccountChange], most: usize, out: &mut dyn Write) -> io::Result<()> {
    let births: Vec<Vec<String>> = (changed.iter())
        .flat_map(|account| account.births.iter().map(move |birth| (account, birth)))
        .filter(|(_, birth)| !birth.change.is_none())
        .map(|(account, birth)| {
            let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS).into_owned();
            let at = match birth.at.is_empty() {
                true => format!("collection {}", birth.upto_epoch),
                false => printable::fitted(&birth.at, 30).into_owned(),
            };
            row(vec![name, at], &birth.change)
        })
        .collect();
    writeln!(out)?;
    if births.is_empty() {
        return writeln!(out, "Of two runs nothing is known by birth.");
    }
    let shown = &births[..births.len().min(most)];
    write_table(&["ACCOUNT", "BORN BEFORE"], shown, out)?;
    more(births.len(), most, "periods", out)
}

/// The places that changed; nothing where the agent takes no stacks.
fn write_sites(sites: &SiteChanges, most: usize, out: &mut dyn Write) -> io::Result<()> {
    if !sites.changes.is_empty() {
        writeln!(out)?;
        let rows = sites.changes.iter().take(most).map(|site: &SiteChange| {
            let names = vec![
                printable::fitted_name(&site.account, MAX_ACCOUNT_COLUMNS).into_owned(),
                printable::fitted_name(&site.class, MAX_CLASS_COLUMNS).into_owned(),
                printable::fitted(site.place(), MAX_PLACE_COLUMNS).into_owned(),
            ];
            row(names, &site.change)
        });
        let table: Vec<Vec<String>> = rows.collect();
        write_table(&["ACCOUNT", "CLASS", "WHERE IT WAS ALLOCATED"], &table, out)?;
        more(sites.changes.len(), most, "places", out)?;
    }
    match sites.unknown {
        0 => Ok(()),
        1 => writeln!(
            out,
            "One place cannot be compared: one of the snapshots does not list it."
        ),
        unknown => writeln!(
            out,
            "{unknown} places cannot be compared: one of the snapshots does not list them."
        ),
    }
}

fn more(count: usize, most: usize, what: &str, out: &mut dyn Write) -> io::Result<()> {
    match count.saturating_sub(most) {
        0 => Ok(()),
        left => writeln!(out, "  and {left} more {what}; --all prints them"),
    }
}

fn about(of: &Snapshot<'_>) -> String {
    let mut parts = vec![printable::fitted(&of.at, 40).into_owned()];
    if !of.jvm.name.is_empty() {
        parts.push(printable::fitted_name(&of.jvm.name, 60).into_owned());
    }
    if of.jvm.pid > 0 {
        parts.push(format!("PID {}", of.jvm.pid));
    }
    if !of.why.is_empty() {
        parts.push(printable::fitted(&of.why, 20).into_owned());
    }
    let mut text = parts.join(", ");
    match of.heap.live_age_seconds {
        Some(age) if age >= 10.0 => {
            let age = clock::format_duration(age as u64);
            text.push_str(&format!("; live as of a collection {age} before"));
        }
        None => text.push_str("; before the first collection: nothing is known to be live"),
        Some(_) => {}
    }
    text
}

fn relation(found: &Difference, old: &Snapshot<'_>, new: &Snapshot<'_>) -> String {
    let seconds = |text: &str| clock::parse_time(text.get(..19).unwrap_or_default()).ok();
    let apart = match (seconds(&old.at), seconds(&new.at)) {
        (Some(old), Some(new)) => {
            format!(", {} apart", clock::format_duration(new.abs_diff(old)))
        }
        _ => String::new(),
    };
    match (found.is_same_run, found.is_cut) {
        (true, true) => format!(
            "One run of the JVM{apart}: what both hold cancels, errors are of what came and what went."
        ),
        (true, false) => format!(
            "One run of the JVM{apart}, but the agent has forgotten the older snapshot: errors are larger than need be."
        ),
        (false, _) => format!("Two runs{apart}: nothing cancels, both errors add up."),
    }
}

/// The columns after the names.
const COLUMNS: [&str; 6] = ["CHANGE ± ERROR", "OBJECTS", "CAME", "WENT", "OLD", "NEW"];

fn row(names: Vec<String>, change: &Change) -> Vec<String> {
    let mark = if change.is_significant() { "*" } else { "" };
    let objects = change.objects();
    let sign = if objects > 0 {
        "+"
    } else if objects < 0 {
        "-"
    } else {
        ""
    };
    let mut cells = vec![mark.to_owned()];
    cells.extend(names);
    cells.extend([
        signed(change.bytes(), change.standard_error()),
        format!("{sign}{}", amount::count(objects.unsigned_abs())),
        amount::bytes(change.came_bytes),
        amount::bytes(change.went_bytes),
        amount::bytes(change.old_bytes),
        amount::bytes(change.new_bytes),
    ]);
    cells
}

/// `+12.3 ± 0.9 MiB`
fn signed(bytes: i64, error: f64) -> String {
    let error = error.min(u64::MAX as f64) as u64;
    let estimate = amount::estimate(bytes.unsigned_abs(), error);
    match bytes {
        0 => estimate,
        1.. => format!("+{estimate}"),
        _ => format!("-{estimate}"),
    }
}

fn write_table(names: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let titles = [""].iter().chain(names).chain(&COLUMNS);
    let titles: Vec<String> = titles.map(|title| (*title).to_owned()).collect();
    let mut widths = vec![0; titles.len()];
    for row in std::iter::once(&titles).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = printable::columns(cell).max(*width);
        }
    }
    widths[0] = 1;
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for (place, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(printable::columns(cell)));
            if place <= names.len() {
                line.extend([cell.as_str(), &padding]);
            } else {
                line.extend([padding.as_str(), cell]);
            }
            line.push_str(if place == 0 { " " } else { "  " });
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
