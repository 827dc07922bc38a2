//! What single accounts say of packages: `interrupt-through` and `never-interrupt`.
//!
//! An allocating thread must not match patterns. So each rule of the policy that says
//! anything gets a number, each method remembers which numbers say what of it, and a payer
//! is known by its number. All three belong to one policy, told by its generation: a method
//! that was judged under another is judged anew.

use std::collections::HashMap;
use std::sync::Arc;

use policy_config::{Interrupt, InterruptTable, Interrupts, Policy};

use crate::identity::directory::Directory;
use crate::ledger::PurseId;

use super::judge::Verdict;
use super::reason::Reason;

/// The rules of one policy that say where threads may be refused.
#[derive(Default)]
pub(crate) struct Exceptions {
    generation: u32,
    /// The positions of the rules in the policy, and what they say; the index here is the
    /// number.
    rules: Arc<[(usize, Interrupts, InterruptTable)]>,
    payers: HashMap<PurseId, u32>,
}

/// What a payer's account says: its number, if it says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Payer {
    pub(crate) number: Option<u32>,
    pub(crate) generation: u32,
}

/// What accounts say of one method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Said {
    generation: u32,
    /// By number; nearly always empty.
    by_number: Box<[(u32, Interrupt)]>,
}

impl Exceptions {
    /// Those of a policy, to follow `self`; its payers are not known yet. `None` if it says
    /// the very same.
    pub(crate) fn follow(&self, policy: &Policy) -> Option<Exceptions> {
        let rules: Arc<[_]> = policy
            .accounts
            .iter()
            .enumerate()
            .filter(|(_, account)| !account.interrupts.is_empty())
            .map(|(rule, account)| {
                let interrupts = account.interrupts.clone();
                let table = interrupts.table();
                (rule, interrupts, table)
            })
            .collect();
        let said = |rules: &[(usize, Interrupts, InterruptTable)]| {
            let said = rules.iter().map(|(rule, says, _)| (*rule, says.clone()));
            said.collect::<Vec<_>>()
        };
        (said(&rules) != said(&self.rules)).then(|| Exceptions {
            generation: self.generation.wrapping_add(1),
            rules,
            payers: HashMap::new(),
        })
    }

    /// True if no account says anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The same rules, with the payers as the directory knows them now.
    pub(crate) fn with_payers(&self, directory: &Directory) -> Exceptions {
        let mut payers = HashMap::new();
        if !self.is_empty() {
            for (_, account) in directory.accounts() {
                let number = self
                    .rules
                    .iter()
                    .position(|(rule, ..)| Some(*rule) == account.rule);
                if let Some(number) = number {
                    payers.extend(account.purses.iter().map(|&purse| (purse, number as u32)));
                }
            }
        }
        Exceptions {
            generation: self.generation,
            rules: self.rules.clone(),
            payers,
        }
    }

    /// What a payer's account says. Two reads; any thread.
    pub(crate) fn payer(&self, payer: PurseId) -> Payer {
        Payer {
            number: self.payers.get(&payer).copied(),
            generation: self.generation,
        }
    }

    /// What accounts say of a package.
    pub(crate) fn of(&self, package: &str) -> Said {
        let said = self
            .rules
            .iter()
            .zip(0..)
            .filter_map(|((_, _, table), number)| {
                let interrupt = table.lookup(package)?;
                Some((number, interrupt))
            });
        Said {
            generation: self.generation,
            by_number: said.collect(),
        }
    }
}

impl Said {
    /// What holds for this payer of a method of which `verdict` holds for all. `None` if the
    /// method was judged under another policy than the payer was known by.
    pub(crate) fn verdict(&self, verdict: Verdict, payer: Payer, native: bool) -> Option<Verdict> {
        let Some(number) = payer.number else {
            return Some(verdict);
        };
        if self.generation != payer.generation {
            return None;
        }
        let said = self
            .by_number
            .iter()
            .find(|(by, _)| *by == number)
            .map(|said| said.1);
        Some(match (verdict, said) {
            (Verdict::Anywhere(_), _) | (_, None) => verdict,
            (_, Some(Interrupt::Never)) => Verdict::Anywhere(Reason::Policy),
            // Java code may be declared to stand an error; native code has to look for it.
            (_, Some(Interrupt::Through)) if native => verdict,
            (_, Some(Interrupt::Through)) => Verdict::Transparent,
        })
    }

    /// Bytes held beyond the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.by_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        policy_config::parse(text).policy.unwrap()
    }

    const TWO: &str = "[[account]]\nservice = '/a'\n\
        [[account]]\nname = 'b'\npackages = ['b.*']\ninterrupt-through = ['java.util.concurrent.*', 'java.lang.invoke']\n\
        [[account]]\nname = 'c'\npackages = ['c.*']\nnever-interrupt = ['c.tx.*', 'java.util.concurrent']";

    fn payer(exceptions: &Exceptions, number: u32) -> Payer {
        Payer {
            number: Some(number),
            generation: exceptions.generation,
        }
    }

    #[test]
    fn each_account_has_its_own_say() {
        let exceptions = Exceptions::default().follow(&policy(TWO)).unwrap();
        let (b, c) = (payer(&exceptions, 0), payer(&exceptions, 1));
        let other = Payer { number: None, ..b };
        let above = Verdict::Above(Reason::Jdk);
        let never = Verdict::Anywhere(Reason::Policy);
        let linkage = Verdict::Anywhere(Reason::Linkage);
        for (package, verdict, payer, expected) in [
            ("java.util.concurrent", above, b, Verdict::Transparent),
            (
                "java.util.concurrent",
                Verdict::Jdk,
                b,
                Verdict::Transparent,
            ),
            ("java.util.concurrent", Verdict::Jdk, c, never),
            ("java.util.concurrent", Verdict::Jdk, other, Verdict::Jdk),
            ("java.lang.invoke", linkage, b, linkage),
            ("c.tx.log", Verdict::Outside, c, never),
            ("c.tx.log", Verdict::Outside, b, Verdict::Outside),
        ] {
            let said = exceptions.of(package);
            assert_eq!(
                said.verdict(verdict, payer, false),
                Some(expected),
                "{package}"
            );
        }
        let said = exceptions.of("java.util.concurrent");
        assert_eq!(said.verdict(Verdict::Jdk, b, true), Some(Verdict::Jdk));
        assert_eq!(said.verdict(Verdict::Jdk, c, true), Some(never));
    }

    #[test]
    fn a_method_judged_under_another_policy_is_judged_anew() {
        let first = Exceptions::default().follow(&policy(TWO)).unwrap();
        assert!(first.follow(&policy(TWO)).is_none(), "nothing new");
        let second = first.follow(&policy("")).unwrap();
        assert!(second.is_empty());
        let third = second.follow(&policy(TWO)).unwrap();
        let said = first.of("c.tx");
        assert_eq!(
            said.verdict(Verdict::Outside, payer(&third, 1), false),
            None
        );
        let silent = second.payer(PurseId::new(7));
        assert_eq!(
            said.verdict(Verdict::Outside, silent, false),
            Some(Verdict::Outside)
        );
    }

    #[test]
    fn payers_are_the_purses_of_the_accounts_that_say_something() {
        let policy = Arc::new(policy(TWO));
        let mut directory = Directory::new(policy.clone());
        directory.enter_packages(PurseId::new(3), 1);
        directory.enter_packages(PurseId::new(4), 2);
        let exceptions = Exceptions::default().follow(&policy).unwrap();
        assert_eq!(exceptions.payer(PurseId::new(3)).number, None);
        let exceptions = exceptions.with_payers(&directory);
        let number = |purse| exceptions.payer(PurseId::new(purse)).number;
        assert_eq!([number(3), number(4), number(5)], [Some(0), Some(1), None]);
    }
}
