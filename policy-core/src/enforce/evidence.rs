//! Evidence: collections that prove what an account holds.
//!
//! [`Evidence`] belongs to the enforcer's thread and carries out the steps of the
//! [`CollectionPlanner`]. Where the VM offers a collection as a blocking call alone, another thread waits in it, and no
//! step is taken meanwhile: the enforcer goes on looking at the heap, which a leak can fill in that time.

mod need;

use std::time::{Duration, Instant};

use crate::core::Core;
use crate::ledger::Epoch;
use crate::ports::{CollectorInfo, CollectorKind, Ended, Means, Offer};

use super::budget::{Budget, SHORTEST_PAUSE};
use super::canaries::{Arrays, OldCanaries, PlantedFor};
use super::collection_planner::{CollectionPlanner, CollectorStatus, Need, Step};
use super::ports::Jvm;
use super::refund_wait::RefundWait;

use need::By;
pub use need::{EvidenceNeed, Reason};

/// With fewer free bytes the agent allocates nothing, not even the names of flags: at a full heap
/// that allocation could fail (see [`super::enforcer`]).
const ROOM: u64 = 1 << 20;
/// For so long a heap must have been full before the agent has it collected without a canary.
const FULL: Duration = Duration::from_secs(2);
/// How often to look while a collection is in flight or refunds arrive.
const LOOK: Duration = Duration::from_millis(2);
/// How often to look while nothing is needed or awaited.
const IDLE: Duration = Duration::from_millis(500);
/// If the VM refused to restore its flag, the pause before the next try.
const FLAG_AGAIN: Duration = Duration::from_secs(1);
/// If the VM refused a collection for refunds, the pause before the next: it would not help to ask again soon.
const REFUNDS_REFUSED: Duration = Duration::from_secs(60);
/// The time between two canaries planted ahead of any need, while few of them are out.
const PREPARED_AGAIN: Duration = Duration::from_secs(5);
/// No canary is planted ahead before the agent is so old.
const BEGUN_MS: u64 = 10_000;
/// The time between two checks of the stock.
const STOCKED_AGAIN: Duration = Duration::from_secs(5);
/// A pair of arrays is kept in stock if two G1 regions are at most this part (1 in 256) of the heap.
const PAIR_OF_HEAP: u64 = 256;
/// How long one turn of the enforcer allocates garbage to cause a young collection.
const PROVOCATION: Duration = Duration::from_millis(30);
/// The size of each array allocated for that.
const PROVOCATION_BYTES: usize = 64 << 10;

/// A collection in whose call another thread waits.
#[derive(Debug, Clone, Copy)]
enum Called {
    /// Answers the planner's request, by these means.
    Planned(Means),
    /// Answers no request of the planner's, but has a reason of its own.
    Unplanned(Unplanned),
}

/// See [`Evidence::collect_unplanned`].
#[derive(Debug, Clone, Copy)]
struct Unplanned {
    reason: Reason,
    asked: Instant,
    collector_time: Option<Duration>,
}

/// Asks the collector for evidence. On the enforcer's thread; see the module.
#[derive(Default)]
pub struct Evidence {
    planner: CollectionPlanner,
    canaries: OldCanaries,
    /// `None` until the first need.
    collector: Option<CollectorInfo>,
    /// The collector's `cycle_activity` at the last request.
    activity_before: Option<u64>,
    refund_wait: RefundWait,
    /// The collection in whose call another thread waits.
    called: Option<Called>,
    provoked_bytes: u64,
    /// When a canary was last planted without a need.
    prepared: Option<Instant>,
    /// A verdict or an estimate has needed evidence: a pair of arrays is worth its two regions.
    keeps_pair: bool,
    /// When the stock was last filled up.
    stocked: Option<Instant>,
    /// Since when a need finds the heap full.
    full_since: Option<Instant>,
    /// The VM refused to restore its flag; the next try is at this time.
    flag_again_at: Option<Instant>,
    /// A flag of G1's was last left changed to keep it ready.
    is_ready: bool,
    said: [bool; Means::ALL.len()],
    said_full: bool,
}

impl Evidence {
    /// Restores G1's flag and releases the stock of canaries. To be called when the enforcer's thread
    /// ends, also by a panic, but not when the VM ends.
    pub fn end(&mut self, jvm: &dyn Jvm) {
        if self.collector.is_some() {
            jvm.put_flag_back();
        }
        self.canaries.give_up(jvm);
    }

    /// How much time collections may take; those that the enforcer asks for itself count too.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.planner.budget
    }

    /// Does the next step for `need`, and returns when to call again at the latest. The enforcer
    /// calls it in every turn, with or without a need, because it also follows the collection in
    /// flight and restores G1's flag.
    pub fn advance(
        &mut self,
        core: &Core,
        jvm: &dyn Jvm,
        asked: EvidenceNeed,
        now: Instant,
    ) -> Duration {
        let (EvidenceNeed { need, by }, is_patient) = (asked, asked.is_patient());
        let covered = core.ledger.epochs().covered();
        let refund_wait = self.confirm_refunds(core, jvm, now);
        // If there is a new proof, the need is older than it and may have its answer.
        let has_new_proof = core.ledger.epochs().covered() > covered;
        self.planner
            .budget
            .set_share(core.enforcement.evidence_share());
        if self.is_called(core, jvm) {
            return IDLE.min(refund_wait);
        }
        if !self.is_needed(core, need, now) {
            return IDLE.min(refund_wait);
        }
        if core.heap.free_bytes(jvm) < ROOM {
            self.collect_full_heap(jvm, need, now);
            return IDLE.min(refund_wait);
        }
        self.full_since = None;
        self.keeps_pair |= need != Need::None && !matches!(by, By::ConcurrentCycle);
        self.keep_stock(core, jvm, now);
        if need != Need::None && self.collector.is_none() {
            self.know_the_collector(core, jvm);
        }
        if self.collector.is_none() {
            return IDLE.min(refund_wait);
        }
        let offer = if need == Need::None || self.planner.is_in_flight() {
            Offer::default()
        } else {
            match by {
                By::Any => jvm.offer(),
                By::UnattendedCycle => jvm.offer().gently(),
                By::ConcurrentCycle => jvm.offer().concurrent(),
            }
        };
        let status = self.status(core, jvm, now);
        let was_at_rest = self.planner.is_at_rest();
        let step = self.planner.step(need, is_patient, &offer, &status);
        if was_at_rest && !self.planner.is_at_rest() {
            // Before their time is first read.
            jvm.find_collector_threads();
        }
        if !has_new_proof {
            self.plant_for_need(core, jvm);
            self.plant_again(core, jvm);
        }
        let wait = match step {
            Step::Wait(wait) => wait,
            Step::ProvokeYoung => self.provoke(core, jvm),
            Step::Start(means) => self.start(core, jvm, means),
            Step::AskAgain => {
                if self.request(jvm) {
                    self.planner.asked_again(jvm.now());
                }
                LOOK
            }
            Step::PutBack => self.put_back(jvm),
        };
        if let Some(done) = self.planner.take_done() {
            core.evidence.add(done.kind, done.took, done.cost);
            tracing::debug!(
                "evidence: a {} collection, {:?}, charged as {:?}",
                done.kind,
                done.took,
                done.cost
            );
        }
        if let Some(means) = self.planner.take_fruitless() {
            self.say(means, "collections brought no proof");
        }
        wait.min(refund_wait)
    }

    /// Asks for a collection of a heap that has stayed full although a verdict needs one: nothing can be allocated,
    /// so no canary comes first, and where the program stands still no collection comes by itself. (Seen with ZGC: a
    /// tenant that was refused in a full heap let go of everything, and nobody allocated any more.)
    fn collect_full_heap(&mut self, jvm: &dyn Jvm, need: Need, now: Instant) {
        if need == Need::None || jvm.used_bytes().is_none() {
            self.full_since = None;
            return;
        }
        let since = *self.full_since.get_or_insert(now);
        if now.saturating_duration_since(since) < FULL || !self.planner.budget.allows_overdue(now) {
            return;
        }
        self.full_since = None;
        tracing::debug!("the heap is full: a collection is asked for");
        self.collect_unplanned(jvm, Reason::FullHeap);
    }

    /// Has another thread collect all memory, without a request of the planner's. The budget pays for it, and nothing else
    /// is asked for meanwhile. To be called if nothing is [waited for](Evidence::is_waited_for).
    pub fn collect_unplanned(&mut self, jvm: &dyn Jvm, reason: Reason) {
        jvm.find_collector_threads();
        self.planner.interrupt_natural_work();
        self.called = Some(Called::Unplanned(Unplanned {
            reason,
            asked: jvm.now(),
            collector_time: jvm.collector_time(),
        }));
        // By any collector, also one that stops the world for it.
        jvm.begin_collection(Means::Full);
    }

    fn unplanned_has_ended(
        &mut self,
        core: &Core,
        jvm: &dyn Jvm,
        unplanned: Unplanned,
        ended: Ended,
    ) {
        let Unplanned { reason, asked, .. } = unplanned;
        if !ended.has_run {
            let rest = match reason {
                Reason::Refunds => REFUNDS_REFUSED,
                Reason::FullHeap => SHORTEST_PAUSE,
            };
            (self.planner.budget).spent_resting(ended.at, Duration::ZERO, rest);
            tracing::warn!(
                "the VM refused a collection ({}); charges stay too high until the next",
                reason.label()
            );
            return;
        }
        let took = ended.at.saturating_duration_since(asked);
        let work = unplanned.collector_time.zip(jvm.collector_time());
        let cost = match work {
            // Whoever allocates waits for it.
            _ if reason == Reason::FullHeap => took,
            Some((before, after)) => {
                (self.planner).unplanned_cost(took, after.saturating_sub(before))
            }
            None => took,
        };
        self.planner.budget.spent(ended.at, cost);
        core.evidence.add(reason.label(), took, cost);
        tracing::debug!("a collection for {reason:?}: {took:?}, charged as {cost:?}");
    }

    /// Plants a canary now and then, so that the agent recognises a collection of old memory that
    /// comes anyway. Called in every turn of the enforcer.
    pub fn prepare(&mut self, core: &Core, jvm: &dyn Jvm, now: Instant) {
        let again = self.canaries.ahead_again(PREPARED_AGAIN);
        let is_due = (self.prepared).is_none_or(|then| now.duration_since(then) >= again);
        // To find out about the collector is not worth anything while the program starts.
        let has_begun = self.collector.is_some()
            || (jvm.uptime_ms() >= BEGUN_MS && core.ledger.epochs().current() > Epoch::default());
        let is_off = core.holdings.is_off() || !core.samples_are_taken();
        if !is_due || !has_begun || is_off || core.heap.free_bytes(jvm) < ROOM {
            return;
        }
        self.prepared = Some(now);
        let Some(collector) = self.collector(core, jvm) else {
            return;
        };
        let epoch = core.ledger.epochs().current();
        match collector.kind {
            // Every death is a proof.
            CollectorKind::Whole => {}
            CollectorKind::GenerationalZgc => {
                self.canaries.plant_young_ahead(jvm, epoch);
            }
            _ => {
                self.keep_stock(core, jvm, now);
                // No arrays: allocating them could itself cause such a collection.
                self.canaries.plant_class_ahead(jvm, epoch);
            }
        }
    }

    /// Has a cycle begin at once when it is asked for, while `wanted`: a verdict will need one soon, and whoever it is about
    /// grows meanwhile. In each turn.
    pub fn stay_ready(&mut self, core: &Core, jvm: &dyn Jvm, wanted: bool) {
        let is_due = (wanted || self.is_ready) && !self.planner.is_flag_changed();
        if !is_due || core.heap.free_bytes(jvm) < ROOM {
            return;
        }
        let is_g1 =
            (self.collector(core, jvm)).is_some_and(|found| found.kind == CollectorKind::G1);
        if is_g1 {
            self.is_ready = jvm.stay_ready(wanted);
        }
    }

    /// The kind of collector, if it is known already.
    pub fn known_kind(&self) -> Option<CollectorKind> {
        self.collector.map(|collector| collector.kind)
    }

    /// Returns the properties of the collector; `None` while the heap has no room to find out.
    pub fn collector(&mut self, core: &Core, jvm: &dyn Jvm) -> Option<CollectorInfo> {
        if self.collector.is_none() && core.heap.free_bytes(jvm) >= ROOM {
            self.know_the_collector(core, jvm);
        }
        self.collector
    }

    /// Whether there is anything to do other than confirming refunds.
    fn is_needed(&self, core: &Core, need: Need, now: Instant) -> bool {
        let busy = self.collector.is_some() && !self.planner.is_at_rest();
        let stock = match self.collector {
            None => self.canaries.is_short(),
            // The heap may have room again.
            Some(_) => (self.stocked).is_none_or(|then| now.duration_since(then) >= STOCKED_AGAIN),
        };
        core.samples_are_taken() && (need != Need::None || busy || stock)
    }

    fn know_the_collector(&mut self, core: &Core, jvm: &dyn Jvm) {
        let collector = jvm.info();
        tracing::debug!("the collector, to the evidence: {:?}", collector.kind);
        match collector.kind {
            CollectorKind::Whole => {
                core.ledger.epochs().deaths_cover_all();
                self.canaries.give_up(jvm);
            }
            CollectorKind::GenerationalZgc => self.canaries.give_up(jvm),
            CollectorKind::Unknown => tracing::warn!(
                "this runtime does not tell its collector (is the module jdk.management missing?); evidence takes full collections"
            ),
            CollectorKind::G1
            | CollectorKind::StopTheWorld
            | CollectorKind::GenerationalShenandoah => {}
        }
        if !collector.can_prove() {
            tracing::warn!(
                "classes are never unloaded (-Xnoclassgc), so what lies in old memory cannot be proved to be held; nothing will be refused"
            );
        }
        self.collector = Some(collector);
    }

    fn status(&self, core: &Core, jvm: &dyn Jvm, now: Instant) -> CollectorStatus {
        let epochs = core.ledger.epochs();
        let activity = self.is_g1().then(|| jvm.cycle_activity()).flatten();
        CollectorStatus {
            now,
            epoch: epochs.current(),
            boundary: epochs.boundary(),
            covered: epochs.covered(),
            proof: epochs.pending_cover().max(epochs.covered()),
            cycle_ran: match (activity, self.activity_before) {
                (Some(now), Some(before)) => Some(now != before),
                _ => None,
            },
            collector_time: self.collector_time(jvm),
        }
    }

    /// Read only when it matters: some files of the kernel's.
    fn collector_time(&self, jvm: &dyn Jvm) -> Option<Duration> {
        (!self.planner.is_at_rest())
            .then(|| jvm.collector_time())
            .flatten()
    }

    /// Confirms what is covered once all refunds have arrived. Returns when to look again.
    fn confirm_refunds(&mut self, core: &Core, jvm: &dyn Jvm, now: Instant) -> Duration {
        if let Some(epoch) = self.refund_wait.turn(&core.ledger, || jvm.delivery(), now) {
            self.canaries.died(epoch);
            LOOK
        } else if self.refund_wait.is_under_way() {
            LOOK
        } else {
            IDLE
        }
    }

    /// Plants a canary for an open need, so that a collection that comes anyway is a proof.
    fn plant_for_need(&mut self, core: &Core, jvm: &dyn Jvm) {
        if let Some(wanted) = self.planner.wants_cover()
            && self.canaries.few_are_out()
            && self
                .waiting_since(core, jvm, wanted, PlantedFor::Need)
                .is_none()
        {
            self.plant(core, jvm, PlantedFor::Need);
        }
    }

    /// Plants a pair of arrays in each epoch in which a cycle is awaited, so that the proof is of what was held when it
    /// began, and not a second before. (An account that filled was acquitted by what it had held when it was suspected.)
    fn plant_again(&mut self, core: &Core, jvm: &dyn Jvm) {
        let now = core.ledger.epochs().current();
        if self.planner.awaits_cycle()
            && self.canaries.youngest_pair_since(now).is_none()
            && let arrays @ Some(_) = self.arrays_for(core, jvm, PlantedFor::Again)
        {
            self.canaries.plant(jvm, now, arrays);
        }
    }

    /// Plants an old canary and returns its epoch. If the collector collects the whole heap each
    /// time, the enforcer's ordinary canaries are enough.
    fn plant(&mut self, core: &Core, jvm: &dyn Jvm, purpose: PlantedFor) -> Option<Epoch> {
        let now = core.ledger.epochs().current();
        match self.collector?.kind {
            CollectorKind::Whole => return Some(now),
            CollectorKind::GenerationalZgc => {
                return self.canaries.plant_young(jvm, now).then_some(now);
            }
            _ => {}
        }
        let arrays = self.arrays_for(core, jvm, purpose);
        self.canaries.plant(jvm, now, arrays).then_some(now)
    }

    /// The epoch of a canary that is out and can prove `wanted`. If arrays can be planted, only a
    /// canary with arrays counts.
    fn waiting_since(
        &self,
        core: &Core,
        jvm: &dyn Jvm,
        wanted: Epoch,
        purpose: PlantedFor,
    ) -> Option<Epoch> {
        let pair = self.canaries.youngest_pair_since(wanted);
        pair.or_else(|| match self.arrays_for(core, jvm, purpose) {
            Some(_) => None,
            None => self.canaries.youngest_since(wanted),
        })
    }

    fn arrays_for(&self, core: &Core, jvm: &dyn Jvm, purpose: PlantedFor) -> Option<Arrays> {
        self.canaries.arrays_for(purpose, self.elements(core, jvm))
    }

    /// The length of arrays for a canary; `None` if they do not help or there is no room.
    fn elements(&self, core: &Core, jvm: &dyn Jvm) -> Option<i32> {
        let collector = self.collector?;
        collector.humongous_elements(jvm.used_bytes()?, core.heap.max_bytes())
    }

    /// Fills up the stock of canaries.
    fn keep_stock(&mut self, core: &Core, jvm: &dyn Jvm, now: Instant) {
        self.stocked = Some(now);
        self.canaries.keep_stock(jvm);
        let region_bytes = self.collector.and_then(|collector| collector.region_bytes);
        let is_little = |bytes: u64| bytes * 2 <= core.heap.max_bytes() / PAIR_OF_HEAP;
        if self.keeps_pair
            && region_bytes.is_some_and(is_little)
            && self.canaries.is_short_of_a_pair()
            && let Some(elements) = self.elements(core, jvm)
        {
            self.canaries.keep_pair(jvm, elements);
        }
    }

    fn start(&mut self, core: &Core, jvm: &dyn Jvm, means: Means) -> Duration {
        let wanted = self.planner.wants_cover();
        let waiting =
            wanted.and_then(|wanted| self.waiting_since(core, jvm, wanted, PlantedFor::Request));
        let planted = waiting.or_else(|| self.plant(core, jvm, PlantedFor::Request));
        let collector_time = jvm.collector_time();
        let asked = jvm.now();
        let (Some(epoch), Some(collector)) = (planted, self.collector) else {
            self.refused(means, "no canary can be planted", asked);
            return LOOK;
        };
        if means == Means::Periodic {
            if self.request(jvm) {
                self.planner.started(means, epoch, asked, collector_time);
            } else {
                self.refused(means, "the VM does not let its flag be set", asked);
            }
            return LOOK;
        }
        if means == Means::Full && collector.kind == CollectorKind::G1 && !self.said_full {
            self.said_full = true;
            tracing::warn!(
                "evidence takes full collections: neither a periodic cycle nor a concurrent System.gc() is to be had \
                 (G1PeriodicGCInterval, G1PeriodicGCInvokesConcurrent, G1PeriodicGCSystemLoadThreshold, ExplicitGCInvokesConcurrent, DisableExplicitGC)"
            );
        }
        self.planner.started(means, epoch, asked, collector_time);
        self.called = Some(Called::Planned(means));
        jvm.begin_collection(means);
        if self.is_called(core, jvm) {
            IDLE
        } else {
            LOOK
        }
    }

    /// Whether a collection that was called for has not ended.
    pub fn is_waited_for(&self) -> bool {
        self.called.is_some()
    }

    /// Whether another thread waits in the call for a collection. Once it has returned, the planner is told.
    fn is_called(&mut self, core: &Core, jvm: &dyn Jvm) -> bool {
        let Some(called) = self.called else {
            return false;
        };
        let Some(ended) = jvm.collection_ended() else {
            return true;
        };
        self.called = None;
        match called {
            Called::Unplanned(unplanned) => self.unplanned_has_ended(core, jvm, unplanned, ended),
            // Later turns may have come first: what they took is no cost of the collection.
            Called::Planned(_) if ended.has_run => {
                self.planner.returned(ended.at, jvm.collector_time());
            }
            Called::Planned(means) => self.refused(means, "the VM refuses", ended.at),
        }
        false
    }

    /// Changes the flag that makes G1 start a cycle.
    fn request(&mut self, jvm: &dyn Jvm) -> bool {
        self.activity_before = jvm.cycle_activity();
        jvm.request_cycle()
    }

    fn is_g1(&self) -> bool {
        (self.collector).is_some_and(|collector| collector.kind == CollectorKind::G1)
    }

    fn refused(&mut self, means: Means, why: &str, now: Instant) {
        self.planner.refused(means, now);
        self.say(means, why);
    }

    fn say(&mut self, means: Means, why: &str) {
        if !std::mem::replace(&mut self.said[means as usize], true) {
            tracing::warn!("evidence cannot be had by way of {means:?} ({why}); the next is tried");
        }
    }

    /// Restores the flag once the requested cycle has its proof. Called while the enforcer waits for
    /// refunds.
    pub fn put_flag_back_early(&mut self, core: &Core, jvm: &dyn Jvm) {
        let proof = core.ledger.epochs().pending_cover();
        if self.planner.has_its_proof(proof) && core.heap.free_bytes(jvm) >= ROOM {
            self.put_back(jvm);
        }
    }

    fn put_back(&mut self, jvm: &dyn Jvm) -> Duration {
        if self.collector.is_none() {
            return IDLE;
        }
        let now = jvm.now();
        if let Some(then) = self.flag_again_at.filter(|&then| now < then) {
            return then - now;
        }
        if jvm.put_flag_back() {
            self.planner.was_put_back();
            LOOK
        } else {
            self.flag_again_at = Some(now + FLAG_AGAIN);
            FLAG_AGAIN
        }
    }

    fn provoke(&mut self, core: &Core, jvm: &dyn Jvm) -> Duration {
        let epochs = core.ledger.epochs();
        let (before, max) = (epochs.current(), core.heap.max_bytes());
        // If old memory had no room for promoted objects, the young collection would become a full
        // one. With G1 old memory may grow to all but the young; with the others it is two thirds
        // of the heap by default.
        let most = if self.is_g1() { max / 5 * 4 } else { max / 2 };
        let is_tight =
            core.heap.used_after_gc_bytes() > most || core.heap.free_bytes(jvm) < max / 10;
        let began = jvm.now();
        while !is_tight && self.provoked_bytes < most {
            if epochs.current() > before || jvm.is_stopping() {
                self.provoked_bytes = 0;
                return Duration::ZERO;
            }
            if jvm.now().saturating_duration_since(began) >= PROVOCATION {
                return Duration::ZERO;
            }
            if !jvm.allocate_garbage(PROVOCATION_BYTES) {
                break;
            }
            self.provoked_bytes += PROVOCATION_BYTES as u64;
        }
        self.provoked_bytes = 0;
        let collector_time = self.collector_time(jvm);
        self.planner.gave_up(jvm.now(), collector_time);
        Duration::ZERO
    }
}
