//! Puts a policy in force, in one step for all allocating threads.

use std::sync::Arc;

use policy_config::{Charge, Matcher, Policy, Principals};
use policy_jvm::Jni;

use crate::allocation::scan::scan;
use crate::ground::Ground;
use crate::identity::Classifier;
use crate::identity::attribution::Claim;
use crate::identity::directory::Directory;
use crate::interval_control;
use crate::ledger::Ledger;

/// Puts a policy in force: opens purses for its package accounts, classifies every class on the side that
/// is not in use, then switches sides at once. No reading is taken meanwhile. On the metadata thread, or
/// at the start.
pub(crate) fn apply(ground: &Ground, jni: &Jni, policy: Arc<Policy>) {
    let _unchanging = ground.policy.unchanging();
    let mut directory = ground.core.directory();
    directory.adopt(policy.clone());
    let claims: Vec<Claim> = (0..policy.accounts.len())
        .map(|rule| package_claim(&ground.core.ledger, &mut directory, &policy, rule))
        .collect();
    ground.core.throw_points.adopt(&policy, &directory);
    drop(directory);
    let packages = claims.iter().any(|claim| *claim != Claim::Nobody);
    let claims = if packages { claims } else { Vec::new() };
    let (side, classify) = ground
        .core
        .identity
        .prepare(Classifier::new(policy.package_table(), claims));
    if classify {
        scan(ground, jni, true);
    }
    ground.core.identity.switch(
        side,
        packages,
        policy.sampling.principals == Principals::Full,
    );
    ground.core.find_thinned_classes();
    interval_control::adopt(&ground.core, &ground.sampler(), &policy.sampling);
    ground.policy.enact(policy);
    ground.core.enforcer.wake();
    // It fits the doors that the policy names.
    ground.loader_thread.wake();
}

fn package_claim(
    ledger: &Ledger,
    directory: &mut Directory,
    policy: &Policy,
    rule: usize,
) -> Claim {
    let account = &policy.accounts[rule];
    if !matches!(account.matcher, Matcher::Packages(_)) {
        return Claim::Nobody;
    }
    let purse = directory.package_purse(rule).or_else(|| {
        let purse = ledger.open_purse()?;
        directory.enter_packages(purse, rule);
        Some(purse)
    });
    match (purse, account.charge) {
        (None, _) => {
            tracing::error!(
                "account {} gets no ledger: all are in use; its allocations are charged to no account",
                account.label()
            );
            Claim::Nobody
        }
        (Some(purse), Charge::SelfPays) => Claim::Account(purse),
        (Some(purse), Charge::Caller) => Claim::Library(purse),
    }
}
