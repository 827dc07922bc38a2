//! Servers that are libraries of a program: Vert.x Web, Reactor Netty and Spring WebFlux, gRPC, Micronaut, Helidon and
//! Netty alone. Each program has an account; beyond its limit its requests are turned away before any of its code runs,
//! on an event loop too, but for those that the policy admits, and come in again once it has let go.

use heapwarden_harness::http::{self, Answer};
use heapwarden_tests::command::{PATIENCE, left_out, poll};
use heapwarden_tests::door_client::{FILLED_BYTES, LIMIT_MIB, SOON, STEP_BYTES};
use heapwarden_tests::jdk::{Collector, Vm, compiler_for, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::{server_libraries, stats};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Requests whose figures are compared with the truth.
const STEPS: u32 = 20;
/// Programs, and JDKs of each at the most.
const COMPARISONS: usize = 7 * 4;
/// Requests while the door is shut.
const KNOCKS: usize = 40;
/// More than a server reads of a connection at a time.
const LONG_BODY_BYTES: usize = 300_000;

/// A program.
struct Shelf {
    main: &'static str,
    /// The name of its server in the log.
    server: &'static str,
    /// The oldest Java that it runs on.
    since: u32,
    /// Whether its requests have routes.
    has_routes: bool,
}

/// How a request was answered.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Served,
    TurnedAway,
}

/// The program of one test, and how it is asked.
struct Program {
    jvm: Jvm,
    client: Option<http::Client>,
}

impl Program {
    fn start(vm: &Vm, shelf: &Shelf) -> Self {
        Self::start_with(vm, shelf, "")
    }

    /// With more keys of the account.
    fn start_with(vm: &Vm, shelf: &Shelf, more: &str) -> Self {
        let policy = format!(
            "[sampling]\ninterval = \"8KiB\"\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n\n\
             [[account]]\nservice = \"{}\"\nlimit = \"{LIMIT_MIB}MiB\"\nadmit = [\"* /health*\", \"* /shop.Shelf/Health\"]\n{more}",
            shelf.main
        );
        let mut jvm = victim(vm, shelf.main)
            .class_path(server_libraries::class_path())
            .heap("512m")
            .policy(&policy)
            .start();
        let port = number(&jvm.ask("port"), "port");
        let client = (shelf.server != "gRPC").then(|| {
            let port = u16::try_from(port).expect("a port");
            http::Client::new(([127, 0, 0, 1], port).into())
        });
        let mut program = Self { jvm, client };
        // Some classes are loaded by the first request, and a door counts from its first request on.
        let own = format!("{} has a door: new requests", shelf.server);
        let has_door = poll(PATIENCE, || {
            assert_eq!(program.ask("/first"), Outcome::Served);
            thread::sleep(Duration::from_millis(100));
            let accounts = program.jvm.accounts();
            let is_told = program.jvm.log().contains(&own);
            (is_told && accounts.find(shelf.main)?["door"] == "open").then_some(())
        });
        let log = program.jvm.log();
        assert!(has_door.is_some(), "{log}");
        // Other libraries are on its class path, where nobody asks.
        assert_eq!(log.matches(" has a door: new requests").count(), 1, "{log}");
        program
    }

    /// Posts a request over a connection that is kept, with a body that the program need not read.
    fn ask(&mut self, path: &str) -> Outcome {
        self.ask_with(path, b"some")
    }

    fn ask_with(&mut self, path: &str, body: &[u8]) -> Outcome {
        let Some(client) = &self.client else {
            let answer = self.jvm.ask(&format!("call {path}"));
            return match answer[0].split_once(' ') {
                None if answer[0] == "OK" => Outcome::Served,
                Some(("RESOURCE_EXHAUSTED", pushback)) => {
                    let pushback_ms: u32 = pushback.parse().expect("milliseconds");
                    assert!(pushback_ms >= 1_000, "{answer:?}");
                    Outcome::TurnedAway
                }
                _ => panic!("{path}: {answer:?}\n{}", self.jvm.log()),
            };
        };
        let answer = client.send_body("POST", path, &[], body);
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.jvm.log()));
        match answer.status {
            200 => Outcome::Served,
            _ => {
                assert_turned_away(&answer);
                Outcome::TurnedAway
            }
        }
    }

    /// How many requests the program's code has seen.
    fn calls(&mut self) -> u64 {
        number(&self.jvm.ask("calls"), "calls")
    }
}

fn number(answer: &[String], name: &str) -> u64 {
    let number = answer[0].strip_prefix(name).expect("what was asked for");
    number.trim().parse().expect("a number")
}

fn assert_turned_away(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let retry_after: u32 = (answer.headers.get("retry-after"))
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or_else(|| panic!("{answer:?}"));
    assert!(retry_after >= 1, "{answer:?}");
    assert!(answer.body.contains("over its memory limit"), "{answer:?}");
}

/// The account holds what the program holds.
fn assert_figures(program: &mut Program, account: &str) {
    let before = program.jvm.settled().holding(account);
    for _ in 0..STEPS {
        assert_eq!(program.ask("/hold"), Outcome::Served);
    }
    let after = program.jvm.settled().holding(account);
    let truth = f64::from(STEPS) * STEP_BYTES as f64;
    let variance = after.standard_error_bytes.powi(2) - before.standard_error_bytes.powi(2);
    let z = (after.live_bytes - before.live_bytes - truth) / variance.sqrt();
    eprintln!("{account}: {z:+.2} standard errors");
    assert!(
        z.abs() <= stats::outermost(COMPARISONS),
        "{z} {before:?} {after:?}"
    );
}

/// It is turned away at its limit, and the code of what is turned away does not run.
fn assert_shut(program: &mut Program, account: &str) {
    let mut held_bytes = u64::from(STEPS) * STEP_BYTES;
    while held_bytes < FILLED_BYTES {
        // It may be known before.
        if program.ask("/hold") == Outcome::Served {
            held_bytes += STEP_BYTES;
        }
    }
    program.jvm.until(PATIENCE, "its door is shut", |accounts| {
        accounts
            .find(account)
            .is_some_and(|it| it["door"] == "shut")
    });
    let before = program.calls();
    let mut served = 0;
    for knock in 0..KNOCKS {
        let body = match knock % 4 {
            0 => vec![b'.'; LONG_BODY_BYTES],
            _ => b"some".to_vec(),
        };
        served += u64::from(program.ask_with("/light", &body) == Outcome::Served);
        thread::sleep(Duration::from_millis(5));
    }
    assert!(served < KNOCKS as u64 / 2, "{served} came in");
    served += assert_answers_of_one_line(program);
    for _ in 0..KNOCKS {
        assert_eq!(program.ask("/health"), Outcome::Served);
    }
    let seen = program.calls() - before;
    assert_eq!(
        seen,
        served + KNOCKS as u64,
        "code ran for what was turned away"
    );
    let accounts = program.jvm.accounts();
    let found = accounts.find(account).expect("listed");
    assert!(
        found["admission_refusals_total"].as_u64() >= Some(KNOCKS as u64 - served),
        "{found:#}"
    );
    assert_eq!(found["refusals_total"], 0, "errors were thrown: {found:#}");
}

/// An answer to a `HEAD` has no body, and a listed path is no way to one that is not. Returns how many came in as probes.
fn assert_answers_of_one_line(program: &mut Program) -> u64 {
    if program.client.is_none() {
        return 0;
    }
    let port = number(&program.jvm.ask("port"), "port");
    let mut served = 0;
    for line in ["HEAD /light", "POST /health/../light"] {
        let answers: Vec<String> = (0..4)
            .map(|_| {
                // The probe, if one is due: the next comes in the pause after it.
                served += u64::from(program.ask("/light") == Outcome::Served);
                said(port, line)
            })
            .collect();
        let away: Vec<&String> = (answers.iter())
            .filter(|answer| answer.starts_with("HTTP/1.1 503"))
            .collect();
        // A server may answer by itself that it has no such method or path.
        let is_served = |answer: &&String| answer.starts_with("HTTP/1.1 200");
        served += answers.iter().filter(is_served).count() as u64;
        assert!(!away.is_empty(), "{line}: {answers:?}");
        for answer in away {
            let (_, body) = answer.split_once("\r\n\r\n").expect("header lines");
            assert_eq!(
                body.is_empty(),
                line.starts_with("HEAD"),
                "{line}: {answer}"
            );
        }
    }
    served
}

/// All that is said on a connection with one request, until nothing more comes: Helidon closes none.
fn said(port: u64, line: &str) -> String {
    let address = format!("127.0.0.1:{port}");
    let mut connection = TcpStream::connect(&address).expect("it listens");
    let length = match line.starts_with("POST") {
        true => "Content-Length: 0\r\n",
        false => "",
    };
    let request =
        format!("{line} HTTP/1.1\r\nHost: {address}\r\n{length}Connection: close\r\n\r\n");
    (connection.write_all(request.as_bytes())).expect("it reads");
    let mut answer = Vec::new();
    let mut piece = [0; 1_000];
    let mut patience = SOON;
    loop {
        (connection.set_read_timeout(Some(patience))).expect("a timeout");
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&answer).into_owned(),
            Ok(length) => answer.extend(&piece[..length]),
        }
        patience = Duration::from_millis(300);
    }
}

/// One of its own requests lets go, and then all come in.
fn assert_way_back(program: &mut Program, account: &str) {
    let dropped = poll(SOON, || {
        thread::sleep(Duration::from_millis(20));
        (program.ask("/drop") == Outcome::Served).then_some(())
    });
    assert!(dropped.is_some(), "{}", program.jvm.log());
    program.jvm.until(SOON, "its door is open", |accounts| {
        accounts
            .find(account)
            .is_some_and(|it| it["door"] == "open")
    });
    for _ in 0..KNOCKS {
        assert_eq!(program.ask("/light"), Outcome::Served);
    }
}

fn assert_shelf(shelf: &Shelf) {
    let mut vms = every_jdk_with(Collector::G1);
    vms.retain(|vm| vm.jdk.feature >= shelf.since);
    // The oldest and the newest.
    if let [_, between @ .., _] = &vms[..] {
        vms.drain(1..=between.len());
    }
    on_each(&vms, |vm| {
        let mut program = Program::start(vm, shelf);
        assert_figures(&mut program, shelf.main);
        let accounts = program.jvm.accounts();
        let routes = &accounts.find(shelf.main).expect("listed")["routes"];
        let names: Vec<&str> = (routes.as_array().into_iter().flatten())
            .filter_map(|route| route["route"].as_str())
            .collect();
        assert_eq!(names.contains(&"POST /hold"), shelf.has_routes, "{routes}");
        assert_shut(&mut program, shelf.main);
        assert_way_back(&mut program, shelf.main);
        program.jvm.finish();
    });
}

fn on_an_event_loop(main: &'static str, server: &'static str) -> Shelf {
    Shelf {
        main,
        server,
        since: 17,
        has_routes: false,
    }
}

#[test]
fn vertx() {
    assert_shelf(&on_an_event_loop("victim.VertxShelf", "Vert.x Web"));
}

#[test]
fn reactor_netty() {
    assert_shelf(&on_an_event_loop("victim.ReactorShelf", "Reactor Netty"));
}

#[test]
fn spring_webflux() {
    assert_shelf(&on_an_event_loop("victim.WebFluxShelf", "Reactor Netty"));
}

#[test]
fn grpc() {
    assert_shelf(&on_an_event_loop("victim.GrpcShelf", "gRPC"));
}

#[test]
fn micronaut() {
    assert_shelf(&on_an_event_loop("victim.MicronautShelf", "Micronaut"));
}

#[test]
fn netty() {
    assert_shelf(&on_an_event_loop("victim.NettyShelf", "Netty"));
}

/// Where the policy names methods, the library's door lets everything in.
#[test]
fn the_methods_of_a_policy_are_the_only_doors() {
    let shelf = on_an_event_loop("victim.VertxShelf", "Vert.x Web");
    on_each(&every_jdk_with(Collector::G1)[..1], |vm| {
        let door = "door = [\"victim.Shelf#hold\"]\nrefuse-with = \"exception\"\n";
        let mut program = Program::start_with(vm, &shelf, door);
        let client = program.client.clone().expect("of HTTP");
        let hold = || client.post("/hold").expect("an answer").status;
        let refused = poll(PATIENCE, || (hold() == 500).then_some(()));
        assert!(refused.is_some(), "{}", program.jvm.log());
        for _ in 0..KNOCKS {
            assert_eq!(program.ask("/light"), Outcome::Served);
        }
        let accounts = program.jvm.accounts();
        assert!(
            accounts.is_in_state(shelf.main, "over"),
            "{}",
            accounts.brief()
        );
        program.jvm.finish();
    });
}

/// Its requests have virtual threads of their own.
#[test]
fn helidon() {
    if compiler_for(21).is_none() {
        left_out("helidon", "no JDK here compiles for Java 21");
        return;
    }
    assert_shelf(&Shelf {
        main: "victim.HelidonShelf",
        server: "Helidon",
        since: 21,
        has_routes: true,
    });
}
