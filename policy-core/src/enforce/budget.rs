//! How much time the collections that the agent asks for may take.
//!
//! They may take a share of wall time, with a credit: a verdict often needs two or three collections
//! in a row, so the agent may spend the share of the next [`CREDIT`] ahead. Over any time `t`
//! collections take at most `share · (t + CREDIT)`, plus the one that uses the credit up.
//!
//! A verdict that is overdue may overdraw this, up to [`OVERDUE_SHARES`] times the share, or [`LEAST_OVERDUE_SHARE`]
//! if that is more, and without a credit. Over any time `t` collections then take at most that share of `t`, plus the
//! credit and the one that uses it up. What is overdrawn is a debt like any other.

use std::time::{Duration, Instant};

/// The share of wall time, of 0 to 1, that asked-for collections may take by default.
pub const SHARE: f64 = 0.05;
/// The share that an overdue verdict may use in any case: enough for a collection of 150 ms in the 15 s in which a
/// suspicion has to end.
pub const LEAST_OVERDUE_SHARE: f64 = 0.01;
/// The smallest share; smaller ones count as this.
const SMALLEST_SHARE: f64 = 1e-6;
/// The shortest pause between two collections of old memory, however fast they are.
pub const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// The wall time whose share may be spent ahead.
pub const CREDIT: Duration = Duration::from_secs(60);
/// The share that an overdue verdict may use, as a multiple of the policy's.
pub const OVERDUE_SHARES: f64 = 4.0;
/// The longest pause after a collection, however long it took.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// Spaces collections so that over any long time they take at most a share of it. On the enforcer's
/// thread.
#[derive(Debug)]
pub struct Budget {
    share: f64,
    /// When the time spent so far will have been earned.
    earned_at: Option<Instant>,
    /// The same at the share of what is overdue.
    overdue_earned_at: Option<Instant>,
    /// The end of the rest after the last one.
    rests_until: Option<Instant>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            share: SHARE,
            earned_at: None,
            overdue_earned_at: None,
            rests_until: None,
        }
    }
}

impl Budget {
    /// Sets the share of wall time, of 0 to 1, for future collections. Time that is spent already is
    /// not recalculated.
    pub fn set_share(&mut self, share: f64) {
        self.share = share.clamp(SMALLEST_SHARE, 1.0);
    }

    /// Whether a collection may be asked for now.
    pub fn allows(&self, now: Instant) -> bool {
        self.wait(now).is_zero()
    }

    /// How long until one may be asked for.
    pub fn wait(&self, now: Instant) -> Duration {
        until(self.earned_at, now + CREDIT).max(until(self.rests_until, now))
    }

    /// Whether a collection may be asked for now for a verdict that is overdue.
    pub fn allows_overdue(&self, now: Instant) -> bool {
        self.overdue_wait(now).is_zero()
    }

    /// How long until one may be asked for if the verdict is overdue.
    pub fn overdue_wait(&self, now: Instant) -> Duration {
        until(self.overdue_earned_at, now).max(until(self.rests_until, now))
    }

    /// A collection took `took` and ended `now`.
    pub fn spent(&mut self, now: Instant, took: Duration) {
        self.spent_resting(now, took, SHORTEST_PAUSE);
    }

    /// As [`Budget::spent`], with another shortest pause.
    pub fn spent_resting(&mut self, now: Instant, took: Duration, shortest: Duration) {
        let earned = |share: f64| {
            let earned = Duration::try_from_secs_f64(took.as_secs_f64() / share);
            earned.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
        };
        // Time is earned while the collection runs too; earlier debts come first.
        let began = now.checked_sub(took).unwrap_or(now);
        let from = |then: Option<Instant>| then.map_or(began, |then| then.max(began));
        self.earned_at = Some(from(self.earned_at) + earned(self.share));
        let overdue_share = (self.share * OVERDUE_SHARES).clamp(LEAST_OVERDUE_SHARE, 1.0);
        self.overdue_earned_at = Some(from(self.overdue_earned_at) + earned(overdue_share));
        self.rests_until = self.rests_until.max(Some(now + shortest));
    }
}

fn until(then: Option<Instant>, now: Instant) -> Duration {
    then.map_or(Duration::ZERO, |then| then.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_taken(budget: &mut Budget, took: Duration) -> f64 {
        let start = Instant::now();
        let (mut now, mut spent) = (start, Duration::ZERO);
        while now < start + Duration::from_secs(1000) {
            if budget.allows(now) {
                now += took;
                spent += took;
                budget.spent(now, took);
            } else {
                now += Duration::from_millis(50);
            }
        }
        spent.as_secs_f64() / (now - start).as_secs_f64()
    }

    #[test]
    fn collections_take_at_most_their_share() {
        let mut budget = Budget::default();
        let share = share_taken(&mut budget, Duration::from_millis(700));
        assert!(share <= SHARE * 1.07 && share > SHARE * 0.8, "{share}");
        let mut budget = Budget::default();
        budget.set_share(0.2);
        let share = share_taken(&mut budget, Duration::from_millis(700));
        assert!(share <= 0.214 && share > 0.16, "{share}");
    }

    #[test]
    fn what_is_overdue_takes_more_and_is_bounded_too() {
        let mut budget = Budget::default();
        let took = Duration::from_millis(700);
        let start = Instant::now();
        let (mut now, mut spent) = (start, Duration::ZERO);
        while now < start + Duration::from_secs(1000) {
            if budget.allows_overdue(now) {
                now += took;
                spent += took;
                budget.spent(now, took);
            } else {
                now += Duration::from_millis(50);
            }
        }
        let share = spent.as_secs_f64() / (now - start).as_secs_f64();
        let most = SHARE * OVERDUE_SHARES;
        assert!(share <= most * 1.01 && share > most * 0.9, "{share}");
        assert!(!budget.allows(now), "it is a debt");
    }

    #[test]
    fn a_tiny_budget_lets_an_overdue_verdict_have_a_short_collection() {
        let mut budget = Budget::default();
        budget.set_share(0.0001);
        let now = Instant::now();
        budget.spent(now, Duration::from_millis(150));
        assert!(!budget.allows_overdue(now + Duration::from_secs(14)));
        assert!(budget.allows_overdue(now + Duration::from_secs(15)));
        assert!(!budget.allows(now + Duration::from_secs(1_400)));
    }

    #[test]
    fn rests_add_up() {
        let mut budget = Budget::default();
        let now = Instant::now();
        budget.spent(now, Duration::from_secs(2));
        budget.spent(now, Duration::from_secs(2));
        assert_eq!(budget.wait(now), Duration::from_secs(2 * 40 - 2) - CREDIT);
    }

    #[test]
    fn a_verdict_may_take_several_in_a_row() {
        let mut budget = Budget::default();
        let now = Instant::now();
        for _ in 0..3 {
            assert!(budget.wait(now) <= SHORTEST_PAUSE);
            budget.spent(now, Duration::from_millis(900));
        }
    }

    #[test]
    fn no_share_is_too_small_to_reckon_with() {
        let mut budget = Budget::default();
        let now = Instant::now();
        budget.set_share(0.0);
        budget.spent(now, Duration::from_secs(3600));
        assert!(budget.wait(now) < LONGEST_PAUSE);
        budget.set_share(1.0);
        let later = now + LONGEST_PAUSE;
        budget.spent_resting(later, Duration::from_secs(1), Duration::ZERO);
        assert!(budget.allows(later));
    }
}
