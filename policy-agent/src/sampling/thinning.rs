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
//! 1. An array is *undecided* from when its sample is kept until a collection is known to have decided
//!    on it. It counts with the regions that it takes. What an account's undecided arrays may come to is its *allowance*: 1/[`HEAP_PART`] of the
//!    heap; what those of all accounts may, 1/[`HEAP_PART_OF_ALL`].
//! 2. Below both they are sampled like anything else. From there on they are sampled as if the
//!    interval were half a region, and twice as much with each further quarter of the allowance that is
//!    used up more, up to 1/[`WIDEST_PART`] of the heap or [`WIDEST_BYTES`]. So in a heap of 1 GiB an
//!    account that has made and dropped a gigabyte in arrays of a region each has 9 % of the heap
//!    waiting, and one in 128 of its next is kept. Accounts that make few are known as closely as ever.
//! 3. An array that was drawn under the interval I is kept with the probability p(s, J) / p(s, I) for
//!    the wider interval J, p as in [`super::weight`]. It has been sampled with p(s, J) then, as if it
//!    had been drawn under J, and is weighed with that: charges stay unbiased. J depends on what was
//!    sampled before alone, and not on this draw.
//! 4. Only a collection of old memory frees such an array. The death of one that was born in epoch e
//!    proves one that has decided on all large arrays born up to e (the argument for canaries in
//!    [`crate::ledger::epoch`], word for word), as a covering collection does. What lives then is no
//!    garbage that waits: it is undecided no more.
//! 5. What died of an account's counts on as if it were undecided, and half of it is forgotten every
//!    [`HALF_LIFE`]: a service that lives on such arrays does not begin anew after each cycle, and one
//!    that has ceased to may build a cache that is known exactly.
//! 6. Until then a thinned array is charged with what it stands for, but counts among what is *live*
//!    with its own size alone: young collections have freed those that it stands for, if they were
//!    garbage, and could not free it. Where nothing has decided for [`OVERDUE`], a concurrent cycle is
//!    asked for, within the budget for evidence: so a cache that came while arrays were thinned is
//!    shown too small for so long at the most.
//! 7. An account that has a limit has its arrays sampled as under an interval of 1/[`LIMIT_SAMPLES`] of
//!    it at the widest (at its limit it is known to 6 % then, if it holds nothing else), and not
//!    thinned while somebody looks whether it is over ([`crate::enforce::gate`]). Verdicts are found by
//!    charges: there a thinned array counts with all that it stands for, decided on or not.
//! 8. Exact mode is left alone: it was asked for.
//!
//! What is known of large arrays is an estimate for this one purpose: the counters below are relaxed,
//! and each settlement ([`Thinning::settle`]) replaces what they came to by a look at the records.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::interval::{IntervalError, IntervalId, Intervals};
use crate::ledger::Epoch;

/// The share of the heap that an account's undecided arrays may come to before they are thinned.
const HEAP_PART: u64 = 32;
/// And those of all accounts together.
const HEAP_PART_OF_ALL: u64 = 8;
/// The widest interval, as a share of the heap.
const WIDEST_PART: u64 = 4;
/// And in bytes: the variances of 4 TiB of charges under it add up to 2^64 of their units.
const WIDEST_BYTES: u64 = 1 << 30;
/// Places in which accounts are told apart, by their numbers; two of one place share an allowance.
const PLACES: usize = 64;
/// Parts of the allowance with each of which the interval is doubled.
const STEPS: u64 = 4;
/// How long half of what died counts on.
const HALF_LIFE: Duration = Duration::from_secs(30);
/// How long thinned arrays may stay undecided before a cycle is asked for.
const OVERDUE: Duration = Duration::from_secs(600);
/// How long it is asked for, before another such time passes.
const ASKED_FOR: Duration = Duration::from_secs(60);
/// Intervals that a limit keeps for large arrays.
pub(crate) const LIMIT_SAMPLES: u64 = 256;
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
    /// What thinned ones were charged beyond their sizes, and as much of that as is decided on.
    beyond_bytes: AtomicU64,
    settled_beyond_bytes: AtomicU64,
    /// Epoch + 1 of the youngest that has died.
    youngest_dead: AtomicU64,
    passed_over: AtomicU64,
}

/// What waits, of the accounts of one place or of all.
#[derive(Debug, Default)]
struct Place {
    /// What was kept takes, since the start.
    kept_bytes: AtomicU64,
    /// As many of them as are decided on.
    settled_bytes: AtomicU64,
    /// What rule 5 adds to the rest.
    carried_bytes: AtomicU64,
    /// What those took that died undecided, since the start.
    died_bytes: AtomicU64,
}

impl Place {
    fn waiting_bytes(&self) -> u64 {
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        let undecided = kept.saturating_sub(self.settled_bytes.load(Ordering::Relaxed));
        undecided.saturating_add(self.carried_bytes.load(Ordering::Relaxed))
    }
}

/// The places in which an account (the number of the purse that stands for it) counts.
fn places_of(account: u32) -> [usize; 2] {
    [account as usize % PLACES, PLACES]
}

#[derive(Debug)]
struct Terms {
    heap_bytes: u64,
    region_bytes: u64,
    /// By level, from the first on; each twice the one before.
    intervals: Vec<(u64, IntervalId)>,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            threshold_bytes: AtomicU64::new(NEVER_LARGE_BYTES),
            asked: AtomicBool::new(false),
            terms: OnceLock::new(),
            places: (0..=PLACES).map(|_| Place::default()).collect(),
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

impl Thinning {
    // ---- allocating threads ----------------------------------------------------------

    /// Whether an object of this size may be one that waits. One load.
    pub(crate) fn may_be_large(&self, size_bytes: u64) -> bool {
        size_bytes > self.threshold_bytes.load(Ordering::Relaxed)
    }

    /// Whether the collector is known; where it is not, true for the first who should have it
    /// looked at.
    pub(crate) fn ask(&self) -> bool {
        self.terms.get().is_none() && !self.asked.swap(true, Ordering::Relaxed)
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
        let [own, all] = places_of(account).map(|place| self.places[place].waiting_bytes());
        let own = level(own, terms.heap_bytes / HEAP_PART);
        let level = match own.max(level(all, terms.heap_bytes / HEAP_PART_OF_ALL)) {
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

    // ---- the thread that reports deaths ----------------------------------------------

    /// What an array takes of the heap: its regions are nobody else's.
    fn taken_bytes(&self, size_bytes: u64) -> u64 {
        let region_bytes = self.terms.get().map_or(1, |terms| terms.region_bytes);
        size_bytes
            .div_ceil(region_bytes)
            .saturating_mul(region_bytes)
    }

    /// Whether the death of an object of this size is to be told to [`Thinning::died`]. A load or two.
    pub(crate) fn hears_of(&self, size_bytes: u64) -> bool {
        self.may_be_large(size_bytes) && self.terms.get().is_some()
    }

    /// A large array of `account` that was born in `birth` has died; `decided` is
    /// [`crate::ledger::Epochs::large_decided`].
    pub(crate) fn died(&self, account: u32, size_bytes: u64, birth: Epoch, decided: Option<Epoch>) {
        (self.youngest_dead).fetch_max(stored(birth), Ordering::Relaxed);
        if Some(birth) > decided {
            let taken_bytes = self.taken_bytes(size_bytes);
            for place in places_of(account) {
                (self.places[place].died_bytes).fetch_add(taken_bytes, Ordering::Relaxed);
            }
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
        let mut intervals = Vec::new();
        let half = region_bytes.map(|bytes| bytes / 2).filter(|half| *half > 0);
        let widest_bytes = WIDEST_BYTES.min(heap_bytes / WIDEST_PART);
        let mut bytes = half.unwrap_or(u64::MAX);
        while bytes <= widest_bytes {
            match table.thinned(bytes) {
                Ok(id) => intervals.push((bytes, id)),
                Err(error) => {
                    self.threshold_bytes.store(u64::MAX, Ordering::Relaxed);
                    return Err(error);
                }
            }
            bytes *= 2;
        }
        let terms = Terms {
            heap_bytes,
            region_bytes: region_bytes.unwrap_or(1),
            intervals,
        };
        if self.terms.set(terms).is_ok() {
            (self.threshold_bytes).store(half.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Samples passed over so far.
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// What undecided arrays are charged for others, which may be gone.
    pub(crate) fn beyond_bytes(&self) -> u64 {
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        beyond.saturating_sub(self.settled_beyond_bytes.load(Ordering::Relaxed))
    }

    /// A collection has decided on large arrays. `living` calls back for each of those among the
    /// records that were born after it, with its account, size and charge.
    pub(crate) fn settle(&self, living: impl FnOnce(&mut dyn FnMut(u32, u64, u64))) {
        // Before the records are looked at: what is kept meanwhile counts in full.
        let kept: Vec<u64> = (self.places.iter())
            .map(|place| place.kept_bytes.load(Ordering::Relaxed))
            .collect();
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        let mut waiting = vec![0u64; kept.len()];
        let mut waiting_beyond = 0u64;
        living(&mut |account, size_bytes, charged_bytes| {
            for place in places_of(account) {
                waiting[place] += self.taken_bytes(size_bytes);
            }
            waiting_beyond += charged_bytes.saturating_sub(size_bytes);
        });
        for ((place, kept), waiting) in self.places.iter().zip(kept).zip(waiting) {
            (place.settled_bytes).store(kept.saturating_sub(waiting), Ordering::Relaxed);
        }
        (self.settled_beyond_bytes).store(beyond.saturating_sub(waiting_beyond), Ordering::Relaxed);
    }

    /// The most that is of use to count of one place: from there on it is the last level.
    fn most_bytes(&self, place: usize) -> u64 {
        let part = if place < PLACES {
            HEAP_PART
        } else {
            HEAP_PART_OF_ALL
        };
        self.terms.get().map_or(0, |terms| {
            let allowance = terms.heap_bytes / part;
            allowance + allowance / STEPS * terms.intervals.len() as u64
        })
    }
}

const fn stored(epoch: Epoch) -> u64 {
    epoch.get() as u64 + 1
}

/// How often the interval is doubled, from half a region on; 0 for not thinned (rule 2).
fn level(waiting_bytes: u64, allowance_bytes: u64) -> usize {
    let Some(beyond) = waiting_bytes.checked_sub(allowance_bytes) else {
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
    /// By place: those of [`Thinning::died`] that are carried or were, and what is carried now.
    carried: Vec<(u64, f64)>,
    looked: Option<Duration>,
    /// Since when thinned arrays are undecided.
    undecided_since: Option<Duration>,
}

impl Settler {
    /// Looks once in a while: `since_start` is the time, `covered` what a covering collection has
    /// decided on, `decided` what has been settled. Gives the epoch to be settled, if there is a new
    /// one. (Its refunds need not all be in: an array that is decided on waits no more, whether its
    /// death has been told or not.)
    pub(crate) fn look(
        &mut self,
        thinning: &Thinning,
        since_start: Duration,
        covered: Option<Epoch>,
        decided: Option<Epoch>,
    ) -> Option<Epoch> {
        let elapsed = since_start.saturating_sub(self.looked.unwrap_or(since_start));
        self.looked = Some(since_start);
        let died_of = thinning
            .youngest_dead
            .load(Ordering::Relaxed)
            .checked_sub(1);
        let reached = died_of.map(|epoch| Epoch::new(epoch as u32)).max(covered);
        let new = reached.filter(|_| reached > decided);
        let forgotten = 0.5_f64.powf(elapsed.as_secs_f64() / HALF_LIFE.as_secs_f64());
        self.carried.resize(thinning.places.len(), (0, 0.0));
        for (number, place) in thinning.places.iter().enumerate() {
            let (known, carried) = &mut self.carried[number];
            *carried *= forgotten;
            if new.is_some() {
                let died = place.died_bytes.load(Ordering::Relaxed);
                *carried = carried.max(died.saturating_sub(*known) as f64);
                *known = died;
            }
            let most = thinning.most_bytes(number);
            (place.carried_bytes).store((*carried as u64).min(most), Ordering::Relaxed);
        }
        if new.is_some() || thinning.beyond_bytes() == 0 {
            self.undecided_since = None;
        } else {
            let since = *self.undecided_since.get_or_insert(since_start);
            if since_start.saturating_sub(since) >= OVERDUE + ASKED_FOR {
                self.undecided_since = Some(since_start);
            }
        }
        new
    }

    /// Whether a cycle should decide on thinned arrays, as none has for long (rule 6).
    pub(crate) fn is_overdue(&self, since_start: Duration) -> bool {
        let since = self.undecided_since;
        since.is_some_and(|since| since_start.saturating_sub(since) >= OVERDUE)
    }
}

#[cfg(test)]
mod tests;
