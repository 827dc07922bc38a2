//! The widest interval in force since a given moment, and how many bytes an account may hold without a
//! single sample.
//!
//! # The bound
//! Objects of s_1, s_2, ... bytes are drawn under intervals of at most I. The probability that none is
//! sampled is at most `exp(-(s_1 + s_2 + ...)/I)`. So a set of more than `-ln(0.05) * I` bytes has no
//! sample in fewer than one case of twenty. This holds for any sizes and any accounts of the objects,
//! so the bound for one account is also the bound for a sum of accounts.
//!
//! # How it is kept
//! Changes of the interval are numbered. A change is kept until an equal or wider interval follows, so
//! the kept intervals get narrower from the oldest to the youngest. The widest interval since change n
//! is that of the oldest kept change that was still in force after n.

use crate::sync::{AtomicU32, Mutex, Ordering};

/// The bound as a multiple of the interval: more bytes have no sample in fewer than 5 % of cases.
const UNSEEN_INTERVALS: f64 = 2.995_732_273_553_991;

/// How many bytes may be held without a sample under this interval. More bytes have no sample in fewer
/// than 5 % of cases.
#[must_use]
pub fn unseen_at_most_bytes(interval_bytes: u64) -> u64 {
    (interval_bytes as f64 * UNSEEN_INTERVALS).ceil() as u64
}

/// The changes of the interval that are kept.
#[derive(Debug, Default)]
pub(crate) struct Widest {
    changes: AtomicU32,
    /// The number of the change that ended it (`u32::MAX`: none yet), and its bytes.
    kept: Mutex<Vec<(u32, u64)>>,
}

impl Widest {
    /// An interval comes into force. Agent threads; takes a lock.
    pub(crate) fn set(&self, interval_bytes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let number = self.changes.load(Ordering::Relaxed).saturating_add(1);
        if let Some(latest) = kept.last_mut() {
            latest.0 = number;
        }
        // An equal or wider one takes their place.
        let stay = kept.iter().take_while(|(_, bytes)| *bytes > interval_bytes);
        let stay = stay.count();
        kept.truncate(stay);
        kept.push((u32::MAX, interval_bytes));
        self.changes.store(number, Ordering::Release);
    }

    /// The number of the latest change. One load; any thread.
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// The widest interval in force since that change, itself included; `None` before the first.
    /// Takes a lock: reporting threads.
    pub(crate) fn since(&self, change: u32) -> Option<u64> {
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let found = kept.iter().find(|(ended, _)| *ended > change);
        found.map(|(_, bytes)| *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_intervals_bound_what_goes_unseen() {
        assert_eq!(unseen_at_most_bytes(0), 0, "exact");
        assert_eq!(unseen_at_most_bytes(65_536), 196_329);
        let missed = (-(unseen_at_most_bytes(65_536) as f64) / 65_536.0).exp();
        assert!((0.0499..=0.05).contains(&missed));
    }

    #[test]
    fn before_the_first_nothing_is_known() {
        assert_eq!(Widest::default().since(0), None);
    }

    proptest! {
        #[test]
        fn it_is_the_maximum_of_what_was_in_force(
            intervals in prop::collection::vec(0u64..6, 1..40),
        ) {
            let widest = Widest::default();
            for bytes in &intervals {
                widest.set(*bytes);
            }
            for change in 0..=intervals.len() {
                // Change n put interval n - 1 in force; what came before the first is not kept.
                let since = &intervals[change.saturating_sub(1)..];
                prop_assert_eq!(widest.since(change as u32), since.iter().copied().max());
            }
        }
    }
}
