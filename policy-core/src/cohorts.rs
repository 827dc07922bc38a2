//! Cohorts: what is live, by the snapshots between which it was born, so that two snapshots of one run can
//! be subtracted without the error of what both hold.
//!
//! # The argument
//! A snapshot counts the records born up to a *boundary*, the epoch that live bytes are of. Let an older
//! one of the same run have the boundary b. A record of the newer one that was born in an epoch <= b was
//! in the older one: it was there, and it had survived. So if both give their sums apart by "born <= b"
//! and "born > b", then
//!
//! ```text
//! went = old - new (born <= b)        came = new (born > b)        difference = came - went
//! ```
//!
//! are sums over records that are in one of them only. A charge and its variance are a pure function of the
//! record, so what both hold cancels to the last bit. The error of the difference is that of what came and
//! what went; without either it is exactly zero.
//!
//! # Rules
//! 1. The newer snapshot must know b. So the agent remembers a *mark* for each snapshot that it has made,
//!    and every later one is cut at all of them. A cut that is forgotten costs accuracy and nothing else:
//!    the difference then takes the cohorts around it for independent.
//! 2. Marks are bounded ([`MAX_SCHEDULED`], [`MAX_ASKED`]), those that a reader of the endpoint causes
//!    apart from the scheduled ones, which it cannot push out.
//! 3. Rows times cohorts are bounded as well ([`MAX_SUMS`]): where there are more, every other cut is
//!    left out, oldest first ([`coarser`]).
//! 4. Two cases break the argument, and the difference allows for both. A record may be charged in an
//!    epoch that has passed, by a thread that was stopped between reading it and the charge. And a record
//!    may change its account (a reload, a loader that gets its name late) or its live charge (a large array
//!    that a collection has decided on). Then a cohort grows; it counts as come.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::SystemTime;

use crate::ledger::{Epoch, LiveRecord, PurseId};
use crate::sampling::Charge;

/// The most marks of scheduled snapshots.
pub const MAX_SCHEDULED: usize = 1_000;
/// The most marks of snapshots that were asked for.
pub const MAX_ASKED: usize = 100;
/// The most sums of one class in one account and cohort.
pub const MAX_SUMS: usize = 300_000;

/// A snapshot that was made: up to where it counts, and when that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its boundary.
    pub epoch: Epoch,
    /// When it was made.
    pub at: SystemTime,
}

/// The snapshots that this run has made.
#[derive(Debug, Default)]
pub struct Marks {
    scheduled: VecDeque<Mark>,
    asked: VecDeque<Mark>,
}

impl Marks {
    /// Remembers a snapshot. Of two with the same boundary the first is remembered.
    pub fn add(&mut self, mark: Mark, is_scheduled: bool) {
        let (marks, most) = if is_scheduled {
            (&mut self.scheduled, MAX_SCHEDULED)
        } else {
            (&mut self.asked, MAX_ASKED)
        };
        if marks.back().is_some_and(|last| last.epoch >= mark.epoch) {
            return;
        }
        if marks.len() == most {
            marks.pop_front();
        }
        marks.push_back(mark);
    }

    /// The cuts of a snapshot with this boundary: all marks before it, and the boundary itself, ascending.
    #[must_use]
    pub fn cuts(&self, boundary: Mark) -> Vec<Mark> {
        let before = self.scheduled.iter().chain(&self.asked);
        let mut cuts: Vec<Mark> = before
            .filter(|mark| mark.epoch < boundary.epoch)
            .copied()
            .collect();
        cuts.sort_by_key(|mark| (mark.epoch, mark.at));
        cuts.dedup_by_key(|mark| mark.epoch);
        cuts.push(boundary);
        cuts
    }
}

/// Fewer cuts: every other one is left out, but for the younger half and the last, which is the boundary.
#[must_use]
pub fn coarser(cuts: &[Mark]) -> Vec<Mark> {
    let older = cuts.len() / 2;
    let kept = |(index, mark): (usize, &Mark)| (index >= older || index % 2 == 1).then_some(*mark);
    cuts.iter().enumerate().filter_map(kept).collect()
}

/// The holdings of one class of one purse in one cohort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many records.
    pub records: u64,
    /// Their share of live bytes.
    pub live: Charge,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.records += other.records;
        self.live += other.live;
    }
}

/// The sums of one scan of the records.
#[derive(Debug, Default)]
pub struct Cohorts {
    cuts: Vec<Mark>,
    /// By payer, class and place among the cuts.
    sums: HashMap<(PurseId, u32, u32), Sum>,
    is_joined: bool,
}

impl Cohorts {
    /// No sums yet, to be cut at these marks, as [`Marks::cuts`] gives them.
    #[must_use]
    pub fn new(cuts: Vec<Mark>) -> Cohorts {
        Cohorts {
            cuts,
            ..Cohorts::default()
        }
    }

    /// Adds a record of a scan. One that was born after the boundary is left out.
    pub fn add(&mut self, record: &LiveRecord) {
        let cut = self.cuts.partition_point(|mark| mark.epoch < record.birth);
        if cut == self.cuts.len() {
            return;
        }
        let sum = Sum {
            records: 1,
            live: record.live,
        };
        *(self.sums)
            .entry((record.payer, record.class, cut as u32))
            .or_default() += sum;
        if self.sums.len() > MAX_SUMS {
            self.join();
        }
    }

    fn join(&mut self) {
        if self.cuts.len() < 2 {
            return;
        }
        let cuts = coarser(&self.cuts);
        let mut sums: HashMap<(PurseId, u32, u32), Sum> = HashMap::new();
        for ((payer, class, cut), sum) in self.sums.drain() {
            let upto = self.cuts[cut as usize].epoch;
            let cut = cuts.partition_point(|mark| mark.epoch < upto);
            *sums.entry((payer, class, cut as u32)).or_default() += sum;
        }
        (self.cuts, self.sums, self.is_joined) = (cuts, sums, true);
    }

    /// The cuts, ascending; the last is the boundary.
    #[must_use]
    pub fn cuts(&self) -> &[Mark] {
        &self.cuts
    }

    /// Whether cohorts were joined because there were too many sums.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Drops the sums under numbers that were given back meanwhile.
    pub fn forget(&mut self, purses: &HashSet<PurseId>, is_class_gone: impl Fn(u32) -> bool) {
        (self.sums)
            .retain(|(payer, class, _), _| !purses.contains(payer) && !is_class_gone(*class));
    }

    /// Every sum with its payer, class and place among the cuts, in no order.
    pub fn sums(&self) -> impl Iterator<Item = (PurseId, u32, usize, Sum)> + '_ {
        let sums = self.sums.iter();
        sums.map(|(&(payer, class, cut), &sum)| (payer, class, cut as usize, sum))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::{ObjectTag, SiteId, UNKNOWN_CLASS};
    use crate::sampling::charge;

    fn mark(epoch: u32) -> Mark {
        Mark {
            epoch: Epoch::new(epoch),
            at: SystemTime::UNIX_EPOCH,
        }
    }

    fn epochs(cuts: &[Mark]) -> Vec<u32> {
        cuts.iter().map(|mark| mark.epoch.get()).collect()
    }

    fn record(birth: u32, class: u32, size_bytes: u64) -> LiveRecord {
        let charge = charge(size_bytes, 65_536);
        LiveRecord {
            tag: ObjectTag::new(0, 0).unwrap(),
            payer: PurseId::UNACCOUNTED,
            agent_account: PurseId::UNACCOUNTED,
            principal: PurseId::UNACCOUNTED,
            class,
            birth: Epoch::new(birth),
            size_bytes,
            charge,
            survived: true,
            live: charge,
            is_thinned: false,
            site: SiteId::NONE,
        }
    }

    #[test]
    fn a_snapshot_is_cut_at_every_earlier_one() {
        let mut marks = Marks::default();
        assert_eq!(epochs(&marks.cuts(mark(3))), [3]);
        marks.add(mark(3), true);
        marks.add(mark(5), false);
        marks.add(mark(5), true);
        marks.add(mark(4), true);
        assert_eq!(epochs(&marks.cuts(mark(9))), [3, 5, 9]);
        assert_eq!(epochs(&marks.cuts(mark(5))), [3, 5]);
        assert_eq!(epochs(&marks.cuts(mark(4))), [3, 4]);
    }

    #[test]
    fn readers_cannot_push_scheduled_marks_out() {
        let mut marks = Marks::default();
        for epoch in 1..=10 {
            marks.add(mark(epoch), true);
        }
        for epoch in 11..5_000 {
            marks.add(mark(epoch), false);
        }
        let cuts = epochs(&marks.cuts(mark(9_000)));
        assert_eq!(cuts[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(cuts.len(), 10 + MAX_ASKED + 1);
        for epoch in 5_000..8_000 {
            marks.add(mark(epoch), true);
        }
        assert_eq!(marks.cuts(mark(9_000)).len(), MAX_SCHEDULED + MAX_ASKED + 1);
    }

    #[test]
    fn what_is_born_after_the_boundary_is_left_out() {
        let mut cohorts = Cohorts::new(vec![mark(2), mark(5)]);
        for birth in 0..=7 {
            cohorts.add(&record(birth, UNKNOWN_CLASS, 100));
        }
        let mut found: Vec<(usize, u64)> = (cohorts.sums())
            .map(|(_, _, cut, sum)| (cut, sum.records))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 3), (1, 3)]);
    }

    #[test]
    fn too_many_sums_are_joined_and_none_is_lost() {
        let cuts: Vec<Mark> = (1..=1_000).map(mark).collect();
        let mut cohorts = Cohorts::new(cuts);
        let mut bytes = 0u64;
        for birth in 0..1_000 {
            for class in 0..400 {
                let record = record(birth, class, 1_000);
                bytes += record.live.bytes;
                cohorts.add(&record);
            }
        }
        assert!(cohorts.is_joined() && cohorts.sums().count() <= MAX_SUMS);
        assert_eq!(cohorts.cuts().last(), Some(&mark(1_000)));
        let sum: u64 = cohorts.sums().map(|(_, _, _, sum)| sum.live.bytes).sum();
        assert_eq!(sum, bytes);
    }

    proptest! {
        #[test]
        fn coarser_cuts_are_fewer_and_end_at_the_boundary(count in 2u32..300) {
            let cuts: Vec<Mark> = (1..=count).map(mark).collect();
            let fewer = coarser(&cuts);
            prop_assert!(!fewer.is_empty() && fewer.len() < cuts.len());
            prop_assert_eq!(fewer.last(), cuts.last());
            prop_assert!(fewer.iter().all(|mark| cuts.contains(mark)));
        }

        #[test]
        fn every_record_lies_in_the_cohort_that_its_birth_says(
            births in prop::collection::vec(0u32..50, 1..200),
            marks in prop::collection::btree_set(0u32..50, 1..20),
        ) {
            let cuts: Vec<Mark> = marks.iter().copied().map(mark).collect();
            let mut cohorts = Cohorts::new(cuts.clone());
            for &birth in &births {
                cohorts.add(&record(birth, 1, 500));
            }
            for (_, _, cut, sum) in cohorts.sums() {
                let from = cut.checked_sub(1).map(|before| cuts[before].epoch.get());
                let upto = cuts[cut].epoch.get();
                let here = births.iter().filter(|&&b| b <= upto && from.is_none_or(|f| b > f));
                prop_assert_eq!(sum.records, here.count() as u64);
            }
        }
    }
}
