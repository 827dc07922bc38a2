//! Checks where accounts stand against their limits: who is over, whether that is refused, and what keeps
//! refusals away. One finding an account, however many reasons there are.

use super::super::finding::{Finding, Severity};
use super::super::inputs::Inputs;
use super::reasons::{meaning, remedy};
use crate::live::{Account, Door, Evidence, NOTICEABLE_MS, State, wait_reason};
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
        .map(|account| {
            let waited = waited(account, &accounts.evidence);
            match (enforces, account.refusals_total) {
                (false, _) => only_observed(account),
                (true, 0) if is_turned_away(account) => turned_away(account, &waited),
                (true, 0) => never_refused(account, &waited),
                (true, _) => refused(account, &waited),
            }
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

/// Whether its door is shut, and that no error was thrown is right: it is within its reserve, or none was
/// due.
fn is_turned_away(account: &Account) -> bool {
    let most =
        (account.limit_bytes.unwrap_or(0)).saturating_add(account.reserve_bytes.unwrap_or(0));
    let is_within_reserve = account.whole().live_bytes <= most;
    account.door == Door::Shut && (is_within_reserve || by_count(account).is_empty())
}

fn turned_away(account: &Account, waited: &str) -> Finding {
    Finding::new(
        Severity::Warning,
        "over-limit",
        format!(
            "account {} is over its limit; new requests are answered 503",
            account.name
        ),
        format!(
            "{}{}{}",
            against_limit(account),
            answered_503(account),
            waited
        ),
        REFUSED_REMEDY,
    )
}

/// `, 12 requests answered 503`; empty if none was.
fn answered_503(account: &Account) -> String {
    match account.admission_refusals_total {
        0 => String::new(),
        requests => format!(", {requests} requests answered 503"),
    }
}

/// `, its threads and requests waited 12.3 s (evidence about it is awaited)`; empty if they waited less than a
/// tenth of a second.
fn waited(account: &Account, evidence: &Evidence) -> String {
    let ms @ 100.. = account.wait_milliseconds_total else {
        return String::new();
    };
    let reason = wait_reason(account, evidence);
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!(
        ", its threads and requests waited {:.1} s{reason}",
        ms as f64 / 1e3
    )
}

/// What to do about an account that its limit holds.
const REFUSED_REMEDY: &str = "see what it holds (heapwarden top); if it needs that, raise its limit in the policy: it takes effect at once";

fn refused(account: &Account, waited: &str) -> Finding {
    Finding::new(
        Severity::Warning,
        "over-limit",
        format!("account {} is over its limit and is refused", account.name),
        format!(
            "{}, {} refusals thrown{}{}{}",
            against_limit(account),
            account.refusals_total,
            deferred_in_brackets(account),
            answered_503(account),
            waited
        ),
        REFUSED_REMEDY,
    )
}

/// If refusals were due and none was thrown, it goes on growing: the worst that can be found.
fn never_refused(account: &Account, waited: &str) -> Finding {
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
            "{}{}{}{}",
            against_limit(account),
            deferred_in_brackets(account),
            answered_503(account),
            waited
        ),
        remedy,
    )
}

/// Accounts that are above their limits if all that is charged is held.
///
/// A warning once its threads and requests were made to wait noticeably: it is throttled.
pub(super) fn suspect(inputs: &Inputs) -> Vec<Finding> {
    let Some(all) = &inputs.accounts else {
        return Vec::new();
    };
    let suspects = (all.accounts.iter()).filter(|account| account.state == State::Suspect);
    suspects
        .map(|account| {
            let charged = account
                .tree
                .map_or(account.charged_bytes, |tree| tree.charged_bytes);
            let severity = match account.wait_milliseconds_total {
                ..NOTICEABLE_MS => Severity::Note,
                _ => Severity::Warning,
            };
            Finding::new(
                severity,
                "suspect",
                format!(
                    "account {} is suspect: its charge is above its limit, and a collection must show how much of \
                     that is garbage",
                    account.name
                ),
                format!("{}{}", share("charged", charged, account), waited(account, &all.evidence)),
                "nothing, if it is over or open within seconds; meanwhile its threads may be made to wait. If it stays \
                 suspect: raise [enforcement] evidence-budget if it is used up; see the runbook, HeapwardenVerdictOverdue",
            )
        })
        .collect()
}

/// Accounts that were refused, or should have been, and are open now.
pub(super) fn refused_before(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    let told = accounts.filter(|account| account.state == State::Open && was_refused(account));
    told.map(|account| {
        // It is open: for what it waited is not known any more.
        let waited = waited(account, &Evidence::default());
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
                "{} refusals thrown{}{}{waited}",
                account.refusals_total,
                deferred_in_brackets(account),
                answered_503(account)
            ),
            advice,
        )
    })
    .collect()
}

/// Whether it was refused, turned away at its door, or should have been refused.
fn was_refused(account: &Account) -> bool {
    // The grace after a refusal is part of it.
    let deferred = || {
        by_count(account)
            .iter()
            .any(|(reason, _)| *reason != "grace")
    };
    account.refusals_total > 0 || account.admission_refusals_total > 0 || deferred()
}

/// Accounts that were made to wait for a verdict, and acquitted.
pub(super) fn waited_before(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    let throttled = accounts.filter(|account| {
        let waited = account.wait_milliseconds_total >= NOTICEABLE_MS;
        account.state == State::Open && waited && !was_refused(account)
    });
    throttled
        .map(|account| {
            Finding::new(
                Severity::Note,
                "waited-before",
                format!(
                    "account {} was made to wait earlier, until a collection showed that it is below its limit",
                    account.name
                ),
                format!(
                    "its threads and requests waited {:.1} s in all",
                    account.wait_milliseconds_total as f64 / 1e3
                ),
                "nothing, if that was once; else raise its limit, or [enforcement] evidence-budget so that verdicts come sooner",
            )
        })
        .collect()
}

/// Accounts that stay over their limits because their refusals are put off again and again.
pub(super) fn ineffective(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter_map(|account| Some((account, account.ineffective.as_ref()?)))
        .map(|(account, found)| {
            let at = (found.frame.as_ref()).map_or_else(String::new, |frame| format!(" in {frame}"));
            let remedy = match &*found.reason {
                "no-unit" => {
                    "name a unit of work by work = [\"…\"] in its section of the policy (docs/enforcement.md), or bound its memory by settings of its own"
                }
                "policy" => "narrow never-interrupt in its section of the policy",
                _ => "bound its memory by settings of its own, or move it to a JVM of its own",
            };
            Finding::new(
                Severity::Error,
                "ineffective",
                format!(
                    "account {} stays over its limit, and refusals do not stop it: they are put off, mostly for the reason {}{at}",
                    account.name, found.reason
                ),
                format!(
                    "{}; {} refusals thrown, {} put off",
                    against_limit(account),
                    account.refusals_total,
                    account.deferred_total
                ),
                remedy,
            )
        })
        .collect()
}

/// Accounts of which a refusal ended threads: their work may have stopped for good, whatever the account's
/// state is now.
pub(super) fn threads_killed(inputs: &Inputs) -> Vec<Finding> {
    let accounts = inputs.accounts.iter().flat_map(|all| &all.accounts);
    let killed = accounts.filter(|account| account.threads_killed_total > 0);
    killed
        .map(|account| {
            let threads = match account.threads_killed_total {
                1 => "a thread".to_owned(),
                count => format!("{count} threads"),
            };
            Finding::new(
                Severity::Warning,
                "threads-killed",
                format!(
                    "account {}: {threads} ended with an uncaught refusal; what they did may not be done any more",
                    account.name
                ),
                format!(
                    "{} threads ended, {} refusals thrown",
                    account.threads_killed_total, account.refusals_total
                ),
                "spare such threads by never-interrupt in the account's section of the policy; the agent's log names each and the line",
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
mod tests;
