//! One round over the accounts that have limits: what each is charged, what is left of it where
//! a collection has proved something, and what follows ([`super::visit`]). Knows the ledger,
//! the gates and the docket, no directory and no JVM; so the whole protocol can be played
//! through without one.

use std::collections::HashMap;
use std::time::Duration;

use crate::ledger::{Epoch, Ledger, PurseId};

use super::docket::{Assigned, Case, Docket};
use super::gate::Gates;
use super::ladder::Wish;
use super::logbook::Logbook;
use super::state::{Estimate, Phase, Proof};
use super::visit::{Around, Limited, Visit};

/// What is carried from round to round.
#[derive(Default)]
pub(super) struct Round {
    limited: Vec<Limited>,
    /// The boundaries at the last pass over the records.
    scanned: (Option<Epoch>, Option<Epoch>),
    pub(super) logbook: Logbook,
}

impl Round {
    /// The accounts that have limits.
    pub(super) fn limited(&self) -> &[Limited] {
        &self.limited
    }

    /// The accounts that have limits from now on. Returns the gates that are nobody's any more;
    /// they are told so.
    pub(super) fn adopt(
        &mut self,
        limited: Vec<Limited>,
        ledger: &Ledger,
        docket: &mut Docket,
        gates: &Gates,
        publish: impl FnOnce(),
    ) -> Vec<u32> {
        let assigned = limited.iter().map(|l| (l.gate, l.account.clone()));
        let Assigned {
            closed,
            mut changed,
        } = docket.assign(gates, assigned);
        for limited in &limited {
            if docket
                .case_mut(&limited.account)
                .is_of(ledger, &limited.purses)
            {
                changed.push(limited.gate);
            }
        }
        for &number in closed.iter().chain(&changed) {
            if let Some(gate) = gates.get(number) {
                gate.close();
            }
        }
        publish();
        self.limited = limited;
        closed
    }

    /// Goes round once. What evidence is wanted, and when to look again at the latest.
    /// `publish` is told the terms of every account that has a limit.
    pub(super) fn turn(
        &mut self,
        around: &Around<'_>,
        docket: &mut Docket,
        publish: &mut dyn FnMut(&Limited, u64, &Case),
    ) -> (Wish, Duration) {
        let epochs = around.ledger.epochs();
        let epoch = epochs.current();
        let mut visits: Vec<Visit> = (self.limited.iter().map(|l| Visit::to(around, l))).collect();
        for (limited, visit) in self.limited.iter().zip(&mut visits) {
            let case = docket.case_mut(&limited.account);
            visit.near |= case.phase != Phase::Open || case.above_soft;
        }
        let near = (self.limited.iter().zip(&visits)).filter(|(_, visit)| visit.near);
        around.gates.watch(near.map(|(limited, _)| limited.gate));
        let boundaries = (epochs.boundary(), epochs.covered());
        let known = |l: &Limited| {
            docket
                .case(&l.account)
                .is_some_and(|c| c.survived.upto.is_some())
        };
        let someone_new = (self.limited.iter().zip(&visits)).any(|(l, v)| v.near && !known(l));
        if visits.iter().any(|v| v.near)
            && boundaries.0.is_some()
            && (boundaries != self.scanned || someone_new)
        {
            self.scan(around, docket, &mut visits, boundaries);
        }
        let mut wish = Wish::None;
        let mut again = Duration::from_secs(1);
        for (limited, visit) in self.limited.iter().zip(&visits) {
            let case = docket.case_mut(&limited.account);
            let (wanted, soon) =
                visit.judge(around, epoch, limited, case, &mut self.logbook, publish);
            wish = wish.max(wanted);
            again = again.min(soon);
        }
        (wish, again)
    }

    /// One pass over the records for the accounts that are near their limits.
    fn scan(
        &mut self,
        around: &Around<'_>,
        docket: &mut Docket,
        visits: &mut [Visit],
        boundaries: (Option<Epoch>, Option<Epoch>),
    ) {
        let since = self.scanned.0;
        let (survived_upto, covered_upto) = boundaries;
        // The purse of a scope is in two accounts at the most: its own and its service's.
        let mut places: HashMap<PurseId, Vec<usize>> = HashMap::new();
        for (place, (limited, _)) in (self.limited.iter().zip(visits.iter()))
            .enumerate()
            .filter(|(_, (_, visit))| visit.near)
        {
            for &purse in &limited.purses {
                places.entry(purse).or_default().push(place);
            }
        }
        let mut sums = vec![(Estimate::default(), Estimate::default()); visits.len()];
        around.ledger.scan(|record| {
            let Some(places) = places.get(&record.payer) else {
                return;
            };
            let born = Some(record.birth);
            let (bytes, variance) = (record.charge.bytes, record.charge.variance);
            for &place in places {
                if born <= survived_upto {
                    sums[place].0.add(bytes, variance);
                    if born > since {
                        visits[place].cohort.add(bytes, variance);
                    }
                }
                if born <= covered_upto {
                    sums[place].1.add(bytes, variance);
                }
            }
        });
        let interval = around.interval_bytes();
        for (place, (survived, covered)) in sums.into_iter().enumerate() {
            if !visits[place].near {
                continue;
            }
            let case = docket.case_mut(&self.limited[place].account);
            let gate = around.gates.get(self.limited[place].gate);
            if let (Some(gate), Some(since), Some(upto)) = (gate, since, survived_upto)
                && let Some(born) = gate.born_between(since, upto)
            {
                (case.survival).observe(born, visits[place].cohort.bytes, interval);
            }
            case.survived = Proof {
                upto: survived_upto,
                left: survived,
            };
            case.covered = Proof {
                upto: covered_upto,
                left: covered,
            };
        }
        self.scanned = boundaries;
    }
}
