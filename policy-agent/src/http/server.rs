//! Binding, starting, stopping.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::host::HostPolicy;
use super::limits::{Limits, Stop};
use super::listener::serve;
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
    /// The limits on what clients may use.
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
