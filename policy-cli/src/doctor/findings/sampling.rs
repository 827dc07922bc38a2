//! Whether allocations are seen, and how closely.

use policy_config::format_bytes;

use super::super::finding::{Finding, Severity};
use super::super::picture::Picture;
use crate::process::{Collector, printable};

/// Standard error at the limit, as a share of it, from which a limit is vague: a refusal waits for
/// three of them.
const VAGUE: f64 = 0.10;
/// The share that the proposed interval gives.
const CLEAR: f64 = 0.05;

const CAPABILITY: &str = "heapwarden_capability_enabled";
const SAMPLING: &str = "sampled_object_alloc";

fn is_missing(picture: &Picture, capability: &str) -> bool {
    let all = picture.metrics.by_label(CAPABILITY, "capability");
    let mut those = all.filter(|(name, _)| *name == capability);
    those.any(|(_, value)| value == 0.0)
}

/// Another agent has the sampling capability, which the JVM gives to one.
pub(super) fn held_by_another(picture: &Picture) -> Vec<Finding> {
    if !is_missing(picture, SAMPLING) {
        return Vec::new();
    }
    let mut suspects: Vec<String> = Vec::new();
    if let Some(facts) = &picture.facts {
        suspects.extend(facts.files.profilers().into_iter().map(printable));
        let agents = facts.arguments.agents().into_iter();
        let others = agents.filter(|agent| !agent.library.contains("heapwarden"));
        for other in others.map(|agent| printable(agent.library)) {
            if !suspects.contains(&other) {
                suspects.push(other);
            }
        }
    }
    let evidence = format!("{CAPABILITY}{{capability=\"{SAMPLING}\"}} = 0");
    let remedy = match suspects.as_slice() {
        [] => "start the JVM without the profiler that samples allocations (async-profiler alloc, Datadog)".to_owned(),
        suspects => format!(
            "start the JVM without the other agent, or with its allocation profiling off: {}",
            suspects.join(", ")
        ),
    };
    vec![Finding::new(
        Severity::Error,
        "sampling-held",
        "no accounts are kept: another agent holds the JVM's allocation sampling, which it gives to one",
        evidence,
        remedy,
    )]
}

/// Other capabilities that the JVM did not give.
pub(super) fn capability_missing(picture: &Picture) -> Vec<Finding> {
    let missing = picture
        .metrics
        .by_label(CAPABILITY, "capability")
        .filter(|(name, value)| *value == 0.0 && *name != SAMPLING);
    missing
        .map(|(name, _)| {
            let (severity, sentence, remedy) = match name {
                "object_free" => (
                    Severity::Error,
                    "no accounts are kept: the JVM reports no deaths of objects",
                    "start the JVM with the agent alone, to see which other agent is in the way",
                ),
                "garbage_collection" => (
                    Severity::Error,
                    "live bytes stay zero: the JVM reports no collections",
                    "start the JVM with the agent alone, to see which other agent is in the way",
                ),
                "bytecodes" => (
                    Severity::Error,
                    "nothing is refused: the JVM does not show bytecode, so no place is known to be safe",
                    "start the JVM with the agent alone, to see which other agent is in the way",
                ),
                "virtual_threads" => (
                    Severity::Note,
                    "no events of virtual threads: the agent was attached, or the JDK is before 21; their allocations are sampled all the same",
                    "nothing; the start-up flag gives it",
                ),
                _ => (
                    Severity::Note,
                    "the JVM did not give a capability that this command does not know",
                    "use the heapwarden command of the agent's own version",
                ),
            };
            let evidence = format!("{CAPABILITY}{{capability=\"{}\"}} = 0", printable(name));
            Finding::new(severity, "capability-missing", sentence, evidence, remedy)
        })
        .collect()
}

/// Nothing was sampled, though it could be.
pub(super) fn no_samples(picture: &Picture) -> Vec<Finding> {
    let is_none = picture.metrics.value("heapwarden_samples_total") == Some(0.0);
    if !is_none || is_missing(picture, SAMPLING) || is_missing(picture, "object_free") {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Note,
        "no-samples",
        "nothing was sampled yet, so all accounts are empty",
        "heapwarden_samples_total = 0",
        "let the application work; after attaching, each thread's first buffer is not seen",
    )]
}

/// Charges, but nothing live: it takes a collection to know.
pub(super) fn no_collection(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
        return Vec::new();
    };
    let sum = |of: fn(&crate::live::Account) -> u64| {
        accounts
            .accounts
            .iter()
            .map(of)
            .fold(0, u64::saturating_add)
    };
    let (charged, live) = (sum(|one| one.charged_bytes), sum(|one| one.live_bytes));
    if live > 0 || charged == 0 {
        return Vec::new();
    }
    let epoch = accounts.heap.gc_epoch;
    let sentence = match epoch {
        0 => "nothing is live yet: no collection has ended since the agent was loaded",
        _ => "nothing is live yet: no collection that ended is known to cover what was charged",
    };
    vec![Finding::new(
        Severity::Note,
        "nothing-live-yet",
        sentence,
        format!(
            "heapwarden_gc_epoch = {epoch}, charged {}",
            format_bytes(charged)
        ),
        "wait for a collection; charged bytes count from the first sample on (jcmd PID GC.run asks for one)",
    )]
}

/// Arrays come and go that a sample would keep: accounts of them are vaguer.
pub(super) fn thinned(picture: &Picture) -> Vec<Finding> {
    const THINNED: &str = "heapwarden_samples_thinned_total";
    let thinned = picture.metrics.value(THINNED).unwrap_or(0.0);
    if thinned == 0.0 {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Note,
        "large-arrays-thinned",
        "arrays larger than half of a G1 region come and go; fewer of them are sampled, because a sample keeps \
         such an array until a concurrent cycle",
        format!("{THINNED} = {thinned}"),
        "nothing, where the errors of the accounts are small enough; else a larger -XX:G1HeapRegionSize (more \
         than twice the size of the arrays, at most 32m on every JDK): G1 collects them like others then, and \
         all of them are sampled",
    )]
}

/// Samples that were dropped, by reason.
pub(super) fn dropped(picture: &Picture) -> Vec<Finding> {
    const DROPPED: &str = "heapwarden_samples_dropped_total";
    let taken = picture
        .metrics
        .value("heapwarden_samples_total")
        .unwrap_or(0.0);
    let dropped = picture.metrics.by_label(DROPPED, "reason");
    dropped
        .filter(|(_, count)| *count > 0.0)
        .map(|(reason, count)| {
            let remedy = match reason {
                "table_full" => {
                    "raise [sampling] max-tracked (read at the start only), or the interval"
                }
                "no_memory" => "give the machine or the container more memory beside the heap",
                "tag_failed" => {
                    "look for another agent that tags objects; tell us if there is none"
                }
                _ => "use the heapwarden command of the agent's own version",
            };
            let share = 100.0 * count / (taken + count);
            Finding::new(
                Severity::Warning,
                "samples-dropped",
                "accounts are too small: samples were dropped",
                format!(
                    "{DROPPED}{{reason=\"{}\"}} = {count}, {share:.1} % of all",
                    printable(reason)
                ),
                remedy,
            )
        })
        .collect()
}

/// Generational ZGC reports deaths at major collections.
pub(super) fn refunds_at_major_collections(picture: &Picture) -> Vec<Finding> {
    let collector = picture.facts.as_ref().and_then(|facts| facts.collector);
    if collector != Some(Collector::GenerationalZ) || picture.metrics.is_empty() {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Note,
        "major-collections",
        "with generational ZGC deaths are refunded at major collections only: live bytes are those of the last one",
        "the JVM has threads ZDriverMinor and ZDriverMajor",
        "read live bytes as of the last major collection; charged bytes may grow past the heap in between",
    )]
}

/// Limits that the interval cannot resolve.
///
/// The standard error of L live bytes at interval I is about √(I·L): README, "Limits, honestly".
pub(super) fn too_coarse(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
        return Vec::new();
    };
    let interval = accounts.sampling.interval_bytes as f64;
    let limited = accounts.accounts.iter().filter_map(|account| {
        let limit = account.limit_bytes.or(account.soft_limit_bytes)?;
        Some((account, limit.max(1)))
    });
    limited
        .filter_map(|(account, limit)| {
            let error = (interval * limit as f64).sqrt();
            let share = error / limit as f64;
            (share > VAGUE).then(|| {
                // √(I·L) = c·L where I = c²·L.
                let clear = (CLEAR * CLEAR * limit as f64) as u64;
                Finding::new(
                    Severity::Warning,
                    "interval-too-coarse",
                    format!(
                        "account {} cannot be told from its limit at this interval: a verdict takes three standard errors more",
                        account.name
                    ),
                    format!(
                        "limit {}, standard error there {} ({:.0} %), interval {}",
                        format_bytes(limit),
                        format_bytes(error as u64),
                        100.0 * share,
                        format_bytes(accounts.sampling.interval_bytes)
                    ),
                    format!(
                        "[sampling] interval = {} gives 5 %; a smaller interval costs more of each allocation",
                        match clear {
                            0..policy_config::MIN_INTERVAL_BYTES => "\"exact\"".to_owned(),
                            bytes => format!("\"{bytes}B\""),
                        }
                    ),
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::pictures::{account, agent, jvm};
    use super::*;
    use crate::process::Facts;

    fn capability(name: &str) -> String {
        format!("{CAPABILITY}{{capability=\"{name}\"}} 0\n")
    }

    #[test]
    fn sampling_held_by_another_names_the_suspects() {
        let metrics = capability(SAMPLING) + "heapwarden_samples_total 0\n";
        let mut picture = agent(&metrics, vec![]);
        let found = held_by_another(&picture);
        assert_eq!(found[0].severity, Severity::Error);
        assert!(found[0].remedy.contains("async-profiler"), "{found:?}");
        picture.facts = jvm(
            &["/opt/libasyncProfiler.so"],
            &[
                "-agentpath:/opt/dd.so=x",
                "-agentpath:/libheapwarden.so",
                "Main",
            ],
        )
        .facts;
        let found = held_by_another(&picture);
        assert!(
            found[0]
                .remedy
                .ends_with(": /opt/libasyncProfiler.so, /opt/dd.so"),
            "{found:?}"
        );
        assert_eq!(no_samples(&picture), [], "said already");
        assert_eq!(capability_missing(&picture), [], "said already");
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
    fn no_samples_and_no_collection_are_notes() {
        let picture = agent("heapwarden_samples_total 0\n", vec![]);
        assert_eq!(no_samples(&picture)[0].name, "no-samples");
        let mut shop = account("service", "/shop");
        shop.charged_bytes = 5 << 20;
        let mut picture = agent("heapwarden_samples_total 80\n", vec![shop]);
        let found = no_collection(&picture);
        assert!(found[0].evidence.contains("charged 5 MiB"), "{found:?}");
        picture.accounts.as_mut().unwrap().accounts[0].live_bytes = 1;
        assert_eq!(
            (no_samples(&picture), no_collection(&picture)),
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
        assert!(found[0].evidence.contains("256 KiB (25 %)"), "{found:?}");
        assert!(found[0].remedy.contains("\"2621B\""), "{found:?}");
        assert!(too_coarse(&limited(1000))[0].remedy.contains("exact"));
        let mut exact = limited(1 << 20);
        exact.accounts.as_mut().unwrap().sampling.interval_bytes = 0;
        assert_eq!(too_coarse(&exact), []);
    }

    #[test]
    fn generational_zgc_is_explained() {
        let mut picture = agent("heapwarden_samples_total 1\n", vec![]);
        assert_eq!(refunds_at_major_collections(&picture), []);
        picture.facts = Some(Facts {
            collector: Some(Collector::GenerationalZ),
            ..Facts::default()
        });
        assert_eq!(refunds_at_major_collections(&picture).len(), 1);
    }
}
