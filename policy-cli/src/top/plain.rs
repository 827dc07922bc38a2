//! `top` without a terminal: one plain-text table for each interval.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::model::Model;
use super::poller::Pollers;
use crate::status::{heap_line, jvm_line, live_line, remarks};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Row, write_rows};

/// Most rows of one table.
const MAX_ROWS: usize = 1000;
/// Longest wait for a poll.
const TICK: Duration = Duration::from_millis(50);

/// Writes `iterations` tables, or without end; the first one once every JVM has been asked, the
/// others `interval` apart.
///
/// # Errors
/// Output that cannot be written, or a poller that failed.
pub(crate) fn run(
    model: &mut Model,
    pollers: &Pollers,
    interval: Duration,
    iterations: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut written = 0;
    let mut asked = vec![false; model.jvms.len()];
    let mut due = Instant::now();
    while iterations.is_none_or(|all| written < all) {
        if pollers.has_failed() {
            return Err(io::Error::other("a thread of this command failed"));
        }
        if let Some(poll) = pollers.next(TICK) {
            asked[poll.jvm] = true;
            model.poll(poll);
        }
        // Wait until every JVM was polled since the last table, so that each table is new.
        if Instant::now() >= due && asked.iter().all(|&one| one) {
            if written > 0 {
                writeln!(out)?;
            }
            write_table(model, out)?;
            out.flush()?;
            written += 1;
            asked.fill(false);
            due = Instant::now() + interval;
        }
    }
    Ok(())
}

fn write_table(model: &Model, out: &mut dyn Write) -> io::Result<()> {
    for jvm in &model.jvms {
        let address = &jvm.address;
        match (&jvm.error, &jvm.reading) {
            (Some(error), _) => {
                writeln!(out, "{address}: DOWN: {}", printable::escaped(error))?;
            }
            (None, Some(reading)) => {
                writeln!(out, "{address}: {}", heap_line(&reading.accounts))?;
                if let Some(line) = jvm_line(&reading.accounts.jvm) {
                    writeln!(out, "  {line}")?;
                }
                let since = model.now.saturating_sub(jvm.read_at);
                if let Some(line) = live_line(&reading.accounts.heap, since) {
                    writeln!(out, "  {line}")?;
                }
                for remark in remarks(&reading.accounts, reading.not_ready.as_deref()) {
                    writeln!(out, "  {remark}")?;
                }
            }
            (None, None) => {}
        }
    }
    let mut rows: Vec<Row<'_>> = model.rows();
    // Old numbers beside new ones would mislead the reader of a log.
    rows.retain(|row| !row.is_stale);
    let omitted = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    if !rows.is_empty() {
        write_rows(model.columns(), &rows, 2, out)?;
    }
    if omitted > 0 {
        writeln!(out, "  and {omitted} more accounts")?;
    }
    Ok(())
}
