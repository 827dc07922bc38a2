//! The accounts as an operator's Prometheus would read them: from `/metrics`.

use anyhow::{Context, Result, bail};
use heapwarden_harness::http::Client;
use policy_report::Metrics;

/// One answer of `/metrics`.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Reading(Metrics);

/// One account of a reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Account {
    /// The bytes that survived the latest collection.
    pub(crate) live_bytes: f64,
    /// Charges less refunds, garbage not yet found included.
    pub(crate) charged_bytes: f64,
    /// Of the estimate.
    pub(crate) standard_error_bytes: f64,
    /// Absent where the policy sets none.
    pub(crate) soft_limit_bytes: Option<f64>,
    /// Absent where the policy sets none.
    pub(crate) limit_bytes: Option<f64>,
    /// Whether the agent says it is over its limit.
    pub(crate) over_limit: bool,
}

impl Reading {
    /// Asks the agent.
    pub(crate) fn take(agent: &Client) -> Result<Reading> {
        let text = agent.get("/metrics")?.ok()?;
        Reading::parse(&text)
    }

    /// Reads the Prometheus text format.
    fn parse(text: &str) -> Result<Reading> {
        let mut reading = Reading::default();
        for line in text.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Err(why) = reading.0.take(line) {
                bail!("/metrics: {why}: {line}");
            }
        }
        Ok(reading)
    }

    /// An account; an error where it is not published.
    pub(crate) fn account(&self, name: &str) -> Result<Account> {
        let figure =
            |of: &str| self.value(&format!("heapwarden_account_{of}"), &[("account", name)]);
        let needed = |of: &str| {
            figure(of).with_context(|| {
                format!("/metrics has no heapwarden_account_{of} of the account {name}")
            })
        };
        Ok(Account {
            live_bytes: needed("live_bytes")?,
            charged_bytes: needed("charged_bytes")?,
            standard_error_bytes: needed("standard_error_bytes")?,
            soft_limit_bytes: figure("soft_limit_bytes"),
            limit_bytes: figure("limit_bytes"),
            over_limit: needed("over_limit")? > 0.0,
        })
    }

    /// Returns the bytes that an agent account holds on behalf of a principal; 0 if the agent has
    /// no such figure.
    pub(crate) fn principal_bytes(&self, principal: &str, agent: &str) -> f64 {
        self.value(
            "heapwarden_principal_live_bytes",
            &[("principal", principal), ("agent", agent)],
        )
        .unwrap_or(0.0)
    }

    /// The collections seen.
    pub(crate) fn gc_epoch(&self) -> f64 {
        self.value("heapwarden_gc_epoch", &[]).unwrap_or(0.0)
    }

    /// The sum of a family over all its labels.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.0.sum(name)
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.0.value(name, labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP heapwarden_account_live_bytes What survived.
# TYPE heapwarden_account_live_bytes gauge
heapwarden_account_live_bytes{account=\"shop\"} 1024
heapwarden_account_charged_bytes{account=\"shop\"} 2048
heapwarden_account_standard_error_bytes{account=\"shop\"} 1.5e2
heapwarden_account_limit_bytes{account=\"shop\"} 4096
heapwarden_account_over_limit{account=\"shop\"} 0
heapwarden_principal_live_bytes{principal=\"shop\",agent=\"xml\"} 512
heapwarden_gc_epoch 7
heapwarden_agent_cpu_seconds_total{part=\"a\"} 0.25
heapwarden_agent_cpu_seconds_total{part=\"b\"} 0.5
";

    #[test]
    fn an_account_is_read() {
        let reading = Reading::parse(TEXT).unwrap();
        let account = reading.account("shop").unwrap();
        assert_eq!(
            account,
            Account {
                live_bytes: 1024.0,
                charged_bytes: 2048.0,
                standard_error_bytes: 150.0,
                soft_limit_bytes: None,
                limit_bytes: Some(4096.0),
                over_limit: false,
            }
        );
        assert_eq!(reading.principal_bytes("shop", "xml"), 512.0);
        assert_eq!(reading.principal_bytes("xml", "shop"), 0.0);
        assert_eq!(reading.gc_epoch(), 7.0);
        assert_eq!(reading.sum("heapwarden_agent_cpu_seconds_total"), 0.75);
    }

    #[test]
    fn a_missing_account_is_named() {
        let error = Reading::parse(TEXT).unwrap().account("other").unwrap_err();
        assert!(error.to_string().contains("the account other"), "{error}");
    }

    #[test]
    fn what_is_no_sample_is_an_error() {
        for text in ["m", "m 1\nm 2"] {
            assert!(Reading::parse(text).is_err(), "{text:?}");
        }
    }
}
