//! Loom models of the lock-free parts. Loom plays every interleaving of their few steps (up to the bound
//! on preemptions), with every value that each load may see.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 cargo test -p policy-core --lib --release models`
//!
//! In every model the first thread writes and the spawned threads read. Loom remembers only the last
//! access of an atomic. A thread that loads an atomic and then stores to it hides an earlier load by
//! another thread, and loom does not play the interleavings between them. Loom runs the first thread
//! first. So spawned readers start after its stores, and loom then moves them before each store in turn.

use loom::thread;
use std::sync::Arc;

use super::classes::{Budget, ClassTable};
use super::purse::Purses;
use super::slab::{Record, Slab};
use super::*;
use crate::sync::AtomicU32;

fn record(size_bytes: u64) -> Record {
    let number = size_bytes as u16;
    Record {
        payer: PurseId::new(number),
        agent_account: PurseId::new(number),
        principal: PurseId::new(number),
        interval: IntervalId::from_bits(number),
        class: size_bytes as u32,
        birth: Epoch::new(size_bytes as u32),
        size_bytes,
        site: SiteId::NONE,
    }
}

/// Takes an index, holds it, gives it back: nobody else may hold it meanwhile.
fn borrow(pool: &IndexPool, owners: &[AtomicU32]) -> bool {
    let Some(index) = pool.pop(0) else {
        return false;
    };
    let owner = &owners[index as usize];
    assert_eq!(owner.swap(1, Ordering::Relaxed), 0, "two owners of {index}");
    owner.store(0, Ordering::Relaxed);
    pool.push(index);
    true
}

fn drain(pool: &IndexPool) -> Vec<u32> {
    let mut left: Vec<u32> = std::iter::from_fn(|| pool.pop(0)).collect();
    left.sort_unstable();
    left
}

#[test]
fn a_pool_has_one_owner_for_an_index_and_loses_none() {
    loom::model(|| {
        let pool = Arc::new(IndexPool::new(2, 1));
        let owners: Arc<[AtomicU32; 2]> = Arc::default();
        let other = {
            let (pool, owners) = (pool.clone(), owners.clone());
            thread::spawn(move || {
                borrow(&pool, &owners[..]);
                borrow(&pool, &owners[..]);
            })
        };
        borrow(&pool, &owners[..]);
        borrow(&pool, &owners[..]);
        other.join().expect("the other thread failed");
        assert_eq!(drain(&pool), [0, 1]);
    });
}

#[test]
fn a_head_that_came_back_is_not_taken_for_the_same() {
    // ABA: one thread has read the top and the one below it; two others take both and
    // give the top back.
    loom::model(|| {
        let pool = Arc::new(IndexPool::new(2, 1));
        let owners: Arc<[AtomicU32; 2]> = Arc::default();
        let first = pool.pop(0).expect("two are free");
        pool.push(first);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (pool, owners) = (pool.clone(), owners.clone());
                thread::spawn(move || borrow(&pool, &owners[..]))
            })
            .collect();
        let one = pool.pop(0);
        let two = pool.pop(0);
        assert!(one.is_none() || one != two);
        for index in [one, two].into_iter().flatten() {
            assert_eq!(owners[index as usize].swap(1, Ordering::Relaxed), 0);
            owners[index as usize].store(0, Ordering::Relaxed);
            pool.push(index);
        }
        for thread in threads {
            thread.join().expect("a thread failed");
        }
        assert_eq!(drain(&pool), [0, 1]);
    });
}

#[test]
fn fresh_indices_are_taken_once() {
    loom::model(|| {
        let pool = Arc::new(IndexPool::new(4, 1));
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.pop(0))
        };
        let mine = pool.pop(0);
        let theirs = other.join().expect("the other thread failed");
        assert!(mine.is_some() && theirs.is_some() && mine != theirs);
        let mut all = drain(&pool);
        all.extend([mine, theirs].into_iter().flatten());
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

#[test]
fn a_reader_sees_whole_records_while_their_place_changes_hands() {
    loom::model(|| {
        let slab = Arc::new(Slab::new(1, 1));
        let tag = slab.insert(0, &record(1)).expect("room");
        let reader = {
            let slab = slab.clone();
            thread::spawn(move || {
                if let Some((seen, read)) = slab.read(0) {
                    let expected = if seen == tag { 1 } else { 2 };
                    assert_eq!(read, record(expected));
                }
            })
        };
        assert_eq!(slab.remove(tag), Some(record(1)));
        let second = slab.insert(0, &record(2)).expect("the place is free");
        reader.join().expect("the reader failed");
        assert_eq!(slab.read(0), Some((second, record(2))));
    });
}

#[test]
fn a_record_is_removed_once_and_a_late_free_spares_the_next() {
    loom::model(|| {
        let slab = Arc::new(Slab::new(1, 1));
        let tag = slab.insert(0, &record(1)).expect("room");
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let slab = slab.clone();
                thread::spawn(move || {
                    let removed = slab.remove(tag);
                    assert!(removed.is_none() || removed == Some(record(1)));
                    let next = removed.and_then(|_| slab.insert(0, &record(2)).ok());
                    (removed.is_some(), next)
                })
            })
            .collect();
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread failed"))
            .collect();
        assert_eq!(ends.iter().filter(|(removed, _)| *removed).count(), 1);
        let next = ends.iter().find_map(|(_, next)| *next);
        let next = next.expect("who removed it inserted again");
        assert_eq!(slab.remove(next), Some(record(2)));
    });
}

#[test]
fn the_amounts_of_a_purse_are_never_negative_and_end_at_zero() {
    loom::model(|| {
        let purses = Arc::new(Purses::new(1));
        let charge = Charge {
            bytes: 10,
            objects: 1 << 16,
            variance: 3,
        };
        let reader = {
            let purses = purses.clone();
            thread::spawn(move || {
                let seen = purses.totals(PurseId::UNACCOUNTED);
                assert!(seen.charged.bytes <= 10 && seen.charged.variance <= 3);
                assert!(seen.charged.objects <= 1 << 16 && seen.allocated_bytes <= 10);
            })
        };
        purses.charge(PurseId::UNACCOUNTED, UNKNOWN_CLASS, &charge);
        purses.refund(PurseId::UNACCOUNTED, &charge);
        reader.join().expect("the reader failed");
        let end = purses.totals(PurseId::UNACCOUNTED);
        assert_eq!(end.charged, Charge::default());
        assert_eq!((end.allocated_bytes, end.allocated_objects), (10, 1));
    });
}

#[test]
fn threads_that_charge_one_purse_lose_nothing() {
    loom::model(|| {
        let purses = Arc::new(Purses::new(1));
        let charge = Charge {
            bytes: 10,
            objects: 1 << 16,
            variance: 3,
        };
        let both = move |purses: &Purses| {
            purses.charge(PurseId::UNACCOUNTED, UNKNOWN_CLASS, &charge);
            purses.refund(PurseId::UNACCOUNTED, &charge);
        };
        let other = {
            let purses = purses.clone();
            thread::spawn(move || both(&purses))
        };
        both(&purses);
        other.join().expect("the other thread failed");
        let end = purses.totals(PurseId::UNACCOUNTED);
        assert_eq!(end.charged, Charge::default());
        assert_eq!((end.allocated_bytes, end.allocated_objects), (20, 2));
    });
}

#[test]
fn allocated_objects_never_go_back_while_the_word_overflows() {
    const OBJECT: u64 = 1 << 16;
    let objects = |objects| Charge {
        objects,
        ..Charge::default()
    };
    // Just below the flip of the top bit up, and just below the one down.
    for (first_steps, expected) in [(1, (1 << 47) + 1), (2, (1 << 48) + 1)] {
        loom::model(move || {
            let purses = Arc::new(Purses::new(1));
            let charge = move |purses: &Purses, amount| {
                purses.charge(PurseId::UNACCOUNTED, UNKNOWN_CLASS, &objects(amount));
            };
            (1..first_steps).for_each(|_| charge(&purses, 1 << 63));
            charge(&purses, (1 << 63) - OBJECT);
            let reader = {
                let purses = purses.clone();
                thread::spawn(move || {
                    let first = purses.totals(PurseId::UNACCOUNTED).allocated_objects;
                    let second = purses.totals(PurseId::UNACCOUNTED).allocated_objects;
                    assert!(first <= second, "{first} then {second}");
                    assert!(second <= expected, "{second} of {expected}");
                })
            };
            charge(&purses, OBJECT);
            charge(&purses, OBJECT);
            reader.join().expect("the reader failed");
            let end = purses.totals(PurseId::UNACCOUNTED).allocated_objects;
            assert_eq!(end, expected);
        });
    }
}

/// A charge of so many bytes.
fn bytes(bytes: u64) -> Charge {
    Charge {
        bytes,
        ..Charge::default()
    }
}

#[test]
fn racing_threads_give_a_class_one_entry() {
    loom::model(|| {
        let table = Arc::new((ClassTable::default(), Budget::new(1 << 20)));
        let other = {
            let table = table.clone();
            thread::spawn(move || {
                table.0.add(1, &bytes(10), &table.1);
                table.0.add(2, &bytes(1), &table.1);
            })
        };
        table.0.add(2, &bytes(2), &table.1);
        table.0.add(1, &bytes(20), &table.1);
        other.join().expect("the other thread failed");
        let mut sums = Vec::new();
        table
            .0
            .for_each(|class, totals| sums.push((class, totals.bytes)));
        sums.sort_unstable();
        assert_eq!(sums, [(1, 30), (2, 3)]);
    });
}

#[test]
fn a_purse_is_recycled_once_and_opened_by_one() {
    loom::model(|| {
        let purses = Arc::new(Purses::new(2));
        let purse = purses.open(0).expect("room");
        let recycler = {
            let purses = purses.clone();
            thread::spawn(move || {
                let closed = purses.close(purse);
                closed.map(|closed| purses.give_back(closed)).is_some()
            })
        };
        let opener = {
            let purses = purses.clone();
            thread::spawn(move || purses.open(0))
        };
        let mine = purses.open(0);
        let theirs = opener.join().expect("the opener failed");
        assert!(recycler.join().expect("the recycler failed"));
        assert!(mine.is_none() || theirs.is_none(), "opened twice");
        let late = purses.open(0);
        let opened = [mine, theirs, late];
        assert_eq!(opened.into_iter().flatten().collect::<Vec<_>>(), [purse]);
        assert!(purses.is_open(purse));
    });
}

#[test]
fn a_purse_that_is_charged_is_not_recycled() {
    loom::model(|| {
        let purses = Arc::new(Purses::new(2));
        let purse = purses.open(0).expect("room");
        let charge = Charge {
            bytes: 10,
            objects: 1 << 16,
            variance: 0,
        };
        purses.charge(purse, UNKNOWN_CLASS, &charge);
        let enforcer = {
            let purses = purses.clone();
            thread::spawn(move || {
                if let Some(closed) = purses.close(purse) {
                    assert_eq!(closed.totals.charged, Charge::default());
                    assert_eq!(closed.totals.allocated_bytes, 10);
                    // The refund is in: the enforcer has seen it.
                    assert_eq!(purses.totals(purse).charged, Charge::default());
                    purses.give_back(closed);
                }
            })
        };
        purses.refund(purse, &charge);
        enforcer.join().expect("the enforcer failed");
        assert_eq!(purses.totals(purse).charged, Charge::default());
    });
}

#[test]
fn a_ledger_refunds_an_object_once_and_is_read_meanwhile() {
    loom::model(|| {
        let ledger = Arc::new(Ledger::new(Capacity {
            records: 1,
            purses: 1,
        }));
        let tag = ledger.charge_to(PurseId::UNACCOUNTED, 64);
        let other = {
            let ledger = ledger.clone();
            thread::spawn(move || ledger.refund(tag))
        };
        let reader = {
            let ledger = ledger.clone();
            thread::spawn(move || {
                let mut seen = 0;
                ledger.scan(|record| {
                    assert_eq!((record.tag, record.size_bytes), (tag, 64));
                    seen += 1;
                });
                assert!(seen <= 1);
            })
        };
        let mine = ledger.refund(tag);
        let theirs = other.join().expect("the other thread failed");
        reader.join().expect("the reader failed");
        assert!(mine != theirs, "refunded twice, or never");
        assert_eq!((ledger.frees_total(), ledger.stale_frees()), (1, 1));
        let totals = ledger.totals(PurseId::UNACCOUNTED);
        assert_eq!(totals.charged, Charge::default());
    });
}

#[test]
fn an_interval_that_is_current_can_be_read() {
    loom::model(|| {
        let intervals = Arc::new(Intervals::new(1000));
        let reader = {
            let intervals = intervals.clone();
            thread::spawn(move || {
                let bytes = intervals.bytes(intervals.current());
                assert!(bytes == 1000 || bytes == 2000, "{bytes}");
            })
        };
        intervals.set(2000).expect("room");
        intervals.set(1000).expect("known");
        reader.join().expect("the reader failed");
        assert_eq!(intervals.bytes(intervals.current()), 1000);
    });
}

#[test]
fn what_is_covered_is_within_the_boundary_and_never_goes_back() {
    loom::model(|| {
        let epochs = Arc::new(Epochs::default());
        let reader = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                let covered = epochs.covered();
                assert!(covered <= epochs.boundary());
                assert!(covered <= epochs.covered());
            })
        };
        // The frees of two collections, while the enforcer confirms the first.
        let frees = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                epochs.old_died(Epoch::new(2));
                epochs.died(Epoch::new(3));
            })
        };
        epochs.old_died(Epoch::new(1));
        if let Some(epoch) = epochs.pending_cover() {
            epochs.confirm_cover(epoch);
        }
        reader.join().expect("the reader failed");
        frees.join().expect("the frees failed");
        assert!(epochs.covered() >= Some(Epoch::new(1)));
        assert_eq!(epochs.pending(), Some(Epoch::new(3)));
    });
}
