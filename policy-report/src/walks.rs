//! The questions that `heapwarden paths` and `heapwarden holders` ask the agent, its answers, and the answer of
//! `GET /api/v1/paths`, which has the last few. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::instances::{Instances, InstancesRequest};
use crate::number::whole;

/// A question to the agent: the file `request.json` in the folder that the command names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkRequest<'a> {
    /// `paths`, `holders` or `instances`.
    pub question: Cow<'a, str>,
    /// Only objects of this account.
    pub account: Option<Cow<'a, str>>,
    /// Only objects of this class.
    pub class: Option<Cow<'a, str>>,
    /// Not objects but the class loaders of services that were undeployed.
    pub retired: bool,
    /// The longest pause of a forked walk that is allowed, in milliseconds.
    pub max_pause_ms: Option<u64>,
    /// If a fork is not possible: walk in place, and stop the JVM for at most so long at a time.
    pub in_place_ms: Option<u64>,
    /// `instances`: which tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<InstancesRequest>,
}

/// An answer. Exactly one field is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkReply<'a> {
    /// Why there is no answer, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// To `paths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths<'a>>,
    /// To `holders`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Holders<'a>>,
    /// To `instances`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances<'a>>,
}

/// The last answers, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Walks<'a> {
    /// The answers.
    pub walks: Vec<WalkReply<'a>>,
}

/// A walk that was made, and what it cost the JVM.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkMade<'a> {
    /// When, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// `forked` or `in-place`.
    pub how: Cow<'a, str>,
    /// How long the JVM stood still at the most: what the call of JVM TI took, with the way to the safepoint. In place,
    /// the longest of the stops.
    pub pause_ms: f64,
    /// The time that the fork itself took; 0 in place.
    pub fork_ms: f64,
    /// How long the JVM was predicted to stand still. In place, of the longest stop.
    pub predicted_pause_ms: f64,
    /// And how long if all other processes that wanted the processors had had their turn meanwhile.
    pub most_predicted_pause_ms: f64,
    /// Forked: the part of one processor that the child kept to, because a cgroup limits the JVM's processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_share: Option<f64>,
    /// References of the heap that were looked at.
    #[serde(deserialize_with = "whole")]
    pub references: u64,
    /// In place: the times at which the JVM stood still, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopMade<'a>>,
    /// In place: why the whole heap is walked in one stop, as a part of a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_stop_because: Option<Cow<'a, str>>,
}

/// A time at which the JVM stood still for a walk in place, or would have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopMade<'a> {
    /// `slice`: what the accounts that are asked about hold themselves; `whole`: the whole heap.
    pub of: Cow<'a, str>,
    /// `done`; `given-up` after the accepted pause, with what was found until then; `not-made`, because the
    /// prediction is longer than what is accepted.
    pub ended: Cow<'a, str>,
    /// How long the JVM was predicted to stand still.
    pub predicted_ms: f64,
    /// How long it was allowed to.
    pub accepted_ms: f64,
    /// How long it did; 0 if the stop was not made.
    pub pause_ms: f64,
    /// References that were looked at.
    #[serde(deserialize_with = "whole")]
    pub references: u64,
    /// Objects for which this stop was the first to find a chain.
    #[serde(deserialize_with = "whole")]
    pub found: u64,
}

/// Who keeps objects alive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Paths<'a> {
    /// How the heap was walked; its fields stand among those of the document.
    #[serde(flatten)]
    pub walk: WalkMade<'a>,
    /// Sampled objects that were looked for.
    #[serde(deserialize_with = "whole")]
    pub looked_for: u64,
    /// Of these, how many nothing reaches: they are garbage, or weakly held.
    #[serde(deserialize_with = "whole")]
    pub unreached: u64,
    /// Of these, how many were not found because not all of the heap was walked: something may hold them.
    #[serde(deserialize_with = "whole")]
    pub undecided: u64,
    /// The chains, shortest first.
    pub paths: Vec<Chain<'a>>,
}

/// A chain of references, and what it keeps alive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chain<'a> {
    /// The account whose objects it keeps.
    pub account: Cow<'a, str>,
    /// Their class.
    pub class: Cow<'a, str>,
    /// How many of the objects that were looked for it keeps.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
    /// The live bytes that they stand for; 0 for class loaders.
    #[serde(deserialize_with = "whole")]
    pub bytes: u64,
    /// The root: `static com.acme.Cache.map`, `thread "pool-1"`, …
    pub root: Cow<'a, str>,
    /// The objects from the root on, without the one that is kept.
    pub steps: Vec<ChainStep<'a>>,
    /// The steps nearest to the root are missing.
    pub is_cut: bool,
}

/// An object of a chain, and the field or element by which it refers to the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChainStep<'a> {
    /// Its class.
    pub class: Cow<'a, str>,
    /// `table`, `[17]`, `[*]` for several elements, `(class loader)`, …
    pub via: Cow<'a, str>,
    /// How many such objects follow each other.
    #[serde(deserialize_with = "whole")]
    pub repeats: u64,
}

/// Who holds what whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holders<'a> {
    /// How the heap was walked; its fields stand among those of the document.
    #[serde(flatten)]
    pub walk: WalkMade<'a>,
    /// The matrix.
    pub holders: Vec<HolderRow<'a>>,
    /// The live bytes that each account has made: the sums that the matrix divides.
    pub made: Vec<MadeRow<'a>>,
}

/// The live bytes that a holder keeps alive, of those that an account made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HolderRow<'a> {
    /// The holder's account. `_unaccounted` is everybody without an account and the JVM, `_stacks` what nothing
    /// but running methods hold, `_nobody` what nothing reaches.
    pub holder: Cow<'a, str>,
    /// The account that made it, and pays.
    pub made_by: Cow<'a, str>,
    /// Live bytes that the holder reaches.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Their standard error.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// Of these, the bytes that no other holder reaches.
    #[serde(deserialize_with = "whole")]
    pub exclusive_bytes: u64,
    /// Sampled objects in this row.
    #[serde(deserialize_with = "whole")]
    pub samples: u64,
}

/// The live bytes that an account made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MadeRow<'a> {
    /// The account.
    pub made_by: Cow<'a, str>,
    /// Its live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Their standard error.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// Of these, the bytes that several holders reach: they are in several rows of the matrix.
    #[serde(deserialize_with = "whole")]
    pub shared_bytes: u64,
}
