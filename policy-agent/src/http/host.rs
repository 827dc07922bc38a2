//! The `Host` header: its syntax, and the guard against DNS rebinding.
//!
//! A page in an operator's browser can point a name of its own at 127.0.0.1 and read a loopback listener
//! as same-origin. But it cannot choose the `Host` header. So a listener on a loopback address answers
//! only to names that are known to mean loopback.

use std::net::{IpAddr, Ipv6Addr};

/// Which `Host` headers are answered.
#[derive(Debug, Clone)]
pub enum HostPolicy {
    /// Any syntactically valid one: the listener is meant to be reached by name.
    Any,
    /// `localhost`, `127.0.0.1`, `[::1]`, and these names (compared without case).
    Only(Vec<String>),
}

impl HostPolicy {
    /// The policy for a listener bound to `address`; `allowed` adds names to a loopback one.
    pub fn for_address(address: IpAddr, allowed: &[String]) -> HostPolicy {
        if !address.to_canonical().is_loopback() {
            return HostPolicy::Any;
        }
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "[::1]"]
            .into_iter()
            .map(str::to_owned)
            .chain(allowed.iter().map(|name| name.to_ascii_lowercase()))
            .collect();
        // An address typed in full cannot be rebound.
        names.push(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        HostPolicy::Only(names)
    }

    /// Whether a valid `Host` value, with or without a port, is answered.
    pub fn allows(&self, host: &str) -> bool {
        match self {
            HostPolicy::Any => true,
            HostPolicy::Only(names) => split(host).is_some_and(|(name, _)| {
                names.iter().any(|known| known.eq_ignore_ascii_case(name))
            }),
        }
    }
}

/// Name and port of a `Host` value, if it is valid: `uri-host [ ":" port ]` without the
/// percent-encoding and the future IP versions that RFC 3986 also has.
pub(super) fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            let port = match after {
                "" => None,
                after => Some(after.strip_prefix(':')?),
            };
            (&host[..address.len() + 2], port)
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let valid = name.starts_with('[')
        || (!name.is_empty()
            && name.len() <= 255
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)));
    let port = match port {
        // RFC 9110 allows a colon without digits.
        None | Some("") => None,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
    };
    valid.then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_hosts_are_split() {
        assert_eq!(split("localhost"), Some(("localhost", None)));
        assert_eq!(split("a.example:9464"), Some(("a.example", Some(9464))));
        assert_eq!(split("[::1]:80"), Some(("[::1]", Some(80))));
        assert_eq!(split("[::1]"), Some(("[::1]", None)));
        assert_eq!(split("a:"), Some(("a", None)));
    }

    #[test]
    fn invalid_hosts_are_not() {
        let long = "a".repeat(256);
        let bad = [
            "",
            ":80",
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a:1:2",
            "a:70000",
            "a:+1",
            "[::1",
            "[::1]x",
            "[localhost]",
            "::1",
            "a,b",
            "ä",
            &long,
        ];
        for host in bad {
            assert_eq!(split(host), None, "{host}");
        }
    }

    #[test]
    fn loopback_answers_only_to_its_names() {
        let allowed = ["Sidecar.local".to_owned()];
        let policy = HostPolicy::for_address("127.0.0.1".parse().unwrap(), &allowed);
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:9464",
            "[::1]",
            "sidecar.local:80",
        ] {
            assert!(policy.allows(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.2",
            "127.0.0.1.nip.io",
        ] {
            assert!(!policy.allows(host), "{host}");
        }
        let policy = HostPolicy::for_address("127.0.0.2".parse().unwrap(), &[]);
        assert!(policy.allows("127.0.0.2:9464"));
        let policy = HostPolicy::for_address("::ffff:127.0.0.1".parse().unwrap(), &[]);
        assert!(!policy.allows("evil.example"));
    }

    #[test]
    fn other_addresses_answer_to_any_name() {
        for address in ["0.0.0.0", "10.1.2.3", "::"] {
            let policy = HostPolicy::for_address(address.parse().unwrap(), &[]);
            assert!(policy.allows("prometheus-target.example:9464"));
        }
    }
}
