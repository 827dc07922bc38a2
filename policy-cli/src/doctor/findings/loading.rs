//! Whether the agent is there at all.

use super::super::finding::{Finding, Severity};
use super::super::picture::Picture;
use crate::process::printable;

/// The agent's options; `test-refuse` is for its own tests.
const OPTIONS: [&str; 6] = [
    "config",
    "listen",
    "run-file",
    "enabled",
    "log",
    "test-refuse",
];

/// The process is no JVM.
pub(super) fn no_jvm(picture: &Picture) -> Vec<Finding> {
    let facts = picture.facts.iter().filter(|facts| !facts.is_jvm());
    facts
        .map(|facts| {
            Finding::new(
                Severity::Error,
                "no-jvm",
                "the process is no JVM",
                "libjvm.so is not among its mapped files",
                format!(
                    "name the JVM's own id, not {}'s (jps, pgrep java)",
                    facts.pid
                ),
            )
        })
        .collect()
}

/// The library is not mapped.
pub(super) fn not_loaded(picture: &Picture) -> Vec<Finding> {
    let Some(facts) = picture.facts.as_ref().filter(|facts| facts.is_jvm()) else {
        return Vec::new();
    };
    if facts.files.libheapwarden().is_some() {
        return Vec::new();
    }
    let evidence = "libheapwarden.so is not among its mapped files";
    let command = String::from_utf8_lossy(&facts.command);
    let remedy = match facts.arguments.heapwarden() {
        Some(_) => {
            "-agentpath names the agent, and the JVM has not loaded it: is the path right, and was the variable set for \
             this JVM (JDK_JAVA_OPTIONS reaches the java launcher only)?"
                .to_owned()
        }
        None if command.contains("heapwarden") => {
            "the flag stands behind the main class or -jar, where it is the application's argument: \
             put -agentpath:… in front of it"
                .to_owned()
        }
        None => format!(
            "start the JVM with -agentpath:…/libheapwarden.so=config=…, or heapwarden attach {}",
            facts.pid
        ),
    };
    let sentence = "the agent is not loaded";
    vec![Finding::new(
        Severity::Error,
        "not-loaded",
        sentence,
        evidence,
        remedy,
    )]
}

/// Told to do nothing.
pub(super) fn inert(picture: &Picture) -> Vec<Finding> {
    let facts = picture.facts.iter();
    facts
        .filter_map(|facts| {
            let options = facts.arguments.heapwarden().unwrap_or_default();
            let option = crate::process::option(options, "enabled");
            let evidence = match (option, facts.environment.enabled.as_deref()) {
                (Some("false"), _) => "enabled=false among the agent's options",
                (None, Some("false")) => "HEAPWARDEN_ENABLED=false in the JVM's environment",
                _ => return None,
            };
            Some(Finding::new(
                Severity::Error,
                "disabled",
                "the agent was told to do nothing",
                evidence,
                "remove it and start the JVM again",
            ))
        })
        .collect()
}

/// Typing errors in the agent's options.
pub(super) fn unknown_options(picture: &Picture) -> Vec<Finding> {
    let facts = picture.facts.iter();
    let options = facts.filter_map(|facts| facts.arguments.heapwarden());
    options
        .flat_map(|options| options.split(','))
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .filter(|pair| {
            let key = pair.split_once('=').map(|(key, _)| key.trim());
            key.is_none_or(|key| !OPTIONS.contains(&key))
        })
        .map(|pair| {
            Finding::new(
                Severity::Warning,
                "unknown-option",
                "the agent does not know one of its options, and ignores it",
                printable(pair),
                "write key=value with config, listen, run-file, enabled or log; a path must not contain a comma",
            )
        })
        .collect()
}

/// Loaded, but not to be read.
pub(super) fn unread(picture: &Picture) -> Vec<Finding> {
    if !picture.metrics.is_empty() {
        return Vec::new();
    }
    let one = |evidence: String, remedy: String| {
        let sentence = "the agent cannot be read";
        vec![Finding::new(
            Severity::Error,
            "unread",
            sentence,
            evidence,
            remedy,
        )]
    };
    if let Some(why) = &picture.unread {
        return one(
            why.clone(),
            "the agent's log names the address that it bound; /-/ready says whether it keeps accounts".to_owned(),
        );
    }
    let Some(facts) = picture
        .facts
        .as_ref()
        .filter(|facts| facts.files.libheapwarden().is_some())
    else {
        return Vec::new();
    };
    let options = facts.arguments.heapwarden().unwrap_or_default();
    let listen = crate::process::option(options, "listen").or(facts.environment.listen.as_deref());
    match listen {
        Some("off") => one(
            "listen=off".to_owned(),
            "give it an address to listen on".to_owned(),
        ),
        _ if !facts.shares_network => one(
            "the JVM has a network of its own (a container)".to_owned(),
            format!(
                "look from inside: nsenter -t {} -n heapwarden doctor {}; from outside it is seen only on listen=0.0.0.0:… \
                 with the port published",
                facts.pid,
                printable(listen.unwrap_or("127.0.0.1:9464"))
            ),
        ),
        _ => one(
            "none of the JVM's listeners answers as an agent does".to_owned(),
            format!(
                "its log says why: the address ({}) may be taken, and then it waits for it; or it does nothing in this JVM",
                printable(listen.unwrap_or("of the policy, or 127.0.0.1:9464"))
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pictures::jvm;
    use super::*;

    const JVM: &str = "/opt/java/lib/server/libjvm.so";
    const AGENT: &str = "/opt/heapwarden/libheapwarden.so";

    #[track_caller]
    fn only(findings: Vec<Finding>, name: &str) -> Finding {
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].name, name);
        findings[0].clone()
    }

    #[test]
    fn what_is_no_jvm_is_said_once() {
        let picture = jvm(&["/usr/bin/sleep"], &[]);
        only(super::super::all(&picture), "no-jvm");
    }

    #[test]
    fn an_agent_that_is_not_there_has_three_causes() {
        let found =
            |arguments: &[&str]| only(not_loaded(&jvm(&[JVM], arguments)), "not-loaded").remedy;
        assert!(found(&["Main"]).contains("attach 7"));
        assert!(
            found(&["-jar", "a.jar", "-agentpath:/libheapwarden.so"])
                .contains("behind the main class")
        );
        assert!(found(&["-agentpath:/libheapwarden.so", "Main"]).contains("is the path right"));
        assert_eq!(not_loaded(&jvm(&[JVM, AGENT], &["Main"])), []);
    }

    #[test]
    fn options_that_are_wrong_or_disable_are_said() {
        let picture = jvm(
            &[JVM, AGENT],
            &[
                "-agentpath:/libheapwarden.so=confg=/a,enabled=false,x",
                "Main",
            ],
        );
        only(inert(&picture), "disabled");
        let found = unknown_options(&picture);
        let evidence: Vec<&str> = found.iter().map(|one| one.evidence.as_str()).collect();
        assert_eq!(evidence, ["confg=/a", "x"]);
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
        contained.facts.as_mut().unwrap().shares_network = false;
        assert!(
            only(unread(&contained), "unread")
                .remedy
                .contains("nsenter -t 7")
        );
        let waiting = jvm(&[JVM, AGENT], &["Main"]);
        assert!(
            only(unread(&waiting), "unread")
                .remedy
                .contains("may be taken")
        );
        assert_eq!(
            unread(&jvm(&[JVM], &["Main"])),
            [],
            "it is not loaded at all"
        );
    }
}
