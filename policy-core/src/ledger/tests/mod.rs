//! The ledger as its users see it; its parts and threads are tested in modules of their own.

mod covering;
mod epochs;
mod parts;
mod purses;
mod stress;

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::sampling::Charge;

/// A ledger with room for that many records and purses.
fn ledger(records: u32, purses: u32) -> Ledger {
    Ledger::new(Capacity { records, purses })
}

/// A sample of the current interval that names `payer` in every role.
fn sample(ledger: &Ledger, payer: PurseId, size_bytes: u64) -> Sample {
    Sample {
        payer,
        agent_account: payer,
        principal: payer,
        class: 1,
        size_bytes,
        interval: ledger.intervals().current(),
        site: SiteId::NONE,
    }
}

/// Returns the charge of each purse, summed up from the records.
fn charged_by_records(ledger: &Ledger) -> HashMap<PurseId, Charge> {
    let mut sums = HashMap::new();
    ledger.scan(|record| *sums.entry(record.payer).or_default() += record.charge);
    sums
}

#[test]
fn a_refund_takes_back_what_was_charged() {
    let ledger = ledger(10, 4);
    let purse = ledger.open_purse().expect("room");
    let tag = ledger
        .charge(&sample(&ledger, purse, 1000))
        .expect("room for a record");
    let charged = ledger.totals(purse).charged;
    assert_eq!(
        charged,
        crate::sampling::charge(1000, ledger.intervals().bytes(ledger.intervals().current()))
    );
    assert!(ledger.refund(tag));
    let totals = ledger.totals(purse);
    assert_eq!(totals.charged, Charge::default());
    assert_eq!(totals.allocated_bytes, charged.bytes);
    assert_eq!(totals.allocated_objects, charged.objects >> 16);
    assert_eq!(ledger.frees_total(), 1);
    assert_eq!(ledger.samples_total(), 1);
}

#[test]
fn a_second_free_of_an_object_is_counted_and_ignored() {
    let ledger = ledger(1, 2);
    let sample = sample(&ledger, PurseId::UNACCOUNTED, 64);
    let first = ledger.charge(&sample).expect("room");
    assert!(ledger.refund(first));
    assert!(!ledger.refund(first));
    // The place has a new owner: the late free must not touch it.
    let second = ledger.charge(&sample).expect("room again");
    assert_eq!(second.index(), first.index());
    assert!(!ledger.refund(first));
    assert_eq!(ledger.stale_frees(), 2);
    assert_eq!(ledger.frees_total(), 1);
    assert_ne!(
        ledger.totals(PurseId::UNACCOUNTED).charged,
        Charge::default()
    );
    assert!(ledger.refund(second));
    assert_eq!(
        ledger.totals(PurseId::UNACCOUNTED).charged,
        Charge::default()
    );
}

#[test]
fn a_free_of_a_tag_never_given_is_ignored() {
    let ledger = ledger(4, 2);
    for index in [0, 3, 4, ObjectTag::INDICES - 1] {
        assert!(!ledger.refund(ObjectTag::new(index, 0).expect("fits")));
    }
    assert_eq!(ledger.stale_frees(), 4);
}

#[test]
fn a_full_table_counts_the_allocation_and_keeps_no_charge() {
    let ledger = ledger(2, 2);
    let sample = sample(&ledger, PurseId::UNACCOUNTED, 1 << 20);
    let kept = ledger.charge(&sample).expect("room");
    ledger.charge(&sample).expect("room");
    let before = ledger.totals(PurseId::UNACCOUNTED);
    let dropped = ledger.charge(&sample).expect_err("the table is full");
    assert_eq!(dropped.reason, DropReason::TableFull);
    assert_eq!(dropped.to_string(), "sample dropped: table_full");
    assert_eq!(ledger.dropped(DropReason::TableFull), 1);
    let after = ledger.totals(PurseId::UNACCOUNTED);
    assert_eq!(after.charged, before.charged);
    assert_eq!(after.allocated_bytes, before.allocated_bytes / 2 * 3);
    assert!(ledger.refund(kept));
    assert!(ledger.charge(&sample).is_ok());
    assert_eq!(ledger.samples_total(), 4);
}

#[test]
fn a_cancelled_charge_stays_allocated_and_counts_as_dropped() {
    let ledger = ledger(2, 2);
    let tag = ledger
        .charge(&sample(&ledger, PurseId::UNACCOUNTED, 96))
        .expect("room");
    assert!(ledger.cancel(tag));
    assert!(!ledger.cancel(tag));
    let totals = ledger.totals(PurseId::UNACCOUNTED);
    assert_eq!(totals.charged, Charge::default());
    assert_ne!(totals.allocated_bytes, 0);
    assert_eq!(ledger.dropped(DropReason::TagFailed), 1);
    assert_eq!(ledger.frees_total(), 0);
}

#[test]
fn a_size_beyond_a_record_is_cut_before_it_is_charged() {
    let ledger = ledger(1, 2);
    ledger.intervals().set(0).expect("exact");
    let tag = ledger
        .charge(&sample(&ledger, PurseId::UNACCOUNTED, u64::MAX))
        .expect("room");
    assert_eq!(
        ledger.totals(PurseId::UNACCOUNTED).charged.bytes,
        MAX_OBJECT_BYTES
    );
    assert!(ledger.refund(tag));
    assert_eq!(
        ledger.totals(PurseId::UNACCOUNTED).charged,
        Charge::default()
    );
}

#[test]
fn a_scan_tells_what_has_survived() {
    let ledger = ledger(8, 2);
    let young = |ledger: &Ledger| {
        let mut young = 0;
        ledger.scan(|record| young += u32::from(!record.survived));
        young
    };
    let charge = |ledger: &Ledger| {
        ledger
            .charge(&sample(ledger, PurseId::UNACCOUNTED, 32))
            .expect("room")
    };
    charge(&ledger);
    assert_eq!(young(&ledger), 1);
    let canary = ledger.epochs().current();
    ledger.epochs().gc_finished();
    charge(&ledger);
    assert_eq!(young(&ledger), 2, "the end of a pause proves nothing");
    ledger.epochs().died(canary);
    assert_eq!(young(&ledger), 2, "frees may still be on their way");
    assert_eq!(ledger.epochs().pending(), Some(canary));
    ledger.epochs().confirm(canary);
    assert_eq!(young(&ledger), 1);
}

#[test]
fn native_memory_follows_the_records() {
    let ledger = ledger(1 << 20, 1 << 16);
    let before = ledger.committed_bytes();
    for _ in 0..100_000 {
        ledger
            .charge(&sample(&ledger, PurseId::UNACCOUNTED, 16))
            .expect("room");
    }
    let per_record = (ledger.committed_bytes() - before) as f64 / 100_000.0;
    assert!((36.0..38.0).contains(&per_record), "{per_record}");
    // Growing ahead spends now what would be spent then.
    assert!(ledger.grow_ahead(100_000, 0));
    let grown = ledger.committed_bytes();
    assert!(grown - before >= 200_000 * 36);
    for _ in 0..100_000 {
        ledger
            .charge(&sample(&ledger, PurseId::UNACCOUNTED, 16))
            .expect("room");
    }
    assert_eq!(ledger.committed_bytes(), grown);
}

#[test]
fn drop_reasons_have_names_of_their_own() {
    let names: std::collections::HashSet<_> =
        DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names.len(), DropReason::ALL.len());
    for (position, reason) in DropReason::ALL.into_iter().enumerate() {
        assert_eq!(
            reason as usize, position,
            "counters are indexed by declaration"
        );
    }
    let ledger = ledger(1, 1);
    ledger.count_dropped(DropReason::NoMemory);
    assert_eq!(ledger.dropped(DropReason::NoMemory), 1);
    assert_eq!(ledger.dropped(DropReason::TableFull), 0);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Charge { purse: usize, size: u64 },
    Refund(prop::sample::Index),
    Cancel(prop::sample::Index),
    FreeAgain(prop::sample::Index),
    SetInterval(u64),
    Pause,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..4, 1u64..1 << 22).prop_map(|(purse, size)| Step::Charge { purse, size }),
        3 => any::<prop::sample::Index>().prop_map(Step::Refund),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => any::<prop::sample::Index>().prop_map(Step::FreeAgain),
        1 => prop_oneof![Just(0u64), 1u64..1 << 20].prop_map(Step::SetInterval),
        1 => Just(Step::Pause),
    ]
}

proptest! {
    #[test]
    fn purses_equal_records_at_every_step_and_end_at_zero(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let ledger = ledger(64, 8);
        let mut purses = vec![PurseId::UNACCOUNTED];
        purses.extend((0..3).map(|_| ledger.open_purse().expect("room")));
        let (mut held, mut freed): (Vec<ObjectTag>, Vec<ObjectTag>) = Default::default();
        let mut allocated = vec![Totals::default(); purses.len()];
        for step in steps {
            match step {
                Step::Charge { purse, size } => {
                    match ledger.charge(&sample(&ledger, purses[purse], size)) {
                        Ok(tag) => held.push(tag),
                        Err(_) => prop_assert_eq!(held.len(), 64),
                    }
                }
                Step::Refund(index) if !held.is_empty() => {
                    let tag = held.swap_remove(index.index(held.len()));
                    prop_assert!(ledger.refund(tag));
                    freed.push(tag);
                }
                Step::Cancel(index) if !held.is_empty() => {
                    let tag = held.swap_remove(index.index(held.len()));
                    prop_assert!(ledger.cancel(tag));
                    freed.push(tag);
                }
                Step::FreeAgain(index) if !freed.is_empty() => {
                    prop_assert!(!ledger.refund(freed[index.index(freed.len())]));
                }
                Step::SetInterval(bytes) => {
                    prop_assert!(ledger.intervals().set(bytes).is_ok());
                }
                Step::Pause => {
                    ledger.epochs().gc_finished();
                }
                _ => {}
            }
            let records = charged_by_records(&ledger);
            for (purse, before) in purses.iter().zip(&mut allocated) {
                let totals = ledger.totals(*purse);
                let expected = records.get(purse).copied().unwrap_or_default();
                prop_assert_eq!(totals.charged, expected);
                prop_assert!(totals.allocated_bytes >= before.allocated_bytes);
                prop_assert!(totals.allocated_objects >= before.allocated_objects);
                *before = totals;
            }
        }
        for tag in held {
            prop_assert!(ledger.refund(tag));
        }
        for purse in purses {
            prop_assert_eq!(ledger.totals(purse).charged, Charge::default());
        }
    }
}
