//! Threads that a refusal ended: counted and logged on every JDK, and no other thread is.

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::other_agent;

const BEGUN: &str = "threads that a refusal ends are counted from now on";
const MOST: u64 = 400 << 20;
/// Over the limit of 32 MiB, with what samples do not know for certain.
const BEYOND: u64 = 56 << 20;
const ERROR: &str = "dev.heapwarden.MemoryQuotaExceededError";

fn policy(mode: &str) -> String {
    format!(
        "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"{mode}\"\n\n[[account]]\nname = \"tenant\"\n\
         packages = [\"com.acme.tenant\"]\nwork = [\"com.acme.tenant\"]\nlimit = \"32MiB\"\n"
    )
}

/// Until it is known to be over it is not refused, and on a slow machine it might have all before.
fn until_over(jvm: &Jvm) {
    jvm.until(PATIENCE, "the account is over", |accounts| {
        accounts.is_in_state("tenant", "over")
    });
}

/// Asserts on the count that reports have.
fn assert_killed(jvm: &Jvm, count: u64) {
    let what = format!("{count} threads were killed");
    jvm.until(PATIENCE, &what, |accounts| {
        let account = accounts.find("tenant").expect("it is listed");
        account["threads_killed_total"] == count
    });
    let published = jvm.metrics().sum("heapwarden_account_threads_killed_total");
    assert_eq!(published, count as f64);
}

#[test]
fn a_thread_that_a_refusal_ends_is_counted_and_named() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = victim(vm, "victim.EndingThreads")
            .heap("512m")
            .policy(&policy("enforce"))
            .start();
        jvm.until_logged(BEGUN);
        assert_eq!(jvm.ask(&format!("catching {BEYOND}")), ["went on"]);
        until_over(&jvm);
        assert_eq!(
            jvm.ask(&format!("platform cleaner-1 {MOST}")),
            [format!("ended {ERROR}")],
            "{vm}: the program's handler runs"
        );
        jvm.until_logged(
            "account tenant: thread \"cleaner-1\" ended with an uncaught refusal, thrown in \
             com.acme.tenant.Cleaner.run; to spare it: never-interrupt = [\"com.acme.tenant.*\"]",
        );
        assert_killed(&jvm, 1);

        let caught = |jvm: &Jvm| jvm.log().matches(&format!("caught {ERROR}")).count();
        let before = caught(&jvm);
        assert_eq!(jvm.ask(&format!("catching {MOST}")), ["went on"]);
        let again = poll(PATIENCE, || (caught(&jvm) > before).then_some(()));
        assert!(again.is_some(), "{vm}: {}", jvm.log());
        assert_eq!(
            jvm.ask("other"),
            ["ended java.lang.IllegalStateException"],
            "{vm}"
        );
        assert_killed(&jvm, 1);

        let mut killed = 1;
        let answer = jvm.ask(&format!("virtual {MOST}"));
        if answer != ["none"] {
            assert_eq!(answer, [format!("ended {ERROR}")], "{vm}: a virtual thread");
            jvm.until_logged("account tenant: a thread without a name ended with an uncaught");
            killed += 1;
        }
        assert_killed(&jvm, killed);

        // More than there are lines in a minute.
        while killed < 24 {
            jvm.ask(&format!("platform cleaner {MOST}"));
            killed += 1;
        }
        assert_killed(&jvm, killed);
        let log = jvm.finish();
        let lines = log.matches("ended with an uncaught refusal").count();
        assert!((1..=20).contains(&lines), "{vm}: {lines} lines\n{log}");
    });
}

#[test]
fn it_begins_with_enforcement() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.EndingThreads")
            .heap("512m")
            .policy(&policy("observe"));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        assert_eq!(
            jvm.ask(&format!("platform observed {}", 64 << 20)),
            ["went on"]
        );
        until_over(&jvm);
        std::fs::write(&path, policy("enforce")).expect("the case's folder is writable");
        jvm.until_logged(BEGUN);
        assert_eq!(
            jvm.ask(&format!("platform cleaner-1 {MOST}")),
            [format!("ended {ERROR}")],
            "{vm}"
        );
        assert_killed(&jvm, 1);

        other_agent::transform_afresh(jvm.id(), &["java.lang.Thread"]);
        jvm.until_logged("another agent has changed java.lang.Thread");
        jvm.ask(&format!("platform cleaner-2 {MOST}"));
        assert_killed(&jvm, 2);
        jvm.finish();
    });
}
