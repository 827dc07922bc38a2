//! Quantiles by order statistics.

use super::{TAIL, autocorrelation, inflation};

/// Longest correlation that is looked at, in readings.
const MAX_LAGS: usize = 512;

/// A quantile and its interval, all of them readings that occurred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantile {
    /// The estimate.
    pub(crate) value: f64,
    /// The true quantile lies below with probability [`TAIL`] at most.
    pub(crate) low: f64,
    /// The true quantile lies above with probability [`TAIL`] at most, unless
    /// [`Quantile::is_bounded`] is false: then the highest reading of all.
    pub(crate) high: f64,
    /// Whether the readings sufficed for an upper end.
    pub(crate) is_bounded: bool,
    /// How many independent readings these were worth.
    pub(crate) effective_readings: f64,
}

/// The quantile `q` (0 < q < 1) of readings in the order of time; `None` without readings.
///
/// **Estimate.** The smallest reading that at least `q n` readings do not exceed: definition 1
/// of Hyndman and Fan, *Sample Quantiles in Statistical Packages*, The American Statistician
/// 50(4), 1996. It is a size that the account really had.
///
/// **Interval.** Of m independent readings the number at or below the true quantile is
/// binomial (m, q), whatever their distribution. So the u-th smallest is an upper bound with
/// probability P(B < u), and the l-th a lower one with P(B ≥ l): Conover, *Practical
/// Nonparametric Statistics*, 3rd edition, section 3.2. Where q^m > [`TAIL`] no reading is
/// high enough to be an upper bound ([`needed_readings`]).
///
/// **Correlation.** The variance of the empirical distribution at the quantile is q(1−q)/n
/// times `1 + 2 Σ ρ(k)`, ρ being the autocorrelation of "this reading exceeds the estimate"
/// (Sen, *On the Bahadur representation of sample quantiles for sequences of φ-mixing random
/// variables*, Journal of Multivariate Analysis 2, 1972). So n readings are worth
/// m = n / (1 + 2 Σ ρ(k)), and ranks among m are scaled to ranks among n.
pub(crate) fn quantile(readings: &[f64], q: f64) -> Option<Quantile> {
    let mut sorted: Vec<f64> = readings.iter().copied().filter(|x| x.is_finite()).collect();
    if sorted.is_empty() || !(q > 0.0 && q < 1.0) {
        return None;
    }
    let in_time = sorted.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    // A product such as 0.07 × 100 is a little above 7: no rank more for that.
    let rank = ((count as f64 * q - 1e-9).ceil() as usize).clamp(1, count);
    let value = sorted[rank - 1];
    let effective_readings = effective(&in_time, value);
    let worth = (effective_readings.floor() as usize).clamp(1, count);
    let scaled = |rank: usize| {
        let rank = (rank as f64 / worth as f64 * count as f64 - 1e-9).ceil() as usize;
        sorted[rank.clamp(1, count) - 1]
    };
    let upper = upper_rank(worth, q);
    Some(Quantile {
        value,
        low: lower_rank(worth, q).map_or(sorted[0], scaled).min(value),
        high: upper.map_or(sorted[count - 1], scaled).max(value),
        is_bounded: upper.is_some(),
        effective_readings,
    })
}

/// The fewest independent readings from which the quantile `q` has an upper bound:
/// q^n ≤ [`TAIL`].
pub(crate) fn needed_readings(q: f64) -> usize {
    (TAIL.ln() / q.ln()).ceil() as usize
}

fn effective(in_time: &[f64], threshold: f64) -> f64 {
    let count = in_time.len() as f64;
    let exceeds: Vec<f64> = in_time
        .iter()
        .map(|reading| f64::from(u8::from(*reading > threshold)))
        .collect();
    let mean = exceeds.iter().sum::<f64>() / count;
    let variance_sum: f64 = exceeds.iter().map(|x| (x - mean) * (x - mean)).sum();
    if variance_sum <= 0.0 {
        return count;
    }
    let most_lags = MAX_LAGS.min(in_time.len() / 2);
    count
        / inflation(most_lags, |lag| {
            autocorrelation(&exceeds, mean, variance_sum, lag)
        })
}

/// The smallest u with P(B ≥ u) ≤ [`TAIL`], B binomial (n, q).
fn upper_rank(n: usize, q: f64) -> Option<usize> {
    let mut ln_term = n as f64 * q.ln();
    let mut at_least = ln_term.exp();
    if at_least > TAIL {
        return None;
    }
    for u in (1..=n).rev() {
        // P(B = u - 1) from P(B = u); in logarithms, because q^n may be too small a number.
        ln_term += (u as f64).ln() - ((n - u + 1) as f64).ln() + (1.0 - q).ln() - q.ln();
        at_least += ln_term.exp();
        if at_least > TAIL {
            return Some(u);
        }
    }
    Some(1)
}

/// The largest l with P(B < l) ≤ [`TAIL`], B binomial (n, q).
fn lower_rank(n: usize, q: f64) -> Option<usize> {
    let mut ln_term = n as f64 * (1.0 - q).ln();
    let mut below = ln_term.exp();
    if below > TAIL {
        return None;
    }
    for l in 1..=n {
        // P(B < l + 1), that is, with P(B = l) added.
        ln_term += ((n - l + 1) as f64).ln() - (l as f64).ln() + q.ln() - (1.0 - q).ln();
        below += ln_term.exp();
        if below > TAIL {
            return Some(l);
        }
    }
    Some(n)
}
