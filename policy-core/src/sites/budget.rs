//! How many stacks are taken: a few for each row in a second, and not many more for all rows together.
//!
//! A stack costs some ten microseconds. To skip the samples that come after a fixed number would favour the
//! sites that allocate while it is calm. So samples are drawn by lot, and each stack stands for as many
//! samples as it was likely to be passed over.
//!
//! # Rules
//! 1. A row, and all rows together, have a *level* each. A sample gets a stack with the probability
//!    2^-(sum of the two levels), and the sum is stored with the stack. Then a stack stands for 2^sum
//!    samples. The levels depend on earlier samples only, so every sum over stacks, weighted like this, is
//!    unbiased, whatever the load does (property: `shares_are_unbiased_under_any_load`).
//! 2. A level rises by one with each [`OF_ROW`] stacks (for all rows: [`OF_ALL`]) within one second. So n
//!    samples in a second lead to about `OF_ROW` × log2(n / `OF_ROW`) stacks of a row, and 2^32 samples to no
//!    more than [`MAX_LEVEL`] times its allowance.
//! 3. A level falls after a second in which fewer than a quarter of the allowance were taken: so far that half
//!    of the allowance would have been taken. So it is soon low again after a burst.
//! 4. If the sum would be above [`MAX_LEVEL`], the sample gets no stack, and nothing stands for it. That
//!    needs millions of samples in a second; it is counted.
//! 5. Rows share [`PLACES`] places by their hash. Two rows in one place have one allowance.

use crate::sync::{AtomicU64, Ordering};

/// Stacks of a row in a second before its level rises.
pub(super) const OF_ROW: u32 = 32;
/// Stacks of all rows in a second before the common level rises.
pub(super) const OF_ALL: u32 = 128;
/// The highest level: a stack stands for 32,768 samples.
pub(super) const MAX_LEVEL: u32 = 15;
const PLACES: usize = 256;

/// The current second, its level, and the number of stacks taken in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    second: u32,
    level: u8,
    taken: u32,
}

impl State {
    fn unpack(word: u64) -> State {
        State {
            second: (word >> 32) as u32,
            level: (word >> 24) as u8,
            taken: word as u32 & 0xff_ffff,
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.second) << 32 | u64::from(self.level) << 24 | u64::from(self.taken)
    }

    /// Rule 3. A thread that is late counts in the current second.
    fn at(self, second: u32, allowance: u32) -> State {
        let passed = second.saturating_sub(self.second);
        if passed == 0 {
            return self;
        }
        let falls = |taken: u32| match taken < allowance / 4 {
            true => (allowance / 2 / taken.max(1)).ilog2(),
            false => 0,
        };
        // The seconds between were empty.
        let falls = falls(self.taken).saturating_add(falls(0).saturating_mul(passed - 1));
        State {
            second,
            level: self.level.saturating_sub(falls.min(255) as u8),
            taken: 0,
        }
    }

    /// Rule 2.
    fn taking(self, allowance: u32) -> State {
        let taken = (self.taken + 1).min(0xff_ffff);
        let rises = taken.is_multiple_of(allowance) && u32::from(self.level) < MAX_LEVEL;
        State {
            taken,
            level: self.level + u8::from(rises),
            ..self
        }
    }
}

#[derive(Debug)]
struct Place {
    state: AtomicU64,
    allowance: u32,
}

impl Place {
    fn new(allowance: u32) -> Place {
        Place {
            state: AtomicU64::new(0),
            allowance,
        }
    }

    fn level(&self, second: u32) -> u32 {
        let state = State::unpack(self.state.load(Ordering::Relaxed));
        state.at(second, self.allowance).level.into()
    }

    fn take(&self, second: u32) {
        let change = |word| {
            let state = State::unpack(word).at(second, self.allowance);
            Some(state.taking(self.allowance).pack())
        };
        let mut before = self.state.load(Ordering::Relaxed);
        while let Some(after) = change(before)
            && let Err(found) = self.state.compare_exchange_weak(
                before,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
        {
            before = found;
        }
    }
}

/// The budget. See the module.
#[derive(Debug)]
pub(super) struct Budget {
    rows: Box<[Place]>,
    all: Place,
}

/// Whether a sample gets a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draw {
    /// It does, and stands for 2^level samples.
    Taken(u32),
    /// Another one stands for it.
    PassedOver,
    /// Rule 4.
    Exhausted,
}

impl Budget {
    pub(super) fn new() -> Budget {
        Budget {
            rows: (0..PLACES).map(|_| Place::new(OF_ROW)).collect(),
            all: Place::new(OF_ALL),
        }
    }

    /// Draws for a sample of the row with this hash. `second`: of the clock. `lot`: 32 random bits. Allocating
    /// threads, lock-free.
    pub(super) fn draw(&self, row: u64, second: u32, lot: impl FnOnce() -> u32) -> Draw {
        let row = &self.rows[(row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES];
        let level = row.level(second) + self.all.level(second);
        if level > MAX_LEVEL {
            return Draw::Exhausted;
        }
        if level > 0 && lot() & ((1 << level) - 1) != 0 {
            return Draw::PassedOver;
        }
        row.take(second);
        self.all.take(second);
        Draw::Taken(level)
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        size_of_val(&*self.rows) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_calm_row_gets_a_stack_for_each_sample() {
        let budget = Budget::new();
        for second in 0..100 {
            for _ in 0..OF_ROW / 2 {
                assert_eq!(budget.draw(7, second, || 1), Draw::Taken(0));
            }
        }
    }

    #[test]
    fn stacks_of_a_second_grow_with_the_logarithm_of_its_samples() {
        let mut random = fastrand::Rng::with_seed(17);
        for samples in [100u32, 10_000, 1_000_000] {
            let budget = Budget::new();
            let taken = (0..samples)
                .filter(|_| matches!(budget.draw(7, 5, || random.u32(..)), Draw::Taken(_)));
            let taken = taken.count() as f64;
            let expected = f64::from(OF_ROW) * (1.0 + f64::from(samples / OF_ROW).log2());
            assert!(taken < 1.5 * expected, "{samples}: {taken} of {expected}");
        }
    }

    #[test]
    fn after_a_burst_a_calm_row_has_its_stacks_again() {
        let budget = Budget::new();
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..1_000_000 {
            budget.draw(7, 0, || random.u32(..));
        }
        let taken = |random: &mut fastrand::Rng, second| {
            let draws = (0..20).map(|_| budget.draw(7, second, || random.u32(..)));
            draws.filter(|draw| matches!(draw, Draw::Taken(_))).count()
        };
        let taken: Vec<usize> = (1..8).map(|second| taken(&mut random, second)).collect();
        assert!(taken[5..].iter().all(|&taken| taken >= 5), "{taken:?}");
    }

    #[test]
    fn a_busy_row_leaves_a_calm_one_its_stacks() {
        let budget = Budget::new();
        let mut random = fastrand::Rng::with_seed(3);
        let mut of_calm = 0;
        for second in 0..60 {
            for sample in 0..20_000 {
                budget.draw(1, second, || random.u32(..));
                if sample % 2_000 == 0
                    && matches!(budget.draw(2, second, || random.u32(..)), Draw::Taken(_))
                {
                    of_calm += 1;
                }
            }
        }
        assert!(of_calm >= 150, "{of_calm} of 600");
    }

    /// The estimated share of one of two sites, and its error, where both have bursts of their own.
    fn simulated(rng: &mut fastrand::Rng, loads: &[(u32, u32)]) -> [f64; 2] {
        let budget = Budget::new();
        let mut sums = [0.0; 2];
        for (second, &(one, other)) in (0..).zip(loads) {
            // One site allocates in the first half of a second, the other in the second half.
            for (site, samples) in [one, other].into_iter().enumerate() {
                for _ in 0..samples {
                    if let Draw::Taken(level) = budget.draw(9, second, || rng.u32(..)) {
                        sums[site] += f64::from(1u32 << level);
                    }
                }
            }
        }
        sums
    }

    #[test]
    fn shares_are_unbiased_under_any_load() {
        let mut rng = fastrand::Rng::with_seed(170);
        for seed in 0..20 {
            let mut loads = fastrand::Rng::with_seed(seed);
            let loads: Vec<(u32, u32)> = (0..20)
                .map(|_| (loads.u32(0..60), loads.u32(0..3000)))
                .collect();
            let truth = [0, 1].map(|site| {
                loads
                    .iter()
                    .map(|load| f64::from([load.0, load.1][site]))
                    .sum::<f64>()
            });
            let runs: Vec<[f64; 2]> = (0..200).map(|_| simulated(&mut rng, &loads)).collect();
            for site in [0, 1] {
                let mean = runs.iter().map(|run| run[site]).sum::<f64>() / runs.len() as f64;
                let squares = runs.iter().map(|run| (run[site] - mean).powi(2));
                let error = (squares.sum::<f64>() / (runs.len() * (runs.len() - 1)) as f64).sqrt();
                // 40 comparisons: one in 400 of this size is beyond 4 errors by chance.
                assert!(
                    (mean - truth[site]).abs() <= 4.0 * error + 1e-9,
                    "seed {seed}, site {site}: {mean} of {} ± {error}",
                    truth[site]
                );
            }
        }
    }

    proptest! {
        /// Levels stay in their range, whatever the clock does.
        #[test]
        fn levels_are_bounded(seconds in proptest::collection::vec(0u32..50, 0..2000)) {
            let mut state = State::default();
            for second in seconds {
                state = state.at(second, OF_ROW).taking(OF_ROW);
                prop_assert!(u32::from(state.level) <= MAX_LEVEL);
                prop_assert_eq!(State::unpack(state.pack()), state);
            }
        }
    }
}
