//! Where the agent's HTTP listener binds.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::diagnostic::quote;

/// Longest host name, in bytes: what DNS allows.
const MAX_HOST_BYTES: usize = 253;

/// Where the agent's HTTP listener binds, as `host:port` or `off`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Listen {
    /// A TCP address.
    Address {
        /// A host name, an IPv4 address, or an IPv6 address without its brackets.
        host: String,
        /// The port; 0 lets the system pick one.
        port: u16,
    },
    /// No listener.
    Off,
}

impl Default for Listen {
    /// `127.0.0.1:9464`.
    fn default() -> Self {
        Listen::Address {
            host: "127.0.0.1".into(),
            port: 9464,
        }
    }
}

/// Why a text is not an address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// No colon, or nothing before it.
    #[error("{} has no host", quote(.0))]
    NoHost(String),
    /// No colon behind the host.
    #[error("{} has no port", quote(.0))]
    NoPort(String),
    /// Not 0 to 65535.
    #[error("{} is not a port", quote(.0))]
    BadPort(String),
    /// Not a name or an address.
    #[error("{} is not a host name or an address", quote(.0))]
    BadHost(String),
}

impl ListenError {
    /// Returns advice on the text to write instead.
    pub fn hint(&self) -> String {
        match self {
            ListenError::NoHost(text) => {
                let port = text.trim_start_matches(':');
                if port.parse::<u16>().is_ok() {
                    format!(
                        "write \"127.0.0.1:{port}\" for this machine only or \"0.0.0.0:{port}\" for all"
                    )
                } else {
                    FORMS.into()
                }
            }
            ListenError::BadPort(_) => "a port is a number from 0 (any free one) to 65535".into(),
            ListenError::NoPort(_) | ListenError::BadHost(_) => FORMS.into(),
        }
    }
}

const FORMS: &str = "write \"host:port\", such as \"127.0.0.1:9464\" or \"[::1]:9464\", or \"off\"";

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text == "off" {
            return Ok(Listen::Off);
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Listen::Address {
                host: address.ip().to_string(),
                port: address.port(),
            });
        }
        if text.parse::<u16>().is_ok() {
            return Err(ListenError::NoHost(text.into()));
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| ListenError::NoPort(text.into()))?;
        if host.is_empty() {
            return Err(ListenError::NoHost(text.into()));
        }
        if !is_host_name(host) {
            return Err(ListenError::BadHost(host.into()));
        }
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ListenError::BadPort(port.into()));
        }
        let port = port
            .parse()
            .map_err(|_| ListenError::BadPort(port.into()))?;
        Ok(Listen::Address {
            host: host.into(),
            port,
        })
    }
}

/// Labels of letters, digits, `-` and `_`, with at least one letter in the whole: a host without a
/// letter is a broken IPv4 address, which a resolver might still read as a number.
fn is_host_name(host: &str) -> bool {
    host.len() <= MAX_HOST_BYTES
        && host.bytes().any(|byte| byte.is_ascii_alphabetic())
        && host.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        })
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Off => formatter.write_str("off"),
            Listen::Address { host, port } if host.parse::<Ipv6Addr>().is_ok() => {
                write!(formatter, "[{host}]:{port}")
            }
            Listen::Address { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Result<Listen, ListenError> {
        Ok(Listen::Address {
            host: host.into(),
            port,
        })
    }

    #[test]
    fn addresses_names_and_off() {
        assert_eq!("off".parse(), Ok(Listen::Off));
        assert_eq!("127.0.0.1:9464".parse::<Listen>(), Ok(Listen::default()));
        assert_eq!("0.0.0.0:0".parse(), address("0.0.0.0", 0));
        assert_eq!("[::1]:80".parse(), address("::1", 80));
        assert_eq!("localhost:9464".parse(), address("localhost", 9464));
        assert_eq!("my_pod-1.ns:1".parse(), address("my_pod-1.ns", 1));
    }

    #[test]
    fn display_reads_back() {
        for text in ["off", "127.0.0.1:9464", "[::1]:80", "localhost:1"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Listen>().unwrap_err();
        assert_eq!(error("9464"), ListenError::NoHost("9464".into()));
        assert!(error("9464").hint().contains("\"127.0.0.1:9464\""));
        assert!(error(":9464").hint().contains("\"0.0.0.0:9464\""));
        assert_eq!(error("localhost"), ListenError::NoPort("localhost".into()));
        assert_eq!(error("Off"), ListenError::NoPort("Off".into()));
        assert_eq!(error("h:65536"), ListenError::BadPort("65536".into()));
        assert_eq!(error("h:"), ListenError::BadPort(String::new()));
        assert_eq!(error("h:+1"), ListenError::BadPort("+1".into()));
        assert_eq!(error("::1:80x"), ListenError::BadHost("::1".into()));
        assert_eq!(error("a b:1"), ListenError::BadHost("a b".into()));
        assert_eq!(
            error("127.0.0.300:1"),
            ListenError::BadHost("127.0.0.300".into())
        );
        assert_eq!(error(""), ListenError::NoPort(String::new()));
    }
}
