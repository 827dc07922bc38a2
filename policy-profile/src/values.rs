//! The four values of a sample.

use std::fmt;
use std::str::FromStr;

/// A kind of value, with its place in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// Objects allocated since the agent was loaded.
    AllocObjects,
    /// Bytes allocated since the agent was loaded.
    AllocSpace,
    /// Objects that survived the latest complete collection.
    InuseObjects,
    /// Bytes that survived the latest complete collection.
    InuseSpace,
}

impl SampleType {
    /// All of them, in their order in a sample.
    pub const ALL: [SampleType; 4] = [
        SampleType::AllocObjects,
        SampleType::AllocSpace,
        SampleType::InuseObjects,
        SampleType::InuseSpace,
    ];

    /// Its name in the format, and for `-sample_index`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SampleType::AllocObjects => "alloc_objects",
            SampleType::AllocSpace => "alloc_space",
            SampleType::InuseObjects => "inuse_objects",
            SampleType::InuseSpace => "inuse_space",
        }
    }

    /// Its unit in the format.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            SampleType::AllocObjects | SampleType::InuseObjects => "count",
            SampleType::AllocSpace | SampleType::InuseSpace => "bytes",
        }
    }
}

impl fmt::Display for SampleType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for SampleType {
    type Err = String;

    fn from_str(text: &str) -> Result<SampleType, String> {
        let mut all = SampleType::ALL.into_iter();
        all.find(|one| one.name() == text).ok_or_else(|| {
            let names = SampleType::ALL.map(SampleType::name);
            format!("it is none of {}", names.join(", "))
        })
    }
}

/// The objects and bytes that were allocated, and those of them that live. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
    /// Objects allocated.
    pub alloc_objects: u64,
    /// Bytes allocated.
    pub alloc_bytes: u64,
    /// Live objects.
    pub live_objects: u64,
    /// Live bytes.
    pub live_bytes: u64,
}

impl Values {
    /// In the order of [`SampleType::ALL`].
    #[must_use]
    pub const fn to_array(self) -> [u64; 4] {
        [
            self.alloc_objects,
            self.alloc_bytes,
            self.live_objects,
            self.live_bytes,
        ]
    }

    /// From the order of [`SampleType::ALL`].
    #[must_use]
    pub const fn from_array(
        [alloc_objects, alloc_bytes, live_objects, live_bytes]: [u64; 4],
    ) -> Values {
        Values {
            alloc_objects,
            alloc_bytes,
            live_objects,
            live_bytes,
        }
    }

    /// Whether all are zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Values::default()
    }
}

impl std::ops::AddAssign for Values {
    fn add_assign(&mut self, other: Values) {
        let (a, b) = (self.to_array(), other.to_array());
        *self = Values::from_array(std::array::from_fn(|at| a[at].saturating_add(b[at])));
    }
}
