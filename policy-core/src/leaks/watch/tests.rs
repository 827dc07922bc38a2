//! The whole way from records to the report, on accounts without a JVM.

use super::*;
use crate::core::Setup;
use crate::identity::classes::ClassId;
use crate::identity::loaders::LoaderId;
use crate::ledger::{Epoch, Sample};

struct World {
    core: Core,
    watch: Watch,
    now_ms: u64,
}

impl World {
    fn new() -> World {
        let core = Core::with_purses(Setup::of_test(200_000), 10);
        core.ledger.intervals().set(0).expect("room");
        core.heap.set_max_bytes(1 << 30);
        World {
            core,
            watch: Watch::default(),
            now_ms: 0,
        }
    }

    fn account(&self, name: &str) -> PurseId {
        let purse = self.core.ledger.open_purse().expect("room");
        let mut directory = self.core.directory();
        directory.enter_scope(purse, name.to_owned(), LoaderId::BOOT);
        purse
    }

    fn class(&self, number: u32, name: &str) {
        self.core
            .directory()
            .name_class(ClassId(number), name.to_owned());
    }

    fn charge(&self, payer: PurseId, class: u32, size_bytes: u64) {
        let sample = Sample {
            class,
            ..Sample::of(payer, size_bytes, self.core.ledger.intervals().current())
        };
        self.core.ledger.charge(&sample).expect("room");
    }

    /// Two seconds pass and a collection ends; a covering one frees nothing either.
    fn step(&mut self, is_covering: bool) -> bool {
        self.now_ms += 2_000;
        let epochs = self.core.ledger.epochs();
        let before: Epoch = epochs.current();
        epochs.gc_finished();
        epochs.confirm(before);
        if is_covering {
            epochs.confirm_cover(before);
        }
        (self.core.holdings).note(epochs.current(), epochs.covered(), self.now_ms)
    }

    /// Leaks until so many seconds after the start, with a collection of old memory whenever the watch asks.
    /// Returns how often it did, and the lines for the log.
    fn leak(&mut self, seconds: u64, purse: PurseId, policy: &Policy) -> (u32, Lines) {
        let (mut asked, mut lines) = (0, Lines::new());
        while self.now_ms < seconds * 1_000 {
            for _ in 0..2 {
                self.charge(purse, 1, 100);
                self.charge(purse, 2, 1_000);
            }
            self.watch.peek(&self.core, self.now_ms);
            let wants = self.core.leaks.wants_cover();
            asked += u32::from(wants);
            if self.step(wants) {
                let pass = Pass::take(&self.core, self.now_ms);
                lines.extend(self.watch.took(&self.core, &pass, policy));
            }
        }
        (asked, lines)
    }
}

fn policy(text: &str) -> Policy {
    policy_config::parse(text).policy.expect("it is valid")
}

#[test]
fn a_leak_asks_for_the_collections_it_needs_is_reported_and_forecast() {
    let mut world = World::new();
    let (shop, steady) = (world.account("shop"), world.account("steady"));
    world.class(1, "com.acme.Session");
    world.class(2, "byte[]");
    world.class(3, "com.acme.Catalogue");
    for _ in 0..500 {
        world.charge(steady, 3, 1_000);
    }
    assert!(world.core.leaks.report().undecided.is_some());
    let (asked, lines) = world.leak(400, shop, &policy(""));
    assert!((3..=12).contains(&asked), "{asked}");
    let report = world.core.leaks.report();
    assert_eq!(report.undecided, None);
    let [suspect] = &report.suspects[..] else {
        panic!("{report:#?}")
    };
    assert_eq!(
        (&*suspect.account, &*suspect.class),
        ("shop", "com.acme.Session")
    );
    assert_eq!(suspect.with, ["byte[]"]);
    assert_eq!(suspect.rows, [(shop, 1)]);
    // Two of each in two seconds.
    let growth = suspect.growth_bytes_per_second;
    assert!((growth - 1_100.0).abs() < 150.0, "{growth}");
    let full = suspect.exhausts.expect("a forecast");
    let truth = f64::from(1u32 << 30) / 1_100.0;
    assert_eq!(full.what, "heap");
    assert!(full.earliest_seconds < truth && full.latest_seconds.is_none_or(|l| l > truth * 0.9));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("leak suspected: com.acme.Session (with byte[]) of account shop"));
    assert!(world.core.sites.wants(shop, 1), "stacks are taken of it");
    assert!(!world.core.sites.wants(steady, 3));
}

#[test]
fn an_acknowledged_leak_is_measured_and_not_reported_and_a_reload_is_enough() {
    let mut world = World::new();
    let shop = world.account("shop");
    world.class(1, "com.acme.Session");
    world.class(2, "byte[]");
    let (_, lines) = world.leak(300, shop, &policy(""));
    assert_eq!(lines.len(), 1);
    let known = policy("[[leak]]\naccount = \"shop\"\nclass = \"com.acme.*\"\n");
    world.now_ms += REFRESH_MS;
    let lines = world.watch.refresh(&world.core, &known, world.now_ms);
    assert!(
        lines
            .iter()
            .all(|line| line.ends_with("the policy acknowledges it")),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 1);
    let check = |world: &World| {
        let report = world.core.leaks.report();
        assert!(report.suspects.is_empty(), "{report:#?}");
        assert_eq!(&*report.acknowledged[0].class, "com.acme.Session");
    };
    check(&world);
    let (_, lines) = world.leak(600, shop, &known);
    assert!(lines.is_empty(), "{lines:?}");
    check(&world);
}

#[test]
fn nothing_is_asked_for_while_nothing_grows_or_the_budget_is_none() {
    let mut world = World::new();
    let shop = world.account("shop");
    world.class(1, "com.acme.Catalogue");
    for _ in 0..500 {
        world.charge(shop, 1, 1_000);
    }
    let mut asked = 0;
    while world.now_ms < 4 * 3_600_000 {
        world.watch.peek(&world.core, world.now_ms);
        let wants = world.core.leaks.wants_cover();
        asked += u32::from(wants);
        if world.step(wants) {
            let pass = Pass::take(&world.core, world.now_ms);
            world.watch.took(&world.core, &pass, &policy(""));
        }
    }
    // Once, to know what it holds.
    assert!(asked <= 2, "{asked}");

    let mut world = World::new();
    let shop = world.account("shop");
    world.class(1, "com.acme.Session");
    world.core.enforcement.set_evidence_share(0.0);
    assert_eq!(world.leak(300, shop, &policy("")).0, 0);
}
