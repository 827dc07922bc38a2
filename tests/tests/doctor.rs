//! `heapwarden doctor` on real JVMs in each state that it explains.

use heapwarden_harness::stub_server;
use heapwarden_tests::command::{self, Finished};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::{artifacts, native, other_agent};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

fn g1() -> Vec<Vm> {
    every_jdk_with(Collector::G1)
}

fn holder(vm: &Vm) -> Builder {
    victim(vm, "victim.Holder").argument("com.acme.orders")
}

fn doctor(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command::run(command.arg("doctor").args(arguments), LIMIT)
}

/// The names of what was found, by `--json`.
fn findings(target: &str) -> (Option<i32>, Vec<Value>) {
    let told = doctor(&[target, "--json"]);
    let document: Value =
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"));
    let found = document["findings"].as_array().cloned();
    (told.status.code(), found.unwrap_or_default())
}

/// Asks by process id until `name` is found: a snapshot may be a moment old.
#[track_caller]
fn found(jvm: &Jvm, name: &str) -> Value {
    let id = jvm.id().to_string();
    let met = command::poll(LIMIT, || {
        let (_, found) = findings(&id);
        found.into_iter().find(|one| one["name"] == name)
    });
    met.unwrap_or_else(|| panic!("no {name}: {:#?}\n{}", findings(&id), jvm.log()))
}

fn text(finding: &Value, key: &str) -> String {
    finding[key].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_healthy_jvm_has_nothing_but_notes_by_id_and_by_address() {
    on_each(&g1(), |vm| {
        let policy = "[sampling]\ninterval = \"exact\"\n[[account]]\nname = \"orders\"\n\
                      packages = [\"com.acme.orders\"]\nlimit = \"100MiB\"\n";
        let mut jvm = holder(vm).policy(policy).start();
        jvm.ask("hold com.acme.orders bytes:100000*200");
        jvm.settled();
        for target in [jvm.id().to_string(), jvm.address().to_string()] {
            let (code, found) = findings(&target);
            assert_eq!(code, Some(0), "{target}: {found:#?}");
            assert!(
                found.iter().any(|one| one["name"] == "observes"),
                "{found:#?}"
            );
            let told = doctor(&[&target]);
            assert!(told.stdout.contains("Nothing is wrong."), "{told:#?}");
        }
        jvm.finish();
    });
}

#[test]
fn patterns_that_match_nothing_and_vague_limits_are_found() {
    on_each(&g1(), |vm| {
        let policy = "[sampling]\ninterval = \"64KiB\"\n[[account]]\nname = \"typo\"\npackages = [\"com.acme.oders\"]\nlimit = \"1MiB\"\n\
                      [[account]]\nservice = \"/shpo\"\n";
        let mut jvm = holder(vm).policy(policy).start();
        jvm.ask("hold com.acme.orders bytes:100000*200");
        let typo = found(&jvm, "matches-nothing");
        assert!(text(&typo, "sentence").contains("account typo"), "{typo}");
        let (code, all) = findings(&jvm.id().to_string());
        assert_eq!(code, Some(1));
        let service = all
            .iter()
            .any(|one| text(one, "sentence").contains("/shpo"));
        assert!(service, "{all:#?}");
        let coarse = found(&jvm, "interval-too-coarse");
        assert!(
            text(&coarse, "evidence").contains("256KiB (25 %)"),
            "{coarse}"
        );
        // The program itself has an account.
        assert!(
            all.iter()
                .all(|one| text(one, "name") != "services-not-recognised")
        );
        jvm.finish();
    });
}

/// A tenant that leaks past a limit of 32 MiB under this policy, as far as it gets.
fn leaking(vm: &Vm, more: &str) -> Jvm {
    let policy = format!(
        "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n[[account]]\nname = \"tenant\"\n\
         packages = [\"com.acme.tenant\"]\nwork = [\"com.acme.tenant\"]\nlimit = \"32MiB\"\n{more}"
    );
    let mut jvm = victim(vm, "victim.LimitedTenant").policy(&policy).start();
    jvm.ask("leak 1 1000 60000000 0");
    jvm
}

#[test]
fn an_account_that_is_over_is_the_first_thing_told() {
    on_each(&g1(), |vm| {
        let mut jvm = leaking(vm, "");
        // It may have leaked all before there was a verdict.
        let refused = command::poll(LIMIT, || {
            let answer = jvm.ask("allocate 100000");
            answer[0].starts_with("refused").then_some(())
        });
        assert!(refused.is_some(), "{vm}: {}", jvm.log());
        let over = found(&jvm, "over-limit");
        assert_eq!(over["severity"], "warning");
        assert!(text(&over, "sentence").contains("tenant is over its limit and is refused"));
        assert!(
            text(&over, "evidence").contains("% of the limit 32.0 MiB"),
            "{over}"
        );
        let (code, all) = findings(&jvm.id().to_string());
        assert_eq!(
            (code, &all[0]["name"]),
            (Some(1), &Value::from("over-limit"))
        );
        jvm.finish();
    });
}

#[test]
fn an_account_that_nothing_stops_is_an_error() {
    on_each(&g1(), |vm| {
        let mut jvm = leaking(vm, "never-interrupt = [\"com.acme.tenant.*\"]\n");
        found(&jvm, "never-refused");
        // It goes on after the verdict: only from then on are refusals due.
        jvm.until(LIMIT, "the account is over", |accounts| {
            accounts.is_in_state("tenant", "over")
        });
        jvm.ask("leak 1 1000 20000000 0");
        let id = jvm.id().to_string();
        let never = command::poll(LIMIT, || {
            // A little more: methods that are not known yet are put off for another reason.
            jvm.ask("allocate 100000");
            let (_, found) = findings(&id);
            let mut never = found
                .into_iter()
                .filter(|one| one["name"] == "never-refused");
            never.find(|one| one["severity"] == "error")
        });
        let never = never.unwrap_or_else(|| panic!("{:#?}\n{}", findings(&id), jvm.log()));
        assert!(
            text(&never, "sentence").contains("never-interrupt in the policy"),
            "{never}"
        );
        jvm.finish();
    });
}

/// Two servers with one configuration, and one that insists on the port of the first.
#[test]
fn who_holds_the_port_that_a_jvm_was_given_is_told() {
    on_each(&g1(), |vm| {
        let first = holder(vm).start();
        let address = first.address();
        let holds = format!("{address} is held by process {}: ", first.id());
        let policy = format!("[agent]\nlisten = \"{address}\"\n");
        let second = holder(vm).policy(&policy).without_own_address().start();
        let taken = found(&second, "port-taken");
        assert_eq!(taken["severity"], "warning");
        let evidence = text(&taken, "evidence");
        assert!(
            evidence.starts_with(&holds) && evidence.contains("victim.Holder"),
            "{taken}"
        );
        assert!(
            text(&taken, "sentence").contains(&format!("instead of {address}")),
            "{taken}"
        );
        second.finish();
        let strict = format!("{policy}listen-strict = true\n");
        let strict = holder(vm).policy(&strict).without_own_address().start();
        strict.until_logged("metrics are not served yet");
        let unread = found(&strict, "unread");
        assert!(text(&unread, "evidence").starts_with(&holds), "{unread}");
        strict.finish();
        first.finish();
    });
}

/// A port of another server, named by its address.
#[test]
fn who_answers_instead_of_an_agent_is_told() {
    let other =
        stub_server::serve(|_, _, stream| stub_server::respond(stream, "404 Not Found", ""));
    let address = other.to_string();
    let (code, all) = findings(&address);
    assert_eq!(code, Some(1));
    let holds = format!("the port is held by process {}: ", std::process::id());
    assert!(text(&all[0], "evidence").contains(&holds), "{all:#?}");
}

#[test]
fn a_jvm_that_never_collects_is_told_as_such() {
    on_each(&g1(), |vm| {
        let jvm = holder(vm)
            .flag("-XX:+UnlockExperimentalVMOptions")
            .flag("-XX:-UseG1GC")
            .flag("-XX:+UseEpsilonGC")
            .start();
        let never = found(&jvm, "never-collects");
        assert!(text(&never, "sentence").contains("Epsilon"), "{never}");
        let told = doctor(&[&jvm.id().to_string()]).stdout;
        let head = told.lines().next().unwrap_or_default();
        assert!(
            head.contains("Epsilon") && !head.contains("Serial"),
            "{told}"
        );
        jvm.finish();
    });
}

/// Allocations of a Java agent at its start are in no account if it is loaded before this one.
#[test]
fn a_java_agent_in_front_of_the_flag_is_named() {
    let jar = other_agent::jar().display().to_string();
    on_each(&g1(), |vm| {
        let jvm = holder(vm).flag(&format!("-javaagent:{jar}")).start();
        let _ = jvm.address();
        let first = found(&jvm, "java-agent-first");
        assert_eq!(first["severity"], "note");
        assert!(text(&first, "evidence").ends_with(&jar), "{first}");
        jvm.finish();
    });
}

/// Advice to start with the flag is left out where the JVM was started with it.
#[test]
fn a_jvm_that_was_started_with_the_flag_is_not_told_to_use_it() {
    let jdks = every_jdk_with(Collector::G1);
    on_each(&jdks, |vm| {
        let jvm = holder(vm).start();
        let _ = jvm.address();
        let told = doctor(&[&jvm.id().to_string()]).stdout;
        assert!(told.contains("agent on "), "{told}");
        assert!(
            !told.contains("was attached") && !told.contains("with -agentpath"),
            "{told}"
        );
        jvm.finish();
    });
}

#[test]
fn sampling_held_by_another_agent_is_found_and_the_agent_named() {
    let library = native::capability_holder();
    on_each(&g1(), |vm| {
        let jvm = holder(vm)
            .flag(&format!("-agentpath:{}", library.display()))
            .start();
        let held = found(&jvm, "sampling-held");
        assert_eq!(held["severity"], "error");
        assert!(
            text(&held, "remedy").contains("libcapability_holder.so"),
            "{held}"
        );
        jvm.finish();
    });
}

#[test]
fn a_policy_that_was_rejected_is_told_in_the_agents_words() {
    on_each(&g1(), |vm| {
        let bad = "[[account]]\nservice = \"a\"\nlimt = \"1MiB\"\n";
        let jvm = holder(vm).policy(bad).start();
        let rejected = found(&jvm, "policy-rejected");
        assert!(text(&rejected, "evidence").contains("limt"), "{rejected}");
        found(&jvm, "policy-file");
        jvm.finish();
    });
}

#[test]
fn an_agent_that_is_missing_disabled_or_mistyped_is_found() {
    on_each(&g1(), |vm| {
        let jvm = holder(vm).without_agent().start();
        let missing = found(&jvm, "not-loaded");
        assert!(
            text(&missing, "remedy").contains("heapwarden attach"),
            "{missing}"
        );
        jvm.finish();
        let jvm = holder(vm).option("enabled=false").start();
        found(&jvm, "disabled");
        jvm.finish();
        let jvm = holder(vm).option("confg=/tmp/x.toml").start();
        let typo = found(&jvm, "unknown-option");
        assert!(text(&typo, "evidence").contains("confg"), "{typo}");
        jvm.finish();
    });
}

#[test]
fn what_is_not_there_is_said() {
    let told = doctor(&["4194304"]);
    assert_eq!(told.status.code(), Some(3), "{told:#?}");
    assert!(
        told.stderr.contains("there is no process 4194304"),
        "{told:#?}"
    );
    let address = format!("127.0.0.1:{}", heapwarden_harness::ports::free());
    let (code, found) = findings(&address);
    assert_eq!(code, Some(1));
    assert_eq!(found[0]["name"], "unread", "{found:#?}");
}
