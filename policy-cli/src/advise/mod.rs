//! `heapwarden advise`: over a fleet, from Prometheus: which JVMs will be too full, which
//! services should move where, and how sure that is.
//!
//! `assessment` judges JVMs and services by `forecast`, `planner` chooses the moves, `shortlist`
//! cuts them down where they are too many, `advice` puts all into one answer, `report` writes it. Exit code 0 with an answer, also "nothing to
//! move"; 1 where no JVM is known well enough, or Prometheus cannot be read.

mod advice;
mod assessment;
mod forecast;
mod planner;
#[cfg(test)]
mod planner_tests;
mod report;
mod shortlist;
#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::clock;
use crate::history;

use advice::Verdict;
use assessment::Terms;
use report::Format;

/// The arguments of `heapwarden advise`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    history: history::Arguments,

    /// How far ahead JVMs are to have room
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = clock::parse_duration)]
    horizon: Duration,

    /// What of its maximum heap a JVM may hold after collections at the horizon
    #[arg(long, value_name = "PERCENT", default_value = "80%", value_parser = policy_config::parse_percent)]
    fill: f64,

    /// Take a period for enough that has not seen a whole day; a seventh of the horizon is
    /// needed all the same
    #[arg(long)]
    allow_short: bool,

    /// Advise so many moves at the most: those of the plan that relieve most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_moves: Option<u64>,

    /// Also move scopes, the tenants that programs name
    #[arg(long)]
    scopes: bool,

    /// How to write the advice
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// List every JVM and service, also those that the advice is not about
    #[arg(long)]
    all: bool,
}

/// Reads the fleet's period and prints the advice.
///
/// # Errors
/// Only where the output cannot be written; what cannot be read is told on standard error.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    if arguments.history.prometheus.prometheus.is_none() {
        eprintln!("heapwarden: nothing to read from: give --prometheus URL");
        return Ok(ExitCode::FAILURE);
    }
    let history = match arguments.history.read() {
        Ok(history) => history,
        Err(error) => {
            eprintln!("heapwarden: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let terms = Terms {
        horizon_seconds: arguments.horizon.as_secs(),
        fill: arguments.fill / 100.0,
        allow_short: arguments.allow_short,
        max_moves: arguments.max_moves.map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        }),
        scopes: arguments.scopes,
    };
    let advice = advice::advise(&history, terms);
    let mut out = io::stdout().lock();
    report::write(&advice, arguments.format, arguments.all, &mut out)?;
    out.flush()?;
    if advice.verdict == Verdict::Refused {
        eprintln!("heapwarden: no advice: no JVM is known well enough; see what is missing above");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
