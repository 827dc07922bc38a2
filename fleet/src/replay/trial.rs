//! A policy tried on an observed period.

use policy_config::{Limit, Policy};

use crate::history::{self, History, Jvm};

use super::episodes::{self, Episode};

/// The result.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    /// The accounts that would have been refused, by JVM and rule.
    pub(super) refused: Vec<Refused<'a>>,
    /// Accounts with a limit, those refused included.
    pub(super) limited: usize,
    /// Accounts without one, or without a rule.
    pub(super) unlimited: usize,
}

/// An account that would have been refused.
#[derive(Debug)]
pub(super) struct Refused<'a> {
    pub(super) jvm: &'a Jvm,
    pub(super) account: String,
    pub(super) limit: Limit,
    pub(super) episodes: Vec<Episode>,
}

impl<'a> Trial<'a> {
    pub(super) fn of(policy: &Policy, history: &'a History) -> Trial<'a> {
        let mut trial = Trial {
            refused: Vec::new(),
            limited: 0,
            unlimited: 0,
        };
        for jvm in &history.jvms {
            let assigned = history::assign(policy, jvm, history.span.points());
            let parts: usize = assigned.iter().map(|one| one.parts.len()).sum();
            trial.unlimited += jvm.accounts.len() - parts;
            for account in assigned {
                let limit = policy.accounts[account.rule].limit;
                if limit == Limit::None {
                    trial.unlimited += account.parts.len();
                    continue;
                }
                trial.limited += 1;
                let episodes = episodes::episodes(&account, limit, jvm);
                if !episodes.is_empty() {
                    trial.refused.push(Refused {
                        jvm,
                        account: account.name,
                        limit,
                        episodes,
                    });
                }
            }
        }
        trial
    }
}
