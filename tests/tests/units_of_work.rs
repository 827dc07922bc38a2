//! Errors end units of work, and never a thread's own loop, nor a task of a pool unless the policy says so: those go
//! on, and are counted and told of. While the heap has room, nobody is slowed.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Over the limit of 32 MiB, with what samples do not know for certain.
const BEYOND: u64 = 56 << 20;
/// Bytes that one order makes a thread or task add.
const MORE: u64 = 4 << 20;
/// Bytes that a thread adds at a time while the test waits until the agent reports the account.
const LITTLE: u64 = 2 << 20;
/// More bytes than anybody gets to hold who is refused: code that made only garbage until now may go on until the heap
/// is collected, and young memory is at most 60 % of it.
const MOST: u64 = 900 << 20;
const ERROR: &str = "dev.heapwarden.MemoryQuotaExceededError";

fn policy(more: &str) -> String {
    format!(
        "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n\n[[account]]\nname = \"tenant\"\n\
         packages = [\"com.acme.tenant\"]\nlimit = \"32MiB\"\n{more}"
    )
}

fn deferred(jvm: &Jvm) -> f64 {
    let labels = [("account", "tenant"), ("reason", "no-unit")];
    jvm.metrics()
        .value("heapwarden_account_deferred_refusals_total", &labels)
        .unwrap_or(0.0)
}

fn put_in_force(jvm: &mut Jvm, path: &Path, more: &str, generation: u64) {
    fs::write(path, policy(more)).expect("the case's folder is writable");
    jvm.until(PATIENCE, "the policy is in force", |accounts| {
        accounts.0["policy"]["generation"] == generation
    });
}

/// An account that nothing stops is told of, with the reason and the frame, and only while that is so.
#[test]
fn refusals_that_stop_nobody_are_told_of() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.UnitsOfWork")
            .heap("1g")
            .policy(&policy(""));
        let mut jvm = builder.start();
        let said = |jvm: &Jvm| jvm.metrics().sum("heapwarden_account_ineffective");
        assert_eq!(jvm.ask(&format!("thread {BEYOND}")), ["went on"], "{vm}");
        jvm.until(PATIENCE, "the account is over", |accounts| {
            accounts.find("tenant").expect("it is listed")["state"] == "over"
        });
        let begun = Instant::now();
        // It must go on allocating for as long as it takes to be told of.
        let is_named = |jvm: &Jvm| {
            let accounts = jvm.accounts();
            let account = accounts.find("tenant").expect("it is listed");
            account["ineffective"]["frame"].is_string()
        };
        while !is_named(&jvm) || said(&jvm) != 1.0 {
            assert!(begun.elapsed() < PATIENCE, "{vm}\n{}", jvm.log());
            assert_eq!(jvm.ask(&format!("thread {LITTLE}")), ["went on"], "{vm}");
            thread::sleep(Duration::from_millis(300));
        }
        let accounts = jvm.accounts();
        let account = accounts.find("tenant").expect("it is listed");
        assert_eq!(account["ineffective"]["reason"], "no-unit", "{vm}");
        let frame = account["ineffective"]["frame"].as_str().unwrap_or_default();
        assert!(frame.starts_with("com.acme.tenant."), "{vm}: {account}");
        let told = format!("put off, mostly for the reason no-unit (in {frame}");
        jvm.until_logged(&told);
        let log = jvm.log();
        assert_eq!(log.matches(&told).count(), 1, "{vm}\n{log}");
        // It allocates no more, so nothing is due any more.
        jvm.until(PATIENCE, "it is not said any more", |accounts| {
            accounts.find("tenant").expect("it is listed")["ineffective"].is_null()
        });
        jvm.finish();
    });
}

#[test]
fn a_threads_own_loop_and_a_pools_task_go_on_and_a_unit_of_work_is_refused() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.UnitsOfWork")
            .heap("1g")
            .policy(&policy(""));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        assert_eq!(jvm.ask(&format!("thread {BEYOND}")), ["went on"], "{vm}");
        jvm.until(PATIENCE, "the account is over", |accounts| {
            accounts.find("tenant").expect("it is listed")["state"] == "over"
        });
        for kind in ["thread", "worker", "future", "stage", "virtual"] {
            let before = deferred(&jvm);
            let begun = Instant::now();
            loop {
                let answer = jvm.ask(&format!("{kind} {MORE}"));
                if answer == ["none"] {
                    break;
                }
                assert_eq!(answer, ["went on"], "{vm}: a {kind}");
                // Not before its stack is known.
                if deferred(&jvm) > before {
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "{vm}: a {kind} is not counted");
                // Figures that are read of the agent are a moment old.
                thread::sleep(Duration::from_millis(500));
            }
        }
        let metrics = jvm.metrics();
        let waited = metrics.sum("heapwarden_account_wait_seconds_total");
        assert_eq!(waited, 0.0, "{vm}: the heap has room");
        assert_eq!(metrics.sum("heapwarden_account_refusals_total"), 0.0);
        assert_eq!(metrics.sum("heapwarden_account_threads_killed_total"), 0.0);

        put_in_force(&mut jvm, &path, "tasks = \"interrupt\"\n", 2);
        for kind in ["future", "stage"] {
            let answer = jvm.ask(&format!("{kind} {MOST}"));
            assert_eq!(answer, [format!("refused {ERROR}")], "{vm}: a {kind}");
        }
        let answer = jvm.ask(&format!("virtual {MOST}"));
        if answer != ["none"] {
            assert_eq!(answer, [format!("ended {ERROR}")], "{vm}: a virtual thread");
        }

        let work = "work = [\"com.acme.tenant.Cleaner#run\"]\n";
        put_in_force(&mut jvm, &path, work, 3);
        for kind in ["thread", "worker"] {
            let answer = jvm.ask(&format!("{kind} {MOST}"));
            assert_eq!(answer, [format!("ended {ERROR}")], "{vm}: a named {kind}");
        }
        jvm.finish();
    });
}
