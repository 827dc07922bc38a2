//! Sizes and percentages as people write them.

use std::time::Duration;

use crate::diagnostic::quote;

/// One kibibyte.
const KIB: u64 = 1 << 10;
/// One mebibyte.
const MIB: u64 = 1 << 20;
/// One gibibyte.
const GIB: u64 = 1 << 30;
/// One tebibyte.
const TIB: u64 = 1 << 40;

/// The units by rising size, each with its spelling.
const UNITS: [(&str, u64); 5] = [
    ("B", 1),
    ("KiB", KIB),
    ("MiB", MIB),
    ("GiB", GIB),
    ("TiB", TIB),
];

/// Most significant digits after the decimal point of a size. The bound keeps [`fraction_of`] within
/// 128 bits; nobody needs more.
const MAX_FRACTION_DIGITS: usize = 26;

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Nothing was given.
    #[error("a size is missing")]
    Empty,
    /// It does not start with a number.
    #[error("{} is not a size", quote(.0))]
    NotANumber(String),
    /// The unit could mean powers of 10 or of 2.
    #[error("the unit {} is ambiguous", quote(.unit))]
    Ambiguous {
        /// As it was written.
        unit: String,
        /// The unit of this crate that was probably meant.
        binary: &'static str,
    },
    /// No unit of this crate.
    #[error("{} is not a unit", quote(.0))]
    UnknownUnit(String),
    /// A part of a byte is left over.
    #[error("{} is not a whole number of bytes", quote(.0))]
    Fraction(String),
    /// It does not fit 64 bits.
    #[error("{} is too large", quote(.0))]
    TooLarge(String),
}

impl SizeError {
    /// Returns advice on the text to write instead.
    pub fn hint(&self) -> String {
        match self {
            SizeError::Ambiguous { binary, .. } => {
                format!("write {binary}: sizes are in powers of 1024")
            }
            SizeError::UnknownUnit(unit) => {
                let known = UNITS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(unit));
                match known {
                    Some((name, _)) => format!("write {name}: upper and lower case matter"),
                    None => "the units are B, KiB, MiB, GiB and TiB".into(),
                }
            }
            SizeError::TooLarge(_) => "a size must be below 16777216TiB".into(),
            SizeError::Empty | SizeError::NotANumber(_) | SizeError::Fraction(_) => {
                "write a number and a unit, such as \"256MiB\", \"1.5GiB\" or \"4096B\"".into()
            }
        }
    }
}

/// Reads a size such as `256MiB`, `1.5GiB`, `4096B` or `4096` (bytes) as bytes.
///
/// A space may precede the unit. Decimals are accepted if they give whole bytes. Units of powers of
/// 10, and units that some tools read as such (`MB`, `M`), are rejected as ambiguous.
///
/// # Errors
/// [`SizeError`] says which part was not understood.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SizeError::Empty);
    }
    let number_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let not_a_number = || SizeError::NotANumber(text.into());
    if whole.is_empty() || fraction.is_some_and(|digits| !is_digits(digits)) {
        return Err(not_a_number());
    }
    let unit_bytes = unit_bytes(unit.trim_start())?;
    let too_large = || SizeError::TooLarge(text.into());
    let whole_bytes = whole
        .parse::<u64>()
        .map_err(|_| too_large())?
        .checked_mul(unit_bytes)
        .ok_or_else(too_large)?;
    let fraction_bytes = match fraction {
        None => 0,
        Some(digits) => {
            fraction_of(digits, unit_bytes).ok_or_else(|| SizeError::Fraction(text.into()))?
        }
    };
    whole_bytes
        .checked_add(fraction_bytes)
        .ok_or_else(too_large)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn unit_bytes(unit: &str) -> Result<u64, SizeError> {
    if unit.is_empty() {
        return Ok(1);
    }
    if let Some((_, bytes)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*bytes);
    }
    let binary = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => "KiB",
        "m" | "mb" => "MiB",
        "g" | "gb" => "GiB",
        "t" | "tb" => "TiB",
        _ => return Err(SizeError::UnknownUnit(unit.into())),
    };
    Err(SizeError::Ambiguous {
        unit: unit.into(),
        binary,
    })
}

/// `0.digits` of `unit_bytes`, if that is a whole number of bytes.
fn fraction_of(digits: &str, unit_bytes: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    if digits.len() > MAX_FRACTION_DIGITS {
        return None;
    }
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in digits.bytes() {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    // Neither overflows: 26 digits are below 2^87, and a unit is at most 2^40.
    let product = numerator * u128::from(unit_bytes);
    if !product.is_multiple_of(denominator) {
        return None;
    }
    u64::try_from(product / denominator).ok()
}

/// Writes a size as a policy has it, with the largest unit that states it exactly, such as `256MiB`,
/// `1.5GiB` or `4097B`.
pub fn format_bytes(bytes: u64) -> String {
    for (name, unit_bytes) in UNITS.iter().rev() {
        if bytes < *unit_bytes {
            continue;
        }
        // Thousandths of the unit, if that many say it exactly.
        let scaled = u128::from(bytes) * 1000;
        let unit = u128::from(*unit_bytes);
        if !scaled.is_multiple_of(unit) {
            continue;
        }
        let thousandths = scaled / unit;
        let (whole, part) = (thousandths / 1000, thousandths % 1000);
        if part == 0 {
            return format!("{whole}{name}");
        }
        let part = format!("{part:03}");
        return format!("{whole}.{}{name}", part.trim_end_matches('0'));
    }
    format!("{bytes}B")
}

/// Writes a measured size as a policy would have it, to one decimal: `86.2MiB`, `256MiB`.
pub fn format_rounded_bytes(bytes: u64) -> String {
    // Tenths of a unit; the next larger unit from the size on that would be shown as 1024 of this one.
    let tenths = |unit: u64| (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    let fits = |unit: u64| tenths(unit) < 10_240;
    let (name, unit) =
        (UNITS.iter().find(|(_, unit)| fits(*unit))).unwrap_or(&UNITS[UNITS.len() - 1]);
    match tenths(*unit) {
        tenths if tenths % 10 == 0 => format!("{}{name}", tenths / 10),
        tenths => format!("{}.{}{name}", tenths / 10, tenths % 10),
    }
}

/// Why a text is not a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PercentError {
    /// Not digits, with or without decimals, before a `%`.
    #[error("not a percentage")]
    NotANumber,
    /// Zero, or above 100.
    #[error("a percentage of the heap must be above 0 and at most 100")]
    OutOfRange,
}

/// Reads a percentage such as `25%` or `12.5%`, above 0 and at most 100.
///
/// # Errors
/// [`PercentError`]: a wrong form, or a wrong value.
pub fn parse_percent(text: &str) -> Result<f64, PercentError> {
    match parse_percent_or_zero(text)? {
        percent if percent > 0.0 => Ok(percent),
        _ => Err(PercentError::OutOfRange),
    }
}

/// Reads a percentage from 0 to 100.
pub(crate) fn parse_percent_or_zero(text: &str) -> Result<f64, PercentError> {
    let number = text
        .trim()
        .strip_suffix('%')
        .ok_or(PercentError::NotANumber)?
        .trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // f64's own parser also takes signs, exponents, "inf" and "nan".
    if !is_digits(whole) || !is_digits(fraction) {
        return Err(PercentError::NotANumber);
    }
    let percent: f64 = number.parse().map_err(|_| PercentError::NotANumber)?;
    if percent <= 100.0 {
        Ok(percent)
    } else {
        Err(PercentError::OutOfRange)
    }
}

/// Units of time, longest first, each with its seconds.
const TIMES: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a whole number and a unit.
    #[error("not a duration")]
    NotADuration,
    /// It does not fit.
    #[error("too long")]
    TooLong,
}

/// Reads a duration such as `90s`, `10m`, `1h` or `7d`.
///
/// # Errors
/// [`DurationError`]: a wrong form, or a wrong value.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let unit = text
        .chars()
        .next_back()
        .and_then(|last| TIMES.iter().find(|(unit, _)| *unit == last));
    let Some((unit, seconds)) = unit else {
        return Err(DurationError::NotADuration);
    };
    let number = text.trim_end_matches(*unit).trim_end();
    if !is_digits(number) || text.len() - text.trim_end_matches(*unit).len() != 1 {
        return Err(DurationError::NotADuration);
    }
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    let all = number.checked_mul(*seconds).ok_or(DurationError::TooLong)?;
    Ok(Duration::from_secs(all))
}

/// Writes a duration of whole seconds as a policy has it, with the largest unit that states it exactly:
/// `1h`, `90s`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let exact = |(_, unit): &&(char, u64)| seconds >= *unit && seconds.is_multiple_of(*unit);
    match TIMES.iter().find(exact) {
        Some((name, unit)) => format!("{}{name}", seconds / unit),
        None => "0s".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("64KiB"), Ok(64 << 10));
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("2 TiB"), Ok(2 << 40));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size(" 4096B "), Ok(4096));
        assert_eq!(parse_size("0"), Ok(0));
    }

    #[test]
    fn decimals_must_come_to_whole_bytes() {
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("0.5KiB"), Ok(512));
        assert_eq!(parse_size("1.0B"), Ok(1));
        assert_eq!(parse_size("1.50000000000000000000000KiB"), Ok(1536));
        assert_eq!(parse_size("0.0009765625KiB"), Ok(1));
        assert!(matches!(parse_size("0.1KiB"), Err(SizeError::Fraction(_))));
        assert!(matches!(parse_size("1.5B"), Err(SizeError::Fraction(_))));
        let long = format!("0.{}1KiB", "0".repeat(100));
        assert!(matches!(parse_size(&long), Err(SizeError::Fraction(_))));
    }

    #[test]
    fn ambiguous_units_name_the_binary_one() {
        for (text, unit) in [
            ("256MB", "MiB"),
            ("256mb", "MiB"),
            ("256M", "MiB"),
            ("1g", "GiB"),
            ("9kB", "KiB"),
            ("1T", "TiB"),
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(matches!(error, SizeError::Ambiguous { .. }), "{text}");
            assert!(error.hint().contains(unit), "{text}: {}", error.hint());
        }
    }

    #[test]
    fn other_units_and_forms_are_rejected() {
        let error = parse_size("1mib").unwrap_err();
        assert_eq!(error.to_string(), "`mib` is not a unit");
        assert_eq!(error.hint(), "write MiB: upper and lower case matter");
        assert!(matches!(parse_size("1PiB"), Err(SizeError::UnknownUnit(_))));
        assert!(matches!(parse_size("1e3"), Err(SizeError::UnknownUnit(_))));
        assert_eq!(parse_size(""), Err(SizeError::Empty));
        for text in ["MiB", "-1MiB", "+1", ".5MiB", "1.MiB", "1.2.3", "١KiB"] {
            assert!(
                matches!(parse_size(text), Err(SizeError::NotANumber(_))),
                "{text}: {:?}",
                parse_size(text)
            );
        }
    }

    #[test]
    fn overflow_is_an_error() {
        assert_eq!(parse_size("18446744073709551615"), Ok(u64::MAX));
        for text in [
            "18446744073709551616",
            "16777216TiB",
            "99999999999999999999GiB",
        ] {
            assert!(
                matches!(parse_size(text), Err(SizeError::TooLarge(_))),
                "{text}"
            );
        }
        assert_eq!(parse_size("16777215.5TiB"), Ok(u64::MAX - (1 << 39) + 1));
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("25%"), Ok(25.0));
        assert_eq!(parse_percent(" 12.5 %"), Ok(12.5));
        assert_eq!(parse_percent("100%"), Ok(100.0));
        assert_eq!(parse_percent_or_zero("0%"), Ok(0.0));
        assert_eq!(
            parse_percent_or_zero("100.1%"),
            Err(PercentError::OutOfRange)
        );
        assert_eq!(parse_percent_or_zero("-0%"), Err(PercentError::NotANumber));
        for text in ["0%", "0.0%", "100.1%", "250%"] {
            assert_eq!(parse_percent(text), Err(PercentError::OutOfRange), "{text}");
        }
        for text in [
            "%", "25", "-1%", "inf%", "1e1%", "NaN%", "5%%", ".5%", "5.%",
        ] {
            assert_eq!(parse_percent(text), Err(PercentError::NotANumber), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h", 3600), (" 2 d ", 172_800)] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in [
            "", "h", "1", "1.5h", "-1h", "1hh", "1h30m", "1 w", "1H", "١h",
        ] {
            assert_eq!(
                parse_duration(text),
                Err(DurationError::NotADuration),
                "{text}"
            );
        }
        for text in ["99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse_duration(text), Err(DurationError::TooLong), "{text}");
        }
        for text in ["0s", "59s", "90s", "1m", "1h", "25h", "2d"] {
            let read = parse_duration(text).unwrap();
            assert_eq!(format_duration(read), text);
        }
    }

    #[test]
    fn formatting_is_exact() {
        assert_eq!(format_bytes(0), "0B");
        assert_eq!(format_bytes(1023), "1023B");
        assert_eq!(format_bytes(4097), "4097B");
        assert_eq!(format_bytes(1536), "1.5KiB");
        assert_eq!(format_bytes(256 << 20), "256MiB");
        assert_eq!(format_bytes(3 << 29), "1.5GiB");
        assert_eq!(format_bytes(u64::MAX), "18446744073709551615B");
    }

    #[test]
    fn measured_sizes_are_short() {
        for (bytes, shown) in [
            (0, "0B"),
            (1023, "1023B"),
            (1 << 10, "1KiB"),
            (90_433_153, "86.2MiB"),
            (192 << 20, "192MiB"),
            ((1 << 20) - 1, "1MiB"),
            ((1 << 30) - (50 << 10), "1GiB"),
            (u64::MAX, "16777216TiB"),
        ] {
            assert_eq!(format_rounded_bytes(bytes), shown);
        }
    }

    proptest! {
        #[test]
        fn what_is_formatted_reads_back(bytes in any::<u64>(), shift in 0u32..60) {
            let bytes = (bytes >> shift) << (shift / 2);
            prop_assert_eq!(parse_size(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = parse_size(&text);
            let _ = parse_percent(&text);
            let _ = parse_duration(&text);
        }
    }
}
