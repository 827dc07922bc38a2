//! A charge that is due: refused where that is safe, or counted.
//!
//! Runs on the allocating thread, after the sample was charged and tagged, and after its cost
//! was measured: a wait is not a cost. It takes no lock; a wait is a bounded sleep, in native
//! code, so that a collection does not wait for it, and holds nothing of the agent's but the
//! thread's own latch.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::cost::thread_cpu_time;
use crate::enforce::gate::{Due, Gate};
use crate::enforce::grace::{CARRIER_MS, Grace};
use crate::enforce::points::Reason;
use crate::enforce::refused::Refused;
use crate::enforce::terms::Terms;
use crate::identity::classes::Side;
use crate::ledger::PurseId;
use crate::options::TestRefuse;

use super::errors::Figures;
use super::java::Weak;
use super::point::{self, Barred, OwnFrame};
use super::sample::Event;
use super::sight::Sight;

thread_local! {
    static GRACE: Cell<Grace> = const { Cell::new(Grace::NONE) };
}

/// Between two looks of a thread that waits.
const LOOK: Duration = Duration::from_millis(1);

/// A charged sample, on its way past the gate.
pub(super) struct Charged<'a> {
    pub(super) sight: Sight<'a>,
    pub(super) side: Side,
    pub(super) payer: PurseId,
    pub(super) bytes: u64,
    /// Counts the samples of this native thread.
    pub(super) turn: u64,
}

/// Near its limit one sample in so many of a thread is judged, for the clerk to look up what is
/// met for the first time: when a refusal is due, its stack is known.
const JUDGED_AHEAD_ONE_IN: u64 = 4;

/// An account that a charge counts for: the payer's own, or that of the service around a scope.
#[derive(Clone, Copy)]
struct Level {
    /// The purse that stands for it, which is also the number of its gate.
    account: u32,
    /// Whether it is the service's around the payer.
    above: bool,
    /// Graces are given by this account, the outermost: who has just been refused for one of the
    /// two is not refused for the other.
    outermost: u32,
}

/// Takes a charged sample past its account's gate and, from a scope inside a service, past the
/// service's.
///
/// # Safety
/// `event` must be the event that is being delivered on this thread, and its references valid.
pub(super) unsafe fn pass(charged: &Charged<'_>, event: &Event) {
    let identity = &charged.sight.agent.identity;
    let account = identity.representative(charged.payer);
    let service = identity.above(charged.payer).map(|p| u32::from(p.get()));
    let level = |account, above| Level {
        account,
        above,
        outermost: service.unwrap_or(account),
    };
    // SAFETY: by this function's own contract.
    unsafe {
        // The charge counts at both, whatever comes of it at the first.
        let own = meet(charged, event, level(account, false));
        let around = service.and_then(|service| meet(charged, event, level(service, true)));
        for (level, due) in own.into_iter().chain(around) {
            let gates = &charged.sight.agent.enforcement.gates;
            let Some(gate) = gates.get(level.account) else {
                continue;
            };
            match settle(charged, event, level, gate, due) {
                Ok(false) => {}
                Ok(true) => return,
                Err(reason) => gate.count_deferred(reason as usize),
            }
        }
    }
}

/// Passes one gate; what is due there.
///
/// # Safety
/// As [`pass`].
unsafe fn meet(charged: &Charged<'_>, event: &Event, level: Level) -> Option<(Level, Due)> {
    let agent = charged.sight.agent;
    let gate = agent.enforcement.gates.get(level.account)?;
    let passage = gate.pass(charged.bytes, event.size_bytes);
    if passage.ring {
        agent.warden.wake();
    }
    if passage.near && passage.due.is_none() && charged.turn.is_multiple_of(JUDGED_AHEAD_ONE_IN) {
        // SAFETY: by this function's own contract.
        let _ = unsafe { judge(charged, event, level) };
    }
    passage.due.map(|due| (level, due))
}

/// Judges the stack: a safe place to refuse for this account, or why not.
///
/// # Safety
/// As [`pass`].
unsafe fn judge(charged: &Charged<'_>, event: &Event, level: Level) -> Result<OwnFrame, Barred> {
    // SAFETY: by this function's own contract.
    unsafe {
        point::judge(
            charged.sight,
            charged.side,
            charged.payer,
            level.above,
            event,
        )
    }
}

/// Refuses, waits, or tells why not. True if an error is pending now.
///
/// # Safety
/// As [`pass`].
unsafe fn settle(
    charged: &Charged<'_>,
    event: &Event,
    level: Level,
    gate: &Gate,
    due: Due,
) -> Result<bool, Reason> {
    let agent = charged.sight.agent;
    let Level {
        account, outermost, ..
    } = level;
    let (word, _) = gate.word();
    if word.naive {
        let terms = terms(charged, account)?;
        let thrown = throw(charged, event, &terms);
        if thrown {
            gate.count_refusal();
        }
        return Ok(thrown);
    }
    let stormy = agent.options().test_refuse == Some(TestRefuse::Storm);
    let mut grace = GRACE.try_with(Cell::get).unwrap_or_default();
    let now_ms = agent.uptime_ms();
    if grace.echoes(thread_cpu_time, event.size_bytes, charged.bytes)
        || !stormy && grace.spend(outermost, now_ms, charged.bytes)
    {
        remember(grace);
        return Err(Reason::Grace);
    }
    // SAFETY: by this function's own contract.
    if unsafe { is_masked(charged, event) }
        && gate.spares(charged.bytes, agent.enforcement.mask_bytes())
    {
        return Err(Reason::Masked);
    }
    // SAFETY: by this function's own contract.
    let frame = unsafe { find_out(charged, event, level, gate, &mut grace) }?;
    if due == Due::Overdrawn {
        // SAFETY: by this function's own contract.
        let over = word.enforced && unsafe { wait(charged, event, level, gate, &mut grace) };
        remember(grace);
        if !over {
            return Ok(false);
        }
    }
    if !gate.is_still_due(due, event.size_bytes) {
        return Ok(false);
    }
    let terms = terms(charged, account)?;
    if gate.word().0.enforced && !stormy {
        let slowed = grace.slowed_ms(outermost, agent.uptime_ms());
        // SAFETY: by this function's own contract.
        let slowed = slowed.min(unsafe { longest_hold_ms(charged, event) });
        if slowed > 0 {
            std::thread::sleep(Duration::from_millis(slowed));
        }
    }
    // Limits, mode and accounts may have changed meanwhile, and the gate may be another's: the
    // word first, see the gate's sixth rule.
    let (word, _) = gate.word();
    if !gate.is_still_due(due, event.size_bytes) || !is_still(charged, level) {
        return Ok(false);
    }
    grace.refuse(outermost, agent.uptime_ms());
    remember(grace);
    // Before the throw: with an exception pending JNI allows next to nothing.
    // SAFETY: by this function's own contract.
    let for_log = unsafe { for_log(charged, event, &terms, frame) };
    let thrown = word.enforced && throw(charged, event, &terms);
    if thrown {
        gate.count_refusal();
        grace.thrown(thread_cpu_time());
        remember(grace);
    } else if !word.enforced {
        gate.count_would_refuse();
    }
    if let Some(refused) = for_log
        && let Err(refused) = agent
            .enforcement
            .refused
            .push(Refused { thrown, ..refused })
    {
        for weak in [refused.thread, refused.class].into_iter().flatten() {
            charged.sight.jni.release(weak);
        }
    }
    Ok(thrown)
}

/// Judges the stack; where something on it is not known yet, waits for the clerk: the first
/// allocation at a new place would otherwise go past the limit however large it is, and all of
/// them where the clerk does not get a processor.
///
/// # Safety
/// As [`pass`].
unsafe fn find_out(
    charged: &Charged<'_>,
    event: &Event,
    level: Level,
    gate: &Gate,
    grace: &mut Grace,
) -> Result<OwnFrame, Reason> {
    let agent = charged.sight.agent;
    let (word, serial) = gate.word();
    let begun = agent.uptime_ms();
    // SAFETY: by this function's own contract.
    let mut found = unsafe { judge(charged, event, level) };
    if word.enforced && found.is_err_and(|barred| barred.passing) {
        // SAFETY: by this function's own contract.
        let longest = grace
            .may_find_out_ms(serial)
            .min(unsafe { longest_hold_ms(charged, event) });
        let mut waited = 0;
        while waited < longest
            && found.is_err_and(|barred| barred.passing)
            && is_still(charged, level)
            && !agent.stopping()
        {
            std::thread::sleep(LOOK);
            waited = agent.uptime_ms().saturating_sub(begun);
            // SAFETY: by this function's own contract.
            found = unsafe { judge(charged, event, level) };
        }
        grace.waited(serial, waited);
        remember(*grace);
    }
    found.map_err(|barred| barred.reason)
}

/// Whether the charge still counts for this account.
fn is_still(charged: &Charged<'_>, level: Level) -> bool {
    let identity = &charged.sight.agent.identity;
    let now = if level.above {
        identity.above(charged.payer).map(|p| u32::from(p.get()))
    } else {
        Some(identity.representative(charged.payer))
    };
    now == Some(level.account)
}

/// Whether the program has asked not to be refused here.
///
/// # Safety
/// As [`pass`].
unsafe fn is_masked(charged: &Charged<'_>, event: &Event) -> bool {
    let Sight { agent, jni } = charged.sight;
    if !agent.identity.scopes.in_use().0 {
        return false;
    }
    agent.bridge().is_some_and(|bridge| {
        // SAFETY: the event's thread reference is the calling thread's.
        bridge.sees_scopes() && unsafe { bridge.cells().is_masked(jni, event.thread) }
    })
}

/// What the refusal says, as of now.
fn terms(charged: &Charged<'_>, account: u32) -> Result<Arc<Terms>, Reason> {
    let agent = charged.sight.agent;
    let terms = agent.enforcement.terms.get(account);
    terms.and_then(|terms| terms.clone()).ok_or_else(|| {
        // The warden has not come to write them: it is to come.
        agent.warden.wake();
        Reason::Unresolved
    })
}

fn remember(grace: Grace) {
    let _ = GRACE.try_with(|cell| cell.set(grace));
}

/// Waits for the verdict, as long as the thread's waits allow; true if the account is over.
///
/// # Safety
/// As [`pass`].
unsafe fn wait(
    charged: &Charged<'_>,
    event: &Event,
    level: Level,
    gate: &Gate,
    grace: &mut Grace,
) -> bool {
    let agent = charged.sight.agent;
    let (_, serial) = gate.word();
    let begun = agent.uptime_ms();
    // SAFETY: by this function's own contract.
    let longest = grace
        .may_wait_ms(serial, charged.bytes)
        .min(unsafe { longest_hold_ms(charged, event) });
    agent.warden.wake();
    let mut waited = 0;
    while waited < longest
        && gate.is_verdict_awaited()
        && is_still(charged, level)
        && !agent.stopping()
    {
        std::thread::sleep(LOOK);
        waited = agent.uptime_ms().saturating_sub(begun);
    }
    grace.waited(serial, waited);
    gate.word().0.over
}

/// How long this thread may be held: a virtual one holds a carrier that others need.
///
/// # Safety
/// As [`pass`].
unsafe fn longest_hold_ms(charged: &Charged<'_>, event: &Event) -> u64 {
    let agent = charged.sight.agent;
    // SAFETY: the event's thread reference is valid; the release is that of the VM.
    if unsafe { charged.sight.jni.is_virtual(event.thread, agent.release()) } {
        CARRIER_MS
    } else {
        u64::MAX
    }
}

/// Leaves the error pending; false if none could be made.
fn throw(charged: &Charged<'_>, event: &Event, terms: &Terms) -> bool {
    let Some(errors) = charged.sight.agent.errors.get() else {
        return false;
    };
    let figures = Figures {
        account: &terms.name,
        live_bytes: terms.live_bytes,
        limit_bytes: terms.limit_bytes,
        standard_error_bytes: terms.standard_error_bytes,
        requested_bytes: event.size_bytes,
    };
    let Sight { agent, jni } = charged.sight;
    errors.throw(jni, &agent.tools, terms.throw, &figures)
}

/// What the log is to say of this refusal; `None` when enough wait to be logged already.
///
/// # Safety
/// As [`pass`].
unsafe fn for_log(
    charged: &Charged<'_>,
    event: &Event,
    terms: &Arc<Terms>,
    frame: OwnFrame,
) -> Option<Refused> {
    if charged.sight.agent.enforcement.refused.is_full() {
        return None;
    }
    let Sight { agent, jni } = charged.sight;
    // SAFETY: the event's thread reference is valid on this thread.
    let thread = unsafe { Weak::to(jni, event.thread) };
    // SAFETY: the method is on this thread's own stack, which keeps its class loaded.
    let class = unsafe { agent.tools.declaring_class(jni, frame.method) };
    Some(Refused {
        terms: terms.clone(),
        thrown: false,
        requested_bytes: event.size_bytes,
        frame,
        class: class.ok().flatten().and_then(|class| class.weak()),
        thread,
    })
}
