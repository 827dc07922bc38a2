//! Every collector refunds collected objects to the last byte.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Collector, every_vm, on_each, some_vms};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::scrape::{Accounts, is_background};
use heapwarden_tests::truth::{JDK_KINDS, JDK_OWN_BYTES, JDK_OWN_OBJECTS, PLAIN_KINDS};

const POLICY: &str = r#"
[[account]]
name = "orders"
packages = ["com.acme.orders"]

[[account]]
name = "billing"
packages = ["com.acme.billing"]

[[account]]
name = "xml"
packages = ["org.lib.xml.*"]
charge = "caller"

[[account]]
name = "json"
packages = ["org.lib.json"]
"#;

const ACCOUNTS: [&str; 2] = ["orders", "billing"];

/// The most bytes and objects that may stay because the JDK's own were sampled too. At 64 KiB these are a sixteenth of
/// a sample in the mean, and more than two, each standing for an interval, once in 25,000 times (Poisson); an object
/// has 16 bytes at the least.
const SAMPLED_OWN: (f64, f64) = (2.0 * 66_000.0, 2.0 * 66_000.0 / 16.0);

/// Nothing is charged.
fn assert_empty(accounts: &Accounts) {
    for name in ACCOUNTS {
        let holding = accounts.holding(name);
        assert_eq!(
            [
                holding.live_bytes,
                holding.charged_bytes,
                holding.live_objects
            ],
            [0.0; 3],
            "{name} after everything died: live, charged, objects:\n{}",
            accounts.classes(name)
        );
        assert!(
            holding.allocated_bytes > 0.0,
            "{name} never held anything: the test shows nothing"
        );
    }
}

/// Nor is there an error, but where large arrays may have been passed over: whether those are gone is not
/// known, except that they cannot be more than what is in use.
fn is_certain(accounts: &Accounts, may_be_thinned: bool) -> bool {
    let in_use = accounts.0["heap"]["used_after_gc_bytes"].as_f64();
    let unseen_bytes = in_use.filter(|_| may_be_thinned).unwrap_or(0.0);
    ACCOUNTS
        .iter()
        .all(|name| accounts.holding(name).standard_error_bytes <= unseen_bytes)
}

#[test]
fn everything_dropped_is_refunded_to_exactly_zero() {
    for interval in ["exact", "64KiB"] {
        // The same weights are taken back at every interval: a few VMs show it for the second.
        let vms = match interval {
            "exact" => every_vm().to_vec(),
            _ => some_vms(0),
        };
        on_each(&vms, |vm| {
            let may_be_thinned = interval != "exact" && vm.collector == Collector::G1;
            let mut jvm = victim(vm, "victim.Holder")
                .argument("com.acme.orders")
                .argument("com.acme.billing")
                .argument("org.lib.xml")
                .argument("org.lib.json")
                .policy(&format!(
                    "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n{POLICY}"
                ))
                .start();
            for _ in 0..2 {
                jvm.ask(&format!("hold com.acme.orders {PLAIN_KINDS}"));
                jvm.ask("hold com.acme.orders bytes:70000*200 bytes:4000000*4");
                jvm.ask(&format!("hold com.acme.billing>org.lib.xml {PLAIN_KINDS}"));
                jvm.ask(&format!(
                    "threads 4 com.acme.billing bytes:5000*800 {PLAIN_KINDS}"
                ));
                jvm.ask(&format!("hold org.lib.json {JDK_KINDS}"));
                // Garbage of several young collections, between what is held.
                jvm.ask("churn com.acme.orders bytes:100000*1500 boxed*50000");
                let held = jvm.settled();
                for name in ACCOUNTS {
                    assert!(
                        held.holding(name).live_bytes > 0.0,
                        "{name} holds something"
                    );
                }
                jvm.ask("drop");
                let accounts = jvm.settled();
                assert_empty(&accounts);
                // That a collection has decided on large arrays is taken in a second later.
                jvm.until(PATIENCE, "no error of what died", |accounts| {
                    is_certain(accounts, may_be_thinned)
                });
                let json = accounts.holding("json");
                let own = if interval == "exact" {
                    (JDK_OWN_BYTES, JDK_OWN_OBJECTS)
                } else {
                    SAMPLED_OWN
                };
                assert!(
                    json.live_bytes <= own.0 && json.live_objects <= own.1,
                    "what the JDK keeps for itself is little: {}",
                    accounts.classes("json")
                );
            }
            let refunds = [("part", "refunds")];
            let cost = jvm
                .metrics()
                .value("heapwarden_agent_cpu_seconds_total", &refunds);
            assert!(
                interval != "exact" || cost > Some(0.0),
                "one refund in 256 is timed, and there were thousands: {cost:?}"
            );
            jvm.finish();
        });
    }
}

/// The enforcer plants an object at each collection and tags it as its own: charged besides, it
/// would stay charged for ever.
#[test]
fn what_the_agent_allocates_is_charged_to_nobody() {
    const COLLECTIONS: u32 = 24;
    on_each(&some_vms(1), |vm| {
        let mut jvm = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .argument("com.acme.billing")
            .argument("org.lib.xml")
            .argument("org.lib.json")
            .policy("[sampling]\ninterval = \"exact\"\n")
            .start();
        let plain_objects = |accounts: &Accounts| -> f64 {
            let background = accounts
                .list()
                .iter()
                .filter(|account| is_background(account));
            background
                .filter_map(|account| account["classes"].as_array())
                .flatten()
                .filter(|class| class["class"] == "java.lang.Object")
                .filter_map(|class| class["live_objects"].as_f64())
                .sum()
        };
        let before = plain_objects(&jvm.settled());
        for _ in 0..COLLECTIONS {
            jvm.ask("gc");
        }
        let after = plain_objects(&jvm.settled());
        // The JDK may make itself a lock or two.
        assert!(
            after - before < f64::from(COLLECTIONS) / 3.0,
            "{before} objects, and {after} after {COLLECTIONS} collections"
        );
        jvm.finish();
    });
}
