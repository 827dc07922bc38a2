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
//! 2. A charge contains garbage, so a charge alone never puts an account over its limit. It makes the
//!    account suspect, from the epoch in which that was seen.
//! 3. What survived *any* collection of that epoch or a later one may acquit the account: a young
//!    collection leaves more than what is truly held, never less.
//! 4. An account is over its limit only if what survived a *covering* collection clears the limit:
//!    one that covers old memory too, and took its snapshot after the suspicion arose. If that does
//!    not clear the limit but the charge still does, the suspicion begins anew.
//! 5. An account that is over is admitted again at 95 % of its limit, so that its state does not
//!    flicker; its charge proves that as well as what survived. Of limit + reserve, where errors begin, it is 100 %:
//!    nobody within it gets an error. A limit raised above the one of the verdict frees it at once; if its charge
//!    clears the new limit too, it becomes suspect like any other.
//! 6. Without a limit an account is open. A limit lowered below what is held changes nothing
//!    by itself: first comes suspicion, then evidence.
//! 7. The soft limit does not change the state. Crossing it is an event ([`soft`]), with the same
//!    hysteresis.

use policy_config::Limit;

use crate::ledger::Epoch;
use crate::uncertainty::stated_error_bytes;

/// How many standard errors an estimate must lie above a limit to clear it (rule 1).
pub const MARGIN: f64 = Limit::MARGIN_STANDARD_ERRORS;
/// The share of the limit at which an account is admitted again (rule 5).
const READMISSION: f64 = Limit::READMISSION_SHARE;
/// The same of limit + reserve.
const READMISSION_TO_RESERVE: f64 = 1.0;

/// An estimated number of bytes: a sum of charges and of their variances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// The estimate in bytes.
    pub bytes: u64,
    /// Its variance, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
}

impl Estimate {
    /// The standard error in whole bytes.
    pub fn standard_error_bytes(self) -> f64 {
        stated_error_bytes(self.variance)
    }

    /// Whether the estimate lies significantly above `limit_bytes` (rule 1).
    pub fn clears(self, limit_bytes: u64) -> bool {
        self.bytes as f64 - MARGIN * self.standard_error_bytes() > limit_bytes as f64
    }

    /// Adds a charge and its variance.
    pub fn add(&mut self, bytes: u64, variance: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.variance = self.variance.saturating_add(variance);
    }
}

/// The bytes that survived of the charges born up to an epoch, as proved by a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Proof {
    /// The youngest epoch proved; `None` before the first collection.
    pub upto: Option<Epoch>,
    /// The bytes that survived.
    pub left: Estimate,
}

impl Proof {
    fn reaches(self, epoch: Epoch) -> bool {
        self.upto.is_some_and(|upto| upto >= epoch)
    }
}

/// The facts about an account at one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observation {
    /// The limit in bytes, if there is one.
    pub limit_bytes: Option<u64>,
    /// The current epoch: nothing charged so far was born later.
    pub epoch: Epoch,
    /// The account's charge, which contains garbage.
    pub charged: Estimate,
    /// The bytes that survived any collection.
    pub survived: Proof,
    /// The bytes that survived a collection that covers old memory too.
    pub covered: Proof,
}

/// The state of an account, with what its next change depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The charge does not clear the limit.
    #[default]
    Open,
    /// The charge clears the limit; evidence is awaited.
    Suspect {
        /// The evidence must be of this epoch or a later one.
        since: Epoch,
    },
    /// A covering collection has proved that the account is over its limit.
    Over {
        /// The limit of that verdict, in bytes.
        limit_bytes: u64,
    },
}

/// The phase after one more check. Pure; see the rules of the module.
pub fn next(phase: Phase, observation: &Observation) -> Phase {
    next_readmitted_at(READMISSION, phase, observation)
}

/// The same of limit + reserve, which the observation has as the limit.
pub fn next_of_reserve(phase: Phase, observation: &Observation) -> Phase {
    next_readmitted_at(READMISSION_TO_RESERVE, phase, observation)
}

fn next_readmitted_at(share: f64, phase: Phase, observation: &Observation) -> Phase {
    let Some(limit) = observation.limit_bytes else {
        return Phase::Open;
    };
    match phase {
        Phase::Open if observation.charged.clears(limit) => Phase::Suspect {
            since: observation.epoch,
        },
        Phase::Open => Phase::Open,
        Phase::Suspect { .. } if !observation.charged.clears(limit) => Phase::Open,
        Phase::Suspect { since } if observation.survived.reaches(since) => {
            if observation.covered.reaches(since) && observation.covered.left.clears(limit) {
                Phase::Over { limit_bytes: limit }
            } else if observation.covered.reaches(since) || !observation.survived.left.clears(limit)
            {
                // Acquitted, but the charge still clears the limit: suspect anew.
                Phase::Suspect {
                    since: observation.epoch,
                }
            } else {
                phase
            }
        }
        Phase::Suspect { .. } => phase,
        Phase::Over { limit_bytes } if limit > limit_bytes => {
            next_readmitted_at(share, Phase::Open, observation)
        }
        Phase::Over { .. } => {
            let readmitted = limit as f64 * share;
            let held = (observation.survived.left.bytes).min(observation.charged.bytes);
            if held as f64 <= readmitted {
                next_readmitted_at(share, Phase::Open, observation)
            } else {
                Phase::Over { limit_bytes: limit }
            }
        }
    }
}

/// Whether an account counts as above its soft limit; `above` is whether it did so before.
pub fn soft(above: bool, soft_limit_bytes: Option<u64>, survived: Estimate) -> bool {
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

    fn observation(
        charged: u64,
        survived: (u32, u64),
        covered: (u32, u64),
        epoch: u32,
    ) -> Observation {
        let proof = |(upto, bytes)| Proof {
            upto: Some(Epoch::new(upto)),
            left: exactly(bytes),
        };
        Observation {
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
            next(Phase::Open, &observation(1000, (4, 0), (0, 0), 5)),
            Phase::Open
        );
        let much = observation(9999, (4, 900), (4, 900), 5);
        assert_eq!(next(Phase::Open, &much), SUSPECT_5);
        assert_eq!(next(SUSPECT_5, &much), SUSPECT_5);
    }

    #[test]
    fn a_young_collection_acquits_but_does_not_convict() {
        let acquitted = observation(1001, (5, 900), (0, 0), 6);
        assert_eq!(
            next(SUSPECT_5, &acquitted),
            Phase::Suspect {
                since: Epoch::new(6)
            }
        );
        assert_eq!(
            next(SUSPECT_5, &observation(1000, (5, 900), (0, 0), 6)),
            Phase::Open
        );
        let above = observation(2000, (5, 2000), (4, 2000), 6);
        assert_eq!(next(SUSPECT_5, &above), SUSPECT_5);
    }

    #[test]
    fn a_covering_collection_convicts_and_limits_free() {
        let over = next(SUSPECT_5, &observation(2000, (6, 1500), (5, 1001), 7));
        assert_eq!(over, Phase::Over { limit_bytes: LIMIT });
        let mut observation = observation(2000, (6, 951), (6, 951), 7);
        assert_eq!(next(over, &observation), over);
        observation.survived.left = exactly(950);
        assert_eq!(
            next(over, &observation),
            Phase::Suspect {
                since: Epoch::new(7)
            }
        );
        observation.charged = exactly(990);
        assert_eq!(next(over, &observation), Phase::Open);
        observation.survived.left = exactly(990);
        observation.limit_bytes = Some(1001);
        assert_eq!(next(over, &observation), Phase::Open);
        observation.limit_bytes = Some(500);
        assert_eq!(next(over, &observation), Phase::Over { limit_bytes: 500 });
        observation.limit_bytes = None;
        assert_eq!(next(over, &observation), Phase::Open);
    }

    #[test]
    fn the_error_of_the_estimate_is_granted() {
        let mut observation = observation(0, (0, 0), (0, 0), 5);
        observation.charged.variance = 100;
        let granted = LIMIT + (3.0 * observation.charged.standard_error_bytes()) as u64;
        observation.charged.bytes = granted;
        assert_eq!(next(Phase::Open, &observation), Phase::Open);
        observation.charged.bytes = granted + 1;
        assert_eq!(next(Phase::Open, &observation), SUSPECT_5);
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

    fn any_look() -> impl Strategy<Value = Observation> {
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
                Observation {
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
            for observation in &looks {
                let after = next(phase, observation);
                if let (Phase::Over { limit_bytes }, false) =
                    (after, matches!(phase, Phase::Over { .. }))
                {
                    let Phase::Suspect { since } = phase else {
                        return Err(TestCaseError::fail("over without suspicion"));
                    };
                    prop_assert_eq!(observation.limit_bytes, Some(limit_bytes));
                    prop_assert!(observation.covered.upto >= Some(since));
                    prop_assert!(observation.covered.left.clears(limit_bytes));
                }
                if observation.limit_bytes.is_none() {
                    prop_assert_eq!(after, Phase::Open);
                }
                phase = after;
            }
        }

        /// Two looks at the same figures say the same: no phase flickers by itself.
        #[test]
        fn a_second_look_changes_nothing(observation in any_look(), since in 0u32..20, judged in 1u64..3000) {
            for phase in [
                Phase::Open,
                Phase::Suspect { since: Epoch::new(since) },
                Phase::Over { limit_bytes: judged },
            ] {
                let once = next(phase, &observation);
                let consistent = observation.survived.upto <= Some(observation.epoch)
                    && observation.survived.left.bytes <= observation.charged.bytes;
                if consistent && observation.survived.upto < Some(observation.epoch) {
                    let twice = next(once, &observation);
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
