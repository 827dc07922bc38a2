//! Code that the tests, the benchmarks and `cargo xtask` share: where things are in the repository, the JDKs of this
//! machine, an HTTP client, free ports, child processes that end, what `/proc` says of them, Python environments, run files, stub servers, and a busy machine.

pub mod busy;
pub mod http;
pub mod jdk;
pub mod ports;
pub mod proc_files;
pub mod process;
pub mod python;
pub mod repository;
pub mod run_file;
pub mod stub_server;
