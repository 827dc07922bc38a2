//! The application goes on if the agent fails: a bug in one of its threads, or a log that cannot be written.

use std::fs;
use std::time::Duration;

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;

const MIB: u64 = 1 << 20;
/// Longest that a verdict, or word of a failure, may take on a busy machine.
const SOON: Duration = Duration::from_secs(90);

fn policy(mode: &str) -> String {
    format!(
        "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"{mode}\"\n\n[[account]]\nname = \"tenant\"\n\
         packages = [\"com.acme.tenant\"]\nwork = [\"com.acme.tenant\"]\nlimit = \"64MiB\"\nthrow = \"error\"\n"
    )
}

/// Has the tenant hold more than its limit until it is refused. What it holds before the verdict is
/// bounded by bytes: a busy machine may take long over it.
fn assert_refused(jvm: &mut Jvm, what: &str) {
    let drip = |most: u64| format!("drip 10000 {} {}", most * MIB, 40 * MIB);
    let mut answer = jvm.ask(&drip(100));
    if answer[0].starts_with("refused nothing") {
        jvm.until(SOON, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        answer = jvm.ask(&drip(300));
    }
    let is_refused = answer[0].starts_with("refused dev.heapwarden.");
    assert!(is_refused, "{what}: {answer:?}: {}", jvm.log());
}

/// `/-/ready` says what has failed, and from then on nobody is refused, however much is leaked.
fn assert_nobody_is_refused(jvm: &mut Jvm, thread: &str) {
    let told = poll(SOON, || {
        let (status, said) = ready(jvm);
        (status == 503).then_some(said)
    });
    let told = told.unwrap_or_else(|| panic!("it is ready: {}", jvm.log()));
    assert!(
        told.contains(&format!("thread {thread} has failed")),
        "{told}"
    );
    // The enforcer, if it still runs, opens the gates at its next turn.
    let freed = poll(PATIENCE, || {
        (jvm.ask("allocate 100000")[0] == "allowed").then_some(())
    });
    assert!(freed.is_some(), "{}", jvm.log());
    let answer = jvm.ask(&format!("leak 1 10000 {} 0", 64 * MIB));
    assert!(answer[0].starts_with("held"), "{answer:?}: {}", jvm.log());
    let sentence = format!("the agent's thread {thread} has failed");
    jvm.until_logged(&sentence);
}

#[test]
fn without_the_enforcer_nobody_is_refused() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = victim(vm, "victim.LimitedTenant")
            .heap("512m")
            .option("test-panic=enforcer")
            .policy(&policy("enforce"))
            .start();
        // Some of it may be refused, until the enforcer fails.
        jvm.ask(&format!("leak 1 10000 {} 0", 100 * MIB));
        assert_nobody_is_refused(&mut jvm, "enforcer");
        jvm.finish();
    });
}

#[test]
fn without_the_metadata_thread_nobody_is_refused_by_a_policy_that_cannot_be_changed() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.LimitedTenant")
            .heap("512m")
            .option("test-panic=metadata")
            .policy(&policy("enforce"));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        assert_refused(&mut jvm, "before the failure");
        fs::write(path, policy("observe")).expect("the case's folder is writable");
        assert_nobody_is_refused(&mut jvm, "metadata");
        jvm.finish();
    });
}

/// Both ways to log end in a full disk: verdicts are found and taken back all the same, and the policy is
/// read.
#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        for log in [None, Some("log=/dev/full")] {
            let mut builder = victim(vm, "victim.LimitedTenant")
                .heap("512m")
                .standard_error_full()
                .policy(&policy("enforce"));
            if let Some(log) = log {
                builder = builder.option(log);
            }
            let path = builder.policy_path();
            let mut jvm = builder.start();
            assert_refused(&mut jvm, &format!("{log:?}"));
            jvm.ask("drop");
            jvm.until(SOON, "the account is open again", |accounts| {
                accounts.is_in_state("tenant", "open")
            });
            assert_eq!(jvm.ask("allocate 100000"), ["allowed"]);
            fs::write(&path, policy("observe")).expect("the case's folder is writable");
            jvm.until(SOON, "the policy is read", |accounts| {
                accounts.0["policy"]["mode"] == "observe"
            });
            let (ready, said) = ready(&jvm);
            assert_eq!(ready, 200, "{said}");
            assert_eq!(
                jvm.metrics()
                    .value("heapwarden_samples_dropped_total", &[("reason", "panic")]),
                Some(0.0)
            );
            jvm.finish();
        }
    });
}

fn ready(jvm: &Jvm) -> (u16, String) {
    let answer = scrape::get(jvm.address(), "/-/ready");
    (answer.status, answer.body)
}
