//! The pauses between covering collections that acquit an account.
//!
//! # Rules
//! 1. After a covering collection that acquitted a suspect account the enforcer asks for none for it during
//!    a pause, which doubles with each acquittal in a row: an account that stands just below its limit would
//!    otherwise use the evidence budget up.
//! 2. An account that grows from one acquittal to the next may be over at the next look, so its pauses begin
//!    anew. (With ever longer ones, a triple store that was being loaded was seen too late.)
//! 3. A verdict, or the end of the suspicion, ends the row.

use std::time::{Duration, Instant};

use super::state::{Phase, Proof};

/// The first pause.
const FIRST: Duration = Duration::from_millis(250);
/// How often a pause is doubled at most. With the patience of a suspicion, which is doubled as often (to
/// 8 s), a suspicion ends within 15 s where the collections themselves take no longer than the rest.
pub const MOST_DOUBLINGS: u32 = 3;
/// An account whose live bytes have grown by this factor between two acquittals is growing.
const GROWTH: f64 = 1.02;

/// What is known of the acquittals of one account. On the enforcer's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackOff {
    /// How many in a row acquitted it.
    pub acquittals: u32,
    /// The enforcer asks for no covering collection for it before this.
    pub not_before: Option<Instant>,
    /// What the latest of them left it, in bytes.
    left_bytes: u64,
}

impl BackOff {
    /// The phase has moved. `covered` is what the latest covering collection has proved.
    pub fn moved(&mut self, before: Phase, after: Phase, covered: Proof, now: Instant) {
        match (before, after) {
            (Phase::Suspect { since: old }, Phase::Suspect { since: new }) => {
                if old != new && covered.upto >= Some(old) {
                    self.acquitted(covered.left.bytes, now);
                }
            }
            (_, Phase::Open | Phase::Over { .. }) => *self = BackOff::default(),
            (_, Phase::Suspect { .. }) => {}
        }
    }

    fn acquitted(&mut self, left_bytes: u64, now: Instant) {
        let grows = left_bytes as f64 > self.left_bytes as f64 * GROWTH;
        self.acquittals = match grows {
            true => 1,
            false => self.acquittals.saturating_add(1),
        };
        self.left_bytes = left_bytes;
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
        back_off.moved(Phase::Open, suspect(0), Proof::default(), now);
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
                back_off.moved(suspect(epoch), suspect(epoch + 1), covered, now);
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
        assert_eq!(pauses(&[40, 40, 40, 60, 60]), [250, 500, 1000, 250, 500]);
    }

    #[test]
    fn a_verdict_or_the_end_of_the_suspicion_ends_the_row() {
        let suspect = Phase::Suspect {
            since: Epoch::new(1),
        };
        for after in [Phase::Open, Phase::Over { limit_bytes: 1 }] {
            let mut back_off = BackOff::default();
            back_off.acquitted(MIB, Instant::now());
            back_off.moved(suspect, after, Proof::default(), Instant::now());
            assert_eq!(back_off, BackOff::default());
        }
    }
}
