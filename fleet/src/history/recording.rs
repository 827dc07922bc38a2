//! Reads a period from Prometheus.

mod assembly;
mod fleet;
mod queries;
mod request;

use policy_report::catalog;

use crate::prometheus::Client;
use heapwarden_terminal::clock;

use super::{Error, History, Jvm};
use assembly::Assembly;
use queries::Queries;

pub(super) use fleet::{is_large, read as read_fleet};
pub(super) use request::Request;

/// Times at which the kinds of accounts are asked for.
const KIND_POINTS: u64 = 200;

/// JVMs that one query names.
const MAX_NAMED: usize = 100;

/// Reads a period.
///
/// # Errors
/// See [`Error`].
pub(super) fn read(client: &Client, request: &Request) -> Result<History, Error> {
    let queries = Queries::new(client, request);
    let mut reading = Assembly::new(request);
    read_accounts(&queries, &mut reading)?;
    if reading.jvms.values().all(|jvm| jvm.accounts.is_empty()) {
        return Err(nothing(client, request));
    }
    if request.accounts.is_none() {
        read_heaps(&queries, &mut reading)?;
    } else {
        // Most JVMs may have none of them.
        let keys: Vec<Vec<String>> = reading.jvms.keys().cloned().collect();
        for keys in keys.chunks(MAX_NAMED) {
            read_heaps(&queries.of(keys), &mut reading)?;
        }
    }
    Ok(history(client, request, reading.finish(), Vec::new()))
}

fn history(client: &Client, request: &Request, jvms: Vec<Jvm>, notes: Vec<String>) -> History {
    let mut all = client.warnings();
    all.extend(notes);
    History {
        source: format!("Prometheus at {}", client.base()),
        span: request.span,
        jvms,
        notes: all,
    }
}

fn nothing(client: &Client, request: &Request) -> Error {
    let (first, last) = (request.span.start_seconds(), request.span.end_seconds());
    Error::Nothing {
        source_name: format!("Prometheus at {}", client.base()),
        from: clock::format_time(first),
        to: clock::format_time(last),
        selector: request.selector.clause(),
        metric: queries::name(catalog::ACCOUNT_LIVE_BYTES.name, request.rollups),
    }
}

/// Reads the accounts of the JVMs that the queries are about.
fn read_accounts(queries: &Queries<'_>, reading: &mut Assembly<'_>) -> Result<(), Error> {
    reading.kinds(&queries.kinds(KIND_POINTS)?)?;
    let live = queries.whole(
        catalog::ACCOUNT_TREE_LIVE_BYTES.name,
        catalog::ACCOUNT_LIVE_BYTES.name,
    )?;
    reading.accounts(&live, |account| &mut account.live_bytes)?;
    drop(live);
    let errors = queries.whole(
        catalog::ACCOUNT_TREE_LIVE_STANDARD_ERROR_BYTES.name,
        catalog::ACCOUNT_LIVE_STANDARD_ERROR_BYTES.name,
    )?;
    if queries.rollups() {
        // The agents whose errors have to be derived are older than the rules.
        reading.accounts(&errors, |account| &mut account.standard_error_bytes)?;
    } else {
        reading.accounts(&errors, |account| &mut account.live_standard_error_bytes)?;
        drop(errors);
        let errors = queries.whole(
            catalog::ACCOUNT_TREE_STANDARD_ERROR_BYTES.name,
            catalog::ACCOUNT_STANDARD_ERROR_BYTES.name,
        )?;
        reading.accounts(&errors, |account| &mut account.standard_error_bytes)?;
        drop(errors);
        let charged = queries.whole(
            catalog::ACCOUNT_TREE_CHARGED_BYTES.name,
            catalog::ACCOUNT_CHARGED_BYTES.name,
        )?;
        reading.accounts(&charged, |account| &mut account.charged_bytes)?;
        drop(charged);
        reading.scale_errors();
    }

    let limits = queries.last_of_accounts(catalog::ACCOUNT_LIMIT_BYTES.name)?;
    reading.accounts(&limits, |account| &mut account.limit_bytes)?;
    let limits = queries.last_of_accounts(catalog::ACCOUNT_SOFT_LIMIT_BYTES.name)?;
    reading.accounts(&limits, |account| &mut account.soft_limit_bytes)?;
    let counted = queries.counted(catalog::ACCOUNT_REFUSALS.name)?;
    reading.counted(&counted, |account| &mut account.refusals)?;
    let counted = queries.counted(catalog::ACCOUNT_WOULD_REFUSE.name)?;
    reading.counted(&counted, |account| &mut account.would_refuse)
}

/// Reads what the JVMs that the queries are about have as a whole.
fn read_heaps(queries: &Queries<'_>, reading: &mut Assembly<'_>) -> Result<(), Error> {
    let heap = queries.of_jvms("last_over_time", catalog::HEAP_MAX_BYTES.name)?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_max_bytes)?;
    let heap = queries.of_jvms("max_over_time", catalog::HEAP_USED_AFTER_GC_BYTES.name)?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_used_after_gc_bytes)?;
    let interval = queries.of_jvms("last_over_time", catalog::SAMPLING_INTERVAL_BYTES.name)?;
    reading.jvms(&interval, |jvm| &mut jvm.sampling_interval_bytes)?;
    // A restart within a step, and one between two of them.
    reading.jvms(&queries.resets()?, |jvm| &mut jvm.resets)?;
    let samples = queries.of_jvms("last_over_time", catalog::SAMPLES.name)?;
    reading.jvms(&samples, |jvm| &mut jvm.samples)
}

#[cfg(test)]
mod tests;
