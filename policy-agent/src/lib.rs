//! Heapwarden's native agent: an account of heap bytes for every service inside one JVM.
//!
//! `ARCHITECTURE.md` shows the rooms and the way of an allocation through them. What is decided, is
//! decided in `policy-core`; here it meets the JVM, the policy file and HTTP. The library exports the
//! JVM's agent entry points and, to Rust, the parts that tests, benchmarks and fuzz targets use
//! without a JVM.

#![deny(unsafe_code)]

mod allocation;
mod api;
mod capabilities;
mod cost;
mod door;
mod enforcer;
mod entry;
mod exact;
mod ground;
mod holdings_thread;
pub mod http;
mod inserted;
mod instances;
mod jvm;
mod log;
mod naming;
mod native_memory;
pub mod options;
pub mod policy;
mod process;
mod references;
pub mod report;
mod rounds;
mod run_file;
mod servers;
mod snapshots;
mod thread_census;
mod threads;
mod uncaught;
mod walks;

use policy_core::{
    enforce, events, identity, interval_control, ledger, ports, pressure, reading, sampling, sites,
    wakeup,
};
