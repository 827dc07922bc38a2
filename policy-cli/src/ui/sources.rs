//! The sources of the page: agents that are asked, and snapshots that are read once.

use std::path::Path;

use serde::Serialize;

use crate::diff::source::{SourceError, snapshot_file};
use crate::targets::Targets;
use heapwarden_client::live::{Address, Client, LiveError};
use heapwarden_fleet::history;
use heapwarden_terminal::printable;

use super::fleet::{Fleet, WHOLE};

/// The agents and snapshots that the command line names, in its order.
#[derive(Debug)]
pub(super) struct Sources {
    client: Client,
    all: Vec<Source>,
    /// Instead of all others.
    fleet: Option<Fleet>,
}

#[derive(Debug)]
struct Source {
    name: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Agent(Address),
    /// The JSON of a snapshot.
    Snapshot(Vec<u8>),
}

/// One source, as the page lists it.
#[derive(Serialize)]
struct Listed<'a> {
    id: String,
    name: &'a str,
    kind: &'static str,
}

/// Why there is no document.
#[derive(Debug)]
pub(super) enum Missing {
    /// There is none.
    Nothing,
    /// The agent does not give it.
    Agent(LiveError),
    /// Prometheus does not give it.
    Prometheus(history::Error),
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// An argument.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Prometheus.
    #[error(transparent)]
    Prometheus(#[from] history::Error),
}

impl Sources {
    /// Finds the addresses and files that the command line names, else a fleet in Prometheus, else this machine's JVMs.
    ///
    /// # Errors
    /// The first that cannot be shown.
    pub(super) fn all(
        arguments: &[String],
        history: &history::Arguments,
    ) -> Result<Sources, Unusable> {
        if !arguments.is_empty() || !history.names_prometheus() {
            return Ok(Sources::find(arguments)?);
        }
        Ok(Sources {
            client: Client::new(),
            all: Vec::new(),
            fleet: Some(Fleet::find(history)?),
        })
    }

    /// Reads the files. Without arguments: the JVMs of this machine.
    ///
    /// # Errors
    /// The first that is neither a snapshot nor an address.
    pub(super) fn find(arguments: &[String]) -> Result<Sources, SourceError> {
        let client = Client::new();
        let mut all = Vec::with_capacity(arguments.len());
        if arguments.is_empty() {
            let addresses = Targets::find(&client, &[]).addresses();
            all.extend(addresses.into_iter().map(Source::agent));
        }
        for argument in arguments {
            all.push(Source::of(argument)?);
        }
        Ok(Sources {
            client,
            all,
            fleet: None,
        })
    }

    /// Whether the first is a snapshot.
    pub(super) fn is_file(&self) -> bool {
        let first = self.all.first().map(|source| &source.content);
        matches!(first, Some(Content::Snapshot(_)))
    }

    /// The list of them, as JSON.
    pub(super) fn list(&self) -> Vec<u8> {
        if let Some(fleet) = &self.fleet {
            let all = fleet.list();
            let listed: Vec<Listed<'_>> = (all.iter())
                .map(|(id, name)| Listed {
                    id: id.clone(),
                    name,
                    kind: if id == WHOLE { "fleet" } else { "recorded" },
                })
                .collect();
            return serde_json::to_vec(&listed).unwrap_or_default();
        }
        let listed: Vec<Listed<'_>> = (self.all.iter().enumerate())
            .map(|(at, source)| Listed {
                id: at.to_string(),
                name: &source.name,
                kind: match source.content {
                    Content::Agent(_) => "agent",
                    Content::Snapshot(_) => "snapshot",
                },
            })
            .collect();
        serde_json::to_vec(&listed).unwrap_or_default()
    }

    /// A document of one of them. `target` is an agent's: a path with its query.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn document(&self, id: &str, target: &str) -> Result<Vec<u8>, Missing> {
        if let Some(fleet) = &self.fleet {
            return match target {
                "/api/v1/fleet" => fleet
                    .document(id)
                    .map_err(Missing::Prometheus)?
                    .ok_or(Missing::Nothing),
                _ => Err(Missing::Nothing),
            };
        }
        let source = id.parse().ok().and_then(|at: usize| self.all.get(at));
        match source.map(|source| &source.content) {
            Some(Content::Snapshot(json)) if target == "/api/v1/snapshot" => Ok(json.clone()),
            Some(Content::Agent(address)) if is_published(target) => {
                let answer = self.client.bytes(address, target);
                answer.map_err(|error| match error {
                    LiveError::Status { status: 404, .. } => Missing::Nothing,
                    error => Missing::Agent(error),
                })
            }
            _ => Err(Missing::Nothing),
        }
    }
}

impl Source {
    fn agent(address: Address) -> Source {
        Source {
            name: address.to_string(),
            content: Content::Agent(address),
        }
    }

    fn of(argument: &str) -> Result<Source, SourceError> {
        if let Some(json) = snapshot_file(Path::new(argument))? {
            let path = Path::new(argument).file_name().unwrap_or_default();
            return Ok(Source {
                name: printable::escaped(&path.to_string_lossy()).into_owned(),
                content: Content::Snapshot(json),
            });
        }
        let address = argument.parse().map_err(|error| SourceError::Nothing {
            name: printable::fitted(argument, 200).into_owned(),
            reason: format!("as an address it {error}"),
        })?;
        Ok(Source::agent(address))
    }
}

/// Whether the page may ask an agent for this: nothing else is passed on.
fn is_published(target: &str) -> bool {
    const PUBLISHED: [&str; 9] = [
        "/api/v1/accounts",
        "/api/v1/accounts?classes=all",
        "/api/v1/leaks",
        "/api/v1/sites",
        "/api/v1/paths",
        "/api/v1/instances",
        "/api/v1/history",
        "/api/v1/snapshot",
        "/api/v1/snapshots",
    ];
    let plain = |one: u8| one.is_ascii_alphanumeric() || b"._-".contains(&one);
    let file = target.strip_prefix("/api/v1/snapshots/");
    PUBLISHED.contains(&target)
        || file.is_some_and(|name| !name.is_empty() && name.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_documents_is_asked_for() {
        for target in ["/api/v1/leaks", "/api/v1/snapshots/a-0f-1.json.gz"] {
            assert!(is_published(target), "{target}");
        }
        for target in [
            "/",
            "/metrics",
            "/api/v1/leaks?x",
            "/api/v1/snapshots/",
            "/api/v1/snapshots/../leaks",
            "/api/v1/snapshots/a%2fb",
            "//evil.example/api/v1/leaks",
        ] {
            assert!(!is_published(target), "{target}");
        }
    }
}
