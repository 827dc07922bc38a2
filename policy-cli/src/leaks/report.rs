//! Writes the leak suspects of JVMs, and other classes that grow, as text.

use std::borrow::Cow;
use std::io::{self, Write};

use super::words;
use crate::status::jvm_line;
use crate::targets::{Answer, Asked, write_each};
use heapwarden_client::live::{Growing, Leaks, Suspect};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of an account, of a class, of a frame, and of a reason, in columns.
const MAX_ACCOUNT_COLUMNS: usize = 30;
const MAX_CLASS_COLUMNS: usize = 50;
const MAX_FRAME_COLUMNS: usize = 110;
const MAX_REASON_COLUMNS: usize = 300;
/// Most suspects, and most other rows, that are listed for one JVM.
const MAX_SUSPECTS: usize = 100;
const MAX_OTHERS: usize = 100;
/// Most classes that are named as parts of a suspect.
const MAX_PARTS: usize = 8;
/// Most earlier looks at a suspect.
const MAX_LOOKS: usize = 32;
/// Most places of a suspect, and most frames of each.
const MAX_SITES: usize = 5;
const MAX_FRAMES: usize = 32;
/// Most chains of a suspect, and the widest.
const MAX_CHAINS: usize = 3;
const MAX_CHAIN_COLUMNS: usize = 600;

/// The columns of suspects, and of other classes that grow.
const SUSPECTS: [(&str, Align); 9] = [
    ("ACCOUNT", Align::Left),
    ("CLASS", Align::Left),
    ("LIVE ± ERROR", Align::Right),
    ("GROWTH/S ± ERROR", Align::Right),
    ("SINCE", Align::Right),
    ("WINDOW", Align::Right),
    ("OBJECTS", Align::Right),
    ("GENERATIONS", Align::Right),
    ("FORECAST", Align::Left),
];
const OTHERS: [(&str, Align); 5] = [
    ("ACCOUNT", Align::Left),
    ("CLASS", Align::Left),
    ("LIVE", Align::Right),
    ("GROWTH/S", Align::Right),
    ("WHY", Align::Left),
];

/// Writes the verdict about each JVM to `out`, and to `err` why others could not be read.
pub(super) fn write(
    found: &[Asked<Leaks>],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    write_each(found, out, err, |one, address, answer, out| {
        writeln!(out, "{address}: {}", verdict(answer))?;
        if let Some(line) = jvm_line(&one.jvm()) {
            writeln!(out, "  {line}")?;
        }
        write_suspects(&answer.document, out)?;
        let leaks = &answer.document;
        write_others("grows, and is no suspect:", &leaks.growing, out)?;
        write_others("acknowledged in the policy:", &leaks.acknowledged, out)?;
        if leaks.omitted > 0 {
            let omitted = amount::count(leaks.omitted);
            writeln!(out, "  and {omitted} more that the agent does not list")?;
        }
        Ok(())
    })
}

/// How many suspects there are, or why that is not known.
fn verdict(answer: &Answer<Leaks>) -> String {
    let leaks = &answer.document;
    let window = match leaks.horizon_seconds {
        0 => String::new(),
        seconds => format!(
            "; the longest window so far is {}",
            words::at_least(seconds)
        ),
    };
    let reason = |reason: &str| printable::fitted(reason, MAX_REASON_COLUMNS).into_owned();
    match (leaks.suspects.len(), &leaks.undecided, &answer.not_ready) {
        (0, _, Some(not_ready)) => {
            format!(
                "no verdict: the agent keeps no accounts: {}",
                reason(not_ready)
            )
        }
        (0, Some(undecided), None) => format!("no verdict yet: {}{window}", reason(undecided)),
        (0, None, None) => format!("no suspects{window}"),
        (1, ..) => format!("1 suspect{window}"),
        (count, ..) => format!("{count} suspects{window}"),
    }
}

fn write_suspects(leaks: &Leaks, out: &mut dyn Write) -> io::Result<()> {
    let listed = leaks.suspects.iter().take(MAX_SUSPECTS);
    if leaks.suspects.is_empty() {
        return Ok(());
    }
    let mut grid = Grid::new(SUSPECTS);
    listed.clone().for_each(|suspect| grid.row(cells(suspect)));
    grid.write(2, out)?;
    if let more @ 1.. = leaks.suspects.len().saturating_sub(MAX_SUSPECTS) {
        writeln!(out, "  and {more} more suspects")?;
    }
    for suspect in listed {
        write_origin(suspect, out)?;
    }
    writeln!(
        out,
        "  growth that is intended can be acknowledged in the policy: [[leak]] with its account and class"
    )
}

fn cells(suspect: &Suspect) -> [String; SUSPECTS.len()] {
    let rate = amount::estimate(
        // Saturates; what is not a number is 0.
        suspect.growth_bytes_per_second as u64,
        suspect.growth_standard_error as u64,
    );
    [
        account_name(&suspect.account),
        class_name(&suspect.class),
        amount::estimate(suspect.live_bytes, suspect.live_standard_error_bytes),
        rate,
        words::at_least(suspect.since_seconds),
        words::at_least(suspect.window_seconds),
        amount::count(suspect.objects),
        amount::count(suspect.generations),
        suspect
            .exhausts
            .as_ref()
            .map_or_else(|| "-".to_owned(), words::forecast),
    ]
}

/// Writes the classes that grow with a suspect, its earlier counts, the chains that keep it alive, and where its
/// survivors were allocated.
fn write_origin(suspect: &Suspect, out: &mut dyn Write) -> io::Result<()> {
    let class = class_name(&suspect.class);
    writeln!(out, "  {class} of {}:", account_name(&suspect.account))?;
    if !suspect.with.is_empty() {
        let parts = suspect.with.iter().take(MAX_PARTS);
        let parts: Vec<String> = parts.map(|part| class_name(part)).collect();
        let more = match suspect.with.len().saturating_sub(MAX_PARTS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(out, "    with it grow {}{more}", parts.join(", "))?;
    }
    if let [first, .., last] = &suspect.course[..] {
        let looks = suspect.course.iter().rev().take(MAX_LOOKS).rev();
        let counts: Vec<String> = looks.map(|look| amount::count(look.generations)).collect();
        let seconds = first.seconds_ago.saturating_sub(last.seconds_ago);
        writeln!(
            out,
            "    generations with live instances in {}: {}",
            words::at_least(seconds),
            counts.join(", ")
        )?;
    }
    for chain in suspect.kept_by.iter().take(MAX_CHAINS) {
        let chain = printable::fitted(chain, MAX_CHAIN_COLUMNS);
        writeln!(out, "    kept by {chain}")?;
    }
    if suspect.sites.is_empty() {
        return writeln!(
            out,
            "    where it is allocated is not known yet: stacks are taken of suspects only"
        );
    }
    for site in suspect.sites.iter().take(MAX_SITES) {
        let mut share = format!("{:>4}", amount::percent(site.share * 100.0));
        if site.frames.is_empty() {
            writeln!(out, "    {share}  of the survivors, in an unknown place")?;
        }
        for frame in site.frames.iter().take(MAX_FRAMES) {
            let frame = printable::fitted(frame, MAX_FRAME_COLUMNS);
            writeln!(out, "    {share}  {frame}")?;
            share = " ".repeat(share.len());
        }
    }
    if let more @ 1.. = suspect.sites.len().saturating_sub(MAX_SITES) {
        writeln!(out, "    and {more} more places")?;
    }
    Ok(())
}

fn write_others(title: &str, rows: &[Growing], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {title}")?;
    let mut grid = Grid::new(OTHERS);
    for row in rows.iter().take(MAX_OTHERS) {
        grid.row([
            account_name(&row.account),
            class_name(&row.class),
            amount::bytes(row.live_bytes),
            amount::change(row.growth_bytes_per_second),
            words::why(&row.why),
        ]);
    }
    grid.write(4, out)?;
    if let more @ 1.. = rows.len().saturating_sub(MAX_OTHERS) {
        writeln!(out, "    and {more} more")?;
    }
    Ok(())
}

fn account_name(name: &str) -> String {
    printable::fitted_name(name, MAX_ACCOUNT_COLUMNS).into_owned()
}

fn class_name(name: &str) -> String {
    let shown: Cow<'_, str> = printable::fitted_name(name, MAX_CLASS_COLUMNS);
    shown.into_owned()
}

#[cfg(test)]
mod tests;
