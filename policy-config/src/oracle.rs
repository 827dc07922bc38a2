//! Properties that hold for every file: checked by the fuzz target and by the tests that replay its
//! corpus. The product does not call it.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::{
    Account, Admit, Charge, DEFAULT_DOOR_STATUS, Diagnostic, Door, DoorMethod, Glob, Interval,
    Limit, MAX_ACCOUNTS, MAX_CPU_BUDGET_PERCENT, MAX_DIAGNOSTICS, MAX_DOOR_METHODS,
    MAX_EVIDENCE_BUDGET_PERCENT, MAX_FILE_BYTES, MAX_INTERVAL_BYTES, MAX_LEAKS, MAX_NAME_BYTES,
    MAX_PRIORITY, MAX_RESERVE_PERCENT, MAX_SITES, MAX_TRACKED, MIN_CPU_BUDGET_PERCENT,
    MIN_EVIDENCE_BUDGET_PERCENT, MIN_INTERVAL_BYTES, MIN_RESERVE_PERCENT, MIN_TRACKED, Matcher,
    Policy, Reserve, parse_bytes,
};

/// Reads `bytes` as a policy file and checks everything that callers rely on.
///
/// # Panics
/// If a property does not hold, which is a bug of this crate.
pub fn check(bytes: &[u8]) {
    let (source, parsed) = parse_bytes(bytes);
    let rejected = parsed.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        parsed.policy.is_none(),
        rejected,
        "a policy exactly without errors"
    );
    assert!(parsed.diagnostics.len() <= MAX_DIAGNOSTICS + 1);
    assert!(
        parsed
            .diagnostics
            .is_sorted_by_key(|one| (one.span.start, one.span.end)),
        "in file order"
    );
    for diagnostic in &parsed.diagnostics {
        check_diagnostic(diagnostic, &source);
    }
    assert_eq!(parse_bytes(bytes).1, parsed, "the same again");
    if let Some(policy) = &parsed.policy {
        assert!(bytes.len() <= MAX_FILE_BYTES);
        check_policy(policy);
    }
}

fn check_diagnostic(diagnostic: &Diagnostic, source: &str) {
    // Slicing panics outside the text and within a character.
    let _ = &source[diagnostic.span.clone()];
    if let Some(label) = &diagnostic.related {
        let _ = &source[label.span.clone()];
    }
    let position = diagnostic.position(source);
    assert!(position.line >= 1 && position.line <= source.matches('\n').count() + 1);
    assert!(position.column >= 1);
    assert!(!diagnostic.message.is_empty());
    let line = diagnostic.render("policy.toml", source);
    assert!(!line.contains(char::is_control), "one line: {line:?}");
    assert!(line.len() < 5000, "a line of bounded length");
}

fn check_policy(policy: &Policy) {
    assert!(policy.accounts.len() <= MAX_ACCOUNTS);
    assert!((MIN_TRACKED..=MAX_TRACKED).contains(&policy.sampling.max_tracked));
    assert!((policy.sampling.cpu_budget_percent).is_none_or(|percent| {
        (MIN_CPU_BUDGET_PERCENT..=MAX_CPU_BUDGET_PERCENT).contains(&percent)
    }));
    if let Interval::Bytes(bytes) = policy.sampling.interval {
        assert!((MIN_INTERVAL_BYTES..=MAX_INTERVAL_BYTES).contains(&bytes));
    }
    assert!(
        (MIN_EVIDENCE_BUDGET_PERCENT..=MAX_EVIDENCE_BUDGET_PERCENT)
            .contains(&policy.enforcement.evidence_budget_percent)
    );
    if let Reserve::Share(share) = policy.enforcement.reserve {
        assert!((MIN_RESERVE_PERCENT..=MAX_RESERVE_PERCENT).contains(&(share * 100.0)));
    }
    assert_eq!(
        policy.agent.listen.to_string().parse(),
        Ok(policy.agent.listen.clone())
    );
    let mut names = HashSet::new();
    let table = policy.package_table();
    for (index, account) in policy.accounts.iter().enumerate() {
        if let Some(name) = &account.name {
            assert!(names.insert(name), "names are unique");
            assert!(!name.is_empty() && name.len() <= MAX_NAME_BYTES);
            assert!(!name.starts_with('_') && !name.contains(char::is_control));
        }
        match &account.matcher {
            Matcher::Packages(patterns) => {
                assert!(account.name.is_some() && !patterns.is_empty());
                for pattern in patterns {
                    let prefix = pattern.prefix();
                    assert!(pattern.matches(prefix));
                    let owner = table.lookup(prefix).expect("some pattern matches");
                    assert!(
                        owner == index || pattern.includes_below(),
                        "an exact pattern owns its package"
                    );
                    assert_eq!(table.lookup(&prefix.replace('.', "/")), Some(owner));
                }
            }
            Matcher::Service(glob) | Matcher::Scope(glob) => {
                assert_eq!(account.charge, Charge::SelfPays);
                let name = glob.as_str().replace(['*', '?'], "x");
                assert!(glob.matches(&name));
            }
        }
        check_limits(account.soft_limit, account.limit);
        check_limits(Limit::None, account.direct_limit);
        check_door(account);
    }
    assert!(policy.leak_settings.sites.len() <= MAX_SITES);
    let sites: HashSet<_> = policy.leak_settings.sites.iter().collect();
    assert_eq!(
        sites.len(),
        policy.leak_settings.sites.len(),
        "globs are unique"
    );
    assert!(policy.leaks.len() <= MAX_LEAKS);
    let mut leaks = HashSet::new();
    for leak in &policy.leaks {
        assert!(leaks.insert(leak), "entries are unique");
        let name = |glob: &Glob| glob.as_str().replace(['*', '?'], "x");
        assert!(leak.matches(&name(&leak.account), &name(&leak.class)));
    }
    assert!(Policy::diff(policy, policy).is_empty());
    for line in Policy::diff(&Policy::default(), policy) {
        assert!(!line.contains(char::is_control), "one line: {line:?}");
    }
}

fn check_door(account: &Account) {
    if !matches!(account.matcher, Matcher::Service(_)) {
        assert_ne!(account.door, Door::Off);
        assert!(account.admit.is_empty() && account.status == DEFAULT_DOOR_STATUS);
    }
    assert!([DEFAULT_DOOR_STATUS, 429].contains(&account.status));
    assert!(account.priority > 0.0 && account.priority <= MAX_PRIORITY);
    if let Door::Methods(methods) = &account.door {
        assert!((1..=MAX_DOOR_METHODS).contains(&methods.len()));
        let unique: HashSet<_> = methods.iter().collect();
        assert_eq!(unique.len(), methods.len(), "methods are unique");
        for method in methods {
            assert_eq!(DoorMethod::new(&method.to_string()).as_ref(), Ok(method));
        }
    } else {
        assert_eq!(account.refuse_with, None);
    }
    let mut seen = HashSet::new();
    for admit in &account.admit {
        assert!(seen.insert(admit), "entries are unique");
        let text = admit.to_string();
        assert_eq!(Admit::new(&text).as_ref(), Ok(admit));
        let (method, path) = text.split_once(' ').expect("both parts");
        assert!(admit.matches(&method.replace('*', "get"), &path.replace(['*', '?'], "x")));
    }
}

fn check_limits(soft: Limit, hard: Limit) {
    const MAX_HEAP_BYTES: u64 = 1 << 40;
    for limit in [soft, hard] {
        match (limit, limit.resolve(MAX_HEAP_BYTES)) {
            (Limit::None, bytes) => assert_eq!(bytes, None),
            (Limit::Bytes(given), bytes) => assert!(given > 0 && bytes == Some(given)),
            (Limit::PercentOfMaxHeap(_), bytes) => {
                assert!(bytes.is_some_and(|bytes| (1..=MAX_HEAP_BYTES).contains(&bytes)));
            }
        }
    }
    assert_ne!(hard.is_below(soft), Some(true));
}
