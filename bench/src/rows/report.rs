//! The report, for the terminal and for `bench/results`.

use super::figures::Comparisons;
use super::runs::Runs;
use super::settings::Setting;
use super::tables;
use crate::saved;
use crate::verdicts::{self, Verdict};

/// All tables and verdicts, as Markdown.
pub(crate) fn text(runs: &Runs, figures: &Comparisons, verdicts: &[Verdict]) -> String {
    let mut parts = Vec::new();
    if let Some(ours) = figures.get(Setting::Heapwarden, Setting::Plain) {
        parts.push(tables::workloads(runs, ours).text());
        parts.push(tables::cost(ours).text());
        parts.push(EXPLAINED.to_owned());
        parts.push(tables::memory(runs, ours).text());
        parts.push(MEMORY_EXPLAINED.to_owned());
        parts.push(tables::pauses(runs, ours).text());
    }
    let to_plain = figures.to_plain();
    if to_plain.len() > 1 {
        let matrix = |title: &str, figure| tables::matrix(title, &to_plain, figure).text();
        parts.push(matrix("Time against plain", |figures| figures.time));
        parts.push(matrix("CPU time against plain", |figures| figures.cpu));
        parts.push(matrix("Peak memory against plain", |figures| {
            figures.peak_memory
        }));
    }
    let to_rivals = figures.to_rivals();
    if !to_rivals.is_empty() {
        let title = "Time against what one would take instead";
        parts.push(tables::matrix(title, &to_rivals, |figures| figures.time).text());
        parts.push(RIVALS_EXPLAINED.to_owned());
    }
    if let Some(exact) = figures.get(Setting::Exact, Setting::Plain) {
        parts.push(tables::asgmemprof(exact).text());
        parts.push(DROPPED_EXPLAINED.to_owned());
    }
    let ours: Vec<_> = to_plain.into_iter().filter(|c| c.of.is_ours()).collect();
    if !ours.is_empty() {
        parts.push(tables::reported(&ours).text());
    }
    parts.extend(failures(runs));
    parts.push(verdicts::text(verdicts));
    saved::joined(&parts)
}

const EXPLAINED: &str = "Ratios of the timed part's wall time, the process's CPU time and the most that was \
    resident; of the longest pause the difference in ms. Geometric means over pairs (differences: means) \
    with a bootstrap interval of 95 %; the last line is the mean of the rows' means.";

const MEMORY_EXPLAINED: &str = "Medians in MiB, with Heapwarden after plain. Live: used by the heap after two full \
    collections; after them: resident then. Native: anonymous and not the Java heap, at the end of the timed \
    part; its own: what the agent says of itself.";

const DROPPED_EXPLAINED: &str = "Dropped: samples that the agent could not charge, mostly because its records were \
    full. They cost less than others.";

const RIVALS_EXPLAINED: &str = "Heapwarden samples once in 64 KiB and async-profiler once in 512 KiB; 512KiB is \
    Heapwarden at that interval. Flight Recorder samples old objects at each new allocation buffer.";

/// The runs that came to no end, if any.
fn failures(runs: &Runs) -> Option<String> {
    if runs.failures.is_empty() {
        return None;
    }
    let mut text = "### Failed\n\n".to_owned();
    for failure in &runs.failures {
        let (row, setting, round) = (&failure.row, failure.setting, failure.pair + 1);
        let error = failure.error.lines().map(str::trim).collect::<Vec<_>>();
        let error = error.join(" ");
        text.push_str(&format!("- {row} with {setting}, round {round}: {error}\n"));
    }
    Some(text)
}

/// Returns the paragraph that a reader must know before the tables: the machine, the JVM and the
/// commit.
pub(crate) fn preamble(runs: &Runs) -> String {
    let (machine, rounds) = (&runs.machine, runs.next_pair());
    let noise = if machine.load_average_before > 1.0 {
        " The machine had other work to do: intervals are wide, and times are not its best."
    } else {
        ""
    };
    format!(
        "# What it costs: {}\n\n`cargo xtask bench rows --save`, {rounds} rounds, each run a JVM of its own, an iteration in turns. \
         JDK {}, {}, `{}`; {}.{noise}\n\n",
        machine.date,
        runs.jdk,
        runs.collector,
        runs.flags.join(" "),
        machine.told(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::aims;
    use super::super::runs::Failure;
    use super::super::runs::tests::{run, runs};
    use super::*;

    fn told(runs: &Runs) -> String {
        let figures = Comparisons::of(runs);
        text(runs, &figures, &aims::verdicts(&figures))
    }

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
            error: "the JVM failed\n  its errors: many".to_owned(),
        });
        let text = told(&all);
        assert!(text.contains("1.010 (1.010 to 1.010)"), "{text}");
        assert!(
            text.contains("| 2.00 (2.00 to 2.00) |       6.31 |          2.10 | met |       0.0 |"),
            "{text}"
        );
        assert!(text.contains("heapwarden to async-profiler"), "{text}");
        assert!(
            text.contains("- pmd with exact, round 3: the JVM failed its errors: many\n"),
            "{text}"
        );
        assert!(text.contains("0.990 (0.990 to 0.990)"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let all = runs(vec![run("fop", Setting::Plain, 0, 1)]);
        let text = told(&all);
        assert_eq!(text, "### Aims\n");
    }
}
