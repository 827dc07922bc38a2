//! Package accounts: the account closest to the allocation pays, and a library's caller pays for it.

use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::truth::Truth;
use std::time::Duration;

/// Overlapping patterns in an order in which file order would give wrong answers.
const POLICY: &str = r#"
[sampling]
interval = "exact"

[[account]]
name = "acme"
packages = ["com.acme.*"]

[[account]]
name = "orders"
packages = ["com.acme.orders"]

[[account]]
name = "deep"
packages = ["com.acme.orders.deep.*"]

[[account]]
name = "json"
packages = ["org.lib.json.*"]

[[account]]
name = "xml"
packages = ["org.lib.xml.*"]
charge = "caller"
"#;

const EVERY_DESK: [&str; 6] = [
    "com.acme.orders",
    "com.acme.orders.deep",
    "com.acme.orders.deep.below",
    "com.acme.billing",
    "org.lib.xml",
    "org.lib.json",
];

fn holder(vm: &heapwarden_tests::jdk::Vm, policy: &str) -> Builder {
    EVERY_DESK.iter().fold(
        victim(vm, "victim.Holder").policy(policy),
        |builder, desk| builder.argument(*desk),
    )
}

/// Holds a batch along `path` and asserts that exactly its bytes and objects came to `payer`, and
/// nothing to any other account but the program's.
fn assert_payer(jvm: &mut Jvm, path: &str, payer: &str) -> u64 {
    let before = jvm.settled();
    let truth = Truth::of(&jvm.ask(&format!("hold {path} bytes:1000*200 node*300 grid:9*10")));
    let after = jvm.settled();
    for account in ["acme", "orders", "deep", "json", "xml"] {
        let (was, is) = (before.holding(account), after.holding(account));
        let expected = if account == payer {
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
            "{path}: what came to {account}"
        );
    }
    truth.bytes
}

/// The program's frames are between the allocation and the account's: they are no service's before they are named.
#[test]
fn the_first_objects_are_their_packages_before_the_program_has_a_name() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let named = |accounts: &Accounts| accounts.find("victim.Holder").is_some();
        // Names come seconds late, but on a busy machine so may be this test.
        let unnamed = || {
            let jvm = holder(vm, POLICY).option("test-names=late").start();
            match named(&jvm.accounts()) {
                true => {
                    jvm.finish();
                    None
                }
                false => Some(jvm),
            }
        };
        let mut jvm = (0..10)
            .find_map(|_| unnamed())
            .expect("a program without a name yet");
        assert_payer(&mut jvm, "com.acme.orders", "orders");
        assert_payer(&mut jvm, "com.acme.billing>org.lib.xml", "acme");
        jvm.until(Duration::from_secs(60), "the program has its name", named);
        assert_payer(&mut jvm, "com.acme.orders", "orders");
        jvm.finish();
    });
}

#[test]
fn the_closest_account_pays_and_the_most_specific_pattern_wins() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = holder(vm, POLICY).start();
        assert_payer(&mut jvm, "com.acme.orders", "orders");
        assert_payer(&mut jvm, "com.acme.billing", "acme");
        assert_payer(&mut jvm, "com.acme.orders.deep", "deep");
        assert_payer(&mut jvm, "com.acme.orders.deep.below", "deep");
        assert_payer(&mut jvm, "com.acme.orders>com.acme.billing", "acme");
        assert_payer(&mut jvm, "com.acme.billing>com.acme.orders", "orders");
        assert_payer(&mut jvm, "com.acme.orders>org.lib.json", "json");
        jvm.finish();
    });
}

#[test]
fn a_package_without_star_does_not_cover_those_below() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let policy = "[sampling]\ninterval = \"exact\"\n\
                      [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n";
        let mut jvm = holder(vm, policy).start();
        assert_payer(&mut jvm, "com.acme.orders.deep", "victim.Holder");
        assert_payer(&mut jvm, "com.acme.orders", "orders");
        jvm.finish();
    });
}

#[test]
fn a_library_passes_the_bill_to_its_caller_however_deep() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = holder(vm, POLICY).start();
        assert_payer(&mut jvm, "com.acme.orders>org.lib.xml", "orders");
        assert_payer(&mut jvm, "com.acme.billing>org.lib.xml>org.lib.xml", "acme");
        assert_payer(&mut jvm, "com.acme.orders>+3>org.lib.xml>+3", "orders");
        assert_payer(&mut jvm, "com.acme.orders>+60>org.lib.xml>+60", "orders");
        assert_payer(&mut jvm, "com.acme.orders>org.lib.json>org.lib.xml", "json");
        // Called by nobody that the policy names, it passes the bill to the program.
        let truth = Truth::of(&jvm.ask("hold org.lib.xml bytes:1000*5000"));
        let accounts = jvm.settled();
        let charged = accounts.holding("victim.Holder").live_bytes;
        assert!(
            charged >= truth.bytes as f64,
            "{charged} of {}",
            truth.bytes
        );
        jvm.finish();
    });
}

#[test]
fn the_matrix_tells_who_caused_what_through_whom() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = holder(vm, POLICY).start();
        let xml = assert_payer(&mut jvm, "com.acme.orders>org.lib.xml", "orders");
        let json = assert_payer(&mut jvm, "com.acme.orders>org.lib.json", "json");
        let more = assert_payer(&mut jvm, "com.acme.billing>org.lib.json", "json");
        jvm.settled();
        let metrics = jvm.metrics();
        let cell = |principal: &str, agent: &str| {
            let labels = [("principal", principal), ("agent", agent)];
            metrics.value("heapwarden_principal_live_bytes", &labels)
        };
        assert_eq!(cell("orders", "xml"), Some(xml as f64));
        assert_eq!(cell("orders", "json"), Some(json as f64));
        assert_eq!(cell("acme", "json"), Some(more as f64));
        assert_eq!(cell("acme", "xml"), None);
        let accounts = jvm.accounts();
        assert_eq!(accounts.principal_bytes("json", "orders"), json as f64);
        assert_eq!(accounts.principal_bytes("json", "acme"), more as f64);
        jvm.finish();
    });
}

#[test]
fn classes_are_listed_with_what_they_hold() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = holder(vm, POLICY).start();
        jvm.ask("hold com.acme.orders bytes:984*100 longs:10*7");
        let accounts = jvm.settled();
        let classes = accounts.find("orders").expect("listed")["classes"].clone();
        let of = |name: &str| {
            classes
                .as_array()
                .and_then(|list| list.iter().find(|class| class["class"] == name))
                .unwrap_or_else(|| panic!("no {name} in {classes}"))
                .clone()
        };
        assert_eq!(of("byte[]")["live_bytes"].as_f64(), Some(100_000.0));
        assert_eq!(of("byte[]")["live_objects"].as_f64(), Some(100.0));
        assert_eq!(of("long[]")["live_objects"].as_f64(), Some(7.0));
        jvm.finish();
    });
}
