//! Whether a thread that the brake would slow keeps anything: what drains an account must not be slowed.
//!
//! # Rules
//! 1. Samples are remembered of a thread that would be slowed because it has no unit of work: in duress alone, for one
//!    account at a time, up to eight of them. More are not until these have told.
//! 2. They *tell* once the frees of a collection that began after the last of them are taken in: each object was freed,
//!    or has survived. Fewer than four say nothing. When they have told, the next ones are remembered.
//! 3. The thread *keeps nothing* if at most one in eight has survived: an object may be in use for the moment. That
//!    holds until others tell.
//! 4. Who keeps nothing is not slowed. Once it begins to keep, the next collection but one tells at the latest.
//!
//! A free is told by the ledger: the record of a freed object is gone. No lock, no call of the JVM.

use crate::ledger::{Epoch, ObjectTag};

/// Samples that are remembered of a thread.
const MOST: usize = 8;
/// Fewer say nothing.
const FEWEST: usize = 4;

/// The latest samples of one native thread. On that thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatestSamples {
    account: u32,
    count: usize,
    records: [Option<ObjectTag>; MOST],
    /// At or after the birth of the last of them.
    epoch: Epoch,
    keeps_nothing: bool,
}

impl LatestSamples {
    /// None yet.
    pub const NONE: LatestSamples = LatestSamples {
        account: 0,
        count: 0,
        records: [None; MOST],
        epoch: Epoch::new(0),
        keeps_nothing: false,
    };

    /// Whether the thread keeps nothing of what it makes for this account, and remembers its latest sample, now that
    /// `current` is the epoch. `boundary`: the frees of everything born up to this epoch are taken in.
    pub fn keeps_nothing(
        &mut self,
        account: u32,
        sample: ObjectTag,
        (boundary, current): (Option<Epoch>, Epoch),
        is_live: impl Fn(ObjectTag) -> bool,
    ) -> bool {
        if self.account != account {
            *self = LatestSamples {
                account,
                ..LatestSamples::NONE
            };
        }
        if self.count >= FEWEST && Some(self.epoch) <= boundary {
            let records = self.records.iter().take(self.count).flatten();
            let survived = records.filter(|record| is_live(**record)).count();
            self.keeps_nothing = survived * MOST <= self.count;
            self.count = 0;
        }
        if let Some(place) = self.records.get_mut(self.count) {
            *place = Some(sample);
            self.count += 1;
            self.epoch = current;
        }
        self.keeps_nothing
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ACCOUNT: u32 = 7;

    /// A thread, and the epoch of the JVM, each of whose collections is taken in at once.
    #[derive(Default)]
    struct Thread {
        latest: LatestSamples,
        epoch: u32,
        made: u32,
    }

    impl Thread {
        /// Makes an object for this account; whether it keeps nothing then.
        fn makes(&mut self, account: u32, is_live: impl Fn(u32) -> bool) -> bool {
            let record = ObjectTag::new(self.made, 0).expect("it fits");
            self.made += 1;
            let boundary = self.epoch.checked_sub(1).map(Epoch::new);
            let epochs = (boundary, Epoch::new(self.epoch));
            (self.latest).keeps_nothing(account, record, epochs, |one| is_live(one.index()))
        }

        fn collects(&mut self) {
            self.epoch += 1;
        }
    }

    #[test]
    fn who_makes_garbage_alone_keeps_nothing_once_a_collection_has_told() {
        let mut thread = Thread::default();
        for _ in 0..100 {
            assert!(!thread.makes(ACCOUNT, |_| false), "no collection yet");
        }
        thread.collects();
        for _ in 0..100 {
            assert!(thread.makes(ACCOUNT, |_| false), "it stays so in between");
        }
        assert!(
            !thread.makes(8, |_| false),
            "of another account it is not known"
        );
        assert!(!thread.makes(ACCOUNT, |_| false), "and it begins anew");
    }

    #[test]
    fn three_samples_say_nothing() {
        let mut thread = Thread::default();
        for _ in 0..3 {
            thread.makes(ACCOUNT, |_| false);
        }
        thread.collects();
        assert!(!thread.makes(ACCOUNT, |_| false));
        thread.collects();
        assert!(thread.makes(ACCOUNT, |_| false), "the fourth came");
    }

    #[test]
    fn one_object_in_use_is_forgiven_among_eight() {
        for (count, live, expected) in [(8, 0, true), (8, 1, true), (8, 2, false), (7, 1, false)] {
            let mut thread = Thread::default();
            for _ in 0..count {
                thread.makes(ACCOUNT, |_| false);
            }
            thread.collects();
            let says = thread.makes(ACCOUNT, |number| number < live);
            assert_eq!(says, expected, "{live} of {count}");
        }
    }

    proptest! {
        /// Who kept nothing and begins to keep a quarter or more is told after two collections at the latest, if it
        /// makes eight objects before each.
        #[test]
        fn who_begins_to_keep_is_told(before in 0u32..40, more in 8u32..40, every in 1u32..4) {
            let mut thread = Thread::default();
            let mut begins = 0;
            for round in 0..4 {
                if round == 2 {
                    begins = thread.made;
                }
                let keeps = |number: u32| round >= 2 && number >= begins && number.is_multiple_of(every);
                for _ in 0..if round < 2 { before } else { more } {
                    thread.makes(ACCOUNT, keeps);
                }
                thread.collects();
            }
            let keeps = |number: u32| number >= begins && number.is_multiple_of(every);
            prop_assert!(!thread.makes(ACCOUNT, keeps));
        }
    }
}
