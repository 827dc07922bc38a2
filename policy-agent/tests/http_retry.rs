//! The listener's reaction to a port that another process has: it takes a free one after a while, or
//! waits, and says so once. A process of its own, because the log is the process's.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use heapwarden::http::retry::{self, Bound, PortTaken};
use heapwarden::http::{Config, Handle};
use heapwarden::report::{Snapshot, Source};

struct Empty;

impl Source for Empty {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::default()
    }

    fn ready(&self) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The lines since the last call.
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Long enough for several attempts.
const SEVERAL: Duration = Duration::from_millis(1000);
/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(20);

fn spawn(address: &str, port_taken: PortTaken) -> (Handle, mpsc::Receiver<Bound>) {
    let (bound, on_bound) = mpsc::channel();
    let handle = retry::spawn(
        address.to_owned(),
        port_taken,
        Config::default(),
        Arc::new(Empty),
        move |found| bound.send(found).unwrap(),
    );
    (handle.unwrap(), on_bound)
}

/// One test: the log belongs to the process.
#[test]
fn a_taken_port_is_waited_for_or_given_up_and_logged_once() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let as_wanted = Ok(Bound {
        address,
        is_substitute: false,
    });
    let nothing_yet = Err(mpsc::RecvTimeoutError::Timeout);

    // Strict: it waits, says so at the first attempt, and again when it has the port.
    let (strict, on_bound) = spawn(&address.to_string(), PortTaken::Wait);
    assert_eq!(on_bound.recv_timeout(SEVERAL), nothing_yet);
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains(&address.to_string()));
    drop(holder);
    assert_eq!(on_bound.recv_timeout(LIMIT), as_wanted);
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("INFO") && lines[0].contains(&address.to_string()));

    // Not strict: it waits a while for a JVM that goes down, says nothing, and has the port.
    let (free, on_bound) = spawn(&address.to_string(), PortTaken::TakeFree);
    assert_eq!(on_bound.recv_timeout(SEVERAL), nothing_yet);
    drop(strict);
    assert_eq!(on_bound.recv_timeout(LIMIT), as_wanted);
    assert_eq!(log.take(), [""; 0]);

    // Not strict, and nobody goes: it takes a free port of the same host, and names both.
    let (_other, on_bound) = spawn(&address.to_string(), PortTaken::TakeFree);
    let other = on_bound.recv_timeout(LIMIT).expect("a free port");
    assert!(other.is_substitute);
    let other = other.address;
    assert_eq!(other.ip(), address.ip());
    assert!(
        other.port() != address.port() && other.port() != 0,
        "{other}"
    );
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "WARN",
        &address.to_string(),
        &other.port().to_string(),
        "listen-strict",
    ] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    drop(free);

    // An address that this machine does not have is waited for in any case.
    let (_missing, on_bound) = spawn("192.0.2.1:9464", PortTaken::TakeFree);
    assert_eq!(on_bound.recv_timeout(SEVERAL), nothing_yet);
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("192.0.2.1:9464"), "{lines:?}");
}
