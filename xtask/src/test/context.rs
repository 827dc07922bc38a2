//! The context of the steps.

use std::process::Command;
use std::time::Instant;

use heapwarden_harness::repository;

use crate::tools::Jdk;

/// The JDKs, the deadline and the choices that the steps share.
pub(super) struct Context {
    pub(super) jdks: Vec<Jdk>,
    pub(super) long: bool,
    pub(super) deadline: Instant,
    /// The names of all steps.
    pub(super) steps: Vec<&'static str>,
}

/// Cargo, in the workspace.
pub(super) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(repository::root());
    command
}
