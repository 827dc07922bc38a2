//! A client of Prometheus' HTTP API: instant and range queries, typed and bounded.
//!
//! It knows no metric of Heapwarden; what is asked for and what an answer means is up to
//! the caller. Every error is one sentence for the user. Nothing is retried, no redirect is
//! followed (credentials would go along), and no answer is read beyond a bound.

mod address;
mod answer;
mod arguments;
mod client;
mod error;
mod span;

pub(crate) use address::Address;
pub(crate) use answer::Series;
pub(crate) use arguments::Arguments;
pub(crate) use client::Client;
pub(crate) use error::Error;
pub(crate) use span::Span;
