//! The queries that Prometheus is asked: for the agents' own series, or for those that
//! `deploy/prometheus/heapwarden.fleet.rules.yml` makes of them.

use std::collections::BTreeSet;

use policy_report::catalog;

use crate::history::Error;
use crate::history::selector::Selector;
use crate::prometheus::{Client, Series, Span};

use super::request::Request;

/// The rules' series for the restarts of a JVM, which no single metric has.
const RESETS: &str = "heapwarden:resets:5m";

/// The name of a series: the agents', or the rules'.
pub(super) fn name(metric: &str, rollups: bool) -> String {
    if rollups {
        let rest = metric.strip_prefix("heapwarden_").unwrap_or(metric);
        format!("heapwarden:{rest}:5m")
    } else {
        metric.to_owned()
    }
}

/// Queries about the JVMs of a request, or some of them.
pub(super) struct Queries<'a> {
    client: &'a Client,
    request: &'a Request,
    jvms: Selector,
    accounts: Selector,
    /// The JVMs that were named, by their labels.
    only: Option<BTreeSet<&'a [String]>>,
}

impl<'a> Queries<'a> {
    /// About all JVMs of a request.
    pub(super) fn new(client: &'a Client, request: &'a Request) -> Queries<'a> {
        Queries::about(client, request, request.selector.clone(), None)
    }

    fn about(
        client: &'a Client,
        request: &'a Request,
        jvms: Selector,
        only: Option<BTreeSet<&'a [String]>>,
    ) -> Queries<'a> {
        let accounts = match &request.accounts {
            Some(pattern) => jvms.matching("account", pattern),
            None => jvms.clone(),
        };
        Queries {
            client,
            request,
            jvms,
            accounts,
            only,
        }
    }

    /// About these JVMs alone.
    pub(super) fn of<'b>(&self, keys: &'b [Vec<String>]) -> Queries<'b>
    where
        'a: 'b,
    {
        let mut jvms = self.request.selector.clone();
        for (place, label) in self.request.jvm_labels.iter().enumerate() {
            let values: BTreeSet<&str> = keys.iter().map(|key| key[place].as_str()).collect();
            jvms = jvms.among(label, values);
        }
        let only = keys.iter().map(Vec::as_slice).collect();
        Queries::about(self.client, self.request, jvms, Some(only))
    }

    /// Whether the rules' series are read.
    pub(super) fn rollups(&self) -> bool {
        self.request.rollups
    }

    fn over(&self, function: &str, selector: &Selector, metric: &str) -> String {
        let metric = name(metric, self.request.rollups);
        let step = self.request.span.step_seconds();
        format!("{function}({}[{step}s])", selector.of(&metric))
    }

    fn ask(&self, query: &str, span: Span) -> Result<Vec<Series>, Error> {
        let mut found = self.client.range(query, span)?;
        if let Some(only) = &self.only {
            // Each label was matched by itself.
            found.retain(|series| only.contains(self.request.key(series).as_slice()));
        }
        Ok(found)
    }

    /// A metric of JVMs.
    pub(super) fn of_jvms(&self, function: &str, metric: &str) -> Result<Vec<Series>, Error> {
        self.ask(&self.over(function, &self.jvms, metric), self.request.span)
    }

    /// How often JVMs were restarted within a step.
    pub(super) fn resets(&self) -> Result<Vec<Series>, Error> {
        if !self.request.rollups {
            return self.of_jvms("resets", catalog::SAMPLES.name);
        }
        let step = self.request.span.step_seconds();
        let query = format!("max_over_time({}[{step}s])", self.jvms.of(RESETS));
        self.ask(&query, self.request.span)
    }

    /// The latest value of a metric of accounts in each step.
    pub(super) fn last_of_accounts(&self, metric: &str) -> Result<Vec<Series>, Error> {
        let query = self.over("last_over_time", &self.accounts, metric);
        self.ask(&query, self.request.span)
    }

    /// The highest value in each step of accounts with the scopes inside them: limits, and what a move
    /// frees, are about that sum. It has metrics of its own, which exist only if there are scopes; the
    /// rules have one series for both.
    pub(super) fn whole(&self, tree: &str, own: &str) -> Result<Vec<Series>, Error> {
        let over = |metric| self.over("max_over_time", &self.accounts, metric);
        let query = if self.request.rollups {
            over(own)
        } else {
            format!("{} or {}", over(tree), over(own))
        };
        self.ask(&query, self.request.span)
    }

    /// Counters of accounts. Most accounts are never refused: those at 0 are not requested.
    pub(super) fn counted(&self, metric: &str) -> Result<Vec<Series>, Error> {
        let query = self.over("last_over_time", &self.accounts, metric);
        self.ask(&format!("{query} > 0"), self.request.span)
    }

    /// Kind and service of every account, at few times, but so that no account is missed.
    pub(super) fn kinds(&self, points: u64) -> Result<Vec<Series>, Error> {
        let span = self.request.span;
        let stride = (span.points() as u64).div_ceil(points);
        let step = span.step_seconds().saturating_mul(stride);
        let coarse = Span::covering(
            span.end_seconds().saturating_add(step as i64 - 1),
            span.seconds(),
            step,
        );
        let metric = name(catalog::ACCOUNT_INFO.name, self.request.rollups);
        let metric = self.accounts.of(&metric);
        self.ask(&format!("last_over_time({metric}[{step}s])"), coarse)
    }

    /// How many series a metric has in the last step.
    pub(super) fn count(&self, metric: &str) -> Result<usize, Error> {
        let span = self.request.span;
        let selector = if metric == catalog::HEAP_MAX_BYTES.name {
            &self.jvms
        } else {
            &self.accounts
        };
        let query = format!("count({})", self.over("last_over_time", selector, metric));
        let now = Span::covering(span.end_seconds(), 1, span.step_seconds());
        let found = self.client.range(&query, now)?;
        let count = found.first().and_then(|series| series.points.last());
        Ok(count.map_or(0, |(_, count)| *count as usize))
    }

    /// The accounts with one of these names, wherever they are, by their labels.
    pub(super) fn named(&self, names: &[&str]) -> Result<Vec<Series>, Error> {
        let metric = name(catalog::ACCOUNT_INFO.name, self.request.rollups);
        let selectors = ["account", "exported_account"].map(|label| {
            let selector = self.jvms.among(label, names.iter().copied());
            selector.of(&metric)
        });
        let found = self.client.labels(&selectors, self.request.span)?;
        Ok(found
            .into_iter()
            .map(|labels| Series {
                labels,
                points: Vec::new(),
            })
            .collect())
    }
}
