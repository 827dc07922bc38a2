//! The cardinality cap: which accounts get series of their own, and what `_other` shows.
//!
//! The host's tenants decide the number of accounts, but they must not decide the number of series.
//! Beyond the cap the accounts with the fewest live bytes are published as `_other`, so that sums over
//! accounts are still complete. Kept first are the reserved accounts, then those that no program can
//! multiply (all but scopes), then accounts with a limit (an operator watches those), then the largest.
//!
//! The folded accounts change from scrape to scrape. A plain sum of their counters would sometimes fall,
//! and Prometheus would take that for a restart and show a burst in `rate()`. So [`Folder`] remembers the
//! counters and adds to `_other` only what an account gained *while it was folded*: counters of `_other`
//! never fall.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

use policy_core::usage::Resource;
use policy_report::account_figures;

use super::{Account, DoorState, Kind, OTHER, State};

/// Accounts that get series of their own, `_other` included, unless configured otherwise.
pub const DEFAULT_MAX_ACCOUNTS: usize = 200;
/// Pairs of the principal–agent matrix that get a series of their own.
pub const MAX_PRINCIPAL_PAIRS: usize = 1_000;
/// Longest name in a label; names come from tenants.
pub const MAX_NAME_BYTES: usize = 256;

/// The accounts of one snapshot as they are published.
#[derive(Debug, Default, PartialEq)]
pub struct Folded<'a> {
    /// At most the cap, sorted by name. Their `principals` and `classes` are not meant to
    /// be read: `_other` has none.
    pub accounts: Vec<Cow<'a, Account>>,
    /// At most [`MAX_PRINCIPAL_PAIRS`] and one, sorted by principal, then agent.
    pub pairs: Vec<Pair<'a>>,
    /// How many accounts are published as `_other`.
    pub accounts_folded: u64,
}

/// One pair of the principal–agent matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Published account on whose behalf was allocated.
    pub principal: Cow<'a, str>,
    /// Published account that allocated.
    pub agent: Cow<'a, str>,
    /// Live bytes.
    pub live_bytes: u64,
}

/// Folds one snapshot after the other. It remembers a hash and the counters of each account of the latest
/// snapshot; the module says why.
#[derive(Debug)]
pub struct Folder {
    max_accounts: usize,
    hasher: RandomState,
    /// Counters of every account of the latest snapshot, by the hash of its name. A
    /// collision (one in 2⁶⁴ pairs, the hash is keyed) would cost accuracy of `_other` only.
    seen: HashMap<u64, Counters>,
    /// The counts that accounts gained while they were folded.
    carried: Counters,
}

/// The counters of an account.
#[derive(Debug, Clone, Default, PartialEq)]
struct Counters {
    /// Those of its figures, in the table's order; `None`: it is not counted.
    figures: Vec<Option<u64>>,
    deferred: Vec<(&'static str, u64)>,
}

impl Folder {
    /// A folder that publishes at most `max_accounts` accounts (at least one: `_other`).
    pub fn new(max_accounts: usize) -> Folder {
        Folder {
            max_accounts: max_accounts.max(1),
            hasher: RandomState::new(),
            seen: HashMap::new(),
            carried: Counters::of(&Account::default()),
        }
    }

    /// Chooses what is published of `accounts`. Accounts of the same name are merged: two
    /// series with the same labels would make Prometheus reject the whole scrape.
    pub fn fold<'a>(&mut self, accounts: &'a [Account]) -> Folded<'a> {
        let mut kept = distinct(accounts);
        kept.sort_unstable_by(|a, b| rank(a).cmp(&rank(b)));

        let carries = self.carried != Counters::of(&Account::default());
        let has_other = kept.iter().any(|account| account.name == OTHER);
        let room = self.max_accounts.saturating_sub(usize::from(
            !has_other && (carries || kept.len() > self.max_accounts),
        ));
        let folded = kept.split_off(kept.len().min(room));

        let mut seen = HashMap::with_capacity(kept.len() + folded.len());
        for account in kept.iter().filter(|account| account.name != OTHER) {
            seen.insert(self.hasher.hash_one(&account.name), Counters::of(account));
        }
        for account in &folded {
            let key = self.hasher.hash_one(&account.name);
            let now = Counters::of(account);
            let gained = match self.seen.get(&key) {
                Some(before) => now.since(before),
                None => now.clone(),
            };
            self.carried.add(&gained);
            seen.insert(key, now);
        }
        self.seen = seen;

        if !folded.is_empty() || carries {
            let other = match kept.iter().position(|account| account.name == OTHER) {
                Some(index) => kept[index].to_mut(),
                None => {
                    kept.push(Cow::Owned(Account {
                        name: OTHER.to_owned(),
                        ..Account::default()
                    }));
                    let last = kept.len() - 1;
                    kept[last].to_mut()
                }
            };
            for account in &folded {
                absorb_gauges(other, account);
            }
            self.carried.add_to(other);
        }
        kept.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Folded {
            pairs: pairs(accounts, &kept),
            accounts: kept,
            accounts_folded: folded.len() as u64,
        }
    }
}

/// The order in which accounts are published: the smallest key first.
fn rank(account: &Account) -> (bool, bool, bool, bool, std::cmp::Reverse<u64>, &str) {
    (
        account.name != OTHER,
        account.kind != Kind::Reserved,
        account.kind == Kind::Scope,
        account.limit_bytes.is_none() && account.soft_limit_bytes.is_none(),
        std::cmp::Reverse(account.live_bytes.saturating_add(off_heap_bytes(account))),
        &account.name,
    )
}

/// The native memory of an account: one that holds nothing else is not to be folded away first.
fn off_heap_bytes(account: &Account) -> u64 {
    let of = |resource| match resource {
        Resource::Direct | Resource::Native => true,
        Resource::Threads => false,
    };
    let bytes = account.usage.iter().filter(|usage| of(usage.resource));
    bytes.fold(0, |sum, usage| sum.saturating_add(usage.used))
}

/// The accounts with clipped names, those of one name merged into one.
fn distinct(accounts: &[Account]) -> Vec<Cow<'_, Account>> {
    let mut by_name: HashMap<Cow<'_, str>, Cow<'_, Account>> =
        HashMap::with_capacity(accounts.len());
    for account in accounts {
        match by_name.entry(clip(&account.name)) {
            Entry::Vacant(vacant) => {
                let row = match vacant.key() {
                    Cow::Borrowed(_) => Cow::Borrowed(account),
                    Cow::Owned(name) => Cow::Owned(Account {
                        name: name.clone(),
                        ..without_details(account)
                    }),
                };
                vacant.insert(row);
            }
            Entry::Occupied(mut occupied) => {
                let mut merged = without_details(occupied.get());
                absorb_gauges(&mut merged, account);
                Counters::of(account).add_to(&mut merged);
                occupied.insert(Cow::Owned(merged));
            }
        }
    }
    by_name.into_values().collect()
}

/// A copy that costs nothing by class or principal.
fn without_details(account: &Account) -> Account {
    Account {
        name: account.name.clone(),
        service: account.service.clone(),
        parent: account.parent.clone(),
        ineffective: account.ineffective.clone(),
        deferred: account.deferred.clone(),
        places: Vec::new(),
        left_threads: Vec::new(),
        usage: account.usage.clone(),
        routes: Vec::new(),
        principals: Vec::new(),
        classes: Vec::new(),
        ..*account
    }
}

/// Reads and adds counters, absorbs gauges.
macro_rules! figure {
    (counter $key:ident read $figures:ident $account:ident) => {
        $figures.push($account.$key.into());
    };
    (counter $key:ident add $account:ident $figures:ident) => {
        $account.$key.add($figures.next().flatten());
    };
    (sum $key:ident absorb $into:ident $from:ident) => {
        $into.$key = $into.$key.saturating_add($from.$key);
    };
    // Variances of independent estimates add.
    (error $key:ident absorb $into:ident $from:ident) => {
        $into.$key = $into.$key.hypot($from.$key);
    };
    // One bound holds for the unseen bytes of two accounts as for those of one.
    (bound $key:ident absorb $into:ident $from:ident) => {
        $into.$key = ($into.$key.zip($from.$key)).map(|(a, b)| a.max(b));
    };
    (counter $key:ident absorb $into:ident $from:ident) => {};
    (own $key:ident absorb $into:ident $from:ident) => {};
    ($gauge:ident $key:ident read $figures:ident $account:ident) => {};
    ($gauge:ident $key:ident add $account:ident $figures:ident) => {};
}

macro_rules! each_figure {
    ($action:ident $a:ident $b:ident $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$fold:ident $($row:tt)*] $help:literal;
    )*})*) => {
        $($(figure!($fold $key $action $a $b);)*)*
    };
}

macro_rules! in_full {
    ($account:ident {$($other:ident,)*} $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$($row:tt)*] $help:literal;
    )*})*) => {
        let Account { $($($key: _,)*)* $($other: _,)* } = $account;
    };
}

/// Adds the gauges of `from`. Limits and reserves are not added: a sum of limits limits nothing.
fn absorb_gauges(into: &mut Account, from: &Account) {
    // In full, so that a field that is no figure of the table is not forgotten here.
    account_figures!(in_full! from {
        // Below.
        ineffective, state, door,
        // With the counters.
        deferred,
        // Properties of one account. Scopes inside it may be folded too: sums over trees would count them twice.
        name, kind, service, parent, tree, live_by_ratio,
        // Details.
        places, places_elsewhere, routes, left_threads, principals, classes,
        // Below.
        usage,
    });
    account_figures!(each_figure! absorb into from);
    for more in &from.usage {
        match (into.usage.iter_mut()).find(|usage| usage.resource == more.resource) {
            Some(usage) => usage.used = usage.used.saturating_add(more.used),
            None => into.usage.push(*more),
        }
    }
    into.ineffective = (into.ineffective.take()).or_else(|| from.ineffective.clone());
    into.state = match (into.state, from.state) {
        (State::Over, _) | (_, State::Over) => State::Over,
        (State::Suspect, _) | (_, State::Suspect) => State::Suspect,
        (State::Open, State::Open) => State::Open,
    };
    into.door = match (into.door, from.door) {
        (DoorState::Shut, _) | (_, DoorState::Shut) => DoorState::Shut,
        (DoorState::Open, _) | (_, DoorState::Open) => DoorState::Open,
        (DoorState::None, DoorState::None) => DoorState::None,
    };
}

/// The principal–agent matrix over published names.
fn pairs<'a>(accounts: &'a [Account], published: &[Cow<'a, Account>]) -> Vec<Pair<'a>> {
    let index: HashMap<&str, usize> = published
        .iter()
        .enumerate()
        .map(|(index, account)| (account.name.as_str(), index))
        .collect();
    // `None` is `_other`. It need not be published: the account of a principal can be gone.
    let published_as = |name: &str| {
        index
            .get(clip(name).as_ref())
            .copied()
            .filter(|&index| published[index].name != OTHER)
    };
    let mut cells: HashMap<(Option<usize>, Option<usize>), u64> = HashMap::new();
    for account in accounts {
        let agent = published_as(&account.name);
        for principal in &account.principals {
            let cell = cells
                .entry((published_as(&principal.name), agent))
                .or_default();
            *cell = cell.saturating_add(principal.live_bytes);
        }
    }
    let mut cells: Vec<_> = cells.into_iter().collect();
    cells.sort_unstable_by_key(|&(key, live_bytes)| (std::cmp::Reverse(live_bytes), key));
    let rest = cells.split_off(cells.len().min(MAX_PRINCIPAL_PAIRS));
    let rest_bytes = rest
        .iter()
        .fold(0u64, |sum, (_, live_bytes)| sum.saturating_add(*live_bytes));
    if !rest.is_empty() {
        match cells.iter_mut().find(|(key, _)| *key == (None, None)) {
            Some((_, live_bytes)) => *live_bytes = live_bytes.saturating_add(rest_bytes),
            None => cells.push(((None, None), rest_bytes)),
        }
    }
    let label = |index: Option<usize>| -> Cow<'a, str> {
        match index.map(|index| &published[index]) {
            None => Cow::Borrowed(OTHER),
            Some(Cow::Borrowed(account)) => Cow::Borrowed(&account.name),
            Some(Cow::Owned(account)) => Cow::Owned(account.name.clone()),
        }
    };
    let mut pairs: Vec<_> = cells
        .into_iter()
        .map(|((principal, agent), live_bytes)| Pair {
            principal: label(principal),
            agent: label(agent),
            live_bytes,
        })
        .collect();
    pairs.sort_unstable_by(|a, b| (&a.principal, &a.agent).cmp(&(&b.principal, &b.agent)));
    pairs
}

/// `name`, cut to [`MAX_NAME_BYTES`] with an ellipsis if it is longer.
pub fn clip(name: &str) -> Cow<'_, str> {
    const ELLIPSIS: char = '…';
    if name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(name);
    }
    let mut end = MAX_NAME_BYTES - ELLIPSIS.len_utf8();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let mut clipped = String::with_capacity(MAX_NAME_BYTES);
    clipped.push_str(&name[..end]);
    clipped.push(ELLIPSIS);
    Cow::Owned(clipped)
}

/// A counter of an account that more is added to.
trait Counter {
    fn add(&mut self, more: Option<u64>);
}

impl Counter for u64 {
    fn add(&mut self, more: Option<u64>) {
        *self = self.saturating_add(more.unwrap_or_default());
    }
}

impl Counter for Option<u64> {
    fn add(&mut self, more: Option<u64>) {
        if more.is_some() {
            self.get_or_insert_default().add(more);
        }
    }
}

fn add_deferred(sums: &mut Vec<(&'static str, u64)>, more: &[(&'static str, u64)]) {
    for &(reason, count) in more {
        match sums.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => sum.add(Some(count)),
            None => sums.push((reason, count)),
        }
    }
}

impl Counters {
    fn of(account: &Account) -> Counters {
        let mut counters = Counters {
            figures: Vec::new(),
            deferred: account.deferred.clone(),
        };
        let figures = &mut counters.figures;
        account_figures!(each_figure! read figures account);
        counters
    }

    fn add_to(&self, account: &mut Account) {
        let mut figures = self.figures.iter().copied();
        account_figures!(each_figure! add account figures);
        add_deferred(&mut account.deferred, &self.deferred);
    }

    fn add(&mut self, other: &Counters) {
        for (figure, more) in self.figures.iter_mut().zip(&other.figures) {
            figure.add(*more);
        }
        add_deferred(&mut self.deferred, &other.deferred);
    }

    /// The gain since `before`; a counter that fell has restarted at zero.
    fn since(&self, before: &Counters) -> Counters {
        let gained = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let figures = self.figures.iter().zip(&before.figures);
        Counters {
            figures: figures
                .map(|(now, before)| now.map(|now| gained(now, before.unwrap_or(0))))
                .collect(),
            deferred: self
                .deferred
                .iter()
                .map(|&(reason, now)| {
                    let before = before.deferred.iter().find(|(known, _)| *known == reason);
                    (reason, gained(now, before.map_or(0, |&(_, count)| count)))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
