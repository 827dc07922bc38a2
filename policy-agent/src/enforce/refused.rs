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
    /// The class that declares its method: an id must not be asked about once that is unloaded
    /// (JDK-8268364, JDK-8339725).
    pub(crate) class: Option<Weak>,
    pub(crate) thread: Option<Weak>,
}
