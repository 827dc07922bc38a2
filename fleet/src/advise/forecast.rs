//! Forecasts a size in bytes at the horizon, with its error. Pure.
//!
//! If readings grow or shrink significantly, the trend is removed first: each is moved along the line
//! to the time of the last reading. Quantiles are taken of the result; without this they would show
//! when a reading was taken, not how the size varies. Growth is then extrapolated to the horizon; a
//! size that shrinks, or may be constant, is expected to stay as it is at the end.
//!
//! The ends of an interval are the estimate, less or more `√(q² + e² + g²)`: `q` from the
//! quantile's own interval, `e` the sampling error and `g` the slope's interval times the
//! horizon, each at the 95 % that [`statistics`] gives its ends; they err independently.

use serde::Serialize;

use crate::history::statistics::{self, Z, growth, in_quadrature, needed_readings, quantile};
use heapwarden_terminal::clock::format_duration;
use heapwarden_terminal::size::shown as bytes;

/// The quantile for the most that is ever held, except for a few outliers.
pub(super) const HIGH_QUANTILE: f64 = 0.95;

/// The largest sampling error, at 95 %, as a share of the size, that is good enough for a plan.
const MAX_ERROR_SHARE: f64 = 0.5;

/// An estimate with both ends, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Estimate {
    /// Less with probability 5 % at most.
    pub(super) low_bytes: f64,
    pub(super) bytes: f64,
    /// More with probability 5 % at most.
    pub(super) high_bytes: f64,
}

/// Growth, bytes a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Daily {
    pub(super) low_bytes: f64,
    pub(super) bytes: f64,
    pub(super) high_bytes: f64,
    /// Whether it is significantly upwards.
    pub(super) is_sure: bool,
}

/// The forecast of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Forecast {
    /// Held half of the time, at the end of the period.
    pub(super) median_bytes: f64,
    /// Held 95 % of the time at the most, at the end of the period.
    pub(super) high_bytes: f64,
    /// Standard error of one reading; 0 if the size is not sampled.
    pub(super) standard_error_bytes: f64,
    /// How it changes.
    pub(super) growth_per_day: Daily,
    /// Held half of the time, at the horizon.
    pub(super) median_then: Estimate,
    /// Held 95 % of the time at the most, at the horizon.
    pub(super) high_then: Estimate,
}

/// Why there is no forecast, and what would help.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(super) enum Missing {
    /// Too new.
    #[error(
        "seen for {} only: wait until there are {}",
        format_duration(*.seen_seconds),
        format_duration(*.needed_seconds)
    )]
    Short {
        seen_seconds: u64,
        needed_seconds: u64,
    },
    /// Too short since the latest restart: readings before it do not show growth.
    #[error(
        "restarted {} ago: wait until it has run for {}",
        format_duration(*.seen_seconds),
        format_duration(*.needed_seconds)
    )]
    Restarted {
        seen_seconds: u64,
        needed_seconds: u64,
    },
    /// Gone.
    #[error("not seen in the last {} of the period", format_duration(*.seconds))]
    Gone { seconds: u64 },
    /// Scraped too seldom.
    #[error(
        "read in {percent} % of the period's steps only: scrape it all the time, or give a longer --step"
    )]
    Gaps { percent: u64 },
    /// Readings that are too correlated.
    #[error(
        "its readings are worth {worth} independent ones, and {needed} are needed: wait until about {} were seen",
        format_duration(*.needed_seconds)
    )]
    Correlated {
        worth: u64,
        needed: u64,
        needed_seconds: u64,
    },
    /// The sampling interval is too coarse for so small an account.
    #[error(
        "its error is {percent} % of what it holds at a sampling interval of {}: with {} it would do",
        bytes(*.interval_bytes),
        bytes(*.needed_interval_bytes)
    )]
    Vague {
        percent: u64,
        interval_bytes: f64,
        needed_interval_bytes: f64,
    },
    /// The maximum of the heap is not known.
    #[error("its heap's maximum or use after collections is not recorded")]
    NoHeap,
}

/// The forecast from readings (seconds, bytes) in order of time, each with this standard error.
///
/// # Errors
/// [`Missing::Correlated`], also if there are too few.
pub(super) fn forecast(
    readings: &[(f64, f64)],
    horizon_seconds: u64,
    standard_error_bytes: f64,
) -> Result<Forecast, Missing> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Err(too_few(0.0, 0.0));
    };
    let seen_seconds = last.0 - first.0;
    let few = too_few(readings.len() as f64, seen_seconds);
    let growth = growth(readings).ok_or(few)?;
    let slope = if growth.is_sure() { growth.slope } else { 0.0 };
    let is_sure_either_way = growth.is_sure() || growth.high < 0.0;
    let line = if is_sure_either_way {
        growth.slope
    } else {
        0.0
    };
    let rest: Vec<f64> = readings
        .iter()
        .map(|(time, value)| value - line * (time - last.0))
        .collect();
    let high = quantile(&rest, HIGH_QUANTILE).ok_or(few)?;
    let median = quantile(&rest, 0.5).ok_or(few)?;
    if !high.is_bounded {
        return Err(too_few(high.effective_readings, seen_seconds));
    }
    let horizon = horizon_seconds as f64;
    let sampling = Z * standard_error_bytes;
    let then = |now: statistics::Quantile| {
        let value = now.value + slope * horizon;
        let up = (growth.high.max(0.0) - slope).max(0.0) * horizon;
        let down = (slope - growth.low.max(0.0)).max(0.0) * horizon;
        Estimate {
            low_bytes: (value - in_quadrature([now.value - now.low, sampling, down])).max(0.0),
            bytes: value,
            high_bytes: value + in_quadrature([now.high - now.value, sampling, up]),
        }
    };
    const DAY: f64 = 86_400.0;
    Ok(Forecast {
        median_bytes: median.value,
        high_bytes: high.value,
        standard_error_bytes,
        growth_per_day: Daily {
            low_bytes: growth.low * DAY,
            bytes: growth.slope * DAY,
            high_bytes: growth.high * DAY,
            is_sure: growth.is_sure(),
        },
        median_then: then(median),
        high_then: then(high),
    })
}

/// The number of independent readings that these are worth, and their time.
fn too_few(worth: f64, seen_seconds: f64) -> Missing {
    let needed = needed_readings(HIGH_QUANTILE) as f64;
    Missing::Correlated {
        worth: worth as u64,
        needed: needed as u64,
        needed_seconds: (seen_seconds * needed / worth.max(1.0)) as u64,
    }
}

impl Forecast {
    /// Seconds from now until the high quantile is at `level_bytes`: at the earliest, expected,
    /// at the latest. `None` where growth is not sure; the latest is `None` where growth may be
    /// so slow that nobody can say.
    pub(super) fn seconds_to(&self, level_bytes: f64) -> Option<Exhaustion> {
        let growth = self.growth_per_day;
        if !growth.is_sure {
            return None;
        }
        let room = (level_bytes - self.high_bytes).max(0.0);
        let seconds = |daily: f64| (daily > 0.0).then(|| (room / daily * 86_400.0) as u64);
        Some(Exhaustion {
            earliest_seconds: seconds(growth.high_bytes)?,
            seconds: seconds(growth.bytes)?,
            latest_seconds: seconds(growth.low_bytes),
        })
    }

    /// Whether an account sampled at this interval is too small for its error.
    ///
    /// # Errors
    /// [`Missing::Vague`], with an interval that would do: the error relative to what is held is
    /// √(interval / held).
    pub(super) fn check_error(&self, interval_bytes: f64) -> Result<(), Missing> {
        let share = Z * self.standard_error_bytes / self.median_bytes.max(1.0);
        if share <= MAX_ERROR_SHARE {
            return Ok(());
        }
        let needed = interval_bytes * (MAX_ERROR_SHARE / share).powi(2);
        Err(Missing::Vague {
            percent: (share * 100.0).min(9_999.0) as u64,
            interval_bytes,
            // A power of two is what people write in a policy.
            needed_interval_bytes: 2f64.powi(needed.max(1.0).log2().floor() as i32),
        })
    }
}

/// When a heap is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Exhaustion {
    /// With the steepest growth that is likely.
    pub(super) earliest_seconds: u64,
    pub(super) seconds: u64,
    /// With the slowest.
    pub(super) latest_seconds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;
    const DAY: f64 = 86_400.0;

    /// A week of five-minute readings: a level, growth a day, and noise without memory.
    fn week(level: f64, daily: f64, noise: f64) -> Vec<(f64, f64)> {
        let mut state = 88_172_645_463_325_252_u64;
        (0..2016)
            .map(|step| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let chance = (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
                let time = f64::from(step) * 300.0;
                (time, level + daily * time / DAY + 2.0 * noise * chance)
            })
            .collect()
    }

    #[test]
    fn what_grows_is_carried_on_to_the_horizon() {
        let forecast = forecast(&week(100.0 * MIB, 10.0 * MIB, 5.0 * MIB), 7 * 86_400, 0.0)
            .expect("a week is enough");
        let then = forecast.median_then;
        assert!((then.bytes / MIB - 240.0).abs() < 2.0, "{then:?}");
        assert!(then.low_bytes < 240.0 * MIB && 240.0 * MIB < then.high_bytes);
        assert!(forecast.high_then.bytes > then.bytes);
        let full = forecast.seconds_to(300.0 * MIB).expect("it grows");
        let days = full.seconds as f64 / DAY;
        assert!((days - 12.6).abs() < 0.5, "{days}");
        assert!(full.earliest_seconds <= full.seconds);
        assert!(
            full.latest_seconds
                .is_some_and(|latest| latest >= full.seconds)
        );
    }

    #[test]
    fn what_shrinks_or_stands_still_is_expected_to_stay() {
        for daily in [0.0, -5.0] {
            let forecast = forecast(&week(100.0 * MIB, daily * MIB, MIB), 7 * 86_400, 0.0)
                .expect("a week is enough");
            assert_eq!(forecast.median_then.bytes, forecast.median_bytes);
            assert_eq!(forecast.seconds_to(1e12), None);
        }
    }

    #[test]
    fn a_sampling_error_widens_both_ends() {
        let readings = week(100.0 * MIB, 0.0, MIB);
        let exact = forecast(&readings, 0, 0.0).expect("a week is enough");
        let sampled = forecast(&readings, 0, 10.0 * MIB).expect("a week is enough");
        assert!(sampled.median_then.low_bytes < exact.median_then.low_bytes - 10.0 * MIB);
        assert!(sampled.high_then.high_bytes > exact.high_then.high_bytes + 10.0 * MIB);
        assert_eq!(sampled.check_error(65_536.0), Ok(()));
    }

    #[test]
    fn an_error_as_large_as_the_account_names_an_interval_that_would_do() {
        let forecast = forecast(&week(MIB, 0.0, 0.0), 0, MIB).expect("a week is enough");
        let Err(Missing::Vague {
            needed_interval_bytes,
            percent,
            ..
        }) = forecast.check_error(1_048_576.0)
        else {
            panic!("164 % is vague");
        };
        assert_eq!((needed_interval_bytes, percent), (65_536.0, 164));
    }

    #[test]
    fn too_few_readings_say_what_is_missing() {
        let readings = week(MIB, 0.0, MIB);
        let few = forecast(&readings[..30], 0, 0.0);
        assert!(
            matches!(few, Err(Missing::Correlated { needed: 59, .. })),
            "{few:?}"
        );
        for (count, worth) in [(3, 3), (0, 0)] {
            let few = forecast(&readings[..count], 0, 0.0);
            assert!(
                matches!(few, Err(Missing::Correlated { worth: w, .. }) if w == worth),
                "{few:?}"
            );
        }
    }
}
