//! The question that `heapwarden instances` asks the agent, and the answer of `GET /api/v1/instances`, which has the
//! last few. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::number::{optional, whole};

/// Which tables are wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstancesRequest {
    /// The largest objects, by their own bytes.
    pub largest: bool,
    /// Those with the most elements.
    pub elements: bool,
    /// The oldest.
    pub oldest: bool,
    /// The values that most objects have.
    pub equal: bool,
    /// The classes that waste the most capacity.
    pub wasted: bool,
    /// The rows of each table.
    pub limit: Option<u64>,
}

/// The last answers, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceAnswers<'a> {
    /// The answers.
    pub answers: Vec<Instances<'a>>,
}

/// The result of a look at the sampled objects of an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instances<'a> {
    /// When, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// The account.
    pub account: Cow<'a, str>,
    /// The class, if one was named.
    pub class: Option<Cow<'a, str>>,
    /// Whether the policy allows values to be shown. Masked otherwise.
    pub values_shown: bool,
    /// The sampled objects that the question is about.
    #[serde(deserialize_with = "whole")]
    pub sampled: u64,
    /// The live bytes that they stand for.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// The standard error of these.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// How many of the sampled objects were looked at, over all tables.
    #[serde(deserialize_with = "whole")]
    pub looked_at: u64,
    /// Of these, how many were drawn by lot. What the tables of equal values and waste say is estimated from them.
    #[serde(deserialize_with = "whole")]
    pub drawn: u64,
    /// How many that were to be looked at had been freed.
    #[serde(deserialize_with = "whole")]
    pub gone: u64,
    /// Why fewer were looked at than should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<Cow<'a, str>>,
    /// The searches in the JVM's table of tags.
    #[serde(deserialize_with = "whole")]
    pub searches: u64,
    /// The longest of them: so long a thread that tags an object may have waited, and a collection.
    pub longest_search_ms: f64,
    /// All of them.
    pub searches_ms: f64,
    /// Classes of the JDK that have other fields in this JDK than Heapwarden knows: not readable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_readable: Vec<Cow<'a, str>>,
    /// The largest objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Vec<InstanceRow<'a>>>,
    /// Those with the most elements, of the drawn ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<Vec<InstanceRow<'a>>>,
    /// The oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Vec<InstanceRow<'a>>>,
    /// The most frequent equal values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal: Option<Vec<EqualRow<'a>>>,
    /// Wasted capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasted: Option<Vec<WastedRow<'a>>>,
}

/// One object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceRow<'a> {
    /// Its class.
    pub class: Cow<'a, str>,
    /// Its own bytes, as the JVM says.
    #[serde(deserialize_with = "whole")]
    pub bytes: u64,
    /// Elements of an array or a collection, characters of a builder.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// For how many there is room.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ShownValue<'a>>,
    /// It is at least so old, in seconds.
    pub age_at_least_seconds: f64,
    /// And at most.
    pub age_at_most_seconds: f64,
    /// The collections of old memory that it has survived, at least.
    #[serde(deserialize_with = "whole")]
    pub collections_survived: u64,
}

/// A value as it is shown. At most one of `text` and `digest` is set: what is too long to be compared has
/// no digest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownValue<'a> {
    /// The value, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Instead of a masked value: equal for equal values of one answer, and another in the next answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Cow<'a, str>>,
    /// The length of a string in UTF-16 units, of an array in elements.
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// Objects with one value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EqualRow<'a> {
    /// Their class.
    pub class: Cow<'a, str>,
    /// The value.
    pub value: ShownValue<'a>,
    /// How many objects have it.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
    /// Their own live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// The standard error of these.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// With the arrays that hold the characters or digits, each counted as often as an object has it.
    #[serde(deserialize_with = "whole")]
    pub with_content_bytes: u64,
    /// The standard error of these.
    #[serde(deserialize_with = "whole")]
    pub with_content_standard_error_bytes: u64,
    /// How many of the drawn objects have it.
    #[serde(deserialize_with = "whole")]
    pub samples: u64,
}

/// Capacity that one class wastes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WastedRow<'a> {
    /// The class.
    pub class: Cow<'a, str>,
    /// How many objects of it there are.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
    /// How many of these are empty.
    #[serde(deserialize_with = "whole")]
    pub empty_objects: u64,
    /// Bytes of room that an object made for its elements would not have.
    #[serde(deserialize_with = "whole")]
    pub wasted_bytes: u64,
    /// The standard error of these.
    #[serde(deserialize_with = "whole")]
    pub standard_error_bytes: u64,
    /// The room as a whole, in bytes: wasted or not.
    #[serde(deserialize_with = "whole")]
    pub capacity_bytes: u64,
    /// How many of the drawn objects are of this class.
    #[serde(deserialize_with = "whole")]
    pub samples: u64,
}
