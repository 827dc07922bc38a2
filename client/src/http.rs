//! The common part of the clients of agents and of Prometheus: one way to configure ureq, to read a body within a
//! bound, and to tell failures apart.
//!
//! No redirect is followed, so that credentials and requests go to the named server only. A status
//! other than 200 is an answer here, not an error.

use std::io::{self, Read as _};

use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::typestate::AgentScope;
use ureq::{Agent, Body};

/// Why there is no answer, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It took longer than the client allows.
    TimedOut,
    /// The host name has no address.
    UnknownHost,
    /// Nobody listens on the port.
    Refused,
    /// The body is larger than the bound.
    TooLarge,
    /// The answer is not HTTP.
    NotHttp,
    /// Anything else, in the words of the client or of the system.
    Other(String),
}

/// The configuration that all clients begin with.
pub fn config() -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("heapwarden/", env!("CARGO_PKG_VERSION")))
}

/// The whole body, if it has at most `max_bytes`.
///
/// # Errors
/// [`Failure::TooLarge`], or why the body could not be read to its end.
pub fn body(response: Response<Body>, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let body = response.into_body().into_with_config().limit(max_bytes);
    body.read_to_vec().map_err(Failure::from)
}

/// The first `max_bytes` of the body, as far as they can be read: enough for an error message.
pub fn beginning(response: Response<Body>, max_bytes: u64) -> String {
    let mut bytes = Vec::new();
    // A part of an error page that cannot be read is not missed.
    let _ = response
        .into_body()
        .into_reader()
        .take(max_bytes)
        .read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Failure {
        // A timeout while a body is read arrives wrapped in an I/O error; this unwraps it.
        match ureq::Error::from(error.into_io()) {
            ureq::Error::Timeout(_) => Failure::TimedOut,
            ureq::Error::HostNotFound => Failure::UnknownHost,
            ureq::Error::BodyExceedsLimit(_) => Failure::TooLarge,
            ureq::Error::ConnectionFailed => Failure::Refused,
            ureq::Error::Io(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Failure::Refused,
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::TimedOut,
                _ => Failure::Other(error.to_string()),
            },
            ureq::Error::Protocol(_) | ureq::Error::Http(_) => Failure::NotHttp,
            other => Failure::Other(other.to_string()),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Failure::TimedOut => "no answer in time",
            Failure::UnknownHost => "the host name has no address",
            Failure::Refused => "connection refused: nothing listens there",
            Failure::TooLarge => "the answer is too large",
            Failure::NotHttp => "the answer is not HTTP",
            Failure::Other(why) => why,
        })
    }
}
