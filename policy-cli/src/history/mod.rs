//! An observed period: what the accounts of some JVMs held, step by step.
//!
//! A period is read from Prometheus, or from one live JVM that is polled. Its steps are
//! evenly spaced; a step stands for the time since the step before it. What was not seen is
//! missing ([`Column`]), a JVM that began anew is noted, and an account has readings only
//! while it existed.
//!
//! **What a reading is.** Of an account that has scopes beneath it, all of them together: its
//! limits are about that. Live bytes and their error are the highest of each step, so that a
//! peak between two steps counts as long as it was scraped. The standard error that the
//! agent publishes is that of the *charged* bytes, garbage included. As the variance of an
//! estimate grows in proportion to what is estimated (`sampling/weight.rs` of the agent), the
//! error of the live part is taken as that times √(live / charged).

mod arguments;
mod assignment;
mod column;
mod error;
mod polling;
mod recording;
mod selector;
pub(crate) mod statistics;

use std::fmt;

use crate::printable::fitted;
use crate::prometheus::Span;

pub(crate) use arguments::{Arguments, Source};
pub(crate) use assignment::{Assigned, assign};
pub(crate) use column::Column;
pub(crate) use error::Error;

/// The error of what is live, given that of all that is charged; see the module.
fn live_error(charged_error: f64, live: f64, charged: f64) -> f64 {
    if charged > live {
        charged_error * (live / charged).sqrt()
    } else {
        charged_error
    }
}

/// Longest name that is shown, in columns of a terminal.
const MAX_SHOWN_COLUMNS: usize = 60;

/// A period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct History {
    /// Who was asked, for people.
    pub(crate) source: String,
    /// The steps.
    pub(crate) span: Span,
    /// By name.
    pub(crate) jvms: Vec<Jvm>,
    /// What the source warned of.
    pub(crate) notes: Vec<String>,
}

/// One JVM, also over restarts under the same labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Jvm {
    /// The labels that tell JVMs apart, `job` and `instance` unless told otherwise.
    pub(crate) labels: Vec<(String, String)>,
    /// The maximum heap.
    pub(crate) heap_max_bytes: Column,
    /// The heap's use after a collection, the highest of each step.
    pub(crate) heap_used_after_gc_bytes: Column,
    /// Mean bytes between samples; 0 where every allocation is one.
    pub(crate) sampling_interval_bytes: Column,
    /// Steps in which the agent's counters began anew.
    pub(crate) restarts: Vec<usize>,
    /// By name.
    pub(crate) accounts: Vec<Account>,
}

/// One account of one JVM.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Account {
    /// As the policy that was in force named it.
    pub(crate) name: String,
    /// What it is an account of.
    pub(crate) kind: Kind,
    /// The service's own name; empty for other kinds.
    pub(crate) service: String,
    /// The account of the service around a scope; empty where there is none.
    pub(crate) parent: String,
    /// Survived the latest collection; the highest of each step.
    pub(crate) live_bytes: Column,
    /// Of the live bytes; see the module.
    pub(crate) standard_error_bytes: Column,
    /// The soft limit in force.
    pub(crate) soft_limit_bytes: Column,
    /// The limit in force.
    pub(crate) limit_bytes: Column,
    /// Refused in each step; missing where none was.
    pub(crate) refusals: Column,
    /// Would have been refused in each step; missing where none was.
    pub(crate) would_refuse: Column,
}

/// What an account is an account of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Kind {
    /// A deployed application.
    Service,
    /// Java packages.
    Package,
    /// Java packages whose callers pay.
    Library,
    /// A tenant named by the program.
    Scope,
    /// `_unaccounted`, `_other`.
    #[default]
    Reserved,
}

impl Kind {
    /// The agent's word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Service => "service",
            Kind::Package => "package",
            Kind::Library => "library",
            Kind::Scope => "scope",
            Kind::Reserved => "reserved",
        }
    }

    /// What the agent's word stands for; anything else is nobody's account.
    pub(crate) fn from_word(word: &str) -> Kind {
        [Kind::Service, Kind::Package, Kind::Library, Kind::Scope]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or_default()
    }
}

impl Jvm {
    /// What it is called: the values of its labels, fit to be shown.
    pub(crate) fn name(&self) -> String {
        let values = self.labels.iter().map(|(_, value)| value.as_str());
        fitted(&values.collect::<Vec<_>>().join(" "), MAX_SHOWN_COLUMNS).into_owned()
    }

    /// Whether anything was read from it in this step.
    pub(crate) fn is_seen(&self, step: usize) -> bool {
        self.heap_max_bytes.get(step).is_some()
            || (self.accounts.iter()).any(|account| account.live_bytes.get(step).is_some())
    }
}

impl Account {
    /// What the program called its scope, and policies know it by: the account's name less the
    /// service around it.
    pub(crate) fn scope_name(&self) -> &str {
        let within = self.name.strip_prefix(&self.parent);
        within
            .filter(|_| !self.parent.is_empty())
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(&self.name)
    }

    /// Its name, fit to be shown.
    pub(crate) fn shown(&self) -> String {
        fitted(&self.name, MAX_SHOWN_COLUMNS).into_owned()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
