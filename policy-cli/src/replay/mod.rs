//! `heapwarden replay POLICY`: who would have been refused in an observed period, when, and
//! for how long, under the limits of a policy. Exit code 0 if nobody, 3 if somebody, 1 if it
//! cannot be told.
//!
//! The record is judged as the agent judges (`verdict.rs`), in whatever mode the policy is.
//! What it cannot tell: peaks between two scrapes; single objects larger than a whole limit;
//! whether an account over its limit allocated at all where a throw was safe. Live bytes
//! count garbage in old memory that only a collection of all memory would have found, and the
//! agent would have asked for one before a refusal: so it rather tells of too many. And a
//! service that is refused behaves differently from then on: the first time is the best known.

mod report;
mod verdict;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use policy_config::{Limit, Policy};

use crate::history::{self, History, Jvm, Source};
use crate::policy;

use verdict::Episode;

/// Somebody would have been refused.
const REFUSED: u8 = 3;

/// The arguments of `heapwarden replay`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The policy whose limits are tried
    #[arg(value_name = "POLICY")]
    policy: PathBuf,

    #[command(flatten)]
    source: Source,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Replays a period under a policy.
///
/// # Errors
/// Only where the output cannot be written; what else fails is said on standard error.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
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

/// What came of it.
#[derive(Debug)]
struct Trial<'a> {
    /// Those who would have been refused, by JVM and rule.
    refused: Vec<Refused<'a>>,
    /// Accounts with a limit, those refused included.
    limited: usize,
    /// Accounts without one, or without a rule.
    unlimited: usize,
}

/// An account that would have been refused.
#[derive(Debug)]
struct Refused<'a> {
    jvm: &'a Jvm,
    account: String,
    limit: Limit,
    episodes: Vec<Episode>,
}

impl<'a> Trial<'a> {
    fn of(policy: &Policy, history: &'a History) -> Trial<'a> {
        let mut trial = Trial {
            refused: Vec::new(),
            limited: 0,
            unlimited: 0,
        };
        for jvm in &history.jvms {
            let assigned = history::assign(policy, jvm, history.span.points());
            let parts: usize = assigned.iter().map(|one| one.parts.len()).sum();
            trial.unlimited += jvm.accounts.len() - parts;
            for account in assigned {
                let limit = policy.accounts[account.rule].limit;
                if limit == Limit::None {
                    trial.unlimited += account.parts.len();
                    continue;
                }
                trial.limited += 1;
                let episodes = verdict::episodes(&account, limit, jvm);
                if !episodes.is_empty() {
                    trial.refused.push(Refused {
                        jvm,
                        account: account.name,
                        limit,
                        episodes,
                    });
                }
            }
        }
        trial
    }
}
