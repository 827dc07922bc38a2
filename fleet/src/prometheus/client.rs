//! Queries over HTTP.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use ureq::http::StatusCode;
use ureq::http::header::{AUTHORIZATION, LOCATION};
use ureq::tls::{RootCerts, TlsConfig};

use heapwarden_client::http;
use heapwarden_client::server_address::ServerAddress;
use heapwarden_terminal::printable::fitted;

use super::answer::{self, Data, Document};
use super::span::MAX_POINTS;
use super::{Error, Series, Span};

/// Longest answer that is read.
const MAX_BODY_BYTES: u64 = 256 << 20;

/// Longest text of the server that is shown.
const MAX_SHOWN_COLUMNS: usize = 500;

/// The header with which Mimir, Cortex and Thanos tell tenants apart.
const TENANT_HEADER: &str = "X-Scope-OrgID";

/// Most warnings that are kept.
const MAX_WARNINGS: usize = 20;

/// A client of one Prometheus.
pub struct Client {
    http: ureq::Agent,
    address: ServerAddress,
    timeout: Duration,
    /// On whose data queries work, where one Prometheus keeps those of several.
    tenant: Option<String>,
    warnings: RefCell<BTreeSet<String>>,
}

impl Client {
    /// Connects at the first query. `timeout` is for a whole query. `roots` are the trusted
    /// authorities of an `https` address, the public ones if `None`.
    pub fn new(address: ServerAddress, timeout: Duration, roots: Option<RootCerts>) -> Client {
        let mut tls = TlsConfig::builder();
        if let Some(roots) = roots {
            tls = tls.root_certs(roots);
        }
        let config = http::config()
            .timeout_global(Some(timeout))
            .tls_config(tls.build());
        Client {
            http: config.build().into(),
            address,
            timeout,
            tenant: None,
            warnings: RefCell::default(),
        }
    }

    /// Asks as this tenant.
    pub fn with_tenant(mut self, tenant: Option<String>) -> Client {
        self.tenant = tenant;
        self
    }

    /// Its address, without user and password.
    pub fn base(&self) -> &str {
        self.address.base()
    }

    /// The warnings of Prometheus so far, each once: for example, that an answer is partial.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().iter().cloned().collect()
    }

    /// Evaluates `query` at every time of `span`. It sends several requests if needed: one request
    /// returns at most 11,000 points of a series, and a range that is too large is split in halves.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooMuch`] if the answer for a single time is too large.
    pub fn range(&self, query: &str, span: Span) -> Result<Vec<Series>, Error> {
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
        let timeout = format!("{}s", self.timeout.as_secs().max(1));
        let form = [("query", query), ("timeout", timeout.as_str())]
            .into_iter()
            .chain(times.iter().map(|(name, value)| (*name, value.as_str())));
        let (status, body) = self.post("query_range", form)?;
        let data: Data<'_> = self.read(query, status, &body)?;
        answer::series(data).map_err(|why| self.not_prometheus(status, shown(&why)))
    }

    /// The labels of all series that `selectors` select and that have a sample in `span`. No sample is
    /// loaded for it.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn labels(
        &self,
        selectors: &[String],
        span: Span,
    ) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let times = [
            ("start", span.start_seconds().to_string()),
            ("end", span.end_seconds().to_string()),
        ];
        let form = (selectors.iter().map(|one| ("match[]", one.as_str())))
            .chain(times.iter().map(|(name, value)| (*name, value.as_str())));
        let (status, body) = self.post("series", form)?;
        self.read(selectors.first().map_or("", String::as_str), status, &body)
    }

    fn post<'a>(
        &self,
        endpoint: &str,
        form: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(StatusCode, Vec<u8>), Error> {
        let url = format!("{}/api/v1/{endpoint}", self.base());
        let mut request = self.http.post(&url).header("Accept", "application/json");
        if let Some(authorization) = self.address.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        let response = request
            .send_form(form)
            .map_err(|error| self.failed(error.into()))?;
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
        let body = http::body(response, MAX_BODY_BYTES).map_err(|failure| self.failed(failure))?;
        Ok((status, body))
    }

    fn not_prometheus(&self, status: StatusCode, why: String) -> Error {
        Error::NotPrometheus {
            url: self.base().into(),
            status: status.as_u16(),
            why,
        }
    }

    fn read<'a, T: Deserialize<'a>>(
        &self,
        query: &str,
        status: StatusCode,
        body: &'a [u8],
    ) -> Result<T, Error> {
        let document: Document<'a, T> = serde_json::from_slice(body).map_err(|_| {
            self.not_prometheus(status, "the body is not the JSON of its query API".into())
        })?;
        if document.status != "success" {
            let kind = document.error_kind.unwrap_or_default();
            let message = document.error.unwrap_or_default();
            if kind.is_empty() && message.is_empty() {
                return Err(
                    self.not_prometheus(status, "it reports neither success nor an error".into())
                );
            }
            return Err(self.rejected(query, &kind, &message));
        }
        let mut warnings = self.warnings.borrow_mut();
        for warning in document.warnings {
            if warnings.len() < MAX_WARNINGS {
                warnings.insert(shown(&warning));
            }
        }
        (document.data).ok_or_else(|| self.not_prometheus(status, "there is no data in it".into()))
    }

    /// An error that Prometheus reports. A query that loads too many samples or returns too many
    /// points has no error type of its own, so the message decides.
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

    fn failed(&self, failure: http::Failure) -> Error {
        let url = self.base().to_owned();
        match failure {
            http::Failure::TimedOut => Error::TimedOut {
                url,
                seconds: self.timeout.as_secs(),
            },
            http::Failure::TooLarge => Error::TooMuch {
                why: format!("more than {} MiB", MAX_BODY_BYTES >> 20),
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
