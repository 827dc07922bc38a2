//! Whether the policy in force is the one that is meant, and means what it should.

use policy_config::{
    Account, Charge, MAX_INTERVAL_DOUBLINGS, Matcher, Mode, Policy, Principals, Sampling,
    format_bytes,
};

use crate::deployment;
use crate::live;

use super::super::finding::{Finding, Severity};
use super::super::picture::Picture;

/// Share of all charges that nobody owns from which services are taken for not recognised.
const MOSTLY: f64 = 0.5;

/// The agent has rejected the file.
pub(super) fn reload_failed(picture: &Picture) -> Vec<Finding> {
    if picture
        .metrics
        .value("heapwarden_policy_last_reload_successful")
        != Some(0.0)
    {
        return Vec::new();
    }
    let policy = picture.accounts.as_ref().map(|accounts| &accounts.policy);
    let why = policy.and_then(|policy| policy.last_error.clone());
    let generation = policy.map_or(0, |policy| policy.generation);
    vec![Finding::new(
        Severity::Error,
        "policy-rejected",
        "the agent has rejected the policy file; the last good one stays in force (none: it observes)",
        why.unwrap_or_else(|| "heapwarden_policy_last_reload_successful = 0".to_owned()),
        format!(
            "mend the file (heapwarden check FILE); it is read again by itself. In force is generation {generation}"
        ),
    )]
}

/// The file on disk is bad now.
pub(super) fn file_rejected(picture: &Picture) -> Vec<Finding> {
    let file = picture.file.iter();
    file.filter_map(|file| file.policy.as_ref().err())
        .map(|why| {
            Finding::new(
                Severity::Error,
                "policy-file",
                "the policy file on disk would be rejected",
                why.clone(),
                "mend it: heapwarden check FILE shows every mistake",
            )
        })
        .collect()
}

/// Whether an interval may be in force under this policy: the one that it writes, or where it
/// has a budget that doubled a few times.
fn may_be_widened_to(sampling: &Sampling, in_force_bytes: u64) -> bool {
    let written = sampling.interval.bytes();
    let most = if sampling.cpu_budget_percent.is_some() {
        MAX_INTERVAL_DOUBLINGS
    } else {
        0
    };
    (0..=most).any(|doublings| written << doublings == in_force_bytes)
}

/// Samples cost more than their budget, or the heap is large: what is published is vaguer than
/// the file asks for.
pub(super) fn interval_widened(picture: &Picture) -> Vec<Finding> {
    let (Some(policy), Some(accounts)) = (policy_on_disk(picture), &picture.accounts) else {
        return Vec::new();
    };
    let written = policy.sampling.interval.bytes();
    let in_force = accounts.sampling.interval_bytes;
    if in_force == written || !may_be_widened_to(&policy.sampling, in_force) {
        return Vec::new();
    }
    let cheaper = if walks_for_principals(policy) {
        "write [sampling] principals = \"payer\" if the matrix of principals is not needed (whole stacks are \
         walked for it), or "
    } else {
        ""
    };
    vec![Finding::new(
        Severity::Note,
        "interval-widened",
        "accounts are sampled less often than the file says",
        format!(
            "one sample in {} and not in {}: finer ones cost more than cpu-budget allows, or there \
             would be so many that pauses grew",
            format_bytes(in_force),
            format_bytes(written)
        ),
        format!(
            "nothing, where the errors of the accounts are small enough; else {cheaper}raise [sampling] \
             cpu-budget"
        ),
    )]
}

/// Whether stacks may be walked beyond the frame that pays, for the principal alone.
fn walks_for_principals(policy: &Policy) -> bool {
    let packages = |rule: &Account| matches!(rule.matcher, Matcher::Packages(_));
    policy.sampling.principals == Principals::Full && policy.accounts.iter().any(packages)
}

/// The file says something else than what is in force.
pub(super) fn file_not_in_force(picture: &Picture) -> Vec<Finding> {
    let (Some(policy), Some(accounts)) = (policy_on_disk(picture), &picture.accounts) else {
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
    if !may_be_widened_to(&policy.sampling, accounts.sampling.interval_bytes) {
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
    let path = picture
        .file
        .as_ref()
        .map(|file| file.path.display().to_string());
    let path = path.unwrap_or_default();
    vec![Finding::new(
        Severity::Warning,
        "policy-not-in-force",
        "the policy in force is not the one on disk",
        differences.join("; "),
        format!(
            "look again in two seconds; else is {path} the file that the agent was given, and did the reload fail?"
        ),
    )]
}

fn policy_on_disk(picture: &Picture) -> Option<&Policy> {
    picture.file.as_ref()?.policy.as_ref().ok()
}

/// Accounts to which nothing was ever charged, and rules without an account.
pub(super) fn matches_nothing(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
        return Vec::new();
    };
    // Without samples nobody is charged.
    if accounts.sampling.samples == 0 {
        return Vec::new();
    }
    let finding = |sentence: String, evidence: String, remedy: &str| {
        Finding::new(
            Severity::Warning,
            "matches-nothing",
            sentence,
            evidence,
            remedy,
        )
    };
    let samples = accounts.sampling.samples;
    let mut found = Vec::new();
    for account in &accounts.accounts {
        let is_empty = account.allocated_bytes_total == 0;
        // A library's charges are its callers'; the matrix shows what it made for them.
        let made_something = account
            .principals
            .iter()
            .any(|principal| principal.live_bytes > 0);
        match account.kind.as_str() {
            "package" if is_empty => found.push(finding(
                format!("nothing was ever charged to account {}", account.name),
                format!("heapwarden_account_allocated_bytes_total = 0 after {samples} samples"),
                "do its packages name the code that allocates? a.b is that package alone, a.b.* it and all below; \
                 the frame closest to the allocation decides",
            )),
            "library" if is_empty && !made_something => found.push(finding(
                format!("no live bytes were made by library {}", account.name),
                format!("no row of heapwarden_principal_live_bytes with agent {} after {samples} samples", account.name),
                "do its packages name the library's code? it may also hold nothing for anybody just now",
            )),
            _ => {}
        }
    }
    let services: Vec<String> = accounts
        .accounts
        .iter()
        .filter(|one| one.kind == "service")
        .flat_map(|one| [one.name.as_str(), one.service.as_str()])
        .flat_map(deployment::names)
        .collect();
    for rule in policy_on_disk(picture)
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
                "write the service as it is seen: the context path (/shop) or the deployment name; \
                 a service is seen from its first sample on",
            ));
        }
    }
    found
}

/// The first services, for a sentence.
fn seen(accounts: &crate::live::Accounts) -> String {
    const SHOWN: usize = 5;
    let all: Vec<&str> = accounts
        .accounts
        .iter()
        .filter(|one| one.kind == "service")
        .map(|one| one.name.as_str())
        .collect();
    match all.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", all[..SHOWN].join(", "), count - SHOWN),
        _ => all.join(", "),
    }
}

/// Everything is nobody's.
pub(super) fn services_not_recognised(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
        return Vec::new();
    };
    let has_service = accounts.accounts.iter().any(|one| one.kind == "service");
    let charged: u64 = accounts
        .accounts
        .iter()
        .map(|one| one.charged_bytes)
        .fold(0, u64::saturating_add);
    let nobodys = accounts
        .accounts
        .iter()
        .find(|one| one.name == "_unaccounted");
    let nobodys = nobodys.map_or(0, |one| one.charged_bytes);
    if has_service || charged == 0 || (nobodys as f64) < MOSTLY * charged as f64 {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Warning,
        "services-not-recognised",
        "no service was recognised: most of the heap is nobody's",
        format!(
            "_unaccounted {} of {} charged",
            format_bytes(nobodys),
            format_bytes(charged)
        ),
        "services are Tomcat, Jetty, WildFly and Spring Boot applications, and named class loaders; \
         a plain java program needs [[account]] with packages",
    )]
}

/// Limits that are above what there is.
pub(super) fn limits_above_heap(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
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
            Finding::new(
                Severity::Warning,
                "limit-above-heap",
                format!(
                    "the limit of account {} is never reached: the JVM runs out first",
                    account.name
                ),
                format!(
                    "limit {}, maximum heap {}",
                    format_bytes(limit),
                    format_bytes(max)
                ),
                "lower the limit, or raise -Xmx",
            )
        })
        .collect();
    // What a service may have, its scopes have of it.
    let is_beneath_a_limit = |account: &live::Account| {
        let parent = account.parent.as_deref();
        limits().any(|(above, _)| Some(above.name.as_str()) == parent)
    };
    let sum = limits()
        .filter(|(account, _)| !is_beneath_a_limit(account))
        .map(|(_, limit)| limit)
        .fold(0, u64::saturating_add);
    if found.is_empty() && sum > max {
        found.push(Finding::new(
            Severity::Note,
            "limits-overcommitted",
            "the limits together are above the maximum heap: the JVM can run out before anybody is over",
            format!("limits {}, maximum heap {}", format_bytes(sum), format_bytes(max)),
            "fine where services do not peak together; else lower limits or raise -Xmx",
        ));
    }
    found
}

/// Limits that are only watched.
pub(super) fn observes(picture: &Picture) -> Vec<Finding> {
    let Some(accounts) = &picture.accounts else {
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
    vec![Finding::new(
        Severity::Note,
        "observes",
        "limits are only watched: nothing is refused",
        format!(
            "mode = \"observe\", {limited} accounts with a limit, {would} refusals would have been"
        ),
        "[enforcement] mode = \"enforce\" refuses, once what would be refused is what should be",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::super::picture::PolicyFile;
    use super::super::pictures::{account, agent};
    use super::*;

    fn with_file(mut picture: Picture, text: &str) -> Picture {
        let parsed = policy_config::parse(text);
        picture.file = Some(PolicyFile {
            path: "/etc/heapwarden.toml".into(),
            policy: parsed.policy.ok_or_else(|| "line 1: bad".to_owned()),
        });
        picture
    }

    #[test]
    fn a_rejected_reload_gives_the_agents_own_words() {
        let mut picture = agent("heapwarden_policy_last_reload_successful 0\n", vec![]);
        let policy = &mut picture.accounts.as_mut().unwrap().policy;
        policy.last_error = Some("heapwarden.toml:3:1: unknown key".to_owned());
        policy.generation = 4;
        let found = reload_failed(&picture);
        assert_eq!(found[0].evidence, "heapwarden.toml:3:1: unknown key");
        assert!(found[0].remedy.ends_with("generation 4"), "{found:?}");
        assert_eq!(
            reload_failed(&agent(
                "heapwarden_policy_last_reload_successful 1\n",
                vec![]
            )),
            []
        );
    }

    #[test]
    fn the_file_on_disk_is_compared_with_what_is_in_force() {
        let mut shop = account("service", "shop");
        shop.limit_bytes = Some(256 << 20);
        let mut picture = agent("", vec![shop]);
        picture.accounts.as_mut().unwrap().policy.mode = "observe".to_owned();
        let text = |limit: &str| {
            format!("[[account]]\nname = \"shop\"\nservice = \"/shop\"\nlimit = \"{limit}\"\n")
        };
        let picture = with_file(picture, &text("25%"));
        assert_eq!(file_not_in_force(&picture), [], "25 % of 1 GiB is 256 MiB");
        let picture = with_file(picture, &text("128MiB"));
        let found = file_not_in_force(&picture);
        assert!(
            found[0]
                .evidence
                .contains("128 MiB in the file and 256 MiB in force"),
            "{found:?}"
        );
        let enforcing =
            text("25%") + "[enforcement]\nmode = \"enforce\"\n[sampling]\ninterval = \"exact\"\n";
        let found = file_not_in_force(&with_file(picture, &enforcing));
        assert!(found[0].evidence.contains("mode is enforce"), "{found:?}");
        assert!(found[0].evidence.contains("interval"), "{found:?}");
        let bad = with_file(agent("", vec![]), "x");
        assert_eq!(file_rejected(&bad)[0].evidence, "line 1: bad");
        assert_eq!(file_not_in_force(&bad), []);
    }

    #[test]
    fn a_widened_interval_is_no_failed_reload() {
        let in_force = |bytes: u64, text: &str| {
            let mut picture = agent("", vec![]);
            let accounts = picture.accounts.as_mut().unwrap();
            accounts.policy.mode = "observe".to_owned();
            accounts.sampling.interval_bytes = bytes;
            let picture = with_file(picture, text);
            (
                file_not_in_force(&picture).len(),
                interval_widened(&picture).len(),
            )
        };
        let budget = "[sampling]\ninterval = \"64KiB\"\n";
        let none = budget.to_owned() + "cpu-budget = \"none\"\n";
        assert_eq!(in_force(64 << 10, budget), (0, 0));
        assert_eq!(in_force(256 << 10, budget), (0, 1));
        assert_eq!(in_force(100 << 10, budget), (1, 0));
        assert_eq!(
            in_force(8 << 20, budget),
            (1, 0),
            "further than it is widened"
        );
        assert_eq!(in_force(256 << 10, &none), (1, 0));
    }

    #[test]
    fn who_walks_stacks_for_principals_hears_of_it() {
        let remedy = |rest: &str| {
            let mut picture = agent("", vec![]);
            let accounts = picture.accounts.as_mut().unwrap();
            accounts.sampling.interval_bytes = 256 << 10;
            let text = format!("[sampling]\ninterval = \"64KiB\"\n{rest}");
            interval_widened(&with_file(picture, &text))
                .remove(0)
                .remedy
        };
        let packages = "[[account]]\nname = \"a\"\npackages = [\"a.*\"]\n";
        let payer = format!("principals = \"payer\"\n{packages}");
        let service = "[[account]]\nservice = \"/a\"\n";
        assert!(remedy(packages).contains("principals"));
        assert!(!remedy(&payer).contains("principals"));
        assert!(!remedy(service).contains("principals"));
    }

    #[test]
    fn patterns_that_match_nothing_are_named() {
        let mut orders = account("package", "orders");
        orders.allocated_bytes_total = 0;
        let mut xml = account("library", "xml");
        xml.allocated_bytes_total = 0;
        let picture = agent("", vec![orders, xml, account("service", "/shop")]);
        let names: Vec<String> = matches_nothing(&picture)
            .into_iter()
            .map(|one| one.sentence)
            .collect();
        assert_eq!(
            names,
            [
                "nothing was ever charged to account orders",
                "no live bytes were made by library xml"
            ]
        );
        let rules = "[[account]]\nservice = \"/sho\"\n[[account]]\nservice = \"/sh*\"\n";
        let found = matches_nothing(&with_file(
            agent("", vec![account("service", "/shop")]),
            rules,
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].sentence.contains("/sho"), "{found:?}");
        assert_eq!(found[0].evidence, "services seen: /shop");
    }

    #[test]
    fn a_rule_may_name_the_deployment() {
        for rule in ["shop", "sh*"] {
            let rules = format!("[[account]]\nservice = \"{rule}\"\n");
            let shop = account("service", "/shop");
            assert_eq!(
                matches_nothing(&with_file(agent("", vec![shop]), &rules)),
                []
            );
        }
    }

    #[test]
    fn a_named_account_of_a_service_is_a_match() {
        let mut store = account("service", "store");
        store.service = "/shop".to_owned();
        let rules = "[[account]]\nname = \"store\"\nservice = \"shop.war\"\n";
        assert_eq!(
            matches_nothing(&with_file(agent("", vec![store]), rules)),
            []
        );
    }

    #[test]
    fn a_heap_of_nobody_is_said() {
        let mut nobody = account("reserved", "_unaccounted");
        nobody.charged_bytes = 90 << 20;
        let mut orders = account("package", "orders");
        orders.charged_bytes = 10 << 20;
        let mut picture = agent("", vec![nobody, orders]);
        let found = services_not_recognised(&picture);
        assert_eq!(found[0].evidence, "_unaccounted 90 MiB of 100 MiB charged");
        picture.accounts.as_mut().unwrap().accounts[1].charged_bytes = 100 << 20;
        assert_eq!(services_not_recognised(&picture), []);
    }

    #[test]
    fn limits_are_compared_with_the_heap() {
        let limited = |name: &str, mib: u64| {
            let mut one = account("service", name);
            one.limit_bytes = Some(mib << 20);
            one
        };
        let found = limits_above_heap(&agent("", vec![limited("/a", 2048)]));
        assert_eq!(found[0].name, "limit-above-heap");
        let found = limits_above_heap(&agent("", vec![limited("/a", 600), limited("/b", 600)]));
        assert_eq!((found.len(), found[0].name), (1, "limits-overcommitted"));
        assert_eq!(limits_above_heap(&agent("", vec![limited("/a", 600)])), []);
        let mut tenant = limited("/a/tenant-1", 600);
        tenant.parent = Some("/a".to_owned());
        let both = agent("", vec![limited("/a", 600), tenant]);
        assert_eq!(limits_above_heap(&both), [], "it is of the service's");
    }

    #[test]
    fn observing_is_said_where_there_are_limits() {
        let mut one = account("service", "/a");
        one.limit_bytes = Some(1 << 20);
        one.would_refuse_total = 7;
        let mut picture = agent("", vec![one]);
        assert_eq!(observes(&picture), []);
        picture.accounts.as_mut().unwrap().policy.mode = "observe".to_owned();
        assert!(
            observes(&picture)[0]
                .evidence
                .contains("7 refusals would have been")
        );
    }
}
