//! An application of others behind the door. A triple store that is over its limit keeps every load that it
//! acknowledged and shows none by halves, answers the delete that heals it, and works again. On G1: on
//! generational ZGC evidence about so much garbage comes late, and the store gets much further.

use heapwarden_harness::http::Answer;
use heapwarden_tests::command;
use heapwarden_tests::fixture::files_below;
use heapwarden_tests::jdk::every_jdk;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{self, deploy};
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: &str = "8KiB";
/// What an operator may expect, on a busy machine too.
const SOON: Duration = Duration::from_secs(15);
/// A client that is turned away rests so long and asks again.
const REST: Duration = Duration::from_millis(100);

const STORE: &str = "/rdf4j-server";
const STORE_HEAP: &str = "768m";
const STORE_LIMIT_MIB: u64 = 192;
const REPOSITORY: &str = "/rdf4j-server/repositories/ledger";
const STATEMENTS: &str = "/rdf4j-server/repositories/ledger/statements";
/// `select (count(*) as ?n) where {?s ?p ?o}`
const COUNT: &str = "/rdf4j-server/repositories/ledger\
    ?query=select%20(count(*)%20as%20%3Fn)%20where%20%7B%3Fs%20%3Fp%20%3Fo%7D";
/// About 1 MiB in the store: little against the reserve, an eighth of the limit.
const TRIPLES_OF_A_LOAD: u64 = 1_000;
/// Loads under way at a time: those that are inside when the door shuts go on in the reserve.
const LOADERS: u64 = 2;
/// Between two loads of a loader. The store grows by some 10 MiB a second: evidence takes about one, and must
/// come before the reserve is used up.
const PAUSE: Duration = Duration::from_millis(150);
/// Each loader stops when it was turned away so often.
const TURNED_AWAY: u64 = 5;
/// The store lets go of what was deleted when two more transactions have ended, on a thread of its own that
/// sleeps five seconds first. So the client goes on deleting.
const DELETE_AGAIN: Duration = Duration::from_secs(1);
/// Far more loads than the limit has room for.
const LOADS_MAXIMUM: u64 = 1_000;
const MEMORY_STORE: &str = r#"
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#>.
@prefix rep: <http://www.openrdf.org/config/repository#>.
@prefix sr: <http://www.openrdf.org/config/repository/sail#>.
@prefix sail: <http://www.openrdf.org/config/sail#>.
@prefix ms: <http://www.openrdf.org/config/sail/memory#>.
[] a rep:Repository;
   rep:repositoryID "ledger";
   rdfs:label "Ledger";
   rep:repositoryImpl [
      rep:repositoryType "openrdf:SailRepository";
      sr:sailImpl [ sail:sailType "openrdf:MemoryStore"; ms:persist false ]
   ].
"#;

/// An application of its own in the same Tomcat, for every version of the servlets: Tomcat compiles it.
const OTHER_JSP: &str = r#"<%@ page contentType="text/plain" session="false" %>done"#;
const OTHER: &str = "/other/page.jsp";

/// Loads that the store acknowledged, and answers of the door, of all clients together.
#[derive(Debug, Default)]
struct Tally {
    acknowledged: AtomicU64,
    turned_away: AtomicU64,
    /// Ends the clients that only watch.
    ended: AtomicBool,
}

impl Tally {
    /// The answer, unless it is the door's.
    fn let_in(&self, answer: Answer) -> Option<Answer> {
        if answer.status != 503 {
            return Some(answer);
        }
        assert!(
            answer.headers.contains_key("retry-after")
                && answer
                    .body
                    .starts_with("This service is over its memory limit."),
            "a 503 that is not the door's: {answer:?}"
        );
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn expected_triples(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed) * TRIPLES_OF_A_LOAD
    }
}

/// A client of the account's service.
struct Client<'s> {
    server: &'s Server,
    account: &'static str,
    tally: &'s Tally,
}

impl Client<'_> {
    /// What came of a request that must be answered.
    fn answered(&self, what: &str, answer: std::io::Result<Answer>) -> Answer {
        answer.unwrap_or_else(|error| panic!("{what}: {error}\n{}", self.described()))
    }

    /// Sends the request until the door lets it in, which has to be soon.
    fn persist(&self, what: &str, send: impl Fn() -> std::io::Result<Answer>) -> Answer {
        let came_in = command::poll(SOON, || {
            let answer = self.tally.let_in(self.answered(what, send()));
            if answer.is_none() {
                thread::sleep(REST);
            }
            answer
        });
        came_in.unwrap_or_else(|| {
            panic!(
                "{what} was not let in within {SOON:?}\n{}",
                self.described()
            )
        })
    }

    /// Loads triples that nobody else loads; whether the store acknowledged them, or the door answered.
    fn load(&self, name: &str) -> bool {
        let body = (0..TRIPLES_OF_A_LOAD).fold(String::new(), |mut text, triple| {
            let _ = writeln!(
                text,
                "<urn:entry:{name}:{triple}> <urn:amount> \"{name} of {triple}\" ."
            );
            text
        });
        let sent = (self.server).send_body("POST", STATEMENTS, "application/n-triples", &body);
        let Some(answer) = self.tally.let_in(self.answered("a load", sent)) else {
            return false;
        };
        assert_eq!(
            answer.status,
            204,
            "load {name}: {answer:?}\n{}",
            self.described()
        );
        self.tally.acknowledged.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// How many triples the store says it has.
    fn count(&self) -> u64 {
        let headers = [("accept", "text/csv")];
        let answer = self.persist("the count", || self.server.send("GET", COUNT, &headers));
        let lines: Vec<&str> = answer.body.split_whitespace().collect();
        match (answer.status, &lines[..]) {
            (200, ["n", number]) => number.parse().expect("a number"),
            _ => panic!("the count: {answer:?}\n{}", self.described()),
        }
    }

    /// The account's object in the JSON.
    fn account(&self) -> serde_json::Value {
        let accounts = self.server.accounts();
        accounts.find(self.account).cloned().unwrap_or_default()
    }

    /// Waits until the account is as wanted.
    fn wait_for(&self, what: &str, wanted: impl Fn(&serde_json::Value) -> bool) {
        let found = command::poll(SOON, || {
            thread::sleep(REST);
            wanted(&self.account()).then_some(())
        });
        assert!(
            found.is_some(),
            "not within {SOON:?}: {what}\n{}",
            self.described()
        );
    }

    fn described(&self) -> String {
        let mut account = self.account();
        if let Some(object) = account.as_object_mut() {
            object.remove("classes");
        }
        format!("{:?}; {account}\n{}", self.tally, self.server.log())
    }
}

/// Ends the watching clients, also when a check fails.
struct EndsWatchers<'t>(&'t Tally);

impl Drop for EndsWatchers<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

/// Whatever happens to the store, the neighbour answers.
fn watch_neighbour(server: &Server, tally: &Tally) -> u64 {
    let mut asked = 0;
    while !tally.ended.load(Ordering::Relaxed) {
        server.ask(OTHER);
        asked += 1;
        thread::sleep(REST);
    }
    asked
}

/// The most that the account was seen to hold, in MiB.
fn watch_account(client: &Client<'_>) -> f64 {
    let mut most = 0.0_f64;
    while !client.tally.ended.load(Ordering::Relaxed) {
        let live = client.server.accounts().holding(client.account).live_bytes;
        most = most.max(live);
        thread::sleep(REST);
    }
    most / f64::from(1 << 20)
}

/// Loads from several clients until each was turned away a few times.
fn fill(client: &Client<'_>) {
    thread::scope(|scope| {
        for loader in 0..LOADERS {
            scope.spawn(move || {
                let mut turned_away = 0;
                for number in 0..LOADS_MAXIMUM {
                    if client.load(&format!("{loader}-{number}")) {
                        thread::sleep(PAUSE);
                        continue;
                    }
                    turned_away += 1;
                    if turned_away == TURNED_AWAY {
                        return;
                    }
                    thread::sleep(REST);
                }
                panic!(
                    "{LOADS_MAXIMUM} loads and not turned away\n{}",
                    client.described()
                );
            });
        }
    });
}

/// The store fills up, is turned away, and heals by a delete.
fn assert_store(client: &Client<'_>) {
    let expected = || client.tally.expected_triples();
    let counted = |when: &str| {
        let (found, expected) = (client.count(), expected());
        let what = format!("triples {when}: {found}, of acknowledged loads: {expected}");
        assert_eq!(found, expected, "{what}\n{}", client.described());
    };
    client.wait_for("the door is there", |account| account["door"] == "open");
    let created = (client.server).send_body("PUT", REPOSITORY, "text/turtle", MEMORY_STORE);
    let created = client.answered("a new repository", created);
    assert_eq!(created.status, 204, "{created:?}\n{}", client.described());

    fill(client);
    client.wait_for("the door is shut", |account| account["door"] == "shut");
    let loads = client.tally.acknowledged.load(Ordering::Relaxed);
    let turned_away = client.tally.turned_away.load(Ordering::Relaxed);
    eprintln!("{loads} loads acknowledged, {turned_away} turned away");
    counted("while the door is shut");

    let started = Instant::now();
    let mut deletes = 0;
    let opened = command::poll(SOON, || {
        let deleted = client.persist("a delete", || client.server.send("DELETE", STATEMENTS, &[]));
        assert_eq!(deleted.status, 204, "{deleted:?}\n{}", client.described());
        deletes += 1;
        thread::sleep(DELETE_AGAIN);
        (client.account()["door"] == "open").then(|| started.elapsed())
    });
    let Some(opened) = opened else {
        panic!(
            "{deletes} deletes and not open within {SOON:?}\n{}",
            client.described()
        );
    };
    eprintln!("the door was open after {deletes} deletes and {opened:.1?}");
    client.tally.acknowledged.store(0, Ordering::Relaxed);
    counted("after the delete");
    let came_in = client.load("afterwards");
    assert!(came_in, "a load at an open door\n{}", client.described());
    counted("of a load afterwards");
}

/// Nothing was thrown: all who were stopped were stopped at the door.
fn assert_nothing_thrown(client: &Client<'_>) {
    let turned_away = client.tally.turned_away.load(Ordering::Relaxed);
    client.wait_for(
        "every answer of the door is counted, and nothing thrown",
        |account| {
            account["admission_refusals_total"] == turned_away && account["refusals_total"] == 0
        },
    );
}

/// No log of the server or of its applications names an error of ours.
fn assert_logs_clean(server: &Server) {
    let folder = server.policy();
    let folder = folder.parent().expect("a folder");
    for (name, path) in files_below(folder) {
        if name.extension().is_some_and(|end| end == "log") {
            let text = fs::read_to_string(&path).expect("readable");
            assert!(
                !text.contains("MemoryQuotaExceeded"),
                "{}:\n{text}",
                name.display()
            );
        }
    }
}

fn policy(account: &str, limit_mib: u64) -> String {
    format!(
        "[sampling]\ninterval = \"{INTERVAL}\"\ncpu-budget = \"none\"\n\n\
         [enforcement]\nmode = \"enforce\"\n\n\
         [[account]]\nservice = \"{account}\"\nlimit = \"{limit_mib}MiB\"\n"
    )
}

#[test]
fn a_triple_store() {
    let site = Installation::with_heap(STORE_HEAP);
    let mut prepared =
        server_setup::tomcat(&site, &every_jdk()[0], "apache-tomcat-9.0.117", INTERVAL);
    let mut flags = site.jvm_flags_with(&policy(STORE, STORE_LIMIT_MIB));
    let data = site.folder().join("data");
    flags.push(format!(
        "-Dorg.eclipse.rdf4j.appdata.basedir={}",
        data.display()
    ));
    prepared.command.env("CATALINA_OPTS", flags.join(" "));
    let webapps = prepared.base.join("webapps");
    fs::create_dir(webapps.join("other")).expect("writable");
    fs::write(webapps.join("other/page.jsp"), OTHER_JSP).expect("writable");
    deploy("applications/rdf4j-server.war", &webapps);
    let server = site.start(prepared.command, "/rdf4j-server/protocol");
    let up = command::poll(command::PATIENCE, || {
        (server.get(OTHER).ok()?.status == 200).then_some(())
    });
    assert!(up.is_some(), "{OTHER} is not up:\n{}", server.log());

    let tally = Tally::default();
    let client = Client {
        server: &server,
        account: STORE,
        tally: &tally,
    };
    let (asked, most) = thread::scope(|scope| {
        let neighbour = scope.spawn(|| watch_neighbour(&server, &tally));
        let account = scope.spawn(|| watch_account(&client));
        let ends = EndsWatchers(&tally);
        assert_store(&client);
        drop(ends);
        (neighbour.join(), account.join())
    });
    let asked = asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let most = most.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    eprintln!("the neighbour answered {asked} times; the store held {most:.0} MiB at most");
    assert_nothing_thrown(&client);
    assert_logs_clean(&server);
    server.finish();
}
