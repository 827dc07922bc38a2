//! `[[sampling.thin]]`: fewer samples of some classes, and the accounts stay right within stated errors.

use std::sync::Mutex;
use std::time::Duration;

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::stats;
use heapwarden_tests::truth::Truth;
use serde_json::Value;

/// How often each JVM is asked.
const TIMES: usize = 6;

fn policy(keep: &str, limit: &str) -> String {
    format!(
        "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\n[[sampling.thin]]\nclass = \"byte[]\"\n\
         keep = \"{keep}\"\n\n[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n\
         limit = \"{limit}\"\n\n[[account]]\nname = \"billing\"\npackages = [\"com.acme.billing\"]\n"
    )
}

fn class<'a>(accounts: &'a Accounts, account: &str, name: &str) -> &'a Value {
    let account = accounts.find(account).expect("it is listed");
    let classes = account["classes"].as_array().expect("a list");
    let named = classes.iter().find(|one| one["class"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {account}"))
}

/// Returns how many samples were passed over by now.
fn thinned(jvm: &Jvm) -> f64 {
    // An answer may be of a second ago, before the latest order.
    std::thread::sleep(Duration::from_millis(1_100));
    let metrics = jvm.metrics();
    metrics
        .value("heapwarden_samples_thinned_by_class_total", &[])
        .expect("it is published")
}

/// A fifth of the samples are kept, and what they stand for is right: of the thinned class, of the others,
/// and of the account.
#[test]
fn accounts_stay_right_within_their_errors() {
    let scores = Mutex::new(Vec::new());
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(one_jdk_with(Collector::Z, 1));
    on_each(&vms, |vm| {
        let mut jvm = victim(vm, "victim.Holder")
            .heap("512m")
            .argument("com.acme.orders")
            .argument("com.acme.billing")
            .policy(&policy("20%", "none"))
            .start();
        // The class has its name, and with it its rule.
        jvm.ask("churn com.acme.billing bytes:100*100000");
        let begun = poll(PATIENCE, || {
            jvm.ask("churn com.acme.billing bytes:100*10000");
            (thinned(&jvm) > 0.0).then_some(())
        });
        assert!(begun.is_some(), "{vm}: nothing is thinned");
        for _ in 0..TIMES {
            let truth = Truth::of(&jvm.ask("hold com.acme.orders bytes:500*20000 longs:50*20000"));
            let accounts = jvm.settled();
            let orders = accounts.find("orders").expect("it is listed");
            let number = |key: &str| orders[key].as_f64().expect("it is a number");
            let error = number("live_standard_error_bytes");
            let z = (number("live_bytes") - truth.bytes as f64) / error;
            scores
                .lock()
                .expect("never held over a panic")
                .push((vm.to_string(), z));
            let share = class(&accounts, "orders", "byte[]")["sample_share"].as_f64();
            assert!(
                share.is_some_and(|share| (share - 0.2).abs() < 0.01),
                "{vm}: {share:?}"
            );
            let whole = &class(&accounts, "orders", "long[]")["sample_share"];
            assert!(whole.is_null(), "{vm}: {whole}");
            jvm.ask("drop");
        }
        let accounts = jvm.settled();
        let charged = accounts.holding("orders").charged_bytes;
        assert!(
            charged < 200_000.0,
            "{vm}: what was charged is refunded: {charged}"
        );
        jvm.finish();
    });
    let scores = scores.into_inner().expect("never held over a panic");
    stats::judge_family(&scores);
    let scores: Vec<f64> = scores.into_iter().map(|(_, z)| z).collect();
    let (mean, deviation) = stats::mean_and_deviation(&scores);
    let (bound, (_, most)) = (
        stats::mean_bound(scores.len()),
        stats::deviation_bounds(scores.len()),
    );
    eprintln!("mean {mean:+.3} (±{bound:.3}), deviation {deviation:.3} (at most {most:.3})");
    assert!(
        mean.abs() <= bound && deviation <= most,
        "{mean} {deviation}"
    );
}

/// A limit is known as well as without the rule: the classes of its account keep their samples, as a limit of
/// 1,024 intervals leaves no room for wider ones.
#[test]
fn an_account_with_a_small_limit_is_not_thinned_and_a_reload_ends_it_all() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = victim(vm, "victim.Holder")
            .heap("512m")
            .argument("com.acme.orders")
            .argument("com.acme.billing")
            .policy(&policy("5%", "16MiB"))
            .start();
        jvm.ask("churn com.acme.orders bytes:100*100000");
        let named = poll(PATIENCE, || {
            jvm.ask("churn com.acme.billing bytes:100*10000");
            (thinned(&jvm) > 0.0).then_some(())
        });
        assert!(named.is_some(), "{vm}: nothing is thinned");
        let before = thinned(&jvm);
        jvm.ask("churn com.acme.orders bytes:100*400000");
        let in_limited = thinned(&jvm) - before;
        let before = thinned(&jvm);
        jvm.ask("churn com.acme.billing bytes:100*400000");
        let in_other = thinned(&jvm) - before;
        assert!(in_other > 1_000.0, "{vm}: {in_other} of about 2,600");
        assert!(
            in_limited < 100.0,
            "{vm}: {in_limited}, those of the JDK's own threads"
        );
        jvm.ask("hold com.acme.orders bytes:500*1000");
        jvm.ask("hold com.acme.billing bytes:500*20000");
        let accounts = jvm.settled();
        assert!(
            class(&accounts, "orders", "byte[]")["sample_share"].is_null(),
            "{vm}"
        );
        let share = class(&accounts, "billing", "byte[]")["sample_share"].as_f64();
        assert!(share.is_some_and(|share| share < 0.06), "{vm}: {share:?}");

        let path = jvm.folder().join("heapwarden.toml");
        let text = policy("5%", "16MiB").replace("class = \"byte[]\"", "class = \"no.such.Class\"");
        std::fs::write(path, text).expect("the case's folder is writable");
        jvm.until_logged("samples kept of class \"byte[]\" 5% -> all");
        let before = thinned(&jvm);
        jvm.ask("churn com.acme.billing bytes:100*400000");
        assert_eq!(
            thinned(&jvm),
            before,
            "{vm}: nothing is passed over any more"
        );
        jvm.finish();
    });
}
