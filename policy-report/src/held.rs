//! The live bytes of a cohort.

use serde::{Deserialize, Serialize};

use crate::number::whole;

/// The live objects of one class of one account that belong to one cohort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// Which cohort: its [`Cohort::upto_epoch`](crate::Cohort).
    #[serde(deserialize_with = "whole")]
    pub upto_epoch: u64,
    /// Records, that is sampled objects.
    #[serde(deserialize_with = "whole")]
    pub records: u64,
    /// Live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Estimated number of live objects.
    #[serde(deserialize_with = "whole")]
    pub live_objects: u64,
    /// The variance of `live_bytes`, in units of [`VARIANCE_UNIT_BYTES2`](crate::VARIANCE_UNIT_BYTES2). Variances of rows add up.
    #[serde(deserialize_with = "whole")]
    pub variance: u64,
}
