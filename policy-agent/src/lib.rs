//! Heapwarden's native agent: an account of heap bytes for every service inside one JVM.
//!
//! `ARCHITECTURE.md` shows the rooms and the way of an allocation through them. The
//! library exports the JVM's agent entry points and, to Rust, the parts that tests,
//! benchmarks and fuzz targets use without a JVM.

#[cfg(not(loom))]
mod agent;
#[cfg(not(loom))]
mod api;
#[cfg(not(loom))]
mod bell;
#[cfg(not(loom))]
mod cost;
#[cfg_attr(
    loom,
    allow(dead_code, reason = "the models use its lock-free parts alone")
)]
mod enforce;
#[cfg(not(loom))]
pub mod http;
#[cfg(not(loom))]
mod identity;
#[cfg(not(loom))]
mod jvm;
pub mod ledger;
#[cfg(loom)]
#[allow(dead_code, reason = "the models use its exchanges alone")]
#[path = "identity/life.rs"]
mod life;
#[cfg(not(loom))]
mod log;
#[cfg(not(loom))]
pub mod options;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
pub mod policy;
#[cfg(not(loom))]
mod published;
#[cfg(not(loom))]
mod reading;
#[cfg(not(loom))]
pub mod report;
pub mod sampling;
mod sync;
#[cfg(not(loom))]
mod threads;
