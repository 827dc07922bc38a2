//! An account, field by field, and the one declaration of its figures.
//!
//! A *figure* is a number of an account that is shown as it is. All that shows it is made from its row: the
//! field of [`Account`](crate::Account), the metric in [`catalog`](crate::catalog); and in the agent the values of
//! both, and what `_other` has of it. A row is
//!
//! ```text
//! KEY: TYPE [FOLD METRIC "its name" UNIT] "help";
//! ```
//!
//! - `KEY` is the key in the JSON, and the field of the agent's `snapshot::Account`. A figure without `METRIC` is in
//!   the JSON alone. `Seconds / 1e3`: the key counts milliseconds, the metric seconds.
//! - `FOLD` says what the sum of several accounts has of it: a `counter` only grows, and so does the sum; a `sum` is
//!   added; for an `error`, variances add, as estimates are independent; a `bound` holds for several as for one, and is
//!   unknown if one is; an `own` one is a property of one account, and the sum has none.
//!
//! `fields` are no figures: they have a shape of their own, and each is filled by hand. Both stand in the order of the
//! JSON.

/// Calls a macro with the fields and the figures of an account, behind what else is given to it: see the file.
#[macro_export]
macro_rules! account_figures {
    ($then:ident! $($given:tt)*) => {
        $then! {
            $($given)*
            fields {
                /// Its name, which a tenant may have chosen.
                pub name: Cow<'a, str>,
                /// `service`, `package`, `library`, `scope` or `reserved`.
                pub kind: Cow<'a, str>,
                /// The service it was recognised as (context path or deployment name); empty for other kinds.
                pub service: Cow<'a, str>,
                /// The account of the service around a scope, if there is one.
                pub parent: Option<Cow<'a, str>>,
                /// The bytes that it holds together with the scopes inside it; `None` where there are none.
                pub tree: Option<Tree>,
            }
            figures {
                live_bytes: u64 [sum ACCOUNT_LIVE_BYTES "heapwarden_account_live_bytes" Bytes]
                    "Estimated bytes charged to the account that had survived the latest collection.";
                #[serde(skip_serializing_if = "Option::is_none")]
                live_standard_error_bytes: Option<u64> [error ACCOUNT_LIVE_STANDARD_ERROR_BYTES "heapwarden_account_live_standard_error_bytes" Bytes]
                    "Standard error of the account's live bytes.";
                live_at_most_bytes: Option<u64> [bound]
                    "If none of its samples is live: the most that it may hold, with 95 % confidence.";
                charged_bytes: u64 [sum ACCOUNT_CHARGED_BYTES "heapwarden_account_charged_bytes" Bytes]
                    "Estimated bytes charged to the account less refunds so far; includes garbage that no collection has found yet.";
                standard_error_bytes: u64 [error ACCOUNT_STANDARD_ERROR_BYTES "heapwarden_account_standard_error_bytes" Bytes]
                    "Standard error of the account's charged bytes.";
                live_objects: u64 [sum ACCOUNT_LIVE_OBJECTS "heapwarden_account_live_objects" None]
                    "Estimated number of objects in the account's live bytes.";
                allocated_bytes_total: u64 [counter ACCOUNT_ALLOCATED_BYTES "heapwarden_account_allocated_bytes_total" Bytes]
                    "Estimated bytes ever charged to the account.";
                allocated_objects_total: u64 [counter ACCOUNT_ALLOCATED_OBJECTS "heapwarden_account_allocated_objects_total" None]
                    "Estimated number of objects ever charged to the account.";
                #[serde(skip_serializing_if = "Option::is_none")]
                exact_allocated_bytes_total: Option<u64> [counter ACCOUNT_EXACT_ALLOCATED_BYTES "heapwarden_account_exact_allocated_bytes_total" Bytes]
                    "Bytes allocated for the account as inserted code has counted them; absent without exact accounts.";
                #[serde(skip_serializing_if = "Option::is_none")]
                exact_allocated_objects_total: Option<u64> [counter ACCOUNT_EXACT_ALLOCATED_OBJECTS "heapwarden_account_exact_allocated_objects_total" None]
                    "Objects allocated for the account as inserted code has counted them; absent without exact accounts.";
            }
            fields {
                /// Live bytes by what inserted code has counted and the share of it that samples see alive: an estimate. `None`
                /// while nothing is counted, and of few samples.
                #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
                pub live_by_ratio_bytes: Option<u64>,
                /// Its standard error.
                #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
                pub live_by_ratio_standard_error_bytes: Option<u64>,
            }
            figures {
                soft_limit_bytes: Option<u64> [own ACCOUNT_SOFT_LIMIT_BYTES "heapwarden_account_soft_limit_bytes" Bytes]
                    "Soft limit of the account; absent when it has none.";
                limit_bytes: Option<u64> [own ACCOUNT_LIMIT_BYTES "heapwarden_account_limit_bytes" Bytes]
                    "Limit of the account; absent when it has none.";
                reserve_bytes: Option<u64> [own]
                    "The bytes that it may be charged beyond its limit before errors are thrown; absent when it has no door.";
                #[serde(skip_serializing_if = "Option::is_none")]
                direct_limit_bytes: Option<u64> [own ACCOUNT_DIRECT_LIMIT_BYTES "heapwarden_account_direct_limit_bytes" Bytes]
                    "The most direct and native bytes together that the account may have; absent when that has no limit.";
                #[serde(skip_serializing_if = "Option::is_none")]
                direct_refusals_total: Option<u64> [counter ACCOUNT_DIRECT_REFUSALS "heapwarden_account_direct_refusals_total" None]
                    "Blocks of direct and native memory that were refused; absent without a limit.";
                #[serde(skip_serializing_if = "Option::is_none")]
                direct_would_refuse_total: Option<u64> [counter ACCOUNT_DIRECT_WOULD_REFUSE "heapwarden_account_direct_would_refuse_total" None]
                    "Refusals of such blocks that were due but did not happen, because the policy only observes; absent without a limit.";
                #[serde(skip_serializing_if = "Option::is_none")]
                direct_deferred_total: Option<u64> [counter ACCOUNT_DIRECT_DEFERRED "heapwarden_account_direct_deferred_total" None]
                    "Such blocks that were given although a refusal was due, because an error would do harm at the place; absent without a limit.";
            }
            fields {
                /// Where it stands against its limit.
                pub state: State,
                /// Whether new requests are turned away.
                pub door: Door,
            }
            figures {
                refusals_total: u64 [counter ACCOUNT_REFUSALS "heapwarden_account_refusals_total" None]
                    "Refusals thrown into allocating threads of the account.";
                would_refuse_total: u64 [counter ACCOUNT_WOULD_REFUSE "heapwarden_account_would_refuse_total" None]
                    "Refusals that were due but not thrown, because the policy only observes.";
                admission_refusals_total: u64 [counter ACCOUNT_ADMISSION_REFUSALS "heapwarden_account_admission_refusals_total" None]
                    "Requests and calls turned away at a door while the account was over its limit.";
                threads_killed_total: u64 [counter ACCOUNT_THREADS_KILLED "heapwarden_account_threads_killed_total" None]
                    "Threads that ended with an uncaught refusal.";
                wait_milliseconds_total: u64 [counter ACCOUNT_WAIT "heapwarden_account_wait_seconds_total" Seconds / 1e3]
                    "What enforcement made the account's threads and requests wait, in seconds.";
                soft_limit_events_total: u64 [counter ACCOUNT_SOFT_LIMIT_EVENTS "heapwarden_account_soft_limit_events_total" None]
                    "Times that the account's live bytes rose above its soft limit.";
            }
            fields {
                /// Refusals due where a throw was not safe.
                #[serde(deserialize_with = "whole")]
                pub deferred_total: u64,
                /// The same by reason.
                pub deferred_by_reason: Counts<'a>,
                /// The obstacle to its refusals, if it stays over its limit and they do not stop it.
                pub ineffective: Option<Ineffective<'a>>,
                /// Where errors were thrown in it, or in mode `observe` would have been, most frequent first. Since the mode
                /// of the policy last changed.
                pub places: Vec<Place<'a>>,
                /// How many errors were, or would have been, thrown at places that are not listed.
                #[serde(deserialize_with = "whole")]
                pub places_other: u64,
                /// By what its work begins, largest live bytes first: at most 64 routes, and one for the rest. Empty: it has no
                /// door, or the agent does not know routes (an older one).
                pub routes: Vec<Route<'a>>,
            }
            figures {
                retired_loaders: u64 [sum ACCOUNT_RETIRED_LOADERS "heapwarden_account_retired_loaders" None]
                    "Undeployed services of the account whose class loader still lives and holds bytes.";
                left_behind_bytes: u64 [sum ACCOUNT_LEFT_BEHIND_BYTES "heapwarden_account_left_behind_bytes" Bytes]
                    "Live bytes that undeployed versions of the account have left; their class loader is gone.";
                threads_left_behind: u64 [sum ACCOUNT_THREADS_LEFT_BEHIND "heapwarden_account_threads_left_behind" None]
                    "Live platform threads of undeployed versions of the account.";
            }
            fields {
                /// Some of the threads that undeployed versions have left: at most 16.
                pub left_threads: Vec<LeftThread<'a>>,
                /// Its use of each resource, the heap first. Empty: the agent does not say (an older one).
                pub usage: Vec<Usage<'a>>,
                /// On whose behalf its live bytes were allocated, largest first.
                pub principals: Vec<Principal<'a>>,
                /// Principals that the agent left out.
                #[serde(deserialize_with = "whole")]
                pub principals_omitted: u64,
                /// The objects that it holds by class, largest live bytes first.
                pub classes: Vec<Class<'a>>,
                /// Classes that were not asked for, or that the agent left out.
                #[serde(deserialize_with = "whole")]
                pub classes_omitted: u64,
            }
            figures {}
        }
    };
}
