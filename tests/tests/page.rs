//! The page in a real browser: of an agent in a Tomcat, of files by `heapwarden ui`, and as a report.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use heapwarden_harness::process::Guard;
use heapwarden_tests::browser::Browser;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::newest;
use heapwarden_tests::server::{Installation, Server};
use heapwarden_tests::server_setup::{deploy, tomcat};
use heapwarden_tests::{artifacts, command, raw_http, scrape};
use serde_json::{Value, json};

/// What no name may do.
const HOSTILE: &str =
    "</script><script>window.hostile=1</script><img src=x onerror=window.hostile=1>\u{202e}live";
const WIDTHS: [(u32, u32); 3] = [(360, 740), (820, 1100), (1400, 900)];

/// A Tomcat whose shop holds more than its limit. The mode is `observe`, so it lives on.
fn over_limit() -> Server {
    let site = Installation::new();
    let prepared = tomcat(&site, newest(), "apache-tomcat-11.0.10", "16KiB");
    let snapshots = site.folder().join("snapshots");
    fs::create_dir(&snapshots).expect("the folder is writable");
    let policy = format!(
        "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\
         [snapshots]\ndirectory = \"{}\"\nevery = \"5s\"\nkeep = 20\n\
         [leaks]\nsites = [\"shop\"]\n\
         [[account]]\nname = \"shop\"\nservice = \"/shop\"\nsoft-limit = \"4MiB\"\nlimit = \"8MiB\"\n\
         [[account]]\nname = \"<img src=x onerror=window.hostile=1>\"\npackages = [\"org.apache.catalina.*\"]\n",
        snapshots.display()
    );
    fs::write(site.folder().join("heapwarden.toml"), policy).expect("the folder is writable");
    deploy("shop/shop.war", &prepared.base.join("webapps"));
    site.start(prepared.command, "/shop/shelf?do=gc")
}

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
    let root = browser.until("const all = document.querySelector('[data-path=\"0\"]'); return all && Number(all.dataset.value) > 0 && Number(all.dataset.value)");
    let places = browser.value("return [...document.querySelectorAll('.data tbody tr[data-key]')].reduce((sum, row) => sum + Number(row.querySelector('data').value), 0)");
    assert_eq!(root, places, "the icicle and the table of places");
    browser.value("const find = document.getElementById('find'); find.value = 'Shelf'; find.dispatchEvent(new Event('input')); return null");
    browser.until("return document.querySelector('.frame.match') !== null");
    browser.value("document.querySelector('[data-path=\"0\"]').focus(); return null");
    browser.press(&['\u{e015}', '\u{e007}']);
    browser.until("return document.querySelector('[data-path=\"0\"]').textContent.startsWith('all') === false");
    assert_sound(&browser, &own, "flames");

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

    assert_read_only(&server);
    assert_report(&browser, &server);
    assert_ui(&browser, &server);
    drop(browser);
    server.finish();
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
    // A reading may be under way.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!browser.requested_hosts().is_empty(), "it read before");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(
        browser.requested_hosts().len(),
        0,
        "it reads while it is paused"
    );
    assert_eq!(browser.value(press), "false");
    std::thread::sleep(Duration::from_secs(1));
    assert!(!browser.requested_hosts().is_empty(), "it reads again");
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

/// Whatever clients try, the page changes nothing, gives no other file, and has one thread.
fn assert_read_only(server: &Server) {
    let agent = server.agent();
    let send = |head: &str| {
        let answer = raw_http::exchange(agent, &format!("{head}\r\n\r\n"));
        answer
            .unwrap_or_else(|error| panic!("{head}: {error}"))
            .status
    };
    let slow: Vec<_> = (0..4)
        .map(|_| std::net::TcpStream::connect(agent).expect("it listens"))
        .collect();
    assert_eq!(send(&format!("POST / HTTP/1.1\r\nHost: {agent}")), 405);
    assert_eq!(send("GET / HTTP/1.1\r\nHost: evil.example"), 403);
    assert_eq!(
        send(&format!(
            "GET /page/../../etc/passwd HTTP/1.1\r\nHost: {agent}"
        )),
        404
    );
    assert_eq!(
        send(&format!(
            "GET /api/v1/snapshots/..%2f..%2fetc HTTP/1.1\r\nHost: {agent}"
        )),
        404
    );
    assert_eq!(send(&format!("GET / HTTP/1.1\r\nHost: {agent}")), 200);
    drop(slow);
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).expect("it runs");
    let names = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    assert_eq!(
        names
            .filter(|name| name.trim() == "heapwarden-http")
            .count(),
        1
    );
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

/// Snapshots of a JVM with ten thousand classes and names that a hostile tenant chose.
fn snapshot(newer: bool) -> Value {
    let bins = |bytes: u64| json!([{"upto": 10, "live_bytes": bytes, "live_objects": 3}, {"upto": null, "live_bytes": 0, "live_objects": 0}]);
    let class = |name: String, bytes: u64, born: u64| {
        let mut cohorts = vec![
            json!({"upto_epoch": 5, "records": 3, "live_bytes": bytes, "live_objects": bytes / 48, "variance": bytes}),
        ];
        if born > 0 {
            cohorts.push(json!({"upto_epoch": 9, "records": 1, "live_bytes": born, "live_objects": born / 48, "variance": born}));
        }
        json!({"class": name, "live_bytes": bytes + born, "live_objects": (bytes + born) / 48, "allocated_bytes_total": 4 * bytes,
            "live_standard_error_bytes": bytes / 9, "allocated_objects_total": bytes / 10, "freed_bytes_total": 3 * bytes,
            "freed_objects_total": bytes / 20, "generations": 3, "ages_collections": bins(bytes), "ages_seconds": bins(bytes),
            "sizes": bins(bytes), "cohorts": cohorts})
    };
    let account = |name: &str, classes: Vec<Value>| {
        let live: u64 = classes
            .iter()
            .map(|one| one["live_bytes"].as_u64().expect("a number"))
            .sum();
        json!({"name": name, "kind": "service", "service": name, "live_bytes": live, "live_standard_error_bytes": live / 50,
            "charged_bytes": live, "standard_error_bytes": live / 40, "live_objects": live / 48, "allocated_bytes_total": live,
            "limit_bytes": live, "state": "open", "door": "open", "refusals_total": 0, "would_refuse_total": 0,
            "admission_refusals_total": 0, "threads_killed_total": 0, "deferred_total": 0, "deferred_by_reason": {HOSTILE: 1},
            "places": [{"frame": HOSTILE, "entry": HOSTILE, "thread": "request", "unit": HOSTILE, "count": 1, "never_interrupt": HOSTILE}],
            "principals": [{"name": HOSTILE, "live_bytes": live}], "parent": null, "classes": classes, "classes_omitted": 0})
    };
    let born = u64::from(newer) * 70_000;
    let mut classes: Vec<Value> = (0..10_000_u64)
        .map(|at| {
            class(
                format!("com.acme.generated.Class{at:05}"),
                1_000 + (at * 7_919) % 1_000_003,
                if at < 50 { born } else { 0 },
            )
        })
        .collect();
    classes.push(class(HOSTILE.to_owned(), 9_000_000, 0));
    let mut cohorts = vec![json!({"upto_epoch": 5, "at": "2026-11-24T20:00:00.000Z"})];
    if newer {
        cohorts.push(json!({"upto_epoch": 9, "at": "2026-11-24T20:10:00.000Z"}));
    }
    let site = json!({"frames": [HOSTILE, "java.lang.Thread.run(Thread.java:1583)"], "through": ["java.util.HashMap.put(HashMap.java:618)"],
        "share": 0.6, "share_standard_error": 0.05, "live_bytes": 600_000 + born, "objects": 12_000, "stacks": 30});
    json!({"heapwarden_snapshot": 1, "at": if newer { "2026-11-24T20:10:00.000Z" } else { "2026-11-24T20:00:00.000Z" },
        "why": "asked", "run": {"id": "0123456789abcdef", "started": "2026-11-24T19:00:00Z"},
        "jvm": {"pid": 7, "name": HOSTILE, "vm": "OpenJDK", "version": "25"},
        "heap": {"used_after_gc_bytes": 6_000_000_000_u64, "max_bytes": 8_000_000_000_u64, "gc_epoch": 9, "live_gc_epoch": 9, "live_age_seconds": 3.2},
        "sampling": {"interval_bytes": 65536, "samples": 9000, "dropped": 0, "callback_p50_ns": 400, "callback_p99_ns": 1500},
        "policy": {"generation": 1, "mode": "enforce", "last_reload_successful": false, "last_error": HOSTILE},
        "variance_unit_bytes2": 256, "cohorts": cohorts, "cohorts_joined": false,
        "accounts": [account("shop", classes), account(HOSTILE, vec![class("byte[]".to_owned(), 100_000_000, 0)])],
        "accounts_omitted": 0,
        "sites": {"stacks": 100, "skipped": {}, "accounts": [{"account": HOSTILE, "classes_omitted": 0,
            "classes": [{"class": HOSTILE, "live_bytes": 900_000, "with_stack_bytes": 600_000, "stacks": 30, "sites": [site], "sites_omitted": 0}]}]}})
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

#[test]
fn files_with_ten_thousand_classes_and_hostile_names_are_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = ["old.json", "new.json"].map(|name| folder.path().join(name));
    for (file, newer) in files.iter().zip([false, true]) {
        fs::write(file, snapshot(newer).to_string()).expect("the folder is writable");
    }
    let (_process, own) = ui(&[&files[0], &files[1]]);
    let browser = Browser::start();
    browser.resize(1400, 900);

    show(&browser, &format!("{own}/"), "Overview");
    assert_eq!(
        browser.value("return document.querySelectorAll('tr[data-key]').length"),
        2
    );
    let shown =
        browser.value("return document.querySelectorAll('tr[data-key] bdi')[1].textContent");
    let shown = shown.as_str().expect("a text");
    assert!(shown.contains("</script>") || shown == "shop", "{shown}");
    assert!(
        !browser
            .value("return document.body.textContent")
            .as_str()
            .expect("a text")
            .contains('\u{202e}')
    );
    assert_sound(&browser, &own, "overview of a file");

    show(&browser, &format!("{own}/#/account/shop"), "Account shop");
    let rows =
        browser.until("return document.querySelector('.data')?.getAttribute('aria-rowcount')");
    assert_eq!(rows, "10002");
    assert_rows(&browser);
    assert_sound(&browser, &own, "account of a file");

    show(&browser, &format!("{own}/#/flames"), "Flames");
    browser.until("return document.querySelectorAll('.frame').length === 5");
    assert_sound(&browser, &own, "flames of a file");

    show(
        &browser,
        &format!("{own}/#/history?old=source%3A0&new=source%3A1"),
        "History",
    );
    browser.until("return document.querySelector('table[aria-label=\"Changes by account\"] tbody tr') !== null");
    assert_difference(&browser, &files[0], &files[1]);
    assert_sound(&browser, &own, "history of files");
    show(
        &browser,
        &format!("{own}/#/flames?old=source%3A0&new=source%3A1"),
        "Flames: the difference",
    );
    browser.until("return document.querySelector('.frame.grown') !== null");
    assert_sound(&browser, &own, "difference of flames");
    assert_suspects(&browser, folder.path());
    assert_loopback_only(&own);
}

/// Sorting, filtering and scrolling ten thousand rows: few of them are in the document, and each change takes
/// less than building that many plain rows once.
fn assert_rows(browser: &Browser) {
    let first = "document.querySelector('.data tbody tr[data-key]').dataset.key";
    assert!(
        browser
            .value(&format!("return {first}"))
            .as_str()
            .expect("a key")
            .starts_with("</script>")
    );
    let timed = browser.value_later(&format!(
        "const times = {{}}; \
         const frame = () => new Promise(shown => requestAnimationFrame(() => setTimeout(shown))); \
         const time = async (name, work) => {{ const begun = performance.now(); work(); document.body.offsetHeight; await frame(); times[name] = performance.now() - begun; }}; \
         const most = () => document.querySelectorAll('.data tbody tr').length; \
         const input = document.querySelector('.table input'); \
         (async () => {{ \
            await time('plain', () => {{ const table = document.createElement('table'); for (let row = 0; row < 10000; row++) {{ const tr = table.insertRow(); for (let cell = 0; cell < 10; cell++) tr.insertCell().textContent = row; }} document.body.append(table); document.body.offsetHeight; table.remove(); }}); \
            await time('sort', () => document.querySelectorAll('.data thead button')[0].click()); times.sorted = {first}; \
            await time('filter', () => {{ input.value = 'CLASS0123'; input.dispatchEvent(new Event('input')); }}); times.left = document.querySelector('.told').textContent; \
            await time('clear', () => {{ input.value = ''; input.dispatchEvent(new Event('input')); }}); \
            const region = document.querySelector('.table .scroll'); \
            await time('scroll', () => {{ region.scrollTop = region.scrollHeight; region.dispatchEvent(new Event('scroll')); }}); \
            times.rows = most(); times.last = [...document.querySelectorAll('.data tbody tr[data-key]')].at(-1).dataset.key; \
            done(times); }})()"
    ));
    println!("milliseconds with 10,001 rows: {timed}");
    assert_eq!(timed["sorted"], HOSTILE, "< comes before letters");
    assert_eq!(timed["left"], "10 of 10,001 rows");
    assert_eq!(timed["last"], "com.acme.generated.Class09999");
    assert!(timed["rows"].as_u64() < Some(250), "{timed}");
    for change in ["sort", "filter", "clear", "scroll"] {
        assert!(
            timed[change].as_f64() < timed["plain"].as_f64(),
            "{change}: {timed}"
        );
    }
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

/// What a report shows of suspects with hostile names, and of who keeps them alive.
fn assert_suspects(browser: &Browser, folder: &Path) {
    let site = json!({"frames": [HOSTILE], "through": [], "share": 0.9, "share_standard_error": 0.1, "live_bytes": 5, "objects": 1, "stacks": 9});
    let suspect = json!({"account": HOSTILE, "class": HOSTILE, "live_bytes": 48_000_000, "live_standard_error_bytes": 1_000_000,
        "growth_bytes_per_second": 98_700.0, "growth_standard_error": 6_100.0, "since_seconds": 240, "window_seconds": 600,
        "objects": 46_000, "generations": 9, "course": [{"seconds_ago": 60, "live_bytes": 40_000_000, "generations": 7}], "with": [HOSTILE], "sites": [site],
        "exhausts": {"what": "limit", "earliest_seconds": 1900, "latest_seconds": null},
        "kept_by": [HOSTILE]});
    let growing = json!({"account": HOSTILE, "class": "byte[]", "why": "turnover", "live_bytes": 9, "growth_bytes_per_second": 12.0});
    let mut accounts = snapshot(false);
    let sites = accounts["sites"].take();
    let documents = json!({"about": {"address": HOSTILE}, "api/v1/accounts?classes=all": accounts, "api/v1/sites": sites,
        "api/v1/paths": {"walks": [{"paths": {"at": "2026-11-24T20:00:00Z", "how": "forked", "pause_ms": 0.5, "paths": [
            {"account": HOSTILE, "class": HOSTILE, "objects": 7, "bytes": 4096, "root": HOSTILE, "is_cut": false,
                "steps": [{"class": HOSTILE, "via": HOSTILE, "repeats": 2}]}]}},
            {"holders": {"holders": [{"holder": HOSTILE, "made_by": HOSTILE, "live_bytes": 9, "standard_error_bytes": 1, "exclusive_bytes": 3}]}}]},
        "api/v1/instances": {"answers": [{"at": "2026-11-24T20:00:00Z", "account": HOSTILE, "class": HOSTILE, "values_shown": true,
            "sampled": 9, "live_bytes": 9, "standard_error_bytes": 1, "looked_at": 9, "drawn": 9, "gone": 0, "cut_short": HOSTILE,
            "not_readable": [HOSTILE],
            "largest": [{"class": HOSTILE, "bytes": 9, "elements": 3, "capacity": 4, "value": {"text": HOSTILE, "length": 3},
                "age_at_least_seconds": 1.0, "age_at_most_seconds": 99.0, "collections_survived": 2}],
            "equal": [{"class": HOSTILE, "value": {"digest": HOSTILE}, "objects": 7, "live_bytes": 9, "standard_error_bytes": 1,
                "with_content_bytes": 19, "with_content_standard_error_bytes": 2, "samples": 7}],
            "wasted": [{"class": HOSTILE, "objects": 7, "empty_objects": 1, "wasted_bytes": 9, "standard_error_bytes": 1,
                "capacity_bytes": 19, "samples": 7}]}]},
        "api/v1/leaks": {"at": "2026-11-24T20:00:00Z", "horizon_seconds": 600, "undecided": null, "suspects": [suspect],
            "growing": [growing], "acknowledged": [], "omitted": 0}});
    let file = folder.join("report.html");
    fs::write(
        &file,
        policy_page::report(&documents.to_string(), "0123456789abcdef"),
    )
    .expect("writable");
    let name: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let address = format!("file://{}#/account/{name}", file.display());
    show(browser, &address, "Account </script>");
    let growth = browser.until(
        "return document.querySelector('.suspect [data-term=Growth] dd')?.textContent ?? null",
    );
    assert_eq!(growth, "96.4 KiB/s ± 6.0 KiB/s");
    assert_eq!(
        browser.value("return document.querySelectorAll('.chains > li').length"),
        1
    );
    let single = "[...document.querySelectorAll('section[aria-label=\"Single objects\"] table')].map((one) => one.getAttribute('aria-label'))";
    assert_eq!(
        browser.value(&format!("return {single}")),
        json!([
            "Largest objects",
            "Most frequent equal values",
            "Wasted capacity"
        ])
    );
    assert_sound(browser, "null", "report with suspects");
    show(
        browser,
        &format!("file://{}#/class/{name}/{name}", file.display()),
        "Class </script>",
    );
    browser.until(
        "return document.querySelector('table[aria-label=\"At earlier looks\"] data')?.value === '40000000'",
    );
    assert_sound(browser, "null", "class of a report");
}

/// The command's server answers this machine's browser alone.
fn assert_loopback_only(own: &str) {
    let address: SocketAddr = own
        .trim_start_matches("http://")
        .parse()
        .expect("an address");
    assert!(address.ip().is_loopback());
    let send = |head: &str| {
        let answer = raw_http::exchange(address, &format!("{head}\r\n\r\n"));
        answer
            .unwrap_or_else(|error| panic!("{head}: {error}"))
            .status
    };
    assert_eq!(send("GET / HTTP/1.1\r\nHost: evil.example"), 403);
    assert_eq!(send(&format!("POST / HTTP/1.1\r\nHost: {address}")), 405);
    for path in [
        "/page/../Cargo.toml",
        "/source/0/etc/passwd",
        "/source/9/api/v1/snapshot",
        "/source/0/api/v1/snapshots/..%2fx",
    ] {
        assert_eq!(
            send(&format!("GET {path} HTTP/1.1\r\nHost: {address}")),
            404,
            "{path}"
        );
    }
}

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
