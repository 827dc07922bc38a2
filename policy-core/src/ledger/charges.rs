//! Charges that a pass over the records has worked out already: most objects have one of a few sizes, and a charge
//! takes an exponential.

use crate::sampling::{Charge, IntervalId};

use super::slab::Record;

/// A power of two.
const PLACES: usize = 64;

/// What the latest record of each place was charged with.
pub(super) struct Charges([Option<(u64, IntervalId, Charge)>; PLACES]);

impl Default for Charges {
    fn default() -> Charges {
        Charges([None; PLACES])
    }
}

impl Charges {
    /// The charge of a record; it depends on its size and its interval alone.
    pub(super) fn of(&mut self, record: &Record, work_out: impl FnOnce() -> Charge) -> Charge {
        let (size, interval) = (record.size_bytes, record.interval);
        let mixed = (size >> 3) ^ u64::from(interval.to_bits());
        let place = &mut self.0[mixed as usize % PLACES];
        match place {
            Some((of_size, of_interval, charge))
                if (*of_size, *of_interval) == (size, interval) =>
            {
                *charge
            }
            _ => {
                let charge = work_out();
                *place = Some((size, interval, charge));
                charge
            }
        }
    }
}
