//! `cargo xtask dashboards`: writes the Grafana dashboards into `deploy/grafana`, where users take
//! them from. They are described here, a few lines a panel, because nobody can review the JSON that
//! Grafana wants. `tests/tests/dashboards.rs` checks the written files and knows nothing of this.

mod board;
mod expression;
mod fleet;
mod jvm;
mod panel;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use heapwarden_harness::repository;
use serde_json::Value;

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
