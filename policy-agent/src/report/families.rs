//! Turns a snapshot into samples: the values of each metric of the catalogue.

use super::fold::{Folded, clip};
use super::{Account, Mode, OTHER, Route, Snapshot, State};
use policy_core::exact::ContextOverflow;
use policy_core::usage::Resource;
use policy_report::account_figures;
use policy_report::catalog::{self, Metric};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A metric and its samples; never without samples.
#[derive(Debug)]
pub(super) struct Family<'a> {
    pub(super) metric: &'static Metric,
    pub(super) samples: Vec<Sample<'a>>,
}

/// One line of an exposition.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    /// Names and values. The names are the metric's labels, with two exceptions:
    /// `heapwarden_account_info` also has the parent of an account, if there is one, and
    /// `heapwarden_build_info` has all labels that the agent knows.
    pub(super) labels: Vec<(&'static str, Cow<'a, str>)>,
    pub(super) value: Value,
}

/// A number as it was counted: integers stay exact beyond 2⁵³.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Integer(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        u64::try_from(value).map_or(Value::Real(value as f64), Value::Integer)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Integer(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl Value {
    /// The same in a unit that is so many times as large.
    fn over(self, factor: f64) -> Value {
        Value::Real(match self {
            Value::Integer(value) => value as f64 / factor,
            Value::Real(value) => value / factor,
        })
    }
}

/// A figure of an account; `None`: it has no sample.
trait Figure {
    fn value(self) -> Option<Value>;
}

impl<N: Into<Value>> Figure for N {
    fn value(self) -> Option<Value> {
        Some(self.into())
    }
}

impl Figure for Option<u64> {
    fn value(self) -> Option<Value> {
        self.map(Value::from)
    }
}

macro_rules! figures {
    ($each:ident $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty
        [$fold:ident $($metric:ident $name:literal $unit:ident $(/ $factor:literal)?)?] $help:literal;
    )*})*) => {
        $($($(
            $each(&catalog::$metric, |a| a.$key.value()$(.map(|value| value.over($factor)))?);
        )?)*)*
    };
}

/// Everything that is in a snapshot, in the catalogue's order.
pub(super) fn families<'a>(snapshot: &'a Snapshot, folded: &'a Folded<'a>) -> Vec<Family<'a>> {
    let mut list = List(Vec::with_capacity(
        catalog::FIGURES.len() + catalog::HELD.len(),
    ));
    accounts(&mut list, &folded.accounts);
    list.one(&catalog::ACCOUNTS_FOLDED, folded.accounts_folded);
    list.many(
        &catalog::PRINCIPAL_LIVE_BYTES,
        folded.pairs.iter().map(|pair| Sample {
            labels: vec![
                ("principal", Cow::Borrowed(pair.principal.as_ref())),
                ("agent", Cow::Borrowed(pair.agent.as_ref())),
            ],
            value: pair.live_bytes.into(),
        }),
    );
    leaks(&mut list, snapshot, folded);
    agent(&mut list, snapshot);
    if !snapshot.build.is_empty() {
        let labels = snapshot.build.iter();
        let labels = labels.map(|(name, value)| (*name, clip(value))).collect();
        list.many(
            &catalog::BUILD_INFO,
            [Sample {
                labels,
                value: Value::Integer(1),
            }],
        );
    }
    list.0
}

fn accounts<'a>(list: &mut List<'a>, accounts: &'a [Cow<'a, Account>]) {
    let mut each = |metric, value: fn(&Account) -> Option<Value>| {
        list.many(
            metric,
            accounts.iter().filter_map(|account| {
                Some(Sample {
                    labels: vec![account_label(account)],
                    value: value(account)?,
                })
            }),
        );
    };
    account_figures!(figures! each);
    each(&catalog::ACCOUNT_TREE_LIVE_BYTES, |a| {
        a.tree.map(|tree| tree.live_bytes.into())
    });
    each(&catalog::ACCOUNT_TREE_LIVE_STANDARD_ERROR_BYTES, |a| {
        a.tree.map(|tree| tree.live_standard_error_bytes.into())
    });
    each(&catalog::ACCOUNT_TREE_CHARGED_BYTES, |a| {
        a.tree.map(|tree| tree.charged_bytes.into())
    });
    each(&catalog::ACCOUNT_TREE_STANDARD_ERROR_BYTES, |a| {
        a.tree.map(|tree| tree.standard_error_bytes.into())
    });
    each(&catalog::ACCOUNT_LIVE_BY_RATIO_BYTES, |a| {
        a.live_by_ratio.map(|live| live.bytes.into())
    });
    each(&catalog::ACCOUNT_LIVE_BY_RATIO_STANDARD_ERROR_BYTES, |a| {
        (a.live_by_ratio).map(|live| live.standard_error_bytes.into())
    });
    each(&catalog::ACCOUNT_OVER_LIMIT, |a| {
        Some((a.state == State::Over).into())
    });
    each(&catalog::ACCOUNT_INEFFECTIVE, |a| {
        Some(a.ineffective.is_some().into())
    });
    for resource in Resource::ALL {
        list.many(
            metric_of(resource),
            accounts.iter().filter_map(|account| {
                let mut usages = account.usage.iter();
                Some(Sample {
                    labels: vec![account_label(account)],
                    value: usages.find(|usage| usage.resource == resource)?.used.into(),
                })
            }),
        );
    }
    routes(list, accounts);
    list.many(
        &catalog::ACCOUNT_DEFERRED_REFUSALS,
        accounts.iter().flat_map(|account| {
            account.deferred.iter().map(|&(reason, count)| Sample {
                labels: vec![account_label(account), ("reason", Cow::Borrowed(reason))],
                value: count.into(),
            })
        }),
    );
    list.many(
        &catalog::ACCOUNT_INFO,
        accounts.iter().map(|account| {
            let mut labels = vec![
                account_label(account),
                ("kind", Cow::Borrowed(account.kind.as_str())),
                ("service", clip(&account.service)),
            ];
            // For Prometheus an empty label is no label.
            if !account.parent.is_empty() {
                labels.push(("parent", clip(&account.parent)));
            }
            Sample {
                labels,
                value: Value::Integer(1),
            }
        }),
    );
}

fn metric_of(resource: Resource) -> &'static Metric {
    match resource {
        Resource::Threads => &catalog::ACCOUNT_THREADS,
        Resource::Direct => &catalog::ACCOUNT_DIRECT_BYTES,
        Resource::Native => &catalog::ACCOUNT_NATIVE_BYTES,
    }
}

/// Routes that are published, over all accounts.
const MAX_ROUTES: usize = 1_000;

/// The routes of accounts with a limit come first, then by name of the account: an order that does not change
/// from scrape to scrape. Accounts whose routes find no room have none.
fn routes<'a>(list: &mut List<'a>, accounts: &'a [Cow<'a, Account>]) {
    let mut with_routes: Vec<&Cow<'a, Account>> =
        accounts.iter().filter(|a| !a.routes.is_empty()).collect();
    with_routes.sort_by_key(|account| account.limit_bytes.is_none());
    let mut room = MAX_ROUTES;
    with_routes.retain(|account| {
        let fits = account.routes.len() <= room;
        room -= if fits { account.routes.len() } else { 0 };
        fits
    });
    let mut each = |metric, value: fn(&Route) -> u64| {
        let routes = with_routes.iter().flat_map(|account| {
            account.routes.iter().map(|route| Sample {
                labels: vec![account_label(account), ("route", clip(&route.route))],
                value: value(route).into(),
            })
        });
        list.many(metric, routes);
    };
    each(&catalog::ROUTE_LIVE_BYTES, |route| route.live_bytes);
    each(&catalog::ROUTE_CALLS, |route| route.calls_total);
    each(&catalog::ROUTE_REFUSALS, |route| route.refused_total);
}

fn account_label<'a>(account: &'a Cow<'a, Account>) -> (&'static str, Cow<'a, str>) {
    ("account", Cow::Borrowed(account.name.as_str()))
}

/// Suspects in accounts that are not published of their own count for `_other`.
fn leaks<'a>(list: &mut List<'a>, snapshot: &'a Snapshot, folded: &'a Folded<'a>) {
    let published = |name: &str| folded.accounts.iter().any(|account| account.name == name);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut growth: BTreeMap<(Cow<'a, str>, Cow<'a, str>), f64> = BTreeMap::new();
    for account in &folded.accounts {
        counts.insert(&account.name, 0);
    }
    for suspect in &snapshot.leaks.suspects {
        let account = if published(&suspect.account) {
            &suspect.account
        } else {
            OTHER
        };
        *counts.entry(account).or_default() += 1;
        *growth
            .entry((clip(account), clip(&suspect.class)))
            .or_default() += suspect.growth_bytes_per_second;
    }
    list.many(
        &catalog::LEAK_SUSPECTS,
        counts.into_iter().map(|(account, count)| Sample {
            labels: vec![("account", clip(account))],
            value: count.into(),
        }),
    );
    list.many(
        &catalog::LEAK_GROWTH_BYTES_PER_SECOND,
        growth.into_iter().map(|((account, class), growth)| Sample {
            labels: vec![("account", account), ("class", class)],
            value: growth.into(),
        }),
    );
    let suspects = snapshot.leaks.suspects.iter();
    let known = suspects.filter(|one| published(&one.account));
    list.many(
        &catalog::LEAK_KEPT_BY_INFO,
        known.filter_map(|one| {
            let chain = one.kept_by.first()?;
            Some(Sample {
                labels: vec![
                    ("account", clip(&one.account)),
                    ("class", clip(&one.class)),
                    ("chain", Cow::Borrowed(chain)),
                ],
                value: Value::Integer(1),
            })
        }),
    );
}

fn agent<'a>(list: &mut List<'a>, snapshot: &'a Snapshot) {
    let Snapshot {
        heap,
        sampling,
        policy,
        ..
    } = snapshot;
    list.one(&catalog::HEAP_USED_AFTER_GC_BYTES, heap.used_after_gc_bytes);
    list.one(&catalog::HEAP_MAX_BYTES, heap.max_bytes);
    list.one(&catalog::GC_EPOCH, heap.gc_epoch);
    if let Some(age) = heap.live_age_seconds {
        list.one(&catalog::LIVE_AGE_SECONDS, age);
    }
    if let Some(sum) = &heap.accounts {
        list.one(&catalog::ACCOUNTS_OVER_HEAP_RATIO, sum.reading.ratio());
    }
    let exceeds = heap.accounts.is_some_and(|sum| sum.exceeds);
    list.one(&catalog::ACCOUNTS_EXCEED_HEAP, exceeds);
    list.one(&catalog::SAMPLES, sampling.samples);
    list.one(&catalog::SAMPLING_ERROR_FACTOR, sampling.error_factor);
    list.labelled(&catalog::SAMPLES_DROPPED, sampling.dropped.iter().copied());
    list.one(&catalog::SAMPLES_THINNED, sampling.thinned);
    list.one(
        &catalog::SAMPLES_THINNED_BY_CLASS,
        sampling.thinned_by_class,
    );
    list.one(&catalog::SITE_STACKS, snapshot.stacks);
    list.labelled(
        &catalog::SITE_STACKS_SKIPPED,
        snapshot.stacks_skipped.iter().copied(),
    );
    if let Some(exact) = &snapshot.exact {
        list.one(&catalog::EXACT_CLASSES_REWRITTEN, exact.rewritten);
        list.labelled(
            &catalog::EXACT_CLASSES_SKIPPED,
            exact.skipped.iter().copied(),
        );
        if let Some(compared) = exact.compared {
            list.one(&catalog::EXACT_JVM_ALLOCATED_BYTES, compared.jvm_bytes);
            list.one(&catalog::EXACT_COUNTED_BYTES, compared.counted_bytes);
            list.one(&catalog::EXACT_REMAINDER_BYTES, compared.remainder_bytes());
        }
        list.one(&catalog::EXACT_LOST_OBJECTS, exact.lost_objects);
        if let Some(contexts) = &exact.contexts {
            list.one(&catalog::EXACT_CONTEXTS, contexts.contexts);
            let by_reason = || ContextOverflow::REASONS.into_iter().zip(contexts.by_reason);
            list.labelled(
                &catalog::EXACT_CONTEXT_OVERFLOW_CALLS,
                by_reason().map(|(reason, (calls, _))| (reason, calls)),
            );
            list.labelled(
                &catalog::EXACT_CONTEXT_OVERFLOW_OBJECTS,
                by_reason().map(|(reason, (_, objects))| (reason, objects)),
            );
            list.one(&catalog::EXACT_CONTEXT_LOST_OBJECTS, contexts.lost_objects);
        }
    }
    list.labelled(
        &catalog::SCOPE_MISUSE,
        snapshot.scope_misuses.iter().copied(),
    );
    list.one(&catalog::SAMPLING_INTERVAL_BYTES, sampling.interval_bytes);
    list.labelled(
        &catalog::CAPABILITY_ENABLED,
        snapshot.capabilities.iter().copied(),
    );
    let duress = &snapshot.duress;
    list.one(&catalog::DURESS, duress.is_on);
    list.one(&catalog::HEAP_FREE_BYTES, duress.free_bytes);
    list.one(&catalog::HEAP_SHORT_BELOW_BYTES, duress.short_below_bytes);
    let evidence = &snapshot.evidence;
    list.labelled(
        &catalog::EVIDENCE_COLLECTIONS,
        evidence.iter().map(|e| (e.kind, e.collections)),
    );
    list.labelled(
        &catalog::EVIDENCE_SECONDS,
        evidence.iter().map(|e| (e.kind, e.seconds)),
    );
    list.one(&catalog::EVIDENCE_BUDGET, policy.evidence_budget_ratio);
    list.one(&catalog::POLICY_ENFORCING, policy.mode == Mode::Enforce);
    list.one(&catalog::POLICY_GENERATION, policy.generation);
    list.one(
        &catalog::POLICY_LAST_RELOAD_SUCCESSFUL,
        policy.last_reload_successful,
    );
    list.one(
        &catalog::POLICY_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS,
        policy.last_reload_success_timestamp_seconds,
    );
    list.one(&catalog::NATIVE_BLOCKS_ASSUMED, snapshot.assumed_blocks);
    list.one(&catalog::NATIVE_BLOCKS_UNENTERED, snapshot.unentered_blocks);
    list.labelled(
        &catalog::AGENT_CPU_SECONDS,
        snapshot.cpu_seconds.iter().copied(),
    );
    list.labelled(
        &catalog::AGENT_MEMORY_BYTES,
        snapshot.memory_bytes.iter().copied(),
    );
}

struct List<'a>(Vec<Family<'a>>);

impl<'a> List<'a> {
    fn many(&mut self, metric: &'static Metric, samples: impl IntoIterator<Item = Sample<'a>>) {
        let samples: Vec<_> = samples.into_iter().collect();
        if !samples.is_empty() {
            self.0.push(Family { metric, samples });
        }
    }

    fn one(&mut self, metric: &'static Metric, value: impl Into<Value>) {
        self.many(
            metric,
            [Sample {
                labels: Vec::new(),
                value: value.into(),
            }],
        );
    }

    /// One sample for each value of the metric's only label.
    fn labelled<V: Into<Value>>(
        &mut self,
        metric: &'static Metric,
        values: impl Iterator<Item = (&'static str, V)>,
    ) {
        let [label] = metric.labels else {
            unreachable!("{} has one label", metric.name)
        };
        self.many(
            metric,
            values.map(|(value, number)| Sample {
                labels: vec![(*label, Cow::Borrowed(value))],
                value: number.into(),
            }),
        );
    }
}
