//! The answer of `GET /api/v1/leaks`. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::number::{optional, whole};
use crate::sites::Site;

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Leaks<'a> {
    /// When this was judged, RFC 3339, UTC.
    pub at: Cow<'a, str>,
    /// How long the longest window is that there is enough history for, in seconds.
    #[serde(deserialize_with = "whole")]
    pub horizon_seconds: u64,
    /// Why there is no verdict yet; `None` if there is one.
    pub undecided: Option<Cow<'a, str>>,
    /// The classes that leak, fastest growth first.
    pub suspects: Vec<Suspect<'a>>,
    /// The classes that grow and are not called leaks.
    pub growing: Vec<Growing<'a>>,
    /// Suspects that the policy acknowledges (`[[leak]]`): measured, and not reported.
    #[serde(default)]
    pub acknowledged: Vec<Growing<'a>>,
    /// Suspects and growing rows that the agent left out of the document to bound its size.
    #[serde(default, deserialize_with = "whole")]
    pub omitted: u64,
}

/// A class of an account of which nothing old dies while new instances stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suspect<'a> {
    /// The account.
    pub account: Cow<'a, str>,
    /// The class, a Java source name.
    pub class: Cow<'a, str>,
    /// Its live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Standard error of `live_bytes`.
    #[serde(deserialize_with = "whole")]
    pub live_standard_error_bytes: u64,
    /// Bytes that stay, per second, over the window.
    pub growth_bytes_per_second: f64,
    /// Standard error of the growth.
    pub growth_standard_error: f64,
    /// For how long it has been a suspect, in seconds.
    #[serde(deserialize_with = "whole")]
    pub since_seconds: u64,
    /// The window in which it was found, in seconds.
    #[serde(deserialize_with = "whole")]
    pub window_seconds: u64,
    /// Estimated number of live objects.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
    /// Generations (covering collections apart) with live instances: the leak paper's figure.
    #[serde(deserialize_with = "whole")]
    pub generations: u64,
    /// The same and the live bytes at earlier looks, oldest first.
    pub course: Vec<Moment>,
    /// Classes of the JDK and arrays that grow with it, and are its parts.
    pub with: Vec<Cow<'a, str>>,
    /// Where the survivors were allocated, most first. Empty until stacks were taken.
    pub sites: Vec<Site<'a>>,
    /// The chains of references from a root that keep its objects alive, shortest first. Empty unless the policy lets
    /// the agent find out (`[leaks] paths`).
    pub kept_by: Vec<Cow<'a, str>>,
    /// When the room is used up if the growth goes on; `None` without a limit and a forecast.
    pub exhausts: Option<Exhaustion<'a>>,
}

/// The figures of a class at an earlier look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// So many seconds before the answer.
    #[serde(deserialize_with = "whole")]
    pub seconds_ago: u64,
    /// Its live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Generations with live instances.
    #[serde(deserialize_with = "whole")]
    pub generations: u64,
}

/// When something is full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exhaustion<'a> {
    /// `limit` (of the account) or `heap`.
    pub what: Cow<'a, str>,
    /// Not before so many seconds from now.
    #[serde(deserialize_with = "whole")]
    pub earliest_seconds: u64,
    /// Not after so many seconds from now. `None`: it may never be full.
    #[serde(deserialize_with = "optional")]
    pub latest_seconds: Option<u64>,
}

/// A class that grows and is not called a leak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Growing<'a> {
    /// The account.
    pub account: Cow<'a, str>,
    /// The class, a Java source name.
    pub class: Cow<'a, str>,
    /// `turnover`, `lumpy`, `filled-at-start` or `undecided`; `acknowledged` in [`Leaks::acknowledged`].
    pub why: Cow<'a, str>,
    /// Its live bytes.
    #[serde(deserialize_with = "whole")]
    pub live_bytes: u64,
    /// Bytes that stay, per second, over the window.
    pub growth_bytes_per_second: f64,
}
