//! Who pays for an allocation: the principal-agent rule as a pure function.
//!
//! The rule, after ASGMemProf (Definitions 1-3) and the vocabulary of the project:
//!
//! 1. The *agent account* owns the frame closest to the allocation that belongs to any account. A
//!    frame belongs to an account by its package or, if no package pattern matches, by its loader.
//! 2. The *principal* is the service of the thread's context class loader. If that names none, it is
//!    the next different account further down the stack that is not a library. If there is none
//!    either, it is `_unaccounted`.
//! 3. The *payer* is the agent account, or the principal if the agent account is a library.
//! 4. The *program* (the class path) pays for what nobody else does: if rules 1 to 3 name no payer or no
//!    principal, it is the program, where the context class loader or a frame that was looked at is its.
//!    It is weaker than a service, because many services run with its loader as context class loader, and
//!    call classes of the class path.
//! 5. An explicit *scope* overrides rules 1 to 3. The scope is agent account and payer; the service
//!    around it is the principal.
//!
//! The rule is cheap because it asks little. Without package accounts the context loader alone
//! decides. Frames are then walked only if the context loader names no service, and only while a
//! service exists that could own them. With package accounts the walk ends at the first account. It
//! goes on for the principal only if the context loader names none, and the policy wants the full
//! matrix or the account is a library.

use crate::ledger::PurseId;

use super::loaders::LoaderOwner;

/// How many frames are looked at per sample, at most. A deeper stack is recursion.
pub const MAX_FRAMES: usize = 1024;

/// The owner of one frame's code, which says who may pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claim {
    /// Code of no account: the JDK, the container, unmatched code.
    #[default]
    Nobody,
    /// Code of an account that pays for itself.
    Account(PurseId),
    /// Code of a library, whose callers pay.
    Library(PurseId),
    /// Code of the program, which pays if nobody else does.
    Program(PurseId),
}

/// The owner that the context class loader of a thread names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context {
    /// Nobody.
    #[default]
    Nobody,
    /// A service.
    Service(PurseId),
    /// The program.
    Program(PurseId),
}

impl Context {
    /// Whom a context class loader with this owner names.
    #[inline]
    pub fn of(owner: LoaderOwner) -> Context {
        match owner {
            LoaderOwner::Pending(purse) | LoaderOwner::Service(purse) => Context::Service(purse),
            LoaderOwner::Program(purse) => Context::Program(purse),
            LoaderOwner::Nobody => Context::Nobody,
        }
    }

    fn service(self) -> Option<PurseId> {
        match self {
            Context::Service(purse) => Some(purse),
            Context::Program(_) | Context::Nobody => None,
        }
    }

    fn program(self) -> Option<PurseId> {
        match self {
            Context::Program(purse) => Some(purse),
            Context::Service(_) | Context::Nobody => None,
        }
    }
}

/// A scope that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Its own purse.
    pub purse: PurseId,
    /// A purse of the service around it; `None` outside any service.
    pub service: Option<PurseId>,
}

/// The questions that the rule may ask the allocating thread. Each of them costs time.
pub trait AllocatingThread {
    /// The scope that the program has opened on this thread.
    fn scope(&mut self) -> Option<Scope>;
    /// Whom the context class loader names.
    fn context(&mut self) -> Context;
    /// The claim of the frame at `depth` (0 is the top); `None` below the bottom.
    fn frame(&mut self, depth: usize) -> Option<Claim>;
    /// The account that a purse belongs to; an account may have several purses.
    fn account_of(&self, purse: PurseId) -> u32;
}

/// The facts about policy and loaders on which it depends how far the rule must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The policy has package accounts: frames decide before the context loader does.
    pub packages: bool,
    /// Some loader has been recognised as a service, so frames may belong to one.
    pub services: bool,
    /// The program has an account, so that frames may belong to it.
    pub program: bool,
    /// Look for the principal even if the agent account pays for itself.
    pub full_principals: bool,
}

/// The outcome of the rule: three purses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribution {
    /// The purse that is charged.
    pub payer: PurseId,
    /// The purse of the account whose code allocated.
    pub agent_account: PurseId,
    /// The purse of the account on whose behalf it allocated.
    pub principal: PurseId,
}

impl Attribution {
    const NOBODY: Attribution = Attribution {
        payer: PurseId::UNACCOUNTED,
        agent_account: PurseId::UNACCOUNTED,
        principal: PurseId::UNACCOUNTED,
    };

    /// A service that allocates for itself.
    fn own(purse: PurseId) -> Attribution {
        Attribution {
            payer: purse,
            agent_account: purse,
            principal: purse,
        }
    }
}

/// Applies the rule to the calling, allocating thread. Takes no lock and allocates nothing.
pub fn attribute(needs: Needs, thread: &mut impl AllocatingThread) -> Attribution {
    if let Some(Scope { purse, service }) = thread.scope() {
        return Attribution {
            payer: purse,
            agent_account: purse,
            principal: service.unwrap_or(purse),
        };
    }
    let mut context = None;
    if !needs.packages {
        let named = thread.context();
        match named {
            Context::Service(service) => return Attribution::own(service),
            Context::Program(program) if !needs.services => return Attribution::own(program),
            Context::Nobody if !needs.services && !needs.program => return Attribution::NOBODY,
            Context::Program(_) | Context::Nobody => {}
        }
        context = Some(named);
    }
    let mut walk = Walk::default();
    let claim = walk.next_claim(thread);
    let context = context.unwrap_or_else(|| thread.context());
    let Some(claim) = claim else {
        let payer = (context.service()).or_else(|| walk.program.or(context.program()));
        return payer.map_or(Attribution::NOBODY, Attribution::own);
    };
    let (agent_account, is_library) = match claim {
        Payer::Itself(purse) => (purse, false),
        Payer::Caller(purse) => (purse, true),
    };
    let principal = context.service().or_else(|| {
        (is_library || needs.full_principals)
            .then(|| walk.next_payer(thread, agent_account))
            .flatten()
    });
    let principal = principal
        .or(context.program())
        .or(walk.program)
        .unwrap_or(PurseId::UNACCOUNTED);
    Attribution {
        payer: if is_library { principal } else { agent_account },
        agent_account,
        principal,
    }
}

/// A frame that belongs to an account other than the program's.
enum Payer {
    Itself(PurseId),
    Caller(PurseId),
}

/// The frames that were looked at so far.
#[derive(Default)]
struct Walk {
    depth: usize,
    /// The program's purse, if one of these frames is its code.
    program: Option<PurseId>,
}

impl Walk {
    /// The next frame that belongs to anybody but the program.
    fn next_claim(&mut self, thread: &mut impl AllocatingThread) -> Option<Payer> {
        while self.depth < MAX_FRAMES {
            let claim = thread.frame(self.depth)?;
            self.depth += 1;
            match claim {
                Claim::Nobody => {}
                Claim::Program(purse) => self.program = Some(purse),
                Claim::Account(purse) => return Some(Payer::Itself(purse)),
                Claim::Library(purse) => return Some(Payer::Caller(purse)),
            }
        }
        None
    }

    /// The next account further down that differs from `agent_account` and pays for itself.
    fn next_payer(
        &mut self,
        thread: &mut impl AllocatingThread,
        agent_account: PurseId,
    ) -> Option<PurseId> {
        let own = thread.account_of(agent_account);
        loop {
            match self.next_claim(thread)? {
                Payer::Itself(purse) if thread.account_of(purse) != own => return Some(purse),
                Payer::Itself(_) | Payer::Caller(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOP: PurseId = PurseId::new(1);
    const ORDERS: PurseId = PurseId::new(2);
    const XML: PurseId = PurseId::new(3);
    const JSON: PurseId = PurseId::new(4);
    const PACKAGES: Needs = Needs {
        packages: true,
        services: true,
        program: true,
        full_principals: true,
    };
    const SERVICES: Needs = Needs {
        packages: false,
        services: true,
        program: true,
        full_principals: true,
    };

    #[derive(Debug, Default)]
    struct Thread {
        scope: Option<Scope>,
        context: Context,
        frames: Vec<Claim>,
        walked: usize,
    }

    impl AllocatingThread for Thread {
        fn scope(&mut self) -> Option<Scope> {
            self.scope
        }
        fn context(&mut self) -> Context {
            self.context
        }
        fn frame(&mut self, depth: usize) -> Option<Claim> {
            self.walked = self.walked.max(depth + 1);
            self.frames.get(depth).copied()
        }
        fn account_of(&self, purse: PurseId) -> u32 {
            // Purses 10 and 11 belong to one account.
            if purse.get() == 11 {
                10
            } else {
                u32::from(purse.get())
            }
        }
    }

    fn thread(context: Option<PurseId>, frames: &[Claim]) -> Thread {
        Thread {
            scope: None,
            context: context.map_or(Context::Nobody, Context::Service),
            frames: frames.to_vec(),
            walked: 0,
        }
    }

    use Claim::{Account, Library, Nobody};

    #[test]
    fn services_alone_walk_no_frame() {
        let mut t = thread(Some(SHOP), &[Nobody, Account(ORDERS)]);
        assert_eq!(attribute(SERVICES, &mut t), Attribution::own(SHOP));
        assert_eq!(t.walked, 0);
        let mut t = thread(None, &[Nobody, Nobody]);
        let none_known = Needs {
            services: false,
            program: false,
            ..SERVICES
        };
        assert_eq!(attribute(none_known, &mut t), Attribution::NOBODY);
        assert_eq!(t.walked, 0);
    }

    #[test]
    fn an_explicit_scope_beats_frames_and_loaders() {
        let tenant = PurseId::new(9);
        for (service, principal) in [(Some(SHOP), SHOP), (None, tenant)] {
            let mut t = thread(Some(ORDERS), &[Account(ORDERS)]);
            t.scope = Some(Scope {
                purse: tenant,
                service,
            });
            let expected = Attribution {
                payer: tenant,
                agent_account: tenant,
                principal,
            };
            assert_eq!(attribute(PACKAGES, &mut t), expected);
            assert_eq!(attribute(SERVICES, &mut t), expected);
            assert_eq!(t.walked, 0);
        }
    }

    #[test]
    fn a_service_that_clears_its_context_loader_is_found_by_its_frames() {
        let mut t = thread(None, &[Nobody, Nobody, Account(SHOP), Nobody]);
        let outcome = attribute(SERVICES, &mut t);
        assert_eq!((outcome.payer, outcome.agent_account), (SHOP, SHOP));
    }

    #[test]
    fn the_top_frame_decides_alone() {
        let mut t = thread(Some(SHOP), &[Account(ORDERS), Nobody, Account(SHOP)]);
        let outcome = attribute(PACKAGES, &mut t);
        assert_eq!(
            outcome,
            Attribution {
                payer: ORDERS,
                agent_account: ORDERS,
                principal: SHOP
            }
        );
        assert_eq!(t.walked, 1);
    }

    #[test]
    fn a_library_is_paid_for_by_the_context_service_first() {
        let mut t = thread(Some(SHOP), &[Nobody, Library(XML), Account(ORDERS)]);
        assert_eq!(
            attribute(PACKAGES, &mut t),
            Attribution {
                payer: SHOP,
                agent_account: XML,
                principal: SHOP
            }
        );
    }

    #[test]
    fn a_library_is_paid_for_by_the_next_account_that_is_no_library() {
        let mut t = thread(
            None,
            &[Library(XML), Library(JSON), Nobody, Account(ORDERS)],
        );
        assert_eq!(
            attribute(PACKAGES, &mut t),
            Attribution {
                payer: ORDERS,
                agent_account: XML,
                principal: ORDERS
            }
        );
        let mut t = thread(None, &[Library(XML), Nobody]);
        let outcome = attribute(PACKAGES, &mut t);
        assert_eq!(
            (outcome.payer, outcome.agent_account),
            (PurseId::UNACCOUNTED, XML)
        );
    }

    #[test]
    fn the_principal_is_the_next_different_account() {
        let frames = [
            Account(PurseId::new(10)),
            Account(PurseId::new(11)),
            Library(XML),
            Account(ORDERS),
        ];
        let mut t = thread(None, &frames);
        assert_eq!(attribute(PACKAGES, &mut t).principal, ORDERS);
        let mut t = thread(None, &frames);
        let payer_only = Needs {
            full_principals: false,
            ..PACKAGES
        };
        assert_eq!(
            attribute(payer_only, &mut t).principal,
            PurseId::UNACCOUNTED
        );
        assert_eq!(t.walked, 1);
    }

    const PROGRAM: PurseId = PurseId::new(20);

    /// A thread with the program's loader as context class loader, as most threads have it.
    fn of_program(frames: &[Claim]) -> Thread {
        Thread {
            context: Context::Program(PROGRAM),
            ..thread(None, frames)
        }
    }

    #[test]
    fn the_program_pays_for_what_nobody_else_does() {
        let alone = Needs {
            services: false,
            ..SERVICES
        };
        let own = Claim::Program(PROGRAM);
        let mut t = of_program(&[Nobody, own]);
        assert_eq!(attribute(alone, &mut t), Attribution::own(PROGRAM));
        assert_eq!(t.walked, 0);
        for needs in [SERVICES, PACKAGES] {
            let mut t = of_program(&[Nobody]);
            assert_eq!(attribute(needs, &mut t), Attribution::own(PROGRAM));
        }
        for needs in [alone, SERVICES, PACKAGES] {
            let mut t = thread(None, &[Nobody, own, Nobody]);
            assert_eq!(attribute(needs, &mut t), Attribution::own(PROGRAM));
            let mut t = thread(None, &[Nobody, Nobody]);
            assert_eq!(attribute(needs, &mut t), Attribution::NOBODY);
        }
    }

    #[test]
    fn the_program_gives_way_to_services_and_packages() {
        let own = Claim::Program(PROGRAM);
        // A service's task in a pool that inherited the program's loader, and a class of the class path
        // above the service's frame.
        for needs in [SERVICES, PACKAGES] {
            let outcome = attribute(needs, &mut of_program(&[own, Account(SHOP), own]));
            assert_eq!((outcome.payer, outcome.agent_account), (SHOP, SHOP));
            assert_eq!(outcome.principal, PROGRAM, "on whose behalf");
            // A request of the service into a class of the class path.
            let outcome = attribute(needs, &mut thread(Some(SHOP), &[own]));
            assert_eq!(outcome, Attribution::own(SHOP));
        }
        // The caller of a library is the program.
        let outcome = attribute(PACKAGES, &mut of_program(&[Library(XML), own]));
        assert_eq!((outcome.payer, outcome.agent_account), (PROGRAM, XML));
        // Without the full matrix no frame is looked at below the payer.
        let payer_only = Needs {
            full_principals: false,
            ..PACKAGES
        };
        let mut t = of_program(&[Account(ORDERS), own]);
        assert_eq!(attribute(payer_only, &mut t).payer, ORDERS);
        assert_eq!(t.walked, 1);
    }

    fn claim() -> impl Strategy<Value = Claim> {
        prop_oneof![
            4 => Just(Nobody),
            2 => (1u16..12).prop_map(|p| Account(PurseId::new(p))),
            1 => (12u16..16).prop_map(|p| Library(PurseId::new(p))),
        ]
    }

    proptest! {
        /// Compares with the rule as the vocabulary words it, applied to a whole stack.
        #[test]
        fn agrees_with_the_vocabulary(
            context in proptest::option::of((1u16..12).prop_map(PurseId::new)),
            frames in proptest::collection::vec(claim(), 0..40),
        ) {
            let got = attribute(PACKAGES, &mut thread(context, &frames));
            let account = |p: PurseId| if p.get() == 11 { 10 } else { p.get() };
            let owned: Vec<(PurseId, bool)> = frames.iter().filter_map(|c| match c {
                Nobody | Claim::Program(_) => None,
                Account(p) => Some((*p, true)),
                Library(p) => Some((*p, false)),
            }).collect();
            let expected = match (owned.first(), context) {
                (None, None) => Attribution::NOBODY,
                (None, Some(service)) => Attribution::own(service),
                (Some(&(agent_account, pays)), _) => {
                    let below = owned.iter().skip(1)
                        .find(|(p, pays)| *pays && account(*p) != account(agent_account))
                        .map(|(p, _)| *p);
                    let principal = context.or(below).unwrap_or(PurseId::UNACCOUNTED);
                    Attribution { payer: if pays { agent_account } else { principal }, agent_account, principal }
                }
            };
            prop_assert_eq!(got, expected);
        }
    }
}
