//! Parses bytes into a request, or says why not: a pure function.

use super::host;

/// Most header fields of one request.
const MAX_HEADERS: usize = 64;

/// The methods that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD: as GET, without the body.
    Head,
}

/// A request that is well-formed as far as HTTP goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET or HEAD.
    pub method: Method,
    /// The path as it was sent: begins with `/`, not decoded.
    pub path: String,
    /// The part after `?`, not decoded.
    pub query: Option<String>,
    /// The host that the client asks for: the `Host` header, or the authority of an absolute target.
    /// `None` only in HTTP/1.0, which browsers do not speak.
    pub host: Option<String>,
    /// All `Accept` headers, joined by commas; empty if there were none.
    pub accept: String,
    /// Whether an `Accept-Encoding` header takes gzip.
    pub accepts_gzip: bool,
    /// All `If-None-Match` headers, joined by commas; empty if there were none.
    pub if_none_match: String,
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// 400
    #[error("not an HTTP request")]
    Malformed,
    /// 400
    #[error("the request ended before its headers did")]
    Incomplete,
    /// 400
    #[error("the request target must be a path, such as /metrics")]
    Target,
    /// 400
    #[error("HTTP/1.1 wants exactly one Host header, with a valid host name")]
    Host,
    /// 400
    #[error("Content-Length must be one number")]
    ContentLength,
    /// 405
    #[error("only GET and HEAD are answered: this listener changes nothing")]
    Method,
    /// 408
    #[error("the request took too long to arrive")]
    Timeout,
    /// 413
    #[error("a request body is not accepted")]
    Body,
    /// 414
    #[error("the request target is too long")]
    TargetTooLong,
    /// 431
    #[error("the request headers are too large")]
    HeadersTooLarge,
    /// 505
    #[error("only HTTP/1.0 and HTTP/1.1 are spoken here")]
    Version,
}

impl Reject {
    /// The status code for it.
    pub fn status(self) -> u16 {
        match self {
            Reject::Malformed
            | Reject::Incomplete
            | Reject::Target
            | Reject::Host
            | Reject::ContentLength => 400,
            Reject::Method => 405,
            Reject::Timeout => 408,
            Reject::Body => 413,
            Reject::TargetTooLong => 414,
            Reject::HeadersTooLarge => 431,
            Reject::Version => 505,
        }
    }

    /// Returns the part that is too large in a request that filled the whole buffer without an end.
    pub fn too_large(bytes: &[u8]) -> Reject {
        if bytes.contains(&b'\n') {
            Reject::HeadersTooLarge
        } else {
            Reject::TargetTooLong
        }
    }
}

/// Parses the head of a request; `None` if there is not enough of it yet. Bytes after the
/// head are not looked at: what they hold is neither a body nor another request.
///
/// # Errors
/// A [`Reject`] as soon as it is certain that no further bytes will help.
pub fn parse(bytes: &[u8]) -> Result<Option<Request>, Reject> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let status = match head.parse(bytes) {
        Ok(status) => status,
        Err(httparse::Error::TooManyHeaders) => return Err(Reject::HeadersTooLarge),
        Err(httparse::Error::Version) if claims_http(bytes) => return Err(Reject::Version),
        Err(_) => return Err(Reject::Malformed),
    };
    if status.is_partial() {
        return Ok(None);
    }
    let (Some(method), Some(target), Some(version)) = (head.method, head.path, head.version) else {
        return Err(Reject::Malformed);
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return Err(Reject::Method),
    };
    let (authority, path, query) = split_target(target)?;
    let host = host_of(head.headers, version)?;
    if has_body(head.headers)? {
        return Err(Reject::Body);
    }
    let joined = |name| {
        let values: Vec<_> = values(head.headers, name)
            .map(String::from_utf8_lossy)
            .collect();
        values.join(",")
    };
    Ok(Some(Request {
        method,
        path: path.to_owned(),
        query: query.map(str::to_owned),
        // RFC 9112 (3.2.2): the authority of an absolute target replaces `Host`.
        host: authority.or(host).map(str::to_owned),
        accept: joined("accept"),
        accepts_gzip: values(head.headers, "accept-encoding").any(takes_gzip),
        if_none_match: joined("if-none-match"),
    }))
}

/// Whether a list of encodings has gzip in it, and not with `q=0`.
fn takes_gzip(encodings: &[u8]) -> bool {
    encodings.split(|&b| b == b',').any(|encoding| {
        let mut parts = encoding.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        let is_refused = |part: &[u8]| {
            let weight = part.strip_prefix(b"q=").or(part.strip_prefix(b"Q="));
            weight.is_some_and(|weight| weight.iter().all(|b| matches!(b, b'0' | b'.')))
        };
        is_gzip && !parts.any(is_refused)
    })
}

/// Whether the first line ends in something like `HTTP/2.0`: another version, not garbage.
fn claims_http(bytes: &[u8]) -> bool {
    let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
    let version = line.trim_ascii_end().rsplit(|&b| b == b' ').next();
    version.is_some_and(|version| version.starts_with(b"HTTP/"))
}

/// Authority (of an absolute target), path and query.
fn split_target(target: &str) -> Result<(Option<&str>, &str, Option<&str>), Reject> {
    const SCHEME: &str = "http://";
    let (authority, rest) = match target.get(..SCHEME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => {
            let rest = &target[SCHEME.len()..];
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            host::split(&rest[..end]).ok_or(Reject::Target)?;
            (Some(&rest[..end]), &rest[end..])
        }
        _ => (None, target),
    };
    if rest.contains('#') {
        return Err(Reject::Target);
    }
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    match (path, authority) {
        ("", Some(_)) => Ok((authority, "/", query)),
        (path, _) if path.starts_with('/') => Ok((authority, path, query)),
        _ => Err(Reject::Target),
    }
}

fn host_of<'a>(headers: &[httparse::Header<'a>], version: u8) -> Result<Option<&'a str>, Reject> {
    let mut hosts = values(headers, "host");
    let host = match (hosts.next(), hosts.next()) {
        (None, _) if version == 0 => return Ok(None),
        (Some(host), None) => std::str::from_utf8(host).map_err(|_| Reject::Host)?,
        _ => return Err(Reject::Host),
    };
    host::split(host).ok_or(Reject::Host)?;
    Ok(Some(host))
}

fn has_body(headers: &[httparse::Header<'_>]) -> Result<bool, Reject> {
    let mut lengths = values(headers, "content-length");
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(Reject::ContentLength);
    }
    if values(headers, "transfer-encoding").next().is_some() {
        return Ok(true);
    }
    match length {
        None => Ok(false),
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            Ok(digits.iter().any(|&digit| digit != b'0'))
        }
        Some(_) => Err(Reject::ContentLength),
    }
}

fn values<'h, 'a>(
    headers: &'h [httparse::Header<'a>],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> + use<'h, 'a> {
    let named = move |header: &&httparse::Header<'a>| header.name.eq_ignore_ascii_case(name);
    headers.iter().filter(named).map(|header| header.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Request {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    fn reject(text: &str) -> Reject {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_plain_request_is_taken_apart() {
        let request = ok(
            "GET /api/v1/accounts?classes=all HTTP/1.1\r\nhost: localhost:9464\r\n\
             Accept: text/plain\r\naccept: */*\r\n\r\n",
        );
        let expected = Request {
            method: Method::Get,
            path: "/api/v1/accounts".to_owned(),
            query: Some("classes=all".to_owned()),
            host: Some("localhost:9464".to_owned()),
            accept: "text/plain,*/*".to_owned(),
            accepts_gzip: false,
            if_none_match: String::new(),
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn gzip_is_taken_if_it_is_named_and_not_refused() {
        let takes = |value: &str| {
            let header = format!("Accept-Encoding: {value}\r\n");
            ok(&format!("GET / HTTP/1.1\r\nHost: a\r\n{header}\r\n")).accepts_gzip
        };
        for value in ["gzip", "br, GZIP", "deflate , gzip;q=0.5", "gzip; q=1"] {
            assert!(takes(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip ; q=0.0", "xgzip", "identity"] {
            assert!(!takes(value), "{value}");
        }
    }

    #[test]
    fn an_absolute_target_says_where_it_is_meant_for() {
        let request = ok("HEAD HTTP://other:1?x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(request.method, Method::Head);
        assert_eq!(request.host.as_deref(), Some("other:1"));
        assert_eq!(
            (request.path.as_str(), request.query.as_deref()),
            ("/", Some("x"))
        );
    }

    #[test]
    fn every_prefix_of_a_request_is_incomplete() {
        let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        assert!(parse(text).unwrap().is_some());
    }

    #[test]
    fn old_clients_need_no_host() {
        assert_eq!(ok("GET / HTTP/1.0\r\n\r\n").host, None);
        assert_eq!(reject("GET / HTTP/1.1\r\n\r\n"), Reject::Host);
    }

    #[test]
    fn bad_requests_are_told_why() {
        let with = |headers: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
        assert_eq!(reject(&with("Host: a\r\n")), Reject::Host);
        assert_eq!(reject("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), Reject::Host);
        assert_eq!(reject("GET / HTTP/1.0\r\nHost: \r\n\r\n"), Reject::Host);
        assert_eq!(reject(&with("Content-Length: 1\r\n")), Reject::Body);
        assert_eq!(
            reject(&with("Transfer-Encoding: chunked\r\n")),
            Reject::Body
        );
        for length in ["+1", "-0", "0x0", "", "0, 0", "0\r\nContent-Length: 0"] {
            let text = with(&format!("Content-Length: {length}\r\n"));
            assert_eq!(reject(&text), Reject::ContentLength, "{length}");
        }
        assert_eq!(reject("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), Reject::Method);
        for target in ["*", "host:80", "https://a/", "http:///", "/a#b", "metrics"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(reject(&text), Reject::Target, "{target}");
        }
        assert_eq!(
            reject(&with(&"a: b\r\n".repeat(100))),
            Reject::HeadersTooLarge
        );
        assert_eq!(reject("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Reject::Version);
        assert_eq!(reject("GET / HTTP/3\r\n\r\n"), Reject::Version);
        assert_eq!(reject("GET / FTP/1.1\r\n\r\n"), Reject::Malformed);
        assert_eq!(parse(b"\x16\x03\x01\x02\x00\x01"), Err(Reject::Malformed));
        // A folded header line could hide another header.
        assert_eq!(reject(&with("A: b\r\n Host: c\r\n")), Reject::Malformed);
        assert_eq!(reject(&with("A : b\r\n")), Reject::Malformed);
    }
}
