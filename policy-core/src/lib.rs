//! The part of Heapwarden that knows and decides, without a JVM.
//!
//! The crate has no JVM type and no unsafe code. It asks the JVM through the traits of [`ports`]:
//! the calling thread, the heap, the collector, canaries, the sampler, a clock. Java objects that it
//! must keep are opaque tokens. So the tests play whole histories through the code that runs in the
//! JVM, and loom explores its lock-free parts.
//!
//! Small functions that an allocating thread calls for each frame of its stack are `#[inline]`: the
//! agent is another crate, and calls cost 4 ns a frame there (`cargo xtask bench micro`).
//!
//! * [`sampling`]: what a sample stands for, and how often to sample.
//! * [`ledger`]: what is charged, to whom, until when.
//! * [`identity`]: whose an allocation is, and the names of accounts.
//! * [`enforce`]: limits, the collections that prove what an account holds, and refusals.
//! * [`holdings`]: what accounts hold by class, how old it is and how large.
//! * [`sites`]: where survivors were allocated.
//! * [`leaks`]: which classes of which accounts leak.
//! * [`events`]: how long things took and how often they happened.
//! * [`cohorts`]: what is live by birth, so that two snapshots can be subtracted.
//! * [`instances`]: what a few of the sampled objects stand for.
//! * [`exact`], [`counted_since`], [`live_by_ratio`]: what inserted code counts, and what follows for live bytes.
//! * [`sum_against_heap`]: whether the accounts sum up to more than the heap holds.
//! * [`snapshot`]: one reading of all accounts, as plain data.

#![forbid(unsafe_code)]
// `new` makes what exists once for an agent; a default of it would mean nothing.
#![allow(clippy::new_without_default)]

pub mod charging;
pub mod cohorts;
pub mod core;
pub mod counted_since;
pub mod enforce;
pub mod events;
pub mod exact;
pub mod holdings;
pub mod identity;
pub mod instances;
pub mod interval_control;
pub mod leaks;
pub mod ledger;
pub mod live_by_ratio;
pub mod native_memory;
pub mod peaks;
pub mod ports;
pub mod pressure;
pub mod reading;
pub mod sampling;
pub mod sites;
pub mod snapshot;
pub mod sum_against_heap;
mod sync;
pub mod uncertainty;
pub mod usage;
pub mod wakeup;

pub use crate::core::Core;
