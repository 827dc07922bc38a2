//! Evidence for a figure that stays above its limit although nobody allocates.
//!
//! An account is not suspect while its charge lies within its error of the limit. If it lets go of everything and is
//! idle then, its figure stays above the limit: on an idle G1 no collection comes for minutes, and operators see an
//! account above its limit that is empty.
//!
//! Rules, for each account by itself:
//! 1. When the charge of an open account has been above its limit for [`FIRST`], a covering collection is wanted, until its
//!    proof comes or one of these conditions ends. A suspect, and an account that is over, get evidence by themselves.
//! 2. The next one is wanted no earlier than a distance after that. The first distance is twice [`FIRST`]; it doubles each
//!    time, up to [`LONGEST`]: a collection cannot take what is held.
//! 3. The distance is forgotten once the charge has been at its limit or below for as long, and for [`FORGOTTEN`] at least.
//!    A shorter dip changes nothing: an account that wavers about its limit would be looked at each time.
//!
//! The collection is a concurrent one within the budget of evidence, by a patient request; where the collector offers none,
//! none comes.

use std::time::{Duration, Instant};

use crate::ledger::Epoch;

/// See rule 1.
const FIRST: Duration = Duration::from_secs(5);
/// See rule 2.
const LONGEST: Duration = Duration::from_secs(600);
/// See rule 3.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Where an account stands at one look.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Its state is open.
    pub is_open: bool,
    /// Its charge is above its limit.
    pub is_above: bool,
    /// The current epoch.
    pub epoch: Epoch,
    /// The youngest epoch of which a collection of old memory has proved the survivors.
    pub covered: Option<Epoch>,
    /// The time.
    pub now: Instant,
}

/// Whether the figure of one account is to be looked at again. See the module. On the enforcer's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecondLook {
    /// Since when it has been open and above its limit.
    above_since: Option<Instant>,
    /// Since when it has not been above its limit.
    below_since: Option<Instant>,
    /// A proof of this epoch is wanted.
    wanted: Option<Epoch>,
    /// When the latest was no longer wanted, and the distance from then to the next.
    latest: Option<(Instant, Duration)>,
}

impl SecondLook {
    /// Whether a covering collection is wanted now.
    pub fn turn(&mut self, seen: Seen) -> bool {
        let now = seen.now;
        self.forget(seen);
        let may_want = seen.is_open && seen.is_above;
        if let Some(epoch) = self.wanted
            && (!may_want || seen.covered >= Some(epoch))
        {
            let distance = self.latest.map_or(FIRST, |(_, distance)| distance);
            self.latest = Some((now, (distance * 2).min(LONGEST)));
            self.wanted = None;
        }
        if !may_want {
            self.above_since = None;
            return false;
        }
        let since = *self.above_since.get_or_insert(now);
        let not_before = self.latest.map(|(then, distance)| then + distance);
        if now >= (since + FIRST).max(not_before.unwrap_or(since)) {
            self.wanted.get_or_insert(seen.epoch);
        }
        self.wanted.is_some()
    }

    /// Rule 3.
    fn forget(&mut self, seen: Seen) {
        if seen.is_above {
            self.below_since = None;
            return;
        }
        let since = *self.below_since.get_or_insert(seen.now);
        let below = seen.now.saturating_duration_since(since);
        (self.latest).take_if(|(_, distance)| below >= FORGOTTEN.max(*distance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);
    const OPEN_ABOVE: (bool, bool) = (true, true);
    const OPEN_BELOW: (bool, bool) = (true, false);
    /// Suspect, or over.
    const JUDGED_ABOVE: (bool, bool) = (false, true);

    /// Looks at an account each second; a collection that is wanted has its proof a second later. `stands`: whether the
    /// account is open, and whether it is above its limit. Returns the seconds in which one was wanted.
    fn wanted_at(stands: impl Fn(u64) -> (bool, bool), seconds: u64) -> Vec<u64> {
        let (start, mut look) = (Instant::now(), SecondLook::default());
        let (mut epoch, mut covered, mut wanted) = (3, None, Vec::new());
        for second in 0..seconds {
            let (is_open, is_above) = stands(second);
            let seen = Seen {
                is_open,
                is_above,
                epoch: Epoch::new(epoch),
                covered,
                now: start + SECOND * second as u32,
            };
            if look.turn(seen) {
                wanted.push(second);
                covered = Some(Epoch::new(epoch));
                epoch += 1;
            }
        }
        wanted
    }

    #[test]
    fn an_account_that_stays_above_is_looked_at_at_doubling_distances() {
        let wanted = wanted_at(|_| OPEN_ABOVE, 100_000);
        assert_eq!(wanted[..5], [5, 16, 37, 78, 159]);
        let [.., before, last] = wanted[..] else {
            panic!("{wanted:?}");
        };
        assert_eq!(last - before, LONGEST.as_secs() + 1);
    }

    #[test]
    fn nothing_is_wanted_below_the_limit_or_for_a_moment_above() {
        assert!(wanted_at(|_| OPEN_BELOW, 1000).is_empty());
        let for_a_moment = |second: u64| match second % 5 {
            0 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        assert!(wanted_at(for_a_moment, 1000).is_empty());
    }

    #[test]
    fn who_is_suspect_or_over_is_left_to_its_own_evidence() {
        assert!(wanted_at(|_| JUDGED_ABOVE, 1000).is_empty());
        let acquitted = |second| match second {
            0..100 => JUDGED_ABOVE,
            _ => OPEN_ABOVE,
        };
        assert_eq!(wanted_at(acquitted, 110), [105]);
    }

    #[test]
    fn the_distance_outlives_a_dip() {
        let dips = |second| match second {
            20..79 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        // A look at 5 and at 16 s, and 20 s later at the earliest: above for 5 s it is at 84 s.
        assert_eq!(wanted_at(dips, 130), [5, 16, 84, 125]);
        // Dips do not add up.
        let dips = |second| match second {
            20..60 | 70..110 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        assert_eq!(wanted_at(dips, 190), [5, 16, 65, 115]);
        let suspect = |second| match second {
            20..200 => JUDGED_ABOVE,
            _ => OPEN_ABOVE,
        };
        assert_eq!(wanted_at(suspect, 250), [5, 16, 205, 246]);
    }

    #[test]
    fn an_account_that_stays_below_begins_anew() {
        let for_a_minute = |second| match second {
            20..=80 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        assert_eq!(wanted_at(for_a_minute, 100), [5, 16, 86, 97]);
        // The distance after the look at 159 s is longer than a minute.
        let too_short = |second| match second {
            170..=320 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        let wanted = wanted_at(too_short, 500);
        assert_eq!(wanted, [5, 16, 37, 78, 159, 326]);
        let long_enough = |second| match second {
            170..=330 => OPEN_BELOW,
            _ => OPEN_ABOVE,
        };
        let wanted = wanted_at(long_enough, 350);
        assert_eq!(wanted, [5, 16, 37, 78, 159, 336, 347]);
    }

    fn seen(start: Instant, second: u32, covered: u32) -> Seen {
        Seen {
            is_open: true,
            is_above: true,
            epoch: Epoch::new(7),
            covered: Some(Epoch::new(covered)),
            now: start + SECOND * second,
        }
    }

    #[test]
    fn it_is_wanted_until_its_proof_comes() {
        let (start, mut look) = (Instant::now(), SecondLook::default());
        look.turn(seen(start, 0, 6));
        for second in 5..20 {
            let later = Seen {
                epoch: Epoch::new(second + 2),
                ..seen(start, second, 6)
            };
            assert!(look.turn(later), "{second}");
        }
        assert!(!look.turn(seen(start, 20, 7)));
        assert!(!look.turn(seen(start, 29, 7)));
        assert!(look.turn(seen(start, 30, 7)));
    }

    /// It may have brought a collection, whose first refunds have ended it.
    #[test]
    fn one_that_ends_without_its_proof_counts_as_a_look() {
        let (start, mut look) = (Instant::now(), SecondLook::default());
        look.turn(seen(start, 0, 6));
        assert!(look.turn(seen(start, 5, 6)));
        let suspect = Seen {
            is_open: false,
            ..seen(start, 6, 6)
        };
        assert!(!look.turn(suspect));
        look.turn(seen(start, 7, 6));
        assert!(!look.turn(seen(start, 15, 6)));
        assert!(look.turn(seen(start, 16, 6)));
    }

    proptest! {
        /// However an account wavers: looks keep their distances, and one that is below, suspect or over wants none.
        #[test]
        fn looks_are_rare(stays in prop::collection::vec((any::<bool>(), any::<bool>(), 1u64..200), 1..40)) {
            let stands = |second: u64| {
                let mut until = 0;
                let mut each = stays.iter();
                each.find_map(|&(is_open, is_above, seconds)| {
                    until += seconds;
                    (second < until).then_some((is_open, is_above))
                })
                .unwrap_or(OPEN_BELOW)
            };
            let seconds: u64 = stays.iter().map(|stay| stay.2).sum();
            let wanted = wanted_at(stands, seconds);
            for second in &wanted {
                prop_assert_eq!(stands(*second), OPEN_ABOVE);
            }
            for pair in wanted.windows(2) {
                prop_assert!(pair[1] - pair[0] >= 2 * FIRST.as_secs());
            }
            // Nothing is forgotten in less than a minute below.
            let is_long = |second: u64| (second..second + 61).all(|second| !stands(second).1);
            let forgets = (0..seconds).filter(|&second| {
                is_long(second) && (second == 0 || stands(second - 1).1)
            });
            let most = (forgets.count() as u64 + 1) * 8 + seconds / LONGEST.as_secs();
            prop_assert!(wanted.len() as u64 <= most, "{wanted:?}, {most}");
        }
    }
}
