//! `heapwarden status` as a user meets it where no JVM is needed; with real ones it is in
//! `tests/tests/top_and_status.rs`.

use std::net::SocketAddr;
use std::process::{Command, Output};

use heapwarden_harness::stub_server::{self, nobody, respond};

fn status(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapwarden"))
        .arg("status")
        .args(arguments)
        // A proxy of the environment must not be asked.
        .env("http_proxy", "http://127.0.0.1:1")
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("ALL_PROXY", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A server that answers everything with `body`, until the test's process ends.
fn server(body: &'static str) -> SocketAddr {
    stub_server::serve(move |_, _, stream| respond(stream, "200 OK", body))
}

#[test]
fn one_of_two_can_be_read() {
    let up = server(r#"{"accounts":[{"name":"shop","state":"over"}]}"#).to_string();
    let down = nobody().to_string();
    let output = status(&[&down, &up]);
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("shop") && out.contains("over"), "{out}");
    assert!(
        err.starts_with(&format!("{down}: nothing listens on {down}")),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");

    let output = status(&["--json", &down, &up]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json[0]["address"], down);
    assert_eq!(json[0]["reachable"], false);
    assert_eq!(json[1]["answer"]["accounts"][0]["name"], "shop");
}

#[test]
fn all_can_be_read() {
    let up = server(r#"{"accounts":[]}"#);
    let url = format!("http://{up}/metrics");
    let output = status(&[&url]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).starts_with(&format!("{up}: heap ")));
}

#[test]
fn what_is_no_address_is_wrong_usage() {
    let output = status(&["https://127.0.0.1:9464/"]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.contains("an agent speaks plain HTTP"), "{err}");
}

#[test]
fn a_missing_run_file_is_told() {
    let output = status(&["/nowhere/run.json"]);
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    assert!(
        err.contains("cannot read the run file /nowhere/run.json: it does not exist"),
        "{err}"
    );
}
