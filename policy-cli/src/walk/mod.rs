//! `heapwarden paths PID` and `heapwarden holders PID`: who keeps memory alive; `heapwarden instances PID`: single
//! objects. Asked of the agent through HotSpot's attach protocol.
//!
//! Exit codes: 0 answered; 1 no answer, and why; 2 the command line is wrong; 3 nothing was found that
//! keeps the objects alive (`paths`). If nothing was found because not all of the heap was walked, it is 1.

mod channel;
mod holders_table;
mod instances_table;
mod paths_text;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use policy_report::{InstancesRequest, WalkReply, WalkRequest};

use crate::process::printable;
use heapwarden_terminal::json_line;

/// Exit code: no chain was found.
const NOTHING_FOUND: u8 = 3;

/// The arguments that both commands take.
#[derive(Args)]
struct Common {
    /// The JVM's process id
    pid: u32,

    /// Print JSON, as the agent gives it
    #[arg(long)]
    json: bool,

    /// The longest pause of the JVM that is allowed for a fork
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = humantime::parse_duration)]
    max_pause: Duration,

    /// If a fork is not possible: walk in place, and stop the JVM for at most this long at a time
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    in_place: Option<Duration>,
}

impl Common {
    fn request(&self, question: &'static str) -> WalkRequest<'static> {
        WalkRequest {
            question: question.into(),
            max_pause_ms: Some(milliseconds(self.max_pause)),
            in_place_ms: self.in_place.map(milliseconds),
            ..WalkRequest::default()
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The arguments of `heapwarden paths`.
#[derive(Args)]
#[command(after_help = "\
Without --account, --class and --retired it looks for what is suspected to leak.

Exit codes: 0 answered; 1 no answer (the message says why), or nothing found in the part of the heap that
was walked; 2 the command line is wrong; 3 nothing keeps the objects alive: they are garbage that no
collection has found yet, or weakly held.")]
pub(crate) struct PathsArguments {
    #[command(flatten)]
    common: Common,

    /// Only objects of this account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,

    /// Only objects of this class, as in com.acme.Cart$Item or byte[]
    #[arg(long, value_name = "NAME", conflicts_with = "retired")]
    class: Option<String>,

    /// Find what holds the class loaders of undeployed services
    #[arg(long)]
    retired: bool,
}

/// The arguments of `heapwarden holders`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 answered; 1 no answer (the message says why); 2 the command line is wrong.")]
pub(crate) struct HoldersArguments {
    #[command(flatten)]
    common: Common,
}

/// The arguments of `heapwarden instances`.
#[derive(Args)]
#[command(after_help = "\
Without --largest, --elements, --oldest, --equal and --wasted it prints all five tables. Values are masked,
unless the policy has [privacy] values = true.

Exit codes: 0 answered; 1 no answer (the message says why); 2 the command line is wrong.")]
pub(crate) struct InstancesArguments {
    /// The JVM's process id
    pid: u32,

    /// The sampled objects of this account
    #[arg(long, value_name = "NAME")]
    account: String,

    /// Only objects of this class, as in java.lang.String or byte[]
    #[arg(long, value_name = "NAME")]
    class: Option<String>,

    /// The largest objects, by their own bytes
    #[arg(long)]
    largest: bool,

    /// Arrays, collections and strings with the most elements
    #[arg(long)]
    elements: bool,

    /// The oldest objects
    #[arg(long)]
    oldest: bool,

    /// The values that most objects have
    #[arg(long)]
    equal: bool,

    /// The classes that waste the most capacity
    #[arg(long)]
    wasted: bool,

    /// The rows of each table
    #[arg(long, value_name = "ROWS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,

    /// Stop after a search of the JVM's table that took longer
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = humantime::parse_duration)]
    max_pause: Duration,

    /// Print JSON, as the agent gives it
    #[arg(long)]
    json: bool,
}

/// Prints single objects.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run_instances(arguments: &InstancesArguments) -> io::Result<ExitCode> {
    let request = WalkRequest {
        question: "instances".into(),
        account: Some(arguments.account.as_str().into()),
        class: arguments.class.as_deref().map(Into::into),
        max_pause_ms: Some(milliseconds(arguments.max_pause)),
        instances: Some(InstancesRequest {
            largest: arguments.largest,
            elements: arguments.elements,
            oldest: arguments.oldest,
            equal: arguments.equal,
            wasted: arguments.wasted,
            limit: Some(arguments.limit),
        }),
        ..WalkRequest::default()
    };
    run(arguments.pid, &request, |reply, out| {
        let Some(found) = &reply.instances else {
            return Ok(None);
        };
        match arguments.json {
            true => json_line::write(found, out)?,
            false => instances_table::write(found, out)?,
        }
        Ok(Some(ExitCode::SUCCESS))
    })
}

/// Prints the chains that keep objects alive.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run_paths(arguments: &PathsArguments) -> io::Result<ExitCode> {
    let request = WalkRequest {
        account: arguments.account.as_deref().map(Into::into),
        class: arguments.class.as_deref().map(Into::into),
        retired: arguments.retired,
        ..arguments.common.request("paths")
    };
    run(arguments.common.pid, &request, |reply, out| {
        let Some(paths) = &reply.paths else {
            return Ok(None);
        };
        match arguments.common.json {
            true => json_line::write(paths, out)?,
            false => paths_text::write(paths, out)?,
        }
        Ok(Some(match (paths.paths.is_empty(), paths.undecided) {
            (false, _) => ExitCode::SUCCESS,
            (true, 0) => ExitCode::from(NOTHING_FOUND),
            (true, _) => ExitCode::FAILURE,
        }))
    })
}

/// Prints who holds what whom.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run_holders(arguments: &HoldersArguments) -> io::Result<ExitCode> {
    let request = arguments.common.request("holders");
    run(arguments.common.pid, &request, |reply, out| {
        let Some(holders) = &reply.holders else {
            return Ok(None);
        };
        match arguments.common.json {
            true => json_line::write(holders, out)?,
            false => holders_table::write(holders, out)?,
        }
        Ok(Some(ExitCode::SUCCESS))
    })
}

fn run(
    pid: u32,
    request: &WalkRequest<'_>,
    print: impl FnOnce(&WalkReply<'_>, &mut dyn Write) -> io::Result<Option<ExitCode>>,
) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let why = match channel::ask(pid, request) {
        Ok(WalkReply {
            error: Some(why), ..
        }) => printable(&why),
        Ok(reply) => {
            let done = print(&reply, &mut out)?;
            out.flush()?;
            match done {
                Some(code) => return Ok(code),
                None => "the agent's answer is not to this question".to_owned(),
            }
        }
        Err(error) => error.to_string(),
    };
    writeln!(io::stderr(), "heapwarden: {why}")?;
    Ok(ExitCode::FAILURE)
}
