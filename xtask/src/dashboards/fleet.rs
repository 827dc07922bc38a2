//! The view of all JVMs: which are pressed, whose accounts grow across them, what runs where.

use serde_json::{Value, json};

use super::board::{Board, Choice, FLEET_UID, JVM_UID};
use super::expression::written_out;
use super::panel::{ANY_ALARMS, ANY_WARNS, MODES, Panel, TIGHT, mappings, thresholds};
use super::table::Table;

const PRESSURE: &str = "max by (job, instance) (heapwarden_heap_used_after_gc_bytes{@jvms}) \
    / max by (job, instance) (heapwarden_heap_max_bytes{@jvms})";
const COMMITTED: &str = "sum by (job, instance) (@outer_limits) \
    / max by (job, instance) (heapwarden_heap_max_bytes{@jvms})";

/// Its expressions: `@jvms` selects the JVMs, `@accounts` the accounts chosen in them.
fn of(expression: &str) -> String {
    written_out(expression, "@accounts", "@jvms")
        .replace("@accounts", "@jvms,account=~\"$account\"")
        .replace("@jvms", "job=~\"$job\",instance=~\"$instance\"")
}

/// The dashboard.
pub(super) fn dashboard() -> Value {
    Board::new(
        FLEET_UID,
        "Heapwarden / Fleet",
        "All JVMs with Heapwarden: which are pressed, which accounts are large across them, who was \
         refused, what runs where.",
    )
    .variable("job", "Job", "heapwarden_build_info", Choice::Many)
    .variable(
        "instance",
        "JVM",
        "up{job=~\"$job\"}",
        Choice::Many,
    )
    .variable(
        "account",
        "Account",
        &of("heapwarden_account_live_bytes{@jvms}"),
        Choice::Many,
    )
    .annotation(
        "Refused",
        "red",
        of("sum by (instance, account) (increase(heapwarden_account_refusals_total{@accounts}[2m])) > 0"),
        "{{account}} was over its limit on {{instance}} and was refused memory",
    )
    .annotation_at(
        "Policy in force",
        "blue",
        of("1000 * heapwarden_policy_last_reload_success_timestamp_seconds{@jvms}"),
        "A policy came into force on {{instance}}",
    )
    .annotation(
        "Policy rejected",
        "orange",
        of("heapwarden_policy_last_reload_successful{@jvms} == bool 0"),
        "{{instance}} rejected its policy file; the policy before it stays in force",
    )
    .link("One JVM", JVM_UID)
    .row("Now", now())
    .row("JVMs", jvms())
    .row("Accounts across JVMs", accounts())
    .row("Leaks", leaks())
    .row("Refusals", refusals())
    .row("Versions and policies", versions())
    .finish()
}

fn now() -> Vec<Panel> {
    vec![
        Panel::figure("JVMs", "none", "JVMs that answer and have Heapwarden.")
            .now(of("count(heapwarden_build_info{@jvms})"), ""),
        Panel::figure(
            "Down",
            "none",
            "Targets that do not answer: the JVM has ended, or Heapwarden's listener can't be reached.",
        )
        .now(of("sum(1 - up{@jvms})"), "")
        .coloured(&ANY_ALARMS),
        Panel::figure(
            "Pressed",
            "none",
            "JVMs whose heap is more than 85 % full after a collection.",
        )
        .now(of(&format!("sum({PRESSURE} > bool 0.85)")), "")
        .coloured(&ANY_WARNS),
        Panel::figure(
            "Overcommitted",
            "none",
            "JVMs whose accounts' limits together exceed the maximum heap; a scope's is within its service's.",
        )
        .now(of(&format!("sum({COMMITTED} > bool 1)")), "")
        .coloured(&ANY_WARNS)
        .or("no limits"),
        Panel::figure(
            "Accounts over limit",
            "none",
            "Accounts of which more than their limit survived a collection of all memory, in all JVMs.",
        )
        .now(of("sum(heapwarden_account_over_limit{@accounts})"), "")
        .coloured(&ANY_ALARMS)
        .sized(4, 4),
        Panel::figure(
            "Refused",
            "none",
            "Allocations refused in the time shown, in all JVMs.",
        )
        .now(
            of("sum(increase(heapwarden_account_refusals_total{@accounts}[$__range]))"),
            "",
        )
        .default("decimals", json!(0))
        .coloured(&ANY_ALARMS)
        .sized(4, 4),
        Panel::figure(
            "Policy files rejected",
            "none",
            "JVMs whose latest policy file has errors; the policy before it stays in force there.",
        )
        .now(
            of("sum(1 - heapwarden_policy_last_reload_successful{@jvms})"),
            "",
        )
        .coloured(&ANY_ALARMS)
        .sized(4, 4),
    ]
}

fn jvms() -> Vec<Panel> {
    let share = [
        ("thresholds", thresholds(&TIGHT)),
        ("color", json!({"mode": "thresholds"})),
        ("min", json!(0)),
        ("max", json!(1)),
        (
            "custom.cellOptions",
            json!({"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}),
        ),
    ];
    let table = Table::new(
        "JVMs by pressure",
        "Fullest first. A heap that is full after a collection leaves the collector no room; limits \
         above 100 % of it let the accounts fill it although each stays within its own. A click on a \
         JVM opens its view.",
        &[("instance", "JVM"), ("job", "Job")],
    )
    .column_with("Heap after collection", "percentunit", &of(PRESSURE), &share)
    .column(
        "In use",
        "bytes",
        &of("max by (job, instance) (heapwarden_heap_used_after_gc_bytes{@jvms})"),
    )
    .column(
        "Maximum",
        "bytes",
        &of("max by (job, instance) (heapwarden_heap_max_bytes{@jvms})"),
    )
    .column("Limits over heap", "percentunit", &of(COMMITTED))
    .column(
        "Trend per hour",
        "bytes",
        &of("3600 * max by (job, instance) (deriv(heapwarden_heap_used_after_gc_bytes{@jvms}[1h]))"),
    )
    .column(
        "Accounts",
        "short",
        &of("count by (job, instance) (heapwarden_account_live_bytes{@jvms})"),
    )
    .column(
        "Over limit",
        "short",
        &of("sum by (job, instance) (heapwarden_account_over_limit{@jvms})"),
    )
    .column(
        "Refused",
        "short",
        &of("round(sum by (job, instance) (increase(heapwarden_account_refusals_total{@jvms}[$__range])))"),
    )
    .column(
        "Retired loaders",
        "short",
        &of("sum by (job, instance) (heapwarden_account_retired_loaders{@jvms})"),
    )
    .heading("JVM", &[("links", json!([jvm_link()]))])
    .sorted_by("Heap after collection");
    vec![
        table,
        Panel::lines(
            "Heap after collection",
            "percentunit",
            "Used heap just after the latest collection, as a share of the maximum.",
        )
        .query(of(PRESSURE), "{{instance}}")
        .default("thresholds", thresholds(&TIGHT))
        .custom("thresholdsStyle", json!({"mode": "dashed"}))
        .sized(12, 8),
        Panel::lines(
            "Limits over heap",
            "percentunit",
            "Sum of the accounts' limits as a share of the maximum heap; a scope's is within its service's.",
        )
        .query(of(COMMITTED), "{{instance}}")
        .default(
            "thresholds",
            thresholds(&[(None, "green"), (Some(1.0), "orange")]),
        )
        .custom("thresholdsStyle", json!({"mode": "dashed"}))
        .or("no limits")
        .sized(12, 8),
    ]
}

/// From a row with the columns "Job" and "JVM" to that JVM's view.
fn jvm_link() -> Value {
    json!({
        "targetBlank": false,
        "title": "Accounts of this JVM",
        "url": format!(
            "/d/{}?${{datasource:queryparam}}&var-job=${{__data.fields.Job}}\
             &var-instance=${{__data.fields.JVM}}&${{__url_time_range}}",
            JVM_UID
        ),
    })
}

fn accounts() -> Vec<Panel> {
    let table = Table::new(
        "Accounts across JVMs",
        "Accounts of one name, added up over all JVMs that have it. Bytes are an account's own; “of \
         limit”, the highest of any JVM, and the trend count it with the scopes beneath. The errors of several JVMs add up as their squares.",
        &[("account", "Account")],
    )
    .column(
        "Live",
        "bytes",
        &of("sum by (account) (heapwarden_account_live_bytes{@accounts})"),
    )
    .column(
        "± error",
        "bytes",
        &of("sqrt(sum by (account) (heapwarden_account_standard_error_bytes{@accounts} ^ 2))"),
    )
    .column(
        "JVMs",
        "short",
        &of("count by (account) (heapwarden_account_live_bytes{@accounts})"),
    )
    .column(
        "Largest",
        "bytes",
        &of("max by (account) (heapwarden_account_live_bytes{@accounts})"),
    )
    .column(
        "Of limit",
        "percentunit",
        &of("max by (account) (@whole \
             / on (job, instance, account) heapwarden_account_limit_bytes{@accounts})"),
    )
    .column(
        "Trend per hour",
        "bytes",
        &of("3600 * sum by (account) (@growth)"),
    )
    .column(
        "Allocates",
        "binBps",
        &of("sum by (account) (rate(heapwarden_account_allocated_bytes_total{@accounts}[$__rate_interval]))"),
    )
    .sorted_by("Live")
    .sized(14, 10);
    vec![
        table,
        Panel::areas(
            "Largest accounts",
            "bytes",
            "The ten accounts with the most live bytes of their own over all JVMs.",
        )
        .query(
            of("topk(10, sum by (account) (heapwarden_account_live_bytes{@accounts}))"),
            "{{account}}",
        )
        .sized(10, 10),
    ]
}

fn leaks() -> Vec<Panel> {
    vec![
        Panel::lines(
            "JVMs with leaks",
            "none",
            "Classes of accounts that are suspected to leak, by JVM. What a policy acknowledges is not counted.",
        )
        .query(
            of("sum by (job, instance) (heapwarden_leak_suspects{@accounts})"),
            "{{instance}}",
        )
        .sized(12, 7),
        Panel::lines(
            "Leaks across JVMs",
            "binBps",
            "Bytes that stay, a second, of the ten suspected classes that grow fastest, added up over the JVMs \
             that have the account: the same leak in all of them is one line.",
        )
        .query(
            of("topk(10, sum by (account, class) (heapwarden_leak_growth_bytes_per_second{@accounts}))"),
            "{{account}}: {{class}}",
        )
        .sized(12, 7),
    ]
}

fn refusals() -> Vec<Panel> {
    let counted = |metric: &str| {
        of(&format!(
            "round(sum by (job, instance, account) (increase({metric}{{@accounts}}[$__range]))) > 0"
        ))
    };
    let table = Table::new(
        "Who was refused",
        "Accounts that were refused in the time shown, whose requests were turned away, that would have been \
         refused in mode enforce, or were put off because an error was not safe there.",
        &[
            ("account", "Account"),
            ("instance", "JVM"),
            ("job", "Job"),
        ],
    )
    .column(
        "Refused",
        "short",
        &counted("heapwarden_account_refusals_total"),
    )
    .column(
        "Turned away",
        "short",
        &counted("heapwarden_account_admission_refusals_total"),
    )
    .column(
        "Would be refused",
        "short",
        &counted("heapwarden_account_would_refuse_total"),
    )
    .column(
        "Put off",
        "short",
        &counted("heapwarden_account_deferred_refusals_total"),
    )
    .heading("JVM", &[("links", json!([jvm_link()]))])
    .sorted_by("Refused")
    .sized(24, 8)
    .or("nobody");
    vec![
        table,
        Panel::lines(
            "Refused",
            "cps",
            "Errors thrown into accounts' own threads, a second.",
        )
        .query(
            of("sum by (instance, account) \
                (rate(heapwarden_account_refusals_total{@accounts}[$__rate_interval]))"),
            "{{account}} on {{instance}}",
        )
        .sized(12, 8),
        Panel::lines(
            "Turned away",
            "cps",
            "Requests and calls turned away at accounts' doors while they were over their limits, a second.",
        )
        .query(
            of("sum by (instance, account) \
                (rate(heapwarden_account_admission_refusals_total{@accounts}[$__rate_interval]))"),
            "{{account}} on {{instance}}",
        )
        .sized(12, 8),
    ]
}

fn versions() -> Vec<Panel> {
    let table = Table::new(
        "Versions and policies",
        "What each JVM runs: versions of agent and JDK, policy in force, its mode, when it came into force, and what \
         Heapwarden costs there, in cores.",
        &[("instance", "JVM"), ("job", "Job")],
    )
    .labels(
        &of("group by (job, instance, version, jdk) (heapwarden_build_info{@jvms})"),
        &[("version", "Agent"), ("jdk", "JDK")],
    )
    .column(
        "Policy",
        "none",
        &of("max by (job, instance) (heapwarden_policy_generation{@jvms})"),
    )
    .column_with(
        "Mode",
        "none",
        &of("max by (job, instance) (heapwarden_policy_enforcing{@jvms})"),
        &[("mappings", mappings(&MODES))],
    )
    .column(
        "In force since",
        "dateTimeFromNow",
        &of("1000 * max by (job, instance) \
             (heapwarden_policy_last_reload_success_timestamp_seconds{@jvms})"),
    )
    .column(
        "Sampling interval",
        "bytes",
        &of("max by (job, instance) (heapwarden_sampling_interval_bytes{@jvms})"),
    )
    .column(
        "Samples dropped",
        "short",
        &of("round(sum by (job, instance) (increase(heapwarden_samples_dropped_total{@jvms}[$__range])))"),
    )
    .column(
        "Cores",
        "percentunit",
        &of("sum by (job, instance) (rate(heapwarden_agent_cpu_seconds_total{@jvms}[$__rate_interval]))"),
    )
    .column(
        "Native memory",
        "bytes",
        &of("sum by (job, instance) (heapwarden_agent_memory_bytes{@jvms})"),
    )
    .heading("JVM", &[("links", json!([jvm_link()]))])
    .sorted_by("Agent")
    .sized(16, 8);
    vec![
        table,
        Panel::lines(
            "JVMs by version",
            "short",
            "How many JVMs run which version of the agent.",
        )
        .query(
            of("count by (version) (heapwarden_build_info{@jvms})"),
            "{{version}}",
        ),
        Panel::lines(
            "Policy in force",
            "none",
            "Number of the policy in force: each accepted edit adds one, a restart begins at 1.",
        )
        .query(
            of("max by (job, instance) (heapwarden_policy_generation{@jvms})"),
            "{{instance}}",
        )
        .custom("lineInterpolation", json!("stepAfter")),
        Panel::states(
            "Latest policy file",
            "Whether each JVM accepted its latest policy file. Where not, the JVM's log says why.",
        )
        .query(
            of("min by (job, instance) (heapwarden_policy_last_reload_successful{@jvms})"),
            "{{instance}}",
        )
        .worded(&[(1, "accepted", "green"), (0, "REJECTED", "red")]),
        Panel::states("Target", "Whether each JVM's listener answered Prometheus.")
            .query(of("min by (job, instance) (up{@jvms})"), "{{instance}}")
            .worded(&[(1, "up", "green"), (0, "DOWN", "red")]),
    ]
}
