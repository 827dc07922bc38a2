//! `heapwarden replay POLICY`: which accounts the limits of a policy would have refused in an
//! observed period, when, and for how long. Exit code 0 if none, 3 if any, 1 if the period cannot
//! be read.
//!
//! `episodes.rs` applies the agent's rules to the record, whatever the mode of the policy. The record
//! does not show peaks between two scrapes, single objects larger than a whole limit, and whether an
//! account over its limit allocated at a place where a throw is safe. Recorded live bytes include
//! garbage in old memory; before a refusal, the agent would have asked for a collection of all
//! memory. So replay reports too many refusals rather than too few. A refused service behaves
//! differently from then on, so the first refusal is the most certain.

mod episodes;
mod report;
mod trial;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::history::Source;
use crate::policy;

use trial::Trial;

/// Exit code: an account would have been refused.
const REFUSED: u8 = 3;

/// The arguments of `heapwarden replay`.
#[derive(Args)]
pub struct Arguments {
    /// The policy with the limits to try
    #[arg(value_name = "POLICY")]
    policy: PathBuf,

    #[command(flatten)]
    source: Source,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Replays a period under a policy.
///
/// # Errors
/// Only if the output cannot be written; other failures are printed on standard error.
pub fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let policy = match policy::read(&arguments.policy) {
        Ok((policy, _)) => policy,
        Err(error) => return failed(&error),
    };
    let history = match arguments.source.read() {
        Ok(history) => history,
        Err(error) => return failed(&error),
    };
    for note in &history.notes {
        eprintln!("heapwarden: note: {note}");
    }
    let trial = Trial::of(&policy, &history);
    if arguments.json {
        report::json(&trial, &history, &mut out)?;
    } else {
        report::table(&trial, &history, &mut out)?;
    }
    out.flush()?;
    Ok(if trial.refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(REFUSED)
    })
}

fn failed(error: &dyn std::error::Error) -> io::Result<ExitCode> {
    eprintln!("heapwarden: {error}");
    Ok(ExitCode::FAILURE)
}
