//! Finds destinations with enough room for the services that move.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use super::problem::{Assignment, Problem};

/// The bytes that are free at each destination, and the names that are there.
#[derive(Clone, Debug)]
pub(super) struct Room {
    free: Vec<u64>,
    by_free: BTreeSet<(u64, usize)>,
    taken: Vec<HashSet<u32>>,
}

impl Room {
    /// Before anything has moved.
    pub(super) fn of(problem: &Problem) -> Room {
        let free: Vec<u64> = problem.bins.iter().map(|bin| bin.room).collect();
        Room {
            by_free: free.iter().copied().zip(0..).collect(),
            free,
            taken: problem.bins.iter().map(|bin| bin.taken.clone()).collect(),
        }
    }

    pub(super) fn fits(&self, problem: &Problem, item: usize, bin: usize) -> bool {
        let item = &problem.items[item];
        self.free[bin] >= item.needs && !self.taken[bin].contains(&item.name)
    }

    /// The bin with the least room of those that the item fits into.
    pub(super) fn tightest(&self, problem: &Problem, item: usize) -> Option<usize> {
        self.by_free
            .range((problem.items[item].needs, 0)..)
            .map(|&(_, bin)| bin)
            .find(|&bin| self.fits(problem, item, bin))
    }

    /// The bin with the most room, if the item fits into one.
    fn widest(&self, problem: &Problem, item: usize) -> Option<usize> {
        self.by_free
            .range((problem.items[item].needs, 0)..)
            .rev()
            .map(|&(_, bin)| bin)
            .find(|&bin| self.fits(problem, item, bin))
    }

    /// The bins that an item fits into, one of several with the same room and the same names.
    pub(super) fn distinct(&self, problem: &Problem, item: usize) -> Vec<usize> {
        let mut bins: Vec<usize> = Vec::new();
        for bin in 0..self.free.len() {
            if self.fits(problem, item, bin)
                && !bins.iter().any(|&other| {
                    self.free[other] == self.free[bin] && self.taken[other] == self.taken[bin]
                })
            {
                bins.push(bin);
            }
        }
        bins
    }

    /// The most room that one bin has, bytes.
    pub(super) fn most(&self) -> u64 {
        self.by_free.last().map_or(0, |&(free, _)| free)
    }

    pub(super) fn put(&mut self, problem: &Problem, item: usize, bin: usize) {
        let item = &problem.items[item];
        self.resize(bin, self.free[bin] - item.needs);
        self.taken[bin].insert(item.name);
    }

    pub(super) fn take(&mut self, problem: &Problem, item: usize, bin: usize) {
        let item = &problem.items[item];
        self.resize(bin, self.free[bin] + item.needs);
        self.taken[bin].remove(&item.name);
    }

    fn resize(&mut self, bin: usize, free: u64) {
        self.by_free.remove(&(self.free[bin], bin));
        self.by_free.insert((free, bin));
        self.free[bin] = free;
    }
}

/// A place for every one of the items: each into the tightest that it fits into, the largest
/// first; where that fails, a search of at most `steps`.
pub(super) fn pack(problem: &Problem, items: &[usize], steps: u64) -> Option<Vec<Option<usize>>> {
    let needed: u64 = items.iter().map(|&item| problem.items[item].needs).sum();
    if needed > problem.room() {
        return None;
    }
    let mut packing = Packing {
        problem,
        items: largest_first(problem, items),
        room: Room::of(problem),
        places: vec![None; problem.items.len()],
        steps,
    };
    (packing.greedy() || packing.searched()).then_some(packing.places)
}

/// Deeper recursion than this is not worth its stack.
const DEEPEST: usize = 512;

struct Packing<'a> {
    problem: &'a Problem,
    items: Vec<usize>,
    room: Room,
    places: Vec<Option<usize>>,
    steps: u64,
}

impl Packing<'_> {
    fn greedy(&mut self) -> bool {
        for &item in &self.items {
            let Some(bin) = self.room.tightest(self.problem, item) else {
                return false;
            };
            self.room.put(self.problem, item, bin);
            self.places[item] = Some(bin);
        }
        true
    }

    fn searched(&mut self) -> bool {
        self.room = Room::of(self.problem);
        self.places.fill(None);
        self.items.len() <= DEEPEST && self.descend(0)
    }

    /// Places the items from `first` on; false where that cannot be, or the steps are used up.
    fn descend(&mut self, first: usize) -> bool {
        let Some(&item) = self.items.get(first) else {
            return true;
        };
        let cost = self.problem.bins.len() as u64;
        if self.steps < cost {
            self.steps = 0;
            return false;
        }
        self.steps -= cost;
        for bin in self.room.distinct(self.problem, item) {
            self.room.put(self.problem, item, bin);
            self.places[item] = Some(bin);
            if self.descend(first + 1) {
                return true;
            }
            self.room.take(self.problem, item, bin);
            self.places[item] = None;
        }
        false
    }
}

/// The same moves, each to the destination with most room, if all fit that way: a destination without
/// spare room could soon be pressed itself.
pub(super) fn spread(problem: &Problem, assignment: &mut Assignment) {
    let items: Vec<usize> = assignment.placed().map(|(item, _)| item).collect();
    let mut room = Room::of(problem);
    let mut spread = Assignment::empty(problem);
    for item in largest_first(problem, &items) {
        let Some(bin) = room.widest(problem, item) else {
            return;
        };
        room.put(problem, item, bin);
        spread.set(item, Some(bin));
    }
    *assignment = spread;
}

fn largest_first(problem: &Problem, items: &[usize]) -> Vec<usize> {
    let mut items = items.to_vec();
    items.sort_by_key(|&item| (Reverse(problem.items[item].needs), item));
    items
}
