//! A reading as programs get it: figures by account, and the account of each purse.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::identity::directory::counting::Names;
use crate::ledger::PurseId;
use crate::reading::{LiveOfPurse, Taken};
use crate::report::{Account, Class, Snapshot, State, UNACCOUNTED};
use crate::sites::reading::SitesReading;
use crate::sites::survivors::Site;

/// One reading of all accounts.
pub(crate) struct Reading {
    /// When it was begun.
    pub(crate) taken: Instant,
    snapshot: Arc<Snapshot>,
    /// Accounts of the snapshot by name.
    places: HashMap<String, usize>,
    names: Arc<Names>,
    live_of_purses: HashMap<PurseId, LiveOfPurse>,
    /// While a test has stacks taken.
    sites: Option<SitesReading>,
}

impl Reading {
    /// From what was read. `taken`: when that began.
    pub(crate) fn new(taken: Instant, read: Taken) -> Reading {
        let snapshot = Arc::new(read.snapshot);
        let accounts = snapshot.accounts.iter().enumerate();
        let places = accounts
            .map(|(place, account)| (account.name.clone(), place))
            .collect();
        Reading {
            taken,
            snapshot,
            places,
            names: read.names,
            live_of_purses: read.live_of_purses,
            sites: None,
        }
    }

    /// With what was read of sites.
    pub(crate) fn with_sites(mut self, sites: Option<SitesReading>) -> Reading {
        self.sites = sites;
        self
    }

    /// Where the survivors of a class of an account were allocated, most bytes first.
    pub(crate) fn sites(&self, account: &str, class: &str) -> impl Iterator<Item = &Site> {
        let of_account = || {
            let mut accounts = self.sites.as_ref()?.accounts.iter();
            let found = accounts.find(|one| &*one.account == account)?;
            let mut classes = found.classes.iter();
            classes.find(|(name, _)| &**name == class)
        };
        let sites = of_account().map_or(&[][..], |(_, row)| &row.sites);
        // Others are listed for what was allocated there and died.
        sites.iter().filter(|site| site.stacks > 0)
    }

    /// The snapshot that the listener publishes.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The live part of a purse's charges.
    pub(crate) fn live_of(&self, purse: PurseId) -> LiveOfPurse {
        self.live_of_purses.get(&purse).copied().unwrap_or_default()
    }

    /// The account that a purse is part of; `None` for a purse that is newer than the reading.
    pub(crate) fn name_of(&self, purse: PurseId) -> Option<&str> {
        if purse == PurseId::UNACCOUNTED {
            return Some(UNACCOUNTED);
        }
        self.names.get(&purse).map(AsRef::as_ref)
    }

    fn account(&self, name: &str) -> Option<&Account> {
        (self.places.get(name)).map(|&place| &self.snapshot.accounts[place])
    }

    /// The figures of an account as `dev.heapwarden.agent.Bridge.read` describes them.
    pub(crate) fn figures(&self, name: &str) -> Option<[i64; 16]> {
        let account = self.account(name)?;
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let limit = |limit: Option<u64>| limit.map_or(-1, bytes);
        let error = |bytes: f64| bytes.ceil() as i64;
        let state = match account.state {
            State::Open => 0,
            State::Suspect => 1,
            State::Over => 2,
        };
        let own = crate::report::Tree {
            live_bytes: account.live_bytes,
            live_standard_error_bytes: account.live_standard_error_bytes,
            live_at_most_bytes: account.live_at_most_bytes,
            charged_bytes: account.charged_bytes,
            standard_error_bytes: account.standard_error_bytes,
        };
        let tree = account.tree.unwrap_or(own);
        Some([
            bytes(account.live_bytes),
            bytes(account.charged_bytes),
            error(account.standard_error_bytes),
            bytes(account.live_objects),
            limit(account.soft_limit_bytes),
            limit(account.limit_bytes),
            state,
            bytes(account.refusals_total),
            bytes(account.would_refuse_total),
            bytes(account.allocated_bytes_total),
            bytes(account.allocated_objects_total),
            bytes(tree.live_bytes),
            bytes(tree.charged_bytes),
            error(tree.standard_error_bytes),
            error(account.live_standard_error_bytes),
            error(tree.live_standard_error_bytes),
        ])
    }

    /// The classes of an account, largest live bytes first.
    pub(crate) fn classes(&self, name: &str) -> &[Class] {
        self.account(name).map_or(&[], |account| &account.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Tree;

    #[test]
    fn figures_are_in_the_order_that_the_bridge_describes() {
        let shop = Account {
            name: "shop".to_owned(),
            live_bytes: 1,
            charged_bytes: 2,
            standard_error_bytes: 2.5,
            live_standard_error_bytes: 14.5,
            live_objects: 4,
            limit_bytes: Some(6),
            state: State::Over,
            refusals_total: 8,
            would_refuse_total: 9,
            allocated_bytes_total: 10,
            allocated_objects_total: u64::MAX,
            tree: Some(Tree {
                live_bytes: 12,
                charged_bytes: 13,
                standard_error_bytes: 13.5,
                live_standard_error_bytes: 15.5,
                live_at_most_bytes: None,
            }),
            ..Account::default()
        };
        let alone = Account {
            name: "alone".to_owned(),
            live_bytes: 5,
            ..Account::default()
        };
        let read = Taken {
            snapshot: Snapshot {
                accounts: vec![shop, alone],
                ..Snapshot::default()
            },
            names: Arc::new(HashMap::from([(PurseId::new(3), "shop".into())])),
            ..Taken::default()
        };
        let reading = Reading::new(Instant::now(), read);
        assert_eq!(
            reading.figures("shop"),
            Some([1, 2, 3, 4, -1, 6, 2, 8, 9, 10, i64::MAX, 12, 13, 14, 15, 16])
        );
        let alone = reading.figures("alone").unwrap();
        assert_eq!((alone[0], alone[11]), (5, 5), "the tree of one is itself");
        assert_eq!(reading.figures("nobody"), None);
        assert_eq!(reading.name_of(PurseId::new(3)), Some("shop"));
        assert_eq!(reading.name_of(PurseId::UNACCOUNTED), Some(UNACCOUNTED));
        assert_eq!(reading.name_of(PurseId::new(4)), None);
    }
}
