//! The names of the metrics that the agent publishes at `GET /metrics`.
//!
//! Dashboards and alert rules rely on them. Types, units, labels and help texts are in the agent's
//! catalogue.

macro_rules! metric_names {
    ($($ident:ident = $name:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $ident: &str = $name;
        )*
        /// All of them.
        pub const ALL: &[&str] = &[$($ident),*];
    };
}

metric_names! {
    ACCOUNT_LIVE_BYTES = "heapwarden_account_live_bytes";
    ACCOUNT_LIVE_STANDARD_ERROR_BYTES = "heapwarden_account_live_standard_error_bytes";
    ACCOUNT_CHARGED_BYTES = "heapwarden_account_charged_bytes";
    ACCOUNT_STANDARD_ERROR_BYTES = "heapwarden_account_standard_error_bytes";
    ACCOUNT_TREE_LIVE_BYTES = "heapwarden_account_tree_live_bytes";
    ACCOUNT_TREE_LIVE_STANDARD_ERROR_BYTES = "heapwarden_account_tree_live_standard_error_bytes";
    ACCOUNT_TREE_CHARGED_BYTES = "heapwarden_account_tree_charged_bytes";
    ACCOUNT_TREE_STANDARD_ERROR_BYTES = "heapwarden_account_tree_standard_error_bytes";
    ACCOUNT_LIVE_OBJECTS = "heapwarden_account_live_objects";
    ACCOUNT_ALLOCATED_BYTES = "heapwarden_account_allocated_bytes_total";
    ACCOUNT_ALLOCATED_OBJECTS = "heapwarden_account_allocated_objects_total";
    ACCOUNT_EXACT_ALLOCATED_BYTES = "heapwarden_account_exact_allocated_bytes_total";
    ACCOUNT_EXACT_ALLOCATED_OBJECTS = "heapwarden_account_exact_allocated_objects_total";
    ACCOUNT_LIVE_BY_RATIO_BYTES = "heapwarden_account_live_by_ratio_bytes";
    ACCOUNT_LIVE_BY_RATIO_STANDARD_ERROR_BYTES =
        "heapwarden_account_live_by_ratio_standard_error_bytes";
    ACCOUNT_SOFT_LIMIT_BYTES = "heapwarden_account_soft_limit_bytes";
    ACCOUNT_LIMIT_BYTES = "heapwarden_account_limit_bytes";
    ACCOUNT_SOFT_LIMIT_EVENTS = "heapwarden_account_soft_limit_events_total";
    ACCOUNT_REFUSALS = "heapwarden_account_refusals_total";
    ACCOUNT_WOULD_REFUSE = "heapwarden_account_would_refuse_total";
    ACCOUNT_ADMISSION_REFUSALS = "heapwarden_account_admission_refusals_total";
    ACCOUNT_THREADS_KILLED = "heapwarden_account_threads_killed_total";
    ACCOUNT_WAIT = "heapwarden_account_wait_seconds_total";
    ROUTE_LIVE_BYTES = "heapwarden_route_live_bytes";
    ROUTE_CALLS = "heapwarden_route_calls_total";
    ROUTE_REFUSALS = "heapwarden_route_refusals_total";
    ACCOUNT_DEFERRED_REFUSALS = "heapwarden_account_deferred_refusals_total";
    ACCOUNT_OVER_LIMIT = "heapwarden_account_over_limit";
    ACCOUNT_INEFFECTIVE = "heapwarden_account_ineffective";
    ACCOUNT_RETIRED_LOADERS = "heapwarden_account_retired_loaders";
    ACCOUNT_LEFT_BEHIND_BYTES = "heapwarden_account_left_behind_bytes";
    ACCOUNT_INFO = "heapwarden_account_info";
    ACCOUNTS_FOLDED = "heapwarden_accounts_folded";
    PRINCIPAL_LIVE_BYTES = "heapwarden_principal_live_bytes";
    LEAK_SUSPECTS = "heapwarden_leak_suspects";
    LEAK_GROWTH_BYTES_PER_SECOND = "heapwarden_leak_growth_bytes_per_second";
    LEAK_KEPT_BY_INFO = "heapwarden_leak_kept_by_info";
    HEAP_USED_AFTER_GC_BYTES = "heapwarden_heap_used_after_gc_bytes";
    HEAP_MAX_BYTES = "heapwarden_heap_max_bytes";
    GC_EPOCH = "heapwarden_gc_epoch";
    LIVE_AGE_SECONDS = "heapwarden_live_age_seconds";
    ACCOUNTS_OVER_HEAP_RATIO = "heapwarden_accounts_over_heap_ratio";
    ACCOUNTS_EXCEED_HEAP = "heapwarden_accounts_exceed_heap";
    SAMPLES = "heapwarden_samples_total";
    SAMPLING_ERROR_FACTOR = "heapwarden_sampling_error_factor";
    SAMPLES_DROPPED = "heapwarden_samples_dropped_total";
    SAMPLES_THINNED = "heapwarden_samples_thinned_total";
    SAMPLES_THINNED_BY_CLASS = "heapwarden_samples_thinned_by_class_total";
    SITE_STACKS = "heapwarden_site_stacks_total";
    SITE_STACKS_SKIPPED = "heapwarden_site_stacks_skipped_total";
    EXACT_CLASSES_REWRITTEN = "heapwarden_exact_classes_rewritten_total";
    EXACT_CLASSES_SKIPPED = "heapwarden_exact_classes_skipped_total";
    EXACT_JVM_ALLOCATED_BYTES = "heapwarden_exact_jvm_allocated_bytes_total";
    EXACT_COUNTED_BYTES = "heapwarden_exact_counted_bytes_total";
    EXACT_REMAINDER_BYTES = "heapwarden_exact_remainder_bytes";
    EXACT_LOST_OBJECTS = "heapwarden_exact_lost_objects_total";
    EXACT_CONTEXTS = "heapwarden_exact_contexts";
    EXACT_CONTEXT_OVERFLOW_CALLS = "heapwarden_exact_context_overflow_calls_total";
    EXACT_CONTEXT_OVERFLOW_OBJECTS = "heapwarden_exact_context_overflow_objects_total";
    EXACT_CONTEXT_LOST_OBJECTS = "heapwarden_exact_context_lost_objects_total";
    SCOPE_MISUSE = "heapwarden_scope_misuse_total";
    SAMPLING_INTERVAL_BYTES = "heapwarden_sampling_interval_bytes";
    CAPABILITY_ENABLED = "heapwarden_capability_enabled";
    EVIDENCE_COLLECTIONS = "heapwarden_evidence_collections_total";
    EVIDENCE_SECONDS = "heapwarden_evidence_seconds_total";
    DURESS = "heapwarden_duress";
    HEAP_FREE_BYTES = "heapwarden_heap_free_bytes";
    HEAP_SHORT_BELOW_BYTES = "heapwarden_heap_short_below_bytes";
    EVIDENCE_BUDGET = "heapwarden_evidence_budget_ratio";
    POLICY_ENFORCING = "heapwarden_policy_enforcing";
    POLICY_GENERATION = "heapwarden_policy_generation";
    POLICY_LAST_RELOAD_SUCCESSFUL = "heapwarden_policy_last_reload_successful";
    POLICY_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = "heapwarden_policy_last_reload_success_timestamp_seconds";
    AGENT_CPU_SECONDS = "heapwarden_agent_cpu_seconds_total";
    AGENT_MEMORY_BYTES = "heapwarden_agent_memory_bytes";
    SNAPSHOTS = "heapwarden_snapshots_total";
    HTTP_RESPONSES = "heapwarden_http_responses_total";
    BUILD_INFO = "heapwarden_build_info";
    HTTP_REQUEST_DURATION_SECONDS = "heapwarden_http_request_duration_seconds";
    READING_DURATION_SECONDS = "heapwarden_reading_duration_seconds";
    VERDICT_DELAY_SECONDS = "heapwarden_verdict_delay_seconds";
    EVIDENCE_COLLECTION_DURATION_SECONDS = "heapwarden_evidence_collection_duration_seconds";
    EVIDENCE_WAIT_DURATION_SECONDS = "heapwarden_evidence_wait_duration_seconds";
    POLICY_RELOAD_DURATION_SECONDS = "heapwarden_policy_reload_duration_seconds";
}
