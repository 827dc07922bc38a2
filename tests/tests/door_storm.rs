//! A storm at a door: clients that fill a service and empty it, while its policy is edited and it is deployed
//! anew, again and again. Whatever the door is doing then (shut, half open, with probes inside, with requests
//! that wait), every answer is one that a client may get, the neighbour never notices, and afterwards the door
//! works as ever.

use heapwarden_harness::http::Answer;
use heapwarden_tests::command::{self, PATIENCE};
use heapwarden_tests::jdk::{every_jdk, is_long, newest};
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{self, deploy};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const STORM: Duration = Duration::from_secs(30);
const LONG_STORM: Duration = Duration::from_secs(180);
/// How much longer at the most, until the door has turned clients away often enough.
const EXTENSION: Duration = Duration::from_secs(120);
/// Between two edits.
const GUST: Duration = Duration::from_millis(2_100);
const CLIENTS: usize = 6;
/// The least number of requests that the door must have turned away in the storm.
const TURNED_AWAY: u64 = 50;
const SOON: Duration = Duration::from_secs(15);
const REST: Duration = Duration::from_millis(100);

const SHOP: &str = "/shop/shelf";
const NEIGHBOUR: &str = "/other/shelf?do=hold&length=16&count=1";
/// 2 MB.
const HOLD: &str = "do=hold&length=1000&count=2000";
/// So many hold more than twice the limit.
const HOLDS: u32 = 60;
const LIGHT: &str = "do=hold&length=16&count=1";

/// The plain policy is the first.
const ACCOUNTS: [(&str, &str); 7] = [
    ("enforce", "service = \"/shop\"\nlimit = \"48MiB\""),
    ("observe", "service = \"/shop\"\nlimit = \"48MiB\""),
    ("enforce", "service = \"/shop\"\nlimit = \"200MiB\""),
    (
        "enforce",
        "name = \"renamed\"\nservice = \"/shop\"\nlimit = \"48MiB\"",
    ),
    (
        "enforce",
        "service = \"/shop\"\nlimit = \"48MiB\"\nadmit = [\"GET /shelf\"]",
    ),
    (
        "enforce",
        "service = \"/shop\"\nlimit = \"48MiB\"\ndoor = \"off\"\nthrow = \"error\"",
    ),
    ("enforce", "service = \"/shop\""),
];

fn write_policy(folder: &Path, (mode, account): (&str, &str)) {
    let text = format!(
        "[sampling]\ninterval = \"8KiB\"\ncpu-budget = \"none\"\n\n\
         [enforcement]\nmode = \"{mode}\"\n\n[[account]]\n{account}\n"
    );
    fs::write(folder.join("heapwarden.toml"), text).expect("writable");
}

/// Counts of the answers that clients got, by kind, and the answers that must not have come.
#[derive(Debug, Default)]
struct Seen {
    answered: u64,
    turned_away: u64,
    failed: u64,
    missing: u64,
    cut: u64,
    wrong: Vec<String>,
}

impl Seen {
    fn count(&mut self, query: &str, answer: std::io::Result<Answer>) {
        match answer {
            Ok(answer) if answer.status == 200 && answer.body.contains("done") => {
                self.answered += 1;
            }
            Ok(answer) if is_of_door(&answer) => self.turned_away += 1,
            // While its door is off, errors are thrown.
            Ok(answer) if answer.status == 500 => self.failed += 1,
            // It is being deployed.
            Ok(answer) if answer.status == 404 => self.missing += 1,
            Err(_) => self.cut += 1,
            Ok(answer) => self.wrong.push(format!("{query}: {answer:?}")),
        }
    }
}

fn is_of_door(answer: &Answer) -> bool {
    let retry_after = answer.headers.get("retry-after");
    answer.status == 503
        && retry_after
            .and_then(|text| text.parse().ok())
            .is_some_and(|seconds: u64| seconds >= 1)
        && answer.body.contains("over its memory limit")
}

fn shop(server: &Server, query: &str) -> std::io::Result<Answer> {
    server.get(&format!("{SHOP}?{query}"))
}

/// One client: fills, empties, or does hardly anything, in turns of its own.
fn keep_asking(server: &Server, client: usize, over: &AtomicBool, seen: &Mutex<Seen>) {
    let mut turn = client;
    while !over.load(Relaxed) {
        turn += 1;
        let query = match turn % 40 {
            39 if client == 0 => "do=drop",
            odd if odd % 2 == 1 => HOLD,
            _ => LIGHT,
        };
        let answer = shop(server, query);
        seen.lock().expect("nobody panics").count(query, answer);
        thread::sleep(REST / 5);
    }
}

/// Tomcat deploys an archive anew that is newer than what it has.
fn deploy_anew(webapps: &Path) {
    let archive = webapps.join("shop.war");
    let bytes = fs::read(&archive).expect("it is there");
    fs::write(&archive, bytes).expect("writable");
}

fn storm(server: &Server, folder: &Path, seen: &Mutex<Seen>) -> usize {
    let over = AtomicBool::new(false);
    let neighbour_failures = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let over = &over;
            scope.spawn(move || keep_asking(server, client, over, seen));
        }
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let answer = server.get(NEIGHBOUR);
                if !answer.is_ok_and(|answer| answer.status == 200) {
                    neighbour_failures.fetch_add(1, Relaxed);
                }
                thread::sleep(REST);
            }
        });
        let begun = Instant::now();
        let least = if is_long() { LONG_STORM } else { STORM };
        let enough = || seen.lock().expect("nobody panics").turned_away >= TURNED_AWAY;
        let mut gust = 0;
        while begun.elapsed() < least || !enough() && begun.elapsed() < least + EXTENSION {
            // The plain policy every other time, so that the door is shut most of the time.
            let account = if gust % 2 == 0 {
                0
            } else {
                gust / 2 % ACCOUNTS.len()
            };
            write_policy(folder, ACCOUNTS[account]);
            if gust % 5 == 4 {
                deploy_anew(&folder.join("webapps"));
            }
            gust += 1;
            thread::sleep(GUST);
        }
        over.store(true, Relaxed);
    });
    neighbour_failures.into_inner()
}

/// Waits until a request gets such an answer.
fn until(server: &Server, query: &str, what: &str, wanted: impl Fn(&Answer) -> bool) {
    let found = command::poll(SOON, || {
        let answer = shop(server, query).ok()?;
        thread::sleep(REST);
        wanted(&answer).then_some(())
    });
    let accounts = server.accounts();
    assert!(
        found.is_some(),
        "{what} within {SOON:?}: {:?}\n{}",
        accounts.find("/shop"),
        server.log()
    );
}

fn assert_storm(tomcat: &str, jdk: &heapwarden_tests::jdk::Jdk) {
    let site = Installation::with_heap("768m");
    let prepared = server_setup::tomcat(&site, jdk, tomcat, "8KiB");
    let folder = site.folder().to_owned();
    // Looks for changed archives each second; ten seconds is the default.
    let file = folder.join("conf/server.xml");
    let text = fs::read_to_string(&file).expect("it was written");
    let text = text.replace(
        "<Engine name=\"Catalina\"",
        "<Engine name=\"Catalina\" backgroundProcessorDelay=\"1\"",
    );
    fs::write(&file, text).expect("writable");
    write_policy(&folder, ACCOUNTS[0]);
    let webapps = prepared.base.join("webapps");
    deploy("shop/shop.war", &webapps);
    fs::copy(webapps.join("shop.war"), webapps.join("other.war")).expect("writable");
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    let up = command::poll(PATIENCE, || {
        let answer = server.get(NEIGHBOUR).ok()?;
        (answer.status == 200).then_some(())
    });
    assert!(up.is_some(), "the neighbour is not up:\n{}", server.log());

    let seen = Mutex::new(Seen::default());
    let neighbour_failures = storm(&server, &folder, &seen);
    let seen = seen.into_inner().expect("nobody panics");
    eprintln!("{tomcat}: {seen:?}");
    assert_eq!(neighbour_failures, 0, "{}", server.log());
    assert!(seen.wrong.is_empty(), "{:#?}\n{}", seen.wrong, server.log());
    assert!(seen.turned_away >= TURNED_AWAY, "{seen:?}");
    assert!(seen.answered > 0, "{seen:?}");

    // The door still does all of it: it opens, shuts, lets probes in, and opens again.
    write_policy(&folder, ACCOUNTS[0]);
    let is_done = |answer: &Answer| answer.status == 200 && answer.body.contains("done");
    until(&server, "do=drop", "a drop comes in", is_done);
    for _ in 0..3 {
        until(&server, LIGHT, "it works", is_done);
    }
    // No more than it takes: until a slow machine has its verdict, more would fill the heap.
    let is_shut = (0..HOLDS).any(|_| {
        thread::sleep(REST);
        shop(&server, HOLD).is_ok_and(|answer| is_of_door(&answer))
    });
    if !is_shut {
        until(&server, LIGHT, "it shuts", is_of_door);
    }
    until(&server, "do=drop", "a probe comes in", is_done);
    until(&server, "do=gc", "another does", is_done);
    let open = command::poll(SOON, || {
        thread::sleep(REST);
        let accounts = server.accounts();
        accounts
            .find("/shop")
            .is_some_and(|account| account["door"] == "open")
            .then_some(())
    });
    assert!(open.is_some(), "it opens:\n{}", server.log());
    for _ in 0..20 {
        let answer = shop(&server, LIGHT).expect("an answer");
        assert!(is_done(&answer), "{answer:?}\n{}", server.log());
    }
    server.finish();
}

#[test]
fn tomcat_10_on_the_oldest_jdk() {
    assert_storm("apache-tomcat-10.1.44", &every_jdk()[0]);
}

#[test]
fn tomcat_11_on_the_newest_jdk() {
    assert_storm("apache-tomcat-11.0.10", newest());
}
