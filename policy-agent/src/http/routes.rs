//! Answers requests from snapshots. It changes nothing of the agent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::accept;
use super::host::HostPolicy;
use super::request::Request;
use super::response::Response;
use crate::events;
use crate::report::fold::Folder;
use crate::report::json::{self, Classes};
use crate::report::{EventRecorder, Source, exposition, sites_json};

const INDEX: &str = "\
Heapwarden: memory accounts for the services of this JVM.

/metrics                       Prometheus text, or OpenMetrics on Accept
/api/v1/accounts               every account, JSON, its 20 largest classes
/api/v1/accounts?classes=all   every account, JSON, all its classes
/api/v1/sites                  where survivors were allocated, JSON, for suspects and `[leaks] sites`
/-/healthy                     200 while this listener runs
/-/ready                       200 while accounts are kept, else 503";

/// The endpoints, and what the cardinality cap remembers between requests.
#[derive(Debug)]
pub struct Routes {
    hosts: HostPolicy,
    folder: Mutex<Folder>,
    events: Arc<EventRecorder>,
}

impl Routes {
    /// Endpoints that answer to `hosts` and publish at most `max_accounts` accounts as metrics, and
    /// the `events` recorded.
    pub fn new(hosts: HostPolicy, max_accounts: usize, events: Arc<EventRecorder>) -> Routes {
        Routes {
            hosts,
            folder: Mutex::new(Folder::new(max_accounts)),
            events,
        }
    }

    /// Answers one request; asks `source` for at most one snapshot. A panic of `source` or a
    /// renderer is caught and becomes a 500.
    pub fn respond(&self, request: &Request, source: &dyn Source) -> Response {
        let begun = Instant::now();
        // A panic can leave only the folder half-done, and the next fold rebuilds its numbers.
        let response = catch_unwind(AssertUnwindSafe(|| self.route(request, source)))
            .unwrap_or_else(|_| {
                Response::text(
                    500,
                    "Heapwarden failed on this request; the host's log has the panic.",
                )
            });
        events::http_request(&request.path, begun.elapsed());
        response
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
            ("/api/v1/sites", "") => sites(source),
            ("/-/healthy", "") => Response::text(200, "Heapwarden is running."),
            ("/-/ready", "") => match source.ready() {
                Ok(()) => Response::text(200, "Heapwarden is keeping accounts."),
                Err(reason) => Response::text(503, &format!("Not ready: {reason}")),
            },
            ("/", "") => Response::text(200, INDEX),
            ("/metrics" | "/api/v1/sites" | "/-/healthy" | "/-/ready" | "/", _) => {
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
        let text = exposition::render(format, &snapshot, &folded, &self.events);
        Response {
            status: 200,
            content_type: format.content_type(),
            body: text.into_bytes(),
        }
    }
}

fn sites(source: &dyn Source) -> Response {
    match sites_json::render(&source.sites()) {
        Ok(body) => Response {
            status: 200,
            content_type: "application/json",
            body,
        },
        Err(error) => Response::text(500, &format!("The sites cannot be written: {error}.")),
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
