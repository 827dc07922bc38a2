//! A small HTTP server for one browser on this machine: GET and HEAD, an answer for each connection, a thread for
//! each of a few connections.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use policy_page::{CONTENT_SECURITY_POLICY, Host};

use super::sources::{Missing, Sources};

/// Most connections at a time; others are closed.
const MAX_CONNECTIONS: usize = 32;
/// Largest request line with headers.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// How long a request may take to arrive, and each write of its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the process is ended.
pub(super) fn serve(listener: &TcpListener, sources: &Sources) {
    let served = AtomicUsize::new(0);
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Out of descriptors, as a rule: those in use are given back soon.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if served.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                continue;
            }
            served.fetch_add(1, Ordering::Relaxed);
            let served = &served;
            scope.spawn(move || {
                // A browser that leaves is no failure.
                let _ = answer(&stream, sources);
                served.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

struct Answer {
    status: &'static str,
    content_type: &'static str,
    is_page: bool,
    body: Vec<u8>,
}

impl Answer {
    fn text(status: &'static str, sentence: &str) -> Answer {
        Answer {
            status,
            content_type: "text/plain; charset=utf-8",
            is_page: false,
            body: format!("{sentence}\n").into_bytes(),
        }
    }

    fn json(body: Vec<u8>) -> Answer {
        Answer {
            status: "200 OK",
            content_type: "application/json",
            is_page: false,
            body,
        }
    }

    fn missing() -> Answer {
        Answer::text("404 Not Found", "Nothing is here.")
    }
}

fn answer(mut stream: &TcpStream, sources: &Sources) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = read_head(stream)? else {
        return Ok(());
    };
    let (answer, with_body) = respond(&head, stream, sources);
    let mut lines = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    );
    if answer.is_page {
        lines.push_str(&format!(
            "Content-Security-Policy: {CONTENT_SECURITY_POLICY}\r\nReferrer-Policy: no-referrer\r\n\
             X-Frame-Options: DENY\r\n"
        ));
    }
    lines.push_str("\r\n");
    stream.write_all(lines.as_bytes())?;
    if with_body {
        stream.write_all(&answer.body)?;
    }
    stream.shutdown(Shutdown::Write)
}

/// The head of a request; `None` if the client left before its end, or was too slow or too long about it.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let begun = Instant::now();
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while begun.elapsed() < PATIENCE && head.len() < MAX_REQUEST_BYTES {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        head.extend_from_slice(&chunk[..count]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

fn respond(head: &[u8], stream: &TcpStream, sources: &Sources) -> (Answer, bool) {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let (Ok(httparse::Status::Complete(_)), Ok(own)) = (request.parse(head), stream.local_addr())
    else {
        let refused = "This is no HTTP request.";
        return (Answer::text("400 Bad Request", refused), true);
    };
    let mut hosts = (request.headers.iter())
        .filter(|header| header.name.eq_ignore_ascii_case("host"))
        .map(|header| header.value);
    let (host, more) = (hosts.next().unwrap_or_default(), hosts.next());
    // A page of another site can point a name of its own at this port, but it cannot choose the header.
    let known = [own.to_string(), format!("localhost:{}", own.port())];
    if more.is_some() || !known.iter().any(|known| known.as_bytes() == host) {
        let refused = "This Host is not answered (protection from DNS rebinding); use localhost or 127.0.0.1.";
        return (Answer::text("403 Forbidden", refused), true);
    }
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => {
            let refused = "Only GET and HEAD are answered: this page changes nothing.";
            return (Answer::text("405 Method Not Allowed", refused), true);
        }
    };
    (route(request.path.unwrap_or_default(), sources), with_body)
}

fn route(target: &str, sources: &Sources) -> Answer {
    match target {
        "/" => Answer {
            status: "200 OK",
            content_type: "text/html; charset=utf-8",
            is_page: true,
            body: policy_page::index(Host::Command).into_bytes(),
        },
        "/api/v1/sources" => Answer::json(sources.list()),
        _ => file(target)
            .or_else(|| document(target, sources))
            .unwrap_or_else(Answer::missing),
    }
}

fn file(target: &str) -> Option<Answer> {
    let (version, name) = target.strip_prefix("/page/")?.split_once('/')?;
    let file = policy_page::file(name).filter(|_| version == policy_page::version())?;
    Some(Answer {
        status: "200 OK",
        content_type: file.content_type,
        is_page: true,
        body: file.bytes.to_vec(),
    })
}

fn document(target: &str, sources: &Sources) -> Option<Answer> {
    let rest = target.strip_prefix("/source/")?;
    let (id, _) = rest.split_once('/')?;
    match sources.document(id, &rest[id.len()..]) {
        Ok(body) => Some(Answer::json(body)),
        Err(Missing::Nothing) => None,
        Err(Missing::Prometheus(error)) => {
            Some(Answer::text("502 Bad Gateway", &error.to_string()))
        }
        Err(Missing::Agent(error)) => Some(Answer::text("502 Bad Gateway", &error.to_string())),
    }
}
