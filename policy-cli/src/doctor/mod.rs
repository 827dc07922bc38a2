//! `heapwarden doctor PID|ADDRESS`: why accounts are empty, vague, or not enforced.
//!
//! What there is to see is gathered once into a [`Picture`]; each finding is a pure function of
//! it. Nothing is sent to the JVM but requests to the agent's own listener.
//!
//! Exit codes: 0 nothing but notes; 1 there is an error or a warning; 2 the command line is wrong;
//! 3 the process cannot be looked at.

mod finding;
mod findings;
mod metrics;
mod picture;
mod report;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::process::Process;
use finding::Severity;
use picture::Picture;

/// Exit code: the process is not there, or not to be looked at.
const NOT_SEEN: u8 = 3;

/// The arguments of `heapwarden doctor`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 nothing but notes; 1 there is an error or a warning; 2 the command line is wrong;
3 the process cannot be looked at.")]
pub(crate) struct Arguments {
    /// A JVM's process id (a plain number), or where its agent listens: host:port, or its run file
    #[arg(value_name = "PID|ADDRESS")]
    target: String,

    /// The policy file to compare with what is in force; found by itself where the JVM was started
    /// with it
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
    // A path of a container is not completed by our working folder.
    let picture = match arguments.target.parse::<u32>() {
        Ok(pid) => match Process::find(pid) {
            Ok(process) => Picture::of_process(&process, config),
            Err(error) => {
                writeln!(io::stderr(), "heapwarden: {error}")?;
                return Ok(ExitCode::from(NOT_SEEN));
            }
        },
        Err(_) => Picture::of_address(&arguments.target, config),
    };
    let findings = findings::all(&picture);
    let mut out = io::stdout().lock();
    if arguments.json {
        report::json(&picture, &findings, &mut out)?;
    } else {
        report::text(&picture, &findings, &mut out)?;
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
