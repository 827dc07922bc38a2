//! Who pays for an allocation: the principal-agent rule as a pure function.
//!
//! The rule, after ASGMemProf (Definitions 1-3) and the vocabulary of the project:
//!
//! 1. The *agent* account is that of the frame closest to the allocation that belongs to
//!    any account, by its package or, where no package pattern matches, by its loader.
//! 2. The *principal* is the service of the thread's context class loader; where that names
//!    none, the next different account further down the stack that is not a library;
//!    where there is none either, `_unaccounted`.
//! 3. The *payer* is the agent, or its principal where the agent is a library.
//!
//! 4. Where the program has said whose work this is, none of that is asked: an explicit *scope*
//!    is agent and payer, and the service that it is inside of the principal.
//!
//! What makes it cheap is what it does not ask. Without package accounts the context loader
//! alone decides and no frame is walked; frames are walked only for threads whose context
//! loader names no service, and only while some service exists that could own them. With
//! package accounts the walk ends at the first account; it goes on for the principal only
//! where the context loader names none and the policy wants the full matrix, or a library
//! must find its payer.

use crate::ledger::PurseId;

/// Frames looked at per sample at the most. Beyond it a stack is recursion.
pub(crate) const MOST_FRAMES: usize = 1024;

/// What one frame says about ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Claim {
    /// Nobody's: the JDK, the container, unmatched code.
    #[default]
    Nobody,
    /// Code of an account that pays for itself.
    Account(PurseId),
    /// Code of a library, whose callers pay.
    Library(PurseId),
}

/// A scope that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Its own purse.
    pub(crate) purse: PurseId,
    /// A purse of the service that it is inside of.
    pub(crate) service: Option<PurseId>,
}

/// What the rule may ask of the allocating thread; each question costs.
pub(crate) trait AllocatingThread {
    /// The scope that the program has opened on this thread.
    fn scope(&mut self) -> Option<Scope>;
    /// The purse of the service that the context class loader names.
    fn context_service(&mut self) -> Option<PurseId>;
    /// The claim of the frame at `depth` (0 is the top); `None` below the bottom.
    fn frame(&mut self, depth: usize) -> Option<Claim>;
    /// The account that a purse belongs to: two purses may be one account's.
    fn account_of(&self, purse: PurseId) -> u32;
}

/// What the policy in force needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    /// There are package accounts: frames decide before the context loader does.
    pub(crate) packages: bool,
    /// Some loader has been recognised as a service, so frames may belong to one.
    pub(crate) services: bool,
    /// Walk on for the principal of an agent that pays itself.
    pub(crate) full_principals: bool,
}

/// The outcome: three purses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bill {
    /// Who is charged.
    pub(crate) payer: PurseId,
    /// Whose code allocated.
    pub(crate) agent: PurseId,
    /// On whose behalf.
    pub(crate) principal: PurseId,
}

impl Bill {
    const NOBODY: Bill = Bill {
        payer: PurseId::UNACCOUNTED,
        agent: PurseId::UNACCOUNTED,
        principal: PurseId::UNACCOUNTED,
    };

    /// A service that allocates for itself.
    fn own(purse: PurseId) -> Bill {
        Bill {
            payer: purse,
            agent: purse,
            principal: purse,
        }
    }
}

/// Applies the rule.
pub(crate) fn bill(needs: Needs, thread: &mut impl AllocatingThread) -> Bill {
    if let Some(Scope { purse, service }) = thread.scope() {
        return Bill {
            payer: purse,
            agent: purse,
            principal: service.unwrap_or(purse),
        };
    }
    let mut context = None;
    if !needs.packages {
        if let Some(service) = thread.context_service() {
            return Bill::own(service);
        }
        if !needs.services {
            return Bill::NOBODY;
        }
        context = Some(None);
    }
    let mut walk = 0..MOST_FRAMES;
    let Some(claim) = next_claim(&mut walk, thread) else {
        return match context.unwrap_or_else(|| thread.context_service()) {
            Some(service) => Bill::own(service),
            None => Bill::NOBODY,
        };
    };
    let context = context.unwrap_or_else(|| thread.context_service());
    match claim {
        Claim::Library(agent) => {
            let principal = context
                .or_else(|| next_payer(&mut walk, thread, agent))
                .unwrap_or(PurseId::UNACCOUNTED);
            Bill {
                payer: principal,
                agent,
                principal,
            }
        }
        Claim::Account(agent) => {
            let principal = context
                .or_else(|| {
                    needs
                        .full_principals
                        .then(|| next_payer(&mut walk, thread, agent))
                        .flatten()
                })
                .unwrap_or(PurseId::UNACCOUNTED);
            Bill {
                payer: agent,
                agent,
                principal,
            }
        }
        Claim::Nobody => Bill::NOBODY,
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

/// The next account further down that differs from `agent` and pays for itself.
fn next_payer(
    walk: &mut std::ops::Range<usize>,
    thread: &mut impl AllocatingThread,
    agent: PurseId,
) -> Option<PurseId> {
    let own = thread.account_of(agent);
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
            // Purses 10 and 11 are one account's.
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
        assert_eq!(bill(SERVICES, &mut t), Bill::own(SHOP));
        assert_eq!(t.walked, 0);
        let mut t = thread(None, &[Nobody, Nobody]);
        let none_known = Needs {
            services: false,
            ..SERVICES
        };
        assert_eq!(bill(none_known, &mut t), Bill::NOBODY);
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
            let expected = Bill {
                payer: tenant,
                agent: tenant,
                principal,
            };
            assert_eq!(bill(PACKAGES, &mut t), expected);
            assert_eq!(bill(SERVICES, &mut t), expected);
            assert_eq!(t.walked, 0);
        }
    }

    #[test]
    fn a_service_that_clears_its_context_loader_is_found_by_its_frames() {
        let mut t = thread(None, &[Nobody, Nobody, Account(SHOP), Nobody]);
        let b = bill(SERVICES, &mut t);
        assert_eq!((b.payer, b.agent), (SHOP, SHOP));
    }

    #[test]
    fn the_top_frame_decides_alone() {
        let mut t = thread(Some(SHOP), &[Account(ORDERS), Nobody, Account(SHOP)]);
        let b = bill(PACKAGES, &mut t);
        assert_eq!(
            b,
            Bill {
                payer: ORDERS,
                agent: ORDERS,
                principal: SHOP
            }
        );
        assert_eq!(t.walked, 1);
    }

    #[test]
    fn a_library_passes_the_bill_to_the_context_service_first() {
        let mut t = thread(Some(SHOP), &[Nobody, Library(XML), Account(ORDERS)]);
        assert_eq!(
            bill(PACKAGES, &mut t),
            Bill {
                payer: SHOP,
                agent: XML,
                principal: SHOP
            }
        );
    }

    #[test]
    fn a_library_passes_the_bill_down_the_stack_past_other_libraries() {
        let mut t = thread(
            None,
            &[Library(XML), Library(JSON), Nobody, Account(ORDERS)],
        );
        assert_eq!(
            bill(PACKAGES, &mut t),
            Bill {
                payer: ORDERS,
                agent: XML,
                principal: ORDERS
            }
        );
        let mut t = thread(None, &[Library(XML), Nobody]);
        let b = bill(PACKAGES, &mut t);
        assert_eq!((b.payer, b.agent), (PurseId::UNACCOUNTED, XML));
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
        assert_eq!(bill(PACKAGES, &mut t).principal, ORDERS);
        let mut t = thread(None, &frames);
        let payer_only = Needs {
            full_principals: false,
            ..PACKAGES
        };
        assert_eq!(bill(payer_only, &mut t).principal, PurseId::UNACCOUNTED);
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
        /// The rule as the vocabulary words it, read off a whole stack.
        #[test]
        fn agrees_with_the_vocabulary(
            context in proptest::option::of((1u16..12).prop_map(PurseId::new)),
            frames in proptest::collection::vec(claim(), 0..40),
        ) {
            let got = bill(PACKAGES, &mut thread(context, &frames));
            let account = |p: PurseId| if p.get() == 11 { 10 } else { p.get() };
            let owned: Vec<(PurseId, bool)> = frames.iter().filter_map(|c| match c {
                Nobody => None,
                Account(p) => Some((*p, true)),
                Library(p) => Some((*p, false)),
            }).collect();
            let expected = match (owned.first(), context) {
                (None, None) => Bill::NOBODY,
                (None, Some(service)) => Bill::own(service),
                (Some(&(agent, pays)), _) => {
                    let below = owned.iter().skip(1)
                        .find(|(p, pays)| *pays && account(*p) != account(agent))
                        .map(|(p, _)| *p);
                    let principal = context.or(below).unwrap_or(PurseId::UNACCOUNTED);
                    Bill { payer: if pays { agent } else { principal }, agent, principal }
                }
            };
            prop_assert_eq!(got, expected);
        }
    }
}
