//! Checks where accounts stand against their limits: who is over, whether that is refused, and what keeps
//! refusals away. One finding an account, however many reasons there are.

use super::super::finding::{Finding, Severity};
use super::super::inputs::Inputs;
use super::reasons::{meaning, remedy};
use crate::live::{Account, State};
use crate::process::printable;
use crate::size;

/// So many reasons of deferred refusals are named.
const SHOWN_REASONS: usize = 3;

/// Accounts that are over their limits.
pub(super) fn over(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    let enforces = accounts.policy.mode == "enforce";
    let over = accounts.accounts.iter();
    over.filter(|account| account.state == State::Over)
        .map(|account| match (enforces, account.refusals_total) {
            (false, _) => only_observed(account),
            (true, 0) => never_refused(account),
            (true, _) => refused(account),
        })
        .collect()
}

fn only_observed(account: &Account) -> Finding {
    Finding::new(
        Severity::Warning,
        "over-limit",
        format!(
            "account {} is over its limit; the policy only observes, so nothing is refused",
            account.name
        ),
        format!(
            "{}, {} refusals would have been thrown",
            against_limit(account),
            account.would_refuse_total
        ),
        "see what it holds (heapwarden top), and raise its limit if that is right; mode = \"enforce\" would refuse it",
    )
}

fn refused(account: &Account) -> Finding {
    Finding::new(
        Severity::Warning,
        "over-limit",
        format!("account {} is over its limit and is refused", account.name),
        format!(
            "{}, {} refusals thrown{}",
            against_limit(account),
            account.refusals_total,
            deferred_in_brackets(account)
        ),
        "see what it holds (heapwarden top); if it needs that, raise its limit in the policy: it takes effect at once",
    )
}

/// If refusals were due and none was thrown, it goes on growing: the worst that can be found.
fn never_refused(account: &Account) -> Finding {
    let most = by_count(account).into_iter().next();
    let (severity, why, remedy) = match most {
        Some((reason, _)) => (
            Severity::Error,
            format!(", mostly because {}", meaning(reason)),
            remedy(reason),
        ),
        None => (
            Severity::Warning,
            ": none was due yet".to_owned(),
            "look again in some seconds; if this stays, its threads allocate nothing that is sampled",
        ),
    };
    Finding::new(
        severity,
        "never-refused",
        format!(
            "account {} is over its limit and was never refused{why}",
            account.name
        ),
        format!(
            "{}{}",
            against_limit(account),
            deferred_in_brackets(account)
        ),
        remedy,
    )
}

/// Accounts that are above their limits if all that is charged is held.
pub(super) fn suspect(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    let suspects = accounts.filter(|account| account.state == State::Suspect);
    suspects
        .map(|account| {
            let charged = account
                .tree
                .map_or(account.charged_bytes, |tree| tree.charged_bytes);
            Finding::new(
                Severity::Note,
                "suspect",
                format!(
                    "account {} is suspect: its charge is above its limit, and a collection must show how much of \
                     that is garbage",
                    account.name
                ),
                share("charged", charged, account),
                "nothing, if it is over or open within seconds; meanwhile its threads may be made to wait. If it stays \
                 suspect: runbook, HeapwardenVerdictOverdue",
            )
        })
        .collect()
}

/// Accounts that were refused, or should have been, and are open now.
pub(super) fn refused_before(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    // The grace after a refusal is part of it.
    let deferred = |account: &Account| {
        by_count(account)
            .iter()
            .any(|(reason, _)| *reason != "grace")
    };
    let told = accounts.filter(|account| {
        account.state == State::Open && (account.refusals_total > 0 || deferred(account))
    });
    told.map(|account| {
        let advice = by_count(account)
            .into_iter()
            .find(|(reason, _)| *reason != "grace")
            .map_or("nothing, if it needed no more than that", |(reason, _)| {
                remedy(reason)
            });
        Finding::new(
            Severity::Note,
            "refused-before",
            format!(
                "account {} was refused earlier, or would have been; it is not over its limit now",
                account.name
            ),
            format!(
                "{} refusals thrown{}",
                account.refusals_total,
                deferred_in_brackets(account)
            ),
            advice,
        )
    })
    .collect()
}

/// `live 319.5 MiB, 213 % of the limit 150 MiB`
fn against_limit(account: &Account) -> String {
    let live = account
        .tree
        .map_or(account.live_bytes, |tree| tree.live_bytes);
    share("live", live, account)
}

fn share(what: &str, bytes: u64, account: &Account) -> String {
    let shown = size::shown(bytes as f64);
    match account.limit_bytes {
        Some(limit) => {
            let percent = 100.0 * bytes as f64 / limit.max(1) as f64;
            let limit = size::shown(limit as f64);
            format!("{what} {shown}, {percent:.0} % of the limit {limit}")
        }
        None => format!("{what} {shown}"),
    }
}

/// Why its refusals were deferred, the most frequent reason first.
fn by_count(account: &Account) -> Vec<(&str, u64)> {
    let all = account.deferred_by_reason.0.iter();
    let mut counts: Vec<(&str, u64)> = all
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.as_ref(), *count))
        .collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// ` (38645 deferred: logging 38000, jdk 600, …)`; empty if none was.
fn deferred_in_brackets(account: &Account) -> String {
    let counts = by_count(account);
    if counts.is_empty() {
        return String::new();
    }
    let mut parts: Vec<String> = counts
        .iter()
        .take(SHOWN_REASONS)
        .map(|(reason, count)| format!("{} {count}", printable(reason)))
        .collect();
    if counts.len() > SHOWN_REASONS {
        parts.push("…".to_owned());
    }
    let sum = account.deferred_by_reason.sum();
    format!(" ({sum} deferred: {})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::test_inputs::{account, agent};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shop(state: State, refusals: u64, deferred: &[(&'static str, u64)]) -> Account {
        let mut shop = account("service", "/shop");
        shop.limit_bytes = Some(150 * MIB);
        shop.live_bytes = 319 * MIB + MIB / 2;
        shop.charged_bytes = 330 * MIB;
        shop.state = state;
        shop.refusals_total = refusals;
        shop.deferred_by_reason.0 = deferred
            .iter()
            .map(|&(reason, count)| (reason.into(), count))
            .collect();
        shop
    }

    #[track_caller]
    fn only(mode: &str, account: Account) -> Finding {
        let mut inputs = agent("heapwarden_samples_total 9\n", vec![account]);
        inputs.accounts.as_mut().unwrap().policy.mode = mode.to_owned().into();
        let all = [over, suspect, refused_before].map(|check| check(&inputs));
        let [one] = &all.concat()[..] else {
            panic!("{all:?}");
        };
        one.clone()
    }

    #[test]
    fn an_account_that_is_refused_is_told_with_its_share() {
        let found = only(
            "enforce",
            shop(State::Over, 7, &[("grace", 2), ("jdk", 40)]),
        );
        assert_eq!(
            (found.severity, found.name),
            (Severity::Warning, "over-limit")
        );
        assert_eq!(
            found.evidence,
            "live 320 MiB, 213 % of the limit 150 MiB, 7 refusals thrown (42 deferred: jdk 40, grace 2)"
        );
    }

    #[test]
    fn an_account_that_nothing_stops_is_an_error_with_its_main_reason() {
        let deferred = [("jdk", 3), ("logging", 38_000), ("locks", 2), ("timer", 1)];
        let found = only("enforce", shop(State::Over, 0, &deferred));
        assert_eq!(
            (found.severity, found.name),
            (Severity::Error, "never-refused")
        );
        assert!(
            found.sentence.ends_with("a logger was running"),
            "{found:?}"
        );
        assert!(
            found
                .evidence
                .ends_with("(38006 deferred: logging 38000, jdk 3, locks 2, …)"),
            "{found:?}"
        );
        let idle = only("enforce", shop(State::Over, 0, &[]));
        assert!(idle.sentence.ends_with("none was due yet"), "{idle:?}");
        assert_eq!(idle.severity, Severity::Warning, "nothing was let through");
    }

    #[test]
    fn what_observe_lets_pass_is_a_warning() {
        let mut account = shop(State::Over, 0, &[]);
        account.would_refuse_total = 12;
        let found = only("observe", account);
        assert_eq!(found.severity, Severity::Warning);
        assert!(
            found
                .evidence
                .ends_with("12 refusals would have been thrown")
        );
    }

    #[test]
    fn a_suspect_and_one_that_was_refused_are_notes() {
        let found = only("enforce", shop(State::Suspect, 0, &[]));
        assert_eq!((found.severity, found.name), (Severity::Note, "suspect"));
        assert!(
            found.evidence.starts_with("charged 330 MiB, 220 %"),
            "{found:?}"
        );
        let before = only(
            "enforce",
            shop(State::Open, 0, &[("container", 12), ("grace", 99)]),
        );
        assert_eq!(
            (before.severity, before.name),
            (Severity::Note, "refused-before")
        );
        assert!(before.remedy.contains("interrupt-through"), "{before:?}");
    }

    #[test]
    fn open_accounts_are_not_listed() {
        let inputs = agent(
            "heapwarden_samples_total 9\n",
            vec![shop(State::Open, 0, &[("grace", 3)])],
        );
        for check in [over, suspect, refused_before] {
            assert_eq!(check(&inputs), []);
        }
    }
}
