//! The answer of `GET /api/v1/contexts`. Fields stand in the order in which they are written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::number::{optional, whole};

/// The whole answer: what was allocated in which calling context, since contexts were first on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contexts<'a> {
    /// The patterns of packages whose methods are counted now; empty: none are.
    #[serde(default)]
    pub packages: Vec<Cow<'a, str>>,
    /// The tree: callers before what they call. The first is the root, whose method is empty.
    pub contexts: Vec<Context<'a>>,
    /// The calls and objects that found no room in the tree, by reason: they are counted for the context above.
    #[serde(default)]
    pub overflow: Vec<Overflow<'a>>,
    /// Objects that were not counted at all: threads were just being made, or the heap was full.
    #[serde(default, deserialize_with = "whole")]
    pub lost_objects: u64,
}

/// A method as it was called from another context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context<'a> {
    /// The place of its caller's context in the list; `None`: it is the root.
    pub parent: Option<u32>,
    /// The method, as `com.acme.Cart.add(int, java.lang.String)`.
    pub method: Cow<'a, str>,
    /// The account that its code belongs to; `None`: none, and its objects count for the closest caller that has one.
    pub account: Option<Cow<'a, str>>,
    /// Calls that have ended; `None`: executed bytecodes are not counted.
    #[serde(deserialize_with = "optional")]
    pub calls: Option<u64>,
    /// Instructions that these have run, without those of the methods that they called.
    #[serde(deserialize_with = "optional")]
    pub bytecodes: Option<u64>,
    /// Objects that are no arrays, by class.
    pub objects: Vec<Objects<'a>>,
    /// Arrays, by the type of their elements.
    pub arrays: Vec<Arrays<'a>>,
}

/// Objects of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Objects<'a> {
    /// The class, as `com.acme.Cart$Item`.
    pub class: Cow<'a, str>,
    /// How many of it.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
}

/// Arrays of a type of elements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrays<'a> {
    /// A type of numbers, as `int`, or `reference`.
    pub elements: Cow<'a, str>,
    /// How many arrays.
    #[serde(deserialize_with = "whole")]
    pub arrays: u64,
    /// Their elements together.
    #[serde(deserialize_with = "whole")]
    pub elements_total: u64,
}

/// The calls and objects that found no room in the tree, for one reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overflow<'a> {
    /// `depth`, `contexts` or `types`.
    pub reason: Cow<'a, str>,
    /// Calls that have no context of their own.
    #[serde(deserialize_with = "whole")]
    pub calls: u64,
    /// Objects that were counted for a context above; of `types`: not at all.
    #[serde(deserialize_with = "whole")]
    pub objects: u64,
}
