//! Numbers as they are written in tables and pictures.

use crate::bootstrap::Estimate;

/// A ratio as percent more than one.
pub(crate) fn percent_more(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// Without more digits than it takes.
pub(crate) fn plain(value: f64) -> String {
    // Steps of an axis are sums of what has no exact binary form.
    let rounded = (value * 1e6).round() / 1e6;
    // Not -0.
    format!("{}", rounded + 0.0)
}

/// A whole number with its thousands apart.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// Fewer pairs show too little of how runs vary for an interval.
const FEWEST_PAIRS: usize = 3;

/// An estimate with its interval, as written by `text`.
pub(crate) fn interval(estimate: &Estimate, text: impl Fn(f64) -> String) -> String {
    if estimate.pairs < FEWEST_PAIRS {
        return text(estimate.value);
    }
    format!(
        "{} ({} to {})",
        text(estimate.value),
        text(estimate.low),
        text(estimate.high)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        assert_eq!(plain(0.1 + 0.2), "0.3");
        assert_eq!(plain(-0.0), "0");
        assert_eq!(plain(20.0), "20");
    }

    #[test]
    fn few_pairs_have_no_interval() {
        let estimate = |pairs| Estimate {
            value: 2.0,
            low: 1.0,
            high: 3.0,
            pairs,
        };
        assert_eq!(interval(&estimate(2), |x| x.to_string()), "2");
        assert_eq!(interval(&estimate(3), |x| x.to_string()), "2 (1 to 3)");
    }

    #[test]
    fn thousands_are_apart() {
        let texts = [1.0, 64.0, 1_000.0, 999_999.6, -12_345.0].map(count);
        assert_eq!(texts, ["1", "64", "1,000", "1,000,000", "-12,345"]);
    }
}
