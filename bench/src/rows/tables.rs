//! Each table of the report.

use super::aims::{at_most, most_exact};
use super::figures::{Comparison, Figures};
use super::published::Row;
use super::runs::{Run, Runs};
use super::settings::Setting;
use crate::bootstrap::{Estimate, plain, shares};
use crate::stats::median;
use crate::table::Table;

const MIB: f64 = 1024.0 * 1024.0;
const NONE: &str = "-";
/// The line that ends a table.
const OVER_ROWS: &str = "mean of rows";

/// The median of a figure over a row's runs with a setting.
fn typical(runs: &Runs, row: &str, setting: Setting, figure: impl Fn(&Run) -> f64) -> f64 {
    let of_row = runs.runs.iter();
    let of_row = of_row.filter(|run| run.row == row && run.setting == setting);
    median(&of_row.map(figure).collect::<Vec<_>>())
}

pub(crate) fn workloads(runs: &Runs, ours: &Comparison) -> Table {
    let columns = [
        "row",
        "s",
        "CPU s",
        "allocates MiB/s",
        "live MiB",
        "operations/s",
    ];
    let mut table = Table::new("The workloads, plain", &columns);
    for row in &ours.rows {
        let typical = |figure: fn(&Run) -> f64| typical(runs, &row.row, Setting::Plain, figure);
        let seconds = typical(|run| run.program.wall_ns as f64) / 1e9;
        table.row(vec![
            row.row.clone(),
            format!("{seconds:.2}"),
            format!("{:.2}", typical(|run| run.program.cpu_ns as f64) / 1e9),
            format!(
                "{:.0}",
                typical(|run| run.program.allocated_bytes as f64) / MIB / seconds
            ),
            format!("{:.1}", typical(|run| run.live_bytes as f64) / MIB),
            format!(
                "{:.0}",
                typical(|run| run.program.operations as f64) / seconds
            ),
        ]);
    }
    table
}

pub(crate) fn cost(ours: &Comparison) -> Table {
    let columns = [
        "row",
        "pairs",
        "time",
        "CPU time",
        "peak memory",
        "longest pause, ms",
    ];
    let mut table = Table::new("Heapwarden as it comes, against plain", &columns);
    for (name, figures) in lines(ours) {
        table.row(vec![
            name.to_owned(),
            figures.time.map_or(0, |time| time.pairs).to_string(),
            plain(figures.time, 3),
            plain(figures.cpu, 3),
            plain(figures.peak_memory, 3),
            plain(figures.longest_pause_ms, 1),
        ]);
    }
    table
}

/// The rows of a comparison, and their mean.
fn lines(of: &Comparison) -> impl Iterator<Item = (&str, &Figures)> {
    let rows = of.rows.iter().map(|row| (row.row.as_str(), &row.figures));
    rows.chain([(OVER_ROWS, &of.over_rows)])
}

pub(crate) fn memory(runs: &Runs, ours: &Comparison) -> Table {
    let columns = [
        "row",
        "live",
        "with",
        "live ratio",
        "after them",
        "with",
        "native",
        "with",
        "more native",
        "its own",
    ];
    let mut table = Table::new("Memory", &columns);
    for row in &ours.rows {
        let both = |figure: fn(&Run) -> u64| {
            [Setting::Plain, Setting::Heapwarden].map(|setting| {
                let bytes = typical(runs, &row.row, setting, |run| figure(run) as f64);
                format!("{:.1}", bytes / MIB)
            })
        };
        let own = typical(runs, &row.row, Setting::Heapwarden, |run| {
            run.agent.as_ref().map_or(0.0, |agent| agent.memory_bytes)
        });
        let mut cells = vec![row.row.clone()];
        cells.extend(both(|run| run.live_bytes));
        cells.push(plain(row.figures.live, 3));
        cells.extend(both(|run| run.memory_after_collection.resident_bytes));
        cells.extend(both(|run| run.memory.native_bytes));
        cells.push(plain(row.figures.native_bytes.map(in_mib), 1));
        cells.push(format!("{:.1}", own / MIB));
        table.row(cells);
    }
    table
}

fn in_mib(bytes: Estimate) -> Estimate {
    Estimate {
        value: bytes.value / MIB,
        low: bytes.low / MIB,
        high: bytes.high / MIB,
        pairs: bytes.pairs,
    }
}

pub(crate) fn pauses(runs: &Runs, ours: &Comparison) -> Table {
    let columns = [
        "row",
        "collections",
        "with",
        "pauses ms",
        "with",
        "more ms",
        "longest ms",
        "with",
    ];
    let mut table = Table::new("Pauses, plain and with Heapwarden", &columns);
    for row in &ours.rows {
        let both = |figure: fn(&Run) -> f64, decimals: usize| {
            [Setting::Plain, Setting::Heapwarden]
                .map(|setting| format!("{:.decimals$}", typical(runs, &row.row, setting, figure)))
        };
        let mut cells = vec![row.row.clone()];
        cells.extend(both(|run| run.collections as f64, 0));
        cells.extend(both(|run| run.pauses_ms, 1));
        cells.push(plain(row.figures.pauses_ms, 1));
        cells.extend(both(|run| run.longest_pause_ms, 1));
        table.row(cells);
    }
    table
}

/// One figure of several comparisons, side by side.
pub(crate) fn matrix(
    title: &str,
    of: &[&Comparison],
    figure: fn(&Figures) -> Option<Estimate>,
) -> Table {
    let heads: Vec<String> = of
        .iter()
        .map(|comparison| match comparison.to {
            Setting::Plain => comparison.of.to_string(),
            to => format!("{} to {to}", comparison.of),
        })
        .collect();
    let mut columns = vec!["row"];
    columns.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(title, &columns);
    let mut names: Vec<&str> = Vec::new();
    for row in of.iter().flat_map(|comparison| &comparison.rows) {
        if !names.contains(&row.row.as_str()) {
            names.push(&row.row);
        }
    }
    for name in names.into_iter().chain([OVER_ROWS]) {
        let cell = |comparison: &&Comparison| {
            let found = lines(comparison).find(|(row, _)| *row == name);
            plain(found.and_then(|(_, figures)| figure(figures)), 3)
        };
        let mut cells = vec![name.to_owned()];
        cells.extend(of.iter().map(cell));
        table.row(cells);
    }
    table
}

pub(crate) fn asgmemprof(exact: &Comparison) -> Table {
    let columns = [
        "row",
        "exact",
        "ASGMemProf",
        "a third of it",
        "aim",
        "dropped %",
    ];
    let mut table = Table::new("Every allocation sampled, beside ASGMemProf", &columns);
    for row in &exact.rows {
        let published = Row::named(&row.row).map_or(0.0, |row| row.asgmemprof_factor);
        let dropped = row.figures.dropped_share;
        let most = most_exact(&row.row);
        table.row(vec![
            row.row.clone(),
            plain(row.figures.time, 2),
            format!("{published:.2}"),
            format!("{most:.2}"),
            at_most(row.figures.time, most).word().to_owned(),
            dropped.map_or_else(
                || NONE.to_owned(),
                |share| format!("{:.1}", share.value * 100.0),
            ),
        ]);
    }
    table
}

pub(crate) fn reported(comparisons: &[&Comparison]) -> Table {
    let columns = ["setting", "row", "CPU time reported", "measured beyond it"];
    let mut table = Table::new(
        "CPU time that Heapwarden reports of itself, of plain's",
        &columns,
    );
    for comparison in comparisons {
        for (row, figures) in lines(comparison) {
            if comparison.of != Setting::Heapwarden && row != OVER_ROWS {
                continue;
            }
            table.row(vec![
                comparison.of.to_string(),
                row.to_owned(),
                shares(figures.reported_cpu),
                shares(figures.unreported_cpu),
            ]);
        }
    }
    table
}
