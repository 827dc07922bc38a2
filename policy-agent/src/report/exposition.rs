//! Writes metrics as Prometheus text (0.0.4) or as OpenMetrics (1.0.0).
//!
//! A writer of our own, because the numbers come from a snapshot with accounts that come
//! and go, both formats are wanted from one list of families, and the libraries keep a
//! registry of live metrics instead and write one format each. The formats are
//! <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use std::fmt::Write as _;

use super::Snapshot;
use super::catalog::{Metric, Type, Unit};
use super::families::{Sample, Value, families};
use super::fold::Folded;

/// Which of the two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Renders a snapshot, its accounts folded, and the listener's own response counters
/// (status code and count).
pub fn render(
    format: Format,
    snapshot: &Snapshot,
    folded: &Folded<'_>,
    responses: &[(u16, u64)],
) -> String {
    let families = families(snapshot, folded, responses);
    let lines: usize = families.iter().map(|family| family.samples.len() + 3).sum();
    let mut out = String::with_capacity(lines * 96);
    for family in &families {
        head(&mut out, format, family.metric);
        for sample in &family.samples {
            line(&mut out, family.metric.name, sample);
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, format: Format, metric: &Metric) {
    let (name, kind) = match format {
        Format::Prometheus => (
            metric.name,
            match metric.kind {
                Type::Gauge | Type::Info => "gauge",
                Type::Counter => "counter",
            },
        ),
        Format::OpenMetrics => (
            metric.open_metrics_family(),
            match metric.kind {
                Type::Gauge => "gauge",
                Type::Counter => "counter",
                Type::Info => "info",
            },
        ),
    };
    for part in ["# HELP ", name, " "] {
        out.push_str(part);
    }
    // Only OpenMetrics has quotes escaped in help texts.
    escape(out, metric.help, format == Format::OpenMetrics);
    for part in ["\n# TYPE ", name, " ", kind, "\n"] {
        out.push_str(part);
    }
    if format == Format::OpenMetrics && metric.unit != Unit::None {
        for part in ["# UNIT ", name, " ", metric.unit.as_str(), "\n"] {
            out.push_str(part);
        }
    }
}

fn line(out: &mut String, name: &str, sample: &Sample<'_>) {
    out.push_str(name);
    for (index, (label, value)) in sample.labels.iter().enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        out.push_str(label);
        out.push_str("=\"");
        escape(out, value, true);
        out.push('"');
    }
    if !sample.labels.is_empty() {
        out.push('}');
    }
    out.push(' ');
    number(out, sample.value);
    out.push('\n');
}

/// Both formats escape backslash and line feed everywhere, and the quote in label values.
fn escape(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

fn number(out: &mut String, value: Value) {
    let written = match value {
        Value::Integer(value) => write!(out, "{value}"),
        Value::Real(value) if value == f64::INFINITY => write!(out, "+Inf"),
        Value::Real(value) if value == f64::NEG_INFINITY => write!(out, "-Inf"),
        // Rust writes NaN as both formats want it, and never an exponent.
        Value::Real(value) => write!(out, "{value}"),
    };
    written.expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests;
