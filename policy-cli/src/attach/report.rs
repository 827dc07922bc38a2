//! The output of `attach` once the agent is loaded: its address, what was logged, and how to see the accounts.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use policy_config::Listen;

use super::jvm_log::JvmLog;
use super::run_file::RunFilePlace;
use crate::process::{Process, printable};
use heapwarden_client::live::{Address, Classes, Client};

/// How long the agent may take to bind its listener.
const BINDING: Duration = Duration::from_secs(15);
/// How long the agent's first answer may take.
const ANSWERING: Duration = Duration::from_secs(15);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// An attach that succeeded: the JVM has loaded the agent.
pub(super) struct Attached<'a> {
    pub(super) process: &'a Process,
    pub(super) listen: &'a Listen,
    pub(super) run_file: RunFilePlace,
    pub(super) log: JvmLog,
}

impl Attached<'_> {
    /// Waits for the listener and its first answer, and reports both. True if the agent keeps
    /// accounts, as far as this command can see.
    ///
    /// # Errors
    /// Only those of the output.
    pub(super) fn report(mut self, out: &mut dyn Write) -> io::Result<bool> {
        let is_mapped = self.process.mapped_files();
        let is_mapped = is_mapped.is_ok_and(|files| files.libheapwarden().is_some());
        let address = until(BINDING, || self.run_file.address(self.process));
        let lines = self.log.lines();
        if lines.is_empty() {
            writeln!(out, "The agent logs to {}.", self.log.place)?;
        } else {
            writeln!(out, "The JVM logged to {}:", self.log.place)?;
            for line in lines {
                writeln!(out, "  | {line}")?;
            }
        }
        if self.run_file.path().is_none() {
            writeln!(
                out,
                "The agent does not listen (listen=off), so its accounts cannot be read."
            )?;
            return Ok(is_mapped);
        }
        let Some(address) = address else {
            writeln!(
                out,
                "The agent did not start to listen on {} within {BINDING:?}. Its log says why: the address \
                 cannot be bound (heapwarden doctor says who has it), or the agent is disabled in this JVM.",
                self.listen
            )?;
            return Ok(false);
        };
        self.run_file.discard();
        let shown = printable(&address);
        writeln!(out, "Metrics are on http://{shown}/metrics.")?;
        if !self.process.info.shares_network {
            writeln!(
                out,
                "The address is in the JVM's own network (a container). From here, run\n  \
                 nsenter -t {} -n heapwarden status {shown}",
                self.process.info.pid
            )?;
            return Ok(is_mapped);
        }
        let answer = first_answer(&address);
        match answer {
            Ok(sentence) => {
                writeln!(out, "{sentence}")?;
                writeln!(out, "See the accounts:  heapwarden status {shown}")?;
                Ok(true)
            }
            Err(why) => {
                writeln!(out, "{why}")?;
                writeln!(out, "To find out why:  heapwarden doctor {shown}")?;
                Ok(false)
            }
        }
    }
}

/// The agent's first answer: a sentence on the accounts, or why there are none.
fn first_answer(listener: &str) -> Result<String, String> {
    let address: Address = match listener.parse() {
        Ok(address) => address,
        Err(error) => return Err(format!("The agent's address {error}.")),
    };
    let client = Client::new();
    if let Some(why) = client.not_ready(&address) {
        return Err(printable(&why));
    }
    let mut last = String::new();
    let accounts = until(ANSWERING, || {
        match client.accounts(&address, Classes::Top) {
            Ok(accounts) => Some(accounts),
            Err(error) => {
                last = error.to_string();
                None
            }
        }
    });
    let accounts = accounts.ok_or(last)?;
    let mode = match accounts.policy.mode.as_ref() {
        "enforce" => "allocations of accounts over their limits are refused",
        _ => "nothing is refused (mode = \"observe\")",
    };
    Ok(format!(
        "It keeps accounts, {} so far; {mode}. Live bytes appear after the next collection.",
        accounts.accounts.len()
    ))
}

/// Prints where an agent that was already loaded listens.
pub(super) fn where_it_listens(process: &Process, out: &mut dyn Write) -> io::Result<()> {
    for address in crate::process::agents_listeners(process) {
        writeln!(out, "  listens  {address}  (heapwarden status {address})")?;
    }
    Ok(())
}

fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}
