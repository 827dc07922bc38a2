//! Widens the sampling interval, so that sampling stays within its CPU budget, and narrows it for small limits.
//!
//! The policy's interval is the finest, if it names one. The cost of a sample differs a hundredfold between programs: a
//! service is found by its thread alone, a package by a walk over cold frames. The number of samples
//! differs as well. So no fixed interval is both cheap everywhere and as accurate as possible. Estimates
//! stay unbiased through changes, because each sample is weighed with the interval that it was drawn
//! under ([`super::interval`]). A wider interval makes the standard error larger, which is published.
//!
//! # Rules
//! The *finest* interval is the policy's. If the policy names none, it is halved until the smallest limit is
//! [`LIMIT_SAMPLES_WANTED`] intervals, but not below [`FINEST_BYTES`]: a refusal comes at three standard errors
//! beyond the limit, and with 64 KiB those are 8 % of a limit of 96 MiB, with 8 KiB 3 %. It follows a smaller
//! limit at once, and a larger one, or none, after `UNNEEDED`: limits of scopes come and go.
//!
//! The interval in force is the finest, doubled `level` times. `level` is the larger of two:
//!
//! 1. **CPU time of samples.** It is measured over a window as a share of the CPU time of the process.
//!    The process counts with at least `IDLE_SHARE` of a processor, so that samples of an idle
//!    process do not matter. A window ends after `WINDOW` with at least `TIMED_ENOUGH` timed
//!    samples, after `LONG_WINDOW` with at least `TIMED_AT_LEAST` or with none, and after
//!    `LONGEST_WINDOW` in any case. With fewer than `TIMED_AT_LEAST` the cost is taken as zero.
//!    Above the budget the interval is widened at once, by as many doublings as bring the share below
//!    the budget. After `CALM` below a quarter of the budget it is narrowed by one doubling, which
//!    leaves the share below a half.
//!
//!    **Credit.** The budget holds on average, and need not be used up when nobody asks for accuracy: what
//!    samples took less than their budget is saved, up to the budget of `SAVED`, which is also there at the
//!    start. While an account with a limit fills ([`crate::enforce::filling`]), samples may take
//!    `BURST` times their budget, but at most `MOST_IN_BURST`, until the credit is used up, and again when a
//!    quarter of it is saved. The interval is narrowed at once then, as far as that share allows. So a
//!    verdict on a bulk load need not wait for the margin of coarse samples, and over any time samples take
//!    at most the budget of that time and of `SAVED`.
//! 2. **Tags.** HotSpot visits every tag at each collection: in the pause, where a million tags cost 10 to
//!    20 ms with G1, and after it, to find the dead objects. So the charged bytes, divided by the
//!    interval, must be at most `MOST_TAGS`, a quarter of what the policy lets the agent track, and
//!    as many as collections can visit, at `PER_TAG` each, in as much CPU time as samples may take.
//!    The interval is narrowed again when the finer one would give at most half of that. The rate of
//!    collections is measured over `LONG_WINDOW`. Existing tags stay: the rule bounds the number
//!    that a heap reaches as its objects are replaced.
//!
//! The interval is widened at most [`MAX_INTERVAL_DOUBLINGS`] times from the policy's, to at most
//! [`MAX_INTERVAL_BYTES`], and never so far that the smallest limit is less than [`LIMIT_SAMPLES`]
//! intervals: an account at its limit is then known to 3 %. In exact mode, and with a policy without a
//! budget, the interval does not change.

use std::time::Duration;

use policy_config::{MAX_INTERVAL_BYTES, MAX_INTERVAL_DOUBLINGS};

/// The shortest window, if it has `TIMED_ENOUGH` timed samples.
const WINDOW: Duration = Duration::from_secs(1);
const TIMED_ENOUGH: u64 = 32;
/// A longer window, for few samples.
const LONG_WINDOW: Duration = Duration::from_secs(10);
const TIMED_AT_LEAST: u64 = 8;
/// The longest window: ends even with fewer timed samples.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);
/// The processors that a process counts with, at least.
const IDLE_SHARE: f64 = 0.1;
/// How long the cost must be below `CALM_SHARE` of the budget before the interval is narrowed.
const CALM: Duration = Duration::from_secs(10);
const CALM_SHARE: f64 = 0.25;
/// The credit is at most the budget of so much CPU time for each processor that the process uses.
const SAVED: Duration = Duration::from_secs(300);
/// A burst begins with at least this part of the credit.
const CREDIT_TO_BEGIN: f64 = 0.25;
/// The budget counts so often in a burst.
const BURST: f64 = 16.0;
/// The share of the CPU time that samples may take in a burst, unless the budget itself is more.
const MOST_IN_BURST: f64 = 0.1;
/// A window may narrow the interval so many times in a burst: few samples tell little of what many cost.
const MOST_NARROWINGS: u32 = 3;
/// The most tags that a pause should visit: 1 to 2 ms.
const MOST_TAGS: u64 = 100_000;
/// The CPU time of a collection per tag. Measured: with 100,000 to a million of them, G1 and
/// JDK 25, 80 to 95 ns (the benchmarks' curve `live-samples`, less what it shows for a thousand).
const PER_TAG: Duration = Duration::from_nanos(100);
/// Tags may use 1/this of the records that may be tracked.
const TRACKED_PART: u64 = 4;
/// The smallest limit is at least so many intervals.
pub const LIMIT_SAMPLES: u64 = 1024;
/// The smallest limit is so many intervals where the policy leaves it to the agent and the budget allows: an
/// account at its limit is then known to 1.1 %.
pub const LIMIT_SAMPLES_WANTED: u64 = 8192;
/// The finest interval that the agent chooses for a limit.
pub const FINEST_BYTES: u64 = policy_config::FINEST_DEFAULT_INTERVAL_BYTES;
/// How long a finer interval stays when no limit needs it any more.
const UNNEEDED: Duration = Duration::from_secs(60);

/// What the policy in force asks for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wanted {
    /// Mean bytes between samples; 0 is exact.
    pub interval_bytes: u64,
    /// The policy names no interval: small limits may narrow it.
    pub may_be_finer: bool,
    /// Share of the process's CPU time (0 to 1) that samples may take; `None` for no bound.
    pub budget: Option<f64>,
    /// The most samples that may be tracked.
    pub most_tracked: u64,
}

/// What has been measured since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// The time since the agent was loaded.
    pub since_start: Duration,
    /// CPU time of the process.
    pub process_cpu: Duration,
    /// Estimated CPU time of samples and refunds.
    pub samples_cpu: Duration,
    /// How many samples were timed, from which `samples_cpu` is estimated.
    pub timed: u64,
    /// How many pauses of the collector have ended.
    pub collections: u64,
    /// Bytes charged to all accounts together, now.
    pub charged_bytes: u64,
    /// The smallest limit of any account, if one has a limit.
    pub smallest_limit_bytes: Option<u64>,
    /// An account that has a limit grows towards it.
    pub is_any_filling: bool,
}

/// What samples may take, and what they have saved.
#[derive(Debug, Clone, Copy, Default)]
struct Credit {
    /// The CPU time in seconds; `None` before the first window.
    saved: Option<f64>,
    /// The most processors that the process has used in a window, at least one.
    processors: f64,
    /// The credit is being used.
    is_burst: bool,
}

impl Credit {
    /// A window has ended: the process used so much CPU time in it, samples so much.
    fn settle(&mut self, budget: f64, elapsed: f64, used: f64, took: f64) {
        self.processors = self.processors.max(used / elapsed).max(1.0);
        let most = self.most(budget);
        let saved = self.saved.unwrap_or(most);
        self.saved = Some((saved + budget * used - took).min(most));
    }

    fn most(&self, budget: f64) -> f64 {
        budget * SAVED.as_secs_f64() * self.processors
    }

    /// The share of the CPU time that samples may take now.
    fn share(&mut self, budget: f64, is_any_filling: bool) -> f64 {
        let needed = match self.is_burst {
            true => 0.0,
            false => CREDIT_TO_BEGIN * self.most(budget),
        };
        self.is_burst = is_any_filling && self.saved.is_some_and(|saved| saved > needed);
        match self.is_burst {
            true => (BURST * budget).min(MOST_IN_BURST).max(budget),
            false => budget,
        }
    }
}

/// Why the interval changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Samples took more than their budget.
    Cost,
    /// There would be more tags than collections should visit.
    Tags,
    /// The reason for widening it is gone, or a limit needs a finer one.
    Calm,
    /// A limit wants a finer one than the policy's.
    Limit,
}

/// A change of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The new interval.
    pub interval_bytes: u64,
    /// The reason.
    pub why: Why,
}

/// The state between two looks. Knows no clock: everything is measured by the caller.
#[derive(Debug, Default)]
pub struct Governor {
    wanted: Wanted,
    /// How often the policy's interval is halved for the smallest limit.
    halvings: u32,
    /// Since when fewer halvings would do.
    unneeded_since: Option<Duration>,
    /// The doublings in force.
    level: u32,
    /// The doublings that rule 1 alone wants.
    by_cost: u32,
    /// The doublings that rule 2 alone wants.
    by_tags: u32,
    window: Measured,
    calm: Duration,
    credit: Credit,
    /// The share of the CPU time that samples took in the last window.
    latest_share: Option<f64>,
    /// The start of the window of rule 2.
    tags_window: Measured,
    /// How many tags collections can visit within the budget; `None` for no bound.
    affordable_tags: Option<u64>,
}

impl Governor {
    /// Takes over what a policy asks for. Returns the interval to put in force: the policy's own, if
    /// anything has changed.
    pub fn adopt(&mut self, wanted: Wanted) -> u64 {
        if wanted != self.wanted {
            *self = Governor {
                wanted,
                window: self.window,
                tags_window: self.tags_window,
                credit: self.credit,
                ..Governor::default()
            };
        }
        self.interval_bytes()
    }

    /// The interval in force, in bytes.
    pub fn interval_bytes(&self) -> u64 {
        self.finest_bytes() << self.level
    }

    fn finest_bytes(&self) -> u64 {
        self.wanted.interval_bytes >> self.halvings
    }

    fn most_doublings(&self) -> u32 {
        MAX_INTERVAL_DOUBLINGS + self.halvings
    }

    /// Applies the rules to the measurements; returns the change that follows, if any.
    pub fn look(&mut self, measured: &Measured) -> Option<Change> {
        let budget = self.wanted.budget.filter(|share| *share > 0.0)?;
        if self.wanted.interval_bytes == 0 {
            return None;
        }
        let before_bytes = self.interval_bytes();
        self.follow_limits(measured);
        self.apply_cost_rule(budget, measured);
        self.count_collections(budget, measured);
        self.apply_tags_rule(measured.charged_bytes);
        let wanted_level = self.by_cost.max(self.by_tags);
        let level = wanted_level.min(self.most_level(measured.smallest_limit_bytes));
        self.level = level;
        let bytes = self.interval_bytes();
        if bytes == before_bytes {
            return None;
        }
        let why = match bytes > before_bytes {
            false if bytes < self.wanted.interval_bytes => Why::Limit,
            false => Why::Calm,
            true if self.level == 0 => Why::Calm,
            true if self.by_cost >= self.by_tags => Why::Cost,
            true => Why::Tags,
        };
        self.calm = Duration::ZERO;
        Some(Change {
            interval_bytes: self.interval_bytes(),
            why,
        })
    }

    /// Chooses the finest interval for the smallest limit. If samples cost too much already, the interval
    /// in force stays, and is narrowed when it is calm.
    fn follow_limits(&mut self, measured: &Measured) {
        let needed = if self.wanted.may_be_finer {
            halvings(self.wanted.interval_bytes, measured.smallest_limit_bytes)
        } else {
            0
        };
        let now = measured.since_start;
        if needed > self.halvings {
            let more = needed - self.halvings;
            self.halvings = needed;
            self.level += more;
            if self.by_cost > 0 {
                self.by_cost += more;
            }
        } else if needed < self.halvings {
            let since = *self.unneeded_since.get_or_insert(now);
            if now.saturating_sub(since) < UNNEEDED {
                return;
            }
            let less = self.halvings - needed;
            self.halvings = needed;
            self.level = self.level.saturating_sub(less);
            self.by_cost = self.by_cost.saturating_sub(less);
            self.by_tags = self.by_tags.saturating_sub(less);
        }
        self.unneeded_since = None;
    }

    fn apply_cost_rule(&mut self, budget: f64, measured: &Measured) {
        let was_burst = self.credit.is_burst;
        if let Some(elapsed) = self.read_window(budget, measured) {
            let share = self.latest_share.unwrap_or_default();
            let allowed = self.credit.share(budget, measured.is_any_filling);
            if share > allowed {
                // A share above 1 counts as 1.
                let doublings = (share.min(1.0) / allowed).log2().ceil().max(1.0) as u32;
                self.by_cost = (self.level + doublings).min(self.most_doublings());
                self.calm = Duration::ZERO;
            } else if self.credit.is_burst {
                self.narrow_for_burst(share, allowed);
            } else if share < budget * CALM_SHARE {
                self.calm += elapsed;
                if self.calm >= CALM {
                    self.calm = Duration::ZERO;
                    self.by_cost = self.by_cost.min(self.level).saturating_sub(1);
                }
            } else {
                self.calm = Duration::ZERO;
            }
        } else if !was_burst && let Some(share) = self.latest_share {
            // An account has begun to fill within a window.
            let allowed = self.credit.share(budget, measured.is_any_filling);
            if self.credit.is_burst && share <= allowed {
                self.narrow_for_burst(share, allowed);
            }
        }
    }

    /// As fine as this share allows, if a sample costs what it cost in the last window.
    fn narrow_for_burst(&mut self, share: f64, allowed: f64) {
        let narrowings = (allowed / share).log2().floor();
        // Nothing was measured if that is not finite.
        let narrowings = narrowings.clamp(0.0, f64::from(MOST_NARROWINGS)) as u32;
        self.by_cost = self.by_cost.min(self.level).saturating_sub(narrowings);
        self.calm = Duration::ZERO;
    }

    /// Ends a window of rule 1, if it is long enough: returns how long it was.
    fn read_window(&mut self, budget: f64, measured: &Measured) -> Option<Duration> {
        let elapsed = measured.since_start.saturating_sub(self.window.since_start);
        let timed = measured.timed.saturating_sub(self.window.timed);
        let enough = match elapsed {
            _ if elapsed < WINDOW => return None,
            _ if elapsed < LONG_WINDOW => TIMED_ENOUGH,
            _ if elapsed < LONGEST_WINDOW => TIMED_AT_LEAST,
            _ => 0,
        };
        if timed < enough && (timed > 0 || elapsed < LONG_WINDOW) {
            return None;
        }
        let used = measured.process_cpu.saturating_sub(self.window.process_cpu);
        let took = measured.samples_cpu.saturating_sub(self.window.samples_cpu);
        self.window = *measured;
        let seconds = elapsed.as_secs_f64();
        let used = used.as_secs_f64().max(IDLE_SHARE * seconds);
        (self.credit).settle(budget, seconds, used, took.as_secs_f64());
        self.latest_share = Some(if timed < TIMED_AT_LEAST {
            0.0
        } else {
            took.as_secs_f64() / used
        });
        Some(elapsed)
    }

    /// Measures how many tags collections can visit at their present rate.
    fn count_collections(&mut self, budget: f64, measured: &Measured) {
        let before = self.tags_window;
        let elapsed = measured.since_start.saturating_sub(before.since_start);
        if elapsed < LONG_WINDOW {
            return;
        }
        self.tags_window = *measured;
        let used = measured.process_cpu.saturating_sub(before.process_cpu);
        let used = used.as_secs_f64().max(IDLE_SHARE * elapsed.as_secs_f64());
        let collections = measured.collections.saturating_sub(before.collections);
        self.affordable_tags = (collections > 0)
            .then(|| (budget * used / PER_TAG.as_secs_f64() / collections as f64) as u64);
    }

    fn apply_tags_rule(&mut self, charged_bytes: u64) {
        let most = MOST_TAGS
            .min(self.wanted.most_tracked / TRACKED_PART)
            .min(self.affordable_tags.unwrap_or(u64::MAX))
            .max(1);
        let finest_bytes = self.finest_bytes();
        let samples = |level: u32| charged_bytes / (finest_bytes << level).max(1);
        while self.by_tags < self.most_doublings() && samples(self.by_tags) > most {
            self.by_tags += 1;
        }
        while self.by_tags > 0 && samples(self.by_tags - 1) <= most / 2 {
            self.by_tags -= 1;
        }
    }

    /// The highest level at which the smallest limit is still [`LIMIT_SAMPLES`] intervals.
    fn most_level(&self, smallest_limit_bytes: Option<u64>) -> u32 {
        let by_limit = smallest_limit_bytes.map_or(u64::MAX, |limit| limit / LIMIT_SAMPLES);
        let widest_bytes = by_limit.min(MAX_INTERVAL_BYTES);
        let intervals = widest_bytes / self.finest_bytes().max(1);
        (intervals.checked_ilog2().unwrap_or(0)).min(self.most_doublings())
    }
}

/// How often an interval is to be halved until a limit is [`LIMIT_SAMPLES_WANTED`] of it.
fn halvings(interval_bytes: u64, limit_bytes: Option<u64>) -> u32 {
    let Some(limit_bytes) = limit_bytes else {
        return 0;
    };
    let wanted_bytes = (limit_bytes / LIMIT_SAMPLES_WANTED).max(FINEST_BYTES);
    let mut halvings = 0;
    while interval_bytes >> halvings > wanted_bytes
        && interval_bytes >> (halvings + 1) >= FINEST_BYTES
    {
        halvings += 1;
    }
    halvings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn wanted() -> Wanted {
        Wanted {
            interval_bytes: 64 * KIB,
            may_be_finer: false,
            budget: Some(0.01),
            most_tracked: 1_000_000,
        }
    }

    /// A program of two processors that allocates at this rate, whose samples take so long each.
    struct Program {
        bytes_per_second: f64,
        sample: Duration,
        samples: f64,
        now: Measured,
    }

    impl Program {
        fn new(bytes_per_second: f64, sample_us: f64) -> Program {
            Program {
                bytes_per_second,
                sample: Duration::from_secs_f64(sample_us / 1e6),
                samples: 0.0,
                now: Measured::default(),
            }
        }

        /// A second passes; the share of the CPU time that samples took in it.
        fn second(&mut self, interval_bytes: u64) -> f64 {
            let samples = self.bytes_per_second / interval_bytes as f64;
            let took = self.sample.mul_f64(samples).min(Duration::from_secs(2));
            self.now.since_start += Duration::from_secs(1);
            self.now.process_cpu += Duration::from_secs(2);
            self.now.samples_cpu += took;
            self.samples += samples;
            self.now.timed = (self.samples / 64.0) as u64;
            took.as_secs_f64() / 2.0
        }
    }

    fn governor() -> Governor {
        let mut governor = Governor::default();
        assert_eq!(governor.adopt(wanted()), 64 * KIB);
        governor
    }

    #[test]
    fn cheap_samples_are_left_alone() {
        let mut governor = governor();
        let mut program = Program::new(500e6, 1.0);
        for _ in 0..100 {
            program.second(governor.interval_bytes());
            assert_eq!(governor.look(&program.now), None);
        }
    }

    #[test]
    fn dear_samples_are_taken_less_often_at_once_and_more_often_when_it_is_calm() {
        let mut governor = governor();
        let mut program = Program::new(1e9, 50.0);
        program.second(64 * KIB);
        let change = governor.look(&program.now).expect("38 % is more than 1");
        assert_eq!((change.interval_bytes, change.why), (4 * MIB, Why::Cost));
        program.bytes_per_second = 1e6;
        let mut narrowed = Vec::new();
        for second in 0..2000 {
            program.second(governor.interval_bytes());
            if let Some(change) = governor.look(&program.now) {
                assert_eq!(change.why, Why::Calm);
                narrowed.push((second, change.interval_bytes / KIB));
            }
        }
        let sizes: Vec<u64> = narrowed.iter().map(|(_, kib)| *kib).collect();
        assert_eq!(sizes, [2048, 1024, 512, 256, 128, 64]);
        assert!(narrowed.windows(2).all(|two| two[1].0 - two[0].0 >= 10));
    }

    #[test]
    fn an_idle_process_and_a_single_slow_sample_widen_nothing() {
        let mut governor = governor();
        let mut now = Measured::default();
        for _ in 0..100 {
            now.since_start += Duration::from_secs(1);
            now.process_cpu += Duration::from_millis(2);
            now.samples_cpu += Duration::from_micros(500);
            now.timed += 1;
            assert_eq!(governor.look(&now), None);
        }
        // One sample was slow, and counts for 64.
        now.since_start += Duration::from_secs(20);
        now.samples_cpu += Duration::from_secs(3);
        now.timed += 2;
        assert_eq!(governor.look(&now), None);
    }

    #[test]
    fn a_large_heap_is_sampled_wider_before_its_tags_cost_pauses() {
        let mut governor = governor();
        let mut now = Measured {
            charged_bytes: 6 << 30,
            ..Measured::default()
        };
        assert_eq!(governor.look(&now), None);
        now.charged_bytes = 20 << 30;
        let change = governor.look(&now).expect("327,680 samples are too many");
        assert_eq!((change.interval_bytes, change.why), (256 * KIB, Why::Tags));
        now.charged_bytes = 8 << 30;
        assert_eq!(governor.look(&now), None, "not at the same place");
        now.charged_bytes = 3 << 30;
        assert_eq!(
            governor.look(&now).map(|c| c.interval_bytes),
            Some(64 * KIB)
        );
    }

    #[test]
    fn where_collections_are_many_fewer_tags_are_affordable() {
        let mut governor = governor();
        let mut now = Measured {
            charged_bytes: 2 << 30,
            ..Measured::default()
        };
        let mut seconds = |governor: &mut Governor, seconds: u64, collections: u64| {
            for _ in 0..seconds {
                now.since_start += Duration::from_secs(1);
                now.process_cpu += Duration::from_secs(2);
                now.collections += collections;
                let change = governor.look(&now);
                assert!(change.is_none_or(|change| change.why != Why::Cost));
            }
            governor.interval_bytes() / KIB
        };
        // 32,768 tags at 1 collection a second are 3.3 ms of 2 s, well below a hundredth.
        assert_eq!(seconds(&mut governor, 60, 1), 64);
        // At 20 they are 66 ms, where 20 are allowed.
        assert_eq!(seconds(&mut governor, 20, 20), 256);
        // Not narrowed at the same place.
        assert_eq!(seconds(&mut governor, 60, 12), 256);
        assert_eq!(seconds(&mut governor, 60, 1), 64);
        // Nor is an idle program's heap, which is collected when it has allocated enough.
        assert_eq!(seconds(&mut governor, 60, 0), 64);
    }

    #[test]
    fn a_limit_keeps_its_samples() {
        let mut governor = governor();
        let mut program = Program::new(1e9, 50.0);
        program.now.smallest_limit_bytes = Some(256 * MIB);
        program.second(64 * KIB);
        let change = governor.look(&program.now).expect("it is dear");
        assert_eq!(change.interval_bytes, 256 * KIB);
        program.now.smallest_limit_bytes = Some(16 * MIB);
        let change = governor.look(&program.now).expect("a smaller limit came");
        assert_eq!((change.interval_bytes, change.why), (64 * KIB, Why::Calm));
    }

    /// A governor that chooses the interval itself.
    fn free_governor() -> Governor {
        let mut governor = Governor::default();
        let may_be_finer = true;
        governor.adopt(Wanted {
            may_be_finer,
            ..wanted()
        });
        governor
    }

    #[test]
    fn a_small_limit_is_sampled_finer_where_that_is_cheap() {
        for (limit, kib) in [
            (None, 64),
            (Some(2 << 30), 64),
            (Some(512 * MIB), 64),
            (Some(511 * MIB), 32),
            (Some(96 * MIB), 8),
            (Some(MIB), 8),
        ] {
            let mut program = Program::new(50e6, 1.0);
            program.now.smallest_limit_bytes = limit;
            let (mut governor, mut named) = (free_governor(), governor());
            for _ in 0..100 {
                program.second(governor.interval_bytes());
                governor.look(&program.now);
                named.look(&program.now);
            }
            assert_eq!(governor.interval_bytes(), kib * KIB, "{limit:?}");
            assert_eq!(named.interval_bytes(), 64 * KIB, "the policy names it");
        }
    }

    #[test]
    fn a_finer_interval_is_widened_within_the_budget() {
        let mut governor = free_governor();
        let mut program = Program::new(1e9, 1.0);
        program.now.smallest_limit_bytes = Some(96 * MIB);
        let mut shares = Vec::new();
        for _ in 0..300 {
            shares.push(program.second(governor.interval_bytes()));
            governor.look(&program.now);
        }
        assert!(
            shares.iter().filter(|share| **share > 0.01).count() <= 5,
            "{shares:?}"
        );
        assert_eq!(governor.interval_bytes(), 64 * KIB);
        // A new small limit does not narrow what samples cost too much for already.
        let mut program = Program::new(1e9, 50.0);
        let mut governor = free_governor();
        program.second(governor.interval_bytes());
        governor.look(&program.now);
        let wide = governor.interval_bytes();
        program.now.smallest_limit_bytes = Some(8 << 30);
        governor.look(&program.now);
        assert_eq!(governor.interval_bytes(), wide);
    }

    /// Seconds in which samples took more than the budget, and the finest interval in them.
    fn burst(governor: &mut Governor, program: &mut Program, seconds: u64) -> (usize, u64) {
        let (mut dear, mut finest) = (0, u64::MAX);
        for _ in 0..seconds {
            dear += usize::from(program.second(governor.interval_bytes()) > 0.01);
            finest = finest.min(governor.interval_bytes());
            governor.look(&program.now);
        }
        (dear, finest / KIB)
    }

    #[test]
    fn an_account_that_fills_is_sampled_finer_until_the_credit_is_used_up() {
        let mut governor = free_governor();
        // 0.8 % at 64 KiB.
        let mut program = Program::new(100e6, 10.0);
        program.now.smallest_limit_bytes = Some(96 * MIB);
        let (dear, _) = burst(&mut governor, &mut program, 60);
        assert!(dear <= 5, "nobody fills: {dear}");
        assert_eq!(
            governor.interval_bytes(),
            64 * KIB,
            "no wider: it is a small limit"
        );
        program.now.is_any_filling = true;
        let (dear, finest) = burst(&mut governor, &mut program, 20);
        assert!(dear >= 18, "{dear}");
        assert_eq!(finest, 8, "at 6.1 % of the CPU time");
        let (_, finest) = burst(&mut governor, &mut program, 600);
        assert_eq!(finest, 8);
        assert_eq!(governor.interval_bytes(), 64 * KIB, "the credit is used up");
        program.now.is_any_filling = false;
        program.bytes_per_second = 1e6;
        burst(&mut governor, &mut program, 120);
        program.bytes_per_second = 100e6;
        program.now.is_any_filling = true;
        let (dear, _) = burst(&mut governor, &mut program, 10);
        assert!(dear >= 9, "there is credit again: {dear}");
    }

    #[test]
    fn limits_that_come_and_go_do_not_make_it_swing() {
        let mut governor = free_governor();
        let mut program = Program::new(10e6, 1.0);
        let mut changes = 0;
        for second in 0..200 {
            program.now.smallest_limit_bytes = (second % 20 < 10).then_some(64 * MIB);
            program.second(governor.interval_bytes());
            changes += u32::from(governor.look(&program.now).is_some());
        }
        assert_eq!((changes, governor.interval_bytes()), (1, 8 * KIB));
        program.now.smallest_limit_bytes = None;
        for _ in 0..70 {
            program.second(governor.interval_bytes());
            governor.look(&program.now);
        }
        assert_eq!(governor.interval_bytes(), 64 * KIB);
    }

    #[test]
    fn no_interval_is_wider_than_the_vm_may_be_told() {
        let mut governor = Governor::default();
        governor.adopt(Wanted {
            interval_bytes: 24 * MIB,
            ..wanted()
        });
        let mut program = Program::new(20e9, 5000.0);
        program.now.charged_bytes = 1 << 50;
        for _ in 0..100 {
            program.second(governor.interval_bytes());
            governor.look(&program.now);
        }
        assert_eq!(governor.interval_bytes(), 48 * MIB);
    }

    #[test]
    fn exact_mode_and_no_budget_are_left_alone() {
        for (interval_bytes, budget) in [(0, Some(0.01)), (64 * KIB, None)] {
            let mut governor = Governor::default();
            governor.adopt(Wanted {
                interval_bytes,
                budget,
                ..wanted()
            });
            let mut program = Program::new(1e9, 50.0);
            program.now.charged_bytes = 1 << 40;
            program.second(64 * KIB);
            assert_eq!(governor.look(&program.now), None);
        }
    }

    #[test]
    fn another_policy_begins_anew_and_the_same_one_does_not() {
        let mut governor = governor();
        let mut program = Program::new(1e9, 50.0);
        program.second(64 * KIB);
        governor.look(&program.now);
        assert_eq!(governor.adopt(wanted()), 4 * MIB);
        let finer = Wanted {
            interval_bytes: 16 * KIB,
            ..wanted()
        };
        assert_eq!(governor.adopt(finer), 16 * KIB);
    }

    proptest! {
        /// Whatever the program does steadily, sampling comes within its budget in a moment, or
        /// is as wide as may be, and does not swing.
        #[test]
        fn it_settles(rate in 1e5f64..2e10, sample_us in 0.1f64..500.0) {
            let mut governor = governor();
            let mut program = Program::new(rate, sample_us);
            let mut changes = 0;
            for second in 0..300 {
                let share = program.second(governor.interval_bytes());
                changes += u32::from(governor.look(&program.now).is_some());
                let widest = governor.interval_bytes() == (64 * KIB) << MAX_INTERVAL_DOUBLINGS;
                prop_assert!(second < 15 || share <= 0.01 || widest, "{share} in second {second}");
            }
            prop_assert!(changes <= 3, "{changes}");
        }

        /// Whatever fills when, samples take no more than the budget of all the time, of what may be saved,
        /// and of the windows in which it is noticed: one at each change.
        #[test]
        fn the_budget_holds_on_average(
            phases in proptest::collection::vec((1u64..200, 1e5f64..2e9, any::<bool>()), 1..20),
            sample_us in 0.1f64..20.0,
        ) {
            let mut governor = free_governor();
            let mut program = Program::new(0.0, sample_us);
            program.now.smallest_limit_bytes = Some(512 * MIB);
            let mut beyond = 0.0;
            for (seconds, rate, fills) in &phases {
                program.bytes_per_second = *rate;
                program.now.is_any_filling = *fills;
                for second in 0..*seconds {
                    let finest = governor.interval_bytes() == governor.finest_bytes();
                    let widest = governor.interval_bytes()
                        == governor.finest_bytes() << governor.most_level(Some(512 * MIB));
                    let share = program.second(governor.interval_bytes());
                    prop_assert!(
                        second < 15 || share <= MOST_IN_BURST || widest,
                        "{share} in second {second}, finest: {finest}"
                    );
                    // What no rule can help: the first seconds of a phase, and the widest interval.
                    if second < 15 || widest {
                        beyond += share * 2.0;
                    }
                    governor.look(&program.now);
                }
            }
            let all = program.now.process_cpu.as_secs_f64();
            let took = program.now.samples_cpu.as_secs_f64();
            prop_assert!(took <= 0.01 * (all + 2.0 * SAVED.as_secs_f64()) + beyond + 0.5, "{took} of {all}");
        }

        /// The same where the agent chooses the interval for a limit, which it then begins with.
        #[test]
        fn it_settles_with_a_limit(
            rate in 1e5f64..2e10, sample_us in 0.1f64..500.0, limit_log in 20f64..40.0,
        ) {
            let mut governor = free_governor();
            let mut program = Program::new(rate, sample_us);
            let limit = Some(limit_log.exp2() as u64);
            program.now.smallest_limit_bytes = limit;
            let mut changes = 0;
            for second in 0..300 {
                let share = program.second(governor.interval_bytes());
                changes += u32::from(governor.look(&program.now).is_some());
                let widest = governor.finest_bytes() << governor.most_level(limit);
                let is_widest = governor.interval_bytes() == widest;
                prop_assert!(second < 15 || share <= 0.01 || is_widest, "{share} in second {second}");
            }
            prop_assert!(changes <= 4, "{changes}");
        }
    }
}
