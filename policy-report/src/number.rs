//! Numbers of JSON, read as whole bytes and counts.
//!
//! Everything is accepted that JSON calls a number: fractions are cut off, and what is negative or
//! beyond 64 bits becomes the nearest value that fits.

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    /// Fractions, negative numbers, and numbers beyond 64 bits.
    Other(f64),
}

/// Reads a number; `null` is `None`.
pub(crate) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.map(|number| match number {
        Number::Whole(whole) => whole,
        // `as` saturates at both ends.
        Number::Other(other) => other as u64,
    }))
}

/// Reads a number; `null` is 0.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    optional(deserializer).map(Option::unwrap_or_default)
}

/// A field of the JSON that is a number.
pub(crate) trait Field {
    /// The field for a number, or for `null`.
    fn of(number: Option<u64>) -> Self;
}

impl Field for Option<u64> {
    fn of(number: Option<u64>) -> Self {
        number
    }
}

impl Field for u64 {
    fn of(number: Option<u64>) -> Self {
        number.unwrap_or_default()
    }
}

/// Reads a number for a field that must have one, or may.
pub(crate) fn either<'de, D: Deserializer<'de>, F: Field>(deserializer: D) -> Result<F, D::Error> {
    optional(deserializer).map(F::of)
}
