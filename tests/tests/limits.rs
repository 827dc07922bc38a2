//! Limits: an account over its limit is refused and no other is, on every JDK and collector.

use std::time::Duration;

use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{
    Collector, Vm, every_jdk_with, every_vm, on_each, on_each_at_once, some_vms,
};
use heapwarden_tests::jvm::{Jvm, victim};

const MIB: u64 = 1 << 20;
/// Longest that enforcement may take to notice on a busy machine: the budget makes it wait as well.
const SOON: Duration = Duration::from_secs(90);

fn policy(mode: &str, limit: &str, throw: &str) -> String {
    format!(
        r#"
[enforcement]
mode = "{mode}"

[[account]]
name = "tenant"
packages = ["com.acme.tenant"]
work = ["com.acme.tenant"]
limit = "{limit}"
throw = "{throw}"
"#
    )
}

fn start(vm: &Vm, heap: &str, policy: &str) -> Jvm {
    victim(vm, "victim.LimitedTenant")
        .heap(heap)
        .policy(policy)
        .start()
}

/// Reads the answer of a refused leak: the class of the error and the bytes held.
#[track_caller]
fn refused(answer: &[String]) -> (&str, u64) {
    let words: Vec<&str> = answer[0].split(' ').collect();
    assert_eq!(words[0], "refused", "{answer:?}");
    (words[1], words[3].parse().expect("a number of bytes"))
}

/// The first line of the agent's log with these words.
fn log_line<'a>(log: &'a str, words: &str) -> &'a str {
    let mut lines = log.lines();
    let line = lines.find(|line| line.starts_with("[heapwarden ") && line.contains(words));
    line.unwrap_or_else(|| panic!("no line with {words}:\n{log}"))
}

#[test]
fn a_leak_is_refused_and_its_message_tells_why() {
    on_each(every_vm(), |vm| {
        for (throw, class) in [
            ("oom", "dev.heapwarden.MemoryQuotaExceededError"),
            ("error", "dev.heapwarden.AllocationRefusedError"),
            ("exception", "dev.heapwarden.MemoryQuotaExceededException"),
        ] {
            let mut jvm = start(vm, "512m", &policy("enforce", "64MiB", throw));
            // Refused while the heap has room: in a full one there may be none for the message, which says so then.
            jvm.ask(&format!("leak 1 10000 {} 0", 96 * MIB));
            jvm.until(SOON, "the account is over", |accounts| {
                accounts.is_in_state("tenant", "over")
            });
            let answer = jvm.ask(&format!("leak 1 10000 {} 0", 2048 * MIB));
            let (name, held) = refused(&answer);
            assert_eq!(name, class);
            assert!(held > 55 * MIB, "{vm}: refused at {held} bytes");
            for word in ["tenant", "67108864"] {
                assert!(answer[1].contains(word), "{answer:?} tells {word}");
            }
            jvm.until(SOON, "the refusal is counted", |accounts| {
                let account = accounts.find("tenant").expect("it is listed");
                accounts.is_in_state("tenant", "over")
                    && account["refusals_total"].as_u64() >= Some(1)
            });
            jvm.until_logged("account tenant: ");
            let log = jvm.finish();
            let verdict = log_line(&log, "account tenant is over its limit of 64MiB: ");
            assert!(
                verdict.contains(" ± ") && verdict.contains("; states: suspect "),
                "{verdict}"
            );
            // One short line, with the wall clock before it.
            let refusal = log_line(&log, "account tenant: ");
            assert!(
                refusal.contains(" was refused in ") && refusal.contains(" of 64MiB"),
                "{refusal}"
            );
            assert!(!refusal.contains("states"), "{refusal}");
            let time = refusal
                .strip_prefix("[heapwarden 2")
                .and_then(|line| line.split_once("Z]  WARN "));
            assert!(
                time.is_some_and(|(time, _)| time.contains('T')),
                "{refusal}"
            );
        }
    });
}

#[test]
fn what_is_met_for_the_first_time_is_refused_too() {
    on_each(&some_vms(0), |vm| {
        let mut jvm = start(vm, "512m", &policy("enforce", "64MiB", "error"));
        // Not at full speed until it is refused: such a leak may fill the heap on a slow machine, and then the JVM
        // itself has no room for the large array.
        jvm.ask(&format!("leak 1 10000 {} 0", 96 * MIB));
        jvm.until(SOON, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        // Neither the method nor the class of the array was met before: the metadata thread is asked, and meanwhile
        // nobody waits.
        let refused = ["refused dev.heapwarden.AllocationRefusedError"];
        let mut newcomer = || jvm.ask("newcomer 10000000");
        let found = poll(SOON, || {
            std::thread::sleep(Duration::from_millis(20));
            let answer = newcomer();
            assert!(answer == refused || answer == ["allowed"], "{answer:?}");
            (answer == refused).then_some(())
        });
        let then = newcomer();
        assert!(
            found.is_some() && then == refused,
            "{vm}: {then:?} {}",
            jvm.accounts().brief()
        );
        jvm.finish();
    });
}

/// One account that fills the agent's tables does not set those free that are over their limits.
#[test]
fn who_is_over_is_refused_though_no_more_can_be_tracked() {
    let policy = |mode| {
        let sampling = "[sampling]\nmax-tracked = 1100\ncpu-budget = \"none\"\n";
        sampling.to_owned() + &policy(mode, "32MiB", "error")
    };
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.LimitedTenant")
            .heap("512m")
            .policy(&policy("observe"));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask(&format!("leak 1 10000 {} 0", 200 * MIB));
        jvm.until(SOON, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        let dropped = jvm.metrics().sum("heapwarden_samples_dropped_total");
        assert!(dropped > 500.0, "the table is full: {dropped}");
        std::fs::write(&path, policy("enforce")).expect("the case's folder is writable");
        let refused = poll(SOON, || {
            let answer = jvm.ask("allocate 100000");
            answer[0].starts_with("refused").then_some(())
        });
        assert!(refused.is_some(), "{vm}: {}", jvm.accounts().brief());
        jvm.finish();
    });
}

#[test]
fn observe_counts_and_throws_nothing() {
    on_each(&some_vms(1), |vm| {
        let mut jvm = start(vm, "512m", &policy("observe", "32MiB", "oom"));
        let answer = jvm.ask(&format!("leak 1 10000 {} 0", 64 * MIB));
        assert!(answer[0].starts_with("held"), "{answer:?}");
        jvm.until(SOON, "the account is over", |accounts| {
            accounts
                .find("tenant")
                .is_some_and(|a| a["state"] == "over")
        });
        jvm.ask(&format!("leak 1 10000 {} 0", 16 * MIB));
        let accounts = jvm.until(SOON, "it is counted", |accounts| {
            let account = accounts.find("tenant");
            account.is_some_and(|a| a["would_refuse_total"].as_u64() >= Some(1))
        });
        let account = accounts.find("tenant").expect("it is listed");
        assert_eq!(account["refusals_total"], 0, "{account}");
        jvm.finish();
    });
}

#[test]
fn who_lets_go_is_admitted_again_in_an_idle_jvm() {
    on_each(&some_vms(2), |vm| {
        let mut jvm = start(vm, "512m", &policy("enforce", "64MiB", "oom"));
        jvm.ask(&format!("leak 1 10000 {} 0", 96 * MIB));
        jvm.until(SOON, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        refused(&jvm.ask(&format!("leak 1 10000 {} 0", 2048 * MIB)));
        jvm.ask("drop");
        // The promise is 10 seconds; the bound here is for a busy machine.
        jvm.until(SOON, "the account is open again", |accounts| {
            accounts
                .find("tenant")
                .is_some_and(|a| a["state"] == "open")
        });
        assert_eq!(jvm.ask("allocate 100000"), ["allowed"]);
        let log = jvm.finish();
        assert!(log.contains("account tenant is admitted again"), "{log}");
    });
}

#[test]
fn limits_change_while_it_runs() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = start(vm, "512m", &policy("enforce", "none", "error"));
        jvm.ask(&format!("leak 1 10000 {} 0", 100 * MIB));
        let edit = |jvm: &Jvm, mode: &str, limit: &str| {
            std::fs::write(
                jvm.folder().join("heapwarden.toml"),
                policy(mode, limit, "error"),
            )
            .expect("the case's folder is writable");
        };
        let state = |jvm: &Jvm, wanted: &str| {
            jvm.until(SOON, wanted, |accounts| {
                accounts
                    .find("tenant")
                    .is_some_and(|a| a["state"] == wanted)
            });
        };
        // Lowered under what is held: refused after evidence.
        edit(&jvm, "enforce", "50MiB");
        state(&jvm, "over");
        refused(&jvm.ask(&format!("leak 1 10000 {} 0", 100 * MIB)));
        // Raised: frees at once.
        edit(&jvm, "enforce", "200MiB");
        state(&jvm, "open");
        let answer = jvm.ask(&format!("leak 1 10000 {} 0", 10 * MIB));
        assert!(answer[0].starts_with("held"), "{answer:?}");
        // Moved to percent: 10 % of 512 MiB.
        edit(&jvm, "enforce", "10%");
        state(&jvm, "over");
        // The emergency brake.
        edit(&jvm, "observe", "10%");
        jvm.until(SOON, "mode observe", |accounts| {
            accounts.0["policy"]["mode"] == "observe"
        });
        let answer = jvm.ask(&format!("leak 1 10000 {} 0", 10 * MIB));
        assert!(answer[0].starts_with("held"), "{answer:?}");
        edit(&jvm, "enforce", "10%");
        state(&jvm, "over");
        // Removed.
        edit(&jvm, "enforce", "none");
        state(&jvm, "open");
        let answer = jvm.ask(&format!("leak 1 10000 {} 0", 10 * MIB));
        assert!(answer[0].starts_with("held"), "{answer:?}");
        jvm.finish();
    });
}

#[test]
fn an_array_larger_than_the_limit_is_refused_by_itself() {
    on_each(&some_vms(3), |vm| {
        let mut jvm = start(vm, "512m", &policy("enforce", "16MiB", "error"));
        let refused = poll(SOON, || {
            // A few small ones: the account's methods and its figures become known, however long that
            // takes on a busy machine.
            for _ in 0..20 {
                jvm.ask("allocate 2000000");
                jvm.ask("drop");
                std::thread::sleep(Duration::from_millis(20));
            }
            let answer = jvm.ask(&format!("allocate {}", 17 * MIB));
            jvm.ask("drop");
            (answer != ["allowed"]).then_some(answer)
        });
        let refused = refused.unwrap_or_else(|| panic!("{vm}: never refused: {}", jvm.log()));
        assert_eq!(
            refused,
            ["refused dev.heapwarden.AllocationRefusedError"],
            "{vm}"
        );
        // The bytes that it holds are far below its limit: the array was judged by its own size.
        let accounts = jvm.accounts();
        let account = accounts.find("tenant").expect("it is listed");
        assert_ne!(account["state"], "over", "{account}");
        jvm.finish();
    });
}

#[test]
fn a_service_that_bounces_at_its_limit_costs_the_budget_and_no_more() {
    const SECONDS: u64 = 15;
    on_each_at_once(4, &some_vms(4), |vm| {
        let mut jvm = start(vm, "512m", &policy("enforce", "64MiB", "error"));
        let begun = std::time::Instant::now();
        // Until it was refused once: on a busy machine a verdict takes its time.
        let mut times: u64 = 0;
        while times == 0 && begun.elapsed() < SOON {
            let answer = jvm.ask(&format!("bounce {SECONDS} 10000"));
            let bounced = answer[0].trim_start_matches("bounced ");
            times += bounced.parse::<u64>().expect("a number");
        }
        let wall = begun.elapsed().as_secs_f64();
        assert!(times >= 1, "{vm}: never refused: {}", jvm.log());
        let spent = jvm.metrics().sum("heapwarden_evidence_seconds_total");
        // The share of wall time, the minute of credit, and the one that uses it up.
        assert!(
            spent <= 0.05 * (wall + 60.0) + 2.0,
            "{vm}: {spent} s in {wall} s"
        );
        let log = jvm.finish();
        let lines = log
            .lines()
            .filter(|line| line.contains("account tenant"))
            .count() as u64;
        // Over, readmitted, refused: one of each in ten seconds.
        assert!(
            lines <= 3 * (wall as u64 / 10 + 3),
            "{vm}: {lines} lines\n{log}"
        );
    });
}

#[test]
fn an_array_that_the_heap_cannot_hold_is_the_vms_own_error() {
    on_each(&some_vms(5), |vm| {
        let mut jvm = start(vm, "128m", &policy("enforce", "32MiB", "error"));
        jvm.ask("allocate 2000000");
        jvm.ask("drop");
        let answer = jvm.ask(&format!("allocate {}", 256 * MIB));
        assert_eq!(answer, ["refused java.lang.OutOfMemoryError"], "{vm}");
        // It never was, so it is not charged either, and the account is as it was.
        let accounts = jvm.accounts();
        let account = accounts.find("tenant").expect("it is listed");
        assert_eq!(account["refusals_total"], 0, "{account}");
        assert!(
            account["allocated_bytes_total"].as_u64() < Some(256 * MIB),
            "{account}"
        );
        assert_eq!(jvm.ask("allocate 100000"), ["allowed"]);
        jvm.finish();
    });
}

/// The limits of the first policy hold from the first allocation on, though the enforcer gets no processor at first:
/// a leak at full speed may take what the heap has room for, but the heap's end is never the JVM's own error.
#[test]
fn a_leak_in_the_first_moment_is_refused_before_the_heap_is_full() {
    on_each(&some_vms(3), |vm| {
        let policy = policy("enforce", "32MiB", "oom");
        let builder = victim(vm, "victim.LimitedTenant").heap("512m");
        let mut jvm = (builder.option("test-limits=late").policy(&policy)).start();
        let answer = jvm.ask(&format!("leak 1 10000 {} 0", 2048 * MIB));
        assert!(
            answer[0].starts_with("refused"),
            "{vm}: {answer:?}\n{}",
            jvm.log()
        );
        let (name, held) = refused(&answer);
        assert_eq!(
            name,
            "dev.heapwarden.MemoryQuotaExceededError",
            "{vm}\n{}",
            jvm.log()
        );
        eprintln!("{vm}: refused at {} MiB of 512", held >> 20);
        jvm.finish();
    });
}

/// A JVM's option for an exhausted heap takes effect when the heap is exhausted, and at no refusal.
#[test]
fn exit_on_out_of_memory_does_not_follow_from_a_refusal() {
    // Beside a concurrent collector evidence may come too late for so small a heap (docs/limitations.md).
    let pauses = |vm: &Vm| {
        matches!(
            vm.collector,
            Collector::Serial | Collector::Parallel | Collector::G1
        )
    };
    let vms: Vec<Vm> = some_vms(6).into_iter().filter(pauses).collect();
    on_each(&vms, |vm| {
        let mut jvm = victim(vm, "victim.LimitedTenant")
            .heap("128m")
            .flag("-XX:+ExitOnOutOfMemoryError")
            .policy(&policy("enforce", "32MiB", "oom"))
            .start();
        // It goes on when it is known to be over: on a slow machine so small a heap might be full
        // before.
        jvm.ask(&format!("drip 10000 {} {}", 48 * MIB, 40 * MIB));
        jvm.until(SOON, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        let answer = jvm.ask(&format!("drip 10000 {} {}", 2048 * MIB, 40 * MIB));
        assert!(
            answer[0].starts_with("refused dev.heapwarden.MemoryQuotaExceededError"),
            "{vm}: {answer:?}"
        );
        jvm.ask("drop");
        // Until then the tenant's next small object may be refused, before it asks for the large one.
        jvm.until(SOON, "the tenant is admitted again", |accounts| {
            accounts.is_in_state("tenant", "open")
        });
        jvm.tell(&format!("allocate {}", 256 * MIB));
        let status = jvm.end_within(SOON);
        assert_eq!(status.code(), Some(3), "{vm}: {}", jvm.log());
    });
}
