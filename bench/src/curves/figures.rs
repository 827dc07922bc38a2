//! The figures that follow from the runs: each point of each curve with its uncertainty.

use serde::Serialize;

use super::plan::{Curve, Point};
use super::runs::{Run, Runs};
use crate::bootstrap::{self, Estimate};

/// A point with a setting, against plain Java.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    pub(crate) curve: Curve,
    /// The value that the curve varies; of allocation rates, the bytes a second in plain Java.
    pub(crate) x: f64,
    pub(crate) setting: String,
    /// Bytes that plain Java allocates a second of processor time; 0 where the program does not tell.
    pub(crate) plain_bytes_a_second: f64,
    /// The processor time that the agent says it took, as a ratio to all that plain Java took; none
    /// where it is not asked.
    pub(crate) agent_cpu_ratio: Option<Estimate>,
    /// Ratios to plain Java in the same round: geometric means.
    pub(crate) wall_ratio: Estimate,
    pub(crate) cpu_ratio: Estimate,
    /// Time on top of plain Java's, in milliseconds.
    pub(crate) wall_more_ms: Estimate,
    pub(crate) cpu_more_ms: Estimate,
}

/// The pauses of the runs with one setting: how many, the longest, and all together.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PauseTimes {
    /// Live tracked objects.
    pub(crate) x: f64,
    pub(crate) setting: String,
    /// Means over the runs.
    pub(crate) count: f64,
    pub(crate) longest_ms: Estimate,
    pub(crate) total_ms: Estimate,
}

/// The cost of a sampling interval, and how well it measures.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Accuracy {
    pub(crate) interval: String,
    pub(crate) cpu_ratio: Estimate,
    /// The standard error that is published, of the true size.
    pub(crate) published: Estimate,
    /// The root of the mean squared error, of the true size.
    pub(crate) error: Estimate,
    pub(crate) readings: usize,
}

/// All of them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) costs: Vec<Cost>,
    pub(crate) pauses: Vec<PauseTimes>,
    pub(crate) accuracy: Vec<Accuracy>,
}

impl Figures {
    /// Of these points; those without a pair of runs are left out.
    pub(crate) fn of(points: &[Point], runs: &Runs) -> Figures {
        let mut figures = Figures::default();
        for point in points {
            for setting in &point.settings {
                if point.curve == Curve::LiveSamples {
                    figures.pauses.extend(pauses(runs, point, &setting.name));
                }
                if setting.policy.is_some() {
                    figures.costs.extend(cost(runs, point, &setting.name));
                    if point.curve == Curve::Accuracy {
                        figures
                            .accuracy
                            .extend(accuracy(runs, point, &setting.name));
                    }
                }
            }
        }
        figures
    }

    /// The costs of a curve.
    pub(crate) fn costs_of(&self, curve: Curve) -> Vec<&Cost> {
        self.costs.iter().filter(|c| c.curve == curve).collect()
    }
}

fn cost(runs: &Runs, point: &Point, setting: &str) -> Option<Cost> {
    let wall = |run: &Run| run.amount.wall_ns as f64;
    let cpu = |run: &Run| run.amount.cpu_ns as f64;
    let ratios = |of: &dyn Fn(&Run) -> f64| {
        let ratio = |ours: &Run, plain: &Run| of(ours) / of(plain);
        bootstrap::geometric_mean(&[runs.against_plain(point.curve, point.x, setting, ratio)])
    };
    let more_ms = |of: &dyn Fn(&Run) -> f64| {
        let more = |ours: &Run, plain: &Run| (of(ours) - of(plain)) / 1e6;
        bootstrap::mean(&[runs.against_plain(point.curve, point.x, setting, more)])
    };
    let plain_bytes_a_second = plain_bytes_a_second(runs, point).unwrap_or(0.0);
    let said = runs.against_plain(point.curve, point.x, setting, |ours, plain| {
        ours.agent_cpu_ns.unwrap_or(f64::NAN) / cpu(plain)
    });
    Some(Cost {
        curve: point.curve,
        plain_bytes_a_second,
        agent_cpu_ratio: bootstrap::mean(&[said]),
        x: match point.curve {
            Curve::AllocationRate => plain_bytes_a_second,
            _ => point.x,
        },
        setting: setting.to_owned(),
        wall_ratio: ratios(&wall)?,
        cpu_ratio: ratios(&cpu)?,
        wall_more_ms: more_ms(&wall)?,
        cpu_more_ms: more_ms(&cpu)?,
    })
}

/// Of processor time, for the machine may have had other work to do.
fn plain_bytes_a_second(runs: &Runs, point: &Point) -> Option<f64> {
    let rates: Vec<f64> = runs
        .of(point.curve, point.x, "plain")
        .map(|run| run.amount.allocated_bytes as f64 / (run.amount.cpu_ns as f64 / 1e9))
        .collect();
    Some(bootstrap::geometric_mean(&[rates])?.value)
}

fn pauses(runs: &Runs, point: &Point, setting: &str) -> Option<PauseTimes> {
    let of = |figure: &dyn Fn(&Run) -> f64| -> Vec<f64> {
        runs.of(point.curve, point.x, setting).map(figure).collect()
    };
    Some(PauseTimes {
        x: point.x,
        setting: setting.to_owned(),
        count: bootstrap::mean(&[of(&|run| run.pauses as f64)])?.value,
        longest_ms: bootstrap::mean(&[of(&|run| run.longest_pause_ms)])?,
        total_ms: bootstrap::mean(&[of(&|run| run.pauses_ms)])?,
    })
}

fn accuracy(runs: &Runs, point: &Point, setting: &str) -> Option<Accuracy> {
    let readings: Vec<_> = runs
        .of(point.curve, point.x, setting)
        .flat_map(|run| run.readings.iter().copied())
        .collect();
    let published = readings
        .iter()
        .map(|r| r.standard_error_bytes / r.true_bytes);
    let squares = readings
        .iter()
        .map(|r| (r.live_bytes / r.true_bytes - 1.0).powi(2));
    let square = bootstrap::mean(&[squares.collect()])?;
    Some(Accuracy {
        interval: setting.to_owned(),
        cpu_ratio: cost(runs, point, setting)?.cpu_ratio,
        published: bootstrap::mean(&[published.collect()])?,
        error: Estimate {
            value: square.value.sqrt(),
            low: square.low.sqrt(),
            high: square.high.sqrt(),
            ..square
        },
        readings: readings.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::runs::Reading;
    use super::super::runs::tests::{run, runs};
    use super::*;

    #[test]
    fn a_cost_is_a_ratio_and_what_comes_on_top() {
        let all = runs(vec![
            run(Curve::Threads, 2.0, "plain", 0, 100_000_000),
            run(Curve::Threads, 2.0, "agent", 0, 110_000_000),
        ]);
        let figures = Figures::of(&Curve::Threads.points(), &all);
        let [cost] = figures.costs.as_slice() else {
            panic!("{figures:?}")
        };
        assert!((cost.cpu_ratio.value - 1.1).abs() < 1e-9);
        assert_eq!(cost.cpu_more_ms.value, 10.0);
        assert_eq!(cost.x, 2.0);
    }

    #[test]
    fn an_allocation_rate_is_the_one_of_plain_java() {
        let all = runs(vec![
            run(Curve::AllocationRate, 0.0, "plain", 0, 500_000_000),
            run(Curve::AllocationRate, 0.0, "agent", 0, 900_000_000),
        ]);
        let figures = Figures::of(&Curve::AllocationRate.points(), &all);
        let rate = figures.costs[0].x;
        assert!((rate - 2.0 * f64::from(1 << 30)).abs() < 1.0, "{rate}");
    }

    #[test]
    fn a_true_error_is_the_root_of_the_mean_square() {
        let mut ours = run(Curve::Accuracy, 0.0, "4KiB", 0, 120);
        for live_bytes in [103.0, 97.0, 96.0, 104.0] {
            ours.readings.push(Reading {
                true_bytes: 100.0,
                live_bytes,
                standard_error_bytes: 3.0,
            });
        }
        let all = runs(vec![run(Curve::Accuracy, 0.0, "plain", 0, 100), ours]);
        let figures = Figures::of(&Curve::Accuracy.points(), &all);
        let [accuracy] = figures.accuracy.as_slice() else {
            panic!("{figures:?}")
        };
        assert!((accuracy.error.value - 0.125_f64.sqrt() / 10.0).abs() < 1e-9);
        assert!((accuracy.published.value - 0.03).abs() < 1e-9);
        assert_eq!(accuracy.readings, 4);
    }
}
