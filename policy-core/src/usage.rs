//! Resources that accounts use beside the heap, each counted by purse, by a room of the agent.
//!
//! A room counts anew from time to time and leaves the whole count here; a reading sums it up by account, as it does
//! with charges. A count is as old as its room's last look. When a purse ends its amounts are forgotten: the next owner
//! of the number must not find them.
//!
//! A further resource is a variant of [`Resource`], a room that counts it, and its metric in `policy-report`'s
//! catalogue: the compiler asks for the rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ledger::PurseId;
use crate::native_memory::gates::Beyond;

/// A resource that accounts use beside the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Live platform threads.
    Threads,
    /// Bytes of direct buffers.
    Direct,
    /// Bytes that Java code has taken otherwise off the heap: by arenas, and by `Unsafe.allocateMemory` itself.
    Native,
}

impl Resource {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Resource; 3] = [Resource::Threads, Resource::Direct, Resource::Native];

    /// Its name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Threads => "threads",
            Resource::Direct => "direct",
            Resource::Native => "native",
        }
    }
}

/// An amount that an account uses of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of which.
    pub resource: Resource,
    /// How much, in the resource's unit.
    pub used: u64,
}

/// A live thread of an undeployed version of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftThread {
    /// Its name, which a tenant has chosen.
    pub name: String,
    /// Whether it lets the JVM end.
    pub is_daemon: bool,
    /// The method that it is in: the uppermost one that is not the JDK's, if there is one. `None`: it shows none.
    pub runs: Option<String>,
}

/// Threads of undeployed versions that are shown of one account.
pub const MAX_SHOWN_OF_ACCOUNT: usize = 16;

/// Amounts by purse.
pub type ByPurse = HashMap<PurseId, u64>;

/// The limit of an account on native memory, and what was refused for its sake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitOf {
    /// The most bytes that it may have.
    pub limit_bytes: u64,
    /// Blocks that were refused since it has a limit.
    pub refusals_total: u64,
    /// Blocks that would have been, but were given: the policy only observes.
    pub would_refuse_total: u64,
    /// Blocks that were given although one was due, because an error would have done harm at the place.
    pub deferred_total: u64,
    /// For how long threads have waited for a verdict, in milliseconds.
    pub waited_ms: u64,
}

/// The latest count of each resource. Agent threads.
#[derive(Debug, Default)]
pub struct Usages {
    latest: Mutex<Latest>,
}

#[derive(Debug, Clone, Default)]
struct Latest {
    counts: [Option<Arc<ByPurse>>; Resource::ALL.len()],
    left: Arc<LeftBehind>,
    /// By account.
    direct_limits: Arc<HashMap<Arc<str>, LimitOf>>,
}

/// The threads of undeployed versions of services.
#[derive(Debug, Clone, Default)]
pub struct LeftBehind {
    /// How many there are.
    pub count: ByPurse,
    /// Those that are shown.
    pub threads: Vec<(PurseId, LeftThread)>,
}

impl Usages {
    /// Leaves the count of a resource, which replaces the one before.
    pub fn counted(&self, resource: Resource, count: ByPurse) {
        self.latest().counts[resource as usize] = Some(Arc::new(count));
    }

    /// Leaves the threads of undeployed versions, which replace those of before.
    pub fn found_left(&self, left: LeftBehind) {
        self.latest().left = Arc::new(left);
    }

    /// Leaves the limits on native memory, by account. What was refused before still counts for accounts that keep one.
    pub fn limit_direct(&self, limits: impl Iterator<Item = (Arc<str>, u64)>) {
        let latest = &mut *self.latest();
        let before = &latest.direct_limits;
        let limits = limits.map(|(account, limit_bytes)| {
            let known = before.get(&account).copied().unwrap_or_default();
            let now = LimitOf {
                limit_bytes,
                ..known
            };
            (account, now)
        });
        latest.direct_limits = Arc::new(limits.collect());
    }

    /// So much was beyond the limit of an account on native memory, since this was last told.
    pub fn refused(&self, account: &str, beyond: Beyond) {
        if beyond == Beyond::default() {
            return;
        }
        let latest = &mut *self.latest();
        if let Some(limit) = Arc::make_mut(&mut latest.direct_limits).get_mut(account) {
            limit.refusals_total += beyond.refused;
            limit.would_refuse_total += beyond.observed;
            limit.deferred_total += beyond.deferred;
            limit.waited_ms += beyond.waited_ms;
        }
    }

    /// A purse has ended.
    pub fn closed(&self, purse: PurseId) {
        let latest = &mut *self.latest();
        for count in latest.counts.iter_mut().flatten() {
            if count.contains_key(&purse) {
                Arc::make_mut(count).remove(&purse);
            }
        }
        if latest.left.count.contains_key(&purse) {
            let left = Arc::make_mut(&mut latest.left);
            left.count.remove(&purse);
            left.threads.retain(|(of, _)| *of != purse);
        }
    }

    /// All counts as they are now.
    pub fn read(&self) -> Reading {
        Reading(self.latest().clone())
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of one moment.
#[derive(Debug)]
pub struct Reading(Latest);

impl Reading {
    /// The amounts that these purses use together, of each resource that was ever counted.
    pub fn of(&self, purses: &[PurseId]) -> Vec<Usage> {
        let counts = Resource::ALL.into_iter().zip(&self.0.counts);
        counts
            .filter_map(|(resource, count)| {
                Some(Usage {
                    resource,
                    used: sum(count.as_ref()?, purses),
                })
            })
            .collect()
    }

    /// The limit of an account on native memory, if it has one.
    pub fn direct_limit(&self, account: &str) -> Option<LimitOf> {
        self.0.direct_limits.get(account).copied()
    }

    /// How many threads undeployed versions with these purses have.
    pub fn count_left_behind(&self, purses: &[PurseId]) -> u64 {
        sum(&self.0.left.count, purses)
    }

    /// Those of them that are shown, at most [`MAX_SHOWN_OF_ACCOUNT`].
    pub fn left_threads(&self, purses: &[PurseId]) -> Vec<LeftThread> {
        let of_purses = |(purse, _): &&(PurseId, LeftThread)| purses.contains(purse);
        let threads = self.0.left.threads.iter().filter(of_purses);
        let threads = threads.map(|(_, thread)| thread.clone());
        threads.take(MAX_SHOWN_OF_ACCOUNT).collect()
    }
}

fn sum(count: &ByPurse, purses: &[PurseId]) -> u64 {
    let used = purses.iter().filter_map(|purse| count.get(purse));
    used.fold(0, |sum, used| sum.saturating_add(*used))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: PurseId = PurseId::new(1);
    const ROUTE: PurseId = PurseId::new(2);
    const ORDERS: PurseId = PurseId::new(3);

    fn threads(used: u64) -> Vec<Usage> {
        vec![Usage {
            resource: Resource::Threads,
            used,
        }]
    }

    #[test]
    fn an_account_uses_what_its_purses_do_and_the_latest_count_holds() {
        let usages = Usages::default();
        assert_eq!(usages.read().of(&[SHOP]), [], "nobody has counted");
        usages.counted(
            Resource::Threads,
            [(SHOP, 3), (ROUTE, 2), (ORDERS, 7)].into(),
        );
        let before = usages.read();
        usages.counted(Resource::Threads, [(SHOP, 4)].into());
        assert_eq!(before.of(&[SHOP, ROUTE]), threads(5));
        assert_eq!(usages.read().of(&[SHOP, ROUTE]), threads(4));
        assert_eq!(usages.read().of(&[ORDERS]), threads(0), "none any more");
    }

    #[test]
    fn threads_that_were_left_are_those_of_the_purses() {
        let usages = Usages::default();
        let poller = LeftThread {
            name: "poller".to_owned(),
            ..LeftThread::default()
        };
        usages.found_left(LeftBehind {
            count: [(SHOP, 2), (ORDERS, 1)].into(),
            threads: vec![(SHOP, poller.clone())],
        });
        assert_eq!(usages.read().left_threads(&[ROUTE, SHOP]), [poller]);
        assert_eq!(usages.read().left_threads(&[ORDERS]), []);
        assert_eq!(usages.read().count_left_behind(&[ROUTE, SHOP]), 2);
        usages.found_left(LeftBehind::default());
        assert_eq!(usages.read().left_threads(&[SHOP]), []);
        assert_eq!(usages.read().count_left_behind(&[SHOP]), 0);
    }

    #[test]
    fn several_versions_of_an_account_show_no_more_than_one() {
        let usages = Usages::default();
        let of = |purse| (0..10).map(move |_| (purse, LeftThread::default()));
        usages.found_left(LeftBehind {
            count: [(SHOP, 10), (ROUTE, 10)].into(),
            threads: of(SHOP).chain(of(ROUTE)).collect(),
        });
        let shown = usages.read().left_threads(&[SHOP, ROUTE]);
        assert_eq!(shown.len(), MAX_SHOWN_OF_ACCOUNT);
    }

    /// Its number is soon another account's.
    #[test]
    fn a_purse_that_has_ended_uses_nothing() {
        let usages = Usages::default();
        usages.counted(Resource::Threads, [(SHOP, 3), (ORDERS, 7)].into());
        let left = |purse| (purse, LeftThread::default());
        usages.found_left(LeftBehind {
            count: [(SHOP, 2), (ORDERS, 1)].into(),
            threads: vec![left(SHOP), left(ORDERS)],
        });
        let before = usages.read();
        usages.closed(SHOP);
        assert_eq!(before.of(&[SHOP]), threads(3), "a reading is of its moment");
        let now = usages.read();
        assert_eq!(now.of(&[SHOP]), threads(0));
        assert_eq!(now.of(&[ORDERS]), threads(7));
        assert_eq!(now.count_left_behind(&[SHOP, ORDERS]), 1);
        assert_eq!(now.left_threads(&[SHOP]), []);
        assert_eq!(now.left_threads(&[ORDERS]).len(), 1);
    }

    #[test]
    fn what_was_refused_counts_while_an_account_has_a_limit() {
        let usages = Usages::default();
        let shop: Arc<str> = "shop".into();
        let beyond = Beyond {
            refused: 2,
            observed: 1,
            deferred: 4,
            waited_ms: 30,
        };
        usages.refused("shop", beyond);
        assert_eq!(usages.read().direct_limit("shop"), None);
        let refused = |usages: &Usages, limit_bytes| {
            usages.limit_direct([(shop.clone(), limit_bytes)].into_iter());
            usages.refused("shop", beyond);
            usages.read().direct_limit("shop")
        };
        let expected = |limit_bytes, times| LimitOf {
            limit_bytes,
            refusals_total: 2 * times,
            would_refuse_total: times,
            deferred_total: 4 * times,
            waited_ms: 30 * times,
        };
        assert_eq!(refused(&usages, 100), Some(expected(100, 1)));
        assert_eq!(refused(&usages, 50), Some(expected(50, 2)), "lowered");
        usages.limit_direct([].into_iter());
        assert_eq!(usages.read().direct_limit("shop"), None);
        assert_eq!(refused(&usages, 50), Some(expected(50, 1)), "a new one");
    }

    #[test]
    fn each_resource_has_its_place_and_a_name_of_its_own() {
        for (place, resource) in Resource::ALL.into_iter().enumerate() {
            assert_eq!(resource as usize, place);
            let same = Resource::ALL
                .iter()
                .filter(|one| one.name() == resource.name());
            assert_eq!(same.count(), 1);
        }
    }
}
