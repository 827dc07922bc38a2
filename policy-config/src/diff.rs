//! The differences between two policies, for the log of a reload.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use crate::exact::Exact;
use crate::glob::Glob;
use crate::interrupt::{Interrupts, Listed};
use crate::leak::AcknowledgedLeak;
use crate::schema::{
    Account, AgentSection, Charge, Enforcement, LeakPaths, LeakSettings, Limit, Matcher, Mode,
    Policy, Privacy, Sampling, When,
};
use crate::snapshots::{Snapshots, every_text};
use crate::thin::Thin;

/// Most lines a diff has; one more says how many are left out.
const MAX_LINES: usize = 100;

impl Policy {
    /// Returns the changes from `old` to `new`, one printable line each, such as
    /// `account shop: limit 256MiB -> 512MiB (raised)`; empty if nothing changed. At most 100 lines, and one that
    /// counts the rest.
    ///
    /// Accounts are recognised by name, those without one by what they match; one whose
    /// name is gone and one whose name is new that match the same are one account renamed.
    pub fn diff(old: &Policy, new: &Policy) -> Vec<String> {
        // Each part is destructured in full: a key that is added without a line here is a compile error, not
        // an edit that takes effect without a line in the log and a new generation.
        let Policy {
            agent,
            sampling,
            enforcement,
            snapshots,
            exact,
            leak_settings,
            privacy,
            accounts,
            leaks,
        } = new;
        let mut lines = Vec::new();
        diff_agent(&mut lines, &old.agent, agent);
        diff_sampling(&mut lines, &old.sampling, sampling);
        diff_exact(&mut lines, &old.exact, exact);
        diff_snapshots(&mut lines, old.snapshots.as_ref(), snapshots.as_ref());
        diff_enforcement(&mut lines, &old.enforcement, enforcement);
        diff_accounts(&mut lines, &old.accounts, accounts);
        diff_leak_settings(&mut lines, &old.leak_settings, leak_settings);
        let Privacy { values } = privacy;
        change(&mut lines, "privacy values", &old.privacy.values, values);
        diff_leaks(&mut lines, &old.leaks, leaks);
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

fn diff_agent(lines: &mut Vec<String>, old: &AgentSection, new: &AgentSection) {
    let AgentSection {
        listen,
        listen_strict,
    } = new;
    let from = lines.len();
    change(lines, "listen", &old.listen, listen);
    change(lines, "listen-strict", &old.listen_strict, listen_strict);
    at_the_next_start(&mut lines[from..]);
}

fn diff_sampling(lines: &mut Vec<String>, old: &Sampling, new: &Sampling) {
    let Sampling {
        interval,
        interval_is_default,
        principals,
        max_tracked,
        cpu_budget_percent,
        thin,
    } = new;
    if old.interval == *interval && old.interval_is_default != *interval_is_default {
        lines.push(match interval_is_default {
            true => format!("sampling interval {interval}, finer for small limits"),
            false => format!("sampling interval {interval}, no finer for small limits"),
        });
    }
    change(lines, "sampling interval", &old.interval, interval);
    change(lines, "sampling principals", &old.principals, principals);
    let from = lines.len();
    change(lines, "sampling max-tracked", &old.max_tracked, max_tracked);
    at_the_next_start(&mut lines[from..]);
    let budget = |percent: Option<f64>| match percent {
        Some(percent) => format!("{percent}%"),
        None => "none".to_owned(),
    };
    change(
        lines,
        "sampling cpu-budget",
        &budget(old.cpu_budget_percent),
        &budget(*cpu_budget_percent),
    );
    diff_thin(lines, &old.thin, thin);
}

fn diff_exact(lines: &mut Vec<String>, old: &Exact, new: &Exact) {
    let Exact {
        accounts,
        contexts,
        bytecodes,
    } = new;
    change(lines, "exact accounts", &old.accounts, accounts);
    change_list(lines, "exact contexts", &old.contexts, contexts);
    change(lines, "exact bytecodes", &old.bytecodes, bytecodes);
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
    let Snapshots {
        directory,
        every,
        keep,
        at_exit,
    } = after;
    let directories = [&before.directory, directory].map(|path| path.display().to_string());
    change(
        lines,
        "snapshots directory",
        &directories[0],
        &directories[1],
    );
    let times = [before.every, *every].map(every_text);
    change(lines, "snapshots every", &times[0], &times[1]);
    change(lines, "snapshots keep", &before.keep, keep);
    change(lines, "snapshots at-exit", &before.at_exit, at_exit);
}

/// Explains the mode: an operator who stops enforcement looks for this line.
fn diff_enforcement(lines: &mut Vec<String>, old: &Enforcement, new: &Enforcement) {
    let Enforcement {
        mode,
        evidence_budget_percent,
        mask,
        when,
        reserve,
    } = new;
    if old.mode != *mode {
        let effect = match mode {
            Mode::Observe => "from now on nothing is refused",
            Mode::Enforce => "from now on accounts over their limits are refused",
        };
        lines.push(format!(
            "enforcement mode {} -> {mode} ({effect})",
            old.mode
        ));
    }
    if old.when != *when {
        let effect = match when {
            When::Always => "from now on limits hold at any time",
            When::HeapIsShort => "from now on limits hold only while the heap is short",
        };
        lines.push(format!(
            "enforcement when {} -> {when} ({effect})",
            old.when
        ));
    }
    let budgets = [old.evidence_budget_percent, *evidence_budget_percent];
    let [from, to] = budgets.map(|percent| format!("{percent}%"));
    change(lines, "enforcement evidence-budget", &from, &to);
    change(lines, "enforcement mask", &old.mask, mask);
    change(lines, "enforcement reserve", &old.reserve, reserve);
}

fn diff_leak_settings(lines: &mut Vec<String>, old: &LeakSettings, new: &LeakSettings) {
    let LeakSettings {
        sites,
        paths,
        paths_per_day,
    } = new;
    diff_sites(lines, &old.sites, sites);
    // How often counts only where they are found at all.
    let text = |paths: LeakPaths, per_day: u32| match paths {
        LeakPaths::Off => paths.to_string(),
        LeakPaths::Forked => format!("{paths}, {per_day} a day"),
    };
    change(
        lines,
        "leaks paths",
        &text(old.paths, old.paths_per_day),
        &text(*paths, *paths_per_day),
    );
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

/// The mark by which an account is recognised: its label, whether that is a name, and its number among those that have
/// the same (a file may repeat a glob, with a warning).
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

/// Returns, in brackets, the matcher of a new account (if it has a name as well), whether callers pay, and its limits;
/// empty if there is nothing to say.
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
    if account.direct_limit != Limit::None {
        terms.push(format!("direct-limit {}", account.direct_limit));
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

/// A change of what may be cut at some length: then both texts can be the same.
fn change_cut<T: PartialEq + ToString>(
    changes: &mut Vec<String>,
    key: &str,
    old: &T,
    new: &T,
    shown: impl FnOnce(String, String) -> String,
) {
    if old != new {
        let (before, after) = (old.to_string(), new.to_string());
        changes.push(match before == after {
            true => format!("{key} changed"),
            false => shown(before, after),
        });
    }
}

fn change_list<T: PartialEq + Display>(changes: &mut Vec<String>, key: &str, old: &[T], new: &[T]) {
    change_cut(changes, key, &Listed(old), &Listed(new), |before, after| {
        format!("{key} {before} -> {after}")
    });
}

fn diff_account(lines: &mut Vec<String>, old: &Account, new: &Account) {
    let Account {
        // An account is recognised by it: another name is another account, or a renaming.
        name: _,
        matcher,
        charge,
        soft_limit,
        limit,
        direct_limit,
        throw,
        door,
        refuse_with,
        status,
        priority,
        tasks,
        admit,
        interrupts: Interrupts {
            through,
            never,
            work,
        },
    } = new;
    let mut changes = Vec::new();
    change_cut(
        &mut changes,
        "packages",
        &old.matcher,
        matcher,
        |before, after| format!("{before} -> {after}"),
    );
    change(&mut changes, "charge", &old.charge, charge);
    change_limit(&mut changes, "soft-limit", old.soft_limit, *soft_limit);
    change_limit(&mut changes, "limit", old.limit, *limit);
    let direct = (old.direct_limit, *direct_limit);
    change_limit(&mut changes, "direct-limit", direct.0, direct.1);
    change(&mut changes, "throw", &old.throw, throw);
    change_cut(&mut changes, "door", &old.door, door, |before, after| {
        format!("door {before} -> {after}")
    });
    let [from, to] = [old.refuse_with, *refuse_with].map(|throw| match throw {
        Some(throw) => throw.as_str(),
        None => "as throw",
    });
    change(&mut changes, "refuse-with", &from, &to);
    change(&mut changes, "status", &old.status, status);
    change(&mut changes, "priority", &old.priority, priority);
    change(&mut changes, "tasks", &old.tasks, tasks);
    change_list(&mut changes, "admit", &old.admit, admit);
    let before = &old.interrupts;
    change_list(&mut changes, "interrupt-through", &before.through, through);
    change_list(&mut changes, "never-interrupt", &before.never, never);
    change_list(&mut changes, "work", &before.work, work);
    let label = new.label();
    lines.extend(
        changes
            .into_iter()
            .map(|change| format!("account {label}: {change}")),
    );
}
