use std::sync::{Mutex, MutexGuard};

use super::*;
use crate::core::Setup;
use crate::counted_since::classes::OfClasses;
use crate::holdings::EpochTimes;
use crate::ledger::Exact;
use crate::ledger::watched::during_scans;

/// Accounts without a JVM, and a policy lock.
struct World {
    core: Core,
    /// Which policy is in force.
    policy: Mutex<()>,
}

impl World {
    fn new() -> World {
        World {
            core: Core::with_purses(Setup::of_test(100), 10),
            policy: Mutex::new(()),
        }
    }

    fn policy(&self) -> (MutexGuard<'_, ()>, PolicyStatus) {
        (self.policy.lock().unwrap(), PolicyStatus::default())
    }

    /// A scope of that name outside of any service, and its purse.
    fn scope(&self, name: &str) -> PurseId {
        let purse = self.core.ledger.open_purse().expect("room");
        let mut directory = self.core.directory();
        directory.enter_scope(
            purse,
            name.to_owned(),
            crate::identity::loaders::LoaderId::BOOT,
        );
        purse
    }

    fn charge(&self, payer: PurseId, size_bytes: u64) -> crate::ledger::ObjectTag {
        self.core.ledger.charge_to(payer, size_bytes)
    }

    /// Plays a collection that frees nothing.
    fn collect(&self) {
        let epochs = self.core.ledger.epochs();
        let epoch = epochs.current();
        epochs.gc_finished();
        epochs.died(epoch);
        epochs.confirm(epoch);
    }
}

fn account<'a>(read: &'a Read, name: &str) -> &'a Account {
    let found = read.accounts.iter().find(|account| account.name == name);
    found.unwrap_or_else(|| panic!("no account {name}"))
}

#[test]
fn no_lock_is_held_while_records_are_passed_over() {
    // The check inside the scan must own what it looks at.
    let world: &'static World = Box::leak(Box::new(World::new()));
    let purse = world.scope("a");
    world.charge(purse, 1 << 20);
    world.collect();
    let look = || {
        assert!(world.core.try_directory().is_some(), "the directory's");
        assert!(world.policy.try_lock().is_ok(), "the policy's");
        assert!(
            world.core.enforcement.try_statuses().is_some(),
            "the cases'"
        );
    };
    let mut read = None;
    let passes = during_scans(look, || {
        read = Some(read_accounts(&world.core, None, || world.policy()))
    });
    assert_eq!(passes, 1);
    let read = read.expect("it was taken");
    let charged = world.core.ledger.totals(purse).charged.bytes;
    assert_eq!(account(&read, "a").live_bytes, charged);
    assert_eq!(read.live_of_purses[&purse].bytes, charged);
    assert_eq!(&*read.names[&purse], "a");
}

/// A purse may be closed while a reading counts, and its number may get a new owner, who must not get
/// the counts.
#[test]
fn a_reading_drops_counts_under_numbers_given_back_meanwhile() {
    let world: &'static World = Box::leak(Box::new(World::new()));
    let purse = world.scope("old");
    let tag = world.charge(purse, 1 << 20);
    world.collect();
    // Between the scan and its end: the object dies, and its purse is closed and opened again.
    let counting = world.core.directory().begin_counting();
    let mut counted = count(
        &world.core.ledger,
        None,
        OfClasses::default(),
        0,
        EpochTimes::default(),
        None,
    );
    assert!(world.core.ledger.refund(tag));
    let referenced = world.core.ledger.referenced_purses();
    let closed = world
        .core
        .ledger
        .close_purse(purse, &referenced)
        .expect("empty");
    world
        .core
        .directory()
        .close_purse(purse, 0, 0, Exact::default());
    world.core.ledger.give_back(closed);
    let next = world.scope("new");
    assert_eq!(next, purse, "the number goes to the next");
    world.charge(next, 2 << 20);
    let seen = look(&world.core, &mut counted, counting, || world.policy());
    assert!(counted.groups.is_empty(), "{:?}", counted.groups);
    assert!(counted.tally.rows.is_empty(), "{:?}", counted.tally.rows);
    assert!(!counted.allocated.contains_key(&purse));
    let new = seen.accounts.iter().find(|seen| &*seen.name == "new");
    assert!(new.expect("it is there").account.charged_bytes > 0);
}

/// Classes have what was counted of them beside their samples, and live bytes by ratio where there are enough.
#[test]
fn counts_of_classes_stand_beside_their_samples() {
    let world = World::new();
    let purse = world.scope("a");
    let exact = |bytes, objects| Exact { bytes, objects };
    world.charge(purse, 3 << 20);
    let since = &world.core.counted_since;
    since.count_classes([(purse, UNKNOWN.into(), exact(7 << 20, 7))]);
    world.collect();
    let read = read_accounts(&world.core, None, || world.policy());
    let before = account(&read, "a").live_bytes as f64;
    since.begin(&world.core.ledger);
    for _ in 0..40 {
        world.charge(purse, 1 << 20);
    }
    since.count_classes([
        (purse, UNKNOWN.into(), exact(44 << 20, 44)),
        (purse, "com.acme.Cart".into(), exact(24, 1)),
    ]);
    since.gathered(&world.core.ledger);
    world.collect();
    let read = read_accounts(&world.core, None, || world.policy());
    let classes = &account(&read, "a").classes;
    let of = |name: &str| {
        let found = classes.iter().find(|class| class.class == name);
        found.unwrap_or_else(|| panic!("no class {name}"))
    };
    assert_eq!(of(UNKNOWN).exact, Some(exact(51 << 20, 51)));
    assert_eq!(of("com.acme.Cart").exact, Some(exact(24, 1)));
    assert_eq!(of("com.acme.Cart").live_by_ratio, None);
    // All that was counted since lives, and what samples say of before.
    let live = of(UNKNOWN).live_by_ratio.expect("40 samples are enough");
    let expected = before + f64::from(44 << 20);
    assert!((live.bytes - expected).abs() < 1.0, "{live:?}, {expected}");
    assert!(live.standard_error_bytes < 2.0 * of(UNKNOWN).live_standard_error_bytes);
    // Switched off, counts stay and there is no ratio.
    since.end();
    let read = read_accounts(&world.core, None, || world.policy());
    let class = &account(&read, "a").classes[0];
    assert_eq!(
        (class.exact, class.live_by_ratio),
        (Some(exact(51 << 20, 51)), None)
    );
}
