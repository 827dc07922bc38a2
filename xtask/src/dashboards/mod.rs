//! `cargo xtask dashboards`: writes the Grafana dashboards into `deploy/grafana`, where users take
//! them from. They are described here, a few lines a panel, because nobody can review the JSON that
//! Grafana wants. `tests/tests/dashboards.rs` checks the written files and knows nothing of this.

mod board;
mod fleet;
mod jvm;
mod panel;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use heapwarden_harness::repository;
use serde_json::Value;

/// Live bytes as limits are about them: of an account with the scopes beneath it, where it has any.
const WHOLE: &str = "(heapwarden_account_tree_live_bytes{@} or heapwarden_account_live_bytes{@})";

/// Their growth in bytes a second. The first scope of an account begins a line of its own; after
/// the last one has gone, that line is over.
const GROWTH: &str = "(deriv(heapwarden_account_tree_live_bytes{@}[1h]) \
    and heapwarden_account_tree_live_bytes{@} or deriv(heapwarden_account_live_bytes{@}[1h]))";

/// Limits that bind by themselves: those of scopes beneath an account with a limit are within it.
const OUTER_LIMITS: &str = "(heapwarden_account_limit_bytes{@} unless on (job, instance, account) \
    (heapwarden_account_info{@,parent!=\"\"} and on (job, instance, parent) \
    label_join(heapwarden_account_limit_bytes{@}, \"parent\", \"\", \"account\")))";

/// The expression with `@whole`, `@growth` and `@outer_limits` written out over `accounts` and `jvms`.
fn written_out(expression: &str, accounts: &str, jvms: &str) -> String {
    expression
        .replace("@whole", &WHOLE.replace('@', accounts))
        .replace("@growth", &GROWTH.replace('@', accounts))
        .replace("@outer_limits", &OUTER_LIMITS.replace('@', jvms))
}

/// Writes them anew.
pub(crate) fn run() -> Result<()> {
    for dashboard in [jvm::dashboard(), fleet::dashboard()] {
        let path = path(&dashboard);
        let text = serde_json::to_string_pretty(&dashboard)? + "\n";
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("written: {}", path.display());
    }
    Ok(())
}

/// A dashboard's file is called as its uid is.
fn path(dashboard: &Value) -> PathBuf {
    let uid = dashboard["uid"].as_str().unwrap_or_default();
    repository::root()
        .join("deploy/grafana")
        .join(format!("{uid}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_files_are_what_is_described_here() {
        for dashboard in [jvm::dashboard(), fleet::dashboard()] {
            let path = path(&dashboard);
            let text = fs::read_to_string(&path).expect("it is committed");
            let committed: Value = serde_json::from_str(&text).expect("JSON");
            assert!(
                committed == dashboard,
                "{} is not what `cargo xtask dashboards` writes",
                path.display()
            );
        }
    }
}
