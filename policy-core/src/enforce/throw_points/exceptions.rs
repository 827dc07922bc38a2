//! The policy's exceptions for single accounts: `interrupt-through`, `never-interrupt`, `work`, and the methods of
//! `door`.
//!
//! An allocating thread must not match patterns. So each account rule with exceptions gets a number,
//! each judged method stores the exceptions by that number, and each payer has the number of its
//! account. All three belong to one generation of the policy: a method that was judged under another
//! generation is judged again.

use std::collections::HashMap;
use std::sync::Arc;

use policy_config::{Door, DoorMethod, Interrupt, InterruptTable, Interrupts, Policy, Tasks};

use crate::identity::directory::Directory;
use crate::ledger::PurseId;

use super::judge::MethodRule;
use super::reason::Reason;

/// The exceptions of one policy.
#[derive(Default)]
pub struct Exceptions {
    generation: u32,
    /// The account rules that say something; the index here is the number.
    rules: Arc<[Rule]>,
    payers: HashMap<PurseId, u32>,
}

/// The parts of an account rule that concern refusals.
struct Rule {
    /// Its position in the policy.
    position: usize,
    interrupts: Interrupts,
    table: InterruptTable,
    tasks: Tasks,
    door: Door,
}

impl Rule {
    /// Returns the parts by which two rules are told apart.
    fn said(&self) -> (usize, &Interrupts, Tasks, &[DoorMethod]) {
        let doors = self.door.methods();
        (self.position, &self.interrupts, self.tasks, doors)
    }

    fn has_door_at(&self, class: &str, method: &str) -> bool {
        let mut doors = self.door.methods().iter();
        doors.any(|door| door.class == class && door.method == method)
    }
}

/// A payer, as its exceptions are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payer {
    /// The number of its account's rule; `None` without exceptions.
    pub number: Option<u32>,
    /// The generation of the policy that the number belongs to.
    pub generation: u32,
    /// Tasks of the JDK's pools are units of work for it.
    pub interrupts_tasks: bool,
}

/// The exceptions of all accounts for one method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    generation: u32,
    /// By number; nearly always empty.
    by_number: Box<[(u32, Says)]>,
}

/// The exceptions of one account for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Says {
    interrupt: Option<Interrupt>,
    is_work: bool,
    is_door: bool,
}

impl Exceptions {
    /// The exceptions of a new policy, with the next generation and without payers. `None` if they are
    /// the same as before.
    pub fn follow(&self, policy: &Policy) -> Option<Exceptions> {
        let rules: Arc<[_]> = policy
            .accounts
            .iter()
            .enumerate()
            .filter(|(_, account)| {
                !account.interrupts.is_empty()
                    || account.tasks == Tasks::Interrupt
                    || !account.door.methods().is_empty()
            })
            .map(|(position, account)| Rule {
                position,
                table: account.interrupts.table(),
                interrupts: account.interrupts.clone(),
                tasks: account.tasks,
                door: account.door.clone(),
            })
            .collect();
        let are_same = rules
            .iter()
            .map(Rule::said)
            .eq(self.rules.iter().map(Rule::said));
        (!are_same).then(|| Exceptions {
            generation: self.generation.wrapping_add(1),
            rules,
            payers: HashMap::new(),
        })
    }

    /// Whether no account has exceptions.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The same exceptions, with the payers as the directory knows them now.
    pub fn with_payers(&self, directory: &Directory) -> Exceptions {
        let mut payers = HashMap::new();
        if !self.is_empty() {
            for (_, account) in directory.accounts() {
                let number = self
                    .rules
                    .iter()
                    .position(|rule| Some(rule.position) == account.rule);
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

    /// The number of a payer's account. `payer` is the purse that stands for it: the account's others, such as that of
    /// a route made just now, may not be known yet. Two reads; any thread.
    pub fn payer(&self, payer: PurseId) -> Payer {
        let number = self.payers.get(&payer).copied();
        let rule = number.and_then(|number| self.rules.get(number as usize));
        Payer {
            number,
            generation: self.generation,
            interrupts_tasks: rule.is_some_and(|rule| rule.tasks == Tasks::Interrupt),
        }
    }

    /// The exceptions of all accounts for a method of a class, whose name is written as in Java.
    pub fn of(&self, class: &str, method: &str) -> Said {
        let package = class.rsplit_once('.').map_or("", |(package, _)| package);
        let said = self.rules.iter().zip(0..).filter_map(|(rule, number)| {
            let says = Says {
                interrupt: rule.table.lookup(package),
                is_work: rule.table.is_work(class, method),
                is_door: rule.has_door_at(class, method),
            };
            let says_something = says.interrupt.is_some() || says.is_work || says.is_door;
            says_something.then_some((number, says))
        });
        Said {
            generation: self.generation,
            by_number: said.collect(),
        }
    }
}

impl Said {
    /// The rule of a method for this payer, where `rule` is the one for every account. `None` if the
    /// method was judged under another policy than the payer's number belongs to.
    pub fn rule(&self, rule: MethodRule, payer: Payer, native: bool) -> Option<MethodRule> {
        let Some(number) = payer.number else {
            return Some(rule);
        };
        if self.generation != payer.generation {
            return None;
        }
        let said = self.says(number).and_then(|says| says.interrupt);
        Some(match (rule, said) {
            (MethodRule::Anywhere(_), _) | (_, None) => rule,
            (_, Some(Interrupt::Never)) => MethodRule::Anywhere(Reason::Policy),
            // The policy may declare Java code safe to throw through. Native code must check for
            // the error itself.
            (_, Some(Interrupt::Through)) if native => rule,
            (_, Some(Interrupt::Through)) => MethodRule::Transparent,
        })
    }

    /// Whether the account of this payer says that a unit of work begins with the method.
    pub fn is_work(&self, payer: Payer) -> bool {
        self.said_by(payer).is_some_and(|says| says.is_work)
    }

    /// Whether the account of this payer has a door at the method, or says that a unit of work begins with it.
    pub fn is_entrance(&self, payer: Payer) -> bool {
        (self.said_by(payer)).is_some_and(|says| says.is_door || says.is_work)
    }

    fn said_by(&self, payer: Payer) -> Option<Says> {
        let number = payer.number.filter(|_| self.generation == payer.generation);
        self.says(number?)
    }

    fn says(&self, number: u32) -> Option<Says> {
        let mut said = self.by_number.iter();
        said.find(|(by, _)| *by == number).map(|said| said.1)
    }

    /// Bytes held beyond the value itself.
    pub fn heap_bytes(&self) -> usize {
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
            interrupts_tasks: false,
        }
    }

    #[test]
    fn each_account_has_its_own_say() {
        let exceptions = Exceptions::default().follow(&policy(TWO)).unwrap();
        let (b, c) = (payer(&exceptions, 0), payer(&exceptions, 1));
        let other = Payer { number: None, ..b };
        let above = MethodRule::Above(Reason::Jdk);
        let never = MethodRule::Anywhere(Reason::Policy);
        let linkage = MethodRule::Anywhere(Reason::Linkage);
        for (package, rule, payer, expected) in [
            ("java.util.concurrent", above, b, MethodRule::Transparent),
            (
                "java.util.concurrent",
                MethodRule::Jdk,
                b,
                MethodRule::Transparent,
            ),
            ("java.util.concurrent", MethodRule::Jdk, c, never),
            (
                "java.util.concurrent",
                MethodRule::Jdk,
                other,
                MethodRule::Jdk,
            ),
            ("java.lang.invoke", linkage, b, linkage),
            ("c.tx.log", MethodRule::Outside, c, never),
            ("c.tx.log", MethodRule::Outside, b, MethodRule::Outside),
        ] {
            let said = exceptions.of(&format!("{package}.X"), "m");
            assert_eq!(said.rule(rule, payer, false), Some(expected), "{package}");
        }
        let said = exceptions.of("java.util.concurrent.X", "m");
        assert_eq!(said.rule(MethodRule::Jdk, b, true), Some(MethodRule::Jdk));
        assert_eq!(said.rule(MethodRule::Jdk, c, true), Some(never));
    }

    #[test]
    fn each_account_names_its_own_work() {
        let text = "[[account]]\nname = 'b'\npackages = ['b.*']\nwork = ['b.Loop#step', 'java.lang.Thread#run']\n\
            [[account]]\nname = 'c'\npackages = ['c.*']\nwork = ['c.jobs.*', 'b.Loop']";
        let exceptions = Exceptions::default().follow(&policy(text)).unwrap();
        let (b, c) = (payer(&exceptions, 0), payer(&exceptions, 1));
        for (class, method, expected) in [
            ("b.Loop", "step", [true, true]),
            ("b.Loop", "run", [false, true]),
            ("b.Loop$Inner", "run", [false, true]),
            ("b.Loops", "step", [false, false]),
            ("c.jobs.nightly.Job", "run", [false, true]),
            ("java.lang.Thread", "run", [true, false]),
        ] {
            let said = exceptions.of(class, method);
            assert_eq!(
                [b, c].map(|payer| said.is_work(payer)),
                expected,
                "{class}#{method}"
            );
            let silent = Payer { number: None, ..b };
            assert!(!said.is_work(silent));
            let later = Payer {
                generation: b.generation + 1,
                ..b
            };
            assert!(!said.is_work(later), "judged under another policy");
        }
    }

    #[test]
    fn doors_and_work_are_the_entrances_of_their_account() {
        let text = "[[account]]\nname = 'b'\npackages = ['b.*']\ndoor = ['b.Store$Writer#put']\n\
            [[account]]\nname = 'c'\npackages = ['c.*']\nwork = ['c.jobs.*']";
        let exceptions = Exceptions::default().follow(&policy(text)).unwrap();
        let (b, c) = (payer(&exceptions, 0), payer(&exceptions, 1));
        for (class, method, expected) in [
            ("b.Store$Writer", "put", [true, false]),
            ("b.Store$Writer", "drop", [false, false]),
            ("b.Store", "put", [false, false]),
            ("c.jobs.nightly.Job", "run", [false, true]),
        ] {
            let said = exceptions.of(class, method);
            let entrances = [b, c].map(|payer| said.is_entrance(payer));
            assert_eq!(entrances, expected, "{class}#{method}");
            assert!(!said.is_work(b), "a door makes no unit of work");
        }
    }

    #[test]
    fn tasks_are_interrupted_where_the_account_says_so() {
        let text = "[[account]]\nname = 'b'\npackages = ['b.*']\ntasks = 'interrupt'\n\
            [[account]]\nname = 'c'\npackages = ['c.*']\nwork = ['c.jobs.*']";
        let policy = Arc::new(policy(text));
        let mut directory = Directory::new(policy.clone());
        directory.enter_packages(PurseId::new(3), 0);
        directory.enter_packages(PurseId::new(4), 1);
        let exceptions = Exceptions::default().follow(&policy).unwrap();
        let exceptions = exceptions.with_payers(&directory);
        let interrupts = |purse| exceptions.payer(PurseId::new(purse)).interrupts_tasks;
        assert_eq!([3, 4, 5].map(interrupts), [true, false, false]);
    }

    #[test]
    fn a_method_judged_under_another_policy_is_judged_anew() {
        let first = Exceptions::default().follow(&policy(TWO)).unwrap();
        assert!(first.follow(&policy(TWO)).is_none(), "nothing new");
        let second = first.follow(&policy("")).unwrap();
        assert!(second.is_empty());
        let third = second.follow(&policy(TWO)).unwrap();
        let said = first.of("c.tx.X", "m");
        assert_eq!(
            said.rule(MethodRule::Outside, payer(&third, 1), false),
            None
        );
        let silent = second.payer(PurseId::new(7));
        assert_eq!(
            said.rule(MethodRule::Outside, silent, false),
            Some(MethodRule::Outside)
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
