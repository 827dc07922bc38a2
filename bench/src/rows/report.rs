//! The tables, for the terminal and for `bench/results`.

use super::aims::{at_most, most_exact};
use super::bootstrap::Estimate;
use super::figures::{Comparison, Figures};
use super::published::Row;
use super::runs::{Run, Runs};
use super::settings::Setting;
use crate::stats::median;
use crate::table::Table;
use crate::verdicts::{self, Verdict};

const MIB: f64 = 1024.0 * 1024.0;
const NONE: &str = "-";
/// The line that ends a table.
const OVER_ROWS: &str = "mean of rows";

/// An estimate with its interval, with so many decimals.
pub(crate) fn plain(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or_else(
        || NONE.to_owned(),
        |Estimate {
             value, low, high, ..
         }| { format!("{value:.decimals$} ({low:.decimals$} to {high:.decimals$})") },
    )
}

/// The same of a share, in percent.
pub(crate) fn shares(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(
        || NONE.to_owned(),
        |Estimate {
             value, low, high, ..
         }| {
            let percent = |share: f64| format!("{:.2}", share * 100.0);
            format!(
                "{} % ({} to {})",
                percent(value),
                percent(low),
                percent(high)
            )
        },
    )
}

/// All tables and verdicts, as Markdown.
pub(crate) fn text(runs: &Runs, verdicts: &[Verdict]) -> String {
    let settings = settings(runs);
    let to_plain: Vec<Comparison> = settings
        .iter()
        .filter_map(|setting| Comparison::new(runs, *setting, Setting::Plain))
        .collect();
    let mut parts = Vec::new();
    if let Some(ours) = to_plain.iter().find(|c| c.of == Setting::Heapwarden) {
        parts.push(workloads(runs, ours).text());
        parts.push(cost(ours).text());
        parts.push(EXPLAINED.to_owned());
        parts.push(memory(runs, ours).text());
        parts.push(MEMORY_EXPLAINED.to_owned());
        parts.push(pauses(runs, ours).text());
    }
    if to_plain.len() > 1 {
        let matrix = |title: &str, figure| matrix(title, &to_plain, figure).text();
        parts.push(matrix("Time against plain", |figures| figures.time));
        parts.push(matrix("CPU time against plain", |figures| figures.cpu));
        parts.push(matrix("Peak memory against plain", |figures| {
            figures.peak_memory
        }));
    }
    let rivals: Vec<Comparison> = RIVALS
        .iter()
        .filter_map(|(of, to)| Comparison::new(runs, *of, *to))
        .collect();
    if !rivals.is_empty() {
        parts.push(
            matrix("Time against what one would take instead", &rivals, |f| {
                f.time
            })
            .text(),
        );
        parts.push(
            "Heapwarden samples once in 64 KiB, async-profiler once in 512 KiB; 512KiB is Heapwarden \
             at async-profiler's interval."
                .to_owned(),
        );
    }
    if let Some(exact) = to_plain.iter().find(|c| c.of == Setting::Exact) {
        parts.push(asgmemprof(exact).text());
    }
    let reporting: Vec<&Comparison> = to_plain.iter().filter(|c| c.of.is_ours()).collect();
    if !reporting.is_empty() {
        parts.push(reported(&reporting).text());
    }
    parts.extend(failures(runs));
    parts.push(verdicts::text(verdicts));
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

const EXPLAINED: &str = "Ratios of the timed part's wall time, the process's CPU time and the most that was \
    resident; of the longest pause the difference in ms. Geometric means over pairs (differences: means) \
    with a bootstrap interval of 95 %; the last line is the mean of the rows' means.";

const MEMORY_EXPLAINED: &str = "Medians in MiB, with Heapwarden after plain. Live: used by the heap after two full \
    collections; after them: resident then. Native: anonymous and not the Java heap, at the end of the timed \
    part; its own: what the agent says of itself.";

/// What is compared with each other and not with plain.
const RIVALS: [(Setting, Setting); 3] = [
    (Setting::Heapwarden, Setting::Jfr),
    (Setting::Heapwarden, Setting::AsyncProfiler),
    (Setting::Interval512, Setting::AsyncProfiler),
];

/// Those that were measured, without plain.
fn settings(runs: &Runs) -> Vec<Setting> {
    let mut settings: Vec<Setting> = runs.runs.iter().map(|run| run.setting).collect();
    settings.sort_unstable();
    settings.dedup();
    settings.retain(|setting| *setting != Setting::Plain);
    settings
}

/// The median of a figure over a row's runs with a setting.
fn typical(runs: &Runs, row: &str, setting: Setting, figure: impl Fn(&Run) -> f64) -> f64 {
    let of_row = runs.runs.iter();
    let of_row = of_row.filter(|run| run.row == row && run.setting == setting);
    median(&of_row.map(figure).collect::<Vec<_>>())
}

fn workloads(runs: &Runs, ours: &Comparison) -> Table {
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

fn cost(ours: &Comparison) -> Table {
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

fn memory(runs: &Runs, ours: &Comparison) -> Table {
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

fn pauses(runs: &Runs, ours: &Comparison) -> Table {
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
fn matrix(title: &str, of: &[Comparison], figure: fn(&Figures) -> Option<Estimate>) -> Table {
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
        let cell = |comparison: &Comparison| {
            let found = lines(comparison).find(|(row, _)| *row == name);
            plain(found.and_then(|(_, figures)| figure(figures)), 3)
        };
        let mut cells = vec![name.to_owned()];
        cells.extend(of.iter().map(cell));
        table.row(cells);
    }
    table
}

fn asgmemprof(exact: &Comparison) -> Table {
    let columns = ["row", "exact", "ASGMemProf", "a third of it", "aim"];
    let mut table = Table::new("Every allocation sampled, beside ASGMemProf", &columns);
    for row in &exact.rows {
        let published = Row::named(&row.row).map_or(0.0, |row| row.asgmemprof_factor);
        let most = most_exact(&row.row);
        table.row(vec![
            row.row.clone(),
            plain(row.figures.time, 2),
            format!("{published:.2}"),
            format!("{most:.2}"),
            at_most(row.figures.time, most).word().to_owned(),
        ]);
    }
    table
}

fn reported(comparisons: &[&Comparison]) -> Table {
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

/// The runs that came to no end, if any.
fn failures(runs: &Runs) -> Option<String> {
    if runs.failures.is_empty() {
        return None;
    }
    let mut text = "### Failed\n\n".to_owned();
    for failure in &runs.failures {
        let first = failure.error.lines().next().unwrap_or_default();
        let (row, setting, round) = (&failure.row, failure.setting, failure.pair + 1);
        text.push_str(&format!("- {row} with {setting}, round {round}: {first}\n"));
    }
    Some(text)
}

/// What a reader must know before the tables.
pub(crate) fn preamble(runs: &Runs, pairs: u32) -> String {
    let machine = &runs.machine;
    let noise = if machine.load_average_before > 1.0 {
        " The machine had other work to do: intervals are wide, and times are not its best."
    } else {
        ""
    };
    format!(
        "# What it costs: {}\n\n`cargo xtask bench rows --save`, {pairs} pairs, each run a JVM of its own, in turns. \
         JDK {}, {}, `{}`; {} cores of {}, load average before {:.1}, commit {}.{noise}\n\n",
        machine.date,
        runs.jdk,
        runs.collector,
        runs.flags.join(" "),
        machine.cores,
        machine.cpu,
        machine.load_average_before,
        machine.commit,
    )
}

#[cfg(test)]
mod tests {
    use super::super::aims;
    use super::super::runs::Failure;
    use super::super::runs::tests::{run, runs};
    use super::*;

    #[test]
    fn every_table_has_what_was_measured() {
        let mut all = runs(Vec::new());
        for pair in 0..6 {
            for (setting, ns) in [
                (Setting::Plain, 1_000_000_000),
                (Setting::Heapwarden, 1_010_000_000),
                (Setting::Exact, 2_000_000_000),
                (Setting::AsyncProfiler, 1_020_000_000),
            ] {
                all.runs.push(run("fop", setting, pair, ns));
            }
        }
        all.failures.push(Failure {
            row: "pmd".to_owned(),
            setting: Setting::Exact,
            pair: 2,
            error: "the JVM failed\nits errors: many".to_owned(),
        });
        let text = text(&all, &aims::verdicts(&all));
        assert!(text.contains("1.010 (1.010 to 1.010)"), "{text}");
        assert!(
            text.contains("| 2.00 (2.00 to 2.00) |       6.31 |          2.10 | met |"),
            "{text}"
        );
        assert!(text.contains("heapwarden to async-profiler"), "{text}");
        assert!(
            text.contains("- pmd with exact, round 3: the JVM failed\n"),
            "{text}"
        );
        assert!(text.contains("0.990 (0.990 to 0.990)"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let all = runs(vec![run("fop", Setting::Plain, 0, 1)]);
        let text = text(&all, &aims::verdicts(&all));
        assert_eq!(text, "### Aims\n");
    }
}
