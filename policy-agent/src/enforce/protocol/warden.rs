//! The warden without a JVM: its turns as in [`super::super::warden`] and
//! [`super::super::evidence`], with the real rounds, docket, ladder and settling.

use std::time::Duration;

use crate::enforce::couriers::Delivery;
use crate::enforce::docket::Docket;
use crate::enforce::ladder::{Facts, Ladder, Step, Wish};
use crate::enforce::round::Round;
use crate::enforce::settling::Settling;
use crate::enforce::state::Estimate;
use crate::enforce::visit::Around;
use crate::jvm::collections::{Collector, Means, Offer};
use crate::ledger::Epoch;

use super::directory::Directory;
use super::jvm::{Fault, Jvm, MAX_HEAP_BYTES, Shared};

const LONGEST_SLEEP: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(2);
const MOST_FOR_WISHES: usize = 8;

/// What the tenants do while a round goes on.
pub(super) type Meanwhile<'a> = &'a mut dyn FnMut(&Shared, &mut Jvm);

/// See the module.
#[derive(Default)]
pub(super) struct Warden {
    planted: Option<Epoch>,
    version: u64,
    round: Round,
    pub(super) docket: Docket,
    ladder: Ladder,
    settling: Settling,
    /// The epochs of old canaries that are not known to be dead.
    canaries: Vec<Epoch>,
    knows_collector: bool,
    cycles_before: Option<u64>,
    noted: Option<Epoch>,
}

impl Warden {
    /// Does what there is to do, and says how long it can rest at the most.
    pub(super) fn turn(
        &mut self,
        shared: &Shared,
        jvm: &mut Jvm,
        directory: &mut Directory,
        meanwhile: Meanwhile<'_>,
    ) -> Duration {
        jvm.rung = false;
        let epochs = shared.ledger.epochs();
        let now = epochs.current();
        if shared.fault == Some(Fault::LateNotes) && self.noted != Some(now) {
            self.noted = Some(now);
            shared.gates.begin(now);
        }
        if self.planted != Some(now) {
            jvm.heap.plant_canary(now);
            self.planted = Some(now);
        }
        if let Some(epoch) = epochs.pending() {
            // It does not wait for ever: some refunds may still be on their way.
            jvm.pass(shared, 5);
            epochs.confirm(epoch);
            if shared.fault == Some(Fault::YoungConvicts) {
                epochs.confirm_cover(epoch);
            }
        }
        self.clean(shared, directory);
        let (wish, mut again) = self.go_round(shared, jvm, directory, meanwhile);
        for _ in 0..3 {
            if again.is_zero() {
                again = (self.go_round(shared, jvm, directory, &mut |_, _| {})).1;
            }
        }
        again.min(self.pursue(shared, jvm, wish)).min(LONGEST_SLEEP)
    }

    fn clean(&mut self, shared: &Shared, directory: &mut Directory) {
        let referenced = shared.ledger.referenced_purses();
        for purse in directory.retired.clone() {
            let Some(closed) = shared.ledger.close_purse(purse, &referenced) else {
                continue;
            };
            directory.close(purse);
            if let Some(gate) = shared.gates.get(u32::from(purse.get())) {
                gate.close();
            }
            shared.ledger.give_back(closed);
        }
    }

    fn go_round(
        &mut self,
        shared: &Shared,
        jvm: &mut Jvm,
        directory: &Directory,
        meanwhile: Meanwhile<'_>,
    ) -> (Wish, Duration) {
        jvm.oracle.round_begins();
        if self.version != directory.version {
            self.version = directory.version;
            let publish = || {
                for (purse, gate) in directory.gates() {
                    shared.set_gate_of(purse, gate);
                }
            };
            let closed = (self.round).adopt(
                directory.limited(),
                &shared.ledger,
                &mut self.docket,
                &shared.gates,
                publish,
            );
            for gate in closed {
                shared.terms.borrow_mut().remove(&gate);
            }
        }
        let around = Around {
            ledger: &shared.ledger,
            gates: &shared.gates,
            free_heap_bytes: jvm.free_heap_bytes(),
            max_heap_bytes: MAX_HEAP_BYTES,
            starved: !self.ladder.budget.allows(shared.at(jvm.now_ms)),
            enforced: directory.enforced,
            test_refuse: None,
            now: shared.at(jvm.now_ms),
        };
        let charged: Vec<Estimate> = (self.round.limited().iter())
            .map(|limited| {
                let mut sum = Estimate::default();
                for &purse in &limited.purses {
                    let charge = shared.ledger.totals(purse).charged;
                    sum.add(charge.bytes, charge.variance);
                }
                sum
            })
            .collect();
        let wanted = (self.round).turn(&around, &mut self.docket, &mut |limited, _, _| {
            shared.terms.borrow_mut().insert(limited.gate);
            meanwhile(shared, jvm);
        });
        jvm.oracle.round_ends(
            &around,
            self.round.limited(),
            &charged,
            &self.docket,
            &jvm.heap.proofs,
        );
        wanted
    }

    /// Does what is due towards a wish, as the ladder says.
    fn pursue(&mut self, shared: &Shared, jvm: &mut Jvm, wish: Wish) -> Duration {
        self.settle(shared, jvm);
        if wish == Wish::None && (!self.knows_collector || self.ladder.is_at_rest()) {
            return LONGEST_SLEEP;
        }
        if wish != Wish::None && !self.knows_collector {
            self.knows_collector = true;
            if jvm.heap.collector == Collector::Whole {
                jvm.heap.deaths_cover_all(&shared.ledger);
            }
        }
        let epochs = shared.ledger.epochs();
        let facts = Facts {
            now: shared.at(jvm.now_ms),
            epoch: epochs.current(),
            boundary: epochs.boundary(),
            covered: epochs.covered(),
            proof: epochs.pending_cover().max(epochs.covered()),
            cycle_ran: (self.cycles_before)
                .map(|before| jvm.cycles_begun > before || jvm.heap.cycle_ends_ms().is_some()),
        };
        let offer = match jvm.heap.collector {
            _ if wish == Wish::None || self.ladder.is_in_flight() => Offer::default(),
            Collector::G1 => Offer::of(true, [Means::Periodic, Means::Full]),
            Collector::Whole => Offer::of(false, [Means::Forced]),
            _ => Offer::of(true, [Means::Full]),
        };
        let step = self.ladder.step(wish, &offer, &facts);
        self.plant_for_wish(shared, jvm);
        let wait = match step {
            Step::Wait(wait) => wait,
            Step::ProvokeYoung => {
                jvm.pass(shared, 10);
                if jvm.refuses {
                    self.ladder.gave_up(shared.at(jvm.now_ms));
                } else {
                    jvm.young(shared);
                }
                LOOK
            }
            Step::Start(means) => self.start(shared, jvm, means),
            Step::AskAgain => {
                self.request(jvm);
                self.ladder.asked_again(shared.at(jvm.now_ms));
                LOOK
            }
            Step::PutBack => {
                jvm.flag = false;
                self.ladder.was_put_back();
                LOOK
            }
        };
        self.ladder.take_done();
        wait.min(if self.settling.is_under_way() {
            LOOK
        } else {
            LONGEST_SLEEP
        })
    }

    fn settle(&mut self, shared: &Shared, jvm: &Jvm) {
        if shared.fault == Some(Fault::Hasty)
            && let Some(epoch) = shared.ledger.epochs().pending_cover()
        {
            shared.ledger.epochs().confirm_cover(epoch);
        }
        if let Some(epoch) = (self.settling).turn(
            &shared.ledger,
            || {
                if shared.fault == Some(Fault::ByQuiet) {
                    Delivery::Unknown
                } else {
                    jvm.heap.delivery()
                }
            },
            shared.at(jvm.now_ms),
        ) {
            self.canaries.retain(|&planted| planted > epoch);
        }
    }

    fn waits_since(&self, wanted: Epoch) -> Option<Epoch> {
        (self.canaries.last().copied()).filter(|&planted| planted >= wanted)
    }

    fn plant_for_wish(&mut self, shared: &Shared, jvm: &mut Jvm) {
        if let Some(wanted) = self.ladder.wants_cover()
            && self.waits_since(wanted).is_none()
            && self.canaries.len() < MOST_FOR_WISHES
        {
            self.plant(shared, jvm);
        }
    }

    fn plant(&mut self, shared: &Shared, jvm: &mut Jvm) -> Epoch {
        let now = shared.ledger.epochs().current();
        if jvm.heap.collector != Collector::Whole {
            jvm.heap.plant_old_canary(now);
            self.canaries.push(now);
        }
        now
    }

    fn start(&mut self, shared: &Shared, jvm: &mut Jvm, means: Means) -> Duration {
        let waiting = (self.ladder.wants_cover()).and_then(|wanted| self.waits_since(wanted));
        let epoch = waiting.unwrap_or_else(|| self.plant(shared, jvm));
        let asked = shared.at(jvm.now_ms);
        if jvm.refuses {
            self.ladder.refused(means, asked);
        } else if means == Means::Periodic {
            self.request(jvm);
            self.ladder.started(means, epoch, asked);
        } else {
            jvm.collect(shared);
            self.ladder.started(means, epoch, asked);
            self.ladder.returned(shared.at(jvm.now_ms));
        }
        LOOK
    }

    fn request(&mut self, jvm: &mut Jvm) {
        self.cycles_before = Some(jvm.cycles_begun);
        jvm.flag = true;
    }
}
