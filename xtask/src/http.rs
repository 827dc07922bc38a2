//! As much of an HTTP/1.1 client as the demo needs: one request at a time over loopback, bodies
//! with a length, the connection kept where the server keeps it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long a connection, a read or a write may take.
const PATIENCE: Duration = Duration::from_secs(10);
const HEAD_LINE_MAXIMUM_BYTES: u64 = 16 << 10;
const HEAD_MAXIMUM_LINES: usize = 100;
const BODY_MAXIMUM_BYTES: u64 = 64 << 20;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The body as text, if the status is 200.
    pub(crate) fn text(self, what: &str) -> Result<String> {
        if self.status != 200 {
            bail!("{what} answered {}", self.status);
        }
        String::from_utf8(self.body).with_context(|| format!("{what} answered no UTF-8"))
    }
}

/// A client of one server.
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// A client that connects at its first request.
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client {
            address,
            connection: None,
        }
    }

    /// Asks for a path.
    pub(crate) fn get(&mut self, path: &str) -> Result<Response> {
        self.request("GET", path)
    }

    /// Posts nothing to a path.
    pub(crate) fn post(&mut self, path: &str) -> Result<Response> {
        self.request("POST", path)
    }

    fn request(&mut self, method: &str, path: &str) -> Result<Response> {
        let what = || format!("{method} http://{}{path}", self.address);
        let kept = self.connection.take();
        let reused = kept.is_some();
        let mut result = kept
            .map_or_else(|| self.connect(), Ok)
            .and_then(|connection| self.exchange(connection, method, path));
        // A server may close an idle connection just as we use it again; only then a second try.
        if reused && result.is_err() {
            result = self
                .connect()
                .and_then(|connection| self.exchange(connection, method, path));
        }
        let (response, connection) = result.with_context(what)?;
        self.connection = connection;
        Ok(response)
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let stream =
            TcpStream::connect_timeout(&self.address, PATIENCE).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    fn exchange(
        &self,
        mut connection: BufReader<TcpStream>,
        method: &str,
        path: &str,
    ) -> Result<(Response, Option<BufReader<TcpStream>>)> {
        let length = if method == "POST" {
            "Content-Length: 0\r\n"
        } else {
            ""
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{length}\r\n",
            self.address
        );
        connection
            .get_mut()
            .write_all(request.as_bytes())
            .context("the request cannot be sent")?;
        let (response, keep) = read(&mut connection)?;
        Ok((response, keep.then_some(connection)))
    }
}

/// Reads an answer, and whether the connection can be used again.
fn read(connection: &mut impl BufRead) -> Result<(Response, bool)> {
    let head = head_line(connection)?;
    let status = head
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .with_context(|| format!("no HTTP/1 answer: {head:?}"))?;
    let mut keep = head.starts_with("HTTP/1.1");
    let mut length = None;
    for _ in 0..HEAD_MAXIMUM_LINES {
        let line = head_line(connection)?;
        if line.is_empty() {
            let body = body(connection, length)?;
            return Ok((Response { status, body }, keep && length.is_some()));
        }
        let Some((name, value)) = line.split_once(':') else {
            bail!("no header: {line:?}");
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(
                value
                    .parse()
                    .with_context(|| format!("no length: {value:?}"))?,
            );
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("a body in the transfer encoding {value:?}, which this client does not read");
        } else if name.eq_ignore_ascii_case("connection") {
            keep &= !value.eq_ignore_ascii_case("close");
        }
    }
    bail!("more than {HEAD_MAXIMUM_LINES} header lines")
}

fn head_line(connection: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    connection
        .take(HEAD_LINE_MAXIMUM_BYTES)
        .read_line(&mut line)
        .context("no answer")?;
    let Some(line) = line.strip_suffix('\n') else {
        bail!("the answer ends within its head");
    };
    Ok(line.trim_end_matches('\r').to_owned())
}

fn body(connection: &mut impl BufRead, length: Option<u64>) -> Result<Vec<u8>> {
    let maximum = length.unwrap_or(BODY_MAXIMUM_BYTES);
    if maximum > BODY_MAXIMUM_BYTES {
        bail!("a body of {maximum} bytes is more than this client reads");
    }
    let mut body = Vec::new();
    connection
        .take(maximum)
        .read_to_end(&mut body)
        .context("the body does not arrive")?;
    if length.is_some_and(|length| body.len() as u64 != length) {
        bail!("the answer ends within its body");
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn parse(answer: &str) -> Result<(Response, bool)> {
        read(&mut answer.as_bytes())
    }

    #[test]
    fn a_body_with_a_length_keeps_the_connection() {
        let (response, keep) = parse("HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nokNEXT").unwrap();
        assert_eq!(
            response,
            Response {
                status: 200,
                body: b"ok".to_vec()
            }
        );
        assert!(keep);
    }

    #[test]
    fn a_body_without_one_ends_with_the_connection() {
        let (response, keep) = parse("HTTP/1.1 503 No\r\n\r\nall of it").unwrap();
        assert_eq!(
            response,
            Response {
                status: 503,
                body: b"all of it".to_vec()
            }
        );
        assert!(!keep);
    }

    #[test]
    fn what_is_not_whole_is_an_error() {
        for answer in [
            "",
            "HTTP/1.1 200",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "SSH-2.0-x\r\n\r\n",
        ] {
            assert!(parse(answer).is_err(), "{answer:?}");
        }
    }

    #[test]
    fn an_idle_connection_that_was_closed_is_opened_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = Client::new(listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while request.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .unwrap();
            }
        });
        for _ in 0..2 {
            assert_eq!(client.get("/").unwrap().text("it").unwrap(), "ok");
        }
        server.join().unwrap();
    }
}
