//! Asks the agents of running JVMs: over HTTP, bounded in bytes and time. And what its other users need to ask servers
//! that are no agents.

pub mod http;
pub mod live;
pub mod server_address;
