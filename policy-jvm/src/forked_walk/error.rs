//! Why a walk is not made, or gives no answer.

use std::time::Duration;

use super::recorder::Failure;
use crate::error::JvmTiError;

/// Why a walk was not made, or gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// Another one is under way.
    #[error("another walk of the heap is under way")]
    Busy,
    /// The heap is mapped shared.
    #[error(
        "the heap is shared memory (ZGC, or a heap on a file), so a forked child would not see a frozen copy"
    )]
    SharedHeap,
    /// The pause would be too long.
    #[error("a fork would stop the JVM for about {} ms, and {} ms are allowed", .predicted.as_millis(), .allowed.as_millis())]
    PauseTooLong {
        /// The prediction.
        predicted: Duration,
        /// The longest pause that is allowed.
        allowed: Duration,
    },
    /// There is too little memory.
    #[error("a forked child may need {} MiB of memory, and {} MiB are free", .needed_bytes >> 20, .free_bytes >> 20)]
    TooLittleMemory {
        /// The estimate.
        needed_bytes: u64,
        /// The memory that is free.
        free_bytes: u64,
    },
    /// `fork` failed.
    #[error("the system does not let the JVM fork ({})", std::io::Error::from_raw_os_error(*.0))]
    ForkRefused(i32),
    /// The structure behind the tag's pointer is not the one that is known.
    #[error(
        "this build of the JVM keeps objects' tags in a way that is not known, so objects cannot be told apart"
    )]
    UnknownLayout,
    /// It took too long.
    #[error("the walk was not done within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// A lock of the VM was held at the moment of each fork.
    #[error(
        "threads of the JVM held one of its locks at the moment of the fork, {} times one after the other; try again",
        super::FORKS
    )]
    Blocked,
    /// Memory ran short while the child lived.
    #[error("memory ran short while the walk's child process lived, so the child was ended")]
    MemoryRanShort,
    /// The child had no memory for its tables.
    #[error("the walk's child process had no memory for its tables")]
    NoRoom,
    /// The heap has more references than there is room for.
    #[error("the heap has more references or roots than the walk has room for")]
    TooLarge,
    /// The child ended without an answer.
    #[error("the walk's child process was ended by signal {0}")]
    Killed(i32),
    /// Something else.
    #[error("the walk's child process gave no answer")]
    NoAnswer,
    /// The caller has no more use for it.
    #[error("the walk was cancelled")]
    Cancelled,
    /// JVM TI refused.
    #[error("{0}")]
    JvmTi(#[from] JvmTiError),
}

/// Returns the error that a failure in a child means; `max_time` is the time that it was allowed.
pub(super) fn checked(failure: Failure, detail: u64, max_time: Duration) -> Result<(), WalkError> {
    match failure {
        Failure::None => Ok(()),
        Failure::Layout => Err(WalkError::UnknownLayout),
        Failure::Pieces | Failure::Log | Failure::Roots => Err(WalkError::TooLarge),
        Failure::Tables => Err(WalkError::NoRoom),
        Failure::Panic if detail == 0 => Err(WalkError::NoAnswer),
        Failure::Panic => Err(WalkError::Killed(detail as i32)),
        Failure::Time => Err(WalkError::TooSlow(max_time)),
        Failure::Blocked => Err(WalkError::Blocked),
        Failure::Fork => Err(WalkError::ForkRefused(detail as i32)),
    }
}
