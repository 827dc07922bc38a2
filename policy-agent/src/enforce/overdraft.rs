//! How much an account may be charged before somebody must look, and before its threads wait.
//!
//! # Rules
//! Two marks on the charge of an account, both in bytes:
//!
//! * the **trip**: limit + 3 standard errors. A charge below it clears no limit, so nobody
//!   need look. The thread that crosses it wakes the warden.
//! * the **stop**: where threads wait for the verdict. Between trip and stop lies the overdraft.
//!
//! The overdraft follows what the account has shown of itself. Of what it allocates a share
//! *r* survives a collection: near 1 for a leak, near 0 for a churn of garbage. If `left`
//! bytes have survived the latest collection, then after charging `n` bytes more it is expected
//! to hold `left + r·n`. It may charge until that expectation reaches 102 % of its limit:
//!
//! ```text
//! stop = left + min( (1.02·limit − left) / r,  ¾ · free heap )
//! ```
//!
//! An account of which more than that is left may charge no more: the stop is 102 % of its limit
//! then, and not what is left of it. Each collection that comes while threads wait would otherwise
//! let each of them go on by one object (measured: with eight threads and G1, 3 % of the limit a
//! collection).
//!
//! So a leak stops within a few percent of its limit, and a service that holds 90 % of it and
//! churns at full speed reaches its stop after whole generations of garbage, by when a
//! collection that comes anyway has acquitted it. `r` is never taken to be below 2 %: a service
//! that changes its ways can take 50 times the room that it had left, once, and never more than
//! three quarters of what the heap has free.
//!
//! Where the budget for evidence is used up, whoever waits at the stop waits for a collection
//! that only allocation brings, and on generational ZGC for one that may not come for long. An
//! account that has shown mostly garbage (`r` at most ½) then goes on, from look to look, by what
//! the heap has free beyond a quarter of its size: were it a leak after all, the heap would say
//! so. One that looks like a leak is kept waiting.
//!
//! `r` is measured between collections ([`Survival`]); it rises at once and falls
//! to a quarter at the most, and
//! an account of which nothing is known counts as a leak.

use super::state::{Estimate, MARGIN};

/// Where the expectation of what is held must stay, as a share of the limit.
const AIM: f64 = 1.02;
/// The least overdraft, as a share of the limit: the time that the warden needs to look.
const LEAST_SHARE: f64 = 0.01;
/// And in samples: a single one must not stop a thread.
const LEAST_SAMPLES: u64 = 4;
/// The share of the free heap that an overdraft may take.
const FREE_SHARE: f64 = 0.75;
/// The share of the heap that is left free where no evidence is to be had.
const RESERVE: f64 = 0.25;
/// An account that drops at least the rest of what it allocates is not taken for a leak.
const MOSTLY_GARBAGE: f64 = 0.5;
/// A cohort smaller than so many samples says nothing about survival.
const COHORT_SAMPLES: u64 = 32;
/// How far the survival may fall with one cohort.
const FALL: f64 = 0.25;
/// No account is taken to drop more than all but this.
const LEAST_SURVIVAL: f64 = 0.02;

/// The marks on an account's charge, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) trip_bytes: u64,
    pub(crate) stop_bytes: u64,
}

/// What the marks are computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground {
    pub(crate) limit_bytes: u64,
    pub(crate) charged: Estimate,
    /// What survived the latest collection.
    pub(crate) left_bytes: u64,
    pub(crate) survival: Survival,
    pub(crate) free_heap_bytes: u64,
    pub(crate) max_heap_bytes: u64,
    pub(crate) interval_bytes: u64,
    /// No evidence can be asked for now.
    pub(crate) starved: bool,
}

/// The marks by the rules of the module. Pure.
pub(crate) fn marks(ground: &Ground) -> Marks {
    let limit = ground.limit_bytes as f64;
    let left = ground.left_bytes as f64;
    let trip = limit + MARGIN * ground.charged.standard_error_bytes();
    let least = (limit * LEAST_SHARE).max((LEAST_SAMPLES * ground.interval_bytes) as f64);
    let survival = ground.survival.share();
    let free = ground.free_heap_bytes as f64 * FREE_SHARE;
    let stop = if ground.starved && survival <= MOSTLY_GARBAGE {
        let reserve = ground.max_heap_bytes as f64 * RESERVE;
        ground.charged.bytes as f64 + (ground.free_heap_bytes as f64 - reserve).max(0.0)
    } else {
        let room = limit * AIM - left;
        left + (room.max(0.0) / survival).min(free) + room.min(0.0)
    };
    Marks {
        trip_bytes: trip as u64,
        stop_bytes: stop.max(trip + least) as u64,
    }
}

/// The share of what an account allocates that survives a collection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Survival(f64);

impl Default for Survival {
    fn default() -> Survival {
        Survival(1.0)
    }
}

impl Survival {
    fn share(self) -> f64 {
        self.0.clamp(LEAST_SURVIVAL, 1.0)
    }

    /// One more cohort: of `born_bytes` charged between two collections, `left_bytes` were
    /// left by the second.
    pub(crate) fn observe(&mut self, born_bytes: u64, left_bytes: u64, interval_bytes: u64) {
        if born_bytes < COHORT_SAMPLES * interval_bytes.max(1) {
            return;
        }
        let measured = (left_bytes as f64 / born_bytes as f64).min(1.0);
        self.0 = measured.max(self.0 * FALL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn ground() -> Ground {
        Ground {
            limit_bytes: 256 * MIB,
            charged: Estimate::default(),
            left_bytes: 230 * MIB,
            survival: Survival::default(),
            free_heap_bytes: 1024 * MIB,
            max_heap_bytes: 2048 * MIB,
            interval_bytes: 64 << 10,
            starved: false,
        }
    }

    #[test]
    fn a_leak_is_stopped_within_a_few_percent() {
        let marks = marks(&ground());
        assert_eq!(marks.trip_bytes, 256 * MIB);
        assert!(marks.stop_bytes <= 256 * MIB * 102 / 100 + 1);
    }

    #[test]
    fn what_survives_beyond_the_limit_buys_no_room() {
        let mut g = ground();
        let before = marks(&g);
        g.left_bytes = 280 * MIB;
        g.charged.bytes = 280 * MIB;
        assert_eq!(marks(&g), before);
        g.charged.variance = (10 * MIB).pow(2);
        let vague = marks(&g);
        assert!(vague.stop_bytes > vague.trip_bytes, "{vague:?}");
    }

    #[test]
    fn garbage_buys_room_as_far_as_the_heap_is_free() {
        let mut g = ground();
        g.survival = Survival(0.1);
        assert_eq!(marks(&g).stop_bytes >> 20, 230 + 311);
        g.survival = Survival(0.0);
        assert_eq!(marks(&g).stop_bytes, (230 + 768) * MIB);
        g.free_heap_bytes = 400 * MIB;
        assert_eq!(marks(&g).stop_bytes, (230 + 300) * MIB);
    }

    #[test]
    fn without_evidence_garbage_goes_on_and_a_leak_does_not() {
        let mut g = ground();
        g.starved = true;
        assert_eq!(marks(&g), marks(&ground()));
        g.survival = Survival(0.5);
        g.charged.bytes = 900 * MIB;
        assert_eq!(marks(&g).stop_bytes, (900 + 512) * MIB);
        g.free_heap_bytes = 500 * MIB;
        assert_eq!(marks(&g).stop_bytes, 900 * MIB, "the reserve is kept");
    }

    #[test]
    fn survival_rises_at_once_and_falls_step_by_step() {
        let mut survival = Survival::default();
        survival.observe(100 * MIB, 0, 64 << 10);
        assert_eq!(survival, Survival(0.25));
        survival.observe(100 * MIB, 90 * MIB, 64 << 10);
        assert_eq!(survival, Survival(0.9));
        survival.observe(1, 1, 64 << 10);
        assert_eq!(survival, Survival(0.9));
    }

    proptest! {
        #[test]
        fn the_stop_is_beyond_the_trip_and_bounded(
            limit in 1u64..1 << 40,
            left in 0u64..1 << 40,
            variance in any::<u64>(),
            share in 0.0f64..=1.0,
            free in 0u64..1 << 40,
            interval in 0u64..1 << 26,
            starved in any::<bool>(),
        ) {
            let charged = Estimate { bytes: left, variance };
            let ground = Ground {
                limit_bytes: limit, charged, left_bytes: left, survival: Survival(share),
                free_heap_bytes: free, max_heap_bytes: free, interval_bytes: interval, starved,
            };
            let marks = marks(&ground);
            prop_assert!(marks.stop_bytes >= marks.trip_bytes);
            let least = (limit / 100).max(4 * interval) + 1;
            let most = (left + free / 4 * 3 + 3).max(marks.trip_bytes + least) + 1;
            prop_assert!(marks.stop_bytes <= most + most / (1 << 40) );
        }
    }
}
