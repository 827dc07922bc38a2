//! What attaching does not give, compared with the start-up flag: said before it is done.

use std::net::SocketAddr;

use policy_config::Listen;

use crate::process::{Collector, Facts, printable};

/// The first JDK that warns of a dynamically loaded agent (JEP 451).
const FIRST_TO_WARN: u32 = 21;
/// The first JDK with virtual threads.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;
/// The first JDK whose sampler sees into buffers that were there before (JDK-8264411).
const FIRST_WITHOUT_BLIND_BUFFERS: u32 = 25;

/// What is about to be done.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Where the agent will listen.
    pub(crate) listen: &'a Listen,
    /// Whether it is given a policy file.
    pub(crate) has_policy: bool,
    /// Addresses that somebody listens on already.
    pub(crate) taken: &'a [SocketAddr],
}

/// One sentence or two for each thing to know; the weightier first.
pub(crate) fn notices(facts: &Facts, plan: &Plan<'_>) -> Vec<String> {
    let mut notices = vec![
        "What is on the heap now stays unaccounted for ever: only what is allocated from now on is charged. \
         The accounts sum to less than the heap until the old objects are gone."
            .to_owned(),
    ];
    // Where the version is not known, what may be is said.
    let feature = facts.feature();
    if feature.is_none_or(|feature| feature < FIRST_WITHOUT_BLIND_BUFFERS) {
        notices.push(
            "Each thread's current allocation buffer stays unseen until it is used up (JDK-8264411): \
             an idle thread's first objects are missing."
                .to_owned(),
        );
    }
    if feature.is_none_or(|feature| feature >= FIRST_WITH_VIRTUAL_THREADS) {
        notices.push(
            "The capability for virtual threads' own events is given at the start only; \
             their allocations are sampled without it."
                .to_owned(),
        );
    }
    let warns = feature.is_none_or(|feature| feature >= FIRST_TO_WARN);
    if warns && facts.arguments.flag("EnableDynamicAgentLoading") != Some(true) {
        notices.push(
            "The JVM will print \"WARNING: A JVM TI agent has been loaded dynamically\" and a few lines more to its \
             standard error (JEP 451); -XX:+EnableDynamicAgentLoading at its start hides them."
                .to_owned(),
        );
    }
    notices.push(
        "It lasts as long as this JVM: the agent cannot be unloaded, and is not there after a restart. \
         mode = \"observe\" in the policy stops all refusals; for good use -agentpath."
            .to_owned(),
    );
    notices.push(
        "Loading holds the JVM's attach thread, not the application, while the classes that are there are looked at."
            .to_owned(),
    );
    if facts.collector == Some(Collector::GenerationalZ) {
        notices.push(
            "With generational ZGC what dies is refunded at major collections only: \
             live bytes are those of the last one."
                .to_owned(),
        );
    }
    if !plan.has_policy {
        notices.push(
            "No policy file is given: each service found gets an account, without a limit, nothing is refused, \
             and no file can be edited later. --config FILE names one."
                .to_owned(),
        );
    }
    for profiler in facts.files.profilers() {
        notices.push(format!(
            "{} is loaded: if it samples allocations, Heapwarden gets none, and keeps no accounts.",
            printable(profiler)
        ));
    }
    if let Some(address) = taken(plan) {
        notices.push(format!(
            "Somebody listens on {address} already: the agent will wait for it to become free, and nothing can be read \
             until then. --option listen=127.0.0.1:0 picks a free port."
        ));
    }
    notices
}

/// The address that the agent wants, if it is not free.
fn taken(plan: &Plan<'_>) -> Option<SocketAddr> {
    let wanted: SocketAddr = plan.listen.to_string().parse().ok()?;
    let is_taken = |taken: &&SocketAddr| {
        taken.port() == wanted.port()
            && (taken.ip() == wanted.ip()
                || taken.ip().is_unspecified()
                || wanted.ip().is_unspecified())
    };
    plan.taken.iter().find(is_taken).map(|_| wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Arguments, MappedFiles, Release};

    fn of(version: &str, flag: &str) -> String {
        let facts = Facts {
            release: Some(Release::parse(&format!("JAVA_VERSION=\"{version}\""))),
            arguments: Arguments::parse(format!("java\0{flag}\0Main").as_bytes(), b""),
            ..Facts::default()
        };
        told(&facts, &[])
    }

    fn told(facts: &Facts, taken: &[SocketAddr]) -> String {
        let plan = Plan {
            listen: &Listen::default(),
            has_policy: true,
            taken,
        };
        notices(facts, &plan).join("\n")
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
    fn a_taken_port_is_said() {
        for (taken, is_said) in [
            ("127.0.0.1:9464", true),
            ("0.0.0.0:9464", true),
            ("127.0.0.1:9465", false),
            ("10.0.0.1:9464", false),
        ] {
            let text = told(&Facts::default(), &[taken.parse().unwrap()]);
            assert_eq!(text.contains("Somebody listens"), is_said, "{taken}");
        }
    }

    #[test]
    fn profilers_and_generational_zgc_are_said() {
        let facts = Facts {
            collector: Some(Collector::GenerationalZ),
            files: MappedFiles::parse("0-1 r-xp 0 fe:00 1 /opt/libasyncProfiler.so\n"),
            ..Facts::default()
        };
        let text = told(&facts, &[]);
        assert!(
            text.contains("/opt/libasyncProfiler.so is loaded"),
            "{text}"
        );
        assert!(text.contains("major collections only"), "{text}");
    }
}
