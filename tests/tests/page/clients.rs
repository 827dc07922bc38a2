//! Whatever clients try, the agent answers the good ones, gives no other file, and has one HTTP thread.

use heapwarden_harness::proc_files;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::raw_http;

/// Clients that send an unfinished request and keep their connection.
const SLOW_CLIENTS: usize = 200;
/// How often the good client asks meanwhile.
const ASKED: usize = 5;

fn send(agent: SocketAddr, head: &str) -> std::io::Result<u16> {
    raw_http::exchange(agent, &format!("{head}\r\n\r\n")).map(|answer| answer.status)
}

/// Requests that change something or ask for other files, and what they get.
fn refused(agent: SocketAddr) -> Vec<(String, u16)> {
    let host = format!("Host: {agent}");
    let mut all = vec![
        ("GET / HTTP/1.1\r\nHost: evil.example".to_owned(), 403),
        ("GET / HTTP/1.1".to_owned(), 400),
    ];
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/", "/api/v1/accounts", "/api/v1/snapshot"] {
            all.push((format!("{method} {path} HTTP/1.1\r\n{host}"), 405));
        }
    }
    for path in [
        "/page/../../etc/passwd",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/page//etc/passwd",
        "/../../../../etc/passwd",
        "/page/0123456789abcdef/..%2fmain.js",
        "/api/v1/snapshots/..%2f..%2fetc%2fpasswd",
        "/api/v1/snapshots/../accounts",
        "/api/v1/snapshots/%00",
    ] {
        all.push((format!("GET {path} HTTP/1.1\r\n{host}"), 404));
    }
    all
}

fn http_threads(process: u32) -> usize {
    let names = proc_files::threads(process, "comm").into_iter();
    names.filter(|name| name == "heapwarden-http").count()
}

/// Keeps as many unfinished requests open as there are slow clients until `done`: a connection that the agent ends
/// is opened again, as such a client would. `opened` counts them.
fn besiege(agent: SocketAddr, opened: &AtomicUsize, done: &AtomicBool) {
    let connect = || {
        let mut client = TcpStream::connect_timeout(&agent, Duration::from_millis(200)).ok()?;
        (client.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")).ok()?;
        client.set_nonblocking(true).ok()?;
        opened.fetch_add(1, Ordering::Relaxed);
        Some(client)
    };
    let mut clients: Vec<Option<TcpStream>> = (0..SLOW_CLIENTS).map(|_| None).collect();
    while !done.load(Ordering::Relaxed) {
        for client in &mut clients {
            // One more byte of a header that never ends; it fails once the agent has closed.
            let lives = (client.as_mut()).is_some_and(|client| client.write(b"x").is_ok());
            if !lives {
                *client = connect();
            }
            if done.load(Ordering::Relaxed) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_hundred_slow_clients_change_nothing_for_a_good_one() {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.Holder")
        .argument("com.acme.orders")
        .start();
    let agent = jvm.address();
    for (head, status) in refused(agent) {
        assert_eq!(send(agent, &head).ok(), Some(status), "{head}");
    }
    let good = format!("GET /api/v1/accounts HTTP/1.1\r\nHost: {agent}");
    let (opened, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| besiege(agent, &opened, &done));
        let so_many = |count: usize| {
            poll(PATIENCE, || {
                (opened.load(Ordering::Relaxed) >= count).then_some(())
            })
        };
        let are_there = so_many(SLOW_CLIENTS).is_some();
        // The good client asks again when all places are taken, as a scraper does. It must come through while
        // the others are there, time and again.
        let mut answered = 0;
        for asked in 1..=ASKED {
            jvm.ask("churn com.acme.orders bytes:1000*1000");
            let came = poll(PATIENCE, || {
                (send(agent, &good).ok() == Some(200)).then_some(())
            });
            answered += usize::from(came.is_some());
            // They are still coming.
            let before = opened.load(Ordering::Relaxed);
            if asked < ASKED && so_many(before + 1).is_none() {
                break;
            }
        }
        let threads = http_threads(jvm.id());
        done.store(true, Ordering::Relaxed);
        assert!(are_there, "so many slow clients come");
        assert_eq!(answered, ASKED, "the good client is answered meanwhile");
        assert_eq!(threads, 1, "one thread serves all");
    });
    for (head, status) in refused(agent) {
        // The last of the slow ones may not have gone yet.
        let got = poll(PATIENCE, || {
            let got = send(agent, &head).ok();
            (got == Some(status)).then_some(())
        });
        assert!(got.is_some(), "after it: {head}");
    }
    jvm.finish();
}
