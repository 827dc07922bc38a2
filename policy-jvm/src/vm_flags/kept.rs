//! Why a flag stays as it is.

use thiserror::Error;

/// Why a flag is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlagKept {
    /// It has the value that is wanted already.
    #[error("it is {0} already")]
    Already(u64),
    /// Somebody has set it.
    #[error("it was set to {0}")]
    Chosen(u64),
    /// Its default is not the value that is to be replaced.
    #[error("its default is {0}")]
    OtherDefault(u64),
    /// It was not to be changed, or the VM runs already: what the flag governs is decided.
    #[error("it stays {0}")]
    Left(u64),
    /// The VM does not describe itself as expected; this says where.
    #[error("the JVM does not describe itself as expected: {0}")]
    Unknown(&'static str),
}
