//! Assigns purses to accounts, by the owner of the purse and the policy in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use policy_config::{Charge, Matcher};

use super::{Account, Directory, LoaderIdentity, Owner, RoutesOf};
use crate::identity::loaders::LoaderId;
use crate::identity::names::ServiceName;
use crate::ledger::PurseId;
use crate::snapshot::{Kind, UNACCOUNTED};

impl Directory {
    /// Builds all accounts anew from the policy in force and the owners of the purses.
    pub fn assign_all(&mut self) {
        self.accounts.clear();
        self.of_purse.clear();
        self.above.clear();
        self.account(UNACCOUNTED, Kind::Reserved, "", None);
        let policy = self.policy.clone();
        for (index, rule) in policy.accounts.iter().enumerate() {
            let kind = match (&rule.matcher, rule.charge) {
                (Matcher::Service(_), _) => Kind::Service,
                (Matcher::Packages(_), Charge::SelfPays) => Kind::Package,
                (Matcher::Packages(_), Charge::Caller) => Kind::Library,
                (Matcher::Scope(_), _) => Kind::Scope,
            };
            if let Some(name) = &rule.name {
                self.account(name, kind, "", Some(index));
            }
        }
        self.join(PurseId::UNACCOUNTED, UNACCOUNTED.into());
        let purses: BTreeSet<PurseId> = self.owners.keys().copied().collect();
        for purse in purses {
            self.assign(purse);
        }
    }

    /// Moves a purse to the account that it belongs to now.
    pub fn assign(&mut self, purse: PurseId) {
        if let Some(old) = self.of_purse.remove(&purse) {
            self.leave(&old, purse);
        }
        if let Some(Owner::Scope { name, loader }) = self.owners.get(&purse) {
            let (name, loader) = (name.clone(), *loader);
            self.assign_scope(purse, &name, loader);
            return;
        }
        let name = match self.owners.get(&purse) {
            Some(Owner::Loader(id) | Owner::Route(RoutesOf::Service(id))) => self
                .service_of(*id)
                .cloned()
                .map(|s| self.service_account(&s)),
            Some(Owner::Packages { .. }) => self.account_of_packages(purse),
            Some(Owner::Route(RoutesOf::Packages(of))) => self.account_of_packages(*of),
            Some(Owner::Scope { .. }) | None => None,
        };
        self.join(purse, name.unwrap_or_else(|| UNACCOUNTED.into()));
    }

    /// Assigns the purse of a scope. Its account is named `service/scope` inside a service, unless the
    /// policy names it.
    fn assign_scope(&mut self, purse: PurseId, scope: &str, loader: LoaderId) {
        self.detach(purse);
        let service = self.service_of(loader).cloned();
        // A scope of the program is no part of it: its name is as it is outside any service.
        let service = service.filter(|_| !self.is_program(loader));
        let above = service.as_ref().map(|s| self.service_account(s));
        let rule = self.policy.scope_account(scope);
        let configured = rule.and_then(|index| self.policy.accounts[index].name.clone());
        let mut name = configured.unwrap_or_else(|| match &above {
            Some(above) => format!("{above}/{scope}"),
            None => scope.to_owned(),
        });
        if (self.accounts.get(name.as_str())).is_some_and(|other| other.kind != Kind::Scope) {
            // As in `service_account`.
            name.push_str(" (scope)");
        }
        let service = service.map(|s| s.name).unwrap_or_default();
        let name = self.account(&name, Kind::Scope, &service, rule);
        self.join(purse, name);
        if let Some(above) = above {
            if let Some(account) = self.accounts.get_mut(&above) {
                account.beneath.insert(purse);
            }
            self.above.insert(purse, above);
        }
    }

    /// Takes the purse of a scope out of the account above it.
    pub fn detach(&mut self, purse: PurseId) {
        let Some(above) = self.above.remove(&purse) else {
            return;
        };
        self.version += 1;
        if let Some(account) = self.accounts.get_mut(&above) {
            account.beneath.remove(&purse);
            self.end_if_empty(&above);
        }
    }

    /// The service that a loader belongs to, or the program, however many loaders lie between.
    pub(super) fn service_of(&self, id: LoaderId) -> Option<&ServiceName> {
        match self.root_of(id)? {
            LoaderIdentity::Service(name) | LoaderIdentity::Program(name) => Some(name),
            _ => None,
        }
    }

    /// Whether a loader is the program's, or a child of it.
    fn is_program(&self, id: LoaderId) -> bool {
        matches!(self.root_of(id), Some(LoaderIdentity::Program(_)))
    }

    /// The identity of the loader that this one is a child of, by way of others.
    fn root_of(&self, id: LoaderId) -> Option<&LoaderIdentity> {
        let mut identity = &self.loaders.get(&id)?.identity;
        // Parents are older than their children, so there is no circle; the count is for the case of a mistake.
        for _ in 0..self.loaders.len() {
            let LoaderIdentity::ChildOf(parent) = identity else {
                break;
            };
            identity = &self.loaders.get(parent)?.identity;
        }
        Some(identity)
    }

    fn service_account(&mut self, service: &ServiceName) -> Arc<str> {
        let aliases: Vec<&str> = service.aliases.iter().map(String::as_str).collect();
        let rule = self.policy.service_account(&aliases);
        let configured = rule.and_then(|index| self.policy.accounts[index].name.clone());
        let mut name = configured.unwrap_or_else(|| service.name.clone());
        if self
            .accounts
            .get(name.as_str())
            .is_some_and(|account| account.kind != Kind::Service)
        {
            // A tenant's name must not let it into an account of another kind.
            name.push_str(" (service)");
        }
        let name = self.account(&name, Kind::Service, &service.name, rule);
        if let Some(account) = self.accounts.get_mut(&name)
            && account.service.is_empty()
        {
            account.service.clone_from(&service.name);
        }
        name
    }

    /// The account of packages with this purse, if the policy in force has it.
    pub(super) fn account_of_packages(&self, purse: PurseId) -> Option<Arc<str>> {
        match self.owners.get(&purse)? {
            Owner::Packages { account, .. } => self.package_account(account),
            _ => None,
        }
    }

    /// The account of that name, if the policy in force has it as a package account. The accounts that
    /// a policy names exist for as long as it is in force.
    pub fn package_account(&self, name: &str) -> Option<Arc<str>> {
        self.accounts
            .get_key_value(name)
            .filter(|(_, account)| matches!(account.kind, Kind::Package | Kind::Library))
            .map(|(name, _)| name.clone())
    }

    /// The account of that name; made if it does not exist.
    fn account(&mut self, name: &str, kind: Kind, service: &str, rule: Option<usize>) -> Arc<str> {
        if let Some((name, _)) = self.accounts.get_key_value(name) {
            return name.clone();
        }
        let name: Arc<str> = name.into();
        let account = Account {
            kind,
            service: service.to_owned(),
            rule,
            ..Account::default()
        };
        self.accounts.insert(name.clone(), account);
        name
    }

    fn join(&mut self, purse: PurseId, name: Arc<str>) {
        self.version += 1;
        if let Some(account) = self.accounts.get_mut(&name) {
            account.purses.insert(purse);
        }
        self.of_purse.insert(purse, name);
    }

    /// Takes a purse out of an account. An account that the policy does not name ends with
    /// its last purse.
    pub fn leave(&mut self, name: &Arc<str>, purse: PurseId) {
        self.version += 1;
        let Some(account) = self.accounts.get_mut(name) else {
            return;
        };
        account.purses.remove(&purse);
        self.end_if_empty(name);
    }

    fn end_if_empty(&mut self, name: &Arc<str>) {
        let Some(account) = self.accounts.get(name) else {
            return;
        };
        let named = account
            .rule
            .is_some_and(|index| self.policy.accounts[index].name.as_deref() == Some(&**name));
        if account.tree().next().is_none() && !named && &**name != UNACCOUNTED {
            self.accounts.remove(name);
        }
    }
}
