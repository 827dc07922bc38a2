//! The policy file changes under a running JVM, in every way in which editors and clusters do it.

use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

/// Longest that a change may take to be in force on a busy machine.
const IN_FORCE: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;

fn policy(limit_mib: u64) -> String {
    format!(
        "[sampling]\ninterval = \"exact\"\n[[account]]\nname = \"orders\"\n\
         packages = [\"com.acme.orders\"]\nlimit = \"{limit_mib}MiB\"\n"
    )
}

fn holder() -> Builder {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    victim(&vm, "victim.Holder").argument("com.acme.orders")
}

fn assert_limit(jvm: &Jvm, mib: u64) {
    jvm.until(IN_FORCE, &format!("the limit is {mib} MiB"), |accounts| {
        accounts
            .find("orders")
            .is_some_and(|account| account["limit_bytes"] == mib * MIB)
    });
}

fn reload_successful(jvm: &Jvm) -> Option<f64> {
    jvm.metrics()
        .value("heapwarden_policy_last_reload_successful", &[])
}

/// Waits until the metrics say that the latest reload succeeded (1) or failed (0).
fn await_reload(jvm: &Jvm, wanted: f64, what: &str) {
    let shown = poll(IN_FORCE, || {
        (reload_successful(jvm) == Some(wanted)).then_some(())
    });
    assert!(shown.is_some(), "not {wanted} after: {what}\n{}", jvm.log());
}

/// Writes beside the file and renames over it, as editors and package managers do.
fn rename_over(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).expect("writable");
    fs::rename(beside, path).expect("the same folder");
}

#[test]
fn rename_and_truncate_take_effect_and_accounts_keep_their_charges() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let builder = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .policy(&policy(50));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("hold com.acme.orders bytes:984*1000");
        let held = jvm.settled().holding("orders");
        assert_eq!(held.live_bytes, 1_000_000.0);
        assert_limit(&jvm, 50);
        let first = jvm.accounts().0["policy"]["generation"].as_u64();

        rename_over(&path, &policy(60));
        assert_limit(&jvm, 60);
        rename_over(&path, &policy(61));
        assert_limit(&jvm, 61);
        // Truncate, then write: the empty moment is a valid policy, and must not lose the account.
        fs::write(&path, policy(70)).expect("writable");
        assert_limit(&jvm, 70);
        fs::write(&path, policy(71)).expect("writable");
        assert_limit(&jvm, 71);

        let now = jvm.settled().holding("orders");
        assert_eq!(now.live_bytes, held.live_bytes, "charges survive reloads");
        assert_eq!(now.live_objects, held.live_objects);
        let last = jvm.accounts().0["policy"]["generation"].as_u64();
        assert!(last > first, "{first:?} to {last:?}");
        jvm.ask("drop");
        assert_eq!(jvm.settled().holding("orders").live_bytes, 0.0);
        jvm.finish();
    });
}

#[test]
fn a_symlink_swap_as_kubernetes_does_it() {
    let builder = holder();
    let folder = builder.folder().join("mounted");
    fs::create_dir(&folder).expect("writable");
    let version = |number: u32, limit: u64| {
        let version = folder.join(format!("..version_{number}"));
        fs::create_dir(&version).expect("writable");
        fs::write(version.join("heapwarden.toml"), policy(limit)).expect("writable");
        let link = folder.join("..data_tmp");
        symlink(format!("..version_{number}"), &link).expect("writable");
        fs::rename(link, folder.join("..data")).expect("the same folder");
        if number > 1 {
            fs::remove_dir_all(folder.join(format!("..version_{}", number - 1)))
                .expect("it was there");
        }
    };
    version(1, 10);
    symlink("..data/heapwarden.toml", folder.join("heapwarden.toml")).expect("writable");
    let option = format!("config={}", folder.join("heapwarden.toml").display());
    let jvm = builder.option(&option).start();
    assert_limit(&jvm, 10);
    for (number, limit) in [(2, 20), (3, 30), (4, 40)] {
        version(number, limit);
        assert_limit(&jvm, limit);
    }
    jvm.finish();
}

#[test]
fn removal_keeps_the_last_policy_and_a_return_takes_effect() {
    let builder = holder().policy(&policy(10));
    let path = builder.policy_path();
    let jvm = builder.start();
    assert_limit(&jvm, 10);
    fs::remove_file(&path).expect("it was there");
    await_reload(&jvm, 0.0, "the loss shows");
    assert_limit(&jvm, 10);
    fs::write(&path, policy(20)).expect("writable");
    assert_limit(&jvm, 20);
    await_reload(&jvm, 1.0, "the return shows");
    jvm.finish();
}

#[test]
fn a_torn_or_bad_file_keeps_the_last_good_policy_and_is_said_once() {
    let builder = holder().policy(&policy(10));
    let path = builder.policy_path();
    let jvm = builder.start();
    assert_limit(&jvm, 10);
    let stamp = jvm.metrics().value(
        "heapwarden_policy_last_reload_success_timestamp_seconds",
        &[],
    );
    let whole = policy(20);
    let bad = [
        whole[..whole.len() - 9].to_owned(),
        whole.replace("limit =", "limitt ="),
        whole.replace("20MiB", "20 apples"),
        "\u{0}\u{1}".to_owned(),
    ];
    for text in &bad {
        rename_over(&path, text);
        await_reload(&jvm, 0.0, text);
        assert_limit(&jvm, 10);
        rename_over(&path, &policy(10));
        await_reload(&jvm, 1.0, text);
    }
    // Left bad for several polls, an error is one line, not one a poll.
    rename_over(&path, &bad[1]);
    await_reload(&jvm, 0.0, &bad[1]);
    std::thread::sleep(Duration::from_secs(6));
    let lines = jvm
        .log()
        .lines()
        .filter(|line| line.contains("limitt"))
        .count();
    assert_eq!(lines, 2, "once each time it went bad:\n{}", jvm.log());
    let later = jvm.metrics().value(
        "heapwarden_policy_last_reload_success_timestamp_seconds",
        &[],
    );
    assert!(later >= stamp);
    jvm.finish();
}

/// A file half written when it is first seen, finished a moment later: no error may remain.
#[test]
fn a_slow_writer_ends_in_the_whole_policy() {
    use std::io::Write;
    let builder = holder().policy(&policy(10));
    let path = builder.policy_path();
    let jvm = builder.start();
    assert_limit(&jvm, 10);
    let text = policy(33);
    let mut file = fs::File::create(&path).expect("writable");
    for piece in text.as_bytes().chunks(text.len() / 5) {
        file.write_all(piece).expect("writable");
        file.sync_all().expect("writable");
        std::thread::sleep(Duration::from_millis(120));
    }
    drop(file);
    assert_limit(&jvm, 33);
    await_reload(&jvm, 1.0, "the whole policy");
    jvm.finish();
}

/// More package accounts over time than there are ledgers: those of accounts that are gone are
/// used again.
#[test]
fn package_accounts_that_come_and_go_do_not_use_up_the_ledgers() {
    const ROUNDS: usize = 24;
    const ACCOUNTS: usize = 3_000;
    const LEDGERS: usize = 1 << 16;
    const { assert!(ROUNDS * ACCOUNTS > LEDGERS) };
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let builder = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .policy(&policy(10));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("hold com.acme.orders bytes:984*1000");
        for round in 0..ROUNDS {
            let limit_mib = 11 + round as u64;
            let mut text = policy(limit_mib);
            for account in 0..ACCOUNTS {
                let _ = write!(
                    text,
                    "[[account]]\nname = \"r{round}-{account}\"\n\
                     packages = [\"none.r{round}.p{account}\"]\n"
                );
            }
            rename_over(&path, &text);
            jvm.until(IN_FORCE, "the policy is in force", |accounts| {
                accounts
                    .find("orders")
                    .is_some_and(|account| account["limit_bytes"] == limit_mib * MIB)
            });
            // Accounts that are gone are cleared away after collections, some rounds later at the latest.
            jvm.ask("gc");
            std::thread::sleep(Duration::from_millis(600));
        }
        let holding = jvm.settled().holding("orders");
        assert_eq!(holding.live_bytes, 1_000_000.0, "kept through all of them");
        let log = jvm.finish();
        assert!(!log.contains("gets no ledger"), "{log}");
    });
}
