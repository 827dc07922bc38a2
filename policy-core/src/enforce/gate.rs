//! Gates: what an allocating thread sees of its account's limit.
//!
//! Each account with a limit has one gate; its number is that of the purse that represents the
//! account. Only the enforcer writes the word and the marks. Allocating threads add their charges
//! and count refusals. All of it is lock-free.
//!
//! # Rules
//! 1. `spent` is the sum of all charges since the gate was made; it only grows. The marks use the
//!    same scale: the enforcer reads `spent`, *then* the account's charge, and puts
//!    the mark at `spent + (mark − charged)`. A thread charges the purse before the gate, with
//!    Release, so every charge in the `spent` that the enforcer read is in the `charged` that it
//!    reads after it. A race makes the mark too low, by what was charged in between, and never
//!    too high (model: `a_mark_is_never_too_high`). Nothing is counted twice and nothing is lost.
//! 2. A thread that takes `spent` across the trip wakes the enforcer, one thread per crossing. The
//!    enforcer sets a new mark and then reads `spent` again, by a read-modify-write: either the
//!    thread's addition comes first, and the enforcer sees that the new mark is crossed already,
//!    or it comes after, and the thread sees the new mark. So no crossing is overlooked
//!    (model: `a_crossing_is_seen_by_one_of_the_two`).
//! 3. If the account is over its limit, the charge is *due*: its thread judges its own stack, and is refused, or goes
//!    on and is counted. Beyond the stop it is due too, but in duress alone: its thread waits for the verdict. Below
//!    its limit, and while the heap has room, an account has no due charge.
//! 4. When a pause ends, `spent` of the watched gates is noted with the epoch that begins
//!    ([`Gates::begin`]), inside the pause. So the difference of two notes is exactly what was
//!    charged in the epochs between. A gate has a ring of `NOTES` notes. The reader reads a note's
//!    epoch before and after its value, and drops a note that was written meanwhile (model:
//!    `a_note_is_whole`).
//! 5. The word carries a serial number, and every new word changes it. It limits how long a thread
//!    may wait for one word. A waiting thread polls the word; a verdict stays in it until the
//!    enforcer writes another (model: `a_waiting_thread_sees_the_verdict`).
//! 6. A gate gets another account after a reload, or when its purse ends. A verdict about one
//!    account must not hit the threads of another. So the enforcer first closes the gate
//!    ([`Gate::close`]), then publishes which purse has which gate, then sets a new word. A thread
//!    that is about to refuse reads the word, *then* whether the gate is still its own. If the word
//!    was about another account, the thread finds that the gate is not its own (model:
//!    `a_verdict_hits_its_own_account`).
//! 7. What masked threads and graces let through is counted until the account has recovered. A charge
//!    is let through only if the sum stays within its bound: a read-modify-write, so no two threads
//!    get the same bytes (model: `graces_together_stay_within_their_bound`).
//! 8. Counts are taken out with a swap: none is lost or counted twice (model:
//!    `no_count_is_lost`). The counts of a closed gate go to its last account.

use crate::ledger::{Chunks, Epoch};
use crate::sync::{AtomicU32, AtomicU64, Ordering, places};

use super::door::{Answer, Door, ProbeCharges};
use super::grace::{account_grace_bytes, allowance_bytes};

mod word;

use word::SERIAL;
pub use word::{Counts, Due, MAX_REASONS, Passage, Word};

/// One account's gate.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Gate {
    word: AtomicU32,
    spent: AtomicU64,
    trip: AtomicU64,
    stop: AtomicU64,
    limit_bytes: AtomicU64,
    masked_bytes: AtomicU64,
    graced_bytes: AtomicU64,
    /// The bytes that requests which the door let in were charged since the latest covering collection, and the most
    /// that they may be.
    allowed_bytes: AtomicU64,
    most_allowed_bytes: AtomicU64,
    refusals: AtomicU64,
    would_refuse: AtomicU64,
    deferred: [AtomicU64; MAX_REASONS],
    admission_refusals: AtomicU64,
    waited_ms: AtomicU64,
    door: Door,
    /// `spent` when the latest probe was let in.
    probe_begun: AtomicU64,
    /// The bytes that the thread of the latest probe was charged while that was inside.
    probe_own_bytes: AtomicU64,
    /// The bytes of its allowance that the work which was let in as the latest probe has used, on all its threads.
    probe_allowed_bytes: AtomicU64,
    notes: [Note; NOTES],
}

/// `spent` as it was when an epoch began.
#[derive(Debug, Default)]
struct Note {
    /// Epoch + 1; 0 while there is none.
    epoch: AtomicU64,
    spent: AtomicU64,
}

/// How many beginnings of epochs a gate remembers.
#[cfg(not(loom))]
const NOTES: usize = 16;
#[cfg(loom)]
const NOTES: usize = 2;
/// How many gates can be watched.
#[cfg(not(loom))]
const MAX_WATCHED: usize = 64;
#[cfg(loom)]
const MAX_WATCHED: usize = 1;

impl Gate {
    /// The limit of the account at the latest check, in bytes. One load; any thread.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Adds a charge, on the allocating thread, after its purse was charged. `charged_bytes` is the
    /// weight of the sample, `size_bytes` the size of the object. One load if there is no limit.
    pub fn pass(&self, charged_bytes: u64, size_bytes: u64) -> Passage {
        let word = Word::of(self.word.load(Ordering::Acquire));
        if !word.limited {
            return Passage::default();
        }
        let before = self.spent.fetch_add(charged_bytes, Ordering::AcqRel);
        let after = before.wrapping_add(charged_bytes);
        let trip = self.trip.load(Ordering::Acquire);
        let due = if word.over || word.naive {
            Some(Due::Over)
        } else if size_bytes > self.limit_bytes.load(Ordering::Relaxed) {
            Some(Due::Alone)
        } else if word.duress && after > self.stop.load(Ordering::Acquire) {
            Some(Due::Overdrawn)
        } else {
            None
        };
        Passage {
            wake_enforcer: before <= trip && after > trip,
            due,
        }
    }

    /// The limit in bytes; `None` without one; zero if the trip is crossed or the account is over its limit.
    /// For an allocating thread, before the charge.
    pub fn limit_at_rest(&self) -> Option<u64> {
        let (word, _) = self.word();
        if !word.limited {
            return None;
        }
        let is_at_rest = !word.over
            && !word.shut
            && !word.naive
            && self.spent() <= self.trip.load(Ordering::Acquire);
        Some(if is_at_rest {
            self.limit_bytes.load(Ordering::Relaxed)
        } else {
            0
        })
    }

    /// The word as it is now, and its serial number.
    pub fn word(&self) -> (Word, u32) {
        let bits = self.word.load(Ordering::Acquire);
        (Word::of(bits), bits / SERIAL)
    }

    /// Whether a new request must knock.
    pub fn asks(&self) -> bool {
        let (word, _) = self.word();
        word.limited && word.enforced && word.shut
    }

    /// Answers a new request. `lets_go`: its method says that it lets memory go. `now_ms` is the uptime. Counts it if
    /// it is turned away.
    pub fn knock(&self, now_ms: u64, lets_go: bool) -> Answer {
        match self.asks() {
            true => self.probe_or_turn_away(now_ms, lets_go),
            false => Answer::In,
        }
    }

    /// Whether the account is over its limit and refused: at its door, or by errors.
    pub fn refuses(&self) -> bool {
        let (word, _) = self.word();
        word.enforced && (word.over || word.shut)
    }

    /// As [`Gate::knock`], for a program that asks before it takes work on. The account needs no door for
    /// that.
    pub fn ask(&self, now_ms: u64, lets_go: bool) -> Answer {
        match self.refuses() {
            true => self.probe_or_turn_away(now_ms, lets_go),
            false => Answer::In,
        }
    }

    fn probe_or_turn_away(&self, now_ms: u64, lets_go: bool) -> Answer {
        match self.door.knock(now_ms, lets_go) {
            Ok(ticket) => {
                self.probe_begun.store(self.spent(), Ordering::Relaxed);
                self.probe_own_bytes.store(0, Ordering::Relaxed);
                self.probe_allowed_bytes.store(0, Ordering::Relaxed);
                Answer::Probe(ticket)
            }
            Err(wait_ms) => {
                self.admission_refusals.fetch_add(1, Ordering::Relaxed);
                // If a probe is inside, the pause after it comes as well.
                let retry_after_ms = match self.door.is_busy() {
                    true => wait_ms.max(self.probe_charges().least_pause_ms()),
                    false => wait_ms,
                };
                Answer::Away { retry_after_ms }
            }
        }
    }

    /// The thread of the probe that is inside was charged. On that thread.
    pub fn charge_probe(&self, charged_bytes: u64) {
        self.probe_own_bytes
            .fetch_add(charged_bytes, Ordering::Relaxed);
    }

    /// Returns the charges since the latest probe was let in.
    fn probe_charges(&self) -> ProbeCharges {
        let begun = self.probe_begun.load(Ordering::Relaxed);
        ProbeCharges {
            all_bytes: self.spent().wrapping_sub(begun),
            own_bytes: self.probe_own_bytes.load(Ordering::Relaxed),
            limit_bytes: self.limit_bytes(),
        }
    }

    /// The probe with this ticket has ended. Any thread.
    pub fn probe_ended(&self, ticket: u64, now_ms: u64) {
        self.door.end(ticket, now_ms, self.probe_charges());
    }

    /// The same of a probe that goes on elsewhere: what it will be charged is not known. Any thread.
    pub fn probe_begun(&self, ticket: u64, now_ms: u64) {
        let charges = self.probe_charges().of_more();
        self.door.end(ticket, now_ms, charges);
    }

    /// The breaker of the account's door.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Whether the charges so far lie beyond the stop.
    pub fn is_overdrawn(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.stop.load(Ordering::Acquire)
    }

    /// Whether a thread beyond the stop must wait for the verdict, or go on waiting.
    pub fn is_verdict_awaited(&self) -> bool {
        let (word, _) = self.word();
        word.limited && word.duress && !word.over && self.is_overdrawn()
    }

    /// Whether a charge that was due must still be refused: limits may change while its thread waits
    /// or judges its stack.
    pub fn is_still_due(&self, due: Due, size_bytes: u64) -> bool {
        let (word, _) = self.word();
        let is_alone = due == Due::Alone && size_bytes > self.limit_bytes.load(Ordering::Relaxed);
        word.over || word.limited && is_alone
    }

    /// Bytes charged through this gate so far; to be read before the account's charge (rule 1).
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Acquire)
    }

    /// The mark beyond which threads wait, on the scale of `spent`.
    #[cfg(test)]
    pub(crate) fn stop(&self) -> u64 {
        self.stop.load(Ordering::Acquire)
    }

    /// Sets the marks, on the scale of `spent`; true if the trip is crossed already (rule 2).
    /// Only for the enforcer.
    pub fn set_marks(&self, limit_bytes: u64, trip: u64, stop: u64) -> bool {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        self.stop.store(stop, Ordering::Release);
        self.trip.store(trip, Ordering::Release);
        self.spent.fetch_add(0, Ordering::AcqRel) > trip
    }

    /// Sets the word if it differs from the present one. Only for the enforcer.
    pub fn set_word(&self, word: Word) {
        let before = self.word.load(Ordering::Relaxed);
        if Word::of(before) != word {
            self.renew_word(word);
        }
    }

    /// Sets the word with a new serial number, even if it is the same as before. Only for the
    /// enforcer.
    pub fn renew_word(&self, word: Word) {
        let serial = (self.word.load(Ordering::Relaxed) / SERIAL).wrapping_add(1);
        self.word
            .store(serial.wrapping_mul(SERIAL) | word.bits(), Ordering::Release);
    }

    /// Resets the word and the notes before the gate gets another account (rule 6). Only for the
    /// enforcer.
    pub fn close(&self) {
        self.renew_word(Word::default());
        self.door.reset();
        self.forget_masked();
        for note in &self.notes {
            note.epoch.store(0, Ordering::Release);
        }
    }

    /// Notes `spent` as `epoch` begins. Inside the pause: a few stores.
    fn begin(&self, epoch: Epoch) {
        let stored = u64::from(epoch.get()) + 1;
        let note = &self.notes[epoch.get() as usize % NOTES];
        note.epoch.swap(0, Ordering::AcqRel);
        note.spent.store(self.spent(), Ordering::Release);
        note.epoch.store(stored, Ordering::Release);
    }

    /// `spent` as it was when `epoch` began, if the note still exists.
    fn spent_before(&self, epoch: Epoch) -> Option<u64> {
        let stored = u64::from(epoch.get()) + 1;
        let note = &self.notes[epoch.get() as usize % NOTES];
        let before = note.epoch.load(Ordering::Acquire);
        let spent = note.spent.load(Ordering::Acquire);
        let after = note.epoch.load(Ordering::Acquire);
        (before == stored && after == stored).then_some(spent)
    }

    /// Of these bytes, `spent` so far, those charged after the epoch `upto`; `None` if its note is missing.
    pub fn born_after(&self, upto: Epoch, spent: u64) -> Option<u64> {
        let next = Epoch::new(upto.get().saturating_add(1));
        spent.checked_sub(self.spent_before(next)?)
    }

    /// Bytes charged through this gate in the epochs after `from` and up to `upto`; `None` if a note
    /// is missing.
    pub fn born_between(&self, from: Epoch, upto: Epoch) -> Option<u64> {
        let next = |epoch: Epoch| Epoch::new(epoch.get().saturating_add(1));
        (self.spent_before(next(upto))?).checked_sub(self.spent_before(next(from))?)
    }

    /// Takes `charged_bytes` from what masked threads may be charged without a refusal; false if that
    /// is not enough. All masked threads of the account together have `most_bytes` until the account
    /// has recovered. Any thread.
    pub fn spend_masked(&self, charged_bytes: u64, most_bytes: u64) -> bool {
        spend(&self.masked_bytes, charged_bytes, most_bytes)
    }

    /// Takes `charged_bytes` from what the graces of refused threads may let through; false if that is
    /// not enough. All threads of the account together have [`account_grace_bytes`] until the account
    /// has recovered. Any thread.
    pub fn spend_grace(&self, charged_bytes: u64) -> bool {
        let most_bytes = account_grace_bytes(self.limit_bytes.load(Ordering::Relaxed));
        spend(&self.graced_bytes, charged_bytes, most_bytes)
    }

    /// Returns the bytes that one request which the door lets in may be charged before it can be refused. Any thread.
    pub fn allowance_bytes(&self) -> u64 {
        allowance_bytes(self.limit_bytes.load(Ordering::Relaxed))
    }

    /// Takes `charged_bytes` from what all such requests may be charged until the next covering collection; false if
    /// that is not enough. Any thread.
    pub fn spend_allowance(&self, charged_bytes: u64) -> bool {
        let most_bytes = self.most_allowed_bytes.load(Ordering::Relaxed);
        spend(&self.allowed_bytes, charged_bytes, most_bytes)
    }

    /// Takes `charged_bytes` from the allowance of the work that is inside as the probe, on whatever threads; false if
    /// that is not enough. Any thread of it.
    pub fn spend_probes_allowance(&self, charged_bytes: u64) -> bool {
        let most_bytes = self.allowance_bytes();
        spend(&self.probe_allowed_bytes, charged_bytes, most_bytes)
    }

    /// A covering collection has shown what the heap has room for: such requests may be charged `most_bytes` until
    /// the next. Only for the enforcer.
    pub fn set_allowances(&self, most_bytes: u64) {
        self.most_allowed_bytes.store(most_bytes, Ordering::Relaxed);
        self.allowed_bytes.store(0, Ordering::Relaxed);
    }

    /// The account has recovered: masked threads and graces have the full amounts again. Only for the
    /// enforcer.
    pub fn forget_masked(&self) {
        self.masked_bytes.store(0, Ordering::Relaxed);
        self.graced_bytes.store(0, Ordering::Relaxed);
    }

    /// Counts what a thread or a request was made to wait.
    pub fn count_wait(&self, waited_ms: u64) {
        if waited_ms > 0 {
            self.waited_ms.fetch_add(waited_ms, Ordering::Relaxed);
        }
    }

    /// Takes out what [`Gate::count_wait`] has counted.
    pub fn take_waited_ms(&self) -> u64 {
        self.waited_ms.swap(0, Ordering::Relaxed)
    }

    /// Counts a refusal that was thrown.
    pub fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal that would have been thrown in mode `enforce`.
    pub fn count_would_refuse(&self) {
        self.would_refuse.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal that was due but not thrown, by the number of its reason.
    pub fn count_deferred(&self, reason: usize) {
        if let Some(count) = self.deferred.get(reason) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts that are not taken out yet; [`Gate::drain`] may take them at any time.
    pub fn counts(&self) -> Counts {
        Counts {
            refusals: self.refusals.load(Ordering::Relaxed),
            would_refuse: self.would_refuse.load(Ordering::Relaxed),
            deferred: std::array::from_fn(|i| self.deferred[i].load(Ordering::Relaxed)),
            admission_refusals: self.admission_refusals.load(Ordering::Relaxed),
            threads_killed: 0,
            waited_ms: self.waited_ms.load(Ordering::Relaxed),
        }
    }

    /// Takes the counts out (rule 8).
    pub fn drain(&self) -> Counts {
        Counts {
            refusals: self.refusals.swap(0, Ordering::Relaxed),
            would_refuse: self.would_refuse.swap(0, Ordering::Relaxed),
            deferred: std::array::from_fn(|i| self.deferred[i].swap(0, Ordering::Relaxed)),
            admission_refusals: self.admission_refusals.swap(0, Ordering::Relaxed),
            threads_killed: 0,
            waited_ms: self.waited_ms.swap(0, Ordering::Relaxed),
        }
    }
}

/// Adds to what was let through if the sum is within the bound. A charge that does not fit uses nothing
/// up: a smaller one may still fit, and free memory.
fn spend(let_through: &AtomicU64, charged_bytes: u64, most_bytes: u64) -> bool {
    let spare = |before: u64| {
        let sum = before.saturating_add(charged_bytes);
        (sum <= most_bytes).then_some(sum)
    };
    let_through
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spare)
        .is_ok()
}

#[cfg(not(loom))]
const GATES_PER_CHUNK: usize = 64;
#[cfg(loom)]
const GATES_PER_CHUNK: usize = 2;

/// All gates, by the purse that represents the account.
#[derive(Debug)]
pub struct Gates {
    gates: Chunks<Gate, GATES_PER_CHUNK>,
    /// Number + 1 of the gates whose `spent` is noted at each pause; 0 for none.
    watched: [AtomicU32; MAX_WATCHED],
    /// Not 0 while the door of some account is shut.
    asked: AtomicU32,
    /// Number + 1 of the gate of which the frame that bars a refusal is wanted; 0 for none.
    frame_wanted: AtomicU32,
}

impl Gates {
    /// No gates.
    pub fn new() -> Gates {
        Gates {
            gates: Chunks::new(places(1 << u16::BITS)),
            watched: std::array::from_fn(|_| AtomicU32::new(0)),
            asked: AtomicU32::new(0),
            frame_wanted: AtomicU32::new(0),
        }
    }

    /// Asks for the frame that bars a refusal at this gate. Only for the enforcer.
    pub fn want_frame(&self, number: u32) {
        self.frame_wanted.store(number + 1, Ordering::Relaxed);
    }

    /// Whether the calling thread, whose refusal at this gate was barred, shall say by which frame: true
    /// once for each time that it is asked for. One load, if it is not. Any thread.
    pub fn takes_frame(&self, number: u32) -> bool {
        let wanted = number + 1;
        self.frame_wanted.load(Ordering::Relaxed) == wanted
            && (self.frame_wanted)
                .compare_exchange(wanted, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether new requests must knock at their services' doors. One load. Any thread.
    pub fn is_any_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// Sets what [`Gates::is_any_asked`] says. Only for the enforcer.
    pub fn set_any_asked(&self, asked: bool) {
        self.asked.store(u32::from(asked), Ordering::Relaxed);
    }

    /// Notes `spent` of the watched gates as an epoch begins. Inside the pause: atomics only, at most
    /// `MAX_WATCHED` gates.
    pub fn begin(&self, epoch: Epoch) {
        for place in &self.watched {
            let Some(number) = place.load(Ordering::Acquire).checked_sub(1) else {
                return;
            };
            if let Some(gate) = self.gates.get(number) {
                gate.begin(epoch);
            }
        }
    }

    /// Watches these gates from now on, as many as there is room for. Only for the enforcer.
    pub fn watch(&self, gates: impl Iterator<Item = u32>) {
        let numbers = gates.map(|number| number + 1).chain(std::iter::repeat(0));
        for (place, number) in self.watched.iter().zip(numbers) {
            place.store(number, Ordering::Release);
        }
    }

    /// The gate of an account; `None` if it has no limit and was never made. Any thread, lock-free.
    pub fn get(&self, representative: u32) -> Option<&Gate> {
        self.gates.get(representative)
    }

    /// The gate of an account, made if it is missing; `None` without memory. Only for the enforcer.
    pub fn make(&self, representative: u32) -> Option<&Gate> {
        self.gates.get_or_grow(representative)
    }

    /// Closes all gates: nobody is refused any more, and waiting threads go on. To be called when the
    /// enforcer has ended.
    pub fn open_all(&self) {
        self.set_any_asked(false);
        for number in 0..1 << u16::BITS {
            if let Some(gate) = self.gates.get(number) {
                gate.close();
            }
        }
    }

    /// Native memory held, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        self.gates.committed_bytes()
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod models;
