//! Harness for tests on real JVMs: one process a case, its flags and its policy declared beside it.
//!
//! A test names a *victim* (a Java program in `tests/java` that knows to the byte what it holds),
//! starts it on every JDK and collector found ([`jdk::every_vm`]), gives it orders over a line
//! protocol ([`jvm::Jvm::ask`]) and compares what the agent publishes ([`scrape`]) with what the
//! victim says. How a sampled estimate is compared with a truth is written in [`stats`].
//!
//! Environment read: `HEAPWARDEN_LIBRARY` (the agent to test; without it `target/release` is built
//! first), `JAVA_HOME` (one more JDK to test), `HEAPWARDEN_TEST_COLLECTORS` (comma list, to narrow a
//! run by hand; what was left out is printed).

pub mod agent;
pub mod command;
pub mod edits;
pub mod examples;
pub mod grafana;
pub mod holdings;
pub mod installs;
pub mod java;
pub mod jdk;
pub mod jvm;
pub mod native;
pub mod output;
pub mod prometheus;
pub mod promql;
pub mod recording;
pub mod scrape;
pub mod server;
pub mod stats;
