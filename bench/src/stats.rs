//! Medians of repeated runs.

/// The middle value; the mean of the two middle ones of an even number. 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The smallest and the largest value. Zeros of none.
pub(crate) fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold(None, |range: Option<(f64, f64)>, &value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn the_range_spans_all() {
        assert_eq!(range(&[3.0, -1.0, 7.0]), (-1.0, 7.0));
        assert_eq!(range(&[]), (0.0, 0.0));
    }
}
