//! The differences between two policies, for the log of a reload.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use crate::glob::Glob;
use crate::interrupt::Listed;
use crate::leak::AcknowledgedLeak;
use crate::schema::{Account, Charge, Enforcement, LeakPaths, Limit, Matcher, Mode, Policy, When};
use crate::snapshots::Snapshots;
use crate::thin::Thin;

/// Most lines a diff has; one more says how many are left out.
const MAX_LINES: usize = 100;

impl Policy {
    /// What changed from `old` to `new`, one printable line each, such as
    /// `account shop: limit 256MiB -> 512MiB (raised)`; empty if nothing did. At most
    /// 100 lines, and one that counts the rest.
    ///
    /// Accounts are recognised by name, those without one by what they match; one whose
    /// name is gone and one whose name is new that match the same are one account renamed.
    pub fn diff(old: &Policy, new: &Policy) -> Vec<String> {
        let mut lines = Vec::new();
        let from = lines.len();
        change(&mut lines, "listen", &old.agent.listen, &new.agent.listen);
        change(
            &mut lines,
            "listen-strict",
            &old.agent.listen_strict,
            &new.agent.listen_strict,
        );
        at_the_next_start(&mut lines[from..]);
        change(
            &mut lines,
            "sampling interval",
            &old.sampling.interval,
            &new.sampling.interval,
        );
        change(
            &mut lines,
            "sampling principals",
            &old.sampling.principals,
            &new.sampling.principals,
        );
        let from = lines.len();
        change(
            &mut lines,
            "sampling max-tracked",
            &old.sampling.max_tracked,
            &new.sampling.max_tracked,
        );
        at_the_next_start(&mut lines[from..]);
        let budget = |policy: &Policy| match policy.sampling.cpu_budget_percent {
            Some(percent) => format!("{percent}%"),
            None => "none".to_owned(),
        };
        change(
            &mut lines,
            "sampling cpu-budget",
            &budget(old),
            &budget(new),
        );
        diff_thin(&mut lines, &old.sampling.thin, &new.sampling.thin);
        change(
            &mut lines,
            "exact accounts",
            &old.exact.accounts,
            &new.exact.accounts,
        );
        change(
            &mut lines,
            "exact contexts",
            &Listed(&old.exact.contexts),
            &Listed(&new.exact.contexts),
        );
        change(
            &mut lines,
            "exact bytecodes",
            &old.exact.bytecodes,
            &new.exact.bytecodes,
        );
        diff_snapshots(&mut lines, old.snapshots.as_ref(), new.snapshots.as_ref());
        diff_enforcement(&mut lines, &old.enforcement, &new.enforcement);
        diff_accounts(&mut lines, &old.accounts, &new.accounts);
        diff_sites(
            &mut lines,
            &old.leak_settings.sites,
            &new.leak_settings.sites,
        );
        let paths = |policy: &Policy| match policy.leak_settings.paths {
            LeakPaths::Off => LeakPaths::Off.as_str().to_owned(),
            on @ LeakPaths::Forked => {
                format!(
                    "{}, {} a day",
                    on.as_str(),
                    policy.leak_settings.paths_per_day
                )
            }
        };
        change(&mut lines, "leaks paths", &paths(old), &paths(new));
        change(
            &mut lines,
            "privacy values",
            &old.privacy.values,
            &new.privacy.values,
        );
        diff_leaks(&mut lines, &old.leaks, &new.leaks);
        let left_out = lines.len().saturating_sub(MAX_LINES);
        if left_out > 0 {
            lines.truncate(MAX_LINES);
            lines.push(format!("{left_out} more changes are not shown"));
        }
        lines
    }
}

fn change<T: PartialEq + ToString>(lines: &mut Vec<String>, what: &str, old: &T, new: &T) {
    if old != new {
        lines.push(format!("{what} {} -> {}", old.to_string(), new.to_string()));
    }
}

/// For settings that are read at start-up only: the reload does not change them.
fn at_the_next_start(lines: &mut [String]) {
    for line in lines {
        line.push_str(" (when the JVM is started again)");
    }
}

fn diff_thin(lines: &mut Vec<String>, old: &[Thin], new: &[Thin]) {
    let share = |rules: &[Thin], class: &Glob| {
        let rule = rules.iter().find(|rule| rule.class == *class);
        rule.map_or_else(
            || "all".to_owned(),
            |rule| format!("{}%", rule.keep_percent),
        )
    };
    let from = lines.len();
    let mut told = HashSet::new();
    for rule in new.iter().chain(old) {
        if told.insert(rule.class.as_str()) {
            let what = format!("samples kept of class \"{}\"", rule.class);
            change(
                lines,
                &what,
                &share(old, &rule.class),
                &share(new, &rule.class),
            );
        }
    }
    if lines.len() == from && old != new {
        lines.push("the order of the [[sampling.thin]] tables changed".into());
    }
}

fn diff_snapshots(lines: &mut Vec<String>, old: Option<&Snapshots>, new: Option<&Snapshots>) {
    let (Some(before), Some(after)) = (old, new) else {
        match (old, new) {
            (None, Some(new)) => lines.push(format!(
                "snapshots added (every {}, in {})",
                new.every_text(),
                new.directory.display()
            )),
            (Some(_), None) => lines.push("snapshots removed".into()),
            _ => {}
        }
        return;
    };
    let directory = |of: &Snapshots| of.directory.display().to_string();
    change(
        lines,
        "snapshots directory",
        &directory(before),
        &directory(after),
    );
    change(
        lines,
        "snapshots every",
        &before.every_text(),
        &after.every_text(),
    );
    change(lines, "snapshots keep", &before.keep, &after.keep);
    change(lines, "snapshots at-exit", &before.at_exit, &after.at_exit);
}

/// Explains the mode: an operator who stops enforcement looks for this line.
fn diff_enforcement(lines: &mut Vec<String>, old: &Enforcement, new: &Enforcement) {
    if old.mode != new.mode {
        let effect = match new.mode {
            Mode::Observe => "from now on nothing is refused",
            Mode::Enforce => "from now on accounts over their limits are refused",
        };
        lines.push(format!(
            "enforcement mode {} -> {} ({effect})",
            old.mode, new.mode
        ));
    }
    if old.when != new.when {
        let effect = match new.when {
            When::Always => "from now on limits hold at any time",
            When::HeapIsShort => "from now on limits hold only while the heap is short",
        };
        lines.push(format!(
            "enforcement when {} -> {} ({effect})",
            old.when, new.when
        ));
    }
    let percent = |enforcement: &Enforcement| format!("{}%", enforcement.evidence_budget_percent);
    change(
        lines,
        "enforcement evidence-budget",
        &percent(old),
        &percent(new),
    );
    change(lines, "enforcement mask", &old.mask, &new.mask);
    change(lines, "enforcement reserve", &old.reserve, &new.reserve);
}

fn diff_accounts(lines: &mut Vec<String>, old: &[Account], new: &[Account]) {
    let mut old_keys = keys(old);
    let new_keys = keys(new);
    for (before, after) in renamed(old, &old_keys, new, &new_keys) {
        lines.push(format!(
            "account {} renamed to {}",
            old[before].label(),
            new[after].label()
        ));
        old_keys[before] = new_keys[after].clone();
    }
    let old_by_key: HashMap<&Key, &Account> = old_keys.iter().zip(old).collect();
    let kept_in_new: HashSet<&Key> = new_keys.iter().collect();
    for (key, account) in old_keys.iter().zip(old) {
        if !kept_in_new.contains(key) {
            lines.push(format!("account {} removed", account.label()));
        }
    }
    for (key, account) in new_keys.iter().zip(new) {
        match old_by_key.get(key) {
            None => lines.push(format!(
                "account {} added{}",
                account.label(),
                terms(account)
            )),
            Some(before) => diff_account(lines, before, account),
        }
    }
    let old_order = old_keys.iter().filter(|key| kept_in_new.contains(key));
    let new_order = new_keys.iter().filter(|key| old_by_key.contains_key(key));
    if old_order.ne(new_order) {
        lines.push("the order of the accounts changed".into());
    }
}

/// Their order does not matter.
fn diff_sites(lines: &mut Vec<String>, old: &[Glob], new: &[Glob]) {
    for glob in old.iter().filter(|glob| !new.contains(glob)) {
        lines.push(format!("sites of {glob}: no stacks from now on"));
    }
    for glob in new.iter().filter(|glob| !old.contains(glob)) {
        lines.push(format!("sites of {glob}: stacks are taken from now on"));
    }
}

/// Their order does not matter.
fn diff_leaks(lines: &mut Vec<String>, old: &[AcknowledgedLeak], new: &[AcknowledgedLeak]) {
    let before: HashSet<&AcknowledgedLeak> = old.iter().collect();
    let after: HashSet<&AcknowledgedLeak> = new.iter().collect();
    for leak in old.iter().filter(|leak| !after.contains(leak)) {
        lines.push(format!("leak {leak}: no longer acknowledged"));
    }
    for leak in new.iter().filter(|leak| !before.contains(leak)) {
        lines.push(format!("leak {leak}: acknowledged"));
    }
}

/// What an account is recognised by: its label, whether that is a name, and how many
/// before it have the same (a file may repeat a glob, with a warning).
type Key = (String, bool, usize);

fn keys(accounts: &[Account]) -> Vec<Key> {
    let mut seen: HashMap<(String, bool), usize> = HashMap::new();
    accounts
        .iter()
        .map(|account| {
            let (label, named) = (account.label(), account.name.is_some());
            let before = seen.entry((label.clone(), named)).or_default();
            *before += 1;
            (label, named, *before)
        })
        .collect()
}

/// The accounts that have a new name: pairs of places in `old` and `new`.
///
/// Only if exactly one removed and one new account match the same: anything else would be a guess.
fn renamed(
    old: &[Account],
    old_keys: &[Key],
    new: &[Account],
    new_keys: &[Key],
) -> Vec<(usize, usize)> {
    let gone = without_counterpart(old, old_keys, new_keys);
    let come = without_counterpart(new, new_keys, old_keys);
    let mut pairs: Vec<(usize, usize)> = gone
        .into_iter()
        .filter_map(|(matcher, before)| Some((before?, (*come.get(matcher)?)?)))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// The named accounts whose name the other policy does not have, by what they match;
/// `None` where several match the same.
fn without_counterpart<'a>(
    accounts: &'a [Account],
    keys: &[Key],
    others: &[Key],
) -> HashMap<&'a Matcher, Option<usize>> {
    let others: HashSet<&Key> = others.iter().collect();
    let mut found = HashMap::new();
    for (index, account) in accounts.iter().enumerate() {
        if account.name.is_some() && !others.contains(&keys[index]) {
            found
                .entry(&account.matcher)
                .and_modify(|place| *place = None)
                .or_insert(Some(index));
        }
    }
    found
}

/// What a new account is about, in brackets.
fn terms(account: &Account) -> String {
    let mut terms = Vec::new();
    if account.name.is_some() {
        terms.push(account.matcher.to_string());
    }
    if account.charge == Charge::Caller {
        terms.push("callers pay".into());
    }
    if account.soft_limit != Limit::None {
        terms.push(format!("soft-limit {}", account.soft_limit));
    }
    if account.limit != Limit::None {
        terms.push(format!("limit {}", account.limit));
    }
    if terms.is_empty() {
        String::new()
    } else {
        format!(" ({})", terms.join(", "))
    }
}

/// A limit's change and which way it went, as far as the policy alone can tell.
fn change_limit(changes: &mut Vec<String>, what: &str, old: Limit, new: Limit) {
    if old == new {
        return;
    }
    let way = match (old, new) {
        (Limit::None, Limit::PercentOfMaxHeap(_)) => "added, of the maximum heap",
        (Limit::Bytes(_), Limit::PercentOfMaxHeap(_)) => "of the maximum heap",
        (Limit::PercentOfMaxHeap(_), Limit::Bytes(_)) => "no longer a share of the heap",
        (Limit::None, _) => "added",
        (_, Limit::None) => "removed",
        _ if new.is_below(old) == Some(true) => "lowered",
        _ => "raised",
    };
    changes.push(format!("{what} {old} -> {new} ({way})"));
}

fn change_list<T: PartialEq + Display>(changes: &mut Vec<String>, key: &str, old: &[T], new: &[T]) {
    if old != new {
        let (before, after) = (Listed(old).to_string(), Listed(new).to_string());
        changes.push(if before == after {
            // Both were cut at the same place.
            format!("{key} changed")
        } else {
            format!("{key} {before} -> {after}")
        });
    }
}

fn diff_account(lines: &mut Vec<String>, old: &Account, new: &Account) {
    let label = new.label();
    let mut changes = Vec::new();
    if old.matcher != new.matcher {
        let (before, after) = (old.matcher.to_string(), new.matcher.to_string());
        changes.push(if before == after {
            // Both were cut at the same place.
            "packages changed".into()
        } else {
            format!("{before} -> {after}")
        });
    }
    change(&mut changes, "charge", &old.charge, &new.charge);
    change_limit(&mut changes, "soft-limit", old.soft_limit, new.soft_limit);
    change_limit(&mut changes, "limit", old.limit, new.limit);
    change(&mut changes, "throw", &old.throw, &new.throw);
    if old.door != new.door {
        let (before, after) = (old.door.to_string(), new.door.to_string());
        changes.push(if before == after {
            // Both were cut at the same place.
            "door changed".into()
        } else {
            format!("door {before} -> {after}")
        });
    }
    let refuse_with = |account: &Account| match account.refuse_with {
        Some(throw) => throw.as_str(),
        None => "as throw",
    };
    change(
        &mut changes,
        "refuse-with",
        &refuse_with(old),
        &refuse_with(new),
    );
    change(&mut changes, "status", &old.status, &new.status);
    change(&mut changes, "priority", &old.priority, &new.priority);
    change(&mut changes, "tasks", &old.tasks, &new.tasks);
    change_list(&mut changes, "admit", &old.admit, &new.admit);
    let (before, after) = (&old.interrupts, &new.interrupts);
    for (key, before, after) in [
        ("interrupt-through", &before.through, &after.through),
        ("never-interrupt", &before.never, &after.never),
    ] {
        change_list(&mut changes, key, before, after);
    }
    change_list(&mut changes, "work", &before.work, &after.work);
    lines.extend(
        changes
            .into_iter()
            .map(|change| format!("account {label}: {change}")),
    );
}
