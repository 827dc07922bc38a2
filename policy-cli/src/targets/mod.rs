//! The JVMs that a command reads: those at the addresses given; without an address all of this machine that
//! run the agent.

mod answer;
mod json;
mod text;

use std::thread;

use crate::process::{LocalAgent, LocalAgents};
use heapwarden_client::live::{Address, Client, LiveError};

pub(crate) use answer::{Answer, Asked, Document};
pub(crate) use json::write_json;
pub(crate) use text::write_each;

/// Most JVMs that are read at the same time.
const MAX_AT_A_TIME: usize = 32;

/// A JVM to be read.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Where its agent listens. `None`: a JVM of this machine whose agent cannot be reached.
    pub(crate) address: Option<Address>,
    /// The process with the agent, if it was found on this machine.
    pub(crate) local: Option<LocalAgent>,
}

impl Target {
    /// The JVM whose agent listens there.
    pub(crate) fn at(address: &Address) -> Target {
        Target {
            address: Some(address.clone()),
            local: None,
        }
    }
}

/// The JVMs that a command reads.
#[derive(Debug)]
pub(crate) struct Targets {
    all: Vec<Target>,
    is_local: bool,
    /// How many processes of this machine could not be inspected.
    hidden: usize,
}

impl Targets {
    /// Those at `addresses`. Without one: the JVMs of this machine with the agent in them, and what answers
    /// at the default address (it may belong to another user or a container).
    pub(crate) fn find(client: &Client, addresses: &[Address]) -> Targets {
        if !addresses.is_empty() {
            return Targets {
                all: addresses.iter().map(Target::at).collect(),
                is_local: false,
                hidden: 0,
            };
        }
        let LocalAgents { found, hidden } = LocalAgents::find();
        let mut all: Vec<Target> = (found.into_iter())
            .map(|agent| Target {
                address: agent.address.and_then(|at| at.to_string().parse().ok()),
                local: Some(agent),
            })
            .collect();
        let default = Address::default();
        let is_known = (all.iter()).any(|target| target.address.as_ref() == Some(&default));
        if !is_known && client.is_agent(&default) {
            all.push(Target::at(&default));
        }
        Targets {
            all,
            is_local: true,
            hidden,
        }
    }

    /// Where their agents listen, as far as they can be reached.
    pub(crate) fn addresses(self) -> Vec<Address> {
        (self.all.into_iter())
            .filter_map(|target| target.address)
            .collect()
    }

    /// Whether they were looked for on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Reads every JVM, many at the same time, so that those that do not answer share one timeout. `read`
    /// gives the document and its JSON.
    pub(crate) fn ask<D: Send>(
        &self,
        client: &Client,
        read: impl Fn(&Address) -> Result<(D, Vec<u8>), LiveError> + Sync,
    ) -> Vec<Asked<D>> {
        let answer = |target: &Target| {
            let Some(address) = &target.address else {
                return Err(format!(
                    "no listener of this JVM answers like an agent; heapwarden doctor {} says why",
                    target.local.as_ref().map_or(0, |agent| agent.pid)
                ));
            };
            let (document, json) = read(address).map_err(|error| error.to_string())?;
            Ok(Answer {
                document,
                json,
                not_ready: client.not_ready(address),
            })
        };
        let mut asked = Vec::with_capacity(self.all.len());
        for some in self.all.chunks(MAX_AT_A_TIME) {
            asked.extend(thread::scope(|scope| {
                let threads: Vec<_> = (some.iter())
                    .map(|target| (target, scope.spawn(move || answer(target))))
                    .collect();
                let joined = threads.into_iter().map(|(target, thread)| Asked {
                    target: target.clone(),
                    answer: (thread.join())
                        .unwrap_or_else(|_| Err("this command failed on its answer".into())),
                });
                joined.collect::<Vec<_>>()
            }));
        }
        asked
    }

    /// Returns a message to the user beside the answers: that there is no JVM, or that some could not be looked at.
    /// `None`: there is nothing to say.
    pub(crate) fn remark(&self) -> Option<String> {
        if self.all.is_empty() {
            Some(nobody(self.hidden))
        } else {
            (self.hidden > 0).then(|| not_inspected(self.hidden))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_looked_at_is_said() {
        assert!(!nobody(0).contains("called java"));
        assert!(nobody(1).ends_with(
            "; a process called java cannot be inspected by this user; run this as root to see all"
        ));
        assert!(not_inspected(3).starts_with("3 processes called java"));
    }
}
