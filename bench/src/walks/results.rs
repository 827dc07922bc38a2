//! The walks that were measured, and how they stand to the aims.

use serde::Serialize;

use crate::machine::Machine;
use crate::verdicts::Verdict;

/// A gap may be so much longer than predicted.
const SPARE_MS: f64 = 20.0;
/// A prediction may be wrong by this factor, or by so much where the pause itself is hardly longer.
const FACTOR: f64 = 2.0;
const HARDLY_MS: f64 = 5.0;
/// From here on the ratio to a walk in place has an aim, and what it is with small and with huge pages.
const LARGE_MB: u32 = 1000;
const RATIO: f64 = 40.0;
const RATIO_OF_HUGE_PAGES: f64 = 200.0;

/// A JVM, and how often it is forked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Case {
    pub(crate) jdk: u32,
    pub(crate) collector: &'static str,
    #[serde(skip)]
    pub(crate) flag: &'static str,
    pub(crate) heap_mb: u32,
    pub(crate) huge_pages: bool,
    pub(crate) forks: u32,
}

impl Case {
    pub(crate) fn pages(&self) -> &'static str {
        if self.huge_pages { "huge" } else { "4 KiB" }
    }

    pub(crate) fn name(&self) -> String {
        let (jdk, collector, heap) = (self.jdk, self.collector, self.heap_mb);
        format!("JDK {jdk}, {collector}, {heap} MB, {} pages", self.pages())
    }
}

/// How the heap was walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum How {
    /// The forks of a JVM are numbered: before the first nothing is learnt.
    Forked {
        number: u32,
    },
    InPlace,
}

/// One walk.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) how: How,
    pub(crate) predicted_ms: f64,
    /// If all other processes want the processors meanwhile.
    pub(crate) most_predicted_ms: f64,
    /// The longest gap of a while before, in which nothing happened: the machine's own noise.
    pub(crate) idle_gap_ms: f64,
    pub(crate) pause_ms: f64,
    pub(crate) fork_ms: f64,
    pub(crate) gap_ms: f64,
    pub(crate) references: u64,
    pub(crate) resident_mb: f64,
    pub(crate) took_s: f64,
}

impl Row {
    pub(crate) fn is_forked(&self) -> bool {
        self.how != How::InPlace
    }

    /// The gap over what was predicted.
    pub(crate) fn factor(&self) -> f64 {
        self.gap_ms / self.predicted_ms
    }

    fn is_predicted(&self) -> bool {
        let (least, most) = (self.predicted_ms, self.most_predicted_ms);
        let is_within = (least / FACTOR..=most * FACTOR).contains(&self.gap_ms);
        is_within || (self.gap_ms - least).abs() <= HARDLY_MS
    }
}

/// All of a run.
#[derive(Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) rows: Vec<Row>,
}

impl Results {
    pub(crate) fn new(machine: Machine) -> Results {
        Results {
            machine,
            rows: Vec::new(),
        }
    }

    /// The gap of the walk in place in the same JVM over that of a forked one.
    pub(crate) fn ratio(&self, row: &Row) -> Option<f64> {
        let same = |other: &&Row| other.case.name() == row.case.name() && !other.is_forked();
        let in_place = self.rows.iter().find(same)?;
        Some(in_place.gap_ms / row.gap_ms)
    }

    /// How the aims were met.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let forked: Vec<&Row> = self.rows.iter().filter(|row| row.is_forked()).collect();
        let over = (forked.iter()).map(|row| row.gap_ms - row.most_predicted_ms);
        let worst = over.fold(f64::MIN, f64::max);
        let right = forked.iter().filter(|row| row.is_predicted()).count();
        let mut verdicts = vec![
            Verdict::new(
                format!("no gap longer than predicted by more than {SPARE_MS} ms"),
                worst <= SPARE_MS,
                format!("at the most {worst:.1} ms of {} forks", forked.len()),
            ),
            Verdict::new(
                format!(
                    "the prediction is within a factor of {FACTOR}, or {HARDLY_MS} ms, of the gap"
                ),
                right == forked.len(),
                format!("{right} of {} forks", forked.len()),
            ),
        ];
        for (huge_pages, aim) in [(false, RATIO), (true, RATIO_OF_HUGE_PAGES)] {
            let ratios = (forked.iter())
                .filter(|row| row.case.heap_mb >= LARGE_MB && row.case.huge_pages == huge_pages)
                .filter_map(|row| self.ratio(row));
            let least = ratios.reduce(f64::min);
            let pages = if huge_pages { "huge" } else { "4 KiB" };
            let Some(least) = least else {
                continue;
            };
            verdicts.push(Verdict::new(
                format!(
                    "from {LARGE_MB} MB on, {pages} pages: at most 1/{aim} of the gap in place"
                ),
                least >= aim,
                format!("at the most 1/{least:.0}"),
            ));
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(how: How, predicted_ms: f64, gap_ms: f64) -> Row {
        Row {
            case: Case {
                jdk: 25,
                collector: "G1",
                flag: "",
                heap_mb: 1000,
                huge_pages: false,
                forks: 1,
            },
            how,
            predicted_ms,
            most_predicted_ms: predicted_ms,
            idle_gap_ms: 1.2,
            pause_ms: gap_ms,
            fork_ms: gap_ms,
            gap_ms,
            references: 1,
            resident_mb: 1.0,
            took_s: 1.0,
        }
    }

    #[test]
    fn a_gap_is_held_against_its_prediction_and_against_the_walk_in_place() {
        let forked = How::Forked { number: 0 };
        let mut results = Results::new(Machine::of_a_test());
        results.rows = vec![
            row(forked, 50.0, 60.0),
            row(How::InPlace, 600_000.0, 3000.0),
        ];
        assert_eq!(results.ratio(&results.rows[0]), Some(50.0));
        assert!(results.verdicts().iter().all(Verdict::met));
        results.rows[0] = row(forked, 50.0, 101.0);
        let met: Vec<bool> = results.verdicts().iter().map(Verdict::met).collect();
        assert_eq!(met, [false, false, false]);
        // Of hardly any pause a factor says nothing.
        results.rows[0] = row(forked, 2.0, 6.9);
        assert!(results.verdicts()[1].met());
    }
}
