//! Names of files without the versions in them.

/// The name of a jar without its version: `kafka_2.13-3.9.0` is `kafka_2.13`, `shop-1.2-SNAPSHOT` is `shop`.
/// The version begins at a hyphen and a digit, and goes to the end unless a part with letters and another
/// number follow: `log4j-1.2-api-2.20` is `log4j-1.2-api`.
#[must_use]
pub fn without_version(stem: &str) -> &str {
    /// Parts with letters that belong to a version and may stand before a number.
    const QUALIFIERS: [&str; 7] = ["alpha", "beta", "rc", "cr", "m", "sp", "b"];
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let hyphens = stem.match_indices('-').map(|(at, _)| at);
    for at in hyphens {
        let mut parts = stem[at + 1..].split('-');
        if at == 0 || !parts.next().is_some_and(is_number) {
            continue;
        }
        let mut named = false;
        let goes_on = parts.any(|part| {
            let goes_on = named && is_number(part);
            let lower = part.to_ascii_lowercase();
            named |= !is_number(part) && !QUALIFIERS.contains(&lower.as_str());
            goes_on
        });
        if !goes_on {
            return &stem[..at];
        }
    }
    stem
}
