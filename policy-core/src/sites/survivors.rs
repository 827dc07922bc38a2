//! Ranks the places where survivors were allocated, and where most was.
//!
//! # Rules
//! 1. As live counts only what survived a collection, with its live charge: most samples of `byte[]` are garbage,
//!    and their sites say nothing about what is held. What was allocated is summed apart (`allocated`).
//! 2. A record with a stack of level l stands for 2^l records (`budget`, rule 1). So the sums over
//!    stacks estimate, without bias, what was allocated since stacks are taken and survived.
//!    If that is more than lives, as by chance when a few stacks stand for many samples, all of it is scaled down
//!    to what lives. Shares do not change.
//! 3. Stacks are grouped by *place*: the class, method and line of the first frame of the application. The
//!    callers of a place, and the JDK's frames above it, are those of its heaviest stack.
//! 4. Frames that only link a call (hidden classes, method handles, reflection) are left out. If there is no
//!    frame of the application, the place is the first other frame.
//! 5. The share of a place is a ratio of two such sums. Its standard error counts each record as one
//!    independent draw: with weights w, group g and share p it is
//!    sqrt(Σ_g w² (1-p)² + Σ_rest w² p²) / Σ w, and that of the sum itself sqrt(Σ_g w²). That is not less than the
//!    error of sampling.
//! 6. For a snapshot, what survived of a place is also summed by birth, as [`crate::cohorts`] does for classes,
//!    and not scaled down. What a record adds is a pure function of the record, its stack's level included. So
//!    in the difference of two snapshots of one run it cancels while it lives. With live bytes b of variance v
//!    and a level that stands for m records, a record adds m b, of variance m v + m (m-1) b².

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::cohorts::Mark;
use crate::ledger::{Epoch, LiveRecord, SiteId};
use crate::sampling::weight::{OBJECT_UNIT, VARIANCE_UNIT_BYTES2};

use super::allocated::Sum;
use super::frames::{Frame, frames};
use super::names::Names;
use super::node::{Node, unpack};
use super::trie::Trie;

/// The survivors of one row, and the places where they were allocated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSites {
    /// Its live bytes, with and without stacks.
    pub live_bytes: u64,
    /// Live bytes allocated since stacks are taken, as the stacks estimate it.
    pub with_stack_bytes: u64,
    /// Records with a stack.
    pub stacks: u64,
    /// The bytes allocated since stacks are taken, as the stacks estimate them.
    pub allocated_bytes: u64,
    /// Samples that `allocated_bytes` rests on.
    pub allocated_stacks: u64,
    /// The places of survivors, most bytes first; then others where most was allocated.
    pub sites: Vec<Site>,
    /// Places of survivors that are not listed.
    pub left_out: usize,
}

/// A place where survivors were allocated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// The stack from the first frame of the application down, of the heaviest stack.
    pub frames: Vec<String>,
    /// The JDK's frames between the allocation and the first of `frames`, nearest to the allocation first.
    pub through: Vec<String>,
    /// The share of the survivors with a stack, 0 to 1.
    pub share: f64,
    /// Standard error of `share`.
    pub share_standard_error: f64,
    /// Live bytes allocated here since stacks are taken.
    pub live_bytes: u64,
    /// Live objects allocated here since stacks are taken.
    pub live_objects: u64,
    /// Records that this rests on.
    pub stacks: u64,
    /// Standard error of `live_bytes`.
    pub live_standard_error_bytes: f64,
    /// The allocations here, whether they survived or not.
    pub allocated: AllocatedHere,
    /// The survivors by birth, oldest first: rule 6. Empty unless it was asked for.
    pub cohorts: Vec<Cohort>,
}

/// The allocations at a place since stacks are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AllocatedHere {
    /// Bytes, as the stacks estimate them.
    pub bytes: u64,
    /// Standard error of `bytes`.
    pub standard_error_bytes: f64,
    /// Objects.
    pub objects: u64,
    /// The share of what was allocated of the row, 0 to 1.
    pub share: f64,
    /// Standard error of `share`.
    pub share_standard_error: f64,
    /// Samples that this rests on.
    pub stacks: u64,
}

/// How many places of a row are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Those of survivors, most bytes first.
    pub live: usize,
    /// Others, where most was allocated. 0: what was allocated is not looked at.
    pub allocated: usize,
}

/// The survivors at a place of one cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cohort {
    /// The cut at its end.
    pub upto: Epoch,
    /// The amounts that these survivors stand for.
    pub held: Held,
}

/// The amounts that some records with a stack stand for. Sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// How many records.
    pub records: u64,
    /// Live bytes.
    pub bytes: u64,
    /// Live objects, in units of [`OBJECT_UNIT`].
    pub objects: u64,
    /// The variance of `bytes`, in units of [`VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
}

impl Held {
    /// Returns the amounts that one record stands for, if its stack stands for 2^level samples.
    fn of(record: &LiveRecord, level: u32) -> Held {
        let (live, stands_for) = (record.live, 1u64 << level);
        let bytes = u128::from(live.bytes);
        let passed_over = u128::from(stands_for * (stands_for - 1))
            .saturating_mul(bytes.saturating_mul(bytes))
            / u128::from(VARIANCE_UNIT_BYTES2);
        let passed_over = u64::try_from(passed_over).unwrap_or(u64::MAX);
        Held {
            records: 1,
            bytes: live.bytes.saturating_mul(stands_for),
            objects: live.objects.saturating_mul(stands_for),
            variance: (live.variance.saturating_mul(stands_for)).saturating_add(passed_over),
        }
    }
}

impl std::ops::AddAssign for Held {
    fn add_assign(&mut self, other: Held) {
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.objects = self.objects.saturating_add(other.objects);
        self.variance = self.variance.saturating_add(other.variance);
    }
}

/// Sums over records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) bytes: f64,
    squares: f64,
    /// In units of 2^-16.
    pub(super) objects: f64,
    stacks: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.bytes += other.bytes;
        self.squares += other.squares;
        self.objects += other.objects;
        self.stacks += other.stacks;
    }
}

/// The survivors of one stack.
#[derive(Debug, Default)]
pub(super) struct OfStack {
    pub(super) sums: Sums,
    /// Survivors or not.
    pub(super) allocated: Sums,
    /// By place among the cuts.
    cohorts: BTreeMap<u32, Held>,
}

/// Counts the survivors of rows by stack.
#[derive(Debug)]
pub(super) struct Count<K> {
    /// The live bytes of each row, and its stacks.
    pub(super) rows: HashMap<K, (u64, HashMap<Node, OfStack>)>,
    /// Ascending. Empty: nothing is counted by birth.
    cuts: Vec<Epoch>,
}

impl<K: Hash + Eq> Count<K> {
    /// Counts by birth as well if there are cuts; then what was born after the last of them is left out.
    pub(super) fn new(cuts: &[Mark]) -> Count<K> {
        Count {
            rows: HashMap::new(),
            cuts: cuts.iter().map(|mark| mark.epoch).collect(),
        }
    }

    /// Counts a record of a row.
    pub(super) fn add(&mut self, row: K, record: &LiveRecord) {
        let cohort = self.cuts.partition_point(|&cut| cut < record.birth);
        if cohort == self.cuts.len() && !self.cuts.is_empty() {
            return;
        }
        let (live_bytes, stacks) = self.rows.entry(row).or_default();
        *live_bytes = live_bytes.saturating_add(record.live.bytes);
        if record.site == SiteId::NONE {
            return;
        }
        let (level, node) = unpack(record.site);
        let stands_for = f64::from(1u32 << level);
        let bytes = record.live.bytes as f64 * stands_for;
        let stack = stacks.entry(node).or_default();
        stack.sums.add(Sums {
            bytes,
            squares: bytes * bytes,
            objects: record.live.objects as f64 * stands_for,
            stacks: 1,
        });
        if !self.cuts.is_empty() {
            *stack.cohorts.entry(cohort as u32).or_default() += Held::of(record, level);
        }
    }

    /// Counts what was allocated of a row at a stack.
    pub(super) fn add_allocated(&mut self, row: K, node: Node, sum: Sum) {
        let (_, stacks) = self.rows.entry(row).or_default();
        stacks.entry(node).or_default().allocated.add(Sums {
            bytes: sum.bytes as f64,
            squares: sum.squares,
            objects: sum.objects as f64,
            stacks: sum.stacks,
        });
    }

    /// Ranks the places of each row.
    pub(super) fn ranked(self, trie: &Trie, names: &Names, most: Most) -> HashMap<K, RowSites> {
        let Count { rows, cuts } = self;
        let named = Named {
            trie,
            names,
            cuts: &cuts,
        };
        (rows.into_iter())
            .map(|(row, (live_bytes, stacks))| (row, named.rank(live_bytes, stacks, most)))
            .collect()
    }

    /// The rows without places: there are no stacks.
    pub(super) fn unranked(self) -> HashMap<K, RowSites> {
        let rows = self.rows.into_iter();
        rows.map(|(row, (live_bytes, _))| {
            let sites = RowSites {
                live_bytes,
                ..RowSites::default()
            };
            (row, sites)
        })
        .collect()
    }
}

/// A stack by name.
struct Shown {
    through: Vec<String>,
    frames: Vec<String>,
}

/// The stack of a node by name (rules 3 and 4).
fn shown(trie: &Trie, names: &Names, node: Node) -> Shown {
    let stack = frames(trie, names, node);
    let place = stack.iter().position(Frame::is_of_application);
    let mut frames: Vec<String> = stack.iter().map(Frame::shown).collect();
    let below = frames.split_off(place.unwrap_or(0));
    Shown {
        through: frames,
        frames: below,
    }
}

/// A place: its survivors, and its heaviest stack.
struct Place {
    all: OfStack,
    /// Live and allocated bytes.
    heaviest: (f64, f64),
    shown: Shown,
}

/// The trie, the names and the cuts that turn stacks into places.
struct Named<'a> {
    trie: &'a Trie,
    names: &'a Names,
    cuts: &'a [Epoch],
}

impl Named<'_> {
    /// Rule 3.
    fn places(&self, stacks: HashMap<Node, OfStack>) -> Vec<Place> {
        let mut places: HashMap<String, Place> = HashMap::new();
        let mut stacks: Vec<(Node, OfStack)> = stacks.into_iter().collect();
        stacks.sort_unstable_by_key(|(node, _)| *node);
        for (node, stack) in stacks {
            let shown = shown(self.trie, self.names, node);
            let weight = (stack.sums.bytes, stack.allocated.bytes);
            let Some(place) = places.get_mut(&shown.frames[0]) else {
                let place = Place {
                    heaviest: weight,
                    all: stack,
                    shown,
                };
                places.insert(place.shown.frames[0].clone(), place);
                continue;
            };
            place.all.sums.add(stack.sums);
            place.all.allocated.add(stack.allocated);
            for (cohort, held) in stack.cohorts {
                *place.all.cohorts.entry(cohort).or_default() += held;
            }
            if weight > place.heaviest {
                place.heaviest = weight;
                place.shown = shown;
            }
        }
        places.into_values().collect()
    }

    fn rank(&self, live_bytes: u64, stacks: HashMap<Node, OfStack>, most: Most) -> RowSites {
        let places = self.places(stacks);
        let (mut all, mut allocated) = (Sums::default(), Sums::default());
        for place in &places {
            all.add(place.all.sums);
            allocated.add(place.all.allocated);
        }
        let scale = match all.bytes > live_bytes as f64 {
            true => live_bytes as f64 / all.bytes,
            false => 1.0,
        };
        let site = |Place {
                        all: own, shown, ..
                    }| {
            let cohorts = own.cohorts.into_iter();
            Site {
                share: share(own.sums, all),
                share_standard_error: share_standard_error(own.sums, all),
                live_bytes: (own.sums.bytes * scale).round() as u64,
                live_objects: (own.sums.objects * scale / OBJECT_UNIT as f64).round() as u64,
                stacks: own.sums.stacks,
                live_standard_error_bytes: own.sums.squares.sqrt() * scale,
                allocated: AllocatedHere {
                    bytes: own.allocated.bytes.round() as u64,
                    standard_error_bytes: own.allocated.squares.sqrt(),
                    objects: (own.allocated.objects / OBJECT_UNIT as f64).round() as u64,
                    share: share(own.allocated, allocated),
                    share_standard_error: share_standard_error(own.allocated, allocated),
                    stacks: own.allocated.stacks,
                },
                frames: shown.frames,
                through: shown.through,
                cohorts: cohorts
                    .map(|(cut, held)| Cohort {
                        upto: self.cuts[cut as usize],
                        held,
                    })
                    .collect(),
            }
        };
        let mut sites: Vec<Site> = places.into_iter().map(site).collect();
        sites.sort_by(|a, b| {
            (b.stacks > 0, b.live_bytes, &a.frames).cmp(&(a.stacks > 0, a.live_bytes, &b.frames))
        });
        let survived = sites.iter().take_while(|site| site.stacks > 0).count();
        let mut others = sites.split_off(survived.min(most.live));
        others.sort_by(|a, b| (b.allocated.bytes, &a.frames).cmp(&(a.allocated.bytes, &b.frames)));
        others.truncate(most.allocated);
        sites.append(&mut others);
        let left_out = survived - sites.iter().filter(|site| site.stacks > 0).count();
        RowSites {
            live_bytes,
            with_stack_bytes: (all.bytes * scale).round() as u64,
            stacks: all.stacks,
            allocated_bytes: allocated.bytes.round() as u64,
            allocated_stacks: allocated.stacks,
            sites,
            left_out,
        }
    }
}

fn share(part: Sums, all: Sums) -> f64 {
    if all.bytes > 0.0 {
        part.bytes / all.bytes
    } else {
        0.0
    }
}

/// Rule 5.
fn share_standard_error(part: Sums, all: Sums) -> f64 {
    if all.bytes <= 0.0 {
        return 0.0;
    }
    let share = share(part, all);
    let rest = (all.squares - part.squares).max(0.0);
    let variance = part.squares * (1.0 - share).powi(2) + rest * share.powi(2);
    variance.sqrt() / all.bytes
}
