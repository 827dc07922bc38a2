//! The catalogue against `docs/metrics.md`.

use std::collections::BTreeMap;

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
