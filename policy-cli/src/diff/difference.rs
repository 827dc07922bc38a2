//! The difference of two snapshots, and its error.
//!
//! # Of one run
//! Both documents sum their records by cohort, and the newer one is cut where the older one ended. So for
//! each class of each account, over the cuts that both have:
//!
//! * a cohort that shrank: what it lost *went*; its records were in the older snapshot alone, and the error
//!   of what went is the difference of the two variances;
//! * a cohort that grew, which is rare (it was charged late, or its account was renamed): that *came*;
//! * what was born after the older snapshot *came*.
//!
//! Records that stayed are in both sums and cancel to the last bit, so without a change the difference is exactly zero,
//! and otherwise its error is that of what came and of what went. Where a cut is missing (the agent forgot it, see
//! `cohorts_joined`), the cohorts around it are taken for independent: the difference is the same, and its error is
//! larger.
//!
//! # Of two runs
//! No record is in both: all of the old went, all of the new came, and both errors add up.
//!
//! # Sums
//! The change of an account is the sum over its classes, the whole change is the sum over the accounts, and
//! so are the variances. What a document does not list by class is a row of its own, [`UNLISTED`].
//!
//! # What is not claimed
//! A sample stands for many objects: a change that is small against the sampling interval may have no
//! sample at all ([`Difference::unseen_bytes`]). And live bytes are of the latest collection: garbage in
//! old memory counts until a collection has found it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use policy_report::{Account, Class, Held, Snapshot};

/// The row of what an account holds and its document does not list by class.
pub(crate) const UNLISTED: &str = "(not listed)";
/// How many standard errors a change must be away from zero to count as one.
pub(crate) const SIGNIFICANT: f64 = 3.0;

/// The live bytes and objects that came and that went between two snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Change {
    /// Live bytes in the older and the newer snapshot.
    pub(crate) old_bytes: u64,
    pub(crate) new_bytes: u64,
    /// Bytes that are in the newer one only, and in the older one only.
    pub(crate) came_bytes: u64,
    pub(crate) went_bytes: u64,
    /// The same as an estimated number of objects.
    pub(crate) came_objects: u64,
    pub(crate) went_objects: u64,
    /// The variance of the change, in squared bytes.
    pub(crate) variance: f64,
}

impl Change {
    /// The change of the live bytes.
    pub(crate) fn bytes(&self) -> i64 {
        let change = i128::from(self.new_bytes) - i128::from(self.old_bytes);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    }

    /// The change of the number of objects.
    pub(crate) fn objects(&self) -> i64 {
        let change = i128::from(self.came_objects) - i128::from(self.went_objects);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    }

    /// Its standard error, in bytes.
    pub(crate) fn standard_error(&self) -> f64 {
        self.variance.max(0.0).sqrt()
    }

    /// Whether the change is further from zero than chance explains.
    pub(crate) fn is_significant(&self) -> bool {
        self.bytes() != 0
            && self.bytes().unsigned_abs() as f64 >= SIGNIFICANT * self.standard_error()
    }

    /// Whether anything came or went at all.
    pub(crate) fn is_none(&self) -> bool {
        self.came_bytes == 0 && self.went_bytes == 0
    }

    fn came(&mut self, held: &Sum) {
        self.came_bytes = self.came_bytes.saturating_add(held.bytes);
        self.came_objects = self.came_objects.saturating_add(held.objects);
        self.variance += held.variance;
    }

    fn went(&mut self, held: &Sum) {
        self.went_bytes = self.went_bytes.saturating_add(held.bytes);
        self.went_objects = self.went_objects.saturating_add(held.objects);
        self.variance += held.variance;
    }

    fn add(&mut self, other: &Change) {
        self.old_bytes = self.old_bytes.saturating_add(other.old_bytes);
        self.new_bytes = self.new_bytes.saturating_add(other.new_bytes);
        self.came_bytes = self.came_bytes.saturating_add(other.came_bytes);
        self.went_bytes = self.went_bytes.saturating_add(other.went_bytes);
        self.came_objects = self.came_objects.saturating_add(other.came_objects);
        self.went_objects = self.went_objects.saturating_add(other.went_objects);
        self.variance += other.variance;
    }
}

/// The change of one class of an account.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassChange {
    pub(crate) class: String,
    pub(crate) change: Change,
}

/// The live bytes and objects of one account that came and that went, of those born in one period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BirthChange {
    /// The last collection before which they were born.
    pub(crate) upto_epoch: u64,
    /// When that was known.
    pub(crate) at: String,
    pub(crate) change: Change,
}

/// The change of one account.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccountChange {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// Whether the older, and the newer snapshot has it.
    pub(crate) is_in: [bool; 2],
    pub(crate) change: Change,
    /// Significant ones first, then by size.
    pub(crate) classes: Vec<ClassChange>,
    /// By birth, oldest first; empty for two runs.
    pub(crate) births: Vec<BirthChange>,
}

/// The difference of two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Both are of one run of the JVM.
    pub(crate) is_same_run: bool,
    /// The newer one was cut where the older one ended, so that what stayed has cancelled.
    pub(crate) is_cut: bool,
    pub(crate) total: Change,
    /// Significant ones first, then by size.
    pub(crate) accounts: Vec<AccountChange>,
    /// A change of this size may go without a single sample (in fewer than 5 % of cases).
    pub(crate) unseen_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    bytes: u64,
    objects: u64,
    variance: f64,
}

impl Sum {
    fn add(&mut self, held: &Held, unit: f64) {
        self.bytes = self.bytes.saturating_add(held.live_bytes);
        self.objects = self.objects.saturating_add(held.live_objects);
        self.variance += held.variance as f64 * unit;
    }
}

/// Subtracts the older snapshot from the newer one.
pub(crate) fn difference(old: &Snapshot<'_>, new: &Snapshot<'_>) -> Difference {
    let context = Context::of(old, new);
    let is_same_run = context.is_same_run;
    let is_cut = is_same_run
        && match old.cohorts.last() {
            Some(last) => context.cuts.last() == Some(&last.upto_epoch),
            None => true,
        };
    let mut names: BTreeMap<&str, [Option<&Account<'_>>; 2]> = BTreeMap::new();
    for (side, snapshot) in [old, new].into_iter().enumerate() {
        for account in &snapshot.accounts {
            names.entry(&account.name).or_default()[side] = Some(account);
        }
    }
    let accounts = names.into_iter();
    let mut accounts: Vec<AccountChange> = accounts
        .map(|(name, sides)| context.account(name, sides))
        .collect();
    let mut total = Change::default();
    for account in &accounts {
        total.add(&account.change);
    }
    accounts.sort_by(|a, b| order(&a.change, &b.change).then_with(|| a.name.cmp(&b.name)));
    // Above: 1 - exp(-s/I) is 95 % at three intervals.
    let interval = old.sampling.interval_bytes.max(new.sampling.interval_bytes);
    Difference {
        is_same_run,
        is_cut,
        total,
        accounts,
        unseen_bytes: interval.saturating_mul(3),
    }
}

fn order(a: &Change, b: &Change) -> std::cmp::Ordering {
    let size = |change: &Change| change.bytes().unsigned_abs();
    (b.is_significant().cmp(&a.is_significant())).then_with(|| size(b).cmp(&size(a)))
}

fn unit(snapshot: &Snapshot<'_>) -> f64 {
    snapshot.variance_unit_bytes2.max(1) as f64
}

/// The ends of cohorts that both have, ascending.
fn common_cuts(old: &Snapshot<'_>, new: &Snapshot<'_>) -> Vec<u64> {
    let ends = |of: &Snapshot<'_>| of.cohorts.iter().map(|one| one.upto_epoch).collect();
    let (old, new): (BTreeSet<u64>, BTreeSet<u64>) = (ends(old), ends(new));
    old.intersection(&new).copied().collect()
}

/// When each cohort ended.
fn times(old: &Snapshot<'_>, new: &Snapshot<'_>) -> BTreeMap<u64, String> {
    let cohorts = old.cohorts.iter().chain(&new.cohorts);
    cohorts
        .map(|cohort| (cohort.upto_epoch, cohort.at.clone().into_owned()))
        .collect()
}

/// The facts that both documents state about themselves: their run, their cohorts and their unit of variance.
pub(super) struct Context {
    is_same_run: bool,
    /// The ends of cohorts that both have, ascending; empty for two runs.
    cuts: Vec<u64>,
    times: BTreeMap<u64, String>,
    units: [f64; 2],
}

impl Context {
    pub(super) fn of(old: &Snapshot<'_>, new: &Snapshot<'_>) -> Context {
        let is_same_run = !old.run.id.is_empty() && old.run.id == new.run.id;
        Context {
            is_same_run,
            cuts: match is_same_run {
                true => common_cuts(old, new),
                false => Vec::new(),
            },
            times: times(old, new),
            units: [unit(old), unit(new)],
        }
    }

    fn account(&self, name: &str, sides: [Option<&Account<'_>>; 2]) -> AccountChange {
        let mut rows: HashMap<&str, [Option<&Class<'_>>; 2]> = HashMap::new();
        let mut unlisted = [Sum::default(); 2];
        for (side, account) in sides.iter().enumerate() {
            let Some(account) = account else { continue };
            let mut rest = account.live_bytes;
            for class in &account.classes {
                rows.entry(&class.class).or_default()[side] = Some(class);
                rest = rest.saturating_sub(class.live_bytes);
            }
            let seen: f64 = (account.classes.iter().flat_map(|class| &class.cohorts))
                .map(|held| held.variance as f64 * self.units[side])
                .sum();
            let error = account.live_standard_error_bytes.unwrap_or(0) as f64;
            // The published error is rounded up to a byte.
            let more = ((error - 1.0).max(0.0).powi(2) - seen).max(0.0);
            unlisted[side] = Sum {
                bytes: rest,
                objects: 0,
                variance: more,
            };
        }
        let mut births: BTreeMap<u64, Change> = BTreeMap::new();
        let mut classes: Vec<ClassChange> = (rows.into_iter())
            .map(|(class, sides)| ClassChange {
                class: class.to_owned(),
                change: self.class(sides, &mut births),
            })
            .collect();
        if unlisted.iter().any(|side| side.bytes > 0) {
            let mut change = Change {
                old_bytes: unlisted[0].bytes,
                new_bytes: unlisted[1].bytes,
                ..Change::default()
            };
            change.went(&unlisted[0]);
            change.came(&unlisted[1]);
            classes.push(ClassChange {
                class: UNLISTED.to_owned(),
                change,
            });
            unlisted = [Sum::default(); 2];
        }
        let mut change = Change::default();
        for class in &classes {
            change.add(&class.change);
        }
        // Beside its records, the account's error counts large arrays of which samples were passed over. Nobody knows
        // which of those came or went, unless nothing did.
        if !change.is_none() {
            change.variance += unlisted[0].variance + unlisted[1].variance;
        }
        classes.sort_by(|a, b| order(&a.change, &b.change).then_with(|| a.class.cmp(&b.class)));
        let kind = sides
            .iter()
            .rev()
            .flatten()
            .next()
            .map(|account| account.kind.clone());
        AccountChange {
            name: name.to_owned(),
            kind: kind.unwrap_or_default().into_owned(),
            is_in: sides.map(|side| side.is_some()),
            change,
            classes,
            births: (births.into_iter())
                .map(|(upto_epoch, change)| BirthChange {
                    upto_epoch,
                    at: self.times.get(&upto_epoch).cloned().unwrap_or_default(),
                    change,
                })
                .collect(),
        }
    }

    /// The change of one class; what came and went of each period is added to `births`.
    fn class(&self, sides: [Option<&Class<'_>>; 2], births: &mut BTreeMap<u64, Change>) -> Change {
        let live = sides.map(|class| class.map_or(0, |class| class.live_bytes));
        let cohorts = sides.map(|class| class.map_or(&[][..], |class| &class.cohorts[..]));
        self.change(live, cohorts, births)
    }

    /// The change of what has these live bytes and cohorts; what came and went of each period is added to
    /// `births`.
    pub(super) fn change(
        &self,
        live: [u64; 2],
        cohorts: [&[Held]; 2],
        births: &mut BTreeMap<u64, Change>,
    ) -> Change {
        let mut change = Change {
            old_bytes: live[0],
            new_bytes: live[1],
            ..Change::default()
        };
        // By place among the common cuts; the last place is what was born after all of them.
        let mut sums = vec![[Sum::default(); 2]; self.cuts.len() + 1];
        // The last ends of cohorts, in which what is beyond the common cuts is shown.
        let mut beyond: BTreeMap<u64, [Sum; 2]> = BTreeMap::new();
        for (side, cohorts) in cohorts.into_iter().enumerate() {
            for held in cohorts {
                let place = self.cuts.partition_point(|&cut| cut < held.upto_epoch);
                sums[place][side].add(held, self.units[side]);
                if place == self.cuts.len() {
                    let sums = beyond.entry(held.upto_epoch).or_default();
                    sums[side].add(held, self.units[side]);
                }
            }
        }
        for (cut, [old, new]) in self.cuts.iter().zip(&sums) {
            let gone = Sum {
                bytes: old.bytes.saturating_sub(new.bytes),
                objects: old.objects.saturating_sub(new.objects),
                variance: (old.variance - new.variance).abs(),
            };
            let come = Sum {
                bytes: new.bytes.saturating_sub(old.bytes),
                objects: new.objects.saturating_sub(old.objects),
                variance: 0.0,
            };
            if gone == Sum::default() && come == Sum::default() {
                let birth = births.entry(*cut).or_default();
                birth.old_bytes = birth.old_bytes.saturating_add(old.bytes);
                birth.new_bytes = birth.new_bytes.saturating_add(new.bytes);
                continue;
            }
            let mut of_cohort = Change {
                old_bytes: old.bytes,
                new_bytes: new.bytes,
                ..Change::default()
            };
            of_cohort.went(&gone);
            of_cohort.came(&come);
            change.went(&gone);
            change.came(&come);
            births.entry(*cut).or_default().add(&of_cohort);
        }
        let [old, new] = sums[self.cuts.len()];
        change.went(&old);
        change.came(&new);
        for (upto, [old, new]) in beyond {
            let mut of_cohort = Change {
                old_bytes: old.bytes,
                new_bytes: new.bytes,
                ..Change::default()
            };
            of_cohort.went(&old);
            of_cohort.came(&new);
            births.entry(upto).or_default().add(&of_cohort);
        }
        if !self.is_same_run {
            births.clear();
        }
        change
    }
}

#[cfg(test)]
mod tests;
