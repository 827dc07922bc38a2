//! Requests that no HTTP client would send, written to a socket as they are.

use heapwarden_harness::http::Answer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Sends `request` as it stands and reads the answer until the server closes.
///
/// # Errors
/// Those of the socket, and `InvalidData` for what is no HTTP answer.
pub fn exchange(address: SocketAddr, request: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(30))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(request.as_bytes())?;
    read_answer(&mut stream)
}

/// Reads one answer until the server closes the connection.
///
/// # Errors
/// As [`exchange`].
pub fn read_answer(stream: &mut TcpStream) -> std::io::Result<Answer> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        // A reset after the whole answer (the request was not read to its end) loses nothing.
        if bytes.is_empty() {
            return Err(error);
        }
    }
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let text = String::from_utf8(bytes).map_err(|_| invalid("not UTF-8"))?;
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or_else(|| invalid("no end of headers"))?;
    let mut lines = head.lines();
    let status = lines
        .next()
        .filter(|line| line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 "))
        .and_then(|line| line.get(9..12))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| invalid("no status line"))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Answer {
        status,
        headers,
        body: body.to_owned(),
    })
}
