//! An observed period: what the accounts of some JVMs held, step by step.
//!
//! A period is read from Prometheus, or by polling one running JVM. Its steps are evenly spaced; a
//! step stands for the time since the previous step. Missing readings stay missing ([`Column`]),
//! restarts of JVMs are noted, and an account has readings only while it existed.
//!
//! **Readings.** A reading of an account includes the scopes inside it, because its limits are about
//! all of them. Live bytes and their error are the highest of each step, so that a peak between two
//! steps counts if it was scraped. Older agents publish the standard error of the *charged* bytes
//! only, garbage included. The variance of an estimate is proportional to the estimated amount
//! (`sampling/weight.rs` of the agent), so for them the error of the live bytes is that error times
//! √(live / charged).

mod arguments;
mod assignment;
mod column;
mod error;
mod polling;
mod recording;
mod selector;
pub mod statistics;

use std::fmt;

use crate::prometheus::Span;
use heapwarden_client::live::{Place, Route};
use heapwarden_terminal::printable::fitted;

pub use arguments::{Arguments, Source};
pub use assignment::{Assigned, assign};
pub use column::Column;
pub use error::Error;

/// The error of the live bytes, derived from that of the charged bytes; see the module.
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
pub struct History {
    /// The source, for messages.
    pub source: String,
    /// The steps.
    pub span: Span,
    /// By name.
    pub jvms: Vec<Jvm>,
    /// Warnings of the source.
    pub notes: Vec<String>,
}

/// One JVM: all processes with the same labels, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Jvm {
    /// The labels that distinguish JVMs, by default `job` and `instance`.
    pub labels: Vec<(String, String)>,
    /// The maximum heap.
    pub heap_max_bytes: Column,
    /// The heap's use after a collection, the highest of each step.
    pub heap_used_after_gc_bytes: Column,
    /// Mean bytes between samples; 0 if every allocation is sampled.
    pub sampling_interval_bytes: Column,
    /// Steps in which the JVM was restarted.
    pub restarts: Vec<usize>,
    /// By name.
    pub accounts: Vec<Account>,
}

/// One account of one JVM.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    /// As the policy that was in force named it.
    pub name: String,
    /// Service, package, library, scope or reserved.
    pub kind: Kind,
    /// The service's own name; empty for other kinds.
    pub service: String,
    /// The account of the service around a scope; empty where there is none.
    pub parent: String,
    /// Live bytes, the highest of each step.
    pub live_bytes: Column,
    /// Standard error of the live bytes; see the module.
    pub standard_error_bytes: Column,
    /// The soft limit in force.
    pub soft_limit_bytes: Column,
    /// The limit in force.
    pub limit_bytes: Column,
    /// Refusals in each step; missing if there was none.
    pub refusals: Column,
    /// Refusals that `observe` did not throw in each step; missing if there was none.
    pub would_refuse: Column,
    /// Where errors were thrown in it, or would have been, as of the latest reading. Prometheus does not record
    /// that.
    pub places: Vec<Place>,
    /// How many errors there were, or would have been, at other places.
    pub places_other: u64,
    /// The costs of its requests by route, as of the latest reading. Prometheus does not record that.
    pub routes: Vec<Route>,
}

/// The sort of code or tenant that an account stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
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
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Service => "service",
            Kind::Package => "package",
            Kind::Library => "library",
            Kind::Scope => "scope",
            Kind::Reserved => "reserved",
        }
    }

    /// Reads the agent's word; an unknown one counts as reserved.
    pub fn from_word(word: &str) -> Kind {
        [Kind::Service, Kind::Package, Kind::Library, Kind::Scope]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or_default()
    }
}

impl Jvm {
    /// Its name: the values of its labels, printable.
    pub fn name(&self) -> String {
        let values = self.labels.iter().map(|(_, value)| value.as_str());
        fitted(&values.collect::<Vec<_>>().join(" "), MAX_SHOWN_COLUMNS).into_owned()
    }

    /// Whether the step has any reading of it.
    pub fn is_seen(&self, step: usize) -> bool {
        self.heap_max_bytes.get(step).is_some()
            || (self.accounts.iter()).any(|account| account.live_bytes.get(step).is_some())
    }
}

impl Account {
    /// The name of the scope in programs and policies: the account's name without the service around
    /// it.
    pub fn scope_name(&self) -> &str {
        let within = self.name.strip_prefix(&self.parent);
        within
            .filter(|_| !self.parent.is_empty())
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(&self.name)
    }

    /// Its name, printable.
    pub fn shown(&self) -> String {
        fitted(&self.name, MAX_SHOWN_COLUMNS).into_owned()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
