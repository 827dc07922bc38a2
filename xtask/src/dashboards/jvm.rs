//! The view of one JVM: who holds its heap, who is near a limit, who was refused.

use serde_json::{Value, json};

use super::board::{Board, Choice, FLEET_UID, JVM_UID};
use super::expression::written_out;
use super::panel::{ANY_ALARMS, ANY_WARNS, MODES, Panel, TIGHT, mappings, thresholds};
use super::table::{Table, matrix};

/// Within, over the soft limit, over the limit.
const STATES: [(u32, &str, &str); 4] = [
    (0, "within", "green"),
    (1, "over soft limit", "orange"),
    (2, "OVER LIMIT", "red"),
    (3, "OVER LIMIT", "red"),
];

/// 2 over the limit, and 1 over the soft limit for accounts that have one.
const STATE: &str = "sum by (account) (2 * heapwarden_account_over_limit{@account}) + \
    (sum by (account) (@whole) > bool \
    sum by (account) (heapwarden_account_soft_limit_bytes{@account}) \
    or sum by (account) (0 * heapwarden_account_over_limit{@account}))";

/// Its expressions: `@jvm` selects the JVM, `@account` the accounts chosen in it.
fn of(expression: &str) -> String {
    written_out(expression, "@account", "@jvm")
        .replace("@account", "@jvm,account=~\"$account\"")
        .replace("@jvm", "job=\"$job\",instance=\"$instance\"")
}

/// The dashboard.
pub(super) fn dashboard() -> Value {
    Board::new(
        JVM_UID,
        "Heapwarden / JVM",
        "One JVM: who holds its heap, who is near a limit, who was refused, and what Heapwarden costs.",
    )
    .variable("job", "Job", "heapwarden_build_info", Choice::One)
    .variable(
        "instance",
        "JVM",
        "heapwarden_build_info{job=\"$job\"}",
        Choice::One,
    )
    .variable(
        "account",
        "Account",
        &of("heapwarden_account_live_bytes{@jvm}"),
        Choice::Many,
    )
    .annotation(
        "Refused",
        "red",
        of("sum by (account) (increase(heapwarden_account_refusals_total{@account}[2m])) > 0"),
        "{{account}} was over its limit and was refused memory",
    )
    .annotation_at(
        "Policy in force",
        "blue",
        of("1000 * heapwarden_policy_last_reload_success_timestamp_seconds{@jvm}"),
        "A policy came into force",
    )
    .annotation(
        "Policy rejected",
        "orange",
        of("heapwarden_policy_last_reload_successful{@jvm} == bool 0"),
        "The policy file has errors; the policy before it stays in force, the JVM's log says why",
    )
    .link("All JVMs", FLEET_UID)
    .row("Now", now())
    .row("Heap and accounts", heap())
    .row("Leaks", leaks())
    .row("Refusals", refusals())
    .row("Verdicts and their evidence", verdicts())
    .row("Whose memory", whose())
    .row("Allocation", allocation())
    .row("What Heapwarden costs", costs())
    .finish()
}

fn now() -> Vec<Panel> {
    vec![
        Panel::figure(
            "Heap after collection",
            "percentunit",
            "Used heap just after the latest collection, as a share of the maximum. After young \
             collections it includes garbage in old memory.",
        )
        .now(of("heapwarden_heap_used_after_gc_bytes{@jvm} / heapwarden_heap_max_bytes{@jvm}"), "")
        .coloured(&TIGHT),
        Panel::figure(
            "Limits over heap",
            "percentunit",
            "Sum of all accounts' limits as a share of the maximum heap. Above 100 % the accounts \
             may together fill the heap although each stays within its limit. A scope's limit is \
             within that of its service and not added to it.",
        )
        .now(
            of("sum(@outer_limits) / max(heapwarden_heap_max_bytes{@jvm})"),
            "",
        )
        .coloured(&[(None, "green"), (Some(1.0), "orange")])
        .or("no limits"),
        Panel::figure(
            "Over their limit",
            "none",
            "Accounts of which more than their limit survived a collection of all memory.",
        )
        .now(of("sum(heapwarden_account_over_limit{@jvm})"), "")
        .coloured(&ANY_ALARMS),
        Panel::figure(
            "Refused",
            "none",
            "Allocations refused in the time shown, all accounts.",
        )
        .now(of("sum(increase(heapwarden_account_refusals_total{@jvm}[$__range]))"), "")
        .default("decimals", json!(0))
        .coloured(&ANY_ALARMS),
        Panel::figure(
            "Mode",
            "none",
            "Whether the policy in force refuses, or only counts what it would refuse.",
        )
        .now(of("heapwarden_policy_enforcing{@jvm}"), "")
        .worded(&MODES),
        Panel::figure(
            "Policy in force",
            "none",
            "Number of the policy in force: 1 is the one the JVM started with, each accepted edit adds one.",
        )
        .now(of("heapwarden_policy_generation{@jvm}"), ""),
        Panel::figure(
            "Latest policy file",
            "none",
            "Whether the latest policy file was accepted. If not, the one before it stays in force and \
             the JVM's log says why; `heapwarden check FILE` shows the place.",
        )
        .now(of("heapwarden_policy_last_reload_successful{@jvm}"), "")
        .worded(&[(1, "accepted", "green"), (0, "REJECTED", "red")]),
        Panel::figure(
            "Sampling interval",
            "bytes",
            "Mean bytes between samples. The standard error of an account is about the root of \
             interval times live bytes.",
        )
        .now(of("heapwarden_sampling_interval_bytes{@jvm}"), "")
        .worded(&[(0, "exact", "blue")]),
    ]
}

/// A line over areas, which it isn't stacked upon.
fn line(color: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("custom.fillOpacity", json!(0)),
        ("custom.lineWidth", json!(2)),
        ("custom.stacking", json!({"mode": "none", "group": "B"})),
        ("color", json!({"fixedColor": color, "mode": "fixed"})),
    ]
}

/// Returns the properties of the dashed red line that the areas must stay below.
fn limit_line() -> Vec<(&'static str, Value)> {
    let mut properties = line("red");
    let dashed = json!({"fill": "dash", "dash": [10, 10]});
    properties.push(("custom.lineStyle", dashed));
    properties
}

fn heap() -> Vec<Panel> {
    vec![
        Panel::areas(
            "Heap after collection, and whose it is",
            "bytes",
            "The accounts' own live bytes, scopes apart from their services, one upon the other, under the heap that was in use after the \
             latest collection (white) and the maximum (red). What lies between the accounts and the \
             white line was made before the agent saw it or is not sampled, and garbage that no \
             collection has found.",
        )
        .query(of("heapwarden_account_live_bytes{@account}"), "{{account}}")
        .query(of("heapwarden_heap_used_after_gc_bytes{@jvm}"), "heap after collection")
        .query(of("heapwarden_heap_max_bytes{@jvm}"), "maximum heap")
        .series("B", &line("text"))
        .series("C", &limit_line())
        .sized(16, 11),
        Panel::lines(
            "Share of the limit",
            "percentunit",
            "Live bytes as a share of the account's limit, with the scopes beneath it. An account that stays at its limit needs \
             more room or has a leak.",
        )
        .query(
            of("@whole / on (job, instance, account) \
                heapwarden_account_limit_bytes{@account}"),
            "{{account}}",
        )
        .default("thresholds", thresholds(&TIGHT))
        .custom("thresholdsStyle", json!({"mode": "dashed"}))
        .sized(8, 11),
        accounts(),
        Panel::states(
            "State",
            "Over its limit: more than that survived a collection of all memory, and in mode enforce new \
             work is turned away, or its allocations are refused where that is safe. Over its soft limit: a warning only.",
        )
        .query(of(STATE), "{{account}}")
        .worded(&STATES)
        .sized(24, 7),
    ]
}

fn accounts() -> Panel {
    let bar = json!({"type": "gauge", "mode": "basic", "valueDisplayMode": "text"});
    let coloured = json!({"type": "color-background", "mode": "basic", "applyToRow": false});
    Table::new(
        "Accounts",
        "One line an account. Live bytes are an estimate: two thirds of the time the truth lies within \
         one standard error, nearly always within three. “Live” is an account's own; limits, trend \
         and “full in” are about it with the scopes beneath. Those two continue the last hour in a straight line; “full in” is empty for who doesn't grow or has no limit. Refused, would \
         be refused and put off count the time shown.",
        &[("account", "Account")],
    )
    .column(
        "Live",
        "bytes",
        &of("sum by (account, kind) (heapwarden_account_live_bytes{@account} \
             * on (job, instance, account) group_left (kind) heapwarden_account_info{@account})"),
    )
    .column(
        "± error",
        "bytes",
        &of("sum by (account) (heapwarden_account_standard_error_bytes{@account})"),
    )
    .column("With scopes", "bytes", &of("sum by (account) (@whole)"))
    .column(
        "Soft limit",
        "bytes",
        &of("sum by (account) (heapwarden_account_soft_limit_bytes{@account})"),
    )
    .column(
        "Limit",
        "bytes",
        &of("sum by (account) (heapwarden_account_limit_bytes{@account})"),
    )
    .column_with(
        "Of limit",
        "percentunit",
        &of("sum by (account) (@whole) \
             / sum by (account) (heapwarden_account_limit_bytes{@account})"),
        &[
            ("max", json!(1)),
            ("min", json!(0)),
            ("thresholds", thresholds(&TIGHT)),
            ("color", json!({"mode": "thresholds"})),
            ("custom.cellOptions", bar),
        ],
    )
    .column(
        "Trend per hour",
        "bytes",
        &of("3600 * sum by (account) (@growth)"),
    )
    .column(
        "Full in",
        "s",
        &of("clamp_min(sum by (account) (heapwarden_account_limit_bytes{@account}) \
             - sum by (account) (@whole), 0) \
             / (sum by (account) (@growth) > 0)"),
    )
    .column(
        "Allocates",
        "binBps",
        &of("sum by (account) (rate(heapwarden_account_allocated_bytes_total{@account}[$__rate_interval]))"),
    )
    .column(
        "Refused",
        "short",
        &of("round(sum by (account) (increase(heapwarden_account_refusals_total{@account}[$__range])))"),
    )
    .column(
        "Turned away",
        "short",
        &of("round(sum by (account) (increase(heapwarden_account_admission_refusals_total{@account}[$__range])))"),
    )
    .column(
        "Would be refused",
        "short",
        &of("round(sum by (account) (increase(heapwarden_account_would_refuse_total{@account}[$__range])))"),
    )
    .column(
        "Put off",
        "short",
        &of("round(sum by (account) (increase(heapwarden_account_deferred_refusals_total{@account}[$__range])))"),
    )
    .column_with(
        "State",
        "none",
        &of(STATE),
        &[
            ("mappings", mappings(&STATES)),
            ("custom.cellOptions", coloured),
        ],
    )
    .named("kind", "Kind")
    .sorted_by("Live")
    .sized(24, 11)
}

fn leaks() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Suspected to leak",
            "none",
            "Classes of each account of which new instances stay while old ones do not die. What the policy \
             acknowledges ([[leak]]) is not counted. `heapwarden leaks` says where they are allocated.",
        )
        .query(of("sum by (account) (heapwarden_leak_suspects{@account})"), "{{account}}")
        .sized(12, 7),
        Panel::lines(
            "Growth of suspects",
            "binBps",
            "Bytes that stay, a second, of the ten suspected classes that grow fastest, over the window in \
             which each was found.",
        )
        .query(
            of("topk(10, sum by (account, class) (heapwarden_leak_growth_bytes_per_second{@account}))"),
            "{{account}}: {{class}}",
        )
        .sized(12, 7),
    ]
}

fn refusals() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Refused",
            "cps",
            "Errors thrown into the account's own threads, a second.",
        )
        .query(
            of("sum by (account) (rate(heapwarden_account_refusals_total{@account}[$__rate_interval]))"),
            "{{account}}",
        )
        .sized(6, 8),
        Panel::lines(
            "Turned away",
            "cps",
            "Requests and calls turned away at the account's door while it was over its limit, a second.",
        )
        .query(
            of("sum by (account) (rate(heapwarden_account_admission_refusals_total{@account}[$__rate_interval]))"),
            "{{account}}",
        )
        .sized(6, 8),
        Panel::lines(
            "Would be refused",
            "cps",
            "What mode enforce would have thrown, a second: look here before switching to it.",
        )
        .query(
            of("sum by (account) (rate(heapwarden_account_would_refuse_total{@account}[$__rate_interval]))"),
            "{{account}}",
        )
        .sized(6, 8),
        Panel::areas(
            "Put off, by reason",
            "cps",
            "Refusals that were due where an error would have broken something, a second; each is due \
             again at the thread's next sample. An account that is only ever put off is never held to \
             its limit.",
        )
        .query(
            of("sum by (reason) (rate(heapwarden_account_deferred_refusals_total{@account}[$__rate_interval]))"),
            "{{reason}}",
        )
        .or("nothing was put off")
        .sized(6, 8),
        matrix(
            "Put off, by account and reason",
            "short",
            "How many refusals were put off in the time shown.",
            &of("round(sum by (account, reason) \
                 (increase(heapwarden_account_deferred_refusals_total{@account}[$__range])))"),
            ("account", "reason"),
        )
        .or("nothing was put off"),
        Panel::lines(
            "Soft limit passed",
            "short",
            "How often live bytes have risen above the soft limit since the JVM started.",
        )
        .query(
            of("sum by (account) (heapwarden_account_soft_limit_events_total{@account})"),
            "{{account}}",
        )
        .sized(12, 8),
    ]
}

/// The duration that 95 of 100 stay within, by the histogram's own label.
fn most_take(histogram: &str, label: &str) -> String {
    of(&format!(
        "histogram_quantile(0.95, sum by (le, {label}) \
         (rate(heapwarden_{histogram}_seconds_bucket{{@jvm}}[$__rate_interval])))"
    ))
}

fn verdicts() -> Vec<Panel> {
    vec![
        Panel::lines(
            "Time to a verdict",
            "s",
            "How long 95 of 100 suspicions last, from the charge crossing the limit to the verdict: over \
             the limit, or open again. Threads that need much memory meanwhile wait or are put off.",
        )
        .query(most_take("verdict_delay", "outcome"), "{{outcome}}"),
        Panel::lines(
            "Time of a collection asked for",
            "s",
            "How long 95 of 100 collections take that Heapwarden asked for, by kind.",
        )
        .query(most_take("evidence_collection_duration", "kind"), "{{kind}}"),
        Panel::lines(
            "Time of its own work",
            "s",
            "How long 95 of 100 passes over the records, waits for the JVM to report freed objects, \
             and answers of Heapwarden's own listener take.",
        )
        .query(most_take("reading_duration", "purpose"), "pass for a {{purpose}}")
        .query(
            most_take("evidence_wait_duration", "reason"),
            "wait for {{reason}}",
        )
        .query(most_take("http_request_duration", "path"), "answer to {{path}}"),
    ]
}

fn whose() -> Vec<Panel> {
    vec![
        matrix(
            "Who caused what through whom",
            "bytes",
            "Live bytes by principal (rows: on whose behalf) and agent (columns: whose code allocated). \
             Off the diagonal stand libraries that the principal pays for, and code that made what \
             another account asked for.",
            &of(
                "sum by (principal, agent) (heapwarden_principal_live_bytes{@jvm,principal=~\"$account\"})",
            ),
            ("principal", "agent"),
        ),
        Panel::lines(
            "Retired loaders that hold memory",
            "short",
            "Undeployed versions whose class loader still lives and holds memory: a leak over \
             redeployments. 0 is right.",
        )
        .query(
            of("sum by (account) (heapwarden_account_retired_loaders{@account})"),
            "{{account}}",
        )
        .coloured(&ANY_WARNS)
        .default("color", json!({"mode": "palette-classic"}))
        .sized(12, 8),
        Panel::lines(
            "Left by undeployed versions",
            "bytes",
            "Live bytes that undeployed versions made and others keep, such as a shared cache. Their \
             class loaders are gone: this is no class loader leak.",
        )
        .query(
            of("sum by (account) (heapwarden_account_left_behind_bytes{@account})"),
            "{{account}}",
        )
        .sized(12, 8),
    ]
}

fn allocation() -> Vec<Panel> {
    vec![
        Panel::areas(
            "Allocates",
            "binBps",
            "Bytes allocated a second, by the account that pays: who makes the collector work.",
        )
        .query(
            of("sum by (account) (rate(heapwarden_account_allocated_bytes_total{@account}[$__rate_interval]))"),
            "{{account}}",
        )
        .sized(12, 8),
        Panel::areas(
            "Charged, not yet known to be live",
            "bytes",
            "Charged bytes that no collection has looked at: new objects, most of them garbage.",
        )
        .query(
            of("heapwarden_account_charged_bytes{@account} - on (job, instance, account) \
                heapwarden_account_live_bytes{@account}"),
            "{{account}}",
        )
        .sized(12, 8),
    ]
}

fn costs() -> Vec<Panel> {
    vec![
        Panel::areas(
            "Processor",
            "percentunit",
            "Share of one core that Heapwarden's threads and its callbacks on the host's threads use.",
        )
        .query(
            of("sum by (part) (rate(heapwarden_agent_cpu_seconds_total{@jvm}[$__rate_interval]))"),
            "{{part}}",
        ),
        Panel::areas(
            "Native memory",
            "bytes",
            "Memory outside the Java heap that Heapwarden holds. What the JVM keeps for its tags is not \
             in it, about 75 bytes a sample.",
        )
        .query(of("sum by (part) (heapwarden_agent_memory_bytes{@jvm})"), "{{part}}"),
        Panel::areas(
            "Cost of evidence",
            "percentunit",
            "Cost of the collections that Heapwarden asked for, as a share of the machine's time: the duration of full ones, \
             of others what the collector worked beyond what comes anyway. `evidence-budget` in the policy bounds it (red).",
        )
        .query(
            of("sum by (kind) (rate(heapwarden_evidence_seconds_total{@jvm}[$__rate_interval]))"),
            "{{kind}}",
        )
        .query(of("heapwarden_evidence_budget_ratio{@jvm}"), "budget")
        .series("B", &limit_line()),
        Panel::lines(
            "Samples",
            "cps",
            "Allocations looked at, a second.",
        )
        .query(
            of("sum(rate(heapwarden_samples_total{@jvm}[$__rate_interval]))"),
            "charged to an account",
        ),
        Panel::areas(
            "Samples dropped, by reason",
            "cps",
            "Allocations that could not be charged, a second. While this isn't 0 the accounts are too low.",
        )
        .query(
            of("sum by (reason) (rate(heapwarden_samples_dropped_total{@jvm}[$__rate_interval]))"),
            "{{reason}}",
        ),
        Panel::lines(
            "Collections asked for",
            "short",
            "Collections that Heapwarden asked for since the JVM started, by kind.",
        )
        .query(
            of("sum by (kind) (heapwarden_evidence_collections_total{@jvm})"),
            "{{kind}}",
        ),
        Panel::figure(
            "What the JVM granted",
            "none",
            "Capabilities of the JVM that Heapwarden asked for. Without sampling there are no accounts; \
             another profiler in this JVM may hold it.",
        )
        .now(
            of("max by (capability) (heapwarden_capability_enabled{@jvm})"),
            "{{capability}}",
        )
        .option("textMode", json!("value_and_name"))
        .worded(&[(1, "yes", "green"), (0, "NO", "red")])
        .sized(10, 6),
        Panel::figure("Agent", "none", "Version of the agent.")
            .now(of("heapwarden_build_info{@jvm}"), "{{version}}")
            .option("textMode", json!("name"))
            .sized(3, 6),
        Panel::figure(
            "Accounts folded",
            "none",
            "Accounts beyond the most that are published one by one; together they are _other.",
        )
        .now(of("heapwarden_accounts_folded{@jvm}"), "")
        .coloured(&ANY_WARNS)
        .sized(3, 6),
        Panel::lines(
            "Answers",
            "cps",
            "Answers of Heapwarden's own listener a second, by HTTP status.",
        )
        .query(
            of("sum by (code) (rate(heapwarden_http_responses_total{@jvm}[$__rate_interval]))"),
            "{{code}}",
        )
        .sized(8, 6),
    ]
}
