//! The one switch between the atomics of the standard library and those of `loom`.
//!
//! Every module that is model-checked takes its atomics and locks from here, so that
//! `RUSTFLAGS="--cfg loom"` replaces all of them and nothing else changes.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering},
};

/// The capacity of a table: few places under loom, which tracks each of them.
pub(crate) const fn places(real: u32) -> u32 {
    if cfg!(loom) { 8 } else { real }
}
