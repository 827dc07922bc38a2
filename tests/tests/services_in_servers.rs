//! Real servers: a deployed application has an account with its name, without configuration, and the account
//! holds what the application holds.
//!
//! Each server runs once, on one JDK that it supports: Tomcat 10.1, Jetty 12 and WildFly 37 on the
//! oldest found, Tomcat 11 and Spring Boot 3.5 on the newest, as an executable jar and from a class path.

use heapwarden_tests::jdk::{Jdk, every_jdk, newest};
use heapwarden_tests::scrape::Holding;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{self, Embedded, deploy};
use heapwarden_tests::stats;

const INTERVAL: &str = "8KiB";
const LENGTH: u64 = 1_000;
const COUNT: u64 = 40_000;
/// Bytes of [`COUNT`] arrays of [`LENGTH`] and of the array that refers to them: a 16-byte header
/// and 4-byte references, as a heap of 512 MiB has them.
const TRUTH_BYTES: u64 = COUNT * (16 + LENGTH) + 16 + 4 * COUNT;

/// Batches held over each path.
const BATCHES: usize = 3;
/// Comparisons of a whole run: two paths of each Tomcat, one of each other server.
const COMPARISONS: usize = 8 * BATCHES;

/// How many standard errors of the difference lie between what came to the account and the truth.
fn z_score(before: Holding, after: Holding) -> f64 {
    let came = after.live_bytes - before.live_bytes;
    let variance = after.standard_error_bytes.powi(2) - before.standard_error_bytes.powi(2);
    (came - TRUTH_BYTES as f64) / variance.sqrt()
}

/// Lets the application at `base` hold the batch several times over `holding` paths and checks the
/// account: no batch may be further from the truth than chance explains among all of a run, and
/// their mean is unbiased.
///
/// Returns the account as it was before.
fn assert_held(server: &Server, base: &str, account: &str, holding: &str) -> Holding {
    let order = format!("{base}{holding}length={LENGTH}&count={COUNT}");
    let small = format!("{base}{holding}length=16&count=1");
    let collect = format!("{base}/shelf?do=gc");
    // Loads and compiles what the request needs before the account is read.
    for _ in 0..20 {
        server.ask(&small);
    }
    let first = server.settled(&collect, account);
    let mut before = first;
    let scores: Vec<f64> = (0..BATCHES)
        .map(|_| {
            server.ask(&order);
            let after = server.settled(&collect, account);
            let z = z_score(before, after);
            before = after;
            z
        })
        .collect();
    eprintln!("{account} {holding}: {scores:+.2?} standard errors");
    let (mean, _) = stats::mean_and_deviation(&scores);
    let outermost = stats::outermost(COMPARISONS);
    assert!(
        scores.iter().all(|z| z.abs() <= outermost) && mean.abs() <= stats::mean_bound(BATCHES),
        "{account} by {holding}: {scores:+.2?} standard errors: {first:?} {before:?} {}\n{}",
        server.accounts().brief(),
        server.log()
    );
    first
}

/// The held batches are let go, and the account is back where it was, but for a tenth of the batch that
/// the requests may have left elsewhere in the server.
fn assert_let_go(server: &Server, base: &str, account: &str, before: Holding) {
    server.ask(&format!("{base}/shelf?do=drop"));
    let after = server.settled(&format!("{base}/shelf?do=gc"), account);
    assert!(
        (after.live_bytes - before.live_bytes).abs() < TRUTH_BYTES as f64 / 10.0,
        "{account} after the drop: {after:?}, before: {before:?}"
    );
}

fn assert_tomcat(jdk: &Jdk, name: &str) {
    let site = Installation::new();
    let prepared = server_setup::tomcat(&site, jdk, name, INTERVAL);
    deploy("shop/shop.war", &prepared.base.join("webapps"));
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    assert_held(&server, "/shop", "/shop", "/shelf?do=hold&");
    // The JSP has a class loader of its own below the application's.
    assert_held(&server, "/shop", "/shop", "/page.jsp?");
    let accounts = server.accounts();
    assert_eq!(accounts.find("/shop").expect("listed")["kind"], "service");
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

#[test]
fn jetty_12() {
    let site = Installation::new();
    let prepared = server_setup::jetty(&site, &every_jdk()[0], INTERVAL);
    deploy("shop/shop.war", &prepared.base.join("webapps"));
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    let before = assert_held(&server, "/shop", "/shop", "/shelf?do=hold&");
    assert_let_go(&server, "/shop", "/shop", before);
    server.finish();
}

#[test]
fn wildfly_37() {
    let site = Installation::new();
    let prepared = server_setup::wildfly(&site, &every_jdk()[0], INTERVAL);
    deploy("shop/shop.war", &prepared.base.join("deployments"));
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    let before = assert_held(&server, "/shop", "shop.war", "/shelf?do=hold&");
    assert_let_go(&server, "/shop", "shop.war", before);
    server.finish();
}

#[test]
fn spring_boot_3() {
    let site = Installation::new();
    let prepared = server_setup::spring_boot(&site, newest(), INTERVAL);
    let server = site.start(prepared.command, "/shelf?do=gc");
    let before = assert_held(&server, "", "corner-shop", "/shelf?do=hold&");
    assert_let_go(&server, "", "corner-shop", before);
    server.finish();
}

/// The application's classes and libraries are on the class path, and its program's account and that of the
/// embedded Tomcat's loader are one.
#[test]
fn spring_boot_3_from_a_class_path() {
    let site = Installation::new();
    let prepared =
        server_setup::spring_boot_from_a_class_path(&site, newest(), INTERVAL, Embedded::Tomcat);
    let server = site.start(prepared.command, "/shelf?do=gc");
    let before = assert_held(&server, "", "corner-shop", "/shelf?do=hold&");
    let accounts = server.accounts();
    let services = accounts
        .list()
        .iter()
        .filter(|account| account["kind"] == "service");
    let names: Vec<_> = services.map(|account| account["name"].clone()).collect();
    assert_eq!(names, ["corner-shop"], "{}", accounts.brief());
    assert!(before.live_bytes > 4e6, "the framework's own: {before:?}");
    assert_let_go(&server, "", "corner-shop", before);
    server.finish();
}
