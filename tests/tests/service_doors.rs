//! Real servers: a service over its limit is turned away at its door. Requests are answered 503 (or 429) before the
//! service sees them, one at a time gets in, and the service works again once it has let go.
//!
//! Tomcat 9 and 10.1, Jetty 12 and WildFly 37 run on the oldest JDK found, Tomcat 11 and Spring Boot 3.5 (with
//! each of its three servers) on the newest. Others are in `further_servers`.

use heapwarden_tests::command;
use heapwarden_tests::door_client::{
    Client, FILLED_BYTES, FIRST_PAUSE_MS, HEAVY_PROBES, HOLD, INTERVAL, LIGHT, NEIGHBOUR,
    PERSISTENT, SHELF_JSP, STEP_BYTES, account, assert_door, assert_door_with, assert_turned_away,
    deploy_as, write_policy,
};
use heapwarden_tests::jdk::{Jdk, every_jdk, newest};
use heapwarden_tests::other_agent;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{self, Embedded, Prepared, deploy};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The shop and its neighbour in a server that takes archives from this folder.
fn assert_shop(site: Installation, prepared: Prepared, folder: &str, service: &str) {
    write_policy(&site, "enforce", &account(service, ""));
    let folder = prepared.base.join(folder);
    deploy_as("other.war", &folder);
    deploy("shop/shop.war", &folder);
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    assert_door(&server, "/shop/shelf", service, Some(NEIGHBOUR));
    server.finish();
}

fn assert_tomcat(jdk: &Jdk, name: &str) {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, jdk, name, INTERVAL);
    assert_shop(site, prepared, "webapps", "/shop");
}

/// Its servlets are those of before Jakarta.
#[test]
fn tomcat_9() {
    let site = Installation::new();
    let jdk = &every_jdk()[0];
    let prepared = server_setup::tomcat(&site, jdk, "apache-tomcat-9.0.117", INTERVAL);
    write_policy(&site, "enforce", &account("/shop", ""));
    for name in ["shop", "other"] {
        let folder = prepared.base.join("webapps").join(name);
        fs::create_dir(&folder).expect("writable");
        fs::write(folder.join("shelf.jsp"), SHELF_JSP).expect("writable");
    }
    let server = site.start(prepared.command, "/shop/shelf.jsp?do=gc");
    let neighbour = NEIGHBOUR.replace("/shelf?", "/shelf.jsp?");
    assert_door(&server, "/shop/shelf.jsp", "/shop", Some(&neighbour));
    server.finish();
}

#[test]
fn tomcat_10() {
    assert_tomcat(&every_jdk()[0], "apache-tomcat-10.1.44");
}

#[test]
fn tomcat_11() {
    assert_tomcat(newest(), "apache-tomcat-11.0.10");
}

/// Log4j's filter is a frame of every request, below which nothing is thrown: the door stops it all the same.
#[test]
fn behind_a_logging_filter() {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, &every_jdk()[0], "apache-tomcat-10.1.44", INTERVAL);
    write_policy(&site, "enforce", &account("/logged", ""));
    let webapps = prepared.base.join("webapps");
    deploy_as("other.war", &webapps);
    deploy("logged/logged.war", &webapps);
    let server = site.start(prepared.command, "/logged/shelf?do=gc");
    let frames = server.get("/logged/frames.jsp").expect("an answer").body;
    assert!(frames.contains("Log4jServletFilter"), "{frames}");
    assert_door(&server, "/logged/shelf", "/logged", Some(NEIGHBOUR));
    server.finish();
}

/// Without a door errors are thrown, though Log4j's filter is below every request.
#[test]
fn errors_pass_a_logging_filter() {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, &every_jdk()[0], "apache-tomcat-10.1.44", INTERVAL);
    let accounts = account("/logged", "door = \"off\"\nthrow = \"error\"");
    write_policy(&site, "enforce", &accounts);
    deploy("logged/logged.war", &prepared.base.join("webapps"));
    let server = site.start(prepared.command, "/logged/shelf?do=gc");
    let client = Client::new(&server, "/logged/shelf", "/logged");
    client.wait_until_refused();
    server.finish();
}

#[test]
fn jetty_12() {
    let site = Installation::new();
    let prepared = server_setup::jetty(&site, &every_jdk()[0], INTERVAL);
    assert_shop(site, prepared, "webapps", "/shop");
}

#[test]
fn wildfly_37() {
    let site = Installation::new();
    let prepared = server_setup::wildfly(&site, &every_jdk()[0], INTERVAL);
    assert_shop(site, prepared, "deployments", "shop.war");
}

fn assert_spring_boot(embedded: Embedded) {
    assert_spring_boot_with(503, embedded);
}

fn assert_spring_boot_with(status: u16, embedded: Embedded) {
    let site = Installation::new();
    let prepared = server_setup::spring_boot_in(&site, newest(), INTERVAL, embedded);
    let more = match status {
        503 => String::new(),
        _ => format!("status = {status}"),
    };
    write_policy(&site, "enforce", &account("corner-shop", &more));
    let server = site.start(prepared.command, "/shelf?do=gc");
    assert_door_with(status, &server, "/shelf", "corner-shop", None);
    server.finish();
}

#[test]
fn spring_boot_3() {
    assert_spring_boot(Embedded::Tomcat);
}

#[test]
fn spring_boot_3_with_jetty() {
    assert_spring_boot(Embedded::Jetty);
}

#[test]
fn spring_boot_3_with_undertow() {
    assert_spring_boot(Embedded::Undertow);
}

/// The account is the program's, and each request has a virtual thread.
#[test]
fn spring_boot_from_a_class_path_with_virtual_threads() {
    let site = Installation::new();
    let mut prepared =
        server_setup::spring_boot_from_a_class_path(&site, newest(), INTERVAL, Embedded::Tomcat);
    prepared
        .command
        .arg("--spring.threads.virtual.enabled=true");
    write_policy(&site, "enforce", &account("corner-shop", ""));
    let server = site.start(prepared.command, "/shelf?do=gc");
    assert_door(&server, "/shelf", "corner-shop", None);
    server.finish();
}

/// Jetty's own class loader of the application is the application's, too.
#[test]
fn spring_boot_from_a_class_path_with_jetty() {
    let site = Installation::new();
    let prepared = server_setup::spring_boot_from_a_class_path(
        &site,
        &every_jdk()[0],
        INTERVAL,
        Embedded::Jetty,
    );
    write_policy(&site, "enforce", &account("corner-shop", ""));
    let server = site.start(prepared.command, "/shelf?do=gc");
    assert_door(&server, "/shelf", "corner-shop", None);
    server.finish();
}

/// A Tomcat with the application under each of these paths.
fn tomcat_with(paths: &[&str], mode: &str, accounts: &str) -> Server {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, &every_jdk()[0], "apache-tomcat-10.1.44", INTERVAL);
    write_policy(&site, mode, accounts);
    for path in paths {
        let name = format!("{}.war", path.trim_start_matches('/'));
        deploy_as(&name, &prepared.base.join("webapps"));
    }
    // Tomcat deploys side by side, in no order.
    let server = site.start(prepared.command, &format!("{}/shelf?do=gc", paths[0]));
    for path in paths {
        let up = command::poll(Duration::from_secs(60), || {
            let answer = server.get(&format!("{path}/shelf?do=gc")).ok()?;
            (answer.status == 200).then_some(())
        });
        assert!(up.is_some(), "{path} is not up:\n{}", server.log());
    }
    server
}

/// Also, a client that comes again when `Retry-After` says gets in, after the longest pause too.
#[test]
fn the_policy_chooses_429_in_tomcat() {
    let accounts = account("/busy", "status = 429") + &account("/other", "");
    let server = tomcat_with(&["/busy", "/other"], "enforce", &accounts);
    assert_door_with(429, &server, "/busy/shelf", "/busy", Some(NEIGHBOUR));
    let mut client = Client::new(&server, "/busy/shelf", "/busy");
    client.status = 429;
    client.fill();
    client.persist(LIGHT, false);
    for _ in 0..HEAVY_PROBES {
        let answer = client.get(HOLD);
        if answer.status == 429 {
            thread::sleep(assert_turned_away(&answer));
            assert!(client.comes_in(HOLD), "{answer:?} {}", client.described());
        }
    }
    client.persist("do=drop", true);
    // The neighbour has a door of its own, which answers as by default.
    let mut neighbour = Client::new(&server, "/other/shelf", "/other");
    neighbour.fill();
    neighbour.persist(LIGHT, false);
    server.finish();
}

#[test]
fn the_policy_chooses_429_in_jetty() {
    assert_spring_boot_with(429, Embedded::Jetty);
}

#[test]
fn the_policy_chooses_429_in_undertow() {
    assert_spring_boot_with(429, Embedded::Undertow);
}

#[test]
fn what_the_policy_admits_always_comes_in() {
    let accounts = account("/listed", "admit = [\"GET /shelf\"]");
    let server = tomcat_with(&["/listed"], "enforce", &accounts);
    let mut client = Client::new(&server, "/listed/shelf", "/listed");
    client.wait_for_door();
    client.fill();
    client.wait_for("the door is shut", |account| account["door"] == "shut");
    for _ in 0..PERSISTENT {
        assert!(client.comes_in(LIGHT), "{}", client.described());
    }
    // Another path of the same application is not on the list.
    client.shelf = "/listed/page.jsp".to_owned();
    client.persist("length=16&count=1", false);
    client.shelf = "/listed/shelf".to_owned();
    assert!(client.comes_in("do=drop"), "{}", client.described());
    client.wait_for("the door is open", |account| account["door"] == "open");
    server.finish();
}

/// The JVM loads the code of all classes anew, that of the door's among them: no request slips in
/// meanwhile. After a probe the next request that comes in does so after a pause, so two that take
/// less than one, from the sending of the first to the answer of the second, have found no door.
#[test]
fn a_door_stays_shut_while_exact_accounts_are_switched() {
    const SWITCHES: usize = 4;
    let pause = Duration::from_millis(FIRST_PAUSE_MS);
    let accounts = account("/kept", "");
    let server = tomcat_with(&["/kept"], "enforce", &accounts);
    let mut client = Client::new(&server, "/kept/shelf", "/kept");
    client.wait_for_door();
    client.fill();
    client.persist(LIGHT, false);
    client.wait_for("the door is shut", |account| account["door"] == "shut");
    let plain = fs::read_to_string(server.policy()).expect("readable");
    // The latest request that came in, as it was sent: its pause begins later.
    let (mut slipped, mut asked, mut in_at) = (0, 0, None::<Instant>);
    for switch in 0..SWITCHES {
        let (text, done) = match switch % 2 {
            0 => (
                format!("{plain}\n[exact]\naccounts = true\n"),
                "loaded classes count their allocations",
            ),
            _ => (plain.clone(), "exact accounts are off"),
        };
        let told = server.log().matches(done).count();
        let least = asked + 100;
        fs::write(server.policy(), text).expect("writable");
        let switched = command::poll(Duration::from_secs(120), || {
            for _ in 0..50 {
                let at = Instant::now();
                asked += 1;
                if client.comes_in(LIGHT) {
                    slipped += u32::from(in_at.is_some_and(|last| last.elapsed() < pause));
                    in_at = Some(at);
                }
            }
            (asked >= least && server.log().matches(done).count() > told).then_some(())
        });
        assert!(switched.is_some(), "{}", server.log());
    }
    eprintln!("{asked} requests, {slipped} slipped in");
    // A policy that is put in force may begin the pauses anew.
    assert!(
        slipped <= SWITCHES as u32,
        "{slipped} of {asked}\n{}",
        server.log()
    );
    assert!(asked >= 400, "{asked}");
    let log = server.log();
    assert!(!log.contains("another agent has changed"), "{log}");
    assert_eq!(
        server.accounts().find("/kept").expect("listed")["door"],
        "shut"
    );
    client.persist("do=drop", true);
    client.wait_for("the door is open", |account| account["door"] == "open");
    server.finish();
}

/// Requests come in, and the errors of a limit are thrown as ever. Of the kinds of errors, Tomcat answers
/// this one 500.
#[test]
fn without_a_door_errors_are_thrown() {
    let accounts = account("/off", "door = \"off\"\nthrow = \"error\"");
    let server = tomcat_with(&["/off"], "enforce", &accounts);
    let client = Client::new(&server, "/off/shelf", "/off");
    client.wait_until_refused();
    client.wait_for("there is no door", |account| {
        account["door"] == "none" && account["admission_refusals_total"] == 0
    });
    server.finish();
}

#[test]
fn observation_turns_nobody_away() {
    let server = tomcat_with(&["/seen"], "observe", &account("/seen", ""));
    let mut client = Client::new(&server, "/seen/shelf", "/seen");
    client.fill();
    client.wait_for("it is over its limit", |account| account["state"] == "over");
    for _ in 0..PERSISTENT {
        assert!(client.comes_in(LIGHT), "{}", client.described());
    }
    client.wait_for("nothing is counted", |account| {
        account["admission_refusals_total"] == 0
    });
    server.finish();
}

/// Tracers, profilers and debuggers transform loaded classes afresh. That takes out whatever is not inserted anew.
#[test]
fn another_agent_does_not_take_the_door_out() {
    let server = tomcat_with(&["/shop"], "enforce", &account("/shop", ""));
    Client::new(&server, "/shop/shelf", "/shop").wait_for_door();
    other_agent::transform_afresh(
        server.id(),
        &["org.apache.catalina.core.StandardContextValve"],
    );
    assert!(server.log().contains("transformed afresh: org.apache"));
    assert_door(&server, "/shop/shelf", "/shop", None);
    let told = "another agent has changed the class in which Tomcat has its door";
    assert!(server.log().contains(told), "{}", server.log());
    server.finish();
}

#[test]
fn no_request_waits_at_a_door_whatever_is_not_known_yet() {
    // There is hardly a verdict: the budget is used up at once.
    let mode = "enforce\"\nevidence-budget = \"0.01%";
    let server = tomcat_with(&["/slow", "/other"], mode, &account("/slow", ""));
    let mut client = Client::new(&server, "/slow/shelf", "/slow");
    client.wait_for_door();
    let mut was_suspect = false;
    for _ in 0..2 * FILLED_BYTES / STEP_BYTES {
        if !client.comes_in(HOLD) {
            break;
        }
        let accounts = server.accounts();
        let slow = accounts.find("/slow").expect("it is listed");
        was_suspect |= slow["state"] == "suspect";
        server.ask(NEIGHBOUR);
    }
    // The published state may be a quarter of a second old: a verdict that comes sooner is seen by its answer alone.
    assert!(
        was_suspect || client.turned_away > 0,
        "{}",
        client.described()
    );
    let waited = server
        .metrics()
        .sum("heapwarden_account_wait_seconds_total");
    assert_eq!(waited, 0.0, "{}", client.described());
    server.finish();
}
