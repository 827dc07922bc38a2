//! One sampled allocation, from the event to the charge.
//!
//! Runs on the allocating thread. It asks the VM only for what the rule in
//! [`crate::identity::attribution`] needs: the context class loader (a field read and a tag), the class
//! (a tag), frames if the policy needs them or somebody wants its stack, and the tag that brings the refund.
//! If the thread serves a request, or is in a call that has come through a door, its route's purse is charged instead of
//! the account's. Large arrays are thinned before they are charged. It takes no lock, looks up no name and formats
//! nothing. New loaders and classes get a number and a tag; the agent's threads name them later.

use std::cell::Cell;

use policy_core::charging::{Attributed, Sampled};
use policy_jvm::guard::{self, Latch};
use policy_jvm::{Jni, Ref, SampledAllocation};

use crate::cost::{self, Began};
use crate::ground::Ground;
use crate::jvm::tlab_refill;
use crate::ledger::DropReason;
use crate::sampling::thinning::share_kept;
use crate::sampling::{IntervalId, ThreadInterval};
use crate::sites::Visit;

use super::payer;
use super::recognizer::Recognizer;
use super::sampled_thread::{self, Due};
use super::site_stack;
use super::stack::JavaThread;

thread_local! {
    /// The interval for which this thread's sampler drew its next sample. A virtual thread samples with its
    /// carrier's sampler, so the state belongs to the native thread.
    static DRAWN: Cell<ThreadInterval> = const { Cell::new(ThreadInterval::UNSEEN) };
    /// Counts this thread's samples, to time one in [`TIMED_ONE_IN`].
    static TURN: Cell<u64> = Cell::new(cost::first_turn());
}

/// One sample in so many is timed for `heapwarden_agent_cpu_seconds_total`.
const TIMED_ONE_IN: u64 = 64;

/// Charges a sampled allocation.
pub(crate) fn charge(ground: &Ground, jni: &Jni, event: &SampledAllocation<'_>) {
    let drawing = ground.core.ledger.intervals().drawing();
    let drawn = DRAWN.try_with(|drawn| {
        let mut state = drawn.get();
        let is_first = state.is_unseen();
        let id = state.weigh_with(drawing);
        drawn.set(state);
        (id, is_first)
    });
    let drawn = drawn.unwrap_or((drawing, false));
    let turn = TURN
        .try_with(|turn| turn.replace(turn.get().wrapping_add(1)))
        .unwrap_or(1);
    let started = turn.is_multiple_of(TIMED_ONE_IN).then(Began::now);

    let charged = charge_untimed(ground, jni, event, drawn);

    if let Some(took) = started.and_then(|started| ground.costs.since(started)) {
        ground.costs.samples_took(took, TIMED_ONE_IN);
    }
    if let Some(charged) = charged {
        sampled_thread::pass(&charged, event);
    }
}

fn charge_untimed<'a>(
    ground: &'a Ground,
    jni: &'a Jni,
    event: &'a SampledAllocation<'a>,
    (drawn, is_first): (IntervalId, bool),
) -> Option<Due<'a>> {
    // JDK 28 may report value objects, which have no identity and cannot be tagged.
    let (Some(object), Some(class)) = (&event.object, &event.class) else {
        ground.core.ledger.count_dropped(DropReason::TagFailed);
        return None;
    };
    let intervals = ground.core.ledger.intervals();
    let drawn_bytes = intervals.bytes(drawn);
    if tlab_refill::is_surplus(jni, event.size_bytes, drawn_bytes) {
        return None;
    }
    let interval = intervals.counted_as(drawn);
    if interval != drawn {
        let kept = share_kept(event.size_bytes, drawn_bytes, intervals.bytes(interval));
        if fastrand::f64() >= kept {
            return None;
        }
    }
    if is_first {
        ground.core.first_draws.count(jni.thread_address());
    }
    let recognizer = Recognizer { ground, jni };
    let class = recognizer.sampled_class(class);
    let (needs, side) = ground.core.identity.view();
    let mut thread = JavaThread::new(recognizer, event.thread.as_ref(), side);
    let attribution = payer::of(recognizer, needs, event.thread.as_ref(), &mut thread);
    thread.remember();
    let attributed = Attributed {
        payer: attribution.payer,
        agent_account: attribution.agent_account,
        principal: attribution.principal,
        class,
        size_bytes: event.size_bytes,
        interval,
    };
    let (charged, record) = (ground.core).charge(&attributed, &InJvm { recognizer, object })?;
    Some(Due {
        recognizer,
        side,
        charged,
        record,
    })
}

/// The sampled object, in the JVM.
struct InJvm<'a> {
    recognizer: Recognizer<'a>,
    object: &'a Ref<'a>,
}

impl<'a> Sampled<'a> for InJvm<'a> {
    fn chance(&self) -> f64 {
        fastrand::f64()
    }

    fn stack(&self, of: &Attributed) -> Option<Visit<'a>> {
        site_stack::take(self.recognizer, of.payer, of.class)
    }

    fn tag(&self, tag: i64) -> bool {
        (self.recognizer.ground.jvmti)
            .set_tag(self.object, tag)
            .is_ok()
    }
}

/// Uses up the buffer from which the calling thread allocates, until its sampler reports.
///
/// At `VMInit` the main thread has a buffer that it took before the event was on. Before JDK 25 the sampler
/// does not see allocations in the rest of it (JDK-8264411): a few hundred KiB of the program's first
/// objects. To fill it with garbage takes well under a millisecond.
pub(crate) fn use_up_blind_buffer(jni: &Jni) {
    /// The most garbage that is worth it, as part of a young generation.
    const MAX_BYTES: usize = 8 << 20;
    const PIECE_BYTES: usize = 8 << 10;
    let Some(_latch) = Latch::enter() else { return };
    let before = guard::turned_away();
    for _ in 0..MAX_BYTES / PIECE_BYTES {
        if guard::turned_away() != before || !jni.allocate_bytes(PIECE_BYTES) {
            break;
        }
    }
    DRAWN.set(ThreadInterval::UNSEEN);
}

/// A new thread, before its first own object: gives its samples a phase of their own
/// ([`crate::sampling::new_threads`]). Not while the heap is short.
pub(crate) fn thread_started(ground: &Ground, jni: &Jni) {
    /// Small enough for any buffer.
    const PIECE_BYTES: u64 = 4 << 10;
    let phase_bytes = ground.core.new_threads.began(fastrand::f64);
    if phase_bytes == 0 || ground.stopping() {
        return;
    }
    let started = Began::now();
    let drawing = ground.core.ledger.intervals().drawing();
    let before = guard::turned_away();
    let mut left_bytes = phase_bytes;
    while left_bytes > 0 {
        let piece_bytes = left_bytes.min(PIECE_BYTES);
        if !jni.allocate_bytes(piece_bytes as usize) {
            break;
        }
        left_bytes -= piece_bytes;
    }
    if guard::turned_away() != before {
        let mut state = ThreadInterval::UNSEEN;
        let _ = state.weigh_with(drawing);
        DRAWN.set(state);
    }
    if let Some(took) = ground.costs.since(started) {
        ground.costs.phase_took(took);
        ground.core.new_threads.phase_took(took);
    }
}
