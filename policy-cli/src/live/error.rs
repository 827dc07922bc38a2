//! Why a live JVM could not be read: one sentence, with what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::client::{CONNECT_LIMIT, MAX_BODY_BYTES, WHOLE_LIMIT};
use crate::printable;

/// Why a live JVM could not be read. Whatever a server said is in it as it came, and escaped
/// where it is displayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    /// The run file is not there or not readable.
    #[error(
        "cannot read the run file {}: {}; is the JVM up, with run-file= among the agent's options?",
        escaped_path(path),
        reason(error)
    )]
    RunFileUnreadable {
        /// As given.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file without pid and address.
    #[error(
        "{} is no run file of an agent (one line of JSON with pid and listen)",
        escaped_path(path)
    )]
    NoRunFile {
        /// As given.
        path: PathBuf,
    },
    /// Nobody listens, and the process of the run file is gone.
    #[error(
        "nothing listens on {listener}: process {pid} of the run file has ended without removing it"
    )]
    Ended {
        /// Host and port.
        listener: String,
        /// Of the run file.
        pid: u32,
    },
    /// Nobody listens.
    #[error(
        "nothing listens on {listener}; is the JVM up with the agent in it, and listen= set to this address?"
    )]
    NobodyListens {
        /// Host and port.
        listener: String,
    },
    /// The name has no address.
    #[error("{listener}: the host name has no address")]
    UnknownHost {
        /// Host and port.
        listener: String,
    },
    /// Too slow.
    #[error(
        "{listener} does not answer in time ({} s to connect, {} s in all); is the JVM stopped, or the machine overloaded?",
        seconds(CONNECT_LIMIT),
        seconds(WHOLE_LIMIT)
    )]
    TimedOut {
        /// Host and port.
        listener: String,
    },
    /// Any other failure below HTTP, or of HTTP itself.
    #[error("{listener} cannot be read: {}", printable::escaped(reason))]
    Broken {
        /// Host and port.
        listener: String,
        /// What the client says.
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
        "the answer of {listener} is larger than {} MiB and was not read",
        MAX_BODY_BYTES >> 20
    )]
    TooLarge {
        /// Host and port.
        listener: String,
    },
    /// Something else listens.
    #[error(
        "a server answers on {listener}, but it is no Heapwarden agent; the agent's own line in the JVM's log names its address"
    )]
    NoAgent {
        /// Host and port.
        listener: String,
    },
    /// A Heapwarden agent without this page.
    #[error(
        "the Heapwarden agent on {listener} has no /api/v1/accounts: it is too old or too new for this command"
    )]
    NoAccounts {
        /// Host and port.
        listener: String,
    },
}

fn seconds(limit: Duration) -> u64 {
    limit.as_secs()
}

fn escaped_path(path: &std::path::Path) -> String {
    printable::escaped(&path.to_string_lossy()).into_owned()
}

/// Without the number that follows the words of a system's error.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => "it is no file".into(),
        io::ErrorKind::NotFound => "there is none".into(),
        _ => error.to_string(),
    }
}

fn first_line(text: &str) -> String {
    const MOST_COLUMNS: usize = 160;
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = printable::fitted(line.unwrap_or("(nothing)").trim(), MOST_COLUMNS);
    line.into_owned()
}
