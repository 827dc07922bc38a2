//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::results::{Results, Row};
use super::setting::Setting;
use crate::saved;
use crate::stats::{median, range};
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let parts = [
        scopes(results).text(),
        "Mean time of one operation, median of the rounds, and the bytes that it allocates, the most \
         of the rounds. The ratio is to threadLocalSetAndRemove of the same round (which makes the \
         thread's entry anew each time), its range over the rounds; the bare ratio is to \
         threadLocalSetTwice, which sets a value and then null and leaves the entry. Around work: a \
         method that is not inlined; JDK 17 compiles the handler that closes the scope when the work \
         throws, so the scope's object of 24 bytes is made, where JDK 25 leaves it out; nestedTwo \
         likewise. Without the agent names are checked, nothing more. requestAtOpenDoor is what the agent \
         inserts into a container, while no account is shut; requestWhileAnotherDoorIsShut is what a \
         request for a service that is not shut pays meanwhile, but for the container's own getters."
            .to_owned(),
        allocations(results).text(),
        "An array of 1 KiB and, with `exact`, a sample each; with `64KiB` a sample in 64 of them. \
         Entered: the thread is in a scope, which the agent reads at each sample; none: no scope was \
         ever entered in this JVM. The callback is timed by the agent, in buckets of 9 %."
            .to_owned(),
        verdicts::text(&results.verdicts()),
    ];
    saved::joined(&parts)
}

fn scopes(results: &Results) -> Table {
    let ratios = |row: &Row| {
        let (low, high) = range(&row.ratios);
        format!("{low:.2}-{high:.2}")
    };
    Table::of(
        "Scopes",
        &results.scopes,
        &[
            ("JDK", &|row| row.jdk.clone()),
            ("agent", &|row| agent(row).to_owned()),
            ("operation", &|row| row.benchmark.clone()),
            ("ns", &|row| format!("{:.1}", median(&row.ns))),
            ("ratio", &|row| format!("{:.2}", row.ratio())),
            ("ratio range", &ratios),
            ("bare ratio", &|row| format!("{:.2}", row.bare_ratio())),
            ("bytes", &|row| format!("{:.1}", row.most_allocated_bytes())),
        ],
    )
}

fn agent(row: &Row) -> &'static str {
    match row.setting {
        Setting::Absent => "no",
        Setting::Sampled | Setting::Exact => "yes",
    }
}

fn allocations(results: &Results) -> Table {
    let nanos = |values: &[f64]| format!("{:.0}", median(values));
    let spread = |values: &[f64]| {
        let (low, high) = range(values);
        format!("{low:.0}-{high:.0}")
    };
    let of_agent = |row: &Row, text: String| match row.callback_p50_ns.is_empty() {
        true => "-".to_owned(),
        false => text,
    };
    Table::of(
        "Allocations",
        &results.allocations,
        &[
            ("JDK", &|row| row.jdk.clone()),
            ("sampling", &|row| row.setting.name().to_owned()),
            ("scope", &|row| row.benchmark.clone()),
            ("ns", &|row| nanos(&row.ns)),
            ("range", &|row| spread(&row.ns)),
            ("callback p50 ns", &|row| {
                of_agent(row, nanos(&row.callback_p50_ns))
            }),
            ("range", &|row| of_agent(row, spread(&row.callback_p50_ns))),
            ("callback p99 ns", &|row| {
                of_agent(row, nanos(&row.callback_p99_ns))
            }),
        ],
    )
}

fn preamble(results: &Results) -> String {
    let machine = &results.machine;
    let noise = if machine.load_average_before > 1.0 {
        " The machine had other work to do: ratios within a round say more than times."
    } else {
        ""
    };
    format!(
        "# The Java API: {}\n\n`cargo xtask bench api --save`, {} rounds of a fork each, 4 + 5 \
         iterations of {} ms. {}.{noise}\n\n",
        machine.date,
        results.rounds,
        results.iteration_millis,
        machine.told(),
    )
}

/// Writes the results to files of today; their paths.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let text = preamble(results) + &text(results);
    let date = &results.machine.date;
    saved::save("api", date, text, results, &results.verdicts())
}
