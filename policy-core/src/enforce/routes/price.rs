//! The cost of a request of a route: how much it allocates, and how much of that it keeps.
//!
//! # The estimate
//! A *window* begins at an epoch and counts the requests that came in from then on. What was born in it, was
//! charged to the route and has survived a later collection is what its requests *kept*; later collections
//! may still take from it, so it is measured again at each. A window ends after [`LEAST_CALLS`] requests and
//! [`LEAST_MS`], once it has so many requests that what sampling may have missed is at most half of
//! [`CHEAP_BYTES`] for each, and after [`LONGEST_MS`] at the latest. The one before is kept beside the one
//! that runs, the older is dropped: old history fades.
//!
//! ```text
//! most kept a call = (kept + 1.645 standard errors + 3 intervals) / calls
//! ```
//!
//! The last term is the rule of three: bytes of which no sample was met are fewer with 95 % confidence.
//! Requests that are inside while a collection runs keep what they work with: they make a route look dearer
//! than it is, for a moment. So does garbage in old memory, until it is collected.

use crate::sampling::standard_error_bytes;

/// A route is cheap if a request of it keeps at most so many bytes, with 95 % confidence.
pub const CHEAP_BYTES: u64 = 1 << 10;
/// Requests of a window at the least.
pub const LEAST_CALLS: u64 = 64;
/// The shortest window, in milliseconds.
pub const LEAST_MS: u64 = 10_000;
/// The longest window, in milliseconds.
pub const LONGEST_MS: u64 = 600_000;
/// Intervals that may have gone by without a sample, with 95 % confidence.
const UNSEEN_INTERVALS: f64 = 3.0;
/// Standard errors above a mean that are exceeded in 5 % of cases.
const UPPER: f64 = 1.645;

/// The counters of a route at the beginning of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The epoch.
    pub epoch: u32,
    /// When, as the uptime in milliseconds.
    pub now_ms: u64,
    /// Requests that came in before it.
    pub calls: u64,
    /// Bytes allocated before it.
    pub allocated_bytes: u64,
    /// The variance of these, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub allocated_variance: u64,
    /// The number of the latest change of the sampling interval.
    pub changes: u32,
}

/// The window that runs and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Windows {
    previous: Option<Mark>,
    current: Mark,
}

/// The sum of the objects that were born in the windows and have survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Bytes.
    pub bytes: u64,
    /// Their variance, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
}

/// The cost of a request in the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// How many requests it was learned from.
    pub calls: u64,
    /// The bytes that a request keeps.
    pub kept_bytes: u64,
    /// The most that it keeps, with 95 % confidence.
    pub most_kept_bytes: u64,
    /// The bytes that a request allocates.
    pub allocated_bytes: u64,
    /// The most that it allocates in the mean, with 95 % confidence: so much it has at a time at the most.
    pub peak_bytes: u64,
}

impl Windows {
    /// Begins the first window.
    pub fn begin(mark: Mark) -> Windows {
        Windows {
            previous: None,
            current: mark,
        }
    }

    /// From where on the requests count.
    pub fn from(&self) -> Mark {
        self.previous.unwrap_or(self.current)
    }

    /// The price of the requests up to `upto`, of which `kept` has survived. `interval_bytes` is the widest
    /// sampling interval in force meanwhile.
    pub fn price(&self, upto: Mark, kept: Kept, interval_bytes: u64) -> Price {
        let from = self.from();
        let calls = upto.calls.saturating_sub(from.calls);
        if calls == 0 {
            return Price::default();
        }
        let unseen = UNSEEN_INTERVALS * interval_bytes as f64;
        let most =
            |bytes: u64, variance| bytes as f64 + UPPER * standard_error_bytes(variance) + unseen;
        let each = |bytes: f64| (bytes / calls as f64).ceil() as u64;
        let allocated = (upto.allocated_bytes).saturating_sub(from.allocated_bytes);
        let variance = (upto.allocated_variance).saturating_sub(from.allocated_variance);
        Price {
            calls,
            kept_bytes: each(kept.bytes as f64),
            most_kept_bytes: each(most(kept.bytes, kept.variance)),
            allocated_bytes: each(allocated as f64),
            peak_bytes: each(most(allocated, variance)),
        }
    }

    /// Ends the window at `upto` if it may end.
    pub fn turn(&mut self, upto: Mark, interval_bytes: u64) {
        let calls = upto.calls.saturating_sub(self.current.calls);
        let lasted_ms = upto.now_ms.saturating_sub(self.current.now_ms);
        let unseen_bytes = 3 * interval_bytes;
        let is_exact = unseen_bytes <= calls.saturating_mul(CHEAP_BYTES / 2);
        if calls >= LEAST_CALLS && (lasted_ms >= LEAST_MS && is_exact || lasted_ms >= LONGEST_MS) {
            self.previous = Some(self.current);
            self.current = upto;
        }
    }
}

impl Price {
    /// Whether a request keeps next to nothing.
    pub fn is_cheap(&self) -> bool {
        self.calls >= LEAST_CALLS && self.most_kept_bytes <= CHEAP_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::weight::{OBJECT_UNIT, charge};
    use proptest::prelude::*;

    const INTERVAL: u64 = 16 << 10;

    fn mark(epoch: u32, now_ms: u64, calls: u64) -> Mark {
        Mark {
            epoch,
            now_ms,
            calls,
            allocated_bytes: calls * 10_000,
            ..Mark::default()
        }
    }

    #[test]
    fn a_route_that_keeps_nothing_becomes_cheap_once_sampling_can_tell() {
        let windows = Windows::begin(mark(1, 0, 0));
        let price = |calls| windows.price(mark(2, 20_000, calls), Kept::default(), INTERVAL);
        assert!(!price(0).is_cheap());
        assert!(!price(47).is_cheap(), "three intervals may be hidden");
        assert!(!price(63).is_cheap(), "too few");
        assert!(price(64).is_cheap());
        assert_eq!(price(64).allocated_bytes, 10_000);
        assert!(price(64).peak_bytes > 10_000);
    }

    #[test]
    fn old_history_fades() {
        let mut windows = Windows::begin(mark(1, 0, 0));
        windows.turn(mark(5, 9_999, 1_000), INTERVAL);
        assert_eq!(windows.from().epoch, 1);
        windows.turn(mark(6, 10_000, 1_000), INTERVAL);
        assert_eq!(windows.from().epoch, 1, "the one before still counts");
        windows.turn(mark(9, 20_000, 2_000), INTERVAL);
        assert_eq!(windows.from().epoch, 6);
        // Few requests: the window lasts until it can tell, but not for ever.
        windows.turn(mark(20, 400_000, 2_064), INTERVAL * 64);
        assert_eq!(windows.from().epoch, 6);
        windows.turn(mark(30, 620_000, 2_064), INTERVAL * 64);
        assert_eq!(windows.from().epoch, 9);
    }

    /// The upper bound is above the truth in about 95 % of cases or more, for objects of any size.
    #[test]
    fn the_bound_holds() {
        let mut random = fastrand::Rng::with_seed(7);
        for size in [64u64, 1_000, 20_000, 300_000] {
            let (calls, rounds) = (200, 2_000);
            let mut below = 0;
            for _ in 0..rounds {
                let mut kept = Kept::default();
                for _ in 0..calls {
                    let sampled = 1.0 - (-(size as f64) / INTERVAL as f64).exp();
                    if random.f64() < sampled {
                        let charge = charge(size, INTERVAL);
                        assert!(charge.objects >= OBJECT_UNIT);
                        kept.bytes += charge.bytes;
                        kept.variance += charge.variance;
                    }
                }
                let windows = Windows::begin(mark(1, 0, 0));
                let price = windows.price(mark(2, 20_000, calls), kept, INTERVAL);
                below += u32::from(price.most_kept_bytes < size);
            }
            assert!(below <= rounds / 15, "{size}: {below} of {rounds}");
        }
    }

    proptest! {
        #[test]
        fn what_keeps_more_is_never_cheaper(
            calls in 1u64..100_000,
            bytes in 0u64..1 << 30,
            more in 0u64..1 << 30,
            variance in 0u64..1 << 40,
            interval in 0u64..1 << 20,
        ) {
            let windows = Windows::begin(mark(1, 0, 0));
            let upto = mark(2, 20_000, calls);
            let price = |bytes| windows.price(upto, Kept { bytes, variance }, interval);
            prop_assert!(price(bytes).most_kept_bytes <= price(bytes + more).most_kept_bytes);
            prop_assert!(price(bytes).most_kept_bytes >= price(bytes).kept_bytes);
            if bytes > calls * CHEAP_BYTES {
                prop_assert!(!price(bytes).is_cheap());
            }
        }
    }
}
