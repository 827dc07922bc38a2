//! Weights and intervals against arithmetic done elsewhere, and against the simulated
//! sampler.

use proptest::prelude::*;

use super::interval::{HOTSPOT_DEFAULT_INTERVAL_BYTES, MAX_INTERVALS};
use super::simulation::{Countdown, Rng};
use super::weight::{MAX_INTERVAL_BYTES, OBJECT_UNIT, VARIANCE_UNIT_BYTES2};
use super::*;

const I: u64 = 4096;
/// Sizes as the tests draw them: name, and the size for a random number.
type Sizes = (&'static str, fn(&mut Rng) -> u64);

const FAR_BELOW: Sizes = ("far below the interval", |rng| 16 + 8 * rng.below(6));
const AROUND: Sizes = ("around the interval", |rng| I / 2 + 8 * rng.below(I / 4));
const FAR_ABOVE: Sizes = ("far above the interval", |rng| 6 * I + 8 * rng.below(I));
const MIXED: Sizes = ("mixed", |rng| match rng.below(100) {
    0..=79 => 16 + 8 * rng.below(10),
    80..=94 => 512 + 8 * rng.below(512),
    95..=98 => I / 2 + 8 * rng.below(I / 2),
    _ => 4 * I + 8 * rng.below(4 * I),
});

/// The mean, and the standard error of that mean.
fn mean_and_its_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// One run: what was allocated, and the samples it gave.
struct Run {
    bytes: u64,
    objects: u64,
    sampled_sizes: Vec<u64>,
}

fn run(seed: u64, sizes: fn(&mut Rng) -> u64, bytes: u64) -> Run {
    let mut countdown = Countdown::new(seed, I);
    let mut rng = Rng(!seed);
    let mut run = Run {
        bytes: 0,
        objects: 0,
        sampled_sizes: Vec::new(),
    };
    while run.bytes < bytes {
        let size = sizes(&mut rng);
        run.bytes += size;
        run.objects += 1;
        if countdown.allocate(size, I) {
            run.sampled_sizes.push(size);
        }
    }
    run
}

impl Run {
    fn estimate(&self) -> Charge {
        self.sampled_sizes
            .iter()
            .fold(Charge::default(), |mut sum, &size| {
                sum += charge(size, I);
                sum
            })
    }
}

/// (size, interval, bytes, objects, variance), worked out with 50 decimal digits.
const REFERENCE: [(u64, u64, u64, u64, u64); 9] = [
    (16, 65536, 65544, 268468225, 16777216),
    (65536, 65536, 103676, 103676, 15446340),
    (1400, 65536, 66238, 3100718, 16776578),
    (131072, 65536, 151587, 75794, 12147739),
    (24, 524288, 524300, 1431688534, 1073741824),
    (4194304, 524288, 4195712, 65558, 23068291),
    (17179869184, 67108864, 17179869184, 65536, 0),
    (1000, 1, 1000, 65536, 0),
    (7, 3, 8, 72574, 0),
];

#[test]
fn charge_agrees_with_high_precision_arithmetic() {
    for (size, interval, bytes, objects, variance) in REFERENCE {
        let expected = Charge {
            bytes,
            objects,
            variance,
        };
        assert_eq!(charge(size, interval), expected, "{size} at {interval}");
    }
}

#[test]
fn exact_charges_the_size_without_error() {
    let expected = Charge {
        bytes: 24,
        objects: OBJECT_UNIT,
        variance: 0,
    };
    assert_eq!(charge(24, 0), expected);
    assert_eq!(charge(0, 0), Charge::default());
    assert_eq!(charge(0, I), Charge::default());
}

proptest! {
    #[test]
    fn charge_times_probability_is_the_size(size in 1u64..1 << 36, interval in 256u64..=MAX_INTERVAL_BYTES) {
        let p = -(-(size as f64) / interval as f64).exp_m1();
        let charge = charge(size, interval);
        // Rounding moves the charge by at most half a unit.
        let slack = 1e-12 * size as f64;
        prop_assert!((charge.bytes as f64 * p - size as f64).abs() <= 0.5 * p + slack);
        prop_assert!((charge.objects as f64 * p / OBJECT_UNIT as f64 - 1.0).abs() <= 0.5 / OBJECT_UNIT as f64 + 1e-12);
    }

    #[test]
    fn charge_keeps_the_bounds_of_the_overflow_proof(size in 1u64..1 << 44, interval in 1u64..=MAX_INTERVAL_BYTES) {
        let charge = charge(size, interval);
        prop_assert!(charge.bytes >= size);
        prop_assert!(charge.bytes <= size + interval + 1);
        prop_assert!(charge.objects >= OBJECT_UNIT);
        prop_assert!(charge.objects <= OBJECT_UNIT * (1 + interval.div_ceil(size)) + 1);
        let variance = u128::from(charge.variance) * u128::from(VARIANCE_UNIT_BYTES2);
        let bound = u128::from(interval) * u128::from(charge.bytes + 1) + u128::from(VARIANCE_UNIT_BYTES2);
        prop_assert!(variance <= bound, "{} > {}", variance, bound);
    }

    #[test]
    fn charge_is_monotone_in_the_size(size in 1u64..1 << 38, more in 1u64..1 << 20, interval in 0u64..=MAX_INTERVAL_BYTES) {
        let (small, large) = (charge(size, interval), charge(size + more, interval));
        prop_assert!(small.bytes <= large.bytes);
        prop_assert!(small.objects >= large.objects);
        prop_assert!(small.variance >= large.variance);
    }

    #[test]
    fn an_object_far_above_the_interval_is_charged_its_size(times in 64u64..4096, rest in 0u64..1024, interval in 1u64..=1 << 20) {
        let size = times * interval + rest;
        let expected = Charge { bytes: size, objects: OBJECT_UNIT, variance: 0 };
        prop_assert_eq!(charge(size, interval), expected);
    }

    #[test]
    fn refunds_cancel_charges_exactly(
        objects in prop::collection::vec((1u64..1 << 34, 0u64..=MAX_INTERVAL_BYTES), 1..100),
        seed: u64,
    ) {
        let mut sum = [0u64; 3];
        for &(size, interval) in &objects {
            let c = charge(size, interval);
            sum = [sum[0].wrapping_add(c.bytes), sum[1].wrapping_add(c.objects), sum[2].wrapping_add(c.variance)];
        }
        let mut order = objects;
        let mut rng = Rng(seed);
        while !order.is_empty() {
            let (size, interval) = order.swap_remove(rng.below(order.len() as u64) as usize);
            let c = charge(size, interval);
            sum = [sum[0].wrapping_sub(c.bytes), sum[1].wrapping_sub(c.objects), sum[2].wrapping_sub(c.variance)];
        }
        prop_assert_eq!(sum, [0; 3]);
    }
}

#[test]
fn estimates_are_unbiased_for_every_mix_of_sizes() {
    for (name, sizes) in [FAR_BELOW, AROUND, FAR_ABOVE, MIXED] {
        let runs: Vec<Run> = (0..400).map(|seed| run(seed, sizes, 300 * I)).collect();
        let byte_errors: Vec<f64> = runs
            .iter()
            .map(|run| run.estimate().bytes as f64 - run.bytes as f64)
            .collect();
        let object_errors: Vec<f64> = runs
            .iter()
            .map(|run| run.estimate().objects as f64 / OBJECT_UNIT as f64 - run.objects as f64)
            .collect();
        for (what, errors) in [("bytes", byte_errors), ("objects", object_errors)] {
            let (mean, error) = mean_and_its_error(&errors);
            let z = mean / error;
            assert!(z.abs() < 4.0, "{what} {name}: z = {z}");
        }
    }
}

#[test]
fn the_test_of_bias_would_find_the_usual_mistake() {
    let (_, sizes) = AROUND;
    let errors: Vec<f64> = (0..400)
        .map(|seed| {
            let run = run(seed, sizes, 300 * I);
            let weighed: u64 = run.sampled_sizes.iter().map(|&size| size.max(I)).sum();
            weighed as f64 - run.bytes as f64
        })
        .collect();
    let (mean, error) = mean_and_its_error(&errors);
    assert!(mean / error < -20.0, "max(s, I) must look low");
}

#[test]
fn the_standard_error_is_the_real_one() {
    for (name, sizes) in [FAR_BELOW, AROUND, MIXED] {
        let scores: Vec<f64> = (0..1000)
            .map(|seed| {
                let run = run(10_000 + seed, sizes, 300 * I);
                let estimate = run.estimate();
                (estimate.bytes as f64 - run.bytes as f64) / standard_error_bytes(estimate.variance)
            })
            .collect();
        let covered = scores.iter().filter(|z| z.abs() <= 1.96).count() as f64 / 1000.0;
        // 1,000 runs know a coverage of 95 % to 0.7 %.
        assert!((0.925..=0.975).contains(&covered), "{name}: {covered}");
        let (_, error_of_mean) = mean_and_its_error(&scores);
        let deviation = error_of_mean * 1000f64.sqrt();
        assert!((0.93..=1.07).contains(&deviation), "{name}: {deviation}");
    }
}

/// The interval changes while threads run: how far the estimate is off, weighing each
/// sample as `weigh` says (thread state, interval in force).
fn error_across_changes(
    seed: u64,
    weigh: fn(&mut ThreadInterval, IntervalId) -> IntervalId,
) -> f64 {
    let intervals = Intervals::new(16 * 1024);
    let mut rng = Rng(seed);
    let mut threads: Vec<(Countdown, ThreadInterval)> = Vec::new();
    let (mut truth, mut estimate) = (0u64, 0u64);
    for evaluation in 0..40u64 {
        // Down, up, and down to exact and back.
        let next = [16 * 1024, 1024, 8192, 0][evaluation as usize % 4];
        let current = intervals.set(next).expect("few intervals");
        if evaluation % 8 == 0 {
            let thread = Countdown::new(rng.next(), intervals.bytes(current));
            threads.push((thread, ThreadInterval::UNSEEN));
            // A new thread has its first event before the next change (the case the
            // rule leaves out is tested below).
            let (countdown, state) = threads.last_mut().expect("just pushed");
            loop {
                let size = 16 + 8 * rng.below(200);
                truth += size;
                if countdown.allocate(size, intervals.bytes(current)) {
                    estimate += charge(size, intervals.bytes(weigh(state, current))).bytes;
                    break;
                }
            }
        }
        for (countdown, state) in &mut threads {
            for _ in 0..20 {
                let size = 16 + 8 * rng.below(200);
                truth += size;
                if countdown.allocate(size, intervals.bytes(current)) {
                    estimate += charge(size, intervals.bytes(weigh(state, current))).bytes;
                }
            }
        }
    }
    estimate as f64 - truth as f64
}

#[test]
fn estimates_stay_unbiased_while_the_interval_changes() {
    let z = |weigh| {
        let errors: Vec<f64> = (0..2000)
            .map(|seed| error_across_changes(seed, weigh))
            .collect();
        let (mean, error) = mean_and_its_error(&errors);
        mean / error
    };
    let by_thread = z(|state, current| state.weigh_with(current));
    assert!(by_thread.abs() < 4.0, "weighed by the thread: {by_thread}");
    let by_current = z(|_, current| current);
    assert!(by_current.abs() > 8.0, "weighed by the clock: {by_current}");
}

#[test]
fn a_thread_is_weighed_with_the_interval_of_its_last_event() {
    let intervals = Intervals::default();
    let mut thread = ThreadInterval::UNSEEN;
    let first = intervals.current();
    assert_eq!(intervals.bytes(first), HOTSPOT_DEFAULT_INTERVAL_BYTES);
    assert_eq!(thread.weigh_with(first), first);
    let second = intervals.set(1024).expect("room");
    assert_eq!(intervals.current(), second);
    assert_eq!(thread.weigh_with(second), first);
    assert_eq!(thread.weigh_with(second), second);
    let mut newcomer = ThreadInterval::UNSEEN;
    assert_eq!(newcomer.weigh_with(second), second);
}

#[test]
fn a_thread_older_than_a_change_is_wrong_for_one_sample_only() {
    let intervals = Intervals::default();
    let mut unseen = ThreadInterval::UNSEEN;
    let mut knowing = ThreadInterval::UNSEEN;
    let _ = knowing.weigh_with(intervals.current());
    let changed = intervals.set(2048).expect("room");
    assert_ne!(unseen.weigh_with(changed), knowing.weigh_with(changed));
    assert_eq!(unseen, knowing);
}

#[test]
fn an_interval_used_before_keeps_its_id() {
    let intervals = Intervals::new(512);
    let first = intervals.current();
    let second = intervals.set(1024).expect("room");
    assert_ne!(first, second);
    assert_eq!(intervals.set(512), Ok(first));
    assert_eq!(intervals.set(1024), Ok(second));
    assert_eq!(intervals.bytes(first), 512);
    assert_eq!(intervals.bytes(second), 1024);
}

#[test]
fn a_refused_interval_leaves_the_one_in_force() {
    let intervals = Intervals::new(0);
    for bytes in 1..MAX_INTERVALS as u64 {
        intervals.set(bytes).expect("room");
    }
    let last = intervals.current();
    assert_eq!(intervals.set(1 << 20), Err(IntervalError::TableFull));
    assert_eq!(
        intervals.set(MAX_INTERVAL_BYTES + 1),
        Err(IntervalError::TooLarge {
            bytes: MAX_INTERVAL_BYTES + 1
        })
    );
    assert_eq!(intervals.current(), last);
    assert_eq!(intervals.bytes(last), MAX_INTERVALS as u64 - 1);
    // A value seen before still goes.
    assert!(intervals.set(7).is_ok());
    assert_eq!(intervals.bytes(intervals.current()), 7);
}

#[test]
fn readers_never_see_an_interval_that_was_not_set() {
    let intervals = Intervals::new(1 << 10);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    let bytes = intervals.bytes(intervals.current());
                    assert!((1 << 10..(1 << 10) + 2000).contains(&bytes), "{bytes}");
                }
            });
        }
        for step in 0..2000 {
            intervals.set((1 << 10) + step).expect("room");
        }
    });
}

/// Drawn at a part of the interval and thinned, samples are those of the interval: as many of each size, whatever changed
/// in between.
#[test]
fn what_is_drawn_finer_counts_as_drawn_under_the_interval() {
    const INTERVAL: u64 = 64 << 10;
    let intervals = Intervals::new(INTERVAL);
    let (mut kept, mut estimate, mut truth) = (0u32, 0.0, 0.0);
    let mut rng = Rng(11);
    let mut countdown = Countdown::new(7, INTERVAL);
    let mut thread = ThreadInterval::UNSEEN;
    for turn in 0..3_000_000u64 {
        if turn % 50_000 == 0 {
            let halvings = (turn / 50_000) % 5;
            intervals
                .set_drawn(INTERVAL, INTERVAL >> halvings)
                .expect("room");
        }
        let size = [24, 1_000, 40_000][rng.below(3) as usize];
        truth += size as f64;
        let drawing = intervals.drawing();
        if !countdown.allocate(size, intervals.bytes(drawing)) {
            continue;
        }
        let drawn = thread.weigh_with(drawing);
        let counted = intervals.counted_as(drawn);
        assert_eq!(intervals.bytes(counted), INTERVAL);
        let share = thinning::share_kept(size, intervals.bytes(drawn), INTERVAL);
        if rng.unit() <= share {
            kept += 1;
            estimate += charge(size, INTERVAL).bytes as f64;
        }
    }
    assert_eq!(intervals.bytes(intervals.current()), INTERVAL);
    let error = (truth * INTERVAL as f64).sqrt();
    assert!(
        (estimate - truth).abs() < 3.0 * error,
        "{estimate} of {truth}"
    );
    assert!(kept > 100_000, "{kept}");
}
