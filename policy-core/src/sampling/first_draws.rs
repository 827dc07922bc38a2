//! How far the first samples of threads are from chance.
//!
//! # Why they are
//! HotSpot's sampler has one state of random numbers for all threads. Each new thread sets it to its own address
//! and draws its first countdown from that (`threadHeapSampler.hpp`; the test `stated_errors`
//! sees it on JDK 17, 21 and 25). So the first draw of a thread is a
//! function of where the JVM put it. A thread that ends gives its place to the next one, which draws the same. Of
//! many short threads that do the same work, those of one place are all sampled, or none of them is. Later draws are
//! mixed by those of other threads.
//!
//! # What it does to an error
//! Standard errors take samples as independent. First samples are clusters by place: the variance of their sum is
//! that of the clusters' sums. The ratio of the two is the design effect (Kish, *Survey Sampling*, 1965). It
//! is estimated here from how first samples are spread over [`PLACES`] groups of addresses:
//!
//! ```text
//! effect = variance of the groups' counts / their mean          (1 if they come by chance)
//! factor = sqrt((effect × first + others) / (first + others))
//! ```
//!
//! The factor says how many times larger than published the standard error of allocated bytes is, for all accounts
//! together: an account whose threads live long has less, one with short threads more.
//!
//! # Threads
//! [`FirstDraws::count`] is one add, once in the life of a thread that is sampled; any thread. Reading is for agent
//! threads.

use crate::sync::{AtomicU32, Ordering};

/// Groups of addresses.
#[cfg(not(loom))]
pub const PLACES: usize = 256;
/// Groups of addresses: few, because loom tracks each.
#[cfg(loom)]
pub const PLACES: usize = 2;

/// Fewer first samples than this say nothing.
const LEAST: u64 = 64;
/// Chance alone has a spread of 1 ± 0.09 (two standard errors are 0.18).
const BY_CHANCE: f64 = 1.3;

/// See the module.
#[derive(Debug)]
pub struct FirstDraws {
    by_place: Box<[AtomicU32]>,
}

impl Default for FirstDraws {
    fn default() -> FirstDraws {
        FirstDraws {
            by_place: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl FirstDraws {
    /// The first sample of the thread at this address.
    pub fn count(&self, address: usize) {
        self.by_place[place(address)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many times larger than published the standard error of what was allocated is, if there were so many samples
    /// in all; 1 if first samples come by chance, or are too few to tell.
    pub fn error_factor(&self, samples: u64) -> f64 {
        let counts = self.by_place.iter();
        let counts: Vec<u32> = counts.map(|count| count.load(Ordering::Relaxed)).collect();
        factor(&counts, samples)
    }
}

/// Threads lie at multiples of a power of two: the upper bits of the product are mixed best.
fn place(address: usize) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = ((address as u64) >> 3).wrapping_mul(SPREAD);
    (mixed >> (u64::BITS - PLACES.ilog2())) as usize
}

/// Pure.
fn factor(counts: &[u32], samples: u64) -> f64 {
    let first: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if first < LEAST {
        return 1.0;
    }
    let mean = first as f64 / counts.len() as f64;
    let squares: f64 = (counts.iter())
        .map(|count| (f64::from(*count) - mean).powi(2))
        .sum();
    let effect = squares / (counts.len() - 1) as f64 / mean;
    if effect < BY_CHANCE {
        return 1.0;
    }
    let samples = samples.max(first) as f64;
    let first = first as f64;
    ((effect * first + samples - first) / samples).sqrt()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sampling::simulation::Rng;

    #[test]
    fn places_that_come_by_chance_have_no_effect() {
        for seed in 1..200 {
            let mut rng = Rng(seed);
            let draws = FirstDraws::default();
            for _ in 0..2_000 {
                draws.count(0x7f00_0000_0000 + (rng.below(1 << 20) << 4) as usize);
            }
            assert_eq!(draws.error_factor(2_000), 1.0);
        }
    }

    #[test]
    fn threads_side_by_side_have_no_effect() {
        for stride in [0x400, 0x5f0, 0x800, 0x1000, 0x2010] {
            let draws = FirstDraws::default();
            for thread in 0..1_000 {
                draws.count(0x7f12_3456_7000 + thread * stride);
            }
            assert_eq!(draws.error_factor(1_000), 1.0, "{stride:#x}");
        }
    }

    /// The estimate of many threads at few places lies as far from the truth as the factor says.
    #[test]
    fn threads_at_few_places_are_as_far_from_the_truth_as_it_says() {
        const THREADS: usize = 2_000;
        const NEEDED: f64 = 0.11;
        let (mut squares, mut stated, runs) = (0.0, 0.0, 400);
        for seed in 1..=runs {
            let mut rng = Rng(seed);
            let draws = FirstDraws::default();
            // Each place is sampled whenever a thread is there, or never.
            let place_is_sampled: Vec<bool> = (0..40).map(|_| rng.unit() < NEEDED).collect();
            let mut sampled = 0_u32;
            for thread in 0..THREADS {
                let place = thread % 40;
                if place_is_sampled[place] {
                    sampled += 1;
                    draws.count(0x7f00_0000_0000 + place * 0x12340);
                }
            }
            let truth = THREADS as f64 * NEEDED;
            squares += (f64::from(sampled) - truth).powi(2);
            let published = f64::from(sampled) * (1.0 - NEEDED);
            stated += published * draws.error_factor(u64::from(sampled)).powi(2);
        }
        let ratio = (squares / stated).sqrt();
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn other_samples_make_less_of_it() {
        let draws = FirstDraws::default();
        for _ in 0..100 {
            draws.count(0x7f00_0000_0000);
        }
        let alone = draws.error_factor(100);
        assert!((alone - 10.0).abs() < 0.1, "{alone}");
        assert!((draws.error_factor(10_000) - 1.41).abs() < 0.02);
        assert!(
            draws.error_factor(0) >= alone,
            "it is bounded by what there was"
        );
        assert_eq!(FirstDraws::default().error_factor(9), 1.0);
    }
}
