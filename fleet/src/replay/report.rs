//! The result of a replay, as a table and as JSON.

use std::io::{self, Write};

use policy_config::format_bytes;
use serde_json::{Value, json};

use crate::history::History;
use heapwarden_terminal::clock::{format_duration, format_time};
use heapwarden_terminal::printable::{columns, fitted};

use super::trial::{Refused, Trial};

/// Widest cell of the table, in columns of a terminal.
const MAX_CELL_COLUMNS: usize = 40;

/// Most rows of the table; the JSON has them all.
const MAX_ROWS: usize = 200;

/// Most episodes of an account that the JSON lists, the first ones.
const MAX_EPISODES: usize = 1000;

/// A sentence, and a table of the accounts that would have been refused.
pub(super) fn table(trial: &Trial<'_>, history: &History, out: &mut dyn Write) -> io::Result<()> {
    let span = history.span;
    let start = span.start_seconds() - span.step_seconds() as i64;
    writeln!(
        out,
        "{}, {} to {}, in steps of {}:",
        fitted(&history.source, 2 * MAX_CELL_COLUMNS),
        format_time(start),
        format_time(span.end_seconds()),
        format_duration(span.step_seconds()),
    )?;
    let limited = trial.limited;
    if trial.refused.is_empty() {
        writeln!(
            out,
            "  nobody would have been refused, of {limited} with a limit."
        )?;
    } else {
        let count = trial.refused.len();
        writeln!(
            out,
            "  {count} of {limited} with a limit would have been refused.\n"
        )?;
        let header = ["JVM", "ACCOUNT", "LIMIT", "FIRST", "TIMES", "FOR", "PEAK"];
        let mut rows = vec![header.map(String::from)];
        let shown = trial.refused.iter().take(MAX_ROWS);
        rows.extend(shown.map(|refused| row(refused, history)));
        let widths: [usize; 7] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| columns(&row[column]));
            cells.max().unwrap_or_default()
        });
        for row in &rows {
            let mut line = String::from(" ");
            for (cell, width) in row.iter().zip(widths) {
                let padding = " ".repeat(width - columns(cell) + 1);
                line.push_str(&format!(" {cell}{padding}"));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        if let more @ 1.. = count.saturating_sub(MAX_ROWS) {
            writeln!(out, "  and {more} more")?;
        }
    }
    if limited == 0 {
        writeln!(out, "  No recorded account has a limit in this policy.")?;
    }
    Ok(())
}

fn row(refused: &Refused<'_>, history: &History) -> [String; 7] {
    let span = history.span;
    let (first, peak) = (first(refused), peak(refused));
    [
        fitted(&refused.jvm.name(), MAX_CELL_COLUMNS).into_owned(),
        fitted(&refused.account, MAX_CELL_COLUMNS).into_owned(),
        refused.limit.to_string(),
        format_time(span.time(first as u64)),
        refused.episodes.len().to_string(),
        format_duration(seconds(refused, span.step_seconds())),
        format_mebibytes(peak),
    ]
}

/// The whole result as JSON.
pub(super) fn json(trial: &Trial<'_>, history: &History, out: &mut dyn Write) -> io::Result<()> {
    let span = history.span;
    let step = span.step_seconds();
    let document = json!({
        "source": history.source,
        "start": format_time(span.start_seconds() - step as i64),
        "end": format_time(span.end_seconds()),
        "step_seconds": step,
        "limited": trial.limited,
        "unlimited": trial.unlimited,
        "notes": history.notes,
        "refused": trial.refused.iter().map(|refused| json!({
            "jvm": labels(refused),
            "account": refused.account,
            "limit": refused.limit.to_string(),
            "first": format_time(span.time(first(refused) as u64)),
            "seconds": seconds(refused, step),
            "peak_bytes": peak(refused) as u64,
            "episodes_omitted": refused.episodes.len().saturating_sub(MAX_EPISODES),
            "episodes": refused.episodes.iter().take(MAX_EPISODES).map(|episode| json!({
                "start": format_time(span.time(episode.first as u64)),
                "end": format_time(span.time(episode.last as u64)),
                "seconds": episode.steps as u64 * step,
                "peak_bytes": episode.peak_bytes as u64,
                "limit_bytes": episode.limit_bytes,
                "ended": episode.end.as_str(),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn labels(refused: &Refused<'_>) -> Value {
    let labels = refused.jvm.labels.iter().cloned();
    Value::Object(labels.map(|(label, value)| (label, value.into())).collect())
}

fn first(refused: &Refused<'_>) -> usize {
    refused.episodes.first().map_or(0, |episode| episode.first)
}

fn seconds(refused: &Refused<'_>, step_seconds: u64) -> u64 {
    let steps: usize = refused.episodes.iter().map(|episode| episode.steps).sum();
    steps as u64 * step_seconds
}

fn peak(refused: &Refused<'_>) -> f64 {
    let peaks = refused.episodes.iter().map(|episode| episode.peak_bytes);
    peaks.fold(0.0, f64::max)
}

/// A measured size, to the tenth of a mebibyte where it has one.
fn format_mebibytes(bytes: f64) -> String {
    const TENTH: f64 = 104_857.6;
    if bytes < TENTH {
        return format_bytes(bytes as u64);
    }
    format!("{:.1} MiB", bytes / (10.0 * TENTH))
}
