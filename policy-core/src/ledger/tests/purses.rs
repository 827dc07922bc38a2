//! Purses: their sums, their classes, and their end.

use std::collections::HashMap;

use super::{ledger, sample};
use crate::ledger::classes::{Budget, ClassTable};
use crate::ledger::*;
use crate::sampling::Charge;
use crate::sampling::weight::OBJECT_UNIT;

fn classes(ledger: &Ledger, purse: PurseId) -> HashMap<u32, u64> {
    let mut sums = HashMap::new();
    ledger.allocated_by_class(purse, |class, totals| {
        *sums.entry(class).or_default() += totals.bytes;
    });
    sums
}

/// The size of a class's place.
const SLOT: u64 = 24;

/// A charge of so many bytes, for one object.
fn bytes(bytes: u64) -> Charge {
    Charge {
        bytes,
        objects: OBJECT_UNIT,
        variance: 0,
    }
}

#[test]
fn allocated_bytes_are_kept_by_class() {
    let ledger = ledger(16, 4);
    ledger.intervals().set(0).expect("exact");
    let purse = ledger.open_purse().expect("room");
    for (class, size_bytes) in [(0, 16), (7, 24), (0, 32), (UNKNOWN_CLASS, 8)] {
        let tag = ledger
            .charge(&Sample {
                class,
                ..sample(&ledger, purse, size_bytes)
            })
            .expect("room");
        ledger.refund(tag);
    }
    let expected = HashMap::from([(0, 48), (7, 24), (UNKNOWN_CLASS, 8)]);
    assert_eq!(classes(&ledger, purse), expected);
    assert_eq!(ledger.totals(purse).allocated_bytes, 80);
}

#[test]
fn objects_are_estimated_by_class_as_in_the_totals_of_the_purse() {
    let ledger = ledger(1024, 4);
    ledger.intervals().set(512).expect("an interval");
    let purse = ledger.open_purse().expect("room");
    for _ in 0..1000 {
        let one = sample(&ledger, purse, 16);
        ledger.charge(&Sample { class: 3, ..one }).expect("room");
    }
    let mut objects = 0;
    ledger.allocated_by_class(purse, |_, totals| objects += totals.objects);
    let expected = ledger.totals(purse).allocated_objects;
    // A sample loses less than one in 256 of an object.
    assert!(
        objects.abs_diff(expected) <= 1000 / 256 + 1,
        "{objects} of {expected}"
    );
    assert!(expected > 30_000, "{expected}");
}

fn sums(table: &ClassTable) -> HashMap<u32, u64> {
    let mut sums = HashMap::new();
    table.for_each(|class, totals| {
        let is_new = sums.insert(class, totals.bytes).is_none();
        assert!(is_new, "{class} comes twice");
    });
    sums
}

#[test]
fn more_classes_than_places_lose_their_name_but_no_byte() {
    let (table, budget) = (ClassTable::default(), Budget::new(1 << 20));
    for class in 0..20_000 {
        table.add(class, &bytes(10), &budget);
        table.add(class, &bytes(1), &budget);
    }
    let sums = sums(&table);
    assert_eq!(sums.values().sum::<u64>(), 20_000 * 11);
    // Three tiers of 4,672 slots: nearly all are found places for.
    assert!(sums.len() > 4_600, "{}", sums.len());
    assert!(sums[&UNKNOWN_CLASS] > 0);
    assert_eq!(budget.used_bytes(), (64 + 512 + 4096) * SLOT);
}

#[test]
fn a_few_classes_need_the_small_tier_alone() {
    let (table, budget) = (ClassTable::default(), Budget::new(1 << 20));
    for class in 0..16 {
        table.add(class, &bytes(1), &budget);
    }
    assert_eq!(budget.used_bytes(), 64 * SLOT);
    assert_eq!(sums(&table).len(), 16);
}

#[test]
fn class_tables_stay_within_their_budget() {
    let budget = Budget::new(3 * 64 * SLOT);
    let tables: Vec<ClassTable> = (0..100).map(|_| ClassTable::default()).collect();
    for table in &tables {
        for class in 0..200 {
            table.add(class, &bytes(1), &budget);
        }
        assert_eq!(sums(table).values().sum::<u64>(), 200);
    }
    assert_eq!(budget.used_bytes(), 3 * 64 * SLOT);
}

#[test]
fn racing_threads_make_one_entry_for_a_class() {
    for _ in 0..50 {
        let (table, budget) = (ClassTable::default(), Budget::new(1 << 20));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..300).for_each(|class| table.add(class, &bytes(1), &budget)));
            }
        });
        let sums = sums(&table);
        assert_eq!(sums.len(), 300);
        assert!(sums.values().all(|&bytes| bytes == 4));
        // Tiers that lost the race were given back.
        assert_eq!(budget.used_bytes(), (64 + 512) * SLOT);
    }
}

#[test]
fn purses_run_out_and_say_so() {
    let ledger = ledger(1, 3);
    assert!(ledger.is_open(PurseId::UNACCOUNTED));
    let first = ledger.open_purse().expect("room");
    let second = ledger.open_purse().expect("room");
    assert_eq!(ledger.open_purse(), None);
    assert!(first != second && first != PurseId::UNACCOUNTED && second != PurseId::UNACCOUNTED);
    assert!(!ledger.is_open(PurseId::new(9)));
    assert_eq!(ledger.totals(PurseId::new(9)), Totals::default());
}

#[test]
fn all_65536_purses_can_be_opened() {
    let ledger = ledger(1, u32::MAX);
    let opened = std::iter::from_fn(|| ledger.open_purse()).count();
    assert_eq!(opened, 65_535);
    assert!(ledger.is_open(PurseId::new(u16::MAX)));
}

/// A closed purse: number, allocated bytes and objects, bytes by class.
type Last = (PurseId, u64, u64, Vec<(u32, u64)>);

/// Closes and gives back what can be, as if every owner were gone.
fn sweep(ledger: &Ledger) -> Vec<Last> {
    let referenced = ledger.referenced_purses();
    (0..ledger.purse_high_water())
        .filter_map(|number| ledger.close_purse(PurseId::new(number as u16), &referenced))
        .map(|closed| {
            let totals = closed.totals;
            let last = (
                closed.purse,
                totals.allocated_bytes,
                totals.allocated_objects,
                closed.classes.clone(),
            );
            ledger.give_back(closed);
            last
        })
        .collect()
}

#[test]
fn a_purse_is_recycled_once_nothing_of_it_is_charged() {
    let ledger = ledger(4, 2);
    ledger.intervals().set(0).expect("exact");
    let purse = ledger.open_purse().expect("room");
    let tag = ledger.charge(&sample(&ledger, purse, 48)).expect("room");
    assert_eq!(sweep(&ledger), [], "it is charged");
    ledger.refund(tag);
    assert_eq!(sweep(&ledger), [(purse, 48, 1, vec![(1, 48)])]);
    assert!(!ledger.is_open(purse));

    // The next owner starts from nothing.
    assert_eq!(ledger.open_purse(), Some(purse));
    assert_eq!(ledger.totals(purse), Totals::default());
    assert!(classes(&ledger, purse).is_empty());
    ledger.charge(&sample(&ledger, purse, 16)).expect("room");
    let totals = ledger.totals(purse);
    assert_eq!((totals.allocated_bytes, totals.allocated_objects), (16, 1));
    assert_eq!(totals.charged.bytes, 16);
}

#[test]
fn a_purse_named_in_any_role_is_kept() {
    for role in 0..3 {
        let ledger = ledger(4, 3);
        let (purse, other) = (
            ledger.open_purse().expect("room"),
            ledger.open_purse().expect("room"),
        );
        let roles = [0, 1, 2].map(|each| if each == role { purse } else { other });
        let tag = ledger
            .charge(&Sample {
                payer: roles[0],
                agent_account: roles[1],
                principal: roles[2],
                ..sample(&ledger, other, 16)
            })
            .expect("room");
        // The one that nobody names may go, unless it is the payer that is charged.
        let early = sweep(&ledger);
        assert!(
            early
                .iter()
                .all(|last| last.0 != purse && last.0 != roles[0])
        );
        ledger.refund(tag);
        let late = sweep(&ledger).len();
        assert_eq!(early.len() + late, 2, "both, once nothing names them");
    }
}

#[test]
fn a_closed_purse_is_nobodys_until_it_is_given_back() {
    let ledger = ledger(4, 2);
    let purse = ledger.open_purse().expect("room");
    let referenced = ledger.referenced_purses();
    let closed = ledger.close_purse(purse, &referenced).expect("idle");
    assert!(!ledger.is_open(purse));
    assert_eq!(
        ledger.open_purse(),
        None,
        "not while its owner is forgotten"
    );
    assert_eq!(ledger.close_purse(purse, &referenced), None, "only once");
    ledger.give_back(closed);
    assert_eq!(ledger.open_purse(), Some(purse));
}

#[test]
fn the_reserved_purse_is_never_closed() {
    let ledger = ledger(4, 2);
    let referenced = ledger.referenced_purses();
    assert_eq!(ledger.close_purse(PurseId::UNACCOUNTED, &referenced), None);
    assert!(ledger.is_open(PurseId::UNACCOUNTED));
}

#[test]
fn a_charge_that_comes_after_the_recycling_is_neither_lost_nor_negative() {
    let ledger = ledger(4, 2);
    ledger.intervals().set(0).expect("exact");
    let purse = ledger.open_purse().expect("room");
    assert_eq!(sweep(&ledger).len(), 1);
    let late = ledger.charge(&sample(&ledger, purse, 40)).expect("room");
    assert_eq!(ledger.open_purse(), Some(purse));
    assert_eq!(ledger.totals(purse).charged.bytes, 40);
    assert!(ledger.refund(late));
    assert_eq!(ledger.totals(purse).charged, Charge::default());
}

#[test]
fn a_hundred_thousand_short_lived_purses_leave_memory_where_it_was() {
    let ledger = ledger(64, 16);
    let mut held = 0;
    for evaluation in 0..20_000 {
        let purses: Vec<PurseId> = (0..5).map(|_| ledger.open_purse().expect("room")).collect();
        for &purse in &purses {
            let tag = ledger.charge(&sample(&ledger, purse, 64)).expect("room");
            ledger.refund(tag);
        }
        assert_eq!(sweep(&ledger).len(), 5);
        match evaluation {
            100 => held = ledger.committed_bytes(),
            101.. => assert_eq!(ledger.committed_bytes(), held),
            _ => {}
        }
    }
}

#[test]
fn what_goes_unseen_is_bounded_by_the_widest_interval_since_the_purse_was_opened() {
    let ledger = ledger(16, 8);
    let set = |bytes| ledger.intervals().set(bytes).expect("there is room");
    let bound = crate::sampling::unseen_at_most_bytes;
    set(1 << 20);
    let early = ledger.open_purse().expect("there is room");
    set(64 << 10);
    let late = ledger.open_purse().expect("there is room");
    assert_eq!(ledger.unseen_at_most_bytes(early), bound(1 << 20));
    assert_eq!(ledger.unseen_at_most_bytes(late), bound(64 << 10));
    set(256 << 10);
    assert_eq!(ledger.unseen_at_most_bytes(late), bound(256 << 10));
    set(0);
    let exact = ledger.open_purse().expect("there is room");
    assert_eq!(ledger.unseen_at_most_bytes(exact), 0);
}
