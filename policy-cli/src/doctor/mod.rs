//! `heapwarden doctor PID|ADDRESS`: why accounts are empty, imprecise, or not enforced.
//!
//! [`Inputs`] are gathered once; each check is a pure function of them. The command sends nothing to
//! the JVM but HTTP requests to the agent.
//!
//! Exit codes: 0 nothing but notes; 1 there is an error or a warning; 2 the command line is wrong;
//! 3 the process cannot be inspected.

mod checks;
mod finding;
mod inputs;
mod report;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::process::Process;
use finding::Severity;
use inputs::Inputs;

/// Exit code: the process does not exist, or cannot be inspected.
const NOT_INSPECTED: u8 = 3;

/// The arguments of `heapwarden doctor`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 nothing but notes; 1 there is an error or a warning; 2 the command line is wrong;
3 the process cannot be inspected.")]
pub(crate) struct Arguments {
    /// A JVM's process id (a plain number), or where its agent listens: host:port, or its run file
    #[arg(value_name = "PID|ADDRESS")]
    target: String,

    /// The policy file to compare with the policy in force; the default is the one that the JVM was
    /// started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Examines one JVM.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let config = arguments.config.as_deref();
    // A path in a container cannot be completed with our working folder.
    let inputs = match arguments.target.parse::<u32>() {
        Ok(pid) => match Process::find(pid) {
            Ok(process) => Inputs::of_process(&process, config),
            Err(error) => {
                writeln!(io::stderr(), "heapwarden: {error}")?;
                return Ok(ExitCode::from(NOT_INSPECTED));
            }
        },
        Err(_) => Inputs::of_address(&arguments.target, config),
    };
    let findings = checks::run(&inputs);
    let mut out = io::stdout().lock();
    if arguments.json {
        report::json(&inputs, &findings, &mut out)?;
    } else {
        report::text(&inputs, &findings, &mut out)?;
    }
    out.flush()?;
    let is_well = findings
        .iter()
        .all(|finding| finding.severity == Severity::Note);
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
