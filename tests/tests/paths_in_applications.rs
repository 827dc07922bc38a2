//! Who keeps it alive, in applications of others: the loaders that reloads have left in a Tomcat, and what fills an
//! RDF4J store, compared with a heap dump that another program reads. Each by a forked walk, and by one in place where a
//! fork is refused: the truth is the same.

use heapwarden_tests::application::subject;
use heapwarden_tests::command::{self, PATIENCE, poll};
use heapwarden_tests::fixture::up_to_date;
use heapwarden_tests::jdk::{Collector, Jdk, Vm, compiler, every_jdk_with, one_jdk_with};
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::{artifacts, maven, server_setup};
use policy_report::{Chain, Paths};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(900);

/// One that forks, and the newest that cannot: the heap of ZGC is shared memory.
fn forked() -> Vm {
    one_jdk_with(Collector::G1, 0).remove(0)
}

fn in_place() -> Vm {
    let newest = every_jdk_with(Collector::Z).pop();
    newest.expect("a JDK with ZGC")
}

fn paths(vm: &Vm, server: &Server, more: &[&str]) -> Option<Paths<'static>> {
    let id = server.id().to_string();
    let (how, allowed) = match vm.collector {
        Collector::Z => ("in-place", ["--in-place", "60s"]),
        _ => ("forked", ["--max-pause", "60s"]),
    };
    let finished = command::run(
        Command::new(artifacts::command())
            .args(["paths", &id, "--json"])
            .args(allowed)
            .args(more),
        LIMIT,
    );
    let found: Paths<'static> = serde_json::from_str(&finished.stdout).ok()?;
    assert_eq!(found.walk.how, how, "{finished:#?}");
    assert_eq!(found.undecided, 0, "60 s are enough: {found:#?}");
    let whole = found.walk.stops.last().map_or(0.0, |stop| stop.pause_ms);
    for stop in &found.walk.stops {
        println!(
            "{vm}: {more:?}: {} {}: {} ms (predicted: {}), {:.3} of the last; {} references, {} found",
            stop.of,
            stop.ended,
            stop.pause_ms,
            stop.predicted_ms,
            stop.pause_ms / whole,
            stop.references,
            stop.found
        );
    }
    Some(found)
}

/// Each stop, and what came of it.
fn stops<'p>(found: &'p Paths<'_>) -> Vec<(&'p str, &'p str)> {
    let stops = found.walk.stops.iter();
    stops.map(|stop| (&*stop.of, &*stop.ended)).collect()
}

/// A chain as one line.
fn line(chain: &Chain<'_>) -> String {
    let steps = chain.steps.iter();
    let steps = steps.map(|step| format!(" > {} {}", step.class, step.via));
    format!("{}{}", chain.root, steps.collect::<String>())
}

/// A page that gives the JDK an object of a class of its own, and one that makes something.
const PLANTED: &str = r#"<%@ page session="false" %><%!
  static final class Leaf { long one, two, three; }
  static final class Planted {
    final byte[] state = new byte[50_000];
    final Leaf[] leaves = new Leaf[2000];
  }
%><%
  Planted planted = new Planted();
  java.util.Arrays.setAll(planted.leaves, number -> new Leaf());
  System.getProperties().put("planted " + System.identityHashCode(Planted.class), planted);
%>done"#;

/// Three reloads of an application whose objects stay in the system properties: three loaders, one culprit.
#[test]
fn loaders_that_reloads_have_left_in_a_tomcat_get_a_culprit() {
    for vm in &[forked(), in_place()] {
        let site = Installation::new()
            .as_in_production()
            .collector(vm.collector);
        let prepared = server_setup::tomcat(&site, &vm.jdk, "apache-tomcat-10.1.44", "4KiB");
        let shop = prepared.base.join("webapps/shop");
        let descriptor = shop.join("WEB-INF/web.xml");
        std::fs::create_dir_all(shop.join("WEB-INF")).expect("writable");
        let web_xml = |turn: u32| {
            let text = format!(
                "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\"><display-name>{turn}</display-name></web-app>"
            );
            std::fs::write(&descriptor, text).expect("writable");
        };
        web_xml(0);
        std::fs::write(shop.join("planted.jsp"), PLANTED).expect("writable");
        let server = site.start(prepared.command, "/shop/planted.jsp");
        for turn in 1..=3 {
            web_xml(turn);
            // Tomcat notices by and by, and answers 404 or the page of before until then.
            let reloads = || {
                server
                    .log()
                    .matches("Reloading Context with name [/shop] is completed")
                    .count()
            };
            let is_reloaded = poll(PATIENCE, || (reloads() >= turn as usize).then_some(()));
            assert!(is_reloaded.is_some(), "{}", server.log());
            server.ask("/shop/planted.jsp");
        }
        let asked = poll(PATIENCE, || {
            let paths = paths(vm, &server, &["--retired"])?;
            (paths.looked_for == 3).then_some(paths)
        });
        let paths = asked.unwrap_or_else(|| panic!("three loaders: {}", server.log()));
        let kept: u64 = paths.paths.iter().map(|chain| chain.objects).sum();
        assert_eq!(kept, 3, "{paths:#?}");
        for chain in &paths.paths {
            let line = line(chain);
            assert_eq!(chain.account, "/shop", "{line}");
            assert!(
                line.starts_with("static java.lang.System.props > java.util.Properties map"),
                "{line}"
            );
            assert!(line.contains(".planted_jsp$Planted (class)"), "{line}");
        }
        if vm.collector == Collector::Z {
            assert_eq!(stops(&paths), [("whole", "done")], "{paths:#?}");
            assert!(paths.walk.one_stop_because.is_some(), "{paths:#?}");
        }
        planted_is_found_outside(vm, &server);
        println!(
            "{vm}: {}",
            paths.paths.iter().map(line).collect::<Vec<_>>().join("\n")
        );
        server.finish();
    }
}

/// Asserts that the objects which the page has planted are held outside by the system properties alone. In place the
/// application itself is asked first, which holds none of them.
fn planted_is_found_outside(vm: &Vm, server: &Server) {
    let of = ["--class", "org.apache.jsp.planted_jsp$Leaf"];
    let found = poll(PATIENCE, || paths(vm, server, &of)).expect("an answer");
    assert!(
        found.looked_for > 0 && found.unreached == 0,
        "nobody lets go of them: {found:#?}"
    );
    for chain in &found.paths {
        let line = line(chain);
        assert!(
            line.starts_with("static java.lang.System.props > java.util.Properties map")
                && line.contains(" > org.apache.jsp.planted_jsp$Planted leaves > "),
            "{line}"
        );
    }
    if vm.collector == Collector::Z {
        let both = [("slice", "done"), ("whole", "done")];
        assert_eq!(stops(&found), both, "{found:#?}");
        assert_eq!(found.walk.stops[0].found, 0, "{found:#?}");
    }
}

/// The library that reads heap dumps, and the program that follows a chain with it.
fn follower() -> String {
    let folder = artifacts::repository().join("target/heapdump");
    let (libraries, classes) = (folder.join("libraries"), folder.join("classes"));
    up_to_date(
        "heapdump",
        &["tests/heapdump"],
        &[&libraries, &classes],
        || {
            let _ = std::fs::remove_dir_all(&folder);
            let directory = format!("-Dlibraries={}", libraries.display());
            maven::package(
                "the reader of heap dumps cannot be fetched",
                &artifacts::repository().join("tests/heapdump"),
                &[&directory],
            );
            let javac = command::run(
                Command::new(compiler().program("javac"))
                    .args(["-Xlint:all", "-Werror", "-d"])
                    .arg(&classes)
                    .arg("-cp")
                    .arg(libraries.join("*"))
                    .arg(
                        artifacts::repository()
                            .join("tests/heapdump/src/main/java/heapdump/Follow.java"),
                    ),
                LIMIT,
            );
            assert!(javac.status.success(), "{javac:#?}");
        },
    );
    format!("{}:{}/*", classes.display(), libraries.display())
}

/// How many objects of its class are at the end of a chain, by the heap dump.
fn by_dump(jdk: &Jdk, class_path: &str, dump: &Path, chain: &Chain<'_>) -> u64 {
    let mut arguments = Vec::new();
    let without_name = |class: &str| class.split(" \"").next().unwrap_or_default().to_owned();
    match chain
        .root
        .strip_prefix("static ")
        .and_then(|field| field.rsplit_once('.'))
    {
        Some((class, field)) => arguments.extend([class.to_owned(), field.to_owned()]),
        // All objects of the first class.
        None => arguments.extend([without_name(&chain.steps[0].class), "*".to_owned()]),
    }
    for step in &chain.steps {
        arguments.extend([without_name(&step.class), step.via.to_string()]);
    }
    arguments.push(chain.class.to_string());
    let finished = command::run(
        Command::new(jdk.program("java"))
            .args(["-cp", class_path, "heapdump.Follow"])
            .arg(dump)
            .args(arguments),
        LIMIT,
    );
    let count = finished.stdout.trim().strip_prefix("found ");
    let count = count.and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("{finished:#?}"))
}

#[test]
fn chains_in_an_rdf4j_store_are_those_of_a_heap_dump() {
    follow_chains_in_an_rdf4j_store(&forked());
}

#[test]
fn chains_in_an_rdf4j_store_that_are_found_in_place_are_those_of_a_heap_dump() {
    follow_chains_in_an_rdf4j_store(&in_place());
}

fn follow_chains_in_an_rdf4j_store(vm: &Vm) {
    let class_path = follower();
    let subject = subject("rdf4j").expect("it is one of the applications");
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let site = Installation::with_heap("512m")
        .as_in_production()
        .collector(vm.collector);
    let policy = "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n";
    let server = subject.application.start(site, vm, data.path(), policy);
    subject.application.prepare(&server);
    for number in 0..10 {
        let answer = subject.application.load(&server, number);
        assert!(answer.is_ok_and(|answer| answer.status < 300));
    }
    let jcmd = |order: &[&str]| {
        let id = server.id().to_string();
        let done = command::run(
            Command::new(vm.jdk.program("jcmd")).arg(&id).args(order),
            LIMIT,
        );
        assert!(done.status.success(), "{done:#?}");
    };
    jcmd(&["GC.run"]);
    let mut chains: Vec<Chain<'_>> = Vec::new();
    for class in ["MemIRI", "MemLiteral", "MemStatement"] {
        let class = format!("org.eclipse.rdf4j.sail.memory.model.{class}");
        let found = poll(PATIENCE, || {
            paths(
                vm,
                &server,
                &["--account", "/rdf4j-server", "--class", &class],
            )
            .filter(|found| !found.paths.is_empty())
        });
        let found = found.unwrap_or_else(|| panic!("{class}: {}", server.log()));
        if vm.collector == Collector::Z {
            // The application holds its store itself, and Tomcat does not come into it.
            assert_eq!(stops(&found), [("slice", "done")], "{found:#?}");
        }
        chains.extend(found.paths);
    }
    let dump: PathBuf = data.path().join("all.hprof");
    jcmd(&["GC.heap_dump", &dump.display().to_string()]);
    println!("{vm}: {:#?}", chains.iter().map(line).collect::<Vec<_>>());
    let mut followed = 0;
    for chain in &chains {
        let is_of_objects = !chain.steps.iter().any(|step| step.via.starts_with('('));
        let begins = chain.root.starts_with("static ") || chain.root.starts_with("thread ");
        if !is_of_objects || !begins || chain.is_cut {
            continue;
        }
        let found = by_dump(&vm.jdk, &class_path, &dump, chain);
        println!(
            "{found} × {}, of which {} were asked for: {}",
            chain.class,
            chain.objects,
            line(chain)
        );
        assert!(
            found >= chain.objects,
            "{found} in the dump: {}",
            line(chain)
        );
        followed += chain.objects;
    }
    let all: u64 = chains.iter().map(|chain| chain.objects).sum();
    assert!(
        followed * 2 > all,
        "{followed} of {all} could be followed: {:#?}",
        chains.iter().map(line).collect::<Vec<_>>()
    );
    server.finish();
}
