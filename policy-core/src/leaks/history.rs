//! The history of earlier looks: bounded memory of the rows after covering collections.
//!
//! # Rules
//! 1. A look keeps the rows with enough samples to matter, at most [`MAX_ROWS`], those with most samples;
//!    the others are counted. Of each row it keeps, by cohort, what was alive of the births that the
//!    collection has decided on. It keeps the accounts of these rows, and the sum of all.
//! 2. At most [`MAX_LOOKS`] looks and [`MAX_COHORTS`] cohorts are kept. The look that goes first lies
//!    closest to its neighbours in proportion to its age; the newest and the oldest stay. So there is a
//!    look near the middle of every window, if collections came often enough.
//! 3. Cohorts of two looks are compared at marks that both have. Marks are never inserted between others
//!    (`holdings::times`), so every mark of the newer look that is old enough was one of the older too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::holdings::Mark;

use super::statistic::{Born, FEWEST_OLD, Part, WindowView};

/// The most rows of one look.
pub const MAX_ROWS: usize = 2_048;
/// The most looks.
pub const MAX_LOOKS: usize = 32;
/// The most cohorts of all rows of all looks together, 16 bytes each.
pub const MAX_COHORTS: usize = 512 * 1024;
/// Into so many parts the time from Q to H is divided, where the marks allow.
const PARTS: u64 = 6;
/// The name of a class, with what is kept beside it, takes about so many bytes.
const NAME_BYTES: usize = 160;

/// An account and a class, by name: a redeployed service goes on under its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowName {
    /// The account.
    pub account: Arc<str>,
    /// The class.
    pub class: Arc<str>,
}

/// The births between two marks, as far as they are alive.
#[derive(Debug, Clone, Copy)]
pub struct Births {
    /// The epoch of the mark at their end.
    pub upto_epoch: u32,
    /// How many samples.
    pub records: u32,
    /// Their bytes.
    pub bytes: f32,
    /// The sum of the squares of the bytes of each.
    pub squares: f32,
}

/// The births and the live bytes of one row at one look.
#[derive(Debug, Clone, Default)]
pub struct RowSeen {
    /// By birth, ascending.
    pub births: Vec<Births>,
    /// Live bytes in all, those included that the collection has not decided on.
    pub live_bytes: u64,
    /// The variance of `live_bytes` by sampling, in units of
    /// [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
    /// Estimated live objects.
    pub objects: u64,
    /// How many generations have live instances.
    pub generations: u64,
}

impl RowSeen {
    /// Returns the part that is alive of the births after `after`, up to `upto`.
    fn born(&self, after: Option<u32>, upto: u32) -> Born {
        let mut sum = Born::default();
        for births in &self.births {
            if after.is_none_or(|after| births.upto_epoch > after) && births.upto_epoch <= upto {
                sum.records += u64::from(births.records);
                sum.bytes += f64::from(births.bytes);
                sum.squares += f64::from(births.squares);
            }
        }
        sum
    }

    /// Adds the births of a row of the same name.
    pub fn merge(&mut self, births: Vec<Births>) {
        if self.births.is_empty() {
            self.births = births;
            return;
        }
        for one in births {
            let at = self
                .births
                .partition_point(|own| own.upto_epoch < one.upto_epoch);
            match self
                .births
                .get_mut(at)
                .filter(|own| own.upto_epoch == one.upto_epoch)
            {
                Some(own) => {
                    own.records += one.records;
                    own.bytes += one.bytes;
                    own.squares += one.squares;
                }
                None => self.births.insert(at, one),
            }
        }
    }

    /// Samples that the collection has decided on.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.births
            .iter()
            .map(|births| u64::from(births.records))
            .sum()
    }
}

/// One look at all rows.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// When the records were read, in milliseconds since the agent was made.
    pub at_ms: u64,
    /// The marks up to the last whose births the collection has decided on.
    pub marks: Vec<Mark>,
    /// The rows by name.
    pub rows: HashMap<RowName, RowSeen>,
    /// The live bytes of each account that has a row, with their variance as in [`RowSeen::variance`].
    pub accounts: HashMap<Arc<str>, (u64, u64)>,
    /// The same of all accounts together.
    pub all_accounts: (u64, u64),
    /// Rows that were left out because there were too many.
    pub omitted: u64,
}

impl Look {
    /// The time up to which births are decided, in milliseconds since the agent was made.
    #[must_use]
    pub fn decided_ms(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.at_ms)
    }

    /// Rule 1.
    pub fn bound(&mut self) {
        self.rows.retain(|_, row| row.records() >= FEWEST_OLD);
        self.leave_out_most();
        self.rows.shrink_to_fit();
        let with_rows: HashSet<&str> = self.rows.keys().map(|name| &*name.account).collect();
        self.accounts
            .retain(|account, _| with_rows.contains(&**account));
        self.accounts.shrink_to_fit();
    }

    fn leave_out_most(&mut self) {
        if self.rows.len() <= MAX_ROWS {
            return;
        }
        let mut counts: Vec<u64> = self.rows.values().map(RowSeen::records).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let fewest = counts[MAX_ROWS - 1];
        let before = self.rows.len();
        let mut room = MAX_ROWS;
        self.rows.retain(|_, row| {
            let stays = row.records() >= fewest && room > 0;
            room -= usize::from(stays);
            stays
        });
        self.omitted = (before - self.rows.len()) as u64;
    }

    fn cohorts(&self) -> usize {
        self.rows.values().map(|row| row.births.len()).sum()
    }
}

/// The looks so far.
#[derive(Debug, Default)]
pub struct History {
    /// In ascending order of time.
    looks: Vec<Look>,
}

impl History {
    /// Adds a look, and forgets what there is no room for.
    pub fn push(&mut self, mut look: Look) {
        look.bound();
        self.looks.push(look);
        while self.looks.len() > MAX_LOOKS
            || (self.looks.len() > 3
                && self.looks.iter().map(Look::cohorts).sum::<usize>() > MAX_COHORTS)
        {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) {
        let last = self.looks.len() - 1;
        let now_ms = self.looks[last].decided_ms();
        let crowding = |index: usize| {
            let at = |index: usize| self.looks[index].decided_ms();
            (at(index + 1) - at(index - 1)) as f64 / (now_ms - at(index)).max(1) as f64
        };
        let closest = (1..last).min_by(|&a, &b| crowding(a).total_cmp(&crowding(b)));
        self.looks.remove(closest.unwrap_or(0));
    }

    /// The newest look.
    #[must_use]
    pub fn newest(&self) -> Option<&Look> {
        self.looks.last()
    }

    /// All looks, the oldest first.
    #[must_use]
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// Where the boundaries of a window lie that ends at `newest` and is at most `window_ms` long; `None`
    /// where no look or no mark is near enough.
    #[must_use]
    pub fn bounds(&self, newest: &Look, window_ms: u64) -> Option<Bounds<'_>> {
        let ends = newest.decided_ms();
        let window = window_ms.min(ends);
        let begins = ends - window;
        let older = self.looks.iter().filter(|look| look.decided_ms() < ends);
        let then = older.min_by_key(|look| look.decided_ms().abs_diff(begins + window / 2))?;
        let middle = then.decided_ms();
        if middle < begins + window / 3 || middle > begins + window * 2 / 3 {
            return None;
        }
        let half = (ends - middle) / 2;
        let common = |mark: &&Mark| mark.at_ms < middle;
        let quarter = (newest.marks.iter().filter(common))
            .min_by_key(|mark| mark.at_ms.abs_diff(middle.saturating_sub(half)))?;
        // Deaths are known up to some time between the mark and the reading. So that nothing young is
        // taken for old, what is compared is at least as old at the second look as at the first.
        let age_then = then.at_ms - quarter.at_ms;
        let is_aged = |mark: &&Mark| mark.at_ms + age_then <= ends;
        let three = newest.marks.iter().rev().find(is_aged)?;
        let is_short = |from: u64, to: u64| to.saturating_sub(from) < half / 3;
        if is_short(quarter.at_ms, middle) || is_short(middle, three.at_ms) {
            return None;
        }
        Some(Bounds {
            then,
            quarter: *quarter,
            three: *three,
        })
    }
}

/// The boundaries of a window.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    then: &'a Look,
    quarter: Mark,
    three: Mark,
}

impl Bounds<'_> {
    /// Seconds from the first look to the second.
    fn seconds(&self, newest: &Look) -> f64 {
        seconds(self.then.decided_ms(), newest.decided_ms())
    }

    /// Returns the view that the window gives of a row of `newest`.
    #[must_use]
    pub fn view(&self, newest: &Look, name: &RowName, now: &RowSeen) -> WindowView {
        let Bounds {
            then,
            quarter,
            three,
        } = *self;
        let middle = then.decided_ms();
        let (q, h) = (quarter.epoch.get(), three.epoch.get());
        let m = then.marks.last().map_or(q, |mark| mark.epoch.get());
        let old_then = (then.rows.get(name)).map_or_else(Born::default, |row| row.born(None, q));
        WindowView {
            seconds: self.seconds(newest),
            middle_seconds: seconds(quarter.at_ms, middle),
            young_seconds: seconds(middle, three.at_ms),
            old_then,
            old_now: now.born(None, q),
            middle: now.born(Some(q), m),
            young: now.born(Some(m), h),
            parts: self.parts(newest, now),
        }
    }

    fn parts(&self, newest: &Look, now: &RowSeen) -> Vec<Part> {
        let (from, to) = (self.quarter, self.three);
        let shortest_ms = (to.at_ms - from.at_ms) / PARTS;
        let mut parts = Vec::with_capacity(PARTS as usize);
        let mut begun = from;
        let within = |mark: &&Mark| mark.epoch > from.epoch && mark.epoch <= to.epoch;
        for mark in newest.marks.iter().filter(within) {
            if mark.at_ms - begun.at_ms >= shortest_ms || mark.epoch == to.epoch {
                parts.push(Part {
                    seconds: seconds(begun.at_ms, mark.at_ms),
                    born: now.born(Some(begun.epoch.get()), mark.epoch.get()),
                });
                begun = *mark;
            }
        }
        // A rest at the end belongs to the part before it.
        if parts.len() >= 2
            && let Some(rest) = parts.pop_if(|part| part.seconds * 1e3 < shortest_ms as f64 / 2.0)
            && let Some(last) = parts.last_mut()
        {
            last.seconds += rest.seconds;
            last.born += rest.born;
        }
        parts
    }
}

fn seconds(from_ms: u64, to_ms: u64) -> f64 {
    to_ms.saturating_sub(from_ms) as f64 / 1e3
}

impl History {
    /// Native bytes held, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let of_look = |look: &Look| {
            let rows = look.rows.capacity() * (size_of::<(RowName, RowSeen)>() + 1);
            let births: usize = (look.rows.values())
                .map(|row| row.births.capacity() * size_of::<Births>())
                .sum();
            rows + births
                + look.marks.capacity() * size_of::<Mark>()
                + look.accounts.capacity() * NAME_BYTES
        };
        let names = self.looks.iter().map(|look| look.rows.len()).max();
        let looks: usize = self.looks.iter().map(of_look).sum();
        (looks + names.unwrap_or(0) * NAME_BYTES) as u64
    }
}
