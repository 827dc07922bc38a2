//! Advice from periods made by hand: who is judged, and what comes of it.

use crate::history::{Account, Column, History, Jvm, Kind};
use crate::prometheus::Span;

use super::advice::{Advice, Verdict, advise};
use super::assessment::{Heaps, Settings, assess};
use super::forecast::Missing;

const MIB: f64 = 1_048_576.0;
const DAY: usize = 144;
/// Three days of ten minutes.
const STEPS: usize = 3 * DAY;

const TERMS: Settings = Settings {
    horizon_seconds: 7 * 86_400,
    fill: 0.8,
    allow_short: false,
    max_moves: usize::MAX,
    scopes: false,
};

/// Readings at these steps, of this size and some noise.
fn column(steps: impl Iterator<Item = usize>, mib: f64) -> Column {
    let mut column = Column::default();
    for step in steps {
        // Spread evenly over a hundredth, and never twice alike for long.
        let noise = (step * 7919 % 101) as f64 / 101.0 - 0.5;
        column.put(STEPS, step, mib * MIB * (1.0 + 0.02 * noise));
    }
    column
}

/// The same all the time.
fn constant(bytes: f64) -> Column {
    let mut column = Column::default();
    column.put(STEPS, 0, bytes);
    column
}

fn account(name: &str, kind: Kind, mib: f64) -> Account {
    Account {
        name: name.into(),
        kind,
        live_bytes: column(0..STEPS, mib),
        ..Account::default()
    }
}

/// A JVM of 1 GiB that holds its accounts.
fn jvm(instance: &str, accounts: &[(&str, f64)]) -> Jvm {
    Jvm {
        labels: vec![("instance".into(), instance.into())],
        heap_max_bytes: constant(1024.0 * MIB),
        heap_used_after_gc_bytes: column(0..STEPS, accounts.iter().map(|one| one.1).sum()),
        sampling_interval_bytes: constant(65_536.0),
        accounts: accounts
            .iter()
            .map(|&(name, mib)| account(name, Kind::Service, mib))
            .collect(),
        ..Jvm::default()
    }
}

fn history(jvms: Vec<Jvm>) -> History {
    History {
        source: "a test".into(),
        span: Span::covering(1_800_000_000, 3 * 86_400, 600),
        jvms,
        notes: Vec::new(),
    }
}

fn missing(jvm: Jvm) -> Missing {
    let history = history(vec![jvm]);
    let (assessed, unassessed) = assess(&history, TERMS, &Heaps::default());
    assert!(assessed.is_empty());
    unassessed[0].1
}

fn names(advice: &Advice) -> Vec<&str> {
    let services = advice.jvms.iter().flat_map(|jvm| &jvm.services);
    services.map(|service| service.service.as_str()).collect()
}

#[test]
fn jvms_of_which_too_little_is_known_say_what_is_missing() {
    let whole = || jvm("a", &[("shop", 500.0)]);
    let used = |steps: &mut dyn Iterator<Item = usize>| Jvm {
        heap_used_after_gc_bytes: column(steps, 500.0),
        ..whole()
    };
    let newcomer = missing(used(&mut (STEPS - 10..STEPS)));
    assert_eq!(
        newcomer,
        Missing::Short {
            seen_seconds: 6000,
            needed_seconds: 86_400
        }
    );
    let gone = missing(used(&mut (0..STEPS - 60)));
    assert_eq!(gone, Missing::Gone { seconds: 36_000 });
    let gaps = missing(used(&mut (0..STEPS).step_by(4)));
    assert_eq!(gaps, Missing::Gaps { percent: 25 });
    let restarted = missing(Jvm {
        restarts: vec![5, STEPS - 72],
        ..whole()
    });
    assert_eq!(
        restarted,
        Missing::Restarted {
            seen_seconds: 43_200,
            needed_seconds: 86_400
        }
    );
    assert_eq!(missing(Jvm::default()), Missing::NoHeap);
}

#[test]
fn a_longer_horizon_needs_a_longer_period() {
    let settings = Settings {
        horizon_seconds: 28 * 86_400,
        ..TERMS
    };
    let history = history(vec![jvm("a", &[("shop", 500.0)])]);
    let (_, unassessed) = assess(&history, settings, &Heaps::default());
    let Missing::Short { needed_seconds, .. } = unassessed[0].1 else {
        panic!("three days are too short for four weeks: {unassessed:?}");
    };
    assert_eq!(needed_seconds, 4 * 86_400);
}

#[test]
fn without_a_day_a_seventh_of_the_horizon_is_needed_all_the_same() {
    let needed = |hours: u64, allow_short| {
        Settings {
            horizon_seconds: hours * 3600,
            allow_short,
            ..TERMS
        }
        .needed_seconds()
    };
    assert_eq!((needed(7, false), needed(7, true)), (86_400, 3600));
    assert_eq!(needed(28 * 24, false), needed(28 * 24, true));
}

#[test]
fn only_services_move_and_scopes_where_they_are_asked_for() {
    let mut one = jvm("a", &[]);
    one.heap_used_after_gc_bytes = column(0..STEPS, 500.0);
    one.accounts = [
        ("shop", Kind::Service),
        ("tenant", Kind::Scope),
        ("orders", Kind::Package),
        ("xml", Kind::Library),
        ("_unaccounted", Kind::Reserved),
        ("_other", Kind::Service),
    ]
    .map(|(name, kind)| account(name, kind, 80.0))
    .into();
    let history = history(vec![one]);
    assert_eq!(names(&advise(&history, TERMS, &Heaps::default())), ["shop"]);
    let scopes = Settings {
        scopes: true,
        ..TERMS
    };
    let mut both = advise(&history, scopes, &Heaps::default());
    both.jvms[0]
        .services
        .sort_by(|a, b| a.service.cmp(&b.service));
    assert_eq!(names(&both), ["shop", "tenant"]);
}

#[test]
fn a_service_moves_without_the_scopes_that_move_by_themselves() {
    let mut one = jvm("a", &[("/shop", 300.0)]);
    one.heap_used_after_gc_bytes = column(0..STEPS, 500.0);
    one.accounts.push(Account {
        parent: "/shop".into(),
        ..account("/shop/tenant-1", Kind::Scope, 250.0)
    });
    let history = history(vec![one]);
    let mib = |settings| {
        let advice = advise(&history, settings, &Heaps::default());
        let services = advice.jvms[0].services.iter();
        let all = services.map(|one| (one.service.clone(), (one.live.median_bytes / MIB).round()));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let scopes = Settings {
        scopes: true,
        ..TERMS
    };
    assert_eq!(mib(TERMS), [("/shop".to_owned(), 300.0)]);
    let apart = [("/shop", 50.0), ("/shop/tenant-1", 250.0)];
    assert_eq!(mib(scopes), apart.map(|(name, mib)| (name.to_owned(), mib)));
}

#[test]
fn a_service_that_has_left_cannot_move_but_its_name_is_taken() {
    let mut there = jvm("there", &[("shop", 100.0)]);
    there.accounts[0].live_bytes = column(0..STEPS - 60, 100.0);
    let mut here = jvm("here", &[("shop", 300.0), ("blog", 600.0)]);
    let left = account("left", Kind::Service, 50.0);
    here.accounts.push(Account {
        live_bytes: column(0..DAY * 2, 50.0),
        ..left
    });
    let history = history(vec![here, there]);
    let advice = advise(&history, TERMS, &Heaps::default());
    assert_eq!(names(&advice), ["blog", "shop"]);
    assert_eq!(advice.verdict, Verdict::Move);
    // The lighter one would do.
    assert_eq!(advice.moves[0].service, "blog");
}

#[test]
fn the_verdict_tells_relief_from_some_and_none() {
    let verdict = |jvms| advise(&history(jvms), TERMS, &Heaps::default()).verdict;
    let pressed = || jvm("a", &[("shop", 500.0), ("blog", 450.0)]);
    assert_eq!(verdict(vec![]), Verdict::Refused);
    assert_eq!(verdict(vec![pressed()]), Verdict::NoRelief);
    let full = jvm("b", &[("wiki", 700.0)]);
    assert_eq!(verdict(vec![pressed(), full]), Verdict::NoRelief);
    let roomy = jvm("c", &[("wiki", 100.0)]);
    assert_eq!(verdict(vec![pressed(), roomy.clone()]), Verdict::Move);
    assert_eq!(verdict(vec![roomy]), Verdict::NothingToMove);
    let heavy = || jvm("d", &[("one", 100.0), ("other", 900.0)]);
    let little = jvm("e", &[("wiki", 690.0)]);
    assert_eq!(verdict(vec![heavy(), little]), Verdict::MoveSome);
}

#[test]
fn no_more_moves_than_asked_for_are_advised() {
    let heavy = jvm("a", &[("one", 400.0), ("two", 300.0), ("rest", 500.0)]);
    let mut roomy = jvm("b", &[("wiki", 100.0)]);
    roomy.heap_max_bytes = constant(4096.0 * MIB);
    let fleet = history(vec![heavy, roomy]);
    let advice = |max_moves| {
        let settings = Settings {
            fill: 0.5,
            max_moves,
            ..TERMS
        };
        let advice = advise(&fleet, settings, &Heaps::default());
        let moves = advice.moves.len();
        (advice.verdict, moves, advice.plan.moves_omitted)
    };
    assert_eq!(advice(2), (Verdict::Move, 2, 0));
    assert_eq!(advice(1), (Verdict::MoveSome, 1, 1));
}

#[test]
fn an_account_too_small_for_its_error_names_an_interval() {
    let mut one = jvm("a", &[("shop", 900.0), ("tiny", 1.0)]);
    one.accounts[1].standard_error_bytes = constant(MIB);
    let history = history(vec![one]);
    let advice = advise(&history, TERMS, &Heaps::default());
    let tiny = &advice.jvms[0].unassessed[0];
    assert_eq!(tiny.service, "tiny");
    assert!(
        tiny.missing.contains("sampling interval of 64.0 KiB"),
        "{}",
        tiny.missing
    );
    assert!(
        tiny.missing.contains("with 4.0 KiB it would do"),
        "{}",
        tiny.missing
    );
}
