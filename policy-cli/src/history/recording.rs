//! Reads a period from Prometheus.

mod assembly;

use policy_report::metric_names;

use crate::clock;
use crate::prometheus::{Client, Series, Span};

use super::selector::Selector;
use super::{Error, History};
use assembly::Assembly;

/// Times at which the kinds of accounts are asked for.
const KIND_POINTS: u64 = 200;

/// Which period of which JVMs.
pub(super) struct Request {
    pub(super) selector: Selector,
    pub(super) span: Span,
    pub(super) jvm_labels: Vec<String>,
}

/// Reads a period.
///
/// # Errors
/// See [`Error`].
pub(super) fn read(client: &Client, request: &Request) -> Result<History, Error> {
    let Request { selector, span, .. } = request;
    let step = span.step_seconds();
    let ask = |function: &str, metric: &str| {
        let query = format!("{function}({}[{step}s])", selector.of(metric));
        client.range(&query, *span)
    };
    // Limits, and what a move frees, are about an account with the scopes inside it. That sum has
    // metrics of its own, which exist only if there are scopes.
    let ask_whole = |whole: &str, own: &str| {
        let over = |metric: &str| format!("max_over_time({}[{step}s])", selector.of(metric));
        client.range(&format!("{} or {}", over(whole), over(own)), *span)
    };
    let mut reading = Assembly::new(request);
    reading.kinds(&kinds(client, request)?)?;

    let live = ask_whole(
        metric_names::ACCOUNT_TREE_LIVE_BYTES,
        metric_names::ACCOUNT_LIVE_BYTES,
    )?;
    reading.accounts(&live, |account| &mut account.live_bytes)?;
    drop(live);
    if reading.jvms.values().all(|jvm| jvm.accounts.is_empty()) {
        return Err(Error::Nothing {
            source_name: format!("Prometheus at {}", client.base()),
            from: clock::format_time(span.start_seconds()),
            to: clock::format_time(span.end_seconds()),
            selector: selector.clause(),
        });
    }
    let errors = ask_whole(
        metric_names::ACCOUNT_TREE_LIVE_STANDARD_ERROR_BYTES,
        metric_names::ACCOUNT_LIVE_STANDARD_ERROR_BYTES,
    )?;
    reading.accounts(&errors, |account| &mut account.live_standard_error_bytes)?;
    drop(errors);
    let errors = ask_whole(
        metric_names::ACCOUNT_TREE_STANDARD_ERROR_BYTES,
        metric_names::ACCOUNT_STANDARD_ERROR_BYTES,
    )?;
    reading.accounts(&errors, |account| &mut account.standard_error_bytes)?;
    drop(errors);
    let charged = ask_whole(
        metric_names::ACCOUNT_TREE_CHARGED_BYTES,
        metric_names::ACCOUNT_CHARGED_BYTES,
    )?;
    reading.accounts(&charged, |account| &mut account.charged_bytes)?;
    drop(charged);
    reading.scale_errors();

    let limits = ask("last_over_time", metric_names::ACCOUNT_LIMIT_BYTES)?;
    reading.accounts(&limits, |account| &mut account.limit_bytes)?;
    let limits = ask("last_over_time", metric_names::ACCOUNT_SOFT_LIMIT_BYTES)?;
    reading.accounts(&limits, |account| &mut account.soft_limit_bytes)?;
    // Most accounts are never refused: counters at 0 are not requested.
    let counted = |metric: &str| {
        let query = format!("last_over_time({}[{step}s]) > 0", selector.of(metric));
        client.range(&query, *span)
    };
    reading.counted(&counted(metric_names::ACCOUNT_REFUSALS)?, |account| {
        &mut account.refusals
    })?;
    reading.counted(&counted(metric_names::ACCOUNT_WOULD_REFUSE)?, |account| {
        &mut account.would_refuse
    })?;

    let heap = ask("last_over_time", metric_names::HEAP_MAX_BYTES)?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_max_bytes)?;
    let heap = ask("max_over_time", metric_names::HEAP_USED_AFTER_GC_BYTES)?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_used_after_gc_bytes)?;
    let interval = ask("last_over_time", metric_names::SAMPLING_INTERVAL_BYTES)?;
    reading.jvms(&interval, |jvm| &mut jvm.sampling_interval_bytes)?;
    // A restart within a step, and one between two of them.
    let resets = ask("resets", metric_names::SAMPLES)?;
    reading.jvms(&resets, |jvm| &mut jvm.resets)?;
    let samples = ask("last_over_time", metric_names::SAMPLES)?;
    reading.jvms(&samples, |jvm| &mut jvm.samples)?;

    Ok(History {
        source: format!("Prometheus at {}", client.base()),
        span: *span,
        jvms: reading.finish(),
        notes: client.warnings(),
    })
}

/// Kind and service of every account, at few times, but so that no account is missed.
fn kinds(client: &Client, request: &Request) -> Result<Vec<Series>, Error> {
    let Request { selector, span, .. } = request;
    let stride = (span.points() as u64).div_ceil(KIND_POINTS);
    let step = span.step_seconds().saturating_mul(stride);
    let coarse = Span::covering(
        span.end_seconds().saturating_add(step as i64 - 1),
        span.seconds(),
        step,
    );
    let metric = selector.of(metric_names::ACCOUNT_INFO);
    Ok(client.range(&format!("last_over_time({metric}[{step}s])"), coarse)?)
}

#[cfg(test)]
mod tests;
