//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::results::{How, Results, Row};
use crate::saved;
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let parts = [
        table(results).text(),
        "Gap: the longest time that a Java thread which sleeps 1 ms again and again was kept from running; nothing \
         is subtracted. Idle gap: the same in 1.5 s before the walk, in which nothing happened: what the machine's \
         other work does. At most: the prediction if all other processes that want the processors have their turn. Call: what JVM TI's call took in the agent, with the way to the safepoint. Fork: the system \
         call. Gap/predicted: 1 is right. In place/gap: the gap of the walk in place, in the same JVM and \
         with the same heap, over this one's. Forks of a JVM are numbered; before the first, the agent has learnt \
         nothing. Took: from the command's start to its end, beside a JVM that does nothing else."
            .to_owned(),
        verdicts::text(&results.verdicts()),
    ];
    saved::joined(&parts)
}

fn table(results: &Results) -> Table {
    let of_fork = |row: &Row, text: String| match row.is_forked() {
        true => text,
        false => "-".to_owned(),
    };
    let ratio = |row: &Row| results.ratio(row).unwrap_or(0.0);
    Table::of(
        "How long the JVM stands still for a walk",
        &results.rows,
        &[
            ("JDK", &|row| row.case.jdk.to_string()),
            ("collector", &|row| row.case.collector.to_owned()),
            ("pages", &|row| row.case.pages().to_owned()),
            ("held MB", &|row| row.case.heap_mb.to_string()),
            ("resident MB", &|row| format!("{:.0}", row.resident_mb)),
            ("walk", &|row| match row.how {
                How::Forked { number } => format!("fork {}", number + 1),
                How::InPlace => "in place".to_owned(),
            }),
            ("predicted ms", &|row| {
                of_fork(row, format!("{:.1}", row.predicted_ms))
            }),
            ("at most", &|row| {
                of_fork(row, format!("{:.1}", row.most_predicted_ms))
            }),
            ("gap ms", &|row| format!("{:.1}", row.gap_ms)),
            ("idle gap", &|row| format!("{:.1}", row.idle_gap_ms)),
            ("call ms", &|row| format!("{:.1}", row.pause_ms)),
            ("fork ms", &|row| {
                of_fork(row, format!("{:.1}", row.fork_ms))
            }),
            ("gap/predicted", &|row| {
                of_fork(row, format!("{:.2}", row.factor()))
            }),
            ("in place/gap", &|row| {
                of_fork(row, format!("{:.0}", ratio(row)))
            }),
            ("references, million", &|row| {
                format!("{:.1}", row.references as f64 / 1e6)
            }),
            ("took s", &|row| format!("{:.1}", row.took_s)),
        ],
    )
}

/// Writes both files; their paths within the repository.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let machine = &results.machine;
    let markdown = format!(
        "# Walks of the heap: {}\n\n`cargo xtask bench walks --save`. {}.\n\n{}",
        machine.date,
        machine.told(),
        text(results)
    );
    saved::save(
        "walks",
        &machine.date,
        markdown,
        results,
        &results.verdicts(),
    )
}
