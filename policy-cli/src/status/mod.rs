//! `heapwarden status [ADDRESS...]`: prints the accounts of running JVMs once. Exit code 0 if all
//! could be read, else 1.

mod json;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use clap::Args;

use crate::live::{Accounts, Address, Classes, Client, LiveError};

pub(crate) use report::{heap_line, live_line, remarks};

/// Most JVMs that are read at the same time.
const MAX_AT_A_TIME: usize = 32;

/// The arguments of `heapwarden status`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where agents listen: host:port, a port of this machine, http://host:port/, or an agent's
    /// run file (a path with a slash or ending in .json) [default: 127.0.0.1:9464]
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<Address>,

    /// Print JSON: for each address an object with `address`, `reachable`, `error`, `not_ready`
    /// and `answer`, the agent's own
    #[arg(long)]
    json: bool,

    /// With all classes of each account, in the JSON
    #[arg(long, requires = "json")]
    all_classes: bool,
}

/// The result of reading one JVM.
struct Asked<'a> {
    address: &'a Address,
    answer: Result<Answer, LiveError>,
}

/// The answer of one JVM.
struct Answer {
    accounts: Accounts,
    /// The agent's JSON, unchanged.
    document: Vec<u8>,
    not_ready: Option<String>,
}

/// Reads every JVM, even if some cannot be read.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let default = [Address::default()];
    let addresses = if arguments.addresses.is_empty() {
        &default[..]
    } else {
        &arguments.addresses
    };
    let classes = if arguments.all_classes {
        Classes::All
    } else {
        Classes::Top
    };
    let client = Client::new();
    let mut found = Vec::with_capacity(addresses.len());
    for some in addresses.chunks(MAX_AT_A_TIME) {
        found.extend(ask(&client, some, classes));
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        json::write(&found, &mut out)?;
    } else {
        report::write(&found, &mut out, &mut io::stderr().lock())?;
    }
    out.flush()?;
    let all = found.iter().all(|one| one.answer.is_ok());
    Ok(if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads some JVMs at the same time, so that those that do not answer share one timeout.
fn ask<'a>(client: &Client, addresses: &'a [Address], classes: Classes) -> Vec<Asked<'a>> {
    let ask = |address: &'a Address| Asked {
        address,
        answer: client
            .answer(address, classes)
            .map(|(accounts, document)| Answer {
                accounts,
                document,
                not_ready: client.not_ready(address),
            }),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = addresses
            .iter()
            .map(|address| (address, scope.spawn(move || ask(address))))
            .collect();
        let joined = threads.into_iter().map(|(address, thread)| {
            thread.join().unwrap_or_else(|_| Asked {
                address,
                answer: Err(LiveError::Broken {
                    listener: address.to_string(),
                    reason: "this command failed on its answer".into(),
                }),
            })
        });
        joined.collect()
    })
}
