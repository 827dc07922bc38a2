//! Programs whose every class is rewritten, the JDK's included, give the answers that they give without the agent:
//! exact accounts, contexts and executed bytecodes are on, with brackets of both around all of the program's methods.
//!
//! A database, the Java compiler, and a triple store in Jetty 12 always; `cargo xtask test --long` also has that store
//! and another one in Tomcat, and the twelve workloads of the cost table (`bench/java/rows`), which know the checksum of
//! their results.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use heapwarden_harness::http::Answer;
use heapwarden_tests::application::{Subject, subject};
use heapwarden_tests::fixture::{files_below, up_to_date};
use heapwarden_tests::jdk::{
    Collector, JAVAC, Vm, every_jdk_for, every_jdk_with, is_long, on_each, one_jdk_with,
};
use heapwarden_tests::jvm::{Builder, victim};
use heapwarden_tests::server::Installation;
use heapwarden_tests::{artifacts, command, java, libraries, maven};

/// Longest that one program may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
const ROWS: [&str; 12] = [
    "antlr", "bloat", "chart", "eclipse", "fop", "hsqldb", "jbb", "jython", "luindex", "lusearch",
    "pmd", "xalan",
];
/// The packages of the rows and of all that they use.
const PACKAGES_OF_ROWS: [&str; 4] = ["com.*", "net.*", "org.*", "rows.*"];

fn policy(packages: &[&str]) -> String {
    format!(
        "[exact]\naccounts = true\ncontexts = {packages:?}\nbytecodes = true\n\
         [[account]]\nname = \"program\"\npackages = {packages:?}\n"
    )
}

#[test]
fn a_database_gives_the_same_answers() {
    let h2 = libraries::jar("h2");
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let database = || {
            let classes = [java::classes().victims(), h2.clone()];
            let class_path = std::env::join_paths(classes).expect("no colon in them");
            let class_path = class_path.into_string().expect("UTF-8");
            victim(vm, "victim.SqlAnswers")
                .class_path(class_path)
                .heap("512m")
        };
        let order = "ask jdbc:h2:mem: 8";
        let mut plain = database().without_agent().start();
        let before = plain.ask(order);
        plain.finish();
        let mut jvm = database()
            .policy(&policy(&["org.h2.*", "victim.*"]))
            .start();
        let after = jvm.ask(order);
        assert_eq!(before, after, "{vm}");
        assert!(before.len() > 40, "{vm}: {before:?}");
        let counted = command::poll(command::PATIENCE, || {
            let contexts = jvm.metrics().value("heapwarden_exact_contexts", &[]);
            contexts.filter(|contexts| *contexts > 500.0)
        });
        assert!(counted.is_some(), "{vm}: {}", jvm.log());
        eprintln!("{vm}: {} answers, {counted:?} contexts", after.len());
        jvm.finish();
    });
}

/// How many requests fill a store.
const LOADS: u32 = 8;

/// Returns the answers of a store that is filled, read, exported, counted and emptied: statuses and bodies, lines in
/// order.
fn answers_of(subject: &Subject, vm: &Vm, policy: &str) -> Vec<String> {
    let data = tempfile::tempdir().expect("a temporary folder");
    let application = subject.application;
    let site = Installation::with_heap("1g").collector(vm.collector);
    let server = application.start(site, vm, data.path(), policy);
    application.prepare(&server);
    let mut answers = Vec::new();
    let mut note = |answer: std::io::Result<Answer>| {
        let answer = answer.unwrap_or_else(|why| panic!("{vm}: {why}\n{}", server.log()));
        let mut lines: Vec<&str> = answer.body.lines().collect();
        lines.sort_unstable();
        answers.push(format!("{} {}", answer.status, lines.join("\n")));
    };
    for number in 0..LOADS {
        note(application.load(&server, number));
    }
    for number in 0..LOADS {
        note(application.read(&server, number));
    }
    application.export(&server).into_iter().for_each(&mut note);
    note(application.ask_census(&server));
    note(application.delete(&server, LOADS));
    note(application.ask_census(&server));
    note(application.read(&server, 0));
    if policy.contains("[exact]") {
        let metrics = server.metrics();
        let contexts = metrics.value("heapwarden_exact_contexts", &[]);
        let counted = metrics.sum("heapwarden_account_exact_allocated_objects_total");
        eprintln!(
            "{vm}: {}: {counted} objects, {contexts:?} contexts",
            subject.title
        );
        assert!(
            counted > 1e6 && contexts > Some(1e3),
            "{vm}: {}",
            server.log()
        );
    }
    // Complaints that the store's own threads print when they are ended under way are not judged.
    let _ = server.end();
    answers
}

#[test]
fn a_server_gives_the_same_answers() {
    let names: &[&str] = match is_long() {
        true => &["rdf4j-jetty", "rdf4j", "fuseki"],
        false => &["rdf4j-jetty"],
    };
    for name in names {
        let subject = subject(name).expect("it is one of the applications");
        on_each(&one_jdk_with(Collector::G1, 1), |vm| {
            let before = answers_of(subject, vm, "");
            let after = answers_of(subject, vm, &policy(&["org.*", "com.*", "javax.*"]));
            let longest = before.iter().map(String::len).max().unwrap_or(0);
            assert!(longest > 100_000, "{vm}: {before:?}");
            assert_eq!(before.len(), after.len(), "{vm}");
            for (at, (before, after)) in before.iter().zip(&after).enumerate() {
                assert!(before == after, "{vm}: answer {at} of {name} differs");
            }
        });
    }
}

#[test]
fn a_compiler_writes_the_same_class_files() {
    const TEST: &str = "a_compiler_writes_the_same_class_files";
    for jdk in every_jdk_for(TEST, JAVAC) {
        let vm = &Vm {
            jdk: jdk.clone(),
            collector: Collector::G1,
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
        let compiler = || {
            victim(vm, "victim.ClassFiles")
                .heap("512m")
                .flag("--add-opens=java.base/java.lang=ALL-UNNAMED")
        };
        let told = compiled(compiler().without_agent(), &before);
        assert!(told.contains("status 0\n"), "{vm}: {told}");
        let told = compiled(compiler().policy(&policy(&["com.sun.tools.*"])), &after);
        assert!(told.contains("status 0\n"), "{vm}: {told}");
        let contexts = told.lines().find_map(|line| line.strip_prefix("contexts "));
        let contexts: u32 = contexts
            .and_then(|count| count.parse().ok())
            .expect("a number");
        assert!(contexts > 5_000, "{vm}: {told}");
        let (before, after) = (files_below(&before), files_below(&after));
        assert!(before.len() > 50 && before.keys().eq(after.keys()), "{vm}");
        for (name, path) in &before {
            let [one, other] =
                [path, &after[name]].map(|path| std::fs::read(path).expect("readable"));
            assert!(one == other, "{vm}: {} differs", name.display());
        }
        eprintln!("{vm}: {} class files, {contexts} contexts", before.len());
    }
}

/// Has the victims compiled in a JVM, and gives what it printed.
fn compiled(compiler: Builder, into: &Path) -> String {
    let sources = files_below(&artifacts::repository().join("tests/java/victim"));
    let boot = artifacts::repository().join("policy-agent/java/classes");
    let class_path = std::env::join_paths([java::classes().victims(), boot]);
    let compiler = compiler
        .argument("compile")
        .argument(class_path.expect("no colon in them"));
    let compiler = sources
        .into_values()
        .fold(compiler.argument(into), Builder::argument);
    let finished = compiler.run(LIMIT);
    assert!(finished.status.success(), "{finished:?}");
    finished.stdout
}

/// Each row of the cost table compares a checksum of its results with the one that it must have, on every JDK.
#[test]
fn workloads_on_large_libraries_have_the_checksums_that_they_must_have() {
    if !is_long() {
        // One of the longest builds, and minutes of work: `cargo xtask test --long`.
        eprintln!("note: the rows of the cost table run with --long");
        return;
    }
    let target = rows();
    on_each(&every_jdk_with(Collector::G1), |vm| {
        for row in ROWS {
            let class_path = format!("{0}/rows.jar:{0}/libraries/*", target.display());
            let finished = victim(vm, "rows.Main")
                .class_path(class_path)
                .heap("1g")
                .policy(&policy(&PACKAGES_OF_ROWS))
                // The code that draws images copies them at each call while calls are checked.
                .flag("-XX:-CheckJNICalls")
                .flag(&format!("-Drows.inputs={}/inputs", target.display()))
                .argument(row)
                .argument("--warmups")
                .argument("0")
                .argument("--iterations")
                .argument("1")
                .run(LIMIT);
            let (told, log) = (&finished.stdout, &finished.stderr);
            assert!(finished.status.success(), "{vm}: {row}: {told}\n{log}");
            assert!(told.contains("\"checksum\""), "{vm}: {row}: {told}");
            assert!(
                log.contains("loaded classes count their allocations"),
                "{vm}: {row}: {log}"
            );
            assert!(
                log.contains("contexts are counted of"),
                "{vm}: {row}: {log}"
            );
            eprintln!("{vm}: {row}: {}", told.lines().nth(1).unwrap_or_default());
        }
    });
}

/// The folder that Maven builds the rows in.
fn rows() -> &'static Path {
    static ROWS: OnceLock<PathBuf> = OnceLock::new();
    ROWS.get_or_init(|| {
        let project = artifacts::repository().join("bench/java/rows");
        let target = project.join("target");
        up_to_date(
            "rows",
            &["bench/java/rows"],
            &[&target.join("rows.jar")],
            || {
                maven::package(
                    "the workloads do not build",
                    &project,
                    &["-Dmaven.test.skip=true"],
                );
            },
        );
        target
    })
}
