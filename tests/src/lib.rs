//! Harness for tests on real JVMs: one process a case, its flags and its policy declared beside it.
//!
//! A test names a *victim* (a Java program in `tests/java` that knows to the byte what it holds),
//! starts it on every JDK and collector found ([`jdk::every_vm`]), gives it orders over a line
//! protocol ([`jvm::Jvm::ask`]) and compares what the agent publishes ([`scrape`]) with what the
//! victim says. How a sampled estimate is compared with a truth is written in [`stats`].
//!
//! Environment read: `HEAPWARDEN_LIBRARY` (the agent to test; without it `target/release` is built
//! first), `JAVA_HOME` (one more JDK to test), `HEAPWARDEN_TEST_COLLECTORS` and
//! `HEAPWARDEN_TEST_JDKS` (comma lists such as `G1,Z` and `17,25`, to narrow a run by hand; what is left
//! out is printed), `HEAPWARDEN_TEST_LONG` (set by `cargo xtask test --long`), `HEAPWARDEN_TEST_CPU_BUDGET` (such as
//! `0.01%`: the budget of policies that name none, to find tests that need a fast machine).

pub mod application;
pub mod artifacts;
pub mod browser;
pub mod cgroup;
pub mod command;
pub mod door_client;
pub mod doorless;
pub mod examples;
pub mod fetched;
pub mod fixture;
pub mod grafana;
pub mod java;
pub mod jdk;
pub mod jvm;
pub mod jvm_output;
pub mod libraries;
pub mod maven;
pub mod native;
pub mod other_agent;
pub mod plugins;
pub mod policy_edits;
pub mod pprof;
pub mod prometheus;
pub mod promql;
pub mod raw_http;
pub mod recorded_fleet;
pub mod scrape;
pub mod server;
pub mod server_libraries;
pub mod server_setup;
pub mod simulated_fleet;
pub mod stats;
pub mod truth;
pub mod walks;
