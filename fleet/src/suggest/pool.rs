//! Combines the needs of an account in all JVMs that have it.

use std::collections::BTreeMap;

use policy_config::{Charge, Matcher, Policy};

use crate::history::{self, Account, Column, History, Jvm, Kind};
use heapwarden_client::live::{Place, Route};

use super::demand::{Demand, Finding, Settings, assess};

/// The rule or account that gets limits of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A rule of the policy that was given, by position.
    Rule(usize),
    /// An account as it was recorded: its kind, and the service or scope that it is of.
    Recorded(&'static str, String),
}

/// The result for one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pooled {
    /// Of the account that needs most.
    pub(super) finding: Finding,
    /// That account's name, and its JVM's.
    pub(super) account: String,
    pub(super) jvm: String,
    /// Bytes between samples there.
    pub(super) interval_bytes: Option<f64>,
    /// How many accounts there are, in all JVMs.
    pub(super) accounts: usize,
    /// Where errors were thrown in any of them, or would have been, and which requests fill them.
    pub(super) seen: Seen,
}

/// The sum of the suggested limits in a JVM.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Commitment {
    pub(super) jvm: String,
    pub(super) limits_bytes: u64,
    pub(super) heap_max_bytes: f64,
}

/// All results.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pool {
    pub(super) entries: BTreeMap<Key, Pooled>,
    /// By JVM, the most committed first.
    pub(super) commitments: Vec<Commitment>,
    /// Accounts without a limit of which there is something to tell.
    pub(super) elsewhere: BTreeMap<String, Seen>,
    /// Recorded accounts that no rule matches, or that can have no limit, with the reason.
    pub(super) left_out: BTreeMap<String, &'static str>,
}

/// Places and routes of some accounts together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Seen {
    /// Where errors were thrown, or would have been, most frequent first.
    pub(super) places: Vec<Place>,
    /// Errors at places that are not listed.
    pub(super) other: u64,
    /// The sums over their requests, by route.
    routes: BTreeMap<String, RouteSum>,
}

/// A route of some accounts together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RouteSum {
    pub(super) live_bytes: u64,
    variance_bytes2: f64,
    pub(super) calls: u64,
    /// By the account in which a call keeps most.
    pub(super) kept_bytes_per_call: u64,
}

impl RouteSum {
    fn add(&mut self, route: &Route) {
        self.live_bytes = self.live_bytes.saturating_add(route.live_bytes);
        self.variance_bytes2 += (route.standard_error_bytes as f64).powi(2);
        self.calls = self.calls.saturating_add(route.calls_total);
        self.kept_bytes_per_call = self.kept_bytes_per_call.max(route.kept_bytes_per_call);
    }

    pub(super) fn standard_error_bytes(&self) -> u64 {
        self.variance_bytes2.sqrt().ceil() as u64
    }
}

impl Seen {
    /// The routes that hold anything, the one that holds the most first.
    pub(super) fn routes(&self) -> Vec<(&str, RouteSum)> {
        let routes = self.routes.iter().map(|(name, sum)| (name.as_str(), *sum));
        let mut routes: Vec<_> = routes.filter(|(_, sum)| sum.live_bytes > 0).collect();
        routes.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.live_bytes));
        routes
    }

    fn add(&mut self, account: &Account) {
        for route in &account.routes {
            let known = self.routes.entry(route.route.to_string()).or_default();
            known.add(route);
        }
        self.other = self.other.saturating_add(account.places_other);
        for place in &account.places {
            let where_it_is = |one: &Place| {
                (
                    one.frame.clone(),
                    one.entry.clone(),
                    one.thread.clone(),
                    one.unit.clone(),
                )
            };
            let known = (self.places.iter_mut()).find(|one| where_it_is(one) == where_it_is(place));
            match known {
                Some(known) => known.count = known.count.saturating_add(place.count),
                None => self.places.push(place.clone()),
            }
        }
        self.places
            .sort_by_key(|place| std::cmp::Reverse(place.count));
    }

    /// Whether there was no error, and nothing is known to be held by requests.
    pub(super) fn is_empty(&self) -> bool {
        let is_held = |sum: &RouteSum| sum.live_bytes > 0;
        self.places.is_empty() && self.other == 0 && !self.routes.values().any(is_held)
    }
}

/// An account of one JVM that can have a limit, or one that the policy makes of several.
struct Candidate<'a> {
    key: Key,
    name: String,
    /// The accounts that were recorded.
    parts: Vec<&'a Account>,
    live_bytes: Column,
    error_bytes: Column,
}

impl Pool {
    /// Assesses every account: by the rules of `policy`, or each on its own.
    pub(super) fn of(history: &History, policy: Option<&Policy>, settings: &Settings) -> Pool {
        let mut pool = Pool::default();
        let mut of_jvm: Vec<(&Jvm, Vec<Candidate<'_>>)> = Vec::new();
        for jvm in &history.jvms {
            let candidates = match policy {
                Some(policy) => pool.by_rule(policy, jvm, history.span.points()),
                None => pool.by_account(jvm),
            };
            for one in &candidates {
                let finding = assess(
                    &one.live_bytes,
                    &one.error_bytes,
                    &jvm.restarts,
                    history.span,
                    settings,
                );
                pool.add(one, jvm, finding);
            }
            of_jvm.push((jvm, candidates));
        }
        pool.commitments = pool.commitments(&of_jvm);
        pool.elsewhere = pool.elsewhere(&of_jvm);
        pool
    }

    /// The demands by rule of the policy that was given.
    pub(super) fn rules(&self) -> impl Iterator<Item = (usize, &Demand)> {
        self.entries
            .iter()
            .filter_map(|(key, pooled)| match (key, &pooled.finding) {
                (Key::Rule(rule), Finding::Needs(demand)) => Some((*rule, demand)),
                _ => None,
            })
    }

    /// The most readings of any account, if all accounts have too few.
    pub(super) fn only_too_few(&self) -> Option<usize> {
        let most = self.entries.values().map(|pooled| match pooled.finding {
            Finding::TooFew { readings } => Some(readings),
            _ => None,
        });
        most.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn by_rule<'a>(&mut self, policy: &Policy, jvm: &'a Jvm, steps: usize) -> Vec<Candidate<'a>> {
        let assigned = history::assign(policy, jvm, steps);
        for account in &jvm.accounts {
            let is_assigned = assigned
                .iter()
                .any(|one| one.parts.iter().any(|part| part.name == account.name));
            if !is_assigned && !matches!(account.kind, Kind::Library | Kind::Reserved) {
                self.left_out
                    .insert(account.shown(), "no account of the policy matches it");
            }
        }
        let mut candidates = Vec::new();
        for one in assigned {
            let rule = &policy.accounts[one.rule];
            let is_library =
                matches!(rule.matcher, Matcher::Packages(_)) && rule.charge == Charge::Caller;
            if !is_library {
                candidates.push(Candidate {
                    key: Key::Rule(one.rule),
                    name: one.name,
                    parts: one.parts,
                    live_bytes: one.live_bytes,
                    error_bytes: one.standard_error_bytes,
                });
            }
        }
        candidates
    }

    fn by_account<'a>(&mut self, jvm: &'a Jvm) -> Vec<Candidate<'a>> {
        let mut candidates = Vec::new();
        for account in &jvm.accounts {
            match account.kind {
                Kind::Service | Kind::Scope => {}
                Kind::Package => {
                    let why = "a package account, whose packages are not recorded; give the policy that has them with --policy";
                    self.left_out.insert(account.shown(), why);
                    continue;
                }
                Kind::Library | Kind::Reserved => continue,
            }
            candidates.push(Candidate {
                key: recorded(account),
                name: account.name.clone(),
                parts: vec![account],
                live_bytes: account.live_bytes.clone(),
                error_bytes: account.standard_error_bytes.clone(),
            });
        }
        candidates
    }

    fn add(&mut self, one: &Candidate<'_>, jvm: &Jvm, finding: Finding) {
        let known = self.entries.get(&one.key);
        let accounts = known.map_or(0, |pooled| pooled.accounts) + 1;
        let mut seen = known.map_or_else(Seen::default, |pooled| pooled.seen.clone());
        for part in &one.parts {
            seen.add(part);
        }
        let pooled = Pooled {
            finding,
            account: one.name.clone(),
            jvm: jvm.name(),
            interval_bytes: jvm.sampling_interval_bytes.last(),
            accounts,
            seen,
        };
        match self.entries.get_mut(&one.key) {
            Some(known) if rank(&known.finding) >= rank(&finding) => {
                known.accounts = accounts;
                known.seen = pooled.seen;
            }
            _ => {
                self.entries.insert(one.key.clone(), pooled);
            }
        }
    }

    fn elsewhere(&self, of_jvm: &[(&Jvm, Vec<Candidate<'_>>)]) -> BTreeMap<String, Seen> {
        let mut elsewhere: BTreeMap<String, Seen> = BTreeMap::new();
        for (jvm, candidates) in of_jvm {
            let has_limit = |account: &Account| {
                let mut limited = candidates
                    .iter()
                    .filter(|one| self.limit_bytes(&one.key).is_some());
                limited.any(|one| one.parts.iter().any(|part| part.name == account.name))
            };
            for account in jvm.accounts.iter().filter(|account| !has_limit(account)) {
                elsewhere.entry(account.shown()).or_default().add(account);
            }
        }
        elsewhere.retain(|_, seen| !seen.is_empty());
        elsewhere
    }

    fn limit_bytes(&self, key: &Key) -> Option<u64> {
        match self.entries.get(key)?.finding {
            Finding::Needs(demand) => Some(demand.limit_bytes),
            _ => None,
        }
    }

    /// Whether all parts of an account are scopes inside services that have limits themselves: the
    /// limit of a service includes its scopes.
    fn is_beneath_a_limit(&self, one: &Candidate<'_>, all: &[Candidate<'_>]) -> bool {
        let is_limited = |service: &str| {
            let mut limited = all
                .iter()
                .filter(|above| self.limit_bytes(&above.key).is_some());
            limited.any(|above| above.parts.iter().any(|part| part.name == service))
        };
        let mut parts = one.parts.iter();
        parts.all(|part| part.kind == Kind::Scope && is_limited(&part.parent))
    }

    fn commitments(&self, of_jvm: &[(&Jvm, Vec<Candidate<'_>>)]) -> Vec<Commitment> {
        let committed = of_jvm.iter().filter_map(|(jvm, candidates)| {
            let limits = candidates
                .iter()
                .filter(|one| !self.is_beneath_a_limit(one, candidates))
                .filter_map(|one| self.limit_bytes(&one.key));
            Some(Commitment {
                jvm: jvm.name(),
                limits_bytes: limits.fold(0, u64::saturating_add),
                heap_max_bytes: jvm.heap_max_bytes.last().filter(|bytes| *bytes > 0.0)?,
            })
        });
        let mut committed: Vec<Commitment> = committed.collect();
        committed.sort_by(|a, b| b.share().total_cmp(&a.share()));
        committed
    }
}

impl Commitment {
    /// Of the maximum heap.
    pub(super) fn share(&self) -> f64 {
        self.limits_bytes as f64 / self.heap_max_bytes
    }
}

/// The key of an account if no policy is given.
fn recorded(account: &Account) -> Key {
    let of_service = account.kind == Kind::Service && !account.service.is_empty();
    let target = match account.kind {
        Kind::Scope => account.scope_name(),
        _ if of_service => &account.service,
        _ => &account.name,
    };
    Key::Recorded(account.kind.as_str(), target.to_owned())
}

/// Orders results: known before unknown, larger before smaller.
fn rank(finding: &Finding) -> (u8, u64) {
    match finding {
        Finding::Empty => (0, 0),
        Finding::TooFew { readings } => (1, *readings as u64),
        Finding::TooVague { bytes, .. } => (2, *bytes as u64),
        Finding::Needs(demand) => (3, demand.limit_bytes),
    }
}
