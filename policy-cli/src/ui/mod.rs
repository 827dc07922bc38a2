//! `heapwarden ui [ADDRESS|FILE...]`: the page for several JVMs and snapshots, or for a fleet by what Prometheus has
//! recorded (`--prometheus URL`), served on loopback;
//! `heapwarden report ADDRESS|FILE -o FILE`: the page of one of them in a file that needs no server.
//!
//! Both have the page's files in them, so they show JVMs whose agent is older than the page.

mod fleet;
mod report;
mod server;
mod sources;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use clap::Args;

pub(crate) use report::{Arguments as ReportArguments, run as run_report};
use sources::Sources;

/// The arguments of `heapwarden ui`.
#[derive(Args)]
#[command(after_help = "\
The page is read-only, and served to this machine alone until the command is ended (Ctrl-C).

With --prometheus and without addresses, the page shows the fleet: accounts over all JVMs and of each, with their
history. Classes and stacks are not in Prometheus; heapwarden ui ADDRESS shows them.

Exit codes: 1 a file is no snapshot, an address is none, Prometheus does not answer, or the port is taken; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where agents listen (host:port, a port, http://host:port/, or a run file), and snapshots as the agent
    /// or heapwarden snapshot writes them [default: all JVMs of this machine that run the agent]
    #[arg(value_name = "ADDRESS|FILE")]
    sources: Vec<String>,

    /// Without addresses and files: the fleet that Prometheus has recorded
    #[command(flatten)]
    history: heapwarden_fleet::history::Arguments,

    /// The port on 127.0.0.1 to serve at; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Serves until the process is ended.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let sources = match Sources::all(&arguments.sources, &arguments.history) {
        Ok(sources) => sources,
        Err(error) => {
            writeln!(io::stderr(), "heapwarden: {error}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = match bound.and_then(|bound| Ok((bound.local_addr()?, bound))) {
        Ok((address, bound)) => {
            let mut out = io::stdout().lock();
            writeln!(out, "http://{address}/")?;
            out.flush()?;
            bound
        }
        Err(error) => {
            let port = arguments.port;
            writeln!(
                io::stderr(),
                "heapwarden: 127.0.0.1:{port} cannot be served at: {error}"
            )?;
            return Ok(ExitCode::FAILURE);
        }
    };
    server::serve(&listener, &sources);
    Ok(ExitCode::SUCCESS)
}
