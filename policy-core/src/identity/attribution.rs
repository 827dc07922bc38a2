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
//! 4. An explicit *scope* overrides rules 1 to 3. The scope is agent account and payer; the service
//!    around it is the principal.
//!
//! The rule is cheap because it asks little. Without package accounts the context loader alone
//! decides. Frames are then walked only if the context loader names no service, and only while a
//! service exists that could own them. With package accounts the walk ends at the first account. It
//! goes on for the principal only if the context loader names none, and the policy wants the full
//! matrix or the account is a library.

use crate::ledger::PurseId;

/// How many frames are looked at per sample, at most. A deeper stack is recursion.
pub const MOST_FRAMES: usize = 1024;

/// What one frame says about ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claim {
    /// Code of no account: the JDK, the container, unmatched code.
    #[default]
    Nobody,
    /// Code of an account that pays for itself.
    Account(PurseId),
    /// Code of a library, whose callers pay.
    Library(PurseId),
}

/// A scope that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Its own purse.
    pub purse: PurseId,
    /// A purse of the service around it; `None` outside any service.
    pub service: Option<PurseId>,
}

/// What the rule may ask the allocating thread. Each question costs time.
pub trait AllocatingThread {
    /// The scope that the program has opened on this thread.
    fn scope(&mut self) -> Option<Scope>;
    /// The purse of the service that the context class loader names.
    fn context_service(&mut self) -> Option<PurseId>;
    /// The claim of the frame at `depth` (0 is the top); `None` below the bottom.
    fn frame(&mut self, depth: usize) -> Option<Claim>;
    /// The account that a purse belongs to; an account may have several purses.
    fn account_of(&self, purse: PurseId) -> u32;
}

/// What the policy in force needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The policy has package accounts: frames decide before the context loader does.
    pub packages: bool,
    /// Some loader has been recognised as a service, so frames may belong to one.
    pub services: bool,
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
        if let Some(service) = thread.context_service() {
            return Attribution::own(service);
        }
        if !needs.services {
            return Attribution::NOBODY;
        }
        context = Some(None);
    }
    let mut walk = 0..MOST_FRAMES;
    let Some(claim) = next_claim(&mut walk, thread) else {
        return match context.unwrap_or_else(|| thread.context_service()) {
            Some(service) => Attribution::own(service),
            None => Attribution::NOBODY,
        };
    };
    let context = context.unwrap_or_else(|| thread.context_service());
    match claim {
        Claim::Library(agent_account) => {
            let principal = context
                .or_else(|| next_payer(&mut walk, thread, agent_account))
                .unwrap_or(PurseId::UNACCOUNTED);
            Attribution {
                payer: principal,
                agent_account,
                principal,
            }
        }
        Claim::Account(agent_account) => {
            let principal = context
                .or_else(|| {
                    needs
                        .full_principals
                        .then(|| next_payer(&mut walk, thread, agent_account))
                        .flatten()
                })
                .unwrap_or(PurseId::UNACCOUNTED);
            Attribution {
                payer: agent_account,
                agent_account,
                principal,
            }
        }
        Claim::Nobody => Attribution::NOBODY,
    }
}

/// The next frame that belongs to anybody.
fn next_claim(
    walk: &mut std::ops::Range<usize>,
    thread: &mut impl AllocatingThread,
) -> Option<Claim> {
    for depth in walk {
        match thread.frame(depth)? {
            Claim::Nobody => {}
            claim => return Some(claim),
        }
    }
    None
}

/// The next account further down that differs from `agent_account` and pays for itself.
fn next_payer(
    walk: &mut std::ops::Range<usize>,
    thread: &mut impl AllocatingThread,
    agent_account: PurseId,
) -> Option<PurseId> {
    let own = thread.account_of(agent_account);
    loop {
        match next_claim(walk, thread)? {
            Claim::Account(purse) if thread.account_of(purse) != own => return Some(purse),
            _ => {}
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
        full_principals: true,
    };
    const SERVICES: Needs = Needs {
        packages: false,
        services: true,
        full_principals: true,
    };

    #[derive(Debug, Default)]
    struct Thread {
        scope: Option<Scope>,
        context: Option<PurseId>,
        frames: Vec<Claim>,
        walked: usize,
    }

    impl AllocatingThread for Thread {
        fn scope(&mut self) -> Option<Scope> {
            self.scope
        }
        fn context_service(&mut self) -> Option<PurseId> {
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
            context,
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
                Nobody => None,
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
