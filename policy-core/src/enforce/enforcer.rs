//! The enforcer: the thread that follows collections and enforces limits.
//!
//! In each [`Enforcer::turn`] it
//!
//! 1. plants a canary if a collection pause has ended (see [`crate::ledger::epoch`]);
//! 2. if a canary has died, waits until the refunds of that collection have arrived, confirms what
//!    is live, and reads the heap;
//! 3. clears away purses, loaders and classes that are gone;
//! 4. checks every account that has a limit ([`LimitedAccounts`]), and those with one on native memory ([`DirectLimits`]);
//! 5. asks for the collections that a verdict needs ([`Evidence`]);
//! 6. holds the sum of all accounts against the heap if such a collection has decided ([`HeapCheck`]), before the next
//!    turn judges by it.
//!
//! It also asks for a collection when charges exceed the heap by three of their standard errors. That
//! happens only if the collector does not report deaths (generational ZGC reports them at major
//! collections only).
//!
//! The turn asks the JVM through [`crate::ports`]; the protocol's tests run it against a simulated
//! JVM.

use std::time::{Duration, Instant};

use policy_config::format_rounded_bytes;

use crate::core::Core;
use crate::events;
use crate::identity::cleaning::{self, Seen};
use crate::interval_control;
use crate::ledger::{Epoch, PurseId, Quiet, QuietWindow, Tag};
use crate::ports::Delivery;
use crate::sampling::standard_error_bytes;

use super::account_check::LimitedAccount;
use super::collection_planner::Need;
use super::coverage::Coverage;
use super::direct_limits::DirectLimits;
use super::duress::{self, Duress};
use super::evidence::{Evidence, EvidenceNeed, Reason};
use super::heap_check::HeapCheck;
use super::limited_accounts::LimitedAccounts;
use super::ports::Jvm;

/// The longest sleep; a collection wakes the enforcer earlier.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);
/// No canary is planted with fewer free bytes: at a full heap even an allocation of sixteen bytes
/// could fail, and `-XX:+ExitOnOutOfMemoryError` would then end the host.
const ROOM_FOR_CANARY: u64 = 1 << 20;
/// After so many pauses without a canary's death, the collector seems not to report deaths.
/// A minor cycle of generational ZGC has three pauses; a concurrent cycle of G1 has two between
/// young collections.
const PAUSES_WITHOUT_DEATHS: u32 = 9;
/// And after at least this time: a busy machine reports late.
const SILENCE: Duration = Duration::from_secs(2);
/// The shortest time between two passes that clear away what is gone; it is also at least
/// `JANITOR_PAUSES_PER_PASS` times the duration of the last pass.
const JANITOR_PAUSE: Duration = Duration::from_millis(500);
const JANITOR_PAUSES_PER_PASS: u32 = 50;
/// The same factor after a pass that freed much.
const JANITOR_PAUSES_WHILE_BUSY: u32 = 4;
/// The shortest time between two lines of the log that tell of duress.
const DURESS_TOLD: Duration = Duration::from_secs(60);

/// The state that the thread which enforces limits carries from turn to turn. Owned by that thread.
pub struct Enforcer {
    planted: Option<Epoch>,
    /// The counts of loaders, classes, scopes and policies that were gone or replaced at the last pass.
    seen: Seen,
    /// The confirmed boundary, and when it last moved.
    reported: (Option<Epoch>, Instant),
    clean_again_at: Instant,
    /// The boundary at the last pass: without a collection since then nothing can be gone.
    cleaned_in: Option<Epoch>,
    limited_accounts: LimitedAccounts,
    direct_limits: DirectLimits,
    coverage: Coverage,
    evidence: Evidence,
    duress: Duress,
    /// The epoch in which the heap was last read as after a pause.
    read_in: Option<Epoch>,
    /// When the log told of duress.
    told_duress: Option<Instant>,
    heap_check: HeapCheck,
    /// The epoch in which the heap's use was last read as after a pause.
    used_read_in: Option<Epoch>,
}

impl Enforcer {
    /// Before the first turn.
    pub fn new(now: Instant) -> Enforcer {
        Enforcer {
            planted: None,
            seen: Seen::default(),
            reported: (None, now),
            clean_again_at: now,
            cleaned_in: None,
            limited_accounts: LimitedAccounts::new(),
            direct_limits: DirectLimits::default(),
            coverage: Coverage::default(),
            evidence: Evidence::default(),
            duress: Duress::default(),
            read_in: None,
            told_duress: None,
            heap_check: HeapCheck::default(),
            used_read_in: None,
        }
    }

    /// Whether the gate of any account says that it is over.
    pub fn is_any_over(&self, core: &Core) -> bool {
        self.limited_accounts.is_any_over(core)
    }

    /// The accounts that have limits, as of the latest turn.
    pub fn limited(&self) -> &[LimitedAccount] {
        self.limited_accounts.limited()
    }

    /// Restores what was changed in the VM. To be called when the enforcer's thread ends, also by a
    /// panic, but not when the VM ends.
    pub fn end(&mut self, jvm: &dyn Jvm) {
        self.evidence.end(jvm);
    }

    /// One turn. Returns how long the thread may sleep until the next. On an attached thread of the
    /// agent; blocks while refunds arrive, and where no other thread could be had for collections, for these too.
    pub fn turn(&mut self, core: &Core, jvm: &dyn Jvm) -> Duration {
        let epochs = core.ledger.epochs();
        let epoch = epochs.current();
        let after_pause = self.read_in != Some(epoch);
        self.read_in = Some(epoch);
        if self.planted != Some(epoch) {
            // First of all, because threads go on allocating.
            let room = core.heap.read_after_pause(jvm);
            self.used_read_in = Some(epoch);
            // This thread's allocations are not charged.
            if room >= ROOM_FOR_CANARY && jvm.plant(Tag::Canary(epoch).encode()) {
                self.planted = Some(epoch);
            }
        }
        if let Some(epoch) = epochs.pending() {
            self.await_refunds(core, jvm);
            epochs.confirm(epoch);
            epochs.note_time(jvm.uptime_ms());
            core.heap.read_after_cycle(jvm);
            core.peaks.note(&core.ledger);
        }
        // Before the accounts are checked: gates of purses that end go to other accounts then.
        self.clean(core, jvm);
        let now = jvm.now();
        let until_allowed = self.evidence.budget().wait(now);
        let allowed_ms = (jvm.uptime_ms()).saturating_add(until_allowed.as_millis() as u64);
        core.enforcement.set_evidence_allowed_ms(allowed_ms);
        // First the accounts, with the survivors of the latest collection: the bytes that a suspect is expected to keep
        // follow from them.
        let before = self.duress.figures();
        let kind = self.evidence.known_kind();
        let (mut need, mut again) = self.limited_accounts.turn(core, jvm, now, before, kind);
        let duress = self.look_at_heap(core, jvm, after_pause);
        if before.is_on || duress.is_on {
            (need, again) = self.limited_accounts.turn(core, jvm, now, duress, kind);
        }
        let uptime_ms = jvm.uptime_ms();
        let of_native = (self.direct_limits).turn(core, now, until_allowed, uptime_ms);
        (need, again) = (need.max(of_native.need), again.min(of_native.again));
        let heap_again = self.duress.look_again(kind);
        let heap_again = heap_again.unwrap_or(LONGEST_SLEEP);
        let uncovered = (self.coverage).look(&core.directory(), &core.ledger, now);
        for line in uncovered {
            tracing::warn!("{line}");
        }
        self.evidence.prepare(core, jvm, now);
        (self.evidence).stay_ready(core, jvm, self.limited_accounts.is_any_close());
        let asked = if need != Need::None {
            EvidenceNeed::for_verdicts(need)
        } else if core.leaks.wants_cover()
            || self.heap_check.wants_cover(now)
            || self.limited_accounts.looks_again()
            || of_native.is_any_patient
        {
            EvidenceNeed::concurrently(Need::Covering)
        } else if interval_control::wants_decision(core, jvm) {
            // Only a statistic waits, no thread: it is not worth a pause. The last, as many collectors never offer it.
            EvidenceNeed::gently(Need::Covering)
        } else {
            EvidenceNeed::for_verdicts(Need::None)
        };
        let sooner = self.evidence.advance(core, jvm, asked, jvm.now());
        self.check_sum(core, jvm);
        epochs.note_time(jvm.uptime_ms());
        if (core.holdings).note(epochs.current(), epochs.covered(), jvm.uptime_ms()) {
            core.leaks.has_cover();
        }
        if let Some(kind) = self.evidence.known_kind() {
            core.leaks.note_collector(kind);
        }
        let smallest_limit_bytes = self.limited_accounts.smallest_limit_bytes();
        let wants = self.limited_accounts.wants();
        interval_control::look(core, jvm, smallest_limit_bytes, wants, now);
        if core.thinning.is_asked()
            && let Some(collector) = self.evidence.collector(core, jvm)
        {
            interval_control::know_regions(core, collector.region_bytes);
        }
        self.ask_for_refunds(core, jvm);
        again.min(sooner).min(heap_again).min(LONGEST_SLEEP)
    }

    /// Holds the sum of all accounts against the heap after a covering collection.
    fn check_sum(&mut self, core: &Core, jvm: &dyn Jvm) {
        let covered = core.ledger.epochs().covered();
        if let Some(covered) = covered.filter(|_| self.heap_check.is_due(covered, jvm.now()))
            && let Some(used_bytes) = jvm.used_bytes()
        {
            // A reading after a pause of a later epoch bounds the objects born up to then as well, and has less
            // garbage.
            let is_later = self.used_read_in > Some(covered);
            let after_pause = core.heap.used_after_gc_bytes();
            let heap_bytes = if is_later && after_pause > 0 {
                used_bytes.min(after_pause)
            } else {
                used_bytes
            };
            self.await_refunds(core, jvm);
            self.heap_check
                .look(core, covered, heap_bytes, || jvm.now());
        }
        let is_any_wanting = self.limited_accounts.wanted_bytes() > 0;
        self.heap_check.tell(is_any_wanting, jvm.now());
    }

    /// Whether the heap is short. Only accounts with limits can change that.
    fn look_at_heap(&mut self, core: &Core, jvm: &dyn Jvm, after_pause: bool) -> duress::Figures {
        let used = jvm.used_bytes().filter(|_| !self.limited().is_empty());
        let Some(used) = used else {
            self.duress = Duress::default();
            core.enforcement.set_duress(duress::Figures::default());
            return duress::Figures::default();
        };
        let max_bytes = core.heap.max_bytes();
        let is_low = core.heap.free_after_gc_bytes() < max_bytes / 2;
        let kind = match self.evidence.known_kind() {
            None if is_low => (self.evidence.collector(core, jvm)).map(|found| found.kind),
            known => known,
        };
        let free_bytes = match after_pause {
            // It was read some time after the pause: what suspects have made since then may be garbage.
            true => (core.heap.free_after_gc_bytes())
                .saturating_add(self.limited_accounts.charged_since_pause_bytes(core))
                .min(max_bytes),
            false => max_bytes.saturating_sub(used),
        };
        let reading = duress::Reading {
            now: jvm.now(),
            free_bytes,
            after_pause,
        };
        let wanted_bytes = self.limited_accounts.wanted_bytes();
        let was_on = self.duress.figures().is_on;
        let figures = self.duress.look(reading, kind, max_bytes, wanted_bytes);
        core.enforcement.set_duress(figures);
        if figures.is_on != was_on {
            self.tell_duress(figures, jvm.now());
        }
        figures
    }

    /// Tells that duress began or ended: once in a while, because it may come and go.
    fn tell_duress(&mut self, figures: duress::Figures, now: Instant) {
        let is_due = (self.told_duress).is_none_or(|then| now.duration_since(then) >= DURESS_TOLD);
        if !is_due {
            return;
        }
        if figures.is_on {
            self.told_duress = Some(now);
            tracing::warn!(
                "the heap is short: {} free, and it is short below {}; accounts beyond their limits are refused, the furthest first, and suspects wait for evidence",
                format_rounded_bytes(figures.free_bytes),
                format_rounded_bytes(figures.short_below_bytes)
            );
        }
    }

    /// Waits until the batch of refunds that reported a canary's death has arrived: the canary's own
    /// report comes somewhere in the middle of it.
    ///
    /// HotSpot has a barrier for this, but it is not safe: switching the `ObjectFree` event flushes
    /// pending reports, but waits for the posting thread without a safepoint check, and deadlocks
    /// the VM if a safepoint is requested meanwhile (seen on 17.0.15).
    ///
    /// The wait is bounded: refunds that arrive later keep the estimate too high for a moment.
    fn await_refunds(&mut self, core: &Core, jvm: &dyn Jvm) {
        const LOOK: Duration = Duration::from_millis(1);
        let frees = || core.ledger.frees_total();
        let started = jvm.now();
        let mut window = QuietWindow::new(0, frees());
        loop {
            self.evidence.put_flag_back_early(core, jvm);
            let elapsed = jvm.now().saturating_duration_since(started);
            let now_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
            let quiet = window.observe(now_ms, frees());
            let is_in = match jvm.delivery() {
                Delivery::Complete => true,
                Delivery::UnderWay => now_ms >= QuietWindow::DEFAULT_LONGEST_MS,
                Delivery::Unknown => quiet != Quiet::Wait,
            };
            if is_in || jvm.is_stopping() {
                events::waited_for_refunds(elapsed);
                return;
            }
            jvm.sleep(LOOK);
        }
    }

    /// Clears away purses, loaders and classes that are gone, if there are any.
    fn clean(&mut self, core: &Core, jvm: &dyn Jvm) {
        let started = jvm.now();
        let boundary = core.ledger.epochs().boundary();
        if started < self.clean_again_at || boundary == self.cleaned_in {
            return;
        }
        if !self.seen.is_due(core) {
            return;
        }
        self.cleaned_in = boundary;
        self.seen = cleaning::clean(core, jvm);
        let took = jvm.now().saturating_duration_since(started);
        self.clean_again_at = jvm.now()
            + if self.seen.did_much() {
                took * JANITOR_PAUSES_WHILE_BUSY
            } else {
                (took * JANITOR_PAUSES_PER_PASS).max(JANITOR_PAUSE)
            };
    }

    /// Asks for a collection if charges surely exceed the heap and no deaths were reported for a while.
    fn ask_for_refunds(&mut self, core: &Core, jvm: &dyn Jvm) {
        let now = jvm.now();
        if !core.samples_are_taken()
            || self.evidence.is_waited_for()
            || !self.evidence.budget().allows(now)
            || !self.deaths_go_unreported(core, now)
        {
            return;
        }
        let (charged, variance) = (0..core.ledger.purse_high_water())
            .map(|number| core.ledger.totals(PurseId::new(number as u16)).charged)
            .fold((0u64, 0u64), |(bytes, variance), charge| {
                (
                    bytes.saturating_add(charge.bytes),
                    variance.saturating_add(charge.variance),
                )
            });
        let surely = charged as f64 - 3.0 * standard_error_bytes(variance);
        if surely <= core.heap.max_bytes() as f64 {
            return;
        }
        tracing::debug!(
            charged_bytes = charged,
            "charges exceed the heap: a collection is asked for"
        );
        self.evidence.collect_unplanned(jvm, Reason::Refunds);
    }

    /// Whether many pauses have ended without the death of a canary. This is never so if the
    /// collector reports deaths at every collection: the canary of an epoch dies in the first
    /// collection after it, and no such collector has so many pauses without a collection.
    fn deaths_go_unreported(&mut self, core: &Core, now: Instant) -> bool {
        let epochs = core.ledger.epochs();
        if self.reported.0 != epochs.boundary() {
            self.reported = (epochs.boundary(), now);
        }
        let reported = epochs.boundary().map_or(0, Epoch::get);
        now.duration_since(self.reported.1) >= SILENCE
            && epochs.pending().is_none()
            && epochs.current().get().saturating_sub(reported) >= PAUSES_WITHOUT_DEATHS
    }
}
