//! Checks one limited account in one turn of the enforcer: reads its charge, moves its state, sets
//! its gate, and says which evidence is needed. Knows the ledger and the gates, no directory and
//! no JVM.

use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Admit, Throw};

use crate::enforce::TestRefuse;
use crate::ledger::{Epoch, Ledger, PurseId};
use crate::ports::CollectorKind;
use crate::sum_against_heap::Judged;
use crate::uncertainty::{PassedOver, widened};

use super::back_off::BackOff;
use super::collection_planner::Need;
use super::door::{DoorRules, LET_GO_SHARE};
use super::duress::Figures;
use super::enforcement_log::EnforcementLog;
use super::gate::{Gate, Gates, Word};
use super::limit_status::LimitStatus;
use super::overdraft::{MarkInputs, Marks, marks};
use super::state::{Estimate, Observation, Phase, Proof, next, next_of_reserve, soft};

/// An account charged less than this share of its limit is not near it.
const NEAR: f64 = 0.5;
/// From which share on its gate notes what is charged when.
const WATCHED: f64 = 0.25;
/// Waits of so many milliseconds in all are worth a line in the log.
const LONG_WAITS_MS: u64 = 2_000;
/// For so long a proof is recent enough of an account that is over: it may have freed memory since.
const RECHECK: Duration = Duration::from_secs(4);
/// The same of one that is refused, on G1: a cycle leaves garbage that is still young, and that keeps old garbage alive until
/// it is old itself, after up to fifteen young collections; each request of ours brings about two of them. (A database that had
/// let go of all, and was quiet then, came back after 25 to 32 s: no cycle had found its tables dead.) The budget bounds it.
const RECHECK_YOUNG: Duration = Duration::from_secs(1);

/// An account with a limit or a soft limit.
#[derive(Debug, Clone)]
pub struct LimitedAccount {
    /// The account's name.
    pub account: Arc<str>,
    /// The number of its gate in [`Gates`]: its first purse.
    pub gate: u32,
    /// Every purse whose charges count for it, those of scopes inside it included.
    pub purses: Vec<PurseId>,
    /// The limit in bytes; `None` if the account only has a soft limit.
    pub limit_bytes: Option<u64>,
    /// The soft limit in bytes.
    pub soft_limit_bytes: Option<u64>,
    /// Which error a refusal throws.
    pub throw: Throw,
    /// The rules of its door; `None` if it has none.
    pub door: Option<DoorRules>,
    /// Which requests are let in always: at the door, and when the program itself asks.
    pub admit: Arc<[Admit]>,
    /// The status of HTTP that a server's door answers.
    pub status: u16,
    /// How much its excess counts when the heap is short: it is divided by this. More than zero.
    pub priority: f64,
}

/// The inputs that all checks of one turn share.
pub struct CheckContext<'a> {
    /// The charges.
    pub ledger: &'a Ledger,
    /// The state of each account as allocating threads see it.
    pub gates: &'a Gates,
    /// Bytes of the maximum heap that the latest collection left free.
    pub free_heap_bytes: u64,
    /// Whether the heap is short, and by which figures.
    pub duress: Figures,
    /// Limits bind in duress alone, and those of the accounts that are the furthest beyond.
    pub only_in_duress: bool,
    /// The maximum heap in bytes.
    pub max_heap_bytes: u64,
    /// Whether the accounts sum up to more than the heap holds: then no verdict rests on them.
    pub sum: Judged,
    /// The policy's mode is `enforce`; otherwise refusals are only counted.
    pub enforced: bool,
    /// The collector, once it is known.
    pub collector: Option<CollectorKind>,
    /// For tests only.
    pub test_refuse: Option<TestRefuse>,
    /// The time of this turn.
    pub now: Instant,
}

impl CheckContext<'_> {
    /// Drops a proof of more bytes than the latest collection left in use: some of its refunds are
    /// still to come. This happened on a busy machine, which suspended the thread that reports
    /// refunds for longer than the enforcer waited for them. The same if all accounts together have such a proof
    /// ([`crate::sum_against_heap`]).
    fn plausible(&self, proof: Proof) -> Proof {
        if self.sum.is_doubted() || proof.left.clears(self.used_after_gc_bytes()) {
            Proof::default()
        } else {
            proof
        }
    }

    /// A verdict that stands on figures which are not believed becomes a suspicion: as of now, so that it takes new
    /// evidence.
    fn believed(&self, phase: Phase, epoch: Epoch) -> Phase {
        match phase {
            Phase::Over { .. } if self.sum.stands() => Phase::Suspect { since: epoch },
            phase => phase,
        }
    }

    /// Bytes that the latest collection left in use.
    pub fn used_after_gc_bytes(&self) -> u64 {
        (self.max_heap_bytes).saturating_sub(self.free_heap_bytes)
    }

    /// Returns the bytes that all requests which a shut door lets in may be charged until the next covering collection:
    /// the limit again at the most, and a quarter of what is free.
    fn room_for_allowances(&self, limit_bytes: u64) -> u64 {
        limit_bytes.min(self.free_heap_bytes / 4)
    }

    /// For how long a proof is recent enough of an account that is over.
    fn recheck(&self) -> Duration {
        match self.enforced && self.collector == Some(CollectorKind::G1) {
            true => RECHECK_YOUNG,
            false => RECHECK,
        }
    }

    /// The sampling interval in force, in bytes.
    pub fn interval_bytes(&self) -> u64 {
        let intervals = self.ledger.intervals();
        intervals.bytes(intervals.current())
    }

    /// The marks of an account with this limit and charge.
    pub fn marks(&self, limit_bytes: u64, charged: Estimate, status: &LimitStatus) -> Marks {
        marks(&MarkInputs {
            limit_bytes,
            charged,
            left_bytes: status.survived.left.bytes.min(charged.bytes),
            survival: status.survival,
            free_heap_bytes: self.free_heap_bytes,
            interval_bytes: self.interval_bytes(),
        })
    }
}

/// The charge of one account in one turn of the enforcer. On the enforcer's thread.
pub struct AccountCheck {
    spent: u64,
    /// The bytes charged to all purses of the account and not refunded yet.
    pub charged: Estimate,
    /// All bytes that the account was ever charged.
    pub allocated_bytes: u64,
    /// The account is near its limit, so its records are read after a collection.
    pub near: bool,
    /// It is near enough for its gate to note what was charged when.
    pub is_watched: bool,
    /// The part of the charges since the last pass over the records that survived.
    pub cohort: Estimate,
}

impl AccountCheck {
    /// Reads what the account is charged now.
    pub fn new(context: &CheckContext<'_>, limited: &LimitedAccount) -> AccountCheck {
        // The gate before the ledger: rule 1 of the gate.
        let gate = context.gates.get(limited.gate);
        let spent = gate.map_or(0, Gate::spent);
        let mut charged = Estimate::default();
        let mut allocated_bytes = 0_u64;
        for &purse in &limited.purses {
            let totals = context.ledger.totals(purse);
            charged.add(totals.charged.bytes, totals.charged.variance);
            allocated_bytes = allocated_bytes.saturating_add(totals.allocated_bytes);
        }
        let lowest = [limited.limit_bytes, limited.soft_limit_bytes];
        let mut lowest = lowest.into_iter().flatten();
        let share = (lowest.clone().min()).map_or(0.0, |limit| charged.bytes as f64 / limit as f64);
        let near = lowest.next().is_some() && share >= NEAR;
        AccountCheck {
            spent,
            charged,
            allocated_bytes,
            near,
            is_watched: near || share >= WATCHED,
            cohort: Estimate::default(),
        }
    }

    /// Returns the part of the account's charge for objects that were born up to `boundary`, the latest epoch whose
    /// deaths are all known: the objects that are left, and none of the garbage since. `None` where that cannot be told
    /// because the next deaths may have been reported in part; with that garbage, where nothing was noted.
    pub fn left_after(
        &self,
        context: &CheckContext<'_>,
        gate: &Gate,
        boundary: Epoch,
    ) -> Option<Estimate> {
        let is_latest = context.ledger.epochs().current().get() == boundary.get().saturating_add(1);
        let is_told_late = context.collector.map(CollectorKind::frees_between_pauses);
        let since = match (is_latest, is_told_late) {
            (true, _) | (_, Some(true)) => gate.born_after(boundary, self.spent).unwrap_or(0),
            (false, None) => 0,
            (false, Some(false)) => return None,
        };
        Some(Estimate {
            bytes: self.charged.bytes.saturating_sub(since),
            ..self.charged
        })
    }

    /// Sets the error of the charge to the one that reports state. The thinned arrays are known as of the latest pass over
    /// the records.
    pub fn state_error(
        &mut self,
        context: &CheckContext<'_>,
        limited: &LimitedAccount,
        status: &LimitStatus,
    ) {
        let passed_over = PassedOver::of(context.ledger, &limited.purses);
        let variance = passed_over.charged_variance(self.charged.variance, &status.found);
        self.charged.variance = widened(context.ledger, variance);
    }

    /// Moves the account's state and sets its gate. `publish` writes what a refusal would say,
    /// before the gate can cause one. Returns which evidence is needed, and when to look again
    /// at the latest.
    pub fn judge(
        &self,
        context: &CheckContext<'_>,
        epoch: Epoch,
        limited: &LimitedAccount,
        status: &mut LimitStatus,
        log: &mut EnforcementLog,
        publish: &mut dyn FnMut(&LimitedAccount, u64, &LimitStatus),
    ) -> (Need, Duration) {
        let Some(gate) = context.gates.make(limited.gate) else {
            return (Need::None, RECHECK);
        };
        let now = context.now;
        status.counts.waited_ms += gate.take_waited_ms();
        if status.counts.waited_ms >= status.waits_told_ms.saturating_add(LONG_WAITS_MS) {
            log.waits(&limited.account, status, now);
            status.waits_told_ms = status.counts.waited_ms;
        }
        let before = status.phase;
        let proved_before = status.allowed_by;
        let is_held = gate.word().0.duress && matches!(before, Phase::Suspect { .. });
        status.follow_pace(self.spent, is_held, now);
        status.binds = !context.only_in_duress || status.is_victim;
        self.move_state(context, epoch, limited, status, log);
        self.move_reserve(context, epoch, limited, status, log);
        self.check_soft_limit(now, limited, status, log);
        status.charged = self.charged;
        status.limit_bytes = limited.limit_bytes;
        status.soft_limit_bytes = limited.soft_limit_bytes;
        let Some(limit_bytes) = limited.limit_bytes else {
            gate.set_word(Word::default());
            return (Need::None, RECHECK);
        };
        self.follow_effect(context, limited, gate, status, log);
        let marks = context.marks(limit_bytes, self.charged, status);
        // Beyond these the account's own threads are stopped. With a door, new requests stop at the marks of
        // the limit, and what is inside goes on within the reserve.
        let inside = status.reserve.map_or(marks, |reserve| {
            context.marks(limit_bytes + reserve.bytes, self.charged, status)
        });
        // Even if the account is not near its limit: one object may be larger than the limit.
        publish(limited, limit_bytes, status);
        let word = Word {
            limited: true,
            over: status.is_refused(),
            enforced: context.enforced,
            naive: context.test_refuse == Some(TestRefuse::Naive),
            shut: status.is_shut(),
            // Who is only observed never waits, and a wait for evidence that is not believed would be in vain.
            duress: context.enforced && context.duress.is_on && !context.sum.stands(),
        };
        if proved_before.upto != status.covered.upto {
            status.allowed_by = status.covered;
            status.covered_at = Some(now);
            gate.set_allowances(context.room_for_allowances(limit_bytes));
        }
        // The requests that were let in have let go of memory: the next may, too.
        let fell_bytes = (proved_before.left.bytes).saturating_sub(status.allowed_by.left.bytes);
        let lets_go = fell_bytes > limit_bytes / LET_GO_SHARE;
        let closes = |now: Word, before: Word| now.shut && !before.shut;
        // Without a door, the program may ask: its breaker begins when errors do.
        let begins = |now: Word, before: Word| status.reserve.is_none() && now.over && !before.over;
        let previous = gate.word().0;
        if closes(word, previous) || begins(word, previous) || lets_go {
            gate.door().reset();
        }
        // If the charge is already beyond a mark, the mark lies below `spent`: waiting threads
        // go on waiting.
        let spent_at =
            |mark: u64| (self.spent.saturating_add(mark)).saturating_sub(self.charged.bytes);
        // The next mark to be crossed: that of the limit, then that of the reserve.
        let (trip_bytes, next_phase) = match status.reserve {
            Some(reserve) if matches!(status.phase, Phase::Over { .. }) => {
                (inside.trip_bytes, reserve.phase)
            }
            Some(_) if status.phase != Phase::Open => (inside.trip_bytes, status.phase),
            _ => (marks.trip_bytes, status.phase),
        };
        // The reserve is for what is inside when the door shuts, not for suspects while the heap is short.
        let stop_bytes = match status.phase {
            Phase::Over { .. } => inside.stop_bytes,
            Phase::Open | Phase::Suspect { .. } => marks.stop_bytes,
        };
        let crossed = gate.set_marks(limit_bytes, spent_at(trip_bytes), spent_at(stop_bytes));
        let is_new = !gate.word().0.limited;
        if before != status.phase || word.over != gate.word().0.over {
            if status.phase == Phase::Open {
                gate.forget_masked();
            }
            gate.renew_word(word);
        } else {
            gate.set_word(word);
        }
        if is_new || crossed && next_phase == Phase::Open {
            // A thread crossed the trip during this check, or passed the gate before it counted:
            // check again at once.
            return (Need::None, Duration::ZERO);
        }
        if context.test_refuse.is_some() {
            return (Need::None, RECHECK);
        }
        // In duress half of the overdraft is waited for: what comes anyway acquits whoever makes garbage.
        let is_urgent = |marks: Marks| {
            let half = marks.trip_bytes + (marks.stop_bytes - marks.trip_bytes) / 2;
            context.duress.is_on && self.charged.bytes > half
        };
        let (need, again) = match status.phase {
            Phase::Open => (Need::None, Duration::from_secs(1)),
            Phase::Suspect { since } => Suspicion {
                since,
                age: status.age(now),
                back_off: status.back_off,
                limit_bytes,
            }
            .need(status.survived, is_urgent(marks), now),
            Phase::Over { .. } => {
                let last = status.covered_at.max(status.since);
                let due = last.map_or(now, |last| last + context.recheck());
                after(due.saturating_duration_since(now), Need::Covering)
            }
        };
        let Some((reserve, since)) = status.reserve.and_then(|reserve| match reserve.phase {
            Phase::Suspect { since } => Some((reserve, since)),
            Phase::Open | Phase::Over { .. } => None,
        }) else {
            return (need, again);
        };
        let of_reserve = Suspicion {
            since,
            age: reserve.age(now),
            back_off: reserve.back_off,
            limit_bytes: limit_bytes + reserve.bytes,
        };
        let (more, sooner) = of_reserve.need(status.survived, is_urgent(inside), now);
        (need.max(more), again.min(sooner))
    }

    /// Finds out whether refusals stop the account, and tells if they do not.
    fn follow_effect(
        &self,
        context: &CheckContext<'_>,
        limited: &LimitedAccount,
        gate: &Gate,
        status: &mut LimitStatus,
        log: &mut EnforcementLog,
    ) {
        let is_refused = context.enforced && context.test_refuse.is_none() && status.is_refused();
        let mut counts = status.counts;
        counts.add(&gate.counts());
        (status.effect).look(is_refused, &counts, context.now);
        if status.effect.wants_frame() {
            context.gates.want_frame(limited.gate);
        }
        if let Some(ineffective) = status.effect.tell(context.now) {
            log.ineffective(&limited.account, ineffective);
        }
    }

    fn move_state(
        &self,
        context: &CheckContext<'_>,
        epoch: Epoch,
        limited: &LimitedAccount,
        status: &mut LimitStatus,
        log: &mut EnforcementLog,
    ) {
        let observation = Observation {
            limit_bytes: limited.limit_bytes,
            epoch,
            charged: self.charged,
            survived: status.survived,
            covered: context.plausible(status.covered),
        };
        let before = context.believed(status.phase, epoch);
        let mut after = next(before, &observation);
        if context.test_refuse == Some(TestRefuse::Storm) {
            after = limited
                .limit_bytes
                .map_or(Phase::Open, |limit_bytes| Phase::Over { limit_bytes });
        }
        let proofs = (status.survived, status.covered);
        (status.back_off).moved(before, after, proofs, context.now);
        if status.enter(after, self.charged, context.now) {
            log.changed(
                &limited.account,
                status,
                &observation,
                context.enforced,
                context.now,
            );
        }
    }

    /// Moves the state of limit + reserve, by the same rules and on the same evidence.
    fn move_reserve(
        &self,
        context: &CheckContext<'_>,
        epoch: Epoch,
        limited: &LimitedAccount,
        status: &mut LimitStatus,
        log: &mut EnforcementLog,
    ) {
        let (Some(door), Some(limit_bytes)) = (&limited.door, limited.limit_bytes) else {
            status.reserve = None;
            return;
        };
        // An account that is only observed, or that a test refuses without evidence, has the limit alone.
        if !context.enforced || context.test_refuse.is_some() {
            status.reserve = None;
            return;
        }
        let mut reserve = status.reserve.unwrap_or_default();
        let bytes = door.reserve_bytes(limit_bytes, context.free_heap_bytes);
        // While a verdict about it is awaited or in force, it follows what collections of all memory leave free, which
        // the verdict follows, too. Other readings count garbage as used: a concurrent collector's heap looks full
        // before each of its collections, and a reserve that only shrank would stay at nothing.
        let is_proved = status.covered.upto > reserve.measured;
        if reserve.phase == Phase::Open || is_proved {
            reserve.bytes = bytes;
        }
        reserve.measured = status.covered.upto;
        let observation = Observation {
            limit_bytes: Some(limit_bytes + reserve.bytes),
            epoch,
            charged: self.charged,
            survived: status.survived,
            covered: context.plausible(status.covered),
        };
        let was_refused = status.is_refused();
        let before = match context.sum.stands() {
            true => Phase::Open,
            false => reserve.phase,
        };
        // The evidence must be of a collection that began with the door shut: much of what is beyond the
        // reserve belongs to requests that are inside, and ends with them. Where the heap itself is short, it
        // cannot wait for that.
        let is_drained = matches!(status.phase, Phase::Over { .. });
        let after = if is_drained || context.duress.is_on {
            next_of_reserve(before, &observation)
        } else {
            Phase::Open
        };
        let proofs = (status.survived, status.covered);
        (reserve.back_off).moved(before, after, proofs, context.now);
        if std::mem::discriminant(&before) != std::mem::discriminant(&after) {
            reserve.since = Some(context.now);
        }
        reserve.phase = after;
        let is_new = status.reserve.is_none();
        status.reserve = Some(reserve);
        if !is_new && status.is_refused() && !was_refused {
            log.reserve_used_up(&limited.account, reserve.bytes, &observation, context.now);
        }
    }

    fn check_soft_limit(
        &self,
        now: Instant,
        limited: &LimitedAccount,
        status: &mut LimitStatus,
        log: &mut EnforcementLog,
    ) {
        // If the account was not near its limits, `survived` may be old: the charge bounds it.
        let left = if self.charged.bytes < status.survived.left.bytes {
            self.charged
        } else {
            status.survived.left
        };
        let above_soft = soft(status.above_soft, limited.soft_limit_bytes, left);
        if above_soft && !status.above_soft {
            status.soft_events += 1;
            let limit = limited.soft_limit_bytes.unwrap_or(0);
            log.soft(&limited.account, limit, left, now);
        }
        status.above_soft = above_soft;
    }
}

/// A suspicion: that what is held clears a limit.
struct Suspicion {
    since: Epoch,
    age: Duration,
    back_off: BackOff,
    limit_bytes: u64,
}

impl Suspicion {
    /// Which evidence it needs now, and when to look again. If it is urgent, it is not left alone first.
    fn need(&self, survived: Proof, is_urgent: bool, now: Instant) -> (Need, Duration) {
        let is_proved = survived.upto >= Some(self.since);
        match is_proved && survived.left.clears(self.limit_bytes) {
            true => after(self.back_off.rest(now), Need::Covering),
            false if is_urgent => after(Duration::ZERO, Need::Young),
            false => after(
                self.back_off.pause(now).saturating_sub(self.age),
                Need::Young,
            ),
        }
    }
}

/// Returns `need` if `wait` is over, otherwise none; and when to look again.
fn after(wait: Duration, need: Need) -> (Need, Duration) {
    match wait.is_zero() {
        true => (need, Duration::from_millis(20)),
        false => (Need::None, wait),
    }
}
