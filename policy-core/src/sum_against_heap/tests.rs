use proptest::prelude::*;

use super::*;
use crate::sampling::simulation::Rng;
use crate::sampling::{charge, standard_error_bytes};

const MIB: u64 = 1 << 20;

impl Reading {
    /// Of so many MiB, and a heap of so many.
    pub(crate) fn of_mib(accounts: u64, standard_error: f64, heap: u64) -> Reading {
        Reading {
            accounts_bytes: accounts * MIB,
            standard_error_bytes: standard_error * MIB as f64,
            heap_bytes: heap * MIB,
        }
    }
}

fn after(readings: impl IntoIterator<Item = Reading>) -> Judged {
    (readings.into_iter()).fold(Judged::default(), Judged::next)
}

const WITHIN: (u64, f64, u64) = (103, 1.0, 100);
const BEYOND: (u64, f64, u64) = (110, 2.0, 100);

fn of((accounts, error, heap): (u64, f64, u64)) -> Reading {
    Reading::of_mib(accounts, error, heap)
}

#[test]
fn a_sum_exceeds_the_heap_beyond_three_of_its_errors() {
    assert!(!of(WITHIN).exceeds(), "three errors, and no more");
    assert!(Reading::of_mib(104, 1.0, 100).exceeds());
    assert!(
        !Reading::of_mib(104, 1.0, 0).exceeds(),
        "the heap is not known"
    );
    assert!(
        !Reading::of_mib(200, 20.5, 100).exceeds(),
        "so large an error says nothing"
    );
    assert!(Reading::of_mib(200, 20.0, 100).exceeds());
}

#[test]
fn the_finding_begins_and_ends_with_two_in_a_row() {
    let (within, beyond) = (of(WITHIN), of(BEYOND));
    let once = after([within, beyond]);
    assert!(once.is_doubted() && !once.stands());
    assert_eq!(once.error_factor(), 1.0, "nothing is widened yet");
    assert!(
        !after([beyond, within]).is_doubted(),
        "late refunds, and then they were in"
    );
    assert!(!after([beyond, within, beyond, within, beyond]).stands());
    let twice = after([within, beyond, beyond]);
    assert!(twice.is_doubted() && twice.stands());
    assert_eq!(twice.error_factor(), 5.0, "10 beyond at an error of 2");
    let ending = twice.next(within);
    assert!(ending.stands() && ending.is_doubted());
    assert_eq!(ending.error_factor(), 5.0, "until it has ended");
    let ended = ending.next(within);
    assert!(!ended.stands() && !ended.is_doubted());
    assert_eq!(ended.error_factor(), 1.0);
}

#[test]
fn an_exact_sum_has_a_factor_that_is_a_number() {
    let exact = Reading::of_mib(200, 0.0, 100);
    assert_eq!(after([exact, exact]).error_factor(), LARGEST_FACTOR);
}

#[test]
fn samples_that_are_right_seldom_exceed_a_heap_that_holds_no_more() {
    // Heaps of which the accounts hold every byte: the hardest case. Objects of four sizes.
    const HEAPS: usize = 4_000;
    let interval = 64 << 10;
    let mut rng = Rng(7);
    let mut alarms = 0;
    for _ in 0..HEAPS {
        let (mut bytes, mut variance, mut held) = (0_u64, 0_u64, 0_u64);
        for size in [512_u64, 4 << 10, 48 << 10, 300 << 10] {
            // As many samples as this many objects have, one draw an object where they are large.
            let objects = (8 << 20) / size;
            let sampled = 1.0 - (-(size as f64) / interval as f64).exp();
            let one = charge(size, interval);
            for _ in 0..objects {
                held += size;
                if rng.unit() < sampled {
                    bytes += one.bytes;
                    variance += one.variance;
                }
            }
        }
        let reading = Reading {
            accounts_bytes: bytes,
            standard_error_bytes: standard_error_bytes(variance),
            heap_bytes: held,
        };
        alarms += usize::from(reading.exceeds());
    }
    // 1 in 740 of a normal distribution; the sum of few samples is a little skewed.
    assert!(alarms <= 4 * HEAPS / 740, "{alarms} of {HEAPS}");
}

fn any_reading() -> impl Strategy<Value = Reading> {
    (0_u64..4_000, 0.0_f64..100.0, 0_u64..2_000).prop_map(|(sum, error, heap)| Reading {
        accounts_bytes: sum,
        standard_error_bytes: error,
        heap_bytes: heap,
    })
}

proptest! {
    #[test]
    fn a_sum_within_the_heap_is_never_a_finding(readings in proptest::collection::vec(any_reading(), 1..40)) {
        let within = readings.into_iter().map(|mut reading| {
            reading.accounts_bytes = reading.accounts_bytes.min(reading.heap_bytes);
            reading
        });
        let judged = after(within);
        prop_assert!(!judged.is_doubted());
        prop_assert_eq!(judged.error_factor(), 1.0);
    }

    #[test]
    fn what_stands_has_two_readings_behind_it(readings in proptest::collection::vec(any_reading(), 1..40)) {
        let mut judged = Judged::default();
        let mut seen: Vec<bool> = Vec::new();
        for reading in readings {
            let before = judged;
            judged = judged.next(reading);
            seen.push(reading.exceeds());
            let last_two = &seen[seen.len().saturating_sub(2)..];
            let is = |what: bool| last_two.len() == 2 && last_two.iter().all(|one| *one == what);
            prop_assert_eq!(judged.stands(), is(true) || before.stands() && !is(false));
            prop_assert!(judged.is_doubted() || !judged.stands());
            prop_assert!(judged.is_doubted() || !reading.exceeds());
            let factor = judged.error_factor();
            prop_assert!(factor.is_finite() && factor >= 1.0);
            if judged.stands() && reading.exceeds() {
                // The widened error of the sum reaches down to the heap.
                let reach = factor * reading.standard_error_bytes.max(1.0);
                let excess = reading.accounts_bytes as f64 - reading.heap_bytes as f64;
                prop_assert!(reach >= excess - 1e-6 || factor >= LARGEST_FACTOR);
            }
        }
    }

    /// Rule 5: an account's widened error is at least its part of the excess.
    #[test]
    fn a_widened_error_covers_an_accounts_part_of_the_excess(
        share in 0.001_f64..1.0, excess in 0.05_f64..3.0, error in 0.004_f64..0.01,
    ) {
        let heap = 1_000.0 * MIB as f64;
        let reading = Reading {
            accounts_bytes: (heap * (1.0 + excess)) as u64,
            standard_error_bytes: heap * error,
            heap_bytes: heap as u64,
        };
        let judged = after([reading, reading]);
        prop_assert!(judged.stands());
        let of_account = share.sqrt() * reading.standard_error_bytes * judged.error_factor();
        prop_assert!(of_account >= share * heap * excess * 0.999);
    }
}
