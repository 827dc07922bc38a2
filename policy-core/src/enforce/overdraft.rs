//! How much an account may be charged before the enforcer must look, and before its threads wait in duress.
//!
//! # Rules
//! Two marks on the charge of an account, both in bytes:
//!
//! * the **trip**: limit + 3 standard errors. A charge below it cannot clear the limit, so nobody
//!   needs to look. The thread that crosses it wakes the enforcer.
//! * the **stop**: in duress ([`super::duress`]) threads wait for the verdict beyond it. The overdraft lies between
//!   trip and stop.
//!
//! The overdraft depends on the account's behaviour so far. A share *r* of its allocations survives
//! a collection: near 1 for a leak, near 0 for a program that makes garbage. If `left` bytes have
//! survived the latest collection, the account is expected to hold `left + r·n` after `n` more bytes.
//! It may charge until that expectation reaches 102 % of its limit:
//!
//! ```text
//! stop = left + min( (1.02·limit − left) / r,  ¾ · free heap )
//! ```
//!
//! If more than 102 % of the limit has survived, the stop is at 102 % of the limit, not at `left`.
//! Otherwise each collection that comes while threads wait would let each thread go on by one object
//! (measured with eight threads and G1: 3 % of the limit per collection).
//!
//! So a leak stops within a few percent of its limit. A service that holds 90 % of its limit and
//! makes garbage at full speed reaches its stop only after several young collections, and one of
//! those acquits it. `r` is at least 2 %: a service that starts to leak can take 50 times the room
//! that it had left, once, and never more than three quarters of the free heap.
//!
//! `r` is measured between collections ([`Survival`]). It rises at once, and falls to no less than a
//! quarter of its value per measurement. Before the first measurement it is what the account is charged, as a share of all
//! that it ever allocated: near 1 for one that has only grown, and small for one that has made garbage for long and gets
//! a limit by a reload.

use super::state::{Estimate, MARGIN};

/// Up to which share of its limit an account may be expected to hold.
const TARGET_SHARE: f64 = 1.02;
/// The least overdraft, as a share of the limit: the enforcer needs time to look.
const LEAST_SHARE: f64 = 0.01;
/// The least overdraft, in samples: a single one must not stop a thread.
const LEAST_SAMPLES: u64 = 4;
/// The share of the free heap that an overdraft may take.
const FREE_SHARE: f64 = 0.75;
/// Fewer samples between two collections say nothing about survival.
const COHORT_SAMPLES: u64 = 32;
/// The survival falls at most to this part of itself per measurement.
const FALL: f64 = 0.25;
/// Who keeps less than this share of what it allocates makes garbage.
const GARBAGE: f64 = 0.1;
/// The survival is taken to be at least this.
const LEAST_SURVIVAL: f64 = 0.02;

/// The marks on an account's charge, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// Crossing it wakes the enforcer.
    pub trip_bytes: u64,
    /// Beyond it threads wait for the verdict.
    pub stop_bytes: u64,
}

/// The figures that the marks are computed from.
#[derive(Debug, Clone, Copy)]
pub struct MarkInputs {
    /// The account's limit.
    pub limit_bytes: u64,
    /// The account's charge.
    pub charged: Estimate,
    /// Bytes of the account that survived the latest collection.
    pub left_bytes: u64,
    /// The share of its allocations that survives a collection.
    pub survival: Survival,
    /// Bytes of the maximum heap that the latest collection left free.
    pub free_heap_bytes: u64,
    /// The sampling interval.
    pub interval_bytes: u64,
}

/// Computes the marks by the rules of the module. Pure.
pub fn marks(inputs: &MarkInputs) -> Marks {
    let limit = inputs.limit_bytes as f64;
    let left = inputs.left_bytes as f64;
    let trip = limit + MARGIN * inputs.charged.standard_error_bytes();
    let least = (limit * LEAST_SHARE).max((LEAST_SAMPLES * inputs.interval_bytes) as f64);
    let survival = inputs.survival.share();
    let free = inputs.free_heap_bytes as f64 * FREE_SHARE;
    let room = limit * TARGET_SHARE - left;
    let stop = left + (room.max(0.0) / survival).min(free) + room.min(0.0);
    Marks {
        trip_bytes: trip as u64,
        stop_bytes: stop.max(trip + least) as u64,
    }
}

/// The share of what an account allocates that survives a collection.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Survival(Option<f64>);

impl Survival {
    /// The share, between 2 % and 1.
    pub fn share(self) -> f64 {
        self.0.unwrap_or(1.0).clamp(LEAST_SURVIVAL, 1.0)
    }

    /// The share that was measured or begun with, between 0 and 1; `None` of an account that has allocated nothing.
    pub fn measured(self) -> Option<f64> {
        self.0
    }

    /// Whether hardly anything survives. Not of an account of which nothing is known.
    pub fn is_of_garbage(self) -> bool {
        self.share() < GARBAGE
    }

    /// Before the first measurement: of all `allocated_bytes` no more than `charged_bytes` can have survived.
    pub fn begin(&mut self, charged_bytes: u64, allocated_bytes: u64) {
        if self.0.is_none() && allocated_bytes > 0 {
            self.0 = Some((charged_bytes as f64 / allocated_bytes as f64).min(1.0));
        }
    }

    /// Adds a measurement: `left_bytes` of the `born_bytes` charged between two collections survived
    /// the second.
    pub fn observe(&mut self, born_bytes: u64, left_bytes: u64, interval_bytes: u64) {
        if born_bytes < COHORT_SAMPLES * interval_bytes.max(1) {
            return;
        }
        let measured = (left_bytes as f64 / born_bytes as f64).min(1.0);
        self.0 = Some(measured.max(self.0.unwrap_or(1.0) * FALL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn inputs() -> MarkInputs {
        MarkInputs {
            limit_bytes: 256 * MIB,
            charged: Estimate::default(),
            left_bytes: 230 * MIB,
            survival: Survival::default(),
            free_heap_bytes: 1024 * MIB,
            interval_bytes: 64 << 10,
        }
    }

    #[test]
    fn a_leak_is_stopped_within_a_few_percent() {
        let marks = marks(&inputs());
        assert_eq!(marks.trip_bytes, 256 * MIB);
        assert!(marks.stop_bytes <= 256 * MIB * 102 / 100 + 1);
    }

    #[test]
    fn what_survives_beyond_the_limit_buys_no_room() {
        let mut g = inputs();
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
        let mut g = inputs();
        g.survival = Survival(Some(0.1));
        assert_eq!(marks(&g).stop_bytes >> 20, 230 + 311);
        g.survival = Survival(Some(0.0));
        assert_eq!(marks(&g).stop_bytes, (230 + 768) * MIB);
        g.free_heap_bytes = 400 * MIB;
        assert_eq!(marks(&g).stop_bytes, (230 + 300) * MIB);
    }

    #[test]
    fn survival_rises_at_once_and_falls_step_by_step() {
        let mut survival = Survival::default();
        survival.observe(100 * MIB, 0, 64 << 10);
        assert_eq!(survival, Survival(Some(0.25)));
        survival.observe(100 * MIB, 90 * MIB, 64 << 10);
        assert_eq!(survival, Survival(Some(0.9)));
        survival.observe(1, 1, 64 << 10);
        assert_eq!(survival, Survival(Some(0.9)));
    }

    #[test]
    fn before_a_measurement_it_is_what_is_left_of_all_that_was_allocated() {
        let mut survival = Survival::default();
        survival.begin(0, 0);
        assert_eq!(survival.measured(), None);
        survival.begin(MIB, 50 * MIB);
        assert_eq!(survival, Survival(Some(0.02)));
        survival.begin(MIB, MIB);
        assert_eq!(survival, Survival(Some(0.02)), "once");
        survival.observe(100 * MIB, 90 * MIB, 64 << 10);
        assert_eq!(
            survival,
            Survival(Some(0.9)),
            "a leak that begins shows at once"
        );
        let mut leak = Survival::default();
        leak.begin(3 * MIB, 2 * MIB);
        assert_eq!(leak, Survival(Some(1.0)), "estimates may cross");
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
        ) {
            let charged = Estimate { bytes: left, variance };
            let inputs = MarkInputs {
                limit_bytes: limit, charged, left_bytes: left, survival: Survival(Some(share)),
                free_heap_bytes: free, interval_bytes: interval,
            };
            let marks = marks(&inputs);
            prop_assert!(marks.stop_bytes >= marks.trip_bytes);
            let least = (limit / 100).max(4 * interval) + 1;
            let most = (left + free / 4 * 3 + 3).max(marks.trip_bytes + least) + 1;
            prop_assert!(marks.stop_bytes <= most + most / (1 << 40) );
        }
    }
}
