//! The ranked sites of everything that stacks are wanted of, by the names of accounts and classes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::cohorts::Mark;
use crate::core::Core;
use crate::identity::classes::ClassId;
use crate::snapshot::UNACCOUNTED;

use super::Counts;
use super::survivors::{Most, RowSites};

/// Places listed of each class.
pub const MOST_SITES: Most = Most {
    live: 10,
    allocated: 10,
};
/// The same for a snapshot: a place that is listed once only cannot be compared.
const MOST_SITES_BY_BIRTH: Most = Most {
    live: 50,
    allocated: 50,
};
/// The class of objects whose class has no name.
const UNKNOWN: &str = "?";

/// What is known of sites.
#[derive(Debug, Clone, Default)]
pub struct SitesReading {
    /// Stacks taken and skipped.
    pub counts: Counts,
    /// Every account of which stacks are wanted, most survivors with a stack first.
    pub accounts: Vec<AccountSites>,
}

/// The sites of an account.
#[derive(Debug, Clone, Default)]
pub struct AccountSites {
    /// Its name.
    pub account: Arc<str>,
    /// By class, most survivors with a stack first.
    pub classes: Vec<(Arc<str>, RowSites)>,
}

impl AccountSites {
    fn with_stack_bytes(&self) -> u64 {
        let classes = self.classes.iter();
        classes.fold(0, |sum, (_, row)| sum.saturating_add(row.with_stack_bytes))
    }
}

/// Reads the sites. One pass over the records; on an agent thread. Names are those at the start: a number is
/// given to another owner only if no record has it, and what survives later than that is not counted here.
#[must_use]
pub fn read(core: &Core) -> SitesReading {
    ranked(core, MOST_SITES, &[])
}

/// As [`read`], for a snapshot with these cuts: also by birth, and with more places.
#[must_use]
pub fn read_by_birth(core: &Core, cuts: &[Mark]) -> SitesReading {
    ranked(core, MOST_SITES_BY_BIRTH, cuts)
}

fn ranked(core: &Core, most: Most, cuts: &[Mark]) -> SitesReading {
    let names = core.directory().names();
    let unaccounted: Arc<str> = UNACCOUNTED.into();
    let unknown: Arc<str> = UNKNOWN.into();
    let account = |purse| names.get(&purse).unwrap_or(&unaccounted).clone();
    let mut class_names: HashMap<u32, Arc<str>> = HashMap::new();
    let rows = core.sites.survivors(
        &core.ledger,
        |purse, class| {
            if !core.sites.wants(purse, class) {
                return None;
            }
            let class = class_names.entry(class).or_insert_with(|| {
                let name = core.directory().class_name(ClassId(class));
                name.unwrap_or_else(|| unknown.clone())
            });
            Some((account(purse), class.clone()))
        },
        most,
        cuts,
    );
    let mut accounts: BTreeMap<Arc<str>, AccountSites> = BTreeMap::new();
    for purse in core.sites.wanted_purses() {
        let name = account(purse);
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
