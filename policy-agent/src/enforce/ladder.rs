//! Which collection to ask for next, as a state machine without a JVM.
//!
//! The rungs, the cheapest first: a collection that comes anyway, a young one that is provoked,
//! one that covers old memory. A *climb* begins when somebody has a wish and ends with its
//! answer; the whole of it is paid from the [`Budget`] before the next may begin. One
//! collection is in flight at a time.
//!
//! What a rung costs: where the caller waits for it, or the world stops, its duration. A cycle
//! that G1 starts by itself costs from its beginning to the proof; the second that G1's service
//! thread takes to look at the flag costs nobody anything.

use std::time::{Duration, Instant};

use crate::jvm::collections::{Means, Offer};
use crate::ledger::Epoch;

use super::budget::Budget;

/// How long a wish waits for a collection that comes anyway.
const NATURAL: Duration = Duration::from_millis(100);
/// How long whoever wished has to think again once young memory has been collected.
const SECOND_THOUGHTS: Duration = Duration::from_millis(20);
/// How often to look while something is in flight; its events wake the warden earlier.
const LOOK: Duration = Duration::from_millis(20);
/// How often to look where there is nothing to do.
const IDLE: Duration = Duration::from_secs(1);
/// How long the proof may take after a collection that was waited for.
const REFUNDS: Duration = Duration::from_secs(5);
/// The longest time that allocating towards a young collection may take.
const LONGEST_PROVOCATION: Duration = Duration::from_secs(1);
/// The shortest rest after a young collection, and after one that could not be provoked.
const YOUNG_REST: Duration = Duration::from_millis(250);
const PROVOCATION_REST: Duration = Duration::from_secs(5);
/// G1's service thread looks at the flag every second.
const NOTICE: Duration = Duration::from_millis(1500);
/// How long G1 may take to begin a cycle; one that is running already comes first.
const LONGEST_NOTICE: Duration = Duration::from_secs(20);
/// A cycle that has brought no proof for so long may have been one that had begun before the
/// request: it is asked for again, which does nothing while it runs.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// A cycle is given so long; its proof counts later as well, but is not waited for.
const LONGEST_CYCLE: Duration = Duration::from_secs(60);
/// How long a way that the VM refused is not tried.
const REFUSED: Duration = Duration::from_secs(60);
/// A way that brought nothing so often in succession is left for so long.
const SETBACKS: u32 = 3;
const FRUITLESS: Duration = Duration::from_secs(600);
/// The rest after a first setback; it doubles with each, so many times.
const SETBACK_REST: Duration = Duration::from_secs(5);
const SETBACK_DOUBLINGS: u32 = 6;

/// What somebody wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// Nothing.
    None,
    /// What is left of young garbage: moves [`crate::ledger::Epochs::boundary`]. Where no young
    /// collection is to be had, one that covers old memory does.
    Young,
    /// What is truly held: moves [`crate::ledger::Epochs::covered`], after a young one where
    /// that is to be had, which may be answer enough.
    Covering,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until something happens, or for so long.
    Wait(Duration),
    /// Allocate for a moment, then [`Ladder::gave_up`] if there is no room.
    ProvokeYoung,
    /// Plant an old canary and ask for a collection: then [`Ladder::started`], and
    /// [`Ladder::returned`] if this way waits, or else [`Ladder::refused`].
    Start(Means),
    /// Ask G1 once more, for the collection in flight; then [`Ladder::asked_again`].
    AskAgain,
    /// Put G1's flag back: then [`Ladder::was_put_back`].
    PutBack,
}

/// What is known at a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) now: Instant,
    pub(crate) epoch: Epoch,
    pub(crate) boundary: Option<Epoch>,
    pub(crate) covered: Option<Epoch>,
    /// What will be covered once its refunds are in; no less than what is.
    pub(crate) proof: Option<Epoch>,
    /// Whether a concurrent cycle has run since the last request; `None` where that is not to
    /// be known.
    pub(crate) cycle_ran: Option<bool>,
}

/// A collection that has been paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) kind: &'static str,
    pub(crate) took: Duration,
}

/// The state between two steps.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    pub(crate) budget: Budget,
    climb: Option<Climb>,
    flight: Option<Flight>,
    /// G1's flag is not what the operator made it.
    flag_changed: bool,
    not_before: [Option<Instant>; Means::ALL.len()],
    setbacks: u32,
    done: Option<Done>,
    fruitless: Option<Means>,
}

#[derive(Debug, Clone, Copy)]
struct Climb {
    wish: Wish,
    /// The answer must reach this epoch.
    epoch: Epoch,
    since: Instant,
    /// The budget has allowed this climb.
    allowed: bool,
    /// No young collection is to be had before then.
    no_young_before: Option<Instant>,
    /// Young memory was first seen collected.
    young_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    rung: Rung,
    /// The epoch in which it was asked for, which the proof must reach.
    epoch: Epoch,
    asked: Instant,
    stage: Stage,
    /// When its proof was first seen reported; refunds were on their way from then on.
    proved: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    Young,
    Covering(Means),
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Asked for; when last looked it had not begun, or where that is not to be known, no
    /// pause had ended.
    Asked { looked: Instant },
    /// G1's cycle is running; it may have been asked for once more.
    Running {
        began: Instant,
        again: Option<Instant>,
    },
    /// Paid for; the proof is awaited.
    Over { at: Instant },
}

fn reaches(proof: Option<Epoch>, epoch: Epoch) -> bool {
    proof.is_some_and(|proof| proof >= epoch)
}

impl Ladder {
    /// What to do now. `offer` is what the collector offers at this moment.
    pub(crate) fn step(&mut self, wish: Wish, offer: &Offer, facts: &Facts) -> Step {
        self.follow(wish, facts);
        if self.flag_changed && (self.flag_has_done(facts.now) || self.has_its_proof(facts.proof)) {
            return Step::PutBack;
        }
        self.heed(wish, offer, facts);
        match &self.flight {
            Some(flight) => match (flight.rung, flight.stage) {
                (Rung::Young, Stage::Asked { .. }) => Step::ProvokeYoung,
                (_, Stage::Running { began, again })
                    if facts.now >= again.unwrap_or(began) + ASK_AGAIN
                        && !reaches(facts.proof, flight.epoch) =>
                {
                    Step::AskAgain
                }
                _ => Step::Wait(LOOK),
            },
            None => self.climb_on(offer, facts),
        }
    }

    /// A collection asked for by [`Step::Start`] was, with an old canary of `epoch`.
    pub(crate) fn started(&mut self, means: Means, epoch: Epoch, now: Instant) {
        self.flag_changed |= means == Means::Periodic;
        self.flight = Some(Flight {
            rung: Rung::Covering(means),
            epoch,
            asked: now,
            stage: Stage::Asked { looked: now },
            proved: None,
        });
    }

    /// One that was waited for has ended.
    pub(crate) fn returned(&mut self, now: Instant) {
        if let Some(flight) = &mut self.flight
            && let Rung::Covering(means) = flight.rung
        {
            let took = now.saturating_duration_since(flight.asked);
            flight.stage = Stage::Over { at: now };
            self.pay(means.kind(), now, took);
        }
    }

    /// The VM would not: not this way for a while.
    pub(crate) fn refused(&mut self, means: Means, now: Instant) {
        self.flight = None;
        self.not_before[means as usize] = Some(now + REFUSED);
    }

    /// The flag is changed once more.
    pub(crate) fn asked_again(&mut self, now: Instant) {
        self.flag_changed = true;
        if let Some(flight) = &mut self.flight
            && let Stage::Running { began, .. } = flight.stage
        {
            flight.stage = Stage::Running {
                began,
                again: Some(now),
            };
        }
    }

    /// The flag is as the operator made it.
    pub(crate) fn was_put_back(&mut self) {
        self.flag_changed = false;
    }

    /// Allocating brought no young collection about, or had better not be tried.
    pub(crate) fn gave_up(&mut self, now: Instant) {
        let started = self.flight.take().map_or(now, |flight| flight.asked);
        let took = now.saturating_duration_since(started);
        self.budget.spent_resting(now, took, PROVOCATION_REST);
        self.no_young_for_a_while(now);
    }

    /// Whether the changed flag has brought what it was changed for: the death that proves it has
    /// been reported (`proof`, confirmed or not). Refunds may still be on their way, and G1 begins
    /// one cycle after another for as long as the flag stays.
    ///
    /// That a cycle has run would not do: G1 begins cycles for large arrays and calls them off,
    /// and those prove nothing.
    pub(crate) fn has_its_proof(&self, proof: Option<Epoch>) -> bool {
        let asked = Rung::Covering(Means::Periodic);
        let proves = |flight: Flight| flight.rung == asked && reaches(proof, flight.epoch);
        self.flag_changed && self.flight.is_some_and(proves)
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// Without a wish, nothing is to be done.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.flight.is_none() && self.climb.is_none() && !self.flag_changed
    }

    /// The epoch that a proof of old memory is wanted of, if one is.
    pub(crate) fn wants_cover(&self) -> Option<Epoch> {
        self.climb
            .filter(|climb| climb.wish == Wish::Covering)
            .map(|climb| climb.epoch)
    }

    /// The collection paid for since the last time this was asked.
    pub(crate) fn take_done(&mut self) -> Option<Done> {
        self.done.take()
    }

    /// A way that was left because it brought no proof, since the last time this was asked.
    pub(crate) fn take_fruitless(&mut self) -> Option<Means> {
        self.fruitless.take()
    }

    fn pay(&mut self, kind: &'static str, now: Instant, took: Duration) {
        self.budget.spent(now, took);
        self.done = Some(Done { kind, took });
    }

    /// Nothing more is to be had from the changed flag.
    fn flag_has_done(&self, now: Instant) -> bool {
        match self.flight.map(|flight| flight.stage) {
            Some(Stage::Asked { .. }) => false,
            Some(Stage::Running { again, .. }) => again.is_none_or(|again| now >= again + NOTICE),
            Some(Stage::Over { .. }) | None => true,
        }
    }

    /// What has become of the collection in flight.
    fn follow(&mut self, wish: Wish, facts: &Facts) {
        let Some(flight) = &mut self.flight else {
            return;
        };
        let now = facts.now;
        if reaches(facts.proof, flight.epoch) {
            flight.proved.get_or_insert(now);
            // One that was not seen to begin has done so since then: wanted or not, it is paid for.
            if let (Rung::Covering(_), Stage::Asked { looked: began }) = (flight.rung, flight.stage)
            {
                flight.stage = Stage::Running { began, again: None };
            }
        }
        let flight = *flight;
        match flight.rung {
            Rung::Young => self.follow_young(flight, wish, facts),
            Rung::Covering(means) if reaches(facts.covered, flight.epoch) => {
                if let Stage::Running { began, .. } = flight.stage {
                    let ended = flight.proved.unwrap_or(now);
                    let took = ended.saturating_duration_since(began);
                    self.pay(means.kind(), now, took);
                    if facts.cycle_ran.is_none() {
                        // The flag was left as it was up to the proof: another may have begun.
                        self.budget.spent(now, took);
                    }
                }
                self.setbacks = 0;
                self.flight = None;
            }
            Rung::Covering(means) => match flight.stage {
                Stage::Asked { looked } => {
                    self.follow_request(flight, means, looked, facts);
                    // One that has begun is paid for, wanted or not: its first refunds may have
                    // been answer enough.
                    let stage = self.flight.map(|flight| flight.stage);
                    if wish == Wish::None && matches!(stage, Some(Stage::Asked { .. })) {
                        self.flight = None;
                    }
                }
                Stage::Running { began, .. } => {
                    if now >= began + LONGEST_CYCLE {
                        let ended = flight.proved.unwrap_or(now);
                        self.pay(means.kind(), now, ended.saturating_duration_since(began));
                        // Cycles may run one after the other and prove nothing (G1 without
                        // `ClassUnloadingWithConcurrentMark`): then another way must be taken.
                        self.end(flight, means, now);
                    }
                }
                Stage::Over { at } => {
                    if now >= at + REFUNDS {
                        self.end(flight, means, now);
                    }
                }
            },
        }
    }

    fn follow_young(&mut self, flight: Flight, wish: Wish, facts: &Facts) {
        let now = facts.now;
        let took = now.saturating_duration_since(flight.asked);
        if let Stage::Over { at } = flight.stage {
            let proved = reaches(facts.boundary, flight.epoch);
            if proved || now >= at + REFUNDS {
                self.flight = None;
            }
            if !proved && self.flight.is_none() {
                self.no_young_for_a_while(now);
            }
        } else if facts.epoch > flight.epoch {
            self.budget.spent_resting(now, took, YOUNG_REST);
            self.done = Some(Done {
                kind: "young",
                took,
            });
            self.flight = Some(Flight {
                stage: Stage::Over { at: now },
                ..flight
            });
        } else if wish == Wish::None {
            self.budget.spent_resting(now, took, YOUNG_REST);
            self.flight = None;
        } else if took >= LONGEST_PROVOCATION {
            self.gave_up(now);
        }
    }

    fn no_young_for_a_while(&mut self, now: Instant) {
        if let Some(climb) = &mut self.climb {
            climb.no_young_before = Some(now + PROVOCATION_REST);
        }
    }

    /// G1 has been asked for a cycle that has not been seen to begin.
    fn follow_request(&mut self, flight: Flight, means: Means, looked: Instant, facts: &Facts) {
        let now = facts.now;
        let paused = facts.epoch > flight.epoch;
        let began = match facts.cycle_ran {
            Some(ran) => paused && ran,
            None => paused && now >= flight.asked + NOTICE,
        };
        if began {
            self.flight = Some(Flight {
                stage: Stage::Running {
                    began: looked,
                    again: None,
                },
                ..flight
            });
        } else if now >= flight.asked + LONGEST_NOTICE {
            self.setback(means, now);
        } else if facts.cycle_ran.is_some() || !paused {
            self.flight = Some(Flight {
                stage: Stage::Asked { looked: now },
                ..flight
            });
        }
    }

    /// A collection has had its time: without a proof that is a setback, and with one its refunds
    /// come when they come.
    fn end(&mut self, flight: Flight, means: Means, now: Instant) {
        match flight.proved {
            Some(_) => self.flight = None,
            None => self.setback(means, now),
        }
    }

    /// A collection brought no proof.
    fn setback(&mut self, means: Means, now: Instant) {
        self.flight = None;
        let rest = SETBACK_REST * (1 << self.setbacks.min(SETBACK_DOUBLINGS));
        self.budget.spent_resting(now, Duration::ZERO, rest);
        self.setbacks += 1;
        if self.setbacks >= SETBACKS {
            self.setbacks = 0;
            // From when the budget allows anything at all: the next is to be another way.
            self.not_before[means as usize] = Some(now + self.budget.wait(now) + FRUITLESS);
            self.fruitless = Some(means);
        }
    }

    /// Begins, changes or ends the climb.
    fn heed(&mut self, wish: Wish, offer: &Offer, facts: &Facts) {
        let wish = match wish {
            // Without young collections there is but one rung.
            Wish::Young if !offer.young => Wish::Covering,
            wish => wish,
        };
        if wish == Wish::None {
            self.climb = None;
            return;
        }
        let answered = self.climb.is_some_and(|climb| {
            let proof = match wish {
                Wish::Covering => facts.covered,
                _ => facts.boundary,
            };
            reaches(proof, climb.epoch)
        });
        if answered && wish == Wish::Covering {
            // Late, perhaps, where a cycle takes minutes: but the way leads somewhere.
            self.setbacks = 0;
        }
        if self.climb.is_none() || answered {
            self.climb = Some(Climb {
                wish,
                epoch: facts.epoch,
                since: facts.now,
                allowed: false,
                no_young_before: None,
                young_at: None,
            });
        }
        if let Some(climb) = &mut self.climb {
            climb.wish = wish;
            if climb.young_at.is_none() && reaches(facts.boundary, climb.epoch) {
                climb.young_at = Some(facts.now);
            }
        }
    }

    fn climb_on(&mut self, offer: &Offer, facts: &Facts) -> Step {
        let Some(climb) = &mut self.climb else {
            return Step::Wait(IDLE);
        };
        let now = facts.now;
        let natural = climb.since + NATURAL;
        if now < natural {
            return Step::Wait(natural - now);
        }
        if reaches(facts.proof, climb.epoch) && now < natural + REFUNDS {
            // It has its answer, but for refunds that are on their way.
            return Step::Wait(LOOK);
        }
        let young_is_next = offer.young
            && climb.young_at.is_none()
            && climb.no_young_before.is_none_or(|then| now >= then);
        if let Some(then) = climb.young_at.map(|at| at + SECOND_THOUGHTS)
            && offer.young
            && now < then
        {
            return Step::Wait(then - now);
        }
        if !climb.allowed && !self.budget.allows(now) {
            return Step::Wait(self.budget.wait(now));
        }
        if young_is_next {
            climb.allowed = true;
            self.flight = Some(Flight {
                rung: Rung::Young,
                epoch: facts.epoch,
                asked: now,
                stage: Stage::Asked { looked: now },
                proved: None,
            });
            return Step::ProvokeYoung;
        }
        let open = |means: &Means| self.not_before[*means as usize].is_none_or(|then| now >= then);
        match offer.covering().find(open) {
            Some(means) => {
                // The climb is at its top: another collection is another climb.
                climb.allowed = false;
                Step::Start(means)
            }
            None => Step::Wait(IDLE),
        }
    }
}

#[cfg(test)]
mod tests;
