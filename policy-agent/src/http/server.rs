//! Binding, starting, stopping.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::host::HostPolicy;
use super::listener::{serve, timespec};
use super::routes::Routes;
use crate::report::EventRecorder;
use crate::report::Source;
use crate::report::fold::DEFAULT_MAX_ACCOUNTS;
use crate::threads;

/// Name of the listener's thread; 15 bytes, the most that Linux keeps.
const THREAD_NAME: &str = "heapwarden-http";
/// How long stopping waits for the thread before it leaves it behind.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);
/// First and longest pause before the loop is started again after it failed.
const RESTART_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How a listener behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Names that a `Host` header may have beside those of the loopback, without a port.
    /// Without meaning on other addresses, where every name is answered.
    pub allowed_hosts: Vec<String>,
    /// Most accounts published as metrics; the rest are folded into `_other`.
    pub max_accounts: usize,
    /// What clients may use.
    pub limits: Limits,
    /// Receives the listener's own events; what it has received is published.
    pub events: Arc<EventRecorder>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            allowed_hosts: Vec::new(),
            max_accounts: DEFAULT_MAX_ACCOUNTS,
            limits: Limits::default(),
            events: Arc::default(),
        }
    }
}

/// What all clients together, and each of them, may use.
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

/// A listener that is bound and not yet served.
#[derive(Debug)]
pub struct Server {
    socket: TcpListener,
    local_addr: SocketAddr,
    routes: Routes,
    limits: Limits,
    events: Arc<EventRecorder>,
}

impl Server {
    /// Binds the first of the addresses that can be bound; port 0 picks a free one.
    ///
    /// # Errors
    /// When the name does not resolve or no address can be bound.
    pub fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Server> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let local_addr = socket.local_addr()?;
        let hosts = HostPolicy::for_address(local_addr.ip(), &config.allowed_hosts);
        Ok(Server {
            socket,
            local_addr,
            routes: Routes::new(hosts, config.max_accounts, config.events.clone()),
            limits: config.limits,
            events: config.events,
        })
    }

    /// Where it is bound, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves on a thread of its own until the handle is dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn spawn(self, source: Arc<dyn Source>) -> io::Result<Handle> {
        Handle::start(move |stop| self.run(&*source, stop))
    }

    /// Serves on this thread until `stop` is raised. A failure of the loop itself costs the
    /// connections it had, not the listener.
    pub(super) fn run(&self, source: &dyn Source, stop: &Stop) {
        let (mut pause, longest) = RESTART_PAUSE;
        loop {
            let served = catch_unwind(AssertUnwindSafe(|| {
                self.events
                    .run(|| serve(&self.socket, &self.routes, source, &self.limits, stop))
            }));
            match served {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::error!(%error, "the HTTP listener failed; it starts again")
                }
                Err(_) => tracing::error!("the HTTP listener panicked; it starts again"),
            }
            if stop.wait(pause) {
                return;
            }
            pause = (pause * 2).min(longest);
        }
    }
}

/// A running listener. Dropping it stops the listener: the port is free when drop returns,
/// unless a snapshot takes longer than 200 ms, in which case the thread ends after it.
#[derive(Debug)]
pub struct Handle {
    stop: Stop,
    /// Disconnected when the thread has ended; the lock only makes the handle `Sync`.
    done: Mutex<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    pub(super) fn start(body: impl FnOnce(&Stop) + Send + 'static) -> io::Result<Handle> {
        let stop = Stop::new()?;
        let (finished, done) = mpsc::channel();
        let raised = stop.clone();
        let thread = threads::spawn(THREAD_NAME, move || {
            // Dropped last, also by a panic: that is the signal.
            let _finished = finished;
            body(&raised);
        })?;
        Ok(Handle {
            stop,
            done: Mutex::new(done),
            thread: Some(thread),
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.raise();
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        if done.recv_timeout(STOP_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the HTTP listener is still in a request and ends after it");
        } else if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Tells the listener's thread to end; raised once, never lowered, seen by every `poll`.
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<OwnedFd>);

impl Stop {
    fn new() -> io::Result<Stop> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Stop(Arc::new(eventfd(0, flags)?)))
    }

    fn raise(&self) {
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
