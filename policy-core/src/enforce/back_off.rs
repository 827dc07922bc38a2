//! How long an account that was acquitted is left alone.
//!
//! # Rules
//! 1. Evidence for a first suspicion is asked for at once. After an acquittal the enforcer is *patient* before it asks for
//!    any collection, and pauses before it asks for a covering one; both double with each acquittal in a row. An account
//!    that stands just below its limit and makes garbage crosses it again and again: it would use the evidence budget
//!    up, and the collections that come anyway acquit it as well.
//! 2. An account that has grown since the first acquittal of the row may be over at the next look: the row begins anew.
//!    (With ever longer pauses, a triple store that was being loaded was seen too late.)
//! 3. The end of a suspicion is an acquittal too. A verdict ends the row, and so does a minute without one.

use std::time::{Duration, Instant};

use super::state::{Phase, Proof};

/// The first pause.
const FIRST: Duration = Duration::from_millis(250);
/// How often a pause is doubled at most. With the patience of a suspicion a suspicion then ends within 15 s where the
/// collections themselves take no longer than the rest.
const MOST_DOUBLINGS: u32 = 3;
/// The patience of a first suspicion: a collection that comes anyway may be the evidence.
const FIRST_PATIENCE: Duration = Duration::from_millis(100);
/// How often it is doubled at most: to 6.4 s.
const MOST_PATIENCE_DOUBLINGS: u32 = 6;
/// An account whose live bytes have grown by this factor since the first acquittal of the row is growing.
const GROWTH: f64 = 1.02;
/// A row ends after so long without an acquittal.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What is known of the acquittals of one account. On the enforcer's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackOff {
    /// How many in a row acquitted it, and when the latest did.
    acquittals: u32,
    latest: Option<Instant>,
    /// The enforcer asks for no covering collection for it before this.
    pub not_before: Option<Instant>,
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

    /// How long a suspicion lasts before any collection is asked for.
    pub fn patience(&self, now: Instant) -> Duration {
        let doublings = match self.is_forgotten(now) {
            true => 0,
            false => self.acquittals.min(MOST_PATIENCE_DOUBLINGS),
        };
        FIRST_PATIENCE * (1 << doublings)
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
        let doublings = self.acquittals.saturating_sub(1).min(MOST_DOUBLINGS);
        self.not_before = Some(now + FIRST * (1 << doublings));
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
                let until = back_off.not_before.expect("a pause");
                (until - now).as_millis()
            })
            .collect()
    }

    #[test]
    fn an_account_that_stands_below_its_limit_is_looked_at_ever_less() {
        let stands = [90, 90, 91, 91, 90, 90, 90, 90];
        assert_eq!(
            pauses(&stands),
            [250, 500, 1000, 2000, 2000, 2000, 2000, 2000]
        );
    }

    #[test]
    fn an_account_that_grows_is_looked_at_again_soon() {
        assert_eq!(pauses(&[40, 45, 50, 60, 80]), [250; 5]);
        let slowly = [100, 101, 102, 103, 104, 105];
        assert_eq!(pauses(&slowly), [250, 500, 1000, 250, 500, 1000]);
        assert_eq!(pauses(&[40, 40, 40, 60, 60]), [250, 500, 1000, 250, 500]);
    }

    #[test]
    fn patience_doubles_with_each_suspicion_that_ends_and_is_forgotten() {
        let suspect = Phase::Suspect {
            since: Epoch::new(1),
        };
        let mut back_off = BackOff::default();
        let mut now = Instant::now();
        let mut patience = Vec::new();
        for _ in 0..8 {
            patience.push(back_off.patience(now).as_millis());
            back_off.moved(suspect, Phase::Open, <(Proof, Proof)>::default(), now);
            now += Duration::from_secs(1);
        }
        assert_eq!(patience, [100, 200, 400, 800, 1600, 3200, 6400, 6400]);
        assert_eq!(back_off.patience(now + FORGOTTEN), FIRST_PATIENCE);
        let over = Phase::Over { limit_bytes: 1 };
        back_off.moved(suspect, over, <(Proof, Proof)>::default(), now);
        assert_eq!(back_off, BackOff::default(), "a verdict ends the row");
    }
}
