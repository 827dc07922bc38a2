//! The catalogue against `docs/metrics.md`.

use std::collections::{BTreeMap, BTreeSet};

use policy_report::Account;
use policy_report::catalog::{self, Type};

const DOCUMENT: &str = include_str!("../../docs/metrics.md");

/// The words in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A row for every metric, with its type and labels, and none for another.
#[test]
fn every_metric_has_a_row() {
    let rows: BTreeMap<&str, &str> = (DOCUMENT.lines())
        .filter_map(|line| Some((line, line.strip_prefix("| ")?.split_once(" | ")?.0)))
        .flat_map(|(line, first)| quoted(first).map(move |name| (name, line)))
        .filter(|(name, _)| name.starts_with("heapwarden_"))
        .collect();
    let names: BTreeMap<&str, _> = catalog::all().map(|metric| (metric.name, metric)).collect();
    let [described, known] = [rows.keys().collect::<Vec<_>>(), names.keys().collect()];
    assert_eq!(described, known);
    for (name, metric) in names {
        let kind = match metric.kind {
            Type::Gauge => "gauge",
            Type::Counter => "counter",
            Type::Info => "info",
            Type::Histogram => "histogram",
        };
        let second = rows[name].split(" | ").nth(1).unwrap_or_default();
        let is_type = ["gauge", "counter", "info"].contains(&second);
        assert!(!is_type || second == kind, "{name}: {second}");
        // The accounts' tables name it once.
        for label in metric.labels.iter().filter(|label| **label != "account") {
            assert!(
                quoted(rows[name]).any(|word| word == *label),
                "{name}: {label}"
            );
        }
    }
}

/// A row for every key of an account, and none for another.
#[test]
fn every_key_of_an_account_has_a_row() {
    let (_, table) = DOCUMENT
        .split_once("Each account has:\n")
        .expect("it begins");
    let (table, _) = table.split_once("\nAll amounts").expect("it ends");
    let described: BTreeSet<&str> = (table.lines())
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(quoted)
        .map(|key| key.trim_end_matches("[]"))
        .collect();
    let account = Account {
        live_by_ratio_bytes: Some(1),
        live_by_ratio_standard_error_bytes: Some(1),
        ..Account::default()
    };
    let fields = serde_json::to_value(account).expect("it can be written");
    let fields = fields.as_object().expect("an object").keys();
    let known: BTreeSet<&str> = (fields.map(String::as_str))
        .chain(Account::FIGURES.iter().copied())
        .collect();
    assert_eq!(described, known);
}
