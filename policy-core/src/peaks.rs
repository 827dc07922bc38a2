//! The highest live bytes of purses that a test of the program watches.
//!
//! After each confirmed collection the enforcer scans the records, if a purse is watched, and notes how
//! much each watched purse still holds. At most `MAX_WATCHED` purses are watched.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ledger::{Ledger, PurseId};

/// The most purses that are watched at once.
const MAX_WATCHED: usize = 64;

#[derive(Debug, Default)]
struct Place {
    /// The purse; 0 is none.
    purse: AtomicU32,
    peak_bytes: AtomicU64,
    /// Of `peak_bytes`, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    variance: AtomicU64,
}

/// The watched purses.
#[derive(Debug)]
pub struct Peaks {
    places: [Place; MAX_WATCHED],
}

impl Peaks {
    /// No purse is watched.
    pub fn new() -> Peaks {
        Peaks {
            places: std::array::from_fn(|_| Place::default()),
        }
    }

    /// Starts to watch a purse, with a peak of 0. Does nothing if there is no room. Any thread.
    pub fn watch(&self, purse: PurseId) {
        let number = u32::from(purse.get());
        if let Some(place) = self.place(purse) {
            place.peak_bytes.store(0, Ordering::Relaxed);
            return;
        }
        for place in &self.places {
            if place.purse.load(Ordering::Acquire) == 0 {
                place.peak_bytes.store(0, Ordering::Relaxed);
                let taken =
                    (place.purse).compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed);
                if taken.is_ok() {
                    return;
                }
            }
        }
    }

    /// Stops watching a purse. Any thread.
    pub fn forget(&self, purse: PurseId) {
        if let Some(place) = self.place(purse) {
            place.purse.store(0, Ordering::Release);
        }
    }

    /// Whether a purse is watched. Any thread.
    pub fn watches(&self, purse: PurseId) -> bool {
        self.place(purse).is_some()
    }

    /// The highest live bytes since [`Peaks::watch`]; 0 for a purse that is not watched.
    pub fn peak_bytes(&self, purse: PurseId) -> u64 {
        (self.place(purse)).map_or(0, |place| place.peak_bytes.load(Ordering::Relaxed))
    }

    /// The variance of [`Peaks::peak_bytes`], in units of
    /// [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub fn peak_variance(&self, purse: PurseId) -> u64 {
        (self.place(purse)).map_or(0, |place| place.variance.load(Ordering::Relaxed))
    }

    /// Notes how much the watched purses hold after a confirmed collection. Scans the records once, or
    /// not at all if no purse is watched. The enforcer alone.
    pub fn note(&self, ledger: &Ledger) {
        let watched: Vec<u32> = (self.places.iter())
            .map(|place| place.purse.load(Ordering::Acquire))
            .collect();
        if watched.iter().all(|&purse| purse == 0) {
            return;
        }
        let mut sums = [(0u64, 0u64); MAX_WATCHED];
        ledger.scan(|record| {
            let payer = u32::from(record.payer.get());
            let place = watched
                .iter()
                .position(|&purse| purse == payer && purse != 0);
            if let Some(place) = place.filter(|_| record.survived) {
                let (bytes, variance) = &mut sums[place];
                *bytes = bytes.saturating_add(record.live.bytes);
                *variance = variance.saturating_add(record.live.variance);
            }
        });
        for (place, (bytes, variance)) in self.places.iter().zip(sums) {
            if place.peak_bytes.fetch_max(bytes, Ordering::Relaxed) < bytes {
                place.variance.store(variance, Ordering::Relaxed);
            }
        }
    }

    fn place(&self, purse: PurseId) -> Option<&Place> {
        let number = u32::from(purse.get());
        (self.places.iter())
            .filter(|_| number != 0)
            .find(|place| place.purse.load(Ordering::Acquire) == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purses_are_watched_one_place_each_until_they_are_forgotten() {
        let peaks = Peaks::new();
        let purse = PurseId::new(3);
        peaks.watch(purse);
        peaks.watch(purse);
        peaks.places[0].peak_bytes.fetch_max(7, Ordering::Relaxed);
        assert_eq!(peaks.peak_bytes(purse), 7);
        assert!(peaks.watches(purse));
        peaks.watch(purse);
        assert_eq!(peaks.peak_bytes(purse), 0, "begun anew");
        peaks.forget(purse);
        assert!(!peaks.watches(purse));
        for number in 1..=MAX_WATCHED as u16 + 1 {
            peaks.watch(PurseId::new(number));
        }
        assert!(peaks.place(PurseId::new(MAX_WATCHED as u16 + 1)).is_none());
        assert!(peaks.place(PurseId::UNACCOUNTED).is_none());
    }
}
