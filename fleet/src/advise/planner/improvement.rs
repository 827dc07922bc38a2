//! Improves a plan by large neighbourhood search (Shaw, CP 1998): undoes the moves of a few JVMs,
//! makes them again in another order, and keeps the result if it is no worse.
//!
//! The random generator has a fixed seed, and work is counted in steps, so the same fleet gets the same
//! plan.

use std::cmp::Reverse;

use super::fleet::Cost;
use super::packing::Room;
use super::problem::{Assignment, Problem};

/// Most JVMs whose moves are undone at a time.
const MAX_AT_ONCE: usize = 4;

/// Attempts per JVM without a gain after which the search ends.
const PATIENCE: usize = 200;

/// A plan that is being improved.
pub(super) struct Improvement<'a> {
    problem: &'a Problem,
    room: Room,
    assignment: Assignment,
    /// The bytes that the moves from each source free.
    freed: Vec<u64>,
    steps: u64,
    chance: Chance,
}

impl<'a> Improvement<'a> {
    /// The plan that moves the items in this order, each to the tightest place, as long as its
    /// JVM is not relieved.
    pub(super) fn begin(problem: &'a Problem, order: &[usize], steps: u64) -> Improvement<'a> {
        let mut improvement = Improvement {
            problem,
            room: Room::of(problem),
            assignment: Assignment::empty(problem),
            freed: vec![0; problem.sources.len()],
            steps,
            chance: Chance(0x9E37_79B9_7F4A_7C15),
        };
        for &item in order {
            improvement.insert(item);
        }
        for source in 0..problem.sources.len() {
            improvement.tidy(source);
        }
        improvement
    }

    pub(super) fn best(self) -> Assignment {
        self.assignment
    }

    /// Improves until nothing was gained for long, or the steps are used up.
    pub(super) fn run(&mut self) {
        let count = self.problem.sources.len();
        let mut idle = 0;
        while count > 0 && self.steps > 0 && idle < PATIENCE * count.max(10) {
            let chosen = self.chosen_sources();
            let before = self.local_cost(&chosen);
            let old = self.undo(&chosen);
            self.remake(&chosen);
            for &source in &chosen {
                self.tidy(source);
            }
            let after = self.local_cost(&chosen);
            if after > before {
                self.undo(&chosen);
                for (item, bin) in old {
                    self.place(item, bin);
                }
            }
            idle = if after < before { 0 } else { idle + 1 };
        }
    }

    /// A few sources, the first of them unrelieved where there is one.
    fn chosen_sources(&mut self) -> Vec<usize> {
        let count = self.problem.sources.len();
        let begin = self.chance.below(count);
        let any = |improvement: &Self, source: usize| improvement.unrelieved(source) > 0;
        let first = (0..count)
            .map(|step| (begin + step) % count)
            .find(|&source| any(self, source))
            .unwrap_or(begin);
        let mut chosen = vec![first];
        for _ in 0..self.chance.below(MAX_AT_ONCE) {
            let other = self.chance.below(count);
            if !chosen.contains(&other) {
                chosen.push(other);
            }
        }
        chosen
    }

    /// Moves services of the sources, in an order that is different each time.
    fn remake(&mut self, sources: &[usize]) {
        let problem = self.problem;
        let by_yield = self.chance.below(2) == 0;
        let skips = self.chance.below(4) as u64;
        let mut items: Vec<usize> = Vec::new();
        for &source in sources {
            items.extend(problem.sources[source].items.clone());
        }
        if by_yield {
            items.sort_by_cached_key(|&item| {
                let item = &problem.items[item];
                Reverse((u128::from(item.frees) << 32) / u128::from(item.needs))
            });
        } else {
            items.sort_by_key(|&item| Reverse(problem.items[item].frees));
        }
        self.steps = self.steps.saturating_sub(items.len() as u64);
        let mut skipped = Vec::new();
        for item in items {
            if self.chance.below(16) < skips as usize {
                skipped.push(item);
            } else {
                self.insert(item);
            }
        }
        for item in skipped {
            self.insert(item);
        }
    }

    /// Drops moves of a source that it can do without, those that need most first; then puts
    /// lighter services in the place of heavier ones.
    fn tidy(&mut self, source: usize) {
        let problem = self.problem;
        let excess = problem.sources[source].excess;
        let mut moved: Vec<usize> = problem.sources[source]
            .items
            .clone()
            .filter(|&item| self.assignment.bin(item).is_some())
            .collect();
        moved.sort_by_key(|&item| Reverse(problem.items[item].needs));
        let spare = |this: &Self, item: usize| {
            this.freed[source] >= excess.saturating_add(problem.items[item].frees)
        };
        for &item in &moved {
            if spare(self, item) {
                self.remove(item);
            }
        }
        moved.retain(|&item| self.assignment.bin(item).is_some());
        for item in moved {
            self.exchange(item);
        }
    }

    /// Moves another service of the same JVM instead, if that relieves more, or as much with
    /// fewer bytes.
    fn exchange(&mut self, item: usize) {
        let problem = self.problem;
        let Some(bin) = self.remove(item) else {
            return;
        };
        let one = &problem.items[item];
        let source = &problem.sources[one.source];
        let missing = source.excess.saturating_sub(self.freed[one.source]);
        self.steps = self.steps.saturating_sub(source.items.len() as u64);
        let merit = |other: usize| {
            let other = &problem.items[other];
            (other.frees.min(missing), Reverse(other.needs))
        };
        let best = source
            .items
            .clone()
            .filter(|&other| self.assignment.bin(other).is_none() && merit(other) > merit(item))
            .filter_map(|other| Some((other, self.room.tightest(problem, other)?)))
            .max_by_key(|&(other, _)| merit(other));
        let (item, bin) = best.unwrap_or((item, bin));
        self.place(item, bin);
    }

    fn insert(&mut self, item: usize) {
        if self.unrelieved(self.problem.items[item].source) == 0 {
            return;
        }
        if let Some(bin) = self.room.tightest(self.problem, item) {
            self.place(item, bin);
        }
    }

    fn place(&mut self, item: usize, bin: usize) {
        let one = &self.problem.items[item];
        self.room.put(self.problem, item, bin);
        self.assignment.set(item, Some(bin));
        self.freed[one.source] += one.frees;
    }

    fn remove(&mut self, item: usize) -> Option<usize> {
        let bin = self.assignment.bin(item)?;
        let one = &self.problem.items[item];
        self.room.take(self.problem, item, bin);
        self.assignment.set(item, None);
        self.freed[one.source] -= one.frees;
        Some(bin)
    }

    /// Undoes all moves of the sources, and returns them.
    fn undo(&mut self, sources: &[usize]) -> Vec<(usize, usize)> {
        let mut old = Vec::new();
        for &source in sources {
            for item in self.problem.sources[source].items.clone() {
                if let Some(bin) = self.remove(item) {
                    old.push((item, bin));
                }
            }
        }
        old
    }

    fn unrelieved(&self, source: usize) -> u64 {
        self.problem.sources[source]
            .excess
            .saturating_sub(self.freed[source])
    }

    /// The part of the cost that these sources have.
    fn local_cost(&self, sources: &[usize]) -> Cost {
        let mut cost = Cost::default();
        for &source in sources {
            cost.unrelieved_bytes += self.unrelieved(source);
            for item in self.problem.sources[source].items.clone() {
                if self.assignment.bin(item).is_some() {
                    cost.moves += 1;
                    cost.needed_bytes += self.problem.items[item].needs;
                }
            }
        }
        cost
    }
}

/// Marsaglia's xorshift, 64 bits.
struct Chance(u64);

impl Chance {
    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as usize) % bound
    }
}
