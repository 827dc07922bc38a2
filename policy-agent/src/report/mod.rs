//! What is published: the metric catalogue, and the renderers of a [`Snapshot`].
//!
//! Invariant: nothing here sees more of the agent than a [`Snapshot`], so a scrape can
//! neither touch nor delay the write path. Nothing here knows HTTP.

pub mod catalog;
pub mod exposition;
mod families;
pub mod fold;
pub mod json;
mod snapshot;

pub use snapshot::{
    Account, Class, Evidence, Heap, Kind, Mode, PolicyStatus, Principal, Sampling, Snapshot,
    Source, State, Tree,
};

/// Reserved account of everything that no rule matched.
pub const UNACCOUNTED: &str = "_unaccounted";
/// Reserved account that takes in what is beyond a cardinality cap.
pub const OTHER: &str = "_other";
