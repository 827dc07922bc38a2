//! Services are found by their class loaders, without configuration; one that hides its context class loader
//! is still charged.

use heapwarden_tests::java;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, some_vms};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::{Accounts, Metrics, is_background};
use heapwarden_tests::truth::Truth;

const EXACT: &str = "[sampling]\ninterval = \"exact\"\n";

fn server(vm: &Vm, policy: &str) -> Jvm {
    victim(vm, "victim.ServiceHost")
        .argument(java::classes().tenant())
        .policy(policy)
        .start()
}

/// Runs an order of [`Truth`] and asserts that all of it, and nothing else, came to `account`.
fn assert_charged(jvm: &mut Jvm, order: &str, account: &str) {
    let services = ["svc-a", "svc-b"];
    let before = jvm.settled();
    let truth = Truth::of(&jvm.ask(order));
    let after = jvm.settled();
    for service in services {
        let (was, is) = (before.holding(service), after.holding(service));
        let expected = if service == account {
            (truth.bytes as f64, truth.objects as f64)
        } else {
            (0.0, 0.0)
        };
        assert_eq!(
            (
                is.live_bytes - was.live_bytes,
                is.live_objects - was.live_objects
            ),
            expected,
            "{order}: what came to {service}"
        );
    }
    if account == "_unaccounted" {
        let more = after.holding(account).live_bytes - before.holding(account).live_bytes;
        assert!(more >= truth.bytes as f64, "{order}: {more}");
    }
}

#[test]
fn a_named_loader_is_a_service_without_configuration() {
    on_each(&some_vms(0), |vm| {
        let mut jvm = server(vm, EXACT);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        assert_charged(&mut jvm, "call svc-a own 1000 300", "svc-a");
        assert_charged(&mut jvm, "call svc-b own 1000 200", "svc-b");
        assert_charged(&mut jvm, "outside svc-a 500 100", "svc-a");
        let accounts = jvm.accounts();
        assert_eq!(accounts.find("svc-a").expect("listed")["kind"], "service");
        let labels = [
            ("account", "svc-a"),
            ("kind", "service"),
            ("service", "svc-a"),
        ];
        let info = jvm.metrics().value("heapwarden_account_info", &labels);
        assert_eq!(info, Some(1.0));
        jvm.finish();
    });
}

#[test]
fn a_service_that_hides_its_context_loader_is_still_charged() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, EXACT);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy svc-b");
        assert_charged(&mut jvm, "call svc-a null 1000 300", "svc-a");
        assert_charged(&mut jvm, "call svc-b system 1000 300", "svc-b");
        jvm.finish();
    });
}

#[test]
fn an_unnamed_child_loader_belongs_to_its_parent() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = server(vm, EXACT);
        jvm.ask("deploy svc-a");
        jvm.ask("child svc-a");
        assert_charged(&mut jvm, "call svc-a own 1000 300", "svc-a");
        assert_charged(&mut jvm, "call svc-a null 1000 300", "svc-a");
        let names: Vec<String> = jvm
            .accounts()
            .list()
            .iter()
            .filter(|account| !is_background(account))
            .map(|account| account["name"].to_string())
            .collect();
        assert_eq!(names, ["\"svc-a\""], "the child has no account of its own");
        jvm.finish();
    });
}

/// More loaders than the agent looks at in one go, several times.
#[test]
fn an_unnamed_loader_at_any_depth_belongs_to_the_service_above_it_and_to_its_limit() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let policy = format!(
            "{EXACT}[enforcement]\nmode = \"enforce\"\n\
             [[account]]\nservice = \"svc-*\"\nlimit = \"8MiB\"\nthrow = \"exception\"\nwork = [\"tenant\"]\n"
        );
        let mut jvm = server(vm, &policy);
        for (service, depth) in [("svc-a", 9), ("svc-b", 300)] {
            jvm.ask(&format!("deploy {service}"));
            jvm.ask(&format!("child {service} {depth}"));
        }
        assert_charged(&mut jvm, "call svc-a own 1000 300", "svc-a");
        assert_charged(&mut jvm, "call svc-b null 1000 300", "svc-b");
        let answer = jvm.ask("grow svc-b 10000 100000").join(" ");
        assert!(answer.starts_with("refused"), "{answer}");
        jvm.finish();
    });
}

#[test]
fn a_policy_names_and_groups_services() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let policy = format!(
            "{EXACT}[[account]]\nname = \"shop\"\nservice = \"svc-a\"\nlimit = \"64MiB\"\n\
             [[account]]\nservice = \"*\"\nlimit = \"25%\"\n"
        );
        let mut jvm = server(vm, &policy);
        jvm.ask("deploy svc-a");
        jvm.ask("deploy other");
        let truth = Truth::of(&jvm.ask("call svc-a own 1000 300"));
        jvm.ask("call other own 1000 300");
        let accounts = jvm.settled();
        assert_eq!(accounts.holding("shop").live_bytes, truth.bytes as f64);
        assert_eq!(
            accounts.find("shop").expect("listed")["limit_bytes"],
            64 << 20
        );
        assert!(accounts.find("svc-a").is_none(), "it is called shop");
        let heap = accounts.0["heap"]["max_bytes"].as_u64().expect("known");
        let limit = accounts.find("other").expect("listed")["limit_bytes"].as_u64();
        assert_eq!(limit, Some(heap / 4));
        let metrics = jvm.metrics();
        let published = metrics.of_account("heapwarden_account_limit_bytes", "shop");
        assert_eq!(published, Some(f64::from(64 << 20)));
        let none = metrics.of_account("heapwarden_account_limit_bytes", "_unaccounted");
        assert_eq!(none, None, "no limit, no series");
        jvm.finish();
    });
}

#[test]
fn what_nobody_owns_is_unaccounted_and_the_accounts_sum_to_all_samples() {
    on_each(&some_vms(1), |vm| {
        let mut jvm = server(vm, EXACT);
        jvm.ask("deploy svc-a");
        jvm.ask("call svc-a own 1000 300");
        jvm.settled();
        // Every allocation is one sample and one object; the two figures are read in one answer
        // but not at one instant, so the JVM's own threads may come between: look until they rest.
        let sums = |metrics: &Metrics| {
            (
                metrics.sum("heapwarden_account_allocated_objects_total"),
                metrics.sum("heapwarden_samples_total"),
            )
        };
        let equal = heapwarden_tests::command::poll(heapwarden_tests::command::PATIENCE, || {
            let (objects, samples) = sums(&jvm.metrics());
            (objects == samples && samples > 1_000.0).then_some(())
        });
        assert!(equal.is_some(), "{:?}", sums(&jvm.metrics()));
        assert_eq!(jvm.metrics().sum("heapwarden_samples_dropped_total"), 0.0);
        jvm.finish();
    });
}

/// Serial compacts at each full collection: what the heap then holds more is what was allocated.
#[test]
fn the_accounts_sum_to_the_heap() {
    on_each(&every_jdk_with(Collector::Serial), |vm| {
        // The used bytes of the heap are read a moment after the pause, and count whole the allocation buffers that
        // threads have taken since: by the main thread, which answers the test, and the agent's enforcer and loader
        // thread. Of a fixed, small size they bound the difference.
        const BUFFER_BYTES: f64 = 16_384.0;
        const BUFFERS: f64 = 4.0;
        let mut jvm = victim(vm, "victim.ServiceHost")
            .argument(java::classes().tenant())
            .policy(EXACT)
            .flag("-XX:TLABSize=16k")
            .flag("-XX:-ResizeTLAB")
            .start();
        jvm.ask("deploy svc-a");
        let sum = |accounts: &Accounts| -> f64 {
            accounts
                .list()
                .iter()
                .filter_map(|account| account["live_bytes"].as_f64())
                .sum()
        };
        let used = |accounts: &Accounts| accounts.0["heap"]["used_after_gc_bytes"].as_f64();
        jvm.ask("call svc-a own 1000 300");
        // Objects that were allocated before the agent could see them die with the first collections.
        for _ in 0..3 {
            jvm.ask("gc");
        }
        let before = jvm.settled();
        jvm.ask("call svc-a own 100000 300");
        jvm.ask("call svc-a system 1000 3000");
        let after = jvm.settled();
        let charged = sum(&after) - sum(&before);
        let held = used(&after).expect("known") - used(&before).expect("known");
        assert!(
            (charged - held).abs() <= BUFFERS * BUFFER_BYTES,
            "charged {charged}, held {held} bytes more"
        );
        jvm.finish();
    });
}
