//! Assigns recorded accounts to the rules of a policy.

use std::collections::BTreeMap;

use policy_config::{Charge, Matcher, Policy};

use heapwarden_terminal::deployment;

use super::statistics::in_quadrature;
use super::{Account, Column, Jvm, Kind};

/// An account that a policy would have kept in a JVM: the sum of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned<'a> {
    /// The position of its rule in [`Policy::accounts`].
    pub rule: usize,
    /// As the policy names it.
    pub name: String,
    /// The accounts that were recorded.
    pub parts: Vec<&'a Account>,
    /// The sum of the parts.
    pub live_bytes: Column,
    /// Of the sum: the parts were sampled independently.
    pub standard_error_bytes: Column,
}

/// The accounts that `policy` would have kept in `jvm`, over `steps` steps.
///
/// As in the agent, a service or scope belongs to the first rule whose glob matches. But a record has
/// less data than the agent: only those names of a deployment that follow from the published one
/// ([`deployment`]), and only the names of package accounts. A scope is matched by the name that the
/// program gave it, without the service around it. So an account with the name of a rule of its kind
/// belongs to that rule, whatever the rule's glob or patterns are. Library accounts, whose callers
/// pay, and reserved accounts belong to no rule.
pub fn assign<'a>(policy: &Policy, jvm: &'a Jvm, steps: usize) -> Vec<Assigned<'a>> {
    let mut groups: BTreeMap<(usize, String), Vec<&Account>> = BTreeMap::new();
    for account in &jvm.accounts {
        if let Some(rule) = rule_of(policy, account) {
            let name = policy.accounts[rule].name.as_ref();
            let name = name.unwrap_or(&account.name);
            groups
                .entry((rule, name.clone()))
                .or_default()
                .push(account);
        }
    }
    let assigned = groups.into_iter().map(|((rule, name), parts)| Assigned {
        rule,
        name,
        live_bytes: merged(
            &parts,
            steps,
            |part| &part.live_bytes,
            |sizes| sizes.iter().sum(),
        ),
        standard_error_bytes: merged(
            &parts,
            steps,
            |part| &part.standard_error_bytes,
            |errors| in_quadrature(errors.iter().copied()),
        ),
        parts,
    });
    assigned.collect()
}

fn rule_of(policy: &Policy, account: &Account) -> Option<usize> {
    let named = policy.accounts.iter().position(|rule| {
        let kind = match (&rule.matcher, rule.charge) {
            (Matcher::Service(_), _) => Kind::Service,
            (Matcher::Scope(_), _) => Kind::Scope,
            (Matcher::Packages(_), Charge::SelfPays) => Kind::Package,
            (Matcher::Packages(_), Charge::Caller) => Kind::Library,
        };
        kind == account.kind && rule.name.as_ref() == Some(&account.name)
    });
    match account.kind {
        Kind::Service => named.or_else(|| {
            let name = if account.service.is_empty() {
                &account.name
            } else {
                &account.service
            };
            let names = deployment::names(name);
            policy.service_account(&names.iter().map(String::as_str).collect::<Vec<_>>())
        }),
        Kind::Scope => named.or_else(|| policy.scope_account(account.scope_name())),
        Kind::Package => named,
        Kind::Library | Kind::Reserved => None,
    }
}

fn merged(
    parts: &[&Account],
    steps: usize,
    column: fn(&Account) -> &Column,
    merge: fn(&[f64]) -> f64,
) -> Column {
    if let [one] = parts {
        return column(one).clone();
    }
    let mut whole = Column::default();
    for step in 0..steps {
        let present: Vec<f64> = (parts.iter())
            .filter_map(|part| column(part).get(step))
            .collect();
        if !present.is_empty() {
            whole.put(steps, step, merge(&present));
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, kind: Kind, service: &str, live_bytes: f64) -> Account {
        let mut account = Account {
            name: name.into(),
            kind,
            service: service.into(),
            ..Account::default()
        };
        account.live_bytes.put(2, 0, live_bytes);
        account.standard_error_bytes.put(2, 0, live_bytes);
        account
    }

    fn within(parent: &str, account: Account) -> Account {
        Account {
            parent: parent.into(),
            ..account
        }
    }

    #[test]
    fn rules_are_found_as_the_agent_finds_them() {
        let policy = policy_config::parse(
            r#"
            [[account]]
            name = "shops"
            service = "/shop*"
            [[account]]
            service = "base"
            [[account]]
            service = "*"
            [[account]]
            name = "orders"
            packages = ["com.acme.orders.*"]
            [[account]]
            name = "xml"
            packages = ["org.xml.*"]
            charge = "caller"
            [[account]]
            scope = "tenant-*"
            "#,
        );
        let policy = policy.policy.unwrap();
        let jvm = Jvm {
            accounts: vec![
                account("/shop", Kind::Service, "/shop", 3.0),
                account("/shop2", Kind::Service, "/shop2", 4.0),
                account("/other", Kind::Service, "/other", 1.0),
                account("/base", Kind::Service, "/base", 1.0),
                account("orders", Kind::Package, "", 1.0),
                account("xml", Kind::Library, "", 1.0),
                account("tenant-7", Kind::Scope, "", 1.0),
                account("stranger", Kind::Scope, "", 1.0),
                within(
                    "/shop",
                    account("/shop/tenant-7", Kind::Scope, "/shop", 2.0),
                ),
                within(
                    "/shop",
                    account("/shop/stranger", Kind::Scope, "/shop", 1.0),
                ),
                account("/mall/tenant-7", Kind::Scope, "", 1.0),
                account("_unaccounted", Kind::Reserved, "", 1.0),
            ],
            ..Jvm::default()
        };
        let found = assign(&policy, &jvm, 2);
        let brief: Vec<_> = found
            .iter()
            .map(|one| (one.rule, one.name.as_str()))
            .collect();
        assert_eq!(
            brief,
            [
                (0, "shops"),
                (1, "/base"),
                (2, "/other"),
                (3, "orders"),
                (5, "/shop/tenant-7"),
                (5, "tenant-7")
            ]
        );
        assert_eq!(found[0].live_bytes.get(0), Some(7.0));
        assert_eq!(found[0].standard_error_bytes.get(0), Some(5.0));
        assert_eq!(found[0].live_bytes.get(1), None);
    }
}
