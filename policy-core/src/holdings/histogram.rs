//! Ages and sizes of a row as bins.
//!
//! The bins of ages by time are the same for all rows and readings, so that two can be compared. A cohort
//! whose births lie on both sides of a bin's edge counts where its middle lies.

use super::tally::{Row, Sums};
use super::times::EpochTimes;

/// The upper edges of the bins of ages in seconds; the last bin has none.
pub const AGES_SECONDS: [u64; 10] = [
    10, 60, 300, 600, 1_800, 3_600, 10_800, 43_200, 86_400, 604_800,
];
/// The upper edges of the bins of collections survived; the last bin has none.
pub const AGES_COLLECTIONS: [u64; 8] = [0, 1, 3, 7, 15, 31, 127, 1_023];

/// One bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The largest value that belongs here; `None`: everything beyond the bin before.
    pub upto: Option<u64>,
    /// The sums of the live records in this bin.
    pub live: Sums,
}

/// The shape of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// How many generations have live instances: births with different counts of covering collections
    /// survived. Where marks were thinned, neighbours count as one.
    pub generations: u64,
    /// By covering collections survived.
    pub ages_collections: Vec<Bin>,
    /// By age in seconds.
    pub ages_seconds: Vec<Bin>,
    /// By size of one object in bytes.
    pub sizes: Vec<Bin>,
}

impl Shape {
    /// The shape of one row at `now_ms`.
    #[must_use]
    pub fn of(row: &Row, times: &EpochTimes, now_ms: u64) -> Shape {
        let mut shape = Shape::default();
        let mut last_generation = None;
        for one in &row.cohorts {
            let survived = times.survived(usize::from(one.cohort));
            if last_generation != Some(survived) {
                last_generation = Some(survived);
                shape.generations += 1;
            }
            let (youngest_ms, oldest_ms) = times.ages_ms(usize::from(one.cohort), now_ms);
            let age_seconds = (youngest_ms + oldest_ms) / 2 / 1_000;
            let by_time = bin(&AGES_SECONDS, age_seconds);
            add(&mut shape.ages_seconds, by_time, &one.live);
            let by_count = bin(&AGES_COLLECTIONS, u64::from(survived));
            add(&mut shape.ages_collections, by_count, &one.live);
        }
        for (size, live) in &row.sizes {
            add(&mut shape.sizes, Some(1 << size), live);
        }
        shape
    }

    /// Adds the shape of another row of the same reading.
    pub fn add(&mut self, other: &Shape) {
        self.generations = self.generations.max(other.generations);
        for (own, others) in [
            (&mut self.ages_collections, &other.ages_collections),
            (&mut self.ages_seconds, &other.ages_seconds),
            (&mut self.sizes, &other.sizes),
        ] {
            for bin in others {
                add(own, bin.upto, &bin.live);
            }
        }
    }
}

/// The edge of the bin of a value.
fn bin(edges: &[u64], value: u64) -> Option<u64> {
    edges.iter().copied().find(|&edge| value <= edge)
}

/// Adds to a bin, which is made at its place if it is not there.
fn add(bins: &mut Vec<Bin>, upto: Option<u64>, live: &Sums) {
    let order = |upto: Option<u64>| upto.unwrap_or(u64::MAX);
    let at = bins.partition_point(|bin| order(bin.upto) < order(upto));
    if bins.get(at).is_none_or(|bin| bin.upto != upto) {
        let live = Sums::default();
        bins.insert(at, Bin { upto, live });
    }
    bins[at].live += live;
}
