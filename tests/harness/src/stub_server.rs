//! Servers for tests of clients: each answers in the way that a test gives it, until the test's process ends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Serves every connection, one after the other: `answer` has the head of the request and its body.
///
/// # Panics
/// If no port of the loopback interface is free.
pub fn serve(answer: impl Fn(&str, Vec<u8>, &mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if let Some((head, body)) = request(&mut stream) {
                answer(&head, body, &mut stream);
            }
        }
    });
    address
}

/// Reads the head of a request and its body; nothing if it does not come whole.
pub fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("content-length: ")?.parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The path of a request, without its query.
#[must_use]
pub fn path(head: &str) -> &str {
    head.split([' ', '?']).nth(1).unwrap_or_default()
}

/// Answers with this status, such as `200 OK`, and closes. A client that has gone is none of the server's business.
pub fn respond(stream: &mut TcpStream, status: &str, body: impl AsRef<[u8]>) {
    let body = body.as_ref();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// An address on which nobody listens.
///
/// # Panics
/// If no port of the loopback interface is free.
#[must_use]
pub fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    listener.local_addr().expect("it is bound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http;

    #[test]
    fn a_request_is_answered_as_it_asks() {
        let server = serve(|head, body, stream| {
            let status = if path(head) == "/a" {
                "200 OK"
            } else {
                "404 No"
            };
            respond(stream, status, body);
        });
        assert_eq!(http::get(server, "/b").unwrap().status, 404);
        let answer = http::send_body(server, "POST", "/a?b=c", &[], b"it").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "it"));
        assert!(http::get(nobody(), "/a").is_err());
    }
}
