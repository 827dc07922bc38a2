//! The cap, the sums, and counters that never fall.

use policy_core::usage::Usage;
use proptest::prelude::*;

use super::super::Principal;
use super::*;

fn account(name: impl Into<String>, live_bytes: u64) -> Account {
    Account {
        name: name.into(),
        kind: Kind::Scope,
        live_bytes,
        allocated_bytes_total: 10 * live_bytes,
        ..Account::default()
    }
}

fn names<'a>(folded: &'a Folded<'_>) -> Vec<&'a str> {
    folded.accounts.iter().map(|a| a.name.as_str()).collect()
}

fn other<'a>(folded: &'a Folded<'_>) -> &'a Account {
    let found = folded.accounts.iter().find(|a| a.name == OTHER);
    found.expect("_other is published")
}

#[test]
fn nothing_is_folded_up_to_the_cap() {
    let accounts = [account("b", 1), account("a", 2)];
    let folded = Folder::new(2).fold(&accounts);
    assert_eq!(names(&folded), ["a", "b"]);
    assert_eq!(folded.accounts_folded, 0);
    assert!(matches!(folded.accounts[0], Cow::Borrowed(_)));
}

#[test]
fn an_account_of_direct_buffers_alone_is_not_a_small_one() {
    let mut pool = account("pool", 0);
    pool.usage = [(Resource::Threads, u64::MAX), (Resource::Direct, 50)]
        .map(|(resource, used)| Usage { resource, used })
        .into();
    let accounts = [account("large", 100), account("small", 40), pool];
    let folded = Folder::new(3).fold(&accounts);
    assert_eq!(names(&folded), ["large", "pool", "small"]);
    let folded = Folder::new(2).fold(&accounts);
    assert_eq!(names(&folded), [OTHER, "large"]);
    let mut more = accounts.to_vec();
    more.push(account("tiny", 1));
    let folded = Folder::new(3).fold(&more);
    assert_eq!(names(&folded), [OTHER, "large", "pool"]);
}

#[test]
fn beyond_the_cap_the_smallest_make_up_other() {
    let mut small = account("small", 1);
    small.standard_error_bytes = 3.0;
    small.live_standard_error_bytes = 6.0;
    small.refusals_total = 2;
    small.admission_refusals_total = 3;
    small.threads_killed_total = 1;
    small.wait_milliseconds_total = 30;
    small.door = DoorState::Shut;
    small.deferred = vec![("clinit", 5)];
    let mut tiny = account("tiny", 0);
    tiny.standard_error_bytes = 4.0;
    tiny.live_standard_error_bytes = 8.0;
    tiny.state = State::Over;
    tiny.admission_refusals_total = 4;
    tiny.threads_killed_total = 5;
    tiny.wait_milliseconds_total = 40;
    tiny.door = DoorState::Open;
    tiny.deferred = vec![("clinit", 1), ("lock", 1)];
    let accounts = [small, account("large", 100), tiny, account("medium", 10)];
    let folded = Folder::new(3).fold(&accounts);
    assert_eq!(names(&folded), [OTHER, "large", "medium"]);
    assert_eq!(folded.accounts_folded, 2);
    let other = other(&folded);
    assert_eq!((other.live_bytes, other.allocated_bytes_total), (1, 10));
    assert_eq!(other.standard_error_bytes, 5.0);
    assert_eq!(other.live_standard_error_bytes, 10.0);
    assert_eq!((other.kind, other.state), (Kind::Reserved, State::Over));
    assert_eq!(other.refusals_total, 2);
    assert_eq!(other.admission_refusals_total, 7);
    assert_eq!(other.threads_killed_total, 6);
    assert_eq!(other.wait_milliseconds_total, 70);
    assert_eq!(other.door, DoorState::Shut);
    assert_eq!(other.deferred, [("clinit", 6), ("lock", 1)]);
}

/// Sets counters and sums to a number of their own, times another.
macro_rules! set {
    ($account:ident $times:ident $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$fold:ident $($row:tt)*] $help:literal;
    )*})*) => {
        let mut own = 0;
        $($(
            own += 1;
            set_figure!($fold $account.$key, own * $times);
        )*)*
        assert!(own > 10);
    };
}

macro_rules! set_figure {
    (counter $figure:expr, $number:expr) => {
        $figure.add(Some($number));
    };
    (sum $figure:expr, $number:expr) => {
        $figure = $number;
    };
    ($fold:ident $figure:expr, $number:expr) => {};
}

#[test]
fn every_counter_of_an_account_is_in_other() {
    let account = |name: &str, kind: Kind, times: u64| {
        let mut account = Account {
            name: name.to_owned(),
            kind,
            deferred: vec![("clinit", 14 * times)],
            ..Account::default()
        };
        account_figures!(set! account times);
        account
    };
    let accounts = [account("a", Kind::Scope, 1), account("b", Kind::Scope, 2)];
    let folded = Folder::new(1).fold(&accounts);
    assert_eq!(*other(&folded), account(OTHER, Kind::Reserved, 3));
    // Two accounts of one name are one: names are clipped.
    let accounts = [account("a", Kind::Scope, 1), account("a", Kind::Scope, 2)];
    let folded = Folder::new(2).fold(&accounts);
    assert_eq!(*folded.accounts[0], account("a", Kind::Scope, 3));
}

#[test]
fn reserved_and_limited_accounts_are_kept_before_large_ones() {
    let mut limited = account("limited", 0);
    limited.limit_bytes = Some(1);
    let mut unaccounted = account("_unaccounted", 0);
    unaccounted.kind = Kind::Reserved;
    let accounts = [account("large", 100), limited, unaccounted];
    let folded = Folder::new(3).fold(&accounts);
    assert_eq!(folded.accounts_folded, 0);
    let accounts = [&accounts[..], &[account("larger", 200)]].concat();
    let folded = Folder::new(3).fold(&accounts);
    assert_eq!(names(&folded), [OTHER, "_unaccounted", "limited"]);
    assert_eq!(folded.accounts_folded, 2);
}

#[test]
fn an_existing_other_keeps_its_own_and_takes_one_place() {
    let mut own = account(OTHER, 7);
    own.kind = Kind::Reserved;
    let accounts = [account("a", 3), account("b", 2), account("c", 1), own];
    let folded = Folder::new(2).fold(&accounts);
    assert_eq!(names(&folded), [OTHER, "a"]);
    assert_eq!(other(&folded).live_bytes, 7 + 2 + 1);
    assert_eq!(other(&folded).allocated_bytes_total, 100);
}

#[test]
fn counters_of_other_do_not_fall_when_an_account_grows_out_of_it() {
    let mut folder = Folder::new(2);
    let folded = folder.fold_owned(&[("a", 5), ("b", 4), ("c", 3)]);
    assert_eq!(
        folded,
        [(OTHER, 70), ("a", 50)].map(|(n, t)| (n.to_owned(), t))
    );
    // c overtakes a: a is folded from now on, and had been seen at 50.
    let folded = folder.fold_owned(&[("a", 5), ("b", 4), ("c", 9)]);
    assert_eq!(
        folded,
        [(OTHER, 70), ("c", 90)].map(|(n, t)| (n.to_owned(), t))
    );
    // The counts that b gains while it is folded show; those that a had before do not.
    let folded = folder.fold_owned(&[("a", 5), ("b", 6), ("c", 9)]);
    assert_eq!(
        folded,
        [(OTHER, 90), ("c", 90)].map(|(n, t)| (n.to_owned(), t))
    );
    // Even with everything gone the counter stands.
    assert_eq!(folder.fold_owned(&[]), [(OTHER.to_owned(), 90)]);
}

impl Folder {
    fn fold_owned(&mut self, accounts: &[(&str, u64)]) -> Vec<(String, u64)> {
        let accounts: Vec<_> = accounts.iter().map(|&(n, l)| account(n, l)).collect();
        let folded = self.fold(&accounts);
        let rows = folded.accounts.iter();
        rows.map(|a| (a.name.clone(), a.allocated_bytes_total))
            .collect()
    }
}

#[test]
fn accounts_of_one_name_are_merged() {
    let long = |end: &str| "x".repeat(MAX_NAME_BYTES) + end;
    let accounts = [
        account("twice", 1),
        account("twice", 2),
        account(long("a"), 1),
        account(long("b"), 1),
    ];
    let folded = Folder::new(10).fold(&accounts);
    assert_eq!(folded.accounts.len(), 2);
    let twice = &folded.accounts[0];
    assert_eq!((twice.live_bytes, twice.allocated_bytes_total), (3, 30));
    assert_eq!(folded.accounts_folded, 0);
}

#[test]
fn the_matrix_uses_published_names_and_keeps_its_sum() {
    let principal = |name: &str, live_bytes| Principal {
        name: name.to_owned(),
        live_bytes,
    };
    let mut large = account("large", 100);
    large.principals = vec![principal("small", 30), principal("gone", 1)];
    let mut small = account("small", 10);
    small.principals = vec![principal("large", 7), principal("small", 2)];
    let accounts = [large, small, account("tiny", 1)];
    let folded = Folder::new(2).fold(&accounts);
    let cell = |p: &'static str, a: &'static str, live_bytes| Pair {
        principal: p.into(),
        agent: a.into(),
        live_bytes,
    };
    let expected = [
        cell(OTHER, OTHER, 2),
        cell(OTHER, "large", 31),
        cell("large", OTHER, 7),
    ];
    assert_eq!(folded.pairs, expected);
}

#[test]
fn the_matrix_is_capped_and_keeps_its_sum() {
    let names: Vec<String> = (0..60).map(|i| format!("t{i}")).collect();
    let accounts: Vec<Account> = names
        .iter()
        .map(|name| Account {
            principals: names
                .iter()
                .enumerate()
                .map(|(i, name)| Principal {
                    name: name.clone(),
                    live_bytes: i as u64,
                })
                .collect(),
            ..account(name.as_str(), 1)
        })
        .collect();
    let folded = Folder::new(100).fold(&accounts);
    assert_eq!(folded.pairs.len(), MAX_PRINCIPAL_PAIRS + 1);
    let sum: u64 = folded.pairs.iter().map(|pair| pair.live_bytes).sum();
    assert_eq!(sum, 60 * (0..60).sum::<u64>());
}

proptest! {
    #[test]
    fn folding_keeps_sums_and_the_cap(
        lives in proptest::collection::vec((0u64..1000, 0u8..40), 0..60),
        cap in 1usize..50,
    ) {
        let accounts: Vec<_> =
            lives.iter().map(|&(live, name)| account(format!("t{name}"), live)).collect();
        let folded = Folder::new(cap).fold(&accounts);
        prop_assert!(folded.accounts.len() <= cap);
        let sum = |get: fn(&Account) -> u64| folded.accounts.iter().map(|a| get(a)).sum::<u64>();
        let live: u64 = lives.iter().map(|(live, _)| live).sum();
        prop_assert_eq!(sum(|a| a.live_bytes), live);
        prop_assert_eq!(sum(|a| a.allocated_bytes_total), 10 * live);
    }

    #[test]
    fn clipped_names_fit_and_begin_alike(name in "\\PC{0,200}") {
        let clipped = clip(&name);
        prop_assert!(clipped.len() <= MAX_NAME_BYTES);
        prop_assert!(name.starts_with(clipped.trim_end_matches('…')) || name == clipped);
    }
}
