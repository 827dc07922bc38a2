//! Free TCP ports on loopback.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;

/// A port that was free a moment ago, on loopback. No two callers in this process get the same one:
/// tests run side by side, and a server takes time to bind its port.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn free() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let mut given = GIVEN.lock().expect("no thread panics while it holds this");
        if given.insert(port) {
            return port;
        }
    }
}
