//! The accounts by the policy, and its reloads; deployments and their ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use policy_config::Throw;

use crate::enforce::visit::Limited;
use crate::ledger::{Ledger, PurseId};

/// The unit of limits: an account's first limit.
pub(super) const LIMIT_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone)]
struct Account {
    name: Arc<str>,
    services: BTreeSet<usize>,
    limit_bytes: Option<u64>,
    soft_limit_bytes: Option<u64>,
}

/// An edit of the policy file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edit {
    /// A limit in percent of [`LIMIT_BYTES`], or none.
    Limit(u8, Option<u16>),
    SoftLimit(u8, Option<u16>),
    Mode {
        enforced: bool,
    },
    /// A name of a few.
    Rename(u8, u8),
    /// A service into another account.
    Move {
        service: u8,
        account: u8,
    },
    /// Two accounts have each other's names.
    Swap(u8, u8),
}

/// See the module.
pub(super) struct Directory {
    accounts: Vec<Account>,
    /// The purses of each service, and of deployments that are not known yet.
    purses: Vec<BTreeSet<PurseId>>,
    unknown: Vec<(PurseId, usize)>,
    pub(super) retired: BTreeSet<PurseId>,
    pub(super) enforced: bool,
    pub(super) version: u64,
}

impl Directory {
    /// An account for each service.
    pub(super) fn new(ledger: &Ledger, services: usize) -> Directory {
        let account = |service: usize| Account {
            name: format!("account {service}").into(),
            services: BTreeSet::from([service]),
            limit_bytes: Some(LIMIT_BYTES),
            soft_limit_bytes: None,
        };
        let purse = |_| BTreeSet::from([ledger.open_purse().expect("a purse")]);
        Directory {
            accounts: (0..services).map(account).collect(),
            purses: (0..services).map(purse).collect(),
            unknown: Vec::new(),
            retired: BTreeSet::new(),
            enforced: true,
            version: 1,
        }
    }

    pub(super) fn services(&self) -> usize {
        self.purses.len()
    }

    /// The purse of a service that was deployed once.
    pub(super) fn first_purse(&self, service: usize) -> PurseId {
        *self.purses[service].first().expect("a deployment")
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        self.version += 1;
        let percent = |percent: u16| LIMIT_BYTES * u64::from(percent) / 100;
        let count = self.accounts.len();
        let place = |account: u8| usize::from(account) % count;
        match edit {
            Edit::Limit(account, limit) => {
                self.accounts[place(account)].limit_bytes = limit.map(percent);
            }
            Edit::SoftLimit(account, limit) => {
                self.accounts[place(account)].soft_limit_bytes = limit.map(percent);
            }
            Edit::Mode { enforced } => self.enforced = enforced,
            Edit::Rename(account, name) => {
                let name: Arc<str> = format!("name {}", name % 4).into();
                if self.accounts.iter().all(|account| account.name != name) {
                    self.accounts[place(account)].name = name;
                }
            }
            Edit::Move { service, account } => {
                let service = usize::from(service) % self.purses.len();
                for account in &mut self.accounts {
                    account.services.remove(&service);
                }
                self.accounts[place(account)].services.insert(service);
            }
            Edit::Swap(one, other) => {
                let (one, other) = (place(one), place(other));
                let name = self.accounts[one].name.clone();
                self.accounts[one].name = std::mem::replace(&mut self.accounts[other].name, name);
            }
        }
    }

    /// A service is deployed anew: the purse of its new loader, which nobody knows yet.
    pub(super) fn redeploy(&mut self, ledger: &Ledger, service: usize) -> Option<PurseId> {
        let purse = ledger.open_purse()?;
        self.unknown.push((purse, service));
        Some(purse)
    }

    /// New loaders get their names; those before them are gone.
    pub(super) fn name_loaders(&mut self) {
        for (purse, service) in std::mem::take(&mut self.unknown) {
            self.version += 1;
            self.retired.extend(&self.purses[service]);
            self.purses[service].insert(purse);
        }
    }

    /// A purse was recycled.
    pub(super) fn close(&mut self, purse: PurseId) {
        self.version += 1;
        self.retired.remove(&purse);
        for purses in &mut self.purses {
            purses.remove(&purse);
        }
    }

    fn purses_of<'a>(&'a self, account: &'a Account) -> impl Iterator<Item = PurseId> + 'a {
        let purses: BTreeSet<PurseId> = (account.services.iter())
            .flat_map(|&service| self.purses[service].iter().copied())
            .collect();
        purses.into_iter()
    }

    /// The accounts that have limits, as the warden reads them.
    pub(super) fn limited(&self) -> Vec<Limited> {
        (self.accounts.iter())
            .filter(|a| a.limit_bytes.is_some() || a.soft_limit_bytes.is_some())
            .filter_map(|account| {
                Some(Limited {
                    account: account.name.clone(),
                    gate: u32::from(self.purses_of(account).next()?.get()),
                    purses: self.purses_of(account).collect(),
                    limit_bytes: account.limit_bytes,
                    soft_limit_bytes: account.soft_limit_bytes,
                    throw: Throw::default(),
                })
            })
            .collect()
    }

    /// For each purse, the gate of its account.
    pub(super) fn gates(&self) -> Vec<(PurseId, u32)> {
        let mut gates = Vec::new();
        for account in &self.accounts {
            if let Some(first) = self.purses_of(account).next() {
                gates.extend(self.purses_of(account).map(|p| (p, u32::from(first.get()))));
            }
        }
        gates
    }
}
