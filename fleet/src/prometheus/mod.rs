//! A client of Prometheus' HTTP API: instant and range queries, typed and bounded.
//!
//! It knows no metric of Heapwarden: the caller chooses the query and interprets the answer. Every
//! error is one sentence for the user. The client retries nothing, follows no redirect (it would
//! pass the credentials on), and reads no answer beyond a bound.

mod answer;
mod arguments;
mod client;
mod error;
mod span;

pub use answer::Series;
pub use arguments::Arguments;
pub use client::Client;
pub use error::Error;
pub use span::Span;
