//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::cases::{DEPTH_OF_ACCOUNTS, INTERVAL_BYTES};
use super::memory::OBJECTS;
use super::results::{Pairs, Results};
use crate::saved;
use crate::stats::median;
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let parts = [
        depths(results).text(),
        "Warm: compiled code, stacks seen before. Cold: each stack once, with methods never seen \
         before, whose classes the bare calls look up as well. A ratio is the median of the \
         rounds' ratios of medians; its range is over the rounds."
            .to_owned(),
        accounts(results).text(),
        format!(
            "At {DEPTH_OF_ACCOUNTS} frames, warm. Package accounts: none owns a frame, the whole \
             stack is looked at. Services: the thread works for each in turn."
        ),
        memory(results).text(),
        format!(
            "{OBJECTS} tracked objects. The ledger is what the agent says of itself; resident is \
             the growth of the process, with the JVM's own tag map, which the bare agent shows \
             alone."
        ),
        verdicts::text(&results.verdicts()),
    ];
    saved::joined(&parts)
}

const TIMES: [&str; 6] = [
    "ours p50 ns",
    "bare p50 ns",
    "ratio",
    "ratio range",
    "ours p99 ns",
    "bare p99 ns",
];

fn times(pairs: &Pairs) -> [String; 6] {
    let ns = |values: &[f64]| format!("{:.0}", median(values));
    let (low, high) = pairs.ratio_range();
    [
        ns(&pairs.ours_p50_ns),
        ns(&pairs.bare_p50_ns),
        format!("{:.2}", pairs.ratio()),
        format!("{low:.2}-{high:.2}"),
        ns(&pairs.ours_p99_ns),
        ns(&pairs.bare_p99_ns),
    ]
}

fn with<const N: usize>(first: [String; N], pairs: &Pairs) -> Vec<String> {
    first.into_iter().chain(times(pairs)).collect()
}

fn depths(results: &Results) -> Table {
    let columns = [&["policy", "cache", "frames"], &TIMES[..]].concat();
    let mut table = Table::new("The callback by stack depth", &columns);
    for row in &results.depths {
        let first = [
            row.policy.to_owned(),
            row.cache.to_owned(),
            row.depth_frames.to_string(),
        ];
        table.row(with(first, &row.pairs));
    }
    table
}

fn accounts(results: &Results) -> Table {
    let columns = [&["of", "accounts"], &TIMES[..]].concat();
    let mut table = Table::new("The callback by number of accounts", &columns);
    let mut rows: Vec<_> = results.accounts.iter().collect();
    rows.sort_by_key(|row| (row.kind, row.accounts));
    for row in rows {
        let first = [row.kind.to_owned(), row.accounts.to_string()];
        table.row(with(first, &row.pairs));
    }
    table
}

fn memory(results: &Results) -> Table {
    let bytes = |value: f64| format!("{value:.1}");
    let none = || "-".to_owned();
    Table::of(
        "Native memory for each tracked sample",
        &results.memory,
        &[
            ("agent", &|row| row.agent.to_owned()),
            ("accounts", &|row| row.accounts.to_string()),
            ("ledger bytes", &|row| {
                row.ledger_bytes.map_or_else(none, bytes)
            }),
            ("resident bytes", &|row| bytes(row.resident_bytes)),
        ],
    )
}

fn preamble(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "# One sample: {}\n\n`cargo xtask bench micro --save`, {} rounds, sampling interval {} KiB. \
         JDK {}, {}.\n\n",
        machine.date,
        results.rounds,
        INTERVAL_BYTES >> 10,
        results.jdk,
        machine.told(),
    )
}

/// Writes the results to files of today; their paths.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let text = preamble(results) + &text(results);
    let date = &results.machine.date;
    saved::save("micro", date, text, results, &results.verdicts())
}
