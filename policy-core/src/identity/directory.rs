//! The names of purses, loaders and classes, and the account that each purse belongs to.
//!
//! Allocating threads work with numbers only. The directory gives the numbers names. The agent's own
//! threads read and write it under one lock; an allocating thread never does. An account is a name with
//! a set of purses:
//!
//! * of every loader of a service of that name (a redeployment is a new loader under the old name; the
//!   loader of a JSP belongs to its web application),
//! * of every package rule of that name,
//! * of every scope of that name inside one service (`shop/tenant-42`), or outside any,
//! * of every route of such a service (see [`crate::enforce::routes`]),
//! * for `_unaccounted`: the reserved purse, and every purse whose owner is not known yet or is no
//!   longer in the policy.
//!
//! The account of a service also knows the purses of the scopes *beneath* it. Their charges count for
//! the limit of the service, but they are not among its own purses.
//!
//! Purses are mapped to accounts when accounts are read. So charges that were made before the owner of
//! a purse was known, or before a reload renamed the account, count for the account as it is now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use policy_config::{DoorMethod, Matcher, Policy};

use crate::ledger::{Exact, PurseId};
use crate::snapshot::{Kind, UNACCOUNTED};

use super::classes::ClassId;
use super::loaders::LoaderId;
use super::names::{Doors, Server, ServiceName};

mod assignment;
pub mod counting;

/// For how many accounts the counters are kept after their last purse is gone, so that a redeployment
/// continues counting where it stopped. The oldest are forgotten first.
const MAX_DEPARTED: usize = 1024;
/// Tables with less room than this keep it.
const LEAST_ROOM: usize = 1024;

/// The finding of the loader thread about a loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoaderIdentity {
    /// Not named yet.
    Pending,
    /// A service.
    Service(ServiceName),
    /// The program: a service that has the class path as its classes.
    Program(ServiceName),
    /// It belongs to the service of another loader.
    ChildOf(LoaderId),
    /// It belongs to no service.
    Nobody,
}

/// A class loader: its purse, its service, and whether it is gone.
pub struct Loader {
    /// Its own purse; the reserved one if all were in use.
    pub purse: PurseId,
    /// The finding of the loader thread about it.
    pub identity: LoaderIdentity,
    /// The container has stopped the service, or a newer deployment has replaced it.
    pub retired: bool,
    /// The collector has freed it. What its purse still holds, somebody else keeps.
    pub gone: bool,
}

/// The owner of a purse.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Loader(LoaderId),
    Packages {
        account: String,
        patterns: Vec<String>,
    },
    /// The loader determines the service; [`LoaderId::BOOT`] means none.
    Scope {
        name: String,
        loader: LoaderId,
    },
    Route(RoutesOf),
}

/// Whose routes they are. Their purses end before its.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoutesOf {
    /// The service that this loader belongs to.
    Service(LoaderId),
    /// The account of packages with this purse.
    Packages(PurseId),
}

/// An account: a name with purses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Whether it stands for a service, for packages, for a library or for a scope.
    pub kind: Kind,
    /// The service's own name; empty for other kinds.
    pub service: String,
    /// The position of its rule in the policy in force, if it has one.
    pub rule: Option<usize>,
    /// Its own purses, without those of the scopes inside it.
    pub purses: BTreeSet<PurseId>,
    /// The purses of the scopes inside this service.
    pub beneath: BTreeSet<PurseId>,
}

impl Account {
    /// Its own purses and those beneath it. Its limit applies to their sum.
    pub fn tree(&self) -> impl Iterator<Item = PurseId> {
        self.purses.iter().chain(&self.beneath).copied()
    }
}

/// Counters of the closed purses of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departed {
    /// Bytes ever charged to the closed purses of an account.
    pub allocated_bytes: u64,
    /// Objects ever charged to them.
    pub allocated_objects: u64,
    /// The allocations that inserted code has counted for them.
    pub exact: Exact,
    stamp: u64,
}

/// Names and accounts. See the module. Agent threads only, under the lock of [`crate::Core::directory`].
#[derive(Default)]
pub struct Directory {
    policy: Arc<Policy>,
    owners: HashMap<PurseId, Owner>,
    loaders: HashMap<LoaderId, Loader>,
    children: HashMap<LoaderId, Vec<LoaderId>>,
    /// The loaders of each service, by its name.
    deployments: HashMap<String, Vec<LoaderId>>,
    classes: HashMap<ClassId, Arc<str>>,
    accounts: BTreeMap<Arc<str>, Account>,
    of_purse: HashMap<PurseId, Arc<str>>,
    /// The service's account above the purse of a scope.
    above: HashMap<PurseId, Arc<str>>,
    /// The purses of scopes, by the loader that determines their service.
    scopes: HashMap<LoaderId, BTreeSet<PurseId>>,
    /// The purses of routes.
    routes: HashMap<RoutesOf, BTreeSet<PurseId>>,
    departed: HashMap<Arc<str>, Departed>,
    doors: Doors,
    /// Methods that have a door in at least one class.
    method_doors: Vec<DoorMethod>,
    stamp: u64,
    /// Changes whenever an account, its purses or its rule do, or the doors.
    version: u64,
    /// A copy of `of_purse` and the version that it was made at; see [`counting`].
    names: Option<(u64, Arc<counting::Names>)>,
    countings: counting::Countings,
}

impl Directory {
    /// The account of each purse.
    #[must_use]
    pub fn accounts_of_purses(&self) -> HashMap<PurseId, Arc<str>> {
        let mut names = HashMap::new();
        for (name, account) in self.accounts() {
            for purse in &account.purses {
                names.insert(*purse, name.clone());
            }
        }
        names
    }

    /// Whether this loader is known to be that of a Spring Boot application.
    #[must_use]
    pub fn is_spring_boot_application(&self, id: LoaderId) -> bool {
        let identity = self.loader(id).map(|loader| &loader.identity);
        matches!(identity, Some(LoaderIdentity::Service(name)) if name.server == Server::SpringBoot)
    }

    /// Starts to note the numbers that are given back. Several threads may count at the same time;
    /// reporting threads.
    pub fn begin_counting(&mut self) -> counting::Counting {
        self.countings.begin()
    }

    /// Stops noting; returns the numbers that were given back since [`Directory::begin_counting`].
    pub fn end_counting(&mut self, counting: counting::Counting) -> counting::Ended {
        self.countings.end(counting)
    }

    /// Notes that a purse was closed, for each count that is under way.
    pub fn purse_ended(&mut self, purse: PurseId) {
        for ended in self.countings.each() {
            ended.purses.insert(purse);
        }
    }

    /// Notes that a class was forgotten, for each count that is under way.
    pub fn class_ended(&mut self, class: ClassId) {
        for ended in self.countings.each() {
            ended.classes.insert(class);
        }
    }

    /// The account of each purse. Copies the map once after each change of the directory.
    pub fn names(&mut self) -> Arc<counting::Names> {
        match &self.names {
            Some((version, names)) if *version == self.version => names.clone(),
            _ => {
                let names = Arc::new(self.of_purse.clone());
                self.names = Some((self.version, names.clone()));
                names
            }
        }
    }
}

impl Directory {
    /// The accounts that a policy names, without purses but the reserved one.
    pub fn new(policy: Arc<Policy>) -> Directory {
        let mut directory = Directory {
            policy,
            ..Directory::default()
        };
        directory.assign_all();
        directory
    }

    // ---- loaders -------------------------------------------------------------------

    /// Enters a loader that was seen for the first time.
    pub fn enter_loader(&mut self, id: LoaderId, purse: PurseId) {
        let identity = LoaderIdentity::Pending;
        self.loaders.insert(
            id,
            Loader {
                purse,
                identity,
                retired: false,
                gone: false,
            },
        );
        if purse != PurseId::UNACCOUNTED {
            self.owners.insert(purse, Owner::Loader(id));
            self.assign(purse);
        }
    }

    /// Returns the entry of a loader; `None` if it was never entered.
    pub fn loader(&self, id: LoaderId) -> Option<&Loader> {
        self.loaders.get(&id)
    }

    /// The loaders that were found to be children of this one.
    pub fn children(&self, id: LoaderId) -> Vec<LoaderId> {
        self.children.get(&id).cloned().unwrap_or_default()
    }

    /// Records what the loader thread found out. A newer deployment retires older loaders of the same
    /// service, if the server has one loader per deployment.
    pub fn set_identity(&mut self, id: LoaderId, identity: LoaderIdentity) {
        if self.loaders.get(&id).is_none_or(|l| l.identity == identity) {
            return;
        }
        match &identity {
            LoaderIdentity::Service(name) => {
                let others = self.deployments.entry(name.name.clone()).or_default();
                for other in others.iter().filter(|_| name.one_loader) {
                    if let Some(loader) = self.loaders.get_mut(other)
                        && loader.identity == identity
                    {
                        loader.retired = true;
                    }
                }
                others.push(id);
            }
            LoaderIdentity::ChildOf(parent) => self.children.entry(*parent).or_default().push(id),
            LoaderIdentity::Program(_) | LoaderIdentity::Pending | LoaderIdentity::Nobody => {}
        }
        let Some(loader) = self.loaders.get_mut(&id) else {
            return;
        };
        loader.identity = identity;
        let purse = loader.purse;
        self.assign(purse);
        for child in self.descendants(id) {
            if let Some(purse) = self.loaders.get(&child).map(|l| l.purse) {
                self.assign(purse);
            }
            self.assign_scopes(child);
        }
        self.assign_scopes(id);
    }

    /// The loaders that are children of this one, and theirs.
    #[must_use]
    pub fn descendants(&self, id: LoaderId) -> Vec<LoaderId> {
        let mut found = self.children(id);
        let mut at = 0;
        // No more than there are, for the case of a circle.
        while let Some(&next) = found.get(at).filter(|_| at < self.loaders.len()) {
            found.extend(self.children(next));
            at += 1;
        }
        found
    }

    /// Assigns the purses of the scopes and routes whose service this loader determines.
    fn assign_scopes(&mut self, loader: LoaderId) {
        let routes = self.routes.get(&RoutesOf::Service(loader));
        for purses in [routes, self.scopes.get(&loader)].map(Option::<&BTreeSet<_>>::cloned) {
            for purse in purses.unwrap_or_default() {
                self.assign(purse);
            }
        }
    }

    /// Marks a loader whose service was stopped.
    pub fn retire(&mut self, id: LoaderId) {
        if let Some(loader) = self.loaders.get_mut(&id) {
            loader.retired = true;
        }
    }

    /// The collector has freed a loader. Its entry stays until its purse is empty.
    pub fn bury(&mut self, id: LoaderId) {
        if let Some(loader) = self.loaders.get_mut(&id) {
            loader.gone = true;
        }
    }

    /// Whether no other loader, no scope and no route belongs to this loader. Its children must be forgotten
    /// before it; otherwise they would belong to the next loader with its id.
    pub fn is_childless(&self, id: LoaderId) -> bool {
        self.children.get(&id).is_none_or(Vec::is_empty)
            && !self.scopes.contains_key(&id)
            && !self.routes.contains_key(&RoutesOf::Service(id))
    }

    /// Forgets a loader, which must be childless.
    pub fn remove_loader(&mut self, id: LoaderId) {
        let Some(loader) = self.loaders.remove(&id) else {
            return;
        };
        self.children.remove(&id);
        let (service, parent) = match loader.identity {
            LoaderIdentity::Service(name) => (Some(name.name), None),
            LoaderIdentity::ChildOf(parent) => (None, Some(parent)),
            LoaderIdentity::Program(_) | LoaderIdentity::Pending | LoaderIdentity::Nobody => {
                (None, None)
            }
        };
        if let Some(name) = service
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

    /// The purses of package accounts that the policy in force does not name. If a later policy names
    /// the account before its purse is closed, the account gets its charges back.
    pub fn disowned_purses(&self) -> Vec<PurseId> {
        let disowned = |owner: &Owner| match owner {
            Owner::Loader(_) | Owner::Scope { .. } | Owner::Route(_) => false,
            Owner::Packages { account, .. } => self.package_account(account).is_none(),
        };
        self.owners
            .iter()
            .filter(|(_, owner)| disowned(owner))
            .map(|(&purse, _)| purse)
            .collect()
    }

    /// Enters the purse of a scope of this name, inside the service that the loader belongs to.
    pub fn enter_scope(&mut self, purse: PurseId, name: String, loader: LoaderId) {
        self.owners.insert(purse, Owner::Scope { name, loader });
        if loader != LoaderId::BOOT {
            self.scopes.entry(loader).or_default().insert(purse);
        }
        self.assign(purse);
    }

    /// The purses of scopes.
    pub fn scope_purses(&self) -> Vec<PurseId> {
        let is_scope = |owner: &Owner| matches!(owner, Owner::Scope { .. });
        let scopes = self.owners.iter().filter(|(_, owner)| is_scope(owner));
        scopes.map(|(&purse, _)| purse).collect()
    }

    /// Whether there may be routes: a loader lives and is known to belong to a service, or to the program; or the
    /// policy in force has the account of packages.
    pub fn may_have_routes(&self, of: RoutesOf) -> bool {
        match of {
            RoutesOf::Service(id) => {
                let lives = self.loaders.get(&id).is_some_and(|loader| !loader.gone);
                lives && self.service_of(id).is_some()
            }
            RoutesOf::Packages(purse) => self.account_of_packages(purse).is_some(),
        }
    }

    /// Enters the purse of a route.
    pub fn enter_route(&mut self, purse: PurseId, of: RoutesOf) {
        self.owners.insert(purse, Owner::Route(of));
        self.routes.entry(of).or_default().insert(purse);
        self.assign(purse);
    }

    /// The purses of these routes.
    pub fn route_purses(&self, of: RoutesOf) -> Vec<PurseId> {
        let purses = self.routes.get(&of);
        purses.map_or_else(Vec::new, |purses| purses.iter().copied().collect())
    }

    /// Whether the owner of a purse is known.
    pub fn is_owned(&self, purse: PurseId) -> bool {
        purse == PurseId::UNACCOUNTED || self.owners.contains_key(&purse)
    }

    /// The purses of an account; empty if there is no such account.
    pub fn purses_of(&self, name: &str) -> impl Iterator<Item = PurseId> {
        self.accounts
            .get(name)
            .into_iter()
            .flat_map(|account| account.purses.iter().copied())
    }

    /// An estimate of the native bytes held by the entries and their names.
    pub fn estimated_bytes(&self) -> u64 {
        /// A name of typical length, with the overhead of its allocation.
        const NAME_BYTES: usize = 96;
        fn table<K, V>(table: &HashMap<K, V>) -> usize {
            table.capacity() * size_of::<(K, V)>() + table.len() * NAME_BYTES
        }
        (table(&self.owners)
            + table(&self.loaders)
            + table(&self.classes)
            + self.accounts.len() * (size_of::<(Arc<str>, Account)>() + NAME_BYTES)
            + table(&self.of_purse)
            + table(&self.departed)) as u64
    }

    /// Gives back the room of tables that have become nearly empty: hash tables only ever grow by themselves.
    pub fn give_back_room(&mut self) {
        fn fit<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
            let len = table.len();
            if table.capacity() > LEAST_ROOM && len < table.capacity() / 8 {
                table.shrink_to(len * 2);
            }
        }
        fit(&mut self.owners);
        fit(&mut self.loaders);
        fit(&mut self.children);
        fit(&mut self.deployments);
        fit(&mut self.classes);
        fit(&mut self.of_purse);
        fit(&mut self.above);
        fit(&mut self.scopes);
        fit(&mut self.routes);
        fit(&mut self.departed);
    }

    /// Removes a purse that was closed. Its account keeps its counters; returns the name of the account.
    pub fn close_purse(
        &mut self,
        purse: PurseId,
        bytes: u64,
        objects: u64,
        exact: Exact,
    ) -> Option<Arc<str>> {
        self.purse_ended(purse);
        match self.owners.remove(&purse) {
            Some(Owner::Loader(id)) => self.remove_loader(id),
            Some(Owner::Scope { loader, .. }) => self.forget_scope(purse, loader),
            Some(Owner::Route(of)) => self.forget_route(purse, of),
            Some(Owner::Packages { .. }) | None => {}
        }
        let name = self.of_purse.remove(&purse)?;
        self.stamp += 1;
        let departed = self.departed.entry(name.clone()).or_default();
        departed.allocated_bytes = departed.allocated_bytes.wrapping_add(bytes);
        departed.allocated_objects = departed.allocated_objects.wrapping_add(objects);
        departed.exact += exact;
        departed.stamp = self.stamp;
        self.leave(&name, purse);
        if self.departed.len() > 2 * MAX_DEPARTED {
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
        self.detach(purse);
    }

    fn forget_route(&mut self, purse: PurseId, of: RoutesOf) {
        if let Some(routes) = self.routes.get_mut(&of) {
            routes.remove(&purse);
            if routes.is_empty() {
                self.routes.remove(&of);
            }
        }
    }

    /// Forgets the counters of the accounts that ended first. Keeps those of `MAX_DEPARTED`
    /// accounts that are gone.
    fn forget_oldest(&mut self) {
        let mut gone: Vec<u64> = self
            .departed
            .iter()
            .filter(|(name, _)| !self.accounts.contains_key(*name))
            .map(|(_, departed)| departed.stamp)
            .collect();
        if gone.len() <= MAX_DEPARTED {
            return;
        }
        gone.sort_unstable();
        let oldest_kept = gone[gone.len() - MAX_DEPARTED];
        let accounts = &self.accounts;
        self.departed
            .retain(|name, departed| departed.stamp >= oldest_kept || accounts.contains_key(name));
    }

    /// The purse of a package rule, if it has one.
    pub fn package_purse(&self, rule: usize) -> Option<PurseId> {
        let wanted = self.policy.accounts.get(rule)?.name.as_deref()?;
        self.owners.iter().find_map(|(&purse, owner)| match owner {
            Owner::Packages { account, .. } if account == wanted => Some(purse),
            _ => None,
        })
    }

    /// Enters the purse of a package rule of the policy in force.
    pub fn enter_packages(&mut self, purse: PurseId, rule: usize) {
        let Some((account, patterns)) = package_rule(&self.policy, rule) else {
            return;
        };
        self.owners
            .insert(purse, Owner::Packages { account, patterns });
        self.assign(purse);
    }

    // ---- classes -------------------------------------------------------------------

    /// Records the name of a class (`java.lang.String`). The metadata thread.
    pub fn name_class(&mut self, id: ClassId, name: String) {
        self.classes.insert(id, name.into());
    }

    /// The name of a class; `None` if it has none yet.
    pub fn class_name(&self, id: ClassId) -> Option<Arc<str>> {
        self.classes.get(&id).cloned()
    }

    /// Forgets an unloaded class that no record names. The enforcer's thread.
    pub fn forget_class(&mut self, id: ClassId) {
        self.class_ended(id);
        self.classes.remove(&id);
    }

    // ---- accounts ------------------------------------------------------------------

    /// Puts a policy in force and assigns every purse anew. A package account keeps its purse if the
    /// policy has an account of its name, or else one with its patterns: it was renamed.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
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

    /// The policy in force.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Every account with its name, sorted by name.
    pub fn accounts(&self) -> impl Iterator<Item = (&Arc<str>, &Account)> {
        self.accounts.iter()
    }

    /// The name of the account that a purse belongs to.
    pub fn account_name(&self, purse: PurseId) -> Arc<str> {
        self.of_purse
            .get(&purse)
            .cloned()
            .unwrap_or_else(|| UNACCOUNTED.into())
    }

    /// The purse that stands for the whole account of `purse`: equal for two purses exactly if they
    /// belong to one account.
    pub fn representative(&self, purse: PurseId) -> PurseId {
        self.of_purse
            .get(&purse)
            .and_then(|name| self.accounts.get(name))
            .and_then(|account| self.standing_for(account))
            .unwrap_or(PurseId::UNACCOUNTED)
    }

    /// The purse that stands for this account, which is also the number of its gate. Not a route's, if it has
    /// another: routes come and go while it has a verdict.
    pub fn standing_for(&self, account: &Account) -> Option<PurseId> {
        let is_route = |purse: &PurseId| matches!(self.owners.get(purse), Some(Owner::Route(_)));
        let mut others = account.purses.iter().filter(|purse| !is_route(purse));
        others.next().or(account.purses.first()).copied()
    }

    /// Every purse with the purse that stands for its account (see [`Directory::representative`]).
    pub fn representatives(&self) -> impl Iterator<Item = (PurseId, PurseId)> {
        (self.accounts.values())
            .filter_map(|account| Some((&account.purses, self.standing_for(account)?)))
            .flat_map(|(purses, first)| purses.iter().map(move |&purse| (purse, first)))
    }

    /// The purse of every scope inside a service, with the purse that stands for the service.
    pub fn aboves(&self) -> impl Iterator<Item = (PurseId, PurseId)> {
        (self.accounts.values())
            .filter_map(|account| Some((&account.beneath, self.standing_for(account)?)))
            .flat_map(|(beneath, first)| beneath.iter().map(move |&purse| (purse, first)))
    }

    /// The account of the service above this account; `None` if there is none or more than one. A
    /// scope that the policy names may be inside several services.
    pub fn parent(&self, account: &Account) -> Option<Arc<str>> {
        let mut purses = account.purses.iter();
        let parent = self.above.get(purses.next()?)?;
        (purses.all(|purse| self.above.get(purse) == Some(parent))).then(|| parent.clone())
    }

    /// Like [`Directory::parent`], by the name of the account.
    pub fn parent_of(&self, account: &str) -> Option<Arc<str>> {
        self.parent(self.accounts.get(account)?)
    }

    /// The counters of the closed purses of an account; zero if there are none.
    pub fn departed(&self, name: &str) -> Departed {
        self.departed.get(name).copied().unwrap_or_default()
    }

    /// How many undeployed loaders of the account still exist and hold bytes; `holds` tells that of a
    /// purse.
    pub fn retired_loaders(&self, account: &Account, holds: impl Fn(PurseId) -> bool) -> u64 {
        let mut retired = BTreeSet::new();
        for &purse in &account.purses {
            if let Some(id) = self.loader_id_of(purse)
                && self.loaders.get(&id).is_some_and(is_retired_service)
                && holds(purse)
            {
                retired.insert(id);
            }
        }
        retired.len() as u64
    }

    /// Whether the purse is that of a service which was undeployed, and whose loader still lives.
    pub fn is_undeployed(&self, purse: PurseId) -> bool {
        self.loader_of(purse).is_some_and(is_retired_service)
    }

    /// The purses of the account whose loader is gone: what they hold was left by undeployed versions.
    pub fn left_purses(&self, account: &Account) -> impl Iterator<Item = PurseId> {
        let is_left = |purse: &PurseId| self.loader_of(*purse).is_some_and(|loader| loader.gone);
        account.purses.iter().copied().filter(is_left)
    }

    fn loader_of(&self, purse: PurseId) -> Option<&Loader> {
        self.loaders.get(&self.loader_id_of(purse)?)
    }

    /// The loader of the deployment that the purse, or the route with this purse, belongs to.
    fn loader_id_of(&self, purse: PurseId) -> Option<LoaderId> {
        match self.owners.get(&purse)? {
            Owner::Loader(id) | Owner::Route(RoutesOf::Service(id)) => Some(*id),
            Owner::Packages { .. } | Owner::Scope { .. } | Owner::Route(_) => None,
        }
    }

    /// Records which servers have a fitted door. The loader thread.
    pub fn set_doors(&mut self, doors: Doors) {
        if self.doors != doors {
            self.doors = doors;
            self.version += 1;
        }
    }

    /// Records which of the methods that policies name have a door. The loader thread.
    pub fn set_method_doors(&mut self, fitted: Vec<DoorMethod>) {
        if self.method_doors != fitted {
            self.method_doors = fitted;
            self.version += 1;
        }
    }

    /// Whether new work for the account passes a door: one of its loaders is that of a service in a server
    /// which has one, or its rule names a method that has one.
    pub fn has_door(&self, account: &Account) -> bool {
        self.has_method_door(account) || self.has_servers_door(account)
    }

    /// Whether new work for the account passes a door at a method, and none of a server that it is deployed to. A
    /// server among its libraries may be for a console alone: the methods that the policy names are where work begins.
    pub fn has_method_doors_alone(&self, account: &Account) -> bool {
        self.has_method_door(account)
            && !self.has_door_of(account, |server| self.doors.has_where_deployed(server))
    }

    fn has_method_door(&self, account: &Account) -> bool {
        let rule = account.rule.and_then(|rule| self.policy.accounts.get(rule));
        let named = rule.map_or(&[][..], |rule| rule.door.methods());
        (named.iter()).any(|method| self.method_doors.contains(method))
    }

    fn has_servers_door(&self, account: &Account) -> bool {
        self.has_door_of(account, |server| self.doors.has(server))
    }

    /// Whether a service of the account runs in a server of this kind.
    fn has_door_of(&self, account: &Account, has: impl Fn(Server) -> bool) -> bool {
        account.purses.iter().any(|purse| {
            let Some(Owner::Loader(id)) = self.owners.get(purse) else {
                return false;
            };
            self.service_of(*id)
                .is_some_and(|service| has(service.server))
        })
    }

    /// Changes whenever an account, its purses or its rule do, or the doors; never 0.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// Name and patterns of a package account.
/// Whether it is a leak: of a service that is undeployed, and alive.
fn is_retired_service(loader: &Loader) -> bool {
    loader.retired && !loader.gone && matches!(loader.identity, LoaderIdentity::Service(_))
}

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
