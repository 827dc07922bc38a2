//! Evidence for figures that stay above a limit although nobody allocates.
//!
//! A figure a little above its limit proves nothing: it lies within its error, and may hold garbage. While the account
//! allocates, suspicion finds out. An account that has let go and is idle stays there: on G1 no collection comes by
//! itself, and operators see an account above its limit that is empty.
//!
//! Rules:
//! 1. When a figure has been above its limit for [`FIRST`], a collection is asked for.
//! 2. Each further one while it stays above waits twice as long as the one before, at most [`LONGEST`]: what is held
//!    cannot be collected.
//! 3. When no figure is above its limit any more, everything begins anew.
//!
//! The collection is a concurrent one within the budget of evidence; where the collector offers none, none comes.

use std::time::{Duration, Instant};

use crate::ledger::Epoch;

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(600);

/// See the module. On the enforcer's thread.
#[derive(Debug, Default)]
pub(super) enum SecondLook {
    /// No figure is above its limit.
    #[default]
    None,
    /// A collection is asked for `at` that time, and the next `after` its proof.
    Planned { at: Instant, after: Duration },
    /// A collection that covers this epoch is wanted.
    Wanted { covers: Epoch, after: Duration },
}

impl SecondLook {
    /// Whether a covering collection is wanted now. `is_above`: some figure is above its limit.
    pub(super) fn turn(
        &mut self,
        is_above: bool,
        current: Epoch,
        covered: Option<Epoch>,
        now: Instant,
    ) -> bool {
        *self = match *self {
            _ if !is_above => SecondLook::None,
            SecondLook::None => SecondLook::Planned {
                at: now + FIRST,
                after: FIRST * 2,
            },
            SecondLook::Planned { at, after } if now >= at => SecondLook::Wanted {
                covers: current,
                after,
            },
            SecondLook::Wanted { covers, after } if covered >= Some(covers) => {
                SecondLook::Planned {
                    at: now + after,
                    after: (after * 2).min(LONGEST),
                }
            }
            SecondLook::Planned { at, after } => SecondLook::Planned { at, after },
            SecondLook::Wanted { covers, after } => SecondLook::Wanted { covers, after },
        };
        matches!(self, SecondLook::Wanted { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Runs it for so many seconds; a collection that is wanted is there a second later. Returns when each was wanted.
    fn wanted_at(above: impl Fn(u64) -> bool, seconds: u64) -> Vec<u64> {
        let (start, mut look) = (Instant::now(), SecondLook::default());
        let (mut epoch, mut covered, mut wanted) = (3, None, Vec::new());
        for second in 0..seconds {
            let now = start + SECOND * second as u32;
            if look.turn(above(second), Epoch::new(epoch), covered, now) {
                wanted.push(second);
                covered = Some(Epoch::new(epoch));
                epoch += 1;
            }
        }
        wanted
    }

    #[test]
    fn a_figure_that_stays_above_is_looked_at_at_doubling_distances() {
        let wanted = wanted_at(|_| true, 200);
        assert_eq!(wanted, [5, 16, 37, 78, 159]);
        let often = wanted_at(|_| true, 100_000);
        assert!(often.len() < 175, "{}", often.len());
    }

    #[test]
    fn one_that_came_back_begins_anew() {
        let wanted = wanted_at(|second| second != 20, 30);
        assert_eq!(wanted, [5, 16, 26]);
    }

    #[test]
    fn nothing_is_wanted_below_the_limit_or_for_a_moment_above() {
        assert!(wanted_at(|second| second % 5 != 0, 100).is_empty());
        assert!(wanted_at(|_| false, 100).is_empty());
    }

    #[test]
    fn it_is_wanted_until_its_proof_comes() {
        let (start, mut look) = (Instant::now(), SecondLook::default());
        look.turn(true, Epoch::new(1), None, start);
        for second in 5..20 {
            let now = start + SECOND * second;
            let covered = Some(Epoch::new(6));
            assert!(look.turn(true, Epoch::new(7), covered, now), "{second}");
        }
        let later = start + SECOND * 20;
        assert!(!look.turn(true, Epoch::new(9), Some(Epoch::new(7)), later));
    }
}
