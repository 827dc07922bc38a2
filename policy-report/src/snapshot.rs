//! The document of `GET /api/v1/snapshot` and of the files that `[snapshots]` writes: everything that the
//! accounts hold, in a form that two of them can be subtracted. Fields stand in the order in which they
//! are written.
//!
//! # Cohorts
//! The records of one class in one account are summed by *cohort*: by the collections between which their
//! objects were born. Cohorts end at the snapshots that this run of the JVM made before, and the last one
//! ends at the collection that the live bytes are of. A record of the newer of two snapshots that was born
//! before the older one was in the older one as well. So in the difference of their sums, cohort by cohort,
//! whatever stayed cancels exactly, and the error of the difference is that of what came and what went.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::accounts::{Account, Evidence, Heap, Jvm, Policy, Sampling};
use crate::number::whole;
use crate::sites::Sites;

/// The version of the document that this crate writes.
pub const SNAPSHOT_VERSION: u64 = 1;
/// The unit of [`Held::variance`](crate::Held::variance), in squared bytes.
pub const VARIANCE_UNIT_BYTES2: u64 = 256;

/// The whole document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot<'a> {
    /// The version of the document, [`SNAPSHOT_VERSION`]. Without it the document is another one.
    pub heapwarden_snapshot: u64,
    /// When it was taken, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// Why it was taken: `asked`, `scheduled` or `exit`.
    #[serde(default)]
    pub why: Cow<'a, str>,
    /// The run of the JVM that it is of.
    pub run: Run<'a>,
    /// The process that the agent is in.
    #[serde(default)]
    pub jvm: Jvm<'a>,
    /// The heap as a whole.
    #[serde(default)]
    pub heap: Heap,
    /// The sampler.
    #[serde(default)]
    pub sampling: Sampling<'a>,
    /// The policy in force.
    #[serde(default)]
    pub policy: Policy<'a>,
    /// The collections that the agent asks for.
    #[serde(default)]
    pub evidence: Evidence,
    /// The unit of every `variance`, in squared bytes.
    #[serde(default, deserialize_with = "whole")]
    pub variance_unit_bytes2: u64,
    /// The cohorts by which the classes are summed, oldest first. Empty before the first collection.
    #[serde(default)]
    pub cohorts: Vec<Cohort<'a>>,
    /// Whether cohorts were joined to bound the size of the document. Differences to snapshots that ended
    /// one of those have a larger error.
    #[serde(default)]
    pub cohorts_joined: bool,
    /// The accounts with their classes, largest live bytes first. The live bytes of a class, and of an
    /// account, are the sums over its cohorts.
    pub accounts: Vec<Account<'a>>,
    /// Accounts that the agent left out of the document to bound its size.
    #[serde(default, deserialize_with = "whole")]
    pub accounts_omitted: u64,
    /// Where survivors were allocated: of accounts and classes of which the agent takes stacks.
    #[serde(default)]
    pub sites: Sites<'a>,
}

/// One run of a JVM with the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run<'a> {
    /// A random identifier of 16 hexadecimal digits. Snapshots with the same one are of the same run.
    pub id: Cow<'a, str>,
    /// When the agent was loaded, RFC 3339, UTC.
    #[serde(default)]
    pub started: Cow<'a, str>,
}

/// Objects that were born between two collections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cohort<'a> {
    /// The last collection before which they were born, as a [`Heap::gc_epoch`]. The cohort begins after
    /// the one before it.
    #[serde(deserialize_with = "whole")]
    pub upto_epoch: u64,
    /// When that was known, RFC 3339, UTC.
    #[serde(default)]
    pub at: Cow<'a, str>,
}
