//! One account in one round: what it is charged, where that puts it, what its threads are told
//! and which evidence is wanted. Knows the ledger and the gates, no directory and no JVM.

use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::Throw;

use crate::ledger::{Epoch, Ledger, PurseId};
use crate::options::TestRefuse;

use super::docket::Case;
use super::gate::{Gate, Gates, Word};
use super::ladder::Wish;
use super::logbook::Logbook;
use super::overdraft::{Ground, Marks, marks};
use super::state::{Estimate, Look, Phase, Proof, next, soft};

/// An account charged less than this share of its limit is not near it.
const NEAR: f64 = 0.5;
/// A suspect account whose threads do not press on is looked into after this.
const PATIENCE: Duration = Duration::from_secs(1);
/// The first pause after a covering collection that acquitted; it doubles.
const FIRST_BACK_OFF: Duration = Duration::from_millis(250);
const MOST_DOUBLINGS: u32 = 5;
/// Between two looks whether an account that is over has let go.
const RECHECK: Duration = Duration::from_secs(4);

/// An account with a limit or a soft limit.
#[derive(Debug, Clone)]
pub(super) struct Limited {
    pub(super) account: Arc<str>,
    pub(super) gate: u32,
    pub(super) purses: Vec<PurseId>,
    pub(super) limit_bytes: Option<u64>,
    pub(super) soft_limit_bytes: Option<u64>,
    pub(super) throw: Throw,
}

/// What all visits of a round have in common.
pub(super) struct Around<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) gates: &'a Gates,
    /// Of the maximum heap, what the latest collection left free.
    pub(super) free_heap_bytes: u64,
    pub(super) max_heap_bytes: u64,
    /// No evidence can be asked for now.
    pub(super) starved: bool,
    pub(super) enforced: bool,
    pub(super) test_refuse: Option<TestRefuse>,
    pub(super) now: Instant,
}

impl Around<'_> {
    /// A proof of more than the whole heap held after the latest collection is none: its
    /// refunds are still coming. Seen on a busy machine, where the thread that reports them
    /// was set aside in the middle for longer than they were waited for.
    fn plausible(&self, proof: Proof) -> Proof {
        let used_bytes = (self.max_heap_bytes).saturating_sub(self.free_heap_bytes);
        if proof.left.clears(used_bytes) {
            Proof::default()
        } else {
            proof
        }
    }

    /// The sampling interval in force.
    pub(super) fn interval_bytes(&self) -> u64 {
        let intervals = self.ledger.intervals();
        intervals.bytes(intervals.current())
    }

    /// The marks of an account that is charged so much.
    pub(super) fn marks(&self, limit_bytes: u64, charged: Estimate, case: &Case) -> Marks {
        marks(&Ground {
            limit_bytes,
            charged,
            left_bytes: case.survived.left.bytes.min(charged.bytes),
            survival: case.survival,
            free_heap_bytes: self.free_heap_bytes,
            max_heap_bytes: self.max_heap_bytes,
            interval_bytes: self.interval_bytes(),
            starved: self.starved,
        })
    }
}

/// What one account is charged at this moment.
pub(super) struct Visit {
    spent: u64,
    charged: Estimate,
    pub(super) near: bool,
    /// Of what was born since the last pass over the records, what is left.
    pub(super) cohort: Estimate,
}

impl Visit {
    pub(super) fn to(around: &Around<'_>, limited: &Limited) -> Visit {
        // The gate first: see its first rule.
        let gate = around.gates.get(limited.gate);
        let spent = gate.map_or(0, Gate::spent);
        let mut charged = Estimate::default();
        for &purse in &limited.purses {
            let charge = around.ledger.totals(purse).charged;
            charged.add(charge.bytes, charge.variance);
        }
        let lowest = [limited.limit_bytes, limited.soft_limit_bytes];
        let near =
            (lowest.into_iter().flatten()).any(|limit| charged.bytes as f64 >= limit as f64 * NEAR);
        Visit {
            spent,
            charged,
            near,
            cohort: Estimate::default(),
        }
    }

    /// Moves the account's state and tells its gate. `publish` writes the terms of a refusal,
    /// before the gate can say that there is one. What evidence is wanted, and when to look
    /// again at the latest.
    pub(super) fn judge(
        &self,
        around: &Around<'_>,
        epoch: Epoch,
        limited: &Limited,
        case: &mut Case,
        logbook: &mut Logbook,
        publish: &mut dyn FnMut(&Limited, u64, &Case),
    ) -> (Wish, Duration) {
        let Some(gate) = around.gates.make(limited.gate) else {
            return (Wish::None, RECHECK);
        };
        let now = around.now;
        let before = case.phase;
        self.move_on(around, epoch, limited, case, logbook);
        self.heed_soft_limit(now, limited, case, logbook);
        case.charged = self.charged;
        case.limit_bytes = limited.limit_bytes;
        case.soft_limit_bytes = limited.soft_limit_bytes;
        let Some(limit_bytes) = limited.limit_bytes else {
            gate.say(Word::default());
            return (Wish::None, RECHECK);
        };
        let marks = around.marks(limit_bytes, self.charged, case);
        // Whether it is near or not: one object may be larger than the whole limit.
        publish(limited, limit_bytes, case);
        let word = Word {
            limited: true,
            over: matches!(case.phase, Phase::Over { .. }),
            enforced: around.enforced,
            naive: around.test_refuse == Some(TestRefuse::Naive),
        };
        // A mark below the charge lies behind what is spent: who waits there goes on waiting.
        let spent_at =
            |mark: u64| (self.spent.saturating_add(mark)).saturating_sub(self.charged.bytes);
        let crossed = gate.set_marks(
            limit_bytes,
            spent_at(marks.trip_bytes),
            spent_at(marks.stop_bytes),
        );
        let is_new = !gate.word().0.limited;
        if before != case.phase {
            if case.phase == Phase::Open {
                gate.forget_masked();
            }
            gate.say_anew(word);
        } else {
            gate.say(word);
        }
        if is_new || crossed && case.phase == Phase::Open {
            // Charged while this look was taken, or past a gate that did not count yet: look
            // again at once.
            return (Wish::None, Duration::ZERO);
        }
        if around.test_refuse.is_some() {
            return (Wish::None, RECHECK);
        }
        wish(case, self.charged, limit_bytes, marks, epoch, now)
    }

    fn move_on(
        &self,
        around: &Around<'_>,
        epoch: Epoch,
        limited: &Limited,
        case: &mut Case,
        logbook: &mut Logbook,
    ) {
        let look = Look {
            limit_bytes: limited.limit_bytes,
            epoch,
            charged: self.charged,
            survived: case.survived,
            covered: around.plausible(case.covered),
        };
        let before = case.phase;
        let mut after = next(before, &look);
        if around.test_refuse == Some(TestRefuse::Storm) {
            after = limited
                .limit_bytes
                .map_or(Phase::Open, |limit_bytes| Phase::Over { limit_bytes });
        }
        if let (Phase::Suspect { since: old }, Phase::Suspect { since: new }) = (before, after)
            && old != new
            && case.covered.upto >= Some(old)
        {
            case.acquittals = case.acquittals.saturating_add(1);
            case.not_before = Some(around.now + back_off(case.acquittals));
        }
        if case.enter(after, self.charged, around.now) {
            if case.phase == Phase::Open || matches!(case.phase, Phase::Over { .. }) {
                case.acquittals = 0;
                case.not_before = None;
            }
            case.recheck = None;
            logbook.changed(&limited.account, case, &look, around.enforced, around.now);
        }
    }

    fn heed_soft_limit(
        &self,
        now: Instant,
        limited: &Limited,
        case: &mut Case,
        logbook: &mut Logbook,
    ) {
        // What was left of an account that was not near its limits may be long gone.
        let left = if self.charged.bytes < case.survived.left.bytes {
            self.charged
        } else {
            case.survived.left
        };
        let above_soft = soft(case.above_soft, limited.soft_limit_bytes, left);
        if above_soft && !case.above_soft {
            case.soft_events += 1;
            let limit = limited.soft_limit_bytes.unwrap_or(0);
            logbook.soft(&limited.account, limit, left, now);
        }
        case.above_soft = above_soft;
    }
}

fn back_off(acquittals: u32) -> Duration {
    FIRST_BACK_OFF * (1 << acquittals.saturating_sub(1).min(MOST_DOUBLINGS))
}

/// What evidence a case needs now, and when to look again.
fn wish(
    case: &mut Case,
    charged: Estimate,
    limit_bytes: u64,
    marks: Marks,
    epoch: Epoch,
    now: Instant,
) -> (Wish, Duration) {
    match case.phase {
        Phase::Open => (Wish::None, Duration::from_secs(1)),
        Phase::Suspect { since } => {
            let proved = case.survived.upto >= Some(since);
            if proved && case.survived.left.clears(limit_bytes) {
                return match case.not_before.filter(|then| *then > now) {
                    Some(then) => (Wish::None, then - now),
                    None => (Wish::Covering, Duration::from_millis(20)),
                };
            }
            let half = marks.trip_bytes + (marks.stop_bytes - marks.trip_bytes) / 2;
            let patience = PATIENCE * (1 << case.acquittals.min(MOST_DOUBLINGS));
            let age = case.age(now);
            if charged.bytes > half || age >= patience {
                (Wish::Young, Duration::from_millis(20))
            } else {
                (Wish::None, patience - age)
            }
        }
        Phase::Over { .. } => {
            let last = case.rechecked.max(case.since);
            let due = last.map_or(now, |last| last + RECHECK);
            match case.recheck {
                None if now < due => (Wish::None, due - now),
                None => {
                    case.recheck = Some(epoch);
                    (Wish::Covering, Duration::from_millis(50))
                }
                Some(wanted) if case.covered.upto < Some(wanted) => {
                    (Wish::Covering, Duration::from_millis(50))
                }
                Some(_) => {
                    // Still over after that look: the next one is due in as long again.
                    case.recheck = None;
                    case.rechecked = Some(now);
                    (Wish::None, RECHECK)
                }
            }
        }
    }
}
