//! The world of the model: what may happen, in any order.

use std::time::Duration;

use proptest::prelude::*;

use crate::enforce::gate::Counts;
use crate::jvm::collections::Collector;

use super::directory::{Directory, Edit};
use super::heap::Heap;
use super::jvm::{Fault, Jvm, Shared};
use super::threads::{Conduct, Thread};
use super::warden::Warden;

/// How a world begins.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) collector: Collector,
    pub(super) interval_bytes: u64,
    /// For each thread, its service and what it makes of a refusal.
    pub(super) threads: Vec<(u8, Conduct)>,
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
    /// The warden has a turn; meanwhile a thread goes on, and perhaps a pause ends.
    Warden {
        meanwhile: Option<Allocation>,
        pause: bool,
    },
    Reload(Edit),
    /// A thread comes to where it may not be refused, or leaves it.
    Unsafe {
        thread: u8,
        is_unsafe: bool,
    },
    /// The VM refuses what the agent asks for, or no longer.
    Refuses(bool),
    Redeploy(u8),
    NameLoaders,
    /// Reports are read: the gates' counts are taken in.
    Read,
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
    pub(super) shared: Shared,
    pub(super) jvm: Jvm,
    pub(super) directory: Directory,
    pub(super) warden: Warden,
    services: Vec<usize>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> World {
        const SERVICES: usize = 3;
        let shared = Shared::new(setup.interval_bytes, setup.fault);
        let directory = Directory::new(&shared.ledger, SERVICES);
        let services: Vec<usize> = (setup.threads.iter())
            .map(|(service, _)| usize::from(*service) % SERVICES)
            .collect();
        let threads = (services.iter().zip(&setup.threads).enumerate())
            .map(|(index, (&service, &(_, conduct)))| {
                let seed = setup.seed.wrapping_add(index as u64);
                let purse = directory.first_purse(service);
                Thread::new(purse, conduct, seed, setup.interval_bytes)
            })
            .collect();
        let heap = Heap::new(setup.collector, setup.seed, setup.fault);
        let mut jvm = Jvm::new(heap, threads, setup.covering_ms);
        jvm.oracle.is_exact = setup.interval_bytes == 0;
        World {
            shared,
            jvm,
            directory,
            warden: Warden::default(),
            services,
        }
    }

    pub(super) fn play(&mut self, event: &Event) {
        let threads = self.services.len();
        let place = |thread: u8| usize::from(thread) % threads;
        match *event {
            Event::Allocate(allocation) => allocate(&self.shared, &mut self.jvm, allocation),
            Event::Drop { thread, quarters } => {
                let thread = place(thread);
                let purse = self.jvm.threads[thread].purse;
                self.jvm.oracle.littered.insert(purse);
                let in_hand = self.jvm.threads[thread].in_hand();
                self.jvm.heap.let_go_of(thread, quarters, in_hand);
            }
            Event::Pass { ms } => self.jvm.pass(&self.shared, u64::from(ms)),
            Event::Young => self.jvm.young(&self.shared),
            Event::BeginCycle => self.jvm.begin_cycle(&self.shared),
            Event::Full => match self.jvm.heap.collector {
                Collector::Whole => self.jvm.begin_cycle(&self.shared),
                _ => self.jvm.full(&self.shared),
            },
            Event::Report(count) => {
                let now_ms = self.jvm.now_ms;
                (self.jvm.heap).report(&self.shared.ledger, now_ms, usize::from(count));
            }
            Event::Stall { ms } => {
                let now_ms = self.jvm.now_ms;
                self.jvm.heap.report(&self.shared.ledger, now_ms, 1);
                self.jvm.heap.stall(now_ms + u64::from(ms));
            }
            Event::Warden { meanwhile, pause } => {
                self.warden(&mut |shared, jvm| {
                    if let Some(allocation) = meanwhile {
                        allocate(shared, jvm, allocation);
                    }
                    if pause {
                        jvm.young(shared);
                    }
                });
            }
            Event::Reload(edit) => {
                self.directory.edit(edit);
                self.publish_at_once();
            }
            Event::Unsafe { thread, is_unsafe } => {
                self.jvm.threads[place(thread)].is_unsafe = is_unsafe;
            }
            Event::Refuses(refuses) => self.jvm.refuses = refuses,
            Event::Redeploy(service) => self.redeploy(usize::from(service)),
            Event::NameLoaders => {
                self.directory.name_loaders();
                self.publish_at_once();
            }
            Event::Read => self.warden.docket.drain(&self.shared.gates),
        }
    }

    /// What holds when a history is over.
    pub(super) fn end(&mut self) {
        assert_eq!(self.counted(), self.jvm.oracle.counted, "counts were lost");
    }

    /// A turn of the warden, and how long it would rest.
    pub(super) fn warden(&mut self, meanwhile: &mut dyn FnMut(&Shared, &mut Jvm)) -> Duration {
        (self.warden).turn(&self.shared, &mut self.jvm, &mut self.directory, meanwhile)
    }

    fn publish_at_once(&self) {
        if self.shared.fault == Some(Fault::GatesAtOnce) {
            for (purse, gate) in self.directory.gates() {
                self.shared.set_gate_of(purse, gate);
            }
        }
    }

    /// The threads of a service run a new deployment of it; the old one is garbage.
    fn redeploy(&mut self, service: usize) {
        let service = service % self.directory.services();
        let Some(purse) = self.directory.redeploy(&self.shared.ledger, service) else {
            return;
        };
        self.shared.set_gate_of(purse, u32::from(purse.get()));
        // The account it joins may have shown garbage before.
        self.jvm.oracle.littered.insert(purse);
        for index in 0..self.services.len() {
            if self.services[index] == service {
                let thread = &mut self.jvm.threads[index];
                self.jvm.oracle.littered.insert(thread.purse);
                thread.purse = purse;
                let in_hand = thread.in_hand();
                self.jvm.heap.let_go_of(index, 4, in_hand);
            }
        }
    }

    /// All that the docket and the gates have counted.
    fn counted(&mut self) -> u64 {
        self.warden.docket.drain(&self.shared.gates);
        let mut sum = Counts::default();
        for counts in self.warden.docket.all_counts() {
            sum.add(counts);
        }
        sum.due()
    }
}

pub(super) fn allocate(shared: &Shared, jvm: &mut Jvm, allocation: Allocation) {
    let thread = usize::from(allocation.thread) % jvm.threads.len();
    for number in 0..allocation.objects {
        let is_kept = number % 4 < allocation.kept;
        jvm.allocate(shared, thread, u64::from(allocation.bytes), is_kept);
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
        Just(Collector::Whole)
    ];
    (
        collector,
        interval_bytes,
        prop::collection::vec((0u8..3, conduct), 1..5),
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
        2 => (0u8..3, 0u8..3).prop_map(|(service, account)| Edit::Move { service, account }),
        1 => (0u8..3, 0u8..3).prop_map(|(one, other)| Edit::Swap(one, other)),
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
            .prop_map(|(meanwhile, pause)| Event::Warden { meanwhile, pause }),
        3 => edit().prop_map(Event::Reload),
        1 => (0u8..4, any::<bool>())
            .prop_map(|(thread, is_unsafe)| Event::Unsafe { thread, is_unsafe }),
        1 => any::<bool>().prop_map(Event::Refuses),
        1 => (0u8..3).prop_map(Event::Redeploy),
        2 => Just(Event::NameLoaders),
        1 => Just(Event::Read),
    ]
}
