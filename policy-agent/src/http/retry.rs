//! Binds the listener's address, again and again if needed: a busy port must not keep the host from
//! starting, and the metrics must be served once it is free.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::server::{Config, Handle, Server};
use crate::report::Source;

/// First and longest pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Binds `address` (`host:port`, port 0 picks one) and serves it, all on the listener's
/// thread, so the caller does not wait. If the address cannot be bound, the thread tries again, at least
/// every 5 s. It logs the first failure and the success after it.
///
/// `on_bound` is called once, on the listener's thread, with the address that was bound.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn(
    address: String,
    config: Config,
    source: Arc<dyn Source>,
    on_bound: impl FnOnce(SocketAddr) + Send + 'static,
) -> io::Result<Handle> {
    Handle::start(move |stop| {
        let (mut pause, longest) = PAUSE;
        let mut failed = false;
        let server = loop {
            match Server::bind(&address, config.clone()) {
                Ok(server) => break server,
                Err(error) if !failed => {
                    failed = true;
                    tracing::warn!(
                        %address, %error,
                        "metrics are not served yet: the address cannot be bound; it is tried again until it can"
                    );
                }
                Err(_) => {}
            }
            if stop.wait(pause) {
                return;
            }
            pause = (pause * 2).min(longest);
        };
        let bound = server.local_addr();
        if failed {
            tracing::info!(address = %bound, "metrics are served now");
        }
        if catch_unwind(AssertUnwindSafe(|| on_bound(bound))).is_err() {
            tracing::error!("the action on binding the HTTP listener panicked");
        }
        server.run(&*source, stop);
    })
}
