//! `heapwarden report ADDRESS|FILE -o FILE`: the page of one JVM or snapshot in a file that needs no server, to attach to a ticket.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::{Map, Value, json};

use super::sources::{Missing, Sources};

/// The agent's answers that a report holds, by the paths that the page reads.
const DOCUMENTS: [&str; 5] = [
    "api/v1/accounts?classes=all",
    "api/v1/leaks",
    "api/v1/sites",
    "api/v1/paths",
    "api/v1/history",
];

/// The arguments of `heapwarden report`.
#[derive(Args)]
#[command(after_help = "\
The file holds names of classes, methods and tenants, and no values of objects. It opens without a network.

Exit codes: 0 done; 1 there is no report; 2 the command line is wrong.")]
pub(crate) struct Arguments {
    /// Where the agent listens: host:port, a port, http://host:port/ or its run file; or a snapshot
    #[arg(value_name = "ADDRESS|FILE")]
    source: String,

    /// The file to write, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the report.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let text = match report(&arguments.source) {
        Ok(text) => text,
        Err(why) => return failed(&why),
    };
    let output = &arguments.output;
    if output == Path::new("-") {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    } else if let Err(error) = heapwarden_terminal::output::replace(output, &text) {
        return failed(&format!("{} cannot be written: {error}", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(why: &str) -> io::Result<ExitCode> {
    writeln!(io::stderr(), "heapwarden: {why}")?;
    Ok(ExitCode::FAILURE)
}

fn report(argument: &str) -> Result<String, String> {
    let sources = Sources::find(std::slice::from_ref(&argument.to_owned()))
        .map_err(|error| error.to_string())?;
    let mut all = Map::new();
    if let Some(snapshot) = read(&sources, "api/v1/snapshot", true)? {
        all.extend(of_snapshot(snapshot));
    } else {
        for path in DOCUMENTS {
            let document = read(&sources, path, false)?;
            all.extend(document.map(|document| (path.to_owned(), document)));
        }
        if !all.contains_key(DOCUMENTS[0]) {
            return Err(format!("no agent of Heapwarden answers at {argument}"));
        }
        // The page shows when the accounts were read.
        let at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        all[DOCUMENTS[0]]["at"] = at.into();
    }
    all.insert("about".into(), json!({"address": argument}));
    let json = serde_json::to_string(&all).map_err(|error| error.to_string())?;
    Ok(policy_page::report(&json, &nonce()))
}

/// A document; only that of a file, if `of_file`.
fn read(sources: &Sources, path: &str, of_file: bool) -> Result<Option<Value>, String> {
    if of_file && !sources.is_file() {
        return Ok(None);
    }
    match sources.document("0", &format!("/{path}")) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| format!("the answer to /{path} is no JSON: {error}")),
        // An older agent.
        Err(Missing::Nothing) => Ok(None),
        Err(Missing::Agent(error)) => Err(error.to_string()),
        Err(Missing::Prometheus(error)) => Err(error.to_string()),
    }
}

/// The documents of a snapshot, which is one of accounts and has the sites in it.
fn of_snapshot(mut snapshot: Value) -> Vec<(String, Value)> {
    let sites = snapshot["sites"].take();
    let mut documents = vec![(DOCUMENTS[0].to_owned(), snapshot)];
    if !sites.is_null() {
        documents.push((DOCUMENTS[2].to_owned(), sites));
    }
    documents
}

/// 128 bits that nobody knows who wrote a name into the data.
fn nonce() -> String {
    // Each has random keys, from the system.
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}
