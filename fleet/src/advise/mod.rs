//! `heapwarden advise`: which JVMs of a fleet will be too full, which services should move where,
//! and how certain that is. The data come from Prometheus.
//!
//! `assessment` estimates JVMs and services with `forecast`, `planner` chooses the moves,
//! `limit_moves` keeps the most useful ones if there are too many, `advice` makes one answer of it,
//! and `report` writes the answer. Exit code 0 with an answer, including "nothing to move"; 1 if no
//! JVM has enough data, or Prometheus cannot be read.

mod advice;
#[cfg(test)]
mod agreement;
mod assessment;
mod forecast;
mod limit_moves;
mod planner;
#[cfg(test)]
mod planner_tests;
mod report;
#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::history::{self, Jvm};
use heapwarden_terminal::clock;

use advice::Verdict;
use assessment::{Heaps, Settings};
use report::Format;

/// The arguments of `heapwarden advise`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    history: history::Arguments,

    /// How far ahead to look
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = clock::parse_duration)]
    horizon: Duration,

    /// The share of its maximum heap that a JVM may hold after collections at the horizon
    #[arg(long, value_name = "PERCENT", default_value = "80%", value_parser = policy_config::parse_percent)]
    fill: f64,

    /// Accept a period of less than a day; it must still be at least a seventh of the horizon
    #[arg(long)]
    allow_short: bool,

    /// Advise at most this many moves: those that relieve most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_moves: Option<u64>,

    /// Also move scopes, the tenants that programs name
    #[arg(long)]
    scopes: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// List every JVM and service, including those that the advice is not about
    #[arg(long)]
    all: bool,
}

/// Reads the fleet's period and prints the advice.
///
/// # Errors
/// Only if the output cannot be written; other failures are printed on standard error.
pub fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    if arguments.history.prometheus.prometheus.is_none() {
        eprintln!("heapwarden: nothing to read from: give --prometheus URL");
        return Ok(ExitCode::FAILURE);
    }
    let settings = Settings {
        horizon_seconds: arguments.horizon.as_secs(),
        fill: arguments.fill / 100.0,
        allow_short: arguments.allow_short,
        max_moves: arguments.max_moves.map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        }),
        scopes: arguments.scopes,
    };
    let heaps = Heaps::default();
    let choose = |jvm: &Jvm, span| heaps.excess_bytes(jvm, span, settings);
    let history = match arguments.history.read_fleet(&choose) {
        Ok(history) => history,
        Err(error) => {
            eprintln!("heapwarden: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let advice = advice::advise(&history, settings, &heaps);
    // Standard output writes at every end of a line, and a fleet's JSON has hundreds of thousands.
    let mut out = io::BufWriter::new(io::stdout().lock());
    report::write(&advice, arguments.format, arguments.all, &mut out)?;
    out.flush()?;
    if advice.verdict == Verdict::Refused {
        eprintln!("heapwarden: no advice: no JVM is known well enough; see what is missing above");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
