//! Whether an account's live bytes grow towards its limit.
//!
//! # Rules
//! 1. What the account is charged when the refunds of a collection are in, without what was charged since, is what
//!    survived it. It is compared with the lowest such charge since the account was last seen to grow. If it is
//!    more by a `STEP`th of the limit and by one standard error, the account fills, and this becomes the lowest.
//!    Below a `LEAST`th of the limit it does not count: what a program allocates while it starts is no load.
//! 2. It stays so for `STAYS` after each such step: the next collection may be long in coming.
//!
//! While an account fills, samples may cost more ([`crate::sampling::governor`]): what is sampled coarsely now
//! is not known better later, and the verdict waits for three standard errors.

use std::time::{Duration, Instant};

use super::state::Estimate;

/// A growth by this part of the limit counts, beyond chance.
const STEP: u64 = 32;
/// Of an account that is charged at least this part of its limit. What was sampled coarsely before stays so: with a quarter
/// three standard errors of a triple store that was loaded were a tenth of its limit, of which the first quarter made most.
const LEAST: u64 = 8;
/// For how long an account that grew is taken to grow still.
const STAYS: Duration = Duration::from_secs(20);

/// The least that one account has held after collections since it last grew, and when that was. On the enforcer's
/// thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filling {
    /// `None` before the first collection: what an account holds when it gets its limit is no growth.
    lowest_bytes: Option<u64>,
    grew: Option<Instant>,
}

impl Filling {
    /// The account is charged this much after a collection.
    pub fn collected(&mut self, left: Estimate, limit_bytes: u64, now: Instant) {
        let left_bytes = left.bytes;
        let step_bytes = limit_bytes / STEP + left.standard_error_bytes() as u64;
        let lowest_bytes = self.lowest_bytes.unwrap_or(left_bytes);
        let has_grown = left_bytes >= lowest_bytes.saturating_add(step_bytes);
        if has_grown && left_bytes >= limit_bytes / LEAST {
            self.grew = Some(now);
        }
        self.lowest_bytes = Some(if has_grown {
            left_bytes
        } else {
            lowest_bytes.min(left_bytes)
        });
    }

    /// Whether it grows.
    pub fn is_seen(&self, now: Instant) -> bool {
        self.grew_within(STAYS, now)
    }

    /// Whether it grew by a step so short a time ago.
    pub fn grew_within(&self, time: Duration, now: Instant) -> bool {
        self.grew
            .is_some_and(|then| now.saturating_duration_since(then) < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::weight::VARIANCE_UNIT_BYTES2;

    const LIMIT: u64 = 3200;

    fn exactly(bytes: u64) -> Estimate {
        Estimate { bytes, variance: 0 }
    }

    fn seconds(of_account: impl Fn(u64) -> u64, until: u64) -> Vec<bool> {
        let begun = Instant::now();
        let mut filling = Filling::default();
        (0..until)
            .map(|second| {
                let now = begun + Duration::from_secs(second);
                filling.collected(exactly(of_account(second)), LIMIT, now);
                filling.is_seen(now)
            })
            .collect()
    }

    #[test]
    fn an_account_that_grows_fills_until_it_rests() {
        let seen = seconds(|second| second.min(100) * 20, 200);
        assert!(seen[..20].iter().all(|seen| !*seen), "less than an eighth");
        assert!(seen[25..=100].iter().all(|seen| *seen));
        assert!(seen[120..].iter().all(|seen| !*seen));
    }

    #[test]
    fn an_account_that_stands_still_or_sways_a_little_does_not() {
        for sway in [0, 50, 99] {
            let seen = seconds(|second| 1500 + second % 2 * sway, 100);
            assert!(seen[25..].iter().all(|seen| !*seen), "{sway}");
        }
    }

    /// By chance alone an account that is known coarsely seems to grow.
    #[test]
    fn a_growth_that_may_be_chance_does_not_count() {
        const MIB: u64 = 1 << 20;
        let begun = Instant::now();
        let later = begun + 2 * STAYS;
        for (error_bytes, is_seen) in [(MIB, true), (3 * MIB, false)] {
            let mut filling = Filling::default();
            filling.collected(exactly(50 * MIB), 96 * MIB, begun);
            let left = Estimate {
                bytes: 55 * MIB,
                variance: error_bytes * error_bytes / VARIANCE_UNIT_BYTES2,
            };
            filling.collected(left, 96 * MIB, later);
            assert_eq!(filling.is_seen(later), is_seen, "{error_bytes}");
        }
    }

    #[test]
    fn one_that_was_emptied_and_is_loaded_again_does() {
        let seen = seconds(
            |second| {
                if second < 50 {
                    3000
                } else {
                    (second - 50) * 40
                }
            },
            100,
        );
        assert!(!seen[49] && !seen[50]);
        assert!(seen[75..].iter().all(|seen| *seen));
    }
}
