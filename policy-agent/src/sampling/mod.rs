//! From a sample to a charge: what one sampled object stands for, and under which
//! interval it was drawn.
//!
//! Nothing here knows the JVM, an account or a thread: [`weight`] is pure arithmetic,
//! [`interval`] is a small append-only table and a rule, `governor` decides how wide it is,
//! `thinning` how much wider for arrays that a sample keeps from being given back.

#[cfg(not(loom))]
pub(crate) mod governor;
pub mod interval;
#[cfg(all(test, not(loom)))]
pub(crate) mod simulation;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
pub(crate) mod thinning;
pub mod weight;

pub use interval::{IntervalError, IntervalId, Intervals, ThreadInterval};
pub use weight::{Charge, charge, standard_error_bytes};
