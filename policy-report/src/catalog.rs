//! The metrics of `GET /metrics`, each once: name, type, unit, labels, help.
//!
//! The agent publishes them, and the command reads them. Their names are the contract with dashboards and alert
//! rules.

/// The type of a metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Goes up and down.
    Gauge,
    /// Only grows; its name ends in `_total`.
    Counter,
    /// Always 1, with labels; its name ends in `_info`.
    Info,
    /// Counts of durations by bucket, their sum and their number.
    Histogram,
}

/// The unit of a metric; its spelling ends the name (before `_total`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No unit: a count, a flag.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The spelling in names and on `# UNIT` lines; empty for none.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "bytes",
            Unit::Seconds => "seconds",
        }
    }
}

/// One metric family.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// The sample name as the contract spells it, suffix (`_total`, `_info`) included.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Its unit.
    pub unit: Unit,
    /// Label names, in the order in which they are written.
    pub labels: &'static [&'static str],
    /// One sentence, shown in query editors.
    pub help: &'static str,
}

impl Metric {
    /// The family name in OpenMetrics: without the suffix that its type adds.
    pub fn open_metrics_family(&self) -> &'static str {
        let suffix = match self.kind {
            Type::Gauge | Type::Histogram => "",
            Type::Counter => "_total",
            Type::Info => "_info",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }
}

macro_rules! catalog {
    ($(#[$about:meta])* $list:ident: $($ident:ident = $name:literal $kind:ident $unit:ident [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $ident: Metric = Metric {
                name: $name,
                kind: Type::$kind,
                unit: Unit::$unit,
                labels: &[$($label),*],
                help: $help,
            };
        )*
        $(#[$about])*
        pub static $list: &[&Metric] = &[$(&$ident),*];
    };
}

/// The whole catalogue, in the order in which it is published.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    FIGURES.iter().chain(HELD).chain(RECORDED).copied()
}

macro_rules! kind {
    (counter) => {
        Type::Counter
    };
    ($gauge:ident) => {
        Type::Gauge
    };
}

macro_rules! figures {
    ($(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty
        [$fold:ident $($metric:ident $name:literal $unit:ident $(/ $divisor:literal)?)?] $help:literal;
    )*})*) => {
        $($($(
            #[doc = $help]
            pub const $metric: Metric = Metric {
                name: $name,
                kind: kind!($fold),
                unit: Unit::$unit,
                labels: &["account"],
                help: $help,
            };
        )?)*)*
        /// The figures of an account ([`crate::account_figures`]).
        pub static FIGURES: &[&Metric] = &[$($($(&$metric,)?)*)*];
    };
}

crate::account_figures!(figures!);

catalog! {
    /// Other metrics whose values are in a snapshot; published after the figures.
    HELD:
    ACCOUNT_TREE_LIVE_BYTES = "heapwarden_account_tree_live_bytes" Gauge Bytes ["account"]
        "Live bytes of an account together with the scopes inside it; absent where there are none.";
    ACCOUNT_TREE_LIVE_STANDARD_ERROR_BYTES = "heapwarden_account_tree_live_standard_error_bytes" Gauge Bytes ["account"]
        "Standard error of heapwarden_account_tree_live_bytes.";
    ACCOUNT_TREE_CHARGED_BYTES = "heapwarden_account_tree_charged_bytes" Gauge Bytes ["account"]
        "Charged bytes of an account together with the scopes inside it; absent where there are none.";
    ACCOUNT_TREE_STANDARD_ERROR_BYTES = "heapwarden_account_tree_standard_error_bytes" Gauge Bytes ["account"]
        "Standard error of heapwarden_account_tree_charged_bytes.";
    ACCOUNT_LIVE_BY_RATIO_BYTES = "heapwarden_account_live_by_ratio_bytes" Gauge Bytes ["account"]
        "Estimated live bytes: what inserted code has counted, times the share of it that samples see alive, and what lives of before; absent without exact accounts, and of few samples.";
    ACCOUNT_LIVE_BY_RATIO_STANDARD_ERROR_BYTES = "heapwarden_account_live_by_ratio_standard_error_bytes" Gauge Bytes ["account"]
        "Standard error of the live bytes by ratio.";
    ACCOUNT_OVER_LIMIT = "heapwarden_account_over_limit" Gauge None ["account"]
        "1 while the account is over its limit (in _other: while any account folded into it is), else 0.";
    ACCOUNT_INEFFECTIVE = "heapwarden_account_ineffective" Gauge None ["account"]
        "1 while the account stays over its limit and refusals do not stop it (in _other: any account folded into it), else 0.";
    ACCOUNT_THREADS = "heapwarden_account_threads" Gauge None ["account"]
        "Live platform threads of the account: of its code, or started with its context class loader; absent for scopes and libraries.";
    ACCOUNT_DIRECT_BYTES = "heapwarden_account_direct_bytes" Gauge Bytes ["account"]
        "Live bytes of direct buffers that the account has taken, exact; absent for libraries, and where native memory is not seen.";
    ACCOUNT_NATIVE_BYTES = "heapwarden_account_native_bytes" Gauge Bytes ["account"]
        "Live bytes that the account's Java code has taken by arenas and by Unsafe.allocateMemory itself, exact; absent as direct bytes are.";
    ROUTE_LIVE_BYTES = "heapwarden_route_live_bytes" Gauge Bytes ["account", "route"]
        "Estimated bytes allocated by the requests of one route of the account that had survived the latest collection; at most 1,000 routes.";
    ROUTE_CALLS = "heapwarden_route_calls_total" Counter None ["account", "route"]
        "Requests of the route that came in, since its service was deployed.";
    ROUTE_REFUSALS = "heapwarden_route_refusals_total" Counter None ["account", "route"]
        "Requests of the route that were turned away at the door, since its service was deployed.";
    ACCOUNT_DEFERRED_REFUSALS = "heapwarden_account_deferred_refusals_total" Counter None ["account", "reason"]
        "Refusals due where throwing was not safe, by reason.";
    ACCOUNT_INFO = "heapwarden_account_info" Info None ["account", "kind", "service"]
        "What the account stands for; `parent` is the account of the service around a scope.";
    ACCOUNTS_FOLDED = "heapwarden_accounts_folded" Gauge None []
        "Accounts that are beyond the cardinality cap and published as _other.";
    PRINCIPAL_LIVE_BYTES = "heapwarden_principal_live_bytes" Gauge Bytes ["principal", "agent"]
        "Estimated live bytes that the agent account allocated on the principal's behalf.";
    LEAK_SUSPECTS = "heapwarden_leak_suspects" Gauge None ["account"]
        "Classes of the account that are suspected of leaking; those that the policy acknowledges are not counted.";
    LEAK_GROWTH_BYTES_PER_SECOND = "heapwarden_leak_growth_bytes_per_second" Gauge None ["account", "class"]
        "Bytes a second by which a class that is suspected of leaking grows; suspects only.";
    LEAK_KEPT_BY_INFO = "heapwarden_leak_kept_by_info" Info None ["account", "class", "chain"]
        "What keeps the objects of a suspect alive: the chain of references that keeps most of them; only where the policy has the agent find out.";
    HEAP_USED_AFTER_GC_BYTES = "heapwarden_heap_used_after_gc_bytes" Gauge Bytes []
        "Used heap as read just after the latest collection.";
    HEAP_MAX_BYTES = "heapwarden_heap_max_bytes" Gauge Bytes []
        "Maximum heap.";
    GC_EPOCH = "heapwarden_gc_epoch" Gauge None []
        "Collection pauses seen since the agent was loaded.";
    LIVE_AGE_SECONDS = "heapwarden_live_age_seconds" Gauge Seconds []
        "Time since the collection that live bytes are of was known to be complete; absent before the first.";
    ACCOUNTS_OVER_HEAP_RATIO = "heapwarden_accounts_over_heap_ratio" Gauge None []
        "What all accounts together held at the latest recognised collection of all memory, as a multiple of what the heap had in use; absent before the first.";
    ACCOUNTS_EXCEED_HEAP = "heapwarden_accounts_exceed_heap" Gauge None []
        "1 while the accounts sum up to more than the heap holds, by more than three standard errors: the figures are wrong, and nobody is refused; else 0.";
    SAMPLES = "heapwarden_samples_total" Counter None []
        "Allocation samples charged to an account.";
    SAMPLING_ERROR_FACTOR = "heapwarden_sampling_error_factor" Gauge None []
        "How many times larger than published the standard errors are, because short threads were sampled at the same places; 1 if they are as published.";
    SAMPLES_DROPPED = "heapwarden_samples_dropped_total" Counter None ["reason"]
        "Allocation samples that could not be charged, by reason.";
    SAMPLES_THINNED = "heapwarden_samples_thinned_total" Counter None []
        "Samples of arrays larger than half a G1 region that were passed over because a sample keeps such an array until a concurrent cycle; those that were kept weigh more for it.";
    SAMPLES_THINNED_BY_CLASS = "heapwarden_samples_thinned_by_class_total" Counter None []
        "Samples of classes that the policy thins ([[sampling.thin]]) that were passed over; those that were kept weigh more for it.";
    SITE_STACKS = "heapwarden_site_stacks_total" Counter None []
        "Stacks of samples taken for sites: of leak suspects, and of the accounts that the policy names.";
    SITE_STACKS_SKIPPED = "heapwarden_site_stacks_skipped_total" Counter None ["reason"]
        "Samples that were to have a stack and got none, or a shorter one, by reason; those of `budget` are made up for by the weight of the others.";
    EXACT_CLASSES_REWRITTEN = "heapwarden_exact_classes_rewritten_total" Counter None []
        "Class files into which code that counts allocations was inserted; absent without exact accounts.";
    EXACT_CLASSES_SKIPPED = "heapwarden_exact_classes_skipped_total" Counter None ["reason"]
        "Class files of which all or a part got no code that counts allocations, by reason.";
    EXACT_JVM_ALLOCATED_BYTES = "heapwarden_exact_jvm_allocated_bytes_total" Counter Bytes []
        "Bytes that the JVM itself says its threads allocated, over the time in which all classes counted; absent if the JVM does not say.";
    EXACT_COUNTED_BYTES = "heapwarden_exact_counted_bytes_total" Counter Bytes []
        "Bytes that inserted code counted over the same time, for all accounts together.";
    EXACT_REMAINDER_BYTES = "heapwarden_exact_remainder_bytes" Gauge Bytes []
        "The JVM's figure less what was counted: what the JVM, native code and hidden classes allocate; negative where the compiler removed more objects than that, which are counted and never made.";
    EXACT_LOST_OBJECTS = "heapwarden_exact_lost_objects_total" Counter None []
        "Objects that no thread could count because it was just being made.";
    EXACT_CONTEXTS = "heapwarden_exact_contexts" Gauge None []
        "Calling contexts in the tree of counted allocations; absent if there were never any.";
    EXACT_CONTEXT_OVERFLOW_CALLS = "heapwarden_exact_context_overflow_calls_total" Counter None ["reason"]
        "Calls that found no room for a calling context, not those beneath them, by reason; what they allocate counts for the one above.";
    EXACT_CONTEXT_OVERFLOW_OBJECTS = "heapwarden_exact_context_overflow_objects_total" Counter None ["reason"]
        "Objects that were counted for a calling context above their own, by reason; for `types`, not at all.";
    EXACT_CONTEXT_LOST_OBJECTS = "heapwarden_exact_context_lost_objects_total" Counter None []
        "Objects of calling contexts that no thread could count: it was just being made, or the heap was full.";
    SCOPE_MISUSE = "heapwarden_scope_misuse_total" Counter None ["kind"]
        "Uses of the Java API that had no or another effect than meant, by kind.";
    SAMPLING_INTERVAL_BYTES = "heapwarden_sampling_interval_bytes" Gauge Bytes []
        "Mean bytes between samples; 0 when every allocation is sampled.";
    CAPABILITY_ENABLED = "heapwarden_capability_enabled" Gauge None ["capability"]
        "1 if the JVM granted the capability to the agent, else 0.";
    DURESS = "heapwarden_duress" Gauge None []
        "1 if the heap is short: suspects wait, and the accounts furthest beyond their limits are refused; else 0.";
    HEAP_FREE_BYTES = "heapwarden_heap_free_bytes" Gauge Bytes []
        "Bytes of the heap that count as free for duress; 0 while no account has a limit.";
    HEAP_SHORT_BELOW_BYTES = "heapwarden_heap_short_below_bytes" Gauge Bytes []
        "Below so many free bytes the heap is short; 0 while no account has a limit.";
    EVIDENCE_COLLECTIONS = "heapwarden_evidence_collections_total" Counter None ["kind"]
        "Collections that the agent asked for, by kind.";
    EVIDENCE_SECONDS = "heapwarden_evidence_seconds_total" Counter Seconds ["kind"]
        "Cost of collections that the agent asked for, as charged to the evidence budget, by kind.";
    EVIDENCE_BUDGET = "heapwarden_evidence_budget_ratio" Gauge None []
        "Share of the machine's time, of 0 to 1, that collections which the agent asks for may cost.";
    POLICY_ENFORCING = "heapwarden_policy_enforcing" Gauge None []
        "1 if the policy in force refuses, 0 if it only observes.";
    POLICY_GENERATION = "heapwarden_policy_generation" Gauge None []
        "Number of the policy in force; the first is 1.";
    POLICY_LAST_RELOAD_SUCCESSFUL = "heapwarden_policy_last_reload_successful" Gauge None []
        "1 if the latest policy file was accepted, 0 if it was rejected and the one before it stays in force.";
    POLICY_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = "heapwarden_policy_last_reload_success_timestamp_seconds" Gauge Seconds []
        "When the policy in force was accepted, in seconds since the Unix epoch.";
    NATIVE_BLOCKS_ASSUMED = "heapwarden_native_blocks_assumed_total" Counter None []
        "Blocks of native memory that were charged as their thread's block before, because the thread takes them too fast to look at each.";
    NATIVE_BLOCKS_UNENTERED = "heapwarden_native_blocks_unentered_total" Counter None []
        "Blocks of native memory that are in no account, because the table of blocks is full.";
    AGENT_CPU_SECONDS = "heapwarden_agent_cpu_seconds_total" Counter Seconds ["part"]
        "CPU time used by Heapwarden itself, by part.";
    AGENT_MEMORY_BYTES = "heapwarden_agent_memory_bytes" Gauge Bytes ["part"]
        "Native memory held by Heapwarden itself, by part.";
    BUILD_INFO = "heapwarden_build_info" Info None ["version"]
        "Version of the agent, and what it runs on.";
}

catalog! {
    /// Metrics of events, which the agent's threads record; published after the others.
    RECORDED:
    HTTP_RESPONSES = "heapwarden_http_responses_total" Counter None ["code"]
        "Responses that Heapwarden's own HTTP listener began to send, by status code.";
    SNAPSHOTS = "heapwarden_snapshots_total" Counter None ["outcome"]
        "Files of snapshots that were written, or lost because the folder could not be written.";
    HTTP_REQUEST_DURATION_SECONDS = "heapwarden_http_request_duration_seconds" Histogram Seconds ["path"]
        "Time from a complete request to Heapwarden's own HTTP listener until its response was ready to be sent, by path.";
    READING_DURATION_SECONDS = "heapwarden_reading_duration_seconds" Histogram Seconds ["purpose"]
        "Time of one pass over the records of all sampled objects: for a report (a scrape, the Java API) or for verdicts.";
    VERDICT_DELAY_SECONDS = "heapwarden_verdict_delay_seconds" Histogram Seconds ["outcome"]
        "Time from an account's charge crossing its limit to the verdict: over its limit, or open again.";
    EVIDENCE_COLLECTION_DURATION_SECONDS = "heapwarden_evidence_collection_duration_seconds" Histogram Seconds ["kind"]
        "Time that each collection which the agent asked for took, by kind.";
    EVIDENCE_WAIT_DURATION_SECONDS = "heapwarden_evidence_wait_duration_seconds" Histogram Seconds ["reason"]
        "Time that an agent thread waited after a collection until the JVM had reported all freed objects: of any collection, or of one that covers old memory.";
    POLICY_RELOAD_DURATION_SECONDS = "heapwarden_policy_reload_duration_seconds" Histogram Seconds ["outcome"]
        "Time from reading a changed policy file until it was in force, or until it was rejected.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_also_without_their_suffixes() {
        let names: BTreeSet<_> = all().map(Metric::open_metrics_family).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn names_carry_the_suffixes_of_their_type_and_unit() {
        for metric in all() {
            assert!(metric.name.starts_with("heapwarden_"), "{}", metric.name);
            assert_eq!(
                metric.kind == Type::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            assert_eq!(
                metric.kind == Type::Info,
                metric.name.ends_with("_info"),
                "{}",
                metric.name
            );
            for unit in [Unit::Bytes, Unit::Seconds] {
                assert_eq!(
                    metric.unit == unit,
                    metric.open_metrics_family().ends_with(unit.as_str()),
                    "{}",
                    metric.name
                );
            }
        }
    }

    /// The names are written out again, so that an edit of the list alone cannot rename what dashboards rely
    /// on.
    #[test]
    fn the_contract_is_published_under_its_own_names() {
        let contract: &[(&str, &[&str])] = &[
            ("heapwarden_account_live_bytes", &["account"]),
            ("heapwarden_account_charged_bytes", &["account"]),
            ("heapwarden_account_standard_error_bytes", &["account"]),
            ("heapwarden_account_live_standard_error_bytes", &["account"]),
            ("heapwarden_account_live_objects", &["account"]),
            ("heapwarden_account_allocated_bytes_total", &["account"]),
            ("heapwarden_account_allocated_objects_total", &["account"]),
            ("heapwarden_account_soft_limit_bytes", &["account"]),
            ("heapwarden_account_limit_bytes", &["account"]),
            ("heapwarden_account_refusals_total", &["account"]),
            ("heapwarden_account_would_refuse_total", &["account"]),
            ("heapwarden_account_admission_refusals_total", &["account"]),
            ("heapwarden_account_threads_killed_total", &["account"]),
            ("heapwarden_account_wait_seconds_total", &["account"]),
            ("heapwarden_route_live_bytes", &["account", "route"]),
            ("heapwarden_route_calls_total", &["account", "route"]),
            ("heapwarden_route_refusals_total", &["account", "route"]),
            (
                "heapwarden_account_deferred_refusals_total",
                &["account", "reason"],
            ),
            ("heapwarden_account_over_limit", &["account"]),
            ("heapwarden_account_ineffective", &["account"]),
            ("heapwarden_principal_live_bytes", &["principal", "agent"]),
            ("heapwarden_account_info", &["account", "kind", "service"]),
            ("heapwarden_account_retired_loaders", &["account"]),
            ("heapwarden_account_left_behind_bytes", &["account"]),
            ("heapwarden_leak_suspects", &["account"]),
            (
                "heapwarden_leak_growth_bytes_per_second",
                &["account", "class"],
            ),
            (
                "heapwarden_leak_kept_by_info",
                &["account", "class", "chain"],
            ),
            ("heapwarden_heap_used_after_gc_bytes", &[]),
            ("heapwarden_heap_max_bytes", &[]),
            ("heapwarden_gc_epoch", &[]),
            ("heapwarden_live_age_seconds", &[]),
            ("heapwarden_accounts_over_heap_ratio", &[]),
            ("heapwarden_accounts_exceed_heap", &[]),
            ("heapwarden_samples_total", &[]),
            ("heapwarden_samples_dropped_total", &["reason"]),
            ("heapwarden_site_stacks_total", &[]),
            ("heapwarden_site_stacks_skipped_total", &["reason"]),
            ("heapwarden_sampling_interval_bytes", &[]),
            ("heapwarden_capability_enabled", &["capability"]),
            ("heapwarden_evidence_collections_total", &["kind"]),
            ("heapwarden_evidence_seconds_total", &["kind"]),
            ("heapwarden_policy_generation", &[]),
            ("heapwarden_policy_last_reload_successful", &[]),
            (
                "heapwarden_policy_last_reload_success_timestamp_seconds",
                &[],
            ),
            ("heapwarden_agent_cpu_seconds_total", &["part"]),
            ("heapwarden_agent_memory_bytes", &["part"]),
            ("heapwarden_build_info", &["version"]),
            ("heapwarden_http_responses_total", &["code"]),
            ("heapwarden_http_request_duration_seconds", &["path"]),
            ("heapwarden_reading_duration_seconds", &["purpose"]),
            ("heapwarden_verdict_delay_seconds", &["outcome"]),
            ("heapwarden_evidence_collection_duration_seconds", &["kind"]),
            ("heapwarden_evidence_wait_duration_seconds", &["reason"]),
            ("heapwarden_policy_reload_duration_seconds", &["outcome"]),
        ];
        for (name, labels) in contract {
            let metric = all().find(|m| m.name == *name);
            assert_eq!(metric.map(|m| m.labels), Some(*labels), "{name}");
        }
    }
}
