//! Who knows the truth: what was held at each snapshot, who was convicted on it, what was let
//! past the gates; and says so when the protocol did wrong.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::enforce::docket::Docket;
use crate::enforce::gate::{Gate, Passage};
use crate::enforce::grace::{GRACE_BYTES, SLOW_BYTES_PER_MS, WAIT_MS, WAITS_MS};
use crate::enforce::overdraft::Survival;
use crate::enforce::state::{Estimate, Phase};
use crate::enforce::visit::{Around, Limited};
use crate::ledger::{Epoch, Ledger, PurseId};

use super::heap::Held;
use super::jvm::Shared;

/// How much later than it could a thread may be seen to go on.
const TICK_MS: u64 = 5;

/// An account as the last round left it.
struct Standing {
    account: Arc<str>,
    purses: Vec<PurseId>,
    limit_bytes: Option<u64>,
    enforced: bool,
    conviction: Option<Conviction>,
    /// Charged when it was visited, and since, whatever was refunded.
    charged_bytes: u64,
    stop_bytes: u64,
    above_soft: bool,
    /// Its purses have never had garbage.
    is_clean: bool,
}

impl Standing {
    fn permits(&self, refusal: &Refusal) -> bool {
        let is_alone = |limit| refusal.alone.is_some_and(|size| size > limit);
        self.enforced && (self.conviction.is_some() || self.limit_bytes.is_some_and(is_alone))
    }
}

#[derive(Clone)]
struct Conviction {
    limit_bytes: u64,
    purses: Vec<PurseId>,
    /// Purses that were recycled while the verdict stood.
    ended: Vec<PurseId>,
    held: Rc<Held>,
}

impl Conviction {
    /// Whether it holds for an account of these purses: what was held by those that have left
    /// it, other than by their end, does not count.
    fn proves(&self, ledger: &Ledger, purses: &[PurseId]) -> bool {
        let ended = |purse: &PurseId| {
            self.ended.contains(purse) || self.purses.contains(purse) && !ledger.is_open(*purse)
        };
        let counts = |purse: &PurseId| purses.contains(purse) || ended(purse);
        let held = (self.held.iter()).filter(|(purse, _)| counts(purse));
        held.map(|(_, bytes)| bytes).sum::<u64>() > self.limit_bytes
    }
}

struct Refusal {
    payer: PurseId,
    alone: Option<u64>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Oracle {
    /// Every object is sampled: estimates are exact.
    pub(super) is_exact: bool,
    /// Counts that went to gates.
    pub(super) counted: u64,
    pub(super) refusals: u64,
    pub(super) convictions: u64,
    /// Convictions of accounts that held no more than their limit.
    pub(super) wrong_convictions: u64,
    /// Purses that have had garbage.
    pub(super) littered: HashSet<PurseId>,
    standings: Vec<Standing>,
    /// While a round goes on: charges and refusals that belong to either side of it.
    in_round: bool,
    charged_in_round: HashMap<PurseId, u64>,
    refused_in_round: Vec<Refusal>,
    /// For the word of that serial number, what a thread may still wait.
    waits: HashMap<usize, (u32, u64)>,
    granted: HashMap<usize, u64>,
}

impl Oracle {
    fn standing(&mut self, payer: PurseId) -> Option<&mut Standing> {
        (self.standings.iter_mut()).find(|standing| standing.purses.contains(&payer))
    }

    /// A charge has passed the gate.
    pub(super) fn passed(&mut self, payer: PurseId, bytes: u64, passage: &Passage) {
        if self.in_round {
            *self.charged_in_round.entry(payer).or_default() += bytes;
            return;
        }
        let Some(standing) = self.standing(payer) else {
            assert!(passage.due.is_none(), "{payer:?} has no limit: {passage:?}");
            return;
        };
        standing.charged_bytes += bytes;
        assert!(
            standing.limit_bytes.is_none()
                || passage.due.is_some()
                || standing.charged_bytes <= standing.stop_bytes,
            "{} goes on at {} bytes, the stop is at {}",
            standing.account,
            standing.charged_bytes,
            standing.stop_bytes,
        );
    }

    /// A thread has stopped waiting before it had to.
    pub(super) fn released(&mut self, shared: &Shared, payer: PurseId, gate: &Gate) {
        let word = gate.word().0;
        if !word.limited || !word.enforced || word.over {
            return;
        }
        if let Some(standing) = self.standing(payer) {
            let charged: u64 = (standing.purses.iter())
                .map(|&purse| shared.ledger.totals(purse).charged.bytes)
                .sum();
            assert!(
                charged <= standing.stop_bytes,
                "a thread of {} was let go without a verdict",
                standing.account
            );
        }
    }

    pub(super) fn waited(&mut self, thread: usize, serial: u32, ms: u64, charged_bytes: u64) {
        assert!(ms <= WAIT_MS + TICK_MS, "waited {ms} ms");
        let (word, left_ms) = self.waits.entry(thread).or_default();
        if *word != serial {
            (*word, *left_ms) = (serial, WAITS_MS + TICK_MS);
        }
        *left_ms += charged_bytes / SLOW_BYTES_PER_MS + TICK_MS;
        let left = left_ms.checked_sub(ms);
        *left_ms = left.unwrap_or_else(|| panic!("waited {ms} ms more for one word"));
    }

    pub(super) fn granted(&mut self, thread: usize, bytes: u64) {
        let granted = self.granted.entry(thread).or_default();
        *granted += bytes;
        assert!(*granted <= GRACE_BYTES, "a grace of {granted} bytes");
    }

    pub(super) fn graces(&mut self, thread: usize) {
        self.granted.insert(thread, 0);
    }

    /// A refusal was thrown; of an object too large by itself, with its size.
    pub(super) fn refused(&mut self, payer: PurseId, alone: Option<u64>) {
        self.refusals += 1;
        let refusal = Refusal { payer, alone };
        if self.in_round {
            self.refused_in_round.push(refusal);
        } else {
            assert!(
                self.is_right(&refusal),
                "refused {payer:?} without a verdict"
            );
        }
    }

    fn is_right(&self, refusal: &Refusal) -> bool {
        let standing = (self.standings.iter()).find(|s| s.purses.contains(&refusal.payer));
        standing.is_some_and(|standing| standing.permits(refusal))
    }

    /// Nobody is kept waiting by an account that has no limit or is only observed.
    pub(super) fn keeps_waiting(&mut self, payer: PurseId) {
        if let Some(standing) = self.standing(payer) {
            assert!(
                standing.enforced && standing.limit_bytes.is_some(),
                "a thread of {} waits for nothing",
                standing.account
            );
        }
    }

    pub(super) fn round_begins(&mut self) {
        self.in_round = true;
    }

    /// A round is over: who is over must have been convicted by what was truly held.
    pub(super) fn round_ends(
        &mut self,
        around: &Around<'_>,
        limited: &[Limited],
        charged: &[Estimate],
        docket: &Docket,
        proofs: &HashMap<Epoch, Rc<Held>>,
    ) {
        self.in_round = false;
        let early = std::mem::take(&mut self.charged_in_round);
        let refused = std::mem::take(&mut self.refused_in_round);
        let was_right = |refusal: &Refusal| {
            // A purse that has just joined an account is under what was said of that; also where it
            // had another name then, and is known by its purses.
            let Some(joined) = limited.iter().find(|l| l.purses.contains(&refusal.payer)) else {
                return self.is_right(refusal);
            };
            let is_gone = |name: &Arc<str>| limited.iter().all(|l| l.account != *name);
            let shares = |s: &Standing| s.purses.iter().any(|p| joined.purses.contains(p));
            let mut before = (self.standings.iter())
                .filter(|s| s.account == joined.account || is_gone(&s.account) && shares(s));
            self.is_right(refusal) || before.any(|standing| standing.permits(refusal))
        };
        let refused: Vec<Refusal> = refused.into_iter().filter(|r| !was_right(r)).collect();
        let standings = (limited.iter().zip(charged))
            .map(|(limited, &charged)| {
                let case = docket.case(&limited.account).expect("a case");
                let over = match case.phase {
                    Phase::Over { limit_bytes } => Some(limit_bytes),
                    Phase::Open | Phase::Suspect { .. } => None,
                };
                assert!(
                    over.is_none() || limited.limit_bytes == over,
                    "{} is over another limit",
                    limited.account
                );
                let covered = case.covered.upto.and_then(|upto| proofs.get(&upto));
                let conviction =
                    over.map(|limit| self.convict(around.ledger, limited, limit, covered));
                let shares = |s: &&Standing| {
                    s.account == limited.account
                        || s.purses.iter().any(|purse| limited.purses.contains(purse))
                };
                let was_above = self.standings.iter().filter(shares).any(|s| s.above_soft);
                assert!(
                    !case.above_soft || was_above || limited.soft_limit_bytes < Some(charged.bytes),
                    "{} is above its soft limit with {charged:?}",
                    limited.account
                );
                let is_clean = !limited.purses.iter().any(|p| self.littered.contains(p))
                    && self.standings.iter().filter(shares).all(|s| s.is_clean);
                assert!(
                    !is_clean || !self.is_exact || case.survival == Survival::default(),
                    "{} dropped nothing, yet {:?}",
                    limited.account,
                    case.survival
                );
                let stop_bytes = limited.limit_bytes.map_or(u64::MAX, |limit_bytes| {
                    around.marks(limit_bytes, charged, case).stop_bytes
                });
                let since: u64 = limited.purses.iter().filter_map(|p| early.get(p)).sum();
                Standing {
                    account: limited.account.clone(),
                    purses: limited.purses.clone(),
                    limit_bytes: limited.limit_bytes,
                    enforced: around.enforced,
                    conviction,
                    charged_bytes: charged.bytes + since,
                    stop_bytes,
                    above_soft: case.above_soft,
                    is_clean,
                }
            })
            .collect();
        self.standings = standings;
        for refusal in refused {
            assert!(
                self.is_right(&refusal),
                "refused {:?} without a verdict",
                refusal.payer
            );
        }
    }

    /// An account is over: by a verdict of an earlier round, or by a new one.
    fn convict(
        &mut self,
        ledger: &Ledger,
        limited: &Limited,
        limit: u64,
        covered: Option<&Rc<Held>>,
    ) -> Conviction {
        let earlier = (self.standings.iter())
            .filter_map(|standing| standing.conviction.as_ref())
            .find(|conviction| {
                limit <= conviction.limit_bytes && conviction.proves(ledger, &limited.purses)
            });
        if let Some(conviction) = earlier {
            let mut ended = conviction.purses.clone();
            ended.retain(|purse| !limited.purses.contains(purse) && !ledger.is_open(*purse));
            ended.extend(&conviction.ended);
            return Conviction {
                limit_bytes: limit,
                purses: limited.purses.clone(),
                ended,
                held: conviction.held.clone(),
            };
        }
        self.convictions += 1;
        let conviction = Conviction {
            limit_bytes: limit,
            purses: limited.purses.clone(),
            ended: Vec::new(),
            held: covered.cloned().unwrap_or_default(),
        };
        let is_proved = conviction.proves(ledger, &limited.purses);
        self.wrong_convictions += u64::from(!is_proved);
        assert!(
            is_proved || !self.is_exact,
            "{} is over {limit} bytes; it held {:?}",
            limited.account,
            conviction.held
        );
        conviction
    }
}
