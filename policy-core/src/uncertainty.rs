//! How far the published bytes of an account can be from the truth: the standard errors of charged and
//! live bytes, and how much an account without a live sample may hold.
//!
//! The sums are made in the same scan of the records as the live bytes.
//!
//! # One error everywhere
//! Reports, the log and verdicts take the standard error of an account from here: what its records state, with what was
//! passed over ([`PassedOver`]), [`widened`] while the accounts sum up to more than the heap holds. A sum
//! of variances that no function of this module has seen is not an error to be printed or compared.

use std::collections::{HashMap, HashSet};

use crate::ledger::{Ledger, LiveRecord, PurseId};
use crate::sampling::class_thinning;
use crate::sampling::thinning_error::{Found, Thinned};
use crate::sampling::{Charge, standard_error_bytes, unseen_at_most_bytes};

/// The live charges, by the purse that pays, and what is needed for their errors.
#[derive(Debug, Default)]
pub struct Survivors {
    of_purses: HashMap<PurseId, (Charge, Found)>,
    all: Charge,
    room_bytes: Option<u64>,
    is_settled: bool,
}

/// The errors of a set of purses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Uncertainty {
    /// Standard error of the charged bytes.
    pub charged_error_bytes: f64,
    /// Standard error of the live bytes.
    pub live_error_bytes: f64,
    /// If no sample is live: the most that may live, in bytes, with 95 % confidence.
    pub live_at_most_bytes: Option<u64>,
}

impl Survivors {
    /// Scans the records and calls `each` for each of them. `used_after_gc_bytes` are the bytes
    /// in use after the latest collection, 0 if unknown. Reporting threads.
    pub fn of(
        ledger: &Ledger,
        used_after_gc_bytes: u64,
        mut each: impl FnMut(&LiveRecord),
    ) -> Survivors {
        let mut this = Survivors {
            is_settled: ledger.epochs().is_large_settled(),
            ..Survivors::default()
        };
        ledger.scan(|record| {
            if record.survived {
                this.add(record);
            }
            each(record);
        });
        let known = this.all.bytes as f64 - 3.0 * standard_error_bytes(this.all.variance);
        this.room_bytes = (used_after_gc_bytes > 0)
            .then(|| (used_after_gc_bytes as f64 - known.max(0.0)).max(0.0) as u64);
        this
    }

    fn add(&mut self, record: &LiveRecord) {
        self.all += record.live;
        let (sum, found) = self.of_purses.entry(record.payer).or_default();
        *sum += record.live;
        if record.is_thinned {
            // Zero while it is undecided.
            found.decided_variance = found.decided_variance.wrapping_add(record.live.variance);
            let beyond = record.charge.bytes.saturating_sub(record.live.bytes);
            found.beyond_bytes = found.beyond_bytes.saturating_add(beyond);
        }
    }

    /// Drops the sums of purses whose numbers were given back meanwhile.
    pub fn forget(&mut self, purses: &HashSet<PurseId>) {
        self.of_purses.retain(|purse, _| !purses.contains(purse));
    }

    /// The live charges of these purses together.
    pub fn live(&self, purses: &[PurseId]) -> Charge {
        let mut live = Charge::default();
        for (sum, _) in purses.iter().filter_map(|purse| self.of_purses.get(purse)) {
            live += *sum;
        }
        live
    }

    /// The errors of these purses together.
    pub fn uncertainty(&self, ledger: &Ledger, purses: &[PurseId]) -> Uncertainty {
        let live = self.live(purses);
        let found = self.found(purses);
        let passed_over = PassedOver::of(ledger, purses);
        let (mut charged, mut unseen) = (0u64, 0);
        for purse in purses {
            charged = charged.saturating_add(ledger.totals(*purse).charged.variance);
            // The bound of a sum is the largest bound of its parts: see `sampling::widest`.
            unseen = unseen.max(ledger.unseen_at_most_bytes(*purse));
        }
        let room = self.room_bytes.unwrap_or(u64::MAX);
        let widest = passed_over.thinned.widest_bytes().max(passed_over.by_class);
        let at_most = unseen_at_most_bytes(widest).min(room);
        let error = |variance| stated_error_bytes(widened(ledger, variance));
        Uncertainty {
            charged_error_bytes: error(passed_over.charged_variance(charged, &found)),
            live_error_bytes: error(passed_over.live_variance(live.variance, &found)),
            live_at_most_bytes: (live.objects == 0).then(|| unseen.max(at_most)),
        }
    }

    /// Returns the figures that the pass has found of the thinned arrays of these purses.
    pub fn found(&self, purses: &[PurseId]) -> Found {
        let mut found = Found {
            room_bytes: self.room_bytes,
            is_settled: self.is_settled,
            ..Found::default()
        };
        for (_, of_purse) in purses.iter().filter_map(|purse| self.of_purses.get(purse)) {
            found.decided_variance += of_purse.decided_variance;
            found.beyond_bytes += of_purse.beyond_bytes;
        }
        found
    }

    /// The variance of the live bytes of these purses together, as it is stated but for widening.
    pub fn live_variance(&self, ledger: &Ledger, purses: &[PurseId]) -> u64 {
        let of_records = self.live(purses).variance;
        PassedOver::of(ledger, purses).live_variance(of_records, &self.found(purses))
    }

    /// The purses that something lives of.
    pub fn purses(&self) -> Vec<PurseId> {
        self.of_purses.keys().copied().collect()
    }
}

/// The samples of a set of purses that were passed over: the part of their error that no record states.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassedOver {
    thinned: Thinned,
    /// The widest interval by which classes were thinned, in bytes; 0 for none.
    by_class: u64,
}

impl PassedOver {
    /// Of these purses together. Any thread; some loads for each.
    pub fn of(ledger: &Ledger, purses: &[PurseId]) -> PassedOver {
        let mut this = PassedOver::default();
        for purse in purses {
            this.thinned += ledger.thinned(*purse);
            this.by_class = this.by_class.max(ledger.passed_over_bytes(*purse));
        }
        this
    }

    /// The variance of what is charged, from the sum of those of the records.
    pub fn charged_variance(&self, sum: u64, found: &Found) -> u64 {
        (self.thinned.charged_variance(sum, found)).saturating_add(self.of_classes())
    }

    /// The variance of live bytes, from the sum of those of the live records.
    pub fn live_variance(&self, sum: u64, found: &Found) -> u64 {
        (self.thinned.live_variance(sum, found)).saturating_add(self.of_classes())
    }

    fn of_classes(&self) -> u64 {
        class_thinning::unseen_variance(self.by_class)
    }
}

/// A variance as it is stated: larger while the accounts sum up to more than the heap holds
/// ([`crate::sum_against_heap`]).
#[must_use]
pub fn widened(ledger: &Ledger, variance: u64) -> u64 {
    match ledger.error_factor() {
        // Not through floating point, which would round.
        1.0 => variance,
        // A cast saturates.
        factor => (variance as f64 * factor * factor) as u64,
    }
}

/// The standard error that belongs to a variance, in whole bytes and rounded up, so that 0 means that the amount is
/// exact.
#[must_use]
pub fn stated_error_bytes(variance: u64) -> f64 {
    standard_error_bytes(variance).ceil()
}

#[cfg(test)]
mod tests;
