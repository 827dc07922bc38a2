//! `cargo xtask bench`: the bench program, built for release, with its arguments passed on.

use std::process::Command;

use anyhow::Result;
use clap::Args;
use heapwarden_harness::repository;

use crate::process;

/// The arguments for the bench program.
#[derive(Args)]
pub(crate) struct Options {
    /// The benchmark and its own options, such as `micro`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the agent and runs the benchmark beside it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let cargo = || {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(repository::root());
        command
    };
    process::run(cargo().args(["build", "--release"]), None)?;
    process::run(
        cargo()
            .args(["run", "--release", "--package", "heapwarden-bench", "--"])
            .args(&options.arguments),
        None,
    )
}
