//! How long an account that was acquitted is left alone.
//!
//! # Rules
//! 1. Before a collection is asked for, a suspicion is left alone for a *pause*: one that comes anyway may be the
//!    evidence. The pause doubles with each acquittal in a row. An account that stands just below its limit and makes
//!    garbage crosses it again and again: it would use the evidence budget up, and the collections that come anyway
//!    acquit it as well.
//! 2. A covering collection is asked for when the pause since the latest acquittal is over, or 1.6 s: what has
//!    survived a collection is beyond the limit by then, and a leak would gain too much.
//! 3. An account that has grown since the first acquittal of the row may be over at the next look: the row begins anew.
//!    (With ever longer pauses, a triple store that was being loaded was seen too late.)
//! 4. The end of a suspicion is an acquittal too. A verdict ends the row, and so does a minute without one.

use std::time::{Duration, Instant};

use super::state::{Phase, Proof};

/// The pause of a first suspicion.
const FIRST: Duration = Duration::from_millis(100);
/// How often it is doubled at most: to 6.4 s. A suspicion then ends within 15 s where the collections themselves take
/// no longer than the rest.
const MAX_DOUBLINGS: u32 = 6;
/// The longest that a covering collection waits for after an acquittal.
const LONGEST_REST: Duration = Duration::from_millis(1_600);
/// An account whose live bytes have grown by this factor since the first acquittal of the row is growing.
const GROWTH: f64 = 1.02;
/// A row ends after so long without an acquittal.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The latest acquittals of one account in a row. On the enforcer's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackOff {
    /// How many in a row acquitted it, and when the latest did.
    acquittals: u32,
    latest: Option<Instant>,
    /// The least that any of them left it, in bytes.
    left_bytes: u64,
}

impl BackOff {
    /// The phase has moved. `survived` and `covered`: what the latest collection of any kind, and of all memory, has
    /// proved.
    pub fn moved(
        &mut self,
        before: Phase,
        after: Phase,
        (survived, covered): (Proof, Proof),
        now: Instant,
    ) {
        match (before, after) {
            (Phase::Suspect { since: old }, Phase::Suspect { since: new }) => {
                if old != new && covered.upto >= Some(old) {
                    self.acquitted(covered.left.bytes, now);
                }
            }
            (Phase::Suspect { .. }, Phase::Open) => self.acquitted(survived.left.bytes, now),
            (_, Phase::Over { .. }) => *self = BackOff::default(),
            (_, Phase::Open | Phase::Suspect { .. }) => {}
        }
    }

    /// How long a suspicion is left alone before any collection is asked for.
    pub fn pause(&self, now: Instant) -> Duration {
        let doublings = match self.is_forgotten(now) {
            true => 0,
            false => self.acquittals.min(MAX_DOUBLINGS),
        };
        FIRST * (1 << doublings)
    }

    /// How long until a covering collection may be asked for.
    pub fn rest(&self, now: Instant) -> Duration {
        (self.latest).map_or(Duration::ZERO, |latest| {
            let rest = self.pause(now).min(LONGEST_REST);
            (latest + rest).saturating_duration_since(now)
        })
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        (self.latest).is_none_or(|then| now.saturating_duration_since(then) >= FORGOTTEN)
    }

    fn acquitted(&mut self, left_bytes: u64, now: Instant) {
        let grows = left_bytes as f64 > self.left_bytes as f64 * GROWTH;
        if grows || self.is_forgotten(now) {
            (self.acquittals, self.left_bytes) = (1, left_bytes);
        } else {
            self.acquittals = self.acquittals.saturating_add(1);
            self.left_bytes = self.left_bytes.min(left_bytes);
        }
        self.latest = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::state::Estimate;
    use crate::ledger::Epoch;

    const MIB: u64 = 1 << 20;

    /// The pauses after acquittals that left so many MiB, in milliseconds.
    fn pauses(left_mib: &[u64]) -> Vec<u128> {
        let mut back_off = BackOff::default();
        let now = Instant::now();
        let suspect = |epoch| Phase::Suspect {
            since: Epoch::new(epoch),
        };
        back_off.moved(Phase::Open, suspect(0), <(Proof, Proof)>::default(), now);
        (0..)
            .zip(left_mib)
            .map(|(epoch, mib)| {
                let covered = Proof {
                    upto: Some(Epoch::new(epoch)),
                    left: Estimate {
                        bytes: mib * MIB,
                        variance: 0,
                    },
                };
                back_off.moved(suspect(epoch), suspect(epoch + 1), (covered, covered), now);
                back_off.rest(now).as_millis()
            })
            .collect()
    }

    #[test]
    fn an_account_that_stands_below_its_limit_is_looked_at_ever_less() {
        let stands = [90, 90, 91, 91, 90, 90, 90, 90];
        assert_eq!(
            pauses(&stands),
            [200, 400, 800, 1600, 1600, 1600, 1600, 1600]
        );
    }

    #[test]
    fn an_account_that_grows_is_looked_at_again_soon() {
        assert_eq!(pauses(&[40, 45, 50, 60, 80]), [200; 5]);
        let slowly = [100, 101, 102, 103, 104, 105];
        assert_eq!(pauses(&slowly), [200, 400, 800, 200, 400, 800]);
        assert_eq!(pauses(&[40, 40, 40, 60, 60]), [200, 400, 800, 200, 400]);
    }

    #[test]
    fn a_pause_doubles_with_each_suspicion_that_ends_and_is_forgotten() {
        let suspect = Phase::Suspect {
            since: Epoch::new(1),
        };
        let mut back_off = BackOff::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pauses.push(back_off.pause(now).as_millis());
            back_off.moved(suspect, Phase::Open, <(Proof, Proof)>::default(), now);
            now += Duration::from_secs(1);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 6400]);
        assert_eq!(back_off.pause(now + FORGOTTEN), FIRST);
        let over = Phase::Over { limit_bytes: 1 };
        back_off.moved(suspect, over, <(Proof, Proof)>::default(), now);
        assert_eq!(back_off, BackOff::default(), "a verdict ends the row");
    }
}
