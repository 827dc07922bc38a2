//! Who is who: the names behind purses, loaders and classes, and which account a purse is
//! part of.
//!
//! The allocating threads know numbers only. This book gives them names; it is read and
//! written by the agent's own threads under one lock, and never by an allocating one. An
//! account is a name with a set of purses:
//!
//! * every loader of a service of that name (a redeployment is a new loader under the old
//!   name, a JSP's loader is its web application's),
//! * every package rule of that name,
//! * every scope of that name inside one service (`shop/tenant-42`), or outside any,
//! * `_unaccounted`: the reserved purse, and every purse whose owner is not known (yet) or
//!   not in the policy (any more).
//!
//! A service's account also knows the purses of the scopes *beneath* it: what they are charged
//! is its own tenants', counts for its limit, and is not among its own purses.
//!
//! Because the mapping is applied when accounts are read, what a purse was charged before
//! its owner was known, or before a reload gave the account another name, is counted where
//! it belongs now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use policy_config::{Matcher, Policy};

use crate::jvm::java::Weak;
use crate::ledger::PurseId;
use crate::report::{Kind, UNACCOUNTED};

use super::classes::ClassId;
use super::loaders::LoaderId;
use super::naming::ServiceName;

mod assignment;

/// Accounts whose counters are remembered after their last purse is gone, so that a
/// redeployment goes on counting where it stopped. The oldest are forgotten first.
const MOST_DEPARTED: usize = 1024;

/// What the resolver has made of a loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not named yet.
    Pending,
    /// A service.
    Service(ServiceName),
    /// The same service as another loader.
    ChildOf(LoaderId),
    /// No service's.
    Nobody,
}

/// What is known of a loader.
pub(crate) struct Loader {
    pub(crate) purse: PurseId,
    pub(crate) weak: Option<Weak>,
    pub(crate) standing: Standing,
    /// The container has stopped the service, or a newer deployment has replaced it.
    pub(crate) retired: bool,
}

/// Whose a purse is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Loader(LoaderId),
    Packages {
        account: String,
        patterns: Vec<String>,
    },
    /// The loader tells the service; [`LoaderId::BOOT`] is none.
    Scope {
        name: String,
        loader: LoaderId,
    },
}

/// An account: a name with purses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Account {
    pub(crate) kind: Kind,
    /// The service's own name; empty for other kinds.
    pub(crate) service: String,
    /// The rule of the policy in force, by position.
    pub(crate) rule: Option<usize>,
    pub(crate) purses: BTreeSet<PurseId>,
    /// The purses of the scopes inside this service.
    pub(crate) beneath: BTreeSet<PurseId>,
}

impl Account {
    /// Its own purses and those beneath it: what its limit is about.
    pub(crate) fn tree(&self) -> impl Iterator<Item = PurseId> {
        self.purses.iter().chain(&self.beneath).copied()
    }
}

/// Counters of purses that are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) allocated_bytes: u64,
    pub(crate) allocated_objects: u64,
    stamp: u64,
}

/// The book. See the module.
#[derive(Default)]
pub(crate) struct Directory {
    policy: Arc<Policy>,
    owners: HashMap<PurseId, Owner>,
    loaders: HashMap<LoaderId, Loader>,
    children: HashMap<LoaderId, Vec<LoaderId>>,
    /// Loaders by the name of the service they were found to be.
    deployments: HashMap<String, Vec<LoaderId>>,
    classes: HashMap<ClassId, Arc<str>>,
    accounts: BTreeMap<Arc<str>, Account>,
    of_purse: HashMap<PurseId, Arc<str>>,
    /// The service's account above the purse of a scope.
    above: HashMap<PurseId, Arc<str>>,
    /// Scopes by the loader that tells their service.
    scopes: HashMap<LoaderId, BTreeSet<PurseId>>,
    departed: HashMap<Arc<str>, Departed>,
    stamp: u64,
    /// Changes whenever an account, its purses or its rule do.
    version: u64,
}

impl Directory {
    pub(crate) fn new(policy: Arc<Policy>) -> Directory {
        let mut directory = Directory {
            policy,
            ..Directory::default()
        };
        directory.assign_all();
        directory
    }

    // ---- loaders -------------------------------------------------------------------

    /// Enters a loader that was seen for the first time.
    pub(crate) fn enter_loader(&mut self, id: LoaderId, purse: PurseId, weak: Option<Weak>) {
        let standing = Standing::Pending;
        self.loaders.insert(
            id,
            Loader {
                purse,
                weak,
                standing,
                retired: false,
            },
        );
        if purse != PurseId::UNACCOUNTED {
            self.owners.insert(purse, Owner::Loader(id));
            self.assign(purse);
        }
    }

    pub(crate) fn loader(&self, id: LoaderId) -> Option<&Loader> {
        self.loaders.get(&id)
    }

    /// The loaders that were found to be children of this one.
    pub(crate) fn children(&self, id: LoaderId) -> Vec<LoaderId> {
        self.children.get(&id).cloned().unwrap_or_default()
    }

    /// Records what the resolver found. A newer deployment retires older loaders of the
    /// same service, where the server has one loader a deployment.
    pub(crate) fn settle(&mut self, id: LoaderId, standing: Standing) {
        if self.loaders.get(&id).is_none_or(|l| l.standing == standing) {
            return;
        }
        match &standing {
            Standing::Service(name) => {
                let others = self.deployments.entry(name.name.clone()).or_default();
                for other in others.iter().filter(|_| name.one_loader) {
                    if let Some(loader) = self.loaders.get_mut(other)
                        && loader.standing == standing
                    {
                        loader.retired = true;
                    }
                }
                others.push(id);
            }
            Standing::ChildOf(parent) => self.children.entry(*parent).or_default().push(id),
            Standing::Pending | Standing::Nobody => {}
        }
        let Some(loader) = self.loaders.get_mut(&id) else {
            return;
        };
        loader.standing = standing;
        let purse = loader.purse;
        self.assign(purse);
        for child in self.children(id) {
            if let Some(purse) = self.loaders.get(&child).map(|l| l.purse) {
                self.assign(purse);
            }
            self.assign_scopes(child);
        }
        self.assign_scopes(id);
    }

    fn assign_scopes(&mut self, loader: LoaderId) {
        for purse in self.scopes.get(&loader).cloned().unwrap_or_default() {
            self.assign(purse);
        }
    }

    /// Marks a loader whose service was stopped.
    pub(crate) fn retire(&mut self, id: LoaderId) {
        if let Some(loader) = self.loaders.get_mut(&id) {
            loader.retired = true;
        }
    }

    /// The loaders whose weak reference `cleared` finds cleared.
    pub(crate) fn vanished(&self, cleared: impl Fn(&Weak) -> bool) -> Vec<LoaderId> {
        self.loaders
            .iter()
            .filter(|(_, loader)| loader.weak.as_ref().is_some_and(&cleared))
            .map(|(&id, _)| id)
            .collect()
    }

    /// The collector has freed a loader. Its entry stays until its purse is empty.
    pub(crate) fn bury(&mut self, id: LoaderId) -> Option<Weak> {
        let loader = self.loaders.get_mut(&id)?;
        loader.retired = true;
        loader.weak.take()
    }

    /// Whether nothing of a loader is needed to tell whose other loaders and scopes are: its
    /// children are forgotten before it, lest they come to belong to the next loader under its
    /// id.
    pub(crate) fn is_childless(&self, id: LoaderId) -> bool {
        self.children.get(&id).is_none_or(Vec::is_empty) && !self.scopes.contains_key(&id)
    }

    /// Forgets a loader, which must be childless.
    pub(crate) fn remove_loader(&mut self, id: LoaderId) {
        let Some(loader) = self.loaders.remove(&id) else {
            return;
        };
        self.children.remove(&id);
        let (map_key, parent) = match loader.standing {
            Standing::Service(name) => (Some(name.name), None),
            Standing::ChildOf(parent) => (None, Some(parent)),
            Standing::Pending | Standing::Nobody => (None, None),
        };
        if let Some(name) = map_key
            && let Some(others) = self.deployments.get_mut(&name)
        {
            others.retain(|other| *other != id);
            if others.is_empty() {
                self.deployments.remove(&name);
            }
        }
        if let Some(siblings) = parent.and_then(|parent| self.children.get_mut(&parent)) {
            siblings.retain(|other| *other != id);
        }
    }

    // ---- purses --------------------------------------------------------------------

    /// The purses of package accounts that the policy in force does not name. Should it name
    /// one again before its purse is closed, the account has its charges back.
    pub(crate) fn disowned_purses(&self) -> Vec<PurseId> {
        let disowned = |owner: &Owner| match owner {
            Owner::Loader(_) | Owner::Scope { .. } => false,
            Owner::Packages { account, .. } => self.package_account(account).is_none(),
        };
        self.owners
            .iter()
            .filter(|(_, owner)| disowned(owner))
            .map(|(&purse, _)| purse)
            .collect()
    }

    /// Enters the purse of a scope of this name, inside the service that the loader belongs to.
    pub(crate) fn enter_scope(&mut self, purse: PurseId, name: String, loader: LoaderId) {
        self.owners.insert(purse, Owner::Scope { name, loader });
        if loader != LoaderId::BOOT {
            self.scopes.entry(loader).or_default().insert(purse);
        }
        self.assign(purse);
    }

    /// The purses of scopes.
    pub(crate) fn scope_purses(&self) -> Vec<PurseId> {
        let is_scope = |owner: &Owner| matches!(owner, Owner::Scope { .. });
        let scopes = self.owners.iter().filter(|(_, owner)| is_scope(owner));
        scopes.map(|(&purse, _)| purse).collect()
    }

    /// Whether it is known whose a purse is.
    pub(crate) fn is_owned(&self, purse: PurseId) -> bool {
        purse == PurseId::UNACCOUNTED || self.owners.contains_key(&purse)
    }

    /// The purses of an account; none if there is no such account (any more).
    pub(crate) fn purses_of(&self, name: &str) -> impl Iterator<Item = PurseId> {
        self.accounts
            .get(name)
            .into_iter()
            .flat_map(|account| account.purses.iter().copied())
    }

    /// Native bytes held, roughly: the entries and their names.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        /// A name of ordinary length with its allocations.
        const NAME_BYTES: usize = 96;
        let entry = |entries: usize, size: usize| entries * (size + NAME_BYTES);
        (entry(self.owners.capacity(), size_of::<(PurseId, Owner)>())
            + entry(self.loaders.capacity(), size_of::<(LoaderId, Loader)>())
            + entry(self.classes.capacity(), size_of::<(ClassId, Arc<str>)>())
            + entry(self.accounts.len(), size_of::<(Arc<str>, Account)>())
            + entry(self.of_purse.capacity(), size_of::<(PurseId, Arc<str>)>())
            + entry(self.departed.capacity(), size_of::<(Arc<str>, Departed)>())) as u64
    }

    /// A purse was closed: its counters stay with its account, whose name is returned.
    pub(crate) fn close_purse(
        &mut self,
        purse: PurseId,
        bytes: u64,
        objects: u64,
    ) -> Option<Arc<str>> {
        match self.owners.remove(&purse) {
            Some(Owner::Loader(id)) => self.remove_loader(id),
            Some(Owner::Scope { loader, .. }) => self.forget_scope(purse, loader),
            Some(Owner::Packages { .. }) | None => {}
        }
        let name = self.of_purse.remove(&purse)?;
        self.stamp += 1;
        let departed = self.departed.entry(name.clone()).or_default();
        departed.allocated_bytes = departed.allocated_bytes.wrapping_add(bytes);
        departed.allocated_objects = departed.allocated_objects.wrapping_add(objects);
        departed.stamp = self.stamp;
        self.leave(&name, purse);
        if self.departed.len() > 2 * MOST_DEPARTED {
            self.forget_oldest();
        }
        Some(name)
    }

    fn forget_scope(&mut self, purse: PurseId, loader: LoaderId) {
        if let Some(scopes) = self.scopes.get_mut(&loader) {
            scopes.remove(&purse);
            if scopes.is_empty() {
                self.scopes.remove(&loader);
            }
        }
        self.rise(purse);
    }

    /// Forgets the counters of the accounts that ended first; at most [`MOST_DEPARTED`] of
    /// accounts that are gone stay.
    fn forget_oldest(&mut self) {
        let mut gone: Vec<u64> = self
            .departed
            .iter()
            .filter(|(name, _)| !self.accounts.contains_key(*name))
            .map(|(_, departed)| departed.stamp)
            .collect();
        if gone.len() <= MOST_DEPARTED {
            return;
        }
        gone.sort_unstable();
        let oldest_kept = gone[gone.len() - MOST_DEPARTED];
        let accounts = &self.accounts;
        self.departed
            .retain(|name, departed| departed.stamp >= oldest_kept || accounts.contains_key(name));
    }

    /// The purse of a package rule, if it has one.
    pub(crate) fn package_purse(&self, rule: usize) -> Option<PurseId> {
        let wanted = self.policy.accounts.get(rule)?.name.as_deref()?;
        self.owners.iter().find_map(|(&purse, owner)| match owner {
            Owner::Packages { account, .. } if account == wanted => Some(purse),
            _ => None,
        })
    }

    /// Enters the purse of a package rule of the policy in force.
    pub(crate) fn enter_packages(&mut self, purse: PurseId, rule: usize) {
        let Some((account, patterns)) = package_rule(&self.policy, rule) else {
            return;
        };
        self.owners
            .insert(purse, Owner::Packages { account, patterns });
        self.assign(purse);
    }

    // ---- classes -------------------------------------------------------------------

    pub(crate) fn name_class(&mut self, id: ClassId, name: String) {
        self.classes.insert(id, name.into());
    }

    pub(crate) fn class_name(&self, id: ClassId) -> Option<Arc<str>> {
        self.classes.get(&id).cloned()
    }

    pub(crate) fn forget_class(&mut self, id: ClassId) {
        self.classes.remove(&id);
    }

    // ---- accounts ------------------------------------------------------------------

    /// Puts a policy in force: every purse is assigned anew. A package account is known
    /// again by its name or, where that is gone, by its patterns: it was renamed.
    pub(crate) fn adopt(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
        let rules: Vec<(String, Vec<String>)> = (0..self.policy.accounts.len())
            .filter_map(|rule| package_rule(&self.policy, rule))
            .collect();
        let by_name: HashMap<&str, &[String]> = rules
            .iter()
            .map(|(name, patterns)| (name.as_str(), patterns.as_slice()))
            .collect();
        let taken: BTreeSet<String> = self
            .owners
            .values()
            .filter_map(|owner| match owner {
                Owner::Packages { account, .. } if by_name.contains_key(account.as_str()) => {
                    Some(account.clone())
                }
                _ => None,
            })
            .collect();
        let mut by_patterns: HashMap<&[String], &str> = HashMap::new();
        for (name, patterns) in rules.iter().filter(|(name, _)| !taken.contains(name)) {
            by_patterns.entry(patterns).or_insert(name);
        }
        for owner in self.owners.values_mut() {
            if let Owner::Packages { account, patterns } = owner {
                if let Some(&new_patterns) = by_name.get(account.as_str()) {
                    *patterns = new_patterns.to_vec();
                } else if let Some(&name) = by_patterns.get(patterns.as_slice()) {
                    name.clone_into(account);
                }
            }
        }
        self.assign_all();
    }

    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    pub(crate) fn accounts(&self) -> impl Iterator<Item = (&Arc<str>, &Account)> {
        self.accounts.iter()
    }

    /// The account of each purse that is somebody's.
    pub(crate) fn names(&self) -> impl Iterator<Item = (PurseId, Arc<str>)> {
        (self.of_purse.iter()).map(|(&purse, name)| (purse, name.clone()))
    }

    pub(crate) fn account_name(&self, purse: PurseId) -> Arc<str> {
        self.of_purse
            .get(&purse)
            .cloned()
            .unwrap_or_else(|| UNACCOUNTED.into())
    }

    /// A purse that stands for the whole account of `purse`: equal for two purses exactly
    /// if they are one account's.
    pub(crate) fn representative(&self, purse: PurseId) -> PurseId {
        self.of_purse
            .get(&purse)
            .and_then(|name| self.accounts.get(name))
            .and_then(|account| account.purses.first().copied())
            .unwrap_or(PurseId::UNACCOUNTED)
    }

    /// For each purse, the one that stands for its whole account: equal for two purses exactly
    /// if they are one account's.
    pub(crate) fn representatives(&self) -> impl Iterator<Item = (PurseId, PurseId)> {
        (self.accounts.values())
            .filter_map(|account| Some((&account.purses, *account.purses.first()?)))
            .flat_map(|(purses, first)| purses.iter().map(move |&purse| (purse, first)))
    }

    /// For the purse of each scope, the purse that stands for the service above it.
    pub(crate) fn aboves(&self) -> impl Iterator<Item = (PurseId, PurseId)> {
        (self.accounts.values())
            .filter_map(|account| Some((&account.beneath, *account.purses.first()?)))
            .flat_map(|(beneath, first)| beneath.iter().map(move |&purse| (purse, first)))
    }

    /// The service above this account, where it is one alone: a scope with a name of its own in
    /// the policy may be in several.
    pub(crate) fn parent(&self, account: &Account) -> Option<Arc<str>> {
        let mut purses = account.purses.iter();
        let parent = self.above.get(purses.next()?)?;
        (purses.all(|purse| self.above.get(purse) == Some(parent))).then(|| parent.clone())
    }

    /// As [`Directory::parent`], by the account's name.
    pub(crate) fn parent_of(&self, account: &str) -> Option<Arc<str>> {
        self.parent(self.accounts.get(account)?)
    }

    pub(crate) fn departed(&self, name: &str) -> Departed {
        self.departed.get(name).copied().unwrap_or_default()
    }

    /// Loaders of the account that were undeployed; `holds` tells whether a purse still
    /// holds bytes.
    pub(crate) fn retired_loaders(
        &self,
        account: &Account,
        holds: impl Fn(PurseId) -> bool,
    ) -> u64 {
        account
            .purses
            .iter()
            .filter(|&&purse| match self.owners.get(&purse) {
                Some(Owner::Loader(id)) => {
                    self.loaders
                        .get(id)
                        .is_some_and(|l| l.retired && matches!(l.standing, Standing::Service(_)))
                        && holds(purse)
                }
                _ => false,
            })
            .count() as u64
    }

    /// Changes whenever an account, its purses or its rule do; never 0.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// Name and patterns of a package account.
fn package_rule(policy: &Policy, rule: usize) -> Option<(String, Vec<String>)> {
    let rule = policy.accounts.get(rule)?;
    match &rule.matcher {
        Matcher::Packages(patterns) => Some((
            rule.name.clone()?,
            patterns.iter().map(ToString::to_string).collect(),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
