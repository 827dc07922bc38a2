//! The limits that one account needs, computed from the bytes that it held. Pure.
//!
//! ```text
//! level      = Q + √( (Q⁺ − Q)² + (z s)² )
//! soft limit = level + g⁺ h,            rounded up
//! limit      = soft limit × (1 + headroom), rounded up
//! ```
//!
//! Q is the quantile of live bytes and Q⁺ the upper end of its interval; s is the standard
//! error at that size, z the normal quantile for the same confidence: the two errors are
//! independent. g⁺ is the upper end of the growth if growth is significant, else 0, and h the
//! horizon, which is never longer than the time over which the growth was observed.
//!
//! So the account exceeds the soft limit only if its load changes, and the limit adds the headroom.
//! The agent adds three standard errors before it refuses.

use crate::history::Column;
use crate::history::statistics::{Growth, Quantile, Z, growth, in_quadrature, quantile};
use crate::prometheus::Span;

/// The largest standard error, as a share of an account's size, at which a limit is useful: the agent
/// refuses only three standard errors above the limit, which is then a third more.
pub(super) const MAX_RELATIVE_ERROR: f64 = 0.10;

/// Smallest soft limit: below it the JVM's own bookkeeping for a class loader decides.
const MIN_LIMIT_BYTES: u64 = 1 << 20;

/// The parameters of the computation, the same for every account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    /// Of live bytes, above 0 and below 1.
    pub(super) quantile: f64,
    /// Of the soft limit.
    pub(super) headroom: f64,
    /// How long growth is allowed for.
    pub(super) horizon_seconds: u64,
    /// Whether too few readings are accepted.
    pub(super) allow_short: bool,
}

impl Settings {
    /// Readings of which at least one is expected above the quantile.
    pub(super) fn needed_readings(&self) -> usize {
        // 1 / (1 - 0.99) is a little above 100.
        (1.0 / (1.0 - self.quantile) - 1e-6).ceil() as usize
    }
}

/// The result for one account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Finding {
    /// Too few readings for the quantile.
    TooFew {
        /// There are.
        readings: usize,
    },
    /// No sample of it was live.
    Empty,
    /// Its standard error is too large a share of it.
    TooVague {
        /// The quantile of its live bytes.
        bytes: f64,
        /// Standard error as a share of that.
        relative_error: f64,
    },
    /// Limits can be suggested.
    Needs(Demand),
}

/// The limits that an account needs, and the figures that they rest on. See the module for the formulas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Demand {
    pub(super) readings: usize,
    pub(super) quantile: Quantile,
    /// Standard error at the quantile.
    pub(super) error_bytes: f64,
    /// If it is significant, with the time that it is allowed for.
    pub(super) growth: Option<(Growth, u64)>,
    pub(super) soft_limit_bytes: u64,
    pub(super) limit_bytes: u64,
}

/// Assesses an account. `restarts` are the steps in which its JVM was restarted: growth is that of
/// the longest run between two restarts.
pub(super) fn assess(
    live_bytes: &Column,
    standard_error_bytes: &Column,
    restarts: &[usize],
    span: Span,
    settings: &Settings,
) -> Finding {
    let readings: Vec<f64> = live_bytes.readings().map(|(_, live)| live).collect();
    let enough = settings.allow_short || readings.len() >= settings.needed_readings();
    let Some(found) = quantile(&readings, settings.quantile).filter(|_| enough) else {
        return Finding::TooFew {
            readings: readings.len(),
        };
    };
    if found.value <= 0.0 {
        return Finding::Empty;
    }
    let error_bytes = error_at(found.value, live_bytes, standard_error_bytes);
    if error_bytes > MAX_RELATIVE_ERROR * found.value {
        return Finding::TooVague {
            bytes: found.value,
            relative_error: error_bytes / found.value,
        };
    }
    let stretch = longest_stretch(live_bytes, restarts);
    let step = span.step_seconds();
    let points: Vec<(f64, f64)> = stretch
        .iter()
        .map(|(index, live)| (*index as f64 * step as f64, *live))
        .collect();
    let seen_seconds = match (stretch.first(), stretch.last()) {
        (Some((first, _)), Some((last, _))) => (last - first) as u64 * step,
        _ => 0,
    };
    let horizon = settings.horizon_seconds.min(seen_seconds);
    let growth = growth(&points).filter(Growth::is_sure);
    let growth = growth.map(|growth| (growth, horizon));

    let mut level = found.value + in_quadrature([found.high - found.value, Z * error_bytes]);
    if let Some((growth, horizon)) = &growth {
        level = level.max(growth.level) + growth.high * *horizon as f64;
    }
    let soft_limit_bytes = round_up(level).max(MIN_LIMIT_BYTES);
    let limit = soft_limit_bytes as f64 * (1.0 + settings.headroom);
    Finding::Needs(Demand {
        readings: readings.len(),
        quantile: found,
        error_bytes,
        growth,
        soft_limit_bytes,
        limit_bytes: round_up(limit).max(soft_limit_bytes),
    })
}

/// The largest error of the readings at or above `bytes`.
fn error_at(bytes: f64, live_bytes: &Column, standard_error_bytes: &Column) -> f64 {
    let high = live_bytes.readings().filter(|(_, live)| *live >= bytes);
    high.filter_map(|(step, _)| standard_error_bytes.get(step))
        .fold(0.0, f64::max)
}

fn longest_stretch(live_bytes: &Column, restarts: &[usize]) -> Vec<(usize, f64)> {
    let readings: Vec<(usize, f64)> = live_bytes.readings().collect();
    let stretches = readings.chunk_by(|(before, _), (after, _)| {
        !restarts
            .iter()
            .any(|restart| (before + 1..=*after).contains(restart))
    });
    stretches
        .max_by_key(|stretch| stretch.len())
        .unwrap_or_default()
        .to_vec()
}

/// The next size that reads well, at most an eighth above: a multiple of an eighth of the
/// largest power of two in it, and of 1 MiB.
pub(super) fn round_up(bytes: f64) -> u64 {
    const MIB: u64 = 1 << 20;
    let bytes = bytes.ceil().max(1.0) as u64;
    let granule = (1_u64 << (63 - bytes.leading_zeros()) >> 3).max(MIB);
    bytes.div_ceil(granule).saturating_mul(granule)
}

/// The interval at which the error of an account is small enough: the variance is proportional to
/// the interval. 0 if every allocation must be sampled.
pub(super) fn sufficient_interval(interval_bytes: f64, relative_error: f64) -> u64 {
    let wanted = interval_bytes * (MAX_RELATIVE_ERROR / relative_error).powi(2);
    if wanted < policy_config::MIN_INTERVAL_BYTES as f64 {
        return 0;
    }
    1 << (63 - (wanted as u64).leading_zeros())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: f64 = 1_048_576.0;
    const TERMS: Settings = Settings {
        quantile: 0.99,
        headroom: 0.25,
        horizon_seconds: 7 * 86_400,
        allow_short: false,
    };

    fn column(readings: impl IntoIterator<Item = f64>) -> Column {
        let readings: Vec<f64> = readings.into_iter().collect();
        let mut column = Column::default();
        for (step, reading) in readings.iter().enumerate() {
            column.put(readings.len(), step, *reading);
        }
        column
    }

    fn judged(live: impl Fn(usize) -> f64, error: f64, restarts: &[usize]) -> Finding {
        let span = Span::covering(1_000_000_200, 7 * 86_400, 300);
        let live = column((0..span.points()).map(live));
        let error = column((0..span.points()).map(|_| error));
        assess(&live, &error, restarts, span, &TERMS)
    }

    fn needs(finding: Finding) -> Demand {
        match finding {
            Finding::Needs(demand) => demand,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_steady_account_gets_its_level_and_its_errors() {
        let found = needs(judged(|_| 200.0 * MIB, 4.0 * MIB, &[]));
        assert_eq!(found.growth, None);
        // 200 + 1.645 × 4 = 206.6, in eighths of 128.
        assert_eq!(found.soft_limit_bytes, 208 << 20);
        assert_eq!(found.limit_bytes, 288 << 20);
    }

    #[test]
    fn growth_gets_room_for_the_horizon_and_no_more_than_was_seen() {
        let grown = |step: usize| (100.0 + 10.0 * step as f64 / 288.0) * MIB;
        let found = needs(judged(grown, MIB, &[]));
        let (growth, horizon) = found.growth.unwrap();
        assert!(
            (growth.slope * 86_400.0 / MIB - 10.0).abs() < 0.1,
            "{growth:?}"
        );
        assert_eq!(horizon, 7 * 86_400 - 300);
        // It ends at 170 MiB, and 70 more come in another week.
        assert!(found.soft_limit_bytes >= 240 << 20, "{found:?}");
        assert!(found.soft_limit_bytes <= 288 << 20, "{found:?}");
        // Begun anew in the middle: each half is a stretch of its own.
        let saw = needs(judged(|step| grown(step % 1008), MIB, &[1008]));
        let (growth, horizon) = saw.growth.unwrap();
        assert!(
            (growth.slope * 86_400.0 / MIB - 10.0).abs() < 0.1,
            "{growth:?}"
        );
        assert_eq!(horizon, 1007 * 300);
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        assert_eq!(judged(|_| 0.0, 0.0, &[]), Finding::Empty);
        let vague = judged(|_| MIB, 0.25 * MIB, &[]);
        let Finding::TooVague { relative_error, .. } = vague else {
            panic!("{vague:?}");
        };
        assert_eq!(sufficient_interval(65_536.0, relative_error), 8192);
        assert_eq!(sufficient_interval(128.0, 0.9), 0);
        let few = |step: usize| if step < 99 { MIB } else { f64::NAN };
        assert_eq!(judged(few, 0.0, &[]), Finding::TooFew { readings: 99 });
        assert_eq!(TERMS.needed_readings(), 100);
    }

    proptest! {
        #[test]
        fn sizes_are_rounded_up_by_an_eighth_at_most(bytes in 1.0_f64..1e15) {
            let rounded = round_up(bytes);
            prop_assert!(rounded as f64 >= bytes);
            prop_assert!(rounded as f64 <= (bytes * 1.125).max(bytes + MIB) + 1.0);
            prop_assert_eq!(rounded % (1 << 20), 0);
            prop_assert_eq!(round_up(rounded as f64), rounded);
        }

        #[test]
        fn the_limits_are_above_the_quantile_and_in_order(
            live in prop::collection::vec(0.0_f64..1e12, 100..300), error in 0.0_f64..1e9,
        ) {
            let span = Span::covering(1_000_000_200, 300 * live.len() as u64, 300);
            let errors = column(live.iter().map(|_| error));
            if let Finding::Needs(found) = assess(&column(live.iter().copied()), &errors, &[], span, &TERMS) {
                prop_assert!(found.soft_limit_bytes as f64 >= found.quantile.high.max(found.quantile.value));
                prop_assert!(found.limit_bytes > found.soft_limit_bytes);
            }
        }
    }
}
