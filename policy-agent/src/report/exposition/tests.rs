//! Golden texts, and the judgement of Prometheus' own tools.

use policy_core::enforce::duress::Figures;
use std::sync::Arc;

use policy_core::exact::{Compared, ContextOverflow, ExactStatus};
use policy_core::leaks::{Report, Suspect};
use policy_core::live_by_ratio::LiveByRatio;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;

use super::super::fold::Folder;
use super::super::recorder::BUCKETS;
use super::super::{
    Account, Evidence, Heap, Kind, Mode, PolicyStatus, Principal, Process, Route, Sampling, State,
    Tree,
};
use super::*;
use crate::events;
use policy_core::usage::{Resource, Usage};
use policy_report::catalog;

fn rendered(format: Format, snapshot: &Snapshot) -> String {
    let folded = Folder::new(200).fold(&snapshot.accounts);
    render(format, snapshot, &folded, &EVENTS)
}

/// Something of each kind has happened.
static EVENTS: LazyLock<EventRecorder> = LazyLock::new(|| {
    let recorder = EventRecorder::default();
    recorder.run(|| {
        for _ in 0..3 {
            events::http_response(200);
        }
        events::evidence_collection("young", Duration::from_millis(1));
        events::evidence_collection("young", Duration::from_millis(1500));
        events::verdict("over", Duration::from_secs(3600));
    });
    recorder
});

/// A snapshot in which every metric has a sample, with names as hostile as they get.
fn full() -> Snapshot {
    let account = |name: &str| Account {
        name: name.to_owned(),
        kind: Kind::Scope,
        service: "a \"b\"\\\n".to_owned(),
        parent: "p".to_owned(),
        tree: Some(Tree::default()),
        live_bytes: 1 << 60,
        charged_bytes: u64::MAX,
        standard_error_bytes: 0.25,
        live_standard_error_bytes: 0.125,
        exact_allocated_bytes_total: Some(7),
        exact_allocated_objects_total: Some(1),
        live_by_ratio: Some(LiveByRatio {
            bytes: 4.0,
            standard_error_bytes: 0.5,
        }),
        soft_limit_bytes: Some(5),
        limit_bytes: Some(6),
        direct_limit_bytes: Some(7),
        direct_refusals_total: Some(2),
        direct_would_refuse_total: Some(3),
        direct_deferred_total: Some(4),
        state: State::Over,
        deferred: vec![("clinit", 1), ("lock", 2)],
        principals: vec![Principal {
            name: "_unaccounted".to_owned(),
            live_bytes: 1,
        }],
        usage: (Resource::ALL.into_iter())
            .map(|resource| Usage { resource, used: 3 })
            .collect(),
        routes: vec![Route {
            route: format!("GET /{name}"),
            ..Route::default()
        }],
        ..Account::default()
    };
    Snapshot {
        unentered_blocks: 3,
        assumed_blocks: 4,
        process: Process::default(),
        evidence_budget_used_up_seconds: None,
        duress: Figures {
            is_on: true,
            free_bytes: 7,
            short_below_bytes: 8,
        },
        heap: Heap {
            used_after_gc_bytes: 1,
            max_bytes: 2,
            gc_epoch: 3,
            live_gc_epoch: 2,
            live_age_seconds: Some(1.5),
            accounts: Some(super::super::accounts_sum_of_a_test()),
        },
        sampling: Sampling {
            interval_bytes: 65536,
            samples: 4,
            dropped: vec![("slab_full", 0), ("reentry", 1)],
            thinned: 5,
            thinned_by_class: 6,
            error_factor: 1.0,
            callback_p50_ns: 900,
            callback_p99_ns: 4_000,
        },
        policy: PolicyStatus {
            generation: 1,
            mode: Mode::Enforce,
            evidence_budget_ratio: 0.05,
            last_reload_success_timestamp_seconds: 1_700_000_000.5,
            ..PolicyStatus::default()
        },
        accounts: vec![
            account("shop"),
            account("quote\" backslash\\ feed\n return\r tab\t nul\0 end\\"),
            account("{le=\"+Inf\"} 1 # EOF"),
            account("\u{7f}\u{85}\u{2028}ünïcødé 🙂"),
            account("\\n"),
            account(""),
        ],
        exact: Some(ExactStatus {
            is_on: true,
            compared: Some(Compared {
                jvm_bytes: 1 << 40,
                counted_bytes: (1 << 40) + 5,
            }),
            rewritten: 8,
            skipped: vec![("old", 1)],
            lost_objects: 0,
            contexts: Some(ContextOverflow {
                contexts: 65_535,
                by_reason: [(1, 2), (3, 4), (0, 6)],
                ..ContextOverflow::default()
            }),
        }),
        scope_misuses: vec![("closed_twice", 0), ("folded", 3)],
        capabilities: vec![("sampled_object_alloc", true), ("tag_objects", false)],
        evidence: vec![Evidence {
            kind: "young",
            collections: 2,
            seconds: 0.5,
        }],
        cpu_seconds: vec![("http", 0.001)],
        memory_bytes: vec![("slab", 4096)],
        build: vec![("version", "0.1.0".to_owned()), ("jvm", "17".to_owned())],
        stacks: 7,
        stacks_skipped: vec![("budget", 0), ("full", 1)],
        leaks: Arc::new(Report {
            suspects: vec![Suspect {
                account: "{le=\"+Inf\"} 1 # EOF".into(),
                class: "a\"\n\\".into(),
                growth_bytes_per_second: 1.5,
                kept_by: vec!["static a.B.c\n# EOF".into()],
                ..Suspect::default()
            }],
            ..Report::default()
        }),
        leaks_judged_at: None,
    }
}

/// An idle agent with one account: what the golden texts show.
fn small() -> Snapshot {
    Snapshot {
        accounts: vec![Account {
            name: "a\"b".to_owned(),
            kind: Kind::Service,
            service: "/a\\b\n".to_owned(),
            live_bytes: 7,
            standard_error_bytes: 1.5,
            live_standard_error_bytes: 0.5,
            limit_bytes: Some(9),
            deferred: vec![("clinit", 2)],
            ..Account::default()
        }],
        build: vec![("version", "0.1.0".to_owned())],
        ..Snapshot::default()
    }
}

/// Lines about one metric, by the end of its name.
fn about(text: &str, name: &str) -> String {
    let head = |line: &str| {
        let rest = ["# HELP ", "# TYPE ", "# UNIT "]
            .iter()
            .find_map(|prefix| line.strip_prefix(prefix));
        rest.and_then(|rest| rest.split(' ').next())
            .map(str::to_owned)
    };
    let sample = |line: &str| line.split(['{', ' ']).next().map(str::to_owned);
    let wanted = [
        name,
        name.trim_end_matches("_total"),
        name.trim_end_matches("_info"),
    ];
    text.lines()
        .filter(|line| {
            let found = head(line).or_else(|| sample(line));
            found.is_some_and(|found| wanted.contains(&found.as_str()))
        })
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn prometheus_text_of_each_type_of_metric() {
    let text = rendered(Format::Prometheus, &small());
    assert_eq!(
        about(&text, "heapwarden_account_live_bytes"),
        "# HELP heapwarden_account_live_bytes Estimated bytes charged to the account that had survived the latest collection.\n\
         # TYPE heapwarden_account_live_bytes gauge\n\
         heapwarden_account_live_bytes{account=\"a\\\"b\"} 7\n"
    );
    assert_eq!(
        about(&text, "heapwarden_account_deferred_refusals_total"),
        "# HELP heapwarden_account_deferred_refusals_total Refusals due where throwing was not safe, by reason.\n\
         # TYPE heapwarden_account_deferred_refusals_total counter\n\
         heapwarden_account_deferred_refusals_total{account=\"a\\\"b\",reason=\"clinit\"} 2\n"
    );
    assert_eq!(
        about(&text, "heapwarden_account_info"),
        "# HELP heapwarden_account_info What the account stands for; `parent` is the account of the service around a scope.\n\
         # TYPE heapwarden_account_info gauge\n\
         heapwarden_account_info{account=\"a\\\"b\",kind=\"service\",service=\"/a\\\\b\\n\"} 1\n"
    );
    assert!(text.contains("\nheapwarden_account_standard_error_bytes{account=\"a\\\"b\"} 1.5\n"));
    assert!(
        text.contains("\nheapwarden_account_live_standard_error_bytes{account=\"a\\\"b\"} 0.5\n")
    );
    assert!(text.contains("\nheapwarden_gc_epoch 0\n"));
    assert!(
        !text.contains("heapwarden_live_age_seconds"),
        "before the first collection"
    );
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

#[test]
fn openmetrics_text_of_each_type_of_metric() {
    let text = rendered(Format::OpenMetrics, &small());
    assert_eq!(
        about(&text, "heapwarden_account_allocated_bytes_total"),
        "# HELP heapwarden_account_allocated_bytes Estimated bytes ever charged to the account.\n\
         # TYPE heapwarden_account_allocated_bytes counter\n\
         # UNIT heapwarden_account_allocated_bytes bytes\n\
         heapwarden_account_allocated_bytes_total{account=\"a\\\"b\"} 0\n"
    );
    assert_eq!(
        about(&text, "heapwarden_build_info"),
        "# HELP heapwarden_build Version of the agent, and what it runs on.\n\
         # TYPE heapwarden_build info\n\
         heapwarden_build_info{version=\"0.1.0\"} 1\n"
    );
    assert!(text.contains("# TYPE heapwarden_gc_epoch gauge\nheapwarden_gc_epoch 0\n"));
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn what_is_recorded_is_in_the_catalogue_with_its_label_and_type() {
    let recorded: BTreeMap<_, _> = (events::HISTOGRAMS.iter())
        .map(|family| (family.name, (family.label, Type::Histogram)))
        .chain((events::COUNTERS.iter()).map(|family| (family.name, (family.label, Type::Counter))))
        .collect();
    let catalogue: BTreeMap<_, _> = (RECORDED.iter())
        .map(|metric| (metric.name, (metric.labels[0], metric.kind)))
        .collect();
    assert_eq!(recorded, catalogue);
}

#[test]
fn a_histogram_in_both_formats() {
    let name = "heapwarden_evidence_collection_duration_seconds";
    let help = "Time that each collection which the agent asked for took, by kind.";
    let mut young = String::new();
    for (bound, count) in [
        ("0.001", 1),
        ("0.0025", 1),
        ("0.01", 1),
        ("0.025", 1),
        ("0.1", 1),
        ("0.25", 1),
        ("1.0", 1),
        ("2.5", 2),
        ("10.0", 2),
        ("60.0", 2),
        ("+Inf", 2),
    ] {
        young += &format!("{name}_bucket{{kind=\"young\",le=\"{bound}\"}} {count}\n");
    }
    young += &format!("{name}_sum{{kind=\"young\"}} 1.501\n{name}_count{{kind=\"young\"}} 2\n");
    let text = rendered(Format::Prometheus, &small());
    let head = format!("# HELP {name} {help}\n# TYPE {name} histogram\n{name}_bucket{{");
    assert!(text.contains(&head) && text.contains(&young), "{text}");
    let text = rendered(Format::OpenMetrics, &small());
    let unit = format!("# TYPE {name} histogram\n# UNIT {name} seconds\n{name}_bucket{{");
    assert!(text.contains(&unit) && text.contains(&young), "{text}");
    assert!(!text.contains("\n\n"));
}

#[test]
fn every_series_of_events_is_there_before_the_first() {
    let folded = Folder::new(200).fold(&[]);
    let fresh = EventRecorder::default();
    let text = render(Format::Prometheus, &Snapshot::default(), &folded, &fresh);
    let mut series = 0;
    for family in events::HISTOGRAMS {
        for value in family.values {
            let (name, label) = (family.name, family.label);
            let line = format!("\n{name}_bucket{{{label}=\"{value}\",le=\"+Inf\"}} 0\n");
            assert!(text.contains(&line), "{line}");
            series += BUCKETS.len() + 3;
        }
    }
    for family in events::COUNTERS {
        for value in family.values {
            let line = format!("\n{}{{{}=\"{value}\"}} 0\n", family.name, family.label);
            assert!(text.contains(&line), "{line}");
            series += 1;
        }
    }
    let first = text.find("# HELP heapwarden_http_responses_total").unwrap();
    let published = text[first..].lines().filter(|line| !line.starts_with('#'));
    assert_eq!(published.count(), series);
}

#[test]
fn the_policy_in_force_shows_as_numbers() {
    let text = rendered(Format::Prometheus, &full());
    assert!(text.contains("\nheapwarden_policy_enforcing 1\n"));
    assert!(text.contains("\nheapwarden_evidence_budget_ratio 0.05\n"));
    assert!(text.contains("\nheapwarden_duress 1\n"));
    assert!(text.contains("\nheapwarden_heap_free_bytes 7\n"));
    assert!(text.contains("\nheapwarden_heap_short_below_bytes 8\n"));
    assert!(text.contains("\nheapwarden_accounts_over_heap_ratio 2.25\n"));
    assert!(text.contains("\nheapwarden_accounts_exceed_heap 1\n"));
    let text = rendered(Format::Prometheus, &small());
    assert!(text.contains("\nheapwarden_policy_enforcing 0\n"));
}

#[test]
fn a_limit_that_does_not_exist_is_absent() {
    let text = rendered(Format::Prometheus, &small());
    assert!(text.contains("\nheapwarden_account_limit_bytes{account=\"a\\\"b\"} 9\n"));
    assert!(!text.contains("soft_limit_bytes"));
    assert!(!text.contains("heapwarden_account_direct_limit_bytes"));
    assert!(!text.contains("heapwarden_account_direct_refusals_total"));
}

#[test]
fn every_metric_of_the_catalogue_is_published_with_its_labels() {
    let snapshot = full();
    let folded = Folder::new(200).fold(&snapshot.accounts);
    let families = families(&snapshot, &folded);
    let published: Vec<_> = families.iter().map(|family| family.metric.name).collect();
    let catalogue: Vec<_> = catalog::FIGURES
        .iter()
        .chain(catalog::HELD)
        .map(|m| m.name)
        .collect();
    assert_eq!(published, catalogue);
    let text = rendered(Format::Prometheus, &snapshot);
    let heads = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
    let heads: Vec<_> = heads.filter_map(|head| head.split(' ').next()).collect();
    let catalogue: Vec<_> = catalog::all().map(|metric| metric.name).collect();
    assert_eq!(heads, catalogue);
    for family in &families {
        for sample in &family.samples {
            let labels: Vec<_> = sample.labels.iter().map(|(name, _)| *name).collect();
            assert!(
                labels.starts_with(family.metric.labels),
                "{}",
                family.metric.name
            );
            let open =
                ["heapwarden_build_info", "heapwarden_account_info"].contains(&family.metric.name);
            assert!(
                open || labels == family.metric.labels,
                "{}",
                family.metric.name
            );
        }
    }
}

#[test]
fn non_finite_numbers_are_spelled_as_the_formats_want() {
    let spelled = |value: f64| {
        let mut out = String::new();
        number(&mut out, Value::Real(value));
        out
    };
    assert_eq!(spelled(f64::NAN), "NaN");
    assert_eq!(spelled(f64::INFINITY), "+Inf");
    assert_eq!(spelled(f64::NEG_INFINITY), "-Inf");
    assert_eq!(spelled(1_700_000_000.25), "1700000000.25");
}

/// Runs promtool on `input`; a machine without it fails, with the line to type.
fn promtool(args: &[&str], input: &str) -> Output {
    let mut child = Command::new("promtool")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("promtool does not start ({error}): type `apt-get install prometheus`")
        });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn promtool_finds_nothing_to_say_about_the_prometheus_text() {
    for snapshot in [full(), small(), Snapshot::default()] {
        let output = promtool(
            &["check", "metrics"],
            &rendered(Format::Prometheus, &snapshot),
        );
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(said(&output), "");
    }
}

#[test]
fn promtool_does_find_faults() {
    let output = promtool(&["check", "metrics"], "# TYPE a gauge\na{x=\"\\q\"} 1\n");
    assert!(!output.status.success());
}

/// `promtool check metrics` reads only the older format. Its block importer has Prometheus'
/// own OpenMetrics parser, the one that scrapes; it wants a time stamp on every sample.
fn import(text: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("metrics.om");
    let stamped: String = text
        .lines()
        .map(|line| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line} 1700000000\n"),
        })
        .collect();
    std::fs::write(&input, stamped).unwrap();
    let blocks = directory.path().join("blocks");
    let [input, blocks] = [&input, &blocks].map(|path| path.to_str().unwrap());
    promtool(
        &["tsdb", "create-blocks-from", "openmetrics", input, blocks],
        "",
    )
}

#[test]
fn prometheus_parses_the_openmetrics_text() {
    for snapshot in [full(), small(), Snapshot::default()] {
        let text = rendered(Format::OpenMetrics, &snapshot);
        let output = import(&text);
        assert!(output.status.success(), "{}\n{text}", said(&output));
    }
}

#[test]
fn prometheus_rejects_faulty_openmetrics_text() {
    let text = rendered(Format::OpenMetrics, &small());
    for faulty in [
        text.replace("# EOF\n", ""),
        text.replace(
            "# UNIT heapwarden_heap_max_bytes bytes",
            "# UNIT heapwarden_heap_max_bytes s",
        ),
        text.replace("a\\\"b", "a\"b"),
    ] {
        assert_ne!(faulty, text);
        assert!(!import(&faulty).status.success());
    }
}

/// An independent reading of one label value, after the words of the format's page.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(match chars.next()? {
                '\\' => '\\',
                '"' => '"',
                'n' => '\n',
                _ => return None,
            }),
            '"' | '\n' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

proptest! {
    #[test]
    fn label_values_survive_escaping(value in "(\\PC|[\\\\\"\n\r\t\0])*") {
        let mut out = String::new();
        escape(&mut out, &value, true);
        prop_assert_eq!(unescaped(&out), Some(value));
    }

    #[test]
    fn a_hostile_name_stays_on_its_line(name in "(\\PC|[\\\\\"\n\r# {}])*") {
        let mut snapshot = small();
        snapshot.accounts[0].name = name;
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let lines = |snapshot| rendered(format, snapshot).matches('\n').count();
            prop_assert_eq!(lines(&snapshot), lines(&small()));
        }
    }
}
