//! The fleet, reduced to the input of the search: pressed JVMs, services that can be moved, the room of
//! the other JVMs, and names as numbers.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::fleet::{Cost, Jvm};

/// No heap is larger (ZGC's limit is 16 TiB); larger inputs are taken for this, so that no sum of
/// a million of them overflows.
const MAX_BYTES: u64 = 1 << 44;

/// A pressed JVM.
#[derive(Debug)]
pub(super) struct Source {
    /// Its place in the fleet.
    pub(super) jvm: usize,
    /// The bytes that it should get rid of; never 0.
    pub(super) excess: u64,
    /// Its services in [`Problem::items`]: those that free most come first.
    pub(super) items: std::ops::Range<usize>,
}

/// A service that could be moved.
#[derive(Debug)]
pub(super) struct Item {
    /// Its JVM in [`Problem::sources`].
    pub(super) source: usize,
    /// Its place among the JVM's services.
    pub(super) service: usize,
    /// Bytes it frees; never 0.
    pub(super) frees: u64,
    /// Bytes it needs; never 0.
    pub(super) needs: u64,
    /// Its name as a number.
    pub(super) name: u32,
}

/// A JVM that could take services.
#[derive(Debug)]
pub(super) struct Bin {
    /// Its place in the fleet.
    pub(super) jvm: usize,
    /// Bytes it can take; never 0.
    pub(super) room: u64,
    /// Names of items that it has already.
    pub(super) taken: HashSet<u32>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) sources: Vec<Source>,
    pub(super) items: Vec<Item>,
    pub(super) bins: Vec<Bin>,
    /// How many items have each name.
    pub(super) namesakes: Vec<u32>,
}

impl Problem {
    pub(super) fn of(fleet: &[Jvm]) -> Problem {
        let mut names: HashMap<&str, u32> = HashMap::new();
        for service in pressed(fleet).flat_map(|(_, jvm)| &jvm.services) {
            let next = names.len() as u32;
            names.entry(&service.name).or_insert(next);
        }
        let bins = bins(fleet, &names);
        let mut by_room: Vec<&Bin> = bins.iter().collect();
        by_room.sort_by_key(|bin| Reverse(bin.room));

        let mut sources = Vec::new();
        let mut items = Vec::new();
        for (index, jvm) in pressed(fleet) {
            let begin = items.len();
            for (service, one) in jvm.services.iter().enumerate() {
                let item = Item {
                    source: sources.len(),
                    service,
                    frees: clamp(one.frees_bytes),
                    needs: clamp(one.needs_bytes).max(1),
                    name: names[one.name.as_str()],
                };
                let has_a_place = by_room
                    .iter()
                    .take_while(|bin| bin.room >= item.needs)
                    .any(|bin| !bin.taken.contains(&item.name));
                if item.frees > 0 && has_a_place {
                    items.push(item);
                }
            }
            items[begin..].sort_by_key(|item| (Reverse(item.frees), item.needs));
            sources.push(Source {
                jvm: index,
                excess: excess(jvm),
                items: begin..items.len(),
            });
        }
        let mut namesakes = vec![0; names.len()];
        for item in &items {
            namesakes[item.name as usize] += 1;
        }
        Problem {
            sources,
            items,
            bins,
            namesakes,
        }
    }

    /// Bytes of room in all.
    pub(super) fn room(&self) -> u64 {
        self.bins.iter().map(|bin| bin.room).sum()
    }

    /// Returns the bytes that each source should get rid of.
    pub(super) fn excesses(&self) -> Vec<u64> {
        self.sources.iter().map(|source| source.excess).collect()
    }
}

fn pressed(fleet: &[Jvm]) -> impl Iterator<Item = (usize, &Jvm)> {
    fleet.iter().enumerate().filter(|(_, jvm)| excess(jvm) > 0)
}

/// The JVMs with room, and which of the names they have.
fn bins(fleet: &[Jvm], names: &HashMap<&str, u32>) -> Vec<Bin> {
    let mut bins = Vec::new();
    for (index, jvm) in fleet.iter().enumerate() {
        let upper = clamp(jvm.held_upper_bytes.max(jvm.held_bytes));
        let room = clamp(jvm.capacity_bytes).saturating_sub(upper);
        if room > 0 {
            let known = |name: &String| names.get(name.as_str()).copied();
            bins.push(Bin {
                jvm: index,
                room,
                taken: jvm.accounts.iter().filter_map(known).collect(),
            });
        }
    }
    bins
}

fn clamp(bytes: u64) -> u64 {
    bytes.min(MAX_BYTES)
}

fn excess(jvm: &Jvm) -> u64 {
    clamp(jvm.held_bytes).saturating_sub(clamp(jvm.capacity_bytes))
}

/// Items and the bins they go to.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    bin_of: Vec<Option<usize>>,
}

impl Assignment {
    /// Nothing moves.
    pub(super) fn empty(problem: &Problem) -> Assignment {
        Assignment {
            bin_of: vec![None; problem.items.len()],
        }
    }

    /// The bin of an item.
    pub(super) fn bin(&self, item: usize) -> Option<usize> {
        self.bin_of[item]
    }

    pub(super) fn set(&mut self, item: usize, bin: Option<usize>) {
        self.bin_of[item] = bin;
    }

    /// Items that move, and their bins.
    pub(super) fn placed(&self) -> impl Iterator<Item = (usize, usize)> {
        self.bin_of
            .iter()
            .enumerate()
            .filter_map(|(item, bin)| bin.map(|bin| (item, bin)))
    }

    pub(super) fn cost(&self, problem: &Problem) -> Cost {
        let mut left = problem.excesses();
        let mut cost = Cost::default();
        for (item, _) in self.placed() {
            let item = &problem.items[item];
            left[item.source] = left[item.source].saturating_sub(item.frees);
            cost.moves += 1;
            cost.needed_bytes += item.needs;
        }
        cost.unrelieved_bytes = left.iter().sum();
        cost
    }
}

impl From<Vec<Option<usize>>> for Assignment {
    fn from(bin_of: Vec<Option<usize>>) -> Self {
        Assignment { bin_of }
    }
}
