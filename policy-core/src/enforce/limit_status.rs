//! The status of each account that has a limit: its state, its proofs and its counters.
//!
//! The enforcer writes it and reports read it, under one lock. Allocating threads never touch it:
//! they only see their [`super::gate`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::format_rounded_bytes;

use crate::events;
use crate::ledger::{Epoch, Ledger, PurseId};
use crate::sampling::thinning_error::Found;
use crate::snapshot::State;

use super::back_off::BackOff;
use super::duress::{EVIDENCE, pace_bytes};
use super::effect::Effect;
use super::filling::Filling;
use super::gate::{Counts, Gate, Gates};
use super::overdraft::Survival;
use super::refused_places::RefusedPlaces;
use super::second_look::SecondLook;
use super::state::{Estimate, Phase, Proof};

/// Over how long a pace is measured.
const PACE: Duration = Duration::from_millis(50);
/// For how long the pace of a suspect whose threads wait does not fall: evidence takes so long, as a rule. If it takes
/// longer, duress may end, and begins again if the account goes on.
const HELD: Duration = Duration::from_secs(2);
/// Who has not grown for so long is taken not to grow.
const GREW: Duration = Duration::from_secs(2);
/// How many changes of state a status remembers.
const MAX_HISTORY: usize = 6;
/// How many statuses of accounts that are gone are kept, for their counters.
const MAX_CLOSED: usize = 1024;

/// The status of one account.
#[derive(Debug, Default)]
pub struct LimitStatus {
    /// Open, suspect or over.
    pub phase: Phase,
    /// When its published state last changed.
    pub since: Option<Instant>,
    /// When it became suspect, until there is a verdict.
    suspected: Option<Instant>,
    /// The bytes that survived any collection, as proved by the latest.
    pub survived: Proof,
    /// The bytes that survived a collection of old memory, as proved by the latest.
    pub covered: Proof,
    /// The findings of the latest pass over the records about its thinned arrays, for the error of its charge.
    pub found: Found,
    /// The share of its allocations that survives a collection.
    pub survival: Survival,
    /// The purses that the proofs are about.
    purses: Vec<PurseId>,
    /// Whether it is above its soft limit.
    pub above_soft: bool,
    /// How many times it went above its soft limit.
    pub soft_events: u64,
    /// Its charge at the latest check.
    pub charged: Estimate,
    /// Its limit in bytes at the latest check.
    pub limit_bytes: Option<u64>,
    /// Its soft limit in bytes at the latest check.
    pub soft_limit_bytes: Option<u64>,
    /// The pauses between covering collections that acquit it.
    pub back_off: BackOff,
    /// Whether it grows towards its limit.
    pub filling: Filling,
    /// Whether its figure is to be looked at although nothing is suspected.
    pub second_look: SecondLook,
    /// The state of its reserve, if it has a door.
    pub reserve: Option<ReserveStatus>,
    /// When the latest proof by a collection of old memory was seen.
    pub covered_at: Option<Instant>,
    /// Refusals, and charges that were due but not refused.
    pub counts: Counts,
    /// Whether refusals stop it.
    pub effect: Effect,
    /// Where it was refused, or would have been.
    pub places: RefusedPlaces,
    /// How much of [`Counts::waited_ms`] the log has told of.
    pub waits_told_ms: u64,
    /// The heap is short, and the account is one of those that are refused first.
    pub is_victim: bool,
    /// Its limit binds: always, or in duress alone.
    pub binds: bool,
    /// The covering proof that allowances were last given for.
    pub allowed_by: Proof,
    /// When its pace was last measured, and the bytes that its gate had counted then.
    paced: Option<(Instant, u64)>,
    /// The bytes that it is charged in a second.
    pub pace_bytes: u64,
    /// Since when its threads may wait for a verdict.
    held_at: Option<Instant>,
    history: VecDeque<Change>,
}

/// The reserve of an account that has a door: its charge against limit + reserve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReserveStatus {
    /// Its size in bytes.
    pub bytes: u64,
    /// The covering proof that it was measured at last.
    pub measured: Option<Epoch>,
    /// Open, suspect or over: of limit + reserve.
    pub phase: Phase,
    /// When the phase last changed.
    pub since: Option<Instant>,
    /// As the account's own, for limit + reserve.
    pub back_off: BackOff,
}

impl ReserveStatus {
    /// How long it has been in its present phase.
    pub fn age(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now - since)
    }
}

/// One change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    at: Instant,
    to: State,
    charged_bytes: u64,
}

impl LimitStatus {
    /// The state as reports publish it.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Open => State::Open,
            Phase::Suspect { .. } => State::Suspect,
            Phase::Over { .. } => State::Over,
        }
    }

    /// Enters a phase; true if the published state has changed.
    pub fn enter(&mut self, phase: Phase, charged: Estimate, now: Instant) -> bool {
        let (before, phase_before) = (self.state(), self.phase);
        self.phase = phase;
        let after = self.state();
        if after == before {
            if after == State::Suspect && phase != phase_before {
                // Acquitted, and suspect anew by what came since.
                let suspected = self.suspected.replace(now);
                events::verdict(
                    State::Open.as_str(),
                    suspected.map_or(Duration::ZERO, |then| now - then),
                );
            }
            return false;
        }
        self.since = Some(now);
        if after == State::Suspect {
            self.suspected = Some(now);
        } else if let Some(suspected) = self.suspected.take() {
            events::verdict(after.as_str(), now - suspected);
        }
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(Change {
            at: now,
            to: after,
            charged_bytes: charged.bytes,
        });
        true
    }

    /// Sets the purses that belong to the account. If it has lost an open purse, or has none of those
    /// that it had, the proofs say nothing about the rest: they are dropped, and an account that
    /// was over is suspect since the epoch of that verdict. Returns whether this happened.
    pub fn set_purses(&mut self, ledger: &Ledger, purses: &[PurseId]) -> bool {
        let is_lost = |purse: &PurseId| !purses.contains(purse) && ledger.is_open(*purse);
        let has_kept = |purse: &PurseId| purses.contains(purse);
        let has_lost = self.purses.iter().any(is_lost)
            || !self.purses.is_empty() && !self.purses.iter().any(has_kept);
        self.purses = purses.to_vec();
        if has_lost {
            if let Phase::Over { .. } = self.phase {
                let since = self.covered.upto.unwrap_or_default();
                self.phase = Phase::Suspect { since };
            }
            self.reserve = None;
            self.survived = Proof::default();
            self.covered = Proof::default();
            self.allowed_by = Proof::default();
            self.survival = Survival::default();
        }
        has_lost
    }

    /// Whether it was over before its present state; suspicions in between do not count. One that has let go is suspect
    /// at first if its charge is still full of garbage, and open after the next collection.
    pub fn was_over(&self) -> bool {
        let mut before = self.history.iter().rev().skip(1);
        let before = before.find(|change| change.to != State::Suspect);
        before.is_some_and(|change| change.to == State::Over)
    }

    /// Whether errors are thrown: it is over its limit, which binds, and over its reserve if it has one. In duress
    /// the first to be refused have no reserve.
    pub fn is_refused(&self) -> bool {
        let is_over = |phase| matches!(phase, Phase::Over { .. });
        self.binds
            && is_over(self.phase)
            && (self.is_victim || self.reserve.is_none_or(|reserve| is_over(reserve.phase)))
    }

    /// Whether new requests are turned away: it has a door, and is over its limit, which binds.
    pub fn is_shut(&self) -> bool {
        self.binds && self.reserve.is_some() && matches!(self.phase, Phase::Over { .. })
    }

    /// Returns the bytes that it holds beyond its limit; `None` if it is not over it.
    pub fn excess_bytes(&self) -> Option<u64> {
        let Phase::Over { limit_bytes } = self.phase else {
            return None;
        };
        let held = self.survived.left.bytes.min(self.charged.bytes);
        Some(held.saturating_sub(limit_bytes))
    }

    /// Whether hardly anything of what it allocates survives, and it has not grown of late. What survives one collection
    /// is what threads have in their hands, too: at gigabytes a second a percent of it looks like a leak.
    pub fn makes_garbage(&self, now: Instant) -> bool {
        self.survival.is_of_garbage() && !self.filling.grew_within(GREW, now)
    }

    /// Returns the bytes that it may take until the next evidence if nothing stops it: 0 of an account that is below
    /// its limit, is refused, or makes garbage.
    pub fn wanted_bytes(&self, now: Instant) -> u64 {
        if self.phase == Phase::Open || self.is_refused() || self.makes_garbage(now) {
            return 0;
        }
        let charged = self.pace_bytes as f64 * EVIDENCE.as_secs_f64();
        (charged * self.survival.measured().unwrap_or(1.0)) as u64
    }

    /// Follows its pace: `spent` is what its gate has counted so far. While `is_held`, its threads may wait for a verdict:
    /// that they are charged less now says nothing of what they would take, so the pace does not fall for `HELD`.
    pub fn follow_pace(&mut self, spent: u64, is_held: bool, now: Instant) {
        let Some((then, before)) = self.paced else {
            self.paced = Some((now, spent));
            return;
        };
        let passed = now.saturating_duration_since(then);
        if passed >= PACE {
            let charged = spent.saturating_sub(before);
            let pace = pace_bytes(charged, passed);
            let held_at = is_held.then(|| self.held_at.unwrap_or(now));
            self.held_at = held_at;
            let keeps = held_at.is_some_and(|then| now.saturating_duration_since(then) < HELD);
            self.pace_bytes = if keeps {
                pace.max(self.pace_bytes)
            } else {
                pace
            };
            self.paced = Some((now, spent));
        }
    }

    /// How long it has been in its present state.
    pub fn age(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now - since)
    }

    /// The latest changes of state, oldest first.
    pub fn history(&self, now: Instant) -> impl fmt::Display {
        History {
            changes: self.history.iter().copied().collect(),
            now,
        }
    }
}

struct History {
    changes: Vec<Change>,
    now: Instant,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.changes.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{comma}{} {:.1} s ago with {} charged",
                change.to.as_str(),
                (self.now - change.at).as_secs_f64(),
                format_rounded_bytes(change.charged_bytes)
            )?;
        }
        Ok(())
    }
}

/// Which gates have another account now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// Those without an account now.
    pub closed: Vec<u32>,
    /// Those with another account than before.
    pub changed: Vec<u32>,
}

/// The statuses of all accounts by name, and which gate counts for which account.
#[derive(Debug, Default)]
pub struct LimitStatuses {
    by_account: BTreeMap<Arc<str>, LimitStatus>,
    assigned: HashMap<u32, Arc<str>>,
    /// Gates without an account now, with their last account: a thread may still be passing one.
    former: HashMap<u32, Arc<str>>,
}

impl LimitStatuses {
    /// The status of an account, if it has or had a limit.
    pub fn status(&self, account: &str) -> Option<&LimitStatus> {
        self.by_account.get(account)
    }

    /// All statuses, by account name.
    pub fn all_statuses(&self) -> impl Iterator<Item = (&Arc<str>, &LimitStatus)> {
        self.by_account.iter()
    }

    /// The counts of all statuses.
    #[cfg(test)]
    pub fn all_counts(&self) -> impl Iterator<Item = &Counts> {
        self.by_account.values().map(|status| &status.counts)
    }

    /// The status of an account, if it has or had a limit.
    pub fn known_mut(&mut self, account: &str) -> Option<&mut LimitStatus> {
        self.by_account.get_mut(account)
    }

    /// The status of an account, made if it is missing.
    pub fn status_mut(&mut self, account: &Arc<str>) -> &mut LimitStatus {
        self.by_account.entry(account.clone()).or_default()
    }

    /// The purse of a gate has ended: the next account with this number is another one, whatever its
    /// name, and not the same account renamed.
    pub fn ended(&mut self, gate: u32) {
        if let Some(name) = self.assigned.remove(&gate) {
            self.former.insert(gate, name);
        }
    }

    /// Assigns gates to accounts, each by the purse that represents it. The counts so far go to the
    /// previous accounts of the gates. A renamed account keeps its status.
    pub fn assign(
        &mut self,
        gates: &Gates,
        accounts: impl Iterator<Item = (u32, Arc<str>)>,
    ) -> Assigned {
        self.drain(gates);
        let mut changed = Vec::new();
        let assigned: HashMap<u32, Arc<str>> = accounts.collect();
        for (gate, name) in &assigned {
            let Some(before) = self.assigned.get(gate).filter(|before| *before != name) else {
                continue;
            };
            let is_known = assigned.values().any(|other| other == before);
            if !is_known
                && !self.by_account.contains_key(name)
                && let Some(status) = self.by_account.remove(before)
            {
                self.by_account.insert(name.clone(), status);
            } else {
                changed.push(*gate);
            }
        }
        self.former.retain(|gate, _| !assigned.contains_key(gate));
        let mut closed = Vec::new();
        for (gate, before) in std::mem::replace(&mut self.assigned, assigned) {
            if !self.assigned.contains_key(&gate) {
                closed.push(gate);
                self.former.insert(gate, before);
            }
        }
        self.forget();
        Assigned { closed, changed }
    }

    /// Drops the statuses of accounts that have no gate; keeps the counters of some of them.
    fn forget(&mut self) {
        let present: std::collections::HashSet<&Arc<str>> = self.assigned.values().collect();
        let mut room = MAX_CLOSED;
        self.by_account.retain(|name, status| {
            if present.contains(name) {
                return true;
            }
            *status = LimitStatus {
                soft_events: status.soft_events,
                counts: status.counts,
                ..LimitStatus::default()
            };
            let kept = room > 0 && !status.counts.is_empty();
            room -= usize::from(kept);
            kept
        });
    }

    /// Forgets where accounts were refused: the mode of the policy has changed.
    pub fn restart_places(&mut self) {
        for status in self.by_account.values_mut() {
            status.places.restart();
        }
    }

    /// Native memory that the counts by place hold, in bytes.
    pub fn places_bytes(&self) -> u64 {
        let statuses = self.by_account.values();
        statuses.map(|status| status.places.committed_bytes()).sum()
    }

    /// Adds the gates' counts and those of the places to the statuses.
    pub fn drain(&mut self, gates: &Gates) {
        for status in self.by_account.values_mut() {
            status.places.collect();
        }
        for (&gate, name) in self.assigned.iter().chain(&self.former) {
            let Some(counts) = gates.get(gate).map(Gate::drain) else {
                continue;
            };
            if let Some(status) = self.by_account.get_mut(name) {
                status.counts.add(&counts);
            } else if !counts.is_empty() {
                self.by_account.entry(name.clone()).or_default().counts = counts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::gate::Word;

    #[test]
    fn a_suspect_that_makes_garbage_wants_nothing_unless_it_has_grown_of_late() {
        const MIB: u64 = 1 << 20;
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let exactly = |bytes| Estimate { bytes, variance: 0 };
        let mut status = LimitStatus {
            phase: Phase::Suspect {
                since: Epoch::default(),
            },
            pace_bytes: 1000 * MIB,
            ..LimitStatus::default()
        };
        assert_eq!(
            status.wanted_bytes(begun),
            1000 * MIB,
            "nothing is known of it"
        );
        status.survival.begin(MIB, 100 * MIB);
        assert_eq!(status.wanted_bytes(begun), 0);
        status.filling.collected(exactly(0), 100 * MIB, begun);
        status
            .filling
            .collected(exactly(60 * MIB), 100 * MIB, begun);
        assert_eq!(
            status.wanted_bytes(at(1)),
            10 * MIB,
            "it leaks a percent of it"
        );
        assert_eq!(status.wanted_bytes(at(3)), 0);
        status.survival.observe(100 * MIB, 20 * MIB, 1);
        assert_eq!(status.wanted_bytes(at(3)), 200 * MIB);
        status.phase = Phase::Open;
        assert_eq!(status.wanted_bytes(at(3)), 0);
    }

    #[test]
    fn one_that_is_suspect_first_when_it_has_let_go_was_over_as_well() {
        let now = Instant::now();
        let suspect = Phase::Suspect {
            since: Epoch::default(),
        };
        let over = Phase::Over { limit_bytes: 1 };
        let was_over = |phases: &[Phase]| {
            let mut status = LimitStatus::default();
            for &phase in phases {
                status.enter(phase, Estimate::default(), now);
            }
            status.was_over()
        };
        assert!(was_over(&[suspect, over, Phase::Open]));
        assert!(was_over(&[suspect, over, suspect, Phase::Open]));
        assert!(!was_over(&[suspect, Phase::Open]));
        assert!(!was_over(&[
            suspect,
            over,
            Phase::Open,
            suspect,
            Phase::Open
        ]));
        assert!(!was_over(&[suspect, over]));
    }

    #[test]
    fn the_pace_of_a_suspect_that_is_held_does_not_fall() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut status = LimitStatus::default();
        status.follow_pace(0, false, begun);
        status.follow_pace(1000, false, at(1));
        assert_eq!(status.pace_bytes, 1000);
        status.follow_pace(1010, true, at(2));
        assert_eq!(status.pace_bytes, 1000);
        status.follow_pace(3010, true, at(3));
        assert_eq!(status.pace_bytes, 2000);
        status.follow_pace(3020, true, at(4));
        assert_eq!(status.pace_bytes, 10, "it has been held for long");
        status.follow_pace(1_003_020, false, at(5));
        status.follow_pace(1_003_020, false, at(6));
        assert_eq!(status.pace_bytes, 0, "it stopped by itself");
    }

    #[test]
    fn counts_follow_the_account_and_a_renamed_one_keeps_its_status() {
        let gates = Gates::new();
        let mut statuses = LimitStatuses::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        statuses.assign(&gates, [(3, a.clone())].into_iter());
        let gate = gates.make(3).unwrap();
        gate.set_word(Word {
            limited: true,
            ..Word::default()
        });
        statuses.status_mut(&a).enter(
            Phase::Over { limit_bytes: 9 },
            Estimate::default(),
            Instant::now(),
        );
        gate.count_refusal();
        let closed = statuses.assign(&gates, [(3, b.clone())].into_iter());
        assert_eq!(closed, Assigned::default());
        assert!(statuses.status("a").is_none());
        let status = statuses.status("b").unwrap();
        assert_eq!((status.state(), status.counts.refusals), (State::Over, 1));
        assert_eq!(statuses.assign(&gates, std::iter::empty()).closed, [3]);
        // A thread that had read the gate before it was closed.
        gate.count_refusal();
        statuses.drain(&gates);
        statuses.known_mut("b").unwrap().counts.threads_killed += 1;
        statuses.forget();
        let status = statuses.status("b").unwrap();
        assert_eq!((status.state(), status.counts.refusals), (State::Open, 2));
        assert_eq!(status.counts.threads_killed, 1);
        assert!(statuses.known_mut("nobody").is_none());
    }

    #[test]
    fn an_account_that_gets_the_number_of_an_ended_purse_begins_anew() {
        let gates = Gates::new();
        let mut statuses = LimitStatuses::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        statuses.assign(&gates, [(3, a.clone())].into_iter());
        let over = Phase::Over { limit_bytes: 9 };
        (statuses.status_mut(&a)).enter(over, Estimate::default(), Instant::now());
        gates.make(3).unwrap().count_refusal();
        statuses.ended(3);
        statuses.assign(&gates, [(3, b.clone())].into_iter());
        assert_eq!(statuses.status_mut(&b).state(), State::Open);
        let refusals = |name| statuses.status(name).unwrap().counts.refusals;
        assert_eq!((refusals("a"), refusals("b")), (1, 0));
    }

    #[test]
    fn the_history_is_short_and_readable() {
        let mut status = LimitStatus::default();
        let now = Instant::now();
        for turn in 0..10 {
            let phase = if turn % 2 == 0 {
                Phase::Over { limit_bytes: 1 }
            } else {
                Phase::Open
            };
            let charged = Estimate {
                bytes: turn,
                variance: 0,
            };
            assert!(status.enter(phase, charged, now));
        }
        let text = status.history(now).to_string();
        assert_eq!(text.matches("ago").count(), MAX_HISTORY);
        assert!(text.ends_with("open 0.0 s ago with 9B charged"), "{text}");
    }
}
