//! When an epoch was: a bounded table of marks.
//!
//! # Rules
//! 1. A mark says: everything born up to epoch `epoch` was born before `at_ms`. The enforcer makes one when
//!    it sees a new epoch, at most one a second. Times are milliseconds since the agent was made.
//! 2. Marks are never inserted between others, only appended and removed. So two marks that bound a set of
//!    births in one copy of the table bound the same set in any older copy that has both.
//! 3. At most [`MAX_MARKS`] are kept. The one that is removed lies closest to its neighbours in
//!    proportion to its age, so the marks end up evenly spaced on a logarithmic scale of ages: the
//!    births of a minute ago are known to some seconds, those of a day ago to an hour.
//! 4. `covers` counts, for the births up to a mark, the covering collections that all of them have been
//!    through. Between two marks it is the count of the later mark, which is never too high.

use crate::ledger::Epoch;

/// The most marks.
pub const MAX_MARKS: usize = 96;
/// The shortest time between two marks, in milliseconds.
const SHORTEST_MS: u64 = 1_000;
/// Native memory of one table.
pub const MEMORY_BYTES: u64 = ((MAX_MARKS + 1) * size_of::<Mark>()) as u64;

/// A moment: everything born up to an epoch was born before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The last epoch that had ended.
    pub epoch: Epoch,
    /// The time, in milliseconds since the agent was made.
    pub at_ms: u64,
    /// How many covering collections all births up to here have been through.
    pub covers: u32,
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct EpochTimes {
    /// In ascending order of epoch and time.
    marks: Vec<Mark>,
    covered: Option<Epoch>,
    covers: u32,
    noted_ms: u64,
}

impl EpochTimes {
    /// Notes the time in the current epoch and the epoch up to which collections of old memory have
    /// come. Returns whether there was another of these.
    pub fn note(&mut self, current: Epoch, covered: Option<Epoch>, now_ms: u64) -> bool {
        self.noted_ms = now_ms;
        let ended = current.get().checked_sub(1).map(Epoch::new);
        if let Some(epoch) = ended {
            let is_new = (self.marks.last()).is_none_or(|last| {
                epoch > last.epoch && now_ms >= last.at_ms.saturating_add(SHORTEST_MS)
            });
            if is_new {
                let covers = 0;
                self.marks.push(Mark {
                    epoch,
                    at_ms: now_ms,
                    covers,
                });
                self.thin(now_ms);
            }
        }
        let has_moved = covered > self.covered;
        if has_moved {
            self.covered = covered;
            self.covers = self.covers.saturating_add(1);
            for mark in &mut self.marks {
                if Some(mark.epoch) <= covered {
                    mark.covers = mark.covers.saturating_add(1);
                }
            }
        }
        has_moved
    }

    /// Rule 3.
    fn thin(&mut self, now_ms: u64) {
        if self.marks.len() <= MAX_MARKS {
            return;
        }
        let crowding = |index: usize| {
            let between = self.marks[index + 1].at_ms - self.marks[index - 1].at_ms;
            let age = now_ms.saturating_sub(self.marks[index].at_ms) + SHORTEST_MS;
            between as f64 / age as f64
        };
        let inner = 1..self.marks.len() - 1;
        let closest = inner.min_by(|&a, &b| crowding(a).total_cmp(&crowding(b)));
        if let Some(index) = closest {
            self.marks.remove(index);
        }
    }

    /// The marks, in ascending order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// When something was last noted, in milliseconds since the agent was made: the enforcer's latest turn.
    #[must_use]
    pub fn noted_ms(&self) -> u64 {
        self.noted_ms
    }

    /// How many covering collections there were.
    #[must_use]
    pub fn covers(&self) -> u32 {
        self.covers
    }

    /// The epoch up to which they have come.
    #[must_use]
    pub fn covered(&self) -> Option<Epoch> {
        self.covered
    }

    /// The cohort of a birth: the index of the first mark at or after it; the number of marks for one
    /// that is younger than all.
    #[must_use]
    pub fn cohort(&self, birth: Epoch) -> usize {
        self.marks.partition_point(|mark| mark.epoch < birth)
    }

    /// The age range of a cohort at `now_ms`, in milliseconds: its youngest and its oldest possible age.
    #[must_use]
    pub fn ages_ms(&self, cohort: usize, now_ms: u64) -> (u64, u64) {
        let ended = self.marks.get(cohort).map_or(now_ms, |mark| mark.at_ms);
        let begun = (cohort.checked_sub(1)).map_or(0, |before| self.marks[before].at_ms);
        (now_ms.saturating_sub(ended), now_ms.saturating_sub(begun))
    }

    /// How many covering collections every birth of a cohort has been through.
    #[must_use]
    pub fn survived(&self, cohort: usize) -> u32 {
        self.marks.get(cohort).map_or(0, |mark| mark.covers)
    }
}
