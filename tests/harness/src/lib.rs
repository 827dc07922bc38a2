//! What the tests, the benchmarks and `cargo xtask` share: where things are in the repository, the
//! JDKs of this machine, an HTTP client, free ports, and child processes that end.

pub mod http;
pub mod jdk;
pub mod ports;
pub mod process;
pub mod repository;
