//! The answers that well-behaved clients get.

use super::*;

#[test]
fn every_endpoint_answers() {
    let running = start(
        Stub {
            accounts: 2,
            ..Stub::default()
        },
        Config::default(),
    );
    let metrics = running.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .head
            .contains("\r\nContent-Type: text/plain; version=0.0.4")
    );
    assert!(
        metrics
            .body
            .contains("heapwarden_account_live_bytes{account=\"tenant-1\"} 0\n")
    );
    let accounts = running.get("/api/v1/accounts?classes=all");
    assert_eq!(accounts.status, 200);
    assert!(accounts.head.contains("\r\nContent-Type: application/json"));
    let document: serde_json::Value = serde_json::from_str(&accounts.body).unwrap();
    assert_eq!(document["accounts"].as_array().unwrap().len(), 2);
    assert_eq!(running.get("/api/v1/accounts").status, 200);
    let sites = running.get("/api/v1/sites");
    assert!(sites.head.contains("\r\nContent-Type: application/json"));
    assert!(sites.body.starts_with("{\"stacks\":0,"), "{}", sites.body);
    assert_eq!(running.get("/api/v1/sites?account=shop").status, 400);
    assert_eq!(running.get("/-/healthy").status, 200);
    assert_eq!(running.get("/-/ready").status, 200);
    assert!(running.get("/").body.contains("/api/v1/accounts"));
    assert_eq!(running.get("/nothing").status, 404);
    assert_eq!(running.get("/metrics/").status, 404);
    assert_eq!(running.get("/api/v1/accounts?classes=some").status, 400);
    assert_eq!(running.get("/metrics?x").status, 400);
    assert_eq!(running.source.snapshots.load(Ordering::SeqCst), 3);
}

#[test]
fn openmetrics_is_given_to_those_who_ask() {
    let running = start(Stub::default(), Config::default());
    let reply = running.send(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
         Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
    );
    assert!(
        reply
            .head
            .contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0")
    );
    assert!(reply.body.ends_with("# EOF\n"));
}

#[test]
fn head_is_get_without_the_body() {
    let running = start(Stub::default(), Config::default());
    let head = running.send("HEAD /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let get = running.get("/-/healthy");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let length = format!("\r\nContent-Length: {}\r\n", get.body.len());
    assert!(head.head.contains(&length), "{}", head.head);
}

#[test]
fn responses_carry_their_protective_headers() {
    let running = start(Stub::default(), Config::default());
    for target in [
        "/metrics",
        "/api/v1/accounts",
        "/api/v1/history",
        "/nothing",
    ] {
        let head = running.get(target).head + "\r\n";
        for header in [
            "X-Content-Type-Options: nosniff",
            "Cache-Control: no-store",
            "Connection: close",
        ] {
            assert!(
                head.contains(&format!("\r\n{header}\r\n")),
                "{target}: {head}"
            );
        }
    }
}

#[test]
fn not_ready_says_why() {
    let running = start(
        Stub {
            not_ready: Some("sampling is held by another agent".to_owned()),
            ..Stub::default()
        },
        Config::default(),
    );
    let reply = running.get("/-/ready");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "Not ready: sampling is held by another agent\n");
    assert_eq!(running.get("/-/healthy").status, 200);
}

#[test]
fn more_accounts_than_the_cap_are_folded_in_metrics_only() {
    let config = Config {
        max_accounts: 10,
        ..Config::default()
    };
    let running = start(
        Stub {
            accounts: 25,
            ..Stub::default()
        },
        config,
    );
    let metrics = running.get("/metrics").body;
    assert_eq!(
        metrics.matches("\nheapwarden_account_live_bytes{").count(),
        10
    );
    assert!(metrics.contains("\nheapwarden_accounts_folded 16\n"));
    let accounts = running.get("/api/v1/accounts").body;
    assert_eq!(accounts.matches("{\"name\":\"tenant-").count(), 25);
}

#[test]
fn a_panic_costs_one_request_and_is_counted() {
    let running = start(
        Stub {
            panics: true.into(),
            ..Stub::default()
        },
        Config::default(),
    );
    assert_eq!(running.get("/metrics").status, 500);
    assert_eq!(running.get("/api/v1/accounts").status, 500);
    assert_eq!(running.get("/-/healthy").status, 200);
    running.source.panics.store(false, Ordering::SeqCst);
    let metrics = running.get("/metrics").body;
    assert!(metrics.contains("\nheapwarden_http_responses_total{code=\"500\"} 2\n"));
}

#[test]
fn a_hundred_clients_at_once_are_all_served() {
    let running = start(
        Stub {
            accounts: 50,
            ..Stub::default()
        },
        Config::default(),
    );
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| running.get("/metrics").status))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    assert_eq!(statuses, [200; 100]);
    let metrics = running.get("/metrics").body;
    assert!(metrics.contains("\nheapwarden_http_responses_total{code=\"200\"} 100\n"));
}

/// The document is made elsewhere: those who wait for it take no place of others, and get it once it is
/// there, plain or as gzip.
#[test]
fn a_document_is_waited_for_while_others_are_served() {
    let running = start(Stub::default(), patient());
    let ask = |more: &str| {
        let mut stream = running.connect();
        let request = format!("GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let mut plain = ask("");
    let mut packed = ask("Accept-Encoding: gzip\r\n");
    // Two may wait; the third is told to come again.
    let told = |stream: &mut TcpStream| reply(stream).expect("an answer").status;
    assert_eq!(told(&mut ask("")), 503);
    assert_eq!(running.get("/metrics").status, 200);
    running.source.has_document.store(true, Ordering::SeqCst);
    let answer = reply(&mut plain).expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (200, DOCUMENT));
    assert!(!answer.head.contains("Content-Encoding"));
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\r\nContent-Encoding: gzip\r\n")
    );
    assert!(bytes.ends_with(&gzip(DOCUMENT)));
    assert_eq!(running.get("/api/v1/snapshot").body, DOCUMENT);
    assert_eq!(running.get("/api/v1/snapshot?x").status, 400);
}

#[test]
fn a_document_that_does_not_come_is_an_answer_all_the_same() {
    let mut config = patient();
    config.limits.waiting_time = Duration::from_millis(100);
    let running = start(Stub::default(), config);
    assert_eq!(running.get("/api/v1/snapshot").status, 503);
}

#[test]
fn the_page_is_served_from_inside_the_library() {
    let running = start(Stub::default(), Config::default());
    let index = running.get("/");
    assert_eq!(index.status, 200);
    assert!(index.head.contains("\r\nContent-Type: text/html"));
    assert!(index.head.contains("\r\nCache-Control: no-cache\r\n"));
    assert!(
        index
            .head
            .contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'self';")
    );
    let tag = format!("\"{}\"", policy_page::version());
    let again = running.send(&format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"x\", W/{tag}\r\n\r\n"
    ));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let folder = format!("/page/{}", policy_page::version());
    let script = running.get(&format!("{folder}/main.js"));
    assert_eq!(script.status, 200);
    assert!(script.head.contains("\r\nContent-Type: text/javascript"));
    assert!(script.head.contains("immutable"));
    for path in [
        "/page/",
        "/page/main.js",
        "/page/0000000000000000/main.js",
        "/page/../main.js",
        &format!("{folder}/"),
        &format!("{folder}/index.html"),
        &format!("{folder}/../../etc/passwd"),
        &format!("{folder}/%2e%2e/main.js"),
        &format!("{folder}//main.js"),
        &format!("{folder}/main.js/"),
        &format!("{folder}/main.js?x"),
    ] {
        assert_eq!(running.get(path).status, 404, "{path}");
    }
    let strange = running.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(strange.status, 403);
    let post = running.send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(post.status, 405);
    assert_eq!(running.source.snapshots.load(Ordering::SeqCst), 0);
}

#[test]
fn files_of_snapshots_are_read_elsewhere_by_plain_names_alone() {
    let running = start(Stub::default(), patient());
    running.source.has_document.store(true, Ordering::SeqCst);
    assert_eq!(running.get("/api/v1/snapshots").body, DOCUMENT);
    assert_eq!(running.get("/api/v1/snapshots/known").body, DOCUMENT);
    for name in [
        "",
        "other",
        "..%2fknown",
        "../known",
        "known/",
        "kn%6fwn",
        "known?x",
    ] {
        let path = format!("/api/v1/snapshots/{name}");
        assert_eq!(running.get(&path).status, 404, "{path}");
    }
    assert_eq!(running.get("/api/v1/snapshots?x").status, 400);
    assert_eq!(
        running.get("/api/v1/history").body,
        "{\"step_seconds\":30,\"points\":[]}\n"
    );
}

#[test]
fn a_profile_is_a_file_that_is_gzip_to_every_client() {
    let running = start(Stub::default(), patient());
    running.source.has_document.store(true, Ordering::SeqCst);
    for accepted in ["", "Accept-Encoding: gzip\r\n"] {
        let request = format!("GET /api/v1/profile HTTP/1.1\r\nHost: localhost\r\n{accepted}\r\n");
        let mut stream = running.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert!(bytes.ends_with(&gzip(DOCUMENT)));
        let head = String::from_utf8_lossy(&bytes[..bytes.len() - gzip(DOCUMENT).len()]);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/octet-stream\r\n"));
        assert!(!head.contains("Content-Encoding"), "{head}");
    }
    assert_eq!(running.get("/api/v1/profile?seconds=5").status, 400);
    let failing = start(
        Stub {
            not_ready: Some(String::new()),
            ..Stub::default()
        },
        patient(),
    );
    let reply = failing.get("/api/v1/profile");
    assert_eq!(reply.status, 503);
    assert_eq!(reply.body, "No profile can be had: this stub makes none.\n");
}
