//! Assembles series of Prometheus by JVM, account and step.

use std::collections::{BTreeMap, BTreeSet};

use crate::prometheus::{Series, Span};
use heapwarden_terminal::clock;
use heapwarden_terminal::printable::fitted;

use super::super::{Account, Column, Error, Jvm, Kind, live_error};
use super::request::Request;

/// Most readings that are held: 512 MiB.
const MAX_READINGS: usize = 64 << 20;

/// Readings of one column of all accounts.
pub(super) const MAX_ACCOUNT_READINGS: usize = MAX_READINGS / COLUMNS;

/// Columns that an account fills in the worst case.
const COLUMNS: usize = 6;

/// A JVM while it is read.
#[derive(Default)]
pub(super) struct JvmColumns {
    pub(super) heap_max_bytes: Column,
    pub(super) heap_used_after_gc_bytes: Column,
    pub(super) sampling_interval_bytes: Column,
    pub(super) resets: Column,
    pub(super) samples: Column,
    pub(super) accounts: BTreeMap<String, AccountColumns>,
}

impl Request {
    /// Returns the values of the labels that tell the JVM of a series from others. A missing label counts as an empty
    /// one.
    pub(super) fn key(&self, series: &Series) -> Vec<String> {
        let labels = self.jvm_labels.iter();
        labels
            .map(|label| series.labels.get(label).cloned().unwrap_or_default())
            .collect()
    }
}

/// An account while it is read.
#[derive(Default)]
pub(super) struct AccountColumns {
    identity: Option<Identity>,
    pub(super) live_bytes: Column,
    pub(super) charged_bytes: Column,
    pub(super) live_standard_error_bytes: Column,
    pub(super) standard_error_bytes: Column,
    pub(super) soft_limit_bytes: Column,
    pub(super) limit_bytes: Column,
    pub(super) refusals: Column,
    pub(super) would_refuse: Column,
    /// Known by its name alone.
    listed: bool,
}

/// The labels of an account in its latest `heapwarden_account_info`.
struct Identity {
    /// Time of the latest sample, in seconds since the epoch.
    latest: f64,
    kind: Kind,
    service: String,
    parent: String,
}

pub(super) struct Assembly<'a> {
    request: &'a Request,
    pub(super) jvms: BTreeMap<Vec<String>, JvmColumns>,
    /// The labels of the first series of each name, to report what differs.
    seen: BTreeMap<Vec<String>, BTreeMap<String, String>>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(request: &'a Request) -> Assembly<'a> {
        Assembly {
            request,
            jvms: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    fn steps(&self) -> usize {
        self.request.span.points()
    }

    fn key(&self, series: &Series) -> Vec<String> {
        self.request.key(series)
    }

    /// The latest kind counts: a policy may have turned packages into a library.
    pub(super) fn kinds(&mut self, found: &[Series]) -> Result<(), Error> {
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

    pub(super) fn accounts(
        &mut self,
        found: &[Series],
        column: fn(&mut AccountColumns) -> &mut Column,
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

    pub(super) fn jvms(
        &mut self,
        found: &[Series],
        column: fn(&mut JvmColumns) -> &mut Column,
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

    /// Counters above 0, as increases in each step.
    ///
    /// If the counter of an account is missing while its live bytes are not, it is 0. The time of an
    /// increase before the first step, or during a gap, is unknown, so it does not count.
    pub(super) fn counted(
        &mut self,
        found: &[Series],
        column: fn(&mut AccountColumns) -> &mut Column,
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
                // A counter that fell was reset.
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

    /// Sets the error of the live bytes: the published one, else, for older agents, the error of the
    /// charged bytes scaled to the live ones.
    pub(super) fn scale_errors(&mut self) {
        let steps = self.steps();
        for entry in self
            .jvms
            .values_mut()
            .flat_map(|jvm| jvm.accounts.values_mut())
        {
            let charged = std::mem::take(&mut entry.charged_bytes);
            let of_live = std::mem::take(&mut entry.live_standard_error_bytes);
            let published = std::mem::take(&mut entry.standard_error_bytes);
            for (step, error) in published.readings() {
                let live = entry.live_bytes.get(step);
                let error = match (of_live.get(step), live, charged.get(step)) {
                    (Some(of_live), ..) => of_live,
                    (None, Some(live), Some(charged)) => live_error(error, live, charged),
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

    /// Accounts of which nothing but the names is known; those that are known better stay.
    pub(super) fn listed(&mut self, found: &[Series]) {
        for series in found {
            let (Some(name), Some(jvm)) = (
                own(series, "account"),
                self.jvms.get_mut(&self.request.key(series)),
            ) else {
                continue;
            };
            jvm.accounts
                .entry(name.into())
                .or_insert_with(|| AccountColumns {
                    listed: true,
                    ..AccountColumns::default()
                });
        }
    }

    /// How many accounts have been read.
    pub(super) fn count_accounts(&self) -> usize {
        self.jvms.values().map(|jvm| jvm.accounts.len()).sum()
    }

    /// The names of the services that have been read.
    pub(super) fn names_of_services(&self) -> BTreeSet<String> {
        let accounts = self.jvms.values().flat_map(|jvm| &jvm.accounts);
        let services = accounts.filter(|(_, entry)| {
            (entry.identity.as_ref())
                .is_none_or(|said| matches!(said.kind, Kind::Service | Kind::Scope))
        });
        services.map(|(name, _)| name.clone()).collect()
    }

    /// Shows each JVM as it would be without accounts.
    pub(super) fn each_heap(&self, mut show: impl FnMut(&[String], &Jvm)) {
        for (key, process) in &self.jvms {
            let jvm = Jvm {
                labels: self.labels(key),
                restarts: restarts(process),
                heap_max_bytes: process.heap_max_bytes.clone(),
                heap_used_after_gc_bytes: process.heap_used_after_gc_bytes.clone(),
                sampling_interval_bytes: process.sampling_interval_bytes.clone(),
                accounts: Vec::new(),
            };
            show(key, &jvm);
        }
    }

    fn labels(&self, key: &[String]) -> Vec<(String, String)> {
        let labels = self.request.jvm_labels.iter().cloned();
        labels.zip(key.iter().cloned()).collect()
    }

    /// The JVMs that have accounts.
    pub(super) fn finish(self) -> Vec<Jvm> {
        let mut jvms = self.finish_all();
        jvms.retain(|jvm| !jvm.accounts.is_empty());
        jvms
    }

    /// All JVMs.
    pub(super) fn finish_all(mut self) -> Vec<Jvm> {
        let jvms = std::mem::take(&mut self.jvms);
        let jvms = jvms.into_iter().map(|(key, process)| Jvm {
            labels: self.labels(&key),
            restarts: restarts(&process),
            heap_max_bytes: process.heap_max_bytes,
            heap_used_after_gc_bytes: process.heap_used_after_gc_bytes,
            sampling_interval_bytes: process.sampling_interval_bytes,
            accounts: process.accounts.into_iter().filter_map(account).collect(),
        });
        jvms.collect()
    }
}

/// Steps in which the count of samples fell.
fn restarts(process: &JvmColumns) -> Vec<usize> {
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
fn account((name, entry): (String, AccountColumns)) -> Option<Account> {
    if !entry.listed {
        entry.live_bytes.last()?;
    }
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
        places: Vec::new(),
        places_other: 0,
        routes: Vec::new(),
    })
}

/// False if two series have a value for the same step.
fn fill(column: &mut Column, series: &Series, span: Span, steps: usize) -> bool {
    let mut unique = true;
    for (time, value) in &series.points {
        if let Some(step) = span.index(*time) {
            unique &= column.put(steps, step, *value);
        }
    }
    unique
}

/// A label of the agent. If the scrape configuration gives targets a label of the
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
