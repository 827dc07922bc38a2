//! Leaks: services with known truth in one JVM. What leaks is suspected in time, class first; what does not leak
//! is not suspected.

use heapwarden_tests::jdk::{Collector, Vm, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;
use policy_report::Leaks;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Services that keep what they should. None keeps anything for longer than about 40 s.
const HEALTHY: [&str; 9] = [
    "lru", "random", "ttl", "sessions", "ramp", "day", "batch", "startup", "refreshed",
];
/// What leaks, the class that names it, and how many seconds after the start it must be found at the latest.
const LEAKS: [(&str, &str, u64); 5] = [
    ("fastleak", "Entry", 180),
    ("leak", "Entry", 300),
    ("keys", "Key", 300),
    ("mixed", "Entry", 600),
    ("slowleak", "Entry", 600),
];
/// Twice the longest lifetime of what is healthy. A shorter window cannot tell.
const HONEST_FROM_SECONDS: u64 = 80;
/// How much later than promised a verdict may come on a busy machine.
const SLACK: Duration = Duration::from_secs(60);

fn account(service: &str) -> String {
    format!("[[account]]\nname = \"{service}\"\npackages = [\"com.acme.services.{service}\"]\n")
}

fn start(vm: &Vm, leaks: &[(&str, &str, u64)]) -> Jvm {
    let services = HEALTHY.into_iter().chain(leaks.iter().map(|leak| leak.0));
    let policy: String = services.clone().map(account).collect();
    let mut builder = victim(vm, "victim.leaks.Services")
        .heap("1g")
        .flag("-Xms1g")
        .policy(&policy);
    if vm.collector != Collector::Z {
        builder = builder.flag("-Xmn64m");
    }
    services.fold(builder, |builder, service| builder.argument(service)).start()
}

fn document(jvm: &Jvm) -> String {
    let answer = scrape::get(jvm.address(), "/api/v1/leaks");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Waits until all of these are found, and checks at every look that nothing healthy is.
fn assert_found(jvm: &Jvm, leaks: &[(&str, &str, u64)]) {
    let begun = Instant::now();
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut judged = 0;
    while found.len() < leaks.len() {
        let text = document(jvm);
        let now = begun.elapsed();
        let document: Leaks = serde_json::from_str(&text).expect("the document");
        judged += u32::from(document.undecided.is_none());
        for suspect in &document.suspects {
            let leak = leaks.iter().find(|leak| leak.0 == suspect.account);
            match leak {
                Some((service, class, _)) => {
                    let expected = format!("com.acme.services.{service}.Store${class}");
                    if suspect.class == expected {
                        found.entry(service).or_insert(now.as_secs());
                    }
                }
                // Whatever the JVM itself keeps is no service's.
                None if suspect.account == "_unaccounted" => {}
                None => assert!(
                    document.horizon_seconds < HONEST_FROM_SECONDS,
                    "{} of {} does not leak: {text}\n{}",
                    suspect.class,
                    suspect.account,
                    jvm.log()
                ),
            }
        }
        for (service, _, within) in leaks {
            assert!(
                found.contains_key(service) || now < Duration::from_secs(*within) + SLACK,
                "{service} was not found in {now:?}; found {found:?} in {judged} looks: {text}\n{}",
                jvm.log()
            );
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    println!("found after seconds: {found:?}, the last document: {}", document(jvm));
}

/// The first two leaks by default, all of them with `--long`.
fn known(vm: &Vm) -> &'static [(&'static str, &'static str, u64)] {
    match is_long() && vm.collector == Collector::G1 {
        true => &LEAKS,
        false => &LEAKS[..2],
    }
}

#[test]
fn leaks_are_found_in_time_and_nothing_healthy_is_suspected() {
    let vms: Vec<Vm> = if is_long() {
        heapwarden_tests::jdk::every_jdk_with(Collector::G1)
    } else {
        one_jdk_with(Collector::G1, 0)
    };
    on_each(&vms, |vm| {
        let jvm = start(vm, known(vm));
        assert_found(&jvm, known(vm));
        assert_published(&jvm);
    });
}

/// The metrics name the suspects, and the log has a line for each.
fn assert_published(jvm: &Jvm) {
    let metrics = jvm.metrics();
    let suspects = |account| metrics.of_account("heapwarden_leak_suspects", account);
    assert!(suspects("fastleak") >= Some(1.0), "{:?}", suspects("fastleak"));
    let class = "com.acme.services.fastleak.Store$Entry";
    let labels = [("account", "fastleak"), ("class", class)];
    let growth = metrics.value("heapwarden_leak_growth_bytes_per_second", &labels);
    let growth = growth.expect("the growth of a suspect");
    // The payload is a class of its own.
    assert!(growth > 5e3 && growth < 2e6, "{growth}");
    jvm.until_logged("leak suspected: com.acme.services.fastleak.Store$Entry");
}

/// ZGC takes at most three collections more than it would.
#[test]
fn on_zgc_a_few_collections_are_enough() {
    if !is_long() {
        println!("left out: ZGC (it is in --long)");
        return;
    }
    on_each(&heapwarden_tests::jdk::every_jdk_with(Collector::Z), |vm| {
        let jvm = start(vm, known(vm));
        assert_found(&jvm, known(vm));
        let asked = jvm.metrics().sum("heapwarden_evidence_collections_total");
        assert!(asked <= 3.0, "{asked} collections were asked for");
    });
}
