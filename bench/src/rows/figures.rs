//! The figures from the runs: one setting against another, row by row and over all rows.

use serde::Serialize;

use super::published::ROWS;
use super::runs::{Run, Runs};
use super::settings::Setting;
use crate::bootstrap::{Estimate, geometric_mean, mean};

/// The pairs that are compared, beside each setting with plain: with what one would take instead,
/// and where that has another interval, at its interval; with a part turned off, and with itself.
const RIVALS: [(Setting, Setting); 5] = [
    (Setting::Heapwarden, Setting::WithoutLeaks),
    (Setting::Heapwarden, Setting::Again),
    (Setting::Heapwarden, Setting::Jfr),
    (Setting::Heapwarden, Setting::AsyncProfiler),
    (Setting::Interval512, Setting::AsyncProfiler),
];

/// Every comparison that the runs allow.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Comparisons(Vec<Comparison>);

impl Comparisons {
    /// Each setting with plain, in the settings' order, and with its rivals.
    pub(crate) fn of(runs: &Runs) -> Comparisons {
        let mut settings: Vec<Setting> = runs.runs.iter().map(|run| run.setting).collect();
        settings.sort_unstable();
        settings.dedup();
        settings.retain(|setting| *setting != Setting::Plain);
        let to_plain = settings.iter().map(|of| (*of, Setting::Plain));
        let all = to_plain.chain(RIVALS);
        Comparisons(
            all.filter_map(|(of, to)| Comparison::new(runs, of, to))
                .collect(),
        )
    }

    /// One of them, if it was measured.
    pub(crate) fn get(&self, of: Setting, to: Setting) -> Option<&Comparison> {
        self.0.iter().find(|found| (found.of, found.to) == (of, to))
    }

    /// Those with plain.
    pub(crate) fn to_plain(&self) -> Vec<&Comparison> {
        let all = self.0.iter();
        all.filter(|found| found.to == Setting::Plain).collect()
    }

    /// The others.
    pub(crate) fn to_rivals(&self) -> Vec<&Comparison> {
        let all = self.0.iter();
        all.filter(|found| found.to != Setting::Plain).collect()
    }
}

/// One setting against another.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) of: Setting,
    pub(crate) to: Setting,
    /// Those that have a pair, in the table's order.
    pub(crate) rows: Vec<RowFigures>,
    /// The mean of the rows, each weighing the same.
    pub(crate) over_rows: Figures,
}

/// One row of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct RowFigures {
    pub(crate) row: String,
    pub(crate) figures: Figures,
}

/// Ratios are of one setting to the other, differences from the other to the one.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Ratio of wall time.
    pub(crate) time: Option<Estimate>,
    /// Ratio of the process's CPU time.
    pub(crate) cpu: Option<Estimate>,
    /// Ratio of the most that was resident.
    pub(crate) peak_memory: Option<Estimate>,
    /// Ratio of what is alive after full collections.
    pub(crate) live: Option<Estimate>,
    /// Ratio of what is resident after them.
    pub(crate) resident_after_collection: Option<Estimate>,
    /// Difference of native memory.
    pub(crate) native_bytes: Option<Estimate>,
    /// Difference of the longest pause.
    pub(crate) longest_pause_ms: Option<Estimate>,
    /// Difference of all pauses' sum.
    pub(crate) pauses_ms: Option<Estimate>,
    /// CPU time that the agent reports of itself, as a share of the other's CPU time.
    pub(crate) reported_cpu: Option<Estimate>,
    /// Samples that the agent could not charge, of all.
    pub(crate) dropped_share: Option<Estimate>,
    /// Difference of CPU time less what is reported, as the same share.
    pub(crate) unreported_cpu: Option<Estimate>,
}

/// Both runs of a pair.
type Pair<'a> = (&'a Run, &'a Run);

impl Comparison {
    /// None where no row has a pair.
    fn new(runs: &Runs, of: Setting, to: Setting) -> Option<Comparison> {
        let pairs: Vec<(&str, Vec<Pair<'_>>)> = ROWS
            .iter()
            .map(|row| (row.name, pairs(runs, row.name, of, to)))
            .filter(|(_, pairs)| !pairs.is_empty())
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let every: Vec<&[Pair<'_>]> = pairs.iter().map(|(_, pairs)| pairs.as_slice()).collect();
        let rows = pairs.iter().map(|(row, pairs)| RowFigures {
            row: (*row).to_owned(),
            figures: Figures::of(&[pairs]),
        });
        Some(Comparison {
            of,
            to,
            rows: rows.collect(),
            over_rows: Figures::of(&every),
        })
    }
}

/// Of a row, the runs of both settings by rounds in which both came to their end.
fn pairs<'a>(runs: &'a Runs, row: &str, of: Setting, to: Setting) -> Vec<Pair<'a>> {
    let with = |setting: Setting| {
        let runs = runs.runs.iter();
        runs.filter(move |run| run.row == row && run.setting == setting)
    };
    with(of)
        .filter_map(|ours| Some((ours, with(to).find(|other| other.pair == ours.pair)?)))
        .collect()
}

impl Figures {
    fn of(rows: &[&[Pair<'_>]]) -> Figures {
        let ratio = |figure: fn(&Run) -> u64| {
            geometric_mean(&values(rows, |(of, to)| {
                Some(figure(of) as f64 / figure(to) as f64)
            }))
        };
        let difference =
            |figure: fn(&Run) -> f64| mean(&values(rows, |(of, to)| Some(figure(of) - figure(to))));
        let reported = |(of, to): Pair<'_>| {
            let agent = of.agent.as_ref()?;
            Some(agent.all_cpu_seconds() * 1e9 / to.program.cpu_ns as f64)
        };
        let dropped_share = |(of, _): Pair<'_>| {
            let agent = of.agent.as_ref()?;
            Some(agent.dropped / (agent.samples + agent.dropped))
        };
        let unreported = |pair: Pair<'_>| {
            let measured = pair.0.program.cpu_ns as f64 / pair.1.program.cpu_ns as f64 - 1.0;
            Some(measured - reported(pair)?)
        };
        Figures {
            time: ratio(|run| run.program.wall_ns),
            cpu: ratio(|run| run.program.cpu_ns),
            peak_memory: ratio(|run| run.memory.peak_resident_bytes),
            live: ratio(|run| run.live_bytes),
            resident_after_collection: ratio(|run| run.memory_after_collection.resident_bytes),
            native_bytes: difference(|run| run.memory.native_bytes as f64),
            longest_pause_ms: difference(|run| run.longest_pause_ms),
            pauses_ms: difference(|run| run.pauses_ms),
            reported_cpu: mean(&values(rows, reported)),
            dropped_share: mean(&values(rows, dropped_share)),
            unreported_cpu: mean(&values(rows, unreported)),
        }
    }
}

fn values(rows: &[&[Pair<'_>]], figure: impl Fn(Pair<'_>) -> Option<f64>) -> Vec<Vec<f64>> {
    rows.iter()
        .map(|pairs| pairs.iter().filter_map(|pair| figure(*pair)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::{reported, run, runs};
    use super::*;

    #[test]
    fn rounds_are_compared_with_themselves_and_rows_weigh_the_same() {
        let mut all = Vec::new();
        for pair in 0..8 {
            // The machine gets slower, and the ratios stay.
            let plain_ns = 1_000_000 * (u64::from(pair) + 1);
            all.push(run("fop", Setting::Plain, pair, plain_ns));
            all.push(run("fop", Setting::Exact, pair, plain_ns * 4));
        }
        all.push(run("jbb", Setting::Plain, 0, 7_000));
        all.push(run("jbb", Setting::Exact, 0, 7_000));
        // Without a partner.
        all.push(run("jbb", Setting::Exact, 1, 900_000));
        let comparison = Comparison::new(&runs(all), Setting::Exact, Setting::Plain).unwrap();
        let time = |figures: &Figures| figures.time.unwrap();
        let fop = time(&comparison.rows[0].figures);
        assert!((fop.low - 4.0).abs() < 1e-9 && (fop.high - 4.0).abs() < 1e-9);
        assert_eq!(fop.pairs, 8);
        let both = time(&comparison.over_rows);
        assert!((both.value - 2.0).abs() < 1e-9, "{both:?}");
        assert_eq!(both.pairs, 1);
    }

    #[test]
    fn what_the_agent_reports_is_held_against_what_is_measured() {
        let plain = run("fop", Setting::Plain, 0, 1_000_000_000);
        let mut ours = run("fop", Setting::Heapwarden, 0, 1_050_000_000);
        ours.agent.as_mut().unwrap().cpu_seconds = reported(0.03);
        let comparison = Comparison::new(
            &runs(vec![plain, ours]),
            Setting::Heapwarden,
            Setting::Plain,
        );
        let figures = comparison.unwrap().over_rows;
        assert!((figures.reported_cpu.unwrap().value - 0.03).abs() < 1e-9);
        assert!((figures.unreported_cpu.unwrap().value - 0.02).abs() < 1e-9);
    }

    #[test]
    fn who_does_not_report_has_no_such_figure() {
        let all = vec![
            run("fop", Setting::Plain, 0, 10),
            run("fop", Setting::Jfr, 0, 11),
        ];
        let comparison = Comparison::new(&runs(all), Setting::Jfr, Setting::Plain).unwrap();
        assert!(comparison.over_rows.reported_cpu.is_none());
        assert!(comparison.over_rows.time.is_some());
        let none = Comparison::new(&runs(Vec::new()), Setting::Jfr, Setting::Plain);
        assert!(none.is_none());
    }
}
