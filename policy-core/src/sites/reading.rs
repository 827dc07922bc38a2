//! The ranked sites of everything that stacks are wanted of, by the names of accounts and classes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::cohorts::Mark;
use crate::core::Core;
use crate::identity::classes::ClassId;
use crate::identity::directory::counting::Names;
use crate::ledger::PurseId;
use crate::snapshot::UNACCOUNTED;

pub use super::listing::{AccountSites, SitesReading};
use super::stacks::Stack;
use super::survivors::Most;

/// Places listed of each class.
pub const MAX_SITES: Most = Most {
    live: 10,
    allocated: 10,
};
/// The same for a snapshot: a place that is listed once only cannot be compared.
const MAX_SITES_BY_BIRTH: Most = Most {
    live: 50,
    allocated: 50,
};
/// Stacks listed of all accounts together. Each has up to 17 frames.
const MAX_STACKS: Most = Most {
    live: 10_000,
    allocated: 10_000,
};
/// The class of objects whose class has no name.
const UNKNOWN: &str = "?";

/// Reads the sites. One pass over the records; on an agent thread. Names are those at the start: a number is
/// given to another owner only if no record has it, and what survives later than that is not counted here.
#[must_use]
pub fn read(core: &Core) -> SitesReading {
    ranked(core, MAX_SITES, &[])
}

/// As [`read`], for a snapshot with these cuts: also by birth, and with more places.
#[must_use]
pub fn read_by_birth(core: &Core, cuts: &[Mark]) -> SitesReading {
    ranked(core, MAX_SITES_BY_BIRTH, cuts)
}

/// The stacks by account and class: the largest, and at most twenty thousand. One pass over the records; on an agent
/// thread. Names are as for [`read`].
#[must_use]
pub fn read_stacks(core: &Core) -> HashMap<(Arc<str>, Arc<str>), Vec<Stack>> {
    let mut names = RowNames::new(core);
    let row = |purse, class| names.row(purse, class);
    core.sites.stacks(&core.ledger, row, MAX_STACKS)
}

/// The names of the account and class of a row of which stacks are wanted.
struct RowNames<'a> {
    core: &'a Core,
    accounts: Arc<Names>,
    classes: HashMap<u32, Arc<str>>,
    unaccounted: Arc<str>,
}

impl RowNames<'_> {
    fn new(core: &Core) -> RowNames<'_> {
        RowNames {
            core,
            accounts: core.directory().names(),
            classes: HashMap::new(),
            unaccounted: UNACCOUNTED.into(),
        }
    }

    fn account(&self, purse: PurseId) -> Arc<str> {
        self.accounts
            .get(&purse)
            .unwrap_or(&self.unaccounted)
            .clone()
    }

    fn row(&mut self, purse: PurseId, class: u32) -> Option<(Arc<str>, Arc<str>)> {
        if !self.core.sites.wants(purse, class) {
            return None;
        }
        let name = self.classes.entry(class).or_insert_with(|| {
            let name = self.core.directory().class_name(ClassId(class));
            name.unwrap_or_else(|| UNKNOWN.into())
        });
        let name = name.clone();
        Some((self.account(purse), name))
    }
}

fn ranked(core: &Core, most: Most, cuts: &[Mark]) -> SitesReading {
    let mut names = RowNames::new(core);
    let row = |purse, class| names.row(purse, class);
    let rows = core.sites.survivors(&core.ledger, row, most, cuts);
    let mut accounts: BTreeMap<Arc<str>, AccountSites> = BTreeMap::new();
    for purse in core.sites.wanted_purses() {
        let name = names.account(purse);
        let empty = AccountSites {
            account: name.clone(),
            classes: Vec::new(),
        };
        accounts.entry(name).or_insert(empty);
    }
    for ((account, class), sites) in rows {
        if let Some(found) = accounts.get_mut(&account) {
            found.classes.push((class, sites));
        }
    }
    let mut accounts: Vec<AccountSites> = accounts.into_values().collect();
    for account in &mut accounts {
        (account.classes).sort_by(|(a_name, a), (b_name, b)| {
            (b.with_stack_bytes, b.live_bytes, a_name).cmp(&(
                a.with_stack_bytes,
                a.live_bytes,
                b_name,
            ))
        });
    }
    accounts.sort_by_key(|account| Reverse(account.with_stack_bytes()));
    SitesReading {
        counts: core.sites.counts(),
        accounts,
    }
}
