//! Everything that the checks look at, gathered once.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use policy_config::{Listen, MAX_FILE_BYTES, Policy};

use crate::process::{
    PortHolder, Process, ProcessInfo, agents_listeners, port_holder, printable, wanted_address,
};
use heapwarden_client::live::{Accounts, Address, Classes, Client, Leaks};
use policy_report::Metrics;

/// The facts about one JVM that the checks read.
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
    /// `/api/v1/leaks`; `None` if an older agent does not have it.
    pub(super) leaks: Option<Leaks>,
    /// The policy file, if its path is known.
    pub(super) file: Option<PolicyFile>,
    /// The address that the agent should have, if it has another one or none.
    pub(super) port: Option<Port>,
    /// Seconds since the Unix epoch.
    pub(super) now_seconds: f64,
}

/// An address that the agent should have and has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    /// As it was configured.
    pub(super) wanted: SocketAddr,
    /// Who listens there.
    pub(super) holder: Option<PortHolder>,
}

/// A policy file as it lies on disk now.
#[derive(Debug)]
pub(super) struct PolicyFile {
    pub(super) path: PathBuf,
    /// The settings that it contains, or the error that makes it unusable.
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
        inputs.port = inputs.missed_port();
        inputs
    }

    /// The address that the agent should have, if it has another one or none.
    fn missed_port(&self) -> Option<Port> {
        let info = self.info.as_ref()?;
        info.files.libheapwarden()?;
        // The options of an attach, and those in an argument file, are not seen.
        info.arguments.heapwarden()?;
        if !info.shares_network {
            return None;
        }
        let policy = match &self.file {
            Some(file) => Some(file.policy.as_ref().ok()?),
            None => None,
        };
        let wanted = wanted_address(info, policy);
        let Listen::Address { port: 1.., .. } = wanted else {
            return None;
        };
        let wanted = wanted.to_string().to_socket_addrs().ok()?.next()?;
        let actual = self.address.as_ref().and_then(|text| text.parse().ok());
        if actual.is_some_and(|actual: SocketAddr| actual.port() == wanted.port()) {
            return None;
        }
        Some(Port {
            wanted,
            holder: port_holder(info.pid, wanted, &[info.pid]),
        })
    }

    /// Whether the agent was loaded by a start-up flag, as far as that is known.
    pub(super) fn loaded_at_start(&self) -> Option<bool> {
        let of_agent = self
            .accounts
            .as_ref()
            .and_then(|all| all.jvm.loaded_at_start);
        // An older agent does not say. The arguments may be in a file that is not read.
        let is_argument = || {
            let info = self.info.as_ref()?;
            info.arguments.heapwarden().map(|_| true)
        };
        of_agent.or_else(is_argument)
    }

    /// The feature release of the JDK.
    pub(super) fn release(&self) -> Option<u32> {
        let of_agent = || {
            let version = &self.accounts.as_ref()?.jvm.version;
            version
                .split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        let of_process = self.info.as_ref().and_then(ProcessInfo::feature);
        of_process.or_else(of_agent)
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
        if inputs.accounts.is_none() {
            inputs.port = of_this_machine(address);
        }
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
                self.leaks = client.leaks(&address).ok().map(|(leaks, _)| leaks);
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

/// Who listens at an address of this machine.
fn of_this_machine(address: &str) -> Option<Port> {
    let address: Address = address.parse().ok()?;
    let wanted = address.to_string().to_socket_addrs().ok()?.next()?;
    if !wanted.ip().is_loopback() {
        return None;
    }
    let holder = Some(port_holder(std::process::id(), wanted, &[])?);
    Some(Port { wanted, holder })
}

fn now_seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
