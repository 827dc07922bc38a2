//! How far a thread of the agent is, for those who must not go on before it.
//!
//! Rule: the metadata thread counts a round each time that it finds no class waiting for a name, the enforcer one
//! for each turn. Work that was waiting before a call of [`Rounds::wait_for_all`] is done once *two* more rounds are
//! counted: the thread may have found nothing just before the call, and count that round after it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Rounds(AtomicU64);

impl Rounds {
    /// A round is finished. The thread whose rounds they are.
    pub(crate) fn finished(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Waits until all that is waiting now is done; `wake` is to wake the thread. `false`: it did not get there in
    /// this time, or `is_in_vain` said so. Any other thread, but none that allocates.
    pub(crate) fn wait_for_all(
        &self,
        longest: Duration,
        wake: impl Fn(),
        is_in_vain: &dyn Fn() -> bool,
    ) -> bool {
        let finished = self.0.load(Ordering::Acquire);
        self.wait_until(finished + 2, longest, wake, is_in_vain)
    }

    /// Waits until the first round is finished; as [`Rounds::wait_for_all`].
    pub(crate) fn wait_for_first(&self, longest: Duration, is_in_vain: &dyn Fn() -> bool) -> bool {
        self.wait_until(1, longest, || (), is_in_vain)
    }

    fn wait_until(
        &self,
        wanted: u64,
        longest: Duration,
        wake: impl Fn(),
        is_in_vain: &dyn Fn() -> bool,
    ) -> bool {
        let until = Instant::now() + longest;
        while self.0.load(Ordering::Acquire) < wanted {
            if is_in_vain() || Instant::now() >= until {
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
    fn the_first_round_may_be_over() {
        let rounds = Rounds::default();
        assert!(!rounds.wait_for_first(Duration::ZERO, &|| false));
        rounds.finished();
        assert!(rounds.wait_for_first(Duration::ZERO, &|| true));
    }

    #[test]
    fn it_ends_when_nothing_is_done() {
        let rounds = Rounds::default();
        let count = || rounds.finished();
        assert!(!rounds.wait_for_all(Duration::ZERO, count, &|| false));
        assert!(!rounds.wait_for_all(LONG, || (), &|| true));
    }
}
