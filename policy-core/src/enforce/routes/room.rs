//! How many requests of cheap routes go in at a shut door at a time, and how much they may be charged until
//! the next evidence. Atomics only; on threads of requests.
//!
//! A request goes in freely if its route is cheap, and
//! * what all of them that are inside have at a time, by what a request of their routes allocates, fits into
//!   what is left of the reserve;
//! * what the cheap routes were charged since the latest evidence, beyond what so many of their requests
//!   allocate as a rule, fits into the budget: 1/[`BUDGET_SHARE`] of the limit. What a request allocates as a
//!   rule is garbage, as evidence has shown; what goes beyond may be kept;
//! * all that they were charged since the latest evidence fits into what is left of the reserve and as much again
//!   as that evidence has shown to be garbage, and a quarter of what the collection left free of the heap.

use crate::sync::{AtomicU64, Ordering};

/// The cheap routes of an account may be charged the limit divided by this unexpectedly until the next evidence.
pub const BUDGET_SHARE: u64 = 32;

/// The room for the requests of one service.
#[derive(Debug, Default)]
pub struct Room {
    left_bytes: AtomicU64,
    shown_bytes: AtomicU64,
    budget_bytes: AtomicU64,
    inside_bytes: AtomicU64,
    most_inside_bytes: AtomicU64,
}

impl Room {
    /// Sets what is left of the reserve, the budget until the next evidence, and what the latest has shown to be
    /// garbage. The enforcer's thread.
    pub fn set(&self, left_bytes: u64, budget_bytes: u64, shown_bytes: u64) {
        self.shown_bytes.store(shown_bytes, Ordering::Relaxed);
        self.budget_bytes.store(budget_bytes, Ordering::Relaxed);
        self.left_bytes.store(left_bytes, Ordering::Relaxed);
    }

    /// Takes room for a request that has `peak_bytes` at a time. `charged`: what the cheap routes were charged since
    /// the latest evidence. False: there is no room. Two threads never get the same bytes.
    pub fn enter(&self, peak_bytes: u64, charged: Charged) -> bool {
        let Charged {
            excess_bytes,
            all_bytes,
        } = charged;
        if excess_bytes > self.budget_bytes.load(Ordering::Relaxed) {
            return false;
        }
        let left = self.left_bytes.load(Ordering::Relaxed);
        let with_shown = left.saturating_add(self.shown_bytes.load(Ordering::Relaxed));
        let fits = |inside: u64| {
            let after = inside.checked_add(peak_bytes)?;
            let fits = after.saturating_add(excess_bytes) <= left
                && after.saturating_add(all_bytes) <= with_shown;
            fits.then_some(after)
        };
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        let entered = self.inside_bytes.fetch_update(order.0, order.1, fits);
        if let Ok(before) = entered {
            let after = before.saturating_add(peak_bytes);
            self.most_inside_bytes.fetch_max(after, Ordering::Relaxed);
        }
        entered.is_ok()
    }

    /// The request has ended.
    pub fn leave(&self, peak_bytes: u64) {
        let less = |inside: u64| Some(inside.saturating_sub(peak_bytes));
        let _ = (self.inside_bytes).fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    }

    /// Returns the most bytes that those inside had at a time since the last call. The enforcer's thread.
    pub fn take_most_inside(&self) -> u64 {
        let now = self.inside_bytes.load(Ordering::Relaxed);
        self.most_inside_bytes.swap(now, Ordering::Relaxed).max(now)
    }

    /// Nobody is inside: the end of a request whose thread was ended by force is never told. Only while the door
    /// is open. The enforcer's thread.
    pub fn empty(&self) {
        self.inside_bytes.store(0, Ordering::Relaxed);
    }
}

/// The charges to the cheap routes of a service since the latest evidence, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charged {
    /// Beyond what is expected: see [`Spent::excess_bytes`].
    pub excess_bytes: u64,
    /// In all.
    pub all_bytes: u64,
}

/// The charges to one route since the latest evidence, and the figures that say how many of them are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Bytes charged, less what was refunded.
    pub charged_bytes: u64,
    /// Requests that came in.
    pub calls: u64,
    /// The bytes that a request allocates as a rule.
    pub allocated_bytes: u64,
    /// The sampling interval: charges come in steps of it.
    pub interval_bytes: u64,
}

impl Spent {
    /// The bytes beyond what so many requests allocate as a rule and what chance may add (two deviations of
    /// a number of samples, and one sample).
    pub fn excess_bytes(&self) -> u64 {
        let expected = self.calls.saturating_mul(self.allocated_bytes);
        let samples = expected as f64 / self.interval_bytes.max(1) as f64;
        let chance = (2.0 * (samples + 1.0).sqrt() + 1.0) * self.interval_bytes as f64;
        (self.charged_bytes).saturating_sub(expected.saturating_add(chance as u64))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn excess(excess_bytes: u64) -> Charged {
        Charged {
            excess_bytes,
            all_bytes: excess_bytes,
        }
    }

    #[test]
    fn what_was_charged_in_all_fits_into_the_reserve_and_what_was_garbage() {
        let room = Room::default();
        room.set(1_000, 100, 500);
        let all = |all_bytes| Charged {
            excess_bytes: 0,
            all_bytes,
        };
        assert!(!room.enter(100, all(1_401)));
        assert!(room.enter(100, all(1_400)));
        assert!(!room.enter(100, all(1_400)));
    }

    #[test]
    fn as_many_go_in_as_fit_and_each_makes_room_again() {
        let room = Room::default();
        assert!(
            !room.enter(1, excess(0)),
            "nothing is left before it is set"
        );
        room.set(1_000, 100, 1_000);
        assert!(room.enter(400, excess(0)) && room.enter(400, excess(0)));
        assert!(!room.enter(400, excess(0)));
        assert!(
            !room.enter(200, excess(1)),
            "the excess takes from what is left"
        );
        assert!(room.enter(200, excess(0)));
        assert_eq!(room.take_most_inside(), 1_000);
        room.leave(400);
        assert!(
            !room.enter(1, excess(101)),
            "beyond the budget nobody goes in"
        );
        assert!(room.enter(300, excess(100)));
        room.empty();
        room.leave(300);
        assert!(
            room.enter(1_000, excess(0)),
            "an end that comes late takes no room"
        );
    }

    #[test]
    fn what_is_expected_is_no_excess() {
        let mut random = fastrand::Rng::with_seed(3);
        let interval_bytes = 16 << 10;
        let mut over = 0;
        for _ in 0..1_000 {
            let (calls, allocated_bytes) = (random.u64(1..5_000), random.u64(1..200_000));
            let mean = calls as f64 * allocated_bytes as f64 / interval_bytes as f64;
            // A normal deviate will do for a number of samples.
            let deviate: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let samples = (mean + deviate * mean.sqrt()).max(0.0);
            let spent = Spent {
                charged_bytes: (samples * interval_bytes as f64) as u64,
                calls,
                allocated_bytes,
                interval_bytes,
            };
            over += u32::from(spent.excess_bytes() > 0);
        }
        assert!(over < 50, "{over}");
        let growing = Spent {
            charged_bytes: 40 << 20,
            calls: 10,
            allocated_bytes: 1_000,
            interval_bytes,
        };
        assert!(growing.excess_bytes() > 39 << 20);
    }

    proptest! {
        /// Whatever comes in whatever order, those inside never have more than is left.
        #[test]
        fn those_inside_fit(steps in proptest::collection::vec((1u64..500, any::<bool>()), 1..60)) {
            let room = Room::default();
            room.set(1_000, 0, 0);
            let mut inside: Vec<u64> = Vec::new();
            for (peak, enters) in steps {
                if enters && room.enter(peak, excess(0)) {
                    inside.push(peak);
                } else if let Some(peak) = inside.pop() {
                    room.leave(peak);
                }
                prop_assert!(inside.iter().sum::<u64>() <= 1_000);
            }
        }
    }
}
