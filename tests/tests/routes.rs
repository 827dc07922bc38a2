//! Requests go in at a shut door by their price: in a real Tomcat a route that keeps nothing is answered while one that
//! grows is turned away; what routes hold and cost is in the JSON and the metrics.

use heapwarden_tests::command;
use heapwarden_tests::jdk::{Collector, Jdk, every_jdk, newest};
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup;
use heapwarden_tests::stats;
use serde_json::Value;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: &str = "8KiB";
const LIMIT_MIB: u64 = 64;
/// Bytes that a `POST` makes the application hold: arrays of 1,000 bytes, their headers, references.
const STEP_BYTES: u64 = 40 * (16 + 1_000) + 16 + 4 * 40;
/// Comparisons of a route with the truth: one on each of two virtual machines.
const COMPARISONS: usize = 2;
/// The time in which prices are learned: more than the shortest window.
const LEARNING: Duration = Duration::from_secs(14);
const SOON: Duration = Duration::from_secs(120);
/// Requests while the door is shut, after the first moments.
const STEADY: Duration = Duration::from_secs(8);
/// Until that many times as many writes were sent as may come in, the rate shows nothing.
const TELLING: u64 = 2;
/// The shortest pause between two probes once two have come in, and how many come in before that.
const PROBE_PAUSE: Duration = Duration::from_millis(400);
const FIRST_PROBES: u64 = 3;

/// A `POST` keeps, a `GET` reads: makes garbage of the same size.
const NOTES_JSP: &str = r#"<%@ page contentType="text/plain" session="false" %><%!
    static final java.util.List<byte[][]> HELD = new java.util.ArrayList<>();
    static volatile Object sink;
%><%
    byte[][] slots = new byte[40][];
    for (int i = 0; i < slots.length; i++) {
        slots[i] = new byte[1000];
    }
    if ("POST".equals(request.getMethod())) {
        synchronized (HELD) {
            HELD.add(slots);
            application.setAttribute("held", HELD);
        }
    } else {
        sink = slots;
        sink = null;
    }
%>done"#;

const DROP_JSP: &str = r#"<%@ page contentType="text/plain" session="false" %><%
    Object held = application.getAttribute("held");
    if (held != null) {
        synchronized (held) {
            ((java.util.List<?>) held).clear();
        }
    }
%>done"#;

const COLLECT_JSP: &str = r#"<%@ page contentType="text/plain" session="false" %><%
    System.gc();
%>done"#;

fn start(jdk: &Jdk, collector: Collector) -> Server {
    let site = Installation::new().collector(collector);
    let prepared = server_setup::tomcat(&site, jdk, "apache-tomcat-9.0.117", INTERVAL);
    let policy = format!(
        "[sampling]\ninterval = \"{INTERVAL}\"\ncpu-budget = \"none\"\n\n\
         [enforcement]\nmode = \"enforce\"\n\n\
         [[account]]\nservice = \"/shop\"\nlimit = \"{LIMIT_MIB}MiB\"\n"
    );
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("writable");
    for name in ["shop", "other"] {
        let folder = prepared.base.join("webapps").join(name);
        fs::create_dir(&folder).expect("writable");
        for (file, text) in [
            ("notes.jsp", NOTES_JSP),
            ("drop.jsp", DROP_JSP),
            ("collect.jsp", COLLECT_JSP),
        ] {
            fs::write(folder.join(file), text).expect("writable");
        }
    }
    site.start(prepared.command, "/other/collect.jsp")
}

fn send(server: &Server, method: &str, path: &str) -> u16 {
    let answer = server.send(method, path, &[]);
    let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}\n{}", server.log()));
    assert!(
        matches!(answer.status, 200 | 503),
        "{answer:?}\n{}",
        server.log()
    );
    answer.status
}

fn account(server: &Server) -> Value {
    let accounts = server.accounts();
    accounts.find("/shop").cloned().unwrap_or_default()
}

fn route(account: &Value, name: &str) -> Option<Value> {
    let routes = account["routes"].as_array()?;
    (routes.iter().find(|route| route["route"] == name)).cloned()
}

/// How many writes were turned away, as the agent counts them.
fn refused_total(account: &Value) -> u64 {
    let post = route(account, "POST /notes.jsp").expect("it is known");
    post["refused_total"].as_u64().expect("a number")
}

fn wait_for<T>(server: &Server, what: &str, found: impl Fn(&Value) -> Option<T>) -> T {
    let found = command::poll(SOON, || {
        thread::sleep(Duration::from_millis(200));
        found(&account(server))
    });
    found.unwrap_or_else(|| panic!("{what}: {:#}\n{}", account(server), server.log()))
}

fn assert_routes(jdk: &Jdk, collector: Collector) {
    let server = start(jdk, collector);
    let collect = || assert_eq!(send(&server, "GET", "/other/collect.jsp"), 200);
    wait_for(&server, "there is a door", |account| {
        (account["door"] == "open").then_some(())
    });

    // Both routes are used, with collections in between.
    let began = Instant::now();
    let mut held = 0;
    while began.elapsed() < LEARNING {
        for n in 0..60 {
            assert_eq!(send(&server, "GET", "/shop/notes.jsp"), 200);
            if n % 20 == 0 {
                held += u64::from(send(&server, "POST", "/shop/notes.jsp") == 200);
            }
        }
        collect();
        thread::sleep(Duration::from_millis(200));
    }
    collect();
    let get = wait_for(&server, "a read keeps nothing", |account| {
        let get = route(account, "GET /notes.jsp")?;
        let is_cheap = get["kept_bytes_per_call"].as_u64()? <= 1_024
            && get["allocated_bytes_per_call"].as_u64()? >= STEP_BYTES * 4 / 5;
        if !is_cheap {
            // On a busy machine a collection may prove nothing, and the next one does.
            collect();
        }
        is_cheap.then_some(get)
    });
    assert!(get["live_bytes"].as_u64() < Some(1 << 20), "{get:#}");
    assert_eq!(get["refused_total"], 0);
    // The live bytes of a route are as near to the truth as its error says, but for the first request, which has no route
    // yet.
    let truth = held * STEP_BYTES;
    let post = wait_for(&server, "what a route holds", |account| {
        let post = route(account, "POST /notes.jsp")?;
        let (live, error) = (
            post["live_bytes"].as_u64()?,
            post["standard_error_bytes"].as_u64()?,
        );
        let allowed = stats::outermost(COMPARISONS) * error as f64 + (2 * STEP_BYTES) as f64;
        let is_near = live.abs_diff(truth) as f64 <= allowed;
        if !is_near {
            collect();
        }
        is_near.then_some(post)
    });
    let kept = post["kept_bytes_per_call"].as_u64().expect("a number");
    assert!(kept >= STEP_BYTES / 2, "{post:#}");
    // The routes are a part of the account: what is left is what it has outside of requests.
    let now = account(&server);
    let routes = now["routes"].as_array().expect("a list");
    let of_routes: u64 = routes.iter().filter_map(|r| r["live_bytes"].as_u64()).sum();
    let live = now["live_bytes"].as_u64().expect("a number");
    assert!(of_routes <= live, "{now:#}");
    assert!(live - of_routes < 8 << 20, "{now:#}");
    let labels = [("account", "/shop"), ("route", "POST /notes.jsp")];
    let calls = || (server.metrics()).value("heapwarden_route_calls_total", &labels);
    let counted = command::poll(SOON, || (calls() >= Some((held - 2) as f64)).then_some(()));
    assert!(counted.is_some(), "{:?} of {held}", calls());

    // It fills up, as fast as the machine sends two thousand requests and the agent finds it.
    let filled = command::poll(4 * command::PATIENCE, || {
        (0..200)
            .any(|_| send(&server, "POST", "/shop/notes.jsp") == 503)
            .then_some(())
    });
    assert!(filled.is_some(), "{:#}", account(&server));
    for _ in 0..100 {
        send(&server, "GET", "/shop/notes.jsp");
    }
    // A growing route comes in as a probe alone: one at a time, with pauses that do not depend on how many are sent.
    // So their number is bounded by the time, however slow the machine.
    let began = Instant::now();
    let (mut asked, mut answered, mut posted, mut refused) = (0u64, 0u64, 0u64, 0u64);
    let most_probes = loop {
        for _ in 0..20 {
            asked += 1;
            answered += u64::from(send(&server, "GET", "/shop/notes.jsp") == 200);
        }
        for _ in 0..5 {
            posted += 1;
            refused += u64::from(send(&server, "POST", "/shop/notes.jsp") == 503);
        }
        let pauses = began.elapsed().as_millis() / PROBE_PAUSE.as_millis();
        let most_probes = FIRST_PROBES + u64::try_from(pauses).expect("a few");
        if began.elapsed() >= STEADY && posted >= TELLING * most_probes {
            break most_probes;
        }
        assert!(began.elapsed() < 30 * STEADY, "{posted} in all: too slow");
        thread::sleep(Duration::from_millis(10));
    };
    let came_in = posted - refused;
    eprintln!(
        "{answered} of {asked} reads answered, {came_in} of {posted} writes came in, {most_probes} may"
    );
    // Published counts may be a moment old.
    let refused = 1 + refused;
    let counted = command::poll(SOON, || {
        (refused_total(&account(&server)) == refused).then_some(())
    });
    let now = account(&server);
    assert!(counted.is_some(), "{refused} were turned away: {now:#}");
    assert_eq!(now["door"], "shut", "{now:#}");
    assert!(
        came_in <= most_probes,
        "{came_in} of {posted} writes came in, {most_probes} may: {now:#}"
    );
    let bytes = |name: &str| now[name].as_u64().expect("a number");
    let most_bytes =
        bytes("limit_bytes") + bytes("reserve_bytes") + 3 * bytes("live_standard_error_bytes");
    assert!(bytes("live_bytes") <= most_bytes, "{now:#}");
    assert!(
        answered * 100 >= asked * 99,
        "{answered} of {asked}: {now:#}\n{}",
        server.log()
    );
    assert_eq!(now["refusals_total"], 0, "nothing was thrown: {now:#}");

    // A request that lets go comes in, as a probe, and the service works again.
    let dropped = command::poll(SOON, || {
        thread::sleep(Duration::from_millis(100));
        (send(&server, "POST", "/shop/drop.jsp") == 200).then_some(())
    });
    assert!(dropped.is_some(), "{:#}", account(&server));
    wait_for(&server, "the door is open", |account| {
        (account["door"] == "open").then_some(())
    });
    assert_eq!(send(&server, "POST", "/shop/notes.jsp"), 200);
    server.finish();
}

#[test]
fn reads_go_in_and_writes_do_not_on_the_oldest_jdk() {
    assert_routes(&every_jdk()[0], Collector::G1);
}

#[test]
fn reads_go_in_and_writes_do_not_with_generational_zgc() {
    assert_routes(newest(), Collector::Z);
}
