//! Reads a large fleet: the heaps of all JVMs, and the accounts of those alone that are chosen by their
//! heaps. Of the others only the names of accounts are read that the chosen ones have, too.

use std::collections::BTreeSet;

use policy_report::catalog;

use crate::history::{Error, History, Jvm};
use crate::prometheus::{Client, Span};
use heapwarden_terminal::clock;

use super::assembly::{Assembly, MAX_ACCOUNT_READINGS};
use super::queries::Queries;
use super::{MAX_NAMED, Request, history, nothing, read_accounts, read_heaps};

/// A fleet with more accounts is read in this way.
const MAX_ACCOUNTS: usize = 2_000;

/// Readings of one metric of all JVMs: some 100 MB of JSON. For a week of 10,000 JVMs that is a step of
/// half an hour. A coarser one leaves so few readings that by chance alone they may seem to depend on each
/// other, and one JVM in fifteen would not be judged.
const MAX_HEAP_READINGS: u64 = 4_000_000;

/// Fewest steps, however large the fleet.
const FEWEST_STEPS: u64 = 60;

/// Names of accounts in one query.
const MAX_ACCOUNT_NAMES: usize = 500;

/// Whether the fleet is large. If it is: how many steps its period may be divided into.
///
/// # Errors
/// See [`Error`].
pub(in super::super) fn is_large(client: &Client, request: &Request) -> Result<Option<u64>, Error> {
    let queries = Queries::new(client, request);
    if queries.count(catalog::ACCOUNT_LIVE_BYTES.name)? <= MAX_ACCOUNTS {
        return Ok(None);
    }
    let jvms = queries.count(catalog::HEAP_MAX_BYTES.name)?.max(1);
    Ok(Some((MAX_HEAP_READINGS / jvms as u64).max(FEWEST_STEPS)))
}

/// Reads it. `choose` is given each JVM without its accounts, and returns how much those matter, if they
/// do.
///
/// # Errors
/// See [`Error`].
pub(in super::super) fn read(
    client: &Client,
    request: &Request,
    choose: &dyn Fn(&Jvm, Span) -> Option<f64>,
) -> Result<History, Error> {
    let queries = Queries::new(client, request);
    let mut reading = Assembly::new(request);
    read_heaps(&queries, &mut reading)?;
    if reading.jvms.is_empty() {
        return Err(nothing(client, request));
    }
    let total = reading.jvms.len();
    let mut chosen: Vec<(f64, Vec<String>)> = Vec::new();
    reading.each_heap(|key, jvm| {
        if let Some(weight) = choose(jvm, request.span) {
            chosen.push((weight, key.to_owned()));
        }
    });
    chosen.sort_by(|a, b| b.0.total_cmp(&a.0));
    let keys: Vec<Vec<String>> = chosen.into_iter().map(|(_, key)| key).collect();

    let most = MAX_ACCOUNT_READINGS / request.span.points().max(1);
    let mut read = 0;
    for keys in keys.chunks(MAX_NAMED) {
        read_accounts(&queries.of(keys), &mut reading)?;
        read += keys.len();
        if reading.count_accounts() >= most {
            break;
        }
    }
    let names: BTreeSet<String> = reading.names_of_services();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for names in names.chunks(MAX_ACCOUNT_NAMES) {
        reading.listed(&queries.named(names)?);
    }

    let step = clock::format_duration(request.span.step_seconds());
    let mut notes = vec![format!(
        "{total} JVMs, read in steps of {step}: the accounts of those alone that are pressed ({})",
        keys.len()
    )];
    if read < keys.len() {
        notes.push(format!(
            "the accounts of {} pressed JVMs, the least so, are too many to be read: give a coarser --step, or fewer JVMs with --match",
            keys.len() - read
        ));
    }
    Ok(history(client, request, reading.finish_all(), notes))
}
