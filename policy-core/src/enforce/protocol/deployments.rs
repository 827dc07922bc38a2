//! Services, their deployments and scopes, and the operator's edits, through the real directory.

use std::sync::Arc;

use policy_config::{
    Account, Charge, DEFAULT_DOOR_STATUS, DEFAULT_PRIORITY, Door, Glob, Interrupts, Limit, Matcher,
    Mode, PackagePattern, Policy, Tasks, Throw,
};

use crate::core::Core;
use crate::identity::directory::LoaderIdentity;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::identity::names::{Doors, Server, ServiceName, service};
use crate::ledger::{PurseId, Tag};

/// The unit of limits: an account's first limit.
pub(super) const LIMIT_BYTES: u64 = 64 << 10;
/// Services.
pub(super) const SERVICES: usize = 3;
/// The services that an account's rule may match: one, each of them, or none.
const GLOBS: [&str; 5] = ["/s0", "/s1", "/s2", "/s*", "/none"];

/// An edit of the policy file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edit {
    /// A limit in percent of [`LIMIT_BYTES`], or none.
    Limit(u8, Option<u16>),
    SoftLimit(u8, Option<u16>),
    /// The limit of each scope, in percent, or none.
    ScopeLimit(Option<u16>),
    Mode {
        enforced: bool,
    },
    /// A name of a few.
    Rename(u8, u8),
    /// Another service in the account.
    Match {
        account: u8,
        glob: u8,
    },
    /// Two accounts have each other's names.
    Swap(u8, u8),
    /// The bytes that masked threads may be charged, in percent of [`LIMIT_BYTES`].
    Mask(u16),
    /// An account's door is off, or not.
    Door {
        account: u8,
        is_off: bool,
    },
    /// The server has a fitted door, or none yet.
    Fitted(bool),
}

/// A deployment of a service: its loader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deployment {
    pub(super) purse: PurseId,
    loader: LoaderId,
    /// The tag of the loader object.
    pub(super) tag: i64,
}

/// See the module.
pub(super) struct Deployments {
    policy: Policy,
    scope_limit: Limit,
    /// The current deployment of each service.
    current: Vec<Deployment>,
    /// Deployments whose loaders are not named yet.
    unnamed: Vec<(Deployment, usize)>,
    pub(super) enforced: bool,
}

fn rule(name: &str, matcher: Matcher, limit: Limit) -> Account {
    Account {
        name: Some(name.to_owned()),
        matcher,
        charge: Charge::default(),
        soft_limit: Limit::None,
        direct_limit: Limit::None,
        limit,
        throw: Throw::default(),
        interrupts: Interrupts {
            never: PackagePattern::new("spared.*").into_iter().collect(),
            ..Interrupts::default()
        },
        door: Door::Auto,
        refuse_with: None,
        status: DEFAULT_DOOR_STATUS,
        priority: DEFAULT_PRIORITY,
        tasks: Tasks::default(),
        admit: Vec::new(),
    }
}

fn glob(pattern: &str) -> Glob {
    Glob::new(pattern).expect("a glob")
}

fn percent(percent: Option<u16>) -> Limit {
    percent.map_or(Limit::None, |percent| {
        Limit::Bytes(LIMIT_BYTES * u64::from(percent) / 100)
    })
}

impl Deployments {
    /// An account for each service, deployed and named.
    pub(super) fn new(core: &Core) -> Deployments {
        let mut policy = Policy::default();
        policy.enforcement.mode = Mode::Enforce;
        policy.accounts = (0..SERVICES)
            .map(|index| {
                let matcher = Matcher::Service(glob(GLOBS[index]));
                rule(
                    &format!("account {index}"),
                    matcher,
                    Limit::Bytes(LIMIT_BYTES),
                )
            })
            .collect();
        let mut deployments = Deployments {
            policy,
            scope_limit: Limit::None,
            current: Vec::new(),
            unnamed: Vec::new(),
            enforced: true,
        };
        for index in 0..SERVICES {
            let deployment = open(core).expect("a purse");
            deployments.current.push(deployment);
            deployments.unnamed.push((deployment, index));
        }
        deployments.name_loaders(core);
        deployments.put_in_force(core);
        deployments
    }

    /// The purse of a service as it is deployed now.
    pub(super) fn purse(&self, service: usize) -> PurseId {
        self.current[service].purse
    }

    /// The tag of the loader of a service as it is deployed now.
    pub(super) fn loader_tag(&self, service: usize) -> i64 {
        self.current[service].tag
    }

    pub(super) fn edit(&mut self, core: &Core, edit: Edit) {
        let place = |account: u8| usize::from(account) % SERVICES;
        let accounts = &mut self.policy.accounts;
        match edit {
            Edit::Limit(account, limit) => accounts[place(account)].limit = percent(limit),
            Edit::SoftLimit(account, limit) => {
                accounts[place(account)].soft_limit = percent(limit);
            }
            Edit::ScopeLimit(limit) => self.scope_limit = percent(limit),
            Edit::Mode { enforced } => {
                self.enforced = enforced;
                self.policy.enforcement.mode = if enforced {
                    Mode::Enforce
                } else {
                    Mode::Observe
                };
            }
            Edit::Rename(account, name) => {
                let name = Some(format!("name {}", name % 4));
                if accounts.iter().all(|account| account.name != name) {
                    accounts[place(account)].name = name;
                }
            }
            Edit::Match { account, glob: to } => {
                let pattern = GLOBS[usize::from(to) % GLOBS.len()];
                accounts[place(account)].matcher = Matcher::Service(glob(pattern));
            }
            Edit::Swap(one, other) => {
                let (one, other) = (place(one), place(other));
                let name = accounts[one].name.clone();
                accounts[one].name = std::mem::replace(&mut accounts[other].name, name);
            }
            Edit::Door { account, is_off } => {
                accounts[place(account)].door = if is_off { Door::Off } else { Door::Auto };
            }
            Edit::Fitted(tomcat) => {
                let mut doors = Doors::default();
                doors.set(Server::Tomcat, tomcat);
                core.directory().set_doors(doors);
            }
            Edit::Mask(limit) => {
                self.policy.enforcement.mask = percent(Some(limit.max(1)));
            }
        }
        self.put_in_force(core);
    }

    fn put_in_force(&self, core: &Core) {
        let mut policy = self.policy.clone();
        if self.scope_limit != Limit::None {
            let scopes = Matcher::Scope(glob("t*"));
            let unnamed = Account {
                name: None,
                ..rule("", scopes, self.scope_limit)
            };
            policy.accounts.push(unnamed);
        }
        let policy = Arc::new(policy);
        let mut directory = core.directory();
        directory.adopt(policy.clone());
        core.throw_points.adopt(&policy, &directory);
        drop(directory);
        core.enforcer.wake();
    }

    /// A service is deployed anew; nobody knows its new loader yet. The deployment before and the new
    /// one.
    pub(super) fn redeploy(
        &mut self,
        core: &Core,
        service: usize,
    ) -> Option<(Deployment, Deployment)> {
        let deployment = open(core)?;
        let before = std::mem::replace(&mut self.current[service], deployment);
        self.unnamed.push((deployment, service));
        Some((before, deployment))
    }

    /// New loaders get their names.
    pub(super) fn name_loaders(&mut self, core: &Core) {
        for (deployment, index) in std::mem::take(&mut self.unnamed) {
            let Deployment { purse, loader, .. } = deployment;
            let mut directory = core.directory();
            if core.identity.loaders.is_dead(loader) {
                continue;
            }
            directory.enter_loader(loader, purse);
            let name = ServiceName {
                server: Server::Tomcat,
                ..service(vec![GLOBS[index].to_owned()], true)
            };
            directory.set_identity(loader, LoaderIdentity::Service(name));
            core.identity
                .loaders
                .set_owner(loader, LoaderOwner::Service(purse));
        }
    }

    /// Loaders that died before they were named are entered by the cleaning.
    pub(super) fn forget(&mut self, loader: LoaderId) -> bool {
        let before = self.unnamed.len();
        self.unnamed
            .retain(|(deployment, _)| deployment.loader != loader);
        self.unnamed.len() != before
    }

    /// Opens a scope inside a service as it is deployed now: its purse, and the tag of the object that
    /// stands for it.
    pub(super) fn open_scope(
        &self,
        core: &Core,
        service: usize,
        name: u8,
    ) -> Option<(PurseId, i64)> {
        if !core.identity.scopes.enter() {
            return None;
        }
        let Some(purse) = core.ledger.open_purse() else {
            core.identity.scopes.leave();
            return None;
        };
        let loader = self.current[service].loader;
        core.identity.set_representative(purse, purse);
        let service = core.identity.loaders.owner(loader).purse();
        let above = service.map(|purse| PurseId::new(core.identity.representative(purse) as u16));
        core.identity.set_above(purse, above);
        let tag = core.identity.scopes.open(purse, 0).expect("memory");
        core.directory()
            .enter_scope(purse, format!("t{}", name % 3), loader);
        core.identity.scopes.use_them(false);
        Some((purse, Tag::Scope(tag).encode()))
    }
}

/// The purse and the tag of a loader that a thread has just met.
fn open(core: &Core) -> Option<Deployment> {
    let purse = core.ledger.open_purse()?;
    let loaders = &core.identity.loaders;
    let loader = loaders.open(LoaderOwner::Pending(purse), 0)?;
    core.identity.set_representative(purse, purse);
    Some(Deployment {
        purse,
        loader,
        tag: loaders.tag(loader)?,
    })
}
