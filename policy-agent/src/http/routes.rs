//! From a request to a response. Reads snapshots, touches nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::accept;
use super::host::HostPolicy;
use super::request::Request;
use super::response::{Response, STATUSES};
use crate::report::fold::Folder;
use crate::report::json::{self, Classes};
use crate::report::{Source, exposition};

const INDEX: &str = "\
Heapwarden: memory accounts for the services of this JVM.

/metrics                       Prometheus text, or OpenMetrics on Accept
/api/v1/accounts               every account, JSON, its 20 largest classes
/api/v1/accounts?classes=all   every account, JSON, all its classes
/-/healthy                     200 while this listener runs
/-/ready                       200 while accounts are kept, else 503";

/// The endpoints, and what they remember between requests: how many responses of each
/// status there were, and what the cardinality cap needs to know.
#[derive(Debug)]
pub struct Routes {
    hosts: HostPolicy,
    folder: Mutex<Folder>,
    responses: [AtomicU64; STATUSES.len()],
}

impl Routes {
    /// Endpoints that answer to `hosts` and publish at most `max_accounts` accounts as metrics.
    pub fn new(hosts: HostPolicy, max_accounts: usize) -> Routes {
        Routes {
            hosts,
            folder: Mutex::new(Folder::new(max_accounts)),
            responses: Default::default(),
        }
    }

    /// Answers one request; asks `source` for at most one snapshot. A panic of `source` or a
    /// renderer is caught and becomes a 500.
    pub fn respond(&self, request: &Request, source: &dyn Source) -> Response {
        // What a panic can leave half-done behind the borrow is the folder, whose numbers
        // the next fold rebuilds.
        catch_unwind(AssertUnwindSafe(|| self.route(request, source))).unwrap_or_else(|_| {
            Response::text(
                500,
                "Heapwarden failed on this request; the host's log has the panic.",
            )
        })
    }

    /// Counts a response as it begins to be sent.
    pub fn count(&self, status: u16) {
        if let Some(index) = STATUSES.iter().position(|&known| known == status) {
            self.responses[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many responses of each status there were.
    pub fn responses(&self) -> Vec<(u16, u64)> {
        let counts = self
            .responses
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        STATUSES.into_iter().zip(counts).collect()
    }

    fn route(&self, request: &Request, source: &dyn Source) -> Response {
        if let Some(host) = &request.host
            && !self.hosts.allows(host)
        {
            return Response::text(
                403,
                "This Host is not answered by a loopback listener (protection from DNS rebinding); use localhost or 127.0.0.1.",
            );
        }
        let query = request.query.as_deref().unwrap_or_default();
        match (request.path.as_str(), query) {
            ("/metrics", "") => self.metrics(request, source),
            ("/api/v1/accounts", "") => accounts(source, Classes::Top),
            ("/api/v1/accounts", "classes=all") => accounts(source, Classes::All),
            ("/api/v1/accounts", _) => {
                Response::text(400, "The only query understood here is classes=all.")
            }
            ("/-/healthy", "") => Response::text(200, "Heapwarden is running."),
            ("/-/ready", "") => match source.ready() {
                Ok(()) => Response::text(200, "Heapwarden is keeping accounts."),
                Err(reason) => Response::text(503, &format!("Not ready: {reason}")),
            },
            ("/", "") => Response::text(200, INDEX),
            ("/metrics" | "/-/healthy" | "/-/ready" | "/", _) => {
                Response::text(400, "No query is understood here.")
            }
            _ => Response::text(404, "Nothing is here; see / for what is."),
        }
    }

    fn metrics(&self, request: &Request, source: &dyn Source) -> Response {
        let snapshot = source.snapshot();
        let format = accept::format(&request.accept);
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let folded = folder.fold(&snapshot.accounts);
        let text = exposition::render(format, &snapshot, &folded, &self.responses());
        Response {
            status: 200,
            content_type: format.content_type(),
            body: text.into_bytes(),
        }
    }
}

fn accounts(source: &dyn Source, classes: Classes) -> Response {
    match json::render(&source.snapshot(), classes) {
        Ok(body) => Response {
            status: 200,
            content_type: "application/json",
            body,
        },
        Err(error) => Response::text(500, &format!("The accounts cannot be written: {error}.")),
    }
}
