//! `heapwarden contexts [ADDRESS...]`: what running JVMs allocated, by calling context. Without an address: in all
//! JVMs of this machine that run the agent. Exit code 0 if all could be read, and there is one; else 1.

mod report;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::targets::{self, Targets};
use heapwarden_client::live::{Address, Client, Contexts};

use report::By;

/// The arguments of `heapwarden contexts`.
#[derive(Args)]
#[command(after_help = "\
Contexts are counted of the packages that the policy names: [exact] contexts = [\"com.acme.*\"].

Exit codes: 0 all could be read; 1 a JVM could not be read, or there is none; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where agents listen: host:port, a port of this machine, http://host:port/, or an agent's
    /// run file (a path with a slash or ending in .json) [default: all JVMs of this machine that
    /// run the agent]
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<Address>,

    /// The contexts that are listed of each JVM, those with most objects first
    #[arg(long, value_name = "CONTEXTS", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// The figure in the first column, by which contexts are in order; bytecodes where the policy wants them
    #[arg(long, value_enum, default_value_t = By::Objects)]
    by: By,

    /// Print JSON: for each JVM an object with `address`, `pid`, `reachable`, `error`, `not_ready`
    /// and `answer`, the agent's own, which is whole
    #[arg(long)]
    json: bool,
}

/// Reads every JVM, even if some cannot be read.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let client = Client::new();
    let targets = Targets::find(&client, &arguments.addresses);
    let found: Vec<targets::Asked<Contexts>> =
        targets.ask(&client, |address| client.contexts(address));
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    if arguments.json {
        targets::write_json(&found, &mut out)?;
    } else {
        report::write(
            &found,
            arguments.by,
            arguments.limit as usize,
            &mut out,
            &mut err,
        )?;
    }
    out.flush()?;
    if let Some(remark) = targets.remark() {
        writeln!(err, "heapwarden: {remark}")?;
    }
    let is_read = !found.is_empty() && found.iter().all(|one| one.answer.is_ok());
    Ok(if is_read {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
