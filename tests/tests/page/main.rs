//! The page in a real browser: of an agent in a Tomcat, of files by `heapwarden ui`, and as a report.

mod agent;
mod clients;
mod files;
mod findings;
mod fleet;
mod layout;
mod picture;

use heapwarden_harness::process::Guard;
use heapwarden_tests::browser::Browser;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::{artifacts, command, scrape};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A name that would run a script and turn the text's direction, neither of which a page may let it do.
const HOSTILE: &str =
    "</script><script>window.hostile=1</script><img src=x onerror=window.hostile=1>\u{202e}live";
const WIDTHS: [(u32, u32); 3] = [(360, 740), (820, 1100), (1400, 900)];

/// Shows a view, and waits until it has read what it shows.
fn show(browser: &Browser, address: &str, heading: &str) {
    browser.open(address);
    browser.until(&format!(
        "return document.querySelector('h1')?.textContent.startsWith('{heading}') \
         && document.getElementById('view').getAttribute('aria-busy') === 'false'"
    ));
}

/// That the page fits, is accessible in both colours, and neither complained nor asked another host.
fn assert_sound(browser: &Browser, own: &str, view: &str) {
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        let barriers = browser.barriers();
        assert!(barriers.is_empty(), "{view}, {scheme}: {barriers:#?}");
    }
    for (width, height) in WIDTHS {
        browser.resize(width, height);
        let widest = browser.value("return document.documentElement.scrollWidth");
        assert!(
            widest.as_u64() <= Some(width.into()),
            "{view} is {widest} pixels wide in a window of {width}"
        );
    }
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{view}: {complaints:#?}");
    let hosts = browser.requested_hosts();
    assert!(hosts.iter().all(|host| host == own), "{view}: {hosts:?}");
    let hostile = browser.value("return window.hostile ?? null");
    assert!(hostile.is_null(), "{view}: a name ran as a script");
}

/// Waits until the figures that `read` finds in the page are those that the agent publishes; both change
/// whenever a collection comes.
fn assert_shown(
    browser: &Browser,
    agent: SocketAddr,
    what: &str,
    read: &str,
    published: impl Fn(&Value) -> Value,
) {
    let mut last = (Value::Null, Value::Null);
    let equal = poll(PATIENCE, || {
        let answer = scrape::get(agent, "/api/v1/accounts?classes=all");
        let document: Value = serde_json::from_str(&answer.body).expect("it is JSON");
        last = (browser.value(read), published(&document));
        (last.0 == last.1 && !last.0.is_null()).then_some(())
    });
    assert!(
        equal.is_some(),
        "{what}: shown {}, published {}",
        last.0,
        last.1
    );
}

fn account<'a>(document: &'a Value, name: &str) -> &'a Value {
    let accounts = document["accounts"].as_array().expect("a list");
    let named = accounts.iter().find(|one| one["name"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {document}"))
}

/// `heapwarden ui` of these files, and where it serves.
fn ui(files: &[&Path]) -> (Guard, String) {
    let mut command = Command::new(artifacts::command());
    command
        .arg("ui")
        .args(files)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut process = Guard::start(&mut command).expect("the command starts");
    let out = process.child().stdout.take().expect("piped above");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
        .expect("it says where");
    (process, line.trim().trim_end_matches('/').to_owned())
}

/// The page subtracts as `heapwarden diff` does.
fn assert_difference(browser: &Browser, old: &Path, new: &Path) {
    let diff = command::run(
        Command::new(artifacts::command())
            .arg("diff")
            .args([old, new])
            .arg("--json"),
        PATIENCE,
    );
    let found: Value =
        serde_json::from_str(&diff.stdout).unwrap_or_else(|error| panic!("{error}: {diff:?}"));
    let shown = browser.value(
        "return [...document.querySelectorAll('table[aria-label=\"Changes by account\"] tbody tr')]\
            .map(row => { const all = [...row.querySelectorAll('data')]; return [...all.map(one => Number(one.value)), Number(all[0].dataset.error)]; })",
    );
    let accounts = found["accounts"].as_array().expect("a list");
    let expected: Vec<Value> = (accounts.iter())
        .map(|one| {
            let error = one["standard_error_bytes"]
                .as_f64()
                .expect("a number")
                .ceil();
            json!([
                one["change_bytes"],
                one["came_bytes"],
                one["went_bytes"],
                one["old_bytes"],
                one["new_bytes"],
                error as u64
            ])
        })
        .collect();
    assert_eq!(shown, Value::Array(expected), "{found}");
}
