//! Writes limits into an existing policy, and keeps the rest of its text.

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::demand::{Demand, Finding, Settings};
use super::pool::{Key, Pool};
use super::reasons::{self, size};

/// Begins every comment line of a suggestion, so that the next suggestion replaces it.
const MARK: &str = "# suggested: ";

/// The text with the limits of `pool` in the accounts they belong to.
///
/// # Errors
/// A sentence, if the text is not the policy that `pool` was made for.
pub(super) fn revise(
    text: &str,
    preamble: &[String],
    pool: &Pool,
    settings: &Settings,
) -> Result<String, String> {
    let text = without_marked(text);
    let mut document: DocumentMut = text.parse().map_err(|_| "it is not TOML".to_owned())?;
    for (key, pooled) in &pool.entries {
        let (Key::Rule(rule), Finding::Needs(demand)) = (key, pooled.finding) else {
            continue;
        };
        let mut lines = reasons::of_account(pooled, &demand, settings);
        if let Some(line) = reasons::sparing(pooled) {
            lines.push("To spare its background threads:".to_owned());
            lines.push(line);
        }
        put(&mut document, *rule, &demand, &lines).ok_or("an account is not where it was")?;
    }
    Ok(format!("{}{document}", marked(preamble)))
}

/// `None` if there is no such account.
fn put(document: &mut DocumentMut, rule: usize, demand: &Demand, lines: &[String]) -> Option<()> {
    match document.get_mut("account")? {
        Item::ArrayOfTables(accounts) => {
            let account = accounts.get_mut(rule)?;
            limits(account, demand);
            // Above the first of the two, where it stands or was put.
            let keys = ["soft-limit", "limit"];
            let position = |key: &str| account.iter().position(|(name, _)| name == key);
            let first = keys.into_iter().min_by_key(|key| position(key))?;
            let mut key = account.key_mut(first)?;
            let decor = key.leaf_decor_mut();
            let before = decor.prefix().and_then(|prefix| prefix.as_str());
            let before = before.unwrap_or_default().to_owned();
            // The last line of a prefix is the indentation of the key itself.
            let (above, indent) = before.rsplit_once('\n').map_or(("", before.as_str()), |_| {
                before.split_at(before.rfind('\n').map_or(0, |end| end + 1))
            });
            let comment: String = lines
                .iter()
                .map(|line| format!("{indent}{MARK}{line}\n"))
                .collect();
            decor.set_prefix(format!("{above}{comment}{indent}"));
        }
        // `account = [{ … }]`: an inline table cannot contain comments.
        Item::Value(Value::Array(accounts)) => {
            limits(accounts.get_mut(rule)?.as_inline_table_mut()?, demand);
        }
        _ => return None,
    }
    Some(())
}

fn limits(account: &mut dyn TableLike, demand: &Demand) {
    for (key, bytes) in [
        ("soft-limit", demand.soft_limit_bytes),
        ("limit", demand.limit_bytes),
    ] {
        let mut new = Value::from(size(bytes));
        match account.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                // A comment beside the value is kept.
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            None => {
                account.insert(key, Item::Value(new));
            }
        }
    }
}

/// Without the lines of an earlier suggestion, unless they turn out to be more than comments.
fn without_marked(text: &str) -> String {
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| !line.trim_start().starts_with(MARK))
        .collect();
    if policy_config::parse(&kept).policy == policy_config::parse(text).policy {
        kept
    } else {
        text.to_owned()
    }
}

fn marked(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{MARK}{line}\n")).collect()
}
