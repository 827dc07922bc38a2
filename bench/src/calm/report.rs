//! The tables, for the terminal and for `bench/results`.

use std::path::PathBuf;

use anyhow::Result;

use super::cases::{HEAP_MIB, LIMIT_MIB, Variant};
use super::results::{Cell, Figures, Results, mean_text, ratio_text};
use crate::saved;
use crate::stats::median;
use crate::table::Table;
use crate::verdicts;

/// All tables and verdicts, as Markdown.
pub(crate) fn text(results: &Results) -> String {
    let mut parts = vec![
        throughput(results).text(),
        "Operations: of two threads, each of 6 KiB of garbage; without limits, the median. Ratios: geometric means over \
         the rounds with a bootstrap interval of 95 %; by a reload, a round is three turns of one JVM, else three JVMs. \
         Slowest: the slowest second of the enforced ones, against their mean."
            .to_owned(),
        agent(results).text(),
        "Held: by the program's own count, in percent of the limit; beside it what the agent calls live at the end. Wait, \
         refusals (errors and requests turned away) and errors (operations that one ended): all rounds together, from \
         the JVM's start, or the end of the turn before. Not open: looks at the account, two a second, that found it suspect or over. State: at the \
         ends. Agent's CPU: in percent of the process's CPU time while operations are counted."
            .to_owned(),
    ];
    if !results.failures.is_empty() {
        let lines = results.failures.iter().map(|line| format!("- {line}\n"));
        parts.push(format!("### Failed\n\n{}", lines.collect::<String>()));
    }
    parts.push(verdicts::text(&results.verdicts()));
    saved::joined(&parts)
}

fn throughput(results: &Results) -> Table {
    let columns = [
        "JVM",
        "share %",
        "limit given",
        "operations/s",
        "observe/none",
        "enforce/observe",
        "slowest",
    ];
    let mut table = Table::new("Throughput below the limit", &columns);
    for (cell, given) in results.rows() {
        let of = |variant, figure: fn(&Figures) -> f64| {
            median(&cell.of(variant).map(figure).collect::<Vec<_>>())
        };
        let [none, _, enforce] = Variant::all(given);
        let slowest = of(enforce, |run| {
            run.slowest_per_second / run.operations_per_second
        });
        table.row(vec![
            cell.vm.clone(),
            cell.share.to_string(),
            given.name().to_owned(),
            format!("{:.0}", of(none, |run| run.operations_per_second)),
            mean_text(cell.observed(given)),
            mean_text(cell.enforced(given)),
            format!("{slowest:.2}"),
        ]);
    }
    table.row(vec![
        "mean of rows".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        ratio_text(results.over_rows(Cell::observed)),
        ratio_text(results.over_rows(Cell::enforced)),
        String::new(),
    ]);
    table
}

fn agent(results: &Results) -> Table {
    let columns = [
        "JVM",
        "share %",
        "variant",
        "held %",
        "live %",
        "wait s",
        "refusals",
        "errors",
        "not open %",
        "state",
        "duress",
        "agent's CPU %",
    ];
    let mut table = Table::new("What the agent says", &columns);
    for cell in &results.cells {
        for variant in results.given.iter().copied().flat_map(Variant::all) {
            let runs: Vec<&Figures> = cell.of(variant).collect();
            if runs.is_empty() {
                continue;
            }
            let list = |figure: fn(&Figures) -> f64| -> Vec<f64> {
                runs.iter().map(|run| figure(run)).collect()
            };
            let percent = |figure| median(&list(figure)) * 100.0;
            let sum = |figure| list(figure).iter().sum::<f64>();
            let mut states: Vec<&str> = runs.iter().map(|run| run.state.as_str()).collect();
            states.sort_unstable();
            states.dedup();
            let duress = match runs.iter().filter_map(|run| run.duress).max() {
                None => "-",
                Some(true) => "yes",
                Some(false) => "no",
            };
            table.row(vec![
                cell.vm.clone(),
                cell.share.to_string(),
                variant.to_string(),
                format!("{:.2}", percent(|run| run.held_share)),
                format!("{:.1}", percent(|run| run.live_share)),
                format!("{:.3}", sum(|run| run.wait_seconds)),
                format!("{:.0}", sum(|run| run.refusals)),
                format!("{:.0}", sum(|run| run.errors)),
                format!("{:.0}", percent(|run| run.not_open_share)),
                states.join(", "),
                duress.to_owned(),
                format!("{:.2}", percent(|run| run.agent_cpu_share)),
            ]);
        }
    }
    table
}

/// Writes both files; their paths within the repository.
pub(crate) fn save(results: &Results) -> Result<[PathBuf; 2]> {
    let machine = &results.machine;
    let markdown = format!(
        "# Calm below the limit: {}\n\n`cargo xtask bench calm --save`, {} rounds, {} s of each counted. A service with \
         a limit of {LIMIT_MIB} MiB in a heap of {HEAP_MIB} MiB holds a share of it, in arrays of 16 bytes to 64 KiB, and \
         makes garbage at full speed. JDKs {}; {}.\n\n{}",
        machine.date,
        results.rounds,
        results.seconds,
        results.jdks.join(", "),
        machine.told(),
        text(results)
    );
    let verdicts = results.verdicts();
    saved::save("calm", &machine.date, markdown, results, &verdicts)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn every_ratio_stands_beside_what_the_agent_says() {
        let mut results = results(0.5, 0.995);
        results.cells[0].runs[2].figures.state = "suspect".to_owned();
        results.cells[0].runs[2].figures.wait_seconds = 3.0;
        results.failures.push("it died".to_owned());
        let text = text(&results);
        let throughput = "| JDK 25 G1    |      95 | at the start |          417 | 0.995 (0.995 to 0.995) | 0.500 (0.500 to 0.500) |    0.90 |";
        assert!(text.contains(throughput), "{text}");
        assert!(
            text.contains("| enforce |  95.00 |   94.0 |  3.000 |"),
            "{text}"
        );
        assert!(text.contains("open, suspect"), "{text}");
        assert!(text.contains("### Failed\n\n- it died\n"), "{text}");
        assert!(
            text.contains("- MISSED: enforce has at least 0.98"),
            "{text}"
        );
    }
}
