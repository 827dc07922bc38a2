//! Checks where accounts stand against their limits: who is over, slowed, turned away or refused, and what keeps
//! refusals away. One finding an account, however many reasons there are.

use policy_report::findings::Declared;

use super::super::finding::{Finding, Severity, findings};
use super::super::inputs::Inputs;
use super::reasons::{meaning, remedy};
use crate::process::printable;
use heapwarden_client::live::{Account, Accounts, Door, NOTICEABLE_MS, State, wait_reason};
use heapwarden_terminal::size;
use heapwarden_terminal::table::amount;

/// So many reasons of deferred refusals are named.
const SHOWN_REASONS: usize = 3;

/// Waits below this are not told, in milliseconds.
const SHORTEST_WAIT_MS: u64 = 100;

/// So many accounts are named where the heap is short.
const SHOWN_HOLDERS: usize = 3;

/// The finding about an account, before the figures and what befell its threads are added.
struct Told {
    severity: Severity,
    declared: &'static Declared,
    /// The text that follows `account NAME`.
    sentence: String,
    remedy: String,
}

/// Returns a finding for each account that its limit affects, or did.
pub(super) fn against_limits(inputs: &Inputs) -> Vec<Finding> {
    let Some(all) = &inputs.accounts else {
        return Vec::new();
    };
    let told = |account| Some(finding(account, all, told(account, all)?));
    all.accounts.iter().filter_map(told).collect()
}

/// Whether a finding of [`against_limits`] says that the policy only observes.
pub(super) fn tells_that_it_observes(inputs: &Inputs) -> bool {
    let all = inputs.accounts.as_ref();
    all.is_some_and(|all| {
        let mut accounts = all.accounts.iter();
        !enforces(all) && accounts.any(|account| account.state == State::Over)
    })
}

/// Whether a finding of [`against_limits`] says that the evidence budget is used up.
pub(super) fn tells_that_the_budget_is_used_up(inputs: &Inputs) -> bool {
    let all = inputs.accounts.as_ref();
    all.is_some_and(|all| {
        let mut accounts = all.accounts.iter();
        all.evidence.budget_used_up_seconds.is_some()
            && accounts.any(|one| one.state == State::Suspect && waits_noticeably(one))
    })
}

/// The heap is short of memory: accounts wait, and those furthest beyond their limits are refused first.
pub(super) fn heap_is_short(inputs: &Inputs) -> Vec<Finding> {
    let all = inputs.accounts.iter().filter(|all| all.enforcement.duress);
    all.map(|all| {
        let (used, max) = (all.heap.used_after_gc_bytes, all.heap.max_bytes);
        let percent = 100.0 * used as f64 / max.max(1) as f64;
        let mut holders: Vec<&Account> = all.accounts.iter().collect();
        holders.sort_by_key(|account| std::cmp::Reverse(account.live_bytes));
        let holders: Vec<String> = (holders.iter().take(SHOWN_HOLDERS))
            .map(|account| format!("{} {}", account.name, live(account)))
            .collect();
        Finding::declared(
            &findings::HEAP_IS_SHORT,
            format!(
                "{} of {} in use after the latest collection ({percent:.0} %); the most: {}",
                size::shown(used as f64),
                size::shown(max as f64),
                holders.join(", ")
            ),
        )
    })
    .collect()
}

fn enforces(all: &Accounts) -> bool {
    all.policy.mode == "enforce"
}

fn waits_noticeably(account: &Account) -> bool {
    account.wait_milliseconds_total >= NOTICEABLE_MS
}

/// The worst of what there is to say.
fn told(account: &Account, all: &Accounts) -> Option<Told> {
    let is_over = account.state == State::Over;
    if let Some(found) = &account.ineffective {
        return Some(ineffective(account, found));
    }
    if is_over && !enforces(all) {
        return Some(only_observed());
    }
    if is_over && account.refusals_total == 0 && !is_turned_away(account) {
        return Some(never_refused(account));
    }
    if is_over || account.door == Door::Shut {
        return Some(held(account));
    }
    if account.state == State::Suspect {
        return Some(suspect(account));
    }
    // From here on it is open.
    if account.threads_killed_total > 0 {
        return Some(Told {
            severity: Severity::Warning,
            declared: &findings::THREADS_KILLED,
            sentence: " was refused earlier".to_owned(),
            remedy: String::new(),
        });
    }
    if was_refused(account) {
        return Some(refused_before(account));
    }
    waits_noticeably(account).then(|| Told {
        severity: Severity::Note,
        declared: &findings::WAITED_BEFORE,
        sentence: " was made to wait earlier, until a collection showed that it is below its limit".to_owned(),
        remedy: "nothing, if that was once; else raise its limit, or [enforcement] evidence-budget so that verdicts \
                 come sooner"
            .to_owned(),
    })
}

fn finding(account: &Account, all: &Accounts, told: Told) -> Finding {
    let mut sentence = format!("account {}{}", account.name, told.sentence);
    let mut remedies = vec![told.remedy];
    remedies.retain(|remedy| !remedy.is_empty());
    let mut severity = told.severity;
    // Their work may have stopped for good, whatever the account's state is now.
    if account.threads_killed_total > 0 {
        let threads = match account.threads_killed_total {
            1 => "a thread".to_owned(),
            count => format!("{count} threads"),
        };
        sentence.push_str(&format!(
            "; {threads} ended with an uncaught refusal, and what they did may not be done any more"
        ));
        remedies.push(
            "spare such threads by never-interrupt in the account's section of the policy; the agent's log names each \
             and the line"
                .to_owned(),
        );
        severity = severity.min(Severity::Warning);
    }
    Finding::as_grave_as(
        severity,
        told.declared,
        sentence,
        figures(account, all),
        remedies.join("; "),
    )
}

fn only_observed() -> Told {
    Told {
        severity: Severity::Warning,
        declared: &findings::OVER_LIMIT,
        sentence: " is over its limit; the policy only observes, so nothing is refused".to_owned(),
        remedy: "see what it holds (heapwarden top), and raise its limit if that is right; mode = \"enforce\" would \
                 refuse it"
            .to_owned(),
    }
}

/// Whether its door is shut, and that no error was thrown is right: it is within its reserve, or none was
/// due.
fn is_turned_away(account: &Account) -> bool {
    let most =
        (account.limit_bytes.unwrap_or(0)).saturating_add(account.reserve_bytes.unwrap_or(0));
    let is_within_reserve = account.whole().live_bytes <= most;
    account.door == Door::Shut && (is_within_reserve || by_count(account).is_empty())
}

/// It is over its limit, and its limit holds it: by its door, by errors, by waits.
fn held(account: &Account) -> Told {
    let is_refused = account.refusals_total > 0;
    let mut sentence = match account.state {
        State::Over => " is over its limit",
        _ => " is held by its limit",
    }
    .to_owned();
    sentence.push_str(match (account.door == Door::Shut, is_refused) {
        (true, true) => ": new work is turned away, and what is inside is refused",
        (true, false) => ": new work is turned away",
        (false, _) => " and is refused",
    });
    sentence.push_str(slowed(account));
    let routes = match account.routes.is_empty() {
        true => "",
        false => ", and which requests fill it (heapwarden status --routes)",
    };
    Told {
        severity: Severity::Warning,
        declared: &findings::OVER_LIMIT,
        sentence,
        remedy: format!(
            "see what it holds (heapwarden top){routes}; if it needs that, raise its limit in the policy: it takes \
             effect at once"
        ),
    }
}

/// That its threads have waited before they went on, or were refused, at any time since the start: to be added to what
/// else befalls it.
fn slowed(account: &Account) -> &'static str {
    match waits_noticeably(account) {
        true => "; its threads have been slowed",
        false => "",
    }
}

/// If refusals were due and none was thrown, it goes on growing: the worst that can be found.
fn never_refused(account: &Account) -> Told {
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
    Told {
        severity,
        declared: &findings::NEVER_REFUSED,
        sentence: format!(
            " is over its limit and was never refused{why}{}",
            slowed(account)
        ),
        remedy: remedy.to_owned(),
    }
}

/// It is above its limit if all that it is charged is held. A warning once its threads and requests were made to
/// wait noticeably since the start: it has been slowed.
fn suspect(account: &Account) -> Told {
    let (severity, sentence) = match waits_noticeably(account) {
        false => (
            Severity::Note,
            " is suspect: its charge is above its limit, and a collection must show how much of that is garbage",
        ),
        true => (
            Severity::Warning,
            " has been slowed: its charge is above its limit, and while the heap is short its threads wait until a \
             collection shows how much of that is garbage",
        ),
    };
    Told {
        severity,
        declared: &findings::SUSPECT,
        sentence: sentence.to_owned(),
        remedy: "nothing, if it is over or open within seconds. If it stays suspect: raise [enforcement] \
                 evidence-budget if it is used up; see the runbook, HeapwardenVerdictOverdue"
            .to_owned(),
    }
}

/// It was refused, or should have been, and is open now.
fn refused_before(account: &Account) -> Told {
    let advice = by_count(account)
        .into_iter()
        .find(|(reason, _)| *reason != "grace")
        .map_or("nothing, if it needed no more than that", |(reason, _)| {
            remedy(reason)
        });
    Told {
        severity: Severity::Note,
        declared: &findings::REFUSED_BEFORE,
        sentence: " was refused earlier, or would have been; it is not over its limit now"
            .to_owned(),
        remedy: advice.to_owned(),
    }
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

/// It stays over its limit because its refusals are put off again and again.
fn ineffective(account: &Account, found: &policy_report::Ineffective<'_>) -> Told {
    let at = (found.frame.as_ref()).map_or_else(String::new, |frame| format!(" in {frame}"));
    let remedy = match &*found.reason {
        "no-unit" => {
            "name where its work begins by door = [\"a.b.C#m\"] or work = [\"…\"] in its section of the policy \
             (docs/enforcement.md), or bound its memory by settings of its own"
        }
        "no-door" => {
            "if the account goes on growing, add the method with which that work begins to its door = [\"a.b.C#m\"] \
             (docs/doors.md); what lets memory go needs no door"
        }
        "policy" => "narrow never-interrupt in its section of the policy",
        _ => "bound its memory by settings of its own, or move it to a JVM of its own",
    };
    Told {
        severity: Severity::Error,
        declared: &findings::INEFFECTIVE,
        sentence: format!(
            " stays over its limit, and refusals do not stop it: they are put off, mostly for the reason {}{at}{}",
            found.reason,
            slowed(account)
        ),
        remedy: remedy.to_owned(),
    }
}

/// `live 320 ± 4 MiB, 213 % of the limit 150 MiB; 7 errors thrown (42 put off: jdk 40, grace 2); turned away 90
/// times at its door; its threads and requests waited 2.3 s (…); POST /cart holds the most: 210 ± 3 MiB, 12 KiB kept a call`
fn figures(account: &Account, all: &Accounts) -> String {
    let mut parts = vec![against_limit(account)];
    let put_off = put_off_in_brackets(account);
    if account.refusals_total > 0 || !put_off.is_empty() || account.ineffective.is_some() {
        parts.push(format!("{} errors thrown{put_off}", account.refusals_total));
    }
    if account.would_refuse_total > 0
        || (all.policy.mode == "observe" && account.state == State::Over)
    {
        parts.push(format!(
            "{} refusals would have been thrown",
            account.would_refuse_total
        ));
    }
    if account.admission_refusals_total > 0 {
        parts.push(format!(
            "turned away {} times at its door",
            account.admission_refusals_total
        ));
    }
    if account.wait_milliseconds_total >= SHORTEST_WAIT_MS {
        let waited = account.wait_milliseconds_total as f64 / 1e3;
        let reason = wait_reason(account, &all.evidence);
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        parts.push(format!(
            "its threads and requests waited {waited:.1} s{reason}"
        ));
    }
    if account.threads_killed_total > 0 {
        parts.push(format!("{} threads ended", account.threads_killed_total));
    }
    if account.state == State::Over
        && let Some(most) = (account.routes.iter()).max_by_key(|route| route.live_bytes)
        && most.live_bytes > 0
    {
        parts.push(format!(
            "{} holds the most: {}, {} kept a call",
            most.route,
            amount::estimate(most.live_bytes, most.standard_error_bytes),
            size::shown(most.kept_bytes_per_call as f64)
        ));
    }
    parts.join("; ")
}

/// Of a suspect account what it is charged, because that is above its limit; else what is live.
fn against_limit(account: &Account) -> String {
    let whole = account.whole();
    let (what, bytes, shown) = match account.state {
        State::Suspect => (
            "charged",
            whole.charged_bytes,
            amount::estimate(whole.charged_bytes, whole.standard_error_bytes),
        ),
        _ => ("live", whole.live_bytes, live(account)),
    };
    match account.limit_bytes {
        Some(limit) => {
            let percent = 100.0 * bytes as f64 / limit.max(1) as f64;
            let limit = size::shown(limit as f64);
            format!("{what} {shown}, {percent:.0} % of the limit {limit}")
        }
        None => format!("{what} {shown}"),
    }
}

/// `320 ± 4 MiB`, with the scopes inside it.
fn live(account: &Account) -> String {
    let whole = account.whole();
    amount::estimate(whole.live_bytes, whole.live_error_bytes())
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

/// ` (38645 put off: logging 38000, jdk 600, …)`; empty if none was.
fn put_off_in_brackets(account: &Account) -> String {
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
    format!(" ({sum} put off: {})", parts.join(", "))
}

#[cfg(test)]
mod tests;
