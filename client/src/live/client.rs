//! Requests to an agent over HTTP, bounded in time and bytes.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use ureq::typestate::WithoutBody;
use ureq::{Agent, RequestBuilder};

use super::address::Listener;
use super::limits::{CONNECT_LIMIT, MAX_BODY_BYTES, WHOLE_LIMIT};
use super::{Accounts, Address, Contexts, Leaks, LiveError, Sites};
use crate::http;

/// Longest time in which a snapshot or a profile is to be had: the agent may have to make it first.
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(90);
/// The pause before one is asked for again.
const AGAIN: Duration = Duration::from_millis(500);
/// As much of another answer as an error message needs.
const MAX_ERROR_BYTES: u64 = 4096;

/// How many classes of each account are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classes {
    /// The largest twenty.
    Top,
    /// As many as the agent lists.
    All,
}

/// Reads agents. Cheap to clone; keeps no connection open.
#[derive(Debug, Clone)]
pub struct Client {
    http: Agent,
}

impl Client {
    /// A client with this command's bounds; no proxy, no redirect.
    #[allow(clippy::new_without_default, reason = "nobody asks for a default")]
    pub fn new() -> Self {
        Client::within(CONNECT_LIMIT, WHOLE_LIMIT)
    }

    fn within(connect: Duration, whole: Duration) -> Self {
        let http = http::config()
            .timeout_connect(Some(connect))
            .timeout_global(Some(whole))
            // An agent listens on loopback or in a private network: a proxy of the environment is
            // meant for neither.
            .proxy(None)
            // An agent serves few connections at a time: an idle one would block other readers.
            .max_idle_connections(0)
            .build()
            .new_agent();
        Client { http }
    }

    /// The accounts of one JVM.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn accounts(&self, address: &Address, classes: Classes) -> Result<Accounts, LiveError> {
        self.answer(address, classes).map(|(accounts, _)| accounts)
    }

    /// The accounts of one JVM, and the bytes of the answer.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn answer(
        &self,
        address: &Address,
        classes: Classes,
    ) -> Result<(Accounts, Vec<u8>), LiveError> {
        self.document(
            address,
            match classes {
                Classes::Top => "/api/v1/accounts",
                Classes::All => "/api/v1/accounts?classes=all",
            },
        )
    }

    /// Returns the leak suspects of one JVM and its growing classes, and the bytes of the answer.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn leaks(&self, address: &Address) -> Result<(Leaks, Vec<u8>), LiveError> {
        self.document(address, "/api/v1/leaks")
    }

    /// Where survivors were allocated in one JVM, and the bytes of the answer.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn sites(&self, address: &Address) -> Result<(Sites, Vec<u8>), LiveError> {
        self.document(address, "/api/v1/sites")
    }

    /// Returns the allocations of one JVM by calling context, and the bytes of the answer.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn contexts(&self, address: &Address) -> Result<(Contexts, Vec<u8>), LiveError> {
        self.document(address, "/api/v1/contexts")
    }

    /// A document of one JVM, and its bytes.
    fn document<D: DeserializeOwned>(
        &self,
        address: &Address,
        path: &'static str,
    ) -> Result<(D, Vec<u8>), LiveError> {
        let (listener, pid) = address.listener()?;
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
                return Err(LiveError::NoEndpoint {
                    listener: listener.to_string(),
                    endpoint: path.split('?').next().unwrap_or(path),
                });
            }
            Err(LiveError::Status { status: 404, .. }) => return Err(no_agent(&listener)),
            other => other?,
        };
        let document = serde_json::from_slice(&body).map_err(|_| no_agent(&listener))?;
        Ok((document, body))
    }

    /// The metrics of one JVM, in the Prometheus text format.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn metrics(&self, address: &Address) -> Result<String, LiveError> {
        let (listener, _) = address.listener()?;
        let body = self.get(&listener, "/metrics")?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// A snapshot of one JVM, as gzip. The agent makes it while the client waits, so this may take longer
    /// than other requests.
    ///
    /// # Errors
    /// Why there is none.
    pub fn snapshot(&self, address: &Address) -> Result<Vec<u8>, LiveError> {
        self.made(address, "/api/v1/snapshot")
    }

    /// The profile of one JVM, as gzip; made as a snapshot is.
    ///
    /// # Errors
    /// Why there is none.
    pub fn profile(&self, address: &Address) -> Result<Vec<u8>, LiveError> {
        self.made(address, "/api/v1/profile")
    }

    /// Returns a document that the agent makes while the client waits.
    fn made(&self, address: &Address, endpoint: &'static str) -> Result<Vec<u8>, LiveError> {
        let (listener, _) = address.listener()?;
        let begun = Instant::now();
        loop {
            let answer = self.get_with(&listener, endpoint, |request| {
                request
                    .header("Accept-Encoding", "gzip")
                    .config()
                    .timeout_global(Some(SNAPSHOT_LIMIT))
                    .build()
            });
            match answer {
                // Others wait for one already.
                Err(LiveError::Status { status: 503, .. }) if begun.elapsed() < SNAPSHOT_LIMIT => {
                    std::thread::sleep(AGAIN);
                }
                Err(LiveError::Status { status: 404, .. }) if self.is_heapwarden(&listener) => {
                    return Err(LiveError::TooOld {
                        listener: listener.to_string(),
                        endpoint,
                    });
                }
                Err(LiveError::Status { status: 404, .. }) => return Err(no_agent(&listener)),
                answer => return answer,
            }
        }
    }

    /// Returns the body of an agent's answer at `target`, as it comes.
    ///
    /// # Errors
    /// Why there is no answer with status 200.
    pub fn bytes(&self, address: &Address, target: &str) -> Result<Vec<u8>, LiveError> {
        let (listener, _) = address.listener()?;
        let limit = match target.starts_with("/api/v1/snapshot") {
            true => SNAPSHOT_LIMIT,
            false => WHOLE_LIMIT,
        };
        self.get_with(&listener, target, |request| {
            request.config().timeout_global(Some(limit)).build()
        })
    }

    /// Why the agent keeps no accounts, if it says so.
    pub fn not_ready(&self, address: &Address) -> Option<String> {
        let (listener, _) = address.listener().ok()?;
        match self.get(&listener, "/-/ready") {
            Err(LiveError::Status {
                status: 503, text, ..
            }) => Some(text.trim().trim_start_matches("Not ready: ").to_owned()),
            _ => None,
        }
    }

    /// Whether an agent answers at the address.
    pub fn is_agent(&self, address: &Address) -> bool {
        let listener = address.listener();
        listener.is_ok_and(|(listener, _)| self.is_heapwarden(&listener))
    }

    fn is_heapwarden(&self, listener: &Listener) -> bool {
        let healthy = self.get(listener, "/-/healthy");
        healthy.is_ok_and(|body| body.starts_with(b"Heapwarden"))
    }

    /// The body of an answer with status 200.
    fn get(&self, listener: &Listener, path: &str) -> Result<Vec<u8>, LiveError> {
        self.get_with(listener, path, |request| request)
    }

    fn get_with(
        &self,
        listener: &Listener,
        path: &str,
        with: impl FnOnce(RequestBuilder<WithoutBody>) -> RequestBuilder<WithoutBody>,
    ) -> Result<Vec<u8>, LiveError> {
        let url = format!("http://{listener}{path}");
        let response = with(self.http.get(&url)).call();
        let response = response.map_err(|error| failed(listener, error.into()))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(LiveError::Status {
                listener: listener.to_string(),
                status,
                text: http::beginning(response, MAX_ERROR_BYTES),
            });
        }
        http::body(response, MAX_BODY_BYTES).map_err(|failure| failed(listener, failure))
    }
}

fn no_agent(listener: &Listener) -> LiveError {
    LiveError::NoAgent {
        listener: listener.to_string(),
    }
}

fn failed(listener: &Listener, failure: http::Failure) -> LiveError {
    let listener = listener.to_string();
    match failure {
        http::Failure::TimedOut => LiveError::TimedOut { listener },
        http::Failure::UnknownHost => LiveError::UnknownHost { listener },
        http::Failure::TooLarge => LiveError::TooLarge { listener },
        http::Failure::Refused => LiveError::NobodyListens { listener },
        http::Failure::NotHttp => LiveError::NoAgent { listener },
        http::Failure::Other(reason) => LiveError::Broken { listener, reason },
    }
}

fn has_ended(pid: u32) -> bool {
    let processes = Path::new("/proc");
    processes.join("self").exists() && !processes.join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests;
