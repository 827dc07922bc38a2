//! One sampled allocation, from the event to the charge.
//!
//! Runs on the allocating thread. It asks the VM only for what the rule in
//! [`crate::identity::attribution`] needs: the context class loader (a field read and a tag), the class
//! (a tag), frames if the policy needs them or somebody wants its stack, and the tag that brings the refund.
//! If the thread serves a request, or is in a call that has come through a door, its route's purse is charged instead of
//! the account's. Large arrays are thinned before they are charged. It takes no lock, looks up no name and formats
//! nothing. New loaders and classes get a number and a tag; the agent's threads name them later.

use std::cell::Cell;

use policy_jvm::guard::{self, Latch};
use policy_jvm::{Jni, SampledAllocation};

use policy_core::Core;

use crate::cost::{self, Began};
use crate::enforce::admission::Charged;
use crate::ground::Ground;
use crate::identity::attribution::attribute;
use crate::identity::classes::{ClassId, Kind};
use crate::ledger::{DropReason, PurseId, Sample, SiteId, Tag};
use crate::sampling::thinning::{Decision, share_kept};
use crate::sampling::{IntervalId, ThreadInterval};
use crate::sites::Visit;

use super::recognizer::Recognizer;
use super::sampled_thread::{self, Due};
use super::site_stack;
use super::stack::JavaThread;
use crate::jvm::tlab_refill;

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
    let attribution = attribute(needs, &mut thread);
    thread.remember();
    let payer = match ground.core.enforcement.routes.in_use() {
        true => routed(ground, event, attribution.payer),
        false => attribution.payer,
    };
    let mut interval = interval;
    let is_large =
        ground.core.thinning.may_be_large(event.size_bytes) && tag_delays_free(&ground.core, class);
    if is_large {
        match thinned(&ground.core, payer, event.size_bytes, interval) {
            Decision::Keep(wider) => {
                if wider != interval {
                    (ground.core.ledger).thin(payer, event.size_bytes, (interval, wider), true);
                }
                interval = wider;
            }
            Decision::PassOver(wider) => {
                (ground.core.ledger).thin(payer, event.size_bytes, (interval, wider), false);
                return None;
            }
        }
    } else if ground.core.class_thinning.is_on() {
        match thinned_by_class(&ground.core, class, payer, event.size_bytes, interval) {
            Decision::Keep(wider) => interval = wider,
            Decision::PassOver(wider) => {
                ground.core.ledger.pass_over(payer, wider);
                return None;
            }
        }
    }
    // Held until the record is in the ledger: the sites keep what records name.
    let visit = if ground.core.sites.any_wanted() {
        site_stack::take(recognizer, payer, class)
    } else {
        None
    };
    let sample = Sample {
        payer,
        agent_account: attribution.agent_account,
        principal: attribution.principal,
        class: class.0,
        size_bytes: event.size_bytes,
        interval,
        site: visit.as_ref().map_or(SiteId::NONE, Visit::site),
    };
    // A sample that finds no room is dropped, and the ledger counts that. Its thread still passes the
    // gates: otherwise one account that fills the tables would free all others of their limits.
    let mut bytes = 0;
    let mut charged_record = None;
    if let Ok((record, charge)) = ground.core.ledger.charge_weighed(&sample) {
        let tag = Tag::Object(record).encode();
        if ground.jvmti.set_tag(object, tag).is_ok() {
            bytes = charge.bytes;
            charged_record = Some(record);
            if let Some(visit) = &visit {
                visit.charged(&charge);
            }
        } else {
            ground.core.ledger.cancel(record);
        }
    }
    drop(visit);
    if is_large && bytes > 0 {
        let account = ground.core.identity.representative(payer);
        (ground.core.thinning).kept(account, event.size_bytes, bytes);
    }
    let charged = Charged {
        payer,
        bytes,
        size_bytes: event.size_bytes,
    };
    Some(Due {
        recognizer,
        side,
        charged,
        record: charged_record,
    })
}

/// The purse of the route that the thread is in, if it belongs to the account that pays; otherwise `payer`. A
/// route never changes which account pays.
fn routed(ground: &Ground, event: &SampledAllocation<'_>, payer: PurseId) -> PurseId {
    let thread = event.thread.as_ref();
    let inside = ground.bridge().zip(thread);
    let inside = inside.map(|(bridge, thread)| bridge.thread_scopes().routes(thread));
    let identity = &ground.core.identity;
    let account = identity.representative(payer);
    if account == u32::from(PurseId::UNACCOUNTED.get()) {
        return payer;
    }
    let routes = &ground.core.enforcement.routes;
    inside
        .and_then(|inside| {
            inside.charged(|number| {
                let purse = routes.purse(number)?;
                (identity.representative(purse) == account).then_some(purse)
            })
        })
        .unwrap_or(payer)
}

/// Whether a tag keeps G1 from freeing a large object of this class early: it is an array of primitives.
/// A class that is not classified yet counts as no.
fn tag_delays_free(core: &Core, class: ClassId) -> bool {
    if core.thinning.ask() {
        core.enforcer.wake();
    }
    core.identity.classes.kind(class) == Kind::Primitives
}

/// Whether to keep a sample of a large array: see [`crate::sampling::thinning`].
#[cold]
fn thinned(core: &Core, payer: PurseId, size_bytes: u64, interval: IntervalId) -> Decision {
    if core.peaks.watches(payer) {
        // A test in Java reads its error off the interval in force, and has no limit to widen it by.
        return Decision::Keep(interval);
    }
    let drawn = (interval, core.ledger.intervals().bytes(interval));
    let account = core.identity.representative(payer);
    let widest_bytes = || core.widest_interval_bytes(payer);
    (core.thinning).judge(account, size_bytes, drawn, widest_bytes, fastrand::f64)
}

/// Whether to keep a sample of a class that a rule of the policy thins: see
/// [`crate::sampling::class_thinning`].
#[cold]
fn thinned_by_class(
    core: &Core,
    class: ClassId,
    payer: PurseId,
    size_bytes: u64,
    interval: IntervalId,
) -> Decision {
    let Some(rule) = core.identity.classes.thinned_by(class) else {
        return Decision::Keep(interval);
    };
    if core.peaks.watches(payer) {
        return Decision::Keep(interval);
    }
    let drawn = (interval, core.ledger.intervals().bytes(interval));
    let widest_bytes = || core.widest_interval_bytes(payer);
    (core.class_thinning).judge(rule, size_bytes, drawn, widest_bytes, fastrand::f64)
}

/// Uses up the buffer from which the calling thread allocates, until its sampler reports.
///
/// At `VMInit` the main thread has a buffer that it took before the event was on. Before JDK 25 the sampler
/// does not see allocations in the rest of it (JDK-8264411): a few hundred KiB of the program's first
/// objects. To fill it with garbage takes well under a millisecond.
pub(crate) fn use_up_blind_buffer(jni: &Jni) {
    /// The most garbage that is worth it, as part of a young generation.
    const MOST_BYTES: usize = 8 << 20;
    const PIECE_BYTES: usize = 8 << 10;
    let Some(_latch) = Latch::enter() else { return };
    let before = guard::turned_away();
    for _ in 0..MOST_BYTES / PIECE_BYTES {
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
