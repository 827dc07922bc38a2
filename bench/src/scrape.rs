//! The agent's documents and metrics, read over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use heapwarden_harness::{http, run_file};
use serde_json::Value;

/// An agent's listener.
pub(crate) struct Listener {
    address: SocketAddr,
}

impl Listener {
    /// The one whose address a run file holds.
    pub(crate) fn of_run_file(path: &Path) -> Option<Listener> {
        let address = run_file::listener(path)?;
        Some(Listener { address })
    }

    /// `/api/v1/accounts`.
    pub(crate) fn accounts(&self) -> Result<Value> {
        serde_json::from_str(&self.get("/api/v1/accounts")?).context("the accounts are no JSON")
    }

    /// `/metrics`, all of one moment.
    pub(crate) fn metrics(&self) -> Result<Metrics> {
        self.get("/metrics")
            .map(|text| Metrics(policy_report::Metrics::parse(&text)))
    }

    /// One value of `/metrics`, by its name with its labels as written there.
    pub(crate) fn metric(&self, series: &str) -> Result<f64> {
        self.metrics()?.value(series)
    }

    fn get(&self, path: &str) -> Result<String> {
        http::get(self.address, path)
            .and_then(http::Answer::ok)
            .with_context(|| format!("the agent does not answer GET {path}"))
    }
}

/// One reading of the metrics, of which a measurement needs what it asks for.
pub(crate) struct Metrics(policy_report::Metrics);

impl Metrics {
    /// One value, by its name with its labels as written there.
    pub(crate) fn value(&self, series: &str) -> Result<f64> {
        self.0
            .written(series)
            .with_context(|| format!("/metrics has no {series}"))
    }

    /// The sum of a family's values; there must be one at least.
    pub(crate) fn sum(&self, family: &str) -> Result<f64> {
        ensure!(
            self.0.series(family).next().is_some(),
            "/metrics has no {family}"
        );
        Ok(self.0.sum(family))
    }

    /// The values of a family with one label, by that label's value; there must be one at least.
    pub(crate) fn by_label(&self, family: &str) -> Result<BTreeMap<String, f64>> {
        let values: BTreeMap<String, f64> = self
            .0
            .series(family)
            .filter_map(|(labels, value)| Some((labels.values().next()?.clone(), value)))
            .collect();
        ensure!(!values.is_empty(), "/metrics has no {family} with labels");
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics(policy_report::Metrics::parse(
            "# TYPE a gauge\na_b{part=\"x\"} 1\na{part=\"x\"} 2.5\na{part=\"y z\"} 4\n",
        ))
    }

    #[test]
    fn a_series_is_found_by_its_whole_name() {
        assert_eq!(metrics().value("a{part=\"x\"}").unwrap(), 2.5);
        assert!(metrics().value("a").is_err());
    }

    #[test]
    fn a_family_is_summed_over_its_labels_and_no_other() {
        assert_eq!(metrics().sum("a").unwrap(), 6.5);
        assert_eq!(metrics().sum("a_b").unwrap(), 1.0);
        assert!(metrics().sum("a_").is_err());
        let parts = BTreeMap::from([("x".to_owned(), 2.5), ("y z".to_owned(), 4.0)]);
        assert_eq!(metrics().by_label("a").unwrap(), parts);
    }
}
