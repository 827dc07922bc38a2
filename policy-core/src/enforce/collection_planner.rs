//! Which collection to ask for next, as a state machine without a JVM.
//!
//! The planner prefers the cheapest collection: first it waits for one that comes anyway, then it
//! provokes a young one, then it asks for one that covers old memory. A *request* begins when
//! there is a [`Need`] and ends with its answer. The [`Budget`] must have paid for all collections
//! of one request before the next request may ask for any. One collection is in flight at a time.
//!
//! A full collection costs its duration. Any other costs the time that all processors together would
//! have worked for it, if the kernel shows that, without what collections take anyway (`natural_work`), and never
//! more than its duration: a concurrent cycle, and the garbage that provokes a young collection, use a part of the
//! machine, and on a busy machine they last several times as long as their work. A budget of wall time would be used
//! up by waiting. The duration of a cycle that G1 runs for a changed flag is from its beginning to the proof; the time until
//! G1's service thread reads the flag (up to a second) costs nothing.
//!
//! A need that has waited for the budget for `OVERDUE` may overdraw it, by the budget's own rule
//! ([`Budget::allows_overdue`]): otherwise a suspicion could last for a minute.
//!
//! A request is *patient* if no verdict waits for its answer, but a statistic or a figure in a report:
//! - It never overdraws the budget.
//! - It may be minutes old when a verdict needs evidence. So neither continues the other: the later one is a new request,
//!   with an age and an epoch of its own.
//! - Where the collector offers no collection that it accepts, and none is in flight, it is not kept: its answer would only
//!   come by chance.

mod in_flight;
mod step;

use std::time::{Duration, Instant};

use crate::ledger::Epoch;
use crate::ports::{Means, Offer};

use super::budget::{Budget, SHORTEST_PAUSE};
use super::natural_work::NaturalWork;

use in_flight::{Collection, InFlight, Stage};
pub use step::{CollectorStatus, Done, Need, Step};

/// How long a need waits for a collection that comes anyway: longer if young ones may answer it.
const NATURAL: Duration = Duration::from_millis(100);
const NATURAL_WITHOUT_YOUNG: Duration = Duration::from_millis(20);
/// The pause after a young collection, in which the need may end.
const SECOND_THOUGHTS: Duration = Duration::from_millis(20);
/// How often to look while a collection is in flight; its events wake the enforcer earlier.
const LOOK: Duration = Duration::from_millis(20);
/// How often to look while there is nothing to do.
const IDLE: Duration = Duration::from_secs(1);
/// How long the refunds of a finished collection may take.
const REFUNDS: Duration = Duration::from_secs(5);
/// The longest time to allocate garbage until a young collection begins.
const LONGEST_PROVOCATION: Duration = Duration::from_secs(1);
/// A need that has waited so long may overdraw the budget.
const OVERDUE: Duration = Duration::from_secs(4);
/// The shortest pause after a young collection, and after one that could not be provoked.
const YOUNG_REST: Duration = Duration::from_millis(250);
const PROVOCATION_REST: Duration = Duration::from_secs(5);
/// The same after a collection that runs beside the program, and of what it took.
const CONCURRENT_REST: Duration = Duration::from_millis(50);
const CONCURRENT_RESTS: u32 = 4;
/// G1's service thread reads the flag every second.
const NOTICE: Duration = Duration::from_millis(1500);
/// How long G1 may take to begin a cycle; it finishes a running one first.
const LONGEST_NOTICE: Duration = Duration::from_secs(20);
/// A cycle without a proof after so long may have begun before the request. So the planner asks
/// again; G1 ignores that while the cycle runs.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// How long the planner waits for a cycle's proof; a later proof counts too.
const LONGEST_CYCLE: Duration = Duration::from_secs(60);
/// How long a means that the VM refused is not tried.
const REFUSED: Duration = Duration::from_secs(60);
/// After so many requests without a proof in a row, a means is not tried for `FRUITLESS`.
const SETBACKS: u32 = 3;
const FRUITLESS: Duration = Duration::from_secs(600);
/// The pause after a first setback; it doubles with each, so many times.
const SETBACK_REST: Duration = Duration::from_secs(5);
const SETBACK_DOUBLINGS: u32 = 6;

/// Decides which collection to ask for next. See the module. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct CollectionPlanner {
    /// The time that collections may still take.
    pub budget: Budget,
    /// The work of the collectors that nobody asked for.
    natural: NaturalWork,
    request: Option<Request>,
    in_flight: Option<InFlight>,
    /// Whether G1's flag differs from the operator's setting.
    flag_changed: bool,
    not_before: [Option<Instant>; Means::ALL.len()],
    setbacks: u32,
    done: Option<Done>,
    fruitless: Option<Means>,
}

/// A need that is being answered.
#[derive(Debug, Clone, Copy)]
struct Request {
    need: Need,
    /// No verdict waits for the answer: see the module.
    is_patient: bool,
    /// The answer must reach this epoch.
    epoch: Epoch,
    since: Instant,
    /// Whether the budget has allowed this request.
    allowed: bool,
    /// No young collection is provoked before then.
    no_young_before: Option<Instant>,
    /// When young memory was first seen collected.
    young_at: Option<Instant>,
}

fn reaches(proof: Option<Epoch>, epoch: Epoch) -> bool {
    proof.is_some_and(|proof| proof >= epoch)
}

/// How long to rest after a collection, however much of the budget is left. One that runs beside the program, and
/// has ended when the VM says so, is followed by another as soon as a burst of them has taken a fifth of the time: on
/// such collectors garbage is charged until then, and in duress whoever makes it waits. Others stop the program, or
/// begin another cycle by themselves: they have the budget's own rest.
fn rest_after(means: Means, took: Duration) -> Duration {
    match means {
        Means::Forced => (took * CONCURRENT_RESTS).clamp(CONCURRENT_REST, SHORTEST_PAUSE),
        Means::Periodic | Means::Explicit | Means::Full => SHORTEST_PAUSE,
    }
}

impl CollectionPlanner {
    /// Returns the action to take now. `is_patient`: no verdict waits for the answer. `offer`: the means that the
    /// collector offers now, as far as the need accepts them.
    pub fn step(
        &mut self,
        need: Need,
        is_patient: bool,
        offer: &Offer,
        status: &CollectorStatus,
    ) -> Step {
        let is_hopeless = offer.covering().next().is_none() && self.in_flight.is_none();
        let need = match is_patient && is_hopeless {
            true => Need::None,
            false => need,
        };
        self.follow_in_flight(need, status);
        match self.in_flight {
            None => self.natural.look(status.now, status.collector_time),
            Some(_) => self.natural.interrupt(),
        }
        if self.flag_changed && (self.flag_has_done(status.now) || self.has_its_proof(status.proof))
        {
            return Step::PutBack;
        }
        self.update_request(need, is_patient, offer, status);
        match &self.in_flight {
            Some(in_flight) => match (in_flight.collection, in_flight.stage) {
                (Collection::Young, Stage::Asked { .. }) => Step::ProvokeYoung,
                (_, Stage::Running { began, again })
                    if status.now >= again.unwrap_or(began) + ASK_AGAIN
                        && !reaches(status.proof, in_flight.epoch) =>
                {
                    Step::AskAgain
                }
                _ => Step::Wait(LOOK),
            },
            None => self.next_step(offer, status),
        }
    }

    /// The collection of [`Step::Start`] was asked for, with an old canary of `epoch`.
    pub fn started(
        &mut self,
        means: Means,
        epoch: Epoch,
        now: Instant,
        collector_time: Option<Duration>,
    ) {
        self.flag_changed |= means == Means::Periodic;
        self.natural.interrupt();
        self.in_flight = Some(InFlight {
            collection: Collection::Covering(means),
            epoch,
            asked: now,
            collector_time,
            stage: Stage::Asked { looked: now },
            proved: None,
        });
    }

    /// The call that waited for the collection has returned.
    pub fn returned(&mut self, now: Instant, collector_time: Option<Duration>) {
        if let Some(in_flight) = &mut self.in_flight
            && let Collection::Covering(means) = in_flight.collection
        {
            in_flight.stage = Stage::Over { at: now };
            let took = now.saturating_duration_since(in_flight.asked);
            let cost = in_flight.cost(&self.natural, took, collector_time);
            self.pay(means, now, took, cost);
        }
    }

    /// The agent has memory collected without a request, or counts other threads from now on.
    pub(super) fn interrupt_natural_work(&mut self) {
        self.natural.interrupt();
    }

    /// The charge for a collection without a request that took `took`, while the collectors worked for `work`.
    pub(super) fn unplanned_cost(&self, took: Duration, work: Duration) -> Duration {
        self.natural.beyond(took, work)
    }

    /// The VM refused this means: it is not tried for a while.
    pub fn refused(&mut self, means: Means, now: Instant) {
        self.in_flight = None;
        self.not_before[means as usize] = Some(now + REFUSED);
    }

    /// G1 was asked once more, by its flag.
    pub fn asked_again(&mut self, now: Instant) {
        self.flag_changed = true;
        if let Some(in_flight) = &mut self.in_flight
            && let Stage::Running { began, .. } = in_flight.stage
        {
            in_flight.stage = Stage::Running {
                began,
                again: Some(now),
            };
        }
    }

    /// G1's flag has the operator's setting again.
    pub fn was_put_back(&mut self) {
        self.flag_changed = false;
    }

    /// Allocating garbage did not cause a young collection, or there was no room to try.
    pub fn gave_up(&mut self, now: Instant, collector_time: Option<Duration>) {
        let cost = self.in_flight.take().map_or(Duration::ZERO, |in_flight| {
            let took = now.saturating_duration_since(in_flight.asked);
            in_flight.cost(&self.natural, took, collector_time)
        });
        self.budget.spent_resting(now, cost, PROVOCATION_REST);
        self.no_young_for_a_while(now);
    }

    /// Whether the changed flag has had its effect: the VM has reported the death that proves the
    /// collection (`proof`, confirmed or not). The flag must be restored then, even if refunds are
    /// still arriving, because G1 begins one cycle after another while the flag is set.
    ///
    /// It is not enough that a cycle has run: G1 begins cycles for large arrays and abandons them,
    /// and those prove nothing.
    pub fn has_its_proof(&self, proof: Option<Epoch>) -> bool {
        let asked = Collection::Covering(Means::Periodic);
        let proves =
            |in_flight: InFlight| in_flight.collection == asked && reaches(proof, in_flight.epoch);
        self.flag_changed && self.in_flight.is_some_and(proves)
    }

    /// Whether a cycle of G1's is awaited: it begins up to a second after it was asked for.
    pub fn awaits_cycle(&self) -> bool {
        self.flag_changed && self.in_flight.is_some()
    }

    /// Whether G1's flag differs from the operator's setting for a request.
    pub fn is_flag_changed(&self) -> bool {
        self.flag_changed
    }

    /// Whether a collection is in flight.
    pub fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether there is nothing to do until there is a need.
    pub fn is_at_rest(&self) -> bool {
        self.in_flight.is_none() && self.request.is_none() && !self.flag_changed
    }

    /// The epoch that a proof of old memory must reach, if one is needed.
    pub fn wants_cover(&self) -> Option<Epoch> {
        self.request
            .filter(|request| request.need == Need::Covering)
            .map(|request| request.epoch)
    }

    /// The collection paid for since the last call.
    pub fn take_done(&mut self) -> Option<Done> {
        self.done.take()
    }

    /// A means given up since the last call because it brought no proof.
    pub fn take_fruitless(&mut self) -> Option<Means> {
        self.fruitless.take()
    }

    fn pay(&mut self, means: Means, now: Instant, took: Duration, cost: Duration) {
        self.budget
            .spent_resting(now, cost, rest_after(means, took));
        let kind = means.kind();
        self.done = Some(Done { kind, took, cost });
    }

    /// Whether the changed flag has nothing more to do. A cycle that is seen may have begun before the request, and G1
    /// ignores the flag while it runs: the flag stays until G1 must have noticed it.
    fn flag_has_done(&self, now: Instant) -> bool {
        let Some(in_flight) = &self.in_flight else {
            return true;
        };
        match in_flight.stage {
            Stage::Asked { .. } => false,
            Stage::Running { again, .. } => now >= again.unwrap_or(in_flight.asked) + NOTICE,
            Stage::Over { .. } => true,
        }
    }

    /// Updates the collection in flight.
    fn follow_in_flight(&mut self, need: Need, status: &CollectorStatus) {
        let Some(in_flight) = &mut self.in_flight else {
            return;
        };
        let now = status.now;
        if reaches(status.proof, in_flight.epoch) {
            in_flight.proved.get_or_insert(now);
            // It began unseen, after `looked`: it is paid for, even if nobody needs it any more.
            if let (Collection::Covering(_), Stage::Asked { looked: began }) =
                (in_flight.collection, in_flight.stage)
            {
                in_flight.stage = Stage::Running { began, again: None };
            }
        }
        let in_flight = *in_flight;
        match in_flight.collection {
            Collection::Young => self.follow_young(in_flight, need, status),
            Collection::Covering(means) if reaches(status.covered, in_flight.epoch) => {
                if let Stage::Running { began, .. } = in_flight.stage {
                    let ended = in_flight.proved.unwrap_or(now);
                    let took = ended.saturating_duration_since(began);
                    let cost = in_flight.cost(&self.natural, took, status.collector_time);
                    self.pay(means, now, took, cost);
                    if status.cycle_ran.is_none() {
                        // The flag stayed changed until the proof: another cycle may have begun.
                        self.budget.spent(now, cost);
                    }
                }
                self.setbacks = 0;
                self.in_flight = None;
            }
            Collection::Covering(means) => match in_flight.stage {
                Stage::Asked { looked } => {
                    self.await_cycle_start(in_flight, means, looked, status);
                    // A collection that has begun is paid for even if nobody needs it any more: its
                    // first refunds may have ended the need.
                    let stage = self.in_flight.map(|in_flight| in_flight.stage);
                    if need == Need::None && matches!(stage, Some(Stage::Asked { .. })) {
                        self.in_flight = None;
                    }
                }
                Stage::Running { began, .. } => {
                    if now >= began + LONGEST_CYCLE {
                        let ended = in_flight.proved.unwrap_or(now);
                        let took = ended.saturating_duration_since(began);
                        let cost = in_flight.cost(&self.natural, took, status.collector_time);
                        self.pay(means, now, took, cost);
                        // Cycles may run one after the other and prove nothing (G1 without
                        // `ClassUnloadingWithConcurrentMark`): then another means is needed.
                        self.end(in_flight, means, now);
                    }
                }
                Stage::Over { at } => {
                    if now >= at + REFUNDS {
                        self.end(in_flight, means, now);
                    }
                }
            },
        }
    }

    fn follow_young(&mut self, in_flight: InFlight, need: Need, status: &CollectorStatus) {
        let now = status.now;
        let took = now.saturating_duration_since(in_flight.asked);
        if let Stage::Over { at } = in_flight.stage {
            let proved = reaches(status.boundary, in_flight.epoch);
            if proved || now >= at + REFUNDS {
                self.in_flight = None;
            }
            if !proved && self.in_flight.is_none() {
                self.no_young_for_a_while(now);
            }
        } else if status.epoch > in_flight.epoch {
            let cost = in_flight.cost(&self.natural, took, status.collector_time);
            self.budget.spent_resting(now, cost, YOUNG_REST);
            self.done = Some(Done {
                kind: "young",
                took,
                cost,
            });
            self.in_flight = Some(InFlight {
                stage: Stage::Over { at: now },
                ..in_flight
            });
        } else if need == Need::None {
            let cost = in_flight.cost(&self.natural, took, status.collector_time);
            self.budget.spent_resting(now, cost, YOUNG_REST);
            self.in_flight = None;
        } else if took >= LONGEST_PROVOCATION {
            self.gave_up(now, status.collector_time);
        }
    }

    fn no_young_for_a_while(&mut self, now: Instant) {
        if let Some(request) = &mut self.request {
            request.no_young_before = Some(now + PROVOCATION_REST);
        }
    }

    /// Looks whether the cycle that G1 was asked for has begun.
    fn await_cycle_start(
        &mut self,
        in_flight: InFlight,
        means: Means,
        looked: Instant,
        status: &CollectorStatus,
    ) {
        let now = status.now;
        let paused = status.epoch > in_flight.epoch;
        let began = match status.cycle_ran {
            Some(ran) => paused && ran,
            None => paused && now >= in_flight.asked + NOTICE,
        };
        if began {
            self.in_flight = Some(InFlight {
                stage: Stage::Running {
                    began: looked,
                    again: None,
                },
                ..in_flight
            });
        } else if now >= in_flight.asked + LONGEST_NOTICE {
            self.setback(means, now);
        } else if status.cycle_ran.is_some() || !paused {
            self.in_flight = Some(InFlight {
                stage: Stage::Asked { looked: now },
                ..in_flight
            });
        }
    }

    /// The time for a collection is over. Without a proof that is a setback; with one its refunds
    /// still count when they arrive.
    fn end(&mut self, in_flight: InFlight, means: Means, now: Instant) {
        match in_flight.proved {
            Some(_) => self.in_flight = None,
            None => self.setback(means, now),
        }
    }

    /// A collection brought no proof.
    fn setback(&mut self, means: Means, now: Instant) {
        self.in_flight = None;
        let rest = SETBACK_REST * (1 << self.setbacks.min(SETBACK_DOUBLINGS));
        self.budget.spent_resting(now, Duration::ZERO, rest);
        self.setbacks += 1;
        if self.setbacks >= SETBACKS {
            self.setbacks = 0;
            // Counted from when the budget allows a collection, so that the next uses other means.
            self.not_before[means as usize] = Some(now + self.budget.wait(now) + FRUITLESS);
            self.fruitless = Some(means);
        }
    }

    /// Begins, changes or ends the request.
    fn update_request(
        &mut self,
        need: Need,
        is_patient: bool,
        offer: &Offer,
        status: &CollectorStatus,
    ) {
        let need = match need {
            // Without young collections one of old memory must do.
            Need::Young if !offer.young => Need::Covering,
            need => need,
        };
        if need == Need::None {
            self.request = None;
            return;
        }
        let answered = self.request.is_some_and(|request| {
            let proof = match need {
                Need::Covering => status.covered,
                _ => status.boundary,
            };
            reaches(proof, request.epoch)
        });
        if answered && need == Need::Covering {
            // Perhaps late, if a cycle takes minutes; but the means works.
            self.setbacks = 0;
        }
        let continues =
            (self.request).is_some_and(|request| request.is_patient == is_patient && !answered);
        if !continues {
            self.request = Some(Request {
                need,
                is_patient,
                epoch: status.epoch,
                since: status.now,
                allowed: false,
                no_young_before: None,
                young_at: None,
            });
        }
        if let Some(request) = &mut self.request {
            request.need = need;
            if request.young_at.is_none() && reaches(status.boundary, request.epoch) {
                request.young_at = Some(status.now);
            }
        }
    }

    fn next_step(&mut self, offer: &Offer, status: &CollectorStatus) -> Step {
        let Some(request) = &mut self.request else {
            return Step::Wait(IDLE);
        };
        let now = status.now;
        let natural = match offer.young {
            true => request.since + NATURAL,
            false => request.since + NATURAL_WITHOUT_YOUNG,
        };
        if now < natural {
            return Step::Wait(natural - now);
        }
        if reaches(status.proof, request.epoch) && now < natural + REFUNDS {
            // The answer only waits for refunds.
            return Step::Wait(LOOK);
        }
        let young_is_next = offer.young
            && request.young_at.is_none()
            && request.no_young_before.is_none_or(|then| now >= then);
        if let Some(then) = request.young_at.map(|at| at + SECOND_THOUGHTS)
            && offer.young
            && now < then
        {
            return Step::Wait(then - now);
        }
        let overdue = request.since + OVERDUE;
        let may_overdraw = !request.is_patient && now >= overdue && self.budget.allows_overdue(now);
        if !request.allowed && !self.budget.allows(now) && !may_overdraw {
            if request.is_patient {
                return Step::Wait(self.budget.wait(now));
            }
            let until_overdue = overdue.saturating_duration_since(now);
            let overdue = until_overdue.max(self.budget.overdue_wait(now));
            return Step::Wait(self.budget.wait(now).min(overdue));
        }
        if young_is_next {
            request.allowed = true;
            self.natural.interrupt();
            self.in_flight = Some(InFlight {
                collection: Collection::Young,
                epoch: status.epoch,
                asked: now,
                collector_time: status.collector_time,
                stage: Stage::Asked { looked: now },
                proved: None,
            });
            return Step::ProvokeYoung;
        }
        let open = |means: &Means| self.not_before[*means as usize].is_none_or(|then| now >= then);
        match offer.covering().find(open) {
            Some(means) => {
                // This is the request's last collection: another one needs the budget again.
                request.allowed = false;
                Step::Start(means)
            }
            None => Step::Wait(IDLE),
        }
    }
}

#[cfg(test)]
mod tests;
