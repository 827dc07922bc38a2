//! The HTTP client of tests, benchmarks and xtask. Tests of malformed requests write to sockets
//! themselves.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ureq::http::{Request, Response};
use ureq::{Agent, Body};

/// Longest that a whole request may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest body that is read.
const BODY_MAXIMUM_BYTES: u64 = 256 << 20;

/// An answer, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header lines, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl Answer {
    /// The body, if the status is 200.
    ///
    /// # Errors
    /// A sentence with the status and the body.
    pub fn ok(self) -> io::Result<String> {
        if self.status == 200 {
            return Ok(self.body);
        }
        Err(io::Error::other(format!(
            "status {}: {}",
            self.status, self.body
        )))
    }
}

/// An answer whose status came and whose body did not: its end is missing.
#[derive(Debug)]
pub struct Cut {
    /// The status that was sent before.
    pub status: u16,
    reason: String,
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "status {}, then cut: {}", self.status, self.reason)
    }
}

impl Error for Cut {}

/// The status of an answer that was cut, if that is what the error says.
#[must_use]
pub fn cut(error: &io::Error) -> Option<u16> {
    let cut = error.get_ref()?.downcast_ref::<Cut>()?;
    Some(cut.status)
}

/// A client of one server. It keeps connections open if the server does. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Agent,
    address: SocketAddr,
}

impl Client {
    /// A client that connects at its first request; a whole request may take 30 seconds.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self::configured(address, PATIENCE, 1)
    }

    fn configured(address: SocketAddr, patience: Duration, idle: usize) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // WebDAV's.
            .allow_non_standard_methods(true)
            .max_redirects(0)
            // A proxy of the environment must not stand between a test and a port on loopback.
            .proxy(None)
            .timeout_global(Some(patience))
            .max_idle_connections(idle)
            .max_idle_connections_per_host(idle)
            .build()
            .new_agent();
        Self { agent, address }
    }

    /// `GET path`.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn get(&self, path: &str) -> io::Result<Answer> {
        self.send("GET", path, &[])
    }

    /// `POST path` with an empty body.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn post(&self, path: &str) -> io::Result<Answer> {
        self.send("POST", path, &[])
    }

    /// Any method, with header lines and an empty body.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        self.send_body(method, path, headers, &[])
    }

    /// Any method, with header lines and a body.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn send_body(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let url = format!("http://{}{path}", self.address);
        let explain = |kind, error: &dyn std::fmt::Display| {
            io::Error::new(kind, format!("{method} {url}: {error}"))
        };
        let invalid = |error: ureq::http::Error| explain(io::ErrorKind::InvalidInput, &error);
        let failed = |error: ureq::Error| explain(kind(&error), &error);
        let mut request = Request::builder().method(method).uri(&url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = if method == "POST" || method == "PUT" || !body.is_empty() {
            self.agent.run(request.body(body).map_err(invalid)?)
        } else {
            self.agent.run(request.body(()).map_err(invalid)?)
        };
        read(answer.map_err(failed)?)
    }
}

/// `GET path` over a connection of its own, which may take 30 seconds.
///
/// # Errors
/// If there is no whole answer.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    send(address, "GET", path, &[])
}

/// Any method, with header lines and an empty body, over a connection of its own; may take 30 seconds.
///
/// # Errors
/// If there is no whole answer.
pub fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<Answer> {
    send_body(address, method, path, headers, &[])
}

/// Any method, with header lines and a body, over a connection of its own; may take 30 seconds.
///
/// # Errors
/// If there is no whole answer.
pub fn send_body(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    Client::configured(address, PATIENCE, 0).send_body(method, path, headers, body)
}

/// Returns the kind of the failure: that of the connection's own error, out of time, a connection refused, and for
/// every other failure (an answer that is not HTTP) invalid data.
fn kind(error: &ureq::Error) -> io::ErrorKind {
    match error {
        ureq::Error::Io(error) => error.kind(),
        ureq::Error::Timeout(_) => io::ErrorKind::TimedOut,
        ureq::Error::ConnectionFailed => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::InvalidData,
    }
}

fn read(mut answer: Response<Body>) -> io::Result<Answer> {
    let headers = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let status = answer.status().as_u16();
    let body = answer
        .body_mut()
        .with_config()
        .limit(BODY_MAXIMUM_BYTES)
        .read_to_vec()
        .map_err(|error| {
            let reason = error.to_string();
            io::Error::new(kind(&error), Cut { status, reason })
        })?;
    Ok(Answer {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub_server;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    /// A server that gives one answer, and the request that it got.
    fn answering(answer: &'static str) -> (SocketAddr, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (head, _) = stub_server::request(&mut stream).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            head
        });
        (address, server)
    }

    #[test]
    fn every_status_is_an_answer() {
        let (address, server) =
            answering("HTTP/1.1 503 No\r\nRetry-After: 5\r\nContent-Length: 3\r\n\r\nno\n");
        let answer = send(address, "GET", "/a?b=c", &[("x-one", "1")]).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "no\n"));
        assert_eq!(answer.headers["retry-after"], "5");
        assert!(answer.ok().is_err());
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("x-one: 1\r\n"), "{request}");
    }

    #[test]
    fn a_body_that_ends_early_is_an_error() {
        let (address, server) = answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        let error = get(address, "/").unwrap_err();
        assert_eq!(cut(&error), Some(200), "{error}");
        server.join().unwrap();
    }

    #[test]
    fn chunks_without_the_last_are_an_error() {
        let (address, server) =
            answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
        let error = get(address, "/").unwrap_err();
        assert_eq!(cut(&error), Some(200), "{error}");
        server.join().unwrap();
    }

    #[test]
    fn no_answer_is_not_a_cut_one() {
        let (address, server) = answering("");
        let error = get(address, "/").unwrap_err();
        assert_eq!(cut(&error), None, "{error}");
        server.join().unwrap();
    }

    #[test]
    fn a_post_has_an_empty_body() {
        let (address, server) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let client = Client::new(address);
        assert_eq!(client.post("/x").unwrap().ok().unwrap(), "");
        let request = server.join().unwrap().to_lowercase();
        assert!(request.contains("content-length: 0\r\n"), "{request}");
    }

    #[test]
    fn a_server_that_does_not_answer_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = Client::configured(address, Duration::from_millis(200), 1);
        assert!(client.get("/").is_err());
    }
}
