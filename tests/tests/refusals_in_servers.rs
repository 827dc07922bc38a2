//! How each server answers a request whose thread is refused, for each error, with and without the example's
//! filter and valve: the table in `examples/servlet/README.md`, measured.
//!
//! The application throws the errors itself, of the classes that the agent has defined: what the
//! server sees is the same as when the agent throws them.

use heapwarden_tests::jdk::{Jdk, every_jdk, newest};
use heapwarden_tests::server::{Installation, Server, installed};
use heapwarden_tests::server_setup::{self, Prepared, deploy};
use heapwarden_tests::{artifacts, command};
use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

const INTERVAL: &str = "64KiB";
/// `throw` in the policy, and the class that it stands for.
const KINDS: [(&str, &str); 3] = [
    ("oom", "MemoryQuotaExceededError"),
    ("error", "AllocationRefusedError"),
    ("exception", "MemoryQuotaExceededException"),
];
const BARE: &str = "/refused";
const FILTERED: &str = "/guarded";
const VALVED: &str = "/valved";
/// How servers report a request that failed: words of their own, and how the table quotes them.
const REPORTS: [(&str, &str); 5] = [
    (
        "Failed to complete processing of a request",
        "SEVERE `Failed to complete processing of a request`",
    ),
    (
        "Servlet.service() for servlet [refused.RefusedServlet]",
        "SEVERE `Servlet.service() … threw exception`",
    ),
    ("WARN :oejes.ServletChannel", "WARN by `ServletChannel`"),
    (
        "UT005023: Exception handling request to",
        "ERROR `UT005023: Exception handling request`",
    ),
    (
        "Servlet.service() for servlet [dispatcherServlet]",
        "ERROR `Servlet.service() … threw exception`",
    ),
];

/// Has the context's servlet throw this class, and returns the client's answer in the table's words.
fn answer(server: &Server, context: &str, class: &str) -> String {
    match server.get(&format!("{context}/refuse?throw={class}")) {
        Ok(answer) if answer.status == 503 => {
            assert_eq!(answer.headers["retry-after"], "10", "{answer:?}");
            assert!(answer.body.is_empty(), "{answer:?}");
            "503".to_owned()
        }
        Ok(answer) if answer.body.contains("is over its memory limit") => {
            format!("{} with the figures", answer.status)
        }
        Ok(answer) => answer.status.to_string(),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            "connection closed".to_owned()
        }
        Err(error) => panic!("{context} {class}: {error}\n{}", server.log()),
    }
}

/// The server still answers, and every thread that threw is alive.
fn assert_goes_on(server: &Server, context: &str, thrown: usize) {
    let answer = server
        .get(&format!("{context}/refuse?throw=none"))
        .unwrap_or_else(|error| panic!("{context} afterwards: {error}\n{}", server.log()));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.body.trim(),
        format!("done {thrown} of {thrown}"),
        "threads that are alive, of those that threw"
    );
}

/// Finds the log's report of the refusal that this context's servlet threw, in the table's words; `None` if there is
/// none.
fn report(log: &str, context: &str, class: &str) -> Option<&'static str> {
    let lines: Vec<&str> = log.lines().collect();
    let account = format!("account \"{context}/refuse {class}\"");
    let at = lines.iter().position(|line| line.contains(&account))?;
    // The report's own line, and the throwable's where it has one.
    let report = lines[at.saturating_sub(1)..=at].join("\n");
    let known = REPORTS.iter().find(|(words, _)| report.contains(words));
    let (_, name) = known.unwrap_or_else(|| panic!("a report of a new kind: {report}"));
    Some(name)
}

/// Throws every kind in every context, and holds what comes of it against the table.
fn assert_table(name: &str, site: Installation, prepared: Prepared, contexts: &[&str]) {
    let server = site.start(prepared.command, &format!("{BARE}/refuse?throw=none"));
    for context in contexts {
        let up = command::poll(Duration::from_secs(60), || {
            let answer = server.get(&format!("{context}/refuse?throw=none"));
            answer.ok().filter(|answer| answer.status == 200)
        });
        assert!(up.is_some(), "{context} is not up:\n{}", server.log());
    }
    let answers: Vec<Vec<String>> = KINDS
        .iter()
        .map(|(_, class)| contexts.iter().map(|c| answer(&server, c, class)).collect())
        .collect();
    // The Spring Boot application has one list of threads for both its paths.
    let separate = name != "Spring Boot 3.5";
    let thrown = KINDS.len() * if separate { 1 } else { contexts.len() };
    for context in contexts {
        assert_goes_on(&server, context, thrown);
    }
    let log = server.finish();
    let readme = fs::read_to_string(artifacts::repository().join("examples/servlet/README.md"))
        .expect("the README is readable");
    let rows = readme
        .lines()
        .filter(|line| line.starts_with(&format!("| {name} |")))
        .count();
    assert_eq!(rows, KINDS.len(), "rows of {name} in the table");
    let mut missing = Vec::new();
    for ((throw, class), answers) in KINDS.iter().zip(&answers) {
        let cells = contexts.iter().zip(answers).map(|(context, answer)| {
            match report(&log, context, class) {
                Some(report) => format!("{answer}; {report}"),
                None => format!("{answer}; –"),
            }
        });
        let mut cells: Vec<String> = cells.collect();
        cells.resize(3, String::new());
        let row = format!("| {name} | `{throw}` | {} |", cells.join(" | ")).replace("|  |", "| |");
        if !readme.lines().any(|line| line == row) {
            missing.push(row);
        }
    }
    assert!(
        missing.is_empty(),
        "measured, and not in examples/servlet/README.md:\n{}",
        missing.join("\n")
    );
}

fn assert_tomcat(name: &str, jdk: &Jdk, distribution: &str) {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, jdk, distribution, INTERVAL);
    let base = &prepared.base;
    deploy("refused/refused.war", &base.join("webapps"));
    deploy("guarded/guarded.war", &base.join("webapps"));
    // As the example's README says, but for one context of the three.
    fs::copy(
        artifacts::repository().join("examples/servlet/target/heapwarden-servlet.jar"),
        base.join("lib/heapwarden-servlet.jar"),
    )
    .expect("built by Maven");
    let contexts = base.join("conf/Catalina/localhost");
    fs::create_dir_all(&contexts).expect("writable");
    fs::write(
        contexts.join("valved.xml"),
        format!(
            "<Context docBase=\"{}\">\
             <Valve className=\"dev.heapwarden.examples.servlet.MemoryQuotaValve\"/></Context>",
            installed().join("refused/refused.war").display()
        ),
    )
    .expect("writable");
    // Everything to standard output, where the test looks; by default a context's own messages go
    // to a file.
    fs::write(
        base.join("conf/logging.properties"),
        "handlers = java.util.logging.ConsoleHandler\n\
         java.util.logging.ConsoleHandler.formatter = org.apache.juli.OneLineFormatter\n",
    )
    .expect("writable");
    assert_table(name, site, prepared, &[BARE, FILTERED, VALVED]);
}

#[test]
fn tomcat_10() {
    assert_tomcat("Tomcat 10.1", &every_jdk()[0], "apache-tomcat-10.1.44");
}

#[test]
fn tomcat_11() {
    assert_tomcat("Tomcat 11", newest(), "apache-tomcat-11.0.10");
}

#[test]
fn jetty_12() {
    let site = Installation::new();
    let prepared = server_setup::jetty(&site, &every_jdk()[0], INTERVAL);
    for war in ["refused/refused.war", "guarded/guarded.war"] {
        deploy(war, &prepared.base.join("webapps"));
    }
    assert_table("Jetty 12", site, prepared, &[BARE, FILTERED]);
}

#[test]
fn wildfly_37() {
    let site = Installation::new();
    let prepared = server_setup::wildfly(&site, &every_jdk()[0], INTERVAL);
    for war in ["refused/refused.war", "guarded/guarded.war"] {
        deploy(war, &prepared.base.join("deployments"));
    }
    assert_table("WildFly 37", site, prepared, &[BARE, FILTERED]);
}

#[test]
fn spring_boot_3() {
    let site = Installation::new();
    let prepared = server_setup::spring_boot(&site, newest(), INTERVAL);
    assert_table("Spring Boot 3.5", site, prepared, &[BARE, FILTERED]);
}
