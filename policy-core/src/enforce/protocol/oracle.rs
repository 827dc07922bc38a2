//! The oracle knows the truth: what was held at each snapshot, which account is over because of it,
//! and what passed the gates. It panics if the protocol did wrong.
//!
//! It reads from the directory, independently of the enforcer, which accounts have limits.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use policy_config::Door;

use crate::core::Core;
use crate::enforce::door::{Answer, LEASE_MS, LONGEST_HEAVY_PAUSE_MS};
use crate::enforce::grace::{GRACE_BYTES, SLOW_BYTES_PER_MS, SLOWEST_MS, WAIT_MS, WAITS_MS};
use crate::enforce::ports::Level;
use crate::enforce::state::Phase;
use crate::ledger::{Epoch, Ledger, PurseId};
use crate::snapshot::Kind;

use super::heap::Held;
use super::simulation::{MAX_HEAP_BYTES, charged};

/// How late the model may notice that a thread could go on.
const TICK_MS: u64 = 5;

/// An account with a limit, as the directory has it during a turn of the enforcer.
struct LimitedView {
    account: Arc<str>,
    gate: u32,
    purses: Vec<PurseId>,
    limit_bytes: Option<u64>,
    soft_limit_bytes: Option<u64>,
    has_door: bool,
    /// Its charge, and its gate's `spent`.
    charged_bytes: u64,
    spent: u64,
}

/// An account as the last turn left it.
struct AccountState {
    account: Arc<str>,
    gate: u32,
    purses: Vec<PurseId>,
    limit_bytes: Option<u64>,
    enforced: bool,
    /// Why it is over its limit.
    conviction: Option<Conviction>,
    /// Why errors are thrown: that it is over limit and reserve, or over its limit in duress.
    refused: Option<Conviction>,
    /// Why it is over limit and reserve, in duress as well: that verdict stands when duress ends.
    beyond_reserve: Option<Conviction>,
    has_door: bool,
    /// Its charge at the last turn, plus charges since; refunds since are ignored.
    charged_bytes: u64,
    stop_bytes: u64,
    above_soft: bool,
    /// Its purses have never had garbage.
    is_clean: bool,
}

impl AccountState {
    fn permits(&self, refusal: &Refusal) -> bool {
        let is_alone = |limit| refusal.alone.is_some_and(|size| size > limit);
        self.enforced && (self.refused.is_some() || self.limit_bytes.is_some_and(is_alone))
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

/// An error that was thrown.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) payer: PurseId,
    /// The gate at which it was due.
    pub(super) gate: u32,
    /// The size of an object that is refused without a verdict.
    pub(super) alone: Option<u64>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Oracle {
    /// Every object is sampled: estimates are exact.
    pub(super) is_exact: bool,
    /// Counts that went to gates.
    pub(super) counted: u64,
    /// The time that threads have waited for verdicts and look-ups, in milliseconds.
    pub(super) waited_ms: u64,
    pub(super) refusals: u64,
    pub(super) convictions: u64,
    /// Convictions of accounts that held no more than their limit.
    pub(super) wrong_convictions: u64,
    /// Purses that have had garbage.
    pub(super) littered: HashSet<PurseId>,
    accounts: Vec<AccountState>,
    /// During a turn: what it found, and the charges and refusals that come before or after it.
    turn: Option<Vec<LimitedView>>,
    charged_in_turn: HashMap<PurseId, u64>,
    refused_in_turn: Vec<Refusal>,
    /// For the word of that serial number, what a thread may still wait.
    waits: HashMap<usize, (u32, u64)>,
    granted: HashMap<usize, u64>,
    /// The probes inside, by gate: their tickets, and since when.
    probes: HashMap<u32, (u64, u64)>,
}

impl Oracle {
    /// A request for the service of `payer` was answered.
    pub(super) fn answered(&mut self, core: &Core, payer: PurseId, answer: Answer, now_ms: u64) {
        let gate = core.identity.representative(payer);
        let account = self.at_gate(gate, payer);
        let has_door = account.is_some_and(|account| account.enforced && account.has_door);
        match answer {
            Answer::In => {}
            Answer::Free(_) => panic!("the model has no routes"),
            Answer::Probe(_) | Answer::Away { .. } => assert!(
                has_door && account.is_some_and(|account| account.conviction.is_some()),
                "{answer:?} without a verdict"
            ),
        }
        match answer {
            Answer::Away { retry_after_ms } => {
                self.counted += 1;
                assert!(retry_after_ms <= LONGEST_HEAVY_PAUSE_MS, "{answer:?}");
            }
            Answer::Probe(ticket) => {
                let inside = self.probes.insert(gate, (ticket, now_ms));
                assert!(
                    inside.is_none_or(|(_, since_ms)| now_ms >= since_ms + LEASE_MS),
                    "two probes are inside"
                );
            }
            Answer::In | Answer::Free(_) => {}
        }
    }

    /// The probe inside a service ends: its ticket.
    pub(super) fn probe_ends(&mut self, core: &Core, payer: PurseId) -> Option<u64> {
        let gate = core.identity.representative(payer);
        self.probes.remove(&gate).map(|(ticket, _)| ticket)
    }

    /// The probe inside a service: its ticket.
    pub(super) fn probe_inside(&self, core: &Core, payer: PurseId) -> Option<u64> {
        let gate = core.identity.representative(payer);
        self.probes.get(&gate).map(|(ticket, _)| *ticket)
    }

    fn at_gate(&self, gate: u32, payer: PurseId) -> Option<&AccountState> {
        (self.accounts.iter())
            .find(|account| account.gate == gate && account.purses.contains(&payer))
    }

    /// A scope was opened inside the account of a gate: that account's verdict holds for it.
    pub(super) fn scope_opens(&mut self, scope: PurseId, gate: u32) {
        for account in self.accounts.iter_mut().filter(|s| s.gate == gate) {
            account.purses.push(scope);
        }
    }

    /// A charge has passed its gates; `is_due` tells at which it was due. Below its limit nobody is held while the
    /// heap has room; in duress nobody passes the stop.
    pub(super) fn passed(
        &mut self,
        core: &Core,
        payer: PurseId,
        (bytes, size_bytes): (u64, u64),
        is_due: impl Fn(u32) -> bool,
    ) {
        if self.turn.is_some() {
            *self.charged_in_turn.entry(payer).or_default() += bytes;
            return;
        }
        for account in &mut self.accounts {
            if !account.purses.contains(&payer) {
                continue;
            }
            account.charged_bytes += bytes;
            let gate = core.enforcement.gates.get(account.gate);
            let is_duress = gate.is_some_and(|gate| gate.word().0.duress);
            let is_alone = account.limit_bytes.is_some_and(|limit| size_bytes > limit);
            assert!(
                is_duress || is_alone || account.refused.is_some() || !is_due(account.gate),
                "{} is held below its limit",
                account.account
            );
            assert!(
                account.limit_bytes.is_none()
                    || !is_duress
                    || is_due(account.gate)
                    || account.charged_bytes <= account.stop_bytes,
                "{} goes on at {} bytes, the stop is at {}",
                account.account,
                account.charged_bytes,
                account.stop_bytes,
            );
        }
    }

    /// A thread has stopped waiting before it had to.
    pub(super) fn released(&mut self, core: &Core, level: Level) {
        let gate = core.enforcement.gates.get(level.account).expect("a gate");
        let word = gate.word().0;
        let is_awaited = word.limited && word.enforced && word.duress && !word.over;
        if !is_awaited || self.turn.is_some() {
            return;
        }
        if let Some(account) = self.at_gate(level.account, level.payer) {
            let charged = charged(core, &account.purses);
            assert!(
                charged <= account.stop_bytes,
                "a thread of {} was let go without a verdict",
                account.account
            );
        }
    }

    pub(super) fn waited(&mut self, thread: usize, serial: u32, ms: u64, charged_bytes: u64) {
        // A thread's grace counts a wait of 0 ms as 1.
        self.waited_ms += if ms > 1 { ms } else { 0 };
        assert!(ms <= WAIT_MS + TICK_MS, "waited {ms} ms");
        let (word, left_ms) = self.waits.entry(thread).or_default();
        if *word != serial {
            (*word, *left_ms) = (serial, WAITS_MS + TICK_MS);
        }
        *left_ms += charged_bytes / SLOW_BYTES_PER_MS + TICK_MS;
        let left = left_ms.checked_sub(ms);
        *left_ms = left.unwrap_or_else(|| panic!("waited {ms} ms more for one word"));
    }

    /// A thread without a unit of work is made to sleep.
    pub(super) fn slowed(&self, ms: u64) {
        assert!(ms <= SLOWEST_MS, "a thread's own loop sleeps {ms} ms");
    }

    pub(super) fn granted(&mut self, thread: usize, bytes: u64) {
        let granted = self.granted.entry(thread).or_default();
        *granted += bytes;
        assert!(*granted <= GRACE_BYTES, "a grace of {granted} bytes");
    }

    pub(super) fn graces(&mut self, thread: usize) {
        self.granted.insert(thread, 0);
    }

    /// A refusal was thrown.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refusals += 1;
        if self.turn.is_some() {
            self.refused_in_turn.push(refusal);
        } else {
            assert!(self.is_right(&refusal), "without a verdict: {refusal:?}");
        }
    }

    fn is_right(&self, refusal: &Refusal) -> bool {
        let account = self.at_gate(refusal.gate, refusal.payer);
        account.is_some_and(|account| account.permits(refusal))
    }

    /// Asserts that the account that a thread waits for is enforced and has a limit.
    pub(super) fn keeps_waiting(&self, level: Level) {
        if let Some(account) = self.at_gate(level.account, level.payer) {
            assert!(
                account.enforced && account.limit_bytes.is_some(),
                "a thread of {} waits for nothing",
                account.account
            );
        }
    }

    /// A turn has read the charges of all accounts. True for the first call in a turn.
    pub(super) fn turn_begins(&mut self, core: &Core) -> bool {
        let begins = self.turn.is_none();
        if begins {
            self.turn = Some(limited_views(core));
        }
        begins
    }

    /// A turn ends: each account that is over must truly have held more than its limit.
    pub(super) fn turn_ends(
        &mut self,
        core: &Core,
        enforced: bool,
        proofs: &HashMap<Epoch, Rc<Held>>,
    ) {
        let limited = self.turn.take().unwrap_or_else(|| limited_views(core));
        let early = std::mem::take(&mut self.charged_in_turn);
        let refused = std::mem::take(&mut self.refused_in_turn);
        let was_right = |refusal: &Refusal| {
            // A verdict on an account also holds for a purse that has just joined it, even if the
            // account has been renamed and is only known by its purses.
            let joined = limited
                .iter()
                .find(|l| l.gate == refusal.gate && l.purses.contains(&refusal.payer));
            let Some(joined) = joined else {
                return self.is_right(refusal);
            };
            let is_gone = |name: &Arc<str>| limited.iter().all(|l| l.account != *name);
            let shares = |s: &AccountState| s.purses.iter().any(|p| joined.purses.contains(p));
            let mut before = (self.accounts.iter())
                .filter(|s| s.account == joined.account || is_gone(&s.account) && shares(s));
            self.is_right(refusal) || before.any(|account| account.permits(refusal))
        };
        let refused: Vec<Refusal> = refused.into_iter().filter(|r| !was_right(r)).collect();
        let statuses = core.enforcement.statuses();
        let accounts = limited
            .iter()
            .map(|limited| {
                let status = statuses.status(&limited.account).expect("a status");
                let over = match status.phase {
                    Phase::Over { limit_bytes } => Some(limit_bytes),
                    Phase::Open | Phase::Suspect { .. } => None,
                };
                assert!(
                    over.is_none() || limited.limit_bytes == over,
                    "{} is over another limit",
                    limited.account
                );
                let covered = status.covered.upto.and_then(|upto| proofs.get(&upto));
                let conviction =
                    over.map(|limit| self.convict(&core.ledger, limited, limit, covered));
                let beyond_reserve = match status.reserve.map(|reserve| reserve.phase) {
                    Some(Phase::Over { limit_bytes }) => Some(limit_bytes),
                    Some(Phase::Open | Phase::Suspect { .. }) => None,
                    None => over,
                };
                let is_duress = core.enforcement.duress().is_on;
                assert!(is_duress || !status.is_victim, "a victim without duress");
                let beyond_reserve = (beyond_reserve.filter(|_| over.is_some()))
                    .map(|limit| self.convict(&core.ledger, limited, limit, covered));
                let refused = match status.is_victim {
                    true => conviction.clone(),
                    false => beyond_reserve.clone(),
                };
                assert_eq!(refused.is_some(), status.is_refused());
                let shares = |s: &&AccountState| {
                    s.account == limited.account
                        || s.purses.iter().any(|purse| limited.purses.contains(purse))
                };
                let was_above = self.accounts.iter().filter(shares).any(|s| s.above_soft);
                assert!(
                    !status.above_soft
                        || was_above
                        || limited.soft_limit_bytes < Some(limited.charged_bytes),
                    "{} is above its soft limit with {} bytes",
                    limited.account,
                    limited.charged_bytes
                );
                let is_clean = !limited.purses.iter().any(|p| self.littered.contains(p))
                    && self.accounts.iter().filter(shares).all(|s| s.is_clean);
                assert!(
                    !is_clean || !self.is_exact || status.survival.share() >= 1.0,
                    "{} dropped nothing, yet {:?}",
                    limited.account,
                    status.survival
                );
                let since: u64 = limited.purses.iter().filter_map(|p| early.get(p)).sum();
                let gate = core.enforcement.gates.get(limited.gate);
                let stop = gate.map_or(u64::MAX, |gate| gate.stop());
                // The stop lies on the scale of what is spent, which was read before the charge.
                let stop_bytes = limited.charged_bytes + stop.saturating_sub(limited.spent);
                AccountState {
                    account: limited.account.clone(),
                    gate: limited.gate,
                    purses: limited.purses.clone(),
                    limit_bytes: limited.limit_bytes,
                    enforced,
                    conviction,
                    refused,
                    beyond_reserve,
                    has_door: limited.has_door,
                    charged_bytes: limited.charged_bytes + since,
                    stop_bytes: limited.limit_bytes.map_or(u64::MAX, |_| stop_bytes),
                    above_soft: status.above_soft,
                    is_clean,
                }
            })
            .collect();
        drop(statuses);
        self.accounts = accounts;
        for refusal in refused {
            assert!(self.is_right(&refusal), "without a verdict: {refusal:?}");
        }
    }

    /// An account is over, by a verdict of an earlier turn or by a new one.
    fn convict(
        &mut self,
        ledger: &Ledger,
        limited: &LimitedView,
        limit: u64,
        covered: Option<&Rc<Held>>,
    ) -> Conviction {
        let earlier = (self.accounts.iter())
            .flat_map(|account| account.conviction.iter().chain(&account.beyond_reserve))
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

/// The accounts that have limits.
fn limited_views(core: &Core) -> Vec<LimitedView> {
    let directory = core.directory();
    let policy = directory.policy().clone();
    let mut views = Vec::new();
    for (name, account) in directory.accounts() {
        let rule = account.rule.and_then(|rule| policy.accounts.get(rule));
        let (Some(rule), Some(first)) = (rule, account.purses.first()) else {
            continue;
        };
        assert_ne!(account.kind, Kind::Library);
        let limit_bytes = rule.limit.resolve(MAX_HEAP_BYTES);
        let soft_limit_bytes = rule.soft_limit.resolve(MAX_HEAP_BYTES);
        if limit_bytes.is_none() && soft_limit_bytes.is_none() {
            continue;
        }
        let gate = u32::from(first.get());
        let purses: Vec<PurseId> = account.tree().collect();
        let spent = core.enforcement.gates.get(gate).map_or(0, |g| g.spent());
        views.push(LimitedView {
            account: name.clone(),
            gate,
            limit_bytes,
            soft_limit_bytes,
            has_door: rule.door != Door::Off && directory.has_door(account),
            charged_bytes: charged(core, &purses),
            spent,
            purses,
        });
    }
    views
}
