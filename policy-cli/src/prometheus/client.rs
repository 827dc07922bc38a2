//! Queries over HTTP.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::http::header::{AUTHORIZATION, LOCATION};
use ureq::tls::{RootCerts, TlsConfig};

use crate::printable::fitted;

use super::answer::{self, Document};
use super::span::MAX_POINTS;
use super::{Address, Error, Series, Span};

/// Longest answer that is read.
const MAX_BODY_BYTES: u64 = 256 << 20;

/// Longest text of the other side that is shown.
const MAX_SHOWN_COLUMNS: usize = 500;

/// Most warnings that are kept.
const MAX_WARNINGS: usize = 20;

/// A Prometheus that can be asked.
pub(crate) struct Client {
    agent: ureq::Agent,
    address: Address,
    timeout: Duration,
    warnings: RefCell<BTreeSet<String>>,
}

impl Client {
    /// Connects at the first query. `timeout` is for one query as a whole; `roots` are the
    /// authorities that may vouch for an `https` address, the public ones if `None`.
    pub(crate) fn new(address: Address, timeout: Duration, roots: Option<RootCerts>) -> Client {
        let mut tls = TlsConfig::builder();
        if let Some(roots) = roots {
            tls = tls.root_certs(roots);
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("heapwarden/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        Client {
            agent: config.build().into(),
            address,
            timeout,
            warnings: RefCell::default(),
        }
    }

    /// Its address, without user and password.
    pub(crate) fn base(&self) -> &str {
        self.address.base()
    }

    /// What Prometheus warned of so far, each once: an answer may be partial, for example.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().iter().cloned().collect()
    }

    /// Evaluates `query` at every time of `span`, in as many requests as it takes: one gives
    /// at most 11,000 points of a series, and one that is too large is asked in halves.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooMuch`] where a single time is too large an answer.
    pub(crate) fn range(&self, query: &str, span: Span) -> Result<Vec<Series>, Error> {
        let mut whole = BTreeMap::new();
        for piece in span.pieces(MAX_POINTS) {
            self.piece(query, piece, &mut whole)?;
        }
        let series = whole.into_iter();
        Ok(series
            .map(|(labels, points)| Series { labels, points })
            .collect())
    }

    fn piece(
        &self,
        query: &str,
        span: Span,
        whole: &mut BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>>,
    ) -> Result<(), Error> {
        let times = [
            ("start", span.start_seconds().to_string()),
            ("end", span.end_seconds().to_string()),
            ("step", span.step_seconds().to_string()),
        ];
        match self.ask(query, &times) {
            Ok(found) => {
                for Series { labels, points } in found {
                    whole.entry(labels).or_default().extend(points);
                }
                Ok(())
            }
            Err(error) => match span.halves().filter(|_| error.is_too_much()) {
                Some(halves) => halves
                    .into_iter()
                    .try_for_each(|half| self.piece(query, half, whole)),
                None => Err(error),
            },
        }
    }

    fn ask(&self, query: &str, times: &[(&str, String)]) -> Result<Vec<Series>, Error> {
        let url = format!("{}/api/v1/query_range", self.base());
        let mut request = self.agent.post(&url).header("Accept", "application/json");
        if let Some(authorization) = self.address.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        let timeout = format!("{}s", self.timeout.as_secs().max(1));
        let form = [("query", query), ("timeout", timeout.as_str())]
            .into_iter()
            .chain(times.iter().map(|(name, value)| (*name, value.as_str())));
        let response = request
            .send_form(form)
            .map_err(|error| self.failed(error))?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION);
            let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()));
            return Err(Error::Redirected {
                url: self.base().into(),
                location: shown(&location.unwrap_or_default()),
            });
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Error::Unauthorized {
                url: self.base().into(),
                status: status.as_u16(),
            });
        }
        let body = response
            .into_body()
            .into_with_config()
            .limit(MAX_BODY_BYTES);
        let body = body.read_to_vec().map_err(|error| self.failed(error))?;
        self.read(query, status, &body)
    }

    fn read(&self, query: &str, status: StatusCode, body: &[u8]) -> Result<Vec<Series>, Error> {
        let not_prometheus = |why: String| Error::NotPrometheus {
            url: self.base().into(),
            status: status.as_u16(),
            why,
        };
        let document: Document<'_> = serde_json::from_slice(body)
            .map_err(|_| not_prometheus("the body is not the JSON of its query API".into()))?;
        if document.status != "success" {
            let kind = document.error_kind.unwrap_or_default();
            let message = document.error.unwrap_or_default();
            if kind.is_empty() && message.is_empty() {
                return Err(not_prometheus(
                    "it reports neither success nor an error".into(),
                ));
            }
            return Err(self.rejected(query, &kind, &message));
        }
        let mut warnings = self.warnings.borrow_mut();
        for warning in document.warnings {
            if warnings.len() < MAX_WARNINGS {
                warnings.insert(shown(&warning));
            }
        }
        let data = document.data;
        let data = data.ok_or_else(|| not_prometheus("there is no data in it".into()))?;
        answer::series(data).map_err(|why| not_prometheus(shown(&why)))
    }

    /// Prometheus' own complaint. It has no error type of its own for a query that would
    /// load too much, or is asked for too many points: only its words tell.
    fn rejected(&self, query: &str, kind: &str, message: &str) -> Error {
        let message = shown(message);
        if message.contains("too many samples") || message.contains("exceeded maximum resolution") {
            return Error::TooMuch { why: message };
        }
        if kind == "timeout" {
            return Error::TimedOut {
                url: self.base().into(),
                seconds: self.timeout.as_secs(),
            };
        }
        Error::Query {
            kind: shown(kind),
            message,
            query: shown(query),
        }
    }

    fn failed(&self, error: ureq::Error) -> Error {
        let url = self.base().to_owned();
        // A time-out while a body is read arrives wrapped as an I/O error.
        match ureq::Error::from(error.into_io()) {
            ureq::Error::Timeout(_) => Error::TimedOut {
                url,
                seconds: self.timeout.as_secs(),
            },
            ureq::Error::BodyExceedsLimit(_) => Error::TooMuch {
                why: format!("more than {} MiB", MAX_BODY_BYTES >> 20),
            },
            ureq::Error::Io(error) => Error::Unreachable {
                url,
                why: shown(&error.to_string()),
            },
            other => Error::Unreachable {
                url,
                why: shown(&other.to_string()),
            },
        }
    }
}

fn shown(text: &str) -> String {
    fitted(text, MAX_SHOWN_COLUMNS).into_owned()
}

#[cfg(test)]
mod tests;
