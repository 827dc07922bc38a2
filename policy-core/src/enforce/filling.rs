//! Whether an account's live bytes grow towards its limit.
//!
//! # Rules
//! 1. What the account is charged when the refunds of a collection are in is what survived it, and a little
//!    more. It is compared with the lowest such charge since the account was last seen to grow. If it is
//!    more by a `STEP`th of the limit, the account fills, and this becomes the lowest.
//! 2. It stays so for `STAYS` after each such step: the next collection may be long in coming.
//!
//! While an account fills, samples may cost more ([`crate::sampling::governor`]): what is sampled coarsely now
//! is not known better later, and the verdict waits for three standard errors.

use std::time::{Duration, Instant};

/// A growth by this part of the limit counts. At the widest interval that an account with a limit is
/// sampled with, it is one standard error of an account at its limit.
const STEP: u64 = 32;
/// For how long an account that grew is taken to grow still.
const STAYS: Duration = Duration::from_secs(20);

/// What is known of one account. On the enforcer's thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filling {
    lowest_bytes: u64,
    grew: Option<Instant>,
}

impl Filling {
    /// The account is charged this much after a collection.
    pub fn collected(&mut self, left_bytes: u64, limit_bytes: u64, now: Instant) {
        if left_bytes >= self.lowest_bytes.saturating_add(limit_bytes / STEP) {
            self.grew = Some(now);
            self.lowest_bytes = left_bytes;
        }
        self.lowest_bytes = self.lowest_bytes.min(left_bytes);
    }

    /// Whether it grows.
    pub fn is_seen(&self, now: Instant) -> bool {
        self.grew
            .is_some_and(|then| now.saturating_duration_since(then) < STAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 3200;

    fn seconds(of_account: impl Fn(u64) -> u64, until: u64) -> Vec<bool> {
        let begun = Instant::now();
        let mut filling = Filling::default();
        (0..until)
            .map(|second| {
                let now = begun + Duration::from_secs(second);
                filling.collected(of_account(second), LIMIT, now);
                filling.is_seen(now)
            })
            .collect()
    }

    #[test]
    fn an_account_that_grows_fills_until_it_rests() {
        let seen = seconds(|second| second.min(100) * 20, 200);
        assert!(!seen[4], "80 bytes are less than a step");
        assert!(seen[5..=100].iter().all(|seen| *seen));
        assert!(seen[120..].iter().all(|seen| !*seen));
    }

    #[test]
    fn an_account_that_stands_still_or_sways_a_little_does_not() {
        for sway in [0, 50, 99] {
            let seen = seconds(|second| 1500 + second % 2 * sway, 100);
            assert!(seen[25..].iter().all(|seen| !*seen), "{sway}");
        }
    }

    #[test]
    fn one_that_was_emptied_and_is_loaded_again_does() {
        let seen = seconds(
            |second| {
                if second < 50 {
                    3000
                } else {
                    (second - 50) * 20
                }
            },
            100,
        );
        assert!(!seen[49] && !seen[50]);
        assert!(seen[60..].iter().all(|seen| *seen));
    }
}
