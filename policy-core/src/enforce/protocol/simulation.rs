//! The simulated JVM behind the core's ports: a clock, the heap, the collector's own doings, the
//! tenants' threads. Where the core sleeps or waits for a collection, time passes for all of them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::{Core, Setup};
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::enforce::place_name::PlaceName;
use crate::enforce::ports::{self as enforce_ports, LoggedRefusal};
use crate::identity::loaders::LoaderId;
use crate::ledger::PurseId;
use crate::ports::{
    self, CollectorInfo, CollectorKind as Collector, Delivery, Ended, Means, Offer, Token,
};

use super::deployments::Deployments;
use super::heap::Heap;
use super::oracle::Oracle;
use super::threads::Thread;
use super::world::Allocation;

/// The maximum heap.
pub(super) const MAX_HEAP_BYTES: u64 = 16 << 20;
/// The free bytes of a heap that is short: less than a tenth, and more than canaries need.
const SHORT_BYTES: u64 = 1300 << 10;
/// Purses there can be.
const MAX_PURSES: u32 = 64;
/// A batch of refunds is reported at this pace once it has begun, while its thread is not set
/// aside.
const TICK_MS: u64 = 5;
const REPORTED_PER_TICK: usize = 12;
/// G1's service thread looks at its flag so often while it is on, and while it is off.
const SERVICE_MS: (u64, u64) = (100, 1000);

/// A rule that is broken on purpose by the JVM or by what is around the core, to see that the model
/// notices. (Rules of the core itself are broken by hand.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The survivors of a young collection count as proof that an account is over.
    YoungConvicts,
    /// Refunds are not waited for: the kernel shows the thread that reports them asleep.
    Hasty,
    /// The kernel does not show that thread, and refunds come late.
    ByQuiet,
    /// The bytes spent at the gates are noted some time after the pause.
    LateNotes,
    /// Gates change hands when the policy is read, not in the enforcer's turn.
    GatesAtOnce,
}

/// The acts of the tenants in the middle of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meanwhile {
    pub(super) allocation: Option<Allocation>,
    pub(super) pause: bool,
}

/// The simulated JVM. See the module.
pub(super) struct Simulation {
    pub(super) core: Core,
    pub(super) state: RefCell<State>,
    pub(super) fault: Option<Fault>,
    /// The acts that are due in the middle of the next turn.
    pub(super) meanwhile: Cell<Option<Meanwhile>>,
    /// How often the collector's threads were looked for: once for each request after a rest.
    requests_begun: Cell<u32>,
    start: Instant,
}

/// The part of the simulation that changes.
pub(super) struct State {
    /// When the clock began.
    start: Instant,
    pub(super) now_ms: u64,
    pub(super) heap: Heap,
    pub(super) threads: Vec<Thread>,
    pub(super) deployments: Deployments,
    pub(super) oracle: Oracle,
    /// The VM refuses what the agent asks for.
    pub(super) refuses: bool,
    /// The collection that another thread waits for, and how one has ended.
    called: Option<Called>,
    ended: Option<Ended>,
    /// The heap is short: others hold nearly all of it.
    pub(super) is_pressed: bool,
    /// How long a collection of all memory takes.
    covering_ms: u64,
    /// G1's flag, and when its service thread looks at it next.
    flag: bool,
    service_at_ms: u64,
    cycles_begun: u64,
    /// Classes in stock, and whether a pair of arrays is.
    stock: (usize, bool),
    /// Places that are not named yet.
    pub(super) new_places: Vec<(Arc<PlaceCounts>, u32, PlaceKey)>,
}

/// A collection that was called for and lasts over turns of the enforcer.
#[derive(Debug, Clone, Copy)]
enum Called {
    /// It ends with the concurrent cycle.
    Cycle,
    /// It stops the world at that time.
    Full { at_ms: u64 },
}

impl Simulation {
    pub(super) fn new(
        collector: Collector,
        interval_bytes: u64,
        covering_ms: u64,
        seed: u64,
        fault: Option<Fault>,
    ) -> Simulation {
        let core = Core::with_purses(Setup::of_test(1 << 16), MAX_PURSES);
        (core.ledger.intervals())
            .set(interval_bytes)
            .expect("an interval");
        core.heap.set_max_bytes(MAX_HEAP_BYTES);
        let deployments = Deployments::new(&core);
        let start = Instant::now();
        let state = State {
            start,
            now_ms: 0,
            heap: Heap::new(collector, seed, fault),
            threads: Vec::new(),
            deployments,
            oracle: Oracle::default(),
            refuses: false,
            called: None,
            ended: None,
            is_pressed: false,
            covering_ms,
            flag: false,
            service_at_ms: 0,
            cycles_begun: 0,
            stock: (0, false),
            new_places: Vec::new(),
        };
        Simulation {
            core,
            state: RefCell::new(state),
            fault,
            meanwhile: Cell::new(None),
            requests_begun: Cell::new(0),
            start,
        }
    }

    /// When the clock began.
    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// How many requests for evidence have begun, each after a rest.
    pub(super) fn requests_begun(&self) -> u32 {
        self.requests_begun.get()
    }

    /// Gates change hands when the policy is read, where that is the fault.
    pub(super) fn publish_at_once(&self) {
        if self.fault == Some(Fault::GatesAtOnce) {
            let directory = self.core.directory();
            for (purse, first) in directory.representatives() {
                self.core.identity.set_representative(purse, first);
            }
        }
    }

    /// Whether another thread waits for a collection.
    pub(super) fn is_collecting(&self) -> bool {
        self.state.borrow().called.is_some()
    }

    pub(super) fn pass(&self, ms: u64) {
        self.state.borrow_mut().pass(&self.core, ms);
    }

    /// The turn begins to publish what it has found: tenants act now.
    fn turn_goes_on(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.oracle.turn_begins(&self.core)
            && let Some(Meanwhile { allocation, pause }) = self.meanwhile.take()
        {
            if let Some(allocation) = allocation {
                state.allocate_all(&self.core, allocation);
            }
            if pause {
                state.heap.young(&self.core);
            }
        }
    }
}

impl State {
    pub(super) fn pass(&mut self, core: &Core, ms: u64) {
        let until = self.now_ms + ms;
        while self.now_ms < until {
            self.now_ms = until.min(self.now_ms + TICK_MS);
            self.heap.report(core, self.now_ms, REPORTED_PER_TICK);
            self.serve(core);
            self.wake_threads(core);
        }
    }

    /// Does the collector's own work: ends a cycle that is over, and begins one where G1 finds its flag set.
    fn serve(&mut self, core: &Core) {
        if (self.heap.cycle_ends_ms()).is_some_and(|ends_ms| self.now_ms >= ends_ms) {
            self.heap.end_cycle(core);
        }
        self.end_call(core);
        if self.heap.collector == Collector::G1 && self.now_ms >= self.service_at_ms {
            if self.flag {
                self.begin_cycle(core);
            }
            let (soon, late) = SERVICE_MS;
            self.service_at_ms = self.now_ms + if self.flag { soon } else { late };
        }
    }

    /// Ends the collection that another thread waits for, once it is over.
    fn end_call(&mut self, core: &Core) {
        let is_over = match self.called {
            None => false,
            Some(Called::Cycle) => self.heap.cycle_ends_ms().is_none(),
            Some(Called::Full { at_ms }) => self.now_ms >= at_ms,
        };
        if is_over {
            if let Some(Called::Full { .. }) = self.called.take() {
                self.heap.full(core);
            }
            self.ended = Some(self.ended(true));
        }
    }

    fn ended(&self, has_run: bool) -> Ended {
        let at = self.start + Duration::from_millis(self.now_ms);
        Ended { has_run, at }
    }

    pub(super) fn begin_cycle(&mut self, core: &Core) {
        if self.heap.cycle_ends_ms().is_none() {
            self.cycles_begun += 1;
            let ends_ms = self.now_ms + self.covering_ms;
            self.heap.begin_cycle(core, ends_ms);
        }
    }

    fn is_concurrent(&self) -> bool {
        matches!(
            self.heap.collector,
            Collector::Whole | Collector::GenerationalZgc
        )
    }

    /// A collection of all memory, however this collector does one.
    pub(super) fn full(&mut self, core: &Core) {
        if self.is_concurrent() {
            self.begin_cycle(core);
        } else {
            self.heap.full(core);
        }
    }
}

impl ports::Clock for Simulation {
    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.uptime_ms())
    }

    fn uptime_ms(&self) -> u64 {
        self.state.borrow().now_ms
    }

    fn sleep(&self, longest: Duration) {
        self.pass(u64::try_from(longest.as_millis()).unwrap_or(1).max(1));
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

impl ports::Heap for Simulation {
    fn used_bytes(&self) -> Option<u64> {
        let state = self.state.borrow();
        // As the collector left it; what came since counts with the next.
        let used = state.heap.used_after_gc;
        Some(if state.is_pressed {
            used.max(MAX_HEAP_BYTES - SHORT_BYTES)
        } else {
            used
        })
    }
}

impl ports::Collector for Simulation {
    fn info(&self) -> CollectorInfo {
        let kind = self.state.borrow().heap.collector;
        CollectorInfo {
            kind,
            region_bytes: (kind == Collector::G1).then_some(16 << 10),
            reference_bytes: 4,
            unloads_classes: true,
        }
    }

    fn offer(&self) -> Offer {
        match self.state.borrow().heap.collector {
            Collector::G1 => Offer::of(true, [Means::Periodic, Means::Full]),
            Collector::Whole | Collector::GenerationalZgc => Offer::of(false, [Means::Forced]),
            _ => Offer::of(true, [Means::Full]),
        }
    }

    fn stay_ready(&self, _wanted: bool) -> bool {
        false
    }

    fn request_cycle(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.flag |= !state.refuses;
        !state.refuses
    }

    fn put_flag_back(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.flag &= state.refuses;
        !state.refuses
    }

    fn cycle_activity(&self) -> Option<u64> {
        let state = self.state.borrow();
        let running = u64::from(state.heap.cycle_ends_ms().is_some());
        Some(2 * state.cycles_begun - running)
    }

    fn find_collector_threads(&self) {
        self.requests_begun.set(self.requests_begun.get() + 1);
    }

    fn collector_time(&self) -> Option<Duration> {
        None
    }

    fn begin_collection(&self, _: Means) {
        let state = &mut *self.state.borrow_mut();
        let is_one = state.called.is_none() && state.ended.is_none();
        assert!(is_one, "the one before has not ended, or was not asked for");
        if state.refuses {
            state.ended = Some(state.ended(false));
        } else if state.is_concurrent() {
            state.begin_cycle(&self.core);
            state.called = Some(Called::Cycle);
        } else {
            let at_ms = state.now_ms + state.covering_ms;
            state.called = Some(Called::Full { at_ms });
        }
    }

    fn collection_ended(&self) -> Option<Ended> {
        self.state.borrow_mut().ended.take()
    }

    fn delivery(&self) -> Delivery {
        match self.fault {
            Some(Fault::ByQuiet) => Delivery::Unknown,
            Some(Fault::Hasty) => Delivery::Complete,
            _ => self.state.borrow().heap.delivery(),
        }
    }

    fn allocate_garbage(&self, _: usize) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.pass(&self.core, 10);
        if !state.refuses {
            state.heap.young(&self.core);
        }
        !state.refuses
    }
}

impl ports::Canaries for Simulation {
    fn plant(&self, tag: i64) -> bool {
        self.state.borrow_mut().heap.plant(tag);
        true
    }

    fn stock_class(&self) -> bool {
        self.state.borrow_mut().stock.0 += 1;
        true
    }

    fn drop_stocked_class(&self, class_tag: i64, instance_tag: i64) -> bool {
        self.state.borrow_mut().stock.0 -= 1;
        self.plant_class(class_tag, instance_tag)
    }

    fn plant_class(&self, class_tag: i64, instance_tag: i64) -> bool {
        let heap = &mut self.state.borrow_mut().heap;
        heap.plant(instance_tag);
        heap.plant(class_tag);
        true
    }

    fn stock_arrays(&self, _: i32) -> bool {
        self.state.borrow_mut().stock.1 = true;
        true
    }

    fn drop_stocked_arrays(&self, tag: i64) -> bool {
        let is_there = std::mem::take(&mut self.state.borrow_mut().stock.1);
        is_there && self.plant_arrays(1, tag)
    }

    fn plant_arrays(&self, _: i32, tag: i64) -> bool {
        let heap = &mut self.state.borrow_mut().heap;
        heap.plant(tag);
        heap.plant(tag);
        true
    }

    fn release_stock(&self) {
        self.state.borrow_mut().stock = (0, false);
    }
}

impl ports::Sampler for Simulation {
    fn set_interval(&self, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn samples_cpu(&self) -> (Duration, u64) {
        (Duration::ZERO, 0)
    }

    fn process_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

impl ports::References for Simulation {
    /// Called for each account with a limit in each turn, so this is in the middle of a turn.
    fn account_name(&self, name: &Arc<str>) -> Option<Token> {
        self.turn_goes_on();
        Some(Arc::new(name.clone()))
    }

    fn forget_account_names(&self, _: &dyn Fn(&str) -> bool) {}

    fn vanished_loaders(&self) -> Vec<LoaderId> {
        Vec::new()
    }

    fn forget_loader(&self, loader: LoaderId) -> bool {
        self.state.borrow_mut().deployments.forget(loader)
    }
}

impl enforce_ports::RefusalReports for Simulation {
    /// Called at the end of a turn.
    fn take_barring_frame(&self) -> Option<enforce_ports::BarringFrame> {
        None
    }

    fn take_new_place(&self) -> Option<enforce_ports::NewPlace> {
        let (counts, slot, key) = self.state.borrow_mut().new_places.pop()?;
        Some(enforce_ports::NewPlace {
            counts,
            slot,
            name: Some(PlaceName::numbered(key)),
        })
    }

    fn take_refusal(&self) -> Option<LoggedRefusal> {
        let state = &mut *self.state.borrow_mut();
        let enforced = state.deployments.enforced;
        let proofs = &state.heap.proofs;
        state.oracle.turn_ends(&self.core, enforced, proofs);
        None
    }
}

/// Returns the bytes that these purses are charged together.
pub(super) fn charged(core: &Core, purses: &[PurseId]) -> u64 {
    let sums = purses.iter().map(|&purse| core.ledger.totals(purse));
    sums.map(|totals| totals.charged.bytes).sum()
}
