//! One connection: reads a request, writes a response, drains and closes.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::request::{Method, Reject, Request, parse};

/// The bytes that a client may still send after its response before the connection is cut.
const MAX_DRAINED_BYTES: usize = 256 * 1024;

/// A client and its phase. Never blocks: the socket is in non-blocking mode.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    phase: Phase,
    /// When the client was taken over.
    since: Instant,
    /// The end of the present phase, even if data keeps arriving in small pieces.
    deadline: Instant,
}

#[derive(Debug)]
enum Phase {
    /// A request is arriving.
    Reading(Vec<u8>),
    /// Another thread makes the response to this request, which came then.
    Waiting(Box<Request>, Instant),
    /// A response is leaving.
    Writing { bytes: Vec<u8>, sent: usize },
    /// The response has left and our side is shut. Closing with unread bytes would make the
    /// kernel reset the connection, and the client could lose the response with it.
    Draining { left: usize },
}

/// The outcome of reading.
#[derive(Debug)]
pub(super) enum Received {
    /// Not all of a request yet.
    Partial,
    /// A request, or why there is none. The method decides the form of the answer.
    Request(Result<Request, Reject>, Method),
    /// The client left without a request.
    Gone,
}

impl Connection {
    /// Takes over a client that has until `deadline` to send its request.
    ///
    /// # Errors
    /// When the socket cannot be put into non-blocking mode.
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        // Only a matter of latency; a socket that refuses it works.
        let _ = stream.set_nodelay(true);
        Ok(Connection {
            stream,
            phase: Phase::Reading(Vec::new()),
            since: Instant::now(),
            deadline,
        })
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the client was taken over.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }

    /// The request for which a response is being made, and since when.
    pub(super) fn waiting(&self) -> Option<(&Request, Instant)> {
        match &self.phase {
            Phase::Waiting(request, asked) => Some((request, *asked)),
            _ => None,
        }
    }

    /// Waits for a response that another thread makes, until `deadline`.
    pub(super) fn wait(&mut self, request: Request, asked: Instant, deadline: Instant) {
        self.phase = Phase::Waiting(Box::new(request), asked);
        self.deadline = deadline;
    }

    pub(super) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// Whether any byte of a request has arrived.
    pub(super) fn has_spoken(&self) -> bool {
        matches!(&self.phase, Phase::Reading(bytes) if !bytes.is_empty())
    }

    /// Bytes of response held for the client.
    pub(super) fn pending_bytes(&self) -> usize {
        match &self.phase {
            Phase::Writing { bytes, .. } => bytes.len(),
            Phase::Reading(_) | Phase::Waiting(..) | Phase::Draining { .. } => 0,
        }
    }

    /// Returns the events of the socket to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        match self.phase {
            Phase::Reading(_) | Phase::Draining { .. } => PollFlags::IN,
            Phase::Writing { .. } => PollFlags::OUT,
            // Only that the client is gone, which needs no asking for.
            Phase::Waiting(..) => PollFlags::empty(),
        }
    }

    /// Reads what is there, up to `max_bytes` of request in all.
    pub(super) fn receive(&mut self, max_bytes: usize) -> Received {
        let Phase::Reading(bytes) = &mut self.phase else {
            return Received::Partial;
        };
        let mut chunk = [0; 4096];
        loop {
            let room = (max_bytes - bytes.len()).min(chunk.len());
            let outcome = match self.stream.read(&mut chunk[..room]) {
                Ok(0) if bytes.is_empty() => return Received::Gone,
                Ok(0) => Err(Reject::Incomplete),
                Ok(count) => {
                    bytes.extend_from_slice(&chunk[..count]);
                    match parse(bytes) {
                        Ok(None) if bytes.len() >= max_bytes => Err(Reject::too_large(bytes)),
                        Ok(None) => continue,
                        Ok(Some(request)) => Ok(request),
                        Err(reject) => Err(reject),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Partial,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Received::Gone,
            };
            let method = if bytes.starts_with(b"HEAD ") {
                Method::Head
            } else {
                Method::Get
            };
            return Received::Request(outcome, method);
        }
    }

    /// Begins to send a response; `deadline` holds for all of it. False if the client is gone.
    pub(super) fn send(&mut self, bytes: Vec<u8>, deadline: Instant, linger: Duration) -> bool {
        self.phase = Phase::Writing { bytes, sent: 0 };
        self.deadline = deadline;
        self.write(linger)
    }

    /// Writes what the socket takes, then drains for `linger`. False if the client is gone.
    pub(super) fn write(&mut self, linger: Duration) -> bool {
        let Phase::Writing { bytes, sent } = &mut self.phase else {
            return true;
        };
        while *sent < bytes.len() {
            match self.stream.write(&bytes[*sent..]) {
                Ok(0) => return false,
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.phase = Phase::Draining {
            left: MAX_DRAINED_BYTES,
        };
        self.deadline = Instant::now() + linger;
        self.stream.shutdown(Shutdown::Write).is_ok() && self.drain()
    }

    /// Discards what the client still sends. False once there is nothing to wait for.
    pub(super) fn drain(&mut self) -> bool {
        let Phase::Draining { left } = &mut self.phase else {
            return true;
        };
        let mut chunk = [0; 4096];
        while *left > 0 {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => *left = left.saturating_sub(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        false
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
