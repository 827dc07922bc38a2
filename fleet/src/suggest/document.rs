//! Writes a new policy: an account for each service and scope that was recorded.

use policy_config::{Glob, Interval, MAX_INTERVAL_BYTES, MAX_NAME_BYTES, MIN_INTERVAL_BYTES};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::history::History;
use heapwarden_terminal::printable::fitted;

use super::demand::{Finding, Settings};
use super::pool::{Key, Pool};
use super::reasons::{self, size};

/// Widest name in a comment.
const MAX_NAME_COLUMNS: usize = 60;

/// The text of the policy.
///
/// # Errors
/// A sentence, if the document cannot be built.
pub(super) fn build(
    history: &History,
    preamble: &[String],
    pool: &Pool,
    settings: &Settings,
) -> Result<String, String> {
    let mut document = DocumentMut::new();
    let mut head = preamble.to_vec();
    let mut accounts = ArrayOfTables::new();
    for (key, pooled) in &pool.entries {
        let (Key::Recorded(kind, target), Finding::Needs(demand)) = (key, pooled.finding) else {
            continue;
        };
        let name = &pooled.account;
        // A glob has no escape: a tenant called `*` would match everything.
        let literal = Glob::new(target).is_ok_and(|glob| glob.is_literal());
        let shown = fitted(name, MAX_NAME_COLUMNS);
        if !literal {
            head.push(format!(
                "No limit for {shown}: no glob matches only this name; it needs {} and {}.",
                size(demand.soft_limit_bytes),
                size(demand.limit_bytes),
            ));
            continue;
        }
        let mut account = Table::new();
        // An account that a rule named keeps that name; the agent itself appends ` (service)`, and
        // puts the service around a scope before its name.
        let within = *kind == "scope" && name.ends_with(&format!("/{target}"));
        let given = name != target && !within && *name != format!("{target} (service)");
        if given && is_name(name) && !accounts_named(&accounts, name) {
            account.insert("name", value(name.as_str()));
        }
        account.insert(kind, value(target.as_str()));
        account.insert("soft-limit", value(size(demand.soft_limit_bytes)));
        account.insert("limit", value(size(demand.limit_bytes)));
        let mut lines = vec![format!("{shown}:")];
        lines.extend(reasons::of_account(pooled, &demand, settings));
        account
            .decor_mut()
            .set_prefix(format!("\n{}", comment(&lines)));
        if let Some(line) = reasons::sparing(pooled)
            && let Some(mut key) = account.key_mut("limit")
        {
            let lines = ["to spare its background threads:".to_owned(), line];
            key.leaf_decor_mut().set_prefix(comment(&lines));
        }
        accounts.push(account);
    }
    if let Some(interval) = interval(history) {
        let mut sampling = Table::new();
        sampling.insert("interval", value(interval));
        sampling.decor_mut().set_prefix("\n");
        document.insert("sampling", Item::Table(sampling));
    }
    let mut mode = value("observe");
    if let Some(mode) = mode.as_value_mut() {
        mode.decor_mut()
            .set_suffix("   # counts what would be refused; \"enforce\" refuses");
    }
    let mut enforcement = Table::new();
    enforcement.insert("mode", mode);
    enforcement.decor_mut().set_prefix("\n");
    document.insert("enforcement", Item::Table(enforcement));
    if !accounts.is_empty() {
        document.insert("account", Item::ArrayOfTables(accounts));
    }
    Ok(format!("{}{document}", comment(&head)))
}

/// Whether the policy file accepts it as a name.
fn is_name(name: &str) -> bool {
    // Control and invisible characters are what a glob rejects as well.
    !name.starts_with('_')
        && name.len() <= MAX_NAME_BYTES
        && name.trim() == name
        && Glob::new(name).is_ok()
}

fn accounts_named(accounts: &ArrayOfTables, name: &str) -> bool {
    accounts
        .iter()
        .any(|account| account.get("name").and_then(Item::as_str) == Some(name))
}

/// The sampling interval, if it is the same in all JVMs.
fn interval(history: &History) -> Option<String> {
    let mut intervals = (history.jvms.iter()).map(|jvm| jvm.sampling_interval_bytes.last());
    let first = intervals.next().flatten()?;
    if !intervals.all(|other| other == Some(first)) {
        return None;
    }
    let bytes = first as u64;
    let interval = match bytes {
        0 => Interval::Exact,
        MIN_INTERVAL_BYTES..=MAX_INTERVAL_BYTES => Interval::Bytes(bytes),
        _ => return None,
    };
    Some(interval.to_string().replace(' ', ""))
}

/// Lines of a comment, which hold no line ends of their own.
pub(super) fn comment(lines: &[String]) -> String {
    lines.iter().map(|line| format!("# {line}\n")).collect()
}
