//! Checks whether allocations are sampled, and how precisely.

use policy_config::format_bytes;

use policy_report::catalog;

use super::super::finding::{Finding, Severity, findings};
use super::super::inputs::Inputs;
use crate::process::{Collector, printable};

/// Largest standard error at a limit, as a share of the limit, that is not reported. A refusal waits
/// for three standard errors.
const MAX_ERROR_SHARE: f64 = 0.10;
/// The share that the proposed interval gives.
const PROPOSED_ERROR_SHARE: f64 = 0.05;
/// From here on it is said that errors are larger than stated.
const MIN_ERROR_FACTOR: f64 = 1.5;

/// The first JDK whose virtual threads are not a preview feature.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

const CAPABILITY: &str = catalog::CAPABILITY_ENABLED.name;
const SAMPLING: &str = "sampled_object_alloc";

fn is_missing(inputs: &Inputs, capability: &str) -> bool {
    let all = inputs.metrics.by_label(CAPABILITY, "capability");
    let mut those = all.filter(|(name, _)| *name == capability);
    those.any(|(_, value)| value == 0.0)
}

/// Another agent holds the sampling capability, which the JVM gives to one agent only.
pub(super) fn held_by_another(inputs: &Inputs) -> Vec<Finding> {
    if !is_missing(inputs, SAMPLING) {
        return Vec::new();
    }
    let mut suspects: Vec<String> = Vec::new();
    if let Some(info) = &inputs.info {
        suspects.extend(info.files.profilers().into_iter().map(printable));
        let agents = info.arguments.agents().into_iter();
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
        &findings::SAMPLING_HELD,
        "no accounts are kept: another agent holds the JVM's allocation sampling, which the JVM gives to one agent only",
        evidence,
        remedy,
    )]
}

/// Other capabilities that the JVM did not grant.
pub(super) fn capability_missing(inputs: &Inputs) -> Vec<Finding> {
    let missing = inputs
        .metrics
        .by_label(CAPABILITY, "capability")
        .filter(|(name, value)| *value == 0.0 && *name != SAMPLING);
    missing
        .filter_map(|(name, _)| {
            let (severity, sentence, remedy) = match name {
                "object_free" => (
                    Severity::Error,
                    "no accounts are kept: the JVM does not report freed objects",
                    "start the JVM with this agent only, to see which other agent interferes",
                ),
                "garbage_collection" => (
                    Severity::Error,
                    "live bytes stay zero: the JVM does not report collections",
                    "start the JVM with this agent only, to see which other agent interferes",
                ),
                "bytecodes" => (
                    Severity::Error,
                    "nothing is refused: the JVM does not show bytecode, so the agent knows no safe place for a throw",
                    "start the JVM with this agent only, to see which other agent interferes",
                ),
                "retransform_classes" => (
                    Severity::Warning,
                    "no doors: the JVM does not let the agent change classes; services over their limits get errors, as with door = \"off\"",
                    "start the JVM with this agent only, to see which other agent interferes",
                ),
                "virtual_threads" => return virtual_threads(inputs),
                "tlab_refill" => return Some(buffers_not_refilled(inputs)),
                "native_memory" => (
                    Severity::Note,
                    "direct buffers and other native memory are not counted: the agent does not see who takes them",
                    "start the JVM with -agentpath if it was attached, and look at the agent's log if not",
                ),
                _ => (
                    Severity::Note,
                    "the JVM did not grant a capability that this command does not know",
                    "use the heapwarden command of the agent's own version",
                ),
            };
            let evidence = format!("{CAPABILITY}{{capability=\"{}\"}} = 0", printable(name));
            Some(Finding::as_grave_as(severity, &findings::CAPABILITY_MISSING,
                sentence,
                evidence,
                remedy,
            ))
        })
        .collect()
}

/// The agent has no events of virtual threads. The JVM gives them at its start only, and only if it has such
/// threads: before JDK 21 nothing is missing.
fn virtual_threads(inputs: &Inputs) -> Option<Finding> {
    if inputs
        .release()
        .is_some_and(|release| release < FIRST_WITH_VIRTUAL_THREADS)
    {
        return None;
    }
    let (sentence, remedy) = match inputs.loaded_at_start() {
        Some(true) => (
            "no events of virtual threads: the JVM did not grant them at its start; their allocations are sampled nevertheless",
            "nothing; another agent, or -XX:-VMContinuations, may be the reason",
        ),
        Some(false) => (
            "no events of virtual threads, because the agent was attached to the running JVM; their allocations are sampled nevertheless",
            "nothing, or start the JVM with -agentpath",
        ),
        None => (
            "no events of virtual threads: the agent was attached, or the JDK is older than 21; their allocations are sampled nevertheless",
            "nothing, or start the JVM with -agentpath if it is not",
        ),
    };
    Some(Finding::new(
        &findings::CAPABILITY_MISSING,
        sentence,
        format!("{CAPABILITY}{{capability=\"virtual_threads\"}} = 0"),
        remedy,
    ))
}

/// Before JDK 25 the JVM's sampler counts too much where allocation buffers are small, and the agent has not changed
/// that (JDK-8356372).
fn buffers_not_refilled(inputs: &Inputs) -> Finding {
    let arguments = inputs.info.iter().map(|info| &info.arguments);
    let mut options = arguments.filter_map(|arguments| arguments.heapwarden());
    let keeps =
        options.any(|options| crate::process::option(options, "tlab-refill") == Some("keep"));
    let because = match inputs.loaded_at_start() {
        Some(false) => {
            ", and the agent was attached to the running JVM, when it was too late to set a flag against it"
        }
        Some(true) if keeps => ", and tlab-refill=keep forbids the agent to set a flag against it",
        _ => ", and the agent could not set a flag against it (its log says why)",
    };
    Finding::new(
        &findings::BUFFERS_NOT_REFILLED,
        format!(
            "accounts of arrays of 0.5 to 4 KiB can be much too high, up to twice what they hold where many threads \
             allocate: before JDK 25 the JVM samples them too often{because}"
        ),
        format!("{CAPABILITY}{{capability=\"tlab_refill\"}} = 0"),
        "start the JVM with -XX:TLABRefillWasteFraction=1, or use JDK 25",
    )
}

/// Sampling is on, but nothing was sampled.
pub(super) fn no_samples(inputs: &Inputs) -> Vec<Finding> {
    let is_none = inputs.metrics.value(catalog::SAMPLES.name, &[]) == Some(0.0);
    if !is_none || is_missing(inputs, SAMPLING) || is_missing(inputs, "object_free") {
        return Vec::new();
    }
    vec![Finding::declared(
        &findings::NO_SAMPLES,
        "heapwarden_samples_total = 0",
    )]
}

/// Many short threads, which HotSpot's sampler does not draw by chance.
pub(super) fn repeated_samples(inputs: &Inputs) -> Vec<Finding> {
    let factor = inputs
        .metrics
        .value(catalog::SAMPLING_ERROR_FACTOR.name, &[]);
    let Some(factor) = factor.filter(|factor| *factor >= MIN_ERROR_FACTOR) else {
        return Vec::new();
    };
    vec![Finding::new(
        &findings::REPEATED_SAMPLES,
        "the stated errors are too small: many short threads are sampled at the same places again and again, because the \
         JVM seeds their random numbers with their addresses",
        format!("{} = {factor:.1}", catalog::SAMPLING_ERROR_FACTOR.name),
        "run requests on a pool of threads or on virtual threads, or set a smaller [sampling] interval, so that a \
         thread gets several samples",
    )]
}

/// A JVM that never collects.
pub(super) fn never_collects(inputs: &Inputs) -> Vec<Finding> {
    if !is_epsilon(inputs) {
        return Vec::new();
    }
    vec![Finding::new(
        &findings::NEVER_COLLECTS,
        "the JVM never collects garbage (Epsilon): accounts show what was allocated, live bytes stay 0, and no limit \
         can be enforced",
        "-XX:+UseEpsilonGC",
        "start the JVM with a collector; with Epsilon, charged bytes are all there is to see",
    )]
}

fn is_epsilon(inputs: &Inputs) -> bool {
    let info = inputs.info.as_ref();
    info.is_some_and(|info| info.collector == Some(Collector::Epsilon))
}

/// Charges, but nothing live: only a collection shows what is live.
pub(super) fn no_collection(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    // That is said already.
    if is_epsilon(inputs) {
        return Vec::new();
    }
    let sum = |of: fn(&heapwarden_client::live::Account) -> u64| {
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
        0 => "no live bytes yet: no collection has ended since the agent was loaded",
        _ => "no live bytes yet: no collection since then is known to cover what was charged",
    };
    vec![Finding::new(
        &findings::NOTHING_LIVE_YET,
        sentence,
        format!(
            "heapwarden_gc_epoch = {epoch}, charged {}",
            format_bytes(charged)
        ),
        findings::NOTHING_LIVE_YET.advice,
    )]
}

/// Fewer large arrays are sampled, because a sample keeps them alive: their accounts are less precise.
pub(super) fn thinned(inputs: &Inputs) -> Vec<Finding> {
    const THINNED: &str = catalog::SAMPLES_THINNED.name;
    let thinned = inputs.metrics.value(THINNED, &[]).unwrap_or(0.0);
    if thinned == 0.0 {
        return Vec::new();
    }
    vec![Finding::new(
        &findings::LARGE_ARRAYS_THINNED,
        "the application allocates arrays larger than half a G1 region; the agent samples fewer of them, because a \
         sample keeps such an array until a concurrent cycle",
        format!("{THINNED} = {thinned}"),
        "nothing, if the errors of the accounts are small enough; else set -XX:G1HeapRegionSize to more than twice \
         the size of the arrays (32m works on every JDK): then G1 collects them like other objects, and all of \
         them are sampled",
    )]
}

/// Samples that were dropped, by reason.
pub(super) fn dropped(inputs: &Inputs) -> Vec<Finding> {
    const DROPPED: &str = catalog::SAMPLES_DROPPED.name;
    let taken = inputs
        .metrics
        .value(catalog::SAMPLES.name, &[])
        .unwrap_or(0.0);
    let dropped = inputs.metrics.by_label(DROPPED, "reason");
    dropped
        .filter(|(_, count)| *count > 0.0)
        .map(|(reason, count)| {
            let remedy = match reason {
                "table_full" => {
                    "raise [sampling] max-tracked (read at start-up only), or the interval"
                }
                "no_memory" => "give the machine or the container more memory outside the heap",
                "tag_failed" => {
                    "look for another agent that tags objects; report a bug if there is none"
                }
                _ => "use the heapwarden command of the agent's own version",
            };
            let share = 100.0 * count / (taken + count);
            Finding::new(
                &findings::SAMPLES_DROPPED,
                findings::SAMPLES_DROPPED.sentence,
                format!(
                    "{DROPPED}{{reason=\"{}\"}} = {count}, {share:.1} % of all",
                    printable(reason)
                ),
                remedy,
            )
        })
        .collect()
}

/// Generational ZGC reports freed objects at major collections only.
pub(super) fn refunds_at_major_collections(inputs: &Inputs) -> Vec<Finding> {
    let collector = inputs.info.as_ref().and_then(|info| info.collector);
    if collector != Some(Collector::GenerationalZ) || inputs.metrics.is_empty() {
        return Vec::new();
    }
    vec![Finding::new(
        &findings::MAJOR_COLLECTIONS,
        "generational ZGC reports freed objects at major collections only: live bytes are as of the last one",
        "the JVM has threads ZDriverMinor and ZDriverMajor",
        "read live bytes with their age (heapwarden status); between major collections, charged bytes may exceed the heap",
    )]
}

/// Limits for which the sampling interval is too coarse.
///
/// The standard error of L live bytes at interval I is about √(I·L): README, "Limits, honestly".
pub(super) fn too_coarse(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
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
            (share > MAX_ERROR_SHARE).then(|| {
                // √(I·L) = c·L where I = c²·L.
                let proposed = (PROPOSED_ERROR_SHARE * PROPOSED_ERROR_SHARE * limit as f64) as u64;
                Finding::new(
                    &findings::INTERVAL_TOO_COARSE,
                    findings::INTERVAL_TOO_COARSE.sentence_of(&account.name),
                    format!(
                        "limit {}, standard error at the limit {} ({:.0} %), interval {}",
                        format_bytes(limit),
                        format_bytes(error as u64),
                        100.0 * share,
                        format_bytes(accounts.sampling.interval_bytes)
                    ),
                    format!(
                        "[sampling] interval = {} gives 5 %; a smaller interval costs more CPU",
                        match proposed {
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
mod tests;
