//! Web applications that use the Java API, on real servers: with a copy of it in each WAR, and with
//! one in the server's common loader. Scopes have effect in each, each catches the errors that it
//! knows by name, and none is kept in memory when it is undeployed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use heapwarden_tests::command::poll;
use heapwarden_tests::java::api_classes;
use heapwarden_tests::jdk::{every_jdk, newest};
use heapwarden_tests::server::{Installation, Server, installed};
use heapwarden_tests::server_setup::{self, Prepared};
use heapwarden_tests::stats;

const INTERVAL: &str = "8KiB";
const LENGTH: u64 = 1_000;
const COUNT: u64 = 40_000;
/// Applications whose tenants are compared with the truth.
const COMPARISONS: usize = 5;
/// Arrays of bytes have headers of 16 bytes.
const TRUTH_BYTES: u64 = COUNT * (16 + LENGTH);
/// Longest that a server may take on a busy machine to notice that an application's folder is gone.
const SOON: Duration = Duration::from_secs(120);

/// The application's class, compiled against Tomcat's servlet API; once, for each time writes the same
/// files, which the other test may be copying.
fn code() -> &'static Path {
    static CODE: LazyLock<PathBuf> = LazyLock::new(|| {
        let servlets = installed().join("apache-tomcat-10.1.44/lib/servlet-api.jar");
        api_classes().compiled_with("webapps", &servlets)
    });
    &CODE
}

/// Deploys the application as a folder; `copy` tells whether it has the API inside.
fn deploy(webapps: &Path, name: &str, copy: bool) {
    let inside = webapps.join(name).join("WEB-INF");
    let classes = inside.join("classes/tenants");
    fs::create_dir_all(&classes).expect("writable");
    for class in fs::read_dir(code().join("tenants")).expect("compiled") {
        let class = class.expect("readable");
        fs::copy(class.path(), classes.join(class.file_name())).expect("writable");
    }
    if copy {
        fs::create_dir_all(inside.join("lib")).expect("writable");
        fs::copy(&api_classes().api, inside.join("lib/heapwarden-api.jar")).expect("writable");
    }
}

fn policy(site: &Installation) {
    let text = format!(
        "[sampling]\ninterval = \"{INTERVAL}\"\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n\n\
         [[account]]\nscope = \"hog\"\nlimit = \"48MiB\"\n"
    );
    fs::write(site.folder().join("heapwarden.toml"), text).expect("writable");
}

/// A tenant of the application holds what it is charged, and another is refused.
fn assert_tenants(server: &Server, application: &str, class: &str) {
    let path = format!("/{application}/tenants");
    let account = format!("/{application}/tenant-1");
    let hold = |length, count| {
        server.ask(&format!(
            "{path}?do=hold&scope=tenant-1&length={length}&count={count}"
        ));
    };
    for _ in 0..20 {
        hold(16, 1);
    }
    let collect = format!("{path}?do=gc");
    let before = server.settled(&collect, &account);
    hold(LENGTH, COUNT);
    let after = server.settled(&collect, &account);
    let came = after.live_bytes - before.live_bytes;
    let variance = after.standard_error_bytes.powi(2) - before.standard_error_bytes.powi(2);
    let z = (came - TRUTH_BYTES as f64) / variance.sqrt();
    eprintln!("{account}: {z:+.2} standard errors");
    assert!(
        z.abs() <= stats::outermost(COMPARISONS),
        "{account}: {came} of {TRUTH_BYTES} {}\n{}",
        server.accounts().brief(),
        server.log()
    );
    let accounts = server.accounts();
    let tenant = accounts.find(&account).expect("listed");
    assert_eq!(tenant["kind"], "scope");
    assert_eq!(tenant["parent"], format!("/{application}"));
    let leaked = server.get(&format!("{path}?do=leak&scope=hog"));
    let leaked = leaked.expect("an answer").body;
    assert_eq!(
        leaked.trim(),
        format!("done, refused /{application}/hog by the {class} class"),
        "{}",
        server.log()
    );
}

/// The application's folder is taken away: what a static field of it held goes, so its class and
/// loader have gone. What the server and the JDK have made for its requests and keep may stay.
fn assert_unloaded(server: &Server, webapps: &Path, application: &str, collect: &str) {
    fs::remove_dir_all(webapps.join(application)).expect("it was deployed");
    let account = format!("/{application}");
    let ended = poll(SOON, || {
        server.ask(collect);
        std::thread::sleep(Duration::from_millis(500));
        let accounts = server.accounts();
        let tenant = format!("{account}/tenant-1");
        let kept = [&account, &tenant].map(|name| accounts.holding(name).live_bytes);
        (kept.iter().sum::<f64>() < TRUTH_BYTES as f64 / 20.0).then_some(())
    });
    assert!(
        ended.is_some(),
        "{account} is still there: {}\n{}",
        server.accounts().brief(),
        server.log()
    );
}

#[test]
fn tomcat_has_copies_in_two_wars_and_one_in_its_common_loader() {
    let site = Installation::new();
    let Prepared { command, base } =
        server_setup::tomcat(&site, newest(), "apache-tomcat-11.0.10", INTERVAL);
    policy(&site);
    let webapps = base.join("webapps");
    fs::copy(&api_classes().api, base.join("lib/heapwarden-api.jar")).expect("writable");
    deploy(&webapps, "alpha", true);
    deploy(&webapps, "beta", true);
    deploy(&webapps, "gamma", false);
    let server = site.start(command, "/gamma/tenants?do=gc");
    assert_tenants(&server, "alpha", "own");
    assert_tenants(&server, "beta", "own");
    assert_tenants(&server, "gamma", "boot");
    assert_unloaded(&server, &webapps, "alpha", "/beta/tenants?do=gc");
    assert_unloaded(&server, &webapps, "gamma", "/beta/tenants?do=gc");
    let log = server.finish();
    for complaint in ["memory leak", "failed to remove it"] {
        assert!(!log.contains(complaint), "{complaint}:\n{log}");
    }
}

#[test]
fn jetty_has_a_copy_in_a_war() {
    let site = Installation::new();
    let Prepared { mut command, base } = server_setup::jetty(&site, &every_jdk()[0], INTERVAL);
    // It looks for applications that were taken away only if it is told to.
    command.arg("jetty.deploy.scanInterval=1");
    policy(&site);
    let webapps = base.join("webapps");
    deploy(&webapps, "alpha", true);
    deploy(&webapps, "beta", true);
    let server = site.start(command, "/beta/tenants?do=gc");
    assert_tenants(&server, "alpha", "own");
    assert_tenants(&server, "beta", "own");
    assert_unloaded(&server, &webapps, "alpha", "/beta/tenants?do=gc");
    server.finish();
}
