//! The warden: the thread that takes note of collections.
//!
//! After each collection pause it plants a canary (see [`crate::ledger::epoch`]); when a
//! canary has died it waits until the refunds of that collection are in, confirms what is
//! live from then on, and reads the heap. It lets the janitor clear away what nobody refers
//! to any more. And where charges have outgrown the heap, which only happens when the
//! collector does not report deaths (generational ZGC reports them at major collections
//! only), it asks for a collection within the budget of its [`Evidence`].

use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::identity::cleaning::{self, Seen};
use crate::jvm::java::Jni;
use crate::ledger::{Epoch, PurseId, Quiet, QuietWindow, Tag};
use crate::options::TestPanic;
use crate::pace;
use crate::sampling::standard_error_bytes;

use super::couriers::Delivery;
use super::evidence::{Asked, Evidence, Wish};
use super::rounds::Rounds;

/// The longest sleep; a collection wakes the warden earlier.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);
/// Free bytes below which no canary is planted: at a full heap even sixteen bytes could be
/// the allocation that fails, and `-XX:+ExitOnOutOfMemoryError` would end the host for it.
const ROOM_FOR_CANARY: u64 = 1 << 20;
/// Pauses without a canary's death from which on a collector is taken not to report deaths.
/// A minor cycle of generational ZGC has three; a concurrent cycle of G1 has two between
/// young collections.
const PAUSES_WITHOUT_DEATHS: u32 = 9;
/// And for how long: a busy machine reports late.
const SILENCE: Duration = Duration::from_secs(2);
/// The shortest time between two passes of the janitor over the records, and how many times
/// as long as the last pass took it is at least.
const JANITOR_PAUSE: Duration = Duration::from_millis(500);
const JANITOR_PAUSES_PER_PASS: u32 = 50;
/// The same after a pass that gave much back.
const JANITOR_PAUSES_WHILE_BUSY: u32 = 4;

/// Runs until the agent stops.
pub(crate) fn run(agent: &'static Agent, jni: &Jni) {
    agent.warden.listen();
    let mut warden = Warden {
        agent,
        planted: None,
        seen: Seen::default(),
        reported: (None, Instant::now()),
        clean_again_at: Instant::now(),
        cleaned_in: None,
        rounds: Rounds::new(),
        evidence: Evidence::default(),
    };
    agent.read_heap(jni);
    while !agent.stopping() {
        let sleep = warden.turn(jni);
        agent.costs.thread_is("warden");
        agent.warden.wait(sleep.min(LONGEST_SLEEP));
    }
}

struct Warden {
    agent: &'static Agent,
    planted: Option<Epoch>,
    /// What was dead already at the last pass.
    seen: Seen,
    /// The confirmed boundary, and since when it has not moved.
    reported: (Option<Epoch>, Instant),
    clean_again_at: Instant,
    /// The boundary at the last pass: without a collection nothing can have gone.
    cleaned_in: Option<Epoch>,
    rounds: Rounds,
    evidence: Evidence,
}

impl Warden {
    /// Does what there is to do, and says how long it can rest at the most.
    fn turn(&mut self, jni: &Jni) -> Duration {
        let epochs = self.agent.ledger.epochs();
        let now = epochs.current();
        if self.planted != Some(now) {
            // First of all: every moment more is new allocation.
            let room = self.agent.read_heap(jni);
            if room >= ROOM_FOR_CANARY && self.plant(jni, now) {
                self.planted = Some(now);
            }
        }
        if let Some(epoch) = epochs.pending() {
            self.await_refunds(jni);
            epochs.confirm(epoch);
            self.agent.read_heap_again(jni);
            self.agent.api.peaks.note(&self.agent.ledger);
        }
        // Before the round: gates of purses that end go to others in it.
        self.clean(jni);
        let now = Instant::now();
        let starved = !self.evidence.budget().allows(now);
        let (wish, again) = self.rounds.turn(self.agent, jni, now, starved);
        self.agent.api.went_round();
        if self.agent.options().test_panic == Some(TestPanic::Warden)
            && self.rounds.is_any_over(self.agent)
        {
            std::panic::resume_unwind(Box::new("a test asked for it"));
        }
        if pace::has_undecided(self.agent) {
            self.evidence.prepare(self.agent, jni, now);
        }
        let asked = if wish == Wish::None && pace::wants_decision(self.agent) {
            // It is a figure that waits, and no thread: no pause is worth it.
            Asked::gently(Wish::Covering)
        } else {
            Asked::for_verdicts(wish)
        };
        let sooner = self.evidence.pursue(self.agent, jni, asked, Instant::now());
        pace::look(self.agent, self.rounds.smallest_limit_bytes(), now);
        if self.agent.thinning.is_asked()
            && let Some(collector) = self.evidence.collector(self.agent, jni)
        {
            pace::know_regions(self.agent, collector.region_bytes());
        }
        self.ask_for_refunds(Instant::now());
        again.min(sooner)
    }

    /// Waits until the batch of refunds that brought a canary's death is in: the canary's own
    /// report comes somewhere in the middle of it.
    ///
    /// HotSpot has a barrier for this, and it must not be used: switching the `ObjectFree`
    /// event flushes what is pending, but it waits for the posting thread without a safepoint
    /// check, and deadlocks the VM when a safepoint is asked for meanwhile (seen on 17.0.15).
    ///
    /// It does not wait for ever: what comes later keeps the estimate high for a moment.
    fn await_refunds(&mut self, jni: &Jni) {
        const LOOK: Duration = Duration::from_millis(1);
        let frees = || self.agent.ledger.frees_total();
        let started = Instant::now();
        let mut window = QuietWindow::new(0, frees());
        loop {
            self.evidence.let_go_of_the_flag(self.agent, jni);
            let now_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let quiet = window.observe(now_ms, frees());
            let is_in = match self.agent.couriers.delivery() {
                Delivery::Complete => true,
                Delivery::UnderWay => now_ms >= QuietWindow::DEFAULT_LONGEST_MS,
                Delivery::Unknown => quiet != Quiet::Wait,
            };
            if is_in || self.agent.stopping() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Allocates, tags and drops one object. It is this thread's own and not charged.
    fn plant(&self, jni: &Jni, epoch: Epoch) -> bool {
        let Some(class) = self.agent.object_class() else {
            return false;
        };
        let Some(canary) = jni.allocate(class) else {
            return false;
        };
        self.agent
            .tools
            .set_tag(&canary, Tag::Canary(epoch).encode())
            .is_ok()
    }

    /// Clears away purses, loaders and classes that are gone, when some are.
    fn clean(&mut self, jni: &Jni) {
        let started = Instant::now();
        let boundary = self.agent.ledger.epochs().boundary();
        if started < self.clean_again_at || boundary == self.cleaned_in {
            return;
        }
        if !self.seen.is_due(self.agent) {
            return;
        }
        self.cleaned_in = boundary;
        self.seen = cleaning::clean(self.agent, jni);
        self.clean_again_at = Instant::now()
            + if self.seen.did_much() {
                started.elapsed() * JANITOR_PAUSES_WHILE_BUSY
            } else {
                (started.elapsed() * JANITOR_PAUSES_PER_PASS).max(JANITOR_PAUSE)
            };
    }

    /// Asks for a collection where the collector has not reported deaths for a while.
    fn ask_for_refunds(&mut self, now: Instant) {
        let agent = self.agent;
        if !agent.samples_are_taken()
            || !self.evidence.budget().allows(now)
            || !self.deaths_go_unreported(now)
        {
            return;
        }
        let (charged, variance) = (0..agent.ledger.purse_high_water())
            .map(|number| agent.ledger.totals(PurseId::new(number as u16)).charged)
            .fold((0u64, 0u64), |(bytes, variance), charge| {
                (
                    bytes.saturating_add(charge.bytes),
                    variance.saturating_add(charge.variance),
                )
            });
        let surely = charged as f64 - 3.0 * standard_error_bytes(variance);
        if surely <= agent.heap_max_bytes() as f64 {
            return;
        }
        match agent.tools.collect() {
            Ok(()) => {
                let took = now.elapsed();
                agent.evidence.add("refunds", took);
                self.evidence.budget().spent(Instant::now(), took);
                tracing::debug!(
                    charged_bytes = charged,
                    "charges exceeded the heap; a collection was asked for, it took {took:?}"
                );
            }
            Err(failure) => {
                // Nothing to be gained by asking again soon.
                self.evidence.budget().spent_resting(
                    Instant::now(),
                    Duration::ZERO,
                    Duration::from_secs(60),
                );
                tracing::warn!(
                    "a collection was refused ({failure}); charges stay too high until the next"
                );
            }
        }
    }

    /// Whether pause after pause has ended without the death of a canary. The collectors that
    /// report deaths at every collection never come here: the canary of an epoch dies in the
    /// first collection after it, and none of them has as many pauses without one.
    fn deaths_go_unreported(&mut self, now: Instant) -> bool {
        let epochs = self.agent.ledger.epochs();
        if self.reported.0 != epochs.boundary() {
            self.reported = (epochs.boundary(), now);
        }
        let reported = epochs.boundary().map_or(0, Epoch::get);
        now.duration_since(self.reported.1) >= SILENCE
            && epochs.pending().is_none()
            && epochs.current().get().saturating_sub(reported) >= PAUSES_WITHOUT_DEATHS
    }
}
