//! The answers of `GET /api/v1/history` and `GET /api/v1/snapshots`. Fields stand in the order in which they
//! are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::State;
use crate::number::{optional, whole};

/// The course of the accounts over the last hour, as the agent remembers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History<'a> {
    /// Seconds between two points.
    #[serde(deserialize_with = "whole")]
    pub step_seconds: u64,
    /// The points, oldest first.
    pub points: Vec<HistoryPoint<'a>>,
}

/// The accounts at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryPoint<'a> {
    /// When, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// Of which collection the live bytes are, as a [`Heap::gc_epoch`](crate::Heap::gc_epoch).
    #[serde(default, deserialize_with = "whole")]
    pub live_gc_epoch: u64,
    /// Used bytes as read just after the latest collection.
    #[serde(default, deserialize_with = "whole")]
    pub used_after_gc_bytes: u64,
    /// The accounts with the most live bytes, and the sum of all others as `_other`.
    pub accounts: Vec<HistoryAccount<'a>>,
}

/// One account at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryAccount<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    #[serde(deserialize_with = "optional")]
    pub live_standard_error_bytes: Option<u64>,
    /// All bytes ever charged to it.
    #[serde(deserialize_with = "whole")]
    pub allocated_bytes_total: u64,
    /// Where it stands against its limit.
    pub state: State,
    /// Refusals thrown.
    #[serde(deserialize_with = "whole")]
    pub refusals_total: u64,
    /// Refusals that `observe` did not throw.
    #[serde(deserialize_with = "whole")]
    pub would_refuse_total: u64,
    /// Requests and calls turned away at a door.
    #[serde(deserialize_with = "whole")]
    pub admission_refusals_total: u64,
    /// Threads that ended with an uncaught refusal.
    #[serde(deserialize_with = "whole")]
    pub threads_killed_total: u64,
}

/// The files of the policy's `[snapshots]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFiles<'a> {
    /// The folder. `None`: the policy has no `[snapshots]`.
    pub directory: Option<Cow<'a, str>>,
    /// The files of this program, latest first.
    pub files: Vec<SnapshotFile<'a>>,
    /// Files that the agent left out of the document to bound its size.
    #[serde(default, deserialize_with = "whole")]
    pub omitted: u64,
}

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFile<'a> {
    /// Its name; `GET /api/v1/snapshots/NAME` gives what is in it.
    pub name: Cow<'a, str>,
    /// When it was taken, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// Its size.
    #[serde(deserialize_with = "whole")]
    pub bytes: u64,
    /// Whether it is of the run of the JVM that answers.
    pub is_this_run: bool,
}
