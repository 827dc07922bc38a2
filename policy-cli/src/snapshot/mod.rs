//! `heapwarden snapshot ADDRESS|PID -o FILE`: takes a snapshot now.
//!
//! Exit codes: 0 done; 1 there is no snapshot; 2 the command line is wrong.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::diff::source::plain;
use crate::process::target;
use heapwarden_client::live::Client;

/// The arguments of `heapwarden snapshot`.
#[derive(Args)]
#[command(after_help = "\
The file is gzip, unless its name ends in .json or the output is -. A file that is there is replaced once
the new one is complete.

Exit codes: 0 done; 1 there is no snapshot; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where the agent listens: host:port, a port, http://host:port/ or its run file; or the process id of
    /// a JVM on this machine
    #[arg(value_name = "ADDRESS|PID")]
    target: String,

    /// The file to write, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Takes a snapshot.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    match take(arguments) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failure::Told(text)) => {
            writeln!(io::stderr(), "heapwarden: {text}")?;
            Ok(ExitCode::FAILURE)
        }
        Err(Failure::Output(error)) => Err(error),
    }
}

enum Failure {
    Told(String),
    Output(io::Error),
}

fn take(arguments: &Arguments) -> Result<(), Failure> {
    let address = target(&arguments.target).map_err(Failure::Told)?;
    let gzip = Client::new().snapshot(&address);
    let gzip = gzip.map_err(|error| Failure::Told(error.to_string()))?;
    let output = &arguments.output;
    let is_standard = output == Path::new("-");
    let is_plain = is_standard || output.extension().is_some_and(|end| end == "json");
    let text = plain(&gzip, "the answer").map_err(|error| Failure::Told(error.to_string()))?;
    let bytes = if is_plain { text } else { gzip };
    if is_standard {
        let mut out = io::stdout().lock();
        let written = out.write_all(&bytes).and_then(|()| out.flush());
        return written.map_err(Failure::Output);
    }
    heapwarden_terminal::output::replace(output, &bytes)
        .map_err(|error| Failure::Told(format!("{} cannot be written: {error}", output.display())))
}
