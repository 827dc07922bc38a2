//! The results as text, and as files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::chart::Picture;
use super::figures::{Cost, Figures};
use super::numbers::{count, interval, percent_more};
use super::plan::Curve;
use super::runs::Runs;
use super::{draw, pictures};
use crate::bootstrap::Estimate;
use crate::build;
use crate::saved;
use crate::table::Table;

/// The content of the saved JSON file: the runs, and the figures that follow from them.
#[derive(Serialize)]
struct Results<'a> {
    runs: &'a Runs,
    figures: &'a Figures,
}

/// All tables.
pub(crate) fn text(figures: &Figures, runs: &Runs) -> String {
    let mut tables = Vec::new();
    tables.extend(costs(figures));
    if !figures.pauses.is_empty() {
        tables.push(pauses(figures));
    }
    if !figures.costs_of(Curve::StartUp).is_empty() {
        tables.push(start_up(figures));
    }
    if !figures.accuracy.is_empty() {
        tables.push(accuracy(figures));
    }
    let texts: Vec<String> = tables.iter().map(Table::text).collect();
    let mut text = texts.join("\n");
    if !runs.failures.is_empty() {
        text.push_str("\n### Failed\n\n");
        for failure in &runs.failures {
            let first = failure.error.lines().next().unwrap_or_default();
            text.push_str(&format!(
                "- {} with {}: {first}\n",
                failure.point, failure.setting
            ));
        }
    }
    text
}

fn percent(estimate: &Estimate) -> String {
    interval(estimate, |ratio| format!("{:+.1} %", percent_more(ratio)))
}

fn ms(estimate: &Estimate) -> String {
    interval(estimate, |ms| format!("{ms:.1}"))
}

/// Of the curves that have no table of their own; none where there are none.
fn costs(figures: &Figures) -> Option<Table> {
    let has_own = |cost: &&Cost| matches!(cost.curve, Curve::StartUp | Curve::Accuracy);
    let costs = figures.costs.iter().filter(|cost| !has_own(cost));
    let mut costs = costs.peekable();
    costs.peek()?;
    let columns = [
        "curve",
        "at",
        "with",
        "wall",
        "CPU",
        "agent's word",
        "MB/s",
        "pairs",
    ];
    let mut table = Table::new("More than plain Java, with 95 % intervals", &columns);
    for cost in costs {
        let at = match cost.curve {
            Curve::AllocationRate => format!("{} MB/s", count(cost.x / 1e6)),
            _ => count(cost.x),
        };
        table.row(vec![
            cost.curve.name().to_owned(),
            at,
            cost.setting.clone(),
            percent(&cost.wall_ratio),
            percent(&cost.cpu_ratio),
            cost.agent_cpu_ratio.map_or_else(
                || "-".to_owned(),
                |said| format!("{:+.1} %", 100.0 * said.value),
            ),
            count(cost.plain_bytes_a_second / 1e6),
            cost.cpu_ratio.pairs.to_string(),
        ]);
    }
    Some(table)
}

fn pauses(figures: &Figures) -> Table {
    Table::of(
        "Collection pauses of a run",
        &figures.pauses,
        &[
            ("live objects", &|pauses| count(pauses.x)),
            ("with", &|pauses| pauses.setting.clone()),
            ("pauses", &|pauses| format!("{:.1}", pauses.count)),
            ("longest (ms)", &|pauses| ms(&pauses.longest_ms)),
            ("all (ms)", &|pauses| ms(&pauses.total_ms)),
        ],
    )
}

fn start_up(figures: &Figures) -> Table {
    Table::of(
        "A JVM that says hello, more than plain Java",
        figures.costs_of(Curve::StartUp),
        &[
            ("with", &|cost| cost.setting.clone()),
            ("wall (ms)", &|cost| ms(&cost.wall_more_ms)),
            ("wall", &|cost| percent(&cost.wall_ratio)),
            ("CPU (ms)", &|cost| ms(&cost.cpu_more_ms)),
            ("CPU", &|cost| percent(&cost.cpu_ratio)),
            ("pairs", &|cost| cost.cpu_ratio.pairs.to_string()),
        ],
    )
}

fn accuracy(figures: &Figures) -> Table {
    let part = |estimate: &Estimate| interval(estimate, |part| format!("{:.2} %", 100.0 * part));
    Table::of(
        "An account of 256 MiB",
        &figures.accuracy,
        &[
            ("interval", &|of| of.interval.clone()),
            ("CPU", &|of| percent(&of.cpu_ratio)),
            ("standard error", &|of| part(&of.published)),
            ("true error", &|of| part(&of.error)),
            ("readings", &|of| of.readings.to_string()),
        ],
    )
}

fn preamble(runs: &Runs, pictures: &[Picture]) -> String {
    let machine = &runs.machine;
    let mut text = format!(
        "# How the cost grows: {}\n\n`cargo xtask bench curves --save`, pairs of runs: {}. JDK {}, {}, \
         {}.\n\n",
        machine.date,
        runs.pairs,
        runs.jdk,
        runs.flags.join(" "),
        machine.told(),
    );
    text.push_str(
        "Of the columns, *agent's word* is what the agent says that it took of the processor, and *MB/s* what \
         plain Java allocates in a second of its processor time: the programs do little else, so that \
         the cost shows.\n\n",
    );
    for picture in pictures {
        text.push_str(&format!("![{}]({}.svg)\n\n", picture.title, picture.name));
    }
    text
}

/// Writes the pictures as `curve-NAME.svg`, `curves-DATE.md` and `.json`; returns their paths within
/// the repository.
///
/// # Errors
/// Where a picture cannot be drawn or a file not be written.
pub(crate) fn save(figures: &Figures, runs: &Runs) -> Result<Vec<PathBuf>> {
    let pictures = pictures::of(figures, runs);
    let markdown = preamble(runs, &pictures) + &text(figures, runs);
    let results = Results { runs, figures };
    let mut paths = saved::save("curves", &runs.machine.date, markdown, &results, &[])?.to_vec();
    for picture in &pictures {
        let path = PathBuf::from("bench/results").join(format!("{}.svg", picture.name));
        std::fs::write(build::root().join(&path), draw::svg(picture)?)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::super::runs::Failure;
    use super::super::runs::tests::{run, runs};
    use super::*;

    #[test]
    fn what_was_measured_is_told_and_what_failed_too() {
        let mut all = runs(vec![
            run(Curve::Threads, 64.0, "plain", 0, 100),
            run(Curve::Threads, 64.0, "agent", 0, 110),
        ]);
        all.failures.push(Failure {
            point: "threads 1".to_owned(),
            setting: "agent".to_owned(),
            error: "it hung\nand more".to_owned(),
        });
        let text = text(&Figures::of(&Curve::Threads.points(), &all), &all);
        assert!(
            text.contains("+10.0 % ") && !text.contains("(+10.0 %"),
            "{text}"
        );
        assert!(
            text.ends_with("- threads 1 with agent: it hung\n"),
            "{text}"
        );
        assert!(!text.contains("pauses"), "{text}");
    }
}
