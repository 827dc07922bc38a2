//! The world of the model: what may happen, in any order.

use std::time::Duration;

use proptest::prelude::*;

use crate::enforce::door::Request;
use crate::enforce::enforcer::Enforcer;
use crate::enforce::gate::Counts;
use crate::ledger::PurseId;
use crate::ports::CollectorKind as Collector;

use super::deployments::{Edit, SERVICES};
use super::simulation::{Fault, Meanwhile, Simulation};
use super::threads::{Conduct, Thread};

/// How a world begins.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) collector: Collector,
    pub(super) interval_bytes: u64,
    /// For each thread, its service, what it makes of a refusal, and whether it is virtual.
    pub(super) threads: Vec<(u8, Conduct, bool)>,
    pub(super) covering_ms: u64,
    pub(super) seed: u64,
    pub(super) fault: Option<Fault>,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Allocate(Allocation),
    /// A thread lets go of so many quarters of what it holds.
    Drop {
        thread: u8,
        quarters: u8,
    },
    Pass {
        ms: u16,
    },
    Young,
    BeginCycle,
    Full,
    /// Refunds come in.
    Report(u8),
    /// The thread that reports deaths reports one more and is set aside for so long.
    Stall {
        ms: u16,
    },
    /// The enforcer has a turn; meanwhile a thread goes on, and perhaps a pause ends.
    Turn {
        meanwhile: Option<Allocation>,
        pause: bool,
    },
    Reload(Edit),
    /// A thread comes to where it may not be refused, or leaves it.
    Unsafe {
        thread: u8,
        is_unsafe: bool,
    },
    /// A thread comes to its own loop, or to a unit of work.
    Loop {
        thread: u8,
        is_loop: bool,
    },
    /// A thread's program asks not to be refused, or no longer.
    Mask {
        thread: u8,
        is_masked: bool,
    },
    /// A thread comes to a place whose methods nobody has looked up yet; they are known after so long.
    FirstSight {
        thread: u8,
        ms: u16,
    },
    /// A thread enters a scope of this name in its service, or leaves its scope.
    Scope {
        thread: u8,
        name: Option<u8>,
    },
    /// The VM refuses what the agent asks for, or no longer.
    Refuses(bool),
    /// The heap becomes short, or no longer is.
    Presses(bool),
    /// A thread comes to run a request that a shut door has let in, or not.
    LetIn {
        thread: u8,
        is_let_in: bool,
    },
    Redeploy(u8),
    NameLoaders,
    /// Reports are read: the gates' counts are taken in.
    Read,
    /// A request for a service knocks at its door.
    Knock {
        service: u8,
        lets_go: bool,
    },
    /// The probe that a service's door let in has ended.
    ProbeEnds(u8),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    pub(super) thread: u8,
    pub(super) objects: u8,
    pub(super) bytes: u32,
    /// Of four, how many are kept.
    pub(super) kept: u8,
}

pub(super) struct World {
    pub(super) jvm: Simulation,
    pub(super) enforcer: Enforcer,
    /// The scopes: service, name, purse, and the object that stands for the scope and that the program holds.
    scopes: Vec<(usize, u8, PurseId, u64)>,
    /// The loader object of each service's deployment.
    loaders: Vec<u64>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> World {
        let jvm = Simulation::new(
            setup.collector,
            setup.interval_bytes,
            setup.covering_ms,
            setup.seed,
            setup.fault,
        );
        let mut guard = jvm.state.borrow_mut();
        let state = &mut *guard;
        state.threads = (setup.threads.iter().enumerate())
            .map(|(index, &(service, conduct, is_virtual))| {
                let service = usize::from(service) % SERVICES;
                let seed = setup.seed.wrapping_add(index as u64);
                let purse = state.deployments.purse(service);
                let mut thread = Thread::new(service, purse, conduct, seed, setup.interval_bytes);
                thread.is_virtual = is_virtual;
                thread
            })
            .collect();
        state.oracle.is_exact = setup.interval_bytes == 0;
        let loaders = (0..SERVICES)
            .map(|service| state.heap.hold(state.deployments.loader_tag(service)))
            .collect();
        drop(guard);
        let enforcer = Enforcer::new(jvm.start());
        World {
            jvm,
            enforcer,
            scopes: Vec::new(),
            loaders,
        }
    }

    pub(super) fn play(&mut self, event: &Event) {
        if let Event::Turn { meanwhile, pause } = *event {
            self.turn(Meanwhile {
                allocation: meanwhile,
                pause,
            });
            return;
        }
        if let Event::Redeploy(service) = *event {
            self.redeploy(usize::from(service) % SERVICES);
            return;
        }
        if let Event::Scope { thread, name } = *event {
            let threads = self.jvm.state.borrow().threads.len();
            self.scope(usize::from(thread) % threads, name);
            return;
        }
        let core = &self.jvm.core;
        let state = &mut *self.jvm.state.borrow_mut();
        let threads = state.threads.len();
        let place = |thread: u8| usize::from(thread) % threads;
        match *event {
            Event::Turn { .. } | Event::Redeploy(_) | Event::Scope { .. } => {
                unreachable!("played above")
            }
            Event::Allocate(allocation) => state.allocate_all(core, allocation),
            Event::Drop { thread, quarters } => {
                let index = place(thread);
                // It may hold objects of scopes that it was in, and of deployments before.
                let littered = self.scopes.iter().map(|(_, _, purse, _)| *purse);
                state.oracle.littered.extend(littered);
                let thread = &state.threads[index];
                state.oracle.littered.insert(thread.purse);
                state
                    .oracle
                    .littered
                    .insert(state.deployments.purse(thread.service));
                let in_hand = thread.in_hand();
                state.heap.let_go_of(index, quarters, in_hand);
            }
            Event::Pass { ms } => state.pass(core, u64::from(ms)),
            Event::Young => state.heap.young(core),
            Event::BeginCycle => state.begin_cycle(core),
            Event::Full => state.full(core),
            Event::Report(count) => {
                let now_ms = state.now_ms;
                state.heap.report(core, now_ms, usize::from(count));
            }
            Event::Stall { ms } => {
                let now_ms = state.now_ms;
                state.heap.report(core, now_ms, 1);
                state.heap.stall(now_ms + u64::from(ms));
            }
            Event::Reload(edit) => {
                state.deployments.edit(core, edit);
                self.jvm.publish_at_once();
            }
            Event::Unsafe { thread, is_unsafe } => {
                state.threads[place(thread)].goes_to(|place| place.is_unsafe = is_unsafe);
            }
            Event::Loop { thread, is_loop } => {
                state.threads[place(thread)].goes_to(|place| place.is_loop = is_loop);
            }
            Event::Mask { thread, is_masked } => {
                state.threads[place(thread)].place.is_masked = is_masked;
            }
            Event::FirstSight { thread, ms } => {
                let known_at_ms = state.now_ms + u64::from(ms);
                state.threads[place(thread)].place.known_at_ms = known_at_ms;
            }
            Event::Refuses(refuses) => state.refuses = refuses,
            Event::Presses(is_pressed) => state.is_pressed = is_pressed,
            Event::LetIn { thread, is_let_in } => {
                state.threads[place(thread)].goes_to(|place| place.is_let_in = is_let_in);
            }
            Event::NameLoaders => {
                state.deployments.name_loaders(core);
                self.jvm.publish_at_once();
            }
            Event::Read => core.enforcement.drain(),
            Event::Knock { service, lets_go } => {
                let payer = state.deployments.purse(usize::from(service) % SERVICES);
                let method = if lets_go { "DELETE" } else { "POST" };
                let request = Request {
                    method,
                    path: "/shelf",
                    route: 0,
                };
                let answer = core.knock(payer, request, state.now_ms);
                (state.oracle).answered(core, payer, answer, state.now_ms);
            }
            Event::ProbeEnds(service) => {
                let payer = state.deployments.purse(usize::from(service) % SERVICES);
                if let Some(ticket) = state.oracle.probe_ends(core, payer) {
                    core.probe_ended(payer, ticket, state.now_ms);
                }
            }
        }
    }

    /// Checks, when a history is over, that counts were neither lost nor made twice.
    pub(super) fn end(&mut self) {
        let sum = self.counted();
        let state = self.jvm.state.borrow();
        let counted = sum.due() + sum.admission_refusals;
        assert_eq!(counted, state.oracle.counted, "counts were lost");
        // The time for which threads were slowed after refusals comes on top.
        assert!(
            sum.waited_ms >= state.oracle.waited_ms,
            "of {} ms that was waited, {} ms was counted",
            state.oracle.waited_ms,
            sum.waited_ms
        );
        let statuses = self.jvm.core.enforcement.statuses();
        let at_places = statuses.all_statuses().map(|(_, status)| {
            let listed = status.places.listed().into_iter();
            listed.map(|place| place.count).sum::<u64>() + status.places.elsewhere()
        });
        assert!(
            at_places.sum::<u64>() <= sum.refusals + sum.would_refuse,
            "a refusal was counted at two places"
        );
    }

    /// A turn of the enforcer, and how long it would rest.
    pub(super) fn turn(&mut self, meanwhile: Meanwhile) -> Duration {
        let core = &self.jvm.core;
        if self.jvm.fault == Some(Fault::LateNotes) {
            core.enforcement.gates.begin(core.ledger.epochs().current());
        }
        self.jvm.meanwhile.set(Some(meanwhile));
        let pending = core.ledger.epochs().pending();
        let mut again = self.enforcer.turn(core, &self.jvm);
        if self.jvm.fault == Some(Fault::YoungConvicts)
            && let Some(epoch) = pending
        {
            core.ledger.epochs().confirm_cover(epoch);
        }
        self.jvm.meanwhile.set(None);
        for _ in 0..3 {
            if again.is_zero() {
                again = self.enforcer.turn(core, &self.jvm);
            }
        }
        self.check_exceptions();
        again
    }

    /// Every purse has the exceptions of its account, whenever it was opened.
    fn check_exceptions(&self) {
        let core = &self.jvm.core;
        let directory = core.directory();
        let exceptions = core.throw_points.exceptions.load();
        for (name, account) in directory.accounts().filter(|(_, a)| a.rule.is_some()) {
            for &purse in &account.purses {
                let standing = PurseId::new(core.identity.representative(purse) as u16);
                let number = exceptions.payer(standing).number;
                // Each rule of the model has some.
                let number = number.map(|number| number as usize);
                assert_eq!(number, account.rule, "the exceptions of {name}");
            }
        }
    }

    /// A thread enters or leaves a scope.
    fn scope(&mut self, index: usize, name: Option<u8>) {
        let core = &self.jvm.core;
        let state = &mut *self.jvm.state.borrow_mut();
        let service = state.threads[index].service;
        let Some(name) = name.map(|name| name % 3) else {
            state.threads[index].purse = state.deployments.purse(service);
            return;
        };
        let open = (self.scopes.iter()).find(|(of, is, ..)| (*of, *is) == (service, name));
        if let Some((_, _, purse, _)) = open {
            state.threads[index].purse = *purse;
        } else if let Some((purse, tag)) = state.deployments.open_scope(core, service, name) {
            if let Some(above) = core.identity.above(purse) {
                state.oracle.scope_opens(purse, u32::from(above.get()));
            }
            let object = state.heap.hold(tag);
            self.scopes.push((service, name, purse, object));
            state.threads[index].purse = purse;
        }
    }

    /// The threads of a service run a new deployment of it; the old one is garbage, with its scopes.
    fn redeploy(&mut self, service: usize) {
        let core = &self.jvm.core;
        let state = &mut *self.jvm.state.borrow_mut();
        let Some((before, deployment)) = state.deployments.redeploy(core, service) else {
            return;
        };
        let loader = state.heap.hold(deployment.tag);
        let loader_before = std::mem::replace(&mut self.loaders[service], loader);
        state.heap.let_go(loader_before);
        // The account it joins may have shown garbage before.
        state
            .oracle
            .littered
            .extend([before.purse, deployment.purse]);
        for (_, _, purse, object) in self.scopes.extract_if(.., |(of, ..)| *of == service) {
            state.oracle.littered.insert(purse);
            state.heap.let_go(object);
        }
        for index in 0..state.threads.len() {
            if state.threads[index].service == service {
                let thread = &mut state.threads[index];
                thread.purse = deployment.purse;
                let in_hand = thread.in_hand();
                state.heap.let_go_of(index, 4, in_hand);
            }
        }
    }

    /// All that the statuses and the gates have counted.
    fn counted(&mut self) -> Counts {
        self.jvm.core.enforcement.drain();
        let mut sum = Counts::default();
        for counts in self.jvm.core.enforcement.statuses().all_counts() {
            sum.add(counts);
        }
        sum
    }
}

pub(super) fn setup(interval_bytes: impl Strategy<Value = u64>) -> impl Strategy<Value = Setup> {
    let conduct = prop_oneof![
        Just(Conduct::Catch),
        Just(Conduct::DropHalf),
        Just(Conduct::DropAll)
    ];
    let collector = prop_oneof![
        Just(Collector::G1),
        Just(Collector::StopTheWorld),
        Just(Collector::Whole),
        Just(Collector::GenerationalZgc)
    ];
    (
        collector,
        interval_bytes,
        prop::collection::vec((0u8..3, conduct, prop::bool::weighted(0.2)), 1..5),
        10u64..400,
        any::<u64>(),
    )
        .prop_map(
            |(collector, interval_bytes, threads, covering_ms, seed)| Setup {
                collector,
                interval_bytes,
                threads,
                covering_ms,
                seed,
                fault: None,
            },
        )
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let bytes = prop_oneof![6 => Just(1024u32), 3 => Just(4096), 1 => 16u32..200_000];
    (0u8..4, 1u8..40, bytes, 0u8..=4).prop_map(|(thread, objects, bytes, kept)| Allocation {
        thread,
        objects,
        bytes,
        kept,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let limit = || prop::option::weighted(0.85, prop::sample::select(vec![30, 60, 100, 130, 300]));
    prop_oneof![
        4 => (0u8..3, limit()).prop_map(|(account, limit)| Edit::Limit(account, limit)),
        1 => (0u8..3, limit()).prop_map(|(account, limit)| Edit::SoftLimit(account, limit)),
        2 => any::<bool>().prop_map(|enforced| Edit::Mode { enforced }),
        2 => (0u8..3, 0u8..4).prop_map(|(account, name)| Edit::Rename(account, name)),
        2 => (0u8..3, 0u8..5).prop_map(|(account, glob)| Edit::Match { account, glob }),
        1 => limit().prop_map(Edit::ScopeLimit),
        1 => (0u16..50).prop_map(Edit::Mask),
        1 => (0u8..3, 0u8..3).prop_map(|(one, other)| Edit::Swap(one, other)),
        1 => (0u8..3, any::<bool>()).prop_map(|(account, is_off)| Edit::Door { account, is_off }),
        3 => prop::bool::weighted(0.8).prop_map(Edit::Fitted),
    ]
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => allocation().prop_map(Event::Allocate),
        2 => (0u8..4, 1u8..=4).prop_map(|(thread, quarters)| Event::Drop { thread, quarters }),
        5 => (1u16..3000).prop_map(|ms| Event::Pass { ms }),
        3 => (1u16..60).prop_map(|ms| Event::Pass { ms }),
        3 => Just(Event::Young),
        2 => Just(Event::BeginCycle),
        2 => Just(Event::Full),
        3 => (1u8..60).prop_map(Event::Report),
        2 => (1u16..2000).prop_map(|ms| Event::Stall { ms }),
        12 => (prop::option::of(allocation()), any::<bool>())
            .prop_map(|(meanwhile, pause)| Event::Turn { meanwhile, pause }),
        3 => edit().prop_map(Event::Reload),
        1 => (0u8..4, any::<bool>())
            .prop_map(|(thread, is_unsafe)| Event::Unsafe { thread, is_unsafe }),
        1 => (0u8..4, any::<bool>())
            .prop_map(|(thread, is_loop)| Event::Loop { thread, is_loop }),
        1 => (0u8..4, any::<bool>())
            .prop_map(|(thread, is_masked)| Event::Mask { thread, is_masked }),
        1 => (0u8..4, 1u16..300).prop_map(|(thread, ms)| Event::FirstSight { thread, ms }),
        2 => (0u8..4, prop::option::weighted(0.7, 0u8..3))
            .prop_map(|(thread, name)| Event::Scope { thread, name }),
        1 => any::<bool>().prop_map(Event::Refuses),
        2 => any::<bool>().prop_map(Event::Presses),
        1 => (0u8..4, any::<bool>())
            .prop_map(|(thread, is_let_in)| Event::LetIn { thread, is_let_in }),
        1 => (0u8..3).prop_map(Event::Redeploy),
        2 => Just(Event::NameLoaders),
        1 => Just(Event::Read),
        6 => (0u8..3, prop::bool::weighted(0.2))
            .prop_map(|(service, lets_go)| Event::Knock { service, lets_go }),
        2 => (0u8..3).prop_map(Event::ProbeEnds),
    ]
}
