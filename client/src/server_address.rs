//! The base address of a server that is no agent (a Prometheus, a Pyroscope), and the credentials for it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use ureq::http::Uri;

/// Why a text is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address of a server: {why}")]
pub struct ServerAddressError {
    /// As it was given, without a password.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

/// `http://user:password@host:9090/prefix`, split: the password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    base: String,
    /// The value of an `Authorization` header.
    authorization: Option<String>,
}

impl ServerAddress {
    /// Reads an address, with or without a `/` or the browser's `/graph` at its end.
    ///
    /// # Errors
    /// It is none.
    pub fn new(text: &str) -> Result<ServerAddress, ServerAddressError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let shown = format!(
            "{scheme}{}{host}{path}",
            if scheme.is_empty() { "" } else { "://" }
        );
        let wrong = |why| ServerAddressError {
            text: shown.clone(),
            why,
        };
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(wrong("it does not begin with http:// or https://"));
        }
        if path.contains(['?', '#']) {
            return Err(wrong("it has a query or a fragment"));
        }
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/graph").unwrap_or(path);
        let base = format!("{scheme}://{host}{path}");
        let uri: Uri = base.parse().map_err(|_| wrong("it is not a URL"))?;
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.host().is_empty() {
            return Err(wrong("it has no host"));
        }
        // `host:` and `host:99999` parse as authorities, but have no port.
        let after_host = host.rsplit(']').next().unwrap_or(host);
        if after_host.contains(':') && authority.port_u16().is_none() {
            return Err(wrong("its port is not valid"));
        }
        let authorization = user.map(|user| {
            let decoded: Vec<u8> = percent_decode_str(user).collect();
            format!("Basic {}", STANDARD.encode(decoded))
        });
        Ok(ServerAddress {
            base,
            authorization,
        })
    }

    /// The same address with a bearer token, which replaces a password.
    ///
    /// # Errors
    /// The token cannot be sent in a header.
    pub fn with_bearer_token(mut self, token: &str) -> Result<ServerAddress, ServerAddressError> {
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ServerAddressError {
                text: self.base,
                why: "the bearer token is empty or has characters that no token has",
            });
        }
        self.authorization = Some(format!("Bearer {token}"));
        Ok(self)
    }

    /// Without user and password, for requests and messages.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The value of the `Authorization` header.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_taken_apart() {
        let plain = ServerAddress::new(" http://prometheus:9090/ ").unwrap();
        assert_eq!(
            (plain.base(), plain.authorization()),
            ("http://prometheus:9090", None)
        );
        let secret = ServerAddress::new("HTTPS://ops:p%40ss@m.example/prom/graph").unwrap();
        assert_eq!(secret.base(), "https://m.example/prom");
        assert_eq!(secret.authorization(), Some("Basic b3BzOnBAc3M="));
        assert_eq!(format!("{secret:?}"), "https://m.example/prom");
        assert_eq!(
            ServerAddress::new("http://[::1]:9090").unwrap().base(),
            "http://[::1]:9090"
        );
    }

    #[test]
    fn what_is_no_address_is_said_without_the_password() {
        for text in [
            "prometheus:9090",
            "ftp://a",
            "http://",
            "http://a:b/",
            "http://a:/",
            "http://a:99999",
            "http://u:topsecret@:1",
            "http://u:topsecret@a b",
            "http://u:topsecret@a/?x=1",
        ] {
            let error = ServerAddress::new(text).expect_err(text).to_string();
            assert!(!error.contains("topsecret"), "{error}");
        }
    }

    #[test]
    fn tokens_that_would_break_the_header_are_rejected() {
        let address = ServerAddress::new("http://a").unwrap();
        for token in ["", " ", "a b", "a\r\nX: y", "ü"] {
            assert!(
                address.clone().with_bearer_token(token).is_err(),
                "{token:?}"
            );
        }
        let address = address.with_bearer_token("abc.def\n").unwrap();
        assert_eq!(address.authorization(), Some("Bearer abc.def"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(https?://)?.{0,40}") {
            let _ = ServerAddress::new(&text);
        }
    }
}
