//! Thinning by itself: what it keeps, what it lets go, and that charges stay unbiased.

use proptest::prelude::*;

use super::super::simulation::{Countdown, Rng};
use super::super::weight::{charge, standard_error_bytes};
use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const HEAP: u64 = 1 << 30;
const REGION: u64 = MIB;
const ALLOWANCE: u64 = HEAP / HEAP_PART;

/// Large arrays of a program, sampled and thinned as the agent does it.
struct Program {
    table: Intervals,
    thinning: Thinning,
    settler: Settler,
    countdown: Countdown,
    rng: Rng,
    interval_bytes: u64,
    widest_bytes: u64,
    account: u32,
    now: Duration,
    epoch: u32,
    decided: Option<Epoch>,
    /// The records in the ledger: account, size, birth, interval.
    records: Vec<(u32, u64, Epoch, IntervalId)>,
}

impl Program {
    fn new(seed: u64, interval_bytes: u64) -> Program {
        let table = Intervals::new(interval_bytes);
        let thinning = Thinning::default();
        thinning
            .adopt(Some(REGION), HEAP, &table)
            .expect("there is room for a few intervals");
        Program {
            table,
            thinning,
            settler: Settler::default(),
            countdown: Countdown::new(seed, interval_bytes),
            rng: Rng(seed ^ 0x5eed),
            interval_bytes,
            widest_bytes: u64::MAX,
            account: 1,
            now: Duration::ZERO,
            epoch: 0,
            decided: None,
            records: Vec::new(),
        }
    }

    /// Allocates one array; what it is charged.
    fn allocate(&mut self, size_bytes: u64) -> Option<super::super::Charge> {
        if !self.countdown.allocate(size_bytes, self.interval_bytes) {
            return None;
        }
        let drawn = (self.table.current(), self.interval_bytes);
        let (widest_bytes, rng) = (self.widest_bytes, &mut self.rng);
        let chance = || rng.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let Decision::Keep(id) =
            (self.thinning).judge(self.account, size_bytes, drawn, || widest_bytes, chance)
        else {
            return None;
        };
        let charge = charge(size_bytes, self.table.bytes(id));
        (self.thinning).kept(self.account, size_bytes, charge.bytes);
        let birth = Epoch::new(self.epoch);
        self.records.push((self.account, size_bytes, birth, id));
        Some(charge)
    }

    /// Arrays of 1 MiB that nobody keeps.
    fn churn(&mut self, arrays: usize) {
        for _ in 0..arrays {
            self.allocate(MIB);
        }
    }

    fn kept_bytes(&self) -> u64 {
        self.records.iter().map(|record| record.1).sum()
    }

    fn counters(&self) -> Vec<u64> {
        let kept = self.thinning.places.iter().map(|place| &place.kept_bytes);
        let all = kept.chain([&self.thinning.beyond_bytes]);
        all.map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    fn set_counters(&self, values: &[u64]) {
        let kept = self.thinning.places.iter().map(|place| &place.kept_bytes);
        let all = kept.chain([&self.thinning.beyond_bytes]);
        for (counter, value) in all.zip(values) {
            counter.store(*value, Ordering::Relaxed);
        }
    }

    /// The part of those arrays that is sampled now.
    fn share_sampled(&mut self) -> f64 {
        let before = self.records.len();
        for _ in 0..400 {
            let counters = self.counters();
            self.allocate(MIB);
            // As if it had not happened.
            self.set_counters(&counters);
        }
        let sampled = self.records.len() - before;
        self.records.truncate(before);
        sampled as f64 / 400.0
    }

    /// A concurrent cycle: of what it decides on, this share lives.
    fn cycle(&mut self, lives: f64) {
        let birth = Epoch::new(self.epoch);
        self.epoch += 1;
        let living = (self.records.len() as f64 * lives) as usize;
        for (_, size_bytes, birth, _) in self.records.drain(living..) {
            self.thinning.died(size_bytes, birth);
        }
        // Somebody else may know of it as well.
        self.look_after(Duration::from_secs(1), Some(birth));
    }

    fn look_after(&mut self, elapsed: Duration, covered: Option<Epoch>) {
        self.now += elapsed;
        let settled = (self.settler).look(&self.thinning, self.now, covered, self.decided);
        if let Some(upto) = settled {
            let before = std::mem::replace(&mut self.decided, settled);
            self.thinning.settle(|each| {
                for &(account, size_bytes, birth, id) in &self.records {
                    if Some(birth) > before {
                        each(&Living {
                            account,
                            size_bytes,
                            charged_bytes: charge(size_bytes, self.table.bytes(id)).bytes,
                            is_decided: birth <= upto,
                        });
                    }
                }
            });
        }
    }

    /// So many seconds, in each of which so many arrays are made and dropped.
    fn seconds(&mut self, seconds: u64, arrays: usize) {
        for _ in 0..seconds {
            self.churn(arrays);
            self.look_after(Duration::from_secs(1), None);
        }
    }
}

#[test]
fn the_interval_doubles_with_each_quarter_of_the_allowance_beyond_it() {
    let levels: Vec<usize> = [0, 399, 400, 499, 500, 600, 1100]
        .map(|waiting| level(waiting, 400))
        .to_vec();
    assert_eq!(levels, [0, 0, 1, 1, 2, 3, 8]);
    assert_eq!(level(0, 0), 1, "without an allowance from the first on");
}

#[test]
fn a_few_large_arrays_are_sampled_like_anything_else() {
    let mut program = Program::new(1, 64 * KIB);
    program.churn((ALLOWANCE / MIB) as usize);
    assert_eq!(program.kept_bytes(), ALLOWANCE, "each is sampled");
    assert_eq!(program.thinning.passed_over(), 0);
}

#[test]
fn an_array_counts_with_its_regions() {
    let mut program = Program::new(12, 64 * KIB);
    for _ in 0..ALLOWANCE / MIB {
        program.allocate(MIB + 16);
    }
    // The head of an array makes it two.
    let kept = program.records.len() as u64;
    assert!((20..ALLOWANCE / MIB).contains(&kept), "{kept}");
}

#[test]
fn garbage_that_waits_stays_a_small_part_of_the_heap() {
    let mut program = Program::new(2, 64 * KIB);
    program.churn(1000);
    let kept = program.kept_bytes();
    assert!((3 * ALLOWANCE / 2..HEAP / 10).contains(&kept), "{kept}");
    let share = program.share_sampled();
    assert!((0.0..0.04).contains(&share), "one in 64 or so: {share}");
    assert!(program.thinning.passed_over() > 800);
}

#[test]
fn a_service_that_lives_on_garbage_does_not_begin_anew_after_a_cycle() {
    let mut program = Program::new(3, 64 * KIB);
    program.churn(1000);
    program.cycle(0.0);
    assert_eq!(program.kept_bytes(), 0);
    assert!(program.share_sampled() < 0.07);
}

#[test]
fn what_waits_in_a_minute_is_bounded_however_much_is_made() {
    for (arrays, expected) in [(1, 1.0), (20, 0.053), (200, 0.0065)] {
        let mut program = Program::new(13, 64 * KIB);
        program.seconds(120, arrays);
        let before = program.kept_bytes();
        program.seconds(60, arrays);
        let kept = program.kept_bytes() - before;
        assert!(kept < HEAP / 10, "{arrays}: {kept}");
        let share = (kept / MIB) as f64 / (60 * arrays) as f64;
        assert!((share / expected - 1.0).abs() < 0.4, "{arrays}: {share}");
    }
}

#[test]
fn what_has_ceased_is_forgotten_in_minutes() {
    let mut program = Program::new(4, 64 * KIB);
    program.churn(1000);
    program.seconds(90, 0);
    assert_eq!(program.share_sampled(), 1.0);
}

#[test]
fn a_cache_is_sampled_closely_again_once_a_cycle_has_found_it_alive() {
    let mut program = Program::new(5, 64 * KIB);
    program.churn(100);
    assert!(program.share_sampled() < 0.7);
    program.cycle(1.0);
    assert_eq!(program.share_sampled(), 1.0);
    // It is replaced: that it dies now says nothing of what comes.
    program.cycle(0.0);
    assert_eq!(program.share_sampled(), 1.0);
}

#[test]
fn what_came_after_the_snapshot_is_undecided_still() {
    let mut program = Program::new(6, 64 * KIB);
    program.churn(15);
    let old = Epoch::new(program.epoch);
    program.epoch += 1;
    program.churn(15);
    program.thinning.died(MIB, old);
    program.records.remove(0);
    program.look_after(Duration::ZERO, None);
    assert_eq!(program.decided, Some(old));
    // Fourteen of the first were found alive; the one that was not counts on.
    let used = program.thinning.places[1].used_bytes();
    assert_eq!(used, 16 * MIB);
    program.look_after(Duration::ZERO, Some(Epoch::new(program.epoch)));
    assert_eq!(program.thinning.places[1].used_bytes(), MIB);
}

#[test]
fn a_limit_keeps_its_account_known() {
    let mut program = Program::new(7, 64 * KIB);
    program.churn(1000);
    program.widest_bytes =
        crate::sampling::class_thinning::widest_bytes([4 << 30, 1200 * MIB].into_iter());
    let share = program.share_sampled();
    let expected = 1.0 - (-1.0f64).exp();
    assert!((share - expected).abs() < 0.1, "{share} of {expected}");
    program.widest_bytes = crate::sampling::class_thinning::widest_bytes([256 * MIB].into_iter());
    assert_eq!(program.share_sampled(), 1.0, "it is small");
    program.widest_bytes = crate::sampling::class_thinning::widest_bytes([0, 4 << 30].into_iter());
    assert_eq!(program.share_sampled(), 1.0, "it is looked at");
}

#[test]
fn exact_mode_and_other_collectors_are_left_alone() {
    let mut program = Program::new(8, 0);
    program.churn(1000);
    assert_eq!(program.kept_bytes(), 1000 * MIB);

    let elsewhere = Thinning::default();
    assert!(elsewhere.may_be_large(MIB), "nobody knows yet");
    assert!(elsewhere.ask() && !elsewhere.ask(), "one asks");
    assert!(elsewhere.is_asked());
    elsewhere
        .adopt(None, HEAP, &Intervals::new(64 * KIB))
        .expect("nothing is named");
    assert!(!elsewhere.may_be_large(u64::MAX - 1));
    assert!(!elsewhere.is_asked() && !elsewhere.ask());
}

#[test]
fn a_full_table_of_intervals_thins_nothing() {
    let table = Intervals::new(0);
    for bytes in 1..super::super::interval::MAX_INTERVALS as u64 {
        table.set(bytes).expect("there is room");
    }
    let thinning = Thinning::default();
    assert!(thinning.ask() && thinning.is_asked());
    assert!(thinning.adopt(Some(REGION), HEAP, &table).is_err());
    assert!(!thinning.may_be_large(HEAP));
    assert!(!thinning.is_asked(), "it is told once");
}

#[test]
fn who_makes_few_is_known_closely_though_another_makes_many() {
    let mut program = Program::new(11, 64 * KIB);
    program.churn(1000);
    program.account = 2;
    program.churn((ALLOWANCE / MIB) as usize);
    let own = program
        .records
        .iter()
        .filter(|record| record.0 == 2)
        .count();
    assert_eq!(own as u64, ALLOWANCE / MIB);
    // But many of them together are not.
    for account in 3..20 {
        program.account = account;
        program.churn(1000);
    }
    let kept = program.kept_bytes();
    assert!(kept < HEAP / 2, "{kept}");
    program.account = 20;
    assert!(program.share_sampled() < 0.9);
}

#[test]
fn what_thinned_arrays_stand_for_is_told_until_it_is_decided_on() {
    let mut program = Program::new(9, 64 * KIB);
    program.churn((ALLOWANCE / MIB) as usize);
    let unthinned = program.thinning.beyond_bytes();
    assert!(unthinned < KIB, "{unthinned}");
    program.churn(1000);
    let beyond = program.thinning.beyond_bytes();
    assert!((500 * MIB..1500 * MIB).contains(&beyond), "{beyond}");
    program.cycle(0.5);
    assert_eq!(program.thinning.beyond_bytes(), 0);
}

/// Seconds of so many minutes in which a decision is asked for.
fn asked(program: &mut Program, minutes: u64) -> u64 {
    let asked = (0..60 * minutes).map(|_| {
        program.look_after(Duration::from_secs(1), None);
        u64::from(program.settler.wants_decision(program.now))
    });
    asked.sum()
}

#[test]
fn a_cycle_is_asked_for_where_none_has_decided_for_long() {
    let mut program = Program::new(10, 64 * KIB);
    program.churn(20);
    assert_eq!(asked(&mut program, 30), 0, "nothing is thinned");
    program.churn(200);
    assert_eq!(asked(&mut program, 2), 0);
    // From the third minute on; nobody answers: a minute in two.
    assert_eq!(asked(&mut program, 5), 120);
    program.cycle(0.5);
    assert_eq!(asked(&mut program, 30), 0);
}

#[test]
fn a_cycle_is_asked_for_where_much_waits() {
    let mut program = Program::new(14, 64 * KIB);
    for account in 0..60 {
        program.account = account;
        program.churn(60);
    }
    assert!(program.kept_bytes() > HEAP / WAITING_PART);
    assert_eq!(asked(&mut program, 2), 60);
    program.cycle(1.0);
    assert_eq!(asked(&mut program, 2), 0, "it is alive");
}

proptest! {
    #[test]
    fn the_share_kept_makes_one_interval_of_two(
        size in 512 * KIB..64 * MIB,
        drawn in 4 * KIB..64 * MIB,
        wider in 1u64..64,
    ) {
        let p = |interval: u64| 1.0 - (-(size as f64) / interval as f64).exp();
        let wider = (drawn * wider).min(WIDEST_BYTES).max(drawn);
        let share = share_kept(size, drawn, wider);
        prop_assert!((0.0..=1.0).contains(&share));
        prop_assert!((p(drawn) * share - p(wider)).abs() < 1e-9);
    }

    /// Whatever the mixture of sizes, cycles and looks: over many programs the errors, in their
    /// own standard errors, have no mean.
    #[test]
    fn charges_are_unbiased_through_all_changes(
        seed in any::<u64>(),
        interval in prop::sample::select(vec![16 * KIB, 64 * KIB, 512 * KIB, 2 * MIB]),
        largest in 1u64..8,
    ) {
        const PROGRAMS: u64 = 300;
        let (mut sum, mut variance) = (0.0, 0u64);
        for number in 0..PROGRAMS {
            let mut program = Program::new(seed.wrapping_add(number * 7919), interval);
            let mut sizes = Rng(seed ^ number);
            for turn in 0..60 {
                for _ in 0..10 {
                    let size = 512 * KIB + 8 + 8 * sizes.below(largest * MIB / 8);
                    sum -= size as f64;
                    if let Some(charge) = program.allocate(size) {
                        sum += charge.bytes as f64;
                        variance += charge.variance;
                    }
                }
                match turn % 20 {
                    9 => program.cycle(0.3),
                    14 => program.look_after(Duration::from_secs(20), None),
                    _ => {}
                }
            }
        }
        let z = sum / standard_error_bytes(variance);
        prop_assert!(z.abs() < 5.0, "{z} standard errors");
    }
}
