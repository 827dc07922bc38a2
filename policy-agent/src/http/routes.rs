//! Answers requests from snapshots. It changes nothing of the agent.

use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use flate2::read::GzDecoder;

use super::accept;
use super::host::HostPolicy;
use super::page;
use super::request::Request;
use super::response::{Caching, Response};
use crate::events;
use crate::report;
use crate::report::fold::Folder;
use crate::report::history::History;
use crate::report::json::{self, Classes};
use crate::report::{EventRecorder, Requested, Source, Wanted, exposition, sites_json};

/// The endpoints, and what the cardinality cap remembers between requests.
#[derive(Debug)]
pub struct Routes {
    hosts: HostPolicy,
    folder: Mutex<Folder>,
    history: Mutex<History>,
    events: Arc<EventRecorder>,
}

impl Routes {
    /// Endpoints that answer to `hosts` and publish at most `max_accounts` accounts as metrics, and
    /// the `events` recorded.
    pub fn new(hosts: HostPolicy, max_accounts: usize, events: Arc<EventRecorder>) -> Routes {
        Routes {
            hosts,
            folder: Mutex::new(Folder::new(max_accounts)),
            history: Mutex::default(),
            events,
        }
    }

    /// Answers one request that came at `asked`; asks `source` for at most one snapshot. `None`: another
    /// thread makes the answer, and the caller asks again soon. A panic of `source` or a renderer is caught
    /// and becomes a 500.
    pub fn respond(
        &self,
        request: &Request,
        asked: Instant,
        source: &dyn Source,
    ) -> Option<Response> {
        // A panic can leave only the folder half-done, and the next fold rebuilds its numbers.
        let response = catch_unwind(AssertUnwindSafe(|| self.answer(request, asked, source)))
            .unwrap_or_else(|_| {
                Some(Response::text(
                    500,
                    "Heapwarden failed on this request; the host's log has the panic.",
                ))
            });
        if response.is_some() {
            events::http_request(&request.path, asked.elapsed());
        }
        response
    }

    fn answer(&self, request: &Request, asked: Instant, source: &dyn Source) -> Option<Response> {
        if let Some(host) = &request.host
            && !self.hosts.allows(host)
        {
            return Some(Response::text(
                403,
                "This Host is not answered by a loopback listener (protection from DNS rebinding); use localhost or 127.0.0.1.",
            ));
        }
        let plain = request.query.as_deref().unwrap_or_default().is_empty();
        match wanted(&request.path) {
            Some(wanted) if plain => requested(request, &wanted, asked, source),
            _ => Some(self.route(request, source)),
        }
    }

    /// Remembers what is now for the page. A panic of `source` costs this point.
    pub(super) fn remember(&self, source: &dyn Source) {
        let record = || {
            let snapshot = source.snapshot();
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.record(&snapshot, SystemTime::now());
            source.remembers(history.memory_bytes());
        };
        if catch_unwind(AssertUnwindSafe(record)).is_err() {
            tracing::error!("a point of the last hour is lost; the log has the panic");
        }
    }

    fn route(&self, request: &Request, source: &dyn Source) -> Response {
        let query = request.query.as_deref().unwrap_or_default();
        match (request.path.as_str(), query) {
            ("/metrics", "") => self.metrics(request, source),
            ("/api/v1/accounts", "") => accounts(source, Classes::Top),
            ("/api/v1/accounts", "classes=all") => accounts(source, Classes::All),
            ("/api/v1/accounts", _) => {
                Response::text(400, "The only query understood here is classes=all.")
            }
            ("/api/v1/sites", "") => document("The sites", sites_json::render(&source.sites())),
            ("/api/v1/leaks", "") => document(
                "The leaks",
                report::leaks::render(&source.snapshot(), SystemTime::now()),
            ),
            ("/api/v1/instances", "") => document("The instances", Ok(source.instances())),
            ("/api/v1/contexts", "") => document("The contexts", Ok(source.contexts())),
            ("/api/v1/paths", "") => document("The paths", Ok(source.walks())),
            ("/-/healthy", "") => Response::text(200, "Heapwarden is running."),
            ("/-/ready", "") => match source.ready() {
                Ok(()) => Response::text(200, "Heapwarden is keeping accounts."),
                Err(reason) => Response::text(503, &format!("Not ready: {reason}")),
            },
            ("/api/v1/history", "") => {
                let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
                document("The history", history.render())
            }
            ("/", "") => page::index(request),
            (
                "/metrics" | "/api/v1/leaks" | "/api/v1/instances" | "/api/v1/paths"
                | "/api/v1/contexts" | "/api/v1/sites" | "/api/v1/snapshot" | "/api/v1/profile"
                | "/api/v1/snapshots" | "/api/v1/history" | "/-/healthy" | "/-/ready" | "/",
                _,
            ) => Response::text(400, "No query is understood here."),
            (path, "") => (path.strip_prefix(page::FOLDER))
                .and_then(page::file)
                .unwrap_or_else(missing),
            _ => missing(),
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
            is_gzip: false,
            caching: Caching::None,
            body: text.into_bytes(),
        }
    }
}

/// The largest document that is sent to a client that does not take gzip.
const MAX_PLAIN_BYTES: u64 = 32 << 20;

/// Returns the request to another thread for this path; the name of a file is looked at there.
fn wanted(path: &str) -> Option<Wanted> {
    match path {
        "/api/v1/snapshot" => Some(Wanted::Document),
        "/api/v1/profile" => Some(Wanted::Profile),
        "/api/v1/snapshots" => Some(Wanted::Files),
        _ => {
            let name = path.strip_prefix("/api/v1/snapshots/")?;
            let plain = |one: u8| one.is_ascii_alphanumeric() || b"._-".contains(&one);
            name.bytes()
                .all(plain)
                .then(|| Wanted::File(name.to_owned()))
        }
    }
}

fn missing() -> Response {
    Response::text(404, "Nothing is here; see / for what is.")
}

fn requested(
    request: &Request,
    wanted: &Wanted,
    asked: Instant,
    source: &dyn Source,
) -> Option<Response> {
    let gzip = match source.requested(wanted, asked) {
        Requested::Pending => return None,
        Requested::Missing => return Some(missing()),
        Requested::Failed(why) => {
            let what = match wanted {
                Wanted::Profile => "profile",
                _ => "snapshot",
            };
            let sentence = format!("No {what} can be had: {why}.");
            return Some(Response::text(503, &sentence));
        }
        Requested::Made(gzip) => gzip,
    };
    if *wanted == Wanted::Profile {
        // A profile is a gzip file: readers get it as it is.
        return Some(Response {
            status: 200,
            content_type: "application/octet-stream",
            is_gzip: false,
            caching: Caching::None,
            body: gzip.to_vec(),
        });
    }
    let mut response = Response::json(Vec::new());
    response.is_gzip = true;
    if request.accepts_gzip {
        response.body.extend_from_slice(&gzip);
        return Some(response);
    }
    response.is_gzip = false;
    let mut plain = GzDecoder::new(&gzip[..]).take(MAX_PLAIN_BYTES + 1);
    let read = plain.read_to_end(&mut response.body);
    Some(match read {
        Ok(_) if response.body.len() as u64 <= MAX_PLAIN_BYTES => response,
        _ => Response::text(
            503,
            "The snapshot is too large to be sent plain; ask with Accept-Encoding: gzip.",
        ),
    })
}

fn accounts(source: &dyn Source, classes: Classes) -> Response {
    document("The accounts", json::render(&source.snapshot(), classes))
}

/// A document, or why it cannot be written; `what` begins the sentence.
fn document(what: &str, rendered: serde_json::Result<Vec<u8>>) -> Response {
    match rendered {
        Ok(body) => Response::json(body),
        Err(error) => Response::text(500, &format!("{what} cannot be written: {error}.")),
    }
}
