//! Files by `heapwarden ui`, and a report: ten thousand classes, and names that a hostile tenant chose.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use heapwarden_tests::browser::Browser;
use heapwarden_tests::raw_http;
use serde_json::{Value, json};

use crate::{HOSTILE, assert_difference, assert_sound, show, ui};

/// Snapshots of a JVM with ten thousand classes and names that a hostile tenant chose.
pub(crate) fn snapshot(newer: bool) -> Value {
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
    let route = |name: &str, live: u64| {
        json!({"route": name, "calls_total": 70, "refused_total": 7, "live_bytes": live, "standard_error_bytes": live / 30,
            "kept_bytes_per_call": live / 63, "allocated_bytes_per_call": 90_000, "peak_bytes_per_call": 120_000})
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
            "routes": [route("GET /cart", 0), route(HOSTILE, live / 2)],
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

/// An older and a newer snapshot, in a folder that goes with the value.
pub(crate) fn two_snapshots() -> (tempfile::TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = ["old.json", "new.json"].map(|name| folder.path().join(name));
    for (file, newer) in files.iter().zip([false, true]) {
        fs::write(file, snapshot(newer).to_string()).expect("the folder is writable");
    }
    (folder, files)
}

#[test]
fn files_with_ten_thousand_classes_and_hostile_names_are_shown() {
    let (folder, files) = two_snapshots();
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
    assert_routes(&browser);
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
    assert_findings(&browser, folder.path());
    assert_befallen(&browser, folder.path());
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

/// Asserts that a report shows suspects with hostile names, who keeps them alive, and looks at single objects.
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

/// The routes of the account: the one that holds the most first, however it is called.
fn assert_routes(browser: &Browser) {
    let table = "document.querySelector('table[aria-label=\"Routes\"]')";
    let rows = browser.until(&format!(
        "const rows = [...({table}?.querySelectorAll('tbody tr') ?? [])].map(row => [row.querySelector('bdi').textContent, \
         ...[...row.querySelectorAll('data')].map(one => one.value)]); return rows.length > 0 && rows"
    ));
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{rows:?}");
    let name = rows[0][0].as_str().expect("a text");
    assert!(
        name.contains("</script>") && !name.contains('\u{202e}'),
        "{name}"
    );
    assert_eq!(
        rows[1],
        json!(["GET /cart", "0", "70", "7", "0", "90000", "120000"])
    );
}

/// Asserts that a report tells the faults of accounts and limits as `heapwarden doctor` does, and says that the command
/// knows more.
fn assert_findings(browser: &Browser, folder: &Path) {
    let mut document = snapshot(false);
    document["sites"].take();
    let account = |name: &str, changes: Value| {
        let mut one = document["accounts"][0].clone();
        one["classes"] = json!([]);
        one["name"] = name.into();
        one["limit_bytes"] = (1_u64 << 30).into();
        one["live_bytes"] = 9.into();
        one["deferred_by_reason"] = json!({});
        for (field, value) in changes.as_object().expect("fields") {
            one[field] = value.clone();
        }
        one
    };
    let accounts = [
        account(
            "never",
            json!({"state": "over", "deferred_total": 3, "deferred_by_reason": {"timer": 3, "grace": 0}}),
        ),
        account(
            "over",
            json!({"state": "over", "door": "shut", "refusals_total": 5, "admission_refusals_total": 90,
                "threads_killed_total": 2}),
        ),
        account("waited", json!({"wait_milliseconds_total": 5_000})),
        account("large", json!({"limit_bytes": 9_000_000_000_u64})),
        account("small", json!({"limit_bytes": 1 << 20})),
    ];
    document["accounts"] = json!(accounts);
    document["enforcement"] = json!({"duress": true});
    let documents =
        json!({"about": {"address": "a file"}, "api/v1/accounts?classes=all": document});
    let file = folder.join("wrong.html");
    let text = policy_page::report(&documents.to_string(), "0123456789abcdef");
    fs::write(&file, text).expect("writable");
    show(browser, &format!("file://{}", file.display()), "Overview");
    let told = browser.until("const all = [...document.querySelectorAll('[data-finding]')].map(one => [one.dataset.finding, one.querySelector('a')?.textContent ?? '']); return all.length > 0 && all");
    // Faults that befall an account come first, and notes last.
    let expected = json!([
        ["never-refused", "never"],
        ["over-limit", "over"],
        ["heap-is-short", ""],
        ["policy-rejected", ""],
        ["limit-above-heap", "large"],
        ["interval-too-coarse", "small"],
        ["waited-before", "waited"],
    ]);
    assert_eq!(told, expected);
    let text = browser
        .value("return document.querySelector('section[aria-label=\"What is wrong\"]').innerText");
    let text = text.as_str().expect("a text");
    for expected in [
        "mostly for the reason timer",
        "new work is turned away, and what is inside is refused; errors ended 2 of its threads",
        "5 errors thrown, turned away 90 times at its door",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(
        text.contains("Only heapwarden doctor looks at the process"),
        "{text}"
    );
    assert_sound(browser, "null", "what is wrong");
}

/// Whoever is slowed, turned away or refused has one finding, before all others, as `heapwarden doctor` tells of the
/// same accounts.
fn assert_befallen(browser: &Browser, folder: &Path) {
    let accounts = include_str!("../../../policy-cli/src/doctor/checks/states/befallen.json");
    let mut document = snapshot(false);
    document["sites"].take();
    document["accounts"] = serde_json::from_str(accounts).expect("accounts");
    let documents =
        json!({"about": {"address": "a file"}, "api/v1/accounts?classes=all": document});
    let file = folder.join("befallen.html");
    let text = policy_page::report(&documents.to_string(), "0123456789abcdef");
    fs::write(&file, text).expect("writable");
    show(browser, &format!("file://{}", file.display()), "Overview");
    let told = browser.until("const all = [...document.querySelectorAll('[data-finding]')].map(one => [one.querySelector('.badge').textContent, one.dataset.finding, one.querySelector('a')?.textContent ?? '', one.innerText]); return all.length > 0 && all");
    let told = told.as_array().expect("findings");
    // Errors first.
    let expected = [
        (
            "error",
            "never-refused",
            "braked",
            "reason no-unit; its threads have been slowed (",
        ),
        (
            "error",
            "ineffective",
            "loop",
            "reason no-unit in com.acme.Loop.run; its threads have been slowed (",
        ),
        (
            "warning",
            "suspect",
            "slowed",
            " has been slowed: its charge is above its limit",
        ),
        (
            "warning",
            "over-limit",
            "server-door",
            " is over its limit: new work is turned away (",
        ),
        (
            "warning",
            "over-limit",
            "method-door",
            " is over its limit: new work is turned away (",
        ),
        (
            "warning",
            "over-limit",
            "door-held",
            " is held by its limit: new work is turned away (",
        ),
        (
            "warning",
            "over-limit",
            "thrown",
            " is over its limit and is refused (",
        ),
        (
            "warning",
            "over-limit",
            "thrown-slowed",
            " is over its limit and is refused; its threads have been slowed (",
        ),
        (
            "warning",
            "over-limit",
            "all",
            " is over its limit: new work is turned away, and what is inside is refused; its threads have been slowed; errors ended 2 of its threads",
        ),
    ];
    for (at, (severity, name, account, words)) in expected.into_iter().enumerate() {
        let one = &told[at];
        let text = one[3].as_str().expect("a text");
        assert_eq!(
            (&one[0], &one[1], &one[2]),
            (&json!(severity), &json!(name), &json!(account)),
            "{text}"
        );
        assert!(text.contains(words), "{text}");
        assert_eq!(
            text.contains("turned away 90 times at its door"),
            text.contains("new work is turned away"),
            "{text}"
        );
    }
    let of_accounts = |one: &&Value| expected.iter().any(|row| one[2] == row.2);
    assert_eq!(
        told.iter().filter(of_accounts).count(),
        expected.len(),
        "one each: {told:#?}"
    );
    assert_sound(browser, "null", "what befalls accounts");
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
