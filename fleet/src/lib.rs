//! The fleet's commands: what many JVMs had over a time, as Prometheus has recorded it or their agents tell. Which service
//! should move, which limits fit, and whom a policy would have refused.

pub mod advise;
pub mod history;
mod policy;
pub mod prometheus;
pub mod replay;
pub mod suggest;
