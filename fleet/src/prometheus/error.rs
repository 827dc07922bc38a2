//! Why Prometheus cannot be asked, as sentences for the user.

use heapwarden_client::server_address::ServerAddressError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address itself.
    #[error(
        "{text:?} is not the address of a Prometheus: {why}; write http://host:9090, with its path prefix if it has one"
    )]
    Address {
        /// As it was given, without a password.
        text: String,
        /// The reason why it is no such address.
        why: &'static str,
    },
    /// A file with a token or certificates.
    #[error("cannot use {file}: {why}")]
    File {
        /// Its path.
        file: String,
        /// The reader's complaint.
        why: String,
    },
    /// No HTTP answer at all.
    #[error("cannot reach Prometheus at {url}: {why}; check the address, and that Prometheus runs")]
    Unreachable {
        /// The base address.
        url: String,
        /// The transport's complaint.
        why: String,
    },
    /// Answered too slowly.
    #[error(
        "Prometheus at {url} has not answered within {seconds} s; ask for a shorter range, a coarser --step or fewer series with --match, or give it more time with --timeout"
    )]
    TimedOut {
        /// The base address.
        url: String,
        /// The time that the client allows for an answer.
        seconds: u64,
    },
    /// 401 or 403.
    #[error(
        "Prometheus at {url} refuses the credentials (HTTP {status}); put user:password@ into its address, or give --bearer-token-file"
    )]
    Unauthorized {
        /// The base address.
        url: String,
        /// 401 or 403.
        status: u16,
    },
    /// 3xx.
    #[error("{url} redirects to {location:?}; give that address instead")]
    Redirected {
        /// The base address.
        url: String,
        /// The header, clipped.
        location: String,
    },
    /// An answer, but not of this API.
    #[error(
        "{url} answers (HTTP {status}), but not as Prometheus does: {why}; check the address and its path prefix"
    )]
    NotPrometheus {
        /// The base address.
        url: String,
        /// HTTP status.
        status: u16,
        /// The reason why the answer is not one of Prometheus.
        why: String,
    },
    /// Prometheus rejects or fails the query.
    #[error("Prometheus rejects the query ({kind}): {message}\n  query: {query}")]
    Query {
        /// Its `errorType`.
        kind: String,
        /// Its own words, printable.
        message: String,
        /// The text in PromQL that was sent, printable.
        query: String,
    },
    /// More than Prometheus loads or this command reads.
    #[error(
        "the answer is too large ({why}); take a coarser --step, a shorter range, or fewer series with --match"
    )]
    TooMuch {
        /// Which limit was exceeded.
        why: String,
    },
}

impl From<ServerAddressError> for Error {
    fn from(ServerAddressError { text, why }: ServerAddressError) -> Error {
        Error::Address { text, why }
    }
}

impl Error {
    /// Whether a shorter range may succeed where this one failed.
    pub fn is_too_much(&self) -> bool {
        matches!(self, Error::TooMuch { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwarden_client::server_address::ServerAddress;

    #[test]
    fn what_is_no_address_is_said_with_what_to_write() {
        let wrong = ServerAddress::new("ftp://u:topsecret@a").expect_err("no HTTP");
        assert_eq!(
            Error::from(wrong).to_string(),
            "\"ftp://a\" is not the address of a Prometheus: it does not begin with http:// or https://; \
             write http://host:9090, with its path prefix if it has one"
        );
    }
}
