//! A thousand platform threads and ten thousand virtual ones, in several accounts at once; and the
//! agent's own threads, which no signal of the process reaches.

use heapwarden_harness::proc_files;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jdk::{on_each, some_vms};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::truth::Truth;

const POLICY: &str = r#"
[sampling]
interval = "exact"

[[account]]
name = "orders"
packages = ["com.acme.orders"]

[[account]]
name = "billing"
packages = ["com.acme.billing"]

[[account]]
name = "json"
packages = ["org.lib.json"]
charge = "caller"
"#;

/// Bytes and objects that the JDK may keep for itself of what twenty thousand threads do.
const JDK_KEEPS: (f64, f64) = (65_536.0, 1_024.0);

#[test]
fn no_thread_is_lost_among_thousands() {
    on_each(&some_vms(2), |vm| {
        let mut jvm = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .argument("com.acme.billing")
            .argument("org.lib.json")
            .heap("512m")
            .policy(POLICY)
            .start();
        // 18 objects: four million bytes and 180,000 records for ten thousand threads, well within the
        // agent's bounded table of records.
        let batch = "bytes:2000*4 boxed*6 grid:12*2";
        let mut orders = vec![
            ("orders", format!("threads 1000 com.acme.orders {batch}")),
            (
                "billing",
                format!("threads 1000 com.acme.billing>org.lib.json {batch}"),
            ),
        ];
        if vm.jdk.feature >= 21 {
            orders[0].1 = format!("virtual 10000 com.acme.orders {batch}");
            orders[1].1 = format!("virtual 10000 com.acme.billing>org.lib.json {batch}");
            orders.push(("orders", format!("threads 1000 com.acme.orders {batch}")));
        }
        let mut expected = [("orders", (0.0, 0.0)), ("billing", (0.0, 0.0))];
        for (account, order) in &orders {
            let truth = Truth::of(&jvm.ask(order));
            for (name, (bytes, objects)) in &mut expected {
                if name == account {
                    *bytes += truth.bytes as f64;
                    *objects += truth.objects as f64;
                }
            }
        }
        let accounts = jvm.settled();
        assert_eq!(
            accounts.0["sampling"]["dropped"], 0,
            "dropped samples: {}",
            accounts.0["sampling"]
        );
        for (name, truth) in expected {
            let holding = accounts.holding(name);
            // A lost thread would be eighteen objects too few. More than the threads hold is the
            // JDK's own: what it makes for them under their frames and keeps (a queue node of a
            // lock, an entry of a map), an object or two for the few that have to wait.
            let more = (holding.live_bytes - truth.0, holding.live_objects - truth.1);
            assert!(
                (0.0..=JDK_KEEPS.0).contains(&more.0) && (0.0..=JDK_KEEPS.1).contains(&more.1),
                "{name}: {more:?} bytes and objects more than all threads hold: {}",
                accounts.brief()
            );
        }
        jvm.finish();
    });
}

/// Linux keeps 15 bytes of a thread's name, and newer JVMs shorten it in the middle.
fn is_agents(name: &str) -> bool {
    name.starts_with("heapwar") || name.starts_with("notify-rs")
}

/// Names and blocked signals of the agent's threads in a process.
fn agents_threads(process: u32) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for status in proc_files::threads(process, "status") {
        let field = |name: &str| {
            let field = proc_files::field(&status, name);
            field.unwrap_or_else(|| panic!("no {name} in {status}"))
        };
        let name = field("Name");
        if is_agents(name) {
            let mask = u64::from_str_radix(field("SigBlk"), 16).expect("a mask in hexadecimal");
            found.push((name.to_owned(), mask));
        }
    }
    found.sort();
    found
}

/// Signals to the process are the JVM's: it shuts down, or prints its threads, on threads of its own.
#[test]
fn every_thread_of_the_agent_blocks_signals_to_the_process() {
    const SIGNALS: [(&str, u32); 3] = [("SIGINT", 2), ("SIGQUIT", 3), ("SIGTERM", 15)];
    // Loaders, metadata, enforcer, collections, holdings, snapshots, notifier, policy watch, its source of events,
    // listener.
    const THREADS: usize = 10;
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let jvm = victim(vm, "victim.Holder").policy(POLICY).start();
        let found = poll(PATIENCE, || {
            Some(agents_threads(jvm.id())).filter(|found| found.len() >= THREADS)
        });
        let found = found.unwrap_or_else(|| panic!("only {:?}", agents_threads(jvm.id())));
        assert_eq!(found.len(), THREADS, "{found:?}");
        for (name, mask) in &found {
            for (signal, number) in SIGNALS {
                assert!(
                    mask & (1 << (number - 1)) != 0,
                    "{name} takes {signal}: {found:?}"
                );
            }
        }
        jvm.finish();
    });
}
