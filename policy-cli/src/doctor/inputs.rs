//! Everything that the checks look at, gathered once.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use policy_config::{MAX_FILE_BYTES, Policy};

use super::metrics::Metrics;
use crate::live::{Accounts, Address, Classes, Client};
use crate::process::{Process, ProcessInfo, agents_listeners, printable};

/// What is known of one JVM.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// From `/proc`, if the JVM was named by its process id.
    pub(super) info: Option<ProcessInfo>,
    /// The address of the agent, if it is known.
    pub(super) address: Option<String>,
    /// Why the agent could not be read.
    pub(super) unread: Option<String>,
    /// `/metrics`; empty if it was not read.
    pub(super) metrics: Metrics,
    /// `/api/v1/accounts`
    pub(super) accounts: Option<Accounts>,
    /// The policy file, if its path is known.
    pub(super) file: Option<PolicyFile>,
    /// Seconds since the Unix epoch.
    pub(super) now_seconds: f64,
}

/// A policy file as it lies on disk now.
#[derive(Debug)]
pub(super) struct PolicyFile {
    pub(super) path: PathBuf,
    /// What it says, or what is wrong with it.
    pub(super) policy: Result<Policy, String>,
}

impl Inputs {
    /// Of a JVM on this machine.
    pub(super) fn of_process(process: &Process, config: Option<&Path>) -> Inputs {
        let info = &process.info;
        let options = info.arguments.heapwarden();
        let option = options.and_then(|options| crate::process::option(options, "config"));
        let started_with = option.or(info.environment.config.as_deref()).map(Path::new);
        let file = config.or(started_with).map(|path| {
            let bytes = process.root.read(path, MAX_FILE_BYTES as u64 + 1);
            PolicyFile::of(path, bytes)
        });
        let mut inputs = Inputs {
            info: Some(info.clone()),
            file,
            now_seconds: now_seconds(),
            ..Inputs::default()
        };
        if info.files.libheapwarden().is_some()
            && let Some(listener) = agents_listeners(process).first()
        {
            inputs.read(&listener.to_string());
        }
        inputs
    }

    /// Of an agent of which only the address is known.
    pub(super) fn of_address(address: &str, config: Option<&Path>) -> Inputs {
        let file = config.map(|path| PolicyFile::of(path, std::fs::read(path)));
        let mut inputs = Inputs {
            file,
            now_seconds: now_seconds(),
            ..Inputs::default()
        };
        inputs.read(address);
        inputs
    }

    fn read(&mut self, text: &str) {
        self.address = Some(text.to_owned());
        let address: Address = match text.parse() {
            Ok(address) => address,
            Err(error) => {
                self.unread = Some(format!("{} {error}", printable(text)));
                return;
            }
        };
        let client = Client::new();
        let read = client
            .metrics(&address)
            .and_then(|metrics| Ok((metrics, client.accounts(&address, Classes::Top)?)));
        match read {
            Ok((metrics, accounts)) => {
                self.metrics = Metrics::parse(&metrics);
                self.accounts = Some(accounts);
            }
            Err(error) => self.unread = Some(error.to_string()),
        }
    }
}

impl PolicyFile {
    fn of(path: &Path, bytes: io::Result<Vec<u8>>) -> PolicyFile {
        let name = path.display().to_string();
        let policy = bytes
            .map_err(|error| format!("{name} cannot be read: {error}"))
            .and_then(|bytes| {
                let (source, parsed) = policy_config::parse_bytes(&bytes);
                let first = parsed
                    .first_error()
                    .map(|error| error.render(&name, &source));
                parsed.policy.ok_or_else(|| first.unwrap_or(name))
            });
        PolicyFile {
            path: path.to_owned(),
            policy,
        }
    }
}

fn now_seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
