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
    parts.map(|part| part.trim_end().to_owned()).join("\n\n") + "\n"
}

fn scopes(results: &Results) -> Table {
    let columns = [
        "JDK",
        "agent",
        "operation",
        "ns",
        "ratio",
        "ratio range",
        "bare ratio",
        "bytes",
    ];
    let mut table = Table::new("Scopes", &columns);
    for row in &results.scopes {
        let (low, high) = range(&row.ratios);
        table.row(vec![
            row.jdk.clone(),
            agent(row).to_owned(),
            row.benchmark.clone(),
            format!("{:.1}", median(&row.ns)),
            format!("{:.2}", row.ratio()),
            format!("{low:.2}-{high:.2}"),
            format!("{:.2}", row.bare_ratio()),
            format!("{:.1}", row.most_allocated_bytes()),
        ]);
    }
    table
}

fn agent(row: &Row) -> &'static str {
    match row.setting {
        Setting::Absent => "no",
        Setting::Sampled | Setting::Exact => "yes",
    }
}

fn allocations(results: &Results) -> Table {
    let columns = [
        "JDK",
        "sampling",
        "scope",
        "ns",
        "range",
        "callback p50 ns",
        "range",
        "callback p99 ns",
    ];
    let mut table = Table::new("Allocations", &columns);
    for row in &results.allocations {
        let (low, high) = range(&row.ns);
        let (p50_low, p50_high) = range(&row.callback_p50_ns);
        let of_agent = |text: String| {
            let known = !row.callback_p50_ns.is_empty();
            if known { text } else { "-".to_owned() }
        };
        table.row(vec![
            row.jdk.clone(),
            row.setting.name().to_owned(),
            row.benchmark.clone(),
            format!("{:.0}", median(&row.ns)),
            format!("{low:.0}-{high:.0}"),
            of_agent(format!("{:.0}", median(&row.callback_p50_ns))),
            of_agent(format!("{p50_low:.0}-{p50_high:.0}")),
            of_agent(format!("{:.0}", median(&row.callback_p99_ns))),
        ]);
    }
    table
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
         iterations of {} ms. {} cores of {}, load average before {:.1}, commit {}.{noise}\n\n",
        machine.date,
        results.rounds,
        results.iteration_millis,
        machine.cores,
        machine.cpu,
        machine.load_average_before,
        machine.commit,
    )
}

/// Writes the results to files of today; their paths.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let text = preamble(results) + &text(results);
    let date = &results.machine.date;
    saved::save("api", date, text, results, &results.verdicts())
}
