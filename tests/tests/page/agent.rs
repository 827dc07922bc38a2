//! The page of an agent, view by view, on a Tomcat whose shop leaks.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use heapwarden_tests::browser::Browser;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::newest;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{deploy, tomcat};
use heapwarden_tests::{artifacts, command, scrape};
use serde_json::{Value, json};

use crate::{account, assert_difference, assert_shown, assert_sound, show, ui};

/// A Tomcat whose shop holds more than its limit. The mode is `observe`, so it lives on.
fn over_limit() -> Server {
    let site = Installation::new();
    let prepared = tomcat(&site, newest(), "apache-tomcat-11.0.10", "16KiB");
    let snapshots = site.folder().join("snapshots");
    fs::create_dir(&snapshots).expect("the folder is writable");
    let policy = format!(
        "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\
         [snapshots]\ndirectory = \"{}\"\nevery = \"5s\"\nkeep = 500\n\
         [leaks]\nsites = [\"shop\"]\n\
         [[account]]\nname = \"shop\"\nservice = \"/shop\"\nsoft-limit = \"4MiB\"\nlimit = \"8MiB\"\n\
         [[account]]\nname = \"<img src=x onerror=window.hostile=1>\"\npackages = [\"org.apache.catalina.*\"]\n",
        snapshots.display()
    );
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("the folder is writable");
    deploy("shop/shop.war", &prepared.base.join("webapps"));
    site.start(prepared.command, "/shop/shelf?do=gc")
}

#[test]
fn the_page_of_an_agent_shows_what_it_publishes() {
    let server = over_limit();
    let agent = server.agent();
    let own = format!("http://{agent}");
    server.ask("/shop/shelf?do=hold&length=20000&count=700");
    server.settled("/shop/shelf?do=gc", "shop");
    let browser = Browser::start();
    browser.resize(1400, 900);

    show(&browser, &format!("{own}/"), "Overview");
    let row = "const row = document.querySelector('tr[data-key=\"shop\"]'); if (!row) return null; \
        const live = row.querySelectorAll('data')[0]; \
        return [Number(live.value), Number(live.dataset.error), row.querySelector('.badge').textContent]";
    assert_shown(
        &browser,
        agent,
        "the shop in the overview",
        row,
        |document| {
            let shop = account(document, "shop");
            json!([
                shop["live_bytes"],
                shop["live_standard_error_bytes"],
                shop["state"]
            ])
        },
    );
    browser.until(
        "return document.querySelector('[data-finding=over-limit] a')?.textContent === 'shop'",
    );
    browser.until("return document.querySelector('.chart polygon') !== null");
    assert_refusals_told(&browser, &server);
    assert_rests(&browser);
    assert_sound(&browser, &own, "overview");

    // By the keyboard alone: into the filter, and from the account's link into its view.
    browser.value("document.body.focus(); return null");
    browser.press(&['/', 's', 'h', 'o', 'p']);
    browser.until("return document.querySelectorAll('.data tbody tr[data-key]').length === 1");
    browser.value("document.querySelector('tr[data-key=\"shop\"] a').focus(); return null");
    browser.press(&['\u{e007}']);
    browser.until("return document.querySelector('h1').textContent === 'Account shop' && document.querySelector('.data tbody tr[data-key]') !== null");
    let classes = "return [...document.querySelectorAll('.data tbody tr[data-key]')].slice(0, 5)\
        .map(row => [row.dataset.key, ...[...row.querySelectorAll('data')].slice(0, 2).map(one => Number(one.value))])";
    assert_shown(&browser, agent, "the shop's classes", classes, |document| {
        let mut rows: Vec<&Value> = account(document, "shop")["classes"]
            .as_array()
            .expect("a list")
            .iter()
            .collect();
        rows.sort_by_key(|one| std::cmp::Reverse(one["live_bytes"].as_u64()));
        let cells = |one: &&Value| json!([one["class"], one["live_bytes"], one["live_objects"]]);
        rows.iter().take(5).map(cells).collect()
    });
    let total = "return [...document.querySelectorAll('[data-term=\"Live\"] data, [data-term=\"Errors that would have been thrown\"] data')].map(one => Number(one.value))";
    assert_shown(&browser, agent, "the shop's figures", total, |document| {
        let shop = account(document, "shop");
        json!([shop["live_bytes"], shop["would_refuse_total"]])
    });
    assert_sound(&browser, &own, "account");

    show(
        &browser,
        &format!("{own}/#/class/shop/byte%5B%5D"),
        "Class byte[]",
    );
    let sizes = "return [...document.querySelectorAll('table[aria-label=Sizes] tbody tr')].map(row => Number(row.querySelector('data').value))";
    assert_shown(&browser, agent, "sizes of byte[]", sizes, |document| {
        let classes = account(document, "shop")["classes"]
            .as_array()
            .expect("a list");
        let bytes = classes
            .iter()
            .find(|one| one["class"] == "byte[]")
            .expect("held");
        bytes["sizes"]
            .as_array()
            .expect("bins")
            .iter()
            .map(|bin| bin["live_bytes"].clone())
            .collect()
    });
    assert_sound(&browser, &own, "class");

    // Stacks are taken since the policy was in force, so of what is held from now on.
    server.ask("/shop/shelf?do=hold&length=20000&count=300");
    server.settled("/shop/shelf?do=gc", "shop");
    show(&browser, &format!("{own}/#/flames?account=shop"), "Flames");
    // The icicle and the table of places, seen at once: a reading may come between two looks.
    browser.until("const all = document.querySelector('[data-path=\"0\"]'); const places = [...document.querySelectorAll('.data tbody tr[data-key]')].reduce((sum, row) => sum + Number(row.querySelector('data').value), 0); return all && Number(all.dataset.value) > 0 && Number(all.dataset.value) === places");
    browser.value("const find = document.getElementById('find'); find.value = 'Shelf'; find.dispatchEvent(new Event('input')); return null");
    browser.until("return document.querySelector('.frame.match') !== null");
    browser.value("document.querySelector('[data-path=\"0\"]').focus(); return null");
    browser.press(&['\u{e015}', '\u{e007}']);
    browser.until("return document.querySelector('[data-path=\"0\"]').textContent.startsWith('all') === false");
    assert_sound(&browser, &own, "flames");
    assert_sample_types(&browser, &server);

    files_on_disk(&server);
    show(&browser, &format!("{own}/#/history"), "History");
    browser.until(
        "return document.querySelectorAll('table[aria-label=\"Snapshots on disk\"] tbody tr').length > 1",
    );
    for taken in 1..=2 {
        browser.value("[...document.querySelectorAll('button')].find(one => one.textContent.startsWith('Take')).click(); return null");
        browser.until(&format!(
            "return document.querySelectorAll('#older option[value^=\"taken \"]').length === {taken}"
        ));
        server.ask("/shop/shelf?do=hold&length=20000&count=100");
        server.settled("/shop/shelf?do=gc", "shop");
    }
    browser.value("[...document.querySelectorAll('button')].find(one => one.textContent === 'Compare').click(); return null");
    browser.until("return document.querySelector('table[aria-label=\"Changes by account\"] tbody tr') !== null && document.body.innerText.includes('what both hold cancels')");
    assert_sound(&browser, &own, "history");
    assert_files_on_disk(&browser, &server);

    assert_report(&browser, &server);
    assert_ui(&browser, &server);
    drop(browser);
    server.finish();
}

/// The fields of the four sample types in a document, and of their errors.
const SAMPLE_TYPES: [(&str, Option<&str>); 4] = [
    ("live_bytes", Some("live_standard_error_bytes")),
    ("objects", None),
    ("allocated_bytes", Some("allocated_standard_error_bytes")),
    ("allocated_objects", None),
];

/// Flames by each sample type have the figures of the document, and so has the difference of two snapshots.
fn assert_sample_types(browser: &Browser, server: &Server) {
    let own = format!("http://{}", server.agent());
    let shown = "return [...document.querySelectorAll('.data tbody tr[data-key]')].map(row => { const figure = row.querySelector('data'); return [row.querySelector('bdi').textContent, Number(figure.value), Number(figure.dataset.error ?? -1)]; }).sort()";
    for (field, error) in SAMPLE_TYPES {
        let address = format!("{own}/#/flames?account=shop&class=byte%5B%5D&type={field}");
        show(browser, &address, "Flames");
        let mut last = (Value::Null, Value::Null);
        let equal = poll(PATIENCE, || {
            let answer = scrape::get(server.agent(), "/api/v1/sites");
            let document: Value = serde_json::from_str(&answer.body).expect("it is JSON");
            last = (browser.value(shown), places(&document, field, error));
            (last.0 == last.1 && last.0 != json!([])).then_some(())
        });
        assert!(equal.is_some(), "{field}: {} of {}", last.0, last.1);
        // The root is their sum, seen at once: a reading may come between two looks.
        browser.until("const root = document.querySelector('[data-path=\"0\"]'); const sum = [...document.querySelectorAll('.data tbody tr[data-key]')].reduce((sum, row) => sum + Number(row.querySelector('data').value), 0); return root && Number(root.dataset.value) === sum");
    }
    assert_sound(browser, &own, "flames by what was allocated");
}

/// The places of `byte[]` of the shop, sorted: name, figure, error or -1.
fn places(document: &Value, field: &str, error: Option<&str>) -> Value {
    let mut rows: Vec<(String, u64, i64)> = Vec::new();
    for one in document["accounts"].as_array().expect("a list") {
        let classes = one["classes"].as_array().expect("a list").iter();
        for class in classes.filter(|class| one["account"] == "shop" && class["class"] == "byte[]")
        {
            for site in class["sites"].as_array().expect("a list") {
                let stacks = match field.starts_with("allocated") {
                    true => &site["allocated_stacks"],
                    false => &site["stacks"],
                };
                if stacks != 0 {
                    rows.push((
                        site["frames"][0].as_str().expect("a frame").to_owned(),
                        site[field].as_u64().expect("a figure"),
                        error.map_or(-1, |error| site[error].as_i64().expect("an error")),
                    ));
                }
            }
        }
    }
    rows.sort();
    json!(rows)
}

/// Errors that would have been thrown while the page is open are told with their times.
fn assert_refusals_told(browser: &Browser, server: &Server) {
    let told = poll(PATIENCE, || {
        server.ask("/shop/shelf?do=hold&length=20000&count=20");
        std::thread::sleep(Duration::from_millis(500));
        let row = "return document.querySelector('table[aria-label=\"Who was refused when\"] tbody tr')?.textContent ?? null";
        browser.value(row).as_str().map(str::to_owned)
    });
    let told = told.expect("refusals are told");
    assert!(
        told.starts_with("shop") && told.contains("would have been thrown"),
        "{told}"
    );
}

/// A page that is paused asks for nothing.
fn assert_rests(browser: &Browser) {
    let press = "document.getElementById('pause').click(); return document.getElementById('pause').getAttribute('aria-pressed')";
    assert_eq!(browser.value(press), "true");
    assert!(!browser.requested_hosts().is_empty(), "it read before");
    // A reading may be under way, for as long as a busy machine needs.
    let rests = poll(PATIENCE, || {
        std::thread::sleep(Duration::from_millis(1500));
        browser.requested_hosts().is_empty().then_some(())
    });
    assert!(rests.is_some(), "it reads on and on while it is paused");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(
        browser.requested_hosts().len(),
        0,
        "it reads while it is paused"
    );
    assert_eq!(browser.value(press), "false");
    let again = poll(PATIENCE, || {
        (!browser.requested_hosts().is_empty()).then_some(())
    });
    assert!(again.is_some(), "it reads again");
}

/// The list of the files that the agent wrote, once there are three.
fn files_on_disk(server: &Server) -> Value {
    let listed = poll(PATIENCE, || {
        let answer = scrape::get(server.agent(), "/api/v1/snapshots");
        let document: Value = serde_json::from_str(&answer.body).ok()?;
        (document["files"].as_array()?.len() >= 3).then_some(document)
    });
    listed.expect("files are written")
}

/// The files that the agent wrote are listed, and two of them are subtracted as `heapwarden diff` does.
fn assert_files_on_disk(browser: &Browser, server: &Server) {
    let own = format!("http://{}", server.agent());
    server.ask("/shop/shelf?do=hold&length=20000&count=100");
    server.settled("/shop/shelf?do=gc", "shop");
    let listed = files_on_disk(server);
    let file = |at: usize| {
        let name = listed["files"][at]["name"].as_str().expect("a name");
        let folder = listed["directory"].as_str().expect("a folder");
        (name.to_owned(), Path::new(folder).join(name))
    };
    let (old, new) = (file(2), file(0));
    let address = format!("{own}/#/history?old={}&new={}", old.0, new.0);
    show(browser, &address, "History");
    browser.until(
        "return document.querySelector('table[aria-label=\"Changes by account\"] tbody tr') !== null",
    );
    assert_difference(browser, &old.1, &new.1);
    browser.until(
        "return document.querySelectorAll('table[aria-label=\"Snapshots on disk\"] tbody tr').length >= 3",
    );
    assert_sound(browser, &own, "files on disk");
}

/// The report of a JVM opens without a server.
fn assert_report(browser: &Browser, server: &Server) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("report.html");
    let agent = server.agent().to_string();
    let written = command::run(
        Command::new(artifacts::command())
            .args(["report", &agent, "-o"])
            .arg(&file),
        PATIENCE,
    );
    assert!(written.status.success(), "{written:?}");
    let address = format!("file://{}", file.display());
    show(browser, &address, "Overview");
    browser.until("return document.querySelector('tr[data-key=\"shop\"]') !== null");
    assert_sound(browser, "null", "report");
}

/// `heapwarden ui` shows a JVM and one of its snapshots.
fn assert_ui(browser: &Browser, server: &Server) {
    let listed = files_on_disk(server);
    let text = |of: &Value| of.as_str().expect("a text").to_owned();
    let file = Path::new(&text(&listed["directory"])).join(text(&listed["files"][0]["name"]));
    let agent = server.agent();
    let (_process, own) = ui(&[Path::new(&agent.to_string()), &file]);
    show(browser, &format!("{own}/"), "Overview");
    let row = "return Number(document.querySelector('tr[data-key=\"shop\"] data')?.value ?? 0)";
    assert_shown(browser, agent, "the shop by the command", row, |document| {
        account(document, "shop")["live_bytes"].clone()
    });
    assert_eq!(
        browser.value("return document.querySelectorAll('#source option').length"),
        2
    );
    show(browser, &format!("{own}/#/overview?source=1"), "Overview");
    browser.until("return document.querySelector('tr[data-key=\"shop\"] data') !== null");
    assert_sound(browser, &own, "a JVM and a file by the command");
}
