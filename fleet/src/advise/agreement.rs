//! The forecast of `advise` beside the agent's own, of the same series. They differ in what they are for
//! (`docs/advise.md`), and must not contradict each other: where both say when a level is reached, the intervals
//! overlap, and where one is sure of growth the other does not rule it out.

use policy_core::leaks::forecast::{Level, forecast as agents_forecast};

use super::forecast::forecast;

const MIB: f64 = 1_048_576.0;
const MINUTE: f64 = 60.0;
/// The agent's longest window, which `advise` reads as well.
const WINDOW_SECONDS: f64 = 12.0 * 3600.0;

/// Numbers that look random, the same in every run.
struct Draws(u64);

impl Draws {
    /// From -1 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Twelve hours, a reading a minute: a level, growth, a wave of load, and noise.
fn series(seed: u64, growth_per_hour: f64, wave: f64, noise: f64) -> Vec<(f64, f64)> {
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15 ^ (seed + 1).wrapping_mul(0xD134_2543_DE82_EF95));
    let readings = (WINDOW_SECONDS / MINUTE) as usize + 1;
    (0..readings)
        .map(|minute| {
            let seconds = minute as f64 * MINUTE;
            let load = wave * (seconds / 2_700.0 * std::f64::consts::TAU).sin();
            let level = 200.0 * MIB + growth_per_hour * seconds / 3600.0 + load;
            (seconds, level + noise * draws.next())
        })
        .collect()
}

/// When a level is reached, in seconds from the end: not before, and not after if that is bounded.
type Interval = (f64, Option<f64>);

fn of_agent(readings: &[(f64, f64)], level: f64) -> Option<Interval> {
    let levels: Vec<Level> = readings
        .iter()
        .map(|&(at, bytes)| Level {
            at,
            bytes,
            variance: 0.0,
        })
        .collect();
    let last = readings.last().map_or(0.0, |last| last.1);
    let full = agents_forecast(&levels, level - last)?;
    Some((full.earliest, full.latest))
}

fn of_advise(readings: &[(f64, f64)], level: f64) -> Option<Interval> {
    let found = forecast(readings, 86_400, 0.0).expect("twelve hours of minutes are enough");
    let full = found.seconds_to(level)?;
    let latest = full.latest_seconds.map(|seconds| seconds as f64);
    Some((full.earliest_seconds as f64, latest))
}

fn overlap(a: Interval, b: Interval) -> bool {
    let reaches = |one: Interval, other: Interval| one.1.is_none_or(|latest| latest >= other.0);
    reaches(a, b) && reaches(b, a)
}

#[test]
fn both_forecasts_of_a_growing_series_overlap() {
    let (mut compared, mut contradictions) = (0, Vec::new());
    for seed in 0..60 {
        for growth_mib in [2.0, 10.0, 40.0] {
            for (wave_mib, noise_mib) in [(0.0, 0.5), (0.0, 4.0), (3.0, 1.0)] {
                let readings = series(seed, growth_mib * MIB, wave_mib * MIB, noise_mib * MIB);
                let level = 200.0 * MIB + growth_mib * MIB * 24.0;
                let (Some(agent), Some(advise)) =
                    (of_agent(&readings, level), of_advise(&readings, level))
                else {
                    continue;
                };
                compared += 1;
                if !overlap(agent, advise) {
                    contradictions.push((seed, growth_mib, wave_mib, noise_mib, agent, advise));
                }
            }
        }
    }
    assert!(compared > 400, "{compared} of 540");
    // Both are intervals at 95 %.
    assert!(
        contradictions.len() * 20 <= compared,
        "{} of {compared}: {contradictions:?}",
        contradictions.len()
    );
}

#[test]
fn neither_is_sure_that_a_level_series_fills() {
    let mut sure = 0;
    for seed in 0..100 {
        let readings = series(seed, 0.0, 0.0, 4.0 * MIB);
        let level = 300.0 * MIB;
        let agent = of_agent(&readings, level).is_some_and(|full| full.1.is_some());
        let advise = of_advise(&readings, level).is_some();
        sure += usize::from(agent) + usize::from(advise);
    }
    // Each errs on this side in 2.5 of 100.
    assert!(sure <= 10, "{sure} of 200");
}

#[test]
fn what_one_is_sure_of_the_other_does_not_rule_out() {
    for seed in 0..60 {
        let readings = series(seed, 10.0 * MIB, 0.0, MIB);
        let level = 1024.0 * MIB;
        let advise = of_advise(&readings, level).expect("steady growth is sure");
        let agent = of_agent(&readings, level).expect("steady growth is seen");
        assert!(overlap(agent, advise), "{agent:?} {advise:?}");
        // The truth: seventy hours from the end.
        let truth = (level - 320.0 * MIB) / (10.0 * MIB) * 3600.0;
        assert!(agent.0 <= truth * 1.01, "{agent:?} of {truth}");
        assert!(advise.0 <= truth * 1.01, "{advise:?} of {truth}");
    }
}
