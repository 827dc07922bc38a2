//! `heapwarden status [ADDRESS...]`: prints the accounts of running JVMs once. Without an address: of all
//! JVMs of this machine that run the agent, with a table of them. Exit code 0 if all could be read, and
//! there is one; else 1.

mod classes;
mod jvm_table;
mod lines;
mod listing;
mod places;
mod report;
mod routes;
mod sites;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::targets::{self, Targets};
use heapwarden_client::live::{Address, Classes, Client};

pub(crate) use lines::{heap_line, jvm_line, live_line, remarks};

/// The arguments of `heapwarden status`.
#[derive(Args)]
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

    /// Print where errors were thrown in each account, or would have been in mode `observe`, and the lines of
    /// policy that would spare background threads; the JSON has them always
    #[arg(long)]
    places: bool,

    /// Print what begins the work of each account, such as the requests to a path: its calls, those turned away, and
    /// what a call allocates, keeps and holds at most
    #[arg(long, conflicts_with_all = ["places", "classes"])]
    routes: bool,

    /// Print what each account holds by class: live, freed and allocated objects and bytes with their sums
    #[arg(long, conflicts_with = "places")]
    classes: bool,

    /// With --classes: also how old and how large what is live is
    #[arg(long, requires = "classes")]
    ages: bool,

    /// With --classes: this account only
    #[arg(long, value_name = "NAME", requires = "classes")]
    account: Option<String>,

    /// Print where the survivors of this account were allocated: of leak suspects, and of accounts that the
    /// policy names (`[leaks] sites`)
    #[arg(long, value_name = "ACCOUNT", conflicts_with_all = ["places", "routes", "classes", "all_classes"])]
    sites: Option<String>,

    /// With all classes of each account, in the JSON
    #[arg(long, requires = "json")]
    all_classes: bool,
}

/// Reads every JVM, even if some cannot be read.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let client = Client::new();
    let targets = Targets::find(&client, &arguments.addresses);
    if let Some(account) = &arguments.sites {
        return sites::run(&client, &targets, account, arguments.json);
    }
    let classes = if arguments.all_classes || arguments.classes {
        Classes::All
    } else {
        Classes::Top
    };
    let found = targets.ask(&client, |address| client.answer(address, classes));
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    if arguments.json {
        targets::write_json(&found, &mut out)?;
    } else {
        if targets.is_local() && !found.is_empty() {
            jvm_table::write(&found, &mut out)?;
            writeln!(out)?;
        }
        if arguments.classes {
            let choice = classes::Choice {
                account: arguments.account.as_deref(),
                ages: arguments.ages,
            };
            classes::write(&found, choice, &mut out, &mut err)?;
        } else if arguments.routes {
            routes::write(&found, &mut out, &mut err)?;
        } else if arguments.places {
            places::write(&found, &mut out, &mut err)?;
        } else {
            report::write(&found, &mut out, &mut err)?;
        }
    }
    out.flush()?;
    if let Some(remark) = targets.remark() {
        writeln!(err, "heapwarden: {remark}")?;
    }
    let all = found.iter().all(|one| one.answer.is_ok());
    Ok(if all && !found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
