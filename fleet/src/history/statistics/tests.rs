//! The statistics against what they promise, on series whose truth is known.

use proptest::prelude::*;

use super::*;

/// Standard normal values from a seed, by Box and Muller over SplitMix64.
fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count)
        .map(|_| {
            let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * uniform()).cos()
        })
        .collect()
}

/// Each value resembles the one before: x = 0.9 x + noise, of variance 1 as a whole.
fn correlated(seed: u64, count: usize) -> Vec<f64> {
    let mut x = 0.0;
    let noise = normals(seed, count + 200);
    let values = noise.iter().map(|noise| {
        x = 0.9 * x + noise * (1.0_f64 - 0.81).sqrt();
        x
    });
    values.skip(200).collect()
}

#[test]
fn quantiles_are_readings_at_the_right_rank() {
    let readings: Vec<f64> = (1..=100).map(f64::from).collect();
    for (q, value) in [(0.5, 50.0), (0.07, 7.0), (0.99, 99.0), (0.999, 100.0)] {
        assert_eq!(quantile(&readings, q).unwrap().value, value, "{q}");
    }
    assert_eq!(quantile(&[], 0.5), None);
    assert_eq!(quantile(&[f64::NAN], 0.5), None);
    let one = quantile(&[7.0], 0.99).unwrap();
    assert_eq!(
        (one.low, one.value, one.high, one.is_bounded),
        (7.0, 7.0, 7.0, false)
    );
}

#[test]
fn the_readings_needed_are_those_of_the_tables() {
    // Wilks' sample sizes for one-sided tolerance limits.
    assert_eq!(needed_readings(0.95), 59);
    assert_eq!(needed_readings(0.99), 299);
}

#[test]
fn the_interval_holds_the_true_quantile_as_often_as_promised() {
    // The true 0.9 quantile of the standard normal distribution.
    const TRUE: f64 = 1.281_551_566;
    for (name, draw, count) in [
        ("independent", normals as fn(u64, usize) -> Vec<f64>, 300),
        ("correlated", correlated, 3000),
    ] {
        let runs = 400;
        let missed = |beyond: fn(&Quantile) -> bool| {
            let all = (0..runs).map(|seed| quantile(&draw(seed, count), 0.9).unwrap());
            all.filter(beyond).count()
        };
        let above = missed(|found| found.high < TRUE);
        let below = missed(|found| found.low > TRUE);
        // Promised 20 of 400 at the most; with six standard deviations (4.4 each) of chance.
        assert!(
            above <= 46 && below <= 46,
            "{name}: {above} and {below} of {runs}"
        );
        // And not so wide as to say nothing.
        assert!(above + below >= 4, "{name}: {above} and {below} of {runs}");
    }
}

#[test]
fn correlated_readings_are_worth_fewer() {
    let alone = quantile(&normals(1, 2000), 0.9).unwrap();
    let alike = quantile(&correlated(1, 2000), 0.9).unwrap();
    assert!(alone.effective_readings > 1200.0, "{alone:?}");
    assert!(alike.effective_readings < 600.0, "{alike:?}");
}

#[test]
fn a_slope_is_found_through_noise_waves_and_outliers() {
    let noise = correlated(3, 2016);
    let readings: Vec<(f64, f64)> = (0..2016)
        .map(|step| {
            let time = 300.0 * f64::from(step);
            let wave = 20.0 * (time / 86_400.0 * std::f64::consts::TAU).sin();
            let outlier = if step % 97 == 0 { 5000.0 } else { 0.0 };
            (
                time,
                100.0 + 1e-4 * time + wave + 2.0 * noise[step as usize] + outlier,
            )
        })
        .collect();
    let found = growth(&readings).unwrap();
    assert!(found.is_sure(), "{found:?}");
    assert!((found.low..=found.high).contains(&1e-4), "{found:?}");
    assert!((found.slope - 1e-4).abs() < 2e-5, "{found:?}");
    let seconds = found.seconds_to(found.level + 1.0).unwrap();
    assert!((seconds * found.slope - 1.0).abs() < 1e-9);
    assert_eq!(found.seconds_to(0.0), Some(0.0));
}

#[test]
fn what_does_not_grow_is_seldom_said_to() {
    for (name, draw) in [
        ("independent", normals as fn(u64, usize) -> Vec<f64>),
        ("correlated", correlated),
    ] {
        let runs = 300;
        let false_alarms = (0..runs)
            .filter(|seed| {
                let values = draw(1000 + seed, 400);
                let readings: Vec<(f64, f64)> = (0..400).map(f64::from).zip(values).collect();
                growth(&readings).unwrap().is_sure()
            })
            .count();
        // Promised 15 of 300; six standard deviations of chance are 23.
        assert!(false_alarms <= 38, "{name}: {false_alarms} of {runs}");
    }
    let flat: Vec<(f64, f64)> = (0..50).map(|step| (f64::from(step), 7.0)).collect();
    let found = growth(&flat).unwrap();
    assert_eq!(
        (found.slope, found.level, found.is_sure()),
        (0.0, 7.0, false)
    );
    assert_eq!(found.seconds_to(8.0), None);
}

#[test]
fn too_few_readings_have_no_slope() {
    let few: Vec<(f64, f64)> = (0..7).map(|step| (f64::from(step), 1.0)).collect();
    assert_eq!(growth(&few), None);
    let same_time = vec![(1.0, 2.0); 50];
    assert_eq!(growth(&same_time), None);
}

proptest! {
    #[test]
    fn an_interval_surrounds_its_estimate(
        readings in prop::collection::vec(0.0_f64..1e12, 1..400), q in 0.01_f64..0.999,
    ) {
        let found = quantile(&readings, q).unwrap();
        let highest = readings.iter().copied().fold(0.0, f64::max);
        prop_assert!(found.low <= found.value && found.value <= found.high);
        prop_assert!(found.high <= highest);
        prop_assert!(readings.contains(&found.high) && readings.contains(&found.low));
        let at_or_below = readings.iter().filter(|x| **x <= found.value).count();
        prop_assert!(at_or_below as f64 >= readings.len() as f64 * q - 1e-6);
        prop_assert!(found.is_bounded || found.high == highest);
        prop_assert!(found.effective_readings >= 1.0 - 1e-9 || readings.len() < 4);
    }

    #[test]
    fn a_quantile_scales_with_its_readings(
        readings in prop::collection::vec(0.0_f64..1e6, 1..200), q in 0.01_f64..0.99,
    ) {
        let twice: Vec<f64> = readings.iter().map(|x| 2.0 * x).collect();
        let (one, two) = (quantile(&readings, q).unwrap(), quantile(&twice, q).unwrap());
        prop_assert_eq!(two.high, 2.0 * one.high);
    }

    #[test]
    fn a_slope_follows_its_line(
        slope in -1e3_f64..1e3, level in 0.0_f64..1e9,
        offsets in prop::collection::vec(-1.0_f64..1.0, 8..300),
    ) {
        let readings: Vec<(f64, f64)> = offsets.iter().enumerate()
            .map(|(step, offset)| (step as f64, level + slope * step as f64 + offset))
            .collect();
        let found = growth(&readings).unwrap();
        prop_assert!(found.low <= found.slope && found.slope <= found.high);
        // Two points apart by d readings err by at most 2 / d, and most pairs are far apart.
        prop_assert!((found.slope - slope).abs() <= 2.0, "{found:?}");
    }

    #[test]
    fn no_readings_panic(
        readings in prop::collection::vec((any::<f64>(), any::<f64>()), 0..50), q: f64,
    ) {
        let values: Vec<f64> = readings.iter().map(|(_, value)| *value).collect();
        let _ = (quantile(&values, q), growth(&readings));
    }
}
