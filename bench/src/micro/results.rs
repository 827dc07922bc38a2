//! The times and the memory by rounds, and the figures that follow from them.

use serde::Serialize;

use super::cases::{DEPTHS, Policy};
use super::memory::PerSample;
use super::rig::{Timed, Who};
use crate::machine::Machine;
use crate::stats::{median, range};
use crate::verdicts::Verdict;

/// Largest ratio to the bare calls that the project aims at.
pub(crate) const MAX_RATIO: f64 = 1.2;
/// Most bytes of the agent's own for each tracked sample.
pub(crate) const MAX_BYTES: f64 = 64.0;
/// A figure that moves by less between the fewest and the most accounts does not grow: repeated
/// runs of one case on a quiet machine differ by about as much.
pub(crate) const MAX_GROWTH: f64 = 1.1;

/// A whole run of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) jdk: String,
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) depths: Vec<DepthRow>,
    pub(crate) accounts: Vec<AccountRow>,
    pub(crate) memory: Vec<MemoryRow>,
}

/// Times of both by rounds, in ns.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Pairs {
    pub(crate) ours_p50_ns: Vec<f64>,
    pub(crate) bare_p50_ns: Vec<f64>,
    pub(crate) ours_p99_ns: Vec<f64>,
    pub(crate) bare_p99_ns: Vec<f64>,
}

impl Pairs {
    fn add(&mut self, ours: &Timed, bare: &Timed) {
        self.ours_p50_ns.push(ours.p50_ns);
        self.bare_p50_ns.push(bare.p50_ns);
        self.ours_p99_ns.push(ours.p99_ns);
        self.bare_p99_ns.push(bare.p99_ns);
    }

    /// Ratio of the medians of one round, for each.
    fn ratios(&self) -> Vec<f64> {
        let pairs = self.ours_p50_ns.iter().zip(&self.bare_p50_ns);
        pairs.map(|(ours, bare)| ours / bare.max(1.0)).collect()
    }

    /// The middle one of the rounds' ratios.
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.ratios())
    }

    /// The smallest and the largest of the rounds' ratios.
    pub(crate) fn ratio_range(&self) -> (f64, f64) {
        range(&self.ratios())
    }
}

/// A policy at a depth.
#[derive(Debug, Serialize)]
pub(crate) struct DepthRow {
    pub(crate) policy: &'static str,
    pub(crate) cache: &'static str,
    pub(crate) depth_frames: usize,
    pub(crate) pairs: Pairs,
}

/// A number of accounts.
#[derive(Debug, Serialize)]
pub(crate) struct AccountRow {
    pub(crate) kind: &'static str,
    pub(crate) accounts: usize,
    pub(crate) pairs: Pairs,
}

/// Memory for each tracked sample.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryRow {
    /// `heapwarden` or `bare`.
    pub(crate) agent: &'static str,
    pub(crate) accounts: usize,
    pub(crate) ledger_bytes: Option<f64>,
    pub(crate) resident_bytes: f64,
}

impl Results {
    pub(crate) fn new(jdk: String, machine: Machine, rounds: u32) -> Results {
        Results {
            jdk,
            machine,
            rounds,
            depths: Vec::new(),
            accounts: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// Adds one round of a policy at every depth.
    pub(crate) fn add_depths(
        &mut self,
        policy: Policy,
        cold: bool,
        (ours, bare): (Vec<Timed>, Vec<Timed>),
    ) {
        let (policy, cache) = (policy.name(), if cold { "cold" } else { "warm" });
        for depth in DEPTHS {
            let at = |timed: &[Timed]| timed.iter().find(|t| t.depth == depth).cloned();
            let (Some(ours), Some(bare)) = (at(&ours), at(&bare)) else {
                continue;
            };
            let same = |row: &DepthRow| {
                (row.policy, row.cache, row.depth_frames) == (policy, cache, depth)
            };
            let index = self.depths.iter().position(same).unwrap_or_else(|| {
                self.depths.push(DepthRow {
                    policy,
                    cache,
                    depth_frames: depth,
                    pairs: Pairs::default(),
                });
                self.depths.len() - 1
            });
            self.depths[index].pairs.add(&ours, &bare);
        }
    }

    /// Adds one round of a number of accounts.
    pub(crate) fn add_accounts(
        &mut self,
        kind: &'static str,
        accounts: usize,
        (ours, bare): (Vec<Timed>, Vec<Timed>),
    ) {
        let same = |row: &AccountRow| (row.kind, row.accounts) == (kind, accounts);
        let index = self.accounts.iter().position(same).unwrap_or_else(|| {
            self.accounts.push(AccountRow {
                kind,
                accounts,
                pairs: Pairs::default(),
            });
            self.accounts.len() - 1
        });
        for (ours, bare) in ours.iter().zip(&bare) {
            self.accounts[index].pairs.add(ours, bare);
        }
    }

    /// Adds a measurement of memory.
    pub(crate) fn add_memory(&mut self, who: Who, accounts: usize, bytes: PerSample) {
        self.memory.push(MemoryRow {
            agent: match who {
                Who::Ours => "heapwarden",
                Who::Bare => "bare",
            },
            accounts,
            ledger_bytes: bytes.ledger_bytes,
            resident_bytes: bytes.resident_bytes,
        });
    }

    /// Each aim against what was measured.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for policy in Policy::ALL {
            for cache in ["warm", "cold"] {
                verdicts.extend(self.ratio_verdict(policy.name(), cache));
            }
        }
        verdicts.extend(self.memory_verdict());
        for kind in ["package accounts", "services"] {
            verdicts.extend(self.growth_verdict(kind));
        }
        verdicts.extend(self.memory_growth_verdict());
        verdicts
    }

    fn ratio_verdict(&self, policy: &str, cache: &str) -> Option<Verdict> {
        let rows = self.depths.iter();
        let ratios: Vec<(f64, usize)> = rows
            .filter(|row| row.policy == policy && row.cache == cache)
            .map(|row| (row.pairs.ratio(), row.depth_frames))
            .collect();
        let (worst, depth) = ratios.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let met = ratios.iter().filter(|(r, _)| *r <= MAX_RATIO).count();
        Some(Verdict::new(
            format!("{policy}, {cache}: at most {MAX_RATIO} times the bare calls"),
            worst <= MAX_RATIO,
            format!(
                "{met} of {} depths meet it; the worst is {worst:.2} at {depth} frames",
                ratios.len()
            ),
        ))
    }

    fn ledgers(&self) -> Vec<f64> {
        self.memory.iter().filter_map(|m| m.ledger_bytes).collect()
    }

    fn memory_verdict(&self) -> Option<Verdict> {
        let worst = self.ledgers().into_iter().reduce(f64::max)?;
        Some(Verdict::new(
            format!("at most {MAX_BYTES} bytes of ours for each tracked sample"),
            worst <= MAX_BYTES,
            format!("{worst:.1} bytes"),
        ))
    }

    /// More tagged loaders make the JVM's own look-ups dearer: growth that the bare calls share
    /// is not held against the agent.
    fn growth_verdict(&self, kind: &str) -> Option<Verdict> {
        let rows: Vec<&AccountRow> = self.accounts.iter().filter(|r| r.kind == kind).collect();
        let (first, last) = (rows.first()?, rows.last()?);
        let growth =
            |of: fn(&Pairs) -> &[f64]| median(of(&last.pairs)) / median(of(&first.pairs)).max(1.0);
        let ours = growth(|pairs| &pairs.ours_p50_ns);
        let bare = growth(|pairs| &pairs.bare_p50_ns);
        Some(Verdict::new(
            format!(
                "{kind}: no dearer with {} than with {}",
                last.accounts, first.accounts
            ),
            ours <= MAX_GROWTH || ours / bare <= MAX_GROWTH,
            format!("{ours:.2} times the time; the bare calls {bare:.2} times"),
        ))
    }

    fn memory_growth_verdict(&self) -> Option<Verdict> {
        let ledgers = self.ledgers();
        let (first, last) = (ledgers.first()?, ledgers.last()?);
        Some(Verdict::new(
            "no more bytes for each sample with more accounts".to_owned(),
            last / first <= MAX_GROWTH,
            format!("{first:.1} and {last:.1} bytes"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(depth: usize, p50_ns: f64) -> Vec<Timed> {
        vec![Timed {
            depth,
            samples: 1,
            p50_ns,
            p99_ns: 2.0 * p50_ns,
        }]
    }

    fn results() -> Results {
        let machine = Machine::of_a_test();
        Results::new("25".to_owned(), machine, 3)
    }

    fn met(results: &Results) -> Vec<bool> {
        results.verdicts().iter().map(|v| v.met()).collect()
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios() {
        let mut results = results();
        for (ours, bare) in [(110.0, 100.0), (300.0, 100.0), (240.0, 200.0)] {
            results.add_depths(Policy::TopFrame, false, (timed(5, ours), timed(5, bare)));
        }
        assert_eq!(results.depths.len(), 1);
        assert_eq!(results.depths[0].pairs.ratio(), 1.2);
        assert_eq!(results.depths[0].pairs.ratio_range(), (1.1, 3.0));
        assert_eq!(met(&results), [true]);
    }

    #[test]
    fn one_depth_beyond_the_aim_misses_it() {
        let mut results = results();
        results.add_depths(Policy::TopFrame, false, (timed(5, 100.0), timed(5, 100.0)));
        results.add_depths(
            Policy::TopFrame,
            false,
            (timed(10, 130.0), timed(10, 100.0)),
        );
        assert_eq!(met(&results), [false]);
    }

    #[test]
    fn growth_that_the_bare_calls_share_is_not_ours() {
        let mut shared = results();
        shared.add_accounts("services", 1, (timed(20, 100.0), timed(20, 80.0)));
        shared.add_accounts("services", 5000, (timed(20, 150.0), timed(20, 120.0)));
        assert_eq!(met(&shared), [true]);
        let mut ours = results();
        ours.add_accounts("services", 1, (timed(20, 100.0), timed(20, 80.0)));
        ours.add_accounts("services", 5000, (timed(20, 150.0), timed(20, 80.0)));
        assert_eq!(met(&ours), [false]);
    }

    #[test]
    fn memory_is_judged_by_its_worst_and_by_its_growth() {
        let mut results = results();
        for (accounts, ledger) in [(1, 40.0), (5000, 70.0)] {
            let bytes = PerSample {
                ledger_bytes: Some(ledger),
                resident_bytes: 100.0,
            };
            results.add_memory(Who::Ours, accounts, bytes);
        }
        assert_eq!(met(&results), [false, false]);
    }
}
