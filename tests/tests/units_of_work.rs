//! Errors end units of work, and never a thread's own loop: that is slowed, counted and told of.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};

/// Over the limit of 32 MiB, with what samples do not know for certain.
const BEYOND: u64 = 56 << 20;
/// What a thread adds that is slowed for about two seconds by it.
const MORE: u64 = 8 << 20;
/// What nobody gets to hold who is refused: what made only garbage until now may go on until the heap is
/// collected, and young memory is at most 60 % of it.
const MOST: u64 = 900 << 20;
const ERROR: &str = "dev.heapwarden.MemoryQuotaExceededError";

fn policy(more: &str) -> String {
    format!(
        "[enforcement]\nmode = \"enforce\"\n\n[[account]]\nname = \"tenant\"\n\
         packages = [\"com.acme.tenant\"]\nlimit = \"32MiB\"\n{more}"
    )
}

fn deferred(jvm: &Jvm) -> f64 {
    let labels = [("account", "tenant"), ("reason", "no-unit")];
    jvm.metrics()
        .value("heapwarden_account_deferred_refusals_total", &labels)
        .unwrap_or(0.0)
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
        // Slowed to 4 MiB a second: for longer than it takes to be told of.
        assert_eq!(
            jvm.ask(&format!("thread {}", 100 << 20)),
            ["went on"],
            "{vm}"
        );
        assert_eq!(said(&jvm), 1.0, "{vm}\n{}", jvm.log());
        let accounts = jvm.accounts();
        let account = accounts.find("tenant").expect("it is listed");
        assert_eq!(account["ineffective"]["reason"], "no-unit", "{vm}");
        let frame = account["ineffective"]["frame"].as_str().unwrap_or_default();
        assert!(frame.starts_with("com.acme.tenant."), "{vm}: {account}");
        let told = format!("put off, mostly for the reason no-unit (in {frame}");
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
fn a_threads_own_loop_is_slowed_and_a_unit_of_work_is_refused() {
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
        for kind in ["thread", "worker"] {
            let waited = jvm.metrics().sum("heapwarden_account_wait_seconds_total");
            let before = deferred(&jvm);
            assert_eq!(jvm.ask(&format!("{kind} {MORE}")), ["went on"], "{vm}");
            assert!(deferred(&jvm) > before, "{vm}: a {kind} is counted");
            let slowed = jvm.metrics().sum("heapwarden_account_wait_seconds_total") - waited;
            // 8 MiB at 4 MiB a second, less what sampling may miss.
            assert!(slowed >= 1.0, "{vm}: a {kind} was slowed for {slowed} s");
        }
        let metrics = jvm.metrics();
        assert_eq!(metrics.sum("heapwarden_account_refusals_total"), 0.0);
        assert_eq!(metrics.sum("heapwarden_account_threads_killed_total"), 0.0);

        for kind in ["future", "stage"] {
            let answer = jvm.ask(&format!("{kind} {MOST}"));
            assert_eq!(answer, [format!("refused {ERROR}")], "{vm}: a {kind}");
        }
        let answer = jvm.ask(&format!("virtual {MOST}"));
        if answer != ["none"] {
            assert_eq!(answer, [format!("ended {ERROR}")], "{vm}: a virtual thread");
        }

        let work = "work = [\"com.acme.tenant.Cleaner#run\"]\n";
        std::fs::write(&path, policy(work)).expect("the case's folder is writable");
        jvm.until(PATIENCE, "the policy is in force", |accounts| {
            accounts.0["policy"]["generation"] == 2
        });
        for kind in ["thread", "worker"] {
            let answer = jvm.ask(&format!("{kind} {MOST}"));
            assert_eq!(answer, [format!("ended {ERROR}")], "{vm}: a named {kind}");
        }
        jvm.finish();
    });
}
