//! The thread that takes readings for the Java API: tests get exact figures from it, and where a bug ends
//! it, the failure is reported and no program waits for an answer that cannot come.

use std::time::{Duration, Instant};

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::tenants_host;
use heapwarden_tests::scrape;

/// The agent lets a program wait for three seconds; a program that is not kept waiting is told
/// within much less, however busy the machine.
const AT_ONCE: Duration = Duration::from_secs(1);

#[test]
fn a_failed_notifier_is_reported_and_keeps_no_program_waiting() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = tenants_host(vm).option("test-panic=notifier").start();
        // The first reading ends the thread; the second finds that there is none.
        for turn in ["first", "second"] {
            let begun = Instant::now();
            assert_eq!(jvm.ask("read _unaccounted"), ["absent"], "{}", jvm.log());
            let waited = begun.elapsed();
            assert!(waited < AT_ONCE, "the {turn} reading: {waited:?}");
        }
        let told = poll(PATIENCE, || {
            let answer = scrape::get(jvm.address(), "/-/ready");
            (answer.status == 503).then_some(answer.body)
        });
        let told = told.unwrap_or_else(|| panic!("it is ready: {}", jvm.log()));
        let sentence = "the agent's thread notifier has failed";
        assert!(told.contains(sentence), "{told}");
        jvm.until_logged(sentence);
        // Accounts are published without it.
        let accounts = jvm.accounts();
        assert!(!accounts.brief().is_empty(), "{accounts:?}");
        jvm.finish();
    });
}

/// Figures that a program asks for are read by a thread of the agent: the program's own passes over no record.
#[test]
fn figures_of_a_test_are_exact_and_read_by_the_notifier_alone() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let exact = "[sampling]\ninterval = \"exact\"\n";
        let mut jvm = tenants_host(vm).policy(exact).start();
        jvm.ask("hold tenant-a 1000 500");
        let held = jvm.settled().holding("tenant-a");
        assert!(held.live_objects >= 500.0, "{held:?}");
        let expected = format!("figures {} {}", held.live_bytes, held.live_objects);
        assert_eq!(jvm.ask("figures tenant-a"), [expected]);
        jvm.finish();

        let mut jvm = tenants_host(vm)
            .policy(exact)
            .option("test-panic=notifier")
            .start();
        jvm.ask("hold tenant-a 1000 500");
        jvm.settled();
        // The first ends the notifier; there is nobody to take another.
        for _ in 0..2 {
            let begun = Instant::now();
            assert_eq!(jvm.ask("figures tenant-a"), ["none"]);
            assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        }
        jvm.finish();
    });
}
