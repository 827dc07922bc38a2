//! Thinning: fewer samples of arrays that a sample keeps from being given back.
//!
//! # Why
//! G1 puts an object larger than half a region into regions of its own, and where it is an array of
//! primitives gives them back at the next young collection once nobody refers to it. A weak handle
//! counts as somebody there, and a tag is one: a sampled array waits for the end of a concurrent cycle
//! or for a full collection. Objects that large are nearly always sampled. So a service that makes and
//! drops buffers of a megabyte would fill old memory with them, and have cycles where it had none.
//!
//! # Rules
//! 1. Each account has an *allowance* of 1/[`HEAP_PART`] of the heap, and all together one of
//!    1/[`HEAP_PART_OF_ALL`]. A large array whose sample is kept uses them up by the regions that it takes.
//!    In a minute 1/[`MINUTE_PART`] and 1/[`MINUTE_PART_OF_ALL`] of the heap come back: by no more does
//!    garbage grow that waits. An array comes back, too, as soon as a collection has found it alive: it
//!    is no garbage.
//! 2. Within both they are sampled like anything else. When one is used up they are sampled as if the
//!    interval were half a region, and twice as much with each further quarter of it, up to
//!    1/[`WIDEST_PART`] of the heap or [`WIDEST_BYTES`].
//! 3. An array that was drawn under the interval I is kept with the probability p(s, J) / p(s, I) for
//!    the wider interval J, p as in [`super::weight`]. It has been sampled with p(s, J) then, as if it
//!    had been drawn under J, and is weighed with that: charges stay unbiased. J depends on what was
//!    sampled before alone, and not on this draw.
//! 4. Only a collection of old memory frees such an array. The death of one that was born in epoch e
//!    proves one that has *decided* on all large arrays born up to e (the argument for canaries in
//!    [`crate::ledger::epoch`], word for word), as a covering collection does.
//! 5. Until then a thinned array is charged with what it stands for, but counts among what is *live*
//!    with its own size alone: young collections have freed those that it stands for, if they were
//!    garbage, and could not free it. Where nothing has decided for [`OVERDUE`], or undecided arrays
//!    take 1/[`WAITING_PART`] of the heap, a concurrent cycle is asked for, within the budget for
//!    evidence. So a cache that came while arrays were thinned is shown too small for so long at the
//!    most; and G1, which pauses for each large array while old memory is nearly as full as it lets it
//!    be, is not brought there by ours.
//! 6. An account that has a limit has its arrays sampled as under an interval of 1/[`LIMIT_SAMPLES`] of
//!    it at the widest, as the governor has it (at its limit it is known to 3 %), and not
//!    thinned while somebody looks whether it is over ([`crate::enforce::gate`]). Verdicts are found by
//!    charges: there a thinned array counts with all that it stands for, decided on or not.
//!    For what is not thinned for its limit's sake there is the cycle that is asked for.
//! 7. Exact mode is left alone: it was asked for. So is a purse that a test in Java watches
//!    ([`crate::api::peaks`]), which has no limit and is judged after a collection of its own.
//!
//! So an account's large arrays are known the worse, the more of them it makes and drops: with 20 of a
//! region each a second in a heap of 1 GiB one in 20 is kept, and a cache of 100 of them known to 45 %.
//!
//! What is known of large arrays is an estimate for this one purpose: the counters below are relaxed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::governor::LIMIT_SAMPLES;
use super::interval::{IntervalError, IntervalId, Intervals};
use crate::ledger::Epoch;

/// The share of the heap that is an account's allowance.
const HEAP_PART: u64 = 32;
/// And that of all accounts together.
const HEAP_PART_OF_ALL: u64 = 8;
/// What comes back of an account's in a minute, as a share of the heap.
const MINUTE_PART: u64 = 16;
/// And of that of all.
const MINUTE_PART_OF_ALL: u64 = 8;
/// The share of the heap that may be undecided before a cycle is asked for.
const WAITING_PART: u64 = 4;
/// Parts of the allowance with each of which the interval is doubled.
const STEPS: u64 = 4;
/// The widest interval, as a share of the heap.
const WIDEST_PART: u64 = 8;
/// And in bytes: the variances of 4 TiB of charges under it add up to 2^64 of their units.
const WIDEST_BYTES: u64 = 1 << 30;
/// Places in which accounts are told apart, by their numbers; two of one place share an allowance.
const PLACES: usize = 64;
/// How long thinned arrays may stay undecided before a cycle is asked for.
const OVERDUE: Duration = Duration::from_secs(180);
/// How long it is asked for, before as long passes again.
const ASKED_FOR: Duration = Duration::from_secs(60);
/// Half of G1's smallest region: what is not larger is large with no collector.
const NEVER_LARGE_BYTES: u64 = 512 << 10;

/// Large arrays: which are, how many wait, and how closely they are sampled.
#[derive(Debug)]
pub(crate) struct Thinning {
    /// What is larger may be large. `u64::MAX` where no array waits.
    threshold_bytes: AtomicU64,
    /// Somebody has met an array that may be large.
    asked: AtomicBool,
    terms: OnceLock<Terms>,
    /// By account, and of all.
    places: Box<[Place]>,
    /// What of the kept is decided on.
    settled_bytes: AtomicU64,
    /// What thinned arrays were charged beyond their sizes, and as much of that as is decided on.
    beyond_bytes: AtomicU64,
    settled_beyond_bytes: AtomicU64,
    /// Epoch + 1 of the youngest that has died; 0 before the first.
    youngest_dead: AtomicU64,
    passed_over: AtomicU64,
}

#[derive(Debug)]
struct Terms {
    heap_bytes: u64,
    region_bytes: u64,
    /// By level, from the first on; each twice the one before.
    intervals: Vec<(u64, IntervalId)>,
}

/// The allowance of the accounts of one place, or of all.
#[derive(Debug, Default)]
struct Place {
    /// What was kept takes, since the start.
    kept_bytes: AtomicU64,
    /// What has come back, since the start: no more than that.
    back_bytes: AtomicU64,
}

impl Place {
    fn used_bytes(&self) -> u64 {
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        kept.saturating_sub(self.back_bytes.load(Ordering::Relaxed))
    }

    /// The warden alone.
    fn comes_back(&self, bytes: u64) {
        let bytes = bytes.min(self.used_bytes());
        self.back_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The places in which an account (the number of the purse that stands for it) counts.
fn places_of(account: u32) -> [usize; 2] {
    [account as usize % PLACES, PLACES]
}

/// The allowance of a place and what comes back of it in a minute, in bytes.
fn allowance_bytes(place: usize, heap_bytes: u64) -> (u64, u64) {
    let (part, minute) = if place < PLACES {
        (HEAP_PART, MINUTE_PART)
    } else {
        (HEAP_PART_OF_ALL, MINUTE_PART_OF_ALL)
    };
    (heap_bytes / part, heap_bytes / minute)
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            threshold_bytes: AtomicU64::new(NEVER_LARGE_BYTES),
            asked: AtomicBool::new(false),
            terms: OnceLock::new(),
            places: (0..=PLACES).map(|_| Place::default()).collect(),
            settled_bytes: AtomicU64::new(0),
            beyond_bytes: AtomicU64::new(0),
            settled_beyond_bytes: AtomicU64::new(0),
            youngest_dead: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
        }
    }
}

/// What to do with a sample of a large array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Charge it as drawn under this interval.
    Keep(IntervalId),
    /// Leave it alone; others weigh more for it.
    PassOver,
}

/// A large array that is among the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Living {
    pub(crate) account: u32,
    pub(crate) size_bytes: u64,
    pub(crate) charged_bytes: u64,
    /// A collection has found it alive.
    pub(crate) is_decided: bool,
}

impl Thinning {
    // ---- allocating threads ----------------------------------------------------------

    /// Whether an object of this size may be one that waits. One load.
    pub(crate) fn may_be_large(&self, size_bytes: u64) -> bool {
        size_bytes > self.threshold_bytes.load(Ordering::Relaxed)
    }

    /// True for the first who meets an array that may be large while the collector is not known: it
    /// should be found out then.
    pub(crate) fn ask(&self) -> bool {
        self.terms.get().is_none() && !self.asked.swap(true, Ordering::Relaxed)
    }

    /// The widest interval that the smallest of these limits allows.
    pub(crate) fn widest_bytes(limits: impl Iterator<Item = u64>) -> u64 {
        limits.min().map_or(u64::MAX, |limit| limit / LIMIT_SAMPLES)
    }

    /// What to do with a large array of `size_bytes` that was drawn under `drawn` (`drawn_bytes`),
    /// of an `account` that allows an interval of `widest_bytes`. `chance` is uniform in [0, 1).
    pub(crate) fn judge(
        &self,
        account: u32,
        size_bytes: u64,
        (drawn, drawn_bytes): (IntervalId, u64),
        widest_bytes: impl FnOnce() -> u64,
        chance: impl FnOnce() -> f64,
    ) -> Verdict {
        match self.wider(account, drawn_bytes, widest_bytes) {
            None => Verdict::Keep(drawn),
            Some((bytes, id)) if chance() < share_kept(size_bytes, drawn_bytes, bytes) => {
                Verdict::Keep(id)
            }
            Some(_) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                Verdict::PassOver
            }
        }
    }

    /// The interval that large arrays are to be sampled as under, where that is wider than the one
    /// in force.
    fn wider(
        &self,
        account: u32,
        drawn_bytes: u64,
        widest_bytes: impl FnOnce() -> u64,
    ) -> Option<(u64, IntervalId)> {
        let terms = self.terms.get().filter(|_| drawn_bytes > 0)?;
        let [own, all] = places_of(account).map(|place| {
            let (allowance, _) = allowance_bytes(place, terms.heap_bytes);
            level(self.places[place].used_bytes(), allowance)
        });
        let level = match own.max(all) {
            0 => return None,
            level => level.min(terms.intervals.len()),
        };
        let widest_bytes = widest_bytes();
        let by_level = terms.intervals[..level].iter().rev();
        let (bytes, id) = by_level
            .copied()
            .find(|(bytes, _)| *bytes <= widest_bytes)?;
        (bytes > drawn_bytes).then_some((bytes, id))
    }

    /// A large array of `account` was charged and tagged.
    pub(crate) fn kept(&self, account: u32, size_bytes: u64, charged_bytes: u64) {
        let taken_bytes = self.taken_bytes(size_bytes);
        for place in places_of(account) {
            (self.places[place].kept_bytes).fetch_add(taken_bytes, Ordering::Relaxed);
        }
        let beyond = charged_bytes.saturating_sub(size_bytes);
        self.beyond_bytes.fetch_add(beyond, Ordering::Relaxed);
    }

    /// What an array takes of the heap: its regions are nobody else's.
    fn taken_bytes(&self, size_bytes: u64) -> u64 {
        let region_bytes = self.terms.get().map_or(1, |terms| terms.region_bytes);
        (size_bytes.div_ceil(region_bytes)).saturating_mul(region_bytes)
    }

    // ---- the thread that reports deaths ----------------------------------------------

    /// An object of this size and birth has died. A load where it is not large.
    pub(crate) fn died(&self, size_bytes: u64, birth: Epoch) {
        if self.may_be_large(size_bytes) && self.terms.get().is_some() {
            (self.youngest_dead).fetch_max(stored(birth), Ordering::Relaxed);
        }
    }

    // ---- the warden ------------------------------------------------------------------

    /// Somebody has met an array that may be large, and the collector is not known yet.
    pub(crate) fn is_asked(&self) -> bool {
        self.terms.get().is_none() && self.asked.load(Ordering::Relaxed)
    }

    /// The collector is known: its regions, or `None` where no array waits.
    ///
    /// # Errors
    /// [`IntervalError`] where the table of intervals is full; nothing is thinned then.
    pub(crate) fn adopt(
        &self,
        region_bytes: Option<u64>,
        heap_bytes: u64,
        table: &Intervals,
    ) -> Result<(), IntervalError> {
        let half = region_bytes.map(|bytes| bytes / 2).filter(|half| *half > 0);
        let widest_bytes = WIDEST_BYTES.min(heap_bytes / WIDEST_PART);
        let doubled = std::iter::successors(half, |bytes| Some(bytes * 2));
        let by_level = doubled.take_while(|bytes| *bytes <= widest_bytes);
        let named: Result<Vec<_>, _> = by_level
            .map(|bytes| table.thinned(bytes).map(|id| (bytes, id)))
            .collect();
        let threshold_bytes = half.filter(|_| named.is_ok()).unwrap_or(u64::MAX);
        let (intervals, outcome) = match named {
            Ok(intervals) => (intervals, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        // In any case: it is not to be asked for again.
        let terms = Terms {
            heap_bytes,
            region_bytes: region_bytes.unwrap_or(1),
            intervals,
        };
        if self.terms.set(terms).is_ok() {
            (self.threshold_bytes).store(threshold_bytes, Ordering::Relaxed);
        }
        outcome
    }

    /// Samples passed over so far.
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// Whether a collection that comes anyway should be known for what it decides on.
    pub(crate) fn has_undecided(&self) -> bool {
        self.beyond_bytes() > 0 || self.is_undecided_part(HEAP_PART)
    }

    /// Whether undecided arrays take such a part of the heap.
    fn is_undecided_part(&self, part: u64) -> bool {
        let kept = self.places[PLACES].kept_bytes.load(Ordering::Relaxed);
        let undecided = kept.saturating_sub(self.settled_bytes.load(Ordering::Relaxed));
        let terms = self.terms.get();
        terms.is_some_and(|terms| undecided > terms.heap_bytes / part)
    }

    /// What undecided arrays are charged for others, which may be gone.
    pub(crate) fn beyond_bytes(&self) -> u64 {
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        beyond.saturating_sub(self.settled_beyond_bytes.load(Ordering::Relaxed))
    }

    /// A collection has decided on large arrays. `living` calls back for each of those among the
    /// records that was not decided on before.
    pub(crate) fn settle(&self, living: impl FnOnce(&mut dyn FnMut(&Living))) {
        // Before the records are looked at: what is kept meanwhile counts in full.
        let kept = self.places[PLACES].kept_bytes.load(Ordering::Relaxed);
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        let (mut undecided, mut undecided_beyond) = (0u64, 0u64);
        living(&mut |array| {
            let taken_bytes = self.taken_bytes(array.size_bytes);
            if array.is_decided {
                for place in places_of(array.account) {
                    self.places[place].comes_back(taken_bytes);
                }
            } else {
                undecided += taken_bytes;
                undecided_beyond += array.charged_bytes.saturating_sub(array.size_bytes);
            }
        });
        let beyond = beyond.saturating_sub(undecided_beyond);
        (self.settled_beyond_bytes).store(beyond, Ordering::Relaxed);
        let settled = kept.saturating_sub(undecided);
        self.settled_bytes.store(settled, Ordering::Relaxed);
    }
}

const fn stored(epoch: Epoch) -> u64 {
    epoch.get() as u64 + 1
}

/// How often the interval is doubled, from half a region on; 0 for not thinned (rule 2).
fn level(used_bytes: u64, allowance_bytes: u64) -> usize {
    let Some(beyond) = used_bytes.checked_sub(allowance_bytes) else {
        return 0;
    };
    1 + (beyond / (allowance_bytes / STEPS).max(1)) as usize
}

/// The share of samples drawn under `drawn_bytes` that one under `wider_bytes` would have had as
/// well (rule 3): p(s, J) / p(s, I).
fn share_kept(size_bytes: u64, drawn_bytes: u64, wider_bytes: u64) -> f64 {
    let p = |interval: u64| -(-(size_bytes as f64) / interval as f64).exp_m1();
    p(wider_bytes) / p(drawn_bytes)
}

/// What the warden remembers between two looks. Pure but for the counters that it is shown.
#[derive(Debug, Default)]
pub(crate) struct Settler {
    looked: Option<Duration>,
    /// Since when thinned arrays are undecided.
    undecided_since: Option<Duration>,
    /// Since when a decision is asked for, or was last.
    asked_since: Option<Duration>,
}

impl Settler {
    /// Looks once in a while: `since_start` is the time, `covered` what a covering collection has
    /// decided on, `decided` what has been settled. Gives the epoch to be settled, if there is a new
    /// one. (Its refunds need not all be in: what is dead and not reported yet comes back to the
    /// allowances a little early.)
    pub(crate) fn look(
        &mut self,
        thinning: &Thinning,
        since_start: Duration,
        covered: Option<Epoch>,
        decided: Option<Epoch>,
    ) -> Option<Epoch> {
        let elapsed = since_start.saturating_sub(self.looked.unwrap_or(since_start));
        self.looked = Some(since_start);
        if let Some(terms) = thinning.terms.get() {
            for (number, place) in thinning.places.iter().enumerate() {
                let (_, in_a_minute) = allowance_bytes(number, terms.heap_bytes);
                place.comes_back((elapsed.as_secs_f64() / 60.0 * in_a_minute as f64) as u64);
            }
        }
        let dead = thinning.youngest_dead.load(Ordering::Relaxed);
        let dead = dead.checked_sub(1).map(|epoch| Epoch::new(epoch as u32));
        let new = dead.max(covered).filter(|epoch| Some(*epoch) > decided);
        if new.is_some() {
            (self.undecided_since, self.asked_since) = (None, None);
        } else {
            self.wish_for_a_decision(thinning, since_start);
        }
        new
    }

    fn wish_for_a_decision(&mut self, thinning: &Thinning, now: Duration) {
        if thinning.beyond_bytes() > 0 {
            self.undecided_since.get_or_insert(now);
        }
        let since = |then: Option<Duration>| then.map(|then| now.saturating_sub(then));
        let is_old = since(self.undecided_since).is_some_and(|since| since >= OVERDUE);
        let is_due = is_old || thinning.is_undecided_part(WAITING_PART);
        let has_rested = since(self.asked_since).is_none_or(|since| since >= 2 * ASKED_FOR);
        if is_due && has_rested {
            self.asked_since = Some(now);
        }
    }

    /// Whether a cycle should decide on large arrays now (rule 5).
    pub(crate) fn wants_decision(&self, since_start: Duration) -> bool {
        (self.asked_since).is_some_and(|since| since_start.saturating_sub(since) < ASKED_FOR)
    }
}

#[cfg(test)]
mod tests;
