//! `heapwarden completions`: what a shell needs to complete the command's line.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// The arguments of `heapwarden completions`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completions of `command`.
///
/// # Errors
/// Only if the output cannot be written.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> io::Result<ExitCode> {
    let name = command.get_name().to_owned();
    // The generator panics where it cannot write, and a pipe may be closed.
    let mut text = Vec::new();
    generate(arguments.shell, &mut command, name, &mut text);
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
