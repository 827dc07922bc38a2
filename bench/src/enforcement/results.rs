//! The figures of all runs, and how the aims were met.

use serde::Serialize;

use super::cases::{BUDGET, CREDIT_SECONDS, Leak};
use super::rig::{Cost, KINDS, Stopped};
use crate::machine::Machine;
use crate::stats::{median, range};
use crate::verdicts::Verdict;

/// Aims: overshoot as a share of the limit.
const MEDIAN_OVERSHOOT: f64 = 0.05;
const MAX_OVERSHOOT: f64 = 0.10;
/// Until a service that let go is admitted, in an idle JVM.
const LONGEST_RECOVERY_MS: f64 = 10_000.0;
/// The longest pause of ours on G1.
const LONGEST_PAUSE_MS: f64 = 20.0;

/// A whole run of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) jdks: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) vms: Vec<VmResults>,
}

/// One JDK with one collector; each list has one value a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct VmResults {
    pub(crate) vm: String,
    pub(crate) leaks: Vec<LeakRow>,
    pub(crate) recovery_ms: Vec<f64>,
    pub(crate) bounce: CostRow,
    pub(crate) churn: CostRow,
    /// Speed of a churn under a limit, against the same without one.
    pub(crate) churn_ratio: Vec<f64>,
}

/// A leak.
#[derive(Debug, Serialize)]
pub(crate) struct LeakRow {
    pub(crate) threads: u32,
    pub(crate) array_bytes: u32,
    pub(crate) first: Vec<f64>,
    pub(crate) last: Vec<f64>,
    pub(crate) lag_ms: Vec<f64>,
    pub(crate) fill_ms: Vec<f64>,
}

/// The cost of a service's evidence, run by run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CostRow {
    pub(crate) seconds: Vec<f64>,
    pub(crate) evidence_seconds: Vec<f64>,
    pub(crate) collections: Vec<[f64; KINDS.len()]>,
    pub(crate) refusals: Vec<f64>,
    /// Of all runs.
    pub(crate) pauses_ms: Vec<f64>,
}

/// Seconds that the budget grants a run of so many.
fn granted(seconds: f64) -> f64 {
    BUDGET * (seconds + CREDIT_SECONDS)
}

impl CostRow {
    fn add(&mut self, cost: Cost) {
        self.seconds.push(cost.seconds);
        self.evidence_seconds.push(cost.evidence_seconds);
        self.collections.push(cost.collections);
        self.refusals.push(cost.refusals);
        self.pauses_ms.extend(cost.pauses_ms);
    }

    /// Of each run's wall time, the part that evidence took.
    pub(crate) fn evidence_shares(&self) -> Vec<f64> {
        let runs = self.evidence_seconds.iter().zip(&self.seconds);
        runs.map(|(evidence, seconds)| evidence / seconds).collect()
    }

    /// Of what the budget grants a run of that length, the part that evidence took.
    pub(crate) fn budget_shares(&self) -> Vec<f64> {
        let runs = self.evidence_seconds.iter().zip(&self.seconds);
        runs.map(|(evidence, seconds)| evidence / granted(*seconds))
            .collect()
    }

    /// Of all wall time, the part that our pauses took.
    pub(crate) fn pause_share(&self) -> f64 {
        // Not `sum`: of nothing, that is -0.
        let pauses = self.pauses_ms.iter().fold(0.0, |sum, ms| sum + ms);
        pauses / 1e3 / self.seconds.iter().sum::<f64>()
    }

    /// Of one kind, over all runs, in a minute.
    pub(crate) fn collections_a_minute(&self, kind: usize) -> f64 {
        let sum: f64 = self.collections.iter().map(|kinds| kinds[kind]).sum();
        sum / self.seconds.iter().sum::<f64>() * 60.0
    }

    pub(crate) fn longest_pause_ms(&self) -> f64 {
        range(&self.pauses_ms).1
    }

    /// Whether each run kept to the budget and its credit, but for the collection that used it up.
    fn is_within_budget(&self) -> bool {
        let longest = self.longest_pause_ms() / 1e3;
        let runs = self.evidence_seconds.iter().zip(&self.seconds);
        runs.into_iter()
            .all(|(evidence, seconds)| *evidence <= granted(*seconds) + longest)
    }
}

impl VmResults {
    pub(crate) fn new(vm: String) -> VmResults {
        VmResults {
            vm,
            ..VmResults::default()
        }
    }

    pub(crate) fn add_leak(&mut self, leak: Leak, stopped: Stopped) {
        let same = |row: &LeakRow| (row.threads, row.array_bytes) == (leak.threads, leak.length);
        let index = self.leaks.iter().position(same).unwrap_or_else(|| {
            self.leaks.push(LeakRow {
                threads: leak.threads,
                array_bytes: leak.length,
                first: Vec::new(),
                last: Vec::new(),
                lag_ms: Vec::new(),
                fill_ms: Vec::new(),
            });
            self.leaks.len() - 1
        });
        let row = &mut self.leaks[index];
        row.first.push(stopped.first);
        row.last.push(stopped.last);
        row.lag_ms.push(stopped.lag_ms);
        row.fill_ms.push(stopped.fill_ms);
    }

    pub(crate) fn add_bounce(&mut self, cost: Cost) {
        self.bounce.add(cost);
    }

    /// Speeds with a limit and without, of one pair of runs.
    pub(crate) fn add_churn(&mut self, limited: f64, free: f64, cost: Cost) {
        self.churn_ratio.push(limited / free);
        self.churn.add(cost);
    }

    /// Over all leaks.
    pub(crate) fn of_leaks(&self, figure: fn(&LeakRow) -> &[f64]) -> Vec<f64> {
        self.leaks.iter().flat_map(figure).copied().collect()
    }
}

impl Results {
    /// Each aim against what was measured.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let percent = |share: f64| format!("{:+.1} %", share * 100.0);
        let worst = |figure: &dyn Fn(&VmResults) -> f64| -> (f64, String) {
            let all = self.vms.iter().map(|vm| (figure(vm), vm.vm.clone()));
            all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
        };
        let mut verdicts = Vec::new();
        let (share, vm) = worst(&|vm| median(&vm.of_leaks(|row| &row.first)));
        verdicts.push(Verdict::new(
            "overshoot at the first refusal: median within 5 % of the limit".to_owned(),
            share <= MEDIAN_OVERSHOOT,
            format!("the worst is {} on {vm}", percent(share)),
        ));
        let (share, vm) = worst(&|vm| range(&vm.of_leaks(|row| &row.first)).1);
        verdicts.push(Verdict::new(
            "none over 10 %".to_owned(),
            share <= MAX_OVERSHOOT,
            format!("the worst is {} on {vm}", percent(share)),
        ));
        let (recovery, vm) = worst(&|vm| range(&vm.recovery_ms).1);
        verdicts.push(Verdict::new(
            "admitted again within 10 s in an idle JVM".to_owned(),
            recovery <= LONGEST_RECOVERY_MS,
            format!("the longest is {:.1} s on {vm}", recovery / 1e3),
        ));
        let within = |vm: &VmResults| vm.bounce.is_within_budget() && vm.churn.is_within_budget();
        let (share, vm) = worst(&|vm| {
            let shares = [&vm.bounce, &vm.churn].map(|rig| range(&rig.budget_shares()).1);
            shares[0].max(shares[1])
        });
        verdicts.push(Verdict::new(
            format!(
                "evidence within its budget, {:.0} % of wall time and of {CREDIT_SECONDS} s ahead",
                BUDGET * 100.0
            ),
            self.vms.iter().all(within),
            format!("the most is {:.0} % of it on {vm}", share * 100.0),
        ));
        let refused: f64 = self.vms.iter().flat_map(|vm| &vm.churn.refusals).sum();
        verdicts.push(Verdict::new(
            "who churns at 90 % of its limit is never refused".to_owned(),
            refused == 0.0,
            format!("{refused} refusals"),
        ));
        let g1 = self.vms.iter().filter(|vm| vm.vm.ends_with(" G1"));
        let pauses = g1.clone().flat_map(|vm| [&vm.bounce, &vm.churn]);
        let longest = pauses.map(CostRow::longest_pause_ms).reduce(f64::max);
        if let Some(longest) = longest {
            let full = KINDS.iter().position(|kind| *kind == "full").unwrap_or(0);
            let full: f64 = g1
                .flat_map(|vm| [&vm.bounce, &vm.churn])
                .map(|row| row.collections_a_minute(full))
                .sum();
            verdicts.push(Verdict::new(
                "on G1 no full collection and no pause over 20 ms that is ours".to_owned(),
                full == 0.0 && longest <= LONGEST_PAUSE_MS,
                format!("the longest is {longest:.1} ms"),
            ));
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAK: Leak = Leak {
        threads: 1,
        length: 200,
    };

    fn results(vm: VmResults) -> Results {
        Results {
            jdks: Vec::new(),
            machine: Machine::of_a_test(),
            rounds: 1,
            vms: vec![vm],
        }
    }

    fn cost(evidence_seconds: f64, pauses_ms: &[f64]) -> Cost {
        Cost {
            seconds: 10.0,
            evidence_seconds,
            collections: [0.0; KINDS.len()],
            pauses_ms: pauses_ms.to_vec(),
            refusals: 0.0,
        }
    }

    /// Of a run in which everything is as it should be, but for what `spoil` does.
    fn met(spoil: impl FnOnce(&mut VmResults)) -> Vec<bool> {
        let mut vm = VmResults::new("JDK 25 G1".to_owned());
        vm.add_leak(
            LEAK,
            Stopped {
                first: 0.01,
                last: 0.02,
                lag_ms: 5.0,
                fill_ms: 50.0,
            },
        );
        vm.recovery_ms.push(4_000.0);
        vm.add_bounce(cost(3.5, &[8.0]));
        vm.add_churn(0.9, 1.0, cost(0.0, &[]));
        spoil(&mut vm);
        results(vm).verdicts().iter().map(|v| v.met()).collect()
    }

    #[test]
    fn a_good_run_meets_all() {
        assert_eq!(met(|_| ()), [true; 6]);
    }

    #[test]
    fn each_aim_can_be_missed() {
        assert_eq!(
            met(|vm| vm.leaks[0].first.push(0.12)),
            [false, false, true, true, true, true]
        );
        assert_eq!(
            met(|vm| vm.recovery_ms.push(10_001.0)),
            [true, true, false, true, true, true]
        );
        assert_eq!(
            met(|vm| vm.add_bounce(cost(3.6, &[]))),
            [true, true, true, false, true, true]
        );
        assert_eq!(
            met(|vm| vm.churn.refusals.push(1.0)),
            [true, true, true, true, false, true]
        );
        assert_eq!(
            met(|vm| vm.add_bounce(cost(0.1, &[20.5]))),
            [true, true, true, true, true, false]
        );
    }

    #[test]
    fn shares_are_of_wall_time() {
        let mut row = CostRow::default();
        row.add(cost(0.5, &[30.0, 70.0]));
        row.add(cost(1.0, &[]));
        assert_eq!(row.evidence_shares(), [0.05, 0.1]);
        assert!((row.budget_shares()[1] - 1.0 / 3.5).abs() < 1e-9);
        assert!((row.pause_share() - 0.005).abs() < 1e-9);
        assert!(CostRow::default().longest_pause_ms() == 0.0);
    }
}
