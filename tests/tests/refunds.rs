//! What is dropped and collected is refunded to the last byte, by every collector.

use heapwarden_tests::holdings::{JDK_KINDS, JDK_OWN_BYTES, JDK_OWN_OBJECTS, PLAIN_KINDS};
use heapwarden_tests::jdk::{every_vm, on_each};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::scrape::Accounts;

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

fn assert_empty(accounts: &Accounts) {
    for name in ACCOUNTS {
        let holding = accounts.holding(name);
        assert_eq!(
            [
                holding.live_bytes,
                holding.charged_bytes,
                holding.live_objects,
                holding.standard_error_bytes
            ],
            [0.0; 4],
            "{name} after everything died: live, charged, objects, standard error:\n{}",
            accounts.classes(name)
        );
        assert!(
            holding.allocated_bytes > 0.0,
            "{name} never held anything: the test shows nothing"
        );
    }
}

#[test]
fn everything_dropped_is_refunded_to_exactly_zero() {
    for interval in ["exact", "64KiB"] {
        on_each(every_vm(), |vm| {
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
                let json = accounts.holding("json");
                let own = if interval == "exact" {
                    (JDK_OWN_BYTES, JDK_OWN_OBJECTS)
                } else {
                    (0.0, 0.0)
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

/// The warden plants an object at each collection and tags it as its own: charged besides, it
/// would stay charged for ever.
#[test]
fn what_the_agent_allocates_is_charged_to_nobody() {
    const COLLECTIONS: u32 = 24;
    on_each(every_vm(), |vm| {
        let mut jvm = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .argument("com.acme.billing")
            .argument("org.lib.xml")
            .argument("org.lib.json")
            .policy("[sampling]\ninterval = \"exact\"\n")
            .start();
        let plain_objects = |accounts: &Accounts| -> f64 {
            let account = accounts.find("_unaccounted").expect("always listed");
            account["classes"]
                .as_array()
                .expect("listed with its classes")
                .iter()
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
