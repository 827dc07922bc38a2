//! `heapwarden leaks [ADDRESS...]`: what leaks in running JVMs. Without an address: in all JVMs of this machine
//! that run the agent. Exit code 3 where there are suspects; else 0 if all could be read, and there is one;
//! else 1.

mod report;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::targets::{self, Targets};
use heapwarden_client::live::{Address, Client, Leaks};

pub(crate) use words::{at_least, forecast, why};

/// Exit code: there are suspects.
const SUSPECTS: u8 = 3;

/// The arguments of `heapwarden leaks`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 3 there are suspects; 0 there are none, or there is no verdict yet; 1 a JVM could not be read, or
there is none; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where agents listen: host:port, a port of this machine, http://host:port/, or an agent's
    /// run file (a path with a slash or ending in .json) [default: all JVMs of this machine that
    /// run the agent]
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<Address>,

    /// Print JSON: for each JVM an object with `address`, `pid`, `reachable`, `error`, `not_ready`
    /// and `answer`, the agent's own
    #[arg(long)]
    json: bool,
}

/// The result of reading one JVM.
type Asked = targets::Asked<Leaks>;

/// Reads every JVM, even if some cannot be read.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let client = Client::new();
    let targets = Targets::find(&client, &arguments.addresses);
    let found = targets.ask(&client, |address| client.leaks(address));
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    if arguments.json {
        targets::write_json(&found, &mut out)?;
    } else {
        report::write(&found, &mut out, &mut err)?;
    }
    out.flush()?;
    if let Some(remark) = targets.remark() {
        writeln!(err, "heapwarden: {remark}")?;
    }
    Ok(exit_code(&found))
}

fn exit_code(found: &[Asked]) -> ExitCode {
    let has_suspects = |one: &Asked| {
        let answer = one.answer.as_ref();
        answer.is_ok_and(|answer| !answer.document.suspects.is_empty())
    };
    if found.iter().any(has_suspects) {
        ExitCode::from(SUSPECTS)
    } else if found.is_empty() || found.iter().any(|one| one.answer.is_err()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
