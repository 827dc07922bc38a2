//! The picture of the README.

use std::fs;
use std::time::Duration;

use heapwarden_tests::browser::Browser;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::newest;
use heapwarden_tests::scrape;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{deploy, tomcat};
use serde_json::Value;

use crate::{assert_sound, show};

/// Services of which one leaks, for as long as it takes to be suspected.
fn leaking() -> Server {
    let site = Installation::new();
    let prepared = tomcat(&site, newest(), "apache-tomcat-11.0.10", "64KiB");
    let policy = "[leaks]\nsites = [\"shop\"]\n\
        [[account]]\nname = \"shop\"\nservice = \"/shop\"\nsoft-limit = \"48MiB\"\nlimit = \"128MiB\"\n\
        [[account]]\nservice = \"*\"\nlimit = \"25%\"\n";
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("the folder is writable");
    let webapps = prepared.base.join("webapps");
    deploy("shop/shop.war", &webapps);
    for other in ["search.war", "billing.war"] {
        fs::copy(webapps.join("shop.war"), webapps.join(other)).expect("the folder is writable");
    }
    let server = site.start(prepared.command, "/shop/shelf?do=gc");
    for (service, bytes) in [("search", 46_000_000), ("billing", 21_000_000)] {
        let path = format!("/{service}/shelf?do=level&bytes={bytes}");
        assert!(
            poll(PATIENCE, || server
                .get(&path)
                .ok()
                .filter(|answer| answer.status == 200))
            .is_some()
        );
    }
    server
}

/// `cargo xtask picture` takes the picture of the README with this. It lasts until a leak is suspected, some
/// minutes, so it is no part of the default run.
#[test]
#[ignore = "takes minutes: cargo xtask picture"]
fn picture_of_a_leak() {
    let server = leaking();
    let own = format!("http://{}", server.agent());
    let browser = Browser::start();
    browser.prefer("light");
    browser.resize(1200, 1000);
    show(&browser, &format!("{own}/"), "Overview");
    let mut rounds = 0;
    let suspected = poll(Duration::from_secs(420), || {
        rounds += 1;
        server.ask("/shop/shelf?do=hold&length=10000&count=20");
        if rounds % 12 == 0 {
            server.ask("/shop/shelf?do=gc");
        }
        std::thread::sleep(Duration::from_millis(350));
        let answer = scrape::get(server.agent(), "/api/v1/leaks");
        let leaks: Value = serde_json::from_str(&answer.body).expect("it is JSON");
        let suspects = leaks["suspects"].as_array()?;
        suspects
            .iter()
            .any(|one| one["account"] == "shop")
            .then_some(())
    });
    assert!(
        suspected.is_some(),
        "nothing is suspected:\n{}",
        server.log()
    );
    browser.until("return document.querySelector('[data-finding=leak-suspected]') !== null");
    let picture = browser.picture();
    show(&browser, &format!("{own}/#/account/shop"), "Account shop");
    browser.until("return document.querySelector('.suspect .sites li') !== null");
    assert_sound(&browser, &own, "account with a suspect");
    if let Some(path) = std::env::var_os("HEAPWARDEN_TEST_PICTURE") {
        fs::write(path, picture).expect("the picture can be written");
    }
    drop(browser);
    server.finish();
}
