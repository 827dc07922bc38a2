//! Tests of the findings about the sampler.

use super::super::test_inputs::{account, agent, jvm};
use super::*;
use crate::process::ProcessInfo;

fn capability(name: &str) -> String {
    format!("{CAPABILITY}{{capability=\"{name}\"}} 0\n")
}

#[test]
fn sampling_held_by_another_names_the_suspects() {
    let metrics = capability(SAMPLING) + "heapwarden_samples_total 0\n";
    let mut inputs = agent(&metrics, vec![]);
    let found = held_by_another(&inputs);
    assert_eq!(found[0].severity, Severity::Error);
    assert!(found[0].remedy.contains("async-profiler"), "{found:?}");
    inputs.info = jvm(
        &["/opt/libasyncProfiler.so"],
        &[
            "-agentpath:/opt/dd.so=x",
            "-agentpath:/libheapwarden.so",
            "Main",
        ],
    )
    .info;
    let found = held_by_another(&inputs);
    assert!(
        found[0]
            .remedy
            .ends_with(": /opt/libasyncProfiler.so, /opt/dd.so"),
        "{found:?}"
    );
    assert_eq!(no_samples(&inputs), [], "said already");
    assert_eq!(capability_missing(&inputs), [], "said already");
}

#[test]
fn other_capabilities_matter_by_what_they_are_for() {
    let of = |name: &str| capability_missing(&agent(&capability(name), vec![]))[0].severity;
    assert_eq!(of("object_free"), Severity::Error);
    assert_eq!(of("garbage_collection"), Severity::Error);
    assert_eq!(of("bytecodes"), Severity::Error);
    assert_eq!(of("virtual_threads"), Severity::Note);
    assert_eq!(of("of-tomorrow"), Severity::Note);
}

#[test]
fn a_jvm_that_was_started_with_the_flag_is_not_told_to_use_it() {
    let of = |version: &str, loaded_at_start| {
        let mut inputs = agent(&capability("virtual_threads"), vec![]);
        let jvm = &mut inputs.accounts.as_mut().unwrap().jvm;
        jvm.version = version.to_owned().into();
        jvm.loaded_at_start = loaded_at_start;
        capability_missing(&inputs)
    };
    assert_eq!(of("17.0.15+6", Some(true)), [], "nothing is missing");
    assert_eq!(of("17.0.15+6", Some(false)), []);
    let attached = of("21.0.5+11-LTS", Some(false));
    assert!(attached[0].remedy.contains("-agentpath"), "{attached:?}");
    let started = of("21.0.5+11-LTS", Some(true));
    assert!(!started[0].remedy.contains("-agentpath"), "{started:?}");
    assert!(!started[0].sentence.contains("attached"), "{started:?}");
    // An older agent does not say, but the arguments do.
    let mut inputs = agent(&capability("virtual_threads"), vec![]);
    inputs.info = jvm(&[], &["-agentpath:/libheapwarden.so", "Main"]).info;
    assert!(!capability_missing(&inputs)[0].sentence.contains("attached"));
}

#[test]
fn buffers_that_are_not_refilled_are_told_with_the_reason() {
    let of = |loaded_at_start, options: &str| {
        let mut inputs = agent(&capability("tlab_refill"), vec![]);
        inputs.accounts.as_mut().unwrap().jvm.loaded_at_start = loaded_at_start;
        let agent = format!("-agentpath:/libheapwarden.so={options}");
        inputs.info = jvm(&[], &[&agent, "Main"]).info;
        let found = capability_missing(&inputs).remove(0);
        assert_eq!(
            (found.name, found.severity),
            ("buffers-not-refilled", Severity::Note)
        );
        assert!(
            found.remedy.contains("-XX:TLABRefillWasteFraction=1"),
            "{found:?}"
        );
        found.sentence
    };
    assert!(of(Some(false), "listen=off").contains("attached"));
    assert!(of(Some(true), "tlab-refill=keep").contains("tlab-refill=keep"));
    assert!(of(Some(true), "listen=off").contains("log"));
}

#[test]
fn no_samples_and_no_collection_are_notes() {
    let inputs = agent("heapwarden_samples_total 0\n", vec![]);
    assert_eq!(no_samples(&inputs)[0].name, "no-samples");
    let mut shop = account("service", "/shop");
    shop.charged_bytes = 5 << 20;
    let mut inputs = agent("heapwarden_samples_total 80\n", vec![shop]);
    let found = no_collection(&inputs);
    assert!(found[0].evidence.contains("charged 5MiB"), "{found:?}");
    inputs.accounts.as_mut().unwrap().accounts[0].live_bytes = 1;
    assert_eq!(
        (no_samples(&inputs), no_collection(&inputs)),
        (vec![], vec![])
    );
}

#[test]
fn large_arrays_that_are_thinned_are_told_with_what_helps() {
    let told = |count| {
        let metrics = format!("heapwarden_samples_thinned_total {count}\n");
        thinned(&agent(&metrics, vec![]))
    };
    assert_eq!(told(0), vec![]);
    let found = told(7);
    assert_eq!(found.len(), 1);
    assert!(found[0].evidence.ends_with("= 7"), "{found:?}");
    assert!(found[0].remedy.contains("G1HeapRegionSize"), "{found:?}");
    assert_eq!(thinned(&agent("", vec![])), vec![], "an agent of before");
}

#[test]
fn errors_that_are_too_small_are_told() {
    let told = |factor| {
        let metrics = format!("heapwarden_sampling_error_factor {factor}\n");
        repeated_samples(&agent(&metrics, vec![]))
    };
    assert_eq!(told(1.0), vec![]);
    assert_eq!(told(1.4), vec![]);
    let found = told(5.6);
    assert!(found[0].evidence.ends_with("= 5.6"), "{found:?}");
    assert_eq!(
        repeated_samples(&agent("", vec![])),
        vec![],
        "an agent of before"
    );
}

#[test]
fn drops_are_told_by_reason() {
    let metrics = "heapwarden_samples_total 900\n\
        heapwarden_samples_dropped_total{reason=\"table_full\"} 100\n\
        heapwarden_samples_dropped_total{reason=\"tag_failed\"} 0\n";
    let found = dropped(&agent(metrics, vec![]));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].evidence.ends_with("= 100, 10.0 % of all"),
        "{found:?}"
    );
    assert!(found[0].remedy.contains("max-tracked"), "{found:?}");
}

#[test]
fn an_interval_resolves_a_limit_or_does_not() {
    let limited = |bytes| {
        let mut one = account("service", "/shop");
        one.limit_bytes = Some(bytes);
        agent("", vec![one])
    };
    // √(64 KiB · 256 MiB) = 4 MiB: 1.6 %.
    assert_eq!(too_coarse(&limited(256 << 20)), []);
    // √(64 KiB · 1 MiB) = 256 KiB: 25 %. And 5 % of 1 MiB is met by 2,621 bytes.
    let found = too_coarse(&limited(1 << 20));
    assert!(found[0].evidence.contains("256KiB (25 %)"), "{found:?}");
    assert!(found[0].remedy.contains("\"2621B\""), "{found:?}");
    assert!(too_coarse(&limited(1000))[0].remedy.contains("exact"));
    let mut exact = limited(1 << 20);
    exact.accounts.as_mut().unwrap().sampling.interval_bytes = 0;
    assert_eq!(too_coarse(&exact), []);
}

#[test]
fn generational_zgc_is_explained() {
    let mut inputs = agent("heapwarden_samples_total 1\n", vec![]);
    assert_eq!(refunds_at_major_collections(&inputs), []);
    inputs.info = Some(ProcessInfo {
        collector: Some(Collector::GenerationalZ),
        ..ProcessInfo::default()
    });
    assert_eq!(refunds_at_major_collections(&inputs).len(), 1);
}

#[test]
fn a_jvm_that_never_collects_is_told_once() {
    let mut shop = account("service", "/shop");
    shop.charged_bytes = 1 << 20;
    let mut inputs = agent("heapwarden_samples_total 9\n", vec![shop]);
    assert_eq!(
        (never_collects(&inputs), no_collection(&inputs).len()),
        (vec![], 1)
    );
    inputs.info = jvm(
        &[],
        &[
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+UseEpsilonGC",
            "Main",
        ],
    )
    .info;
    assert_eq!(never_collects(&inputs)[0].name, "never-collects");
    assert_eq!(no_collection(&inputs), [], "said already");
}
