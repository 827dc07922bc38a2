//! `GET /api/v1/accounts`: every account with its classes, as JSON. The document is defined in
//! [`policy_report::Accounts`]; this fills it from a snapshot.
//!
//! Accounts are not folded here, but the document is bounded: [`MAX_ACCOUNTS`] accounts,
//! [`MAX_PRINCIPALS`] principals and [`MAX_ROUTES`] routes an account, and [`MAX_DETAIL_ROWS`] rows of classes, principals, routes and
//! places in all, largest accounts first. The document says how many are left out
//! (`accounts_omitted`, and `classes_omitted`, `principals_omitted`, `places_other` in the account).

use policy_report::{self as document, Accounts, Counts, account_figures};

use policy_core::exact::{Compared, ExactStatus};
use policy_core::holdings::Bin;
use policy_core::sampling::weight::OBJECT_UNIT;
use policy_core::snapshot::{AccountsSum, Held};
use policy_core::usage::Resource;

use super::fold::clip;
use super::{
    Account, Class, DoorState, LeftThread, Place, Principal, Route, Snapshot, State, Tree,
};

/// Most accounts in one document.
pub const MAX_ACCOUNTS: usize = 10_000;
/// Most principals of one account.
pub const MAX_PRINCIPALS: usize = 200;
/// Most routes of one account.
pub const MAX_ROUTES: usize = 64;
/// Most classes, principals, routes and places in one document, over all accounts.
pub const MAX_DETAIL_ROWS: usize = 100_000;
/// The heap as a resource.
const HEAP: &str = "heap";
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
/// The serializer's error; this document causes none.
pub fn render(snapshot: &Snapshot, classes: Classes) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(1024 + 2048 * snapshot.accounts.len().min(MAX_ACCOUNTS));
    serde_json::to_writer(&mut out, &accounts(snapshot, classes))?;
    out.push(b'\n');
    Ok(out)
}

/// The document, borrowed from the snapshot.
pub(crate) fn accounts(snapshot: &Snapshot, classes: Classes) -> Accounts<'_> {
    let Snapshot {
        process,
        heap,
        sampling,
        policy,
        ..
    } = snapshot;
    let mut accounts: Vec<&Account> = snapshot.accounts.iter().collect();
    accounts.sort_unstable_by(|a, b| {
        (b.live_bytes.cmp(&a.live_bytes)).then_with(|| a.name.cmp(&b.name))
    });
    let accounts_omitted = accounts.len().saturating_sub(MAX_ACCOUNTS) as u64;
    accounts.truncate(MAX_ACCOUNTS);
    let dropped_by_reason = Counts::of(&sampling.dropped);
    let mut rows_left = MAX_DETAIL_ROWS;
    Accounts {
        jvm: document::Jvm {
            pid: process.id.into(),
            name: clip(&process.program),
            vm: clip(&process.vm),
            version: clip(&process.version),
            loaded_at_start: Some(process.loaded_at_start),
        },
        heap: document::Heap {
            used_after_gc_bytes: heap.used_after_gc_bytes,
            max_bytes: heap.max_bytes,
            gc_epoch: heap.gc_epoch,
            live_gc_epoch: Some(heap.live_gc_epoch),
            live_age_seconds: heap.live_age_seconds,
            accounts: heap.accounts.as_ref().map(accounts_sum),
        },
        sampling: document::Sampling {
            interval_bytes: sampling.interval_bytes,
            samples: sampling.samples,
            dropped: dropped_by_reason.sum(),
            dropped_by_reason,
            callback_p50_ns: sampling.callback_p50_ns,
            callback_p99_ns: sampling.callback_p99_ns,
        },
        policy: document::Policy {
            generation: policy.generation,
            mode: policy.mode.as_str().into(),
            last_reload_successful: policy.last_reload_successful,
            last_error: policy.last_error.as_deref().map(Into::into),
        },
        evidence: document::Evidence {
            budget_used_up_seconds: snapshot.evidence_budget_used_up_seconds,
        },
        enforcement: document::Enforcement {
            duress: snapshot.duress.is_on,
            heap_free_bytes: snapshot.duress.free_bytes,
            heap_short_below_bytes: snapshot.duress.short_below_bytes,
        },
        costs: document::Costs {
            cpu_milliseconds: Counts(
                (snapshot.cpu_seconds.iter())
                    .map(|&(part, seconds)| (part.into(), (seconds * 1e3).round() as u64))
                    .collect(),
            ),
            memory_bytes: Counts::of(&snapshot.memory_bytes),
        },
        exact: snapshot.exact.as_ref().map(exact),
        accounts: accounts
            .into_iter()
            .map(|one| account(one, classes, &mut rows_left))
            .collect(),
        accounts_omitted,
    }
}

fn exact(exact: &ExactStatus) -> document::Exact<'_> {
    document::Exact {
        counting: exact.is_on,
        jvm_allocated_bytes_total: exact.compared.map(|compared| compared.jvm_bytes),
        counted_bytes_total: exact.compared.map(|compared| compared.counted_bytes),
        remainder_bytes: exact.compared.map(Compared::remainder_bytes),
        lost_objects_total: exact.lost_objects,
        classes_rewritten_total: exact.rewritten,
        classes_skipped: Counts::of(&exact.skipped),
    }
}

macro_rules! figure {
    (error $error:expr) => {
        whole_bytes($error).into()
    };
    ($fold:ident $figure:expr) => {
        $figure
    };
}

macro_rules! account {
    ($account:ident; {$($by_hand:tt)*} $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$fold:ident $($row:tt)*] $help:literal;
    )*})*) => {
        document::Account {
            $($($key: figure!($fold $account.$key),)*)*
            $($by_hand)*
        }
    };
}

fn account<'a>(
    account: &'a Account,
    classes: Classes,
    rows_left: &mut usize,
) -> document::Account<'a> {
    let deferred_by_reason = Counts::of(&account.deferred);
    // They are sorted already, and bounded for each account.
    let places = &account.places[..account.places.len().min(*rows_left)];
    *rows_left -= places.len();
    let most_routes = (*rows_left).min(MAX_ROUTES);
    let routes = &account.routes[..account.routes.len().min(most_routes)];
    *rows_left -= routes.len();
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
    account_figures!(account! account; {
        name: clip(&account.name),
        kind: account.kind.as_str().into(),
        service: clip(&account.service),
        parent: (!account.parent.is_empty()).then(|| clip(&account.parent)),
        tree: account.tree.as_ref().map(tree),
        live_by_ratio_bytes: account.live_by_ratio.map(|live| live.bytes.round() as u64),
        live_by_ratio_standard_error_bytes: (account.live_by_ratio)
            .map(|live| whole_bytes(live.standard_error_bytes)),
        state: state(account.state),
        door: door(account.door),
        deferred_total: deferred_by_reason.sum(),
        deferred_by_reason,
        ineffective: (account.ineffective.as_ref()).map(|found| document::Ineffective {
            reason: found.reason.into(),
            frame: found.frame.as_deref().map(clip),
        }),
        places_other: (account.places.iter().skip(places.len()))
            .fold(account.places_elsewhere, |sum, place| sum + place.count),
        places: places.iter().map(place).collect(),
        routes: routes.iter().map(route).collect(),
        left_threads: account.left_threads.iter().map(left_thread).collect(),
        usage: usage(account),
        principals_omitted: (account.principals.len() - principals.len()) as u64,
        principals: principals.into_iter().map(principal).collect(),
        classes_omitted: (account.classes.len() - classes.len()) as u64,
        classes: classes.into_iter().map(class).collect(),
    })
}

fn accounts_sum(sum: &AccountsSum) -> document::AccountsSum {
    document::AccountsSum {
        live_bytes: sum.reading.accounts_bytes,
        standard_error_bytes: whole_bytes(sum.reading.standard_error_bytes),
        heap_bytes: sum.reading.heap_bytes,
        over_heap_ratio: sum.reading.ratio(),
        exceeds: sum.exceeds,
        error_factor: sum.error_factor,
    }
}

fn tree(tree: &Tree) -> document::Tree {
    document::Tree {
        live_bytes: tree.live_bytes,
        live_standard_error_bytes: Some(whole_bytes(tree.live_standard_error_bytes)),
        live_at_most_bytes: tree.live_at_most_bytes,
        charged_bytes: tree.charged_bytes,
        standard_error_bytes: whole_bytes(tree.standard_error_bytes),
    }
}

pub(super) fn state(state: State) -> document::State {
    match state {
        State::Open => document::State::Open,
        State::Suspect => document::State::Suspect,
        State::Over => document::State::Over,
    }
}

fn door(door: DoorState) -> document::Door {
    match door {
        DoorState::None => document::Door::None,
        DoorState::Open => document::Door::Open,
        DoorState::Shut => document::Door::Shut,
    }
}

/// The heap first: what its limit is about, and all that was refused for it.
fn usage(account: &Account) -> Vec<document::Usage<'_>> {
    let heap = document::Usage {
        resource: HEAP.into(),
        used: account
            .tree
            .map_or(account.live_bytes, |tree| tree.live_bytes),
        limit: account.limit_bytes,
        refusals_total: (account.refusals_total).saturating_add(account.admission_refusals_total),
    };
    let others = account.usage.iter().map(|usage| {
        // The limit is one for both; it is shown where its name is.
        let is_direct = usage.resource == Resource::Direct;
        document::Usage {
            resource: usage.resource.name().into(),
            used: usage.used,
            limit: account.direct_limit_bytes.filter(|_| is_direct),
            refusals_total: account
                .direct_refusals_total
                .filter(|_| is_direct)
                .unwrap_or(0),
        }
    });
    [heap].into_iter().chain(others).collect()
}

fn left_thread(thread: &LeftThread) -> document::LeftThread<'_> {
    document::LeftThread {
        name: clip(&thread.name),
        daemon: thread.is_daemon,
        runs: thread.runs.as_deref().map(clip),
    }
}

fn principal(principal: &Principal) -> document::Principal<'_> {
    document::Principal {
        name: clip(&principal.name),
        live_bytes: principal.live_bytes,
    }
}

fn route(route: &Route) -> document::Route<'_> {
    document::Route {
        route: clip(&route.route),
        calls_total: route.calls_total,
        refused_total: route.refused_total,
        live_bytes: route.live_bytes,
        standard_error_bytes: route.standard_error_bytes,
        kept_bytes_per_call: route.kept_bytes,
        allocated_bytes_per_call: route.allocated_bytes,
        peak_bytes_per_call: route.peak_bytes,
    }
}

fn place(place: &Place) -> document::Place<'_> {
    document::Place {
        frame: clip(&place.frame),
        entry: clip(&place.entry),
        thread: place.thread.into(),
        unit: clip(&place.unit),
        count: place.count,
        never_interrupt: place.never_interrupt.as_deref().map(Into::into),
    }
}

fn class(class: &Class) -> document::Class<'_> {
    document::Class {
        class: clip(&class.class),
        live_bytes: class.live_bytes,
        live_objects: class.live_objects,
        allocated_bytes_total: class.allocated_bytes_total,
        live_standard_error_bytes: Some(whole_bytes(class.live_standard_error_bytes)),
        allocated_objects_total: Some(class.allocated_objects_total),
        freed_bytes_total: Some(class.freed_bytes_total),
        freed_objects_total: Some(class.freed_objects_total),
        exact_allocated_bytes_total: class.exact.map(|exact| exact.bytes),
        exact_allocated_objects_total: class.exact.map(|exact| exact.objects),
        live_by_ratio_bytes: class.live_by_ratio.map(|live| live.bytes.round() as u64),
        live_by_ratio_standard_error_bytes: (class.live_by_ratio)
            .map(|live| whole_bytes(live.standard_error_bytes)),
        sample_share: class.sample_share,
        generations: Some(class.shape.generations),
        ages_collections: bins(&class.shape.ages_collections),
        ages_seconds: bins(&class.shape.ages_seconds),
        sizes: bins(&class.shape.sizes),
        cohorts: class.cohorts.iter().map(held).collect(),
    }
}

fn held(held: &Held) -> document::Held {
    document::Held {
        upto_epoch: held.upto.get().into(),
        records: held.sum.records,
        live_bytes: held.sum.live.bytes,
        live_objects: held.sum.live.objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT,
        variance: held.sum.live.variance,
    }
}

fn bins(bins: &[Bin]) -> Vec<document::Bin> {
    let bin = |bin: &Bin| document::Bin {
        upto: bin.upto,
        live_bytes: bin.live.bytes,
        live_objects: bin.live.objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT,
    };
    bins.iter().map(bin).collect()
}

/// An error in whole bytes, like every other amount. It is rounded up, so that 0 means that the amount is
/// exact.
fn whole_bytes(error: f64) -> u64 {
    error.ceil() as u64
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
