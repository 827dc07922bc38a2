//! Limits that bind nobody: what the log says of a policy that does not fit its JVM.
//!
//! # Rules
//! 1. An account of the policy that has a limit and matched nobody for [`START_UP`] has one line, and another
//!    only after it has matched somebody, or after a change of the policy.
//! 2. If limits are in force and most of what is charged is nobody's for [`START_UP`], that has one line, and
//!    another only after most was somebody's again, or after a change of the policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Account, Charge, Limit, Matcher, Policy, format_rounded_bytes as size};

use crate::identity::directory::Directory;
use crate::ledger::Ledger;
use crate::snapshot::UNACCOUNTED;

/// The time that applications have to start, and to come back after a redeployment.
pub const START_UP: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);
/// The share of all charges from which on nobody's are most of them, and below which they no longer are.
const MOST: f64 = 0.5;
const NOT_MOST: f64 = 0.4;
/// Fewer charged bytes in all are a program that does nothing yet.
const LEAST_BYTES: u64 = 16 << 20;
/// Accounts with a line of their own, for one policy.
const MAX_LINES: usize = 20;

/// Something that has been so since a time, and whether the log has it.
#[derive(Debug, Clone, Copy)]
struct Lasting {
    since: Instant,
    is_told: bool,
}

impl Lasting {
    /// Whether it is time for its line.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = !self.is_told && now.duration_since(self.since) >= START_UP;
        self.is_told |= is_due;
        is_due
    }
}

/// The limits that have bound nobody so far, and how much the log has told of them. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct Coverage {
    policy: Option<Arc<Policy>>,
    /// The accounts of the policy that have a limit and match nobody, by their position.
    idle: BTreeMap<usize, Lasting>,
    lines: usize,
    unaccounted: Option<Lasting>,
    again_at: Option<Instant>,
}

impl Coverage {
    /// Looks, if it is time, and returns the lines that are due. Does not look at records.
    pub fn look(&mut self, directory: &Directory, ledger: &Ledger, now: Instant) -> Vec<String> {
        if self.again_at.is_some_and(|at| now < at) {
            return Vec::new();
        }
        self.again_at = Some(now + PAUSE);
        let policy = directory.policy();
        if !(self.policy.as_ref()).is_some_and(|before| Arc::ptr_eq(before, policy)) {
            *self = Coverage {
                policy: Some(policy.clone()),
                again_at: self.again_at,
                ..Coverage::default()
            };
        }
        let policy = policy.clone();
        let mut lines = self.idle_limits(&policy, directory, ledger, now);
        lines.extend(self.unaccounted(&policy, directory, ledger, now));
        lines
    }

    /// Rule 1.
    fn idle_limits(
        &mut self,
        policy: &Policy,
        directory: &Directory,
        ledger: &Ledger,
        now: Instant,
    ) -> Vec<String> {
        let mut matched = vec![false; policy.accounts.len()];
        for (_, account) in directory.accounts() {
            // A package account has its purse before any of its code runs.
            let mut purses = account.purses.iter();
            let is_used = purses.any(|&purse| {
                let is_package = |rule: usize| is_package(&policy.accounts[rule]);
                !account.rule.is_some_and(is_package) || ledger.totals(purse).allocated_bytes > 0
            });
            if let Some(matched) = account.rule.and_then(|rule| matched.get_mut(rule)) {
                *matched |= is_used;
            }
        }
        let mut lines = Vec::new();
        let mut left_out = 0;
        for (index, rule) in policy.accounts.iter().enumerate() {
            if !has_limit(rule) || matched[index] {
                self.idle.remove(&index);
                continue;
            }
            let since = now;
            let is_told = false;
            let idle = (self.idle.entry(index)).or_insert(Lasting { since, is_told });
            if !idle.is_due(now) {
                continue;
            }
            if self.lines >= MAX_LINES {
                left_out += 1;
                continue;
            }
            self.lines += 1;
            let what = match &rule.matcher {
                Matcher::Service(_) => "no service has such a name",
                Matcher::Packages(_) => "no code of these packages has allocated anything",
                Matcher::Scope(_) => "the program has opened no such scope",
            };
            let account = match &rule.name {
                Some(name) => format!("account {name} ({})", rule.matcher),
                None => format!("[[account]] {}", rule.matcher),
            };
            lines.push(format!(
                "the limit of {account} binds nobody: {what} (heapwarden status lists the accounts)"
            ));
        }
        if left_out > 0 {
            lines.push(format!("{left_out} more limits bind nobody"));
        }
        lines
    }

    /// Rule 2.
    fn unaccounted(
        &mut self,
        policy: &Policy,
        directory: &Directory,
        ledger: &Ledger,
        now: Instant,
    ) -> Option<String> {
        let charged_to = |account: &crate::identity::directory::Account| -> u64 {
            let purses = account.purses.iter();
            purses
                .map(|&purse| ledger.totals(purse).charged.bytes)
                .sum()
        };
        let all_bytes: u64 = directory.accounts().map(|(_, a)| charged_to(a)).sum();
        let nobodys_bytes: u64 = (directory.accounts())
            .filter(|(name, _)| &***name == UNACCOUNTED)
            .map(|(_, account)| charged_to(account))
            .sum();
        let share = nobodys_bytes as f64 / all_bytes.max(1) as f64;
        let is_most = policy.accounts.iter().any(has_limit)
            && all_bytes >= LEAST_BYTES
            && share
                >= if self.unaccounted.is_some() {
                    NOT_MOST
                } else {
                    MOST
                };
        if !is_most {
            self.unaccounted = None;
            return None;
        }
        let first = Lasting {
            since: now,
            is_told: false,
        };
        (self.unaccounted.get_or_insert(first).is_due(now)).then(|| {
            format!(
                "{} of {} charged belong to no account ({UNACCOUNTED}), so no limit of the policy bounds them: \
                 for code that the agent does not recognise, write an [[account]] with packages",
                size(nobodys_bytes),
                size(all_bytes)
            )
        })
    }
}

fn is_package(account: &Account) -> bool {
    matches!(account.matcher, Matcher::Packages(_))
}

/// Whether the account bounds anybody that it matches.
fn has_limit(account: &Account) -> bool {
    let limits = [account.limit, account.soft_limit, account.direct_limit];
    let has = limits.iter().any(|limit| *limit != Limit::None);
    has && account.charge == Charge::SelfPays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::directory::LoaderIdentity;
    use crate::identity::loaders::LoaderId;
    use crate::identity::names::service;
    use crate::ledger::{Capacity, Exact, PurseId};

    struct Jvm {
        directory: Directory,
        ledger: Ledger,
        coverage: Coverage,
        now: Instant,
    }

    impl Jvm {
        fn new(policy: &str) -> Jvm {
            let ledger = Ledger::new(Capacity {
                records: 1_000,
                purses: 10,
            });
            ledger.intervals().set(0).expect("every allocation");
            Jvm {
                directory: Directory::new(parsed(policy)),
                ledger,
                coverage: Coverage::default(),
                now: Instant::now(),
            }
        }

        fn deploy(&mut self, loader: u32, name: &str) -> PurseId {
            let purse = self.ledger.open_purse().expect("room");
            self.directory.enter_loader(LoaderId(loader), purse);
            let name = service(vec![name.into()], true);
            (self.directory).set_identity(LoaderId(loader), LoaderIdentity::Service(name));
            purse
        }

        fn charge(&self, payer: PurseId, mib: u64) {
            for _ in 0..mib {
                self.ledger.charge_to(payer, 1 << 20);
            }
        }

        fn after(&mut self, seconds: u64) -> Vec<String> {
            self.now += Duration::from_secs(seconds);
            (self.coverage).look(&self.directory, &self.ledger, self.now)
        }
    }

    fn parsed(policy: &str) -> Arc<Policy> {
        Arc::new(policy_config::parse(policy).policy.expect("valid"))
    }

    const SHOP: &str = "[[account]]\nname = 'shop'\nservice = '/shop'\nlimit = '9MiB'\n";

    #[test]
    fn a_limit_that_binds_nobody_is_said_once_after_the_start() {
        let mut jvm = Jvm::new(SHOP);
        assert_eq!(jvm.after(0), [""; 0]);
        assert_eq!(jvm.after(59), [""; 0], "applications start");
        let lines = jvm.after(6);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("account shop (service \"/shop\") binds nobody"),
            "{lines:?}"
        );
        assert_eq!(jvm.after(600), [""; 0], "once");
        // It matches somebody, and nobody again.
        jvm.deploy(1, "/shop");
        assert_eq!(jvm.after(600), [""; 0]);
        jvm.directory.remove_loader(LoaderId(1));
        jvm.directory
            .close_purse(PurseId::new(1), 0, 0, Exact::default());
        assert_eq!(jvm.after(10), [""; 0], "a redeployment takes its time");
        assert_eq!(jvm.after(60).len(), 1);
        // Another policy.
        jvm.directory.adopt(parsed(SHOP));
        assert_eq!(jvm.after(10), [""; 0]);
        assert_eq!(jvm.after(60).len(), 1);
        jvm.directory
            .adopt(parsed("[[account]]\nservice = '/none'\n"));
        assert_eq!(jvm.after(10), [""; 0]);
        assert_eq!(jvm.after(60), [""; 0], "no limit");
    }

    #[test]
    fn packages_match_from_their_first_allocation_on() {
        let mut jvm = Jvm::new("[[account]]\nname = 'a'\npackages = ['com.a']\nlimit = '9MiB'\n");
        let purse = jvm.ledger.open_purse().expect("room");
        jvm.directory.enter_packages(purse, 0);
        jvm.after(0);
        assert_eq!(jvm.after(60).len(), 1);
        jvm.charge(purse, 1);
        assert_eq!(jvm.after(60), [""; 0]);
    }

    #[test]
    fn a_heap_that_is_mostly_nobody_s_is_said_once() {
        let mut jvm = Jvm::new("[[account]]\nservice = '*'\nlimit = '25%'\n");
        let shop = jvm.deploy(1, "/shop");
        jvm.charge(shop, 10);
        jvm.charge(PurseId::UNACCOUNTED, 11);
        assert_eq!(jvm.after(0), [""; 0]);
        let lines = jvm.after(60);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with("11MiB of 21MiB charged belong to no account"),
            "{lines:?}"
        );
        jvm.charge(shop, 2);
        assert_eq!(jvm.after(60), [""; 0], "near the bound nothing changes");
        jvm.charge(shop, 20);
        assert_eq!(jvm.after(60), [""; 0]);
        jvm.charge(PurseId::UNACCOUNTED, 40);
        assert_eq!(jvm.after(10), [""; 0]);
        assert_eq!(jvm.after(60).len(), 1, "again, after a change");
        // Without limits it is nothing to tell.
        jvm.directory.adopt(Arc::default());
        jvm.after(10);
        assert_eq!(jvm.after(60), [""; 0]);
    }
}
