//! When something is full if it goes on growing as it did.
//!
//! The looks of the last seven eighths of the history are divided into at most eight blocks of time; where
//! those are too few, the looks before them count too. The mean growth g is that from the first to the last of
//! them. What the blocks differ by gives the variance D of growth in a second; the variance of g is `D / span`, or
//! what sampling adds if that is more. In h seconds from now, `g h` bytes are added, give or take
//! `t √(var(g) h² + D h)`: the second term is what the future differs by from its mean. The interval is where that
//! meets the room, with Student's t at 95 %. If growth may be none, there is no latest time: "not before".
//!
//! Pure functions.

/// The most blocks.
const BLOCKS: usize = 8;
/// The fewest blocks that give a forecast.
const FEWEST: usize = 3;
/// Neighbouring blocks share bursts, so that few of them differ by less than the future may.
const CAUTION: f64 = 1.3;
/// Student's t at 97.5 % by degrees of freedom, from 1.
const T: [f64; 8] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306];

/// How much was held at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Seconds since some moment.
    pub at: f64,
    /// Bytes.
    pub bytes: f64,
    /// The variance of `bytes` by sampling, in bytes².
    pub variance: f64,
}

/// When it is full, in seconds after the last level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Full {
    /// Not before.
    pub earliest: f64,
    /// Not after; `None`: it may never be.
    pub latest: Option<f64>,
}

/// Forecasts when `room` more bytes than the last level are used up. `levels` in ascending order of time.
/// `None`: there is too little to go by, or it does not grow.
#[must_use]
pub fn forecast(levels: &[Level], room: f64) -> Option<Full> {
    let (first, last) = (levels.first()?, levels.last()?);
    let from = first.at + (last.at - first.at) / 8.0;
    let begin = levels.partition_point(|level| level.at < from);
    let begin = begin.min(levels.len().saturating_sub(FEWEST + 1));
    let levels = blocks(&levels[begin..]);
    let (first, last) = (levels.first()?, levels.last()?);
    let count = levels.len() - 1;
    if count < FEWEST {
        return None;
    }
    let span = last.at - first.at;
    let mean = (last.bytes - first.bytes) / span;
    let squares: f64 = (levels.windows(2))
        .map(|pair| {
            let seconds = pair[1].at - pair[0].at;
            let growth = (pair[1].bytes - pair[0].bytes) / seconds;
            // A longer block says more.
            seconds * (growth - mean).powi(2)
        })
        .sum();
    let of_a_second = CAUTION * squares / (count - 1) as f64;
    // The variance that both have in common cancels; it is at most the smaller of them.
    let of_sampling = (last.variance - first.variance).abs() / (span * span);
    let of_mean = (of_a_second / span).max(of_sampling);
    let t = T[(count - 2).min(T.len() - 1)];
    let room = room.max(0.0);
    // (room - g h)² = t² (var(g) h² + D h)
    let a = mean * mean - t * t * of_mean;
    let b = 2.0 * room * mean + t * t * of_a_second;
    let root = (b * b - 4.0 * a * room * room).max(0.0).sqrt();
    if mean <= 0.0 || b + root <= 0.0 {
        return None;
    }
    Some(Full {
        // The smaller root, in the form that does not cancel.
        earliest: 2.0 * room * room / (b + root),
        latest: (a > 0.0).then(|| (b + root) / (2.0 * a)),
    })
}

/// Levels that divide the time into at most [`BLOCKS`] blocks.
fn blocks(levels: &[Level]) -> Vec<Level> {
    let Some((first, last)) = levels.first().zip(levels.last()) else {
        return Vec::new();
    };
    let shortest = (last.at - first.at) / BLOCKS as f64 * 0.6;
    let mut kept = vec![*first];
    for level in &levels[1..] {
        let since = level.at - kept.last().map_or(0.0, |last| last.at);
        if since >= shortest && since > 0.0 {
            kept.push(*level);
        }
    }
    if let Some(end) = kept.last_mut()
        && end.at < last.at
        && levels.len() > 1
    {
        *end = *last;
    }
    while kept.len() > BLOCKS + 1 {
        kept.remove(kept.len() / 2);
    }
    kept
}
