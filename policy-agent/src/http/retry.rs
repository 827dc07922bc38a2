//! Binds the listener's address. If another process has the port, the agent takes a free one, or waits for
//! it: a port that is taken must not keep the host from starting, and the metrics must be served.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::limits::Stop;
use super::server::{Config, Handle, Server};
use crate::report::Source;

/// First and longest pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long a port that is taken is waited for before a free one is used: the JVM that this one replaces
/// may still be going down.
const TAKEN: Duration = Duration::from_secs(3);

/// The reaction if another process has the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortTaken {
    /// Serve on a free port of the same host, after three seconds.
    TakeFree,
    /// Wait until it is free, without an end.
    Wait,
}

/// Where the listener is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The address, with the port that was picked.
    pub address: SocketAddr,
    /// Whether the port is a free one, because another process has the wanted one.
    pub is_substitute: bool,
}

/// Binds `address` (`host:port`, port 0 picks one) and serves it, all on the listener's thread, so the
/// caller does not wait. If the port is taken, the thread does what `port_taken` says. If the address
/// cannot be bound for another reason, it tries again, at least every 5 s. It logs the first failure and
/// the success after it.
///
/// An address that was bound stays: the agent does not move to the port it wanted when that is free later,
/// because two JVMs would swap their places in Prometheus.
///
/// `on_bound` is called once, on the listener's thread, with the address that was bound.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn(
    address: String,
    port_taken: PortTaken,
    config: Config,
    source: Arc<dyn Source>,
    on_bound: impl FnOnce(Bound) + Send + 'static,
) -> io::Result<Handle> {
    Handle::start(move |stop| {
        let Some((server, is_substitute)) = bind(&address, port_taken, &config, stop) else {
            return;
        };
        let bound = Bound {
            address: server.local_addr(),
            is_substitute,
        };
        if catch_unwind(AssertUnwindSafe(|| on_bound(bound))).is_err() {
            tracing::error!("the action on binding the HTTP listener panicked");
        }
        server.run(&*source, stop);
    })
}

/// Tries until it is bound, and says whether on a substitute. `None` if it is time to stop.
fn bind(
    address: &str,
    port_taken: PortTaken,
    config: &Config,
    stop: &Stop,
) -> Option<(Server, bool)> {
    let (mut pause, longest) = PAUSE;
    let mut taken_since = None;
    let mut is_told = false;
    loop {
        let error = match Server::bind(address, config.clone()) {
            Ok(server) => {
                if is_told {
                    tracing::info!(address = %server.local_addr(), "metrics are served now");
                }
                return Some((server, false));
            }
            Err(error) => error,
        };
        let mut is_waited_for = false;
        if error.kind() == ErrorKind::AddrInUse && port_taken == PortTaken::TakeFree {
            is_waited_for = taken_since.get_or_insert_with(Instant::now).elapsed() < TAKEN;
            if !is_waited_for && let Some(server) = bind_free(address, config) {
                return Some((server, true));
            }
        }
        if !is_waited_for && !is_told {
            is_told = true;
            tracing::warn!(
                %address, %error,
                "metrics are not served yet: the address cannot be bound; it is tried again until it can"
            );
        }
        if stop.wait(pause) {
            return None;
        }
        pause = (pause * 2).min(longest);
    }
}

/// Binds a free port of the host of `address`.
fn bind_free(address: &str, config: &Config) -> Option<Server> {
    let (host, _) = address.rsplit_once(':')?;
    let server = Server::bind(format!("{host}:0"), config.clone()).ok()?;
    tracing::warn!(
        "another process has the port of {address}, so metrics are served on the free port {} instead (heapwarden doctor {} says who has it; with listen-strict = true the agent waits for it)",
        server.local_addr().port(),
        std::process::id()
    );
    Some(server)
}
