//! Real threads on one ledger: whatever they do, it ends at exactly zero.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ledger;
use crate::ledger::*;
use crate::sampling::Charge;
use crate::sampling::simulation::Rng;

const THREADS: u64 = 8;
const ROUNDS: u64 = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// Every field follows from the size, so that a torn record shows.
fn sample(ledger: &Ledger, purses: &[PurseId], size_bytes: u64) -> Sample {
    let purse = |salt: u64| purses[((size_bytes ^ salt) % purses.len() as u64) as usize];
    Sample {
        payer: purse(0),
        agent_account: purse(5),
        principal: purse(3),
        class: (size_bytes % 1000) as u32,
        size_bytes,
        interval: ledger.intervals().current(),
        site: SiteId::new(size_bytes as u32),
    }
}

fn check_whole(ledger: &Ledger, purses: &[PurseId], record: &LiveRecord) {
    let expected = sample(ledger, purses, record.size_bytes);
    assert_eq!(
        (
            record.payer,
            record.agent_account,
            record.principal,
            record.class
        ),
        (
            expected.payer,
            expected.agent_account,
            expected.principal,
            expected.class
        ),
        "a torn record"
    );
    let is_whole = record.site == expected.site || record.site == SiteId::NONE;
    assert!(is_whole, "another record's site");
    // Meanwhile the site of any record may be erased.
    if record.size_bytes.is_multiple_of(3) {
        ledger.erase_site(record.tag);
    }
}

#[test]
fn millions_of_charges_and_refunds_end_at_exactly_zero() {
    let ledger = ledger(20_000, 16);
    let purses: Vec<PurseId> = std::iter::once(PurseId::UNACCOUNTED)
        .chain((0..10).map(|_| ledger.open_purse().expect("room")))
        .collect();
    // Objects that one thread allocated and another reports freed.
    let exchange: Mutex<Vec<ObjectTag>> = Mutex::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (ledger, purses, exchange) = (&ledger, &purses, &exchange);
                scope.spawn(move || work(ledger, purses, exchange, seed))
            })
            .collect();
        let watcher = scope.spawn(|| watch(&ledger, &purses, &done));
        let dropped: u64 = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker failed"))
            .sum();
        done.store(true, Ordering::Release);
        watcher.join().expect("the watcher failed");
        assert_eq!(ledger.dropped(DropReason::TableFull), dropped);
    });
    let mut records = 0;
    ledger.scan(|_| records += 1);
    assert_eq!(records, 0);
    assert_eq!(ledger.stale_frees(), 0);
    assert_eq!(
        ledger.samples_total(),
        ledger.frees_total()
            + ledger.dropped(DropReason::TableFull)
            + ledger.dropped(DropReason::TagFailed)
    );
    for purse in purses {
        let totals = ledger.totals(purse);
        assert_eq!(totals.charged, Charge::default());
        let mut by_class = 0;
        ledger.allocated_by_class(purse, |_, totals| by_class += totals.bytes);
        assert_eq!(totals.allocated_bytes, by_class);
        assert!(totals.allocated_bytes > 0);
    }
}

/// Charges, refunds, cancels, hands over; frees all it is left with. Returns the drops.
fn work(ledger: &Ledger, purses: &[PurseId], exchange: &Mutex<Vec<ObjectTag>>, seed: u64) -> u64 {
    let mut rng = Rng(seed);
    let mut mine: Vec<ObjectTag> = Vec::new();
    let mut dropped = 0;
    for _ in 0..ROUNDS {
        match rng.below(1000) {
            0..=499 => {
                let size = 8 + rng.below(1 << 22);
                match ledger.charge(&sample(ledger, purses, size)) {
                    Ok(tag) => mine.push(tag),
                    Err(_) => dropped += 1,
                }
            }
            500..=969 if !mine.is_empty() => {
                let tag = mine.swap_remove(rng.below(mine.len() as u64) as usize);
                assert!(ledger.refund(tag));
            }
            970..=979 if !mine.is_empty() => {
                let tag = mine.swap_remove(rng.below(mine.len() as u64) as usize);
                assert!(ledger.cancel(tag));
            }
            980..=998 => {
                let mut shared = exchange.lock().expect("no poison");
                std::mem::swap(&mut *shared, &mut mine);
            }
            999 => {
                ledger.epochs().gc_finished();
                let interval = 1 << rng.below(20);
                ledger.intervals().set(interval).expect("few intervals");
            }
            _ => {}
        }
    }
    mine.append(&mut exchange.lock().expect("no poison"));
    for tag in mine {
        assert!(ledger.refund(tag));
    }
    dropped
}

/// Reads all the while: no torn record, no negative charge, no total that goes back.
fn watch(ledger: &Ledger, purses: &[PurseId], done: &AtomicBool) {
    let mut before = vec![Totals::default(); purses.len()];
    while !done.load(Ordering::Acquire) {
        ledger.scan(|record| check_whole(ledger, purses, record));
        for (purse, before) in purses.iter().zip(&mut before) {
            let totals = ledger.totals(*purse);
            assert!(totals.charged.bytes < 1 << 48, "a negative charge");
            assert!(totals.charged.objects < 1 << 48);
            assert!(totals.charged.variance < 1 << 60);
            assert!(totals.allocated_bytes >= before.allocated_bytes);
            assert!(totals.allocated_objects >= before.allocated_objects);
            *before = totals;
        }
    }
}
