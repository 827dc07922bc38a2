use proptest::prelude::*;

use super::histogram::Shape;
use super::times::MAX_MARKS;
use super::*;
use crate::core::{Core, Setup};
use crate::identity::loaders::LoaderId;
use crate::ledger::watched::during_scans;
use crate::ledger::{ObjectTag, PurseId, Sample};
use crate::sampling::weight::OBJECT_UNIT;

/// Accounts without a JVM; its clock ticks in milliseconds.
struct World {
    core: Core,
    now_ms: u64,
}

impl World {
    fn new(interval_bytes: u64) -> World {
        let core = Core::with_purses(Setup::of_test(10_000), 10);
        core.ledger.intervals().set(interval_bytes).expect("room");
        World { core, now_ms: 0 }
    }

    fn scope(&self, name: &str) -> PurseId {
        let purse = self.core.ledger.open_purse().expect("room");
        (self.core.directory()).enter_scope(purse, name.to_owned(), LoaderId::BOOT);
        purse
    }

    fn charge(&self, payer: PurseId, class: u32, size_bytes: u64) -> ObjectTag {
        let sample = Sample {
            class,
            ..Sample::of(payer, size_bytes, self.core.ledger.intervals().current())
        };
        self.core.ledger.charge(&sample).expect("room")
    }

    /// Time passes, then a collection ends; a covering one frees what is dead.
    fn collect(&mut self, after_ms: u64, is_covering: bool) {
        let epochs = self.core.ledger.epochs();
        self.now_ms += after_ms;
        let before = epochs.current();
        epochs.gc_finished();
        epochs.confirm(before);
        if is_covering {
            epochs.confirm_cover(before);
        }
        (self.core.holdings).note(epochs.current(), epochs.covered(), self.now_ms);
    }

    fn pass(&self) -> Pass {
        Pass::take(&self.core, self.now_ms)
    }
}

#[test]
fn a_pass_tells_births_ages_and_sizes_of_each_class_of_an_account() {
    let mut world = World::new(0);
    let (shop, other) = (world.scope("shop"), world.scope("other"));
    world.charge(shop, 1, 100);
    world.collect(5_000, true);
    world.charge(shop, 1, 1_000);
    let dies = world.charge(shop, 1, 64);
    world.charge(other, 1, 8);
    world.collect(60_000, false);
    world.core.ledger.refund(dies);
    world.collect(2_000, true);
    world.charge(shop, 1, 32);
    world.collect(1_000, false);
    world.charge(shop, 1, 16);

    let pass = world.pass();
    assert_eq!((pass.covers, pass.at_ms), (2, 68_000));
    let key = RowKey {
        payer: shop,
        class: 1,
    };
    let row = pass.tally.get(key).expect("a row");
    assert_eq!(pass.account(row), "shop");
    assert_eq!((row.charged.bytes, row.charged.records), (1_148, 4));
    assert_eq!((row.live.bytes, row.live.objects), (1_132, 3 * OBJECT_UNIT));
    assert_eq!(
        row.live.squares_bytes2,
        100f64.powi(2) + 1e6 + 32f64.powi(2)
    );
    let births: Vec<_> = (row.cohorts.iter())
        .map(|one| {
            (
                one.cohort,
                one.live.bytes,
                pass.tally.times.survived(one.cohort.into()),
            )
        })
        .collect();
    assert_eq!(births, [(0, 100, 2), (1, 1_000, 1), (3, 32, 0)]);

    let shape = Shape::of(row, &pass.tally.times, pass.at_ms);
    assert_eq!(shape.generations, 3);
    let bins = |bins: &[Bin]| -> Vec<_> { bins.iter().map(|b| (b.upto, b.live.bytes)).collect() };
    // The middles of the cohorts were 65.5, 35.5 and 0.5 s ago.
    assert_eq!(
        bins(&shape.ages_seconds),
        [(Some(10), 32), (Some(60), 1_000), (Some(300), 100)]
    );
    assert_eq!(
        bins(&shape.ages_collections),
        [(Some(0), 32), (Some(1), 1_000), (Some(3), 100)]
    );
    assert_eq!(
        bins(&shape.sizes),
        [(Some(32), 32), (Some(128), 100), (Some(1_024), 1_000)]
    );
}

#[test]
fn a_pass_comes_once_after_each_covering_collection_and_rests_after_it() {
    let mut world = World::new(0);
    let shop = world.scope("shop");
    world.charge(shop, 1, 100);
    let mut pace = Pace::default();
    let begun = Instant::now();
    let at = |seconds| move || begun + Duration::from_secs(seconds);
    world.collect(1_000, false);
    assert!(
        pace.take_if_due(&world.core, at(1), 1_000).is_err(),
        "nothing is proved"
    );
    world.collect(1_000, true);
    let pass = pace
        .take_if_due(&world.core, at(2), 2_000)
        .expect("it is due");
    assert_eq!(pass.tally.rows.len(), 1);
    assert_eq!(
        world.core.holdings.latest().expect("it is kept").at_ms,
        2_000
    );
    assert!(
        pace.take_if_due(&world.core, at(4), 4_000).is_err(),
        "nothing is new"
    );
    // One that took three seconds.
    pace.rest(at(4)(), at(7)());
    world.collect(1_000, true);
    let rest = pace
        .take_if_due(&world.core, at(8), 8_000)
        .expect_err("it rests");
    assert_eq!(rest, Duration::from_secs(299));
    assert!(pace.take_if_due(&world.core, at(307), 307_000).is_ok());
}

#[test]
fn what_ends_during_a_pass_is_not_taken_for_its_successor() {
    let world: &'static World = Box::leak(Box::new(World::new(0)));
    let shop = world.scope("shop");
    world.charge(shop, 7, 100);
    let mut pass = None;
    let forget = || {
        let class = crate::identity::classes::ClassId(7);
        world.core.directory().forget_class(class);
    };
    let scans = during_scans(forget, || pass = Some(world.pass()));
    assert_eq!(scans, 1);
    let rows = pass.expect("it was made").tally.rows;
    assert!(rows.is_empty(), "{rows:?}");
}

#[test]
fn more_rows_than_there_is_room_for_lose_their_class_but_no_byte() {
    let mut tally = Tally::default();
    let world = World::new(0);
    world.charge(PurseId::UNACCOUNTED, 0, 10);
    let mut record = None;
    world.core.ledger.scan(|found| record = Some(*found));
    let mut record = record.expect("one");
    let many = tally::MAX_ROWS as u32 + 100;
    for class in 0..many {
        record.class = class;
        tally.add(&record);
    }
    assert_eq!(tally.rows.len(), tally::MAX_ROWS + 1);
    assert_eq!(tally.folded_records, 100);
    let bytes: u64 = tally.rows.iter().map(|row| row.charged.bytes).sum();
    assert_eq!(bytes, u64::from(many) * 10);
    assert!(tally.memory_bytes() < 16 << 20, "{}", tally.memory_bytes());
}

proptest! {
    /// However collections come: the table is bounded, ascending, and a birth lies in the cohort that its
    /// time says; counts of survived collections fall with the age of a birth and never exceed the truth.
    #[test]
    fn marks_are_bounded_and_true(
        steps in proptest::collection::vec((1u64..200_000, any::<bool>()), 1..600),
    ) {
        let mut times = EpochTimes::default();
        let (mut now_ms, mut truth, mut covers) = (0, Vec::new(), Vec::new());
        for (index, &(after_ms, is_covering)) in steps.iter().enumerate() {
            now_ms += after_ms;
            let ended = index as u32;
            truth.push(now_ms);
            if is_covering {
                covers.push(ended);
            }
            let covered = covers.last().copied().map(Epoch::new);
            times.note(Epoch::new(ended + 1), covered, now_ms);
        }
        prop_assert!(times.marks().len() <= MAX_MARKS);
        prop_assert_eq!(times.covers() as usize, covers.len());
        let ascends = |pair: &[Mark]| pair[0].epoch < pair[1].epoch && pair[0].at_ms < pair[1].at_ms;
        prop_assert!(times.marks().windows(2).all(ascends));
        for (epoch, &ended_ms) in truth.iter().enumerate() {
            let cohort = times.cohort(Epoch::new(epoch as u32));
            let (youngest, oldest) = times.ages_ms(cohort, now_ms);
            prop_assert!(youngest <= now_ms - ended_ms);
            prop_assert!(oldest >= now_ms - ended_ms || cohort == times.marks().len());
            let survived = covers.iter().filter(|&&cover| cover as usize >= epoch).count();
            prop_assert!(times.survived(cohort) as usize <= survived);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// After a day of a collection each second, a cohort is no wider than a tenth of its age and some
    /// seconds.
    #[test]
    fn marks_are_dense_in_proportion_to_age(seconds in 2_000u32..86_400) {
        let mut times = EpochTimes::default();
        for second in 1..=seconds {
            times.note(Epoch::new(second), None, u64::from(second) * 1_000);
        }
        let now_ms = u64::from(seconds) * 1_000;
        for pair in times.marks().windows(2) {
            let (width, age) = (pair[1].at_ms - pair[0].at_ms, now_ms - pair[0].at_ms);
            prop_assert!(width as f64 <= 5_000.0 + age as f64 * 0.25, "{width} at {age}");
        }
    }
}
