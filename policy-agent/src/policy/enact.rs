//! Putting a policy in force, in one step for whoever allocates.

use std::sync::Arc;

use policy_config::{Charge, Matcher, Policy, Principals};

use crate::agent::Agent;
use crate::identity::Classifier;
use crate::identity::bill::Claim;
use crate::identity::directory::Directory;
use crate::jvm::java::Jni;
use crate::jvm::scan::scan;
use crate::pace;

/// Puts a policy in force: purses for its package accounts, every class classified on
/// the side that is not in use, then one switch. No reading is taken meanwhile. On the
/// clerk's thread, or at the start.
pub(crate) fn apply(agent: &Agent, jni: &Jni, policy: Arc<Policy>) {
    let _unchanging = agent.policy.unchanging();
    let mut directory = agent.directory();
    directory.adopt(policy.clone());
    let claims: Vec<Claim> = (0..policy.accounts.len())
        .map(|rule| package_claim(agent, &mut directory, &policy, rule))
        .collect();
    agent.points.adopt(&policy, &directory);
    drop(directory);
    let packages = claims.iter().any(|claim| *claim != Claim::Nobody);
    let claims = if packages { claims } else { Vec::new() };
    let (side, classify) = agent
        .identity
        .prepare(Classifier::new(policy.package_table(), claims));
    if classify {
        scan(agent, jni, true);
    }
    agent.identity.switch(
        side,
        packages,
        policy.sampling.principals == Principals::Full,
    );
    pace::adopt(agent, &policy.sampling);
    agent.policy.enact(policy);
    agent.warden.wake();
}

fn package_claim(agent: &Agent, directory: &mut Directory, policy: &Policy, rule: usize) -> Claim {
    let account = &policy.accounts[rule];
    if !matches!(account.matcher, Matcher::Packages(_)) {
        return Claim::Nobody;
    }
    let purse = directory.package_purse(rule).or_else(|| {
        let purse = agent.ledger.open_purse()?;
        directory.enter_packages(purse, rule);
        Some(purse)
    });
    match (purse, account.charge) {
        (None, _) => {
            tracing::error!(
                "account {} gets no ledger: all are in use; its charges are nobody's",
                account.label()
            );
            Claim::Nobody
        }
        (Some(purse), Charge::SelfPays) => Claim::Account(purse),
        (Some(purse), Charge::Caller) => Claim::Library(purse),
    }
}
