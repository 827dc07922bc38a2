//! The address of an agent, as a user writes it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use policy_report::RunFile;

use super::LiveError;
use heapwarden_terminal::printable;

/// The default port of a policy.
pub(super) const DEFAULT_PORT: u16 = 9464;

/// Longest host name that DNS has, in bytes.
const MAX_HOST_BYTES: usize = 253;

/// Largest run file that is read, in bytes; an agent writes about 50.
pub const MAX_RUN_FILE_BYTES: u64 = 4096;

/// The place of an agent's listener, as a user may give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A listener.
    Listener(Listener),
    /// An agent's run file. It is read again for every request, because a restarted JVM may listen on
    /// another port.
    RunFile(PathBuf),
}

/// Host and port of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// A name, or an address without brackets.
    host: String,
    /// Never 0.
    port: u16,
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// An empty text.
    #[error("is empty; give host:port, a port, http://host:port/ or an agent's run file")]
    Empty,
    /// `https:` or another scheme.
    #[error("has a scheme other than http; an agent speaks plain HTTP")]
    Scheme,
    /// `user:password@host`.
    #[error("has a user name; leave it out, agents ask for none")]
    User,
    /// A URL with a path that no agent has.
    #[error("has a path; give http://host:port/ only")]
    Page,
    /// Neither a name nor an IP address.
    #[error("has no valid host name or IP address before the port")]
    Host,
    /// 0, above 65,535, or no number.
    #[error("has no valid port; ports are 1 to 65535")]
    Port,
}

impl Default for Address {
    /// The address on which an agent listens by default.
    fn default() -> Self {
        Address::Listener(Listener {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: DEFAULT_PORT,
        })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// `host:port`, `host`, `port`, `http://host:port/`, or the path of a run file, which has a
    /// slash or ends in `.json`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            if !scheme.eq_ignore_ascii_case("http") {
                return Err(AddressError::Scheme);
            }
            return url(rest).map(Address::Listener);
        }
        if text.contains('/') || text.ends_with(".json") {
            return Ok(Address::RunFile(text.into()));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let port = port(text)?;
            return Ok(Address::Listener(Listener {
                host: Ipv4Addr::LOCALHOST.to_string(),
                port,
            }));
        }
        listener(text, DEFAULT_PORT).map(Address::Listener)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Listener(listener) => listener.fmt(formatter),
            Address::RunFile(path) => {
                formatter.write_str(&printable::escaped(&path.to_string_lossy()))
            }
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

impl Address {
    /// The listener, and for a run file the process id.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a run file.
    pub(super) fn listener(&self) -> Result<(Listener, Option<u32>), LiveError> {
        match self {
            Address::Listener(listener) => Ok((listener.clone(), None)),
            Address::RunFile(path) => {
                let run = run_file(path)?;
                Ok((Listener::from(run.listen), Some(run.pid)))
            }
        }
    }
}

impl From<SocketAddr> for Listener {
    /// The unspecified address ("all addresses") becomes the loopback address, to which one can connect.
    fn from(bound: SocketAddr) -> Self {
        let host = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Listener {
            host: host.to_string(),
            port: bound.port(),
        }
    }
}

/// Reads the run file that an agent wrote once its listener was bound.
fn run_file(path: &Path) -> Result<RunFile, LiveError> {
    let mut bytes = Vec::new();
    // Opening a pipe would wait for its writer.
    let read = std::fs::metadata(path).and_then(|found| {
        if !found.is_file() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        File::open(path)?
            .take(MAX_RUN_FILE_BYTES)
            .read_to_end(&mut bytes)
    });
    read.map_err(|error| LiveError::RunFileUnreadable {
        path: path.into(),
        error,
    })?;
    serde_json::from_slice(&bytes)
        .ok()
        .filter(|run: &RunFile| run.listen.port() != 0)
        .ok_or_else(|| LiveError::NoRunFile { path: path.into() })
}

/// Parses the text that follows `http://`. URLs of the agent's own endpoints are accepted: people copy them from a
/// browser or a scrape configuration.
fn url(rest: &str) -> Result<Listener, AddressError> {
    let (authority, page) = match rest.find(['/', '?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if authority.contains('@') {
        return Err(AddressError::User);
    }
    if !matches!(
        page,
        "" | "/" | "/metrics" | "/api/v1/accounts" | "/api/v1/leaks" | "/api/v1/profile"
    ) {
        return Err(AddressError::Page);
    }
    listener(authority, 80)
}

/// `host:port`, `host`, `[v6]:port`, `[v6]` or `v6`.
fn listener(text: &str, default_port: u16) -> Result<Listener, AddressError> {
    if let Some(inside) = text.strip_prefix('[') {
        let (ip, after) = inside.split_once(']').ok_or(AddressError::Host)?;
        let ip: Ipv6Addr = ip.parse().map_err(|_| AddressError::Host)?;
        let port = match after.strip_prefix(':') {
            Some(digits) => port(digits)?,
            None if after.is_empty() => default_port,
            None => return Err(AddressError::Port),
        };
        return Ok(SocketAddr::from((ip, port)).into());
    }
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Ok(SocketAddr::from((ip, default_port)).into());
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) => (host, port(digits)?),
        None => (text, default_port),
    };
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(SocketAddr::from((ip, port)).into());
    }
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.bytes().all(valid) {
        return Err(AddressError::Host);
    }
    Ok(Listener {
        host: host.into(),
        port,
    })
}

fn port(digits: &str) -> Result<u16, AddressError> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::Port);
    }
    match digits.parse() {
        Ok(0) | Err(_) => Err(AddressError::Port),
        Ok(port) => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match text.parse::<Address>() {
            Ok(address) => address.to_string(),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn every_way_to_name_a_listener() {
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            ("app1.example:9000", "app1.example:9000"),
            ("app1", "app1:9464"),
            ("10.0.0.7", "10.0.0.7:9464"),
            ("0.0.0.0:9000", "127.0.0.1:9000"),
            ("[::1]:9000", "[::1]:9000"),
            ("[::]", "[::1]:9464"),
            ("::1", "[::1]:9464"),
            ("http://app1:9000", "app1:9000"),
            ("HTTP://app1:9000/", "app1:9000"),
            ("http://app1:9000/metrics", "app1:9000"),
            ("http://app1/", "app1:80"),
            ("http://[::1]:9000/api/v1/accounts", "[::1]:9000"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(Address::default().to_string(), "127.0.0.1:9464");
    }

    #[test]
    fn a_path_is_a_run_file() {
        for text in ["/run/app/heapwarden.json", "./run", "run.json", "../a/b"] {
            assert_eq!(text.parse(), Ok(Address::RunFile(text.into())));
        }
    }

    #[test]
    fn a_wrong_address_gives_the_reason() {
        for (text, expected) in [
            ("", AddressError::Empty),
            ("https://app1:9464/", AddressError::Scheme),
            ("ftp://app1", AddressError::Scheme),
            ("http://me:secret@app1:9464/", AddressError::User),
            ("http://app1:9464/graph", AddressError::Page),
            ("http://app1:9464/?a=b", AddressError::Page),
            ("http:///", AddressError::Host),
            (":9464", AddressError::Host),
            ("a b:9464", AddressError::Host),
            ("a\r\nX: y:9464", AddressError::Host),
            ("ä:9464", AddressError::Host),
            ("[::1", AddressError::Host),
            ("[app1]:9464", AddressError::Host),
            ("app1:", AddressError::Port),
            ("app1:0", AddressError::Port),
            ("app1:+1", AddressError::Port),
            ("app1:65536", AddressError::Port),
            ("99999999999999999999", AddressError::Port),
            ("[::1]9464", AddressError::Port),
        ] {
            assert_eq!(text.parse::<Address>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_run_file_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let address = Address::RunFile(path.clone());
        let missing = address.listener().unwrap_err().to_string();
        assert!(missing.contains("run.json"), "{missing}");
        for (text, expected) in [
            (r#"{"pid":7,"listen":"127.0.0.1:41234"}"#, "127.0.0.1:41234"),
            (
                r#"{"pid":8,"listen":"0.0.0.0:9000","more":1}"#,
                "127.0.0.1:9000",
            ),
            (r#"{"pid":8,"listen":"[::]:9000"}"#, "[::1]:9000"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(address.listener().unwrap().0.to_string(), expected);
        }
        assert_eq!(address.listener().unwrap().1, Some(8));
        for text in [
            "",
            "{",
            "[]",
            r#"{"pid":1}"#,
            r#"{"pid":1,"listen":"evil.example:1"}"#,
            r#"{"pid":1,"listen":"127.0.0.1:0"}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            let error = address.listener().unwrap_err();
            assert!(matches!(error, LiveError::NoRunFile { .. }), "{error}");
        }
        let folder = Address::RunFile(folder.path().into());
        assert!(folder.listener().is_err(), "a folder");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_breaks_the_request(text in "\\PC{0,40}|[0-9a-f:\\[\\]./@]{0,30}") {
            if let Ok(Address::Listener(listener)) = text.parse() {
                let authority = listener.to_string();
                prop_assert!(authority.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert!(!authority.contains(['/', '@', '?', '#']));
                let again: Address = authority.parse().unwrap();
                prop_assert_eq!(again, Address::Listener(listener));
            }
        }
    }
}
