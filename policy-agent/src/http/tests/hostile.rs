//! The answers to hostile clients, which cost nobody else anything.

use std::net::Shutdown;

use super::*;

#[test]
fn a_slow_client_has_a_deadline_for_the_whole_request() {
    let running = start(Stub::default(), hasty());
    let mut slow = running.connect();
    let began = Instant::now();
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut header = b"X-Slow: ".iter().chain(std::iter::repeat(&b'a'));
    // Each byte would renew a deadline that counted from the latest read.
    while began.elapsed() < Duration::from_millis(600) {
        if slow.write_all(&[*header.next().unwrap()]).is_err() {
            break;
        }
        assert_eq!(running.get("/-/healthy").status, 200);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(reply(&mut slow).map(|reply| reply.status), Some(408));
    within(Duration::from_secs(5), began);
}

#[test]
fn a_silent_client_is_let_go_without_a_word() {
    let running = start(Stub::default(), hasty());
    let began = Instant::now();
    assert!(reply(&mut running.connect()).is_none());
    assert!(began.elapsed() >= Duration::from_millis(400));
    within(Duration::from_secs(10), began);
}

#[test]
fn half_a_request_is_a_bad_request() {
    let running = start(Stub::default(), Config::default());
    let mut stream = running.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: loc")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let reply = reply(&mut stream).unwrap();
    assert_eq!(reply.status, 400);
    assert_eq!(reply.body, "the request ended before its headers did.\n");
}

#[test]
fn a_client_that_is_done_sending_is_still_answered() {
    let running = start(Stub::default(), Config::default());
    let mut stream = running.connect();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(reply(&mut stream).unwrap().status, 200);
}

#[test]
fn oversized_requests_are_refused_and_hear_of_it() {
    let running = start(Stub::default(), Config::default());
    let headers = format!("X: {}\r\n", "a".repeat(100)).repeat(1000);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    assert_eq!(running.send(&request).status, 431);
    let request = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    assert_eq!(running.send(&request).status, 414);
    let just_fits = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "a".repeat(8192 - 16 - 17 - 3 - 4)
    );
    assert_eq!(just_fits.len(), 8192);
    assert_eq!(running.send(&just_fits).status, 200);
}

#[test]
fn other_methods_and_bodies_are_refused() {
    let running = start(Stub::default(), Config::default());
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get",
    ] {
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let reply = running.send(&request);
        assert_eq!(reply.status, 405, "{method}");
        assert!(reply.head.contains("\r\nAllow: GET, HEAD\r\n"));
    }
    let body = "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(running.send(body).status, 413);
    assert_eq!(running.send("GET / HTTP/2.0\r\n\r\n").status, 505);
}

#[test]
fn a_rebound_name_reads_nothing() {
    let config = Config {
        allowed_hosts: vec!["metrics.internal".to_owned()],
        ..Config::default()
    };
    let running = start(
        Stub {
            accounts: 1,
            ..Stub::default()
        },
        config,
    );
    let get = |host: &str| running.send(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for host in [
        "evil.example",
        "evil.example:9464",
        "127.0.0.1.evil.example",
    ] {
        let reply = get(host);
        assert_eq!(reply.status, 403, "{host}");
        assert!(!reply.body.contains("tenant"));
    }
    let absolute = "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(running.send(absolute).status, 403);
    assert_eq!(running.source.snapshots.load(Ordering::SeqCst), 0);
    assert_eq!(running.send("GET /metrics HTTP/1.1\r\n\r\n").status, 400);
    for host in ["localhost:1", "127.0.0.1", "[::1]:9464", "metrics.internal"] {
        assert_eq!(get(host).status, 200, "{host}");
    }
}

#[test]
fn what_is_pipelined_is_not_answered() {
    let running = start(Stub::default(), Config::default());
    let request = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let reply = running.send(&format!("{request}{request}\0\u{1}garbage"));
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (200, "Heapwarden is running.\n")
    );
}

#[test]
fn garbage_is_a_bad_request_at_once() {
    let running = start(Stub::default(), patient());
    let began = Instant::now();
    let mut stream = running.connect();
    stream
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .unwrap();
    assert_eq!(reply(&mut stream).unwrap().status, 400);
    within(Duration::from_secs(10), began);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let running = start(voluble(), hasty());
    let mut deaf = running.connect();
    let request = b"GET /api/v1/accounts HTTP/1.1\r\nHost: localhost\r\n\r\n";
    deaf.write_all(request).unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        assert_eq!(running.get("/-/healthy").status, 200);
        std::thread::sleep(Duration::from_millis(50));
    }
    // The bytes that the kernel had taken are still there; the rest never comes.
    let whole = running.get("/api/v1/accounts").body.len();
    let mut received = Vec::new();
    let _ = deaf.read_to_end(&mut received);
    assert!(received.len() < whole, "{} of {whole}", received.len());
}

#[test]
fn a_lasting_crowd_is_turned_away_and_leaves_no_trace() {
    let mut config = patient();
    config.limits.crowded_request_time = Duration::from_secs(3600);
    let running = start(Stub::default(), config);
    let crowd: Vec<_> = (0..8).map(|_| running.connect()).collect();
    std::thread::sleep(Duration::from_millis(400));
    for _ in 0..40 {
        let reply = running.get("/-/healthy");
        assert_eq!(reply.status, 503);
        assert!(reply.head.contains("\r\nRetry-After: 1\r\n"));
    }
    drop(crowd);
    let metrics = running.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .body
            .contains("\nheapwarden_http_responses_total{code=\"503\"} 40\n")
    );
}

#[test]
fn clients_that_send_no_request_make_room_for_those_that_do() {
    let running = start(Stub::default(), patient());
    let connect = || {
        let mut client = running.connect();
        client.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
        client
    };
    let mut crowd: Vec<_> = (0..100).map(|_| connect()).collect();
    for _ in 0..3 {
        assert_eq!(running.get("/-/healthy").status, 200);
        crowd.extend((0..20).map(|_| connect()));
    }
    let told = reply(&mut crowd[0]).unwrap();
    assert_eq!(told.status, 503, "and they are told");
}

#[test]
fn slow_readers_cannot_pile_up_responses() {
    let mut config = Config::default();
    config.limits.pending_bytes = 1024 * 1024;
    let running = start(voluble(), config);
    let request = b"GET /api/v1/accounts HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let deaf: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = running.connect();
            stream.write_all(request).unwrap();
            stream
        })
        .collect();
    // The first to be served holds more than the budget, so the last was refused.
    assert_eq!(running.get("/api/v1/accounts").status, 503);
    assert_eq!(running.source.snapshots.load(Ordering::SeqCst), 1);
    drop(deaf);
}
