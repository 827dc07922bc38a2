//! The error of thinning: of large arrays that were kept and stand for many others, and of those that
//! were passed over.
//!
//! # The estimator
//! A large array of s bytes is drawn under the interval I with `p = 1 - exp(-s/I)`, kept with the
//! probability `q = p_J/p` for a wider interval J ([`super::thinning`], rule 3), and charged with
//! `s/p_J` if it is kept. That is the Horvitz-Thompson estimator: its mean is s, its variance
//!
//! ```text
//! d0 = s^2 (1 - p_J) / p_J
//! ```
//!
//! # Why the usual variance is too small when it matters
//! [`super::weight`] adds `v = s^2 (1 - p_J) / p_J^2` for each array that is *kept*. The mean of that
//! is right, but it rests on the same few arrays as the estimate: where chance has kept few, the
//! estimate is low and its stated error is small as well. Two kept of an expected five are 3 expected
//! deviations of 2.2, but more than 2 stated ones; none kept is stated as 0 without an error. So
//! estimates that are too low lie many stated errors from the truth, and the error is of no use just
//! when it is needed.
//!
//! # What is used instead
//! Every array that is *drawn* counts, kept or passed over, because it is known then. (With arrays of
//! half a region and more, p is nearly 1: nearly all are drawn.) Each adds
//!
//! ```text
//! d = s^2 (1 - p_J) / (p_J p)         mean over the draw: p * d = d0
//! ```
//!
//! to the account's sum D. The chance of being kept has no part in it, so D is unbiased and hardly
//! varies: an estimate lies from the truth by its real standard errors.
//!
//! # When a collection has decided
//! Then the kept arrays that are garbage are refunded, and D must lose its share of garbage. Those
//! passed over tell nobody when they go, but it was chance that told them from the kept. So what
//! is left of D is estimated by what is left of the kept ones: K is the sum of v over those kept, A
//! over those of them that are still charged, and
//!
//! ```text
//! D is multiplied by (A + 2u) / (K + 2u)
//! ```
//!
//! u is the variance of one kept array, averaged over those drawn: two kept arrays that live are added
//! to what was seen, as Agresti and Coull add two successes. Where all kept ones live, or none was
//! kept, nothing is taken from D: that is right for a cache. Where many were kept and none lives,
//! about 2u stays: as much as can go unseen beside them. It stays for as long as the account does:
//! nothing that the agent sees tells whether an array that was passed over is still there. Between
//! collections that decide no kept array dies, and the factor is 1.
//!
//! # Live bytes
//! A thinned array counts among live bytes with its own size until a collection has decided on it
//! (rule 5 there). So what is passed over may be missing up to then: between nothing and all of it,
//! nobody knows how much. It counts as uniformly distributed, which has `H^2/3` for the mean
//! square of what is missing; even where all of it lives, the truth is within 1.8 standard
//! errors. After the decision it is in D. Either is bounded by the room that the heap has for it: what
//! is in use after a collection less what all accounts hold ([`Found::room_bytes`]).
//!
//! # What is not claimed
//! The distribution is that of a sum of few large terms, not a normal one: where less than three arrays
//! are expected to be kept, an estimate that is too *high* is beyond three errors more often than
//! one in 370 times (seen: up to one in 100). The heap's room is known with an error of its own.

use std::ops::AddAssign;

use super::weight::VARIANCE_UNIT_BYTES2;

/// How many kept arrays that live are added to those seen (see the module header).
const ADDED: f64 = 2.0;

const UNIT: f64 = VARIANCE_UNIT_BYTES2 as f64;

/// The amounts that one drawn array adds to its account, kept or passed over. Variances in units of
/// [`VARIANCE_UNIT_BYTES2`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// d of the module header.
    pub variance: f64,
    /// d times the root of v: what u is averaged from.
    pub weighted: f64,
    /// The bytes that it stands for as drawn.
    pub bytes: f64,
}

impl Drawn {
    /// An array of `size_bytes` that was drawn under one interval and is kept as under a wider one.
    pub fn of(size_bytes: u64, drawn_bytes: u64, wider_bytes: u64) -> Drawn {
        let size = size_bytes as f64;
        let missed = |interval: u64| (-size / interval as f64).exp();
        let sampled = |interval: u64| -(-size / interval as f64).exp_m1();
        let (drawn, kept) = (sampled(drawn_bytes), sampled(wider_bytes));
        let of_a_kept_one = size * size * missed(wider_bytes) / (kept * kept) / UNIT;
        let variance = of_a_kept_one * kept / drawn;
        Drawn {
            variance,
            weighted: variance * of_a_kept_one.sqrt(),
            bytes: size / drawn,
        }
    }
}

/// The sums of an account over its thinned arrays. Variances in units of [`VARIANCE_UNIT_BYTES2`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Thinned {
    /// D: of all drawn, less what was taken off at decisions.
    pub drawn: f64,
    /// As D, each times the root of its v.
    pub weighted: f64,
    /// The value of D after the latest decision.
    pub decided: f64,
    /// K: of those that were charged after the latest decision or kept since.
    pub kept: f64,
    /// A: of those that are charged.
    pub held: f64,
    /// The bytes that were passed over since the latest decision.
    pub passed_bytes: f64,
    /// The widest interval for which one was passed over; 0 for none.
    pub widest_bytes: u64,
}

/// Sums of several purses: an account's.
impl AddAssign for Thinned {
    fn add_assign(&mut self, other: Self) {
        self.drawn += other.drawn;
        self.weighted += other.weighted;
        self.decided += other.decided;
        self.kept += other.kept;
        self.held += other.held;
        self.passed_bytes += other.passed_bytes;
        self.widest_bytes = self.widest_bytes.max(other.widest_bytes);
    }
}

/// The findings of a pass over the records about an account's thinned arrays.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Found {
    /// The sum of v over those that live and were decided on.
    pub decided_variance: u64,
    /// The bytes that those that live and were not decided on are charged beyond their own sizes.
    pub beyond_bytes: u64,
    /// How much can be in the heap beside what all accounts are known to hold; `None` if unknown.
    pub room_bytes: Option<u64>,
    /// The sums of [`Thinned`] have followed the latest decision. It takes a second.
    pub is_settled: bool,
}

impl Found {
    /// A variance of arrays that were decided on, bounded by the heap: what was passed over and is still
    /// there is in use, and belongs to no account.
    fn bounded(&self, decided: f64) -> f64 {
        let room = (self.room_bytes).map_or(f64::INFINITY, |bytes| bytes as f64);
        decided.min(self.decided_variance as f64 + room * room / UNIT)
    }
}

impl Thinned {
    /// Whether anything was ever thinned.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.drawn <= 0.0
    }

    /// The widest interval for which an array was passed over; 0 for none.
    #[must_use]
    pub fn widest_bytes(&self) -> u64 {
        self.widest_bytes
    }

    /// The share of D that stays, by what is left of the kept ones.
    pub fn share_left(&self) -> f64 {
        if self.is_none() {
            return 1.0;
        }
        let one = (self.weighted / self.drawn).powi(2);
        let (held, kept) = (self.held + ADDED * one, self.kept + ADDED * one);
        if kept > held { held / kept } else { 1.0 }
    }

    /// The variance of what the thinned arrays are charged.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.drawn * self.share_left()
    }

    /// The variance of an account's charge, from the sum of the variances of its records' charges.
    #[must_use]
    pub fn charged_variance(&self, sum: u64, found: &Found) -> u64 {
        if self.is_none() {
            return sum;
        }
        let share = self.share_left();
        let decided = if found.is_settled {
            self.decided.min(self.drawn)
        } else {
            0.0
        };
        let thinned = found.bounded(decided * share) + (self.drawn - decided) * share;
        // A cast saturates, and gives 0 for what races have brought below it.
        (sum as f64 - self.held).max(0.0) as u64 + thinned as u64
    }

    /// The variance of an account's live bytes, from the sum of the variances of its live records.
    #[must_use]
    pub fn live_variance(&self, sum: u64, found: &Found) -> u64 {
        if self.is_none() {
            return sum;
        }
        let room = (found.room_bytes).map_or(f64::INFINITY, |bytes| bytes as f64);
        let decided = if found.is_settled {
            // Refunds of the decision that came late are taken off as well.
            self.decided * self.share_left()
        } else {
            self.variance()
        };
        let decided = found.bounded(decided);
        let hidden = if found.is_settled {
            self.passed_bytes.max(found.beyond_bytes as f64).min(room)
        } else {
            0.0
        };
        let others = sum.saturating_sub(found.decided_variance);
        others.saturating_add((decided + hidden * hidden / 3.0 / UNIT) as u64)
    }
}

#[cfg(test)]
mod tests;
