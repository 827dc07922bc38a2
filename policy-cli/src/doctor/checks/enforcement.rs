//! Checks whether limits can be enforced, and are.

use policy_report::metric_names;

use super::super::finding::{Finding, Severity};
use super::super::inputs::Inputs;
use crate::process::Collector;
use crate::size;

/// The evidence budget counts as spent from this share of it on.
const SPENT: f64 = 0.9;
/// The budget of a younger agent is not checked, in seconds: at first, one collection is a large share.
const YOUNGEST_SECONDS: f64 = 60.0;
/// Less than this, left by undeployed versions, is not worth a line.
const LEFT_BEHIND_BYTES: u64 = 1 << 20;

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
        Severity::Error,
        "nothing-provable",
        "the JVM never unloads classes; with this collector the agent then cannot prove what is held, and refuses \
         nothing (Shenandoah without generations is not affected)",
        format!("-Xnoclassgc or -XX:-ClassUnloading, collector {collector}"),
        "start the JVM without that flag, or with G1 or ZGC",
    )]
}

/// The collections that the agent asks for have used up their budget.
pub(super) fn budget_spent(inputs: &Inputs) -> Vec<Finding> {
    let value = |name| inputs.metrics.value(name);
    let Some(budget) = value(metric_names::EVIDENCE_BUDGET).filter(|budget| *budget > 0.0) else {
        return Vec::new();
    };
    // The first policy was accepted when the agent was loaded; after a reload its age is not known.
    let generation = value(metric_names::POLICY_GENERATION);
    let since = value(metric_names::POLICY_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS);
    let (Some(1.0), Some(since)) = (generation, since) else {
        return Vec::new();
    };
    let age = inputs.now_seconds - since;
    let spent: f64 = inputs
        .metrics
        .by_label(metric_names::EVIDENCE_SECONDS, "kind")
        .map(|(_, seconds)| seconds)
        .sum();
    let share = spent / age;
    if age < YOUNGEST_SECONDS || share < SPENT * budget {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Warning,
        "evidence-budget-spent",
        "the collections that the agent asks for have used up their budget, so accounts over their limit are found late",
        format!(
            "{spent:.1} s of collections in {age:.0} s, {:.2} % of the time; budget {:.2} %",
            100.0 * share,
            100.0 * budget
        ),
        "raise [enforcement] evidence-budget, or the limit of the account that is near it all the time",
    )]
}

/// Undeployed services whose class loader still lives.
pub(super) fn retired(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.retired_loaders > 0)
        .map(|account| {
            Finding::new(
                Severity::Warning,
                "retired-loader",
                format!("the class loader of an undeployed version of {} still lives", account.name),
                format!("heapwarden_account_retired_loaders = {}", account.retired_loaders),
                "run a collection (jcmd PID GC.run); if this stays, the class loader leaks: a thread, a thread local, \
                 a driver or a listener keeps it alive",
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
            Finding::new(
                Severity::Note,
                "left-behind",
                format!(
                    "{} holds memory that was left by an undeployed version; its class loader is gone",
                    account.name
                ),
                format!(
                    "heapwarden_account_left_behind_bytes = {} ({})",
                    account.left_behind_bytes,
                    size::shown(account.left_behind_bytes as f64)
                ),
                "other code keeps objects that this version made, such as a shared cache or session store; they go \
                 when it drops them, and count for the account until then",
            )
        })
        .collect()
}

/// Accounts without series of their own.
pub(super) fn folded(inputs: &Inputs) -> Vec<Finding> {
    let folded = inputs.metrics.value(metric_names::ACCOUNTS_FOLDED);
    let folded = folded.filter(|count| *count > 0.0).into_iter();
    folded
        .map(|count| {
            Finding::new(
                Severity::Note,
                "accounts-folded",
                "the metrics sum the smallest accounts in _other",
                format!("heapwarden_accounts_folded = {count}"),
                "/api/v1/accounts and heapwarden top list them; to put several services into one account, give the account a name in the policy",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
