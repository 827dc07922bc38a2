//! Forecasts, times and verdicts in words. Pure.

use heapwarden_client::live::Exhaustion;
use heapwarden_terminal::printable;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Widest word of an agent that this version does not know.
const MAX_WORD_COLUMNS: usize = 40;

/// When something is full: `limit full in 3 h to 5 h`, `heap not full before 9 h`. The interval is rounded
/// outwards, so that what is said holds whenever the forecast does.
pub(crate) fn forecast(exhausts: &Exhaustion<'_>) -> String {
    let what = printable::fitted(&exhausts.what, MAX_WORD_COLUMNS);
    let earliest = exhausts.earliest_seconds;
    match exhausts.latest_seconds {
        None => format!("{what} not full before {}", at_least(earliest)),
        Some(0) => format!("{what} full now"),
        Some(latest) if earliest == 0 => format!("{what} full within {}", at_most(latest)),
        Some(latest) => format!(
            "{what} full in {} to {}",
            at_least(earliest),
            at_most(latest.max(earliest))
        ),
    }
}

/// Why a class that grows is not called a leak, in words.
pub(crate) fn why(word: &str) -> String {
    let meaning = match word {
        "turnover" => "turnover: old instances die too",
        "lumpy" => "lumpy: it came in lumps, not steadily",
        "filled-at-start" => "filled at the start, and stands since",
        "undecided" => "undecided: there is too little evidence yet",
        "acknowledged" => "acknowledged in the policy",
        other => return printable::fitted(other, MAX_WORD_COLUMNS).into_owned(),
    };
    meaning.to_owned()
}

/// A time in one unit, rounded down: `40 s`, `10 min`, `3 h`, `12 days`.
pub(crate) fn at_least(seconds: u64) -> String {
    in_one_unit(seconds, |seconds, unit| seconds / unit)
}

/// The same, rounded up.
fn at_most(seconds: u64) -> String {
    in_one_unit(seconds, u64::div_ceil)
}

fn in_one_unit(seconds: u64, rounded: fn(u64, u64) -> u64) -> String {
    // A unit is used from two of it on, so that rounding loses at most a third.
    let (unit, name) = match seconds {
        0..120 => (1, "s"),
        120..7_200 => (MINUTE, "min"),
        7_200..172_800 => (HOUR, "h"),
        _ => (DAY, "days"),
    };
    format!("{} {name}", rounded(seconds, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exhausts(earliest_seconds: u64, latest_seconds: Option<u64>) -> Exhaustion<'static> {
        Exhaustion {
            what: "limit".into(),
            earliest_seconds,
            latest_seconds,
        }
    }

    #[test]
    fn a_forecast_is_an_interval_or_a_bound() {
        for (earliest, latest, expected) in [
            (3 * HOUR, Some(5 * HOUR), "limit full in 3 h to 5 h"),
            (11_000, Some(14_500), "limit full in 3 h to 5 h"),
            (90 * 60, Some(8000), "limit full in 90 min to 3 h"),
            (
                3 * DAY,
                Some(9 * DAY + 1),
                "limit full in 3 days to 10 days",
            ),
            (9 * HOUR, None, "limit not full before 9 h"),
            (0, Some(600), "limit full within 10 min"),
            (0, Some(0), "limit full now"),
            // An agent that contradicts itself is not believed to the last second.
            (600, Some(60), "limit full in 10 min to 10 min"),
        ] {
            assert_eq!(forecast(&exhausts(earliest, latest)), expected);
        }
    }

    #[test]
    fn verdicts_are_explained_and_unknown_ones_are_printable() {
        assert!(why("turnover").contains("old instances die"));
        assert_eq!(why("newer\u{1b}"), r"newer\u{1b}");
    }

    /// The seconds that a time in one unit stands for.
    fn seconds(text: &str) -> u64 {
        let (count, unit) = text.split_once(' ').unwrap();
        let unit = match unit {
            "s" => 1,
            "min" => MINUTE,
            "h" => HOUR,
            "days" => DAY,
            other => panic!("{other}"),
        };
        count.parse::<u64>().unwrap() * unit
    }

    proptest! {
        #[test]
        fn what_is_said_includes_the_forecast(
            earliest in 0_u64..10_000_000, more in prop::option::of(0_u64..10_000_000)
        ) {
            let least = seconds(&at_least(earliest));
            prop_assert!(least <= earliest && least * 3 >= earliest * 2);
            if let Some(more) = more {
                let most = seconds(&at_most(earliest + more));
                prop_assert!(most >= earliest + more && most * 2 <= (earliest + more) * 3);
            }
            let _ = forecast(&exhausts(earliest, more));
        }

        #[test]
        fn no_number_panics(earliest: u64, latest: Option<u64>) {
            let _ = forecast(&exhausts(earliest, latest));
        }
    }
}
