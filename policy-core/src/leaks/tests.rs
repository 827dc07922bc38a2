//! The statistic, the detector and the forecast on simulated services. Seeds are fixed: a run is the same each
//! time.

use std::sync::Arc;

use super::asking::{Asking, FEW};
use super::detector::Judged;
use super::forecast::{Level, forecast};
use super::grouping::{grouped, is_part};
use super::history::{Births, History, Look, MAX_COHORTS, MAX_LOOKS, MAX_ROWS, RowName, RowSeen};
use super::simulation::{Dice, FOREVER, INTERVAL_BYTES, Sampled, Watched, schedule, service};
use super::statistic::Verdict;
use crate::holdings::Mark;
use crate::ledger::Epoch;

/// How long a service is watched, in seconds.
const SPAN: f64 = 1_200.0;

/// A service that does not leak: its objects, and the longest lifetime of all but one in a thousand.
type Healthy = fn(&mut Dice) -> (Vec<Sampled>, f64);

/// One in a thousand lives longer than so many means, where lifetimes are exponential.
const LONG_MEANS: f64 = 7.0;

fn lru(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    // An entry goes when nobody has asked for it for that long.
    let (idle, rate) = (dice.uniform(8.0, 50.0), dice.uniform(5e4, 6e5));
    let lives = |dice: &mut Dice, _: f64| {
        let mut lives = 0.0;
        loop {
            let gap = dice.exponential(idle);
            if gap > idle {
                return lives + idle;
            }
            lives += gap;
        }
    };
    (service(dice, SPAN, rate, |_| rate, lives), 8.0 * idle)
}

fn random_replacement(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (mean, rate) = (dice.uniform(5.0, 40.0), dice.uniform(5e4, 6e5));
    // Nothing is replaced before the cache is full.
    let lives = |dice: &mut Dice, now: f64| dice.exponential(mean) + (mean - now).max(0.0);
    (
        service(dice, SPAN, rate, |_| rate, lives),
        LONG_MEANS * mean,
    )
}

fn ttl(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (ttl, rate) = (dice.uniform(10.0, 200.0), dice.uniform(5e4, 6e5));
    (service(dice, SPAN, rate, |_| rate, |_, _| ttl), ttl)
}

fn under_load(dice: &mut Dice, load: impl Fn(f64) -> f64) -> (Vec<Sampled>, f64) {
    let (mean, rate) = (dice.uniform(5.0, 50.0), dice.uniform(1e5, 8e5));
    let lives = |dice: &mut Dice, _: f64| dice.exponential(mean);
    let objects = service(dice, SPAN, rate, |now| rate * load(now), lives);
    (objects, LONG_MEANS * mean)
}

fn sessions(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    under_load(dice, |_| 1.0)
}

fn ramp(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    under_load(dice, |now| 0.1 + 0.9 * now / SPAN)
}

fn day_and_night(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let period = dice.uniform(100.0, 2_000.0);
    under_load(dice, |now| {
        0.55 - 0.45 * (now / period * std::f64::consts::TAU).cos()
    })
}

fn batch(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (period, rate) = (dice.uniform(30.0, 200.0), dice.uniform(1e6, 4e6));
    let held = dice.uniform(5.0, period);
    let load = |now: f64| if now % period < 5.0 { rate } else { 0.0 };
    let lives = |_: &mut Dice, now: f64| held - now % period + 5.0;
    (service(dice, SPAN, rate, load, lives), held + 5.0)
}

fn start_up(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (rate, mean) = (dice.uniform(1e6, 6e6), dice.uniform(5.0, 20.0));
    let load = |now: f64| if now < 20.0 { rate } else { rate / 20.0 };
    let lives = |dice: &mut Dice, now: f64| match now < 20.0 {
        true => FOREVER,
        false => dice.exponential(mean),
    };
    (service(dice, SPAN, rate, load, lives), LONG_MEANS * mean)
}

const HEALTHY: [(&str, Healthy); 8] = [
    ("steady LRU", lru),
    ("random replacement", random_replacement),
    ("TTL", ttl),
    ("exponential sessions", sessions),
    ("load ramp", ramp),
    ("day and night", day_and_night),
    ("batch", batch),
    ("start-up data", start_up),
];

/// Grows for good, and stops one day: to be told from a leak only afterwards.
fn filling(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (rate, full) = (dice.uniform(1e5, 8e5), dice.uniform(30.0, 300.0));
    let load = |now: f64| if now < full { rate } else { 0.0 };
    (service(dice, SPAN, rate, load, |_, _| FOREVER), full)
}

/// Grows in lumps, each of which stays; three at most in a quarter of the time.
fn lumpy(dice: &mut Dice) -> (Vec<Sampled>, f64) {
    let (period, rate) = (dice.uniform(100.0, 400.0), dice.uniform(1e6, 4e6));
    let load = |now: f64| if now % period < 3.0 { rate } else { 0.0 };
    (service(dice, SPAN, rate, load, |_, _| FOREVER), 0.0)
}

/// Runs, in `long` of the tests; fewer otherwise, for a debug build is slow.
fn runs(long: u64, short: u64) -> u64 {
    match std::env::var_os("HEAPWARDEN_TEST_LONG") {
        Some(_) => long,
        None => short,
    }
}

/// Watches a service. Calls `each` with the seconds and what is said of it.
fn watch(objects: &[Sampled], dice: &mut Dice, mut each: impl FnMut(f64, &Judged)) {
    let mut watched = Watched::new(dice.uniform(1.0, 12.0));
    // Half of the JVMs collect old memory without being asked: the agent learns of it with less precision.
    let most_lag = if dice.uniform(0.0, 1.0) < 0.5 {
        0.0
    } else {
        0.3
    };
    let mut before = 0.0;
    for now in schedule(SPAN) {
        let lag = dice.uniform(0.0, most_lag) * (now - before);
        before = now;
        if let Some(judged) = watched.look(objects, now, lag) {
            each(now, &judged);
        }
    }
}

#[test]
fn healthy_services_are_not_suspected_once_the_window_is_twice_the_longest_lifetime() {
    let of_each = runs(1_250, 40);
    let (mut false_looks, mut looks, mut false_runs) = (0u32, 0u32, 0u32);
    for (name, healthy) in HEALTHY {
        let mut early = 0;
        let mut wrong = 0;
        for seed in 0..of_each {
            let mut dice = Dice::new(seed);
            let (objects, longest) = healthy(&mut dice);
            let (mut is_early, mut is_wrong) = (false, false);
            watch(&objects, &mut dice, |now, judged| {
                let is_suspect = judged.verdict == Verdict::Leak;
                if now >= 2.0 * longest {
                    looks += 1;
                    false_looks += u32::from(is_suspect);
                    is_wrong |= is_suspect;
                } else {
                    is_early |= is_suspect;
                }
            });
            early += u32::from(is_early);
            wrong += u32::from(is_wrong);
        }
        println!(
            "{name}: {wrong} of {of_each} runs suspected, {early} before the window was so long"
        );
        false_runs += wrong;
    }
    let all = of_each * HEALTHY.len() as u64;
    // With no event in n trials, 3/n bounds the rate at 95 %.
    println!(
        "{false_runs} of {all} runs, {false_looks} of {looks} looks; 95 % bound of a run {:.1e}, of a look {:.1e}",
        3.0 / all as f64,
        3.0 / f64::from(looks)
    );
    assert_eq!(false_runs, 0);
}

#[test]
fn a_store_with_long_lifetimes_is_suspected_too_early_and_the_suspicion_is_withdrawn() {
    let mut was_suspect = 0;
    for seed in 0..runs(300, 20) {
        let mut dice = Dice::new(seed);
        let objects = service(&mut dice, SPAN, 4e5, |_| 4e5, |_, _| 250.0);
        let mut last = None;
        let mut ever = false;
        watch(&objects, &mut dice, |_, judged| {
            ever |= judged.verdict == Verdict::Leak;
            last = Some(judged.verdict);
        });
        was_suspect += u32::from(ever);
        assert_ne!(last, Some(Verdict::Leak), "seed {seed}");
    }
    assert!(
        was_suspect > 0,
        "no store of four minutes looks like a leak after two"
    );
}

#[test]
fn what_fills_up_is_not_suspected_for_long_after_it_is_full() {
    let all = runs(300, 20);
    let mut at_the_end = 0;
    for seed in 0..all {
        let mut dice = Dice::new(seed);
        let (objects, _) = filling(&mut dice);
        let mut last = None;
        watch(&objects, &mut dice, |_, judged| last = Some(judged.verdict));
        at_the_end += u32::from(last == Some(Verdict::Leak));
    }
    println!("{at_the_end} of {all} caches are suspected 15 minutes after they are full");
    assert_eq!(at_the_end, 0);
}

#[test]
fn lumps_that_stay_are_called_lumpy_while_the_window_holds_few_of_them() {
    let (mut lumpy_looks, mut suspected, mut looks) = (0, 0, 0);
    for seed in 0..runs(300, 20) {
        let mut dice = Dice::new(seed);
        let (objects, _) = lumpy(&mut dice);
        watch(&objects, &mut dice, |_, judged| {
            looks += 1;
            lumpy_looks += u32::from(judged.verdict == Verdict::Lumpy);
            suspected += u32::from(judged.verdict == Verdict::Leak);
        });
    }
    println!("{lumpy_looks} lumpy, {suspected} suspected of {looks} looks");
    assert!(lumpy_looks > 4 * suspected && lumpy_looks > looks / 10);
}

/// When a leak of so many bytes a second is suspected, sorted; some sessions around it in the same class.
fn detection_seconds(leak: f64, sessions: f64, all: u64) -> Vec<f64> {
    let mut times = Vec::new();
    for seed in 0..all {
        let mut dice = Dice::new(seed);
        let mut objects = service(&mut dice, SPAN, leak, |_| leak, |_, _| FOREVER);
        if sessions > 0.0 {
            let lives = |dice: &mut Dice, _: f64| dice.exponential(20.0);
            objects.extend(service(&mut dice, SPAN, sessions, |_| sessions, lives));
            objects.sort_by(|a, b| a.born.total_cmp(&b.born));
        }
        let mut found = f64::INFINITY;
        watch(&objects, &mut dice, |now, judged| {
            if judged.verdict == Verdict::Leak && found.is_infinite() {
                found = now;
                let (rate, error) = (judged.growth, judged.error);
                assert!(
                    (rate - leak).abs() < 5.0 * error + 0.3 * leak,
                    "{rate} ± {error}, not {leak}"
                );
            }
        });
        times.push(found);
    }
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn leaks_are_found_in_time() {
    for (leak, sessions, within) in [
        (1e6, 0.0, 180.0),
        (1e5, 0.0, 300.0),
        (2e4, 0.0, 600.0),
        // A class nine tenths of which are sessions.
        (2e4, 1.8e5, 600.0),
    ] {
        let all = runs(400, 30);
        let times = detection_seconds(leak, sessions, all);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let in_time = times.iter().filter(|&&time| time <= within).count();
        println!(
            "{leak} bytes/s beside {sessions}: half by {:.0} s, 95 % by {:.0} s; {in_time} of {all} within {within} s",
            at(0.5),
            at(0.95)
        );
        assert!(in_time as f64 >= 0.95 * all as f64, "{times:?}");
    }
}

#[test]
fn a_leak_that_begins_late_is_found_in_the_shortest_window() {
    let mut found = 0;
    let all = runs(100, 8);
    for seed in 0..all {
        let mut dice = Dice::new(seed);
        let objects = service(
            &mut dice,
            6_000.0,
            1e5,
            |t| if t > 4_000.0 { 1e5 } else { 5e2 },
            |_, _| FOREVER,
        );
        let mut watched = Watched::new(5.0);
        let mut is_found = false;
        for now in schedule(6_000.0) {
            let judged = watched.look(&objects, now, 0.0);
            // The memory for one row does not grow with the time for which it is watched.
            assert!(
                watched.memory_bytes() < 1 << 20,
                "{}",
                watched.memory_bytes()
            );
            let is_suspect = judged.is_some_and(|judged| judged.verdict == Verdict::Leak);
            assert!(!is_suspect || now > 4_000.0);
            is_found |= is_suspect && now <= 5_200.0;
        }
        found += u32::from(is_found);
    }
    println!("{found} of {all} found within 20 minutes");
    assert!(f64::from(found) >= 0.95 * all as f64);
}

// ---- memory ------------------------------------------------------------------------

#[test]
fn the_history_is_bounded_in_rows_looks_and_bytes() {
    let mut history = History::default();
    for number in 1..=60u64 {
        let marks: Vec<Mark> = (1..=90)
            .map(|epoch| Mark {
                epoch: Epoch::new(epoch),
                at_ms: number * 10_000 - 100 + u64::from(epoch),
                covers: 0,
            })
            .collect();
        let births = |epochs: u32| -> Vec<Births> {
            let one = |epoch| Births {
                upto_epoch: epoch,
                records: 1,
                bytes: 1.0,
                squares: 1.0,
            };
            (1..=epochs).map(one).collect()
        };
        let account: Arc<str> = "shop".into();
        let name = |class: u32| RowName {
            account: account.clone(),
            class: format!("C{class}").into(),
        };
        let row = |class: u32| RowSeen {
            births: births(10 + class % 30),
            ..RowSeen::default()
        };
        history.push(Look {
            at_ms: number * 10_000,
            marks,
            rows: (0..6_000).map(|class| (name(class), row(class))).collect(),
            ..Look::default()
        });
    }
    assert!(history.looks().len() <= MAX_LOOKS);
    let newest = history.newest().expect("a look");
    assert_eq!(newest.rows.len(), MAX_ROWS);
    assert_eq!(newest.omitted, 6_000 - MAX_ROWS as u64);
    let cohorts: usize = (history.looks().iter())
        .flat_map(|look| look.rows.values())
        .map(|row| row.births.len())
        .sum();
    assert!(cohorts <= MAX_COHORTS, "{cohorts}");
    assert!(
        history.memory_bytes() < 32 << 20,
        "{}",
        history.memory_bytes()
    );
}

#[test]
fn ten_thousand_accounts_that_hold_next_to_nothing_leave_no_trace() {
    let mut history = History::default();
    let name = |account: u64| -> Arc<str> { format!("tenant-{account}").into() };
    let small = |account: u64| {
        let of = RowName {
            account: name(account),
            class: "byte[]".into(),
        };
        (of, RowSeen::default())
    };
    for number in 1..=20 {
        let accounts = number * 10_000..(number + 1) * 10_000;
        history.push(Look {
            at_ms: number * 10_000,
            rows: accounts.clone().map(small).collect(),
            accounts: accounts.map(|account| (name(account), (100, 1))).collect(),
            all_accounts: (1_000_000, 10_000),
            ..Look::default()
        });
    }
    assert_eq!(history.looks().len(), 20);
    assert!(
        history.memory_bytes() < 64 << 10,
        "{}",
        history.memory_bytes()
    );
}

// ---- asking ------------------------------------------------------------------------

fn judged(class: &str, growth: f64, verdict: Verdict) -> Judged {
    Judged {
        name: RowName {
            account: "shop".into(),
            class: class.into(),
        },
        verdict,
        is_unconfirmed: false,
        since_ms: 0,
        window_seconds: 60,
        growth,
        error: growth / 10.0,
        windows: 1,
    }
}

/// Requests of a row that always seems to grow and about which every look says this, in the given time.
fn requests(verdict: Verdict, is_rare: bool, seconds: u64) -> u32 {
    let mut asking = Asking::default();
    let one = judged("com.acme.Session", 1.0, verdict);
    let mut requests = 0;
    for now_ms in (0..seconds * 1_000).step_by(5_000) {
        if asking.may_ask(now_ms, is_rare) && asking.may_be_candidate(&one.name, now_ms) {
            requests += 1;
            asking.asked(now_ms);
            asking.looked(std::slice::from_ref(&one), now_ms + 2_000);
        }
    }
    requests
}

#[test]
fn a_row_that_is_refuted_or_confirmed_asks_ever_more_rarely() {
    for verdict in [Verdict::Turnover, Verdict::Steady, Verdict::Leak] {
        let (hour, day) = (
            requests(verdict, false, 3_600),
            requests(verdict, false, 86_400),
        );
        assert!((2..=8).contains(&hour), "{verdict:?}: {hour} in an hour");
        assert!(day <= 18, "{verdict:?}: {day} in a day");
    }
}

#[test]
fn an_undecided_row_asks_in_proportion_to_the_history_and_gives_up_at_last() {
    let (ten, day) = (
        requests(Verdict::Undecided, false, 600),
        requests(Verdict::Undecided, false, 86_400),
    );
    assert!((6..=12).contains(&ten), "{ten} in ten minutes");
    assert!(day <= 30, "{day} in a day");
}

#[test]
fn where_a_collection_is_one_of_the_whole_heap_there_are_few_requests() {
    assert!(requests(Verdict::Undecided, true, 1_200) <= FEW);
    assert!(requests(Verdict::Undecided, true, 86_400) <= FEW + 8);
}

// ---- grouping ----------------------------------------------------------------------

#[test]
fn arrays_and_classes_of_the_jdk_are_parts() {
    for part in [
        "byte[]",
        "int[][]",
        "java.lang.String",
        "java.util.HashMap$Node[]",
        "jdk.internal.X",
    ] {
        assert!(is_part(part), "{part}");
    }
    for own in [
        "com.acme.Session",
        "com.acme.Session[]",
        "Session",
        "javafoo.X",
        "bytes",
    ] {
        assert!(!is_part(own), "{own}");
    }
}

#[test]
fn parts_stand_with_the_own_class_of_their_account_that_grows_most() {
    let leak = |class, growth| judged(class, growth, Verdict::Leak);
    let mut elsewhere = leak("byte[]", 5.0);
    elsewhere.name.account = "billing".into();
    let suspects = vec![
        leak("byte[]", 900.0),
        leak("com.acme.Item", 10.0),
        leak("com.acme.Cart", 20.0),
        leak("java.util.HashMap$Node", 30.0),
        elsewhere,
    ];
    let groups = grouped(suspects.clone(), &[]);
    let names: Vec<(&str, String)> = (groups.iter())
        .map(|group| (&*group.whole.name.class, group.with.join(" ")))
        .collect();
    assert_eq!(
        names,
        [
            ("com.acme.Cart", "byte[] java.util.HashMap$Node".to_owned()),
            ("com.acme.Item", String::new()),
            ("byte[]", String::new()),
        ]
    );
    assert_eq!(groups[0].whole.growth, 950.0);
    // An own class that is not proved yet stands for its parts, if it grows and is not refuted.
    let parts = vec![suspects[0].clone(), suspects[3].clone()];
    let others = [
        judged("com.acme.Page", 50.0, Verdict::Turnover),
        judged("com.acme.Cart", 9.0, Verdict::Undecided),
        Judged {
            error: 5.0,
            ..judged("com.acme.Noise", 10.0, Verdict::Undecided)
        },
    ];
    let groups = grouped(parts, &others);
    assert_eq!(groups.len(), 1);
    assert_eq!(&*groups[0].whole.name.class, "com.acme.Cart");
    assert_eq!(groups[0].with, ["byte[]", "java.util.HashMap$Node"]);
}

// ---- forecast ----------------------------------------------------------------------

/// When there are looks in so many seconds.
type Looks = fn(f64) -> Vec<f64>;

/// Three looks until the suspicion, and one long after it.
fn few_looks(until: f64) -> Vec<f64> {
    [0.17, 0.28, 0.4, 1.0].map(|share| share * until).to_vec()
}

/// Whether the truth lies in the interval, and whether there was one.
fn forecast_holds(seed: u64, is_bursty: bool, looks: Looks) -> (bool, bool) {
    let mut dice = Dice::new(seed);
    let (rate, sessions) = (dice.uniform(5e4, 1e6), dice.uniform(1e5, 1e6));
    // Bursts: on and off for some time each.
    let mut edges = vec![0.0f64];
    while edges.last().is_some_and(|&edge| edge < 20_000.0) {
        let gap = dice.exponential(20.0);
        edges.push(edges.last().copied().unwrap_or_default() + gap);
    }
    let load = |now: f64| {
        let is_on = edges.partition_point(|&edge| edge <= now) % 2 == 1;
        match (is_bursty, is_on) {
            (false, _) => rate,
            (true, true) => 2.0 * rate,
            (true, false) => 0.0,
        }
    };
    let until = dice.uniform(300.0, 1_000.0);
    let truth = |now: f64| -> f64 {
        // In steps of half a second.
        (0..(now * 2.0) as u64)
            .map(|step| load(step as f64 / 2.0) / 2.0)
            .sum()
    };
    let levels: Vec<Level> = looks(until)
        .into_iter()
        .map(|at| {
            let variance = INTERVAL_BYTES * (truth(at) + sessions * 20.0);
            let noise = (0..12).map(|_| dice.uniform(-0.5, 0.5)).sum::<f64>();
            // The sampling error is that of objects that come in addition; the same ones stay.
            let bytes =
                truth(at) + sessions * 20.0 + noise * (INTERVAL_BYTES * sessions * 20.0).sqrt();
            Level {
                at,
                bytes,
                variance,
            }
        })
        .collect();
    let last = levels.last().copied().expect("levels");
    let room = last.bytes * dice.uniform(0.2, 2.0);
    let full = {
        let wanted = truth(last.at) + room;
        let mut now = last.at;
        let mut held = truth(last.at);
        while held < wanted {
            held += load(now) / 2.0;
            now += 0.5;
        }
        now - last.at
    };
    match forecast(&levels, room) {
        None => (false, false),
        Some(found) => {
            let holds = found.earliest <= full && found.latest.is_none_or(|latest| full <= latest);
            (holds, true)
        }
    }
}

#[test]
fn the_truth_lies_in_the_interval_of_the_forecast() {
    let all = runs(1_000, 100);
    let schedules: [(&str, Looks); 2] = [("usual", schedule), ("few", few_looks)];
    for (name, looks) in schedules {
        for is_bursty in [false, true] {
            let found: Vec<(bool, bool)> = (0..all)
                .map(|seed| forecast_holds(seed, is_bursty, looks))
                .collect();
            let made = found.iter().filter(|one| one.1).count();
            let held = found.iter().filter(|one| one.0).count();
            println!(
                "{name} looks, bursty {is_bursty}: {held} of {made} intervals hold the truth, of {all} runs"
            );
            assert!(made as f64 >= 0.9 * all as f64, "{made}");
            assert!(held as f64 >= 0.93 * made as f64, "{held} of {made}");
        }
    }
}

#[test]
fn what_does_not_grow_has_no_forecast() {
    let level = |at: f64, bytes: f64| Level {
        at,
        bytes,
        variance: 1.0,
    };
    let levels = |slope: f64| -> Vec<Level> {
        (0..10)
            .map(|k| level(f64::from(k) * 60.0, 1e9 + slope * f64::from(k)))
            .collect()
    };
    assert_eq!(forecast(&[], 1.0), None);
    assert_eq!(forecast(&levels(0.0), 1e6), None);
    assert_eq!(forecast(&levels(-1e6), 1e6), None);
    let full = forecast(&levels(6e6), 1e6).expect("it grows");
    assert!((full.earliest - 10.0).abs() < 0.1, "{full:?}");
    assert!(
        full.latest
            .is_some_and(|latest| (latest - 10.0).abs() < 0.1),
        "{full:?}"
    );
}
