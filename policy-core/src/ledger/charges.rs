//! Charges that a pass over the records has worked out already: most objects have one of a few sizes, and a charge
//! takes an exponential.

use crate::sampling::{Charge, IntervalId};

/// A power of two.
const PLACES: usize = 64;

/// The size, the interval and the charge of the latest record of each place.
pub(super) struct Charges([Option<(u64, IntervalId, Charge)>; PLACES]);

impl Default for Charges {
    fn default() -> Charges {
        Charges([None; PLACES])
    }
}

impl Charges {
    /// The charge of an object of this size, sampled under this interval: it depends on nothing else.
    pub(super) fn of(
        &mut self,
        size: u64,
        interval: IntervalId,
        work_out: impl FnOnce() -> Charge,
    ) -> Charge {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sampling::weight::charge;

    /// Sizes and intervals that share a place do not share a charge.
    #[test]
    fn a_charge_is_that_of_its_size_and_its_interval() {
        let mut charges = Charges::default();
        for round in 0..3 {
            for id in [1_u16, 1 + PLACES as u16, 2] {
                for size in [16_u64, 16 + 8 * PLACES as u64, 4096] {
                    let truth = charge(size, u64::from(id) << 16);
                    let found = charges.of(size, IntervalId::from_bits(id), || truth);
                    assert_eq!(found, truth, "{size} under {id} in round {round}");
                }
            }
        }
        let again = charges.of(4096, IntervalId::from_bits(2), || panic!("it is known"));
        assert_eq!(again, charge(4096, 2 << 16));
    }
}
