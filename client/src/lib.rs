//! Asks the agents of running JVMs: over HTTP, bounded in bytes and time.

pub mod http;
pub mod live;
