//! Checks whether limits can be enforced, and are.

use policy_report::{Door, LeftThread, catalog};

use super::super::finding::{Finding, findings};
use super::super::inputs::Inputs;
use crate::process::Collector;
use heapwarden_client::live::{Account, State};
use heapwarden_terminal::size;
use heapwarden_terminal::table::amount;

/// The evidence budget counts as spent from this share of it on.
const SPENT: f64 = 0.9;
/// The budget of a younger agent is not checked, in seconds: at first, one collection is a large share.
const YOUNGEST_SECONDS: f64 = 60.0;
/// Less than this, left by undeployed versions, is not worth a line.
const LEFT_BEHIND_BYTES: u64 = 1 << 20;
/// Threads of an undeployed version that a line names.
const MAX_NAMED_THREADS: usize = 3;

/// Flags with which the agent cannot prove that memory is held.
pub(super) fn cannot_be_proved(inputs: &Inputs) -> Vec<Finding> {
    let Some(info) = &inputs.info else {
        return Vec::new();
    };
    let keeps_classes =
        info.arguments.has("-Xnoclassgc") || info.arguments.flag("ClassUnloading") == Some(false);
    // Generational Shenandoah needs it, too; the names of its threads do not tell which mode is on.
    let needs_classes = matches!(
        info.collector,
        None | Some(Collector::Serial | Collector::Parallel | Collector::Shenandoah)
    );
    if !keeps_classes || !needs_classes || inputs.metrics.is_empty() {
        return Vec::new();
    }
    let collector = info.collector.map_or("unknown", Collector::as_str);
    vec![Finding::new(
        &findings::NOTHING_PROVABLE,
        "the JVM never unloads classes; with this collector the agent then cannot prove what is held, and refuses \
         nothing (Shenandoah without generations is not affected)",
        format!("-Xnoclassgc or -XX:-ClassUnloading, collector {collector}"),
        "start the JVM without that flag, or with G1 or ZGC",
    )]
}

/// Services with a limit whose server has no door: nothing turns their requests away, and what the reserve does not
/// hold is stopped by errors. Not where the policy wants it so.
pub(super) fn no_door(inputs: &Inputs) -> Vec<Finding> {
    let Some(all) = &inputs.accounts else {
        return Vec::new();
    };
    let is_off = |account: &Account| {
        let policy = inputs
            .file
            .as_ref()
            .and_then(|file| file.policy.as_ref().ok());
        policy.is_some_and(|policy| {
            let names = [account.name.as_ref(), account.service.as_ref()];
            let rule = policy.service_account(&names);
            rule.is_some_and(|rule| policy.accounts[rule].door == policy_config::Door::Off)
        })
    };
    let without: Vec<&str> = (all.accounts.iter())
        .filter(|account| all.policy.mode == "enforce" && account.kind == "service")
        .filter(|account| account.limit_bytes.is_some() && account.door == Door::None)
        .filter(|account| account.allocated_bytes_total > 0 && !is_off(account))
        .map(|account| account.name.as_ref())
        .collect();
    if without.is_empty() {
        return Vec::new();
    }
    vec![Finding::new(
        &findings::NO_DOOR,
        "services with a limit have no door: beyond it their requests are not turned away, and get errors instead",
        format!("no door: {}", first_of(&without)),
        "see which servers have doors (docs/install.md); elsewhere name the methods with which work begins (door = [...], \
         docs/doors.md), or have the program ask (docs/admission.md)",
    )]
}

/// The first few names, and how many more there are.
fn first_of(names: &[&str]) -> String {
    const MAX_NAMES: usize = 5;
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Accounts above their soft limits.
pub(super) fn over_soft_limit(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.state == State::Open)
        .filter_map(|account| Some((account, account.whole(), account.soft_limit_bytes?)))
        .filter(|(_, whole, soft_limit)| whole.live_bytes > *soft_limit)
        .map(|(account, whole, soft_limit)| {
            Finding::of_account(
                &findings::OVER_SOFT_LIMIT,
                &account.name,
                format!(
                    "live {}, soft limit {}",
                    amount::estimate(whole.live_bytes, whole.live_error_bytes()),
                    size::shown(soft_limit as f64)
                ),
            )
        })
        .collect()
}

/// Accounts that have more native memory than their limits on it, with the scopes inside them.
pub(super) fn over_direct_limit(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    let off_heap = |account: &Account| -> u64 {
        let of = ["direct", "native"].map(|resource| account.used(resource).unwrap_or(0));
        of.iter().sum()
    };
    accounts
        .clone()
        .filter_map(|account| {
            let limit = account.direct_limit_bytes?;
            let inside = accounts
                .clone()
                .filter(|one| one.parent.as_ref() == Some(&account.name));
            let used = off_heap(account) + inside.map(off_heap).sum::<u64>();
            let refused = account.direct_refusals_total.unwrap_or(0);
            (used > limit).then(|| {
                Finding::of_account(
                    &findings::OVER_DIRECT_LIMIT,
                    &account.name,
                    format!(
                        "direct and native {}, direct-limit {}, blocks refused {refused}",
                        size::shown(used as f64),
                        size::shown(limit as f64)
                    ),
                )
            })
        })
        .collect()
}

/// A verdict waits, because the collections that the agent asks for have used up their budget, or they have since the
/// agent was loaded.
pub(super) fn budget_spent(inputs: &Inputs) -> Vec<Finding> {
    let waits = inputs.accounts.as_ref().and_then(|all| {
        let waits = all.accounts.iter().any(|one| one.state == State::Suspect);
        all.evidence.budget_used_up_seconds.filter(|_| waits)
    });
    if let Some(seconds) = waits {
        return vec![Finding::declared(
            &findings::EVIDENCE_BUDGET_SPENT,
            format!("none for {seconds:.1} s, while an account is suspect"),
        )];
    }
    let value = |name| inputs.metrics.value(name, &[]);
    let Some(budget) = value(catalog::EVIDENCE_BUDGET.name).filter(|budget| *budget > 0.0) else {
        return Vec::new();
    };
    // The first policy was accepted when the agent was loaded; after a reload its age is not known.
    let generation = value(catalog::POLICY_GENERATION.name);
    let since = value(catalog::POLICY_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS.name);
    let (Some(1.0), Some(since)) = (generation, since) else {
        return Vec::new();
    };
    let age = inputs.now_seconds - since;
    let spent: f64 = inputs
        .metrics
        .by_label(catalog::EVIDENCE_SECONDS.name, "kind")
        .map(|(_, seconds)| seconds)
        .sum();
    let share = spent / age;
    if age < YOUNGEST_SECONDS || share < SPENT * budget {
        return Vec::new();
    }
    vec![Finding::declared(
        &findings::EVIDENCE_BUDGET_SPENT,
        format!(
            "{spent:.1} s of collections in {age:.0} s, {:.2} % of the time; budget {:.2} %",
            100.0 * share,
            100.0 * budget
        ),
    )]
}

/// Undeployed services whose class loader still lives.
pub(super) fn retired(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.retired_loaders > 0)
        .map(|account| {
            Finding::of_account(
                &findings::RETIRED_LOADER,
                &account.name,
                format!(
                    "heapwarden_account_retired_loaders = {}",
                    account.retired_loaders
                ),
            )
        })
        .collect()
}

/// Threads of undeployed services that still run.
pub(super) fn threads_left(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.threads_left_behind > 0)
        .map(|account| {
            let named = |thread: &LeftThread<'_>| match &thread.runs {
                Some(runs) => format!("\"{}\" in {runs}", thread.name),
                None => format!("\"{}\"", thread.name),
            };
            let threads: Vec<String> = (account.left_threads.iter())
                .take(MAX_NAMED_THREADS)
                .map(named)
                .collect();
            Finding::of_account(
                &findings::THREADS_LEFT,
                &account.name,
                format!(
                    "heapwarden_account_threads_left_behind = {}: {}",
                    account.threads_left_behind,
                    threads.join(", ")
                ),
            )
        })
        .collect()
}

/// Bytes of undeployed services whose class loader is gone: nothing of theirs leaks, somebody keeps objects
/// that they made.
pub(super) fn left_behind(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.left_behind_bytes >= LEFT_BEHIND_BYTES)
        .map(|account| {
            Finding::of_account(
                &findings::LEFT_BEHIND,
                &account.name,
                format!(
                    "heapwarden_account_left_behind_bytes = {} ({})",
                    account.left_behind_bytes,
                    size::shown(account.left_behind_bytes as f64)
                ),
            )
        })
        .collect()
}

/// Accounts without series of their own.
pub(super) fn folded(inputs: &Inputs) -> Vec<Finding> {
    let folded = inputs.metrics.value(catalog::ACCOUNTS_FOLDED.name, &[]);
    let folded = folded.filter(|count| *count > 0.0).into_iter();
    folded
        .map(|count| {
            Finding::new(
                &findings::ACCOUNTS_FOLDED,
                "the metrics sum the smallest accounts in _other",
                format!("heapwarden_accounts_folded = {count}"),
                "/api/v1/accounts and heapwarden top list them; to put several services into one account, give the account a name in the policy",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
