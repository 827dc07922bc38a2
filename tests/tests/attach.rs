//! `heapwarden attach` on real JVMs: what it prints, and what it does to the JVM.

use heapwarden_harness::proc_files;
use heapwarden_harness::process::Guard;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::{artifacts, scrape};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

fn g1() -> Vec<Vm> {
    every_jdk_with(Collector::G1)
}

/// Runs `heapwarden` with the library under test.
fn heapwarden(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command
        .args(arguments)
        .env("HEAPWARDEN_LIBRARY", artifacts::library())
        .env("NO_COLOR", "1");
    command::run(&mut command, LIMIT)
}

fn attach(jvm: &Jvm, more: &[&str]) -> Finished {
    let id = jvm.id().to_string();
    let mut arguments = vec!["attach", &id, "--yes"];
    arguments.extend(more);
    heapwarden(&arguments)
}

#[track_caller]
fn assert_code(finished: &Finished, code: i32) {
    assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
}

/// A program without the agent.
fn plain(vm: &Vm) -> Builder {
    victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .without_agent()
}

/// The address in the line `Metrics are on http://ADDRESS/metrics.`
fn told_address(finished: &Finished) -> SocketAddr {
    let told = finished.stdout.split_once("Metrics are on http://");
    let told = told.and_then(|(_, rest)| rest.split_once("/metrics."));
    let address = told.and_then(|(address, _)| address.parse().ok());
    address.unwrap_or_else(|| panic!("no address: {finished:#?}"))
}

#[test]
fn a_running_jvm_keeps_accounts_after_it_and_is_attached_to_once() {
    on_each(&g1(), |vm| {
        let mut jvm = plain(vm).start();
        let policy = jvm.folder().join("attached.toml");
        std::fs::write(
            &policy,
            "[sampling]\ninterval = \"exact\"\n[[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n",
        )
        .expect("the case's folder is writable");
        let policy = policy.display().to_string();
        let more = ["--config", &policy, "--option", "listen=127.0.0.1:0"];
        let attached = attach(&jvm, &more);
        assert_code(&attached, 0);
        let said = &attached.stdout;
        assert!(said.contains("HotSpot, G1, glibc"), "{said}");
        let (before, after) = said.split_once("Attached to").expect("it says so");
        assert!(before.contains("stays unaccounted"), "{before}");
        let warns = vm.jdk.feature >= 21;
        assert_eq!(before.contains("JEP 451"), warns, "{before}");
        // The policy's and that of the JVM itself; the program's has its first sample sooner or later.
        let counts = ["It keeps accounts, 2 so far", "It keeps accounts, 3 so far"];
        assert!(counts.iter().any(|said| after.contains(said)), "{after}");
        if warns {
            jvm.until_logged("loaded dynamically");
        }
        assert_eq!(
            jvm.log().contains("loaded dynamically"),
            warns,
            "{}",
            jvm.log()
        );

        let address = told_address(&attached);
        // A buffer that a thread had before is not sampled: use it up.
        jvm.ask("churn - bytes:10000*3000");
        jvm.ask("hold com.acme.orders bytes:984*500");
        let seen = command::poll(LIMIT, || {
            jvm.ask("gc");
            let orders = scrape::accounts(address).holding("orders");
            (orders.live_objects == 500.0).then_some(orders.live_bytes)
        });
        assert_eq!(
            seen,
            Some(500_000.0),
            "{}",
            scrape::accounts(address).brief()
        );

        let again = attach(&jvm, &more);
        assert_code(&again, 4);
        assert!(again.stderr.contains("loaded in it already"), "{again:#?}");
        assert!(again.stdout.contains(&address.to_string()), "{again:#?}");
        assert!(
            !jvm.log().contains("the second load"),
            "nothing was sent:\n{}",
            jvm.log()
        );
        let left: Vec<_> = std::fs::read_dir("/tmp")
            .expect("there is a /tmp")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| {
                name.starts_with(&format!("heapwarden-{}-", jvm.id()))
                    || *name == format!(".attach_pid{}", jvm.id())
            })
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        jvm.finish();
    });
}

#[test]
fn the_log_of_a_jvm_that_writes_it_to_a_file_is_shown() {
    on_each(&g1(), |vm| {
        let jvm = plain(vm).start();
        let log = jvm.folder().join("agent.log");
        std::fs::write(&log, "an older line of heapwarden\n").expect("writable");
        let option = format!("log={}", log.display());
        let attached = attach(
            &jvm,
            &["--option", "listen=127.0.0.1:0", "--option", &option],
        );
        assert_code(&attached, 0);
        assert!(attached.stdout.contains("  | "), "{attached:#?}");
        assert!(attached.stdout.contains("keeps accounts"), "{attached:#?}");
        assert!(!attached.stdout.contains("an older line"), "{attached:#?}");
        jvm.finish();
    });
}

#[test]
fn what_is_no_jvm_is_refused_and_lives_on() {
    // It does not catch SIGQUIT, which would end it.
    let mut sleep = Guard::start(Command::new("sleep").arg("600").stdin(Stdio::null()))
        .expect("coreutils are installed");
    let id = sleep.id().to_string();
    let refused = heapwarden(&["attach", &id, "--yes"]);
    assert_code(&refused, 1);
    assert!(refused.stderr.contains("it is no JVM"), "{refused:#?}");
    assert!(!refused.stdout.contains("Attached"), "{refused:#?}");
    assert_eq!(sleep.ended(), None, "the process lives on");
}

#[test]
fn a_process_that_is_not_there_is_said() {
    let gone = heapwarden(&["attach", "4194304", "--yes"]);
    assert_code(&gone, 1);
    assert!(
        gone.stderr.contains("there is no process 4194304"),
        "{gone:#?}"
    );
}

/// The JVM does not show a trace of an attempt, and goes on.
#[track_caller]
fn assert_untouched(mut jvm: Jvm) {
    jvm.ask("hold - bytes:1000*10");
    let maps = proc_files::read(jvm.id(), "maps").expect("it runs");
    assert!(!maps.contains("libheapwarden"), "not loaded");
    let log = jvm.log();
    assert!(
        !log.contains("Full thread dump"),
        "no SIGQUIT reached it:\n{log}"
    );
    jvm.finish();
}

#[test]
fn a_jvm_that_disables_attaching_is_told_from_its_flags() {
    on_each(&g1(), |vm| {
        let jvm = plain(vm).flag("-XX:+DisableAttachMechanism").start();
        let refused = attach(&jvm, &[]);
        assert_code(&refused, 1);
        assert!(
            refused.stderr.contains("-XX:+DisableAttachMechanism"),
            "{refused:#?}"
        );
        assert_untouched(jvm);
        let jvm = plain(vm).flag("-XX:-EnableDynamicAgentLoading").start();
        let refused = attach(&jvm, &[]);
        assert_code(&refused, 1);
        assert!(
            refused.stderr.contains("EnableDynamicAgentLoading"),
            "{refused:#?}"
        );
        assert_untouched(jvm);
    });
}

#[test]
fn a_flag_in_a_file_is_not_seen_and_the_jvms_own_answer_is_told() {
    on_each(&g1(), |vm| {
        let builder = plain(vm);
        let flags = builder.folder().join("flags");
        std::fs::write(&flags, "-EnableDynamicAgentLoading\n").expect("writable");
        let jvm = builder
            .flag(&format!("-XX:Flags={}", flags.display()))
            .start();
        let refused = attach(&jvm, &["--option", "listen=127.0.0.1:0"]);
        assert_code(&refused, 1);
        assert!(
            refused
                .stderr
                .contains("Dynamic agent loading is not enabled"),
            "{refused:#?}"
        );
        assert_untouched(jvm);
    });
}

#[test]
fn a_bad_policy_is_shown_with_a_caret_and_nothing_is_attached() {
    on_each(&g1(), |vm| {
        let jvm = plain(vm).start();
        let policy = jvm.folder().join("bad.toml");
        std::fs::write(&policy, "[[account]]\nservice = \"a\"\nlimt = \"1MiB\"\n")
            .expect("writable");
        let policy = policy.display().to_string();
        let refused = attach(&jvm, &["--config", &policy]);
        assert_code(&refused, 1);
        assert!(
            refused.stderr.contains("limt")
                && refused.stderr.contains("not attached: the policy file"),
            "{refused:#?}"
        );
        let missing = attach(&jvm, &["--config", "/nonexistent/heapwarden.toml"]);
        assert_code(&missing, 1);
        assert!(
            missing
                .stderr
                .contains("/nonexistent/heapwarden.toml cannot be read"),
            "{missing:#?}"
        );
        assert_untouched(jvm);
    });
}

#[test]
fn a_library_that_does_not_fit_and_a_wrong_option_are_refused() {
    on_each(&g1(), |vm| {
        let jvm = plain(vm).start();
        let text = jvm.folder().join("libheapwarden.so");
        std::fs::write(&text, "not a library").expect("writable");
        let text = text.display().to_string();
        let refused = attach(&jvm, &["--library", &text]);
        assert_code(&refused, 1);
        assert!(
            refused.stderr.contains("is no native library"),
            "{refused:#?}"
        );
        let refused = attach(&jvm, &["--option", "lisen=off"]);
        assert_code(&refused, 2);
        assert!(
            refused.stderr.contains("no option \"lisen\""),
            "{refused:#?}"
        );
        assert_untouched(jvm);
    });
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_done() {
    on_each(&g1(), |vm| {
        let jvm = plain(vm).start();
        let id = jvm.id().to_string();
        let refused = heapwarden(&["attach", &id]);
        assert_code(&refused, 1);
        assert!(refused.stderr.contains("--yes"), "{refused:#?}");
        assert!(
            refused.stdout.contains("Compared with the start-up flag"),
            "{refused:#?}"
        );
        assert_untouched(jvm);
    });
}
