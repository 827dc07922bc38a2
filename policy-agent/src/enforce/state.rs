//! The state of an account, as a pure transition function.
//!
//! ```text
//!            charged clears the limit                what a covering collection left
//!  ┌──────┐ ───────────────────────▶ ┌─────────┐ ─────────────────────────────────▶ ┌──────┐
//!  │ Open │                          │ Suspect │            clears the limit        │ Over │
//!  └──────┘ ◀─────────────────────── └─────────┘                                    └──────┘
//!     ▲     what any collection left does not, or                                      │
//!     │     the charge itself no longer does                                           │
//!     └────────────────────────────────────────────────────────────────────────────────┘
//!        what a collection left is at most 95 % of the limit, or the limit was raised
//! ```
//!
//! # Rules
//! 1. An estimate *clears* a limit when it lies more than three of its standard errors above
//!    it: of estimates that sit exactly on the limit, one in 740 does.
//! 2. A charge contains garbage, so it never convicts. It makes an account suspect, from the
//!    epoch in which that was seen.
//! 3. What survived *any* collection of that epoch or a later one may acquit: what is left
//!    after a young collection is more than what is truly held, never less.
//! 4. Only what survived a collection that covers old memory too, and took its snapshot after
//!    the suspicion arose, convicts. If it does not clear the limit but what came since does,
//!    the suspicion begins anew.
//! 5. An account that is over is admitted again at 95 % of its limit, so that it does not
//!    flicker about it. A limit raised above the one it was judged by frees it at once; if its
//!    charge clears the new one as well, it is suspect like any other.
//! 6. Without a limit an account is open. A limit lowered below what is held changes nothing
//!    by itself: suspicion, then evidence.
//! 7. The soft limit has no part in this. It is an event ([`soft`]), with the same hysteresis.

use policy_config::Limit;

use crate::ledger::Epoch;
use crate::sampling::standard_error_bytes;

/// Standard errors that an estimate must lie above a limit (rule 1).
pub(crate) const MARGIN: f64 = Limit::MARGIN_STANDARD_ERRORS;
/// The share of the limit at which an account is admitted again (rule 5).
const READMISSION: f64 = Limit::READMISSION_SHARE;

/// A sum of charges and of their variances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Estimate {
    pub(crate) bytes: u64,
    pub(crate) variance: u64,
}

impl Estimate {
    pub(crate) fn standard_error_bytes(self) -> f64 {
        standard_error_bytes(self.variance)
    }

    /// Whether it lies surely above `limit_bytes` (rule 1).
    pub(crate) fn clears(self, limit_bytes: u64) -> bool {
        self.bytes as f64 - MARGIN * self.standard_error_bytes() > limit_bytes as f64
    }

    pub(crate) fn add(&mut self, bytes: u64, variance: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.variance = self.variance.saturating_add(variance);
    }
}

/// What is left of the charges born up to an epoch, which a collection has proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Proof {
    /// The youngest epoch proved; `None` before the first collection.
    pub(crate) upto: Option<Epoch>,
    pub(crate) left: Estimate,
}

impl Proof {
    fn reaches(self, epoch: Epoch) -> bool {
        self.upto.is_some_and(|upto| upto >= epoch)
    }
}

/// One look at an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) limit_bytes: Option<u64>,
    /// The epoch now: nothing charged so far was born later.
    pub(crate) epoch: Epoch,
    pub(crate) charged: Estimate,
    /// What survived any collection.
    pub(crate) survived: Proof,
    /// What survived one that covers old memory too.
    pub(crate) covered: Proof,
}

/// Where an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// The charge clears the limit; evidence of epoch `since` or later is awaited.
    Suspect { since: Epoch },
    /// Convicted by this limit.
    Over { limit_bytes: u64 },
}

/// The phase after one more look. Pure; see the rules of the module.
pub(crate) fn next(phase: Phase, look: &Look) -> Phase {
    let Some(limit) = look.limit_bytes else {
        return Phase::Open;
    };
    match phase {
        Phase::Open if look.charged.clears(limit) => Phase::Suspect { since: look.epoch },
        Phase::Open => Phase::Open,
        Phase::Suspect { .. } if !look.charged.clears(limit) => Phase::Open,
        Phase::Suspect { since } if look.survived.reaches(since) => {
            if look.covered.reaches(since) && look.covered.left.clears(limit) {
                Phase::Over { limit_bytes: limit }
            } else if look.covered.reaches(since) || !look.survived.left.clears(limit) {
                // Acquitted of what was suspected; what was charged since is suspected anew.
                Phase::Suspect { since: look.epoch }
            } else {
                phase
            }
        }
        Phase::Suspect { .. } => phase,
        Phase::Over { limit_bytes } if limit > limit_bytes => next(Phase::Open, look),
        Phase::Over { .. } => {
            let readmitted = limit as f64 * READMISSION;
            if look.survived.left.bytes as f64 <= readmitted {
                next(Phase::Open, look)
            } else {
                Phase::Over { limit_bytes: limit }
            }
        }
    }
}

/// Whether an account counts as above its soft limit, given whether it did.
pub(crate) fn soft(above: bool, soft_limit_bytes: Option<u64>, survived: Estimate) -> bool {
    match soft_limit_bytes {
        None => false,
        Some(limit) if above => survived.bytes as f64 > limit as f64 * READMISSION,
        Some(limit) => survived.clears(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = 1000;

    fn exactly(bytes: u64) -> Estimate {
        Estimate { bytes, variance: 0 }
    }

    fn look(charged: u64, survived: (u32, u64), covered: (u32, u64), epoch: u32) -> Look {
        let proof = |(upto, bytes)| Proof {
            upto: Some(Epoch::new(upto)),
            left: exactly(bytes),
        };
        Look {
            limit_bytes: Some(LIMIT),
            epoch: Epoch::new(epoch),
            charged: exactly(charged),
            survived: proof(survived),
            covered: proof(covered),
        }
    }

    const SUSPECT_5: Phase = Phase::Suspect {
        since: Epoch::new(5),
    };

    #[test]
    fn a_charge_makes_suspect_and_no_more() {
        assert_eq!(
            next(Phase::Open, &look(1000, (4, 0), (0, 0), 5)),
            Phase::Open
        );
        let much = look(9999, (4, 900), (4, 900), 5);
        assert_eq!(next(Phase::Open, &much), SUSPECT_5);
        assert_eq!(next(SUSPECT_5, &much), SUSPECT_5);
    }

    #[test]
    fn a_young_collection_acquits_but_does_not_convict() {
        let acquitted = look(1001, (5, 900), (0, 0), 6);
        assert_eq!(
            next(SUSPECT_5, &acquitted),
            Phase::Suspect {
                since: Epoch::new(6)
            }
        );
        assert_eq!(
            next(SUSPECT_5, &look(1000, (5, 900), (0, 0), 6)),
            Phase::Open
        );
        let above = look(2000, (5, 2000), (4, 2000), 6);
        assert_eq!(next(SUSPECT_5, &above), SUSPECT_5);
    }

    #[test]
    fn a_covering_collection_convicts_and_limits_free() {
        let over = next(SUSPECT_5, &look(2000, (6, 1500), (5, 1001), 7));
        assert_eq!(over, Phase::Over { limit_bytes: LIMIT });
        let mut look = look(2000, (6, 951), (6, 951), 7);
        assert_eq!(next(over, &look), over);
        look.survived.left = exactly(950);
        assert_eq!(
            next(over, &look),
            Phase::Suspect {
                since: Epoch::new(7)
            }
        );
        look.charged = exactly(990);
        assert_eq!(next(over, &look), Phase::Open);
        look.survived.left = exactly(990);
        look.limit_bytes = Some(1001);
        assert_eq!(next(over, &look), Phase::Open);
        look.limit_bytes = Some(500);
        assert_eq!(next(over, &look), Phase::Over { limit_bytes: 500 });
        look.limit_bytes = None;
        assert_eq!(next(over, &look), Phase::Open);
    }

    #[test]
    fn the_error_of_the_estimate_is_granted() {
        let mut look = look(0, (0, 0), (0, 0), 5);
        look.charged.variance = 100;
        let granted = LIMIT + (3.0 * look.charged.standard_error_bytes()) as u64;
        look.charged.bytes = granted;
        assert_eq!(next(Phase::Open, &look), Phase::Open);
        look.charged.bytes = granted + 1;
        assert_eq!(next(Phase::Open, &look), SUSPECT_5);
    }

    #[test]
    fn a_soft_limit_has_hysteresis() {
        assert!(!soft(false, Some(100), exactly(100)));
        assert!(soft(false, Some(100), exactly(101)));
        assert!(soft(true, Some(100), exactly(96)));
        assert!(!soft(true, Some(100), exactly(95)));
        assert!(!soft(true, None, exactly(500)));
    }

    fn estimate() -> impl Strategy<Value = Estimate> {
        (0u64..4000, 0u64..40_000).prop_map(|(bytes, variance)| Estimate { bytes, variance })
    }

    fn any_look() -> impl Strategy<Value = Look> {
        (
            proptest::option::of(1u64..3000),
            0u32..20,
            estimate(),
            (proptest::option::of(0u32..20), estimate()),
            (proptest::option::of(0u32..20), estimate()),
        )
            .prop_map(|(limit_bytes, epoch, charged, survived, covered)| {
                let proof = |(upto, left): (Option<u32>, Estimate)| Proof {
                    upto: upto.map(Epoch::new),
                    left,
                };
                Look {
                    limit_bytes,
                    epoch: Epoch::new(epoch),
                    charged,
                    survived: proof(survived),
                    covered: proof(covered),
                }
            })
    }

    proptest! {
        /// However the figures come, nobody is over without a covering proof that is as young
        /// as the suspicion and clears the limit in force.
        #[test]
        fn nobody_is_over_without_evidence(looks in proptest::collection::vec(any_look(), 1..60)) {
            let mut phase = Phase::Open;
            for look in &looks {
                let after = next(phase, look);
                if let (Phase::Over { limit_bytes }, false) =
                    (after, matches!(phase, Phase::Over { .. }))
                {
                    let Phase::Suspect { since } = phase else {
                        return Err(TestCaseError::fail("over without suspicion"));
                    };
                    prop_assert_eq!(look.limit_bytes, Some(limit_bytes));
                    prop_assert!(look.covered.upto >= Some(since));
                    prop_assert!(look.covered.left.clears(limit_bytes));
                }
                if look.limit_bytes.is_none() {
                    prop_assert_eq!(after, Phase::Open);
                }
                phase = after;
            }
        }

        /// Two looks at the same figures say the same: no phase flickers by itself.
        #[test]
        fn a_second_look_changes_nothing(look in any_look(), since in 0u32..20, judged in 1u64..3000) {
            for phase in [
                Phase::Open,
                Phase::Suspect { since: Epoch::new(since) },
                Phase::Over { limit_bytes: judged },
            ] {
                let once = next(phase, &look);
                let consistent = look.survived.upto <= Some(look.epoch)
                    && look.survived.left.bytes <= look.charged.bytes;
                if consistent && look.survived.upto < Some(look.epoch) {
                    let twice = next(once, &look);
                    if let (Phase::Suspect { .. }, Phase::Suspect { .. }) = (phase, once) {
                        let convicted = matches!(twice, Phase::Over { .. });
                        prop_assert!(!convicted);
                    } else {
                        prop_assert_eq!(twice, once);
                    }
                }
            }
        }
    }
}
