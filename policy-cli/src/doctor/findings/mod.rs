//! What there is to find: each a pure function of the picture.

mod enforcement;
mod loading;
mod policy;
mod sampling;

use super::finding::Finding;
use super::picture::Picture;

/// Every examination, in the order in which a reader wants to know.
const EXAMINATIONS: [fn(&Picture) -> Vec<Finding>; 26] = [
    loading::no_jvm,
    loading::not_loaded,
    loading::inert,
    loading::unknown_options,
    loading::unread,
    sampling::held_by_another,
    sampling::capability_missing,
    sampling::no_samples,
    sampling::no_collection,
    sampling::dropped,
    sampling::thinned,
    sampling::refunds_at_major_collections,
    policy::reload_failed,
    policy::file_rejected,
    policy::file_not_in_force,
    policy::interval_widened,
    policy::matches_nothing,
    policy::services_not_recognised,
    policy::limits_above_heap,
    policy::observes,
    sampling::too_coarse,
    enforcement::cannot_be_proved,
    enforcement::budget_spent,
    enforcement::deferred,
    enforcement::retired,
    enforcement::folded,
];

/// Everything found, the worst first.
pub(super) fn all(picture: &Picture) -> Vec<Finding> {
    let mut found: Vec<Finding> = EXAMINATIONS
        .iter()
        .flat_map(|examine| examine(picture))
        .collect();
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Pictures for the tests of the examinations.
#[cfg(test)]
mod pictures {
    use super::super::metrics::Metrics;
    use super::Picture;
    use crate::live::{Account, Accounts};
    use crate::process::{Arguments, Facts, MappedFiles};

    /// Of a JVM with these mapped files and arguments.
    pub(super) fn jvm(files: &[&str], arguments: &[&str]) -> Picture {
        let maps: String = files
            .iter()
            .map(|file| format!("7f00-7f01 r-xp 00000000 fe:00 1 {file}\n"))
            .collect();
        let command = [&["java"], arguments].concat().join("\0").into_bytes();
        Picture {
            facts: Some(Facts {
                pid: 7,
                files: MappedFiles::parse(&maps),
                arguments: Arguments::parse(&command, b""),
                command,
                shares_network: true,
                ..Facts::default()
            }),
            ..Picture::default()
        }
    }

    /// Of an agent that publishes this.
    pub(super) fn agent(metrics: &str, accounts: Vec<Account>) -> Picture {
        let mut answer = Accounts {
            accounts,
            ..Accounts::default()
        };
        answer.heap.max_bytes = 1 << 30;
        answer.sampling.interval_bytes = 64 << 10;
        answer.sampling.samples = 1000;
        Picture {
            metrics: Metrics::parse(metrics),
            accounts: Some(answer),
            ..Picture::default()
        }
    }

    /// An account of this kind and name.
    pub(super) fn account(kind: &str, name: &str) -> Account {
        Account {
            name: name.to_owned(),
            kind: kind.to_owned(),
            allocated_bytes_total: 1 << 20,
            ..Account::default()
        }
    }

    #[test]
    fn a_healthy_agent_has_no_findings() {
        let metrics = "heapwarden_samples_total 1000\nheapwarden_gc_epoch 4\n\
            heapwarden_capability_enabled{capability=\"sampled_object_alloc\"} 1\n\
            heapwarden_samples_dropped_total{reason=\"table_full\"} 0\n\
            heapwarden_policy_last_reload_successful 1\n";
        let mut shop = account("service", "/shop");
        shop.charged_bytes = 1 << 20;
        shop.live_bytes = 1 << 20;
        assert_eq!(super::all(&agent(metrics, vec![shop])), []);
    }
}
