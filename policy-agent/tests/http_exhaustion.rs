//! A host that is out of file descriptors. A process of its own, because it is out of them.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use heapwarden::http::{Config, Server};
use heapwarden::report::{Snapshot, Source};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

struct Empty;

impl Source for Empty {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::default()
    }

    fn ready(&self) -> Result<(), String> {
        Ok(())
    }
}

/// CPU time of the whole process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

#[test]
fn the_listener_waits_for_descriptors_without_spinning() {
    let server = Server::bind("127.0.0.1:0", Config::default()).unwrap();
    let address = server.local_addr();
    let _handle = server.spawn(Arc::new(Empty)).unwrap();

    let maximum = getrlimit(Resource::Nofile).maximum;
    let few = Rlimit {
        current: Some(64),
        maximum,
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    // One for the client's end; none is left for the listener's.
    hoard.pop();
    let mut client = TcpStream::connect(address).unwrap();
    client
        .write_all(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        .unwrap();

    let before = cpu_time();
    client
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let mut reply = String::new();
    assert!(client.read_to_string(&mut reply).is_err(), "{reply}");
    let spent = cpu_time() - before;
    assert!(spent < Duration::from_millis(300), "{spent:?} in a second");

    drop(hoard);
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
}
