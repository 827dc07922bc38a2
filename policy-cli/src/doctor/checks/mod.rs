//! The checks: each is a pure function of the inputs.

mod enforcement;
mod leaks;
mod loading;
mod policy;
mod reasons;
mod sampling;
mod states;
mod sum;

use super::finding::{Finding, Severity, findings};
use super::inputs::Inputs;

type Check = fn(&Inputs) -> Vec<Finding>;

/// The checks whose findings come first, in this order, whatever their weight: that no figure below is to be believed;
/// the effect of a limit on an account, one finding each; that the heap is short; that something leaks.
const FIRST: [Check; 4] = [
    sum::exceeds_the_heap,
    states::against_limits,
    states::heap_is_short,
    leaks::suspected,
];

/// The other checks, in the order in which their findings are listed.
const CHECKS: [Check; 34] = [
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
    enforcement::over_soft_limit,
    enforcement::over_direct_limit,
    enforcement::cannot_be_proved,
    enforcement::no_door,
    enforcement::budget_spent,
    enforcement::retired,
    enforcement::threads_left,
    enforcement::left_behind,
    enforcement::folded,
];

/// Everything found: the errors and warnings of [`FIRST`], the other errors and warnings, and the notes.
pub(super) fn run(inputs: &Inputs) -> Vec<Finding> {
    let first = FIRST.iter().enumerate();
    let others = CHECKS.iter().map(|check| (FIRST.len(), check));
    let mut found: Vec<(usize, Finding)> = (first.chain(others))
        .flat_map(|(rank, check)| {
            let found = check(inputs).into_iter();
            found.map(move |finding| (rank, finding))
        })
        .filter(|(_, finding)| !is_told_already(finding, inputs))
        .collect();
    found.sort_by_key(|(rank, finding)| {
        (finding.severity == Severity::Note, *rank, finding.severity)
    });
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether the finding of an account says so.
fn is_told_already(finding: &Finding, inputs: &Inputs) -> bool {
    let name = finding.name;
    (name == findings::OBSERVES.name && states::tells_that_it_observes(inputs))
        || (name == findings::EVIDENCE_BUDGET_SPENT.name
            && states::tells_that_the_budget_is_used_up(inputs))
}

/// Inputs for the tests of the checks.
#[cfg(test)]
mod test_inputs {
    use super::Inputs;
    use crate::doctor::inputs::PolicyFile;
    use crate::process::{Arguments, Collector, MappedFiles, ProcessInfo};
    use heapwarden_client::live::{Account, Accounts};
    use policy_report::Metrics;

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

    /// These inputs with this text as the policy file.
    pub(super) fn with_file(mut inputs: Inputs, text: &str) -> Inputs {
        let parsed = policy_config::parse(text);
        inputs.file = Some(PolicyFile {
            path: "/etc/heapwarden.toml".into(),
            policy: parsed.policy.ok_or_else(|| "line 1: bad".to_owned()),
        });
        inputs
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
        shop.state = heapwarden_client::live::State::Over;
        shop.limit_bytes = Some(1 << 20);
        let mut cart = account("service", "/cart");
        cart.state = heapwarden_client::live::State::Open;
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
    fn what_the_first_finding_says_is_not_said_again() {
        let mut shop = account("service", "/shop");
        shop.limit_bytes = Some(1 << 20);
        let names = |account: &heapwarden_client::live::Account, budget_used_up_seconds| {
            let metrics = "heapwarden_samples_total 1000\nheapwarden_evidence_budget_ratio 0.05\n\
                heapwarden_policy_generation 1\nheapwarden_evidence_seconds_total{kind=\"full\"} 50\n\
                heapwarden_policy_last_reload_success_timestamp_seconds 1000\n";
            let mut inputs = agent(metrics, vec![account.clone()]);
            inputs.now_seconds = 1100.0;
            let all = inputs.accounts.as_mut().unwrap();
            all.policy.mode = "observe".into();
            all.evidence.budget_used_up_seconds = budget_used_up_seconds;
            all.enforcement.duress = budget_used_up_seconds.is_some();
            let found = super::run(&inputs);
            found.iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert!(names(&shop, None).contains(&"observes"));
        shop.state = heapwarden_client::live::State::Over;
        let told = names(&shop, None);
        assert_eq!(told[0], "over-limit", "{told:?}");
        assert!(!told.contains(&"observes"), "{told:?}");
        assert!(told.contains(&"evidence-budget-spent"), "{told:?}");
        shop.state = heapwarden_client::live::State::Suspect;
        shop.wait_milliseconds_total = 9_000;
        let told = names(&shop, Some(5.0));
        assert_eq!(told[..2], ["suspect", "heap-is-short"], "{told:?}");
        assert!(!told.contains(&"evidence-budget-spent"), "{told:?}");
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
