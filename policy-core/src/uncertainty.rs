//! How far the published bytes of an account can be from the truth: the standard errors of charged and
//! live bytes, and how much an account without a live sample may hold.
//!
//! The sums are made in the same scan of the records as the live bytes.

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
        let mut found = Found {
            room_bytes: self.room_bytes,
            is_settled: self.is_settled,
            ..Found::default()
        };
        let (mut thinned, mut charged, mut unseen) = (Thinned::default(), 0u64, 0);
        let mut by_class = 0;
        for purse in purses {
            thinned += ledger.thinned(*purse);
            by_class = by_class.max(ledger.passed_over_bytes(*purse));
            charged = charged.saturating_add(ledger.totals(*purse).charged.variance);
            // The bound of a sum is the largest bound of its parts: see `sampling::widest`.
            unseen = unseen.max(ledger.unseen_at_most_bytes(*purse));
            if let Some((_, of_purse)) = self.of_purses.get(purse) {
                found.decided_variance += of_purse.decided_variance;
                found.beyond_bytes += of_purse.beyond_bytes;
            }
        }
        let room = self.room_bytes.unwrap_or(u64::MAX);
        let widest = thinned.widest_bytes().max(by_class);
        let passed_over = unseen_at_most_bytes(widest).min(room);
        let more = class_thinning::unseen_variance(by_class);
        let error = |variance: u64| standard_error_bytes(variance.saturating_add(more));
        Uncertainty {
            charged_error_bytes: error(thinned.charged_variance(charged, &found)),
            live_error_bytes: error(thinned.live_variance(live.variance, &found)),
            live_at_most_bytes: (live.objects == 0).then(|| unseen.max(passed_over)),
        }
    }
}

#[cfg(test)]
mod tests;
