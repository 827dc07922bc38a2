//! The enforcer's side of the JVM: its thread, and the collector as it is seen and asked from outside.

pub(crate) mod collector;
pub(crate) mod thread;
