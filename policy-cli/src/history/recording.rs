//! A period as Prometheus has recorded it.

use std::collections::BTreeMap;

use crate::clock;
use crate::printable::fitted;
use crate::prometheus::{Client, Series, Span};

use super::selector::Selector;
use super::{Account, Column, Error, History, Jvm, Kind, live_error};

/// Most readings that are held: 512 MiB.
const MAX_READINGS: usize = 64 << 20;

/// Columns that an account fills in the worst case.
const COLUMNS: usize = 6;

/// Times at which the kinds of accounts are asked for.
const KIND_POINTS: u64 = 200;

/// What is asked.
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
    // Limits, and what a move frees, are about an account with the scopes beneath it; that is
    // published apart, and only where there are any.
    let ask_whole = |part: &str| {
        let over = |metric: String| format!("max_over_time({}[{step}s])", selector.of(&metric));
        let whole = over(format!("heapwarden_account_tree_{part}"));
        let own = over(format!("heapwarden_account_{part}"));
        client.range(&format!("{whole} or {own}"), *span)
    };
    let mut reading = Reading::new(request);
    reading.kinds(&kinds(client, request)?)?;

    let live = ask_whole("live_bytes")?;
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
    let errors = ask_whole("standard_error_bytes")?;
    reading.accounts(&errors, |account| &mut account.standard_error_bytes)?;
    drop(errors);
    let charged = ask_whole("charged_bytes")?;
    reading.accounts(&charged, |account| &mut account.charged_bytes)?;
    drop(charged);
    reading.scale_errors();

    let limits = ask("last_over_time", "heapwarden_account_limit_bytes")?;
    reading.accounts(&limits, |account| &mut account.limit_bytes)?;
    let limits = ask("last_over_time", "heapwarden_account_soft_limit_bytes")?;
    reading.accounts(&limits, |account| &mut account.soft_limit_bytes)?;
    // Most accounts are never refused: their counters, at 0, are not sent.
    let counted = |metric: &str| {
        let query = format!("last_over_time({}[{step}s]) > 0", selector.of(metric));
        client.range(&query, *span)
    };
    reading.counted(&counted("heapwarden_account_refusals_total")?, |account| {
        &mut account.refusals
    })?;
    reading.counted(
        &counted("heapwarden_account_would_refuse_total")?,
        |account| &mut account.would_refuse,
    )?;

    let heap = ask("last_over_time", "heapwarden_heap_max_bytes")?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_max_bytes)?;
    let heap = ask("max_over_time", "heapwarden_heap_used_after_gc_bytes")?;
    reading.jvms(&heap, |jvm| &mut jvm.heap_used_after_gc_bytes)?;
    let interval = ask("last_over_time", "heapwarden_sampling_interval_bytes")?;
    reading.jvms(&interval, |jvm| &mut jvm.sampling_interval_bytes)?;
    // A restart within a step, and one between two of them.
    let resets = ask("resets", "heapwarden_samples_total")?;
    reading.jvms(&resets, |jvm| &mut jvm.resets)?;
    let samples = ask("last_over_time", "heapwarden_samples_total")?;
    reading.jvms(&samples, |jvm| &mut jvm.samples)?;

    Ok(History {
        source: format!("Prometheus at {}", client.base()),
        span: *span,
        jvms: reading.finish(),
        notes: client.warnings(),
    })
}

/// Kind and service of every account, at times that are as few as needed to see them all.
fn kinds(client: &Client, request: &Request) -> Result<Vec<Series>, Error> {
    let Request { selector, span, .. } = request;
    let stride = (span.points() as u64).div_ceil(KIND_POINTS);
    let step = span.step_seconds().saturating_mul(stride);
    let coarse = Span::covering(
        span.end_seconds().saturating_add(step as i64 - 1),
        span.seconds(),
        step,
    );
    let metric = selector.of("heapwarden_account_info");
    Ok(client.range(&format!("last_over_time({metric}[{step}s])"), coarse)?)
}

/// A JVM while it is read.
#[derive(Default)]
struct Process {
    heap_max_bytes: Column,
    heap_used_after_gc_bytes: Column,
    sampling_interval_bytes: Column,
    resets: Column,
    samples: Column,
    accounts: BTreeMap<String, Entry>,
}

/// An account while it is read.
#[derive(Default)]
struct Entry {
    identity: Option<Identity>,
    live_bytes: Column,
    charged_bytes: Column,
    standard_error_bytes: Column,
    soft_limit_bytes: Column,
    limit_bytes: Column,
    refusals: Column,
    would_refuse: Column,
}

/// What `heapwarden_account_info` says of an account.
struct Identity {
    /// When it was last said, in seconds since the epoch.
    latest: f64,
    kind: Kind,
    service: String,
    parent: String,
}

struct Reading<'a> {
    request: &'a Request,
    jvms: BTreeMap<Vec<String>, Process>,
    /// The labels of the first series of each name, to say what differs.
    seen: BTreeMap<Vec<String>, BTreeMap<String, String>>,
}

impl<'a> Reading<'a> {
    fn new(request: &'a Request) -> Reading<'a> {
        Reading {
            request,
            jvms: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    fn steps(&self) -> usize {
        self.request.span.points()
    }

    fn key(&self, series: &Series) -> Vec<String> {
        let labels = self.request.jvm_labels.iter();
        labels
            .map(|label| series.labels.get(label).cloned().unwrap_or_default())
            .collect()
    }

    /// The latest kind counts: a policy may have turned packages into a library.
    fn kinds(&mut self, found: &[Series]) -> Result<(), Error> {
        let steps = self.steps();
        if found.len().saturating_mul(steps).saturating_mul(COLUMNS) > MAX_READINGS {
            let most = (MAX_READINGS / COLUMNS / found.len()).max(1) as u64;
            return Err(Error::TooLarge {
                accounts: found.len(),
                steps,
                step: clock::format_duration(
                    self.request
                        .span
                        .seconds()
                        .div_ceil(most)
                        .next_multiple_of(60),
                )
                .replace(' ', ""),
            });
        }
        for series in found {
            let Some(name) = own(series, "account") else {
                continue;
            };
            let latest = series.points.last().map_or(0.0, |(time, _)| *time);
            let kind = Kind::from_word(own(series, "kind").unwrap_or_default());
            let word = |label: &str| own(series, label).unwrap_or_default().to_owned();
            let jvm = self.jvms.entry(self.key(series)).or_default();
            let entry = jvm.accounts.entry(name.into()).or_default();
            let known = entry.identity.as_ref();
            if known.is_none_or(|known| known.latest < latest) {
                entry.identity = Some(Identity {
                    latest,
                    kind,
                    service: word("service"),
                    parent: word("parent"),
                });
            }
        }
        Ok(())
    }

    fn accounts(
        &mut self,
        found: &[Series],
        column: fn(&mut Entry) -> &mut Column,
    ) -> Result<(), Error> {
        let (span, steps) = (self.request.span, self.steps());
        for series in found {
            let Some(name) = own(series, "account") else {
                continue;
            };
            let key = self.key(series);
            let jvm = self.jvms.entry(key.clone()).or_default();
            let column = column(jvm.accounts.entry(name.into()).or_default());
            if !fill(column, series, span, steps) {
                return Err(self.ambiguous(&key, series));
            }
            self.seen
                .entry(key)
                .or_insert_with(|| series.labels.clone());
        }
        Ok(())
    }

    fn jvms(
        &mut self,
        found: &[Series],
        column: fn(&mut Process) -> &mut Column,
    ) -> Result<(), Error> {
        let (span, steps) = (self.request.span, self.steps());
        for series in found {
            let key = self.key(series);
            let jvm = self.jvms.entry(key.clone()).or_default();
            if !fill(column(jvm), series, span, steps) {
                return Err(self.ambiguous(&key, series));
            }
        }
        Ok(())
    }

    /// Counters that stand above 0, as what they gained in each step.
    ///
    /// An account whose counter is missing while its live bytes are not stands at 0. What a
    /// counter had gained before the first step, or before a gap, is of unknown time and
    /// does not count.
    fn counted(
        &mut self,
        found: &[Series],
        column: fn(&mut Entry) -> &mut Column,
    ) -> Result<(), Error> {
        let (span, steps) = (self.request.span, self.steps());
        for series in found {
            let Some(name) = own(series, "account") else {
                continue;
            };
            let key = self.key(series);
            let mut counter = Column::default();
            let unique = fill(&mut counter, series, span, steps);
            let jvm = self.jvms.entry(key.clone()).or_default();
            let entry = jvm.accounts.entry(name.into()).or_default();
            let mut gained = Vec::new();
            for (step, now) in counter.readings() {
                let Some(previous) = step.checked_sub(1) else {
                    continue;
                };
                let before = match counter.get(previous) {
                    Some(before) => before,
                    None if entry.live_bytes.get(previous).is_some() => 0.0,
                    None => continue,
                };
                // A counter that fell began anew.
                let gain = if now < before { now } else { now - before };
                if gain > 0.0 {
                    gained.push((step, gain));
                }
            }
            let column = column(entry);
            let fits = gained
                .iter()
                .all(|(step, gain)| column.put(steps, *step, *gain));
            if !(unique && fits) {
                return Err(self.ambiguous(&key, series));
            }
        }
        Ok(())
    }

    fn scale_errors(&mut self) {
        let steps = self.steps();
        for entry in self
            .jvms
            .values_mut()
            .flat_map(|jvm| jvm.accounts.values_mut())
        {
            let charged = std::mem::take(&mut entry.charged_bytes);
            let published = std::mem::take(&mut entry.standard_error_bytes);
            for (step, error) in published.readings() {
                let live = entry.live_bytes.get(step);
                let error = match (live, charged.get(step)) {
                    (Some(live), Some(charged)) => live_error(error, live, charged),
                    _ => error,
                };
                entry.standard_error_bytes.put(steps, step, error);
            }
        }
    }

    fn ambiguous(&self, key: &[String], series: &Series) -> Error {
        let other = self.seen.get(key);
        let labels = self.request.jvm_labels.iter().cloned();
        let differ: Vec<String> = series
            .labels
            .iter()
            .filter(|(label, value)| {
                !is_own(label) && other.is_some_and(|other| other.get(*label) != Some(value))
            })
            .map(|(label, _)| label.clone())
            .collect();
        let hint = labels.chain(differ.iter().take(1).cloned());
        Error::Ambiguous {
            jvm: fitted(&key.join(" "), 100).into_owned(),
            hint: hint.collect::<Vec<_>>().join(","),
            differ: if differ.is_empty() {
                "nothing that they are labelled with".into()
            } else {
                differ.join(", ")
            },
        }
    }

    fn finish(self) -> Vec<Jvm> {
        let labels = &self.request.jvm_labels;
        let jvms = self.jvms.into_iter().map(|(key, process)| Jvm {
            labels: labels.iter().cloned().zip(key).collect(),
            restarts: restarts(&process),
            heap_max_bytes: process.heap_max_bytes,
            heap_used_after_gc_bytes: process.heap_used_after_gc_bytes,
            sampling_interval_bytes: process.sampling_interval_bytes,
            accounts: process.accounts.into_iter().filter_map(account).collect(),
        });
        jvms.filter(|jvm| !jvm.accounts.is_empty()).collect()
    }
}

/// Steps in which the count of samples fell.
fn restarts(process: &Process) -> Vec<usize> {
    let mut before = f64::NEG_INFINITY;
    let mut restarts = Vec::new();
    for (step, samples) in process.samples.readings() {
        if samples < before || process.resets.get(step).is_some_and(|resets| resets > 0.0) {
            restarts.push(step);
        }
        before = samples;
    }
    restarts
}

/// The account, unless it was never read.
fn account((name, entry): (String, Entry)) -> Option<Account> {
    entry.live_bytes.last()?;
    let (kind, service, parent) = match entry.identity {
        Some(said) => (said.kind, said.service, said.parent),
        None if name.starts_with('_') => (Kind::Reserved, String::new(), String::new()),
        None => (Kind::Service, name.clone(), String::new()),
    };
    Some(Account {
        name,
        kind,
        service,
        parent,
        live_bytes: entry.live_bytes,
        standard_error_bytes: entry.standard_error_bytes,
        soft_limit_bytes: entry.soft_limit_bytes,
        limit_bytes: entry.limit_bytes,
        refusals: entry.refusals,
        would_refuse: entry.would_refuse,
    })
}

/// False where two series claim one step.
fn fill(column: &mut Column, series: &Series, span: Span, steps: usize) -> bool {
    let mut unique = true;
    for (time, value) in &series.points {
        if let Some(step) = span.index(*time) {
            unique &= column.put(steps, step, *value);
        }
    }
    unique
}

/// A label that the agent gave. Where the scrape configuration gives targets a label of the
/// same name (`service` is common), Prometheus renames the agent's to `exported_…`.
fn own<'a>(series: &'a Series, label: &str) -> Option<&'a str> {
    let exported = series.labels.get(&format!("exported_{label}"));
    exported
        .or_else(|| series.labels.get(label))
        .map(String::as_str)
}

fn is_own(label: &str) -> bool {
    let label = label.strip_prefix("exported_").unwrap_or(label);
    matches!(label, "account" | "kind" | "service" | "parent")
}

#[cfg(test)]
mod tests;
