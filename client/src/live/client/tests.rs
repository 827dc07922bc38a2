//! The client against servers that are not what they should be.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use heapwarden_harness::stub_server::{self, respond};

use super::*;

/// Serves every connection by `answer`, until the test's process ends.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Address {
    named(stub_server::serve(move |head, _, stream| {
        answer(head, stream)
    }))
}

fn named(address: SocketAddr) -> Address {
    address.to_string().parse().unwrap()
}

fn read(address: &Address) -> Result<Accounts, LiveError> {
    Client::new().accounts(address, Classes::Top)
}

#[test]
fn what_is_asked_for_is_read() {
    let address = server(|head, stream| {
        let all = head.starts_with("GET /api/v1/accounts?classes=all HTTP/1.1\r\n");
        let name = if all { "all" } else { "top" };
        let body = format!(r#"{{"accounts":[{{"name":"{name}"}}]}}"#);
        respond(stream, "200 OK", &body);
    });
    let name = |classes| {
        let answer = Client::new().accounts(&address, classes).unwrap();
        answer.accounts[0].name.clone()
    };
    assert_eq!(name(Classes::Top), "top");
    assert_eq!(name(Classes::All), "all");
    assert_eq!(Client::new().not_ready(&address), None);
}

#[test]
fn nothing_listens() {
    let address = stub_server::nobody();
    let error = read(&named(address)).unwrap_err();
    assert!(matches!(error, LiveError::NobodyListens { .. }), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    // Linux numbers processes below 2^22.
    std::fs::write(
        &path,
        format!(r#"{{"pid":{},"listen":"{address}"}}"#, u32::MAX),
    )
    .unwrap();
    let error = read(&Address::RunFile(path)).unwrap_err();
    assert!(matches!(error, LiveError::Ended { .. }), "{error}");
}

#[test]
fn a_name_without_an_address() {
    // RFC 2606 keeps `.invalid` from ever having one.
    let error = read(&"nobody.invalid:9464".parse().unwrap()).unwrap_err();
    assert!(
        matches!(
            error,
            LiveError::UnknownHost { .. } | LiveError::Broken { .. } | LiveError::TimedOut { .. }
        ),
        "{error:?}"
    );
}

#[test]
fn other_servers_are_not_taken_for_agents() {
    let html = server(|_, stream| respond(stream, "200 OK", "<html>hello</html>"));
    let json = server(|_, stream| respond(stream, "200 OK", r#"{"status":"success"}"#));
    let empty = server(|_, stream| respond(stream, "404 Not Found", ""));
    let noise = server(|_, stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    });
    for address in [html, json, empty, noise] {
        let error = read(&address).unwrap_err();
        assert!(matches!(error, LiveError::NoAgent { .. }), "{error:?}");
    }
}

#[test]
fn an_agent_of_another_age() {
    let address = server(|head, stream| {
        if head.starts_with("GET /-/healthy ") {
            respond(stream, "200 OK", "Heapwarden is running.\n");
        } else {
            respond(stream, "404 Not Found", "Nothing is here.");
        }
    });
    let error = read(&address).unwrap_err();
    assert!(matches!(error, LiveError::NoEndpoint { .. }), "{error:?}");
}

#[test]
fn what_a_server_says_is_escaped_and_cut() {
    let address = server(|_, stream| {
        let text = format!("\n\u{1b}[31mno\u{202e}{}\nmore", "x".repeat(9000));
        respond(stream, "403 Forbidden", &text);
    });
    let error = read(&address).unwrap_err().to_string();
    assert!(
        error.contains(" answers 403: \\u{1b}[31mno\\u{202e}xx"),
        "{error}"
    );
    assert!(error.chars().count() < 240, "{error}");
}

#[test]
fn an_agent_that_keeps_no_accounts_says_why() {
    let address = server(|head, stream| {
        if head.starts_with("GET /-/ready ") {
            let text = "Not ready: the sampling capability is held by another agent\n";
            respond(stream, "503 Service Unavailable", text);
        } else {
            respond(stream, "200 OK", r#"{"accounts":[]}"#);
        }
    });
    assert_eq!(read(&address).unwrap().accounts, []);
    assert_eq!(
        Client::new().not_ready(&address).as_deref(),
        Some("the sampling capability is held by another agent")
    );
}

#[test]
fn an_endless_answer_is_not_read() {
    let address = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"accounts\":[");
        let block = [b' '; 1 << 16];
        while stream.write_all(&block).is_ok() {}
    });
    // A busy machine may not bring 16 MiB over in the usual time.
    let client = Client::within(CONNECT_LIMIT, Duration::from_secs(60));
    let error = client.accounts(&address, Classes::Top).unwrap_err();
    assert!(matches!(error, LiveError::TooLarge { .. }), "{error:?}");
}

#[test]
fn a_server_that_says_nothing_or_little_is_not_waited_for() {
    let silent = server(|_, stream| {
        let mut byte = [0];
        let _ = stream.read(&mut byte);
    });
    let slow = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let client = Client::within(Duration::from_secs(2), Duration::from_millis(300));
    for address in [silent, slow] {
        let error = client.accounts(&address, Classes::Top).unwrap_err();
        assert!(matches!(error, LiveError::TimedOut { .. }), "{error:?}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let address = server(|_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\
              Connection: close\r\n\r\n",
        );
    });
    let error = read(&address).unwrap_err();
    assert!(
        matches!(error, LiveError::Status { status: 302, .. }),
        "{error:?}"
    );
}
