//! How far the metadata thread is with the names of classes, for those who must not read before it.
//!
//! Rule: the thread counts a round each time that it finds no class waiting. A class that was waiting before a call
//! of [`Rounds::wait_for_all`] has its name once *two* more rounds are counted: the thread may have found nothing
//! just before the call, and count that round after it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two looks. A question from outside takes longer in any case.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Rounds(AtomicU64);

impl Rounds {
    /// No class is waiting now. The metadata thread.
    pub(crate) fn finished(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Waits until each class that is waiting now has its name; `wake` is to wake the metadata thread. `false`: it
    /// did not get there in this time, or `is_cancelled` said so. Any thread but the metadata thread and those that
    /// allocate.
    pub(crate) fn wait_for_all(
        &self,
        longest: Duration,
        wake: impl Fn(),
        is_cancelled: &dyn Fn() -> bool,
    ) -> bool {
        let until = Instant::now() + longest;
        let wanted = self.0.load(Ordering::Acquire) + 2;
        while self.0.load(Ordering::Acquire) < wanted {
            if is_cancelled() || Instant::now() >= until {
                return false;
            }
            wake();
            std::thread::sleep(BETWEEN_LOOKS);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_round_that_may_have_begun_before_is_not_enough() {
        let rounds = Rounds::default();
        rounds.finished();
        let woken = AtomicU64::new(0);
        let all = rounds.wait_for_all(
            LONG,
            || {
                if woken.fetch_add(1, Ordering::Relaxed) < 2 {
                    rounds.finished();
                }
            },
            &|| false,
        );
        assert!(all);
        assert_eq!(woken.into_inner(), 2);
    }

    #[test]
    fn it_ends_when_nobody_names_anything() {
        let rounds = Rounds::default();
        let count = || rounds.finished();
        assert!(!rounds.wait_for_all(Duration::ZERO, count, &|| false));
        assert!(!rounds.wait_for_all(LONG, || (), &|| true));
    }
}
