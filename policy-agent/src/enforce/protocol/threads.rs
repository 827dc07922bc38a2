//! Allocating threads: how each takes a charge past the gate, as `jvm::refuse` does, and what
//! its program makes of a refusal.

use crate::enforce::gate::{Due, Gate};
use crate::enforce::grace::Grace;
use crate::enforce::points::Reason;
use crate::ledger::{PurseId, Sample, UNKNOWN_CLASS};
use crate::sampling::simulation::Countdown;

use super::jvm::{Fault, Jvm, Shared};

/// What a program does when an allocation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// Goes on as if nothing had been.
    Catch,
    /// Lets go of half of what it holds.
    DropHalf,
    /// Lets go of everything.
    DropAll,
}

pub(super) struct Thread {
    pub(super) purse: PurseId,
    pub(super) conduct: Conduct,
    /// It may not be refused where it is.
    pub(super) is_unsafe: bool,
    countdown: Countdown,
    grace: Grace,
    held: Option<Hold>,
    /// Objects that it has allocated.
    pub(super) allocated: u64,
}

/// A thread that is kept in an allocation.
#[derive(Debug, Clone, Copy)]
struct Hold {
    charged: Charged,
    since_ms: u64,
    until_ms: u64,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The verdict is awaited, since the word had this serial number.
    Verdict { serial: u32 },
    /// It is slowed before it is refused.
    Slowed,
}

/// A sampled object on its way past the gate.
#[derive(Debug, Clone, Copy)]
struct Charged {
    payer: PurseId,
    gate: u32,
    object: u64,
    /// What it is charged.
    bytes: u64,
    size_bytes: u64,
    due: Due,
    is_kept: bool,
}

impl Thread {
    pub(super) fn new(purse: PurseId, conduct: Conduct, seed: u64, interval_bytes: u64) -> Thread {
        Thread {
            purse,
            conduct,
            is_unsafe: false,
            countdown: Countdown::new(seed, interval_bytes),
            grace: Grace::default(),
            held: None,
            allocated: 0,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The object that it is kept in the allocation of.
    pub(super) fn in_hand(&self) -> Option<u64> {
        self.held.map(|hold| hold.charged.object)
    }

    pub(super) fn waits_for_verdict(&self) -> bool {
        (self.held).is_some_and(|hold| matches!(hold.why, Why::Verdict { .. }))
    }
}

impl Jvm {
    /// A thread allocates an object, and keeps it or not. Nothing while it is held up.
    pub(super) fn allocate(&mut self, shared: &Shared, index: usize, size: u64, is_kept: bool) {
        let thread = &mut self.threads[index];
        if thread.is_held() {
            return;
        }
        thread.allocated += 1;
        let payer = thread.purse;
        let object = self.heap.allocate(payer, size, index);
        let intervals = shared.ledger.intervals();
        let interval = intervals.current();
        if !thread.countdown.allocate(size, intervals.bytes(interval)) {
            return self.allocated(payer, object, is_kept);
        }
        let sample = Sample {
            payer,
            agent: payer,
            principal: payer,
            class: UNKNOWN_CLASS,
            size_bytes: size,
            interval,
        };
        let birth = shared.ledger.epochs().current();
        let (tag, charge) = shared.ledger.charge_weighed(&sample).expect("room");
        self.heap.tag(object, tag, birth);
        let number = shared.gate_of(payer);
        let Some(gate) = shared.gates.get(number) else {
            return self.allocated(payer, object, is_kept);
        };
        let passage = gate.pass(charge.bytes, size);
        self.oracle.passed(payer, charge.bytes, &passage);
        self.rung |= passage.ring;
        let Some(due) = passage.due else {
            return self.allocated(payer, object, is_kept);
        };
        let charged = Charged {
            payer,
            gate: number,
            object,
            bytes: charge.bytes,
            size_bytes: size,
            due,
            is_kept,
        };
        if let Err(reason) = self.settle(shared, index, gate, charged) {
            self.defer(gate, reason, charged);
        }
    }

    fn goes_on(&mut self, charged: Charged) {
        self.allocated(charged.payer, charged.object, charged.is_kept);
    }

    fn allocated(&mut self, payer: PurseId, object: u64, is_kept: bool) {
        if !is_kept {
            self.oracle.littered.insert(payer);
            self.heap.let_go(object);
        }
    }

    fn defer(&mut self, gate: &Gate, reason: Reason, charged: Charged) {
        gate.count_deferred(reason as usize);
        self.oracle.counted += 1;
        self.goes_on(charged);
    }

    fn settle(
        &mut self,
        shared: &Shared,
        index: usize,
        gate: &Gate,
        charged: Charged,
    ) -> Result<(), Reason> {
        let now_ms = self.now_ms;
        let thread = &mut self.threads[index];
        if thread.grace.spend(charged.gate, now_ms, charged.bytes) {
            self.oracle.granted(index, charged.bytes);
            return Err(Reason::Grace);
        }
        if thread.is_unsafe {
            return Err(Reason::Locks);
        }
        let (word, serial) = gate.word();
        if charged.due == Due::Overdrawn && word.enforced {
            self.rung = true;
            thread.held = Some(Hold {
                charged,
                since_ms: now_ms,
                until_ms: now_ms + thread.grace.may_wait_ms(serial, charged.bytes),
                why: Why::Verdict { serial },
            });
            return Ok(());
        }
        self.come_to_it(shared, index, gate, charged)
    }

    /// Threads whose wait is over go on.
    pub(super) fn wake_threads(&mut self, shared: &Shared) {
        for index in 0..self.threads.len() {
            let Some(hold) = self.threads[index].held else {
                continue;
            };
            let Some(gate) = shared.gates.get(hold.charged.gate) else {
                continue;
            };
            let is_late = self.now_ms >= hold.until_ms;
            match hold.why {
                Why::Verdict { serial } => {
                    let is_own = shared.gate_of(hold.charged.payer) == hold.charged.gate;
                    let waits_on = if shared.fault == Some(Fault::WaitsOn) {
                        gate.is_overdrawn() && !gate.word().0.over
                    } else {
                        is_own && gate.is_verdict_awaited()
                    };
                    if !is_late && waits_on {
                        continue;
                    }
                    let waited_ms = self.now_ms - hold.since_ms;
                    self.threads[index].held = None;
                    self.threads[index].grace.waited(serial, waited_ms);
                    self.oracle
                        .waited(index, serial, waited_ms, hold.charged.bytes);
                    if !is_late && is_own {
                        self.oracle.released(shared, hold.charged.payer, gate);
                    }
                    let over = gate.word().0.over;
                    if !over {
                        self.goes_on(hold.charged);
                    } else if let Err(reason) = self.come_to_it(shared, index, gate, hold.charged) {
                        self.defer(gate, reason, hold.charged);
                    }
                }
                Why::Slowed if is_late => {
                    self.threads[index].held = None;
                    self.refuse(shared, index, gate, hold.charged);
                }
                Why::Slowed => {}
            }
        }
        for thread in self
            .threads
            .iter()
            .filter(|thread| thread.waits_for_verdict())
        {
            self.oracle.keeps_waiting(thread.purse);
        }
    }

    /// What is due is refused, if it still is.
    fn come_to_it(
        &mut self,
        shared: &Shared,
        index: usize,
        gate: &Gate,
        charged: Charged,
    ) -> Result<(), Reason> {
        let (word, _) = gate.word();
        if !gate.is_still_due(charged.due, charged.size_bytes) {
            self.goes_on(charged);
            return Ok(());
        }
        if !shared.terms.borrow().contains(&charged.gate) {
            self.rung = true;
            return Err(Reason::Unresolved);
        }
        let thread = &mut self.threads[index];
        let slowed_ms = thread.grace.slowed_ms(charged.gate, self.now_ms);
        if word.enforced && slowed_ms > 0 {
            thread.held = Some(Hold {
                charged,
                since_ms: self.now_ms,
                until_ms: self.now_ms + slowed_ms,
                why: Why::Slowed,
            });
        } else {
            self.refuse(shared, index, gate, charged);
        }
        Ok(())
    }

    fn refuse(&mut self, shared: &Shared, index: usize, gate: &Gate, charged: Charged) {
        let is_own = shared.gate_of(charged.payer) == charged.gate
            || shared.fault == Some(Fault::NoSecondLook);
        let word = gate.word().0;
        if !is_own || !gate.is_still_due(charged.due, charged.size_bytes) {
            return self.goes_on(charged);
        }
        let thread = &mut self.threads[index];
        thread.grace.refuse(charged.gate, self.now_ms);
        self.oracle.counted += 1;
        self.oracle.graces(index);
        if !word.enforced {
            gate.count_would_refuse();
            return self.goes_on(charged);
        }
        gate.count_refusal();
        let alone = (charged.due == Due::Alone).then_some(charged.size_bytes);
        self.oracle.refused(charged.payer, alone);
        self.oracle.littered.insert(charged.payer);
        self.heap.let_go(charged.object);
        match thread.conduct {
            Conduct::Catch => {}
            Conduct::DropHalf => self.heap.let_go_of(index, 2, None),
            Conduct::DropAll => self.heap.let_go_of(index, 4, None),
        }
    }
}
