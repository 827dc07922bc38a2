//! The docket: one case for each account that has a limit, and what became of it.
//!
//! Written by the warden; read, under its lock, by reports. Never touched by an allocating
//! thread: those see their [`super::gate`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ledger::{Epoch, Ledger, PurseId};
use crate::report::State;

use super::gate::{Counts, Gate, Gates};
use super::overdraft::Survival;
use super::state::{Estimate, Phase, Proof};

/// Changes of state that a case remembers.
const MOST_HISTORY: usize = 6;
/// Cases of accounts that are gone, kept for their counters.
const MOST_CLOSED: usize = 1024;

/// One account's case.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) phase: Phase,
    /// Since when it is in this phase.
    pub(crate) since: Option<Instant>,
    pub(crate) survived: Proof,
    pub(crate) covered: Proof,
    pub(crate) survival: Survival,
    /// What the proofs are about.
    purses: Vec<PurseId>,
    pub(crate) above_soft: bool,
    pub(crate) soft_events: u64,
    /// As of the latest look: what it is charged, and its limits.
    pub(crate) charged: Estimate,
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) soft_limit_bytes: Option<u64>,
    /// Covering collections in a row that acquitted it.
    pub(crate) acquittals: u32,
    /// No covering collection is asked for on its behalf before this.
    pub(crate) not_before: Option<Instant>,
    /// The epoch that the next look at an account that is over must cover.
    pub(crate) recheck: Option<Epoch>,
    /// When the last such look was over.
    pub(crate) rechecked: Option<Instant>,
    pub(crate) counts: Counts,
    history: VecDeque<Change>,
}

/// One change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    at: Instant,
    to: State,
    charged_bytes: u64,
}

impl Case {
    pub(crate) fn state(&self) -> State {
        match self.phase {
            Phase::Open => State::Open,
            Phase::Suspect { .. } => State::Suspect,
            Phase::Over { .. } => State::Over,
        }
    }

    /// Enters a phase; true if the published state is another one now.
    pub(crate) fn enter(&mut self, phase: Phase, charged: Estimate, now: Instant) -> bool {
        let before = self.state();
        self.phase = phase;
        let after = self.state();
        if after == before {
            return false;
        }
        self.since = Some(now);
        if self.history.len() == MOST_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(Change {
            at: now,
            to: after,
            charged_bytes: charged.bytes,
        });
        true
    }

    /// The account is these purses from now on. If it has lost one, other than by its end, or has
    /// none of those that it had, what was proved proves nothing of the rest: it is looked at
    /// anew, and who was over is suspect since the epoch of that verdict. True if so.
    pub(crate) fn is_of(&mut self, ledger: &Ledger, purses: &[PurseId]) -> bool {
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
            self.survived = Proof::default();
            self.covered = Proof::default();
            self.survival = Survival::default();
        }
        has_lost
    }

    /// Whether it was over before the phase it is in.
    pub(crate) fn was_over(&self) -> bool {
        let before = self.history.iter().rev().nth(1);
        before.is_some_and(|change| change.to == State::Over)
    }

    /// How long it has been in this phase.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now - since)
    }

    /// The latest changes of state, oldest first.
    pub(crate) fn history(&self, now: Instant) -> impl fmt::Display {
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
                "{comma}{} {:.1} s ago at {} bytes charged",
                change.to.as_str(),
                (self.now - change.at).as_secs_f64(),
                change.charged_bytes
            )?;
        }
        Ok(())
    }
}

/// Which gates have changed hands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// Nobody's any more.
    pub(crate) closed: Vec<u32>,
    /// Of another case than before.
    pub(crate) changed: Vec<u32>,
}

/// All cases by account name, and which gate counts for which.
#[derive(Debug, Default)]
pub(crate) struct Docket {
    cases: BTreeMap<Arc<str>, Case>,
    assigned: HashMap<u32, Arc<str>>,
    /// Gates that are nobody's any more, by whose they were last: a thread may still be on its
    /// way past one.
    former: HashMap<u32, Arc<str>>,
}

impl Docket {
    pub(crate) fn case(&self, account: &str) -> Option<&Case> {
        self.cases.get(account)
    }

    /// All cases, by account.
    pub(crate) fn cases(&self) -> impl Iterator<Item = (&Arc<str>, &Case)> {
        self.cases.iter()
    }

    /// What all cases have counted.
    #[cfg(test)]
    pub(super) fn all_counts(&self) -> impl Iterator<Item = &Counts> {
        self.cases.values().map(|case| &case.counts)
    }

    /// The case of an account, opened if need be.
    pub(crate) fn case_mut(&mut self, account: &Arc<str>) -> &mut Case {
        self.cases.entry(account.clone()).or_default()
    }

    /// The purse that a gate is of has ended: whoever has its number next is somebody else, whatever
    /// their names, and not the same account renamed.
    pub(crate) fn ended(&mut self, gate: u32) {
        if let Some(name) = self.assigned.remove(&gate) {
            self.former.insert(gate, name);
        }
    }

    /// Assigns gates to accounts, each by the purse that represents it. What the gates have
    /// counted so far goes to whom they counted for. An account that has another name now
    /// keeps its case.
    pub(crate) fn assign(
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
                && !self.cases.contains_key(name)
                && let Some(case) = self.cases.remove(before)
            {
                self.cases.insert(name.clone(), case);
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

    /// Keeps the cases of accounts that have a gate, and the counters of some others.
    fn forget(&mut self) {
        let present: std::collections::HashSet<&Arc<str>> = self.assigned.values().collect();
        let mut room = MOST_CLOSED;
        self.cases.retain(|name, case| {
            if present.contains(name) {
                return true;
            }
            *case = Case {
                soft_events: case.soft_events,
                counts: case.counts,
                ..Case::default()
            };
            let kept = room > 0 && case.counts.due() > 0;
            room -= usize::from(kept);
            kept
        });
    }

    /// Takes in what the gates have counted.
    pub(crate) fn drain(&mut self, gates: &Gates) {
        for (&gate, name) in self.assigned.iter().chain(&self.former) {
            let Some(counts) = gates.get(gate).map(Gate::drain) else {
                continue;
            };
            if let Some(case) = self.cases.get_mut(name) {
                case.counts.add(&counts);
            } else if counts.due() > 0 {
                self.cases.entry(name.clone()).or_default().counts = counts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::gate::Word;

    #[test]
    fn counts_follow_the_account_and_a_renamed_one_keeps_its_case() {
        let gates = Gates::new();
        let mut docket = Docket::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        docket.assign(&gates, [(3, a.clone())].into_iter());
        let gate = gates.make(3).unwrap();
        gate.say(Word {
            limited: true,
            ..Word::default()
        });
        docket.case_mut(&a).enter(
            Phase::Over { limit_bytes: 9 },
            Estimate::default(),
            Instant::now(),
        );
        gate.count_refusal();
        let closed = docket.assign(&gates, [(3, b.clone())].into_iter());
        assert_eq!(closed, Assigned::default());
        assert!(docket.case("a").is_none());
        let case = docket.case("b").unwrap();
        assert_eq!((case.state(), case.counts.refusals), (State::Over, 1));
        assert_eq!(docket.assign(&gates, std::iter::empty()).closed, [3]);
        // A thread that had looked at the gate before it was closed.
        gate.count_refusal();
        docket.drain(&gates);
        let case = docket.case("b").unwrap();
        assert_eq!((case.state(), case.counts.refusals), (State::Open, 2));
    }

    #[test]
    fn who_gets_the_number_of_a_purse_that_ended_begins_anew() {
        let gates = Gates::new();
        let mut docket = Docket::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        docket.assign(&gates, [(3, a.clone())].into_iter());
        let over = Phase::Over { limit_bytes: 9 };
        (docket.case_mut(&a)).enter(over, Estimate::default(), Instant::now());
        gates.make(3).unwrap().count_refusal();
        docket.ended(3);
        docket.assign(&gates, [(3, b.clone())].into_iter());
        assert_eq!(docket.case_mut(&b).state(), State::Open);
        let refusals = |name| docket.case(name).unwrap().counts.refusals;
        assert_eq!((refusals("a"), refusals("b")), (1, 0));
    }

    #[test]
    fn the_history_is_short_and_readable() {
        let mut case = Case::default();
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
            assert!(case.enter(phase, charged, now));
        }
        let text = case.history(now).to_string();
        assert_eq!(text.matches("ago").count(), MOST_HISTORY);
        assert!(
            text.ends_with("open 0.0 s ago at 9 bytes charged"),
            "{text}"
        );
    }
}
