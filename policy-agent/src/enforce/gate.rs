//! Gates: what an allocating thread sees of its account's limit.
//!
//! One gate an account that has a limit, found by the number of the purse that represents
//! the account. The warden alone writes the word and the marks; allocating threads add what
//! they are charged and count what became of it.
//!
//! # Rules
//! 1. `spent` is the sum of all charges since the gate was made; it only grows. The marks lie
//!    on the same scale: the warden reads `spent`, *then* what the account is charged, and puts
//!    the mark at `spent + (mark − charged)`. A thread charges the purse before the gate, with
//!    Release, so every charge in the `spent` that the warden read is in the `charged` that it
//!    reads after it: a race makes the mark too low, by what was charged between, and never
//!    too high. Nothing is counted twice and nothing lost.
//! 2. A thread that takes `spent` across the trip rings the warden; one a crossing. The warden
//!    sets a new mark and then reads `spent` again, by a read-modify-write: either the
//!    thread's addition comes first, and the warden sees that the new mark is crossed already,
//!    or it comes after, and the thread sees the new mark. So no crossing is overlooked
//!    (model: `a_crossing_is_seen_by_one_of_the_two`).
//! 3. Beyond the stop, or in an account that is over, the charge is *due*: its thread judges
//!    its own stack, and is refused, waits, or goes on and is counted.
//! 4. At the end of a pause `spent` of the watched gates is noted with the epoch that begins
//!    ([`Gates::begin`]), in the pause itself: what was born in an epoch is the difference of
//!    two notes, and exact. A ring of [`NOTES`] notes; the reader looks at a note's epoch
//!    before and after its value and takes no note that was written meanwhile.
//! 5. The word carries a serial number that every new word changes: how long a thread may
//!    wait is reckoned by it. Who waits reads the word again and again; a verdict stays in it
//!    until the warden has another (model: `a_waiting_thread_sees_the_verdict`).
//! 6. A gate changes hands when accounts do: by a reload, or when its purse ends. What it says
//!    of one account must not hit the threads of another. So the warden first closes it
//!    ([`Gate::close`]), then publishes which purse has which gate, then says something new;
//!    and a thread that is to refuse reads the word, *then* whether the gate is still its own.
//!    If it read a word about another account, it finds the gate to be another's (model:
//!    `a_verdict_hits_its_own_account`).
//! 7. Counts are taken out with a swap: none is lost or counted twice (model:
//!    `no_count_is_lost`). Those of a closed gate go to whom it was last.

use crate::ledger::{Chunks, Epoch};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const LIMITED: u32 = 1;
const OVER: u32 = 2;
const ENFORCED: u32 = 4;
const NAIVE: u32 = 8;
const SERIAL: u32 = 16;

/// Deferrals are counted by reason; there are fewer reasons than this.
#[cfg(not(loom))]
pub(crate) const MOST_REASONS: usize = 32;
/// Few, because loom tracks each.
#[cfg(loom)]
pub(crate) const MOST_REASONS: usize = 2;

/// What a gate says, without its serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Word {
    /// There is a limit.
    pub(crate) limited: bool,
    /// The account is convicted.
    pub(crate) over: bool,
    /// What is due is thrown, or waits; otherwise it is only counted.
    pub(crate) enforced: bool,
    /// For tests only: thrown at any sample, wherever it is.
    pub(crate) naive: bool,
}

impl Word {
    fn bits(self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        bit(self.limited, LIMITED)
            | bit(self.over, OVER)
            | bit(self.enforced, ENFORCED)
            | bit(self.naive, NAIVE)
    }

    fn of(bits: u32) -> Word {
        Word {
            limited: bits & LIMITED != 0,
            over: bits & OVER != 0,
            enforced: bits & ENFORCED != 0,
            naive: bits & NAIVE != 0,
        }
    }
}

/// Why a charge is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The account is over its limit.
    Over,
    /// A single object is larger than the whole limit.
    Alone,
    /// The overdraft is used up and the verdict is awaited.
    Overdrawn,
}

/// What a charge met at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passage {
    /// This charge crossed the trip: the warden is to be woken.
    pub(crate) ring: bool,
    /// The account is near its limit.
    pub(crate) near: bool,
    pub(crate) due: Option<Due>,
}

/// What became of charges that were due, taken out of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) refusals: u64,
    pub(crate) would_refuse: u64,
    pub(crate) deferred: [u64; MOST_REASONS],
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        self.refusals += other.refusals;
        self.would_refuse += other.would_refuse;
        for (sum, more) in self.deferred.iter_mut().zip(other.deferred) {
            *sum += more;
        }
    }

    /// Charges that were due, whatever became of them.
    pub(crate) fn due(&self) -> u64 {
        self.refusals + self.would_refuse + self.deferred.iter().sum::<u64>()
    }
}

/// One account's gate.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Gate {
    word: AtomicU32,
    spent: AtomicU64,
    near: AtomicU64,
    trip: AtomicU64,
    stop: AtomicU64,
    limit_bytes: AtomicU64,
    masked_bytes: AtomicU64,
    refusals: AtomicU64,
    would_refuse: AtomicU64,
    deferred: [AtomicU64; MOST_REASONS],
    notes: [Note; NOTES],
}

/// What had been spent when an epoch began.
#[derive(Debug, Default)]
struct Note {
    /// Epoch + 1; 0 while there is none.
    epoch: AtomicU64,
    spent: AtomicU64,
}

/// Beginnings of epochs that a gate remembers.
#[cfg(not(loom))]
const NOTES: usize = 16;
#[cfg(loom)]
const NOTES: usize = 2;
/// Gates that are watched at the most.
#[cfg(not(loom))]
const MOST_WATCHED: usize = 64;
#[cfg(loom)]
const MOST_WATCHED: usize = 1;

impl Gate {
    /// On the allocating thread, after its purse was charged: `charged_bytes` is the weight,
    /// `size_bytes` the object itself. One load where there is no limit.
    pub(crate) fn pass(&self, charged_bytes: u64, size_bytes: u64) -> Passage {
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
        } else if after > self.stop.load(Ordering::Acquire) {
            Some(Due::Overdrawn)
        } else {
            None
        };
        Passage {
            ring: before <= trip && after > trip,
            near: after > self.near.load(Ordering::Relaxed),
            due,
        }
    }

    /// The limit, and `None` without one; zero from when somebody looks whether the account is over
    /// it. For an allocating thread, before the charge.
    pub(crate) fn limit_at_rest(&self) -> Option<u64> {
        let (word, _) = self.word();
        if !word.limited {
            return None;
        }
        let is_at_rest =
            !word.over && !word.naive && self.spent() <= self.trip.load(Ordering::Acquire);
        Some(if is_at_rest {
            self.limit_bytes.load(Ordering::Relaxed)
        } else {
            0
        })
    }

    /// The word as it is now, and its serial number.
    pub(crate) fn word(&self) -> (Word, u32) {
        let bits = self.word.load(Ordering::Acquire);
        (Word::of(bits), bits / SERIAL)
    }

    /// Whether what was charged so far lies beyond the stop.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.stop.load(Ordering::Acquire)
    }

    /// Whether a thread that has used up the overdraft is to wait (on) for the verdict.
    pub(crate) fn is_verdict_awaited(&self) -> bool {
        let (word, _) = self.word();
        word.limited && word.enforced && !word.over && self.is_overdrawn()
    }

    /// Whether what was due is still to be refused: limits change while a thread waits or looks
    /// at its stack.
    pub(crate) fn is_still_due(&self, due: Due, size_bytes: u64) -> bool {
        let (word, _) = self.word();
        let is_alone = due == Due::Alone && size_bytes > self.limit_bytes.load(Ordering::Relaxed);
        word.over || word.limited && is_alone
    }

    /// What was charged through this gate so far; read before the account's charge (rule 1).
    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Acquire)
    }

    /// Sets the marks, on the scale of `spent`; true if the trip is crossed already (rule 2).
    /// The warden alone.
    pub(crate) fn set_marks(&self, limit_bytes: u64, trip: u64, stop: u64) -> bool {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        // Near: from half of the limit before the trip.
        (self.near).store(trip.saturating_sub(limit_bytes / 2), Ordering::Relaxed);
        self.stop.store(stop, Ordering::Release);
        self.trip.store(trip, Ordering::Release);
        self.spent.fetch_add(0, Ordering::AcqRel) > trip
    }

    /// Says something new; the warden alone.
    pub(crate) fn say(&self, word: Word) {
        let before = self.word.load(Ordering::Relaxed);
        if Word::of(before) != word {
            self.say_anew(word);
        }
    }

    /// The same, though it may be what was said before: whoever waits looks again.
    pub(crate) fn say_anew(&self, word: Word) {
        let serial = (self.word.load(Ordering::Relaxed) / SERIAL).wrapping_add(1);
        self.word
            .store(serial.wrapping_mul(SERIAL) | word.bits(), Ordering::Release);
    }

    /// It changes hands: nothing that was said or noted here counts for who has it next. The
    /// warden alone.
    pub(crate) fn close(&self) {
        self.say_anew(Word::default());
        self.forget_masked();
        for note in &self.notes {
            note.epoch.store(0, Ordering::Release);
        }
    }

    /// Notes what is spent as `epoch` begins. Inside the pause: a few stores.
    fn begin(&self, epoch: Epoch) {
        let stored = u64::from(epoch.get()) + 1;
        let note = &self.notes[epoch.get() as usize % NOTES];
        note.epoch.swap(0, Ordering::AcqRel);
        note.spent.store(self.spent(), Ordering::Release);
        note.epoch.store(stored, Ordering::Release);
    }

    /// What had been spent when `epoch` began, if that is still remembered.
    fn spent_before(&self, epoch: Epoch) -> Option<u64> {
        let stored = u64::from(epoch.get()) + 1;
        let note = &self.notes[epoch.get() as usize % NOTES];
        let before = note.epoch.load(Ordering::Acquire);
        let spent = note.spent.load(Ordering::Acquire);
        let after = note.epoch.load(Ordering::Acquire);
        (before == stored && after == stored).then_some(spent)
    }

    /// What was charged through this gate in the epochs after `from` and up to `upto`; `None`
    /// where that is not remembered.
    pub(crate) fn born_between(&self, from: Epoch, upto: Epoch) -> Option<u64> {
        let next = |epoch: Epoch| Epoch::new(epoch.get().saturating_add(1));
        (self.spent_before(next(upto))?).checked_sub(self.spent_before(next(from))?)
    }

    /// Whether a masked thread may be charged this too without being refused: all masked threads
    /// of the account together have `most_bytes` until it has recovered.
    pub(crate) fn spares(&self, charged_bytes: u64, most_bytes: u64) -> bool {
        let spare = |masked: u64| {
            let sum = masked.saturating_add(charged_bytes);
            (sum <= most_bytes).then_some(sum)
        };
        // What is not spared uses nothing up: smaller ones may still fit, by which memory is let go.
        (self.masked_bytes)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spare)
            .is_ok()
    }

    /// The account has recovered: masked threads have it all again. The warden alone.
    pub(crate) fn forget_masked(&self) {
        self.masked_bytes.store(0, Ordering::Relaxed);
    }

    /// A refusal was thrown.
    pub(crate) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// A refusal would have been thrown.
    pub(crate) fn count_would_refuse(&self) {
        self.would_refuse.fetch_add(1, Ordering::Relaxed);
    }

    /// A refusal was due but not delivered.
    pub(crate) fn count_deferred(&self, reason: usize) {
        if let Some(count) = self.deferred.get(reason) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the counts out.
    pub(crate) fn drain(&self) -> Counts {
        Counts {
            refusals: self.refusals.swap(0, Ordering::Relaxed),
            would_refuse: self.would_refuse.swap(0, Ordering::Relaxed),
            deferred: std::array::from_fn(|i| self.deferred[i].swap(0, Ordering::Relaxed)),
        }
    }
}

#[cfg(not(loom))]
const GATES_PER_CHUNK: usize = 64;
#[cfg(loom)]
const GATES_PER_CHUNK: usize = 2;

/// All gates, by the purse that represents the account.
#[derive(Debug)]
pub(crate) struct Gates {
    gates: Chunks<Gate, GATES_PER_CHUNK>,
    /// Number + 1 of the gates whose `spent` is noted at each pause; 0 for none.
    watched: [AtomicU32; MOST_WATCHED],
}

impl Gates {
    pub(crate) fn new() -> Gates {
        Gates {
            gates: Chunks::new(1 << u16::BITS),
            watched: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// An epoch begins: notes what is spent at the watched gates. Inside the pause; atomics
    /// only, [`MOST_WATCHED`] gates at the most.
    pub(crate) fn begin(&self, epoch: Epoch) {
        for place in &self.watched {
            let Some(number) = place.load(Ordering::Acquire).checked_sub(1) else {
                return;
            };
            if let Some(gate) = self.gates.get(number) {
                gate.begin(epoch);
            }
        }
    }

    /// Watches these gates from now on, as many as there is room for. The warden alone.
    pub(crate) fn watch(&self, gates: impl Iterator<Item = u32>) {
        let numbers = gates.map(|number| number + 1).chain(std::iter::repeat(0));
        for (place, number) in self.watched.iter().zip(numbers) {
            place.store(number, Ordering::Release);
        }
    }

    /// The gate of an account; `None` while no account near it has ever had a limit.
    pub(crate) fn get(&self, representative: u32) -> Option<&Gate> {
        self.gates.get(representative)
    }

    /// The same, made where it is missing: for the warden. `None` without memory.
    pub(crate) fn make(&self, representative: u32) -> Option<&Gate> {
        self.gates.get_or_grow(representative)
    }

    /// Nobody is refused any more, and who waits goes on. For the end of the warden, in its place.
    pub(crate) fn open_all(&self) {
        for number in 0..1 << u16::BITS {
            if let Some(gate) = self.gates.get(number) {
                gate.close();
            }
        }
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.gates.committed_bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const OPEN: Word = Word {
        limited: true,
        over: false,
        enforced: true,
        naive: false,
    };

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let gate = Gate::default();
        assert_eq!(gate.pass(1 << 40, 1 << 40), Passage::default());
        assert_eq!(gate.spent(), 0);
    }

    #[test]
    fn a_limit_is_at_rest_until_the_trip_is_crossed_or_the_account_is_over() {
        let gate = Gate::default();
        assert_eq!(gate.limit_at_rest(), None);
        gate.say(OPEN);
        gate.set_marks(1000, 100, 150);
        assert_eq!(gate.limit_at_rest(), Some(1000));
        gate.pass(100, 8);
        assert_eq!(gate.limit_at_rest(), Some(1000));
        gate.pass(1, 8);
        assert_eq!(gate.limit_at_rest(), Some(0));
        gate.set_marks(1000, 300, 350);
        assert_eq!(gate.limit_at_rest(), Some(1000));
        gate.say(Word { over: true, ..OPEN });
        assert_eq!(gate.limit_at_rest(), Some(0));
    }

    #[test]
    fn masked_threads_share_what_they_are_spared_until_the_account_recovers() {
        let gate = Gate::default();
        assert!(!gate.spares(101, 100), "and it uses nothing up");
        assert!(gate.spares(60, 100) && gate.spares(40, 100));
        assert!(!gate.spares(1, 100) && !gate.spares(1, 100));
        gate.forget_masked();
        assert!(gate.spares(100, 100));
        assert!(gate.spares(u64::MAX, u64::MAX));
    }

    #[test]
    fn one_crossing_rings_once_and_the_stop_makes_due() {
        let gate = Gate::default();
        gate.say(OPEN);
        assert!(!gate.set_marks(1000, 100, 150));
        let near = true;
        let ring = |ring, due| Passage { ring, near, due };
        assert_eq!(gate.pass(100, 8), ring(false, None));
        assert_eq!(gate.pass(1, 8), ring(true, None));
        assert_eq!(gate.pass(49, 8), ring(false, None));
        assert_eq!(gate.pass(1, 8), ring(false, Some(Due::Overdrawn)));
        assert_eq!(gate.pass(1, 1001), ring(false, Some(Due::Alone)));
        gate.say(Word { over: true, ..OPEN });
        assert_eq!(gate.pass(1, 8).due, Some(Due::Over));
        assert!(gate.set_marks(1000, 100, 150));
    }

    #[test]
    fn what_was_born_between_two_pauses_is_exact() {
        let gates = Gates::new();
        let gate = gates.make(5).unwrap();
        gate.say(OPEN);
        gate.set_marks(1 << 40, 1 << 40, 1 << 40);
        gates.watch([5].into_iter());
        let epoch = Epoch::new;
        for (number, charged) in [(1, 100), (2, 30), (3, 7)] {
            gate.pass(charged, 8);
            gates.begin(epoch(number));
        }
        // Born in epoch 1: charged after it began and before epoch 2 did.
        assert_eq!(gate.born_between(epoch(0), epoch(1)), Some(30));
        assert_eq!(gate.born_between(epoch(0), epoch(2)), Some(37));
        assert_eq!(gate.born_between(epoch(0), epoch(3)), None);
        for number in 4..4 + NOTES as u32 {
            gates.begin(epoch(number));
        }
        assert_eq!(gate.born_between(epoch(0), epoch(2)), None);
        gates.watch(std::iter::empty());
        gates.begin(epoch(100));
        assert_eq!(gate.spent_before(epoch(100)), None);
    }

    #[test]
    fn a_new_word_has_a_new_serial() {
        let gate = Gate::default();
        gate.say(OPEN);
        let (word, serial) = gate.word();
        assert_eq!(word, OPEN);
        gate.say(OPEN);
        assert_eq!(gate.word().1, serial);
        gate.say_anew(OPEN);
        assert_ne!(gate.word().1, serial);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    const OPEN: Word = Word {
        limited: true,
        over: false,
        enforced: true,
        naive: false,
    };

    /// Rule 2: of a thread that charges and the warden that sets a mark, one sees the crossing.
    #[test]
    fn a_crossing_is_seen_by_one_of_the_two() {
        loom::model(|| {
            let gate = Arc::new(Gate::default());
            gate.say(OPEN);
            gate.set_marks(1000, 100, 1000);
            let other = {
                let gate = gate.clone();
                thread::spawn(move || gate.pass(30, 1).ring)
            };
            let seen = gate.set_marks(1000, 20, 1000);
            let rung = other.join().unwrap();
            assert!(seen || rung);
        });
    }

    const OVER: Word = Word { over: true, ..OPEN };

    /// Rule 5: whatever is said in between, who waits sees the verdict.
    #[test]
    fn a_waiting_thread_sees_the_verdict() {
        loom::model(|| {
            let gate = Arc::new(Gate::default());
            gate.say(OPEN);
            gate.set_marks(1000, 10, 20);
            gate.pass(30, 1);
            let waiting = {
                let gate = gate.clone();
                thread::spawn(move || {
                    while gate.is_verdict_awaited() {
                        thread::yield_now();
                    }
                    gate.word().0.over
                })
            };
            gate.say_anew(OPEN);
            gate.set_marks(1000, 10, 20);
            gate.say_anew(OVER);
            assert!(waiting.join().unwrap());
        });
    }

    /// Rule 6: two gates, of which the second goes from one account to the other.
    #[test]
    fn a_verdict_hits_its_own_account() {
        loom::model(|| {
            let gates = Arc::new([Gate::default(), Gate::default()]);
            gates[1].say(OVER);
            // The gate of a purse whose account is never over; and of one that may be.
            let gate_of = Arc::new(AtomicU32::new(0));
            let (innocent, its_gate) = (gates.clone(), gate_of.clone());
            let innocent = thread::spawn(move || {
                let number = its_gate.load(Ordering::Acquire);
                let (word, _) = innocent[number as usize].word();
                let is_own = its_gate.load(Ordering::Acquire) == number;
                assert!(!(word.over && is_own), "refused for another");
            });
            // The purse takes over the second gate, from an account that is over ...
            gates[1].close();
            gate_of.store(1, Ordering::Release);
            gates[1].say_anew(OPEN);
            // ... and gives it back to one that is.
            gates[1].close();
            gate_of.store(0, Ordering::Release);
            gates[1].say_anew(OVER);
            innocent.join().unwrap();
        });
    }

    /// Rule 7: counted while others count and two readers take the counts out.
    #[test]
    fn no_count_is_lost() {
        loom::model(|| {
            let gate = Arc::new(Gate::default());
            let counting = {
                let gate = gate.clone();
                thread::spawn(move || {
                    gate.count_refusal();
                    gate.count_deferred(1);
                })
            };
            let reading = {
                let gate = gate.clone();
                thread::spawn(move || gate.drain())
            };
            let mut sum = gate.drain();
            counting.join().unwrap();
            sum.add(&reading.join().unwrap());
            sum.add(&gate.drain());
            assert_eq!((sum.refusals, sum.deferred[1], sum.due()), (1, 1, 2));
        });
    }

    /// Rule 4: a note is read whole or not at all.
    #[test]
    fn a_note_is_whole() {
        loom::model(|| {
            let gate = Arc::new(Gate::default());
            gate.say(OPEN);
            gate.spent.store(10, Ordering::Relaxed);
            gate.begin(Epoch::new(0));
            let other = {
                let gate = gate.clone();
                thread::spawn(move || {
                    gate.spent.store(30, Ordering::Relaxed);
                    // The same place of the ring, later.
                    gate.begin(Epoch::new(NOTES as u32));
                })
            };
            assert!(matches!(gate.spent_before(Epoch::new(0)), Some(10) | None));
            other.join().unwrap();
            assert_eq!(gate.spent_before(Epoch::new(NOTES as u32)), Some(30));
        });
    }

    /// Rule 1: with a purse beside the gate, the mark never lets more through than the room.
    #[test]
    fn a_mark_is_never_too_high() {
        loom::model(|| {
            let gate = Arc::new(Gate::default());
            gate.say(OPEN);
            gate.set_marks(1000, 1000, 1000);
            let purse = Arc::new(AtomicU64::new(0));
            let charging: Vec<_> = (0..2)
                .map(|_| {
                    let (gate, purse) = (gate.clone(), purse.clone());
                    thread::spawn(move || {
                        purse.fetch_add(10, Ordering::Relaxed);
                        gate.pass(10, 1);
                    })
                })
                .collect();
            let spent = gate.spent();
            let charged = purse.load(Ordering::Relaxed);
            assert!(charged >= spent);
            gate.set_marks(1000, spent + (50 - charged), 1000);
            for thread in charging {
                thread.join().unwrap();
            }
            // At the mark the account is charged no more than the 50 that were meant.
            let beyond = purse.load(Ordering::Relaxed) - gate.spent();
            assert_eq!(beyond, 0);
            assert!(gate.trip.load(Ordering::Relaxed) <= 50);
        });
    }
}
