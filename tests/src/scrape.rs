//! Reads what the agent publishes: the JSON of the accounts, and the Prometheus text format, strictly.

use heapwarden_harness::http::{self, Answer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// `GET path`.
///
/// # Panics
/// If there is no answer at all.
#[must_use]
pub fn get(address: SocketAddr, path: &str) -> Answer {
    http::get(address, path).unwrap_or_else(|error| panic!("{error}"))
}

/// The accounts' JSON.
///
/// # Panics
/// If the answer is not 200 with JSON.
#[must_use]
pub fn accounts(address: SocketAddr) -> Accounts {
    let answer = get(address, "/api/v1/accounts?classes=all");
    assert_eq!(answer.status, 200, "{}", answer.body);
    Accounts(serde_json::from_str(&answer.body).expect("the accounts are JSON"))
}

/// The parsed metrics.
///
/// # Panics
/// If the answer is not 200 or not valid.
#[must_use]
pub fn metrics(address: SocketAddr) -> Metrics {
    let answer = get(address, "/metrics");
    assert_eq!(answer.status, 200, "{}", answer.body);
    Metrics::parse(&answer.body).unwrap_or_else(|error| panic!("{error}"))
}

/// The answer of `/api/v1/accounts`.
#[derive(Debug, Clone)]
pub struct Accounts(
    /// The whole document.
    pub Value,
);

/// One account's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Holding {
    /// `live_bytes`
    pub live_bytes: f64,
    /// `charged_bytes`
    pub charged_bytes: f64,
    /// `live_objects`
    pub live_objects: f64,
    /// `standard_error_bytes`
    pub standard_error_bytes: f64,
    /// `allocated_bytes_total`
    pub allocated_bytes: f64,
}

impl Accounts {
    /// The account's object, if it is listed.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.list().iter().find(|account| account["name"] == name)
    }

    /// Every account.
    ///
    /// # Panics
    /// If the document has no list of accounts.
    #[must_use]
    pub fn list(&self) -> &[Value] {
        self.0["accounts"]
            .as_array()
            .expect("the document has a list of accounts")
    }

    /// Whether the account is listed, and in this state.
    #[must_use]
    pub fn is_in_state(&self, name: &str, state: &str) -> bool {
        self.find(name)
            .is_some_and(|account| account["state"] == state)
    }

    /// The account's figures; all zero where it is not listed.
    #[must_use]
    pub fn holding(&self, name: &str) -> Holding {
        self.find(name).map(holding).unwrap_or_default()
    }

    /// Live bytes that `payer` holds on behalf of `principal`, by its `principals` list.
    #[must_use]
    pub fn principal_bytes(&self, payer: &str, principal: &str) -> f64 {
        let principals = self.find(payer).and_then(|account| {
            account["principals"]
                .as_array()
                .map(|list| list.iter().filter(|entry| entry["name"] == principal))
        });
        principals
            .into_iter()
            .flatten()
            .map(|entry| number(&entry["live_bytes"]))
            .sum()
    }

    /// `heap.gc_epoch`
    #[must_use]
    pub fn gc_epoch(&self) -> f64 {
        number(&self.0["heap"]["gc_epoch"])
    }

    /// Lists the classes of the account's live objects, one line each with objects and bytes, or says that the account
    /// is not listed: for messages.
    #[must_use]
    pub fn classes(&self, name: &str) -> String {
        let Some(classes) = self
            .find(name)
            .and_then(|found| found["classes"].as_array())
        else {
            return format!("{name} is not listed");
        };
        let lines: Vec<String> = classes
            .iter()
            .filter(|class| number(&class["live_objects"]) > 0.0)
            .map(|class| {
                let (name, objects) = (&class["class"], &class["live_objects"]);
                format!("{name}: {objects} objects, {} bytes", class["live_bytes"])
            })
            .collect();
        lines.join("\n")
    }

    /// The document without its classes, cut off where it grows long: for messages.
    #[must_use]
    pub fn brief(&self) -> String {
        const MOST: usize = 20;
        let accounts: Vec<String> = self
            .list()
            .iter()
            .take(MOST)
            .map(|account| {
                let (name, state) = (&account["name"], &account["state"]);
                format!("{name} {state} {:?}", holding(account))
            })
            .collect();
        format!(
            "{} accounts, heap {}, policy {}:\n{}",
            self.list().len(),
            self.0["heap"],
            self.0["policy"],
            accounts.join("\n")
        )
    }

    /// Whether everything charged is known to be live: the collection before has been taken in.
    /// True only for a program that rests; what [`is_background`] is not asked.
    #[must_use]
    pub fn taken_in(&self) -> bool {
        self.list()
            .iter()
            .filter(|account| !is_background(account))
            .map(holding)
            .all(|holding| holding.live_bytes == holding.charged_bytes)
    }

    /// Whether every account shows the same figures in both, but what [`is_background`].
    #[must_use]
    pub fn same_holdings(&self, other: &Self) -> bool {
        let figures = |accounts: &Self| -> Vec<(String, Holding)> {
            accounts
                .list()
                .iter()
                .filter(|account| !is_background(account))
                .map(|account| (account["name"].to_string(), holding(account)))
                .collect()
        };
        figures(self) == figures(other)
    }
}

/// Whether an account moves while a test does nothing: nobody's, and that of the test's own program
/// (`victim.Holder`), which the JVM's threads have for their context.
#[must_use]
pub fn is_background(account: &Value) -> bool {
    let name = account["name"].as_str().unwrap_or_default();
    name == "_unaccounted" || name.starts_with("victim.")
}

fn holding(account: &Value) -> Holding {
    Holding {
        live_bytes: number(&account["live_bytes"]),
        charged_bytes: number(&account["charged_bytes"]),
        live_objects: number(&account["live_objects"]),
        standard_error_bytes: number(&account["standard_error_bytes"]),
        allocated_bytes: number(&account["allocated_bytes_total"]),
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number is expected, not {value}"))
}

/// A parsed Prometheus text exposition, and the type of each of its families.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    samples: policy_report::Metrics,
    types: BTreeMap<String, String>,
}

impl std::ops::Deref for Metrics {
    type Target = policy_report::Metrics;

    fn deref(&self) -> &policy_report::Metrics {
        &self.samples
    }
}

impl Metrics {
    /// Parses the text format 0.0.4, and insists on more than a scraper does: every family has HELP
    /// and TYPE before its samples, families do not interleave, no series occurs twice, counters end
    /// in `_total` and are not negative, the text ends in a newline.
    ///
    /// # Errors
    /// A sentence with the offending line.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.ends_with('\n') {
            return Err("the text does not end in a newline".to_owned());
        }
        let mut metrics = Self::default();
        let mut helped = BTreeSet::new();
        let mut family = String::new();
        for line in text.lines() {
            let fail = |why: &str| Err(format!("{why}: {line}"));
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let name = rest.split(' ').next().unwrap_or_default();
                if !helped.insert(name.to_owned()) {
                    return fail("a second HELP");
                }
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let Some((name, kind)) = rest.split_once(' ') else {
                    return fail("TYPE without a type");
                };
                if !helped.contains(name) {
                    return fail("TYPE before HELP");
                }
                if !["gauge", "counter", "histogram"].contains(&kind) {
                    return fail("a type that Heapwarden does not use");
                }
                if (kind == "counter") != name.ends_with("_total") {
                    return fail("`_total` is for counters, and all counters have it");
                }
                let second = metrics.types.insert(name.to_owned(), kind.to_owned());
                if second.is_some() {
                    return fail("a second TYPE");
                }
                name.clone_into(&mut family);
            } else if line.starts_with('#') || line.is_empty() {
                return fail("neither HELP, TYPE nor sample");
            } else {
                let end = line.find(['{', ' ']).unwrap_or(line.len());
                let name = &line[..end];
                let kind = metrics.types.get(&family).map_or("", String::as_str);
                let suffix = name.strip_prefix(family.as_str());
                let is_of_family = match kind {
                    "histogram" => {
                        suffix.is_some_and(|s| ["_bucket", "_sum", "_count"].contains(&s))
                    }
                    _ => suffix == Some(""),
                };
                if !is_of_family {
                    return fail("outside of its family");
                }
                if let Err(why) = metrics.samples.take(line) {
                    return fail(why);
                }
                let taken = metrics.samples.series(name).last();
                let (labels, value) = taken.expect("it was taken in");
                if labels.contains_key("le") != (suffix == Some("_bucket")) {
                    return fail("`le` is for buckets, and all buckets have it");
                }
                if !value.is_finite() || (kind != "gauge" && value < 0.0) {
                    return fail("an impossible value");
                }
            }
        }
        Ok(metrics)
    }

    /// The value of the series whose one label is `account`.
    #[must_use]
    pub fn of_account(&self, name: &str, account: &str) -> Option<f64> {
        self.value(name, &[("account", account)])
    }

    /// Names of all families, with or without series.
    #[must_use]
    pub fn families(&self) -> BTreeSet<&str> {
        self.types.keys().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;

    const GOOD: &str = "# HELP a_bytes A.\n# TYPE a_bytes gauge\na_bytes{x=\"p\\\"q\"} 1.5\n";

    #[test]
    fn a_good_text_is_read() {
        let metrics = Metrics::parse(GOOD).expect("valid");
        assert_eq!(metrics.value("a_bytes", &[("x", "p\"q")]), Some(1.5));
    }

    #[test]
    fn a_histogram_is_read() {
        let text = "# HELP h_seconds H.\n# TYPE h_seconds histogram\n\
            h_seconds_bucket{le=\"1.0\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\n\
            h_seconds_sum 3.5\nh_seconds_count 2\n";
        let metrics = Metrics::parse(text).expect("valid");
        let value = metrics.value("h_seconds_bucket", &[("le", "+Inf")]);
        assert_eq!(value, Some(2.0));
        assert_eq!(
            metrics.families().into_iter().collect::<Vec<_>>(),
            ["h_seconds"]
        );
        for bad in ["h_seconds 1\n", "h_seconds_bucket 1\n", "h_seconds_min 1\n"] {
            assert!(Metrics::parse(&format!("{text}{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn defects_are_refused() {
        let twice = format!("{GOOD}a_bytes{{x=\"p\\\"q\"}} 2\n");
        let stray = format!("{GOOD}b_bytes 2\n");
        let counter = "# HELP a A.\n# TYPE a counter\na 1\n";
        let bare = "a_bytes 1\n";
        for text in [&twice, &stray, counter, bare, GOOD.trim_end()] {
            assert!(Metrics::parse(text).is_err(), "{text}");
        }
    }
}
