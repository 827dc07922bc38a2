//! Limits on clients, and the signal that ends the listener's thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// The limits for all clients together, and for each of them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of request line and headers.
    pub request_bytes: usize,
    /// From the connection to the end of the request's headers.
    pub request_time: Duration,
    /// From the first byte of the response to its last.
    pub response_time: Duration,
    /// For reading what a client still sends after its response.
    pub drain: Duration,
    /// Connections served at once.
    pub connections: usize,
    /// Connections that have their response and are draining.
    pub draining: usize,
    /// How long all connections must be taken before others are turned away with a 503;
    /// until then they wait in the kernel's queue.
    pub full_grace: Duration,
    /// How long a client may take for its request while all connections are taken and others wait. Then it makes
    /// room for the next one: who sends the whole request at once is served, however many others do not.
    pub crowded_request_time: Duration,
    /// Connections that may wait at a time for a response that another thread makes.
    pub waiting: usize,
    /// How long they wait for it.
    pub waiting_time: Duration,
    /// Bytes of responses waiting for slow readers beyond which no more are rendered.
    pub pending_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request_bytes: 8 * 1024,
            request_time: Duration::from_secs(2),
            response_time: Duration::from_secs(10),
            drain: Duration::from_millis(500),
            connections: 8,
            draining: 16,
            full_grace: Duration::from_millis(250),
            crowded_request_time: Duration::from_millis(50),
            waiting: 2,
            waiting_time: Duration::from_secs(60),
            pending_bytes: 32 * 1024 * 1024,
        }
    }
}

/// Tells the listener's thread to end; raised once, never lowered, seen by every `poll`.
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<OwnedFd>);

impl Stop {
    pub(super) fn new() -> io::Result<Stop> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Stop(Arc::new(eventfd(0, flags)?)))
    }

    pub(super) fn raise(&self) {
        // Fails only when the counter is full, and then it is raised.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits for at most `timeout`; true if it is raised.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&timespec(timeout))), Ok(count) if count > 0)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Rounded up, so that a wait does not end just before its deadline and spin.
pub(super) fn timespec(duration: Duration) -> Timespec {
    let duration = duration + Duration::from_micros(100);
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
