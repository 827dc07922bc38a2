//! Identity: whose an allocation is.
//!
//! The allocating thread works with numbers only: [`attribution`] applies the principal-agent
//! rule to what [`classes`], [`loaders`] and [`method_classes`] know, without a lock and without a
//! name. Names follow later on agent threads: the loader thread names new loaders and the metadata
//! thread names new classes. Both write the names into the [`directory`], which the reports read.

pub mod attribution;
pub mod classes;
pub mod cleaning;
pub mod directory;
pub mod entry_state;
pub mod loaders;
pub mod method_classes;
pub mod names;
pub mod scopes;

use arc_swap::ArcSwap;
use crossbeam_queue::ArrayQueue;
use policy_config::PackageTable;

use crate::ledger::PurseId;
use crate::sync::{AtomicU16, AtomicU32, Ordering};

use attribution::{Claim, Needs};
use classes::{Classes, Side};
use loaders::{LoaderId, Loaders};
use method_classes::MethodClasses;
use scopes::{NewScope, Scopes};

/// The capacity of each queue: new loaders, and new scopes. The loader thread finds a loader that did
/// not fit by its entry.
const MAX_QUEUED: usize = 16 * 1024;

/// Which account owns which packages, under one policy.
#[derive(Default)]
pub struct Classifier {
    table: PackageTable,
    /// By rule of the policy.
    claims: Vec<Claim>,
}

impl Classifier {
    /// A classifier from the package table of a policy and the claim of each rule, by position.
    pub fn new(table: PackageTable, claims: Vec<Claim>) -> Classifier {
        Classifier { table, claims }
    }

    /// The claim on a package; `package` is written with slashes. Does not allocate.
    pub fn claim(&self, package: &str) -> Claim {
        self.table
            .lookup(package)
            .and_then(|rule| self.claims.get(rule))
            .copied()
            .unwrap_or_default()
    }

    fn names(&self, purse: PurseId) -> bool {
        let named = |claim: &Claim| match *claim {
            Claim::Account(named) | Claim::Library(named) => named == purse,
            Claim::Nobody | Claim::Program(_) => false,
        };
        self.claims.iter().any(named)
    }
}

/// The highest purse number.
#[cfg(not(loom))]
const PURSES: u16 = u16::MAX;
/// Few, because loom tracks each.
#[cfg(loom)]
const PURSES: u16 = 7;

const PACKAGES: u32 = 1;
const FULL_PRINCIPALS: u32 = 2;
const SIDE: u32 = 4;

/// Everything that an allocating thread reads to find out whose its allocation is.
pub struct Identity {
    /// The loaded classes.
    pub classes: Classes,
    /// The class loaders.
    pub loaders: Loaders,
    /// Which class declares a method.
    pub methods: MethodClasses,
    /// The scopes that the program has opened.
    pub scopes: Scopes,
    /// Loaders to be named by the loader thread.
    pub new_loaders: ArrayQueue<LoaderId>,
    /// Scopes to be entered by the metadata thread.
    pub new_scopes: ArrayQueue<NewScope>,
    /// The needs of the policy in force and the side of its classification, in one word.
    view: AtomicU32,
    classifiers: [ArcSwap<Classifier>; 2],
    /// How often a side was put in force.
    switches: AtomicU32,
    /// For each purse, the purse that stands for its account.
    representatives: Box<[AtomicU16]>,
    /// For the purse of each scope inside a service, the purse that stands for the service's
    /// account; 0 is none.
    above: Box<[AtomicU16]>,
}

impl Identity {
    /// Empty tables. At start-up; commits memory for the queues and representatives.
    pub fn new() -> Identity {
        Identity {
            classes: Classes::new(),
            loaders: Loaders::new(),
            methods: MethodClasses::new(),
            scopes: Scopes::new(),
            new_loaders: ArrayQueue::new(MAX_QUEUED),
            new_scopes: ArrayQueue::new(MAX_QUEUED),
            view: AtomicU32::new(0),
            classifiers: [ArcSwap::default(), ArcSwap::default()],
            switches: AtomicU32::new(0),
            representatives: (0..=PURSES).map(AtomicU16::new).collect(),
            above: (0..=PURSES).map(|_| AtomicU16::new(0)).collect(),
        }
    }

    /// Returns the needs of the rule under the policy in force, and the side that holds its classification. Two loads;
    /// any thread.
    pub fn view(&self) -> (Needs, Side) {
        let view = self.view.load(Ordering::Acquire);
        let needs = Needs {
            packages: view & PACKAGES != 0,
            services: self.loaders.any_claimant(),
            program: self.loaders.has_program(),
            full_principals: view & FULL_PRINCIPALS != 0,
        };
        (needs, Side(usize::from(view & SIDE != 0)))
    }

    /// The package claims of a class, for both sides.
    pub fn claims_of(&self, signature: &str) -> [Claim; 2] {
        match names::package(signature) {
            Some(package) => self.classifiers.each_ref().map(|c| c.load().claim(package)),
            None => [Claim::Nobody; 2],
        }
    }

    /// Whether the policy in force, or the one that is being prepared, has package accounts.
    pub fn classifies(&self) -> bool {
        self.classifiers.iter().any(|c| !c.load().claims.is_empty())
    }

    /// Whether a class may have a claim on this purse, in force or not: the classes of a side
    /// have those that its classifier gives, and no others.
    pub fn is_claimed(&self, purse: PurseId) -> bool {
        self.classifiers.iter().any(|c| c.load().names(purse))
    }

    /// Prepares the side that is not in force. Also returns whether every known class must be given
    /// its claims before [`Identity::switch`] puts that side in force. That is unnecessary if no
    /// classifier has a claim to give, the replaced one included. The metadata thread.
    pub fn prepare(&self, classifier: Classifier) -> (Side, bool) {
        let side = self.view().1.other();
        let replaced = self.classifiers[side.0].swap(std::sync::Arc::new(classifier));
        (side, self.classifies() || !replaced.claims.is_empty())
    }

    /// Puts a prepared side in force, in one atomic step. The metadata thread.
    pub fn switch(&self, side: Side, packages: bool, full_principals: bool) {
        let mut view = 0;
        view |= if packages { PACKAGES } else { 0 };
        view |= if full_principals { FULL_PRINCIPALS } else { 0 };
        view |= if side.0 == 1 { SIDE } else { 0 };
        self.view.store(view, Ordering::Release);
        self.switches.fetch_add(1, Ordering::Release);
    }

    /// How often a policy was put in force.
    pub fn switches(&self) -> u32 {
        self.switches.load(Ordering::Acquire)
    }

    /// The purse that stands for the account of `purse`, which is also the number of its gate.
    #[inline]
    pub fn representative(&self, purse: PurseId) -> u32 {
        u32::from(self.representatives[usize::from(purse.get())].load(Ordering::Acquire))
    }

    /// Sets the purse that stands for the account of `purse`. The thread that opens a purse calls
    /// this once, so that the purse stands for itself. After that only the enforcer calls it,
    /// because it alone moves gates between accounts (see [`crate::enforce::gate`]).
    pub fn set_representative(&self, purse: PurseId, of_account: PurseId) {
        self.representatives[usize::from(purse.get())].store(of_account.get(), Ordering::Release);
    }

    /// The purse that stands for the service's account above the purse of a scope.
    #[inline]
    pub fn above(&self, purse: PurseId) -> Option<PurseId> {
        let above = self.above[usize::from(purse.get())].load(Ordering::Acquire);
        (above != PurseId::UNACCOUNTED.get()).then(|| PurseId::new(above))
    }

    /// Sets the purse of the service above a scope. Called by the same threads as
    /// [`Identity::set_representative`].
    pub fn set_above(&self, purse: PurseId, service: Option<PurseId>) {
        let service = service.unwrap_or(PurseId::UNACCOUNTED);
        self.above[usize::from(purse.get())].store(service.get(), Ordering::Release);
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
        self.classes.committed_bytes()
            + self.loaders.committed_bytes()
            + self.methods.committed_bytes()
            + self.scopes.committed_bytes()
            + (2 * self.representatives.len() * size_of::<AtomicU16>()) as u64
            + (MAX_QUEUED * (size_of::<LoaderId>() + size_of::<NewScope>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_one_step_and_keeps_what_is_known_of_services() {
        let identity = Identity::new();
        let service = loaders::LoaderOwner::Pending(PurseId::new(9));
        identity.loaders.open(service, 0).unwrap();
        let policy = policy_config::parse("[[account]]\nname = \"a\"\npackages = [\"com.a\"]\n");
        let table = policy.policy.unwrap().package_table();
        let claim = Claim::Account(PurseId::new(4));
        let (side, classify) = identity.prepare(Classifier::new(table, vec![claim]));
        assert_eq!(side, Side(1));
        assert!(classify);
        assert_eq!(identity.claims_of("Lcom/a/X;"), [Claim::Nobody, claim]);
        assert!(!identity.view().0.packages);
        identity.switch(side, true, true);
        let (needs, side) = identity.view();
        assert_eq!(
            needs,
            Needs {
                packages: true,
                services: true,
                program: false,
                full_principals: true
            }
        );
        assert_eq!(side, Side(1));
    }

    /// Two policies without packages after one with: the second prepares the side on which the
    /// classes still have the claims of the first.
    #[test]
    fn no_side_comes_into_force_with_the_claims_of_a_policy_before_it() {
        let identity = Identity::new();
        let purse = PurseId::new(4);
        let text = "[[account]]\nname = \"a\"\npackages = [\"com.a\"]\n";
        let table = policy_config::parse(text).policy.unwrap().package_table();
        let with = Classifier::new(table, vec![Claim::Account(purse)]);
        let without = || Classifier::new(PackageTable::default(), Vec::new());
        let mut seen = Vec::new();
        for classifier in [without(), with, without(), without(), without()] {
            let (side, classify) = identity.prepare(classifier);
            identity.switch(side, false, false);
            seen.push((classify, identity.is_claimed(purse)));
        }
        assert_eq!(
            seen,
            [
                (false, false),
                (true, true),
                (true, true),
                (true, false),
                (false, false)
            ]
        );
    }
}
pub mod versions;
