//! Reads the accounts: from ledger, directory and gauges to one [`Snapshot`].
//!
//! Runs on the listener's thread. One pass over the records gives what is live by account,
//! class and principal; the purses give charges, errors and totals. Charges and refunds go
//! on meanwhile, so sums of one snapshot may differ by what happened during it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::agent::Agent;
use crate::enforce::points::Reason;
use crate::identity::classes::ClassId;
use crate::identity::directory::{self, Directory};
use crate::ledger::{DropReason, PurseId, UNKNOWN_CLASS};
use crate::sampling::{standard_error_bytes, weight::OBJECT_UNIT};

use crate::report::{
    Account, Class, Heap, Kind, OTHER, Principal, Sampling, Snapshot, State, Tree, UNACCOUNTED,
};

/// Classes told apart per account at the most; the rest is summed.
const MOST_CLASSES: usize = 5_000;
/// The class of objects whose class has no name: unloaded, or beyond the class table.
const UNKNOWN: &str = "?";

/// What one pass over the records found for an account.
#[derive(Default)]
struct Live {
    bytes: u64,
    /// In units of 2^-16.
    objects: u64,
    classes: HashMap<u32, (u64, u64)>,
    principals: BTreeMap<Arc<str>, u64>,
}

/// Takes a reading.
pub(crate) fn read(agent: &Agent) -> Snapshot {
    let _unchanging = agent.policy.unchanging();
    agent.enforcement.drain();
    let directory = agent.directory();
    let mut live = live(agent, &directory);
    let policy = directory.policy().clone();
    let max_heap = agent.heap_max_bytes();
    let accounts = directory
        .accounts()
        .map(|(name, facts)| {
            let mut account = Account {
                name: name.to_string(),
                kind: facts.kind,
                service: facts.service.clone(),
                parent: (directory.parent(facts)).map_or_else(String::new, |p| p.to_string()),
                tree: tree(agent, facts, &live.of_purses),
                ..Account::default()
            };
            let departed = directory.departed(name);
            account.allocated_bytes_total = departed.allocated_bytes;
            account.allocated_objects_total = departed.allocated_objects;
            let mut variance = 0u64;
            let mut allocated = HashMap::new();
            // A purse that was opened a moment ago is nobody's until its owner is entered.
            let unowned = (&**name == UNACCOUNTED).then(|| unowned(agent, &directory));
            for &purse in facts.purses.iter().chain(unowned.iter().flatten()) {
                let totals = agent.ledger.totals(purse);
                account.charged_bytes = account.charged_bytes.saturating_add(totals.charged.bytes);
                variance = variance.saturating_add(totals.charged.variance);
                account.allocated_bytes_total = account
                    .allocated_bytes_total
                    .wrapping_add(totals.allocated_bytes);
                account.allocated_objects_total = account
                    .allocated_objects_total
                    .wrapping_add(totals.allocated_objects);
                agent.ledger.allocated_by_class(purse, |class, bytes| {
                    *allocated.entry(class).or_insert(0u64) += bytes;
                });
            }
            account.standard_error_bytes = standard_error_bytes(variance);
            let found = live.accounts.remove(name).unwrap_or_default();
            // The passes are not one instant: what came between them is charged by now.
            account.live_bytes = found.bytes.min(account.charged_bytes);
            account.live_objects = found.objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT;
            account.principals = found
                .principals
                .into_iter()
                .map(|(name, live_bytes)| Principal {
                    name: name.to_string(),
                    live_bytes,
                })
                .collect();
            account
                .principals
                .sort_by_key(|p| std::cmp::Reverse(p.live_bytes));
            account.classes = classes(&directory, &found.classes, &allocated);
            account.retired_loaders = directory
                .retired_loaders(facts, |purse| agent.ledger.totals(purse).charged.bytes > 0);
            let rule = facts.rule.and_then(|index| policy.accounts.get(index));
            // A library has no charges of its own to limit.
            if let Some(rule) = rule.filter(|_| facts.kind != Kind::Library) {
                account.soft_limit_bytes = rule.soft_limit.resolve(max_heap);
                account.limit_bytes = rule.limit.resolve(max_heap);
            }
            let status = agent.enforcement.status(name);
            // Between a reload and the warden's next round the limit may be gone already.
            account.state = match account.limit_bytes {
                Some(_) => status.state,
                None => State::Open,
            };
            account.soft_limit_events_total = status.soft_events;
            account.refusals_total = status.counts.refusals;
            account.would_refuse_total = status.counts.would_refuse;
            account.deferred = Reason::ALL
                .iter()
                .map(|reason| (reason.name(), status.counts.deferred[*reason as usize]))
                .filter(|(_, count)| *count > 0)
                .collect();
            account
        })
        .collect();
    drop(directory);
    snapshot(agent, accounts)
}

/// The open purses that are in no account.
fn unowned(agent: &Agent, directory: &Directory) -> Vec<PurseId> {
    (0..agent.ledger.purse_high_water())
        .map(|number| PurseId::new(number as u16))
        .filter(|&purse| agent.ledger.is_open(purse) && !directory.is_owned(purse))
        .collect()
}

/// The sums of a service with the scopes inside it.
fn tree(agent: &Agent, facts: &directory::Account, live: &HashMap<PurseId, u64>) -> Option<Tree> {
    if facts.beneath.is_empty() {
        return None;
    }
    let mut tree = Tree::default();
    let mut variance = 0u64;
    for purse in facts.tree() {
        let charged = agent.ledger.totals(purse).charged;
        tree.charged_bytes = tree.charged_bytes.saturating_add(charged.bytes);
        variance = variance.saturating_add(charged.variance);
        tree.live_bytes += live.get(&purse).copied().unwrap_or(0);
    }
    tree.live_bytes = tree.live_bytes.min(tree.charged_bytes);
    tree.standard_error_bytes = standard_error_bytes(variance);
    Some(tree)
}

/// What one pass over the records found.
#[derive(Default)]
struct Found {
    accounts: HashMap<Arc<str>, Live>,
    /// Live bytes by the purse that pays.
    of_purses: HashMap<PurseId, u64>,
}

/// One pass over the records: what survived, by the account that pays and, for the matrix,
/// by agent and principal.
fn live(agent: &Agent, directory: &Directory) -> Found {
    let mut names: HashMap<PurseId, Arc<str>> = HashMap::new();
    let mut name = |purse| {
        names
            .entry(purse)
            .or_insert_with(|| directory.account_name(purse))
            .clone()
    };
    // Keyed by numbers during the pass; names come after it.
    let mut cells: HashMap<(PurseId, PurseId, PurseId, u32), (u64, u64)> = HashMap::new();
    agent.ledger.scan(|record| {
        if record.survived {
            let key = (record.payer, record.agent, record.principal, record.class);
            let cell = cells.entry(key).or_default();
            cell.0 = cell.0.wrapping_add(record.live.bytes);
            cell.1 = cell.1.wrapping_add(record.live.objects);
        }
    });
    let mut found = Found::default();
    for ((payer, by, principal, class), (bytes, objects)) in cells {
        *found.of_purses.entry(payer).or_default() += bytes;
        let live = &mut found.accounts;
        let entry = live.entry(name(payer)).or_default();
        entry.bytes += bytes;
        entry.objects += objects;
        let of_class = entry.classes.entry(class).or_default();
        of_class.0 += bytes;
        of_class.1 += objects;
        // The matrix is the agent's: what its code allocated, and for whom.
        let entry = live.entry(name(by)).or_default();
        *entry.principals.entry(name(principal)).or_default() += bytes;
    }
    found
}

fn classes(
    directory: &Directory,
    live: &HashMap<u32, (u64, u64)>,
    allocated: &HashMap<u32, u64>,
) -> Vec<Class> {
    let ids: HashSet<u32> = live.keys().chain(allocated.keys()).copied().collect();
    // Two loaders may define classes of one name: a reader knows them by name.
    let mut by_name: BTreeMap<Arc<str>, (u64, u64, u64)> = BTreeMap::new();
    for id in ids {
        let name = (id != UNKNOWN_CLASS)
            .then(|| directory.class_name(ClassId(id)))
            .flatten()
            .unwrap_or_else(|| UNKNOWN.into());
        let sum = by_name.entry(name).or_default();
        let (bytes, objects) = live.get(&id).copied().unwrap_or_default();
        sum.0 += bytes;
        sum.1 += objects;
        sum.2 += allocated.get(&id).copied().unwrap_or(0);
    }
    let mut classes: Vec<Class> = by_name
        .into_iter()
        .map(
            |(name, (live_bytes, objects, allocated_bytes_total))| Class {
                class: name.to_string(),
                live_bytes,
                live_objects: objects.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT,
                allocated_bytes_total,
            },
        )
        .collect();
    classes.sort_by(|a, b| {
        (b.live_bytes, b.allocated_bytes_total, &a.class).cmp(&(
            a.live_bytes,
            a.allocated_bytes_total,
            &b.class,
        ))
    });
    if classes.len() > MOST_CLASSES {
        let mut rest = Class {
            class: OTHER.to_owned(),
            ..Class::default()
        };
        for class in classes.drain(MOST_CLASSES..) {
            rest.live_bytes += class.live_bytes;
            rest.live_objects += class.live_objects;
            rest.allocated_bytes_total += class.allocated_bytes_total;
        }
        classes.push(rest);
    }
    classes
}

fn snapshot(agent: &Agent, accounts: Vec<Account>) -> Snapshot {
    let mut dropped: Vec<(&'static str, u64)> = DropReason::ALL
        .iter()
        .map(|&reason| (reason.name(), agent.ledger.dropped(reason)))
        .collect();
    dropped.push(("panic", agent.panics()));
    let all_dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
    Snapshot {
        heap: Heap {
            used_after_gc_bytes: agent.heap_used_after_gc_bytes(),
            max_bytes: agent.heap_max_bytes(),
            gc_epoch: u64::from(agent.ledger.epochs().current().get()),
        },
        sampling: Sampling {
            interval_bytes: {
                let intervals = agent.ledger.intervals();
                intervals.bytes(intervals.current())
            },
            samples: agent.ledger.samples_total().saturating_sub(all_dropped),
            dropped,
            thinned: agent.thinning.passed_over(),
            callback_p50_ns: agent.costs.sample_ns(0.5),
            callback_p99_ns: agent.costs.sample_ns(0.99),
        },
        policy: agent.policy.published(),
        accounts,
        capabilities: agent.capabilities(),
        scope_misuses: agent.identity.scopes.misuses(),
        evidence: agent.evidence.read(),
        cpu_seconds: agent.costs.seconds(),
        memory_bytes: agent.memory_bytes(),
        build: agent.build(),
    }
}
