//! The path of a charge past the gates of its accounts: it is admitted, waits, is deferred or refused.
//!
//! Runs on the allocating thread, after its sample was charged and tagged. It takes no lock, looks up
//! no name and formats nothing. It is a state machine: [`Admission::step`] does what can be done now
//! and says how long the thread must sleep before the next step. The thread sleeps in native code, so
//! that no collection waits for it, and meanwhile holds nothing of the agent's but its own re-entry
//! latch.
//!
//! ```text
//!            gate: not due ─────────────────────────────────────────────▶ done
//! begin ──▶ due ──grace, masked──────────────────────────────────────────▶ deferred
//!            │
//!            ▼ judge the stack
//!         look up ──not known yet, and one object alone: sleep 1 ms, judge again──▶ …
//!            │ ──barred────────────────────────────────────────────────────▶ deferred
//!            │ ──no unit of work, duress: sleep, by what was charged───────▶ deferred
//!            ▼ safe
//!         verdict ──duress, overdraft used up and no verdict yet: sleep 1 ms──▶ …
//!            │ ──not over────────────────────────────────────────────────▶ admitted
//!            ▼ over, or one object larger than the limit
//!         slowed  ──refused lately: sleep──▶ refuse, if it is still due and the gate still its own
//! ```
//!
//! # Rules
//! 1. The charge counts at every level (the payer's account, and the service's around a scope),
//!    whatever happens at the first. At most one error is thrown.
//! 2. Before a refusal the gate's word is read, *then* whether the gate is still this account's (rule 6
//!    of [`super::gate`]).
//! 3. A thread of an account that is not over its limit waits in duress alone ([`super::duress`]). Waits are bounded
//!    by the thread's [`Grace`]. A virtual thread and an event loop never wait: others need the carrier, or the loop.
//!    One object larger than the whole limit waits until its stack is known, since it does not come again; other
//!    charges go on and are counted, and a later one finds the stack known.
//! 4. In duress a thread that would be refused, but has no unit of work, is slowed and then goes on: at most
//!    [`SLOWEST_MS`] at a charge. It may hold locks of its program, but only where it could also wait for a
//!    verdict. Without duress it just goes on, and is counted. So does one that keeps nothing of what it makes
//!    ([`super::latest_samples`]).
//! 5. The grace of the refusal is remembered before the error is thrown: its handlers allocate. What a shut door has
//!    let in has an allowance of its own ([`super::grace`], rule 10).
//! 6. A deferral is counted where a refusal was due. Beyond the overdraft of an account that is not over, a
//!    thread that cannot wait at its place goes on uncounted: its charges may all be garbage. (On generational
//!    ZGC they pile up until a major collection; thousands were counted for accounts far below their limits.)
//! 7. Where the doors of an account are methods alone, an error is thrown in what has come through one of them, and
//!    elsewhere in duress alone, or for one object larger than the limit: what a policy leaves without a door, such
//!    as `DROP`, is what lets go.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::ledger::PurseId;

use super::TestRefuse;
use super::gate::{Due, Gate};
#[cfg(any(doc, all(test, loom)))]
use super::grace::Grace;
#[cfg(doc)]
use super::grace::SLOWEST_MS;
use super::ports::{Barred, CallingThread, LetIn, Level};
use super::refusal_details::RefusalDetails;
use super::throw_points::Reason;

/// How often a waiting thread looks at the gate.
const LOOK: Duration = Duration::from_millis(1);

/// A charged sample, on its way past the gates.
#[derive(Debug, Clone, Copy)]
pub struct Charged {
    /// The purse that was charged.
    pub payer: PurseId,
    /// The weight of the sample in bytes: so much was charged.
    pub bytes: u64,
    /// The size of the object in bytes.
    pub size_bytes: u64,
}

/// Whether the charge still counts for this account: accounts may have changed meanwhile.
fn is_current(level: &Level, core: &Core) -> bool {
    let now = if level.above {
        core.identity
            .above(level.payer)
            .map(|purse| u32::from(purse.get()))
    } else {
        Some(core.identity.representative(level.payer))
    };
    now == Some(level.account)
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The thread must sleep for so long and then take the next step.
    Sleep(Duration),
    /// The thread goes on.
    Done {
        /// Whether an error is pending.
        refused: bool,
    },
}

/// A charge on its path past the gates. On its allocating thread; see the module.
#[derive(Debug)]
pub struct Admission<P> {
    charged: Charged,
    /// The levels at which it is due, the last one first.
    due: [Option<(Level, Due)>; 2],
    stage: Stage<P>,
    deferred: u8,
}

#[derive(Debug, Clone, Copy)]
enum Stage<P> {
    /// The charge arrives at the next level at which it is due.
    Next,
    /// The thread waits until its stack is known. `serial` is that of the gate's word when the wait began.
    LookUp { serial: u32, wait: Wait },
    /// The thread waits for the verdict, at this safe place.
    Verdict { place: P, serial: u32, wait: Wait },
    /// The thread is slowed. Then it is refused at its place, or goes on for this reason.
    Slowed { then: Result<P, Reason>, wait: Wait },
}

/// A bounded wait.
#[derive(Debug, Clone, Copy)]
struct Wait {
    since_ms: u64,
    longest_ms: u64,
}

impl Wait {
    /// None if it does not wait at all, whatever the clock says: a virtual thread must not look as if it had.
    fn waited_ms(&self, now_ms: u64) -> u64 {
        match self.longest_ms {
            0 => 0,
            _ => now_ms.saturating_sub(self.since_ms),
        }
    }

    fn is_over(&self, now_ms: u64) -> bool {
        self.waited_ms(now_ms) >= self.longest_ms
    }
}

impl<P: Copy> Admission<P> {
    /// Takes a charged sample to its gates; `None` if it is due at none of them. One load if there is
    /// no limit.
    pub fn begin(core: &Core, charged: Charged) -> Option<Admission<P>> {
        let account = core.identity.representative(charged.payer);
        let service = core
            .identity
            .above(charged.payer)
            .map(|purse| u32::from(purse.get()));
        let level = |account, above| Level {
            payer: charged.payer,
            account,
            above,
            outermost: service.unwrap_or(account),
        };
        let own = pass(core, &charged, level(account, false));
        let around = service.and_then(|service| pass(core, &charged, level(service, true)));
        (own.is_some() || around.is_some()).then_some(Admission {
            charged,
            due: [around, own],
            stage: Stage::Next,
            deferred: 0,
        })
    }

    /// The level that the charge is at, and why it is due there.
    #[must_use]
    pub fn level(&self) -> Option<(Level, Due)> {
        self.current()
    }

    /// Whether the charge was found due for the account of this number.
    #[must_use]
    pub fn is_due_at(&self, account: u32) -> bool {
        (self.due.iter().flatten()).any(|(level, _)| level.account == account)
    }

    /// At how many levels a due refusal was deferred so far.
    #[must_use]
    pub fn deferred(&self) -> u8 {
        self.deferred
    }

    /// Whether the thread waits for a verdict.
    #[must_use]
    pub fn awaits_verdict(&self) -> bool {
        matches!(self.stage, Stage::Verdict { .. })
    }

    /// Whether the thread is slowed because it has no unit of work.
    #[must_use]
    pub fn is_spared(&self) -> bool {
        matches!(self.stage, Stage::Slowed { then: Err(_), .. })
    }

    fn current(&self) -> Option<(Level, Due)> {
        self.due.iter().rev().find_map(|due| *due)
    }

    /// Does what can be done now. Must not be called again after [`Step::Done`].
    pub fn step<T: CallingThread<Place = P>>(&mut self, core: &Core, thread: &mut T) -> Step {
        loop {
            let Some((level, due)) = self.current() else {
                return Step::Done { refused: false };
            };
            let Some(gate) = core.enforcement.gates.get(level.account) else {
                self.leave();
                continue;
            };
            let mut at_gate = AtGate {
                core,
                charged: self.charged,
                level,
                gate,
                due,
                thread,
            };
            match at_gate.advance(&mut self.stage) {
                Ok(sleep) => return Step::Sleep(sleep),
                Err(Ended::Admitted) => self.leave(),
                Err(Ended::Deferred(reason)) => {
                    // Before a verdict only a wait was due, and no refusal was deferred (rule 6).
                    if due != Due::Overdrawn || gate.is_still_due(due, self.charged.size_bytes) {
                        gate.count_deferred(reason as usize);
                        self.deferred += 1;
                    }
                    self.leave();
                }
                Err(Ended::Refused) => return Step::Done { refused: true },
            }
        }
    }

    /// On to the next level.
    fn leave(&mut self) {
        self.stage = Stage::Next;
        if let Some(due) = self.due.iter_mut().rev().find(|due| due.is_some()) {
            *due = None;
        }
    }
}

/// How the path ended at one gate.
enum Ended {
    /// The charge is not due there after all.
    Admitted,
    Deferred(Reason),
    Refused,
}

impl From<Reason> for Ended {
    fn from(reason: Reason) -> Ended {
        Ended::Deferred(reason)
    }
}

/// Passes one gate; `Some` if the charge is due there.
fn pass(core: &Core, charged: &Charged, level: Level) -> Option<(Level, Due)> {
    let gate = core.enforcement.gates.get(level.account)?;
    let passage = gate.pass(charged.bytes, charged.size_bytes);
    if passage.wake_enforcer {
        core.enforcer.wake();
    }
    passage.due.map(|due| (level, due))
}

/// A charge at a gate at which it is due.
struct AtGate<'a, T> {
    core: &'a Core,
    charged: Charged,
    level: Level,
    gate: &'a Gate,
    due: Due,
    thread: &'a mut T,
}

impl<T: CallingThread> AtGate<'_, T> {
    /// Does what can be done now; for how long the thread must sleep then, if the path does not end.
    fn advance(&mut self, stage: &mut Stage<T::Place>) -> Result<Duration, Ended> {
        loop {
            *stage = match *stage {
                Stage::Next => {
                    let (word, serial) = self.gate.word();
                    if word.naive {
                        return Err(self.throw_naively()?);
                    }
                    self.check_grace()?;
                    let longest_ms = match word.enforced && self.due == Due::Alone {
                        true => self.thread.grace().may_find_out_ms(serial),
                        false => 0,
                    };
                    let wait = self.wait(longest_ms);
                    Stage::LookUp { serial, wait }
                }
                Stage::LookUp { serial, wait } => {
                    let now_ms = self.thread.uptime_ms();
                    let found = self.judge();
                    // An event loop is known by the stack that was judged just now.
                    if found.is_err_and(|barred| barred.passing)
                        && !wait.is_over(now_ms)
                        && self.goes_on_waiting()
                        && !self.never_waits()
                    {
                        return Ok(LOOK);
                    }
                    if self.due == Due::Alone {
                        self.has_waited(serial, wait, now_ms);
                    }
                    match found {
                        Ok(place) => self.at_safe_place(place)?,
                        Err(barred) if barred.reason.is_slowed() => self.spare(barred.reason)?,
                        Err(barred) => return Err(barred.reason.into()),
                    }
                }
                Stage::Verdict {
                    place,
                    serial,
                    wait,
                } => {
                    let now_ms = self.thread.uptime_ms();
                    if !wait.is_over(now_ms)
                        && self.gate.is_verdict_awaited()
                        && self.goes_on_waiting()
                    {
                        return Ok(LOOK);
                    }
                    self.has_waited(serial, wait, now_ms);
                    if !self.gate.word().0.over {
                        return Err(Ended::Admitted);
                    }
                    self.decide_refusal(place)?
                }
                Stage::Slowed { then, wait } => {
                    let now_ms = self.thread.uptime_ms();
                    if !wait.is_over(now_ms) && self.goes_on_waiting() {
                        let left_ms = wait.longest_ms - wait.waited_ms(now_ms);
                        return Ok(Duration::from_millis(left_ms));
                    }
                    self.gate.count_wait(wait.waited_ms(now_ms));
                    return Err(self.refuse(then?)?);
                }
            };
        }
    }

    /// Judges the stack. Where an account has doors at methods alone, what has not come through them is left alone
    /// (rule 7): it may be what lets go.
    fn judge(&mut self) -> Result<T::Place, Barred> {
        let details = self.core.enforcement.details.get(self.level.account);
        let needs_entrance = self.due == Due::Over
            && !self.gate.word().0.duress
            && details.is_some_and(|details| {
                (details.as_deref()).is_some_and(|details| details.method_doors.are_the_only_ones)
            });
        self.thread.judge(self.level, needs_entrance)
    }

    /// Slows a thread that has no unit of work, by what it was charged.
    fn spare(&mut self, reason: Reason) -> Result<Stage<T::Place>, Reason> {
        if self.due == Due::Overdrawn {
            self.core.enforcer.wake();
        }
        let is_due = self.gate.is_still_due(self.due, self.charged.size_bytes)
            || self.gate.is_verdict_awaited();
        let word = self.gate.word().0;
        if !is_due || !word.duress || self.is_storm() || self.never_waits() {
            return Err(reason);
        }
        let mut grace = self.thread.grace();
        if let Some(record) = self.thread.record() {
            let ledger = &self.core.ledger;
            let epochs = (ledger.epochs().boundary(), ledger.epochs().current());
            let (latest, account) = (&mut grace.latest_samples, self.level.account);
            if latest.keeps_nothing(account, record, epochs, |record| ledger.is_live(record)) {
                self.thread.remember(grace);
                return Err(reason);
            }
        }
        let slowed_ms = grace.slowed_without_unit_ms(self.charged.bytes);
        self.thread.remember(grace);
        if slowed_ms == 0 {
            return Err(reason);
        }
        let wait = self.wait(slowed_ms);
        Ok(Stage::Slowed {
            then: Err(reason),
            wait,
        })
    }

    fn is_storm(&self) -> bool {
        self.core.test_refuse == Some(TestRefuse::Storm)
    }

    /// The next stage at a safe place.
    fn at_safe_place(&mut self, place: T::Place) -> Result<Stage<T::Place>, Ended> {
        if self.due != Due::Overdrawn {
            return self.decide_refusal(place);
        }
        if self.never_waits() {
            return Err(Ended::Admitted);
        }
        let (_, serial) = self.gate.word();
        let longest_ms = self.thread.grace().may_wait_ms(serial, self.charged.bytes);
        self.core.enforcer.wake();
        let wait = self.wait(longest_ms);
        Ok(Stage::Verdict {
            place,
            serial,
            wait,
        })
    }

    /// Slows a thread that was refused lately.
    fn decide_refusal(&mut self, place: T::Place) -> Result<Stage<T::Place>, Ended> {
        if !self.gate.is_still_due(self.due, self.charged.size_bytes) {
            return Err(Ended::Admitted);
        }
        // Before the thread is slowed: without the details nothing can be thrown.
        self.details()?;
        let mut wait = self.wait(0);
        if self.gate.word().0.enforced && !self.is_storm() {
            let grace = self.thread.grace();
            wait.longest_ms = grace.slowed_ms(self.level.outermost, wait.since_ms);
            if wait.longest_ms > 0 && self.never_waits() {
                wait.longest_ms = 0;
            }
        }
        let then = Ok(place);
        Ok(Stage::Slowed { then, wait })
    }

    /// Refuses, if that is still due and the gate still this account's.
    fn refuse(&mut self, place: T::Place) -> Result<Ended, Reason> {
        // Limits, mode and accounts may have changed meanwhile, and the gate may have another
        // account: the word first (rule 2).
        let (word, _) = self.gate.word();
        if !self.gate.is_still_due(self.due, self.charged.size_bytes)
            || !is_current(&self.level, self.core)
        {
            return Ok(Ended::Admitted);
        }
        let details = self.details()?;
        let mut grace = self.thread.grace();
        grace.refused(self.level.outermost, self.thread.uptime_ms());
        self.thread.remember(grace);
        self.thread.note_refusal(&details, place);
        let slot = self.find_slot(&details, place);
        let thrown = word.enforced && self.thread.throw(&details);
        if thrown {
            self.gate.count_refusal();
            grace.thrown(self.thread.cpu_time());
            self.thread.remember(grace);
        } else if !word.enforced {
            self.gate.count_would_refuse();
        }
        if thrown || !word.enforced {
            details.places.count(slot);
        }
        self.thread.log_refusal(thrown);
        Ok(if thrown {
            Ended::Refused
        } else {
            Ended::Admitted
        })
    }

    /// The slot at which a refusal at this place is counted. Before the throw, because methods are handed over
    /// by calls that JNI forbids while an error is pending.
    fn find_slot(&mut self, details: &RefusalDetails, place: T::Place) -> Option<u32> {
        let slot = details.places.slot(self.thread.place_key(place))?;
        if details.places.takes_over_naming(slot)
            && !self.thread.name_place(&details.places, slot, place)
        {
            details.places.gives_up_naming(slot);
        }
        Some(slot)
    }

    /// For tests only: throws at any sample, wherever its thread is.
    fn throw_naively(&mut self) -> Result<Ended, Reason> {
        let details = self.details()?;
        if self.thread.throw(&details) {
            self.gate.count_refusal();
            return Ok(Ended::Refused);
        }
        Ok(Ended::Admitted)
    }

    /// Fails with a reason if the thread may go on by its grace or its mask.
    fn check_grace(&mut self) -> Result<(), Reason> {
        let mut grace = self.thread.grace();
        let now_ms = self.thread.uptime_ms();
        let Charged {
            bytes, size_bytes, ..
        } = self.charged;
        let thread = &mut *self.thread;
        let spend = || self.due != Due::Over || self.gate.spend_grace(bytes);
        if grace.echoes(|| thread.cpu_time(), size_bytes, bytes, spend)
            || !self.is_storm() && grace.spend(self.level.outermost, now_ms, bytes) && spend()
        {
            self.thread.remember(grace);
            return Err(Reason::Grace);
        }
        if self.due == Due::Over && self.has_allowance(bytes) {
            return Err(Reason::Grace);
        }
        if self.thread.is_masked()
            && self
                .gate
                .spend_masked(bytes, self.core.enforcement.mask_bytes())
        {
            return Err(Reason::Masked);
        }
        Ok(())
    }

    /// Takes `bytes` from the allowance of what a shut door has let in, if the thread runs that and so much is left.
    fn has_allowance(&mut self, bytes: u64) -> bool {
        match self.thread.let_in() {
            LetIn::No => false,
            LetIn::OnThread => {
                let mut grace = self.thread.grace();
                let allows = grace.allows(self.level.outermost, bytes, self.gate.allowance_bytes())
                    && self.gate.spend_allowance(bytes);
                if allows {
                    self.thread.remember(grace);
                }
                allows
            }
            LetIn::Work(mark) => {
                let inside = self.core.gate_of_work(self.charged.payer, mark);
                // The probe's own first: what does not fit there takes nothing from the others.
                inside.is_some_and(|inside| inside.spend_probes_allowance(bytes))
                    && self.gate.spend_allowance(bytes)
            }
        }
    }

    fn goes_on_waiting(&self) -> bool {
        is_current(&self.level, self.core) && !self.thread.is_stopping()
    }

    fn wait(&mut self, longest_ms: u64) -> Wait {
        Wait {
            since_ms: self.thread.uptime_ms(),
            longest_ms,
        }
    }

    fn has_waited(&mut self, serial: u32, wait: Wait, now_ms: u64) {
        let waited_ms = wait.waited_ms(now_ms);
        self.gate.count_wait(waited_ms);
        let mut grace = self.thread.grace();
        grace.waited(serial, waited_ms);
        self.thread.remember(grace);
    }

    /// Whether the thread is never held: it is a virtual one, on a carrier that others need, or an event loop.
    fn never_waits(&mut self) -> bool {
        self.thread.is_virtual() || self.thread.is_event_loop()
    }

    /// Returns the content of the refusal, as the enforcer published it last; if it has not yet, wakes the enforcer.
    fn details(&self) -> Result<Arc<RefusalDetails>, Reason> {
        let details = self.core.enforcement.details.get(self.level.account);
        details.and_then(|details| details.clone()).ok_or_else(|| {
            // They are not written yet: wake the enforcer.
            self.core.enforcer.wake();
            Reason::Unresolved
        })
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
