//! The rows for which the policy asks: all classes of the accounts that `sites` of `[leaks]` names.

use std::sync::Arc;

use policy_config::{LeakSettings, Policy};

use crate::core::Core;
use crate::identity::directory::Directory;
use crate::ledger::{Ledger, PurseId};
use crate::snapshot::UNACCOUNTED;

use super::wanted::{Asker, Row};

/// Asks for what the policy wants, again whenever accounts or policy have changed. One agent thread.
#[derive(Debug, Default)]
pub struct PolicyRows {
    /// The directory's version and the policy that the rows are of.
    of: Option<(u64, Arc<Policy>)>,
}

impl PolicyRows {
    /// Asks for the rows of this policy. Returns a message for the log, if some accounts get no stacks because
    /// there are too many. Cheap if nothing has changed.
    pub fn ask(&mut self, core: &Core, policy: &Arc<Policy>) -> Option<String> {
        let was_empty = (self.of.as_ref()).is_none_or(|(_, of)| of.leak_settings.sites.is_empty());
        if was_empty && policy.leak_settings.sites.is_empty() {
            return None;
        }
        let directory = core.directory();
        let version = directory.version();
        // A purse without an owner counts among the unaccounted, and opening it is no change.
        let is_fixed = !policy.leak_settings.wants_sites_of(UNACCOUNTED);
        if let Some((of_version, of_policy)) = &self.of
            && is_fixed
            && *of_version == version
            && Arc::ptr_eq(of_policy, policy)
        {
            return None;
        }
        let rows = rows(&directory, &core.ledger, &policy.leak_settings);
        drop(directory);
        self.of = Some((version, policy.clone()));
        let asked = core.sites.set_wanted(Asker::Policy, rows);
        (asked.changed && asked.left_out > 0).then(|| {
            format!(
                "sites: the policy names accounts of so many deployments that {} of them get no stacks",
                asked.left_out
            )
        })
    }
}

fn rows(directory: &Directory, ledger: &Ledger, settings: &LeakSettings) -> Vec<Row> {
    let mut rows = Vec::new();
    let of = |purse| Row { purse, class: None };
    for (name, account) in directory.accounts() {
        if !settings.wants_sites_of(name) {
            continue;
        }
        rows.extend(account.purses.iter().copied().map(of));
        if &**name == UNACCOUNTED {
            let open = (0..ledger.purse_high_water()).map(|number| PurseId::new(number as u16));
            let unowned = open.filter(|&purse| ledger.is_open(purse) && !directory.is_owned(purse));
            rows.extend(unowned.map(of));
        }
    }
    rows
}
