//! The loop that serves all connections on one thread.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, poll};

use super::connection::{Connection, Received};
use super::limits::{Limits, Stop, timespec};
use super::request::{Method, Reject};
use super::response::Response;
use super::routes::Routes;

use crate::events;
use crate::report::{Source, history};

/// Connections taken from the kernel's queue before those in hand are looked at again.
const ACCEPT_BURST: usize = 16;
/// First and longest pause after the process ran out of something that `accept` needs.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How soon a response is looked for again that another thread makes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A host that is short of descriptors again and again is told so at most this often.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Serves until `stop` is raised.
///
/// # Errors
/// When `poll` itself fails; the caller may call again.
pub(super) fn serve(
    socket: &TcpListener,
    routes: &Routes,
    source: &dyn Source,
    limits: &Limits,
    stop: &Stop,
) -> io::Result<()> {
    let mut listener = Listener {
        socket,
        routes,
        source,
        limits,
        connections: Vec::with_capacity(limits.connections + limits.draining),
        full_since: None,
        accept_pause: Duration::ZERO,
        accept_at: Instant::now(),
        warned_at: None,
        remember_at: Instant::now() + history::STEP,
    };
    while let Some(ready) = listener.wait(stop)? {
        listener.advance(&ready.connections);
        if ready.socket {
            listener.accept();
        }
        listener.remember();
    }
    Ok(())
}

struct Listener<'a> {
    socket: &'a TcpListener,
    routes: &'a Routes,
    source: &'a dyn Source,
    limits: &'a Limits,
    /// Oldest first: those being served, and those draining.
    connections: Vec<Connection>,
    /// Since when as many are served as may be, without one of them coming to its end.
    full_since: Option<Instant>,
    /// The latest pause that `accept` was given; zero while it succeeds.
    accept_pause: Duration,
    accept_at: Instant,
    warned_at: Option<Instant>,
    /// When the next point of the history is due.
    remember_at: Instant,
}

/// The socket and the connections that can go on.
struct Ready {
    socket: bool,
    connections: Vec<bool>,
}

impl Listener<'_> {
    /// Waits until something can go on or a deadline is over; `None` when it is time to stop.
    fn wait(&mut self, stop: &Stop) -> io::Result<Option<Ready>> {
        let now = Instant::now();
        let full = self.is_full();
        self.full_since = full.then(|| self.full_since.unwrap_or(now));
        // A burst waits in the kernel's queue; only a lasting crowd is turned away.
        let refuse_at = self.full_since.map(|since| since + self.limits.full_grace);
        let full_until = match (refuse_at, self.slowest()) {
            (Some(refuse_at), Some((_, since))) => {
                refuse_at.min(since + self.limits.crowded_request_time)
            }
            (refuse_at, _) => refuse_at.unwrap_or(now),
        };
        let accept_at = full_until.max(self.accept_at);
        let accepting = accept_at <= now;

        let deadlines = self.connections.iter().map(Connection::deadline);
        let mut wake_at = deadlines.fold(self.remember_at, Instant::min);
        let mut earlier = |at: Instant| wake_at = wake_at.min(at);
        if !accepting {
            earlier(accept_at);
        }
        if self.waiting() > 0 {
            earlier(now + LOOK_AGAIN);
        }
        let timeout = timespec(wake_at.saturating_duration_since(now));

        let mut fds = Vec::with_capacity(2 + self.connections.len());
        fds.push(PollFd::new(stop, PollFlags::IN));
        let awaited = if accepting {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        fds.push(PollFd::new(self.socket, awaited));
        for connection in &self.connections {
            fds.push(PollFd::new(connection, connection.interest()));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {
                return Ok(Some(Ready {
                    socket: false,
                    connections: vec![false; self.connections.len()],
                }));
            }
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        if ready.next() == Some(true) {
            return Ok(None);
        }
        Ok(Some(Ready {
            socket: ready.next() == Some(true) && accepting,
            connections: ready.collect(),
        }))
    }

    /// Remembers what is now, if that is due.
    fn remember(&mut self) {
        let now = Instant::now();
        if now >= self.remember_at {
            self.remember_at = now + history::STEP;
            self.routes.remember(self.source);
        }
    }

    fn waiting(&self) -> usize {
        let waits = |connection: &&Connection| connection.waiting().is_some();
        self.connections.iter().filter(waits).count()
    }

    fn served(&self) -> usize {
        self.connections.iter().filter(|c| !c.is_draining()).count()
    }

    fn is_full(&self) -> bool {
        self.served() >= self.limits.connections
    }

    /// Moves every connection on that can move, and drops those that are done.
    fn advance(&mut self, ready: &[bool]) {
        let served = self.served();
        let mut waiting = self.waiting();
        let connections = std::mem::take(&mut self.connections);
        let mut pending_bytes: usize = connections.iter().map(Connection::pending_bytes).sum();
        for (index, mut connection) in connections.into_iter().enumerate() {
            let ready = ready.get(index).copied().unwrap_or_default();
            if self.step(&mut connection, ready, &mut pending_bytes, &mut waiting) {
                self.connections.push(connection);
            }
        }
        if self.served() < served {
            self.full_since = None;
        }
        self.trim_draining();
    }

    /// One move of one connection; false when it is to be closed.
    fn step(
        &self,
        connection: &mut Connection,
        ready: bool,
        pending_bytes: &mut usize,
        waiting: &mut usize,
    ) -> bool {
        if let Some((request, asked)) = connection.waiting() {
            // The only news of it that poll tells is that the client is gone.
            if ready {
                return false;
            }
            let method = request.method;
            let response = match self.routes.respond(request, asked, self.source) {
                Some(response) => response,
                None if Instant::now() < connection.deadline() => return true,
                None => Response::text(503, "The snapshot took too long; try again."),
            };
            let alive = self.send(connection, &response, method);
            *pending_bytes += connection.pending_bytes();
            return alive;
        }
        if ready {
            let alive = if connection.is_reading() {
                self.receive(connection, pending_bytes, waiting)
            } else if connection.is_draining() {
                connection.drain()
            } else {
                connection.write(self.limits.drain)
            };
            if !alive {
                return false;
            }
        }
        if Instant::now() < connection.deadline() {
            return true;
        }
        connection.has_spoken() && {
            let response = Response::from(Reject::Timeout);
            self.send(connection, &response, Method::Get)
        }
    }

    fn receive(
        &self,
        connection: &mut Connection,
        pending_bytes: &mut usize,
        waiting: &mut usize,
    ) -> bool {
        let (outcome, method) = match connection.receive(self.limits.request_bytes) {
            Received::Partial => return true,
            Received::Gone => return false,
            Received::Request(outcome, method) => (outcome, method),
        };
        let response = match outcome {
            // Rendering is what costs memory, so it is refused before, not after.
            Ok(_) if *pending_bytes > self.limits.pending_bytes => overloaded(),
            Ok(request) => {
                let asked = Instant::now();
                match self.routes.respond(&request, asked, self.source) {
                    Some(response) => response,
                    None if *waiting < self.limits.waiting => {
                        *waiting += 1;
                        connection.wait(request, asked, asked + self.limits.waiting_time);
                        return true;
                    }
                    // Those who wait must not take the places of others.
                    None => {
                        Response::text(503, "Others wait for a snapshot; try again in a second.")
                    }
                }
            }
            Err(reject) => Response::from(reject),
        };
        let alive = self.send(connection, &response, method);
        *pending_bytes += connection.pending_bytes();
        alive
    }

    fn send(&self, connection: &mut Connection, response: &Response, method: Method) -> bool {
        events::http_response(response.status);
        let bytes = response.encode(method, SystemTime::now());
        let deadline = Instant::now() + self.limits.response_time;
        connection.send(bytes, deadline, self.limits.drain)
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPT_BURST {
            let full = self.is_full() && !self.has_slow();
            // Filled up just now: leave the rest in the queue for the grace.
            let grace = self.limits.full_grace;
            if full && self.full_since.is_none_or(|since| since.elapsed() < grace) {
                return;
            }
            match self.socket.accept() {
                Ok((stream, _)) => {
                    self.accept_pause = Duration::ZERO;
                    if !full && self.is_full() {
                        self.make_room();
                    }
                    self.admit(stream, full);
                    // Whoever is turned away next may find a place that was left meanwhile.
                    if full {
                        return;
                    }
                }
                Err(error) => {
                    match error.kind() {
                        ErrorKind::WouldBlock => return,
                        // The client left before we came to it.
                        ErrorKind::ConnectionAborted
                        | ErrorKind::ConnectionReset
                        | ErrorKind::Interrupted => continue,
                        _ => {}
                    }
                    // Out of file descriptors, as a rule: the queue stays readable, so
                    // without a pause this would spin.
                    self.warn(&error);
                    let (first, longest) = ACCEPT_PAUSE;
                    self.accept_pause = (self.accept_pause * 2).clamp(first, longest);
                    self.accept_at = Instant::now() + self.accept_pause;
                    return;
                }
            }
        }
    }

    /// The client that has kept us waiting for its request for the longest time, by its place, and since when.
    fn slowest(&self) -> Option<(usize, Instant)> {
        let reading = (self.connections.iter().enumerate()).filter(|(_, one)| one.is_reading());
        reading
            .map(|(place, one)| (place, one.since()))
            .min_by_key(|&(_, since)| since)
    }

    /// Whether a client has had its time for a request and has not sent it.
    fn has_slow(&self) -> bool {
        let slowest = self.slowest();
        slowest.is_some_and(|(_, since)| since.elapsed() >= self.limits.crowded_request_time)
    }

    /// Turns away the client that is slowest with its request.
    fn make_room(&mut self) {
        let Some((place, _)) = self.slowest() else {
            return;
        };
        // The crowd moves on, so nobody else is turned away for now.
        self.full_since = Some(Instant::now());
        let mut slow = self.connections.remove(place);
        if self.send(&mut slow, &overloaded(), Method::Get) && slow.is_draining() {
            self.connections.push(slow);
            self.trim_draining();
        }
    }

    fn warn(&mut self, error: &io::Error) {
        let now = Instant::now();
        let lately = |at: Instant| now.duration_since(at) < WARNING_INTERVAL;
        if !self.warned_at.is_some_and(lately) {
            self.warned_at = Some(now);
            tracing::warn!(%error, "the HTTP listener cannot accept connections for now");
        }
    }

    fn admit(&mut self, stream: TcpStream, full: bool) {
        let deadline = Instant::now() + self.limits.request_time;
        // A socket that cannot be set up is dropped, which closes it.
        let Ok(mut connection) = Connection::new(stream, deadline) else {
            return;
        };
        if !full {
            self.connections.push(connection);
        } else if self.send(&mut connection, &overloaded(), Method::Get) && connection.is_draining()
        {
            self.connections.push(connection);
            self.trim_draining();
        }
    }

    /// Closes the oldest of the draining if there are too many.
    fn trim_draining(&mut self) {
        let draining = self.connections.iter().filter(|c| c.is_draining()).count();
        let mut excess = draining.saturating_sub(self.limits.draining);
        self.connections.retain(|connection| {
            let cut = excess > 0 && connection.is_draining();
            excess -= usize::from(cut);
            !cut
        });
    }
}

fn overloaded() -> Response {
    Response::text(503, "Too many connections at once; try again in a second.")
}
