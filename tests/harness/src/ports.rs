//! Free TCP ports on loopback.

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use std::env;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;

/// Below those that systems give to connections that go out (Linux from 32768 on, gVisor from 16000 on): one of these
/// would be taken by any client of a test beside, between the moment when it was found free and the server's start.
const PORTS: Range<u16> = 10_100..15_900;
/// How many are tried.
const TRIES: u32 = 1_000;

/// A port that was free a moment ago, on loopback, and is this process's alone among the tests.
///
/// Tests run side by side in several processes, and a server takes seconds to bind its port. So each port has a file
/// in the temporary folder, which the process that was given the port keeps locked until it ends.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn free() -> u16 {
    static GIVEN: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let random = RandomState::new();
    let mut given = GIVEN.lock().expect("no thread panics while it holds this");
    let mut ports = (0..TRIES).filter_map(|number| {
        let drawn = random.hash_one(number) % PORTS.len() as u64;
        let port = PORTS.start + drawn as u16;
        let lock = reserve(port)?;
        TcpListener::bind(("127.0.0.1", port)).ok()?;
        given.push(lock);
        Some(port)
    });
    ports.next().expect("loopback has free ports")
}

/// The locked file of this port, or none where somebody has it.
fn reserve(port: u16) -> Option<File> {
    // Each user has a folder: nobody can open the files of another.
    let folder = format!("heapwarden-test-ports-{}", getuid().as_raw());
    let folder = env::temp_dir().join(folder);
    fs::create_dir_all(&folder).ok()?;
    let file = (File::options().create(true).append(true))
        .open(folder.join(port.to_string()))
        .ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_somebody_has_is_given_to_nobody_else() {
        let ports: Vec<u16> = (0..50).map(|_| free()).collect();
        // Another process opens the files anew, as this does.
        assert!(ports.iter().all(|&port| reserve(port).is_none()));
    }
}
