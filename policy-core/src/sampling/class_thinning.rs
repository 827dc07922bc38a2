//! Fewer samples of classes that nobody asks about (`[[sampling.thin]]`): less to tag, to track and to free.
//!
//! # Rules
//! 1. A rule of the policy keeps a share q of the samples of its classes. A sample that was drawn under the
//!    interval I is kept with the probability `p(s, J) / p(s, I)` for the wider interval `J = I / q` and p
//!    as in [`super::weight`]. So it is sampled as if it had been drawn under J, and is charged with what it
//!    stands for under J: every sum stays unbiased. For small objects the share is q; objects that are
//!    large against I are kept more often, and those far above J always.
//! 2. J is at most [`WIDEST_BYTES`]. For an account with a limit it is also at most 1/`LIMIT_SAMPLES` of
//!    the limit, as in the governor: J is halved until it is, and where that leaves nothing the classes of
//!    the account are not thinned. So a rule cannot make an account with a limit known worse than to 3 %.
//! 3. In exact mode nothing is thinned, nor are the samples of a purse that a Java test watches. Large arrays
//!    have a rule of their own ([`super::thinning`]).
//! 4. J depends on the policy, the account and the interval, never on the draw.
//! 5. A class is thinned once it has a name; its first samples, before that, are kept and weigh as drawn.
//!
//! # The error
//! The variance of a kept sample is that of a sample under J, and its record states it. That is right on
//! average, but where few are kept it fails together with the estimate ([`super::thinning_error`] has the
//! argument): 2 kept of 8 expected state an error of 1.4 J where the estimate is 6 J too low, and none
//! kept state no error. So an account from which anything was passed over has an error of at least two
//! kept samples more, [`unseen_variance`]: as Agresti and Coull add two successes. Where many are kept it
//! does not matter; where few are, the error is too large rather than too small. And an account without a
//! live sample may hold what can go unseen under J.
//!
//! # What it costs
//! Without a rule, one load a sample. The rules are relaxed atomics: they only feed the estimate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::governor::LIMIT_SAMPLES;
use super::interval::{IntervalId, Intervals};
use super::thinning::{Decision, share_kept};
use super::weight::VARIANCE_UNIT_BYTES2;

/// The most rules.
pub const MAX_RULES: usize = policy_config::MAX_THIN_RULES;
/// The widest interval, in bytes: as for large arrays.
pub const WIDEST_BYTES: u64 = 1 << 30;
/// How often a rule's interval is halved at most, for accounts with limits.
const LEVELS: usize = 10;
/// How many kept samples more the error of an account counts.
const ADDED: f64 = 2.0;

/// The bits of an entry that hold the id of its interval.
const ID_BITS: u32 = 16;

/// The variance, in units of [`VARIANCE_UNIT_BYTES2`], that an account's error has beside that of its records
/// if samples were passed over that were to be kept as under this interval; 0 for 0.
#[must_use]
pub fn unseen_variance(wider_bytes: u64) -> u64 {
    let wider = wider_bytes as f64;
    (ADDED * wider * wider / VARIANCE_UNIT_BYTES2 as f64) as u64
}

/// The rules in force.
#[derive(Debug)]
pub struct ClassThinning {
    is_on: AtomicBool,
    /// For each rule its intervals, widest first, as bytes and id; 0 for none.
    rules: Box<[[AtomicU64; LEVELS]]>,
    /// The interval that they are for.
    interval_bytes: AtomicU64,
    passed_over: AtomicU64,
}

impl Default for ClassThinning {
    fn default() -> ClassThinning {
        let levels = || std::array::from_fn(|_| AtomicU64::new(0));
        ClassThinning {
            is_on: AtomicBool::new(false),
            rules: (0..MAX_RULES).map(|_| levels()).collect(),
            interval_bytes: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
        }
    }
}

impl ClassThinning {
    // ---- allocating threads ----------------------------------------------------------

    /// Whether there is any rule. One load.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Decides on a sample of a class of this rule, of `size_bytes`, drawn under `drawn` (`drawn_bytes`).
    /// Its account allows intervals up to `widest_bytes`. `chance` is uniform in [0, 1).
    pub fn judge(
        &self,
        rule: usize,
        size_bytes: u64,
        (drawn, drawn_bytes): (IntervalId, u64),
        widest_bytes: impl FnOnce() -> u64,
        chance: impl FnOnce() -> f64,
    ) -> Decision {
        match self.wider(rule, drawn_bytes, widest_bytes) {
            None => Decision::Keep(drawn),
            Some((bytes, id)) if chance() < share_kept(size_bytes, drawn_bytes, bytes) => {
                Decision::Keep(id)
            }
            Some((_, id)) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                Decision::PassOver(id)
            }
        }
    }

    fn wider(
        &self,
        rule: usize,
        drawn_bytes: u64,
        widest_bytes: impl FnOnce() -> u64,
    ) -> Option<(u64, IntervalId)> {
        let levels = self.rules.get(rule).filter(|_| drawn_bytes > 0)?;
        let widest_bytes = widest_bytes();
        levels.iter().find_map(|level| {
            let packed = level.load(Ordering::Relaxed);
            let bytes = packed >> ID_BITS;
            let fits = bytes > drawn_bytes && bytes <= widest_bytes;
            fits.then_some((bytes, IntervalId::from_bits(packed as u16)))
        })
    }

    // ---- agent threads ---------------------------------------------------------------

    /// Puts rules in force that keep these shares (0 to 1), for samples drawn under `interval_bytes`. A rule
    /// whose intervals find no room in the table keeps all. Takes the table's lock.
    pub fn adopt(&self, shares: &[f64], interval_bytes: u64, table: &Intervals) {
        self.interval_bytes.store(interval_bytes, Ordering::Relaxed);
        for (number, rule) in self.rules.iter().enumerate() {
            let share = shares.get(number).copied().unwrap_or(1.0).clamp(1e-6, 1.0);
            let widest = ((interval_bytes as f64 / share) as u64).min(WIDEST_BYTES);
            for (level, place) in rule.iter().enumerate() {
                let bytes = widest >> level;
                let named = (bytes > interval_bytes && interval_bytes > 0)
                    .then(|| table.named(bytes).ok())
                    .flatten();
                let packed = named.map_or(0, |id| bytes << ID_BITS | u64::from(id.to_bits()));
                place.store(packed, Ordering::Relaxed);
            }
        }
        let is_any = shares.iter().any(|share| *share < 1.0);
        self.is_on.store(is_any, Ordering::Relaxed);
    }

    /// The share of samples of small objects that a rule keeps in an account that allows intervals up to
    /// `widest_bytes`; `None`: all.
    #[must_use]
    pub fn share(&self, rule: usize, widest_bytes: u64) -> Option<f64> {
        let interval_bytes = self.interval_bytes.load(Ordering::Relaxed);
        let (bytes, _) = self.wider(rule, interval_bytes, || widest_bytes)?;
        Some(interval_bytes as f64 / bytes as f64)
    }

    /// Samples passed over so far.
    pub fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }
}

/// The widest interval that the smallest of these limits allows.
#[must_use]
pub fn widest_bytes(limits: impl Iterator<Item = u64>) -> u64 {
    limits.min().map_or(u64::MAX, |limit| limit / LIMIT_SAMPLES)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sampling::weight::charge;

    const INTERVAL: u64 = 64 << 10;

    fn adopted(shares: &[f64]) -> (ClassThinning, Intervals, IntervalId) {
        let (thinning, table) = (ClassThinning::default(), Intervals::default());
        let id = table.set(INTERVAL).unwrap();
        thinning.adopt(shares, INTERVAL, &table);
        (thinning, table, id)
    }

    #[test]
    fn without_a_rule_nothing_is_thinned_and_nothing_costs() {
        let (thinning, _, id) = adopted(&[]);
        assert!(!thinning.is_on());
        let judged = thinning.judge(0, 100, (id, INTERVAL), || u64::MAX, || 0.999);
        assert_eq!(judged, Decision::Keep(id));
        assert_eq!(thinning.share(0, u64::MAX), None);
        assert_eq!(thinning.share(MAX_RULES, u64::MAX), None);
    }

    #[test]
    fn small_objects_are_kept_by_the_rule_s_share_and_huge_ones_always() {
        let (thinning, table, id) = adopted(&[1.0, 0.05]);
        assert!(thinning.is_on());
        let share = thinning.share(1, u64::MAX).unwrap();
        assert!((share - 0.05).abs() < 1e-4, "{share}");
        let judge = |size, chance| thinning.judge(1, size, (id, INTERVAL), || u64::MAX, || chance);
        assert!(matches!(judge(24, 0.0499), Decision::Keep(_)));
        let Decision::PassOver(wider) = judge(24, 0.0502) else {
            panic!("it is kept")
        };
        assert_eq!(table.bytes(wider), INTERVAL * 20);
        assert!(!table.is_thinned(wider), "no large array");
        assert!(matches!(judge(100 << 20, 0.999), Decision::Keep(_)));
        assert_eq!(thinning.passed_over(), 1);
        let first = thinning.judge(0, 24, (id, INTERVAL), || u64::MAX, || 0.999);
        assert_eq!(first, Decision::Keep(id), "the first rule keeps all");
    }

    #[test]
    fn an_account_with_a_limit_is_known_as_well_as_without_a_rule() {
        let (thinning, table, id) = adopted(&[0.01]);
        for (limit_mib, most) in [
            (10_000u64, INTERVAL * 100),
            (1_000, 1 << 20),
            (64, INTERVAL),
        ] {
            let widest = || widest_bytes([limit_mib << 20, u64::MAX].into_iter());
            let judged = thinning.judge(0, 24, (id, INTERVAL), widest, || 0.999);
            let (Decision::PassOver(id) | Decision::Keep(id)) = judged;
            let bytes = table.bytes(id);
            assert!(
                bytes <= most && bytes >= INTERVAL,
                "{limit_mib} MiB: {bytes}"
            );
            assert!(bytes == INTERVAL || bytes <= (limit_mib << 20) / LIMIT_SAMPLES);
        }
        assert_eq!(
            thinning.share(0, widest_bytes([64 << 20].into_iter())),
            None
        );
    }

    #[test]
    fn exact_mode_and_older_wider_draws_are_left_alone() {
        let (thinning, table, _) = adopted(&[0.5]);
        let exact = table.set(0).unwrap();
        let judged = thinning.judge(0, 24, (exact, 0), || u64::MAX, || 0.999);
        assert_eq!(judged, Decision::Keep(exact));
        let wide = table.set(INTERVAL * 4).unwrap();
        let judged = thinning.judge(0, 24, (wide, INTERVAL * 4), || u64::MAX, || 0.999);
        assert_eq!(
            judged,
            Decision::Keep(wide),
            "its draw was wider than the rule's"
        );
        thinning.adopt(&[0.5], 0, &table);
        assert_eq!(thinning.share(0, u64::MAX), None);
    }

    #[test]
    fn an_interval_is_named_once_however_often_the_policy_is_read() {
        let (thinning, table, id) = adopted(&[0.05]);
        let judge = || thinning.judge(0, 24, (id, INTERVAL), || u64::MAX, || 0.999);
        let first = judge();
        for _ in 0..10_000 {
            thinning.adopt(&[0.05], INTERVAL, &table);
        }
        assert_eq!(judge(), first);
    }

    /// Draws one account of small and mixed objects. Returns estimate less truth, and the stated errors with
    /// and without what may be unseen.
    fn draw(truth: &[u64], share: f64) -> (f64, f64, f64) {
        let (thinning, table, id) = adopted(&[share]);
        let (mut bytes, mut variance, mut passed) = (0.0, 0u64, 0u64);
        for &size in truth {
            let drawn = -(-(size as f64) / INTERVAL as f64).exp_m1();
            if fastrand::f64() >= drawn {
                continue;
            }
            match thinning.judge(0, size, (id, INTERVAL), || u64::MAX, fastrand::f64) {
                Decision::Keep(id) => {
                    let charge = charge(size, table.bytes(id));
                    bytes += charge.bytes as f64;
                    variance += charge.variance;
                }
                Decision::PassOver(id) => passed = passed.max(table.bytes(id)),
            }
        }
        let truth: u64 = truth.iter().sum();
        let error = |variance: u64| crate::sampling::standard_error_bytes(variance);
        (
            bytes - truth as f64,
            error(variance + unseen_variance(passed)),
            error(variance),
        )
    }

    /// Many draws: the estimate is unbiased, and the stated error is the real one or larger, however few
    /// samples are kept. Without what may be unseen it is far too small, just when the estimate is too low.
    #[test]
    fn estimates_are_unbiased_and_lie_within_their_stated_errors() {
        fastrand::seed(7);
        const DRAWS: usize = 1_500;
        let wider = INTERVAL * 20;
        for expected in [1, 2, 4, 8, 30] {
            // So many kept are expected, of objects of several sizes.
            let mut truth = Vec::new();
            let mut left = wider * expected;
            for size in [24u64, 200, 3_000, 40_000].into_iter().cycle() {
                // Groups of small objects, so that each draw is quick: they are as one in bytes.
                let object = size.max(12_000).min(left);
                truth.push(object);
                left -= object;
                if left == 0 {
                    break;
                }
            }
            let (mut sum, mut squares, mut beyond, mut naively_beyond) = (0.0, 0.0, 0, 0);
            for _ in 0..DRAWS {
                let (off, error, naive) = draw(&truth, 0.05);
                sum += off;
                let z = off / error;
                squares += z * z;
                beyond += u32::from(z.abs() > 3.0);
                naively_beyond += u32::from(off.abs() > 3.0 * naive);
            }
            let n = DRAWS as f64;
            let bias = sum / n / ((wider as f64) * (expected as f64).sqrt() / n.sqrt());
            let deviation = (squares / n).sqrt();
            println!(
                "{expected} kept expected: bias {bias:+.2} of its errors, deviation {deviation:.2}, beyond 3: \
                 {beyond}, naively {naively_beyond}"
            );
            assert!(bias.abs() < 4.5, "{expected}: {bias}");
            assert!((0.4..1.06).contains(&deviation), "{expected}: {deviation}");
            assert!(beyond <= 20, "{expected}: {beyond} of {DRAWS}");
            if expected <= 4 {
                // By chance it would be four.
                assert!(
                    naively_beyond > 5 * beyond.max(4),
                    "{expected}: {naively_beyond}"
                );
            }
        }
    }
}
