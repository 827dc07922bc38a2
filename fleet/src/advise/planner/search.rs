//! Branch and bound over all services at once.
//!
//! Services are decided JVM by JVM, those that free most first: to which destination, or to none.
//! A branch is dropped if a relaxation shows that it cannot beat the best plan, and three kinds of
//! branches are never entered:
//!
//! - A relieved JVM gives no more services: that would only add a move.
//! - Of destinations with the same room left and the same names, one is tried.
//! - Let `a` and `b` be services of one JVM, `a` freeing no less and needing no more, `a`'s name
//!   free wherever `b`'s is and no other service's in question. Whatever plan moves `b` and not
//!   `a` is no worse with `a` in `b`'s place; so where `a` stays, `b` stays.

use std::collections::HashSet;

use super::fleet::Cost;
use super::packing::Room;
use super::problem::{Assignment, Problem};
use super::relaxation::{self, Relaxation};

/// Fleets with more services in question than this are left to the heuristic: each is a level of
/// recursion, and the search would not end anyway.
const MAX_ITEMS: usize = 400;

/// The best plan found from `best` on, and whether none is better.
pub(super) fn run(problem: &Problem, best: Assignment, steps: u64) -> (Assignment, bool) {
    if problem.items.len() > MAX_ITEMS {
        return (best, false);
    }
    let mut search = Search {
        problem,
        relaxation: Relaxation::of(problem),
        better: dominators(problem),
        stays: vec![false; problem.items.len()],
        left: problem.excesses(),
        room: Room::of(problem),
        room_bytes: problem.room(),
        spent: Cost::default(),
        chosen: Assignment::empty(problem),
        best_cost: best.cost(problem),
        best,
        steps,
        exhausted: false,
        scratch: Vec::new(),
    };
    search.descend(0);
    (search.best, !search.exhausted)
}

struct Search<'a> {
    problem: &'a Problem,
    relaxation: Relaxation,
    /// For each item the earlier ones that are in no respect worse.
    better: Vec<Vec<usize>>,
    /// Items that were decided not to move.
    stays: Vec<bool>,
    /// Excess left at each source.
    left: Vec<u64>,
    room: Room,
    room_bytes: u64,
    /// Moves and bytes of `chosen`.
    spent: Cost,
    chosen: Assignment,
    best: Assignment,
    best_cost: Cost,
    steps: u64,
    exhausted: bool,
    scratch: Vec<u64>,
}

impl Search<'_> {
    /// Decides the items from `item` on.
    fn descend(&mut self, mut item: usize) {
        let problem = self.problem;
        while item < problem.items.len() && self.left[problem.items[item].source] == 0 {
            item = problem.sources[problem.items[item].source].items.end;
        }
        let cost = (problem.items.len() - item + problem.bins.len() + 1) as u64;
        if self.steps < cost {
            self.exhausted = true;
            return;
        }
        self.steps -= cost;

        let here = Cost {
            unrelieved_bytes: self.left.iter().sum(),
            ..self.spent
        };
        if here < self.best_cost {
            self.best_cost = here;
            self.best = self.chosen.clone();
        }
        if item == problem.items.len() || !self.can_improve(item, here) {
            return;
        }
        if !self.is_dominated(item) {
            for bin in self.room.distinct(problem, item) {
                self.moved(item, bin);
            }
        }
        self.stays[item] = true;
        self.descend(item + 1);
        self.stays[item] = false;
    }

    /// The branch in which the item goes to the bin.
    fn moved(&mut self, item: usize, bin: usize) {
        let one = &self.problem.items[item];
        let before = (self.left[one.source], self.spent, self.room_bytes);
        self.left[one.source] = before.0.saturating_sub(one.frees);
        self.spent.moves += 1;
        self.spent.needed_bytes += one.needs;
        self.room_bytes -= one.needs;
        self.room.put(self.problem, item, bin);
        self.chosen.set(item, Some(bin));

        self.descend(item + 1);

        self.chosen.set(item, None);
        self.room.take(self.problem, item, bin);
        (self.left[one.source], self.spent, self.room_bytes) = before;
    }

    fn is_dominated(&self, item: usize) -> bool {
        self.better[item].iter().any(|&other| self.stays[other])
    }

    /// Whether a plan below the best could come of deciding the items from `first` on.
    fn can_improve(&mut self, first: usize, here: Cost) -> bool {
        let problem = self.problem;
        let most = self.room.most();
        let mut scratch = std::mem::take(&mut self.scratch);
        let open = |item: usize| {
            item >= first && problem.items[item].needs <= most && !self.is_dominated(item)
        };
        let relief = self
            .relaxation
            .most_relief(problem, &self.left, open, self.room_bytes);
        let mut bound = Cost {
            unrelieved_bytes: here.unrelieved_bytes - relief,
            ..here
        };
        if bound.unrelieved_bytes == self.best_cost.unrelieved_bytes {
            bound.moves +=
                relaxation::fewest_moves(problem, &self.left, open, relief, &mut scratch);
            bound.needed_bytes += self
                .relaxation
                .fewest_bytes(problem, &self.left, open, relief);
        }
        self.scratch = scratch;
        bound < self.best_cost
    }
}

/// For each item the earlier ones of its JVM that can always take its place (see the module).
fn dominators(problem: &Problem) -> Vec<Vec<usize>> {
    let mut closed: Vec<HashSet<usize>> = vec![HashSet::new(); problem.namesakes.len()];
    for (index, bin) in problem.bins.iter().enumerate() {
        for &name in &bin.taken {
            closed[name as usize].insert(index);
        }
    }
    let mut better = vec![Vec::new(); problem.items.len()];
    for source in &problem.sources {
        for item in source.items.clone() {
            let one = &problem.items[item];
            better[item] = (source.items.start..item)
                .filter(|&other| {
                    let other = &problem.items[other];
                    other.frees >= one.frees
                        && other.needs <= one.needs
                        && problem.namesakes[other.name as usize] == 1
                        && closed[other.name as usize].is_subset(&closed[one.name as usize])
                })
                .collect();
        }
    }
    better
}
