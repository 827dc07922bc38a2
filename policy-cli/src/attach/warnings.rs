//! Warnings about the limits of an attached agent, compared with one that was loaded at start-up.

use std::net::SocketAddr;

use policy_config::Listen;

use crate::process::{Collector, ProcessInfo, keeps_from, printable};

/// The first JDK that warns of a dynamically loaded agent (JEP 451).
const FIRST_TO_WARN: u32 = 21;
/// The first JDK with virtual threads.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;
/// The first JDK whose sampler sees into buffers that were there before (JDK-8264411).
const FIRST_WITHOUT_BLIND_BUFFERS: u32 = 25;

/// The facts about the coming attach that warnings depend on.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Where the agent will listen.
    pub(crate) listen: &'a Listen,
    /// Whether it is given a policy file.
    pub(crate) has_policy: bool,
    /// Addresses on which another process listens.
    pub(crate) taken: &'a [SocketAddr],
}

/// One or two sentences for each warning, the most important first.
pub(crate) fn warnings(info: &ProcessInfo, plan: &Plan<'_>) -> Vec<String> {
    let mut warnings = vec![
        "The agent charges only objects that are allocated from now on. What is on the heap now stays unaccounted, \
         so the accounts sum to less than the heap until those objects are gone."
            .to_owned(),
    ];
    // If the version is not known, every warning that may apply is given.
    let feature = info.feature();
    if feature.is_none_or(|feature| feature < FIRST_WITHOUT_BLIND_BUFFERS) {
        warnings.push(
            "The agent samples a thread only after the thread has used up its current allocation buffer (JDK-8264411): \
             the first objects of an idle thread are missing."
                .to_owned(),
        );
    }
    if feature.is_none_or(|feature| feature >= FIRST_WITH_VIRTUAL_THREADS) {
        warnings.push(
            "The JVM grants the capability for events of virtual threads at start-up only; \
             their allocations are sampled without it."
                .to_owned(),
        );
    }
    let warns = feature.is_none_or(|feature| feature >= FIRST_TO_WARN);
    if warns && info.arguments.flag("EnableDynamicAgentLoading") != Some(true) {
        warnings.push(
            "The JVM will print \"WARNING: A JVM TI agent has been loaded dynamically\" and a few lines more to its \
             standard error (JEP 451); -XX:+EnableDynamicAgentLoading at its start hides them."
                .to_owned(),
        );
    }
    warnings.push(
        "The agent cannot be unloaded, and is gone after a restart of the JVM. \
         Set mode = \"observe\" in the policy to stop all refusals; to load the agent at every start, use -agentpath."
            .to_owned(),
    );
    warnings.push(
        "While the agent loads, it looks at all loaded classes; this blocks the JVM's attach thread, but not the application."
            .to_owned(),
    );
    if info.collector == Some(Collector::GenerationalZ) {
        warnings.push(
            "Generational ZGC reports freed objects at major collections only: \
             live bytes are as of the last one."
                .to_owned(),
        );
    }
    if !plan.has_policy {
        warnings.push(
            "No policy file is given: each service gets an account without a limit, nothing is refused, and there is \
             no file to edit later. Give one with --config FILE."
                .to_owned(),
        );
    }
    for profiler in info.files.profilers() {
        warnings.push(format!(
            "{} is loaded: if it samples allocations, Heapwarden gets no samples and keeps no accounts.",
            printable(profiler)
        ));
    }
    if let Some(address) = taken(plan) {
        warnings.push(format!(
            "Another process listens on {address}: the agent takes a free port after some seconds. With \
             listen-strict = true it waits until the address is free, and cannot be read before."
        ));
    }
    warnings
}

/// The address that the agent wants, if it is not free.
fn taken(plan: &Plan<'_>) -> Option<SocketAddr> {
    let wanted: SocketAddr = plan.listen.to_string().parse().ok()?;
    let mut all = plan.taken.iter();
    all.any(|&taken| keeps_from(taken, wanted))
        .then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Arguments, MappedFiles, Release};

    fn of(version: &str, flag: &str) -> String {
        let info = ProcessInfo {
            release: Some(Release::parse(&format!("JAVA_VERSION=\"{version}\""))),
            arguments: Arguments::parse(format!("java\0{flag}\0Main").as_bytes(), b""),
            ..ProcessInfo::default()
        };
        warned(&info, &[])
    }

    fn warned(info: &ProcessInfo, taken: &[SocketAddr]) -> String {
        let plan = Plan {
            listen: &Listen::default(),
            has_policy: true,
            taken,
        };
        warnings(info, &plan).join("\n")
    }

    #[test]
    fn each_release_has_its_own() {
        let of_17 = of("17.0.15", "-Xmx1g");
        assert!(
            of_17.contains("JDK-8264411") && !of_17.contains("JEP 451"),
            "{of_17}"
        );
        let of_21 = of("21", "-Xmx1g");
        assert!(
            of_21.contains("JDK-8264411") && of_21.contains("JEP 451") && of_21.contains("virtual")
        );
        let of_25 = of("25.0.3", "-Xmx1g");
        assert!(!of_25.contains("JDK-8264411") && of_25.contains("JEP 451"));
        let enabled = of("25.0.3", "-XX:+EnableDynamicAgentLoading");
        assert!(!enabled.contains("JEP 451"), "{enabled}");
        assert!(
            of("", "").contains("JEP 451"),
            "an unknown release may warn"
        );
    }

    #[test]
    fn a_taken_port_gives_a_warning() {
        for (taken, is_expected) in [
            ("127.0.0.1:9464", true),
            ("0.0.0.0:9464", true),
            ("127.0.0.1:9465", false),
            ("10.0.0.1:9464", false),
        ] {
            let text = warned(&ProcessInfo::default(), &[taken.parse().unwrap()]);
            assert_eq!(
                text.contains("Another process listens"),
                is_expected,
                "{taken}"
            );
        }
    }

    #[test]
    fn profilers_and_generational_zgc_give_warnings() {
        let info = ProcessInfo {
            collector: Some(Collector::GenerationalZ),
            files: MappedFiles::parse("0-1 r-xp 0 fe:00 1 /opt/libasyncProfiler.so\n"),
            ..ProcessInfo::default()
        };
        let text = warned(&info, &[]);
        assert!(
            text.contains("/opt/libasyncProfiler.so is loaded"),
            "{text}"
        );
        assert!(text.contains("major collections only"), "{text}");
    }
}
