//! Histories of allocation are sampled again and again; the estimates are held against the truth.

use super::*;
use crate::sampling::weight::{VARIANCE_UNIT_BYTES2, charge};

const INTERVAL_BYTES: u64 = 65_536;
const RUNS: u32 = 2_000;

/// Objects of one size: how many, and how many of them live.
#[derive(Clone, Copy)]
struct Objects {
    size_bytes: u64,
    count: u64,
    live: u64,
}

impl Objects {
    /// So many bytes, of which this share lives.
    fn of(size_bytes: u64, bytes: u64, share: f64) -> Objects {
        let count = bytes / size_bytes;
        Objects {
            size_bytes,
            count,
            live: (count as f64 * share) as u64,
        }
    }
}

/// How many of `count` independent objects are sampled.
fn sampled(random: &mut fastrand::Rng, count: u64, probability: f64) -> u64 {
    // From one sample to the next, so that the time is the samples'.
    let mut hits = 0;
    let mut at = 0.0;
    let step = (1.0 - probability).ln();
    loop {
        at += (1.0 - random.f64()).ln() / step;
        if at >= count as f64 {
            return hits;
        }
        at = at.floor() + 1.0;
        hits += 1;
        if at >= count as f64 {
            return hits;
        }
    }
}

fn estimated(random: &mut fastrand::Rng, size_bytes: u64, count: u64) -> Estimated {
    let probability = 1.0 - (-(size_bytes as f64) / INTERVAL_BYTES as f64).exp();
    let hits = sampled(random, count, probability) as f64;
    let each = charge(size_bytes, INTERVAL_BYTES);
    Estimated {
        bytes: hits * each.bytes as f64,
        variance_bytes2: hits * (each.variance * VARIANCE_UNIT_BYTES2) as f64,
    }
}

fn sum(one: Estimated, other: Estimated) -> Estimated {
    Estimated {
        bytes: one.bytes + other.bytes,
        variance_bytes2: one.variance_bytes2 + other.variance_bytes2,
    }
}

/// One sampling of a history: the live bytes, what it says, and the plain estimate.
fn sampling(random: &mut fastrand::Rng, history: &[Objects]) -> (f64, Since) {
    let mut truth = 0;
    let mut since = Since {
        interval_bytes: INTERVAL_BYTES as f64,
        ..Since::default()
    };
    for objects in history {
        truth += objects.live * objects.size_bytes;
        since.counted_bytes += (objects.count * objects.size_bytes) as f64;
        let live = estimated(random, objects.size_bytes, objects.live);
        let dead = estimated(random, objects.size_bytes, objects.count - objects.live);
        since.live = sum(since.live, live);
        since.allocated = sum(since.allocated, sum(live, dead));
    }
    (truth as f64, since)
}

/// Of many samplings.
struct Judged {
    /// The share of those within two standard errors.
    covered: f64,
    /// Mean of the difference to the truth, as a share of the truth.
    bias: f64,
    /// Root mean square error, and the plain estimate's.
    error_bytes: [f64; 2],
}

fn judged(seed: u64, history: &[Objects]) -> Judged {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut covered, mut off, mut squares) = (0_u32, 0.0, [0.0; 2]);
    let mut truth = 0.0;
    for _ in 0..RUNS {
        let since;
        (truth, since) = sampling(&mut random, history);
        let found = since.live_by_ratio().expect("enough samples");
        let error = found.bytes - truth;
        covered += u32::from(error.abs() <= 2.0 * found.standard_error_bytes);
        off += error;
        squares[0] += error.powi(2);
        squares[1] += (since.live.bytes - truth).powi(2);
    }
    let runs = f64::from(RUNS);
    Judged {
        covered: f64::from(covered) / runs,
        bias: off / runs / truth,
        error_bytes: squares.map(|sum| (sum / runs).sqrt()),
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn two_standard_errors_hold_the_truth_19_times_in_20() {
    for (seed, share) in [(1, 0.05), (2, 0.3), (3, 0.5), (4, 0.8), (5, 0.95), (6, 1.0)] {
        for size in [24, 1_016, 100_000] {
            let judged = judged(seed, &[Objects::of(size, 64 * MIB, share)]);
            assert!(
                judged.covered > 0.93,
                "{share} of {size}: {}",
                judged.covered
            );
            // Three standard errors of the mean of so many runs, of about a thousand samples each.
            let slack = 3.0 * judged.error_bytes[0] / f64::from(RUNS).sqrt();
            let truth = share * 64.0 * MIB as f64;
            assert!(
                judged.bias.abs() * truth <= slack + 0.002 * truth,
                "{share} of {size}: {}",
                judged.bias
            );
        }
    }
}

#[test]
fn the_error_is_smaller_by_the_root_of_what_dies() {
    for (seed, share) in [(11, 0.5), (12, 0.8), (13, 0.95)] {
        let judged = judged(seed, &[Objects::of(1_016, 64 * MIB, share)]);
        let [ratio, plain] = judged.error_bytes;
        let expected = (1.0_f64 - share).sqrt();
        assert!(
            (ratio / plain / expected - 1.0).abs() < 0.1,
            "{share}: {ratio} beside {plain}"
        );
    }
}

#[test]
fn sizes_that_live_differently_are_covered_as_well() {
    let history = [
        Objects::of(32, 40 * MIB, 0.1),
        Objects::of(4_096, 40 * MIB, 0.9),
        Objects::of(200_000, 40 * MIB, 0.7),
    ];
    let judged = judged(21, &history);
    assert!(judged.covered > 0.93, "{}", judged.covered);
    assert!(judged.error_bytes[0] < judged.error_bytes[1]);
}

#[test]
fn what_was_counted_and_never_made_is_in_the_error() {
    let mut random = fastrand::Rng::with_seed(31);
    let history = [Objects::of(1_016, 64 * MIB, 0.8)];
    for removed in [1.1, 1.5, 2.0] {
        let (truth, mut since) = sampling(&mut random, &history);
        since.counted_bytes *= removed;
        let found = since.live_by_ratio().expect("enough samples");
        assert!(
            (found.bytes - truth).abs() <= 2.0 * found.standard_error_bytes,
            "{removed}: {found:?}, not {truth}"
        );
    }
}

#[test]
fn what_lives_of_before_is_added_with_its_error() {
    let (_, mut since) = sampling(
        &mut fastrand::Rng::with_seed(41),
        &[Objects::of(1_016, 64 * MIB, 0.8)],
    );
    let without = since.live_by_ratio().expect("enough samples");
    since.live_before = Estimated {
        bytes: 1e6,
        variance_bytes2: 9e10,
    };
    let with = since.live_by_ratio().expect("enough samples");
    assert_eq!(with.bytes, without.bytes + 1e6);
    let expected = without.standard_error_bytes.hypot(3e5);
    assert!((with.standard_error_bytes - expected).abs() < 1.0);
}

#[test]
fn nothing_is_said_of_few_samples_or_without_counts() {
    let few = Since {
        counted_bytes: 1e6,
        allocated: Estimated {
            bytes: 15.0 * 65_536.0,
            variance_bytes2: 1e10,
        },
        interval_bytes: 65_536.0,
        ..Since::default()
    };
    assert_eq!(few.live_by_ratio(), None);
    let uncounted = Since {
        counted_bytes: 0.0,
        interval_bytes: 1.0,
        ..few
    };
    assert_eq!(uncounted.live_by_ratio(), None);
}

#[test]
fn where_every_object_is_a_sample_the_error_is_zero() {
    let exact = Since {
        counted_bytes: 1000.0,
        allocated: Estimated {
            bytes: 1000.0,
            variance_bytes2: 0.0,
        },
        live: Estimated {
            bytes: 800.0,
            variance_bytes2: 0.0,
        },
        ..Since::default()
    };
    let found = exact.live_by_ratio().expect("all are samples");
    assert_eq!((found.bytes, found.standard_error_bytes), (800.0, 0.0));
}
