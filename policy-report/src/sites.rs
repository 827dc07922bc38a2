//! The answer of `GET /api/v1/sites`. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::held::Held;
use crate::number::whole;

/// The whole answer: where survivors were allocated, for all accounts of which stacks are taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sites<'a> {
    /// Stacks taken since the agent was loaded.
    #[serde(default, deserialize_with = "whole")]
    pub stacks: u64,
    /// Samples that were to have a stack and got none, or a shorter one, by reason. Those of `budget` are
    /// made up for by the weight of the others.
    #[serde(default)]
    pub skipped: Counts<'a>,
    /// The accounts, most survivors with a stack first.
    pub accounts: Vec<AccountSites<'a>>,
}

/// The sites of an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountSites<'a> {
    /// The account.
    pub account: Cow<'a, str>,
    /// By class, most survivors with a stack first.
    pub classes: Vec<ClassSites<'a>>,
    /// Classes with survivors that the document leaves out to bound its size.
    #[serde(deserialize_with = "whole")]
    pub classes_omitted: u64,
}

/// The sites of a class in an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassSites<'a> {
    /// The class, a Java source name.
    pub class: Cow<'a, str>,
    /// Its live bytes in this account.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Live bytes that were allocated since stacks are taken.
    #[serde(deserialize_with = "whole")]
    pub with_stack_bytes: u64,
    /// Samples that this rests on.
    #[serde(deserialize_with = "whole")]
    pub stacks: u64,
    /// The bytes of it that were allocated since stacks are taken, survivors or not.
    #[serde(deserialize_with = "whole")]
    pub allocated_bytes: u64,
    /// Samples that `allocated_bytes` rests on.
    #[serde(deserialize_with = "whole")]
    pub allocated_stacks: u64,
    /// The places where survivors were allocated, most bytes first; then others where most was allocated.
    pub sites: Vec<Site<'a>>,
    /// Places of survivors that the document leaves out to bound its size.
    #[serde(deserialize_with = "whole")]
    pub sites_omitted: u64,
}

/// Where survivors were allocated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site<'a> {
    /// The stack from the first frame of the application down: `com.acme.Cart.add(Cart.java:41)`.
    pub frames: Vec<Cow<'a, str>>,
    /// The JDK's frames between the allocation and `frames`, nearest to the allocation first.
    pub through: Vec<Cow<'a, str>>,
    /// The share of the survivors with a stack that were allocated here, 0 to 1.
    pub share: f64,
    /// Standard error of `share`.
    pub share_standard_error: f64,
    /// Live bytes allocated here since stacks are taken.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Estimated number of live objects allocated here since stacks are taken.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
    /// Samples that this rests on.
    #[serde(deserialize_with = "whole")]
    pub stacks: u64,
    /// Standard error of `live_bytes`.
    #[serde(deserialize_with = "whole")]
    pub live_standard_error_bytes: u64,
    /// Bytes allocated here since stacks are taken, survivors or not.
    #[serde(deserialize_with = "whole")]
    pub allocated_bytes: u64,
    /// Standard error of `allocated_bytes`.
    #[serde(deserialize_with = "whole")]
    pub allocated_standard_error_bytes: u64,
    /// Estimated number of objects allocated here since stacks are taken.
    #[serde(deserialize_with = "whole")]
    pub allocated_objects: u64,
    /// The share of what was allocated of the class, 0 to 1.
    pub allocated_share: f64,
    /// Standard error of `allocated_share`.
    pub allocated_share_standard_error: f64,
    /// Samples that the allocated figures rest on.
    #[serde(deserialize_with = "whole")]
    pub allocated_stacks: u64,
    /// In a snapshot: by cohort, what the samples with a stack stand for. Their sum may be more than
    /// `live_bytes`, which is never more than lives. Empty if the document would be too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<Held>,
}
