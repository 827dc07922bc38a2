//! Amounts as people read them: three digits or so, in binary units.

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Largest count that is written out.
const MAX_EXACT_COUNT: u64 = 999_999;

/// Bytes: `0 B`, `47.6 MiB`, `256 MiB`.
pub fn bytes(amount: u64) -> String {
    let unit = unit(amount as f64);
    format!("{} {}", number(amount as f64, unit), UNITS[unit])
}

/// An estimate with its standard error, both in the unit of the larger: `49.2 ± 4.2 MiB`.
pub fn estimate(amount: u64, standard_error: u64) -> String {
    let unit = unit(amount.max(standard_error) as f64);
    let decimals = usize::from(unit > 0);
    let scaled = |bytes: u64| bytes as f64 / scale(unit);
    format!(
        "{:.decimals$} ± {:.decimals$} {}",
        scaled(amount),
        scaled(standard_error),
        UNITS[unit]
    )
}

/// An upper bound: `< 0.2 MiB`, rounded up in its last digit. From 100 KiB on it is in MiB, like most
/// amounts in a table.
pub fn less_than(bytes: u64) -> String {
    let unit = unit((bytes as f64 * 10.0).min(u64::MAX as f64)).max(1);
    let tenths = (bytes as f64 / scale(unit) * 10.0).ceil();
    format!("< {:.1} {}", tenths / 10.0, UNITS[unit])
}

/// Bytes in some time, which cannot be negative.
pub fn rate(amount: f64) -> String {
    bytes(amount.max(0.0) as u64)
}

/// A change in bytes, with its sign: `+1.2 MiB`, `-340 KiB`, `0 B`.
pub fn change(amount: f64) -> String {
    let size = bytes(amount.abs() as u64);
    if amount.abs() < 1.0 {
        size
    } else if amount < 0.0 {
        format!("-{size}")
    } else {
        format!("+{size}")
    }
}

/// A time that threads waited in all: `0 s`, `0.3 s`, `12 s`, `2m 10s`.
pub fn wait(milliseconds: u64) -> String {
    match milliseconds {
        0 => "0 s".into(),
        1..9_950 => format!("{:.1} s", (milliseconds as f64 / 1e3).max(0.1)),
        9_950..120_000 => format!("{} s", milliseconds / 1000),
        _ => crate::clock::format_duration(milliseconds / 1000),
    }
}

/// A number of things: exact up to six digits, then `12.3 M`.
pub fn count(amount: u64) -> String {
    if amount <= MAX_EXACT_COUNT {
        return amount.to_string();
    }
    let mut scaled = amount as f64 / 1e6;
    for unit in ["M", "G", "T"] {
        if scaled < 999.95 {
            return format!("{scaled:.1} {unit}");
        }
        scaled /= 1e3;
    }
    format!("{scaled:.0} P")
}

/// A share: `8.3%`, `83%`, `>999%`.
pub fn percent(share: f64) -> String {
    if share < 9.95 {
        format!("{share:.1}%")
    } else if share < 999.5 {
        format!("{share:.0}%")
    } else {
        ">999%".into()
    }
}

/// The unit in which `amount` has at most three digits before the point.
fn unit(amount: f64) -> usize {
    (0..UNITS.len() - 1)
        .find(|&unit| amount / scale(unit) < 999.5)
        .unwrap_or(UNITS.len() - 1)
}

fn scale(unit: usize) -> f64 {
    1024_f64.powi(i32::try_from(unit).unwrap_or(0))
}

fn number(amount: f64, unit: usize) -> String {
    let scaled = amount / scale(unit);
    let decimals = usize::from(unit > 0 && scaled < 99.95 && scaled.fract() > 0.0);
    format!("{scaled:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn bytes_have_three_digits() {
        for (amount, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KiB"),
            (1024, "1 KiB"),
            (47 * MIB + 600_000, "47.6 MiB"),
            (256 * MIB, "256 MiB"),
            (1000 * MIB, "1.0 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(amount), expected, "{amount}");
        }
    }

    #[test]
    fn an_estimate_and_its_error_share_a_unit() {
        assert_eq!(estimate(0, 0), "0 ± 0 B");
        assert_eq!(estimate(50 * MIB, 4 * MIB), "50.0 ± 4.0 MiB");
        assert_eq!(estimate(1024, 3 * MIB), "0.0 ± 3.0 MiB");
        assert_eq!(estimate(u64::MAX, u64::MAX), "16.0 ± 16.0 EiB");
    }

    #[test]
    fn an_upper_bound_is_rounded_up() {
        for (bytes, expected) in [
            (1, "< 0.1 KiB"),
            (3 << 10, "< 3.0 KiB"),
            (99 << 10, "< 99.0 KiB"),
            (192 << 10, "< 0.2 MiB"),
            (200_000, "< 0.2 MiB"),
            (MIB, "< 1.0 MiB"),
            (MIB + 1, "< 1.1 MiB"),
            (u64::MAX, "< 16.0 EiB"),
        ] {
            assert_eq!(less_than(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn rates_and_changes() {
        assert_eq!(rate(1536.0), "1.5 KiB");
        assert_eq!(rate(-5.0), "0 B");
        assert_eq!(rate(f64::NAN), "0 B");
        assert_eq!(change(-1536.0), "-1.5 KiB");
        assert_eq!(change(1536.0), "+1.5 KiB");
        assert_eq!(change(-0.4), "0 B");
    }

    #[test]
    fn waits_are_short_texts() {
        for (milliseconds, expected) in [
            (0, "0 s"),
            (20, "0.1 s"),
            (1_500, "1.5 s"),
            (12_300, "12 s"),
            (130_000, "2m 10s"),
        ] {
            assert_eq!(wait(milliseconds), expected, "{milliseconds}");
        }
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(999_999), "999999");
        assert_eq!(count(12_345_678), "12.3 M");
        assert_eq!(count(u64::MAX), "18447 P");
        assert_eq!(percent(0.0), "0.0%");
        assert_eq!(percent(8.31), "8.3%");
        assert_eq!(percent(99.6), "100%");
        assert_eq!(percent(f64::INFINITY), ">999%");
    }
}
