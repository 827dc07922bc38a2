//! Free TCP ports on loopback.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;

/// Below those that Linux gives to connections that go out (from 32768 on): one of these would be taken by any client
/// of a test beside, between the moment when it was found free and the server's start.
const PORTS: Range<u16> = 15_000..32_000;
/// How many are tried.
const TRIES: u32 = 1_000;

/// A port that was free a moment ago, on loopback. No two callers in this process get the same one:
/// tests run side by side, and a server takes time to bind its port.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn free() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let random = RandomState::new();
    let ports = (0..TRIES).map(|number| {
        let drawn = random.hash_one(number) % PORTS.len() as u64;
        PORTS.start + drawn as u16
    });
    let mut given = GIVEN.lock().expect("no thread panics while it holds this");
    let mut fresh =
        ports.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port));
    fresh.next().expect("loopback has free ports")
}
