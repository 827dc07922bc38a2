//! Asking an agent over HTTP, within bounds.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use ureq::Agent;

use super::address::Listener;
use super::{Accounts, Address, LiveError};

/// Longest wait for a connection.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Longest time of one request in all.
pub(super) const WHOLE_LIMIT: Duration = Duration::from_secs(5);
/// Largest answer that is read.
pub(super) const MAX_BODY_BYTES: u64 = 64 << 20;
/// As much of another answer as an error message needs.
const MAX_ERROR_BYTES: u64 = 4096;

/// How many classes of each account are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classes {
    /// The largest twenty.
    Top,
    /// As many as the agent tells.
    All,
}

/// Reads agents. Cheap to clone; keeps no connection open.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: Agent,
}

impl Client {
    /// A client with this command's bounds; no proxy, no redirect.
    pub(crate) fn new() -> Self {
        Client::within(CONNECT_LIMIT, WHOLE_LIMIT)
    }

    fn within(connect: Duration, whole: Duration) -> Self {
        let http = Agent::config_builder()
            .timeout_connect(Some(connect))
            .timeout_global(Some(whole))
            .http_status_as_error(false)
            .max_redirects(0)
            // An agent listens on loopback, or on a network of its own; a proxy of the
            // environment is for neither.
            .proxy(None)
            // An agent serves few connections at a time: none is kept from its other readers.
            .max_idle_connections(0)
            .user_agent(concat!("heapwarden/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Client { http }
    }

    /// The accounts of one JVM.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    pub(crate) fn accounts(
        &self,
        address: &Address,
        classes: Classes,
    ) -> Result<Accounts, LiveError> {
        self.answer(address, classes).map(|(accounts, _)| accounts)
    }

    /// The accounts of one JVM, and the very bytes of the answer.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    pub(crate) fn answer(
        &self,
        address: &Address,
        classes: Classes,
    ) -> Result<(Accounts, Vec<u8>), LiveError> {
        let (listener, pid) = address.listener()?;
        let path = match classes {
            Classes::Top => "/api/v1/accounts",
            Classes::All => "/api/v1/accounts?classes=all",
        };
        let answer = self
            .get(&listener, path)
            .map_err(|error| match (error, pid) {
                (LiveError::NobodyListens { listener }, Some(pid)) if has_ended(pid) => {
                    LiveError::Ended { listener, pid }
                }
                (error, _) => error,
            });
        let body = match answer {
            Err(LiveError::Status { status: 404, .. }) if self.is_heapwarden(&listener) => {
                return Err(LiveError::NoAccounts {
                    listener: listener.to_string(),
                });
            }
            Err(LiveError::Status { status: 404, .. }) => return Err(no_agent(&listener)),
            other => other?,
        };
        let accounts = serde_json::from_slice(&body).map_err(|_| no_agent(&listener))?;
        Ok((accounts, body))
    }

    /// The metrics of one JVM, in the Prometheus text format.
    ///
    /// # Errors
    /// Whatever keeps them from being read.
    pub(crate) fn metrics(&self, address: &Address) -> Result<String, LiveError> {
        let (listener, _) = address.listener()?;
        let body = self.get(&listener, "/metrics")?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Why no accounts are kept in a JVM that answers, if it says so.
    pub(crate) fn not_ready(&self, address: &Address) -> Option<String> {
        let (listener, _) = address.listener().ok()?;
        match self.get(&listener, "/-/ready") {
            Err(LiveError::Status {
                status: 503, text, ..
            }) => Some(text.trim().trim_start_matches("Not ready: ").to_owned()),
            _ => None,
        }
    }

    /// Whether it is an agent that answers there.
    pub(crate) fn is_agent(&self, address: &Address) -> bool {
        let listener = address.listener();
        listener.is_ok_and(|(listener, _)| self.is_heapwarden(&listener))
    }

    fn is_heapwarden(&self, listener: &Listener) -> bool {
        let healthy = self.get(listener, "/-/healthy");
        healthy.is_ok_and(|body| body.starts_with(b"Heapwarden"))
    }

    /// The body of an answer of 200.
    fn get(&self, listener: &Listener, path: &str) -> Result<Vec<u8>, LiveError> {
        let url = format!("http://{listener}{path}");
        let response = self.http.get(&url).call();
        let mut response = response.map_err(|error| failed(listener, error))?;
        let status = response.status().as_u16();
        if status != 200 {
            let mut bytes = Vec::new();
            let body = response.body_mut().as_reader();
            // What cannot be read of an error page is not missed.
            let _ = body.take(MAX_ERROR_BYTES).read_to_end(&mut bytes);
            return Err(LiveError::Status {
                listener: listener.to_string(),
                status,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            });
        }
        let body = response.body_mut().with_config().limit(MAX_BODY_BYTES);
        body.read_to_vec().map_err(|error| failed(listener, error))
    }
}

fn no_agent(listener: &Listener) -> LiveError {
    LiveError::NoAgent {
        listener: listener.to_string(),
    }
}

fn failed(listener: &Listener, error: ureq::Error) -> LiveError {
    let listener = listener.to_string();
    match error {
        ureq::Error::Timeout(_) => LiveError::TimedOut { listener },
        ureq::Error::HostNotFound => LiveError::UnknownHost { listener },
        ureq::Error::BodyExceedsLimit(_) => LiveError::TooLarge { listener },
        ureq::Error::ConnectionFailed => LiveError::NobodyListens { listener },
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => LiveError::NobodyListens { listener },
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => LiveError::TimedOut { listener },
            _ => LiveError::Broken {
                listener,
                reason: error.to_string(),
            },
        },
        // An answer that is no HTTP.
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => LiveError::NoAgent { listener },
        other => LiveError::Broken {
            listener,
            reason: other.to_string(),
        },
    }
}

fn has_ended(pid: u32) -> bool {
    let processes = Path::new("/proc");
    processes.join("self").exists() && !processes.join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests;
