//! Checks whether the policy in force is the one on disk, and whether its rules match anything.

use policy_config::{
    Account, Charge, FINEST_DEFAULT_INTERVAL_BYTES, MAX_INTERVAL_DOUBLINGS, Matcher, Mode, Policy,
    Principals, Sampling, format_bytes,
};

use policy_report::catalog;

use heapwarden_client::live;
use heapwarden_terminal::deployment;

use super::super::finding::{Finding, findings};
use super::super::inputs::Inputs;

/// Services count as not recognised if no account owns this share of all charges.
const UNOWNED_SHARE: f64 = 0.5;
/// Beside services with limits, this share of the maximum heap has to be nobody's until that is told.
const UNBOUNDED_SHARE: f64 = 0.25;

/// The agent has rejected the file.
pub(super) fn reload_failed(inputs: &Inputs) -> Vec<Finding> {
    if inputs
        .metrics
        .value(catalog::POLICY_LAST_RELOAD_SUCCESSFUL.name, &[])
        != Some(0.0)
    {
        return Vec::new();
    }
    let policy = inputs.accounts.as_ref().map(|accounts| &accounts.policy);
    let why = policy.and_then(|policy| policy.last_error.clone());
    let generation = policy.map_or(0, |policy| policy.generation);
    vec![Finding::new(
        &findings::POLICY_REJECTED,
        findings::POLICY_REJECTED.sentence,
        why.unwrap_or_else(|| "heapwarden_policy_last_reload_successful = 0".into()),
        format!(
            "correct the file (heapwarden check FILE); the agent reads it again when it changes. Generation {generation} is in force"
        ),
    )]
}

/// The file on disk has errors.
pub(super) fn file_rejected(inputs: &Inputs) -> Vec<Finding> {
    let file = inputs.file.iter();
    file.filter_map(|file| file.policy.as_ref().err())
        .map(|why| {
            Finding::new(
                &findings::POLICY_FILE,
                "the policy file on disk has errors",
                why.clone(),
                "correct it: heapwarden check FILE shows every error",
            )
        })
        .collect()
}

/// Whether an interval may be in force under this policy: the written one, or, if the policy has a
/// CPU budget, the written one doubled a few times. If none is written, also a finer one for small limits.
fn may_be_in_force(sampling: &Sampling, in_force_bytes: u64) -> bool {
    let written = sampling.interval.bytes();
    if sampling.cpu_budget_percent.is_none() {
        return written == in_force_bytes;
    }
    let halvings = match sampling.interval_is_default {
        true => (written / FINEST_DEFAULT_INTERVAL_BYTES)
            .checked_ilog2()
            .unwrap_or(0),
        false => 0,
    };
    let finest = written >> halvings;
    (0..=MAX_INTERVAL_DOUBLINGS + halvings).any(|doublings| finest << doublings == in_force_bytes)
}

/// The agent has widened the interval, because samples cost more than their budget or the heap is
/// large: accounts are less precise than the file asks for.
pub(super) fn interval_widened(inputs: &Inputs) -> Vec<Finding> {
    let (Some(policy), Some(accounts)) = (policy_on_disk(inputs), &inputs.accounts) else {
        return Vec::new();
    };
    let written = policy.sampling.interval.bytes();
    let in_force = accounts.sampling.interval_bytes;
    if in_force <= written || !may_be_in_force(&policy.sampling, in_force) {
        return Vec::new();
    }
    let cheaper = if walks_for_principals(policy) {
        "set [sampling] principals = \"payer\" if you do not need the matrix of principals (the agent walks \
         whole stacks for it), or "
    } else {
        ""
    };
    vec![Finding::new(
        &findings::INTERVAL_WIDENED,
        "the agent samples less often than the file says",
        format!(
            "one sample in {} instead of {}: more samples would exceed cpu-budget, or make GC pauses \
             longer",
            format_bytes(in_force),
            format_bytes(written)
        ),
        format!(
            "nothing, if the errors of the accounts are small enough; else {cheaper}raise [sampling] \
             cpu-budget"
        ),
    )]
}

/// Whether the agent walks stacks beyond the paying frame, to find the principal.
fn walks_for_principals(policy: &Policy) -> bool {
    let packages = |rule: &Account| matches!(rule.matcher, Matcher::Packages(_));
    policy.sampling.principals == Principals::Full && policy.accounts.iter().any(packages)
}

/// The file on disk differs from the policy in force.
pub(super) fn file_not_in_force(inputs: &Inputs) -> Vec<Finding> {
    let (Some(policy), Some(accounts)) = (policy_on_disk(inputs), &inputs.accounts) else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    let mode = match policy.enforcement.mode {
        Mode::Observe => "observe",
        Mode::Enforce => "enforce",
    };
    if mode != accounts.policy.mode {
        differences.push(format!(
            "mode is {mode} in the file and {} in force",
            accounts.policy.mode
        ));
    }
    let interval = policy.sampling.interval.bytes();
    if !may_be_in_force(&policy.sampling, accounts.sampling.interval_bytes) {
        differences.push(format!(
            "the interval is {} in the file and {} in force",
            format_bytes(interval),
            format_bytes(accounts.sampling.interval_bytes)
        ));
    }
    for rule in policy
        .accounts
        .iter()
        .filter(|rule| rule.charge == Charge::SelfPays)
    {
        let named = rule.name.as_ref();
        let found = named.and_then(|name| accounts.accounts.iter().find(|one| one.name == *name));
        let Some(found) = found else { continue };
        let limit = rule.limit.resolve(accounts.heap.max_bytes);
        if limit != found.limit_bytes {
            let shown = |limit: Option<u64>| limit.map_or("none".to_owned(), format_bytes);
            differences.push(format!(
                "the limit of {} is {} in the file and {} in force",
                found.name,
                shown(limit),
                shown(found.limit_bytes)
            ));
        }
    }
    if differences.is_empty() {
        return Vec::new();
    }
    let path = inputs
        .file
        .as_ref()
        .map(|file| file.path.display().to_string());
    let path = path.unwrap_or_default();
    vec![Finding::new(
        &findings::POLICY_NOT_IN_FORCE,
        "the policy in force differs from the one on disk",
        differences.join("; "),
        format!(
            "check again in two seconds; if this stays, check that the agent was given {path}, and that the reload did not fail"
        ),
    )]
}

fn policy_on_disk(inputs: &Inputs) -> Option<&Policy> {
    inputs.file.as_ref()?.policy.as_ref().ok()
}

/// Accounts without any charge, and rules that match nothing.
pub(super) fn matches_nothing(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    // Without samples nothing is charged.
    if accounts.sampling.samples == 0 {
        return Vec::new();
    }
    let finding = |sentence: String, evidence: String, remedy: &str| {
        Finding::new(&findings::MATCHES_NOTHING, sentence, evidence, remedy)
    };
    let samples = accounts.sampling.samples;
    let mut found = Vec::new();
    for account in &accounts.accounts {
        let is_empty = account.allocated_bytes_total == 0;
        // The callers of a library pay; the matrix shows what it allocated for them.
        let made_something = account
            .principals
            .iter()
            .any(|principal| principal.live_bytes > 0);
        match account.kind.as_ref() {
            "package" if is_empty => found.push(finding(
                format!("nothing was ever charged to account {}", account.name),
                format!("heapwarden_account_allocated_bytes_total = 0 after {samples} samples"),
                "check that its packages name the code that allocates: a.b is that package only, a.b.* includes all below; \
                 the frame closest to the allocation decides",
            )),
            "library" if is_empty && !made_something => found.push(finding(
                format!("library {} has allocated no live bytes", account.name),
                format!("no row of heapwarden_principal_live_bytes with agent {} after {samples} samples", account.name),
                "check that its packages name the library's code; it may also hold nothing at the moment",
            )),
            _ => {}
        }
    }
    let services: Vec<String> = accounts
        .accounts
        .iter()
        // An account that the policy names is listed before it has a service.
        .filter(|one| {
            one.kind == "service" && (!one.service.is_empty() || one.allocated_bytes_total > 0)
        })
        .flat_map(|one| [one.name.as_ref(), one.service.as_ref()])
        .flat_map(deployment::names)
        .collect();
    for rule in policy_on_disk(inputs)
        .iter()
        .flat_map(|policy| &policy.accounts)
    {
        let Matcher::Service(glob) = &rule.matcher else {
            continue;
        };
        let has_account = rule
            .name
            .as_deref()
            .is_some_and(|name| services.iter().any(|service| service == name));
        if !has_account && !glob.matches_any(services.iter().map(String::as_str)) {
            found.push(finding(
                format!("no service matches {}", rule.matcher),
                format!("services seen: {}", seen(accounts)),
                match ["/", "a"].iter().all(|any| glob.matches_any([*any])) {
                    // It would match any: there is none.
                    true => RECOGNISED,
                    false => {
                        "write the context path (/shop) or the deployment name as it is listed; \
                         a service is listed from its first sample on"
                    }
                },
            ));
        }
    }
    found
}

/// The first few services, for a message.
fn seen(accounts: &heapwarden_client::live::Accounts) -> String {
    const SHOWN: usize = 5;
    let all: Vec<&str> = accounts
        .accounts
        .iter()
        .filter(|one| one.kind == "service")
        .map(|one| one.name.as_ref())
        .collect();
    match all.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", all[..SHOWN].join(", "), count - SHOWN),
        _ => all.join(", "),
    }
}

/// The hosts that the agent knows, and the way out of others.
const RECOGNISED: &str = "the agent recognises the applications of the servers and plugin hosts in the table of \
     docs/install.md, named class loaders, and the program of the class path; for other code, write an [[account]] \
     with packages";

/// Most of the heap is nobody's, and no service was recognised; or limits are in force that leave so much of it
/// unbounded that they protect little. A server's own code is nobody's, and is much of a small heap that is at rest.
pub(super) fn services_not_recognised(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    let has_service = accounts.accounts.iter().any(|one| one.kind == "service");
    let charged: u64 = accounts
        .accounts
        .iter()
        .map(|one| one.charged_bytes)
        .fold(0, u64::saturating_add);
    let unowned = accounts
        .accounts
        .iter()
        .find(|one| one.name == "_unaccounted");
    let unowned = unowned.map_or(0, |one| one.charged_bytes);
    let has_limit = (accounts.accounts.iter())
        .any(|one| one.limit_bytes.is_some() || one.soft_limit_bytes.is_some());
    let is_servers_own = (unowned as f64) < UNBOUNDED_SHARE * accounts.heap.max_bytes as f64;
    if has_service && (!has_limit || is_servers_own)
        || charged == 0
        || (unowned as f64) < UNOWNED_SHARE * charged as f64
    {
        return Vec::new();
    }
    vec![Finding::new(
        &findings::SERVICES_NOT_RECOGNISED,
        match has_service {
            true => "most of the heap belongs to no account, so no limit bounds it",
            false => "no service was recognised: most of the heap belongs to no account",
        },
        format!(
            "_unaccounted {} of {} charged",
            format_bytes(unowned),
            format_bytes(charged)
        ),
        RECOGNISED,
    )]
}

/// Limits above the maximum heap.
pub(super) fn limits_above_heap(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    let max = accounts.heap.max_bytes;
    let limits = || {
        let limited = accounts.accounts.iter();
        limited.filter_map(|account| Some((account, account.limit_bytes?)))
    };
    if max == 0 {
        return Vec::new();
    }
    let mut found: Vec<Finding> = limits()
        .filter(|(_, limit)| *limit >= max)
        .map(|(account, limit)| {
            Finding::of_account(
                &findings::LIMIT_ABOVE_HEAP,
                &account.name,
                format!(
                    "limit {}, maximum heap {}",
                    format_bytes(limit),
                    format_bytes(max)
                ),
            )
        })
        .collect();
    // The limits of scopes are part of the limit of their service.
    let is_inside_a_limit = |account: &live::Account| {
        let parent = account.parent.as_deref();
        limits().any(|(above, _)| Some(above.name.as_ref()) == parent)
    };
    let sum = limits()
        .filter(|(account, _)| !is_inside_a_limit(account))
        .map(|(_, limit)| limit)
        .fold(0, u64::saturating_add);
    if found.is_empty() && sum > max {
        found.push(Finding::declared(
            &findings::LIMITS_OVERCOMMITTED,
            format!(
                "limits {}, maximum heap {}",
                format_bytes(sum),
                format_bytes(max)
            ),
        ));
    }
    found
}

/// The policy only observes limits.
pub(super) fn observes(inputs: &Inputs) -> Vec<Finding> {
    let Some(accounts) = &inputs.accounts else {
        return Vec::new();
    };
    let limited = accounts
        .accounts
        .iter()
        .filter(|one| one.limit_bytes.is_some())
        .count();
    if accounts.policy.mode != "observe" || limited == 0 {
        return Vec::new();
    }
    let would: u64 = accounts
        .accounts
        .iter()
        .map(|one| one.would_refuse_total)
        .fold(0, u64::saturating_add);
    vec![Finding::declared(
        &findings::OBSERVES,
        format!(
            "mode = \"observe\", {limited} accounts with a limit, {would} refusals would have been thrown"
        ),
    )]
}

#[cfg(test)]
mod tests;
