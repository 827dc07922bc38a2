//! Checks whether the agent is loaded, enabled and readable.

use policy_config::AGENT_OPTIONS;

use super::super::finding::{Finding, Severity, findings};
use super::super::inputs::Inputs;
use crate::process::printable;

/// An option for the agent's own tests.
const TEST_OPTION: &str = "test-refuse";

/// The process is not a JVM.
pub(super) fn no_jvm(inputs: &Inputs) -> Vec<Finding> {
    let info = inputs.info.iter().filter(|info| !info.is_jvm());
    info.map(|info| {
        Finding::new(
            &findings::NO_JVM,
            "the process is not a JVM",
            "libjvm.so is not among its mapped files",
            format!(
                "give the process id of the JVM instead of {} (jps or pgrep java lists JVMs)",
                info.pid
            ),
        )
    })
    .collect()
}

/// The library is not mapped.
pub(super) fn not_loaded(inputs: &Inputs) -> Vec<Finding> {
    let Some(info) = inputs.info.as_ref().filter(|info| info.is_jvm()) else {
        return Vec::new();
    };
    if info.files.libheapwarden().is_some() {
        return Vec::new();
    }
    let evidence = "libheapwarden.so is not among its mapped files";
    let command = String::from_utf8_lossy(&info.command);
    let remedy = match info.arguments.heapwarden() {
        Some(_) => {
            "-agentpath names the agent, but the JVM has not loaded it: check the path, and that the variable is set for \
             this JVM (only the java launcher reads JDK_JAVA_OPTIONS)"
                .to_owned()
        }
        None if command.contains("heapwarden") => {
            "-agentpath stands after the main class or -jar, so it is an argument of the application: \
             move -agentpath:… in front of it"
                .to_owned()
        }
        None => format!(
            "start the JVM with -agentpath:…/libheapwarden.so=config=…, or run heapwarden attach {}",
            info.pid
        ),
    };
    let sentence = "the agent is not loaded";
    vec![Finding::new(
        &findings::NOT_LOADED,
        sentence,
        evidence,
        remedy,
    )]
}

/// The agent is disabled.
pub(super) fn inert(inputs: &Inputs) -> Vec<Finding> {
    let info = inputs.info.iter();
    info.filter_map(|info| {
        let options = info.arguments.heapwarden().unwrap_or_default();
        let option = crate::process::option(options, "enabled");
        let evidence = match (option, info.environment.enabled.as_deref()) {
            (Some("false"), _) => "enabled=false among the agent's options",
            (None, Some("false")) => "HEAPWARDEN_ENABLED=false in the JVM's environment",
            _ => return None,
        };
        Some(Finding::new(
            &findings::DISABLED,
            "the agent is disabled",
            evidence,
            "remove it and restart the JVM",
        ))
    })
    .collect()
}

/// Typing errors in the agent's options.
pub(super) fn unknown_options(inputs: &Inputs) -> Vec<Finding> {
    let keys = AGENT_OPTIONS.map(|option| option.key);
    let [others @ .., last] = &keys;
    let remedy = format!(
        "write key=value with {} or {last}; a path must not contain a comma",
        others.join(", ")
    );
    let info = inputs.info.iter();
    let options = info.filter_map(|info| info.arguments.heapwarden());
    options
        .flat_map(|options| options.split(','))
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .filter(|pair| {
            let key = pair.split_once('=').map(|(key, _)| key.trim());
            key.is_none_or(|key| key != TEST_OPTION && !keys.contains(&key))
        })
        .map(|pair| {
            Finding::new(
                &findings::UNKNOWN_OPTION,
                "the agent ignores an option that it does not know",
                printable(pair),
                remedy.as_str(),
            )
        })
        .collect()
}

/// A Java agent in front of the native one: what it allocates at its start is not seen.
pub(super) fn java_agent_first(inputs: &Inputs) -> Vec<Finding> {
    let arguments = inputs.info.iter().map(|info| &info.arguments);
    let first = arguments.filter_map(|arguments| arguments.java_agent_before_heapwarden());
    first
        .map(|jar| {
            Finding::new(
                &findings::JAVA_AGENT_FIRST,
                "a Java agent stands before Heapwarden among the JVM's options: the memory that it allocates while it \
                 is loaded is in no account",
                format!("-javaagent:{}", printable(jar)),
                "nothing, if a few MiB do not matter; else put -agentpath:…/libheapwarden.so in front of it",
            )
        })
        .collect()
}

/// The agent listens elsewhere, because another process has its port.
pub(super) fn port_taken(inputs: &Inputs) -> Vec<Finding> {
    let (Some(port), Some(address), Some(_)) = (&inputs.port, &inputs.address, &inputs.accounts)
    else {
        return Vec::new();
    };
    let wanted = port.wanted;
    vec![match &port.holder {
        Some(holder) => Finding::as_grave_as(
            Severity::Warning,
            &findings::PORT_TAKEN,
            format!(
                "the agent listens on {address} instead of {wanted}, because another process has that port"
            ),
            format!("{wanted} is held by {holder}"),
            "read this JVM at its own address (heapwarden status lists all JVMs of this machine), or give each JVM a \
             port of its own with listen=; with listen-strict = true the agent would wait for the port",
        ),
        None => Finding::new(
            &findings::PORT_TAKEN,
            format!(
                "the agent listens on {address} instead of {wanted}: another process had that port when the JVM was \
                 started, or the policy was changed since"
            ),
            format!("nobody listens on {wanted} now"),
            "nothing, if Prometheus reads the address that it has; else start the JVM again",
        ),
    }]
}

/// The agent is loaded, but does not answer.
pub(super) fn unread(inputs: &Inputs) -> Vec<Finding> {
    if !inputs.metrics.is_empty() {
        return Vec::new();
    }
    let one = |evidence: String, remedy: String| {
        let sentence = "the agent cannot be read";
        vec![Finding::new(&findings::UNREAD, sentence, evidence, remedy)]
    };
    let holder = inputs.port.as_ref().and_then(|port| port.holder.as_ref());
    if let Some(why) = &inputs.unread {
        return one(
            match holder {
                Some(holder) => format!("{why}; the port is held by {holder}"),
                None => why.clone(),
            },
            "look into the JVM's log: the agent logs the address that it listens on; /-/ready says whether it keeps accounts".to_owned(),
        );
    }
    let Some(info) = inputs
        .info
        .as_ref()
        .filter(|info| info.files.libheapwarden().is_some())
    else {
        return Vec::new();
    };
    let options = info.arguments.heapwarden().unwrap_or_default();
    let listen = crate::process::option(options, "listen").or(info.environment.listen.as_deref());
    if let (Some(port), Some(holder)) = (&inputs.port, holder) {
        return one(
            format!("{} is held by {holder}", port.wanted),
            "end that process, or give this JVM another port with listen=; without listen-strict the agent takes a free \
             port after a few seconds"
                .to_owned(),
        );
    }
    match listen {
        Some("off") => one(
            "listen=off".to_owned(),
            "set listen to an address".to_owned(),
        ),
        _ if !info.shares_network => one(
            "the JVM has its own network (a container)".to_owned(),
            format!(
                "run it in the JVM's network: nsenter -t {} -n heapwarden doctor {}; or set listen=0.0.0.0:… and publish \
                 the port",
                info.pid,
                printable(listen.unwrap_or("127.0.0.1:9464"))
            ),
        ),
        _ => one(
            "no listener of the JVM answers like an agent".to_owned(),
            format!(
                "look into the agent's log: if the address ({}) cannot be bound, the agent waits for it; or it is disabled",
                printable(listen.unwrap_or("of the policy, or 127.0.0.1:9464"))
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::inputs::Port;
    use super::super::test_inputs::jvm;
    use super::*;
    use crate::process::PortHolder;

    const JVM: &str = "/opt/java/lib/server/libjvm.so";
    const AGENT: &str = "/opt/heapwarden/libheapwarden.so";

    #[track_caller]
    fn only(findings: Vec<Finding>, name: &str) -> Finding {
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].name, name);
        findings[0].clone()
    }

    #[test]
    fn a_process_that_is_no_jvm_gives_one_finding() {
        let inputs = jvm(&["/usr/bin/sleep"], &[]);
        only(super::super::run(&inputs), "no-jvm");
    }

    #[test]
    fn an_agent_that_is_not_loaded_has_three_causes() {
        let found =
            |arguments: &[&str]| only(not_loaded(&jvm(&[JVM], arguments)), "not-loaded").remedy;
        assert!(found(&["Main"]).contains("attach 7"));
        assert!(
            found(&["-jar", "a.jar", "-agentpath:/libheapwarden.so"])
                .contains("after the main class")
        );
        assert!(found(&["-agentpath:/libheapwarden.so", "Main"]).contains("check the path"));
        assert_eq!(not_loaded(&jvm(&[JVM, AGENT], &["Main"])), []);
    }

    #[test]
    fn a_java_agent_in_front_is_told_and_one_behind_is_not() {
        let of = |arguments: &[&str]| java_agent_first(&jvm(&[JVM, AGENT], arguments));
        let (java, native) = ("-javaagent:/otel.jar=a", "-agentpath:/libheapwarden.so");
        let found = only(of(&[java, native, "Main"]), "java-agent-first");
        assert_eq!(found.evidence, "-javaagent:/otel.jar");
        assert_eq!(of(&[native, java, "Main"]), []);
        assert_eq!(of(&[java, "Main"]), [], "the agent was attached");
    }

    fn held(wanted: &str, holder: Option<PortHolder>) -> Option<Port> {
        let wanted = wanted.parse().unwrap();
        Some(Port { wanted, holder })
    }

    fn tomcat() -> Option<PortHolder> {
        Some(PortHolder::Process {
            pid: 4711,
            command_line: "java org.apache.catalina.startup.Bootstrap".to_owned(),
        })
    }

    #[test]
    fn who_holds_the_agents_port_is_told_whether_it_has_another_or_none() {
        let mut none = jvm(&[JVM, AGENT], &["Main"]);
        none.port = held("127.0.0.1:9464", tomcat());
        let found = only(unread(&none), "unread");
        let expected =
            "127.0.0.1:9464 is held by process 4711: java org.apache.catalina.startup.Bootstrap";
        assert_eq!(found.evidence, expected);
        assert!(found.remedy.contains("listen="), "{found:?}");

        let mut other = jvm(&[JVM, AGENT], &["Main"]);
        other.address = Some("127.0.0.1:41234".to_owned());
        other.accounts = Some(heapwarden_client::live::Accounts::default());
        assert_eq!(port_taken(&other), [], "it has the one that it wants");
        other.port = held("127.0.0.1:9464", tomcat());
        let found = only(port_taken(&other), "port-taken");
        assert_eq!(
            (found.severity, found.evidence.as_str()),
            (Severity::Warning, expected)
        );
        assert!(
            found
                .sentence
                .contains("127.0.0.1:41234 instead of 127.0.0.1:9464")
        );
        other.port = held("127.0.0.1:9464", Some(PortHolder::OfUser(998)));
        assert!(
            only(port_taken(&other), "port-taken")
                .evidence
                .contains("user 998")
        );
        other.port = held("127.0.0.1:9464", None);
        assert_eq!(
            only(port_taken(&other), "port-taken").severity,
            Severity::Note
        );
    }

    #[test]
    fn wrong_and_disabling_options_are_reported() {
        let inputs = jvm(
            &[JVM, AGENT],
            &[
                "-agentpath:/libheapwarden.so=confg=/a,enabled=false,x",
                "Main",
            ],
        );
        only(inert(&inputs), "disabled");
        let found = unknown_options(&inputs);
        let evidence: Vec<&str> = found.iter().map(|one| one.evidence.as_str()).collect();
        assert_eq!(evidence, ["confg=/a", "x"]);
        assert_eq!(
            found[0].remedy,
            "write key=value with config, listen, listen-strict, run-file, enabled, log or tlab-refill; a path must \
             not contain a comma"
        );
        let fine = jvm(
            &[JVM, AGENT],
            &["-agentpath:/libheapwarden.so=config=/a,listen=off", "Main"],
        );
        assert_eq!((inert(&fine), unknown_options(&fine)), (vec![], vec![]));
    }

    #[test]
    fn an_agent_that_cannot_be_read_has_causes_as_well() {
        let off = jvm(
            &[JVM, AGENT],
            &["-agentpath:/libheapwarden.so=listen=off", "Main"],
        );
        assert_eq!(only(unread(&off), "unread").evidence, "listen=off");
        let mut contained = jvm(&[JVM, AGENT], &["Main"]);
        contained.info.as_mut().unwrap().shares_network = false;
        assert!(
            only(unread(&contained), "unread")
                .remedy
                .contains("nsenter -t 7")
        );
        let waiting = jvm(&[JVM, AGENT], &["Main"]);
        assert!(
            only(unread(&waiting), "unread")
                .remedy
                .contains("waits for it")
        );
        assert_eq!(
            unread(&jvm(&[JVM], &["Main"])),
            [],
            "it is not loaded at all"
        );
    }
}
