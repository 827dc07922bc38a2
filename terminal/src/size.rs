//! Measured sizes, as people read them. Sizes of a policy are written by
//! [`policy_config::format_bytes`], which keeps them exact.

/// `1.2 GiB`, with a sign if it is below 0.
pub fn shown(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes.abs();
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let sign = if bytes < 0.0 { "-" } else { "" };
    let digits = usize::from(unit > 0 && scaled < 99.95);
    format!("{sign}{scaled:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(shown(0.0), "0 B");
        assert_eq!(shown(1023.99), "1.0 KiB");
        assert_eq!(shown(-1.5 * 1_048_576.0), "-1.5 MiB");
        assert_eq!(shown(256.0 * 1_048_576.0), "256 MiB");
        let most = format!("{:.0} TiB", 1e30 / 1_099_511_627_776.0);
        assert_eq!(shown(1e30), most);
    }
}
