//! Places of two snapshots: matched by their line, and subtracted by birth.

use policy_report::{Account, AccountSites, Class, Cohort, Run, Sites};

use super::*;

/// A place: its frames, live bytes, stacks, and its cohorts as epoch, bytes and variance.
type Place<'a> = (&'a [&'static str], u64, u64, &'a [(u64, u64, u64)]);

fn snapshot(run: &'static str, ends: &[u64], places: &[Place<'_>]) -> Snapshot<'static> {
    let site = |&(frames, live_bytes, stacks, cohorts): &Place<'_>| Site {
        frames: frames.iter().map(|&frame| frame.into()).collect(),
        live_bytes,
        stacks,
        cohorts: cohorts
            .iter()
            .map(|&(upto_epoch, live_bytes, variance)| Held {
                upto_epoch,
                records: 1,
                live_bytes,
                live_objects: 1,
                variance,
            })
            .collect(),
        ..Site::default()
    };
    Snapshot {
        run: Run {
            id: run.into(),
            ..Run::default()
        },
        variance_unit_bytes2: 1,
        cohorts: ends
            .iter()
            .map(|&upto_epoch| Cohort {
                upto_epoch,
                ..Cohort::default()
            })
            .collect(),
        sites: Sites {
            accounts: vec![AccountSites {
                account: "shop".into(),
                classes: vec![ClassSites {
                    class: "byte[]".into(),
                    sites: places.iter().map(site).collect(),
                    ..ClassSites::default()
                }],
                ..AccountSites::default()
            }],
            ..Sites::default()
        },
        ..Snapshot::default()
    }
}

/// Place, change and error of each.
fn told(found: &SiteChanges) -> Vec<(&str, i64, f64)> {
    let changes = found.changes.iter();
    let told = changes.map(|one| (one.place(), one.change.bytes(), one.change.standard_error()));
    told.collect()
}

#[test]
fn what_both_hold_cancels_and_the_error_is_that_of_what_came_and_went() {
    let old = snapshot(
        "r",
        &[3],
        &[
            (&["a.Cart.add", "a.Web.post"], 400, 4, &[(3, 400, 900)]),
            (&["a.Same.y"], 7, 1, &[(3, 7, 49)]),
            (&["a.Gone.x"], 100, 1, &[(3, 100, 25)]),
        ],
    );
    // The heaviest caller is another one now.
    let new = snapshot(
        "r",
        &[3, 5],
        &[
            (
                &["a.Cart.add", "a.Job.run"],
                900,
                9,
                &[(3, 380, 800), (5, 520, 300)],
            ),
            (&["a.Same.y"], 7, 1, &[(3, 7, 49)]),
        ],
    );
    let found = changes(&old, &new);
    // 900 - 800 went and 300 came.
    assert_eq!(
        told(&found),
        [("a.Cart.add", 500, 20.0), ("a.Gone.x", -100, 5.0)]
    );
    let first = &found.changes[0];
    assert_eq!(first.frames[1], "a.Job.run");
    assert_eq!(
        (first.change.came_bytes, first.change.went_bytes),
        (520, 20)
    );
    assert_eq!(changes(&old, &old), SiteChanges::default());
}

#[test]
fn of_two_runs_both_errors_add_up() {
    let of = |run| snapshot(run, &[3], &[(&["a.Cart.add"], 400, 4, &[(3, 400, 800)])]);
    let found = changes(&of("r"), &of("s"));
    assert_eq!(told(&found), [("a.Cart.add", 0, 40.0)]);
}

#[test]
fn without_cohorts_places_are_known_by_their_stacks() {
    let old = snapshot("r", &[3], &[(&["a.Cart.add"], 400, 4, &[])]);
    let new = snapshot("r", &[3, 5], &[(&["a.Cart.add"], 900, 9, &[(5, 900, 1)])]);
    // (400 / 2)^2 + (900 / 3)^2
    assert_eq!(
        told(&changes(&old, &new)),
        [("a.Cart.add", 500, 130_000f64.sqrt())]
    );
}

#[test]
fn what_a_snapshot_cannot_say_is_counted_and_not_invented() {
    let old = snapshot("r", &[3], &[(&["a.Cart.add"], 400, 4, &[(3, 400, 9)])]);
    let mut new = snapshot("r", &[3, 5], &[]);
    // All places are listed, and it is none of them.
    assert_eq!(told(&changes(&old, &new)), [("a.Cart.add", -400, 3.0)]);
    new.sites.accounts[0].classes[0].sites_omitted = 1;
    let found = changes(&old, &new);
    assert_eq!((found.changes.len(), found.unknown), (0, 1));
    // Stacks are taken no more, and it lives.
    new.sites.accounts.clear();
    new.accounts = vec![Account {
        name: "shop".into(),
        classes: vec![Class {
            class: "byte[]".into(),
            live_bytes: 400,
            ..Class::default()
        }],
        ..Account::default()
    }];
    assert_eq!(changes(&old, &new).unknown, 1);
    new.accounts.clear();
    assert_eq!(told(&changes(&old, &new)), [("a.Cart.add", -400, 3.0)]);
}
