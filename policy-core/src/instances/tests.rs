//! Estimates against populations whose truth is known.

use proptest::prelude::*;

use super::*;
use crate::sampling::weight;

const INTERVAL: u64 = 64 << 10;

/// An object of a population: its size, what is counted for it, and its group.
#[derive(Debug, Clone, Copy)]
struct Object {
    size: u64,
    counted: f64,
    group: u8,
}

/// Samples a population as the VM does, draws `most` of the samples, and sums a group.
fn once(
    random: &mut fastrand::Rng,
    population: &[Object],
    (most, looked_at): (usize, usize),
    group: u8,
) -> Estimate {
    let mut draw = Draw::new(most);
    for object in population {
        let charge = weight::charge(object.size, INTERVAL);
        if random.f64() < object.size as f64 / charge.bytes as f64 {
            draw.offer((*object, charge), charge.bytes, random.f64());
        }
    }
    let drawn = draw.drawn();
    let threshold = drawn.threshold(looked_at);
    let mut estimate = Estimate::default();
    for (object, charge) in drawn.items().take(looked_at) {
        if object.group == group {
            estimate.add(threshold, charge, object.size, object.counted);
        }
    }
    estimate
}

/// Small ones by the thousand, some of the size of the interval, few large; two groups; what is counted is
/// more than the size for some.
fn population() -> Vec<Object> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..60_000)
        .map(|number| {
            let size = match number % 1000 {
                0 => 1 << 20,
                1..=20 => 50_000,
                _ => 24 + 8 * random.u64(..10),
            };
            let group = u8::from(random.f64() < 0.3);
            let counted = match group {
                1 => size as f64 * 3.5,
                _ => size as f64,
            };
            Object {
                size,
                counted,
                group,
            }
        })
        .collect()
}

#[test]
fn sums_are_unbiased_and_their_error_is_what_it_says_whole_and_cut_short() {
    const RUNS: usize = 400;
    let population = population();
    for (most, looked_at) in [(100_000, 100_000), (300, 300), (300, 150), (40, 40)] {
        for group in [0, 1] {
            let truth: f64 = (population.iter())
                .filter(|object| object.group == group)
                .map(|object| object.counted)
                .sum();
            let mut random = fastrand::Rng::with_seed(11);
            let runs: Vec<Estimate> = (0..RUNS)
                .map(|_| once(&mut random, &population, (most, looked_at), group))
                .collect();
            let mean = runs.iter().map(|run| run.bytes).sum::<f64>() / RUNS as f64;
            let spread = runs
                .iter()
                .map(|run| (run.bytes - truth).powi(2))
                .sum::<f64>()
                / RUNS as f64;
            let stated = runs.iter().map(|run| run.variance).sum::<f64>() / RUNS as f64;
            let off = (mean - truth) / (spread / RUNS as f64).sqrt();
            assert!(off.abs() < 4.0, "{looked_at} of {most}: {mean} for {truth}");
            // A variance from 400 runs is known to 7 %.
            let ratio = stated / spread;
            assert!((0.75..1.33).contains(&ratio), "{looked_at}: {ratio}");
            let within = (runs.iter())
                .filter(|run| (run.bytes - truth).abs() <= 3.0 * run.error_bytes() as f64)
                .count();
            assert!(within * 100 >= RUNS * 97, "{within} of {RUNS}");
        }
    }
}

#[test]
fn objects_are_counted_as_the_bytes_are() {
    let population = vec![
        Object {
            size: 24,
            counted: 24.0,
            group: 0
        };
        200_000
    ];
    let mut random = fastrand::Rng::with_seed(3);
    let runs = 100;
    let mean = (0..runs)
        .map(|_| once(&mut random, &population, (30, 30), 0).objects)
        .sum::<f64>()
        / f64::from(runs);
    // 73 samples in each run, of which 30 are drawn: the mean of 100 runs is off by 2 % or so.
    assert!((mean / 200_000.0 - 1.0).abs() < 0.08, "{mean}");
}

proptest! {
    #[test]
    fn everything_looked_at_counts_for_what_its_record_says(sizes in prop::collection::vec(1u64..1 << 22, 1..60)) {
        let mut draw = Draw::new(60);
        let mut sum = Charge::default();
        for &size in &sizes {
            let charge = weight::charge(size, INTERVAL);
            sum += charge;
            draw.offer((size, charge), charge.bytes, fastrand::f64());
        }
        let drawn = draw.drawn();
        prop_assert_eq!(drawn.items().len(), sizes.len());
        let threshold = drawn.threshold(sizes.len());
        let mut estimate = Estimate::default();
        for (size, charge) in drawn.items() {
            estimate.add(threshold, charge, *size, *size as f64);
        }
        prop_assert_eq!(estimate.bytes(), sum.bytes);
        prop_assert_eq!(estimate.samples, sizes.len() as u64);
        let expected = crate::sampling::standard_error_bytes(sum.variance);
        prop_assert!((estimate.error_bytes() as f64 - expected).abs() <= 1.0 + expected * 1e-9);
    }

    #[test]
    fn a_draw_is_bounded_and_in_the_order_of_priorities(most in 0usize..40, weights in prop::collection::vec(1u64..1 << 30, 0..200)) {
        let mut draw = Draw::new(most);
        for &weight in &weights {
            draw.offer(weight, weight, fastrand::f64());
        }
        let drawn = draw.drawn();
        prop_assert_eq!(drawn.items().len(), most.min(weights.len()));
        let thresholds: Vec<f64> = (0..=drawn.items().len()).map(|used| drawn.threshold(used).0).collect();
        prop_assert!(thresholds.is_sorted_by(|a, b| a >= b));
        prop_assert_eq!(thresholds.last() == Some(&0.0), weights.len() <= most);
    }

    #[test]
    fn what_is_spare_is_never_needed(elements in 0u64..1 << 40, capacity in 0u64..1 << 41) {
        prop_assert_eq!(Slots::One.spare(elements, capacity), capacity.saturating_sub(elements));
        let left = capacity - Slots::Hashed.spare(elements, capacity);
        // A table that is full to three quarters grows.
        prop_assert!(left == capacity || left * 3 >= elements * 4);
        prop_assert!(left <= (elements * 8).div_ceil(3).max(1));
    }
}

#[test]
fn tables_as_the_jdk_makes_them_are_not_wasted() {
    // (elements, the table of a HashMap that grew to them)
    for (elements, table) in [(0, 0), (12, 16), (13, 32), (24, 32), (768, 1024)] {
        assert_eq!(Slots::Hashed.spare(elements, table), 0, "{elements}");
    }
    assert_eq!(Slots::Hashed.spare(0, 16), 16);
    assert_eq!(Slots::Hashed.spare(3, 1024), 1020);
    assert_eq!(Slots::Hashed.spare(u64::MAX, 16), 0);
}
