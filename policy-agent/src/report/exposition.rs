//! Writes metrics as Prometheus text (0.0.4) or as OpenMetrics (1.0.0).
//!
//! Metrics of a snapshot have a writer of our own, because accounts come and go, and both formats come from
//! one list of families. Metrics of events are rendered by the crate `metrics-exporter-prometheus`, in the
//! older format. Their sample lines are the same in both formats, so only the heads are replaced. The
//! formats are
//! <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use std::fmt::Write as _;

use policy_report::catalog::{Metric, RECORDED, Type, Unit};

use super::families::{Sample, Value, families};
use super::fold::Folded;
use super::{EventRecorder, Snapshot};

/// One of the two text formats.
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

/// Renders a snapshot, its accounts folded, and the events recorded so far. On an agent thread.
pub fn render(
    format: Format,
    snapshot: &Snapshot,
    folded: &Folded<'_>,
    events: &EventRecorder,
) -> String {
    let families = families(snapshot, folded);
    let lines: usize = families.iter().map(|family| family.samples.len() + 3).sum();
    let mut out = String::with_capacity(lines * 96);
    for family in &families {
        head(&mut out, format, family.metric);
        for sample in &family.samples {
            line(&mut out, family.metric.name, sample);
        }
    }
    recorded(&mut out, format, &events.render());
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// Copies the sample lines of `text`, family by family, under heads of our own.
fn recorded(out: &mut String, format: Format, text: &str) {
    for &metric in RECORDED {
        let begin = format!("# TYPE {} ", metric.name);
        let mut blocks = text.split("\n\n");
        let Some(block) = blocks.find(|block| block.starts_with(&begin)) else {
            continue;
        };
        head(out, format, metric);
        for sample in block.lines().filter(|line| !line.starts_with('#')) {
            bucket_as_float(out, sample);
            out.push('\n');
        }
    }
}

/// Writes a sample line. The bound of a bucket is written `1.0` instead of the crate's `1`: OpenMetrics
/// requires it, and a series must have the same labels in both formats.
fn bucket_as_float(out: &mut String, sample: &str) {
    let bound = sample.split_once("le=\"").and_then(|(before, rest)| {
        let (bound, after) = rest.split_once('"')?;
        Some((before, bound, after))
    });
    match bound {
        Some((before, bound, after)) if bound.bytes().all(|b| b.is_ascii_digit()) => {
            for part in [before, "le=\"", bound, ".0\"", after] {
                out.push_str(part);
            }
        }
        _ => out.push_str(sample),
    }
}

fn head(out: &mut String, format: Format, metric: &Metric) {
    let (name, kind) = match format {
        Format::Prometheus => (
            metric.name,
            match metric.kind {
                Type::Gauge | Type::Info => "gauge",
                Type::Counter => "counter",
                Type::Histogram => "histogram",
            },
        ),
        Format::OpenMetrics => (
            metric.open_metrics_family(),
            match metric.kind {
                Type::Gauge => "gauge",
                Type::Counter => "counter",
                Type::Info => "info",
                Type::Histogram => "histogram",
            },
        ),
    };
    for part in ["# HELP ", name, " "] {
        out.push_str(part);
    }
    // Only OpenMetrics escapes quotes in help texts.
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
