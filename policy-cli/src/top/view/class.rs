//! One class of an account: its figures, whether it is suspected to leak, its origin, ages and sizes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::drawing::{padded, put};
use super::palette::Palette;
use crate::leaks::{at_least, forecast, why};
use heapwarden_client::live::{Bin, Class, Growing, Leaks, Suspect};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::bins::{self, Scale};
use heapwarden_terminal::table::{Row, amount};

/// From this width on, histograms are side by side.
const WIDE: u16 = 90;
/// Widest names in the first line, and widest reason.
const MAX_NAME_COLUMNS: usize = 60;
const MAX_REASON_COLUMNS: usize = 200;
/// Columns of an edge, and of an amount, of a histogram.
const EDGE_COLUMNS: usize = 9;
const AMOUNT_COLUMNS: usize = 9;
/// Most parts and places of a suspect, and most frames of a place.
const MAX_PARTS: usize = 5;
const MAX_SITES: usize = 3;
const MAX_FRAMES: usize = 6;

/// Draws the class of the account in `row`.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    row: Option<Row<'_>>,
    name: &str,
    leaks: Option<&Leaks>,
    palette: Palette,
) {
    let found = row.and_then(|row| {
        let class = row
            .account
            .classes
            .iter()
            .find(|class| class.class == name)?;
        Some((row, class))
    });
    let Some((row, class)) = found else {
        let gone = "this class is not listed now; Esc goes back";
        put(frame, area, [Line::raw(gone)]);
        return;
    };
    let account = &row.account.name;
    let mut lines = vec![
        Line::styled(
            format!(
                "{} of {} in {}",
                printable::fitted_name(name, MAX_NAME_COLUMNS),
                printable::fitted_name(account, MAX_NAME_COLUMNS),
                printable::escaped(row.address),
            ),
            palette.title(),
        ),
        Line::raw(figures(class)),
    ];
    if let Some(leaks) = leaks {
        match suspect(Some(leaks), account, name) {
            Some(suspect) => {
                let verdict = suspicion(suspect);
                lines.push(Line::styled(verdict, palette.trouble()));
                lines.extend(origin(suspect).into_iter().map(Line::raw));
            }
            None => lines.push(no_suspicion(leaks, account, name, palette)),
        }
    }
    lines.push(Line::raw(""));
    lines.extend(histograms(class, area.width).into_iter().map(Line::raw));
    put(frame, area, lines);
}

/// The suspicion about a class of an account, if there is one.
pub(super) fn suspect<'a>(
    leaks: Option<&'a Leaks>,
    account: &str,
    class: &str,
) -> Option<&'a Suspect> {
    let mut suspects = leaks?.suspects.iter();
    suspects.find(|one| one.account == account && one.class == class)
}

fn figures(class: &Class) -> String {
    let live = match class.live_standard_error_bytes {
        Some(error) => amount::estimate(class.live_bytes, error),
        None => amount::bytes(class.live_bytes),
    };
    let objects = class.live_objects;
    let each = match objects {
        0 => String::new(),
        objects => format!(" of {}", amount::bytes(class.live_bytes / objects)),
    };
    let freed = class.freed_bytes_total.map_or_else(String::new, |bytes| {
        format!("  freed {}", amount::bytes(bytes))
    });
    let generations = class.generations.map_or_else(String::new, |count| {
        format!("  generations {}", amount::count(count))
    });
    let share = class.sample_share.map_or_else(String::new, |share| {
        format!("  sampled {}", amount::percent(share * 100.0))
    });
    format!(
        "live {live}  objects {}{each}  allocated {}{freed}{generations}{share}",
        amount::count(objects),
        amount::bytes(class.allocated_bytes_total),
    )
}

fn suspicion(suspect: &Suspect) -> String {
    // Saturates; what is not a number is 0.
    let growth = amount::estimate(
        suspect.growth_bytes_per_second as u64,
        suspect.growth_standard_error as u64,
    );
    format!(
        "suspected to leak for {}: grows by {growth}/s over {}",
        at_least(suspect.since_seconds),
        at_least(suspect.window_seconds),
    )
}

/// The forecast, what grows with it, and where its survivors were allocated.
fn origin(suspect: &Suspect) -> Vec<String> {
    let mut lines: Vec<String> = suspect.exhausts.iter().map(forecast).collect();
    if !suspect.with.is_empty() {
        let parts = suspect.with.iter().take(MAX_PARTS);
        let parts: Vec<_> = parts
            .map(|part| printable::fitted_name(part, MAX_NAME_COLUMNS))
            .collect();
        lines.push(format!("with it grow {}", parts.join(", ")));
    }
    if suspect.sites.is_empty() {
        lines.push("where it is allocated is not known yet".to_owned());
    }
    for site in suspect.sites.iter().take(MAX_SITES) {
        let mut share = format!("{:>4}", amount::percent(site.share * 100.0));
        for frame in site.frames.iter().take(MAX_FRAMES) {
            lines.push(format!("{share}  {}", printable::escaped(frame)));
            share = " ".repeat(share.len());
        }
    }
    lines
}

fn no_suspicion(leaks: &Leaks, account: &str, class: &str, palette: Palette) -> Line<'static> {
    let is_it = |one: &&Growing| one.account == account && one.class == class;
    let growing = leaks.growing.iter().chain(&leaks.acknowledged).find(is_it);
    if let Some(growing) = growing {
        let rate = amount::change(growing.growth_bytes_per_second);
        let text = format!("grows by {rate}/s: {}", why(&growing.why));
        return Line::styled(text, palette.warning());
    }
    match &leaks.undecided {
        Some(reason) => {
            let reason = printable::fitted(reason, MAX_REASON_COLUMNS);
            Line::raw(format!("no verdict about leaks yet: {reason}"))
        }
        None => Line::raw("not suspected to leak"),
    }
}

/// Ages by time beside sizes, and ages by collections below.
fn histograms(class: &Class, width: u16) -> Vec<String> {
    let is_wide = width >= WIDE;
    let columns = usize::from(if is_wide { width / 2 } else { width });
    let list = |title: &str, scale, of: &[Bin]| histogram(title, scale, of, columns);
    let ages = list("LIVE BY AGE", Scale::Seconds, &class.ages_seconds);
    let sizes = list("LIVE BY SIZE OF AN OBJECT", Scale::Bytes, &class.sizes);
    let survived = list(
        "LIVE BY COLLECTIONS SURVIVED",
        Scale::Collections,
        &class.ages_collections,
    );
    if ages.is_empty() && sizes.is_empty() && survived.is_empty() {
        return vec![
            "ages and sizes are known from the next collection of all memory on".to_owned(),
        ];
    }
    if !is_wide {
        return [ages, sizes, survived].concat();
    }
    let mut lines: Vec<String> = (0..ages.len().max(sizes.len()))
        .map(|at| {
            let left = ages.get(at).map_or("", String::as_str);
            let right = sizes.get(at).map_or("", String::as_str);
            format!("{}{right}", padded(left, columns))
        })
        .collect();
    lines.extend(survived);
    lines
}

fn histogram(title: &str, scale: Scale, of: &[Bin], columns: usize) -> Vec<String> {
    if of.is_empty() {
        return Vec::new();
    }
    let most = of.iter().map(|bin| bin.live_bytes).max().unwrap_or(0);
    let room = columns.saturating_sub(EDGE_COLUMNS + AMOUNT_COLUMNS + 10);
    let mut lines = vec![title.to_owned()];
    for edge in bins::edges([of]) {
        let to = if edge.is_some() { "to" } else { "  " };
        let bytes = bins::live_bytes(of, edge);
        lines.push(format!(
            "  {to} {:>EDGE_COLUMNS$} {:>AMOUNT_COLUMNS$}  {}",
            scale.edge(edge),
            amount::bytes(bytes),
            bins::bar(bytes, most, room)
        ));
    }
    lines
}
