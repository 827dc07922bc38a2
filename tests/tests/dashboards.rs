//! The Grafana dashboards, checked without Grafana: each file fits Grafana's published model, and
//! every expression, variable and annotation is evaluated by a real Prometheus that has scraped real
//! JVMs while accounts grew, were refused, and the policy was edited, well and badly.

use heapwarden_tests::grafana::model::{Dashboard, Panel, Place, Row, Target, VariableType};
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::{Jvm, tenants_host, victim};
use heapwarden_tests::prometheus::Prometheus;
use heapwarden_tests::promql::{LabelNames, Vocabulary};
use heapwarden_tests::{artifacts, command, java};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// Files and uids: people's bookmarks and other dashboards' links are made of them.
const UIDS: [&str; 2] = ["heapwarden-fleet", "heapwarden-jvm"];
/// Columns of Grafana's grid.
const COLUMNS: u32 = 24;
/// For whatever a busy machine makes slow.
const LONG: Duration = Duration::from_secs(120);
/// Between two orders that make an account grow: however long it takes, the heap has room for all.
const REST: Duration = Duration::from_millis(100);

/// Panels and columns that the story leaves at 0, and why: everything else must show something that isn't.
const QUIET: [(&str, &str); 11] = [
    (
        "Suspected to leak",
        "the story is over before a leak is one",
    ),
    ("JVMs with leaks", "the story is over before a leak is one"),
    ("Latest policy file", "the story ends with a rejected one"),
    ("Accounts folded", "there are no 200 accounts"),
    ("Samples dropped, by reason", "none was"),
    ("Versions and policies: Samples dropped", "none was"),
    ("Pressed", "a heap that full makes every test slow"),
    ("Turned away", "no container, so no doors"),
    ("Accounts: Turned away", "no container, so no doors"),
    (
        "JVMs by pressure: Retired loaders",
        "no loader of the story outlives its service",
    ),
    (
        "Retired loaders that hold memory",
        "no loader of the story outlives its service",
    ),
];

/// Panels and columns without series in the story, because that has no doors, and is over before a leak is one.
const EMPTY: [&str; 5] = [
    "Who was refused: Turned away",
    "Suspected to leak",
    "JVMs with leaks",
    "Growth of suspects",
    "Leaks across JVMs",
];
/// The metrics of the latter, with their labels.
const OF_LEAKS: [(&str, &[&str]); 2] = [
    ("heapwarden_leak_suspects", &["account"]),
    (
        "heapwarden_leak_growth_bytes_per_second",
        &["account", "class"],
    ),
];

struct File {
    dashboard: Dashboard,
    rows: Vec<Row>,
    panels: Vec<Panel>,
    text: String,
}

/// Every dashboard, by the name of its file.
fn files() -> BTreeMap<String, File> {
    let folder = artifacts::repository().join("deploy/grafana");
    let paths = fs::read_dir(folder).expect("readable").flatten();
    paths
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("readable");
            let (dashboard, rows, panels) = Dashboard::parse(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.file_stem().expect("a name").to_string_lossy();
            let file = File {
                dashboard,
                rows,
                panels,
                text,
            };
            (name.into_owned(), file)
        })
        .collect()
}

#[test]
fn the_files_fit_grafanas_model_and_each_other() {
    let files = files();
    assert!(files.keys().eq(UIDS), "{:?}", files.keys());
    for (name, file) in &files {
        assert_eq!(&file.dashboard.uid, name);
        let places = file.rows.iter().map(|row| (row.id, row.grid_pos.clone()));
        let panels = file.panels.iter();
        assert_places(places.chain(panels.map(|p| (p.id, p.grid_pos.clone()))));
        for panel in &file.panels {
            assert!(!panel.description.is_empty(), "{name}: {}", panel.title);
            let unit = &panel.field_config.defaults.unit;
            assert!(!unit.is_empty(), "{name}: {}", panel.title);
            let letters: BTreeSet<&str> = panel.targets.iter().map(|t| &*t.ref_id).collect();
            assert_eq!(letters.len(), panel.targets.len(), "{}", panel.title);
            assert!(!letters.is_empty(), "{}", panel.title);
            let sources = panel.targets.iter().map(|target| &target.datasource);
            for source in sources.chain([&panel.datasource]) {
                assert_eq!(
                    (&*source.r#type, &*source.uid),
                    ("prometheus", "${datasource}")
                );
            }
        }
        let others: Vec<&str> = file
            .text
            .match_indices("/d/")
            .map(|(at, _)| {
                let rest = &file.text[at + 3..];
                &rest[..rest.find(['?', '"']).expect("an end")]
            })
            .collect();
        assert!(!others.is_empty(), "{name} leads nowhere");
        for other in others {
            assert!(
                other != name && files.contains_key(other),
                "{name} leads to {other}"
            );
        }
    }
}

/// No two at one place, none beyond the grid, no id twice.
fn assert_places(places: impl Iterator<Item = (u32, Place)>) {
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (id, place) in places {
        assert!(ids.insert(id), "id {id} twice");
        assert!(place.x + place.w <= COLUMNS, "{place:?}");
        for x in place.x..place.x + place.w {
            for y in place.y..place.y + place.h {
                assert!(taken.insert((x, y)), "{id} overlaps at {x}, {y}");
            }
        }
    }
}

fn policy(mode: &str) -> String {
    format!(
        r#"
[sampling]
interval = "8KiB"
cpu-budget = "none"

[enforcement]
mode = "{mode}"

[[account]]
service = "svc-a"
soft-limit = "4MiB"
limit = "8MiB"
work = ["victim.ServiceHost#main"]
throw = "exception"

[[account]]
service = "svc-b"
limit = "300MiB"

[[account]]
scope = "tenant-*"
limit = "16MiB"

[[account]]
name = "xml"
packages = ["org.lib.xml.*"]
charge = "caller"
"#
    )
}

/// A little server with two services, one deployment that was replaced, and a library.
fn server() -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.ServiceHost")
        .argument(java::classes().tenant())
        .policy(&policy("observe"))
        .start();
    for service in ["svc-a", "svc-b", "old"] {
        jvm.ask(&format!("deploy {service}"));
        jvm.ask(&format!("call {service} own 10000 100"));
    }
    jvm.ask("through svc-b 10000 100");
    jvm.until(LONG, "the services are known", |accounts| {
        ["svc-a", "svc-b", "old"]
            .iter()
            .all(|name| accounts.find(name).is_some())
    });
    jvm.ask("undeploy old");
    jvm
}

/// A server with a service that names its tenant; each of the two has a limit.
fn server_with_scopes() -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = tenants_host(&vm).policy(&policy("observe")).start();
    jvm.ask("deploy svc-b shared");
    assert_eq!(jvm.ask("serve svc-b tenant-a 8"), ["held"]);
    jvm.ask("gc");
    jvm
}

fn sum(jvm: &Jvm, metric: &str) -> f64 {
    jvm.metrics().sum(metric)
}

/// Gives an order again and again until `met`.
fn until(jvm: &mut Jvm, order: &str, what: &str, mut met: impl FnMut(&Jvm, &[String]) -> bool) {
    let done = command::poll(LONG, || {
        let answer = jvm.ask(order);
        let is_met = met(jvm, &answer);
        if !is_met {
            std::thread::sleep(REST);
        }
        is_met.then_some(())
    });
    assert!(done.is_some(), "not within {LONG:?}: {what}\n{}", jvm.log());
}

/// Plays the events of an operator's days, each step seen by Prometheus before the next.
fn story(jvm: &mut Jvm, prometheus: &Prometheus) {
    let edit = |jvm: &Jvm, text: &str| {
        fs::write(jvm.folder().join("heapwarden.toml"), text).expect("writable");
    };
    let seen = |expression: &str| prometheus.until(LONG, expression);
    seen("heapwarden_account_tree_live_bytes{account=\"svc-b\"} > 8 * 1024 * 1024 * 0.5");
    seen("count_over_time(heapwarden_account_live_bytes{account=\"svc-a\"}[1m]) >= 2");
    until(jvm, "gc", "the old deployment is gone", |jvm, _| {
        sum(jvm, "heapwarden_account_left_behind_bytes") > 0.0
    });
    seen("heapwarden_principal_live_bytes{principal=\"svc-b\",agent=\"xml\"} > 0");
    seen("count(heapwarden_build_info) == 2 and on () (up == 0)");
    jvm.ask("call svc-b own 10000 500");
    // Observed only: it grows beyond its limit, the agent asks for the collection that proves it, and
    // what would have been refused is counted.
    jvm.ask("call svc-a own 10000 1200");
    jvm.until(LONG, "it is over its limit", |accounts| {
        accounts.is_in_state("svc-a", "over")
    });
    until(
        jvm,
        "grow svc-a 10000 10",
        "it would be refused",
        |jvm, _| sum(jvm, "heapwarden_account_would_refuse_total") >= 1.0,
    );
    seen("heapwarden_account_would_refuse_total > 0");
    seen("increase(heapwarden_evidence_collections_total[5m]) > 0");
    // Enforced: it is refused, and put off below a library without a frame of its own.
    edit(jvm, &policy("enforce"));
    jvm.until(LONG, "the policy is in force", |accounts| {
        accounts.0["policy"]["mode"] == "enforce"
    });
    until(jvm, "grow svc-a 10000 10", "it is refused", |_, answer| {
        answer
            .iter()
            .any(|line| line.starts_with("refused dev.heapwarden."))
    });
    // A reason's counter is there from its first time on, so Prometheus sees the second rise.
    for count in [
        "heapwarden_account_deferred_refusals_total > 0",
        "increase(heapwarden_account_deferred_refusals_total[5m]) > 0",
    ] {
        until(jvm, "through svc-a 10000 10", "it is put off", |_, _| {
            prometheus.query(count).is_ok_and(|found| !found.is_empty())
        });
    }
    seen("increase(heapwarden_account_refusals_total[5m]) > 0");
    // A slip of the pen.
    edit(jvm, "[enforcement]\nmode = \"enforced\"\n");
    seen("count_over_time((heapwarden_policy_last_reload_successful == 0)[1m:1s]) >= 3");
    seen("heapwarden_account_over_limit == 1");
}

#[test]
fn every_query_gives_data_and_names_what_is_scraped() {
    let mut jvm = server();
    let other = server_with_scopes();
    // Nothing answers there: a target that is down.
    let down = SocketAddr::from(([127, 0, 0, 1], 1));
    let targets = [jvm.address(), other.address(), down].map(|address| format!("'{address}'"));
    let configuration = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: heapwarden\n  \
         static_configs: [{{targets: [{}]}}]\n",
        targets.join(", ")
    );
    let prometheus = Prometheus::start(&configuration, jvm.folder());
    let start = now();
    story(&mut jvm, &prometheus);
    let asking = Asking {
        prometheus: &prometheus,
        there: OF_LEAKS.iter().fold(
            Vocabulary::of(&[jvm.metrics(), other.metrics()]),
            |there, (metric, labels)| there.with(metric, labels),
        ),
        range: (start, now()),
        instance: jvm.address().to_string(),
    };
    let mut faults = Vec::new();
    for (name, file) in files() {
        let found = asking.faults_of(&file);
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(
        faults.is_empty(),
        "{}\n{}",
        faults.join("\n"),
        jvm.accounts().brief()
    );
    Asking {
        instance: other.address().to_string(),
        ..asking
    }
    .assert_scopes_count(&files()["heapwarden-jvm"]);
    other.finish();
    jvm.finish();
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("after 1970").as_secs_f64()
}

/// Asks Prometheus what Grafana would.
struct Asking<'a> {
    prometheus: &'a Prometheus,
    there: Vocabulary,
    range: (f64, f64),
    instance: String,
}

impl Asking<'_> {
    /// Returns a sentence for each query of a dashboard that is wrong, with its place.
    fn faults_of(&self, file: &File) -> Vec<String> {
        let variables = self.variables(file);
        let put = |text: &str| substituted(text, &variables);
        let mut faults = Vec::new();
        let mut note = |place: &str, result: Result<(), String>| {
            faults.extend(result.err().map(|fault| format!("{place}: {fault}")));
        };
        for variable in &file.dashboard.templating.list {
            if variable.r#type == VariableType::Query {
                note(&variable.name, self.values(&put(&variable.query)));
            }
        }
        for annotation in &file.dashboard.annotations.list {
            let Some(expression) = annotation.expr.as_deref().map(put) else {
                continue;
            };
            note(
                &annotation.name,
                self.over_time(&annotation.name, &expression),
            );
            let text = annotation.text_format.as_deref().unwrap_or_default();
            note(&annotation.name, self.legend(text, &expression).map(drop));
        }
        for panel in &file.panels {
            let mut labels = LabelNames::new();
            for target in &panel.targets {
                let expression = put(&target.expr);
                let heading = panel.heading(target);
                note(&heading, self.target(target, &heading, &expression));
                let legend = target.legend_format.as_deref().unwrap_or_default();
                match self.legend(legend, &expression) {
                    Ok(found) => labels.extend(found),
                    Err(fault) => note(&heading, Err(fault)),
                }
            }
            note(&panel.title, panel.arranged(&labels));
        }
        faults
    }

    /// A service stands before its limit with the scopes in it, and their limits are within its own.
    fn assert_scopes_count(&self, file: &File) {
        let variables = self.variables(file);
        let value = |heading: &str, account: Option<&str>| -> f64 {
            let all = file.panels.iter().flat_map(|panel| {
                let of_panel = panel.targets.iter();
                of_panel.filter(|target| panel.heading(target) == heading)
            });
            let found: Vec<Value> = all
                .flat_map(|target| {
                    let expression = substituted(&target.expr, &variables);
                    self.prometheus
                        .query(&expression)
                        .expect("it was asked before")
                })
                .filter(|series| {
                    account.is_none() || series["metric"]["account"].as_str() == account
                })
                .collect();
            assert_eq!(found.len(), 1, "{heading}: {found:?}");
            numbers(&found[0])[0]
        };
        let mib = f64::from(1 << 20);
        let whole = value("Accounts: With scopes", Some("svc-b"));
        let own = value("Accounts: Live", Some("svc-b"));
        let tenant = value("Accounts: Live", Some("svc-b/tenant-a"));
        // The last two were asked for at other times than the first.
        assert!(
            (whole - own - tenant).abs() < 0.25 * mib,
            "{whole} {own} {tenant}"
        );
        assert!(tenant > 4.0 * mib, "{tenant}");
        let share = value("Accounts: Of limit", Some("svc-b"));
        assert!(
            (share * 300.0 - whole / mib).abs() < 0.25,
            "{share} {whole}"
        );
        let expression = format!(
            "heapwarden_heap_max_bytes{{instance=\"{}\"}}",
            self.instance
        );
        let heap = numbers(&self.prometheus.query(&expression).expect("PromQL")[0])[0];
        let committed = value("Limits over heap", None) * heap / mib;
        assert!(
            (committed - 300.0).abs() < 0.001,
            "not the tenant's too: {committed}"
        );
    }

    fn variables(&self, file: &File) -> Vec<(String, String)> {
        let chosen = |name: &str, many: bool| match name {
            _ if many => ".*".to_owned(),
            "datasource" => "prometheus".to_owned(),
            "job" => "heapwarden".to_owned(),
            "instance" => self.instance.clone(),
            _ => panic!("no value for ${name}"),
        };
        let own = file.dashboard.templating.list.iter().map(|variable| {
            let name = &variable.name;
            assert_eq!(variable.include_all, variable.all_value.is_some(), "{name}");
            (name.clone(), chosen(name, variable.include_all))
        });
        let grafanas = [
            ("__rate_interval", "1m"),
            ("__interval", "15s"),
            ("__range", "10m"),
        ];
        let grafanas = grafanas.map(|(name, value)| (name.to_owned(), value.to_owned()));
        grafanas.into_iter().chain(own).collect()
    }

    /// A variable's `label_values(selector, label)` has values.
    fn values(&self, query: &str) -> Result<(), String> {
        let inner = query
            .strip_prefix("label_values(")
            .and_then(|q| q.strip_suffix(')'));
        let (selector, label) = inner
            .and_then(|inner| inner.rsplit_once(", "))
            .ok_or_else(|| format!("not label_values(selector, label): {query}"))?;
        if !self.there.labels(selector)?.contains(label) {
            return Err(format!("no label {label}: {query}"));
        }
        match self.prometheus.label_values(label, selector)?.is_empty() {
            true => Err(format!("no values: {query}")),
            false => Ok(()),
        }
    }

    fn target(&self, target: &Target, heading: &str, expression: &str) -> Result<(), String> {
        if target.instant == target.range {
            return Err("either at one time or over a range".to_owned());
        }
        if target.range {
            self.over_time(heading, expression)
        } else {
            assert_shown(heading, expression, &self.prometheus.query(expression)?)
        }
    }

    fn over_time(&self, heading: &str, expression: &str) -> Result<(), String> {
        let series = self.prometheus.query_range(expression, self.range)?;
        assert_shown(heading, expression, &series)
    }

    /// The labels that an expression's series have, which must be those that a text calls for.
    fn legend(&self, text: &str, expression: &str) -> Result<LabelNames, String> {
        let labels = self
            .there
            .labels(expression)
            .map_err(|error| format!("{error}: {expression}"))?;
        for part in text.split("{{").skip(1) {
            let label = part.split("}}").next().unwrap_or_default();
            if !labels.contains(label) {
                return Err(format!("{text:?} of {labels:?}: {expression}"));
            }
        }
        Ok(labels)
    }
}

/// Something is shown that is a number and, but for what the story leaves at 0 or empty, isn't 0.
fn assert_shown(heading: &str, expression: &str, series: &[Value]) -> Result<(), String> {
    let quiet = QUIET.iter().any(|(name, _)| *name == heading);
    let mut shown = series
        .iter()
        .flat_map(numbers)
        .filter(|value| value.is_finite());
    match (series.is_empty(), shown.any(|value| quiet || value != 0.0)) {
        (_, true) => Ok(()),
        (true, _) if EMPTY.contains(&heading) => Ok(()),
        (true, _) => Err(format!("no data: {expression}")),
        _ => Err(format!("nothing but 0: {expression}")),
    }
}

/// A series' values: pairs of time and value, one of them where it was asked for one time.
fn numbers(series: &Value) -> Vec<f64> {
    let number = |pair: &Value| pair[1].as_str()?.parse().ok();
    match &series["values"] {
        Value::Array(pairs) => pairs.iter().filter_map(number).collect(),
        _ => number(&series["value"]).into_iter().collect(),
    }
}

fn substituted(text: &str, variables: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in variables {
        text = text.replace(&format!("${name}"), value);
    }
    assert!(!text.contains('$'), "an unknown variable: {text}");
    text
}
