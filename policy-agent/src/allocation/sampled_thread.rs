//! The sampled thread, which has just allocated: it passes the gates of its accounts. This file answers
//! what the core's admission asks of it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use policy_jvm::kinds::JavaString;
use policy_jvm::{Frame, Global, SampledAllocation};

use crate::cost::thread_cpu_time;
use crate::enforce::admission::{Admission, Charged, Step};
use crate::enforce::door::MARK;
use crate::enforce::grace::Grace;
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::enforce::place_name::Work;
use crate::enforce::ports::{Barred, CallingThread, LetIn, Level};
use crate::enforce::refusal_details::RefusalDetails;
use crate::enforce::throw_points::Reason;
use crate::ground::Ground;
use crate::identity::classes::Side;
use crate::jvm::error_figures::Figures;
use crate::ledger::ObjectTag;
use crate::references::{Barring, OwnFrame, Refused, UnnamedPlace};

use super::recognizer::Recognizer;
use super::stack_judge::{self, Blocked, Place};

thread_local! {
    static GRACE: Cell<Grace> = const { Cell::new(Grace::NONE) };
    /// The mark of the probe that a door has let in on this thread; 0 for none.
    static PROBE: Cell<u32> = const { Cell::new(0) };
}

/// A charged sample that has not passed the gates yet.
pub(super) struct Due<'a> {
    pub(super) recognizer: Recognizer<'a>,
    pub(super) side: Side,
    pub(super) charged: Charged,
    /// Of the sample; `None` if it found no room.
    pub(super) record: Option<ObjectTag>,
}

/// Takes a charged sample past the gates of its accounts, and sleeps when the admission says so. An
/// error may be pending afterwards.
pub(super) fn pass(due: &Due<'_>, event: &SampledAllocation<'_>) {
    let core = &due.recognizer.ground.core;
    let mark = PROBE.try_with(Cell::get).unwrap_or(0);
    // A virtual thread's probe may go on with another carrier, and another virtual thread with this one.
    if mark != 0
        && !event
            .thread
            .as_ref()
            .is_some_and(|thread| thread.is_virtual())
    {
        core.charge_probe(due.charged.payer, mark, due.charged.bytes);
    }
    let Some(mut admission) = Admission::begin(core, due.charged) else {
        return;
    };
    let mut thread = SampledThread {
        due,
        event,
        noted: None,
        is_event_loop: false,
    };
    while let Step::Sleep(longest) = admission.step(core, &mut thread) {
        std::thread::sleep(longest);
    }
}

/// The calling thread.
struct SampledThread<'e, 'a> {
    due: &'e Due<'a>,
    event: &'e SampledAllocation<'e>,
    /// The refusal, for the log.
    noted: Option<Refused>,
    /// The stack that was judged last has an event loop in it.
    is_event_loop: bool,
}

/// A shut door lets a request in, which stays on the calling thread: it has its whole allowance. `ticket`: a probe's.
pub(crate) fn let_in(ticket: Option<u64>) {
    let _ = PROBE.try_with(|probe| probe.set(ticket.map_or(0, mark)));
    let _ = GRACE.try_with(|cell| {
        let mut grace = cell.get();
        grace.let_in();
        cell.set(grace);
    });
}

/// The probe with this ticket has ended, if it was on the calling thread.
pub(crate) fn probe_ended(ticket: u64) {
    let _ = PROBE.try_with(|probe| {
        if probe.get() == mark(ticket) {
            probe.set(0);
        }
    });
}

fn mark(ticket: u64) -> u32 {
    (ticket & MARK) as u32
}

impl SampledThread<'_, '_> {
    /// Whether an error can be made of the class that the code on the stack expects.
    fn error_is_ready(&self, level: Level) -> bool {
        let Recognizer { ground, jni } = self.due.recognizer;
        let details = ground.core.enforcement.details.get(level.account);
        let Some(details) = details.and_then(|details| details.clone()) else {
            return true;
        };
        ground.errors().is_none_or(|errors| {
            errors.is_ready(
                jni,
                &ground.jvmti,
                details.throw,
                &ground.core.throw_points.methods,
            )
        })
    }
}

impl<'a> CallingThread for SampledThread<'_, 'a> {
    type Place = Place<'a>;

    fn uptime_ms(&self) -> u64 {
        self.due.recognizer.ground.uptime_ms()
    }

    fn is_stopping(&self) -> bool {
        self.due.recognizer.ground.stopping()
    }

    fn cpu_time(&mut self) -> Duration {
        thread_cpu_time()
    }

    fn is_virtual(&mut self) -> bool {
        let thread = self.event.thread.as_ref();
        thread.is_some_and(|thread| thread.is_virtual())
    }

    fn judge(&mut self, level: Level, needs_entrance: bool) -> Result<Place<'a>, Barred> {
        let Due {
            recognizer, side, ..
        } = *self.due;
        let Level { payer, above, .. } = level;
        let (judged, is_event_loop) =
            stack_judge::judge(recognizer, side, payer, above, needs_entrance, self.event);
        self.is_event_loop = is_event_loop;
        let place = judged.map_err(|blocked| {
            note_barring(recognizer.ground, level, &blocked);
            blocked.barred
        })?;
        if !self.error_is_ready(level) {
            recognizer.ground.metadata_thread.wake();
            return Err(Barred {
                reason: Reason::Unresolved,
                passing: true,
            });
        }
        Ok(place)
    }

    fn is_event_loop(&mut self) -> bool {
        self.is_event_loop
    }

    fn record(&self) -> Option<ObjectTag> {
        self.due.record
    }

    fn let_in(&mut self) -> LetIn {
        let ground = self.due.recognizer.ground;
        let bridge = ground.bridge().filter(|bridge| bridge.sees_scopes());
        bridge
            .zip(self.event.thread.as_ref())
            .map_or(LetIn::No, |(bridge, thread)| {
                bridge.thread_scopes().let_in(thread)
            })
    }

    fn is_masked(&mut self) -> bool {
        let ground = self.due.recognizer.ground;
        if !ground.core.identity.scopes.in_use().0 {
            return false;
        }
        let thread = self.event.thread.as_ref();
        ground.bridge().is_some_and(|bridge| {
            bridge.sees_scopes()
                && thread.is_some_and(|thread| bridge.thread_scopes().is_masked(thread))
        })
    }

    fn grace(&mut self) -> Grace {
        GRACE.try_with(Cell::get).unwrap_or_default()
    }

    fn remember(&mut self, grace: Grace) {
        let _ = GRACE.try_with(|cell| cell.set(grace));
    }

    fn note_refusal(&mut self, details: &Arc<RefusalDetails>, place: Place<'a>) {
        let ground = self.due.recognizer.ground;
        // While the queue of the log is full, a refusal is only counted.
        if ground.references.refused.is_full() {
            return;
        }
        self.noted = Some(Refused {
            details: details.clone(),
            thrown: false,
            requested_bytes: self.event.size_bytes,
            frame: OwnFrame::keep(&ground.jvmti, place.frame),
            thread: self.event.thread.as_ref().and_then(|thread| thread.weak()),
        });
    }

    fn place_key(&self, place: Place<'a>) -> PlaceKey {
        let number = |frame: Frame<'_>| frame.method().key() as u64;
        PlaceKey {
            frame: number(place.frame),
            entry: number(place.entry),
            unit: place.unit.map(number),
            is_request: place.work == Work::Request,
        }
    }

    fn name_place(&mut self, counts: &Arc<PlaceCounts>, slot: u32, place: Place<'a>) -> bool {
        let ground = self.due.recognizer.ground;
        let queue = &ground.references.new_places;
        if queue.is_full() {
            return false;
        }
        let held = |frame: Frame<'_>| frame.hold(&ground.jvmti);
        let unit = place.unit.map(held);
        let (Some(frame), Some(entry)) = (held(place.frame), held(place.entry)) else {
            return false;
        };
        // There was no memory for the unit's method.
        if matches!(unit, Some(None)) {
            return false;
        }
        let new = UnnamedPlace {
            counts: counts.clone(),
            slot,
            frame,
            entry,
            unit: unit.flatten(),
            work: place.work,
            passes_on: place.passes_on,
            is_named_by_policy: place.is_named_by_policy,
        };
        queue.push(new).is_ok()
    }

    fn throw(&mut self, details: &RefusalDetails) -> bool {
        let Recognizer { ground, jni } = self.due.recognizer;
        let account = details.name.downcast_ref::<Global<JavaString>>();
        let (Some(errors), Some(account)) = (ground.errors(), account) else {
            return false;
        };
        let figures = Figures {
            account,
            live_bytes: details.live_bytes,
            limit_bytes: details.limit_bytes,
            standard_error_bytes: details.standard_error_bytes,
            requested_bytes: self.event.size_bytes,
        };
        let methods = &ground.core.throw_points.methods;
        errors.throw(jni, &ground.jvmti, details.throw, methods, &figures)
    }

    fn log_refusal(&mut self, thrown: bool) {
        if let Some(noted) = self.noted.take() {
            let _ =
                (self.due.recognizer.ground.references.refused).push(Refused { thrown, ..noted });
        }
    }
}

/// Keeps the frame that barred a refusal, if the enforcer asks for it.
fn note_barring(ground: &Ground, level: Level, blocked: &Blocked<'_>) {
    if let (Some(frame), false) = (blocked.frame, blocked.barred.passing)
        && ground.core.enforcement.gates.takes_frame(level.account)
    {
        let _ = ground.references.barring.push(Barring {
            gate: level.account,
            reason: blocked.barred.reason,
            frame: OwnFrame::keep(&ground.jvmti, frame),
        });
    }
}
