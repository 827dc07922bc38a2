//! Turns to wait: who waits for a verdict while the evidence budget is used up, and for how long.
//!
//! A verdict needs a collection. If the budget allows none, one comes only if somebody allocates; an account whose
//! threads all wait would wait for itself. (Measured with a budget of 0.1 % on Parallel: a service that made garbage
//! near its limit waited 98.9 % of its time.) So its threads wait for a part of the time only:
//!
//! # Rules
//! 1. When the first thread of the account would wait, an *episode* begins. In its first [`FIRST_MS`] all wait: the
//!    budget may just have to earn the rest of a collection.
//! 2. Then they go on for [`GO_MS`] and wait for [`WAIT_MS`] in turn, all threads of the account and all requests at
//!    its door at once. Who waits when a turn to go on begins is let go. The turns to wait are shorter, because a
//!    thread may wake late on a busy machine.
//! 3. If nobody asked for [`CALM_MS`], the next who asks begins an episode.
//!
//! So the account waits for at most `t / 3 + FIRST_MS` of any time `t`, and for less than a half of an episode and
//! the calm that follows it. A leak grows more slowly until its garbage or itself makes a collection come; a
//! verdict that is overdue may also overdraw the budget ([`super::budget`]).
//!
//! Two threads that begin an episode at the same time write the same time, up to a millisecond.

// Of the standard library, because no model needs them: any order of their accesses keeps the rules.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How long all wait at the beginning of an episode.
pub const FIRST_MS: u64 = 2_000;
/// How long all go on.
pub const GO_MS: u64 = 300;
/// And then wait.
pub const WAIT_MS: u64 = 150;
/// After so long without anybody who would wait, the next begins an episode.
pub const CALM_MS: u64 = 4_000;

/// The turns of one account. Lock-free.
#[derive(Debug, Default)]
pub struct WaitingTurns {
    is_on: AtomicBool,
    /// When the episode began, in milliseconds of uptime.
    begun_ms: AtomicU64,
    /// When somebody asked last; 0 if nobody did.
    asked_ms: AtomicU64,
}

impl WaitingTurns {
    /// Says whether the budget is used up. Only for the enforcer.
    pub fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Whether the budget is used up. Any thread.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether a thread that would wait for a verdict goes on instead, at this uptime. Any thread.
    pub fn goes_on(&self, now_ms: u64) -> bool {
        if !self.is_on() {
            return false;
        }
        let asked_ms = self.asked_ms.swap(now_ms.max(1), Ordering::Relaxed);
        if asked_ms == 0 || now_ms.saturating_sub(asked_ms) >= CALM_MS {
            self.begun_ms.store(now_ms, Ordering::Relaxed);
        }
        is_turn_to_go_on(now_ms.saturating_sub(self.begun_ms.load(Ordering::Relaxed)))
    }
}

/// Whether threads go on, so long after an episode began (rules 1 and 2).
fn is_turn_to_go_on(since_ms: u64) -> bool {
    since_ms >= FIRST_MS && (since_ms - FIRST_MS) % (GO_MS + WAIT_MS) < GO_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nobody_goes_on_while_the_budget_lasts() {
        let turns = WaitingTurns::default();
        assert!((0..20_000).all(|now_ms| !turns.goes_on(now_ms)));
    }

    #[test]
    fn all_wait_at_first_and_then_in_turns() {
        let turns = WaitingTurns::default();
        turns.set(true);
        let begun = 77_123;
        let went: Vec<bool> = (0..3_000).map(|ms| turns.goes_on(begun + ms)).collect();
        let first = went.iter().position(|goes_on| *goes_on);
        assert_eq!(first, Some(FIRST_MS as usize));
        let went_on = went[2_000..].iter().filter(|goes_on| **goes_on).count();
        assert_eq!(went_on, 700);
        assert!(!turns.goes_on(begun + 3_000 + CALM_MS), "a new episode");
    }

    proptest! {
        /// A service that asks in bursts of any length, at any distance, as soon as it may go on.
        #[test]
        fn the_account_waits_for_a_third_of_any_time_at_most(
            bursts in prop::collection::vec((1u64..20_000, 0u64..10_000), 1..12),
        ) {
            let turns = WaitingTurns::default();
            turns.set(true);
            let (mut now_ms, mut waited) = (5u64, vec![0u64]);
            for (asks_ms, calm_ms) in bursts {
                for ms in 0..asks_ms + calm_ms {
                    now_ms += 1;
                    let waits = ms < asks_ms && !turns.goes_on(now_ms);
                    waited.push(waited.last().unwrap() + u64::from(waits));
                }
            }
            // Over any time that begins when it does: the later beginnings in steps, for speed.
            for from in (0..waited.len()).step_by(613) {
                for upto in (from..waited.len()).step_by(97) {
                    let most = (upto - from) as u64 / 3 + FIRST_MS + WAIT_MS;
                    prop_assert!(waited[upto] - waited[from] <= most, "{from}..{upto}");
                }
            }
        }
    }
}
