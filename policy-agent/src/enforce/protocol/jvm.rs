//! The simulated JVM: a clock, the heap, the collector's own doings, the tenants' threads.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::enforce::gate::Gates;
use crate::jvm::collections::Collector;
use crate::ledger::{Capacity, Ledger, PurseId};

use super::heap::Heap;
use super::oracle::Oracle;
use super::threads::Thread;

/// Purses there can be.
pub(super) const MOST_PURSES: u32 = 64;
/// The maximum heap.
pub(super) const MAX_HEAP_BYTES: u64 = 16 << 20;
/// A batch of refunds is reported at this pace once it has begun, while its thread is not set
/// aside.
const TICK_MS: u64 = 5;
const REPORTED_PER_TICK: usize = 12;

/// What allocating threads and the agent's have in common.
pub(super) struct Shared {
    pub(super) ledger: Ledger,
    pub(super) gates: Gates,
    /// For each purse, the gate of its account.
    gate_of: Vec<Cell<u32>>,
    /// The gates for which the terms of a refusal are written.
    pub(super) terms: RefCell<HashSet<u32>>,
    pub(super) fault: Option<Fault>,
    start: Instant,
}

/// A rule that is broken on purpose, to see that the model notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// What survived a young collection convicts.
    YoungConvicts,
    /// Refunds are not waited for.
    Hasty,
    /// A quiet time stands for the end of a batch.
    ByQuiet,
    /// Gates change hands when the policy is read, not in the warden's round.
    GatesAtOnce,
    /// A thread does not look whether its gate is still its own.
    NoSecondLook,
    /// What is spent is noted by the warden, some time after the pause.
    LateNotes,
    /// A thread waits on whatever the gate says, unless that is a verdict.
    WaitsOn,
}

impl Shared {
    pub(super) fn new(interval_bytes: u64, fault: Option<Fault>) -> Shared {
        let ledger = Ledger::new(Capacity {
            records: 1 << 16,
            purses: MOST_PURSES,
        });
        (ledger.intervals())
            .set(interval_bytes)
            .expect("an interval");
        Shared {
            ledger,
            gates: Gates::new(),
            gate_of: (0..MOST_PURSES).map(Cell::new).collect(),
            terms: RefCell::default(),
            fault,
            start: Instant::now(),
        }
    }

    pub(super) fn gate_of(&self, purse: PurseId) -> u32 {
        self.gate_of[usize::from(purse.get())].get()
    }

    pub(super) fn set_gate_of(&self, purse: PurseId, gate: u32) {
        self.gate_of[usize::from(purse.get())].set(gate);
    }

    pub(super) fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }
}

/// See the module.
pub(super) struct Jvm {
    pub(super) now_ms: u64,
    pub(super) heap: Heap,
    pub(super) threads: Vec<Thread>,
    pub(super) oracle: Oracle,
    /// Somebody rang for the warden.
    pub(super) rung: bool,
    /// The VM refuses what the agent asks for.
    pub(super) refuses: bool,
    /// How long a collection of all memory takes.
    pub(super) covering_ms: u64,
    /// G1's flag, and when its service thread looks at it next.
    pub(super) flag: bool,
    service_at_ms: u64,
    pub(super) cycles_begun: u64,
}

impl Jvm {
    pub(super) fn new(heap: Heap, threads: Vec<Thread>, covering_ms: u64) -> Jvm {
        Jvm {
            now_ms: 0,
            heap,
            threads,
            oracle: Oracle::default(),
            rung: false,
            refuses: false,
            covering_ms,
            flag: false,
            service_at_ms: 0,
            cycles_begun: 0,
        }
    }

    pub(super) fn pass(&mut self, shared: &Shared, ms: u64) {
        let until = self.now_ms + ms;
        while self.now_ms < until {
            self.now_ms = until.min(self.now_ms + TICK_MS);
            self.heap
                .report(&shared.ledger, self.now_ms, REPORTED_PER_TICK);
            self.serve(shared);
            self.wake_threads(shared);
        }
    }

    /// What the collector does by itself.
    fn serve(&mut self, shared: &Shared) {
        if (self.heap.cycle_ends_ms()).is_some_and(|ends_ms| self.now_ms >= ends_ms) {
            self.heap.end_cycle(&shared.ledger, &shared.gates);
        }
        if self.heap.collector == Collector::G1 && self.now_ms >= self.service_at_ms {
            if self.flag {
                self.begin_cycle(shared);
            }
            self.service_at_ms = self.now_ms + if self.flag { 100 } else { 1000 };
        }
    }

    pub(super) fn young(&mut self, shared: &Shared) {
        self.heap.young(&shared.ledger, &shared.gates);
    }

    pub(super) fn full(&mut self, shared: &Shared) {
        self.heap.full(&shared.ledger, &shared.gates);
    }

    pub(super) fn begin_cycle(&mut self, shared: &Shared) {
        if self.heap.cycle_ends_ms().is_none() {
            self.cycles_begun += 1;
            let ends_ms = self.now_ms + self.covering_ms;
            (self.heap).begin_cycle(&shared.ledger, &shared.gates, ends_ms);
        }
    }

    /// A collection of all memory that its caller waits for. The tenants go on where it is
    /// concurrent.
    pub(super) fn collect(&mut self, shared: &Shared) {
        if self.heap.collector == Collector::Whole {
            self.begin_cycle(shared);
            while self.heap.cycle_ends_ms().is_some() {
                self.pass(shared, TICK_MS);
            }
        } else {
            self.pass(shared, self.covering_ms);
            self.full(shared);
        }
    }

    pub(super) fn free_heap_bytes(&self) -> u64 {
        MAX_HEAP_BYTES.saturating_sub(self.heap.used_after_gc)
    }
}
