//! Why a running JVM could not be read: one sentence, with what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::limits::{CONNECT_LIMIT, MAX_BODY_BYTES, WHOLE_LIMIT};
use heapwarden_terminal::printable;

/// Why a running JVM could not be read. Texts of the server are kept as they came, and escaped when
/// displayed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The run file does not exist or is not readable.
    #[error(
        "cannot read the run file {}: {}; check that the JVM runs, and that the agent's options have run-file=",
        escaped_path(path),
        reason(error)
    )]
    RunFileUnreadable {
        /// As given.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file without pid and address.
    #[error(
        "{} is not the run file of an agent (one line of JSON with pid and listen)",
        escaped_path(path)
    )]
    NoRunFile {
        /// As given.
        path: PathBuf,
    },
    /// Nothing listens, and the process of the run file has ended.
    #[error(
        "nothing listens on {listener}: process {pid} of the run file has ended; start the JVM again"
    )]
    Ended {
        /// Host and port.
        listener: String,
        /// Of the run file.
        pid: u32,
    },
    /// Nothing listens.
    #[error(
        "nothing listens on {listener}; check that the JVM runs with the agent, and that listen= is this address"
    )]
    NobodyListens {
        /// Host and port.
        listener: String,
    },
    /// The name has no address.
    #[error("the host name of {listener} has no address; check its spelling")]
    UnknownHost {
        /// Host and port.
        listener: String,
    },
    /// No answer in time.
    #[error(
        "{listener} does not answer in time ({} s to connect, {} s in all); check whether the JVM is stopped or the machine overloaded",
        seconds(CONNECT_LIMIT),
        seconds(WHOLE_LIMIT)
    )]
    TimedOut {
        /// Host and port.
        listener: String,
    },
    /// Any other failure below HTTP, or of HTTP itself.
    #[error("cannot read {listener}: {}", printable::escaped(reason))]
    Broken {
        /// Host and port.
        listener: String,
        /// The message of the HTTP client.
        reason: String,
    },
    /// An answer other than 200.
    #[error("{listener} answers {status}: {}", first_line(text))]
    Status {
        /// Host and port.
        listener: String,
        /// HTTP status.
        status: u16,
        /// The body, or its beginning.
        text: String,
    },
    /// An answer beyond the bound.
    #[error(
        "the answer of {listener} is larger than {} MiB, and was not read",
        MAX_BODY_BYTES >> 20
    )]
    TooLarge {
        /// Host and port.
        listener: String,
    },
    /// Another server listens.
    #[error(
        "the server on {listener} is no Heapwarden agent; the agent logs its own address in the JVM's log"
    )]
    NoAgent {
        /// Host and port.
        listener: String,
    },
    /// A Heapwarden agent without this endpoint.
    #[error(
        "the Heapwarden agent on {listener} has no {endpoint}: its version does not fit this command; use the command of the agent's release"
    )]
    NoEndpoint {
        /// Host and port.
        listener: String,
        /// Its path.
        endpoint: &'static str,
    },
    /// A Heapwarden agent that does not make this yet.
    #[error("the Heapwarden agent on {listener} has no {endpoint}: it is older than this command")]
    TooOld {
        /// Host and port.
        listener: String,
        /// Its path.
        endpoint: &'static str,
    },
}

fn seconds(limit: Duration) -> u64 {
    limit.as_secs()
}

fn escaped_path(path: &std::path::Path) -> String {
    printable::escaped(&path.to_string_lossy()).into_owned()
}

/// The system's error in plain words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => "it is not a file".into(),
        io::ErrorKind::NotFound => "it does not exist".into(),
        _ => error.to_string(),
    }
}

fn first_line(text: &str) -> String {
    const MAX_COLUMNS: usize = 160;
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = printable::fitted(line.unwrap_or("(nothing)").trim(), MAX_COLUMNS);
    line.into_owned()
}
