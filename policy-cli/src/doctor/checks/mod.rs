//! The checks: each is a pure function of the inputs.

mod enforcement;
mod leaks;
mod loading;
mod policy;
mod reasons;
mod sampling;
mod states;

use super::finding::{Finding, Severity};
use super::inputs::Inputs;

type Check = fn(&Inputs) -> Vec<Finding>;

/// The checks of accounts against their limits: their findings come before others of the same weight.
const OF_ACCOUNTS: [Check; 7] = [
    states::ineffective,
    states::over,
    states::suspect,
    states::threads_killed,
    states::refused_before,
    states::waited_before,
    leaks::suspected,
];

/// The other checks, in the order in which their findings are listed.
const CHECKS: [Check; 30] = [
    loading::no_jvm,
    loading::not_loaded,
    loading::inert,
    loading::unknown_options,
    loading::unread,
    loading::port_taken,
    loading::java_agent_first,
    sampling::never_collects,
    sampling::held_by_another,
    sampling::capability_missing,
    sampling::no_samples,
    sampling::no_collection,
    sampling::repeated_samples,
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
    enforcement::retired,
    enforcement::left_behind,
    enforcement::folded,
];

/// Everything found: the errors and warnings of accounts, the other errors and warnings, and the notes.
pub(super) fn run(inputs: &Inputs) -> Vec<Finding> {
    let of_accounts = OF_ACCOUNTS.iter().flat_map(|check| check(inputs));
    let others = CHECKS.iter().flat_map(|check| check(inputs));
    let mut found: Vec<(bool, Finding)> = (of_accounts.map(|finding| (false, finding)))
        .chain(others.map(|finding| (true, finding)))
        .collect();
    found.sort_by_key(|(is_other, finding)| {
        (
            finding.severity == Severity::Note,
            *is_other,
            finding.severity,
        )
    });
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Inputs for the tests of the checks.
#[cfg(test)]
mod test_inputs {
    use super::super::metrics::Metrics;
    use super::Inputs;
    use crate::live::{Account, Accounts};
    use crate::process::{Arguments, Collector, MappedFiles, ProcessInfo};

    /// Of a JVM with these mapped files and arguments.
    pub(super) fn jvm(files: &[&str], arguments: &[&str]) -> Inputs {
        let maps: String = files
            .iter()
            .map(|file| format!("7f00-7f01 r-xp 00000000 fe:00 1 {file}\n"))
            .collect();
        let command = [&["java"], arguments].concat().join("\0").into_bytes();
        let arguments = Arguments::parse(&command, b"");
        Inputs {
            info: Some(ProcessInfo {
                pid: 7,
                files: MappedFiles::parse(&maps),
                collector: Collector::of(&arguments, []),
                arguments,
                command,
                shares_network: true,
                ..ProcessInfo::default()
            }),
            ..Inputs::default()
        }
    }

    /// Of an agent that publishes this.
    pub(super) fn agent(metrics: &str, accounts: Vec<Account>) -> Inputs {
        let mut answer = Accounts {
            accounts,
            ..Accounts::default()
        };
        answer.heap.max_bytes = 1 << 30;
        answer.sampling.interval_bytes = 64 << 10;
        answer.sampling.samples = 1000;
        Inputs {
            metrics: Metrics::parse(metrics),
            accounts: Some(answer),
            ..Inputs::default()
        }
    }

    /// An account of this kind and name.
    pub(super) fn account(kind: &str, name: &str) -> Account {
        Account {
            name: name.to_owned().into(),
            kind: kind.to_owned().into(),
            allocated_bytes_total: 1 << 20,
            ..Account::default()
        }
    }

    #[test]
    fn what_befalls_an_account_is_told_before_what_else_is_wrong() {
        let mut shop = account("service", "/shop");
        shop.state = crate::live::State::Over;
        shop.limit_bytes = Some(1 << 20);
        let mut cart = account("service", "/cart");
        cart.state = crate::live::State::Open;
        cart.refusals_total = 3;
        let metrics = "heapwarden_samples_total 1000\nheapwarden_policy_last_reload_successful 0\n\
            heapwarden_accounts_folded 2\n";
        let names: Vec<&str> = (super::run(&agent(metrics, vec![cart, shop])).iter())
            .map(|finding| finding.name)
            .collect();
        let told = |name: &str| names.iter().position(|one| *one == name).unwrap();
        assert_eq!(names[0], "over-limit", "{names:?}");
        assert!(
            told("policy-rejected") < told("refused-before"),
            "notes last: {names:?}"
        );
        assert!(
            told("refused-before") < told("accounts-folded"),
            "{names:?}"
        );
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
        assert_eq!(super::run(&agent(metrics, vec![shop])), []);
    }
}
