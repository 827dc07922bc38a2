//! Times and durations as people write them, in whole seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest duration that is accepted: a longer one is probably a mistake in the unit.
const MAX_SECONDS: u64 = 10 * 365 * 86_400;

/// Reads a duration such as `90s`, `2h30m`, `7d` or `1w`, for clap.
///
/// # Errors
/// One sentence that says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text.trim())
        .map_err(|error| format!("{error}; write a number and a unit, such as 90s, 2h30m or 7d"))?;
    if duration.subsec_nanos() != 0 || duration.is_zero() {
        return Err("a whole number of seconds is needed, at least one".into());
    }
    if duration.as_secs() > MAX_SECONDS {
        return Err("more than ten years".into());
    }
    Ok(duration)
}

/// Reads a time such as `2026-11-20T14:00:00Z`, or seconds since 1970, for clap.
///
/// # Errors
/// One sentence that says what to write.
pub fn parse_time(text: &str) -> Result<i64, String> {
    let wrong = || "write a time such as 2026-11-20T14:00:00Z, or seconds since 1970".to_owned();
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(i64::from(seconds));
    }
    let time = humantime::parse_rfc3339_weak(text).map_err(|_| wrong())?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
    i64::try_from(since.as_secs()).map_err(|_| wrong())
}

/// Seconds since 1970, now.
pub fn now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// `2026-11-20T14:00:00Z`; a time that RFC 3339 cannot write is shown in seconds.
pub fn format_time(seconds: i64) -> String {
    /// The first second of the year 10000, which RFC 3339 cannot write.
    const END: i64 = 253_402_300_800;
    match u64::try_from(seconds) {
        Ok(since) if seconds < END => {
            humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since)).to_string()
        }
        _ => format!("{seconds} s since 1970"),
    }
}

/// `2d 3h`, `10m`, `45s`: the two largest units, rounded down. Days are the largest.
pub fn format_duration(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let Some(first) = UNITS.iter().position(|(length, _)| seconds >= *length) else {
        return "0s".into();
    };
    let mut rest = seconds;
    let parts: Vec<String> = UNITS[first..]
        .iter()
        .take(2)
        .filter_map(|(length, unit)| {
            let count = rest / length;
            rest %= length;
            (count > 0).then(|| format!("{count}{unit}"))
        })
        .collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_prometheus_writes_them() {
        for (text, seconds) in [
            ("7d", 604_800),
            ("2h30m", 9000),
            ("90s", 90),
            ("1w", 604_800),
        ] {
            assert_eq!(parse_duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in [
            "",
            "7",
            "d",
            "-1h",
            "0s",
            "1500ms",
            "99999y",
            "7 fortnights",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_back() {
        assert_eq!(parse_time("1970-01-02T00:00:00Z"), Ok(86_400));
        assert_eq!(parse_time("86400"), Ok(86_400));
        assert_eq!(format_time(86_400), "1970-01-02T00:00:00Z");
        for text in ["", "now", "1969-01-01T00:00:00Z", "99999999999999999999"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (3600, "1h"),
            (183_600, "2d 3h"),
            (86_461, "1d"),
        ] {
            assert_eq!(format_duration(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn no_time_panics(seconds: i64, text in ".{0,40}") {
            let _ = format_time(seconds);
            let _ = format_duration(seconds.unsigned_abs());
            let _ = parse_time(&text);
            let _ = parse_duration(&text);
        }

        #[test]
        fn written_times_are_read_back(seconds in 0_i64..253_402_300_799) {
            prop_assert_eq!(parse_time(&format_time(seconds)), Ok(seconds));
        }
    }
}
