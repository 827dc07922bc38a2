//! `heapwarden top [ADDRESS...]`: the accounts of running JVMs, refreshed continuously; drawn if
//! standard output is a terminal, else plain text.
//!
//! [`poller`] reads the JVMs and [`terminal`] the keys; both go into [`model`], which is pure, and
//! [`view`] draws it.

mod model;
mod plain;
mod poller;
mod terminal;
mod view;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::process::LocalAgents;
use heapwarden_client::live::Address;
use model::Model;
use poller::Pollers;
use view::Palette;

/// Most JVMs: each has a thread.
const MAX_JVMS: usize = 64;
/// Shortest interval in seconds: an agent takes a new reading every quarter of a second.
const MIN_INTERVAL: f64 = 0.25;
/// Longest interval in seconds.
const MAX_INTERVAL: f64 = 3600.0;

/// The arguments of `heapwarden top`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where agents listen: host:port, a port of this machine, http://host:port/, or an agent's
    /// run file (a path with a slash or ending in .json) [default: all JVMs of this machine that
    /// run the agent, or 127.0.0.1:9464 if there is none]
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<Address>,

    /// Seconds between two readings of a JVM
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = interval)]
    interval: Duration,

    /// Print this many tables as plain text
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
}

/// Shows the accounts until the user, a signal or `--iterations` ends it.
///
/// # Errors
/// Output that cannot be written; JVMs that cannot be read are shown as such.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let mut addresses = arguments.addresses.clone();
    if addresses.is_empty() {
        let local = LocalAgents::find().found.into_iter();
        addresses.extend(local.filter_map(|one| one.address?.to_string().parse().ok()));
        addresses.truncate(MAX_JVMS);
    }
    if addresses.is_empty() {
        addresses.push(Address::default());
    }
    if addresses.len() > MAX_JVMS {
        eprintln!("heapwarden: top shows at most {MAX_JVMS} JVMs at a time");
        return Ok(ExitCode::FAILURE);
    }
    let mut model = Model::new(addresses.iter().map(Address::to_string));
    let pollers = Pollers::start(&addresses, arguments.interval)?;
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if arguments.iterations.is_none() && io::stdout().is_terminal() && !is_dumb {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        return terminal::run(&mut model, &pollers, Palette::new(!no_color));
    }
    plain::run(
        &mut model,
        &pollers,
        arguments.interval,
        arguments.iterations,
        &mut io::stdout().lock(),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (MIN_INTERVAL..=MAX_INTERVAL).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "must be a number of seconds from {MIN_INTERVAL} to {MAX_INTERVAL}"
        )),
    }
}
