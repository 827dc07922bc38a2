//! A busy port is reported once, and once more when it is bound. A process of its own,
//! because the log is the process's.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use heapwarden::http::{Config, retry};
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
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
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

#[test]
fn a_busy_port_is_logged_once_at_first_and_once_when_bound() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let (bound, on_bound) = mpsc::channel();
    let _handle = retry::spawn(
        address.to_string(),
        Config::default(),
        Arc::new(Empty),
        move |address| bound.send(address).unwrap(),
    )
    .unwrap();
    // Long enough for several attempts.
    let early = on_bound.recv_timeout(Duration::from_millis(1000));
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains(&address.to_string()));
    drop(holder);
    let patience = Duration::from_secs(10);
    assert_eq!(on_bound.recv_timeout(patience), Ok(address));
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("INFO") && lines[1].contains(&address.to_string()));
}
