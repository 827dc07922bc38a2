//! `heapwarden status [ADDRESS...]`: prints the accounts of running JVMs once. Without an address: of all
//! JVMs of this machine that run the agent, with a table of them. Exit code 0 if all could be read, and
//! there is one; else 1.

mod json;
mod jvm_table;
mod places;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use clap::Args;

use crate::live::{Accounts, Address, Classes, Client, Jvm};
use crate::process::{LocalAgent, LocalAgents};

pub(crate) use report::{heap_line, jvm_line, live_line, remarks};

/// Most JVMs that are read at the same time.
const MAX_AT_A_TIME: usize = 32;

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

    /// With all classes of each account, in the JSON
    #[arg(long, requires = "json")]
    all_classes: bool,
}

/// A JVM to be read.
#[derive(Debug, Clone)]
struct Target {
    /// Where its agent listens. `None`: a JVM of this machine whose agent cannot be reached.
    address: Option<Address>,
    /// What this machine knows of it, if it was found here.
    local: Option<LocalAgent>,
}

/// The result of reading one JVM.
struct Asked {
    target: Target,
    /// Or why it cannot be read.
    answer: Result<Answer, String>,
}

/// The answer of one JVM.
struct Answer {
    accounts: Accounts,
    /// The agent's JSON, unchanged.
    document: Vec<u8>,
    not_ready: Option<String>,
}

impl Asked {
    /// What it is called in the output.
    fn name(&self) -> String {
        match &self.target.address {
            Some(address) => address.to_string(),
            None => format!("process {}", self.pid().unwrap_or_default()),
        }
    }

    /// Its process id: as this machine sees it, else as the agent says.
    fn pid(&self) -> Option<u64> {
        Some(self.jvm().pid).filter(|&pid| pid > 0)
    }

    /// The process: its id as this machine sees it, its name as the agent says; each as the other says if it
    /// is not known.
    fn jvm(&self) -> Jvm {
        let mut jvm = match &self.answer {
            Ok(answer) => answer.accounts.jvm.clone(),
            Err(_) => Jvm::default(),
        };
        if let Some(local) = &self.target.local {
            jvm.pid = local.pid.into();
            if jvm.name.is_empty() {
                jvm.name = local.program.clone().into();
            }
            if jvm.version.is_empty() {
                jvm.version = local.version.clone().into();
            }
        }
        jvm
    }
}

/// Reads every JVM, even if some cannot be read.
///
/// # Errors
/// Only where the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let client = Client::new();
    let is_local = arguments.addresses.is_empty();
    let (targets, hidden) = match is_local {
        true => local_targets(&client),
        false => (arguments.addresses.iter().map(named).collect(), 0),
    };
    let classes = if arguments.all_classes {
        Classes::All
    } else {
        Classes::Top
    };
    let mut found = Vec::with_capacity(targets.len());
    for some in targets.chunks(MAX_AT_A_TIME) {
        found.extend(ask(&client, some, classes));
    }
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    if arguments.json {
        json::write(&found, &mut out)?;
    } else {
        if is_local && !found.is_empty() {
            jvm_table::write(&found, &mut out)?;
            writeln!(out)?;
        }
        if arguments.places {
            places::write(&found, &mut out, &mut err)?;
        } else {
            report::write(&found, &mut out, &mut err)?;
        }
    }
    out.flush()?;
    if found.is_empty() {
        writeln!(err, "heapwarden: {}", nobody(hidden))?;
    } else if is_local && hidden > 0 {
        writeln!(err, "heapwarden: {}", not_inspected(hidden))?;
    }
    let all = found.iter().all(|one| one.answer.is_ok());
    Ok(if all && !found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn named(address: &Address) -> Target {
    Target {
        address: Some(address.clone()),
        local: None,
    }
}

/// The JVMs of this machine with the agent in them, and what answers at the default address (it may belong
/// to another user or a container). Also how many processes could not be inspected.
fn local_targets(client: &Client) -> (Vec<Target>, usize) {
    let LocalAgents { found, hidden } = LocalAgents::find();
    let mut targets: Vec<Target> = (found.into_iter())
        .map(|agent| Target {
            address: agent.address.and_then(|at| at.to_string().parse().ok()),
            local: Some(agent),
        })
        .collect();
    let default = Address::default();
    let is_known = targets
        .iter()
        .any(|target| target.address.as_ref() == Some(&default));
    if !is_known && client.is_agent(&default) {
        targets.push(named(&default));
    }
    (targets, hidden)
}

/// Why there is nothing to print, and what to do.
fn nobody(hidden: usize) -> String {
    let mut text = "no JVM of this machine runs the agent; start one with \
                    -agentpath:…/libheapwarden.so, or give the address of an agent elsewhere"
        .to_owned();
    if hidden > 0 {
        text = format!("{text}; {}", not_inspected(hidden));
    }
    text
}

fn not_inspected(hidden: usize) -> String {
    let processes = match hidden {
        1 => "a process".to_owned(),
        count => format!("{count} processes"),
    };
    format!("{processes} called java cannot be inspected by this user; run this as root to see all")
}

/// Reads some JVMs at the same time, so that those that do not answer share one timeout.
fn ask(client: &Client, targets: &[Target], classes: Classes) -> Vec<Asked> {
    let read = |target: &Target| {
        let Some(address) = &target.address else {
            return Err(format!(
                "no listener of this JVM answers like an agent; heapwarden doctor {} says why",
                target.local.as_ref().map_or(0, |agent| agent.pid)
            ));
        };
        let answer = client.answer(address, classes);
        let (accounts, document) = answer.map_err(|error| error.to_string())?;
        Ok(Answer {
            accounts,
            document,
            not_ready: client.not_ready(address),
        })
    };
    thread::scope(|scope| {
        let threads: Vec<_> = targets
            .iter()
            .map(|target| (target, scope.spawn(move || read(target))))
            .collect();
        let joined = threads.into_iter().map(|(target, thread)| Asked {
            target: target.clone(),
            answer: (thread.join())
                .unwrap_or_else(|_| Err("this command failed on its answer".into())),
        });
        joined.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Asked {
        /// At this address, with this answer.
        pub(super) fn at(address: &str, answer: Result<Answer, String>) -> Asked {
            Asked {
                target: named(&address.parse().unwrap()),
                answer,
            }
        }
    }

    impl Answer {
        pub(super) fn of(text: &str, not_ready: Option<&str>) -> Answer {
            Answer {
                accounts: serde_json::from_str(text).unwrap(),
                document: text.into(),
                not_ready: not_ready.map(str::to_owned),
            }
        }
    }

    #[test]
    fn what_could_not_be_looked_at_is_said() {
        assert!(!nobody(0).contains("called java"));
        assert!(nobody(1).ends_with(
            "; a process called java cannot be inspected by this user; run this as root to see all"
        ));
        assert!(not_inspected(3).starts_with("3 processes called java"));
    }
}
