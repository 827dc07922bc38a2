//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::cases::{CHURN_PERCENT, LIMIT_BYTES};
use super::results::{CostRow, Results};
use super::rig::KINDS;
use crate::saved;
use crate::stats::{median, range};
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let parts = [
        overshoot(results).text(),
        format!(
            "A service that leaks as fast as it can, with a limit of {} MiB in a heap of 2 GiB. \
             What it truly holds beyond its limit and three standard errors, in percent of the \
             limit: when the first of its threads is refused, and when each has been. Below 0 it \
             was refused within the margin.",
            LIMIT_BYTES >> 20
        ),
        times(results).text(),
        "Lag: from the array that crosses the limit to the first refusal; beside it the same in \
         percent of the time that filling the limit took. Recovery: from letting go of everything \
         until the account is open again, in a JVM that then does nothing. Times depend on the \
         machine and on what else it does; the shares do less."
            .to_owned(),
        bounce(results).text(),
        "A service that leaks, is refused, lets go of a fifth and leaks again. Evidence: wall time \
         in collections that the agent asked for, as it says itself; the budget is 5 % of it, of \
         which a minute's worth may be spent ahead, so that a short run may show more. \
         Collections: young, concurrent, full, and those that only brought refunds. Pauses: of \
         those collections, by the JVM's own log; a young collection that the agent brought about \
         by allocating can't be told from others there."
            .to_owned(),
        churn(results).text(),
        format!(
            "A service that holds {CHURN_PERCENT} % of its limit and makes garbage at full speed. \
             Its speed is that under the limit against that without one, in JVMs that take turns."
        ),
        verdicts::text(&results.verdicts()),
    ];
    saved::joined(&parts)
}

/// `median` and `low to high`, each value multiplied.
fn spread(values: &[f64], factor: f64, digits: usize) -> [String; 2] {
    let (low, high) = range(values);
    [
        format!("{:.digits$}", median(values) * factor),
        format!("{:.digits$} to {:.digits$}", low * factor, high * factor),
    ]
}

fn overshoot(results: &Results) -> Table {
    let columns = [
        "JVM",
        "threads",
        "array bytes",
        "runs",
        "first refused %",
        "range",
        "each refused %",
        "range",
    ];
    let mut table = Table::new("How far beyond its limit", &columns);
    for vm in &results.vms {
        for row in &vm.leaks {
            let mut cells = vec![
                vm.vm.clone(),
                row.threads.to_string(),
                row.array_bytes.to_string(),
                row.first.len().to_string(),
            ];
            cells.extend(spread(&row.first, 100.0, 1));
            cells.extend(spread(&row.last, 100.0, 1));
            table.row(cells);
        }
        let mut cells = vec![vm.vm.clone(), "all".to_owned(), "all".to_owned()];
        let first = vm.of_leaks(|row| &row.first);
        cells.push(first.len().to_string());
        cells.extend(spread(&first, 100.0, 1));
        cells.extend(spread(&vm.of_leaks(|row| &row.last), 100.0, 1));
        table.row(cells);
    }
    table
}

fn times(results: &Results) -> Table {
    let columns = [
        "JVM",
        "lag ms",
        "range",
        "of filling %",
        "range",
        "recovery s",
        "range",
    ];
    let mut table = Table::new(
        "How long until the first refusal, and until the end",
        &columns,
    );
    for vm in &results.vms {
        let lag = vm.of_leaks(|row| &row.lag_ms);
        let fill = vm.of_leaks(|row| &row.fill_ms);
        let shares: Vec<f64> = lag
            .iter()
            .zip(&fill)
            .map(|(lag, fill)| lag / fill)
            .collect();
        let mut cells = vec![vm.vm.clone()];
        cells.extend(spread(&lag, 1.0, 0));
        cells.extend(spread(&shares, 100.0, 0));
        cells.extend(spread(&vm.recovery_ms, 1e-3, 1));
        table.row(cells);
    }
    table
}

fn pauses(row: &CostRow) -> [String; 4] {
    let ms = |value: f64| {
        if row.pauses_ms.is_empty() {
            "-".to_owned()
        } else {
            format!("{value:.1}")
        }
    };
    [
        row.pauses_ms.len().to_string(),
        ms(median(&row.pauses_ms)),
        ms(row.longest_pause_ms()),
        format!("{:.2}", row.pause_share() * 100.0),
    ]
}

const PAUSES: [&str; 4] = ["pauses", "median ms", "longest ms", "of time %"];

fn bounce(results: &Results) -> Table {
    let kinds = format!("{} a minute", KINDS.join("/"));
    let mut columns = vec!["JVM", "evidence, of time %", "range", "of budget %", &kinds];
    columns.extend(PAUSES);
    columns.push("refusals a second");
    let mut table = Table::new("What it costs that a service lives at its limit", &columns);
    for vm in &results.vms {
        let row = &vm.bounce;
        let mut cells = vec![vm.vm.clone()];
        cells.extend(spread(&row.evidence_shares(), 100.0, 1));
        cells.push(format!("{:.0}", median(&row.budget_shares()) * 100.0));
        let collections: Vec<String> = (0..KINDS.len())
            .map(|kind| format!("{:.0}", row.collections_a_minute(kind)))
            .collect();
        cells.push(collections.join("/"));
        cells.extend(pauses(row));
        let refusals: f64 = row.refusals.iter().sum();
        cells.push(format!("{:.0}", refusals / row.seconds.iter().sum::<f64>()));
        table.row(cells);
    }
    table
}

fn churn(results: &Results) -> Table {
    let mut columns = vec![
        "JVM",
        "speed against no limit",
        "range",
        "evidence, of time %",
        "range",
    ];
    columns.extend(PAUSES);
    columns.push("refusals");
    let mut table = Table::new("What it costs a service within its limit", &columns);
    for vm in &results.vms {
        let mut cells = vec![vm.vm.clone()];
        cells.extend(spread(&vm.churn_ratio, 1.0, 2));
        cells.extend(spread(&vm.churn.evidence_shares(), 100.0, 1));
        cells.extend(pauses(&vm.churn));
        cells.push(format!("{:.0}", vm.churn.refusals.iter().sum::<f64>()));
        table.row(cells);
    }
    table
}

fn preamble(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "# Refusals: {}\n\n`cargo xtask bench enforcement --save`, {} rounds. JDK {}; {}. Absolute times are the machine's as much as \
         the agent's.\n\n",
        machine.date,
        results.rounds,
        results.jdks.join(" and "),
        machine.told(),
    )
}

/// Writes the results to files of today; their paths.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let text = preamble(results) + &text(results);
    let date = &results.machine.date;
    saved::save("enforcement", date, text, results, &results.verdicts())
}
