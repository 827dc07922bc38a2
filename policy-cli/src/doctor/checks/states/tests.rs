//! Tests of the findings about accounts and their limits.

use super::super::test_inputs::{account, agent};
use super::*;

const MIB: u64 = 1 << 20;

fn shop(state: State, refusals: u64, deferred: &[(&'static str, u64)]) -> Account {
    let mut shop = account("service", "/shop");
    shop.limit_bytes = Some(150 * MIB);
    shop.live_bytes = 319 * MIB + MIB / 2;
    shop.live_standard_error_bytes = Some(4 * MIB);
    shop.charged_bytes = 330 * MIB;
    shop.standard_error_bytes = 5 * MIB;
    shop.state = state;
    shop.refusals_total = refusals;
    shop.deferred_by_reason.0 = deferred
        .iter()
        .map(|&(reason, count)| (reason.into(), count))
        .collect();
    shop
}

#[track_caller]
fn only(mode: &str, account: Account) -> Finding {
    let mut inputs = agent("heapwarden_samples_total 9\n", vec![account]);
    inputs.accounts.as_mut().unwrap().policy.mode = mode.to_owned().into();
    let all = against_limits(&inputs);
    let [one] = &all[..] else {
        panic!("{all:?}");
    };
    one.clone()
}

#[test]
fn an_account_that_is_refused_is_told_with_its_share() {
    let found = only(
        "enforce",
        shop(State::Over, 7, &[("grace", 2), ("jdk", 40)]),
    );
    assert_eq!(
        (found.severity, found.name),
        (Severity::Warning, "over-limit")
    );
    assert_eq!(
        found.evidence,
        "live 319.5 ± 4.0 MiB, 213 % of the limit 150 MiB; 7 errors thrown (42 put off: jdk 40, grace 2)"
    );
}

#[test]
fn an_account_that_nothing_stops_is_an_error_with_its_main_reason() {
    let deferred = [("jdk", 3), ("logging", 38_000), ("locks", 2), ("timer", 1)];
    let found = only("enforce", shop(State::Over, 0, &deferred));
    assert_eq!(
        (found.severity, found.name),
        (Severity::Error, "never-refused")
    );
    assert!(
        found.sentence.ends_with("a logger was running"),
        "{found:?}"
    );
    assert!(
        found
            .evidence
            .ends_with("(38006 put off: logging 38000, jdk 3, locks 2, …)"),
        "{found:?}"
    );
    let idle = only("enforce", shop(State::Over, 0, &[]));
    assert!(idle.sentence.ends_with("none was due yet"), "{idle:?}");
    assert_eq!(idle.severity, Severity::Warning, "nothing was let through");
}

#[test]
fn an_account_that_its_door_holds_is_a_warning() {
    let mut account = shop(State::Over, 0, &[]);
    account.door = Door::Shut;
    account.admission_refusals_total = 90;
    account.wait_milliseconds_total = 2_340;
    let found = only("enforce", account.clone());
    assert!(
        found.evidence.ends_with(
            "its threads and requests waited 2.3 s (it is over its limit and goes on allocating)"
        ),
        "{found:?}"
    );
    account.wait_milliseconds_total = 99;
    let found = only("enforce", account.clone());
    assert_eq!(
        (found.severity, found.name),
        (Severity::Warning, "over-limit")
    );
    assert!(
        found
            .sentence
            .ends_with("over its limit: new work is turned away"),
        "{found:?}"
    );
    assert!(
        found
            .evidence
            .ends_with("limit 150 MiB; turned away 90 times at its door"),
        "{found:?}"
    );
    // Beyond its reserve, and nothing stops it.
    account.deferred_by_reason.0 = vec![("jdk".into(), 5)];
    let found = only("enforce", account.clone());
    assert_eq!(
        (found.severity, found.name),
        (Severity::Error, "never-refused")
    );
    account.reserve_bytes = Some(200 * MIB);
    let found = only("enforce", account.clone());
    assert_eq!(found.name, "over-limit", "within its reserve");
    account.deferred_by_reason.0.clear();
    account.state = State::Open;
    account.door = Door::Open;
    let found = only("enforce", account);
    assert_eq!(found.name, "refused-before");
    assert!(
        found
            .evidence
            .ends_with("limit 150 MiB; turned away 90 times at its door"),
        "{found:?}"
    );
}

#[test]
fn an_account_that_is_throttled_is_a_warning_with_the_reason() {
    let mut account = shop(State::Suspect, 0, &[]);
    assert_eq!(only("enforce", account.clone()).severity, Severity::Note);
    account.wait_milliseconds_total = 31_700;
    let mut inputs = agent("", vec![account.clone()]);
    let all = inputs.accounts.as_mut().unwrap();
    all.evidence.budget_used_up_seconds = Some(55.0);
    let found = against_limits(&inputs);
    assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
    assert!(found[0].sentence.contains("has been slowed"), "{found:?}");
    let expected = "its threads and requests waited 31.7 s (evidence about it is awaited, and the evidence budget \
                    is used up for another 55 s)";
    assert!(found[0].evidence.ends_with(expected), "{found:?}");

    account.state = State::Open;
    let found = only("enforce", account.clone());
    assert_eq!(
        (found.severity, found.name),
        (Severity::Note, "waited-before")
    );
    assert!(found.evidence.contains("waited 31.7 s"), "{found:?}");
    // One finding, also if it was refused besides.
    account.refusals_total = 2;
    let found = only("enforce", account);
    assert_eq!(found.name, "refused-before");
    assert!(found.evidence.ends_with("waited 31.7 s"), "{found:?}");
}

#[test]
fn refusals_that_do_not_stop_an_account_are_an_error_with_the_frame() {
    let mut account = shop(State::Over, 0, &[("no-unit", 40)]);
    let inputs = |account: &Account| agent("", vec![account.clone()]);
    assert_eq!(only("enforce", account.clone()).name, "never-refused");
    account.ineffective = Some(policy_report::Ineffective {
        reason: "no-unit".into(),
        frame: Some("com.acme.Loop.run".into()),
    });
    account.wait_milliseconds_total = 3_000;
    let found = against_limits(&inputs(&account));
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (found.severity, found.name),
        (Severity::Error, "ineffective")
    );
    let expected = "account /shop stays over its limit, and refusals do not stop it: they are put off, \
                    mostly for the reason no-unit in com.acme.Loop.run; its threads have been slowed";
    assert_eq!(found.sentence, expected);
    assert!(found.remedy.contains("door = "), "{found:?}");
    assert!(
        found
            .evidence
            .contains("0 errors thrown (40 put off: no-unit 40); its threads"),
        "one finding has all figures: {found:?}"
    );
}

#[test]
fn threads_that_a_refusal_ended_are_a_warning_whatever_the_state() {
    let mut account = shop(State::Open, 7, &[]);
    let inputs = |account: &Account| agent("", vec![account.clone()]);
    assert_eq!(only("enforce", account.clone()).name, "refused-before");
    account.threads_killed_total = 3;
    let found = against_limits(&inputs(&account));
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (found.severity, found.name),
        (Severity::Warning, "threads-killed")
    );
    assert!(
        found
            .sentence
            .starts_with("account /shop was refused earlier; 3 threads ended"),
        "{found:?}"
    );
    assert!(
        found
            .remedy
            .starts_with("spare such threads by never-interrupt")
    );
    // One finding, also while it is over.
    account.state = State::Over;
    let found = only("enforce", account);
    assert_eq!(found.name, "over-limit");
    assert!(found.sentence.contains("and is refused; 3 threads ended"));
    assert!(found.remedy.contains("never-interrupt"), "{found:?}");
}

#[test]
fn what_observe_lets_pass_is_a_warning() {
    let mut account = shop(State::Over, 0, &[]);
    account.would_refuse_total = 12;
    let found = only("observe", account);
    assert_eq!(found.severity, Severity::Warning);
    assert!(
        found
            .evidence
            .ends_with("12 refusals would have been thrown")
    );
}

#[test]
fn a_suspect_and_one_that_was_refused_are_notes() {
    let found = only("enforce", shop(State::Suspect, 0, &[]));
    assert_eq!((found.severity, found.name), (Severity::Note, "suspect"));
    assert!(
        found.evidence.starts_with("charged 330.0 ± 5.0 MiB, 220 %"),
        "{found:?}"
    );
    let before = only(
        "enforce",
        shop(State::Open, 0, &[("container", 12), ("grace", 99)]),
    );
    assert_eq!(
        (before.severity, before.name),
        (Severity::Note, "refused-before")
    );
    assert!(before.remedy.contains("interrupt-through"), "{before:?}");
}

#[test]
fn open_accounts_are_not_listed() {
    let inputs = agent(
        "heapwarden_samples_total 9\n",
        vec![shop(State::Open, 0, &[("grace", 3)])],
    );
    assert_eq!(against_limits(&inputs), []);
}

#[test]
fn all_that_befalls_an_account_is_one_finding() {
    let mut account = shop(State::Over, 7, &[]);
    account.door = Door::Shut;
    account.admission_refusals_total = 90;
    account.wait_milliseconds_total = 2_340;
    let route = |route: &'static str, live: u64| policy_report::Route {
        route: route.into(),
        live_bytes: live * MIB,
        standard_error_bytes: 3 * MIB,
        kept_bytes_per_call: 12 << 10,
        ..policy_report::Route::default()
    };
    account.routes = vec![route("GET /cart", 0), route("POST /cart", 210)];
    let found = only("enforce", account);
    assert_eq!(
        found.sentence,
        "account /shop is over its limit: new work is turned away, and what is inside is refused; its threads have been slowed"
    );
    assert_eq!(
        found.evidence,
        "live 319.5 ± 4.0 MiB, 213 % of the limit 150 MiB; 7 errors thrown; turned away 90 times at its door; its threads \
         and requests waited 2.3 s (it is over its limit and goes on allocating); POST /cart holds the most: \
         210.0 ± 3.0 MiB, 12.0 KiB kept a call"
    );
    assert!(found.remedy.contains("status --routes"), "{found:?}");
}

#[test]
fn a_short_heap_is_told_with_who_holds_it() {
    let mut cart = account("service", "/cart");
    cart.live_bytes = 500 * MIB;
    let mut inputs = agent("", vec![shop(State::Open, 0, &[]), cart]);
    assert_eq!(heap_is_short(&inputs), []);
    let all = inputs.accounts.as_mut().unwrap();
    all.heap.used_after_gc_bytes = 960 * MIB;
    all.enforcement.duress = true;
    let found = heap_is_short(&inputs);
    assert_eq!(
        found[0].evidence,
        "960 MiB of 1.0 GiB in use after the latest collection (94 %); the most: /cart 500.0 ± 0.0 MiB, \
         /shop 319.5 ± 4.0 MiB"
    );
    assert_eq!(found[0].severity, Severity::Warning);
}

/// All that can befall an account, one finding each, and never a note: the page says the same of the same accounts
/// (the test `page`).
#[test]
fn whoever_is_held_by_its_limit_is_told_first() {
    let states: Vec<Account> =
        serde_json::from_str(include_str!("befallen.json")).expect("accounts");
    assert_eq!(states.len(), 9);
    let mut inputs = agent("heapwarden_samples_total 9\n", states.clone());
    inputs.accounts.as_mut().unwrap().policy.mode = "enforce".into();
    let found = against_limits(&inputs);
    assert_eq!(found.len(), states.len(), "one each: {found:#?}");
    let told: Vec<(&str, &str, Severity)> = (found.iter())
        .map(|one| (one.name, &*one.sentence, one.severity))
        .collect();
    let (error, warning) = (Severity::Error, Severity::Warning);
    let expected = [
        (
            "suspect",
            "account slowed has been slowed: its charge is above its limit, and while the heap is short its threads wait \
             until a collection shows how much of that is garbage",
            warning,
        ),
        (
            "never-refused",
            "account braked is over its limit and was never refused, mostly because an error would end a thread's own \
             loop, so the thread goes on, and is slowed where the heap is short; its threads have been slowed",
            error,
        ),
        (
            "ineffective",
            "account loop stays over its limit, and refusals do not stop it: they are put off, mostly for the reason \
             no-unit in com.acme.Loop.run; its threads have been slowed",
            error,
        ),
        (
            "over-limit",
            "account server-door is over its limit: new work is turned away",
            warning,
        ),
        (
            "over-limit",
            "account method-door is over its limit: new work is turned away",
            warning,
        ),
        (
            "over-limit",
            "account door-held is held by its limit: new work is turned away",
            warning,
        ),
        (
            "over-limit",
            "account thrown is over its limit and is refused",
            warning,
        ),
        (
            "over-limit",
            "account thrown-slowed is over its limit and is refused; its threads have been slowed",
            warning,
        ),
        (
            "over-limit",
            "account all is over its limit: new work is turned away, and what is inside is refused; its threads have \
             been slowed; 2 threads ended with an uncaught refusal, and what they did may not be done any more",
            warning,
        ),
    ];
    assert_eq!(told, expected);
    for one in &found {
        let is_away = one.evidence.contains("turned away 90 times at its door");
        assert_eq!(is_away, one.sentence.contains("turned away"), "{one:?}");
        let is_slowed = one.evidence.contains("waited 5.0 s");
        assert_eq!(is_slowed, one.sentence.contains("slowed"), "{one:?}");
    }
}
