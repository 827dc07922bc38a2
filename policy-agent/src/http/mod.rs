//! The read-only HTTP listener: metrics, accounts, health, and the page.
//!
//! One thread, `heapwarden-http`, serves all clients. It multiplexes a fixed number of connections with
//! `poll(2)`, so that a slow client delays nobody and stopping is immediate. It runs in the process of the
//! application, so [`Limits`] bounds every resource that a client can hold.
//!
//! Invariants: it answers only GET and HEAD. It sends one response on each connection and closes it (no
//! pipelining, no request smuggling). A request takes at most one reading; snapshots and their files are made and read by
//! another thread, and so are profiles; few connections wait for it at a time. It takes one reading more each half minute, for what
//! the page shows of the last hour. A panic in a handler turns
//! that response into a 500 and has no other effect.
//!
//! It has no TLS and no authentication, and compresses the snapshot alone. It binds loopback by default; if you bind it
//! elsewhere, put a proxy or a network policy before it. Clients that open connections without a limit
//! can keep others waiting.

mod accept;
mod connection;
mod date;
mod host;
mod limits;
mod listener;
#[cfg(any(test, fuzzing))]
pub mod oracle;
mod page;
mod request;
mod response;
pub mod retry;
mod routes;
mod server;

#[cfg(test)]
mod tests;

pub use host::HostPolicy;
pub use limits::Limits;
pub use request::{Method, Reject, Request, parse};
pub use response::{Caching, Response};
pub use routes::Routes;
pub use server::{Config, Handle, Server};
