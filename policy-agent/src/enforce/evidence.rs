//! Collections that prove what an account holds: asking for them and waiting for the proof.
//!
//! [`Evidence`] belongs to the warden's thread and does what the [`Ladder`] says. It waits only
//! where the VM has no other way than a call that returns with the collection.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::jvm::collections::{Collections, Collector, Means, Offer, Provoked, provoke_young};
use crate::jvm::java::Jni;
use crate::ledger::Epoch;
use crate::report;

use super::budget::Budget;
use super::canaries::{Arrays, OldCanaries, Whom};
use super::ladder::{Facts, Ladder, Step};
use super::marker::Marker;
use super::settling::Settling;

pub(crate) use super::ladder::Wish;

/// Collections asked for, by kind.
#[derive(Debug)]
pub(crate) struct EvidenceLog(Mutex<Vec<(&'static str, u64, Duration)>>);

impl Default for EvidenceLog {
    /// Every kind from the start, so that a counter's first step is seen as one.
    fn default() -> EvidenceLog {
        let kinds = ["young", "concurrent", "full", "refunds"];
        EvidenceLog(Mutex::new(
            kinds.map(|kind| (kind, 0, Duration::ZERO)).into(),
        ))
    }
}

impl EvidenceLog {
    /// A collection of this kind took so long.
    pub(crate) fn add(&self, kind: &'static str, took: Duration) {
        let mut log = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match log.iter_mut().find(|(k, ..)| *k == kind) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum += took;
            }
            None => log.push((kind, 1, took)),
        }
    }

    pub(crate) fn read(&self) -> Vec<report::Evidence> {
        let log = self.0.lock().unwrap_or_else(|e| e.into_inner());
        log.iter()
            .map(|&(kind, collections, took)| report::Evidence {
                kind,
                collections,
                seconds: took.as_secs_f64(),
            })
            .collect()
    }
}

/// Free bytes below which nothing is allocated, strings for flags included: at a full heap
/// it could be the allocation that fails (see [`super::warden`]).
const ROOM: u64 = 1 << 20;
/// How often to look while they come in.
const LOOK: Duration = Duration::from_millis(2);
/// How often to look where nothing is wished or awaited.
const IDLE: Duration = Duration::from_millis(500);
/// How long the VM gets to take its flag back before it is asked again.
const FLAG_AGAIN: Duration = Duration::from_secs(1);
/// Between two canaries that are planted for nobody's wish, and two looks at the stock.
const PREPARED_AGAIN: Duration = Duration::from_secs(5);
const STOCKED_AGAIN: Duration = Duration::from_secs(5);
/// Two of G1's regions are kept in stock where they are at most such a part of the heap.
const PAIR_OF_HEAP: u64 = 256;
/// How long one turn of the warden allocates towards a young collection.
const PROVOCATION: Duration = Duration::from_millis(30);

/// A wish, and what it is worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    wish: Wish,
    /// By a concurrent cycle alone.
    gently: bool,
}

impl Asked {
    pub(crate) fn for_verdicts(wish: Wish) -> Asked {
        let gently = false;
        Asked { wish, gently }
    }

    /// Where no concurrent cycle is to be had, it is not granted.
    pub(crate) fn gently(wish: Wish) -> Asked {
        let gently = true;
        Asked { wish, gently }
    }
}

/// What the warden knows of proofs, and asks the collector for.
#[derive(Default)]
pub(crate) struct Evidence {
    ladder: Ladder,
    canaries: OldCanaries,
    /// Found at the first wish.
    means: Option<Collections>,
    marker: Option<Marker>,
    /// What the marker showed at the last request.
    activity_before: Option<u64>,
    settling: Settling,
    provoked_bytes: u64,
    /// When a canary was last planted for nobody's wish.
    prepared: Option<Instant>,
    /// When the stock was last looked after.
    stocked: Option<Instant>,
    /// The VM did not take its flag back: not before then is it asked again.
    flag_again_at: Option<Instant>,
    said: [bool; Means::ALL.len()],
    said_full: bool,
}

impl Drop for Evidence {
    /// However the warden's thread ends, a panic among the ways, the flag is put back and the stock let
    /// go of; unless the VM ends with it.
    fn drop(&mut self) {
        if let Some(agent) = Agent::get()
            && !agent.stopping()
            && let Some(jni) = agent.jni_here()
        {
            if let Some(means) = &mut self.means {
                means.put_back(&jni);
            }
            self.canaries.give_up(&jni);
        }
    }
}

impl Evidence {
    /// What its collections may take of the host's time; the warden's own go there as well.
    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.ladder.budget
    }

    /// Does what is due towards `wish`, and says when to come again at the latest. On the
    /// warden's thread, at every turn of it, whether there is a wish or not: what is in flight
    /// is followed, and whatever was changed is put back.
    pub(crate) fn pursue(
        &mut self,
        agent: &'static Agent,
        jni: &Jni,
        Asked { wish, gently }: Asked,
        now: Instant,
    ) -> Duration {
        let covered = agent.ledger.epochs().covered();
        let settling = self.settle(agent, now);
        // Then the wish is one of before, and may have its answer.
        let is_news = agent.ledger.epochs().covered() > covered;
        let budget = &agent.policy.in_force().enforcement;
        self.ladder
            .budget
            .set_share(budget.evidence_budget_percent / 100.0);
        if !self.is_needed(agent, wish, now) || room(agent, jni) < ROOM {
            return IDLE.min(settling);
        }
        self.keep_stock(agent, jni, now);
        if wish != Wish::None && self.means.is_none() {
            self.know_the_collector(agent, jni);
        }
        let Some(means) = &self.means else {
            return IDLE.min(settling);
        };
        let offer = if wish == Wish::None || self.ladder.is_in_flight() {
            Offer::default()
        } else if gently {
            means.offer(jni).gently()
        } else {
            means.offer(jni)
        };
        let facts = self.facts(agent, now);
        let step = self.ladder.step(wish, &offer, &facts);
        if !is_news {
            self.plant_for_wish(agent, jni);
        }
        let wait = match step {
            Step::Wait(wait) => wait,
            Step::ProvokeYoung => self.provoke(agent, jni),
            Step::Start(means) => self.start(agent, jni, means),
            Step::AskAgain => {
                if self.request(jni) {
                    self.ladder.asked_again(Instant::now());
                }
                LOOK
            }
            Step::PutBack => self.put_back(jni),
        };
        if let Some(done) = self.ladder.take_done() {
            agent.evidence.add(done.kind, done.took);
            tracing::debug!("evidence: a {} collection, {:?}", done.kind, done.took);
        }
        if let Some(way) = self.ladder.take_fruitless() {
            self.say(way, "collections brought no proof");
        }
        wait.min(settling)
    }

    /// Plants a canary now and then, so that a collection of old memory that comes anyway is known
    /// for one. At every turn of the warden while that would tell anybody anything.
    pub(crate) fn prepare(&mut self, agent: &Agent, jni: &Jni, now: Instant) {
        let is_due = (self.prepared).is_none_or(|then| now.duration_since(then) >= PREPARED_AGAIN);
        if !is_due || self.means.is_none() || room(agent, jni) < ROOM {
            return;
        }
        self.prepared = Some(now);
        self.keep_stock(agent, jni, now);
        if self.canaries.few_are_out() {
            // No arrays: they would be what they are to tell of.
            let epoch = agent.ledger.epochs().current();
            self.canaries.plant_class(agent, jni, epoch);
        }
    }

    /// What is known of the collector, if there is room to find out.
    pub(crate) fn collector(&mut self, agent: &Agent, jni: &Jni) -> Option<&Collections> {
        if self.means.is_none() && room(agent, jni) >= ROOM {
            self.know_the_collector(agent, jni);
        }
        self.means.as_ref()
    }

    /// Whether there is anything to do but to listen.
    fn is_needed(&self, agent: &Agent, wish: Wish, now: Instant) -> bool {
        let busy = self.means.is_some() && !self.ladder.is_at_rest();
        let stock = match self.means {
            None => self.canaries.is_short(),
            // The heap may have room again.
            Some(_) => (self.stocked).is_none_or(|then| now.duration_since(then) >= STOCKED_AGAIN),
        };
        agent.samples_are_taken() && (wish != Wish::None || busy || stock)
    }

    fn know_the_collector(&mut self, agent: &Agent, jni: &Jni) {
        let means = Collections::find(jni, agent.release());
        tracing::debug!("the collector, to the evidence: {:?}", means.collector());
        match means.collector() {
            Collector::Whole => {
                agent.ledger.epochs().deaths_cover_all();
                self.canaries.give_up(jni);
            }
            Collector::GenerationalZgc => self.canaries.give_up(jni),
            Collector::G1 => self.marker = Marker::find(),
            Collector::Unknown => tracing::warn!(
                "this runtime does not tell its collector (is the module jdk.management missing?); evidence takes full collections"
            ),
            Collector::StopTheWorld | Collector::GenerationalShenandoah => {}
        }
        if !means.can_prove() {
            tracing::warn!(
                "classes are never unloaded (-Xnoclassgc), so what lies in old memory cannot be proved to be held; nothing will be refused"
            );
        }
        self.means = Some(means);
    }

    fn facts(&self, agent: &Agent, now: Instant) -> Facts {
        let epochs = agent.ledger.epochs();
        let activity = self.marker.as_ref().and_then(Marker::activity);
        Facts {
            now,
            epoch: epochs.current(),
            boundary: epochs.boundary(),
            covered: epochs.covered(),
            proof: epochs.pending_cover().max(epochs.covered()),
            cycle_ran: match (activity, self.activity_before) {
                (Some(now), Some(before)) => Some(now != before),
                _ => None,
            },
        }
    }

    /// Confirms what is covered when all refunds are in.
    fn settle(&mut self, agent: &Agent, now: Instant) -> Duration {
        if let Some(epoch) = self
            .settling
            .turn(&agent.ledger, || agent.couriers.delivery(), now)
        {
            self.canaries.died(epoch);
            LOOK
        } else if self.settling.is_under_way() {
            LOOK
        } else {
            IDLE
        }
    }

    /// A canary for the wish, so that a collection that comes anyway proves something.
    fn plant_for_wish(&mut self, agent: &Agent, jni: &Jni) {
        if let Some(wanted) = self.ladder.wants_cover()
            && self.canaries.few_are_out()
            && self.waiting_since(agent, jni, wanted, Whom::Wish).is_none()
        {
            self.plant(agent, jni, Whom::Wish);
        }
    }

    /// Plants an old canary and returns its epoch. Where every death covers all memory, the
    /// warden's own canaries do.
    fn plant(&mut self, agent: &Agent, jni: &Jni, whom: Whom) -> Option<Epoch> {
        let means = self.means.as_ref()?;
        let now = agent.ledger.epochs().current();
        match means.collector() {
            Collector::Whole => return Some(now),
            Collector::GenerationalZgc => {
                return self.canaries.plant_young(agent, jni, now).then_some(now);
            }
            _ => {}
        }
        let arrays = self.arrays_for(agent, jni, whom);
        self.canaries.plant(agent, jni, now, arrays).then_some(now)
    }

    /// The epoch of a canary that is out and will do for a proof of `wanted`: one with arrays, where
    /// such can be planted.
    fn waiting_since(&self, agent: &Agent, jni: &Jni, wanted: Epoch, whom: Whom) -> Option<Epoch> {
        let pair = self.canaries.youngest_pair_since(wanted);
        pair.or_else(|| match self.arrays_for(agent, jni, whom) {
            Some(_) => None,
            None => self.canaries.youngest_since(wanted),
        })
    }

    fn arrays_for(&self, agent: &Agent, jni: &Jni, whom: Whom) -> Option<Arrays> {
        self.canaries.arrays_for(whom, self.elements(agent, jni))
    }

    /// The length of arrays for a canary, where they help and there is room for them.
    fn elements(&self, agent: &Agent, jni: &Jni) -> Option<i32> {
        let means = self.means.as_ref()?;
        means.region_bytes()?;
        means.humongous_elements(agent.used_heap(jni)?, agent.heap_max_bytes())
    }

    /// Makes what is missing of canaries.
    fn keep_stock(&mut self, agent: &Agent, jni: &Jni, now: Instant) {
        self.stocked = Some(now);
        self.canaries.keep_stock(jni);
        let region_bytes = self.means.as_ref().and_then(Collections::region_bytes);
        let is_little = |bytes: u64| bytes * 2 <= agent.heap_max_bytes() / PAIR_OF_HEAP;
        if region_bytes.is_some_and(is_little)
            && self.canaries.is_short_of_a_pair()
            && let Some(elements) = self.elements(agent, jni)
        {
            self.canaries.keep_pair(jni, elements);
        }
    }

    fn start(&mut self, agent: &Agent, jni: &Jni, way: Means) -> Duration {
        let wanted = self.ladder.wants_cover();
        let waiting =
            wanted.and_then(|wanted| self.waiting_since(agent, jni, wanted, Whom::Request));
        let planted = waiting.or_else(|| self.plant(agent, jni, Whom::Request));
        let asked = Instant::now();
        let (Some(epoch), Some(means)) = (planted, &self.means) else {
            self.refused(way, "no canary can be planted", asked);
            return LOOK;
        };
        if way == Means::Periodic {
            if self.request(jni) {
                self.ladder.started(way, epoch, asked);
            } else {
                self.refused(way, "the VM does not let its flag be set", asked);
            }
            return LOOK;
        }
        if way == Means::Full && means.collector() == Collector::G1 && !self.said_full {
            self.said_full = true;
            tracing::warn!(
                "evidence takes full collections: neither a periodic cycle nor a concurrent System.gc() is to be had \
                 (G1PeriodicGCInterval, G1PeriodicGCInvokesConcurrent, G1PeriodicGCSystemLoadThreshold, ExplicitGCInvokesConcurrent, DisableExplicitGC)"
            );
        }
        let runtime = agent.java().and_then(|java| java.runtime.as_ref());
        if runtime.is_some_and(|runtime| means.collect(way, jni, &agent.tools, runtime)) {
            self.ladder.started(way, epoch, asked);
            self.ladder.returned(Instant::now());
        } else {
            self.refused(way, "the VM refuses", asked);
        }
        LOOK
    }

    /// Sets the flag that makes G1 start a cycle.
    fn request(&mut self, jni: &Jni) -> bool {
        self.activity_before = self.marker.as_ref().and_then(Marker::activity);
        self.means
            .as_mut()
            .is_some_and(|means| means.request_cycle(jni))
    }

    fn refused(&mut self, way: Means, why: &str, now: Instant) {
        self.ladder.refused(way, now);
        self.say(way, why);
    }

    fn say(&mut self, way: Means, why: &str) {
        if !std::mem::replace(&mut self.said[way as usize], true) {
            tracing::warn!("evidence cannot be had by way of {way:?} ({why}); the next is tried");
        }
    }

    /// Puts the flag back once the cycle that was asked for has proved what it was to prove, in the
    /// midst of the warden's waiting for refunds.
    pub(crate) fn let_go_of_the_flag(&mut self, agent: &Agent, jni: &Jni) {
        let proof = agent.ledger.epochs().pending_cover();
        if self.ladder.has_its_proof(proof) && room(agent, jni) >= ROOM {
            self.put_back(jni);
        }
    }

    fn put_back(&mut self, jni: &Jni) -> Duration {
        let Some(means) = &mut self.means else {
            return IDLE;
        };
        let now = Instant::now();
        if let Some(then) = self.flag_again_at.filter(|&then| now < then) {
            return then - now;
        }
        if means.put_back(jni) {
            self.ladder.was_put_back();
            LOOK
        } else {
            self.flag_again_at = Some(now + FLAG_AGAIN);
            FLAG_AGAIN
        }
    }

    fn provoke(&mut self, agent: &Agent, jni: &Jni) -> Duration {
        let epochs = agent.ledger.epochs();
        let (before, max) = (epochs.current(), agent.heap_max_bytes());
        // Where old memory may have no room for what a young collection promotes, it would
        // become a full one. Old memory is all but the young by G1, otherwise by default two
        // thirds of the heap.
        let by_g1 = (self.means.as_ref()).is_some_and(|m| m.collector() == Collector::G1);
        let most = if by_g1 { max / 5 * 4 } else { max / 2 };
        let is_tight = agent.heap_used_after_gc_bytes() > most || room(agent, jni) < max / 10;
        let provoked = if is_tight {
            Provoked::NoRoom
        } else {
            provoke_young(
                jni,
                || epochs.current() > before || agent.stopping(),
                PROVOCATION,
                most,
                &mut self.provoked_bytes,
            )
        };
        match provoked {
            Provoked::NotYet => {}
            Provoked::Begun => self.provoked_bytes = 0,
            Provoked::NoRoom => {
                self.provoked_bytes = 0;
                self.ladder.gave_up(Instant::now());
            }
        }
        Duration::ZERO
    }
}

/// What is free of the maximum heap.
fn room(agent: &Agent, jni: &Jni) -> u64 {
    agent
        .used_heap(jni)
        .map_or(0, |used| agent.heap_max_bytes().saturating_sub(used))
}
