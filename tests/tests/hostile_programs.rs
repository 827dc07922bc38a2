//! Programs that try to mislead, block or exhaust the agent, and collections that it must not ask for.

use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, every_vm, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::scrape::{Accounts, is_background};
use heapwarden_tests::truth::Truth;
use heapwarden_tests::{command, java};
use std::fs;
use std::time::{Duration, Instant};

const EXACT: &str = "[sampling]\ninterval = \"exact\"\n";

/// Longest that a new service may stay without its name, and a policy out of force, on a busy
/// machine.
const NAMED: Duration = Duration::from_secs(60);

fn hostile(vm: &Vm) -> Builder {
    victim(vm, "victim.HostileProgram").argument(java::classes().tenant())
}

/// Whether this is generational ZGC, whose minor collections report no deaths.
fn is_generational_z(vm: &Vm) -> bool {
    vm.collector == Collector::GenerationalZ
        || (vm.collector == Collector::Z && vm.jdk.feature >= 23)
}

/// Waits until `account` was charged what the victim says it made for it.
fn assert_comes_to(jvm: &Jvm, account: &str, truth: &Truth) {
    jvm.until(
        NAMED,
        &format!("{account} is charged {truth:?}"),
        |accounts: &Accounts| accounts.holding(account).charged_bytes >= truth.bytes as f64,
    );
}

fn sum_of_live_bytes(accounts: &Accounts) -> f64 {
    assert_eq!(accounts.0["accounts_omitted"], 0, "all must be listed");
    accounts
        .list()
        .iter()
        .filter_map(|account| account["live_bytes"].as_f64())
        .sum()
}

#[test]
fn no_code_of_a_tenant_is_run_however_it_is_named() {
    let impostors = [
        "org.apache.catalina.loader.WebappClassLoaderBase",
        "org.eclipse.jetty.evil.WebAppClassLoader",
        "org.eclipse.jetty.still.WebAppClassLoader",
    ];
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        for impostor in impostors {
            let policy = |limit: &str| {
                format!("{EXACT}[[account]]\nservice = \"honest-*\"\nlimit = \"{limit}\"\n")
            };
            let builder = hostile(vm).policy(&policy("1MiB"));
            let path = builder.policy_path();
            let mut jvm = builder.start();
            jvm.ask("shadow honest-before unused 100 10");
            jvm.ask(&format!("impersonate tenant {impostor}"));
            // A loader that has no name yet is asked again and again: a few times at least.
            std::thread::sleep(Duration::from_secs(1));
            let truth = Truth::of(&jvm.ask("shadow honest-after unused 1000 100"));
            assert_comes_to(&jvm, "honest-after", &truth);
            fs::write(path, policy("2MiB")).expect("the case's folder is writable");
            jvm.until(NAMED, "the new policy is in force", |accounts| {
                ["honest-before", "honest-after"].iter().all(|name| {
                    accounts
                        .find(name)
                        .is_some_and(|account| account["limit_bytes"] == 2 << 20)
                })
            });
            let log = jvm.finish();
            assert!(!log.contains("ran on"), "{impostor}:\n{log}");
        }
    });
}

#[test]
fn a_loaders_own_fields_do_not_pass_for_those_of_the_jdk() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = hostile(vm).policy(EXACT).start();
        let named = Truth::of(&jvm.ask("shadow svc-real liar 1000 100"));
        let child = Truth::of(&jvm.ask("shadowParent svc-parent impostor 500 100"));
        assert_comes_to(&jvm, "svc-real", &named);
        assert_comes_to(&jvm, "svc-parent", &child);
        let accounts = jvm.accounts();
        for lie in ["liar", "impostor"] {
            assert!(accounts.find(lie).is_none(), "{}", accounts.brief());
        }
        jvm.finish();
    });
}

#[test]
fn a_healthy_collector_is_left_alone() {
    let healthy: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| !is_generational_z(vm))
        .cloned()
        .collect();
    on_each(&healthy, |vm| {
        let mut jvm = hostile(vm).heap("64m").flag("-Xlog:gc:file=gc.log").start();
        let enough = command::poll(command::PATIENCE, || {
            jvm.ask("churn 6000");
            let metrics = jvm.metrics();
            (metrics.sum("heapwarden_gc_epoch") >= 10.0).then_some(metrics)
        });
        let metrics = enough.unwrap_or_else(|| panic!("too few collections: {}", jvm.log()));
        let asked = metrics.sum("heapwarden_evidence_collections_total");
        let log = fs::read_to_string(jvm.folder().join("gc.log")).expect("the JVM writes it");
        jvm.finish();
        assert_eq!(asked, 0.0, "collections that the agent asked for");
        assert!(!log.contains("ForceGarbageCollection"), "{log}");
    });
}

#[test]
fn where_deaths_go_unreported_the_agent_asks_and_keeps_to_its_budget() {
    let vms: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| is_generational_z(vm))
        .cloned()
        .collect();
    if vms.is_empty() {
        eprintln!("no JDK here has a generational ZGC");
        return;
    }
    on_each(&vms, |vm| {
        let started = Instant::now();
        // On a busy machine the interval would widen, and the charges with it be too vague to compare.
        let mut jvm = hostile(vm)
            .heap("128m")
            .policy("[sampling]\ncpu-budget = \"none\"\n")
            .start();
        let address = jvm.address();
        // The charges without three times their error: the agent promises that these do not stay above the heap.
        let surely_charged = |accounts: &Accounts| -> f64 {
            let (charged, variance) = accounts.list().iter().fold((0.0, 0.0), |sums, account| {
                let figure = |key: &str| account[key].as_f64().unwrap_or(0.0);
                let error = figure("standard_error_bytes");
                (sums.0 + figure("charged_bytes"), sums.1 + error * error)
            });
            charged - 3.0 * f64::sqrt(variance)
        };
        let heap = jvm.accounts().0["heap"]["max_bytes"]
            .as_f64()
            .expect("known");
        // Where the machine is busy, the JVM may collect all memory of its own accord for a while:
        // then the charges stay below the heap, and nothing need be asked for.
        let asked_for = |jvm: &Jvm| jvm.metrics().sum("heapwarden_evidence_collections_total");
        let mut exceeded = false;
        for round in 0.. {
            jvm.tell("churn 8000");
            let exceeds = command::poll(Duration::from_secs(8), || {
                (surely_charged(&heapwarden_tests::scrape::accounts(address)) > heap).then_some(())
            });
            exceeded |= exceeds.is_some();
            // Answered after the churn: the line that `tell` has left out.
            jvm.ask("churn 1");
            let accounts = jvm.until(NAMED, "charged comes back under the heap", |accounts| {
                surely_charged(accounts) <= heap
            });
            if exceeded && asked_for(&jvm) > 0.0 {
                break;
            }
            assert!(
                round < 5,
                "exceeded the heap: {exceeded}; none was asked for: {}",
                accounts.brief()
            );
        }
        let metrics = jvm.metrics();
        let asked = metrics.sum("heapwarden_evidence_collections_total");
        let seconds = metrics.sum("heapwarden_evidence_seconds_total");
        let wall = started.elapsed().as_secs_f64();
        eprintln!("{vm}: {asked} collections, {seconds:.3} s of {wall:.1} s");
        // The last one is paid for by the pause after it, and may take longer than the average.
        let one = seconds / asked;
        assert!(
            seconds <= 0.05 * wall + 2.0 * one,
            "{seconds} s of {wall} s in {asked} collections"
        );
        jvm.finish();
    });
}

#[test]
fn reloads_among_thousands_of_classes_keep_the_rules_of_jni() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let with = format!(
            "{EXACT}[[account]]\nname = \"victims\"\npackages = [\"victim.*\"]\n\
             [[account]]\nname = \"util\"\npackages = [\"java.util.*\"]\n"
        );
        let builder = hostile(vm).policy(EXACT);
        let path = builder.policy_path();
        let mut jvm = builder.start();
        assert_eq!(jvm.ask("load 4000"), ["loaded 4000"]);
        for round in 0..4 {
            fs::write(&path, &with).expect("the case's folder is writable");
            jvm.until(NAMED, "package accounts are on", |accounts| {
                accounts.find("victims").is_some()
            });
            let before = jvm.accounts().holding("victims").allocated_bytes;
            jvm.ask("shadow svc unused 100000 1");
            jvm.until(
                NAMED,
                &format!("round {round}: it is charged"),
                |accounts| accounts.holding("victims").allocated_bytes - before >= 100_000.0,
            );
            fs::write(&path, EXACT).expect("the case's folder is writable");
            jvm.until(NAMED, "package accounts are off", |accounts| {
                accounts.find("victims").is_none()
            });
        }
        let log = jvm.finish();
        // Stricter than the harness, which passes over what the JDK's own beans do.
        let warned: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("WARNING"))
            .collect();
        assert!(warned.is_empty(), "{warned:?}\n{log}");
    });
}

/// More loaders at once than the queue to the loader thread has room for.
#[test]
fn a_flood_of_loaders_loses_nothing_and_leaves_nothing() {
    on_each(&one_jdk_with(Collector::Serial, 0), |vm| {
        // Buffers of a fixed size: see `services.rs`, `the_accounts_sum_to_the_heap`.
        const BUFFER_BYTES: f64 = 16_384.0;
        let mut jvm = hostile(vm)
            .policy(&format!(
                "{EXACT}[[account]]\nname = \"victim.host\"\nservice = \"victim.*\"\n\
                 [[account]]\nname = \"all\"\nservice = \"*\"\n"
            ))
            .flag("-XX:TLABSize=16k")
            .flag("-XX:-ResizeTLAB")
            .start();
        let used = |accounts: &Accounts| -> f64 {
            accounts.0["heap"]["used_after_gc_bytes"]
                .as_f64()
                .expect("known")
        };
        // Objects that are made the first time a service is met are no part of the flood.
        jvm.ask("flood 10 200");
        jvm.ask("drop");
        for _ in 0..3 {
            jvm.ask("gc");
        }
        let before = jvm.settled();
        let truth = Truth::of(&jvm.ask("flood 20000 200"));
        assert_comes_to(&jvm, "all", &truth);
        let after = jvm.settled();
        let all = after.holding("all");
        assert_eq!(
            (all.live_bytes, all.live_objects),
            (truth.bytes as f64, truth.objects as f64),
            "{}",
            after.classes("all")
        );
        let charged = sum_of_live_bytes(&after) - sum_of_live_bytes(&before);
        let held = used(&after) - used(&before);
        assert!(
            (charged - held).abs() <= 4.0 * BUFFER_BYTES,
            "charged {charged}, held {held} bytes more"
        );

        jvm.ask("drop");
        for _ in 0..3 {
            jvm.ask("gc");
        }
        let dropped = jvm.settled();
        assert_eq!(dropped.holding("all").live_bytes, 0.0);
        // The refunds of some hundred thousand objects come in over a while.
        let left = |accounts: &Accounts| sum_of_live_bytes(accounts) - sum_of_live_bytes(&before);
        let begin = Instant::now();
        let returned = jvm.until(NAMED, "everything returns to nothing", |accounts| {
            let held = used(accounts) - used(&before);
            (left(accounts) - held).abs() <= 4.0 * BUFFER_BYTES && left(accounts) < 0.01 * charged
        });
        eprintln!(
            "{vm}: {} bytes left once settled, {} after {:?} more",
            left(&dropped),
            left(&returned),
            begin.elapsed()
        );
        let fresh = Truth::of(&jvm.ask("shadow svc-fresh unused 1000 100"));
        assert_comes_to(&jvm, "all", &fresh);
        jvm.finish();
    });
}

/// Live objects of a class, in all accounts.
fn objects_of(accounts: &Accounts, class: &str) -> f64 {
    accounts
        .list()
        .iter()
        .filter_map(|account| account["classes"].as_array())
        .flatten()
        .filter(|listed| listed["class"] == class)
        .filter_map(|listed| listed["live_objects"].as_f64())
        .sum()
}

/// Tomcat's loaders have no name before they are given their resources: they are looked at ever
/// again, each look holds them for a moment, and each looks like a loader that may yet be named.
#[test]
fn loaders_that_never_get_a_name_are_forgotten_like_others() {
    const PENDING: &str = "org.apache.catalina.loader.Pending";
    const COUNT: f64 = 3_000.0;
    let vms: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| {
            [Collector::Serial, Collector::Z, Collector::GenerationalZ].contains(&vm.collector)
        })
        .cloned()
        .collect();
    on_each(&vms, |vm| {
        let mut jvm = hostile(vm).policy(EXACT).start();
        jvm.ask("pend 1 200");
        jvm.ask("drop");
        jvm.ask("gc");
        let before = jvm.settled().holding("_unaccounted").live_bytes;
        let truth = Truth::of(&jvm.ask(&format!("pend {COUNT} 200")));
        let held = jvm.settled();
        assert_eq!(objects_of(&held, PENDING), COUNT);
        assert!(held.holding("_unaccounted").live_bytes - before >= truth.bytes as f64);
        jvm.ask("drop");
        // A look may keep one through a collection that it comes upon.
        let gone = command::poll(NAMED, || {
            jvm.ask("gc");
            let accounts = jvm.settled();
            let left = accounts.holding("_unaccounted").live_bytes - before;
            (objects_of(&accounts, PENDING) == 0.0 && left < 0.1 * truth.bytes as f64).then_some(())
        });
        assert!(
            gone.is_some(),
            "left: {}",
            jvm.accounts().classes("_unaccounted")
        );
        jvm.finish();
    });
}

/// Both threads number the loader, and one tag stays on it. What the other has opened for it must
/// be counted with it while it lives, and go with it.
#[test]
fn loaders_met_by_two_threads_at_once_are_one_service_and_leave_nothing() {
    on_each(&one_jdk_with(Collector::Serial, 2), |vm| {
        let mut jvm = hostile(vm).policy(EXACT).start();
        let truth = Truth::of(&jvm.ask("race 4000 200"));
        let of_races = |accounts: &Accounts| -> (f64, f64) {
            accounts
                .list()
                .iter()
                .filter(|account| !is_background(account))
                .map(|account| {
                    let figure = |name: &str| account[name].as_f64().expect("a number");
                    (figure("charged_bytes"), figure("live_objects"))
                })
                .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        };
        jvm.until(NAMED, "all are named", |accounts| {
            of_races(accounts).0 >= truth.bytes as f64
        });
        let held = jvm.settled();
        assert_eq!(
            of_races(&held),
            (truth.bytes as f64, truth.objects as f64),
            "{}",
            held.brief()
        );
        for account in held.list() {
            let name = account["name"].as_str().expect("a name");
            if name.starts_with("race-") {
                assert_eq!(account["live_objects"], 2.0, "{name}: one of each thread");
            }
        }
        jvm.ask("drop");
        let forgotten = command::poll(2 * NAMED, || {
            jvm.ask("gc");
            let accounts = jvm.settled();
            // The program's own account stays.
            let others = (accounts.list().iter())
                .filter(|account| account["name"] != "victim.HostileProgram");
            (others.count() == 1 && accounts.0["accounts_omitted"] == 0).then_some(())
        });
        assert!(forgotten.is_some(), "left: {}", jvm.accounts().brief());
        jvm.finish();
    });
}

/// A look at a weakly held loader keeps it alive through a marking that is under way.
#[test]
fn dropped_loaders_go_as_soon_as_without_the_agent() {
    let concurrent: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| {
            ![Collector::Serial, Collector::Parallel, Collector::G1].contains(&vm.collector)
        })
        .cloned()
        .collect();
    assert!(!concurrent.is_empty(), "no JDK here has ZGC or Shenandoah");
    on_each(&concurrent, |vm| {
        for with_agent in [false, true] {
            let server = victim(vm, "victim.ServiceHost")
                .argument(java::classes().tenant())
                .policy(EXACT);
            let mut jvm = if with_agent {
                server.start()
            } else {
                server.without_agent().start()
            };
            for service in 0..20 {
                jvm.ask(&format!("deploy svc-{service}"));
                jvm.ask(&format!("call svc-{service} own 1000 10"));
            }
            if with_agent {
                jvm.until(NAMED, "all are named", |accounts| {
                    (0..20).all(|service| accounts.find(&format!("svc-{service}")).is_some())
                });
            }
            for service in 0..20 {
                jvm.ask(&format!("undeploy svc-{service}"));
                jvm.ask(&format!("release svc-{service}"));
            }
            let answers: Vec<String> = (0..3)
                .map(|_| {
                    jvm.ask("gc");
                    jvm.ask("loaders").concat()
                })
                .collect();
            assert_eq!(
                answers[2], "loaders 0 of 20",
                "with the agent: {with_agent}; {answers:?}"
            );
            jvm.finish();
        }
    });
}
