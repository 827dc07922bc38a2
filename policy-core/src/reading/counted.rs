//! The first step of a reading: the records are scanned once and summed up by number, without a lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::cohorts::Cohorts;
use crate::counted_since::classes::OfClasses;
use crate::counted_since::{Base, Sums};
use crate::holdings::{EpochTimes, Tally};
use crate::identity::classes::ClassId;
use crate::identity::directory::counting::Ended;
use crate::ledger::{ClassTotals, Ledger, PurseId};
use crate::live_by_ratio::{self, Estimated, LiveByRatio};
use crate::sampling::{Charge, standard_error_bytes};
use crate::uncertainty::{Survivors, Uncertainty};

/// Live records are summed by this: payer, agent account, principal.
pub(super) type Group = (PurseId, PurseId, PurseId);

/// The sums of the first step, by number.
pub(super) struct Counted {
    /// Live bytes, and live objects in units of 2^-16.
    pub(super) groups: HashMap<Group, (u64, u64)>,
    /// All records by payer and class.
    pub(super) tally: Tally,
    /// The bytes and objects that were ever allocated by class, of every open purse.
    pub(super) allocated: HashMap<PurseId, Vec<(u32, ClassTotals)>>,
    /// The live charges and their errors, by the purse that pays.
    pub(super) survivors: Survivors,
    /// The live charges by cohort, if they were asked for.
    pub(super) cohorts: Option<Cohorts>,
    /// The exact counts, and the part of them that is alive, while something is counted.
    pub(super) since: Option<Since>,
    /// The same by class.
    pub(super) of_classes: OfClasses,
}

/// The parts of live bytes by ratio, by the purse that pays.
pub(super) struct Since {
    pub(super) base: Arc<Base>,
    pub(super) sums: HashMap<PurseId, Sums>,
    /// Live charges of objects that were allocated since the base.
    pub(super) live: HashMap<PurseId, Charge>,
    /// The same by class.
    pub(super) live_of_classes: HashMap<(PurseId, u32), Charge>,
}

impl Since {
    /// The live bytes by ratio of these purses, whose live charges are `live` in all.
    pub(super) fn live_by_ratio(
        &self,
        ledger: &Ledger,
        purses: &[PurseId],
        live: &Charge,
        uncertainty: &Uncertainty,
    ) -> Option<LiveByRatio> {
        let (mut sums, mut since) = (Sums::default(), Charge::default());
        for purse in purses {
            sums += self.sums.get(purse).copied().unwrap_or_default();
            since += self.live.get(purse).copied().unwrap_or_default();
        }
        // Of thinned samples: nobody knows which of them.
        let more =
            uncertainty.live_error_bytes.powi(2) - standard_error_bytes(live.variance).powi(2);
        let mut of_live = estimated(since.bytes, since.variance);
        let mut allocated = estimated(sums.allocated_bytes, sums.allocated_variance);
        of_live.variance_bytes2 += more.max(0.0);
        allocated.variance_bytes2 += 2.0 * more.max(0.0);
        let parts = live_by_ratio::Since {
            counted_bytes: sums.counted_bytes as f64,
            allocated,
            live: of_live,
            live_before: estimated(
                live.bytes.saturating_sub(since.bytes),
                live.variance.saturating_sub(since.variance),
            ),
            interval_bytes: self.base.interval_bytes(ledger) as f64,
        };
        parts.live_by_ratio()
    }
}

pub(super) fn estimated(bytes: u64, variance: u64) -> Estimated {
    Estimated {
        bytes: bytes as f64,
        variance_bytes2: standard_error_bytes(variance).powi(2),
    }
}

pub(super) fn count(
    ledger: &Ledger,
    since: Option<(Arc<Base>, HashMap<PurseId, Sums>)>,
    of_classes: OfClasses,
    used_after_gc_bytes: u64,
    times: EpochTimes,
    mut cohorts: Option<Cohorts>,
) -> Counted {
    let mut groups: HashMap<Group, (u64, u64)> = HashMap::new();
    let mut tally = Tally::new(times);
    let mut since = since.map(|(base, sums)| Since {
        base,
        sums,
        live: HashMap::new(),
        live_of_classes: HashMap::new(),
    });
    let survivors = Survivors::of(ledger, used_after_gc_bytes, |record| {
        tally.add(record);
        if !record.survived {
            return;
        }
        let key = (record.payer, record.agent_account, record.principal);
        let sums = groups.entry(key).or_default();
        sums.0 = sums.0.wrapping_add(record.live.bytes);
        sums.1 = sums.1.wrapping_add(record.live.objects);
        if let Some(since) = since.as_mut().filter(|since| since.base.is_since(record)) {
            *since.live.entry(record.payer).or_default() += record.live;
            let of_class = (since.live_of_classes).entry((record.payer, record.class));
            *of_class.or_default() += record.live;
        }
        if let Some(cohorts) = &mut cohorts {
            cohorts.add(record);
        }
    });
    let mut allocated = HashMap::new();
    for purse in open_purses(ledger) {
        let mut classes = Vec::new();
        ledger.allocated_by_class(purse, |class, totals| classes.push((class, totals)));
        allocated.insert(purse, classes);
    }
    Counted {
        groups,
        tally,
        allocated,
        survivors,
        cohorts,
        since,
        of_classes,
    }
}

pub(super) fn open_purses(ledger: &Ledger) -> impl Iterator<Item = PurseId> {
    (0..ledger.purse_high_water())
        .map(|number| PurseId::new(number as u16))
        .filter(|&purse| ledger.is_open(purse))
}

impl Counted {
    /// Drops the sums under numbers that were given back meanwhile: no record names them any more,
    /// and they may have a new owner.
    pub(super) fn forget(&mut self, ended: &Ended) {
        let Ended { purses, classes } = ended;
        if !purses.is_empty() || !classes.is_empty() {
            (self.groups).retain(|(payer, agent_account, principal), _| {
                [payer, agent_account, principal]
                    .iter()
                    .all(|p| !purses.contains(p))
            });
            self.tally.retain(|key| {
                !classes.contains(&ClassId(key.class)) && !purses.contains(&key.payer)
            });
            self.allocated.retain(|purse, _| !purses.contains(purse));
            self.survivors.forget(purses);
            if let Some(since) = &mut self.since {
                since.live.retain(|purse, _| !purses.contains(purse));
                (since.live_of_classes).retain(|(purse, class), _| {
                    !purses.contains(purse) && !classes.contains(&ClassId(*class))
                });
            }
            let OfClasses { counted, sampled } = &mut self.of_classes;
            counted.retain(|purse, _| !purses.contains(purse));
            sampled.retain(|purse, _| !purses.contains(purse));
            for sampled in sampled.values_mut() {
                sampled.retain(|class, _| !classes.contains(&ClassId(*class)));
            }
            if let Some(cohorts) = &mut self.cohorts {
                cohorts.forget(purses, |class| classes.contains(&ClassId(class)));
            }
        }
    }

    /// The classes that were counted.
    pub(super) fn classes(&self) -> HashSet<u32> {
        let live = self.tally.rows.iter().map(|row| row.key.class);
        let allocated = self.allocated.values().flatten().map(|&(class, _)| class);
        live.chain(allocated).collect()
    }
}
