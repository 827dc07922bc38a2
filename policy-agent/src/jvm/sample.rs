//! One sampled allocation, from the event to the charge.
//!
//! Runs on the allocating thread. It asks the VM for as little as the rule in
//! [`crate::identity::bill`] needs: the context class loader (a field read and a tag), the
//! class (a tag), frames only where the policy wants them, and the tag that brings the
//! refund. Large arrays are thinned before they are charged. It takes no lock, looks up no name and
//! formats nothing; what it sees for the first time it numbers, tags and leaves to the resolver.

use std::cell::Cell;

use jvmti_bindings::sys::jni;

use crate::agent::Agent;
use crate::cost::{self, Began};
use crate::identity::bill::bill;
use crate::identity::classes::{ClassId, Kind};
use crate::ledger::{DropReason, PurseId, Sample, Tag};
use crate::sampling::thinning::{Thinning, Verdict};
use crate::sampling::{IntervalId, ThreadInterval};

use super::guard::{self, Latch};
use super::java::Jni;
use super::refuse::{self, Charged};
use super::sight::Sight;
use super::stack::JavaThread;

thread_local! {
    /// The interval under which this thread's sampler drew its next sample. A virtual
    /// thread samples with its carrier's sampler, so the native thread is the right key.
    static DRAWN: Cell<ThreadInterval> = const { Cell::new(ThreadInterval::UNSEEN) };
    /// Counts this thread's samples, to time one in [`TIMED_ONE_IN`].
    static TURN: Cell<u64> = Cell::new(cost::first_turn());
}

/// One sample in so many is timed for `heapwarden_agent_cpu_seconds_total`.
const TIMED_ONE_IN: u64 = 64;

/// A sampled allocation as the event describes it.
pub(crate) struct Event {
    pub(crate) thread: jni::jthread,
    pub(crate) object: jni::jobject,
    pub(crate) class: jni::jclass,
    pub(crate) size_bytes: u64,
}

/// Charges a sampled allocation.
///
/// # Safety
/// The references of `event` must be those of a `SampledObjectAlloc` event that is being
/// delivered on this thread, whose environment `jni` is.
pub(crate) unsafe fn charge(agent: &Agent, jni: &Jni, event: &Event) {
    let interval = DRAWN
        .try_with(|drawn| {
            let mut state = drawn.get();
            let id = state.weigh_with(agent.ledger.intervals().current());
            drawn.set(state);
            id
        })
        .unwrap_or_else(|_| agent.ledger.intervals().current());
    let turn = TURN
        .try_with(|turn| turn.replace(turn.get().wrapping_add(1)))
        .unwrap_or(1);
    let started = turn.is_multiple_of(TIMED_ONE_IN).then(Began::now);

    // SAFETY: by this function's own contract.
    let charged = unsafe { charge_untimed(agent, jni, event, interval, turn) };

    if let Some(took) = started.and_then(|started| agent.costs.since(started)) {
        agent.costs.samples_took(took, TIMED_ONE_IN);
    }
    if let Some(charged) = charged {
        // SAFETY: by this function's own contract.
        unsafe { refuse::pass(&charged, event) };
    }
}

/// # Safety
/// As [`charge`].
unsafe fn charge_untimed<'a>(
    agent: &'a Agent,
    jni: &'a Jni,
    event: &Event,
    interval: IntervalId,
    turn: u64,
) -> Option<Charged<'a>> {
    let tools = &agent.tools;
    // JDK 28 may report value objects, which have no identity and cannot be tagged.
    if event.object.is_null() || event.class.is_null() {
        agent.ledger.count_dropped(DropReason::TagFailed);
        return None;
    }
    let sight = Sight { agent, jni };
    // SAFETY: the event's class reference is valid on this thread.
    let class = unsafe { sight.sampled_class(event.class) };
    let (needs, side) = agent.identity.view();
    let mut thread = JavaThread::new(sight, event.thread, side);
    let bill = bill(needs, &mut thread);
    thread.remember();
    let mut interval = interval;
    let is_large = agent.thinning.may_be_large(event.size_bytes) && waits(agent, class);
    if is_large {
        match thinned(agent, bill.payer, event.size_bytes, interval) {
            Verdict::Keep(wider) => interval = wider,
            Verdict::PassOver => return None,
        }
    }
    let sample = Sample {
        payer: bill.payer,
        agent: bill.agent,
        principal: bill.principal,
        class: class.0,
        size_bytes: event.size_bytes,
        interval,
    };
    // What finds no room is dropped, which the ledger counts, but who is over its limit is refused
    // all the same: else one account that fills the tables would set all others free.
    let mut bytes = 0;
    if let Ok((record, charge)) = agent.ledger.charge_weighed(&sample) {
        // SAFETY: the event's object reference is valid on this thread.
        if unsafe { tools.set_tag_of(event.object, Tag::Object(record).encode()) }.is_ok() {
            bytes = charge.bytes;
        } else {
            agent.ledger.cancel(record);
        }
    }
    if is_large && bytes > 0 {
        let account = agent.identity.representative(bill.payer);
        (agent.thinning).kept(account, event.size_bytes, bytes);
    }
    Some(Charged {
        sight,
        side,
        payer: bill.payer,
        bytes,
        turn,
    })
}

/// Whether a large object of this class is one that its tag keeps from being given back: an array of
/// primitives. A class that nobody has looked at yet counts as none.
fn waits(agent: &Agent, class: ClassId) -> bool {
    if agent.thinning.ask() {
        agent.warden.wake();
    }
    agent.identity.classes.kind(class) == Kind::Primitives
}

/// What to do with a sample of a large array: see [`crate::sampling::thinning`].
#[cold]
fn thinned(agent: &Agent, payer: PurseId, size_bytes: u64, interval: IntervalId) -> Verdict {
    if agent.api.peaks.watches(payer) {
        // A test in Java reads its error off the interval in force, and has no limit to widen it by.
        return Verdict::Keep(interval);
    }
    let drawn = (interval, agent.ledger.intervals().bytes(interval));
    let account = agent.identity.representative(payer);
    let widest_bytes = || {
        let service = agent.identity.above(payer);
        let gates = [Some(account), service.map(|purse| u32::from(purse.get()))];
        let gates = gates.into_iter().flatten();
        let limits =
            gates.filter_map(|number| agent.enforcement.gates.get(number)?.limit_at_rest());
        Thinning::widest_bytes(limits)
    };
    (agent.thinning).judge(account, size_bytes, drawn, widest_bytes, fastrand::f64)
}

/// Uses up the buffer from which the calling thread allocates, until its sampler reports.
///
/// At `VMInit` the main thread holds a buffer that it filled before the event was on, and
/// before JDK 25 what is allocated in the rest of it is never sampled (JDK-8264411): a few
/// hundred KiB of the program's first objects. A few hundred KiB of garbage instead costs
/// well under a millisecond.
pub(crate) fn use_up_blind_buffer(jni: &Jni) {
    /// The largest share of a young generation that is worth it.
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
