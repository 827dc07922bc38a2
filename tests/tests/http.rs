//! The published documents are valid for their readers, and no reader can disturb the program.

use heapwarden_harness::http::Answer;
use heapwarden_tests::command::{self, PATIENCE};
use heapwarden_tests::java;
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::prometheus::Prometheus;
use heapwarden_tests::raw_http;
use heapwarden_tests::scrape::{self, Metrics};
use heapwarden_tests::truth::PLAIN_KINDS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Families of the contract that every agent publishes; those with a limit or a refusal to tell of
/// are checked where there is one.
const CONTRACT: [&str; 49] = [
    "heapwarden_account_live_bytes",
    "heapwarden_account_charged_bytes",
    "heapwarden_account_standard_error_bytes",
    "heapwarden_account_live_standard_error_bytes",
    "heapwarden_account_live_objects",
    "heapwarden_account_allocated_bytes_total",
    "heapwarden_account_allocated_objects_total",
    "heapwarden_account_soft_limit_bytes",
    "heapwarden_account_limit_bytes",
    "heapwarden_account_refusals_total",
    "heapwarden_account_would_refuse_total",
    "heapwarden_account_admission_refusals_total",
    "heapwarden_account_threads_killed_total",
    "heapwarden_account_wait_seconds_total",
    "heapwarden_account_over_limit",
    "heapwarden_account_ineffective",
    "heapwarden_principal_live_bytes",
    "heapwarden_account_info",
    "heapwarden_account_retired_loaders",
    "heapwarden_account_left_behind_bytes",
    "heapwarden_account_threads_left_behind",
    "heapwarden_account_threads",
    "heapwarden_account_direct_bytes",
    "heapwarden_account_native_bytes",
    "heapwarden_native_blocks_assumed_total",
    "heapwarden_native_blocks_unentered_total",
    "heapwarden_heap_used_after_gc_bytes",
    "heapwarden_heap_max_bytes",
    "heapwarden_gc_epoch",
    "heapwarden_samples_total",
    "heapwarden_samples_dropped_total",
    "heapwarden_sampling_interval_bytes",
    "heapwarden_capability_enabled",
    "heapwarden_policy_generation",
    "heapwarden_policy_last_reload_successful",
    "heapwarden_policy_last_reload_success_timestamp_seconds",
    "heapwarden_agent_cpu_seconds_total",
    "heapwarden_agent_memory_bytes",
    "heapwarden_build_info",
    "heapwarden_evidence_collections_total",
    "heapwarden_evidence_budget_ratio",
    "heapwarden_policy_enforcing",
    "heapwarden_http_responses_total",
    "heapwarden_http_request_duration_seconds",
    "heapwarden_reading_duration_seconds",
    "heapwarden_verdict_delay_seconds",
    "heapwarden_evidence_collection_duration_seconds",
    "heapwarden_evidence_wait_duration_seconds",
    "heapwarden_policy_reload_duration_seconds",
];

const POLICY: &str = r#"
[sampling]
interval = "8KiB"
cpu-budget = "none"

[enforcement]
evidence-budget = "7%"

[[account]]
name = "orders"
packages = ["com.acme.orders"]
soft-limit = "1MiB"
limit = "2MiB"

[[account]]
name = "a \"quoted\" \\ name"
packages = ["org.lib.json.*"]
"#;

/// A holder whose `orders` lie above their limit.
fn holder() -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.Holder")
        .argument("com.acme.orders")
        .argument("org.lib.json")
        .policy(POLICY)
        .start();
    jvm.ask("hold com.acme.orders bytes:100000*100");
    jvm.ask(&format!("hold com.acme.orders>org.lib.json {PLAIN_KINDS}"));
    jvm.settled();
    jvm
}

fn request(address: SocketAddr, head: &str) -> Answer {
    raw_http::exchange(address, &format!("{head}\r\nConnection: close\r\n\r\n"))
        .unwrap_or_else(|error| panic!("{head}: {error}"))
}

#[test]
fn both_formats_are_valid_and_hold_the_whole_contract() {
    let jvm = holder();
    let address = jvm.address();
    // Being above the limit is no verdict yet: that takes a collection which began after the
    // enforcer saw it, and the one of `holder` may have come before.
    jvm.until(PATIENCE, "orders are over their limit", |accounts| {
        accounts.is_in_state("orders", "over")
    });
    let answer = scrape::get(address, "/metrics");
    assert_eq!(
        answer.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let metrics = Metrics::parse(&answer.body).unwrap_or_else(|error| panic!("{error}"));
    let families = metrics.families();
    let missing: Vec<&&str> = CONTRACT
        .iter()
        .filter(|name| !families.contains(**name))
        .collect();
    assert!(missing.is_empty(), "families missing: {missing:?}");
    let orders = |name: &str| metrics.of_account(name, "orders");
    assert_eq!(orders("heapwarden_account_limit_bytes"), Some(2_097_152.0));
    assert_eq!(
        orders("heapwarden_account_soft_limit_bytes"),
        Some(1_048_576.0)
    );
    assert_eq!(
        orders("heapwarden_account_over_limit"),
        Some(1.0),
        "{}",
        jvm.accounts().brief()
    );
    assert_eq!(orders("heapwarden_account_refusals_total"), Some(0.0));
    let quoted = metrics.of_account("heapwarden_account_over_limit", "a \"quoted\" \\ name");
    assert_eq!(quoted, Some(0.0));
    let interval = metrics.value("heapwarden_sampling_interval_bytes", &[]);
    assert_eq!(interval, Some(8192.0));
    let budget = metrics.value("heapwarden_evidence_budget_ratio", &[]);
    assert_eq!(budget, Some(0.07));
    let enforcing = metrics.value("heapwarden_policy_enforcing", &[]);
    assert_eq!(enforcing, Some(0.0), "observe is the default");
    let verdicts = metrics.value(
        "heapwarden_verdict_delay_seconds_count",
        &[("outcome", "over")],
    );
    assert_eq!(verdicts, Some(1.0), "orders were found to be over once");
    // One of the two is read a moment earlier, and the agent goes on asking for collections.
    let agree = command::poll(PATIENCE, || {
        let metrics = jvm.metrics();
        let timed = metrics.sum("heapwarden_evidence_collection_duration_seconds_count");
        let counted = metrics.sum("heapwarden_evidence_collections_total");
        (timed == counted && counted > 0.0).then_some(())
    });
    assert!(agree.is_some(), "{}", scrape::get(address, "/metrics").body);
    let heap = metrics.value("heapwarden_heap_max_bytes", &[]);
    assert_eq!(heap, Some(f64::from(256 << 20)), "-Xmx256m with G1");

    promtool(&answer.body);
    let open = request(
        address,
        &format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\
             Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
        ),
    );
    assert_eq!(
        open.headers["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(open.body.ends_with("# EOF\n"), "OpenMetrics ends with EOF");
    assert!(
        open.body.contains("# TYPE heapwarden_samples counter\n"),
        "OpenMetrics names a counter's family without _total"
    );
    jvm.finish();
}

/// `promtool check metrics`: no error and no lint.
fn promtool(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is needed: apt-get install prometheus");
    let mut input = promtool.stdin.take().expect("piped above");
    input.write_all(text.as_bytes()).expect("promtool reads");
    drop(input);
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}

#[test]
fn the_json_is_as_the_contract_says() {
    let jvm = holder();
    let answer = scrape::get(jvm.address(), "/api/v1/accounts");
    assert!(answer.headers["content-type"].starts_with("application/json"));
    let json: Value = serde_json::from_str(&answer.body).expect("JSON");
    let whole = |value: &Value, path: &str| {
        let found = value.pointer(path).unwrap_or(&Value::Null);
        assert!(found.is_u64(), "{path} is a whole number, not {found}");
    };
    for path in [
        "/heap/used_after_gc_bytes",
        "/heap/max_bytes",
        "/heap/gc_epoch",
        "/heap/live_gc_epoch",
        "/sampling/interval_bytes",
        "/sampling/samples",
        "/sampling/dropped",
        "/policy/generation",
    ] {
        whole(&json, path);
    }
    assert_eq!(json["policy"]["mode"], "observe", "the default");
    let accounts = json["accounts"].as_array().expect("a list");
    for account in accounts {
        for key in [
            "live_bytes",
            "live_standard_error_bytes",
            "charged_bytes",
            "standard_error_bytes",
            "live_objects",
            "allocated_bytes_total",
            "refusals_total",
            "would_refuse_total",
            "admission_refusals_total",
            "threads_killed_total",
            "wait_milliseconds_total",
            "deferred_total",
            "retired_loaders",
            "left_behind_bytes",
            "threads_left_behind",
        ] {
            whole(account, &format!("/{key}"));
        }
        // A bound stands where no sample is live, and only there.
        let at_most = &account["live_at_most_bytes"];
        assert_eq!(at_most.is_u64(), account["live_bytes"] == 0, "{account}");
        assert_eq!(at_most.is_null(), account["live_bytes"] != 0, "{account}");
        assert!(account["name"].is_string() && account["kind"].is_string());
        assert!(["open", "suspect", "over"].contains(&account["state"].as_str().expect("text")));
        assert_eq!(account["door"], "none", "no container, so no doors");
        assert!(account["reserve_bytes"].is_null());
        assert!(account["ineffective"].is_null());
        for principal in account["principals"].as_array().expect("a list") {
            assert!(principal["name"].is_string());
            whole(principal, "/live_bytes");
        }
        let classes = account["classes"].as_array().expect("a list");
        assert!(classes.len() <= 20, "the top 20");
        for class in classes {
            assert!(class["class"].is_string());
            for key in ["live_bytes", "live_objects", "allocated_bytes_total"] {
                whole(class, &format!("/{key}"));
            }
        }
        let sizes: Vec<u64> = classes
            .iter()
            .filter_map(|class| class["live_bytes"].as_u64())
            .collect();
        assert!(
            sizes.is_sorted_by(|a, b| a >= b),
            "by live bytes: {sizes:?}"
        );
    }
    let named = |name: &str| accounts.iter().find(|account| account["name"] == name);
    let orders = named("orders").expect("listed");
    assert_eq!(orders["limit_bytes"], 2 << 20);
    assert_eq!(orders["soft_limit_bytes"], 1 << 20);
    let unaccounted = named("_unaccounted").expect("always listed");
    assert_eq!(unaccounted["limit_bytes"], Value::Null);
    jvm.finish();
}

#[test]
fn the_run_file_names_process_and_address() {
    let jvm = holder();
    let address = jvm.address();
    let text = std::fs::read_to_string(jvm.run_file()).expect("it is there");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["pid"], jvm.id());
    assert_eq!(json["listen"], address.to_string());
    assert!(address.ip().is_loopback());
    assert_eq!(scrape::get(address, "/-/healthy").status, 200);
    assert_eq!(scrape::get(address, "/-/ready").status, 200);
    assert_eq!(scrape::get(address, "/nothing").status, 404);
    jvm.finish();
}

/// Two servers with one configuration, as from one unit file: both can be read, and each has its own
/// run file.
#[test]
fn the_second_jvm_with_the_same_options_serves_on_a_free_port() {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let first = holder();
    let address = first.address();
    let policy = format!("[agent]\nlisten = \"{address}\"\n");
    let given = first.run_file();
    // The same run file, and an own one: %p is the process id.
    let second = |run_file: &str| {
        victim(&vm, "victim.Holder")
            .policy(&policy)
            .without_own_address()
            .option(&format!("run-file={run_file}"))
            .start()
    };
    let same = second(&given.display().to_string());
    let other = second(&given.with_file_name("of-%p.json").display().to_string());
    let beside = given.with_file_name(format!("run-{}.json", same.id()));
    let own = given.with_file_name(format!("of-{}.json", other.id()));
    for (jvm, file) in [(&same, &beside), (&other, &own)] {
        let text = command::poll(command::PATIENCE, || std::fs::read_to_string(file).ok());
        let text = text.unwrap_or_else(|| panic!("no {}:\n{}", file.display(), jvm.log()));
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["pid"], jvm.id());
        let free: SocketAddr = json["listen"].as_str().unwrap().parse().unwrap();
        assert_eq!(free.ip(), address.ip());
        assert_ne!(free.port(), address.port());
        assert_eq!(scrape::get(free, "/-/healthy").status, 200);
        jvm.until_logged(&format!(
            "another process has the port of {address}, so metrics are served on the free port {}",
            free.port()
        ));
    }
    same.until_logged("the run file");
    assert_eq!(first.address(), address, "the first one's run file, still");
    same.finish();
    other.finish();
    assert!(!beside.exists() && !own.exists(), "removed at the end");
    first.finish();
}

#[test]
fn only_get_and_only_for_this_host() {
    let jvm = holder();
    let address = jvm.address();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let answer = request(
            address,
            &format!("{method} /metrics HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0"),
        );
        assert_eq!(answer.status, 405, "{method}");
        assert!(!answer.body.contains("heapwarden_account"), "{method}");
    }
    // A page of another name that resolves to loopback must not read the accounts.
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        let answer = request(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}"));
        assert!(
            (400..500).contains(&answer.status),
            "{host}: {}",
            answer.status
        );
        assert!(!answer.body.contains("heapwarden_account"), "{host}");
    }
    let none = request(address, "GET /metrics HTTP/1.1");
    assert_eq!(none.status, 400, "HTTP/1.1 needs a Host");
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        let answer = request(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}"));
        assert_eq!(answer.status, 200, "{host}");
    }
    jvm.finish();
}

#[test]
fn slow_broken_and_many_clients_disturb_nobody() {
    let mut jvm = holder();
    let address = jvm.address();
    // A request that never ends, one that is no HTTP, an endless one, one torn off.
    let mut clients = Vec::new();
    for bytes in [
        &b"GET /metrics HTTP/1.1\r\nHo"[..],
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\r\n\r\n\r\n",
        b"",
    ] {
        for _ in 0..25 {
            if let Ok(mut client) = TcpStream::connect(address) {
                let _ = client.write_all(bytes);
                clients.push(client);
            }
        }
    }
    let mut endless = TcpStream::connect(address).ok();
    if let Some(client) = &mut endless {
        let _ = client.write_all(b"GET /metrics HTTP/1.1\r\n");
        for _ in 0..20_000 {
            if client
                .write_all(b"X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
                .is_err()
            {
                break;
            }
        }
    }
    // Meanwhile the program allocates and is sampled.
    for _ in 0..3 {
        jvm.ask("churn com.acme.orders bytes:100000*1000");
    }
    // And an honest client is served again, though the others have not gone.
    let honest = command::poll(PATIENCE, || {
        let text = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
        raw_http::exchange(address, &text)
            .ok()
            .filter(|answer| answer.status == 200)
    });
    assert!(honest.is_some(), "no honest client is served any more");
    drop(endless);
    drop(clients);

    // A client that asks for everything and reads nothing does not stop the others.
    let mut lazy = TcpStream::connect(address).expect("accepted");
    let text = format!("GET /api/v1/accounts?classes=all HTTP/1.1\r\nHost: {address}\r\n\r\n");
    lazy.write_all(text.as_bytes()).expect("accepted");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(scrape::get(address, "/metrics").status, 200);
    let mut byte = [0];
    assert_eq!(lazy.read(&mut byte).expect("answered"), 1);
    jvm.settled();
    jvm.finish();
}

#[test]
fn a_real_prometheus_scrapes_and_answers() {
    let jvm = holder();
    let configuration = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: heapwarden\n  \
         static_configs: [{{targets: ['{}']}}]\n",
        jvm.address()
    );
    let prometheus = Prometheus::start(&configuration, jvm.folder());
    // Those that succeeded: a busy machine may take longer over one than the second it is given.
    let scrapes = command::poll(PATIENCE, || {
        let count = prometheus.value("sum_over_time(up{job=\"heapwarden\"}[5m])")?;
        (count >= 3.0).then_some(())
    });
    let log = prometheus.log();
    assert!(scrapes.is_some(), "Prometheus scraped nothing:\n{log}");
    let live = command::poll(PATIENCE, || {
        prometheus.value("heapwarden_account_live_bytes{account=\"orders\"}")
    });
    assert_eq!(live, Some(jvm.accounts().holding("orders").live_bytes));
    // It asks for OpenMetrics first. Only that format names a counter's family without its suffix.
    let metadata = prometheus.api("/api/v1/targets/metadata?metric=heapwarden_samples");
    let metadata = metadata.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(metadata[0]["type"], "counter", "{metadata}");
    let histogram = "heapwarden_http_request_duration_seconds";
    let metadata = prometheus.api(&format!("/api/v1/targets/metadata?metric={histogram}"));
    let metadata = metadata.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(metadata[0]["type"], "histogram", "{metadata}");
    assert_eq!(metadata[0]["unit"], "seconds", "{metadata}");
    let slowest = format!(
        "histogram_quantile(1, sum by (le) (rate({histogram}_bucket{{path=\"/metrics\"}}[1m]))) > 0"
    );
    prometheus.until(PATIENCE, &slowest);
    jvm.finish();
}

/// While a service is refused and others read, every answer is whole and valid.
#[test]
fn answers_are_valid_while_a_service_is_refused() {
    const POLICY: &str = r#"
[sampling]
interval = "8KiB"

[enforcement]
mode = "enforce"

[[account]]
service = "svc-a"
limit = "8MiB"
work = ["victim.ServiceHost#main"]
throw = "exception"
"#;
    const MAX_GROWN: u32 = 64;
    const LEAST_READ: usize = 4;
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.ServiceHost")
        .argument(java::classes().tenant())
        .policy(POLICY)
        .start();
    jvm.ask("deploy svc-a");
    let address = jvm.address();
    let done = AtomicBool::new(false);
    let read = AtomicUsize::new(0);
    let (texts, refusals) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut texts = Vec::new();
                    // Once more after the end, for what is told by then.
                    let mut last = false;
                    while !last {
                        last = done.load(Ordering::Relaxed);
                        texts.push(scrape::get(address, "/metrics").body);
                        read.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    texts
                })
            })
            .collect();
        let mut grown = 0;
        let refused = command::poll(PATIENCE, || {
            // A megabyte each time: more would fill the heap if a busy machine is late with the
            // verdict.
            if grown < MAX_GROWN || jvm.accounts().is_in_state("svc-a", "over") {
                jvm.ask("grow svc-a 10000 100");
                grown += 1;
            }
            let refusals = jvm.metrics().sum("heapwarden_account_refusals_total");
            let is_enough = refusals >= 10.0 && read.load(Ordering::Relaxed) >= LEAST_READ;
            is_enough.then_some(refusals)
        });
        done.store(true, Ordering::Relaxed);
        let texts = readers
            .into_iter()
            .map(|reader| reader.join().expect("it reads"));
        (texts.flatten().collect::<Vec<_>>(), refused)
    });
    assert!(refusals.is_some(), "{}", jvm.log());
    assert!(texts.len() >= LEAST_READ, "{} answers", texts.len());
    let mut last = BTreeMap::new();
    for text in &texts {
        let metrics = Metrics::parse(text).unwrap_or_else(|error| panic!("{error}"));
        for (labels, buckets) in buckets(&metrics, "heapwarden_reading_duration_seconds") {
            assert!(buckets.is_sorted(), "{labels}: {buckets:?}");
            last.insert(labels, buckets);
        }
    }
    assert!(last["report"].last() > Some(&0.0), "{last:?}");
    assert!(last["verdict"].last() > Some(&0.0), "{last:?}");
    // Starting a process for each would take minutes.
    for text in texts.iter().step_by((texts.len() / 8).max(1)) {
        promtool(text);
    }
    jvm.finish();
}

/// Counts by bound, the smallest bound first, for each `purpose` of a histogram.
fn buckets(metrics: &Metrics, histogram: &str) -> BTreeMap<String, Vec<f64>> {
    let name = format!("{histogram}_bucket");
    let mut counts: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (labels, count) in metrics.series(&name) {
        let bound = labels["le"].parse().expect("a number or +Inf");
        let of_purpose = counts.entry(labels["purpose"].clone()).or_default();
        of_purpose.push((bound, count));
    }
    let sorted = |mut counts: Vec<(f64, f64)>| {
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        counts.into_iter().map(|(_, count)| count).collect()
    };
    counts
        .into_iter()
        .map(|(purpose, counts)| (purpose, sorted(counts)))
        .collect()
}
