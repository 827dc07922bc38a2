//! What a refused thread leaves for the log.

use std::sync::Arc;

use crate::jvm::java::Weak;
use crate::jvm::point::OwnFrame;

use super::terms::Terms;

/// Refusals that wait to be logged; more are only counted.
pub(crate) const MOST_WAITING: usize = 16;

/// One refusal.
pub(crate) struct Refused {
    pub(crate) terms: Arc<Terms>,
    /// Thrown, or only counted.
    pub(crate) thrown: bool,
    pub(crate) requested_bytes: u64,
    /// The account's own frame that was refused.
    pub(crate) frame: OwnFrame,
    pub(crate) thread: Option<Weak>,
}
