//! Ranks the places where survivors were allocated.
//!
//! # Rules
//! 1. Only what survived a collection counts, with its live charge: most samples of `byte[]` are garbage,
//!    and their sites say nothing about what is held.
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
//!    sqrt(Σ_g w² (1-p)² + Σ_rest w² p²) / Σ w. That is not less than the error of sampling.

use std::collections::HashMap;
use std::hash::Hash;

use crate::ledger::{LiveRecord, SiteId};
use crate::sampling::weight::OBJECT_UNIT;

use super::names::{Name, Names};
use super::trie::{Node, Step, Trie};
use super::unpack;

/// What survived of one row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSites {
    /// Its live bytes, with and without stacks.
    pub live_bytes: u64,
    /// Live bytes allocated since stacks are taken, as the stacks estimate it.
    pub with_stack_bytes: u64,
    /// Records with a stack.
    pub stacks: u64,
    /// The places, most bytes first.
    pub sites: Vec<Site>,
    /// Places that are not listed.
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
}

/// Sums over records.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    bytes: f64,
    squares: f64,
    /// In units of 2^-16.
    objects: f64,
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

/// Counts the survivors of rows by stack.
#[derive(Debug)]
pub(super) struct Count<K> {
    rows: HashMap<K, (u64, HashMap<Node, Sums>)>,
}

impl<K: Hash + Eq> Count<K> {
    pub(super) fn new() -> Count<K> {
        Count {
            rows: HashMap::new(),
        }
    }

    /// Counts a record of a row.
    pub(super) fn add(&mut self, row: K, record: &LiveRecord) {
        let (live_bytes, stacks) = self.rows.entry(row).or_default();
        *live_bytes = live_bytes.saturating_add(record.live.bytes);
        if record.site == SiteId::NONE {
            return;
        }
        let (level, node) = unpack(record.site);
        let stands_for = f64::from(1u32 << level);
        let bytes = record.live.bytes as f64 * stands_for;
        stacks.entry(node).or_default().add(Sums {
            bytes,
            squares: bytes * bytes,
            objects: record.live.objects as f64 * stands_for,
            stacks: 1,
        });
    }

    /// Ranks the places of each row; at most `most` are listed.
    pub(super) fn ranked(self, trie: &Trie, names: &Names, most: usize) -> HashMap<K, RowSites> {
        let ranked = |(live_bytes, stacks)| rank(live_bytes, stacks, trie, names, most);
        let rows = self.rows.into_iter();
        rows.map(|(row, counted)| (row, ranked(counted))).collect()
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
    let mut frames = Vec::new();
    let mut place = None;
    for step in trie.stack(node) {
        let (text, is_of_application) = match step {
            Step::LeftOut => ("...".to_owned(), false),
            Step::Frame { method, bci } => match names.get(method) {
                Name::Method(named) if named.is_plumbing => continue,
                Name::Method(named) => (named.shown(bci), named.is_of_application),
                Name::Gone => (
                    "(a class that was unloaded before it was named)".to_owned(),
                    true,
                ),
                Name::Pending => ("(not named yet)".to_owned(), true),
            },
        };
        if is_of_application && place.is_none() {
            place = Some(frames.len());
        }
        frames.push(text);
    }
    if frames.is_empty() {
        frames.push("(a call that the JVM linked)".to_owned());
    }
    let below = frames.split_off(place.unwrap_or(0));
    Shown {
        through: frames,
        frames: below,
    }
}

fn rank(
    live_bytes: u64,
    stacks: HashMap<Node, Sums>,
    trie: &Trie,
    names: &Names,
    most: usize,
) -> RowSites {
    let mut all = Sums::default();
    /// A place: its sums, and its heaviest stack.
    struct Place {
        sums: Sums,
        heaviest: f64,
        shown: Shown,
    }
    let mut places: HashMap<String, Place> = HashMap::new();
    let mut stacks: Vec<(Node, Sums)> = stacks.into_iter().collect();
    stacks.sort_unstable_by_key(|(node, _)| *node);
    for (node, sums) in stacks {
        all.add(sums);
        let shown = shown(trie, names, node);
        let place = shown.frames[0].clone();
        match places.get_mut(&place) {
            Some(place) => {
                place.sums.add(sums);
                if sums.bytes > place.heaviest {
                    place.heaviest = sums.bytes;
                    place.shown = shown;
                }
            }
            None => {
                let (heaviest, shown) = (sums.bytes, shown);
                places.insert(
                    place,
                    Place {
                        sums,
                        heaviest,
                        shown,
                    },
                );
            }
        }
    }
    let scale = match all.bytes > live_bytes as f64 {
        true => live_bytes as f64 / all.bytes,
        false => 1.0,
    };
    let mut sites: Vec<Site> = (places.into_values())
        .map(|place| Site {
            share: share(place.sums, all),
            share_standard_error: share_standard_error(place.sums, all),
            live_bytes: (place.sums.bytes * scale).round() as u64,
            live_objects: (place.sums.objects * scale / OBJECT_UNIT as f64).round() as u64,
            stacks: place.sums.stacks,
            frames: place.shown.frames,
            through: place.shown.through,
        })
        .collect();
    sites.sort_by(|a, b| (b.live_bytes, &a.frames).cmp(&(a.live_bytes, &b.frames)));
    let left_out = sites.len().saturating_sub(most);
    sites.truncate(most);
    RowSites {
        live_bytes,
        with_stack_bytes: (all.bytes * scale).round() as u64,
        stacks: all.stacks,
        sites,
        left_out,
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
