//! The watch: judges leaks after each pass over the records, and asks for collections in between. On the
//! holdings thread.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use policy_config::Policy;

use crate::core::Core;
use crate::holdings::histogram::Shape;
use crate::holdings::{Pass, Row};
use crate::ledger::PurseId;
use crate::sampling::weight::{OBJECT_UNIT, VARIANCE_UNIT_BYTES2};
use crate::sites::survivors::{Most, Site};
use crate::sites::wanted::{Asker, Row as SiteRow};
use crate::snapshot::{Kind, OTHER};
use crate::uncertainty::{stated_error_bytes, widened};

use super::asking::Asking;
use super::detector::{Detector, Judged, findings, windows_ms};
use super::forecast::{Level, forecast};
use super::grouping::{self, Group};
use super::history::{Births, History, Look, RowName, RowSeen};
use super::statistic::{FEWEST_GROWN, FEWEST_OLD, STILL, Verdict};
use super::{Exhausts, Growing, MAX_GROWING, MAX_SUSPECTS, Moment, Report, Suspect};

/// The most rows of which stacks are asked for.
const MAX_WITH_SITES: usize = 64;
/// The most sites of one suspect.
const MAX_SITES: usize = 5;
/// A request that brought nothing in this time is given up, in milliseconds.
const PATIENCE_MS: u64 = 60_000;
/// The shortest time between two looks for candidates, in milliseconds.
const PEEK_MS: u64 = 10_000;
const LONGEST_PEEK_MS: u64 = 60_000;

/// The time between two renewals of the sites, in milliseconds.
const REFRESH_MS: u64 = 5_000;

const ONE_LOOK: &str = "two collections of old memory are needed, one about the middle of the time so far; one so far, or both too close";

/// Everything that the holdings thread keeps about leaks.
#[derive(Debug, Default)]
pub struct Watch {
    history: History,
    detector: Detector,
    asking: Asking,
    /// Until when the present request stands.
    asked_until_ms: Option<u64>,
    peeked_ms: u64,
    refreshed_ms: u64,
}

/// The changes at a look: lines for the log.
pub type Lines = Vec<String>;

impl Watch {
    /// Judges after a pass, publishes the report, and asks for the stacks of suspects. Returns lines for the
    /// log.
    pub fn took(&mut self, core: &Core, pass: &Pass, policy: &Policy) -> Lines {
        let look = look(pass);
        let rows = numbers(pass);
        self.history.push(look);
        self.asked_until_ms = None;
        core.leaks.wants_cover.store(false, Ordering::Relaxed);
        let judged = self.detector.judge(&self.history);
        self.asking.looked(&judged, pass.at_ms);
        let report = self.report(core, pass, policy, judged, &rows);
        let lines = news(&core.leaks.report(), &report);
        core.leaks.report.store(Arc::new(report));
        let memory = self.memory_bytes();
        core.leaks.memory_bytes.store(memory, Ordering::Relaxed);
        lines
    }

    /// Looks for candidates that are short of proofs, between the passes, and asks for a collection of old
    /// memory if there are any. Returns whether it made a pass over the records.
    pub fn peek(&mut self, core: &Core, now_ms: u64) -> bool {
        let is_rare = core.leaks.is_cover_dear.load(Ordering::Relaxed);
        if let Some(until_ms) = self.asked_until_ms
            && now_ms >= until_ms
        {
            self.asked_until_ms = None;
            core.leaks.wants_cover.store(false, Ordering::Relaxed);
        }
        let again_ms = (now_ms / 20).clamp(PEEK_MS, LONGEST_PEEK_MS);
        if self.asked_until_ms.is_some()
            || core.enforcement.evidence_share() <= 0.0
            || now_ms < self.peeked_ms + again_ms
            || !self.asking.may_ask(now_ms, is_rare)
        {
            return false;
        }
        self.peeked_ms = now_ms;
        let pass = Pass::take_charged(core, now_ms);
        let look = look(&pass);
        if self.has_candidate(&look, now_ms) {
            self.asking.asked(now_ms);
            self.asked_until_ms = Some(now_ms + PATIENCE_MS);
            core.leaks.wants_cover.store(true, Ordering::Relaxed);
            core.enforcer.wake();
        }
        true
    }

    /// Brings the report up to date between the passes: stacks are taken after a row has become suspect, and
    /// a policy may acknowledge it. Returns lines for the log.
    pub fn refresh(&mut self, core: &Core, policy: &Policy, now_ms: u64) -> Lines {
        let before = core.leaks.report();
        if before.suspects.is_empty() || now_ms < self.refreshed_ms + REFRESH_MS {
            return Lines::new();
        }
        self.refreshed_ms = now_ms;
        let mut after = Report::clone(&before);
        after.suspects.retain(|one| {
            let mut leaks = policy.leaks.iter();
            let is_known = leaks.any(|leak| leak.matches(&one.account, &one.class));
            if is_known {
                after.acknowledged.push(Growing {
                    account: one.account.clone(),
                    class: one.class.clone(),
                    why: "acknowledged",
                    live_bytes: one.live_bytes,
                    growth_bytes_per_second: one.growth_bytes_per_second,
                });
            }
            !is_known
        });
        let numbers = after
            .suspects
            .iter()
            .enumerate()
            .flat_map(|(place, one)| one.rows.iter().map(move |&numbers| (numbers, place)));
        let sites = sites_of(core, &numbers.collect());
        for (place, one) in after.suspects.iter_mut().enumerate() {
            one.sites = sites.get(&place).cloned().unwrap_or_default();
            one.kept_by = core.leaks.kept_by(&one.account, &one.class);
        }
        let lines = news(&before, &after);
        core.leaks.report.store(Arc::new(after));
        lines
    }

    /// Rule 1 of [`super::asking`].
    fn has_candidate(&self, look: &Look, now_ms: u64) -> bool {
        look.rows.iter().any(|(name, row)| {
            if row.records() < FEWEST_OLD || !self.asking.may_be_candidate(name, now_ms) {
                return false;
            }
            let found = findings(&self.history, look, name, row);
            if found.is_empty() {
                let seen = self
                    .history
                    .newest()
                    .and_then(|newest| newest.rows.get(name));
                let before = seen.map_or(0, RowSeen::records);
                return row.records() >= before + before / 4 + FEWEST_GROWN;
            }
            found.iter().any(|finding| {
                let grows = finding.growth > STILL * finding.error;
                finding.verdict == Verdict::Leak
                    || grows && (finding.verdict == Verdict::Undecided || finding.still_leaks)
            })
        })
    }

    fn memory_bytes(&self) -> u64 {
        self.history.memory_bytes() + self.detector.memory_bytes() + self.asking.memory_bytes()
    }

    fn report(
        &self,
        core: &Core,
        pass: &Pass,
        policy: &Policy,
        judged: Vec<Judged>,
        rows: &HashMap<RowName, Vec<(PurseId, u32)>>,
    ) -> Report {
        let Some(newest) = self.history.newest() else {
            return Report::default();
        };
        let windows = windows_ms(newest.decided_ms());
        let horizon = (windows.iter().rev())
            .find(|&&(_, window_ms)| self.history.bounds(newest, window_ms).is_some());
        let (suspects, others): (Vec<Judged>, Vec<Judged>) = judged
            .into_iter()
            .partition(|one| one.verdict == Verdict::Leak);
        let is_known = |name: &RowName| {
            let mut leaks = policy.leaks.iter();
            leaks.any(|leak| leak.matches(&name.account, &name.class))
        };
        let groups = grouping::grouped(suspects, &others);
        let (known, mut groups): (Vec<Group>, Vec<Group>) = groups
            .into_iter()
            .partition(|group| is_known(&group.whole.name));
        let mut omitted = newest.omitted + groups.len().saturating_sub(MAX_SUSPECTS) as u64;
        groups.truncate(MAX_SUSPECTS);
        let sites = self.sites(core, &groups, &others, rows);
        let room = Room::of(core, pass);
        let suspects = groups.into_iter().map(|Group { whole: one, with }| {
            let seen = newest.rows.get(&one.name);
            Suspect {
                rows: rows.get(&one.name).cloned().unwrap_or_default(),
                live_bytes: seen.map_or(0, |row| row.live_bytes),
                live_standard_error_bytes: seen.map_or(0.0, |row| {
                    stated_error_bytes(widened(&core.ledger, row.variance))
                }),
                growth_bytes_per_second: one.growth,
                growth_standard_error: one.error,
                since_ms: one.since_ms,
                window_seconds: one.window_seconds,
                objects: seen.map_or(0, |row| row.objects),
                generations: seen.map_or(0, |row| row.generations),
                course: self.course(&one.name),
                with,
                sites: sites.get(&one.name).cloned().unwrap_or_default(),
                kept_by: core.leaks.kept_by(&one.name.account, &one.name.class),
                exhausts: self.exhausts(&room, &one.name.account, one.window_seconds),
                account: one.name.account,
                class: one.name.class,
            }
        });
        let suspects = suspects.collect();
        let mut growing: Vec<Growing> = (others.iter())
            .filter(|one| one.growth > STILL * one.error)
            .filter_map(|one| growing_of(one, newest, one.verdict.why()?))
            .collect();
        growing.sort_by(|a, b| (b.growth_bytes_per_second).total_cmp(&a.growth_bytes_per_second));
        omitted += growing.len().saturating_sub(MAX_GROWING) as u64;
        growing.truncate(MAX_GROWING);
        let acknowledged = (known.iter())
            .filter_map(|group| growing_of(&group.whole, newest, "acknowledged"))
            .take(MAX_GROWING)
            .collect();
        Report {
            at_ms: pass.at_ms,
            horizon_seconds: horizon.map_or(0, |&(_, window_ms)| window_ms / 1_000),
            undecided: horizon.is_none().then_some(ONE_LOOK),
            suspects,
            growing,
            acknowledged,
            omitted,
        }
    }

    /// Asks for stacks of the suspects and of what may become one, and gives those of the suspects.
    fn sites(
        &self,
        core: &Core,
        groups: &[Group],
        others: &[Judged],
        rows: &HashMap<RowName, Vec<(PurseId, u32)>>,
    ) -> HashMap<RowName, Vec<Site>> {
        let near = others
            .iter()
            .filter(|one| one.is_unconfirmed)
            .map(|one| &one.name);
        let suspects = groups.iter().map(|group| &group.whole.name);
        let wanted: Vec<SiteRow> = (suspects.clone().chain(near))
            .filter_map(|name| rows.get(name))
            .flatten()
            .map(|&(purse, class)| SiteRow {
                purse,
                class: Some(class),
            })
            .take(MAX_WITH_SITES)
            .collect();
        core.sites.set_wanted(Asker::Leaks, wanted);
        let mut of_numbers: HashMap<(PurseId, u32), RowName> = HashMap::new();
        for name in suspects {
            for &numbers in rows.get(name).into_iter().flatten() {
                of_numbers.insert(numbers, name.clone());
            }
        }
        sites_of(core, &of_numbers)
    }

    /// Returns the moments of a row at the looks that are kept.
    fn course(&self, name: &RowName) -> Vec<Moment> {
        let looks = self.history.looks().iter();
        let moments = looks.filter_map(|look| {
            let row = look.rows.get(name)?;
            Some(Moment {
                at_ms: look.at_ms,
                live_bytes: row.live_bytes,
                generations: row.generations,
            })
        });
        moments.collect()
    }

    fn exhausts(&self, room: &Room, account: &Arc<str>, window_seconds: u64) -> Option<Exhausts> {
        let newest = self.history.newest()?;
        let from_ms = newest.decided_ms().saturating_sub(window_seconds * 1_000);
        let looks = self
            .history
            .looks()
            .iter()
            .filter(|look| look.decided_ms() >= from_ms);
        let level = |look: &Look, (bytes, variance): (u64, u64)| Level {
            at: look.at_ms as f64 / 1e3,
            bytes: bytes as f64,
            variance: variance as f64 * VARIANCE_UNIT_BYTES2 as f64,
        };
        // Before its first row an account held next to nothing; in a later look it may have been left out.
        let mut has_begun = false;
        let of_account: Vec<Level> = (looks.clone())
            .filter_map(|look| match look.accounts.get(account) {
                Some(&held) => {
                    has_begun = true;
                    Some(level(look, held))
                }
                None => (!has_begun).then(|| level(look, (0, 0))),
            })
            .collect();
        let of_heap: Vec<Level> = looks.map(|look| level(look, look.all_accounts)).collect();
        let held = of_account.last().map_or(0.0, |level| level.bytes);
        let limit = (room.limits.get(account))
            .and_then(|&limit| Some(("limit", forecast(&of_account, limit as f64 - held)?)));
        let heap = forecast(&of_heap, room.of_heap).map(|full| ("heap", full));
        // Of the two, the one that is full first.
        let sooner = match (limit, heap) {
            (Some(limit), Some(heap)) if heap.1.earliest < limit.1.earliest => Some(heap),
            (limit, heap) => limit.or(heap),
        };
        sooner.map(|(what, full)| Exhausts {
            what,
            earliest_seconds: full.earliest,
            latest_seconds: full.latest,
        })
    }
}

/// The sites by what the numbers of their rows stand for. One pass over the records.
fn sites_of<K: Clone + Eq + Hash>(
    core: &Core,
    of_numbers: &HashMap<(PurseId, u32), K>,
) -> HashMap<K, Vec<Site>> {
    if of_numbers.is_empty() {
        return HashMap::new();
    }
    let row = |purse, class| of_numbers.get(&(purse, class)).cloned();
    let most = Most {
        live: MAX_SITES,
        allocated: 0,
    };
    let found = core.sites.survivors(&core.ledger, row, most, &[]);
    (found.into_iter())
        .map(|(name, row)| (name, row.sites))
        .collect()
}

fn growing_of(one: &Judged, newest: &Look, why: &'static str) -> Option<Growing> {
    let seen = newest.rows.get(&one.name)?;
    Some(Growing {
        account: one.name.account.clone(),
        class: one.name.class.clone(),
        why,
        live_bytes: seen.live_bytes,
        growth_bytes_per_second: one.growth,
    })
}

/// How much may still be held.
struct Room {
    /// By account, in bytes.
    limits: HashMap<Arc<str>, u64>,
    of_heap: f64,
}

impl Room {
    fn of(core: &Core, pass: &Pass) -> Room {
        let directory = core.directory();
        let policy = directory.policy().clone();
        let max_bytes = core.heap.max_bytes();
        let limit = |(name, entry): (&Arc<str>, &crate::identity::directory::Account)| {
            let rule = (entry.kind != Kind::Library).then(|| policy.accounts.get(entry.rule?));
            Some((name.clone(), rule.flatten()?.limit.resolve(max_bytes)?))
        };
        let limits = directory.accounts().filter_map(limit).collect();
        let live: u64 = pass.tally.rows.iter().map(|row| row.live.bytes).sum();
        Room {
            limits,
            of_heap: max_bytes.saturating_sub(live) as f64,
        }
    }
}

/// The numbers under each name.
fn numbers(pass: &Pass) -> HashMap<RowName, Vec<(PurseId, u32)>> {
    let mut numbers: HashMap<RowName, Vec<(PurseId, u32)>> = HashMap::new();
    for row in &pass.tally.rows {
        if let Some(name) = name(pass, row) {
            numbers
                .entry(name)
                .or_default()
                .push((row.key.payer, row.key.class));
        }
    }
    numbers
}

fn name(pass: &Pass, row: &Row) -> Option<RowName> {
    let account = pass.account(row);
    let class = pass.classes.get(&row.key.class)?;
    (*account != *OTHER).then(|| RowName {
        account: pass.account_name(row),
        class: class.clone(),
    })
}

/// A look at a pass.
fn look(pass: &Pass) -> Look {
    let times = &pass.tally.times;
    let mut look = Look {
        at_ms: pass.at_ms,
        marks: times.marks().to_vec(),
        ..Look::default()
    };
    if let Some(decided) = pass.decided_marks() {
        look.marks.truncate(decided);
    }
    for row in &pass.tally.rows {
        let account = look.accounts.entry(pass.account_name(row)).or_default();
        for sum in [account, &mut look.all_accounts] {
            sum.0 += row.live.bytes;
            sum.1 = sum.1.wrapping_add(row.live.variance);
        }
        let Some(name) = name(pass, row) else {
            continue;
        };
        let seen = look.rows.entry(name).or_default();
        seen.live_bytes += row.live.bytes;
        seen.variance = seen.variance.wrapping_add(row.live.variance);
        seen.objects += row.live.objects / OBJECT_UNIT;
        let shape = Shape::of(row, times, pass.at_ms);
        seen.generations = seen.generations.max(shape.generations);
        seen.merge(births(row, &look.marks));
    }
    look
}

/// The births of a row up to the last of these marks.
fn births(row: &Row, marks: &[crate::holdings::Mark]) -> Vec<Births> {
    let births = row.cohorts.iter().filter_map(|one| {
        let mark = marks.get(usize::from(one.cohort))?;
        Some(Births {
            upto_epoch: mark.epoch.get(),
            records: u32::try_from(one.live.records).unwrap_or(u32::MAX),
            bytes: one.live.bytes as f32,
            squares: one.live.squares_bytes2 as f32,
        })
    });
    births.collect()
}

/// Whether a suspect of the report has this one among its parts.
fn is_part(report: &Report, one: &Suspect) -> bool {
    let mut wholes = (report.suspects.iter()).filter(|other| other.account == one.account);
    wholes.any(|other| other.with.iter().any(|part| **part == *one.class))
}

/// One line for each suspicion that begins or ends.
fn news(before: &Report, after: &Report) -> Lines {
    /// The most lines of one look.
    const MOST: usize = 10;
    let is_in = |report: &Report, one: &Suspect| {
        let mut suspects = report.suspects.iter();
        suspects.any(|other| (&other.account, &other.class) == (&one.account, &one.class))
    };
    let begun = after.suspects.iter().filter(|one| !is_in(before, one)).map(|one| {
        let with = if one.with.is_empty() {
            String::new()
        } else {
            format!(" (with {})", one.with.join(", "))
        };
        format!(
            "leak suspected: {}{with} of account {} grows by {:.0} bytes/s, standard error {:.0}, over {} s, and none of its old instances die",
            one.class,
            one.account,
            one.growth_bytes_per_second,
            one.growth_standard_error,
            one.window_seconds
        )
    });
    let ended = before
        .suspects
        .iter()
        .filter(|one| !is_in(after, one))
        .map(|one| {
            let mut known = after.acknowledged.iter();
            let why = if known.any(|k| (&k.account, &k.class) == (&one.account, &one.class)) {
                "the policy acknowledges it"
            } else if is_part(after, one) {
                "it is taken for a part of another class"
            } else {
                "later collections do not bear it out"
            };
            format!(
                "leak no longer suspected: {} of account {}: {why}",
                one.class, one.account
            )
        });
    let mut lines: Lines = begun.chain(ended).collect();
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("leaks: {more} more suspicions begin or end"));
    }
    lines
}

#[cfg(all(test, not(loom)))]
mod tests;
