//! The read-only HTTP listener: metrics, accounts, health.
//!
//! One thread, `heapwarden-http`, serves everything: it multiplexes a fixed number of
//! connections with `poll(2)`, so that a slow client delays nobody, no thread is made for
//! a client, and stopping is immediate. It lives in somebody else's process, so every
//! resource a client can hold is bounded by [`Limits`].
//!
//! Invariants: only GET and HEAD are answered; one response a connection, then it is
//! closed (no pipelining, nothing to smuggle); at most one snapshot a request; a panic in
//! a handler costs that request a 500 and nothing else.
//!
//! What it does not do: no TLS, no authentication, no compression. It binds loopback by
//! default, and whoever binds it elsewhere puts a proxy or a network policy before it.
//! Clients that may open connections as fast as they like can keep others waiting.

mod accept;
mod connection;
mod date;
mod host;
mod listener;
#[cfg(any(test, fuzzing))]
pub mod oracle;
mod request;
mod response;
pub mod retry;
mod routes;
mod server;

#[cfg(test)]
mod tests;

pub use host::HostPolicy;
pub use request::{Method, Reject, Request, parse};
pub use response::Response;
pub use routes::Routes;
pub use server::{Config, Handle, Limits, Server};
