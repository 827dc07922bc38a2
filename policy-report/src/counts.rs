//! Counts by reason.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::number;

/// Counts by reason: a JSON object, in the order in which it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts<'a>(pub Vec<(Cow<'a, str>, u64)>);

impl<'a> Counts<'a> {
    /// Borrows the reasons of a reading.
    pub fn of(counts: &'a [(&'static str, u64)]) -> Counts<'a> {
        let borrowed = counts
            .iter()
            .map(|&(reason, count)| (Cow::Borrowed(reason), count));
        Counts(borrowed.collect())
    }

    /// The sum over all reasons; the largest `u64` where it would be more.
    pub fn sum(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(reason, count)| (reason, count)))
    }
}

impl<'de> Deserialize<'de> for Counts<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'static, str>, u64)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of counts by reason")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
                let mut counts = Vec::new();
                while let Some((reason, Count(count))) = object.next_entry::<String, Count>()? {
                    counts.push((Cow::Owned(reason), count));
                }
                Ok(counts)
            }
        }
        deserializer.deserialize_map(Object).map(Counts)
    }
}

struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number::whole(deserializer).map(Count)
    }
}
