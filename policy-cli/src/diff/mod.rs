//! `heapwarden diff OLD NEW`: what came and what went between two snapshots, with its error.
//!
//! Exit codes: 0 done; 1 a snapshot cannot be read; 2 the command line is wrong.

mod difference;
mod output;
mod report;
mod sites;
pub(crate) mod source;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use policy_report::Snapshot;

use heapwarden_client::live::Client;
use source::SourceError;

/// The arguments of `heapwarden diff`.
#[derive(Args)]
#[command(after_help = "\
Snapshots are files that the agent writes ([snapshots] in the policy) or that heapwarden snapshot takes,
plain or gzip. Both orders are possible: of one run, the older one is always subtracted from the newer.

Exit codes: 0 done; 1 a snapshot cannot be read; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// The older snapshot: a file
    #[arg(value_name = "OLD")]
    old: String,

    /// The newer snapshot: a file, or where an agent listens (host:port, a port, or its run file)
    #[arg(value_name = "NEW")]
    new: String,

    /// Print all rows, not the thirty most important ones
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    all: bool,

    /// Also print by when the objects were born
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    ages: bool,

    /// Print one JSON document with everything
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print a line of CSV for each class of each account, each birth, or each place
    #[arg(
        long,
        value_enum,
        value_name = "OF",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "classes"
    )]
    csv: Option<output::Lines>,
}

/// Compares two snapshots.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let client = Client::new();
    let read = |text: &str| source::read(text, &client);
    let both = read(&arguments.old).and_then(|old| Ok((old, read(&arguments.new)?)));
    let (mut old, mut new) = match both {
        Ok(both) => both,
        Err(error) => return failed(&error),
    };
    let mut out = io::stdout().lock();
    let is_reversed = old.run.id == new.run.id && is_before(&new, &old);
    if is_reversed {
        std::mem::swap(&mut old, &mut new);
        writeln!(
            io::stderr(),
            "heapwarden: the first snapshot is the younger one; the older one is subtracted from it"
        )?;
    }
    let found = difference::difference(&old, &new);
    let sites = sites::changes(&old, &new);
    let both = [&old, &new];
    if arguments.json {
        output::json(&found, &sites, both, &mut out)?;
    } else if let Some(lines) = arguments.csv {
        output::csv(lines, &found, &sites, &mut out)?;
    } else {
        let wanted = report::Wanted {
            all: arguments.all,
            ages: arguments.ages,
        };
        report::write(&found, &sites, both, wanted, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn is_before(a: &Snapshot<'_>, b: &Snapshot<'_>) -> bool {
    let end = |of: &Snapshot<'_>| of.cohorts.last().map(|cohort| cohort.upto_epoch);
    // Times of one format compare as texts.
    (end(a), &*a.at) < (end(b), &*b.at)
}

fn failed(error: &SourceError) -> io::Result<ExitCode> {
    writeln!(io::stderr(), "heapwarden: {error}")?;
    Ok(ExitCode::FAILURE)
}
