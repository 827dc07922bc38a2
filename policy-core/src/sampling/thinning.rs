//! Thinning: fewer samples of large arrays, because a sample keeps such an array from being freed early.
//!
//! # Why
//! G1 puts an object larger than half a region into regions of its own. If the object is an array of
//! primitives that nobody refers to, G1 frees it at the next young collection. A weak handle counts as a
//! reference there, and a tag is a weak handle. So a sampled array stays until the end of a concurrent
//! cycle or until a full collection. Objects that large are nearly always sampled. A service that makes
//! and drops buffers of a megabyte would fill old memory with them and cause concurrent cycles.
//!
//! # Rules
//! 1. Each account has an *allowance* of 1/`HEAP_PART` of the heap; all accounts together have one of
//!    1/`HEAP_PART_OF_ALL`. A large array whose sample is kept uses up both, by the regions that it
//!    takes. Per minute, 1/`MINUTE_PART` and 1/`MINUTE_PART_OF_ALL` of the heap come back; this
//!    bounds the growth of the garbage that waits. The regions of an array also come back when a
//!    collection has found it alive, because it is not garbage.
//! 2. While neither allowance is used up, large arrays are sampled like other objects. Beyond an
//!    allowance they are sampled as if the interval were half a region. The interval doubles with each
//!    further quarter of the allowance, up to 1/`WIDEST_PART` of the heap or `WIDEST_BYTES`.
//! 3. An array that was drawn under the interval I is kept with the probability p(s, J) / p(s, I), for
//!    the wider interval J and p as in [`super::weight`]. So it is sampled with p(s, J), as if it had
//!    been drawn under J, and is weighed with that: charges stay unbiased. J depends only on earlier
//!    samples, not on this draw.
//! 4. Only a collection of old memory frees a tagged large array. The death of one that was born in epoch
//!    e proves a collection that has *decided* on all large arrays born up to e. The argument is the
//!    one for canaries in [`crate::ledger::epoch`]. A covering collection decides on them, too.
//! 5. Until then a thinned array is charged with what it stands for, but counts as *live* with its own
//!    size only: young collections have freed the arrays that it stands for, if they were garbage, but
//!    could not free it. The agent asks for a concurrent cycle, within the budget for evidence, if
//!    none has decided for `OVERDUE` or if undecided arrays take 1/`WAITING_PART` of the heap.
//!    This bounds the time for which a new cache is shown too small. It also keeps our arrays from
//!    filling old memory to the point where G1 pauses for each large array.
//! 6. For an account with a limit, the interval is at most 1/[`super::governor::LIMIT_SAMPLES`] of the limit, as in
//!    the governor (an account at its limit is known to 3 %). Its arrays are not thinned while the
//!    enforcer checks whether it is over ([`crate::enforce::gate`]). Verdicts start from charges, in
//!    which a thinned array counts with all that it stands for, decided on or not.
//! 7. In exact mode nothing is thinned. Nor are the arrays of a purse that a Java test watches
//!    ([`crate::peaks`]): it has no limit, and the test judges it after a collection of its own.
//! 8. The stated error counts every array that is drawn, kept or passed over
//!    ([`super::thinning_error`]).
//!
//! So the more large arrays an account makes and drops, the less exactly they are known. With 20 of one
//! region each per second in a heap of 1 GiB, one in 20 is kept, and a cache of 100 is known to 45 %.
//!
//! The counters below are relaxed atomics, because they only feed this estimate.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::interval::{IntervalError, IntervalId, Intervals};
use crate::ledger::Epoch;

/// The share of the heap that is an account's allowance.
const HEAP_PART: u64 = 32;
/// The share of the heap that is the allowance of all accounts together.
const HEAP_PART_OF_ALL: u64 = 8;
/// How much of an account's allowance comes back in a minute, as a share of the heap.
const MINUTE_PART: u64 = 16;
/// How much of the allowance of all accounts comes back in a minute, as a share of the heap.
const MINUTE_PART_OF_ALL: u64 = 8;
/// The share of the heap that may be undecided before a cycle is asked for.
const WAITING_PART: u64 = 4;
/// The interval doubles with each further of so many parts of the allowance.
const STEPS: u64 = 4;
/// The widest interval, as a share of the heap.
const WIDEST_PART: u64 = 8;
/// The widest interval in bytes: the variances of 4 TiB of charges under it add up to 2^64 of their units.
const WIDEST_BYTES: u64 = 1 << 30;
/// The number of allowances. Accounts are spread over them by number; two in one place share it.
const PLACES: usize = 64;
/// How long thinned arrays may stay undecided before a cycle is asked for.
const OVERDUE: Duration = Duration::from_secs(180);
/// How long a cycle is asked for; then the agent waits for the same time.
const ASKED_FOR: Duration = Duration::from_secs(60);
/// Half of G1's smallest region: an object up to this size is not large in any heap.
const NEVER_LARGE_BYTES: u64 = 512 << 10;

/// Decides which large arrays are sampled, and counts those that wait for a collection.
#[derive(Debug)]
pub struct Thinning {
    /// Larger objects may be large arrays. `u64::MAX` if the collector frees all arrays alike.
    threshold_bytes: AtomicU64,
    /// A thread has met an array that may be large.
    asked: AtomicBool,
    regions: OnceLock<Regions>,
    /// The allowances of accounts, and last the one of all accounts.
    places: Box<[Place]>,
    /// How much of the kept bytes is decided on.
    settled_bytes: AtomicU64,
    /// Bytes that thinned arrays were charged beyond their sizes.
    beyond_bytes: AtomicU64,
    /// How much of `beyond_bytes` is decided on.
    settled_beyond_bytes: AtomicU64,
    /// Epoch + 1 of the youngest that has died; 0 before the first.
    youngest_dead: AtomicU64,
    passed_over: AtomicU64,
}

/// The sizes and intervals that depend on the collector; known once it is.
#[derive(Debug)]
struct Regions {
    heap_bytes: u64,
    region_bytes: u64,
    /// The intervals by level, from level 1 on; each is twice the one before.
    intervals: Vec<(u64, IntervalId)>,
}

/// The allowance of the accounts of one place, or of all.
#[derive(Debug, Default)]
struct Place {
    /// Bytes of the regions of kept arrays, since the start.
    kept_bytes: AtomicU64,
    /// Bytes that have come back since the start; at most `kept_bytes`.
    back_bytes: AtomicU64,
}

impl Place {
    fn used_bytes(&self) -> u64 {
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        kept.saturating_sub(self.back_bytes.load(Ordering::Relaxed))
    }

    /// The enforcer alone.
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
            regions: OnceLock::new(),
            places: (0..=PLACES).map(|_| Place::default()).collect(),
            settled_bytes: AtomicU64::new(0),
            beyond_bytes: AtomicU64::new(0),
            settled_beyond_bytes: AtomicU64::new(0),
            youngest_dead: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
        }
    }
}

/// The decision about a sample of a large array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Charge it as drawn under this interval.
    Keep(IntervalId),
    /// Do not charge it. Arrays that are kept under this interval weigh more instead.
    PassOver(IntervalId),
}

/// A large array that is among the records.
#[derive(Debug, Clone, Copy)]
pub struct Living {
    /// The number of the purse that stands for its account.
    pub account: u32,
    /// Its size.
    pub size_bytes: u64,
    /// The bytes that it is charged with.
    pub charged_bytes: u64,
    /// Whether a collection has found it alive.
    pub is_decided: bool,
}

impl Thinning {
    // ---- allocating threads ----------------------------------------------------------

    /// Whether an object of this size may be a large array. One load.
    pub fn may_be_large(&self, size_bytes: u64) -> bool {
        size_bytes > self.threshold_bytes.load(Ordering::Relaxed)
    }

    /// True for the first thread that meets an array that may be large while the collector is
    /// unknown. It then wakes the enforcer, which finds out the collector.
    pub fn ask(&self) -> bool {
        self.regions.get().is_none() && !self.asked.swap(true, Ordering::Relaxed)
    }

    /// Decides on a large array of `size_bytes` that was drawn under `drawn` (`drawn_bytes`). Its
    /// `account` allows intervals up to `widest_bytes`. `chance` is uniform in [0, 1).
    pub fn judge(
        &self,
        account: u32,
        size_bytes: u64,
        (drawn, drawn_bytes): (IntervalId, u64),
        widest_bytes: impl FnOnce() -> u64,
        chance: impl FnOnce() -> f64,
    ) -> Decision {
        match self.wider(account, drawn_bytes, widest_bytes) {
            None => Decision::Keep(drawn),
            Some((bytes, id)) if chance() < share_kept(size_bytes, drawn_bytes, bytes) => {
                Decision::Keep(id)
            }
            Some((_, id)) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                Decision::PassOver(id)
            }
        }
    }

    /// The interval for large arrays, if it is wider than the one in force.
    fn wider(
        &self,
        account: u32,
        drawn_bytes: u64,
        widest_bytes: impl FnOnce() -> u64,
    ) -> Option<(u64, IntervalId)> {
        let regions = self.regions.get().filter(|_| drawn_bytes > 0)?;
        let [own, all] = places_of(account).map(|place| {
            let (allowance, _) = allowance_bytes(place, regions.heap_bytes);
            level(self.places[place].used_bytes(), allowance)
        });
        let level = match own.max(all) {
            0 => return None,
            level => level.min(regions.intervals.len()),
        };
        let widest_bytes = widest_bytes();
        let by_level = regions.intervals[..level].iter().rev();
        let (bytes, id) = by_level
            .copied()
            .find(|(bytes, _)| *bytes <= widest_bytes)?;
        (bytes > drawn_bytes).then_some((bytes, id))
    }

    /// Counts a large array of `account` that was charged and tagged.
    pub fn kept(&self, account: u32, size_bytes: u64, charged_bytes: u64) {
        let taken_bytes = self.taken_bytes(size_bytes);
        for place in places_of(account) {
            (self.places[place].kept_bytes).fetch_add(taken_bytes, Ordering::Relaxed);
        }
        let beyond = charged_bytes.saturating_sub(size_bytes);
        self.beyond_bytes.fetch_add(beyond, Ordering::Relaxed);
    }

    /// The bytes that an array takes of the heap: it shares its regions with no other object.
    fn taken_bytes(&self, size_bytes: u64) -> u64 {
        let region_bytes = self.regions.get().map_or(1, |regions| regions.region_bytes);
        (size_bytes.div_ceil(region_bytes)).saturating_mul(region_bytes)
    }

    // ---- the thread that reports deaths ----------------------------------------------

    /// Notes the death of an object of this size and birth. One load if it is not large.
    pub fn died(&self, size_bytes: u64, birth: Epoch) {
        if self.may_be_large(size_bytes) && self.regions.get().is_some() {
            (self.youngest_dead).fetch_max(stored(birth), Ordering::Relaxed);
        }
    }

    // ---- the enforcer ------------------------------------------------------------------

    /// Whether a thread has met an array that may be large while the collector is not known yet.
    pub fn is_asked(&self) -> bool {
        self.regions.get().is_none() && self.asked.load(Ordering::Relaxed)
    }

    /// Sets the region size of G1; `None` for other collectors, where nothing is thinned.
    ///
    /// # Errors
    /// [`IntervalError`] if the table of intervals is full; nothing is thinned then.
    pub fn adopt(
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
        // Set even after an error, so that nobody asks again.
        let regions = Regions {
            heap_bytes,
            region_bytes: region_bytes.unwrap_or(1),
            intervals,
        };
        if self.regions.set(regions).is_ok() {
            (self.threshold_bytes).store(threshold_bytes, Ordering::Relaxed);
        }
        outcome
    }

    /// Samples passed over so far.
    pub fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// Whether undecided arrays take more than 1/`part` of the heap.
    fn is_undecided_part(&self, part: u64) -> bool {
        let kept = self.places[PLACES].kept_bytes.load(Ordering::Relaxed);
        let undecided = kept.saturating_sub(self.settled_bytes.load(Ordering::Relaxed));
        let regions = self.regions.get();
        regions.is_some_and(|regions| undecided > regions.heap_bytes / part)
    }

    /// Bytes that undecided arrays are charged for other arrays, which may be gone.
    pub fn beyond_bytes(&self) -> u64 {
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        beyond.saturating_sub(self.settled_beyond_bytes.load(Ordering::Relaxed))
    }

    /// Settles the counters after a collection that has decided on large arrays. `living` calls its
    /// argument for each large array among the records that was undecided before.
    pub fn settle(&self, living: impl FnOnce(&mut dyn FnMut(&Living))) {
        // Before the records are scanned: arrays that are kept meanwhile stay undecided.
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

/// The level of thinning: 0 is none, 1 an interval of half a region, each further one doubles it
/// (rule 2).
fn level(used_bytes: u64, allowance_bytes: u64) -> usize {
    let Some(beyond) = used_bytes.checked_sub(allowance_bytes) else {
        return 0;
    };
    1 + (beyond / (allowance_bytes / STEPS).max(1)) as usize
}

/// The share of samples drawn under `drawn_bytes` that are kept for `wider_bytes` (rule 3):
/// p(s, J) / p(s, I).
pub fn share_kept(size_bytes: u64, drawn_bytes: u64, wider_bytes: u64) -> f64 {
    let p = |interval: u64| -(-(size_bytes as f64) / interval as f64).exp_m1();
    p(wider_bytes) / p(drawn_bytes)
}

/// The times that the enforcer remembers about large arrays between two looks.
#[derive(Debug, Default)]
pub struct Settler {
    last_look: Option<Duration>,
    /// Since when thinned arrays are undecided.
    undecided_since: Option<Duration>,
    /// When a decision was last asked for.
    asked_since: Option<Duration>,
}

impl Settler {
    /// Looks about once a second at the time `since_start`. A covering collection has decided up to
    /// `covered`; arrays are settled up to `decided`. Returns the epoch to settle, if there is a new
    /// one. Its refunds need not all be in: arrays that are dead but not reported yet come back to
    /// the allowances a little early.
    pub fn look(
        &mut self,
        thinning: &Thinning,
        since_start: Duration,
        covered: Option<Epoch>,
        decided: Option<Epoch>,
    ) -> Option<Epoch> {
        let elapsed = since_start.saturating_sub(self.last_look.unwrap_or(since_start));
        self.last_look = Some(since_start);
        if let Some(regions) = thinning.regions.get() {
            for (number, place) in thinning.places.iter().enumerate() {
                let (_, in_a_minute) = allowance_bytes(number, regions.heap_bytes);
                place.comes_back((elapsed.as_secs_f64() / 60.0 * in_a_minute as f64) as u64);
            }
        }
        let dead = thinning.youngest_dead.load(Ordering::Relaxed);
        let dead = dead.checked_sub(1).map(|epoch| Epoch::new(epoch as u32));
        let new = dead.max(covered).filter(|epoch| Some(*epoch) > decided);
        if new.is_some() {
            (self.undecided_since, self.asked_since) = (None, None);
        } else {
            self.ask_for_decision(thinning, since_start);
        }
        new
    }

    fn ask_for_decision(&mut self, thinning: &Thinning, now: Duration) {
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
    pub fn wants_decision(&self, since_start: Duration) -> bool {
        (self.asked_since).is_some_and(|since| since_start.saturating_sub(since) < ASKED_FOR)
    }
}

#[cfg(test)]
mod tests;
