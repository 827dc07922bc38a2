//! Starting, stopping, and ports that are busy.

use std::net::TcpListener;
use std::sync::mpsc;

use super::super::retry::{self, Bound, PortTaken};
use super::*;

#[test]
fn dropping_the_handle_frees_the_port_at_once() {
    let running = start(Stub::default(), patient());
    assert_eq!(running.get("/").status, 200);
    let idle = running.connect();
    let began = Instant::now();
    drop(running.handle);
    // Stopping is immediate; the second is for a machine that is busy with other tests.
    within(Duration::from_secs(1), began);
    drop(idle);
    TcpListener::bind(running.address).unwrap();
}

#[test]
fn stopping_does_not_wait_for_a_slow_snapshot() {
    let running = start(
        Stub {
            takes: Duration::from_secs(2),
            ..Stub::default()
        },
        Config::default(),
    );
    let mut stream = running.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    while running.source.snapshots.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    drop(running.handle);
    within(Duration::from_millis(1000), began);
}

#[test]
fn the_listener_s_thread_has_its_name() {
    let running = start(Stub::default(), Config::default());
    assert_eq!(running.get("/").status, 200);
    let names = std::fs::read_dir("/proc/self/task").unwrap().map(|task| {
        // A thread of another test can end in between.
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
    });
    assert!(names.into_iter().any(|name| name == "heapwarden-http\n"));
}

#[test]
fn a_busy_port_is_bound_once_it_is_free() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let (bound, on_bound) = mpsc::channel();
    let handle = retry::spawn(
        address.to_string(),
        PortTaken::Wait,
        Config::default(),
        Arc::new(Stub::default()),
        move |found| bound.send(found).unwrap(),
    )
    .unwrap();
    let early = on_bound.recv_timeout(Duration::from_millis(300));
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
    drop(holder);
    let as_wanted = Bound {
        address,
        is_substitute: false,
    };
    assert_eq!(on_bound.recv_timeout(Duration::from_secs(5)), Ok(as_wanted));
    let running = Running {
        address,
        source: Arc::default(),
        handle,
    };
    assert_eq!(running.get("/-/healthy").status, 200);
}

#[test]
fn waiting_for_a_port_ends_with_the_handle() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let (bound, on_bound) = mpsc::channel();
    let handle = retry::spawn(
        holder.local_addr().unwrap().to_string(),
        PortTaken::Wait,
        Config::default(),
        Arc::new(Stub::default()),
        move |found| bound.send(found).unwrap(),
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    let began = Instant::now();
    drop(handle);
    within(Duration::from_secs(1), began);
    let never = on_bound.recv_timeout(Duration::from_secs(1));
    assert_eq!(never, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_panic_on_binding_does_not_stop_the_listener() {
    let (bound, on_bound) = mpsc::channel();
    let handle = retry::spawn(
        "127.0.0.1:0".to_owned(),
        PortTaken::Wait,
        Config::default(),
        Arc::new(Stub::default()),
        move |found| {
            bound.send(found).unwrap();
            panic!("on purpose");
        },
    )
    .unwrap();
    let running = Running {
        address: on_bound
            .recv_timeout(Duration::from_secs(5))
            .unwrap()
            .address,
        source: Arc::default(),
        handle,
    };
    assert_eq!(running.get("/-/healthy").status, 200);
}
