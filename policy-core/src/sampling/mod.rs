//! From a sample to a charge: what one sampled object stands for, and under which interval it was drawn.
//!
//! * [`weight`]: the charge for a sample, as pure arithmetic.
//! * [`interval`]: the intervals that were in force, and which one a sample was drawn under.
//! * [`new_threads`]: draws that come by chance beside many new threads.
//! * [`first_draws`]: how far the first samples of threads are from chance all the same.
//! * `widest`: how many bytes may be held without a single sample.
//! * [`governor`]: how far the interval is widened to stay within the CPU budget.
//! * [`thinning`]: how much wider the interval is for large arrays.
//! * [`class_thinning`]: fewer samples of classes that the policy names.
//! * [`thinning_error`]: the error that thinning causes.

pub mod class_thinning;
pub mod first_draws;
pub mod governor;
pub mod interval;
pub mod new_threads;
#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
pub mod thinning;
pub mod thinning_error;
pub mod weight;
mod widest;

pub use interval::{IntervalError, IntervalId, Intervals, ThreadInterval};
pub use weight::{Charge, charge, standard_error_bytes};
pub use widest::unseen_at_most_bytes;
