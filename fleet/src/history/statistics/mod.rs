//! High quantiles, growth, and how sure they are. Pure; knows no JVM.
//!
//! All intervals are for a confidence of 95 % at *each* end that is used (`TAIL`). Readings
//! minutes apart resemble each other, so both statistics count how many independent readings
//! theirs are worth before they say how sure they are.

mod growth;
mod quantile;

pub(crate) use growth::{Growth, growth};
pub(crate) use quantile::{Quantile, needed_readings, quantile};

/// The chance that the truth lies beyond one end of an interval.
pub(crate) const TAIL: f64 = 0.05;

/// The standard normal value that is exceeded with probability [`TAIL`].
pub(crate) const Z: f64 = 1.644_853_627;

/// `√(Σ parts²)`: the error of a sum whose parts err independently.
pub(crate) fn in_quadrature(parts: impl IntoIterator<Item = f64>) -> f64 {
    parts
        .into_iter()
        .map(|part| part * part)
        .sum::<f64>()
        .sqrt()
}

/// The factor by which correlation makes the variance of a mean larger than that of
/// independent values, and 1 at least: `1 + 2 Σ ρ(k)`.
///
/// `correlation(k)` is asked for k = 1, 2, … up to `most_lags`, until the sum of two
/// neighbours is no longer positive, after which an estimate of ρ is but noise: the initial
/// positive sequence of Geyer, *Practical Markov Chain Monte Carlo*, Statistical Science
/// 7(4), 1992, section 3.3.
fn inflation(most_lags: usize, correlation: impl Fn(usize) -> f64) -> f64 {
    let mut sum = 0.0;
    let mut lag = 1;
    while lag < most_lags {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair.is_nan() || pair <= 0.0 {
            break;
        }
        sum += pair;
        lag += 2;
    }
    1.0 + 2.0 * sum
}

/// The correlation of `values`, whose mean is `mean`, with themselves `lag` later.
fn autocorrelation(values: &[f64], mean: f64, variance_sum: f64, lag: usize) -> f64 {
    let later = values.iter().skip(lag);
    let products = values
        .iter()
        .zip(later)
        .map(|(a, b)| (a - mean) * (b - mean));
    products.sum::<f64>() / variance_sum
}

#[cfg(test)]
mod tests;
