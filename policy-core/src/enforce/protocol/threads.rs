//! Allocating threads: each takes its charges past the gates by the real admission, and its program
//! reacts to a refusal.

use std::sync::Arc;
use std::time::Duration;

use crate::charging::{Attributed, Sampled};
use crate::core::Core;
use crate::enforce::admission::{Admission, Charged, Step};
use crate::enforce::door::MARK;
use crate::enforce::gate::Due;
use crate::enforce::grace::Grace;
use crate::enforce::place_counts::{PlaceCounts, PlaceKey};
use crate::enforce::ports::{Barred, CallingThread, LetIn, Level};
use crate::enforce::refusal_details::RefusalDetails;
use crate::enforce::throw_points::Reason;
use crate::identity::classes::ClassId;
use crate::ledger::{ObjectTag, PurseId, Tag, UNKNOWN_CLASS};
use crate::sampling::simulation::Countdown;
use crate::sites::Visit;

use super::oracle::{Oracle, Refusal};
use super::simulation::State;
use super::world::Allocation;

/// The reaction of a program to a refused allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// Goes on as if nothing had been.
    Catch,
    /// Drops half of what it holds.
    DropHalf,
    /// Drops everything.
    DropAll,
}

/// Where a thread is in its code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// It may not be refused there.
    pub(super) is_unsafe: bool,
    /// No unit of work begins there: the thread is its own loop.
    pub(super) is_loop: bool,
    /// Its program has asked not to be refused.
    pub(super) is_masked: bool,
    /// A shut door has let in what it runs.
    pub(super) is_let_in: bool,
    /// Its stack is not known before then.
    pub(super) known_at_ms: u64,
}

pub(super) struct Thread {
    pub(super) service: usize,
    /// The payer of its allocations: its service's deployment, or a scope in it.
    pub(super) purse: PurseId,
    pub(super) conduct: Conduct,
    pub(super) is_virtual: bool,
    pub(super) place: Place,
    countdown: Countdown,
    grace: Grace,
    hold: Option<Hold>,
    /// The level at which it was judged last.
    level: Option<Level>,
}

/// A thread that is held up in an allocation.
struct Hold {
    admission: Admission<()>,
    charged: Charged,
    record: ObjectTag,
    object: u64,
    is_kept: bool,
    wakes_at_ms: u64,
    /// While it waits for a verdict: since when, how long at the most, and where.
    verdict: Option<(u64, u64, Level)>,
}

impl Thread {
    pub(super) fn new(
        service: usize,
        purse: PurseId,
        conduct: Conduct,
        seed: u64,
        interval_bytes: u64,
    ) -> Thread {
        Thread {
            service,
            purse,
            conduct,
            is_virtual: false,
            place: Place::default(),
            countdown: Countdown::new(seed, interval_bytes),
            grace: Grace::default(),
            hold: None,
            level: None,
        }
    }

    /// Goes to another place of its code, unless an allocation holds it up.
    pub(super) fn goes_to(&mut self, change: impl FnOnce(&mut Place)) {
        if self.hold.is_none() {
            change(&mut self.place);
        }
    }

    /// The object whose allocation holds it up.
    pub(super) fn in_hand(&self) -> Option<u64> {
        self.hold.as_ref().map(|hold| hold.object)
    }
}

/// The thread as the admission asks it.
struct Caller<'a> {
    index: usize,
    now_ms: u64,
    place: Place,
    is_virtual: bool,
    grace: &'a mut Grace,
    oracle: &'a mut Oracle,
    charged: Charged,
    record: Option<ObjectTag>,
    core: &'a Core,
    level: &'a mut Option<Level>,
    counted: u64,
    new_places: &'a mut Vec<(Arc<PlaceCounts>, u32, PlaceKey)>,
}

impl CallingThread for Caller<'_> {
    type Place = ();

    fn uptime_ms(&self) -> u64 {
        self.now_ms
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn cpu_time(&mut self) -> Duration {
        // Far from the throw before: what follows it is never the VM's own here.
        Duration::from_secs(self.now_ms + 1)
    }

    fn is_virtual(&mut self) -> bool {
        self.is_virtual
    }

    fn judge(&mut self, level: Level, _: bool) -> Result<(), Barred> {
        *self.level = Some(level);
        if self.now_ms < self.place.known_at_ms {
            return Err(Barred {
                reason: Reason::Unresolved,
                passing: true,
            });
        }
        if self.place.is_unsafe {
            return Err(Reason::Locks.into());
        }
        if self.place.is_loop {
            return Err(Reason::NoUnit.into());
        }
        Ok(())
    }

    fn is_event_loop(&mut self) -> bool {
        false
    }

    fn record(&self) -> Option<ObjectTag> {
        self.record
    }

    fn let_in(&mut self) -> LetIn {
        match self.place.is_let_in {
            true => LetIn::OnThread,
            false => LetIn::No,
        }
    }

    fn is_masked(&mut self) -> bool {
        self.place.is_masked
    }

    fn grace(&mut self) -> Grace {
        *self.grace
    }

    fn remember(&mut self, grace: Grace) {
        let (left, word, waited) = self.grace.accounts();
        let (left_now, word_now, waited_now) = grace.accounts();
        if (word, waited) != (word_now, waited_now) {
            let before = if word == word_now { waited } else { 0 };
            (self.oracle).waited(
                self.index,
                word_now,
                waited_now - before,
                self.charged.bytes,
            );
        }
        if left_now < left {
            self.oracle.granted(self.index, left - left_now);
        }
        *self.grace = grace;
    }

    fn note_refusal(&mut self, _: &Arc<RefusalDetails>, (): ()) {
        self.oracle.graces(self.index);
    }

    fn place_key(&self, (): ()) -> PlaceKey {
        PlaceKey {
            frame: self.index as u64 % 40,
            entry: 0,
            unit: None,
            is_request: self.is_virtual,
        }
    }

    fn name_place(&mut self, counts: &Arc<PlaceCounts>, slot: u32, (): ()) -> bool {
        let key = self.place_key(());
        // As a full queue does now and then.
        let is_taken = !self.now_ms.is_multiple_of(3);
        if is_taken {
            self.new_places.push((counts.clone(), slot, key));
        }
        is_taken
    }

    fn throw(&mut self, _: &RefusalDetails) -> bool {
        let Place {
            is_unsafe, is_loop, ..
        } = self.place;
        assert!(!is_unsafe && !is_loop, "thrown where it must not be");
        let level = self.level.expect("judged");
        let gate = self.core.enforcement.gates.get(level.account);
        let is_over = gate.is_some_and(|gate| gate.word().0.over);
        self.oracle.refused(Refusal {
            payer: self.charged.payer,
            gate: level.account,
            alone: (!is_over).then_some(self.charged.size_bytes),
        });
        true
    }

    fn log_refusal(&mut self, _: bool) {
        self.counted += 1;
    }
}

/// An object of the model, which can always be tagged.
struct Unthinned;

impl<'a> Sampled<'a> for Unthinned {
    fn chance(&self) -> f64 {
        unreachable!("nothing is thinned here")
    }

    fn stack(&self, _: &Attributed) -> Option<Visit<'a>> {
        None
    }

    fn tag(&self, _: i64) -> bool {
        true
    }
}

impl State {
    /// A thread allocates so many objects, one after the other.
    pub(super) fn allocate_all(&mut self, core: &Core, allocation: Allocation) {
        let thread = usize::from(allocation.thread) % self.threads.len();
        for number in 0..allocation.objects {
            let is_kept = number % 4 < allocation.kept;
            self.allocate(core, thread, u64::from(allocation.bytes), is_kept);
        }
    }

    /// A thread allocates an object, and keeps it or not. Nothing while it is held up.
    fn allocate(&mut self, core: &Core, index: usize, size_bytes: u64, is_kept: bool) {
        let thread = &mut self.threads[index];
        if thread.hold.is_some() {
            return;
        }
        let payer = thread.purse;
        let object = self.heap.allocate(payer, size_bytes, index);
        let intervals = core.ledger.intervals();
        let interval = intervals.current();
        if !thread
            .countdown
            .allocate(size_bytes, intervals.bytes(interval))
        {
            return self.allocated(payer, object, is_kept);
        }
        let attributed = Attributed {
            payer,
            agent_account: payer,
            principal: payer,
            class: ClassId(UNKNOWN_CLASS),
            size_bytes,
            interval,
        };
        let birth = core.ledger.epochs().current();
        let charged = core.charge(&attributed, &Unthinned);
        let (charged, tag) = charged.expect("nothing is thinned here");
        let tag = tag.expect("room");
        self.heap.tag(object, Tag::Object(tag).encode(), birth);
        if self.threads[index].place.is_let_in
            && let Some(ticket) = self.oracle.probe_inside(core, payer)
        {
            core.charge_probe(payer, (ticket & MARK) as u32, charged.bytes);
        }
        let begun = Admission::begin(core, charged);
        let due = |gate| {
            begun
                .as_ref()
                .is_some_and(|admission| admission.is_due_at(gate))
        };
        self.oracle
            .passed(core, payer, (charged.bytes, size_bytes), due);
        let Some(admission) = begun else {
            return self.allocated(payer, object, is_kept);
        };
        self.threads[index].hold = Some(Hold {
            admission,
            charged,
            record: tag,
            object,
            is_kept,
            wakes_at_ms: self.now_ms,
            verdict: None,
        });
        self.step(core, index);
    }

    fn with_caller<T>(
        &mut self,
        core: &Core,
        index: usize,
        charged: Charged,
        work: impl FnOnce(&mut Caller<'_>) -> T,
    ) -> T {
        let thread = &mut self.threads[index];
        let mut caller = Caller {
            index,
            now_ms: self.now_ms,
            place: thread.place,
            is_virtual: thread.is_virtual,
            grace: &mut thread.grace,
            oracle: &mut self.oracle,
            charged,
            record: thread.hold.as_ref().map(|hold| hold.record),
            core,
            level: &mut thread.level,
            counted: 0,
            new_places: &mut self.new_places,
        };
        let result = work(&mut caller);
        let counted = caller.counted;
        self.oracle.counted += counted;
        result
    }

    /// Threads whose sleep is over take their next step.
    pub(super) fn wake_threads(&mut self, core: &Core) {
        for index in 0..self.threads.len() {
            let hold = self.threads[index].hold.as_ref();
            if hold.is_some_and(|hold| self.now_ms >= hold.wakes_at_ms) {
                self.step(core, index);
            }
        }
        for hold in self
            .threads
            .iter()
            .filter_map(|thread| thread.hold.as_ref())
        {
            if let Some((_, _, level)) = hold.verdict {
                self.oracle.keeps_waiting(level);
            }
        }
    }

    fn step(&mut self, core: &Core, index: usize) {
        let Some(mut hold) = self.threads[index].hold.take() else {
            return;
        };
        let charged = hold.charged;
        let deferred = hold.admission.deferred();
        let step = self.with_caller(core, index, charged, |caller| {
            hold.admission.step(core, caller)
        });
        self.oracle.counted += u64::from(hold.admission.deferred() - deferred);
        self.follow_wait(core, index, &mut hold);
        match step {
            Step::Sleep(longest) => {
                assert!(!self.threads[index].is_virtual, "a carrier is held");
                let ms = u64::try_from(longest.as_millis()).expect("a short sleep");
                if hold.admission.is_spared() {
                    self.oracle.slowed(ms);
                }
                hold.wakes_at_ms = self.now_ms + ms;
                self.threads[index].hold = Some(hold);
            }
            Step::Done { refused } => {
                if refused {
                    self.refused(index, &hold);
                } else {
                    self.allocated(charged.payer, hold.object, hold.is_kept);
                }
            }
        }
    }

    /// Checks that no thread that waits for a verdict goes on early without one.
    fn follow_wait(&mut self, core: &Core, index: usize, hold: &mut Hold) {
        let now_ms = self.now_ms;
        match (hold.verdict, hold.admission.awaits_verdict()) {
            (None, true) => {
                let (level, due) = hold.admission.level().expect("it is at one");
                assert_eq!(due, Due::Overdrawn);
                let gate = core.enforcement.gates.get(level.account).expect("a gate");
                let thread = &self.threads[index];
                assert!(!thread.is_virtual, "a carrier is held");
                let longest_ms = (thread.grace).may_wait_ms(gate.word().1, hold.charged.bytes);
                hold.verdict = Some((now_ms, longest_ms, level));
            }
            (Some((since_ms, longest_ms, level)), false) => {
                hold.verdict = None;
                if now_ms - since_ms < longest_ms {
                    self.oracle.released(core, level);
                }
            }
            _ => {}
        }
    }

    fn allocated(&mut self, payer: PurseId, object: u64, is_kept: bool) {
        if !is_kept {
            self.oracle.littered.insert(payer);
            self.heap.let_go(object);
        }
    }

    fn refused(&mut self, index: usize, hold: &Hold) {
        self.oracle.littered.insert(hold.charged.payer);
        self.heap.let_go(hold.object);
        match self.threads[index].conduct {
            Conduct::Catch => {}
            Conduct::DropHalf => self.heap.let_go_of(index, 2, None),
            Conduct::DropAll => self.heap.let_go_of(index, 4, None),
        }
    }
}
