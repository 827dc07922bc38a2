//! The listener over real sockets: friendly clients, and the other ones.

mod hostile;
mod lifecycle;
mod oracle_replay;
mod serving;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;

use super::{Config, Handle, Limits, Server};
use crate::report::{Account, Class, Kind, Requested, Snapshot, Source, Wanted};

/// A source that counts what it is asked for, and can be told to misbehave.
#[derive(Debug, Default)]
struct Stub {
    snapshots: AtomicUsize,
    accounts: usize,
    classes: usize,
    not_ready: Option<String>,
    panics: AtomicBool,
    takes: Duration,
    /// Whether the document that was asked for is made.
    has_document: AtomicBool,
}

impl Source for Stub {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.takes);
        assert!(!self.panics.load(Ordering::SeqCst), "this stub panics");
        let class = |index| Class {
            class: format!("{}.Class{index}", "com.example".repeat(10)),
            ..Class::default()
        };
        let account = |index| Account {
            name: format!("tenant-{index}"),
            kind: Kind::Scope,
            classes: (0..self.classes).map(class).collect(),
            ..Account::default()
        };
        Arc::new(Snapshot {
            accounts: (0..self.accounts).map(account).collect(),
            ..Snapshot::default()
        })
    }

    fn requested(&self, wanted: &Wanted, _asked: Instant) -> Requested {
        if matches!(wanted, Wanted::File(name) if name != "known") {
            Requested::Missing
        } else if *wanted == Wanted::Profile && self.not_ready.is_some() {
            Requested::Failed("this stub makes none".to_owned())
        } else if self.has_document.load(Ordering::SeqCst) {
            Requested::Made(gzip(DOCUMENT).into())
        } else {
            Requested::Pending
        }
    }

    fn ready(&self) -> Result<(), String> {
        self.not_ready.clone().map_or(Ok(()), Err)
    }
}

const DOCUMENT: &str = "{\"heapwarden_snapshot\":1}";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A listener on a free loopback port.
struct Running {
    address: SocketAddr,
    source: Arc<Stub>,
    handle: Handle,
}

fn start(source: Stub, config: Config) -> Running {
    let source = Arc::new(source);
    let server = Server::bind("127.0.0.1:0", config).unwrap();
    let address = server.local_addr();
    let handle = server.spawn(source.clone()).unwrap();
    Running {
        address,
        source,
        handle,
    }
}

/// So much JSON that no socket buffer takes it all.
fn voluble() -> Stub {
    Stub {
        accounts: 10_000,
        classes: 4,
        ..Stub::default()
    }
}

/// Deadlines short enough to wait for in a test, long enough for a loaded machine.
fn hasty() -> Config {
    Config {
        limits: Limits {
            request_time: Duration::from_millis(400),
            response_time: Duration::from_millis(400),
            ..Limits::default()
        },
        ..Config::default()
    }
}

/// Deadlines beyond the length of any test: what ends there ended for another reason.
fn patient() -> Config {
    Config {
        limits: Limits {
            request_time: Duration::from_secs(60),
            response_time: Duration::from_secs(60),
            ..Limits::default()
        },
        ..Config::default()
    }
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Running {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        // A listener that never answers must fail the test, not hang it.
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        stream.set_write_timeout(patience).unwrap();
        stream
    }

    fn get(&self, target: &str) -> Reply {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    fn send(&self, request: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        reply(&mut stream).expect("an answer")
    }
}

/// Everything up to the end of the connection; `None` if that is nothing.
fn reply(stream: &mut TcpStream) -> Option<Reply> {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an orderly end");
    if text.is_empty() {
        return None;
    }
    let (head, body) = text.split_once("\r\n\r\n").expect("a complete head");
    let status = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    Some(Reply {
        status: status.expect("a status line").parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

fn within(limit: Duration, began: Instant) {
    let took = began.elapsed();
    assert!(took < limit, "took {took:?}, allowed {limit:?}");
}
