//! The arithmetic against a world whose truth is known: objects that are born, sampled and die.

use policy_core::sampling::charge;
use policy_report::{Cohort, Run, Sampling};
use proptest::prelude::*;

use super::*;

const INTERVAL: u64 = 65_536;
const CLASSES: [&str; 3] = ["com.acme.Session", "byte[]", "java.lang.String"];

/// An object, with the collections before which it is born, and at which it dies.
#[derive(Debug, Clone, Copy)]
struct Object {
    account: usize,
    class: usize,
    size_bytes: u64,
    birth: u64,
    death: u64,
    is_sampled: bool,
}

impl Object {
    fn is_live(&self, at: u64) -> bool {
        self.birth <= at && at < self.death
    }
}

/// Numbers of a seed, the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn world(seed: u64, objects: usize, churn: f64) -> Vec<Object> {
    let mut random = Random(seed);
    let sizes = [48, 1_000, 20_000, 200_000];
    let object = |_| {
        let size_bytes = sizes[random.below(4) as usize];
        let birth = random.below(20);
        let lives = random.chance() >= churn;
        let death = if lives {
            1_000
        } else {
            birth + 1 + random.below(20)
        };
        let p = -(-(size_bytes as f64) / INTERVAL as f64).exp_m1();
        Object {
            account: random.below(2) as usize,
            class: random.below(3) as usize,
            size_bytes,
            birth,
            death,
            is_sampled: random.chance() < p,
        }
    };
    (0..objects).map(object).collect()
}

/// The document of the world after collection `at`, with the ends of earlier snapshots.
fn snapshot(world: &[Object], run: &str, earlier: &[u64], at: u64) -> Snapshot<'static> {
    let mut ends: Vec<u64> = earlier.iter().copied().filter(|&end| end < at).collect();
    ends.push(at);
    let account = |number: usize| {
        let mut classes = Vec::new();
        for (class, name) in CLASSES.iter().enumerate() {
            let mut cohorts: BTreeMap<u64, Held> = BTreeMap::new();
            for object in world {
                if !(object.is_sampled && object.is_live(at))
                    || (object.account, object.class) != (number, class)
                {
                    continue;
                }
                let end = ends[ends.partition_point(|&end| end < object.birth)];
                let held = cohorts.entry(end).or_insert(Held {
                    upto_epoch: end,
                    ..Held::default()
                });
                let charge = charge(object.size_bytes, INTERVAL);
                held.records += 1;
                held.live_bytes += charge.bytes;
                held.live_objects += charge.objects >> 16;
                held.variance += charge.variance;
            }
            let cohorts: Vec<Held> = cohorts.into_values().collect();
            classes.push(Class {
                class: (*name).into(),
                live_bytes: cohorts.iter().map(|held| held.live_bytes).sum(),
                cohorts,
                ..Class::default()
            });
        }
        Account {
            name: format!("account-{number}").into(),
            kind: "service".into(),
            live_bytes: classes.iter().map(|class| class.live_bytes).sum(),
            classes,
            ..Account::default()
        }
    };
    Snapshot {
        heapwarden_snapshot: 1,
        run: Run {
            id: run.to_owned().into(),
            ..Run::default()
        },
        sampling: Sampling {
            interval_bytes: INTERVAL,
            ..Sampling::default()
        },
        variance_unit_bytes2: policy_report::VARIANCE_UNIT_BYTES2,
        cohorts: (ends.iter())
            .map(|&upto_epoch| Cohort {
                upto_epoch,
                ..Cohort::default()
            })
            .collect(),
        accounts: (0..2).map(account).collect(),
        ..Snapshot::default()
    }
}

fn truth(world: &[Object], at: u64) -> f64 {
    let live = world.iter().filter(|object| object.is_live(at));
    live.map(|object| object.size_bytes as f64).sum()
}

/// That parts add up to the whole, in every column.
fn assert_sums(found: &Difference) {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0);
    let mut total = Change::default();
    for account in &found.accounts {
        let mut sum = Change::default();
        for class in &account.classes {
            assert_eq!(
                class.change.bytes(),
                class.change.came_bytes as i64 - class.change.went_bytes as i64,
                "{class:?}"
            );
            sum.add(&class.change);
        }
        assert!(close(sum.variance, account.change.variance), "{account:?}");
        sum.variance = account.change.variance;
        assert_eq!(sum, account.change);
        if found.is_same_run {
            let mut births = Change::default();
            account
                .births
                .iter()
                .for_each(|birth| births.add(&birth.change));
            let unlisted = account.classes.iter().filter(|one| one.class == UNLISTED);
            unlisted.for_each(|one| births.add(&one.change));
            assert_eq!(births.came_bytes, account.change.came_bytes);
            assert_eq!(births.went_bytes, account.change.went_bytes);
            assert_eq!(births.new_bytes, account.change.new_bytes);
            assert_eq!(births.old_bytes, account.change.old_bytes);
        }
        total.add(&account.change);
    }
    total.variance = found.total.variance;
    assert_eq!(total, found.total);
}

#[test]
fn without_a_change_the_difference_is_exactly_zero() {
    for seed in 0..20 {
        let world = world(seed, 2_000, 0.0);
        let old = snapshot(&world, "a", &[3, 7], 20);
        let new = snapshot(&world, "a", &[3, 7, 20], 40);
        let found = difference(&old, &new);
        assert!(found.is_same_run && found.is_cut && found.total.is_none());
        assert_eq!((found.total.bytes(), found.total.variance), (0, 0.0));
        assert!(found.accounts.iter().all(|one| one.change.variance == 0.0));
        assert!(found.total.new_bytes > 0);
        assert_sums(&found);
    }
}

/// The stated error of the difference is the real one: over many worlds z-scores have the mean 0 and the
/// deviation 1. The error of two independent estimates would be far too large.
#[test]
fn the_error_of_the_difference_is_that_of_what_came_and_what_went() {
    const WORLDS: u64 = 2_000;
    let (mut sum, mut squares, mut beyond, mut naive) = (0.0, 0.0, 0, 0.0);
    for seed in 0..WORLDS {
        let world = world(seed, 1_500, 0.3);
        let old = snapshot(&world, "a", &[2, 5], 10);
        let new = snapshot(&world, "a", &[2, 5, 10, 14], 17);
        let found = difference(&old, &new);
        assert!(found.is_cut);
        assert_sums(&found);
        let real = truth(&world, 17) - truth(&world, 10);
        let error = found.total.standard_error();
        let z = (found.total.bytes() as f64 - real) / error;
        sum += z;
        squares += z * z;
        beyond += u32::from(z.abs() > 3.0);
        let variance = |of: &Snapshot<'_>| -> f64 {
            let classes = of.accounts.iter().flat_map(|account| &account.classes);
            let held = classes.flat_map(|class| &class.cohorts);
            held.map(|held| held.variance as f64 * unit(of)).sum()
        };
        naive += (variance(&old) + variance(&new)).sqrt() / error;
    }
    let n = WORLDS as f64;
    let (mean, deviation) = (sum / n, (squares / n).sqrt());
    println!("mean {mean:+.3}, deviation {deviation:.3}, {beyond} of {WORLDS} beyond 3");
    assert!(mean.abs() < 0.12, "{mean}");
    assert!((0.92..1.1).contains(&deviation), "{deviation}");
    assert!(beyond <= 20, "{beyond}");
    assert!(naive / n > 1.3, "{}", naive / n);
}

#[test]
fn of_two_runs_both_errors_add_up() {
    let before = world(1, 1_500, 0.3);
    let after = world(2, 1_500, 0.3);
    let old = snapshot(&before, "a", &[], 10);
    let new = snapshot(&after, "b", &[], 10);
    let found = difference(&old, &new);
    assert!(!found.is_same_run && !found.is_cut);
    assert_sums(&found);
    let accounts = old.accounts.iter().chain(&new.accounts);
    let held = accounts.flat_map(|account| &account.classes);
    let sum: f64 = (held.flat_map(|class| &class.cohorts))
        .map(|held| held.variance as f64 * 256.0)
        .sum();
    assert!((found.total.variance / sum - 1.0).abs() < 1e-9);
    assert!(
        found
            .accounts
            .iter()
            .all(|account| account.births.is_empty())
    );
}

#[test]
fn a_cut_that_is_missing_costs_accuracy_alone() {
    let world = world(3, 1_500, 0.3);
    let old = snapshot(&world, "a", &[2, 5], 10);
    let cut = difference(&old, &snapshot(&world, "a", &[2, 5, 10], 17));
    let joined = difference(&old, &snapshot(&world, "a", &[2, 5], 17));
    let without = difference(&old, &snapshot(&world, "a", &[], 17));
    assert!(cut.is_cut && !joined.is_cut && !without.is_cut);
    for found in [&joined, &without] {
        assert_sums(found);
        assert_eq!(found.total.bytes(), cut.total.bytes());
    }
    assert!(cut.total.variance < joined.total.variance);
    assert!(joined.total.variance < without.total.variance);
}

#[test]
fn what_is_not_listed_is_a_row_and_thinned_arrays_widen_the_error_only_if_something_changed() {
    let world = world(4, 500, 0.0);
    let mut old = snapshot(&world, "a", &[], 20);
    let mut new = snapshot(&world, "a", &[20], 30);
    for one in [&mut old, &mut new] {
        one.accounts[0].live_standard_error_bytes = Some(50 << 20);
    }
    let found = difference(&old, &new);
    assert_eq!(found.total.variance, 0.0);
    new.accounts[0].live_bytes += 1_000_000;
    let found = difference(&old, &new);
    assert_sums(&found);
    let account = &found.accounts[0];
    assert_eq!(account.classes[0].class, UNLISTED);
    assert_eq!(account.change.bytes(), 1_000_000);
    assert!(!account.change.is_significant(), "50 MiB of error twice");
}

#[test]
fn accounts_are_matched_by_name_and_significant_changes_come_first() {
    let class = |live_bytes: u64, variance: u64, upto_epoch: u64| Class {
        class: "A".into(),
        live_bytes,
        cohorts: vec![Held {
            upto_epoch,
            records: 1,
            live_bytes,
            live_objects: 1,
            variance,
        }],
        ..Class::default()
    };
    let account = |name: &'static str, class: Class<'static>| Account {
        name: name.into(),
        live_bytes: class.live_bytes,
        classes: vec![class],
        ..Account::default()
    };
    let run = |id: &'static str, cohorts: &[u64], accounts| Snapshot {
        run: Run {
            id: id.into(),
            ..Run::default()
        },
        variance_unit_bytes2: 1,
        cohorts: (cohorts.iter())
            .map(|&upto_epoch| Cohort {
                upto_epoch,
                ..Cohort::default()
            })
            .collect(),
        accounts,
        ..Snapshot::default()
    };
    let old = run(
        "a",
        &[5],
        vec![
            account("gone", class(10, 1, 5)),
            account("shop", class(7, 9, 5)),
        ],
    );
    // Redeployed: what it held is gone, and it holds the same again.
    let new = run(
        "a",
        &[5, 9],
        vec![
            account("noise", class(1_000, 1_000_000, 9)),
            account("shop", class(7, 9, 9)),
        ],
    );
    let found = difference(&old, &new);
    assert_sums(&found);
    let names: Vec<&str> = found.accounts.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["gone", "noise", "shop"],
        "only the first is significant"
    );
    assert_eq!(found.accounts[0].is_in, [true, false]);
    let shop = &found.accounts[2].change;
    assert_eq!((shop.bytes(), shop.came_bytes, shop.went_bytes), (0, 7, 7));
    assert_eq!(shop.variance, 18.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_add_up_whatever_the_cuts_are(
        seed in any::<u64>(),
        churn in 0.0..1.0f64,
        old_cuts in prop::collection::btree_set(0u64..20, 0..6),
        new_cuts in prop::collection::btree_set(0u64..40, 0..6),
        old_at in 5u64..20,
        later in 0u64..20,
        is_same_run: bool,
    ) {
        let world = world(seed, 300, churn);
        let cuts = |set: &std::collections::BTreeSet<u64>| set.iter().copied().collect::<Vec<_>>();
        let old = snapshot(&world, "a", &cuts(&old_cuts), old_at);
        let run = if is_same_run { "a" } else { "b" };
        let new = snapshot(&world, run, &cuts(&new_cuts), old_at + later);
        let found = difference(&old, &new);
        assert_sums(&found);
        prop_assert_eq!(found.is_same_run, is_same_run);
        let live = |of: &Snapshot<'_>| of.accounts.iter().map(|one| one.live_bytes).sum::<u64>();
        prop_assert_eq!(found.total.old_bytes, live(&old));
        prop_assert_eq!(found.total.new_bytes, live(&new));
        prop_assert!(found.total.variance >= 0.0);
    }
}
