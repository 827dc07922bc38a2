//! Loom models of the gate: what an allocating thread and the enforcer may see of each other.

use super::*;
use loom::thread;
use std::sync::Arc;

/// In duress, so that a thread waits at the stop.
const OPEN: Word = Word {
    duress: true,
    ..Word::OPEN
};

/// Rule 2: of a thread that charges and the enforcer that sets a mark, one sees the crossing.
#[test]
fn a_crossing_is_seen_by_one_of_the_two() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        gate.set_word(OPEN);
        gate.set_marks(1000, 100, 1000);
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.pass(30, 1).wake_enforcer)
        };
        let seen = gate.set_marks(1000, 20, 1000);
        let woken = other.join().unwrap();
        assert!(seen || woken);
    });
}

const OVER: Word = Word { over: true, ..OPEN };

/// Rule 5: whatever the word was in between, a waiting thread sees the verdict.
#[test]
fn a_waiting_thread_sees_the_verdict() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        gate.set_word(OPEN);
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
        gate.renew_word(OPEN);
        gate.set_marks(1000, 10, 20);
        gate.renew_word(OVER);
        assert!(waiting.join().unwrap());
    });
}

/// Rule 6: two gates; the second goes from one account to the other.
#[test]
fn a_verdict_hits_its_own_account() {
    loom::model(|| {
        let gates = Arc::new([Gate::default(), Gate::default()]);
        gates[1].set_word(OVER);
        // The first gate's account is never over; the second's may be.
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
        gates[1].renew_word(OPEN);
        // ... and gives it back to one that is.
        gates[1].close();
        gate_of.store(0, Ordering::Release);
        gates[1].renew_word(OVER);
        innocent.join().unwrap();
    });
}

/// Rule 7: two threads spend what is left for one of them.
#[test]
fn graces_together_stay_within_their_bound() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        gate.set_word(OVER);
        gate.set_marks(1000, 0, 0);
        let bytes = account_grace_bytes(1000) / 2 + 1;
        let other = {
            let gate = gate.clone();
            thread::spawn(move || gate.spend_grace(bytes))
        };
        let own = gate.spend_grace(bytes);
        assert!(own != other.join().unwrap(), "one of the two gets it");
        // The charge that did not fit used nothing up.
        assert!(gate.spend_grace(bytes - 2));
    });
}

/// Rule 8: one thread counts while two readers take the counts out.
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
        gate.set_word(OPEN);
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

/// Rule 1: the mark never lets more through than the account has room for.
#[test]
fn a_mark_is_never_too_high() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        gate.set_word(OPEN);
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
