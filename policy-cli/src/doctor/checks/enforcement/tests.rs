//! Tests of the findings about limits and how they are enforced.

use super::super::super::finding::Severity;
use super::super::test_inputs::{account, agent, jvm, with_file};
use super::*;
use policy_report::Usage;

#[test]
fn a_flag_that_forbids_proof_matters_on_some_collectors() {
    let mut inputs = agent("heapwarden_samples_total 1\n", vec![]);
    inputs.info = jvm(&[], &["-Xnoclassgc", "Main"]).info;
    let mut found = |collector| {
        inputs.info.as_mut().unwrap().collector = Some(collector);
        cannot_be_proved(&inputs).len()
    };
    assert_eq!(found(Collector::Serial), 1);
    assert_eq!(found(Collector::Parallel), 1);
    assert_eq!(found(Collector::G1), 0);
    assert_eq!(found(Collector::Z), 0);
}

#[test]
fn services_with_a_limit_and_no_door_are_told_unless_the_policy_wants_none() {
    let mut kafka = account("service", "kafka");
    kafka.limit_bytes = Some(1 << 20);
    let mut shop = account("service", "/shop");
    shop.limit_bytes = Some(1 << 20);
    shop.door = Door::Open;
    let mut inputs = agent("", vec![kafka, shop, account("service", "/free")]);
    assert_eq!(no_door(&inputs), [], "it only observes");
    inputs.accounts.as_mut().unwrap().policy.mode = "enforce".into();
    let found = no_door(&inputs);
    assert_eq!(found[0].evidence, "no door: kafka");
    let off = "[[account]]\nservice = \"kafka\"\nlimit = \"1MiB\"\ndoor = \"off\"\n";
    assert_eq!(no_door(&with_file(inputs, off)), []);
}

#[test]
fn a_budget_is_judged_by_the_agents_age() {
    let metrics = "heapwarden_evidence_budget_ratio 0.05\nheapwarden_policy_generation 1\n\
        heapwarden_policy_last_reload_success_timestamp_seconds 1000\n\
        heapwarden_evidence_seconds_total{kind=\"young\"} 1\n\
        heapwarden_evidence_seconds_total{kind=\"full\"} 4\n";
    let mut inputs = agent(metrics, vec![]);
    inputs.now_seconds = 1100.0;
    let found = budget_spent(&inputs);
    assert!(
        found[0]
            .evidence
            .contains("5.0 s of collections in 100 s, 5.00 %"),
        "{found:?}"
    );
    inputs.now_seconds = 1200.0;
    assert_eq!(budget_spent(&inputs), [], "2.5 % of 5 %");
    inputs.now_seconds = 1010.0;
    assert_eq!(budget_spent(&inputs), [], "too young to tell");
    inputs.metrics = policy_report::Metrics::default();
    assert_eq!(budget_spent(&inputs), []);
}

#[test]
fn a_verdict_that_waits_for_the_budget_is_told() {
    let mut shop = account("service", "/shop");
    shop.state = State::Open;
    let mut inputs = agent("", vec![shop]);
    let all = inputs.accounts.as_mut().unwrap();
    all.evidence.budget_used_up_seconds = Some(12.0);
    assert_eq!(budget_spent(&inputs), [], "nobody waits");
    inputs.accounts.as_mut().unwrap().accounts[0].state = State::Suspect;
    assert!(
        budget_spent(&inputs)[0]
            .evidence
            .starts_with("none for 12.0 s")
    );
}

#[test]
fn an_account_above_its_soft_limit_is_told_unless_its_limit_is_what_counts() {
    let mut shop = account("service", "/shop");
    shop.soft_limit_bytes = Some(10 << 20);
    shop.live_bytes = 12 << 20;
    shop.state = State::Open;
    let found = over_soft_limit(&agent("", vec![shop.clone()]));
    assert_eq!(found[0].sentence, "account /shop is over its soft limit");
    assert!(
        found[0].evidence.ends_with("soft limit 10.0 MiB"),
        "{found:?}"
    );
    shop.live_bytes = 10 << 20;
    assert_eq!(over_soft_limit(&agent("", vec![shop.clone()])), []);
    shop.live_bytes = 12 << 20;
    shop.state = State::Over;
    assert_eq!(over_soft_limit(&agent("", vec![shop])), []);
}

#[test]
fn an_account_with_its_scopes_above_its_direct_limit_is_told() {
    let usage = |resource: &'static str, mib: u64| Usage {
        resource: resource.into(),
        used: mib << 20,
        ..Usage::default()
    };
    let mut shop = account("service", "/shop");
    shop.direct_limit_bytes = Some(64 << 20);
    shop.direct_refusals_total = Some(7);
    shop.usage = vec![
        usage("direct", 30),
        usage("native", 30),
        usage("threads", 99),
    ];
    let mut scope = account("scope", "tenant-a");
    scope.usage = vec![usage("native", 10)];
    let found = over_direct_limit(&agent("", vec![shop.clone(), scope.clone()]));
    assert_eq!(found, [], "it is not inside");
    scope.parent = Some("/shop".into());
    let found = over_direct_limit(&agent("", vec![shop.clone(), scope.clone()]));
    assert_eq!(
        found[0].evidence,
        "direct and native 70.0 MiB, direct-limit 64.0 MiB, blocks refused 7"
    );
    shop.direct_limit_bytes = None;
    assert_eq!(over_direct_limit(&agent("", vec![shop, scope])), []);
}

/// The loader of the old version is gone: that is no leak.
#[test]
fn bytes_of_a_loader_that_is_gone_are_no_leak() {
    let mut shop = account("service", "/shop");
    shop.left_behind_bytes = 3 << 20;
    let inputs = agent("", vec![shop.clone()]);
    assert_eq!(retired(&inputs), []);
    let found = left_behind(&inputs);
    assert_eq!(found[0].severity, Severity::Note);
    assert!(found[0].sentence.contains("left by an undeployed version"));
    assert!(
        found[0].evidence.contains("3.0 MiB"),
        "{}",
        found[0].evidence
    );
    shop.left_behind_bytes = LEFT_BEHIND_BYTES - 1;
    assert_eq!(left_behind(&agent("", vec![shop])), []);
}

#[test]
fn threads_of_an_undeployed_version_are_named() {
    let mut shop = account("service", "/shop");
    assert_eq!(threads_left(&agent("", vec![shop.clone()])), []);
    shop.threads_left_behind = 5;
    let poller = LeftThread {
        name: "poller".into(),
        daemon: true,
        runs: Some("com.acme.Poller.run(Poller.java:31)".into()),
    };
    shop.left_threads = vec![poller; 4];
    shop.left_threads[1].runs = None;
    let found = threads_left(&agent("", vec![shop]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
    let runs = "\"poller\" in com.acme.Poller.run(Poller.java:31)";
    assert_eq!(
        found[0].evidence,
        format!("heapwarden_account_threads_left_behind = 5: {runs}, \"poller\", {runs}")
    );
}

#[test]
fn retired_loaders_and_folded_accounts_are_said() {
    let mut shop = account("service", "/shop");
    shop.retired_loaders = 2;
    let inputs = agent("heapwarden_accounts_folded 7\n", vec![shop]);
    assert!(retired(&inputs)[0].evidence.ends_with("= 2"));
    assert_eq!(left_behind(&inputs), []);
    assert!(folded(&inputs)[0].evidence.ends_with("= 7"));
    assert_eq!(folded(&agent("heapwarden_accounts_folded 0\n", vec![])), []);
}
