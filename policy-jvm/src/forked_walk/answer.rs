//! The results of a walk: paths or holders, and how it went.

use std::time::Duration;

use super::log::{RootKind, Via};

/// A path from a root to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The target's tag.
    pub target_tag: i64,
    /// The tag of the target's class; 0 for an unknown one.
    pub class_tag: i64,
    /// The root; `None` if the first step is a class whose static fields count as roots.
    pub root: Option<PathRoot>,
    /// The objects from the root to the target, without it.
    pub steps: Vec<Step>,
    /// There are more steps than are listed, before the first one.
    pub is_cut: bool,
}

/// The root of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRoot {
    /// A local variable, a thread, a global reference or another kind.
    pub kind: RootKind,
    /// The id of the thread, of a local variable or reference.
    pub thread_id: i64,
    /// The method, of a local variable or reference; a number only.
    pub method: usize,
    /// The tag of the object that the root refers to.
    pub own_tag: i64,
    /// The frame, counted from the top.
    pub depth: u32,
    /// The local variable.
    pub slot: u32,
}

/// An object on a path, and how it refers to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The tag of its class; 0 for an unknown one.
    pub class_tag: i64,
    /// Its own tag; 0 for none.
    pub own_tag: i64,
    /// How it refers to the next object.
    pub via: Via,
    /// How many such objects follow each other.
    pub repeats: u32,
}

/// A target and its holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The target's tag.
    pub tag: i64,
    /// A bit for each holder that reaches it.
    pub holders: u64,
    /// No holder reaches it, only stacks do.
    pub by_stacks_alone: bool,
}

/// The paths or the holders that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`super::Question::Paths`].
    Paths(Vec<Path>),
    /// To [`super::Question::Holders`].
    Held(Vec<Held>),
}

/// A walk that was made.
#[derive(Debug)]
pub struct Walk {
    /// The paths or the holders that were found.
    pub answer: Answer,
    /// How long the world stood still at the most.
    pub pause: Duration,
    /// The time of the fork itself; 0 in place.
    pub fork: Duration,
    /// How long the world was predicted to stand still.
    pub predicted_pause: Duration,
    /// And how long if all other processes want the processors meanwhile.
    pub most_predicted_pause: Duration,
    /// The part of one processor that the child kept to, because a cgroup limits the JVM's; `None` where nothing does,
    /// and in place.
    pub processor_share: Option<f64>,
    /// References that were looked at.
    pub references: u64,
    /// Objects with references.
    pub objects: u64,
    /// The bytes of the objects that a slice has met; 0 for another walk.
    pub bytes: u64,
    /// The accepted pause has ended the walk: what was found is true, and what was not found is not known.
    pub is_cut_short: bool,
}
