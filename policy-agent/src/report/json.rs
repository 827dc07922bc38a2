//! `GET /api/v1/accounts`: every account with its classes, as JSON.
//!
//! Accounts are not folded here, but the document is bounded: [`MAX_ACCOUNTS`] accounts,
//! [`MAX_PRINCIPALS`] principals an account and [`MAX_DETAIL_ROWS`] rows of classes and
//! principals in all, largest accounts first. What is left out is counted
//! (`accounts_omitted`, and `classes_omitted`, `principals_omitted` in the account).

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::fold::clip;
use super::{Account, Class, Principal, Snapshot};

/// Most accounts in one document.
pub const MAX_ACCOUNTS: usize = 10_000;
/// Most principals of one account.
pub const MAX_PRINCIPALS: usize = 200;
/// Most classes and principals in one document, over all accounts.
pub const MAX_DETAIL_ROWS: usize = 100_000;
/// Classes of one account unless all are asked for.
pub const TOP_CLASSES: usize = 20;

/// How many classes of each account are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classes {
    /// The [`TOP_CLASSES`] by live bytes.
    Top,
    /// As many as the document can hold.
    All,
}

/// Renders the document, one line with a line feed at its end.
///
/// # Errors
/// Whatever the serializer reports; it has nothing to report for this document.
pub fn render(snapshot: &Snapshot, classes: Classes) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(1024 + 2048 * snapshot.accounts.len().min(MAX_ACCOUNTS));
    serde_json::to_writer(&mut out, &Document::of(snapshot, classes))?;
    out.push(b'\n');
    Ok(out)
}

#[derive(Serialize)]
struct Document<'a> {
    heap: HeapView,
    sampling: SamplingView<'a>,
    policy: PolicyView<'a>,
    accounts: Vec<AccountView<'a>>,
    accounts_omitted: usize,
}

#[derive(Serialize)]
struct HeapView {
    used_after_gc_bytes: u64,
    max_bytes: u64,
    gc_epoch: u64,
}

#[derive(Serialize)]
struct SamplingView<'a> {
    interval_bytes: u64,
    samples: u64,
    dropped: u64,
    dropped_by_reason: ByReason<'a>,
    callback_p50_ns: u64,
    callback_p99_ns: u64,
}

#[derive(Serialize)]
struct PolicyView<'a> {
    generation: u64,
    mode: &'static str,
    last_reload_successful: bool,
    last_error: Option<&'a str>,
}

#[derive(Serialize)]
struct AccountView<'a> {
    name: Cow<'a, str>,
    kind: &'static str,
    service: Cow<'a, str>,
    parent: Option<Cow<'a, str>>,
    tree: Option<TreeView>,
    live_bytes: u64,
    charged_bytes: u64,
    standard_error_bytes: u64,
    live_objects: u64,
    allocated_bytes_total: u64,
    allocated_objects_total: u64,
    soft_limit_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    state: &'static str,
    refusals_total: u64,
    would_refuse_total: u64,
    soft_limit_events_total: u64,
    deferred_total: u64,
    deferred_by_reason: ByReason<'a>,
    retired_loaders: u64,
    principals: Vec<PrincipalView<'a>>,
    principals_omitted: usize,
    classes: Vec<ClassView<'a>>,
    classes_omitted: usize,
}

#[derive(Serialize)]
struct TreeView {
    live_bytes: u64,
    charged_bytes: u64,
    standard_error_bytes: u64,
}

#[derive(Serialize)]
struct PrincipalView<'a> {
    name: Cow<'a, str>,
    live_bytes: u64,
}

#[derive(Serialize)]
struct ClassView<'a> {
    class: Cow<'a, str>,
    live_bytes: u64,
    live_objects: u64,
    allocated_bytes_total: u64,
}

/// Counts by reason, as a JSON object.
struct ByReason<'a>(&'a [(&'static str, u64)]);

impl ByReason<'_> {
    fn sum(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl Serialize for ByReason<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl<'a> Document<'a> {
    fn of(snapshot: &'a Snapshot, classes: Classes) -> Document<'a> {
        let Snapshot {
            heap,
            sampling,
            policy,
            ..
        } = snapshot;
        let mut accounts: Vec<&Account> = snapshot.accounts.iter().collect();
        accounts.sort_unstable_by(|a, b| {
            (b.live_bytes.cmp(&a.live_bytes)).then_with(|| a.name.cmp(&b.name))
        });
        let accounts_omitted = accounts.len().saturating_sub(MAX_ACCOUNTS);
        accounts.truncate(MAX_ACCOUNTS);
        let dropped = ByReason(&sampling.dropped);
        let mut rows_left = MAX_DETAIL_ROWS;
        Document {
            heap: HeapView {
                used_after_gc_bytes: heap.used_after_gc_bytes,
                max_bytes: heap.max_bytes,
                gc_epoch: heap.gc_epoch,
            },
            sampling: SamplingView {
                interval_bytes: sampling.interval_bytes,
                samples: sampling.samples,
                dropped: dropped.sum(),
                dropped_by_reason: dropped,
                callback_p50_ns: sampling.callback_p50_ns,
                callback_p99_ns: sampling.callback_p99_ns,
            },
            policy: PolicyView {
                generation: policy.generation,
                mode: policy.mode.as_str(),
                last_reload_successful: policy.last_reload_successful,
                last_error: policy.last_error.as_deref(),
            },
            accounts: accounts
                .into_iter()
                .map(|account| AccountView::of(account, classes, &mut rows_left))
                .collect(),
            accounts_omitted,
        }
    }
}

impl<'a> AccountView<'a> {
    fn of(account: &'a Account, classes: Classes, rows_left: &mut usize) -> AccountView<'a> {
        let deferred = ByReason(&account.deferred);
        let principals = largest(
            &account.principals,
            |p| (p.live_bytes, &p.name),
            MAX_PRINCIPALS,
            rows_left,
        );
        let most_classes = match classes {
            Classes::Top => TOP_CLASSES,
            Classes::All => usize::MAX,
        };
        let classes = largest(
            &account.classes,
            |c| (c.live_bytes, &c.class),
            most_classes,
            rows_left,
        );
        AccountView {
            name: clip(&account.name),
            kind: account.kind.as_str(),
            service: clip(&account.service),
            parent: (!account.parent.is_empty()).then(|| clip(&account.parent)),
            tree: account.tree.map(|tree| TreeView {
                live_bytes: tree.live_bytes,
                charged_bytes: tree.charged_bytes,
                standard_error_bytes: tree.standard_error_bytes.ceil() as u64,
            }),
            live_bytes: account.live_bytes,
            charged_bytes: account.charged_bytes,
            // Whole bytes, as every other amount; rounded up, so that only a certain charge
            // shows no error.
            standard_error_bytes: account.standard_error_bytes.ceil() as u64,
            live_objects: account.live_objects,
            allocated_bytes_total: account.allocated_bytes_total,
            allocated_objects_total: account.allocated_objects_total,
            soft_limit_bytes: account.soft_limit_bytes,
            limit_bytes: account.limit_bytes,
            state: account.state.as_str(),
            refusals_total: account.refusals_total,
            would_refuse_total: account.would_refuse_total,
            soft_limit_events_total: account.soft_limit_events_total,
            deferred_total: deferred.sum(),
            deferred_by_reason: deferred,
            retired_loaders: account.retired_loaders,
            principals_omitted: account.principals.len() - principals.len(),
            principals: principals.into_iter().map(PrincipalView::of).collect(),
            classes_omitted: account.classes.len() - classes.len(),
            classes: classes.into_iter().map(ClassView::of).collect(),
        }
    }
}

impl<'a> PrincipalView<'a> {
    fn of(principal: &'a Principal) -> PrincipalView<'a> {
        PrincipalView {
            name: clip(&principal.name),
            live_bytes: principal.live_bytes,
        }
    }
}

impl<'a> ClassView<'a> {
    fn of(class: &'a Class) -> ClassView<'a> {
        ClassView {
            class: clip(&class.class),
            live_bytes: class.live_bytes,
            live_objects: class.live_objects,
            allocated_bytes_total: class.allocated_bytes_total,
        }
    }
}

/// The first `most` by bytes descending, then name; fewer when the document is full.
fn largest<'a, T>(
    rows: &'a [T],
    key: impl Fn(&'a T) -> (u64, &'a String),
    most: usize,
    rows_left: &mut usize,
) -> Vec<&'a T> {
    let mut sorted: Vec<&T> = rows.iter().collect();
    sorted.sort_unstable_by(|a, b| {
        let ((a_bytes, a_name), (b_bytes, b_name)) = (key(a), key(b));
        b_bytes.cmp(&a_bytes).then_with(|| a_name.cmp(b_name))
    });
    sorted.truncate(most.min(*rows_left));
    *rows_left -= sorted.len();
    sorted
}

#[cfg(test)]
mod tests;
