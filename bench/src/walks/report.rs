//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::results::{How, Results};
use crate::saved;
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let parts = [
        table(results).text(),
        "Gap: the longest time that a Java thread which sleeps 1 ms again and again was kept from running; nothing \
         is subtracted. Call: what JVM TI's call took in the agent, with the way to the safepoint. Fork: the system \
         call. Gap/predicted: 1 is right. In place/gap: the gap of the walk in place, in the same JVM and \
         with the same heap, over this one's. Forks of a JVM are numbered; before the first, the agent has learnt \
         nothing. Took: from the command's start to its end, beside a JVM that does nothing else."
            .to_owned(),
        verdicts::text(&results.verdicts()),
    ];
    parts.map(|part| part.trim_end().to_owned()).join("\n\n") + "\n"
}

fn table(results: &Results) -> Table {
    let columns = [
        "JDK",
        "collector",
        "pages",
        "held MB",
        "resident MB",
        "walk",
        "predicted ms",
        "gap ms",
        "call ms",
        "fork ms",
        "gap/predicted",
        "in place/gap",
        "references, million",
        "took s",
    ];
    let mut table = Table::new("How long the JVM stands still for a walk", &columns);
    for row in &results.rows {
        let of_fork = |text: String| {
            if row.is_forked() {
                text
            } else {
                "-".to_owned()
            }
        };
        let ratio = results.ratio(row).unwrap_or(0.0);
        table.row(vec![
            row.case.jdk.to_string(),
            row.case.collector.to_owned(),
            row.case.pages().to_owned(),
            row.case.heap_mb.to_string(),
            format!("{:.0}", row.resident_mb),
            match row.how {
                How::Forked { number } => format!("fork {}", number + 1),
                How::InPlace => "in place".to_owned(),
            },
            of_fork(format!("{:.1}", row.predicted_ms)),
            format!("{:.1}", row.gap_ms),
            format!("{:.1}", row.pause_ms),
            of_fork(format!("{:.1}", row.fork_ms)),
            of_fork(format!("{:.2}", row.factor())),
            of_fork(format!("{ratio:.0}")),
            format!("{:.1}", row.references as f64 / 1e6),
            format!("{:.1}", row.took_s),
        ]);
    }
    table
}

/// Writes both files; their paths within the repository.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let machine = &results.machine;
    let markdown = format!(
        "# Walks of the heap: {}\n\n`cargo xtask bench walks --save`. {} cores of {}, load average before {:.1}, \
         commit {}.\n\n{}",
        machine.date,
        machine.cores,
        machine.cpu,
        machine.load_average_before,
        machine.commit,
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
