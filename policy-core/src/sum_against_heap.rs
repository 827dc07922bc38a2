//! The sum of all accounts against the heap: a check of the figures that needs no other figures.
//!
//! # The claim
//! Let a covering collection have decided on everything born up to the epoch *e* ([`crate::ledger::epoch`]). What
//! is still charged from there was in the heap when that collection ended, and stays there until a later one frees
//! it. So the charges of all accounts from those epochs, those of nobody's account included, are in the truth at
//! most what the heap has in use, at every moment after *e*. The heap also holds what nobody is charged for: what
//! was allocated before the agent came or after *e*, ends of buffers, garbage that a concurrent collector has left.
//! All of that makes the heap larger, never the sum. Therefore a sum beyond the heap by more than its own error
//! shows that the figures are wrong, whatever the reason.
//!
//! # How it is read
//! 1. The heap's use is read first, the refunds that are on their way are waited for, then the records are summed.
//!    An object that a collection before the reading of the heap has freed is refunded by then; one that is freed
//!    later was in the heap when that was read. So both figures can only err to the safe side.
//! 2. Each record counts as in *live* bytes, with the error that reports state for all accounts together.
//!    Arrays that were thinned stand for others that were passed over: that is in the error.
//!
//! # Rules
//! 1. A reading *exceeds* if the sum is more than [`MARGIN`] of its standard errors above the heap.
//! 2. A sum whose error is more than a tenth of it says nothing: of so few samples an estimate is not
//!    normally distributed. It never exceeds.
//! 3. The finding begins with the second reading in a row that exceeds, each of another covering collection: the
//!    wait for refunds is bounded, and a busy machine may suspend the thread that reports them for longer. It
//!    ends with the second in a row that does not.
//! 4. On a reading that exceeds no verdict rests, be it the first of its kind. While the finding stands, none does, and
//!    those that were made before are lifted.
//! 5. While it stands, all stated errors are multiplied by a factor: by how many of its standard errors the sum lay
//!    beyond the heap in the latest reading that exceeded. Where the surplus is spread as the bytes are, the error
//!    of an account with the share *f* of all bytes is about √*f* of that of the sum, so it becomes √*f* times the
//!    excess, which is no less than the account's part of it, *f* times the excess. Where the surplus lies in one
//!    account alone, it is within three errors of it if the account holds a ninth of all bytes, or more. The heap
//!    also holds what no account has, so the true surplus is larger than the excess, and the factor is a
//!    lower bound.
//!
//! # False alarms
//! Where the figures are right and the accounts hold all that the heap has, to the byte, one reading in 740 exceeds.
//! In a real heap there is more than the accounts hold, and it is rarer. Two readings of the same survivors rest on the same
//! samples, so the second does not make it rarer by chance, only by late refunds.

use std::sync::{Mutex, PoisonError};

use policy_config::Limit;

/// How many standard errors the sum must lie above the heap (rule 1), as an account above its limit.
pub const MARGIN: f64 = Limit::MARGIN_STANDARD_ERRORS;
/// The largest error of a sum that says something, as a share of the sum (rule 2).
const LARGEST_ERROR: f64 = 0.1;
/// So many readings in a row begin and end the finding (rule 3).
const IN_A_ROW: u32 = 2;
/// The factor is never larger: beyond it an error says no more than that nothing is known.
const LARGEST_FACTOR: f64 = 1_000.0;

/// The sum of all accounts, and the heap, as of one covering collection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// The charges of all accounts that are left after that collection, in bytes.
    pub accounts_bytes: u64,
    /// The standard error of that sum, in bytes; not widened.
    pub standard_error_bytes: f64,
    /// The part of the heap that was in use, in bytes.
    pub heap_bytes: u64,
}

impl Reading {
    /// The sum as a multiple of the heap; 0 for an unknown heap.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match self.heap_bytes {
            0 => 0.0,
            heap => self.accounts_bytes as f64 / heap as f64,
        }
    }

    /// Rules 1 and 2.
    #[must_use]
    pub fn exceeds(&self) -> bool {
        let (sum, error) = (self.accounts_bytes as f64, self.standard_error_bytes);
        let is_telling = self.heap_bytes > 0 && error <= sum * LARGEST_ERROR;
        is_telling && sum - MARGIN * error > self.heap_bytes as f64
    }

    /// By how many of its standard errors the sum lies above the heap; at least 1.
    fn factor(&self) -> f64 {
        let excess = self.accounts_bytes as f64 - self.heap_bytes as f64;
        (excess / self.standard_error_bytes.max(1.0)).clamp(1.0, LARGEST_FACTOR)
    }
}

/// The judgement on the readings so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Judged {
    latest: Option<Reading>,
    /// How many readings in a row said the same as the latest.
    in_a_row: u32,
    stands: bool,
    factor: Option<f64>,
}

impl Judged {
    /// With one reading more. Pure; see the rules of the module.
    #[must_use]
    pub fn next(self, reading: Reading) -> Judged {
        let exceeds = reading.exceeds();
        let is_same = (self.latest).is_some_and(|before| before.exceeds() == exceeds);
        let in_a_row = if is_same {
            self.in_a_row.saturating_add(1)
        } else {
            1
        };
        let stands = if in_a_row >= IN_A_ROW {
            exceeds
        } else {
            self.stands
        };
        let factor = match exceeds {
            true => Some(reading.factor()),
            false => self.factor,
        };
        Judged {
            latest: Some(reading),
            in_a_row,
            stands,
            factor: factor.filter(|_| stands || exceeds),
        }
    }

    /// The latest reading; `None` before the first.
    #[must_use]
    pub fn latest(&self) -> Option<Reading> {
        self.latest
    }

    /// Whether the finding stands: the accounts sum up to more than the heap holds.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.stands
    }

    /// Whether a verdict may not rest on the accounts (rule 4).
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.stands || self.latest.is_some_and(|reading| reading.exceeds())
    }

    /// By what all stated errors are multiplied (rule 5); 1 while the finding does not stand.
    #[must_use]
    pub fn error_factor(&self) -> f64 {
        self.factor.filter(|_| self.stands).unwrap_or(1.0)
    }
}

/// The latest judgement of the enforcer, for reports. Takes a lock for a copy; agent threads.
#[derive(Debug, Default)]
pub struct SumAgainstHeap(Mutex<Judged>);

impl SumAgainstHeap {
    /// Returns the latest judgement.
    pub fn read(&self) -> Judged {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes it. The enforcer.
    pub fn publish(&self, judged: Judged) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = judged;
    }
}

#[cfg(test)]
mod tests;
