//! Profiles that people can open: the [pprof format](https://github.com/google/pprof), and collapsed stacks.
//!
//! The agent fills a [`Builder`] and serves the gzip of it; the command reads it as a [`Profile`].
//!
//! # Rules
//! 1. A sample has the four values of [`SampleType`], in the order of Go's own heap profiles, and the labels
//!    `account` and `class`.
//! 2. Every stack begins, at its root, with a frame of the account: `[shop]`. Where no stack is known, the class is the
//!    only other frame. Such frames name no method; their `system_name` says what they are ([`FrameKind`]).
//! 3. Sums by account are those of the accounts, to the byte. Parts that have been estimated apart from their whole are
//!    made to fit into it by [`fit`]; what no part explains is a sample of its own.
//! 4. A source of stacks is anything with frames and values. Stacks of samples and counted contexts are
//!    two. A class of an account has its stacks from one of them.
//! 5. What is read may be hostile: lengths are bounded, and every number is checked before it is an index.

#![forbid(unsafe_code)]

mod builder;
mod collapsed;
mod fitting;
mod proto;
mod reading;
mod values;

pub use builder::{About, Builder, Frame};
pub use fitting::fit;
pub use reading::{MAX_BYTES, Profile, ReadError};
pub use values::{SampleType, Values};

/// The label with the name of the account.
pub const ACCOUNT: &str = "account";
/// The label with the name of the class.
pub const CLASS: &str = "class";

/// The thing that a frame stands for: a method, an account or a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A method, or a remark in the place of one.
    Method,
    /// An account: the root of its stacks.
    Account,
    /// A class: what was allocated at a place that is not known.
    Class,
}

impl FrameKind {
    /// The `system_name` of the function in the format.
    const fn mark(self) -> &'static str {
        match self {
            FrameKind::Method => "",
            FrameKind::Account => ACCOUNT,
            FrameKind::Class => CLASS,
        }
    }
}
