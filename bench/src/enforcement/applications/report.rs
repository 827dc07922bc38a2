//! The tables of applications of others.

use std::path::PathBuf;

use anyhow::Result;

use super::results::{Results, Run};
use crate::saved;
use crate::stats::{median, range};
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(super) fn text(results: &Results) -> String {
    let mut parts = vec![
        by(results, "By collector", "collector", |run| {
            run.collector.clone()
        })
        .text(),
        "Applications of others, loaded by two clients at about 10 MiB/s in all, with a limit of 96 MiB in a \
         heap of 1 GiB and a door. Beyond: what is held after a collection, the clients stopped at the first \
         request that was turned away, in percent of the limit beyond it. Granted: three standard errors, \
         which a verdict needs. Delay: from the load that passed the limit to that request; loaded meanwhile: \
         at the pace of the run. (A run can pass the limit later than the verdict's figures have it, so the \
         two need not sum up to what is beyond.) Errors: thrown before the door had shut."
            .to_owned(),
        by(results, "By JVM", "JVM", Run::jvm).text(),
        by(results, "By application", "application", |run| {
            run.application.clone()
        })
        .text(),
        each(results).text(),
    ];
    if !results.failed.is_empty() {
        parts.push(format!("Without a figure: {}.", results.failed.join("; ")));
    }
    parts.push(verdicts::text(&results.verdicts()));
    saved::joined(&parts)
}

/// In percent.
fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn seconds(run: &Run) -> Option<f64> {
    run.outcome.lag_seconds
}

/// Returns the bytes that were loaded in the delay, as a share of the limit; `None` if the limit was not passed.
fn loaded_meanwhile(run: &Run) -> Option<f64> {
    let outcome = &run.outcome;
    Some(seconds(run)? * outcome.bytes_per_second / outcome.limit_bytes as f64)
}

fn median_of(
    runs: &[&Run],
    figure: impl Fn(&Run) -> Option<f64>,
    show: fn(f64) -> String,
) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|run| figure(run)).collect();
    if values.is_empty() {
        return "-".to_owned();
    }
    show(median(&values))
}

fn by(results: &Results, title: &str, first: &str, key: fn(&Run) -> String) -> Table {
    let columns = [
        first,
        "runs",
        "beyond %, median",
        "range",
        "granted %",
        "delay s",
        "loaded meanwhile %",
        "MiB/s",
        "runs with errors",
    ];
    let mut table = Table::new(title, &columns);
    for (name, runs) in results.grouped(key) {
        let beyond: Vec<f64> = runs.iter().map(|run| run.beyond()).collect();
        let (low, high) = range(&beyond);
        let with_errors = runs.iter().filter(|run| run.outcome.refusals > 0);
        table.row(vec![
            name,
            runs.len().to_string(),
            percent(median(&beyond)),
            format!("{} to {}", percent(low), percent(high)),
            median_of(&runs, |run| Some(run.margin()), percent),
            median_of(&runs, seconds, |value| format!("{value:.1}")),
            median_of(&runs, loaded_meanwhile, percent),
            median_of(
                &runs,
                |run| Some(mib(run.outcome.bytes_per_second)),
                |value| format!("{value:.1}"),
            ),
            with_errors.count().to_string(),
        ]);
    }
    table
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn each(results: &Results) -> Table {
    let columns = [
        "application",
        "JVM",
        "held MiB",
        "beyond %",
        "granted %",
        "delay s",
        "MiB/s",
        "waits s",
        "errors",
    ];
    let mut table = Table::new("Each run", &columns);
    for run in &results.runs {
        let outcome = &run.outcome;
        table.row(vec![
            run.application.clone(),
            run.jvm(),
            format!("{:.1}", mib(outcome.held_bytes)),
            match (outcome.stopped, outcome.reached_limit()) {
                (true, _) => percent(run.beyond()),
                (false, true) => "never".to_owned(),
                (false, false) => "not reached".to_owned(),
            },
            percent(run.margin()),
            seconds(run).map_or_else(|| "-".to_owned(), |lag| format!("{lag:.1}")),
            format!("{:.1}", mib(outcome.bytes_per_second)),
            format!("{:.1}", outcome.waited_seconds),
            outcome.refusals.to_string(),
        ]);
    }
    table
}

fn preamble(results: &Results) -> String {
    let machine = &results.machine;
    let busy = match results.busy_processes {
        0 => "no processes of the benchmark's own that keep processors busy".to_owned(),
        count => format!("{count} processes that do nothing but keep processors busy"),
    };
    let share = match results.share {
        0 | 1 => "each application in every JVM".to_owned(),
        share => format!("each application in every {share}th JVM, others in each round"),
    };
    format!(
        "# Applications of others, past their limits: {}\n\n`cargo xtask bench enforcement --of applications \
         --save`, {} rounds, {share}; {busy}. {}.\n\n",
        machine.date,
        results.rounds,
        machine.told(),
    )
}

/// Writes the results to files of today; their paths. Runs beside busy processes have files of their own.
pub(super) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let text = preamble(results) + &text(results);
    let name = match results.busy_processes {
        0 => "enforcement-applications",
        _ => "enforcement-applications-busy",
    };
    let date = &results.machine.date;
    saved::save(name, date, text, results, &results.verdicts())
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn a_run_that_was_never_turned_away_is_told_of() {
        let mut results = results(&[0.04, 2.0]);
        results.runs[1].outcome.stopped = false;
        let text = text(&results);
        assert!(text.contains(" 4.0 |"), "{text}");
        assert!(text.contains(" never |"), "{text}");
        assert!(
            text.contains("- MISSED: every application that reaches"),
            "{text}"
        );
    }
}
