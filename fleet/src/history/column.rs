//! An optional number for each step of a period.

/// Readings by step. A missing reading is neither 0 nor the previous one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Column {
    /// NaN where there is no reading; empty while there is none at all, because most
    /// accounts have no limit and were never refused.
    readings: Vec<f64>,
}

impl Column {
    /// The reading of a step.
    pub fn get(&self, step: usize) -> Option<f64> {
        let reading = self.readings.get(step).copied()?;
        (!reading.is_nan()).then_some(reading)
    }

    /// Records a reading of one of `steps` steps. Negative and non-finite values are ignored: they
    /// are neither counts nor sizes.
    ///
    /// Returns false if the step already has a reading, which stays.
    pub fn put(&mut self, steps: usize, step: usize, reading: f64) -> bool {
        if step >= steps || !reading.is_finite() || reading < 0.0 {
            return true;
        }
        if self.readings.is_empty() {
            self.readings = vec![f64::NAN; steps];
        }
        match self.readings.get_mut(step) {
            Some(place) if place.is_nan() => {
                *place = reading;
                true
            }
            Some(_) => false,
            None => true,
        }
    }

    /// All readings with their steps, in order.
    pub fn readings(&self) -> impl DoubleEndedIterator<Item = (usize, f64)> {
        let readings = self.readings.iter().copied().enumerate();
        readings.filter(|(_, reading)| !reading.is_nan())
    }

    /// How many readings there are.
    pub fn count(&self) -> usize {
        self.readings().count()
    }

    /// The latest reading.
    pub fn last(&self) -> Option<f64> {
        self.readings().next_back().map(|(_, reading)| reading)
    }

    /// The reading of a step, or the latest one before it, or else the first one after it:
    /// for values that seldom change, such as the maximum heap.
    pub fn in_force(&self, step: usize) -> Option<f64> {
        let before = self.readings.iter().take(step.saturating_add(1)).rev();
        let after = self.readings.iter().skip(step);
        before
            .chain(after)
            .copied()
            .find(|reading| !reading.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_is_neither_zero_nor_the_reading_before() {
        let mut column = Column::default();
        assert_eq!(
            (column.get(0), column.last(), column.count()),
            (None, None, 0)
        );
        for (step, reading) in [
            (1, 5.0),
            (3, f64::NAN),
            (4, f64::INFINITY),
            (5, -1.0),
            (6, 2.0),
            (99, 1.0),
        ] {
            assert!(column.put(8, step, reading));
        }
        assert_eq!(column.readings().collect::<Vec<_>>(), [(1, 5.0), (6, 2.0)]);
        assert_eq!((column.get(2), column.get(99)), (None, None));
        assert_eq!((column.last(), column.count()), (Some(2.0), 2));
        assert!(!column.put(8, 1, 7.0), "the first reading stays");
        assert_eq!(column.get(1), Some(5.0));
    }

    #[test]
    fn what_seldom_changes_is_in_force_until_it_does() {
        let mut column = Column::default();
        assert_eq!(column.in_force(3), None);
        column.put(9, 2, 1.0);
        column.put(9, 5, 2.0);
        let in_force: Vec<_> = (0..9).map(|step| column.in_force(step).unwrap()).collect();
        assert_eq!(in_force, [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    }
}
