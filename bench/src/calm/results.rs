//! The figures of each run, and how they stand to the aims.

use serde::Serialize;

use super::cases::{Given, Variant};
use crate::bootstrap::{Estimate, geometric_mean, with_interval};
use crate::machine::Machine;
use crate::verdicts::{Outcome, Verdict};

/// Aims: what a service keeps of its throughput if its limit is enforced and not only observed, and if it is
/// observed and not unlimited.
const OF_OBSERVE: f64 = 0.98;
const OF_NONE: f64 = 0.99;

/// A whole run of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) jdks: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
    pub(crate) given: Vec<Given>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) failures: Vec<String>,
}

/// A JVM with a share of the limit, in percent.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) vm: String,
    pub(crate) share: u32,
    pub(crate) runs: Vec<Run>,
}

/// One JVM process, or one turn of it.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) round: u32,
    pub(crate) variant: Variant,
    pub(crate) figures: Figures,
}

/// The program's throughput, and the agent's figures, while operations were counted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub(crate) operations_per_second: f64,
    /// Of the slowest second.
    pub(crate) slowest_per_second: f64,
    /// Operations that an error ended.
    pub(crate) errors: f64,
    /// The bytes that the program holds, as a share of the limit, and those that the agent said were live at the end.
    pub(crate) held_share: f64,
    pub(crate) live_share: f64,
    /// Seconds that enforcement made the account's threads wait, from the start or from the turn before on.
    pub(crate) wait_seconds: f64,
    /// Errors thrown, and requests turned away, likewise.
    pub(crate) refusals: f64,
    /// Looks at the account that found it suspect or over, as a share of all looks.
    pub(crate) not_open_share: f64,
    /// The account's state at the end.
    pub(crate) state: String,
    /// Whether the agent said that the heap is short; none if it has no such figure.
    pub(crate) duress: Option<bool>,
    /// The agent's CPU time, as a share of the process's.
    pub(crate) agent_cpu_share: f64,
}

impl Cell {
    /// The figures of a variant, by rounds.
    pub(crate) fn of(&self, variant: Variant) -> impl Iterator<Item = &Figures> {
        let runs = self.runs.iter();
        runs.filter(move |run| run.variant == variant)
            .map(|run| &run.figures)
    }

    /// Throughput of one variant against another, of the rounds in which both came to their end.
    fn ratios(&self, of: Variant, to: Variant) -> Vec<f64> {
        let found = |variant: Variant, round: u32| {
            let mut runs = self.runs.iter();
            let run = runs.find(|run| run.variant == variant && run.round == round);
            run.map(|run| run.figures.operations_per_second)
        };
        let rounds = self.runs.iter().filter(|run| run.variant == of);
        rounds
            .filter_map(|run| Some(run.figures.operations_per_second / found(to, run.round)?))
            .collect()
    }

    /// Enforce against observe.
    pub(crate) fn enforced(&self, given: Given) -> Vec<f64> {
        let [_, observe, enforce] = Variant::all(given);
        self.ratios(enforce, observe)
    }

    /// Observe against no limits.
    pub(crate) fn observed(&self, given: Given) -> Vec<f64> {
        let [none, observe, _] = Variant::all(given);
        self.ratios(observe, none)
    }
}

/// Whether a ratio is at least an aim. A single pair has no interval, and cannot tell.
fn outcome(ratio: Estimate, aim: f64) -> Outcome {
    if ratio.pairs < 2 {
        Outcome::CannotTell
    } else if ratio.low >= aim {
        Outcome::Met
    } else if ratio.high < aim {
        Outcome::Missed
    } else {
        Outcome::CannotTell
    }
}

impl Results {
    /// Every cell with each way in which its limit was given.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Cell, Given)> {
        let cells = self.cells.iter();
        cells.flat_map(|cell| self.given.iter().map(move |given| (cell, *given)))
    }

    /// Ratios over all rows, each row weighing the same. None if a row has none.
    pub(crate) fn over_rows(&self, ratios: fn(&Cell, Given) -> Vec<f64>) -> Option<Estimate> {
        let rows: Vec<Vec<f64>> = self
            .rows()
            .map(|(cell, given)| ratios(cell, given))
            .collect();
        geometric_mean(&rows)
    }

    /// Each aim against what was measured.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = vec![
            self.of_ratios("enforce", "observe", OF_OBSERVE, Cell::enforced),
            self.of_ratios("observe", "no limits", OF_NONE, Cell::observed),
        ];
        let sum = |figure: fn(&Figures) -> f64| {
            let runs = self.cells.iter().flat_map(|cell| &cell.runs);
            // Not `sum`: of nothing, that is -0.
            runs.fold(0.0, |sum, run| sum + figure(&run.figures))
        };
        let (waited, refusals) = (sum(|run| run.wait_seconds), sum(|run| run.refusals));
        verdicts.push(Verdict::new(
            "below its limit nobody waits".to_owned(),
            waited == 0.0,
            format!("{waited:.3} s in all"),
        ));
        verdicts.push(Verdict::new(
            "below its limit nobody is refused".to_owned(),
            refusals == 0.0,
            format!("{refusals} refusals in all"),
        ));
        verdicts.push(Verdict::new(
            "every run came to its end".to_owned(),
            self.failures.is_empty(),
            format!("{} failed", self.failures.len()),
        ));
        verdicts
    }

    fn of_ratios(
        &self,
        of: &str,
        to: &str,
        aim: f64,
        ratios: fn(&Cell, Given) -> Vec<f64>,
    ) -> Verdict {
        let ratios: Vec<(Estimate, &Cell, Given)> = self
            .rows()
            .filter_map(|(cell, given)| {
                Some((geometric_mean(&[ratios(cell, given)])?, cell, given))
            })
            .collect();
        let outcomes = ratios.iter().map(|(ratio, ..)| outcome(*ratio, aim));
        let met = outcomes.clone().filter(|outcome| *outcome == Outcome::Met);
        let missed = outcomes
            .clone()
            .filter(|outcome| *outcome == Outcome::Missed);
        let counts = format!(
            "{} met, {} missed of {}",
            met.count(),
            missed.count(),
            ratios.len()
        );
        let worst = ratios.iter().min_by(|a, b| a.0.value.total_cmp(&b.0.value));
        let (outcome, measured) = match worst {
            None => (Outcome::CannotTell, "nothing".to_owned()),
            Some((ratio, cell, given)) => (
                Outcome::of_all(outcomes),
                format!(
                    "{counts}; the least is {} on {} at {} %, limit {}",
                    ratio_text(Some(*ratio)),
                    cell.vm,
                    cell.share,
                    given.name()
                ),
            ),
        };
        Verdict {
            aim: format!("{of} has at least {aim} of the throughput of {to}"),
            outcome,
            measured,
        }
    }
}

/// The mean of ratios with its interval.
pub(crate) fn mean_text(ratios: Vec<f64>) -> String {
    ratio_text(geometric_mean(&[ratios]))
}

/// A ratio with its interval.
pub(crate) fn ratio_text(ratio: Option<Estimate>) -> String {
    with_interval(ratio, |ratio| format!("{ratio:.3}"), "")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn figures(operations_per_second: f64) -> Figures {
        Figures {
            operations_per_second,
            slowest_per_second: operations_per_second * 0.9,
            errors: 0.0,
            held_share: 0.95,
            live_share: 0.94,
            wait_seconds: 0.0,
            refusals: 0.0,
            not_open_share: 0.0,
            state: "open".to_owned(),
            duress: None,
            agent_cpu_share: 0.01,
        }
    }

    /// Four rounds on a machine that gets slower: enforce and observe against what stands before them.
    pub(crate) fn results(enforced: f64, observed: f64) -> Results {
        let mut runs = Vec::new();
        for round in 0..4 {
            let none = 1000.0 / f64::from(round + 1);
            let observe = none * observed;
            let speeds = [none, observe, observe * enforced];
            for (variant, speed) in Variant::all(Given::Start).into_iter().zip(speeds) {
                runs.push(Run {
                    round,
                    variant,
                    figures: figures(speed),
                });
            }
        }
        Results {
            jdks: Vec::new(),
            machine: Machine::of_a_test(),
            rounds: 4,
            seconds: 10,
            given: vec![Given::Start],
            cells: vec![Cell {
                vm: "JDK 25 G1".to_owned(),
                share: 95,
                runs,
            }],
            failures: Vec::new(),
        }
    }

    fn outcomes(results: &Results) -> Vec<Outcome> {
        let verdicts = results.verdicts();
        verdicts.iter().map(|verdict| verdict.outcome).collect()
    }

    #[test]
    fn a_ratio_is_of_one_round() {
        let cell = &results(0.5, 0.8).cells[0];
        let all = |ratios: Vec<f64>, is: f64| {
            ratios.len() == 4 && ratios.iter().all(|ratio| (ratio - is).abs() < 1e-9)
        };
        assert!(all(cell.enforced(Given::Start), 0.5));
        assert!(all(cell.observed(Given::Start), 0.8));
        assert!(cell.enforced(Given::Reload).is_empty());
    }

    #[test]
    fn rows_weigh_the_same() {
        let mut both = results(0.5, 1.0);
        both.cells.extend(results(0.32, 1.0).cells);
        both.cells[1].runs.truncate(6);
        let mean = both.over_rows(Cell::enforced).unwrap();
        assert!((mean.value - 0.4).abs() < 1e-9, "{mean:?}");
        both.cells[1].runs.clear();
        assert_eq!(both.over_rows(Cell::enforced), None);
    }

    #[test]
    fn a_round_that_lost_a_run_is_no_pair() {
        let mut results = results(0.5, 0.8);
        results.cells[0].runs.pop();
        let cell = &results.cells[0];
        assert_eq!(cell.enforced(Given::Start).len(), 3);
        assert_eq!(cell.observed(Given::Start).len(), 4);
    }

    #[test]
    fn each_aim_can_be_missed() {
        use Outcome::{CannotTell, Met, Missed};
        assert_eq!(outcomes(&results(0.985, 0.995)), [Met; 5]);
        assert_eq!(outcomes(&results(0.975, 0.995))[..2], [Missed, Met]);
        assert_eq!(outcomes(&results(0.985, 0.985))[..2], [Met, Missed]);
        let mut spoilt = results(1.0, 1.0);
        spoilt.cells[0].runs[2].figures.wait_seconds = 0.1;
        spoilt.cells[0].runs[2].figures.refusals = 1.0;
        spoilt.failures.push("it died".to_owned());
        assert_eq!(outcomes(&spoilt), [Met, Met, Missed, Missed, Missed]);
        let mut single = results(0.3, 0.5);
        single.cells[0].runs.truncate(3);
        assert_eq!(outcomes(&single)[..2], [CannotTell, CannotTell]);
        single.cells.clear();
        assert_eq!(outcomes(&single)[..2], [CannotTell, CannotTell]);
    }

    #[test]
    fn an_aim_within_the_interval_is_open() {
        let ratio = |low, high| Estimate {
            value: 0.98,
            low,
            high,
            pairs: 3,
        };
        assert_eq!(outcome(ratio(0.97, 0.99), 0.98), Outcome::CannotTell);
        assert_eq!(outcome(ratio(0.98, 0.99), 0.98), Outcome::Met);
        assert_eq!(outcome(ratio(0.96, 0.979), 0.98), Outcome::Missed);
    }
}
