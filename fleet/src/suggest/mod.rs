//! `heapwarden suggest`: a policy with limits that are derived from an observed period. The policy
//! goes to standard output or to a file; its comments give the reason for each limit, and for each
//! account without one. Exit code 0, or 1 if the period is not sufficient.

mod demand;
mod document;
mod pool;
mod reasons;
mod revision;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use policy_config::{Policy, parse_percent};

use crate::history::{self, History, Source};
use crate::policy;
use heapwarden_client::live::{Accounts, Address, Classes, Client, places};
use heapwarden_terminal::clock::{self, format_duration};
use heapwarden_terminal::output;
use heapwarden_terminal::printable::fitted;

use demand::Settings;
use pool::Pool;

/// Shortest recorded period from which limits are suggested: load varies over a day.
const SHORTEST_SECONDS: u64 = 86_400;
/// Widest name in a note, in columns.
const MAX_NAME_COLUMNS: usize = 60;

/// The arguments of `heapwarden suggest`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    /// The policy in use: suggest keeps its text and sets the limits of its accounts
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// The quantile of live bytes on which a soft limit is based
    #[arg(long, value_name = "Q", default_value = "0.99", value_parser = quantile)]
    quantile: f64,

    /// How far the limit is above the soft limit
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = headroom)]
    headroom: f64,

    /// How much growth to allow for, in time; at most the length of the period
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = clock::parse_duration)]
    horizon: Duration,

    /// A running JVM of the period, which tells where errors were thrown, or would have been (Prometheus does
    /// not record that): host:port, or its run file; may be repeated. --live reads its own
    #[arg(long, value_name = "ADDRESS")]
    places: Vec<Address>,

    /// Accept a period that is too short, or has too few readings
    #[arg(long)]
    allow_short: bool,

    /// Write to a file instead of standard output; an existing file is replaced atomically
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why nothing is suggested.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error(transparent)]
    History(#[from] history::Error),
    #[error(
        "{source_name} has only {seen} of readings; limits need a day at least, better a week: wait, or give a longer --range, or --allow-short"
    )]
    TooShort { source_name: String, seen: String },
    #[error(
        "no account has enough readings: the quantile {quantile} needs {needed} of one account, and the most are {most}; give a longer --range or --for, a finer --step, a lower --quantile, or --allow-short"
    )]
    TooFew {
        quantile: f64,
        needed: usize,
        most: usize,
    },
    #[error(
        "the suggestion is not a valid policy ({0}); this is a bug in heapwarden, please report it"
    )]
    Invalid(String),
    #[error("cannot write {file}: {why}")]
    Unwritable { file: String, why: String },
}

/// Suggests a policy.
///
/// # Errors
/// Only if the output cannot be written; other failures are printed on standard error.
pub fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let text = match suggest(arguments) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("heapwarden: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let Some(file) = &arguments.output else {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(error) = output::replace(file, &text) {
        let (file, why) = (file.display().to_string(), error.to_string());
        eprintln!("heapwarden: {}", Error::Unwritable { file, why });
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn suggest(arguments: &Arguments) -> Result<String, Error> {
    let policy = arguments.policy.as_deref().map(policy::read).transpose()?;
    let mut history = arguments.source.read()?;
    for address in &arguments.places {
        let accounts = Client::new().accounts(address, Classes::Top);
        add_places(&mut history, &accounts.map_err(history::Error::from)?);
    }
    let settings = Settings {
        quantile: arguments.quantile,
        headroom: arguments.headroom,
        horizon_seconds: arguments.horizon.as_secs(),
        allow_short: arguments.allow_short,
    };
    long_enough(arguments, &history)?;
    let pool = Pool::of(
        &history,
        policy.as_ref().map(|(policy, _)| policy),
        &settings,
    );
    if let Some(most) = pool.only_too_few() {
        return Err(Error::TooFew {
            quantile: settings.quantile,
            needed: settings.needed_readings(),
            most,
        });
    }
    let preamble = reasons::preamble(&history, &pool, &settings, arguments.source.is_live());
    let text = match &policy {
        Some((_, text)) => revision::revise(text, &preamble, &pool, &settings),
        None => document::build(&history, &preamble, &pool, &settings),
    };
    let text = text.map_err(Error::Invalid)?;
    check(&text, policy.as_ref().map(|(policy, _)| policy), &pool).map_err(Error::Invalid)?;
    Ok(text)
}

/// Adds where errors were thrown in a running JVM, or would have been, to its accounts of the period.
fn add_places(history: &mut History, found: &Accounts) {
    for one in &found.accounts {
        let mut recorded = history.jvms.iter_mut().flat_map(|jvm| &mut jvm.accounts);
        let Some(account) = recorded.find(|account| account.name == one.name) else {
            if places::counted(one) > 0 {
                let name = fitted(&one.name, MAX_NAME_COLUMNS);
                (history.notes).push(format!(
                    "the period has no account {name}; its places are left out"
                ));
            }
            continue;
        };
        account.places.extend(one.places.iter().cloned());
        account.places_other = account.places_other.saturating_add(one.places_other);
    }
}

fn long_enough(arguments: &Arguments, history: &History) -> Result<(), Error> {
    let step = history.span.step_seconds();
    let seen = |jvm: &history::Jvm| {
        let steps = (0..history.span.points()).filter(|step| jvm.is_seen(*step));
        steps.count() as u64 * step
    };
    let longest = history.jvms.iter().map(seen).max().unwrap_or(0);
    if arguments.allow_short || arguments.source.is_live() || longest >= SHORTEST_SECONDS {
        return Ok(());
    }
    Err(Error::TooShort {
        source_name: history.source.clone(),
        seen: format_duration(longest),
    })
}

/// Reads again the text that is to be printed: it must be a policy, with the limits that were meant, and with nothing
/// else changed.
fn check(text: &str, before: Option<&Policy>, pool: &Pool) -> Result<(), String> {
    let parsed = policy_config::parse(text);
    let Some(mut policy) = parsed.policy else {
        let first = parsed.diagnostics.iter().find(|one| one.is_error());
        return Err(first.map(|one| one.message.clone()).unwrap_or_default());
    };
    let Some(before) = before else {
        return Ok(());
    };
    for (rule, demand) in pool.rules() {
        let (Some(is), Some(was)) = (policy.accounts.get_mut(rule), before.accounts.get(rule))
        else {
            return Err("an account is missing".into());
        };
        let meant =
            |limit: policy_config::Limit, bytes| limit == policy_config::Limit::Bytes(bytes);
        if !meant(is.limit, demand.limit_bytes) || !meant(is.soft_limit, demand.soft_limit_bytes) {
            return Err(format!("{} has other limits", is.label()));
        }
        (is.limit, is.soft_limit) = (was.limit, was.soft_limit);
    }
    if policy != *before {
        return Err("more than limits has changed".into());
    }
    Ok(())
}

fn quantile(text: &str) -> Result<f64, String> {
    let quantile = text.trim().parse().ok();
    quantile
        .filter(|q| (0.5..=0.9999).contains(q))
        .ok_or_else(|| "a number from 0.5 to 0.9999 is needed, such as 0.99".into())
}

fn headroom(text: &str) -> Result<f64, String> {
    let percent = parse_percent(text.trim())
        .map_err(|_| "a share from above 0% to 100% is needed, such as 25%")?;
    Ok(percent / 100.0)
}

#[cfg(test)]
mod tests;
