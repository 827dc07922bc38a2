//! The alert rules of `deploy/prometheus`: valid, tested case by case, each with its section of the
//! runbook, and about metrics that a real agent publishes.

use heapwarden_tests::command;
use heapwarden_tests::jdk::{Collector, every_jdk_with};
use heapwarden_tests::jvm::{Jvm, tenants_host, victim};
use heapwarden_tests::prometheus::{Prometheus, promtool, shipped_configuration};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

const RULES: &str = "deploy/prometheus/heapwarden.rules.yml";
const RULE_TESTS: &str = "deploy/prometheus/heapwarden.rules.test.yml";
const CONFIGURATION: &str = "deploy/prometheus/prometheus.yml";
const RUNBOOK: &str = "docs/runbook.md";
/// The beginning of each `runbook_url`; the anchor follows.
const RUNBOOK_URL: &str = "https://github.com/heapwarden/heapwarden/blob/main/docs/runbook.md#";
/// The parts of a section, in their order.
const PARTS: [&str; 6] = [
    "**What it means.**",
    "**What users see.**",
    "**Look at.**",
    "**Do.**",
    "**Do not.**",
    "**Silence.**",
];
/// Published only while something is suspected to leak, which takes minutes. The agent tests that it is in its
/// catalogue.
const OF_SUSPECTS: [&str; 2] = [
    "heapwarden_leak_growth_bytes_per_second",
    "heapwarden_leak_kept_by_info",
];
/// How the JVM of the test is called by its target's label.
const INSTANCE: &str = "shop-1";
/// Longest that Prometheus may take to show what the agent publishes.
const SCRAPE_LIMIT: Duration = command::PATIENCE;

fn path(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
}

fn text(of: &str) -> String {
    let path = path(of);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(of: &str) -> Value {
    serde_yaml_ng::from_str(&text(of)).unwrap_or_else(|error| panic!("{of}: {error}"))
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key]
        .as_array()
        .unwrap_or_else(|| panic!("no list {key} in {of}"))
}

fn word(of: &Value) -> &str {
    of.as_str().unwrap_or_else(|| panic!("no text: {of}"))
}

/// Every rule by the name of its alert; recording rules left out.
fn alerts() -> BTreeMap<String, Value> {
    let rules = yaml(RULES);
    let alerts: BTreeMap<String, Value> = list(&rules, "groups")
        .iter()
        .flat_map(|group| list(group, "rules"))
        .filter(|rule| rule["alert"].is_string())
        .map(|rule| (word(&rule["alert"]).to_owned(), rule.clone()))
        .collect();
    assert!(!alerts.is_empty(), "{RULES} has no alerts");
    alerts
}

/// The runbook's sections about alerts: heading and text.
fn sections() -> Vec<(String, String)> {
    let runbook = text(RUNBOOK);
    runbook
        .split("\n## ")
        .skip(1)
        .map(|section| {
            let (heading, body) = section.split_once('\n').expect("a section has a text");
            (heading.to_owned(), body.to_owned())
        })
        .collect()
}

/// The queries that the runbook tells to ask.
fn queries_of_the_runbook() -> Vec<String> {
    text(RUNBOOK)
        .split("```promql\n")
        .skip(1)
        .map(|rest| {
            let (query, _) = rest.split_once("\n```").expect("a block ends");
            query.to_owned()
        })
        .collect()
}

#[test]
fn promtool_accepts_the_rules_and_the_example_configuration() {
    for (check, file) in [("rules", RULES), ("config", CONFIGURATION)] {
        let finished = promtool(&["check", check], &path(file));
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(finished.status.success(), "{file}:\n{said}");
        // An example that does not load the rules would be accepted as well.
        let found = format!("{} rules found", list_of_rules().len());
        assert!(said.contains(&found), "{file}: {found}?\n{said}");
    }
}

fn list_of_rules() -> Vec<Value> {
    let rules = yaml(RULES);
    let groups = list(&rules, "groups").iter();
    groups
        .flat_map(|group| list(group, "rules"))
        .cloned()
        .collect()
}

#[test]
fn the_rules_fire_and_are_silent_as_their_tests_say() {
    let finished = promtool(&["test", "rules"], &path(RULE_TESTS));
    assert!(
        finished.status.success(),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
}

#[test]
fn every_alert_has_a_case_that_fires_and_one_that_does_not() {
    let tests = yaml(RULE_TESTS);
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for case in list(&tests, "tests")
        .iter()
        .flat_map(|group| list(group, "alert_rule_test"))
    {
        let name = word(&case["alertname"]).to_owned();
        let expected = list(case, "exp_alerts");
        for alert in expected {
            let annotations = &alert["exp_annotations"];
            for key in ["summary", "description", "runbook_url"] {
                assert!(!word(&annotations[key]).is_empty(), "{name}: {key}");
            }
        }
        if expected.is_empty() {
            silent.insert(name);
        } else {
            firing.insert(name);
        }
    }
    let alerts: BTreeSet<String> = alerts().into_keys().collect();
    assert_eq!(firing, alerts, "alerts with a case that fires");
    assert_eq!(silent, alerts, "alerts with a case that does not");
}

#[test]
fn every_alert_says_what_an_operator_needs() {
    for (name, rule) in alerts() {
        let severity = word(&rule["labels"]["severity"]);
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}: severity {severity}"
        );
        let annotations = &rule["annotations"];
        for key in ["summary", "description"] {
            assert!(word(&annotations[key]).len() > 20, "{name}: {key}");
        }
        let expected = format!("{RUNBOOK_URL}{}", name.to_lowercase());
        assert_eq!(word(&annotations["runbook_url"]), expected, "{name}");
    }
}

#[test]
fn every_alert_has_its_section_of_the_runbook_and_every_section_its_alert() {
    let alerts: BTreeSet<String> = alerts().into_keys().collect();
    let sections = sections();
    let headings: BTreeSet<String> = sections.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(headings.len(), sections.len(), "a heading twice");
    // GitHub makes the anchor of a heading of one word by lower case, as the rules' links do.
    assert_eq!(headings, alerts);
    for (heading, body) in &sections {
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| body.find(part)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{heading} lacks one of {PARTS:?}, or has them in another order: {places:?}"
        );
        let looks = body.contains("```promql\n") || body.contains("```sh\n");
        assert!(looks, "{heading} has no query and no command");
    }
    // A section may send the reader to another alert: which must exist.
    let runbook = text(RUNBOOK);
    for name in names_beginning_with("Heapwarden", &runbook) {
        let exists = name == "Heapwarden" || alerts.contains(name);
        assert!(
            exists,
            "{RUNBOOK} names an alert that does not exist: {name}"
        );
    }
}

/// Words of letters, digits and underscores in `text` that begin with `prefix`.
fn names_beginning_with<'a>(prefix: &'a str, text: &'a str) -> BTreeSet<&'a str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(prefix))
        .collect()
}

/// Labels that an expression selects or groups by.
fn labels(expression: &str) -> BTreeSet<&str> {
    let lists = ["by (", "without (", "ignoring (", "on ("]
        .into_iter()
        .flat_map(|keyword| expression.split(keyword).skip(1))
        .filter_map(|rest| rest.split(')').next())
        .flat_map(|list| list.split(','));
    let selected = expression
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .flat_map(|matchers| matchers.split(','))
        .filter_map(|matcher| matcher.split(['=', '!']).next());
    lists
        .chain(selected)
        .map(str::trim)
        .filter(|label| !label.is_empty())
        .collect()
}

/// A JVM whose account `orders` is over its limit and has had refusals put off.
fn over_its_limit() -> Jvm {
    let policy = r#"
        [sampling]
        interval = "8KiB"

        [[account]]
        name = "orders"
        packages = ["com.acme.orders"]
        soft-limit = "300KiB"
        limit = "400KiB"
        direct-limit = "1GiB"
    "#;
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = victim(&vm, "victim.Holder")
        .argument("com.acme.orders")
        .argument("org.lib.json")
        .policy(policy)
        .start();
    jvm.ask("hold com.acme.orders bytes:100000*100");
    jvm.settled();
    let deferred = command::poll(SCRAPE_LIMIT, || {
        jvm.ask("churn com.acme.orders bytes:100000*100");
        let metrics = jvm.metrics();
        let families = metrics.families();
        families
            .contains("heapwarden_account_deferred_refusals_total")
            .then_some(())
    });
    assert!(deferred.is_some(), "{}", jvm.log());
    jvm
}

/// A JVM whose service has a scope inside.
fn with_scopes() -> Jvm {
    let vm = every_jdk_with(Collector::G1).pop().expect("never empty");
    let mut jvm = tenants_host(&vm).start();
    jvm.ask("deploy shop shared");
    assert_eq!(jvm.ask("serve shop tenant-1 8"), ["held"]);
    jvm
}

/// A Prometheus of the example configuration that watches this JVM, and others with it.
fn watching(jvm: &Jvm, others: &[(&str, &Jvm)]) -> Prometheus {
    let targets: Vec<_> = [(INSTANCE, jvm)]
        .iter()
        .chain(others)
        .map(|(name, jvm)| (*name, jvm.address()))
        .collect();
    Prometheus::start(&shipped_configuration(&targets), jvm.folder())
}

#[test]
fn rules_and_runbook_ask_for_what_a_real_agent_publishes() {
    let jvm = over_its_limit();
    let other = with_scopes();
    let prometheus = watching(&jvm, &[("shop-2", &other)]);
    let tenants = "heapwarden_account_tree_live_bytes{instance=\"shop-2\"}";
    let seen = command::poll(SCRAPE_LIMIT, || prometheus.query(tenants).ok()?.pop());
    assert!(seen.is_some(), "no scopes: {}", other.accounts().brief());
    let all = format!(
        "count by (instance) ({{instance=\"{INSTANCE}\", __name__=~\"heapwarden_.+\", jvm=\"\"}})"
    );
    let scraped = command::poll(SCRAPE_LIMIT, || prometheus.query(&all).ok()?.pop());
    let scraped = scraped.unwrap_or_else(|| panic!("nothing scraped:\n{}", prometheus.log()));
    assert_eq!(scraped["metric"]["instance"], INSTANCE, "the relabelling");

    let queries = queries_of_the_runbook();
    assert!(queries.len() > 20, "the runbook has queries");
    for query in &queries {
        let answer = prometheus.query(query);
        assert!(answer.is_ok(), "{RUNBOOK}: {}", answer.unwrap_err());
    }
    // A scrape that takes longer than its second leaves no series until the next.
    let is_published = |metric: &str| {
        let published = command::poll(SCRAPE_LIMIT, || {
            let series = prometheus.query(metric).expect("a name is an expression");
            (!series.is_empty()).then_some(())
        });
        published.is_some()
    };
    let rules = list_of_rules();
    let expressions = rules.iter().map(|rule| word(&rule["expr"]));
    let expressions = expressions.chain(queries.iter().map(String::as_str));
    for expression in expressions {
        let metrics = names_beginning_with("heapwarden_", expression).into_iter();
        for metric in metrics.filter(|metric| !OF_SUSPECTS.contains(metric)) {
            assert!(is_published(metric), "no {metric}, in {expression}");
        }
        for label in labels(expression) {
            let any = format!("count({{{label}!=\"\", job=\"heapwarden\"}})");
            let any = command::poll(SCRAPE_LIMIT, || prometheus.value(&any));
            assert!(any.is_some(), "no label {label}, in {expression}");
        }
    }
    // The texts ask for figures as well.
    let rules = text(RULES);
    let metrics = names_beginning_with("heapwarden_", &rules).into_iter();
    for metric in metrics.filter(|metric| !OF_SUSPECTS.contains(metric)) {
        assert!(is_published(metric), "no {metric} in a scrape");
    }
    other.finish();
    jvm.finish();
}

#[test]
fn a_real_account_over_its_limit_raises_its_alerts() {
    let jvm = over_its_limit();
    let prometheus = watching(&jvm, &[]);
    let raised = |name: &str| {
        let mut alerts = prometheus.alerts().into_iter();
        alerts.find(|alert| alert["labels"]["alertname"] == name)
    };
    for name in ["HeapwardenAccountFull", "HeapwardenSamplingCoarse"] {
        let alert = command::poll(SCRAPE_LIMIT, || raised(name));
        let alert = alert.unwrap_or_else(|| panic!("{name} is not raised:\n{}", prometheus.log()));
        assert_eq!(alert["labels"]["account"], "orders", "{alert}");
        assert_eq!(alert["labels"]["instance"], INSTANCE, "{alert}");
        let description = word(&alert["annotations"]["description"]);
        assert!(description.contains("400kiB"), "the limit: {description}");
    }
    for name in [
        "HeapwardenAccountAlmostFull",
        "HeapwardenAccountRefused",
        "HeapwardenSamplingOff",
        "HeapwardenReloadFailed",
        "HeapwardenTargetDown",
        "HeapwardenMetricsMissing",
        "HeapwardenNoTargets",
    ] {
        // Before the first scrape there was no target, rightly told.
        let silent = command::poll(SCRAPE_LIMIT, || raised(name).is_none().then_some(()));
        assert!(silent.is_some(), "{name} is raised: {:?}", raised(name));
    }
    let groups = prometheus
        .api("/api/v1/rules")
        .unwrap_or_else(|error| panic!("{error}"));
    for rule in list(&groups, "groups")
        .iter()
        .flat_map(|group| list(group, "rules"))
    {
        assert_ne!(rule["health"], "err", "{rule}");
    }
    jvm.finish();
}
