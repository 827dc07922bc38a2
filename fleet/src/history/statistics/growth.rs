//! Growth that a few wild readings don't move.

use super::{Z, autocorrelation, inflation};

/// Most blocks that a period is divided into: 32,640 pairs of them.
const MAX_BLOCKS: usize = 256;

/// Fewest blocks from which a slope is estimated.
pub(crate) const FEWEST_BLOCKS: usize = 8;

/// A straight line through readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    /// Units a second.
    pub(crate) slope: f64,
    /// The true slope lies below with probability 5 % at most.
    pub(crate) low: f64,
    /// The true slope lies above with probability 5 % at most.
    pub(crate) high: f64,
    /// Where the line is at the time of the last reading.
    pub(crate) level: f64,
}

impl Growth {
    /// Whether it is surely upwards.
    pub(crate) fn is_sure(&self) -> bool {
        self.low > 0.0
    }

    /// Seconds from the last reading until the line reaches `level`; 0 where it has, `None`
    /// where it does not rise.
    pub(crate) fn seconds_to(&self, level: f64) -> Option<f64> {
        if self.level >= level {
            return Some(0.0);
        }
        (self.slope > 0.0).then(|| (level - self.level) / self.slope)
    }
}

/// The growth of readings, each with its time in seconds, in order; `None` with fewer than
/// [`FEWEST_BLOCKS`] of them.
///
/// **Slope.** The median of the slopes of all pairs: Theil, *A rank-invariant method of linear
/// and polynomial regression analysis*, Indagationes Mathematicae 12, 1950; Sen, *Estimates of
/// the regression coefficient based on Kendall's tau*, Journal of the American Statistical
/// Association 63, 1968. Pairs grow with the square of the readings, so these are first
/// reduced to the medians of at most 256 blocks of equal count.
///
/// **Interval.** Sen's: of the N sorted slopes the ones at ranks (N ∓ z √V)/2, V being the
/// variance of Kendall's S, `n(n−1)(2n+5)/18`. Blocks hours apart still resemble each other
/// (a day's wave), so V is multiplied by `1 + 2 Σ ρ(k)`, ρ being the autocorrelation of the
/// ranks of what the line leaves: Yue and Wang, *The Mann-Kendall test modified by effective
/// sample size*, Water Resources Management 18, 2004. A line through few readings takes some
/// of their correlation with it: where they are worth twenty, one period in twelve without
/// growth seems to have some, instead of one in twenty.
///
/// **Level.** The line goes through the median of what it leaves.
pub(crate) fn growth(readings: &[(f64, f64)]) -> Option<Growth> {
    let last = readings.last()?.0;
    let blocks = blocks(readings);
    let count = blocks.len();
    if count < FEWEST_BLOCKS {
        return None;
    }
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    for (index, (time, value)) in blocks.iter().enumerate() {
        for (later, then) in &blocks[index + 1..] {
            if later > time {
                slopes.push((then - value) / (later - time));
            }
        }
    }
    let pairs = slopes.len();
    // Four of them are needed, so they are not sorted.
    let mut ranked = |rank: usize| {
        let rank = rank.min(slopes.len().checked_sub(1)?);
        Some(*slopes.select_nth_unstable_by(rank, f64::total_cmp).1)
    };
    let slope = f64::midpoint(ranked(pairs.saturating_sub(1) / 2)?, ranked(pairs / 2)?);
    let mut rest: Vec<f64> = blocks
        .iter()
        .map(|(time, value)| value - slope * (time - last))
        .collect();

    let n = count as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * correlation_factor(&rest);
    let half_width = Z * variance.sqrt();
    let pairs = pairs as f64;
    let mut at = |rank: f64| ranked(rank.max(0.0) as usize);
    let (low, high) = (
        at(((pairs - half_width) / 2.0).floor() - 1.0)?,
        at(((pairs + half_width) / 2.0).ceil())?,
    );
    rest.sort_unstable_by(f64::total_cmp);
    Some(Growth {
        slope,
        low: low.min(slope),
        high: high.max(slope),
        level: middle(&rest)?,
    })
}

/// Medians of times and values over at most [`MAX_BLOCKS`] runs of readings.
fn blocks(readings: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = readings.len().div_ceil(MAX_BLOCKS).max(1);
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        middle(&values)
    };
    let runs = readings.chunks(size);
    runs.filter_map(|run| {
        let time = median(run.iter().map(|(time, _)| *time).collect())?;
        let value = median(run.iter().map(|(_, value)| *value).collect())?;
        Some((time, value))
    })
    .collect()
}

/// The median of sorted values.
fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

fn correlation_factor(rest: &[f64]) -> f64 {
    let ranks = ranks(rest);
    let mean = (ranks.len() as f64 + 1.0) / 2.0;
    let variance_sum: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if variance_sum <= 0.0 {
        return 1.0;
    }
    inflation(ranks.len() / 2, |lag| {
        autocorrelation(&ranks, mean, variance_sum, lag)
    })
}

/// The rank of each value, equal ones sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for run in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let shared = start as f64 + (run.len() as f64 + 1.0) / 2.0;
        for index in run {
            ranks[*index] = shared;
        }
        start += run.len();
    }
    ranks
}
