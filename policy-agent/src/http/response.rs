//! A response, and its bytes.

use std::fmt::Write as _;
use std::time::SystemTime;

use super::date::imf_fixdate;
use super::request::{Method, Reject};

/// How long a response is good for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Caching {
    /// Until it has arrived.
    #[default]
    None,
    /// While the server still has this entity tag, which is asked for each time.
    Asked(String),
    /// For ever: its address changes with it.
    Forever,
}

/// A response; always the last one of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// Whether `body` is gzip.
    pub is_gzip: bool,
    /// How long it is good for.
    pub caching: Caching,
    /// The bytes that are sent to a GET, and measured for a HEAD.
    pub body: Vec<u8>,
}

impl Response {
    /// A sentence as plain text; a line feed is added.
    pub fn text(status: u16, sentence: &str) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            is_gzip: false,
            caching: Caching::None,
            body: format!("{sentence}\n").into_bytes(),
        }
    }

    /// JSON, plain.
    pub fn json(body: Vec<u8>) -> Response {
        Response {
            status: 200,
            content_type: "application/json",
            is_gzip: false,
            caching: Caching::None,
            body,
        }
    }

    /// The bytes to send, status line to body.
    pub fn encode(&self, method: Method, now: SystemTime) -> Vec<u8> {
        let mut head = String::with_capacity(384);
        write!(
            head,
            "HTTP/1.1 {} {}\r\nDate: {}\r\n",
            self.status,
            reason_phrase(self.status),
            imf_fixdate(now),
        )
        .expect("writing to a String does not fail");
        // A 304 has no body, and says nothing of the one that the client has.
        if self.status != 304 {
            write!(
                head,
                "Content-Type: {}\r\nContent-Length: {}\r\n",
                self.content_type,
                self.body.len()
            )
            .expect("writing to a String does not fail");
        }
        if self.is_gzip {
            head.push_str("Content-Encoding: gzip\r\n");
        }
        match self.status {
            // Only the page's own files are no plain data.
            200 | 304 if self.caching != Caching::None => {
                head.push_str("Content-Security-Policy: ");
                head.push_str(policy_page::CONTENT_SECURITY_POLICY);
                head.push_str("\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n");
            }
            405 => head.push_str("Allow: GET, HEAD\r\n"),
            503 => head.push_str("Retry-After: 1\r\n"),
            _ => {}
        }
        head.push_str("Connection: close\r\nCache-Control: ");
        match &self.caching {
            Caching::None => head.push_str("no-store"),
            Caching::Forever => head.push_str("public, max-age=31536000, immutable"),
            Caching::Asked(tag) => {
                head.push_str("no-cache\r\nETag: ");
                head.push_str(tag);
            }
        }
        head.push_str("\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n");
        let mut bytes = head.into_bytes();
        if method == Method::Get {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

impl From<Reject> for Response {
    fn from(reject: Reject) -> Response {
        Response::text(reject.status(), &format!("{reject}."))
    }
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Every status that is ever sent.
#[cfg(test)]
pub(super) const STATUSES: [u16; 13] = [
    200, 304, 400, 403, 404, 405, 408, 413, 414, 431, 500, 503, 505,
];

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_response_is_written_out() {
        let response = Response::text(405, "no");
        let head = "HTTP/1.1 405 Method Not Allowed\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
            Content-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nAllow: GET, HEAD\r\n\
            Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
            Cross-Origin-Resource-Policy: same-origin\r\n\r\n";
        let text = |method| String::from_utf8(response.encode(method, UNIX_EPOCH)).unwrap();
        assert_eq!(text(Method::Get), format!("{head}no\n"));
        assert_eq!(text(Method::Head), head);
    }

    #[test]
    fn every_status_has_a_phrase() {
        for status in STATUSES {
            assert_ne!(reason_phrase(status), "", "{status}");
        }
    }

    #[test]
    fn every_status_is_counted() {
        let counted = crate::events::HTTP_RESPONSES.values.iter();
        let counted: Vec<u16> = counted.map(|code| code.parse().unwrap()).collect();
        assert_eq!(counted, STATUSES);
    }
}
