//! `heapwarden leaks` as a user meets it where no JVM is needed: its exit codes and its JSON.

use std::net::SocketAddr;
use std::process::{Command, Output};

use heapwarden_harness::stub_server::{self, nobody, respond};

const SUSPECTS: &str = r#"{"at":"2026-11-24T08:00:00Z","horizon_seconds":600,"undecided":null,
    "suspects":[{"account":"shop\u202e","class":"com.acme.Session","live_bytes":1048576,"newer":7}],"growing":[]}"#;
const NONE: &str = r#"{"at":"2026-11-24T08:00:00Z","horizon_seconds":600,"undecided":null,"suspects":[],"growing":[]}"#;
const UNDECIDED: &str =
    r#"{"at":"","horizon_seconds":0,"undecided":"no collection yet","suspects":[],"growing":[]}"#;

fn leaks(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapwarden"))
        .arg("leaks")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// An agent that answers `/api/v1/leaks` with `body`, or, without one, does not know it; until the test's
/// process ends.
fn agent(body: Option<&'static str>) -> SocketAddr {
    stub_server::serve(move |head, _, stream| {
        let (status, body) = match (stub_server::path(head), body) {
            ("/api/v1/leaks", Some(body)) => ("200 OK", body),
            ("/-/healthy" | "/-/ready", _) => ("200 OK", "Heapwarden is healthy.\n"),
            _ => ("404 Not Found", ""),
        };
        respond(stream, status, body);
    })
}

#[test]
fn the_exit_code_tells_whether_there_are_suspects() {
    let of = |addresses: &[SocketAddr]| {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        leaks(&texts).status.code()
    };
    let (leaking, healthy, young) = (
        agent(Some(SUSPECTS)),
        agent(Some(NONE)),
        agent(Some(UNDECIDED)),
    );
    assert_eq!(of(&[leaking]), Some(3));
    assert_eq!(of(&[healthy]), Some(0));
    assert_eq!(of(&[young]), Some(0));
    assert_eq!(of(&[healthy, leaking]), Some(3));
    assert_eq!(of(&[healthy, nobody()]), Some(1));
    assert_eq!(
        of(&[nobody(), leaking]),
        Some(3),
        "a suspect is worth more than a failure"
    );
    assert_eq!(leaks(&["https://127.0.0.1:1/"]).status.code(), Some(2));
}

#[test]
fn the_json_has_the_agents_own_answer() {
    let (leaking, down) = (agent(Some(SUSPECTS)).to_string(), nobody().to_string());
    let output = leaks(&["--json", &down, &format!("http://{leaking}/api/v1/leaks")]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr), "");
    let out = text(&output.stdout);
    assert!(out.contains(r"shop\u202e"), "safe to print: {out}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json[0]["address"], down);
    assert_eq!(json[0]["reachable"], false);
    assert_eq!(json[0]["answer"], serde_json::Value::Null);
    assert_eq!(json[1]["address"], leaking);
    assert_eq!(json[1]["error"], serde_json::Value::Null);
    assert_eq!(json[1]["answer"]["suspects"][0]["newer"], 7);
}

#[test]
fn an_agent_that_is_older_says_what_to_do() {
    let output = leaks(&[&agent(None).to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    assert!(
        err.contains("has no /api/v1/leaks: its version does not fit this command"),
        "{err}"
    );
}

#[test]
fn a_suspect_is_printed() {
    let address = agent(Some(SUSPECTS)).to_string();
    let out = text(&leaks(&[&address]).stdout);
    assert!(out.starts_with(&format!("{address}: 1 suspect")), "{out}");
    assert!(
        out.contains(r"shop\u{202e}") && out.contains("com.acme.Session"),
        "{out}"
    );
}
