//! Bounds on every plan: the model without integrality, and with the room of all destinations added up.
//!
//! There are three bounds for the services that are not decided yet, each found by a greedy choice.
//! Greedy is exact for the relaxed model: the relief of a JVM is a concave function of the bytes spent
//! (best services first, and nothing beyond its excess), and for several concave functions it is
//! optimal to take the steepest piece next.

use super::fleet::Cost;
use super::problem::{Item, Problem};

/// The bound before anything is decided.
pub(super) fn root(problem: &Problem) -> Cost {
    let relaxation = Relaxation::of(problem);
    let left = problem.excesses();
    let relief = relaxation.most_relief(problem, &left, |_| true, problem.room());
    let mut scratch = Vec::new();
    Cost {
        unrelieved_bytes: left.iter().sum::<u64>() - relief,
        moves: fewest_moves(problem, &left, |_| true, relief, &mut scratch),
        needed_bytes: relaxation.fewest_bytes(problem, &left, |_| true, relief),
    }
}

/// The items in the order of what they free for a byte that they need, most first.
pub(super) struct Relaxation {
    by_yield: Vec<usize>,
}

impl Relaxation {
    pub(super) fn of(problem: &Problem) -> Relaxation {
        let mut by_yield: Vec<usize> = (0..problem.items.len()).collect();
        by_yield.sort_by(|&a, &b| by_yield_first(&problem.items[a], &problem.items[b]));
        Relaxation { by_yield }
    }

    /// The most that the open items can relieve with `room` bytes, rounded down.
    pub(super) fn most_relief(
        &self,
        problem: &Problem,
        left: &[u64],
        open: impl Fn(usize) -> bool,
        mut room: u64,
    ) -> u64 {
        let mut left = left.to_vec();
        let mut relief = 0;
        for &index in self.by_yield.iter().filter(|&&item| open(item)) {
            let item = &problem.items[index];
            let wanted = left[item.source].min(item.frees);
            // Part of a service may go: the part that is wanted, and for which there is room.
            let needed = share(item.needs, wanted, item.frees);
            if needed > room {
                return relief + share(item.frees, room, item.needs).min(wanted);
            }
            room -= needed;
            left[item.source] -= wanted;
            relief += wanted;
        }
        relief
    }

    /// The fewest bytes with which the open items relieve `relief`, rounded down.
    pub(super) fn fewest_bytes(
        &self,
        problem: &Problem,
        left: &[u64],
        open: impl Fn(usize) -> bool,
        mut relief: u64,
    ) -> u64 {
        let mut left = left.to_vec();
        let mut bytes = 0;
        for &index in self.by_yield.iter().filter(|&&item| open(item)) {
            if relief == 0 {
                break;
            }
            let item = &problem.items[index];
            let wanted = left[item.source].min(item.frees).min(relief);
            left[item.source] -= wanted;
            relief -= wanted;
            bytes += share(item.needs, wanted, item.frees);
        }
        bytes
    }
}

/// The fewest open items that relieve `relief`, their bytes left aside. `scratch` is overwritten.
pub(super) fn fewest_moves(
    problem: &Problem,
    left: &[u64],
    open: impl Fn(usize) -> bool,
    relief: u64,
    scratch: &mut Vec<u64>,
) -> u64 {
    scratch.clear();
    for (source, &left) in problem.sources.iter().zip(left) {
        let mut left = left;
        for item in source.items.clone().filter(|&item| open(item)) {
            if left == 0 {
                break;
            }
            let step = problem.items[item].frees.min(left);
            left -= step;
            scratch.push(step);
        }
    }
    scratch.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (count, step) in scratch.iter().enumerate() {
        if sum >= relief {
            return count as u64;
        }
        sum += step;
    }
    scratch.len() as u64
}

fn by_yield_first(a: &Item, b: &Item) -> std::cmp::Ordering {
    let left = u128::from(b.frees) * u128::from(a.needs);
    let right = u128::from(a.frees) * u128::from(b.needs);
    left.cmp(&right)
}

/// `part / whole` of `bytes`, rounded down: every rounding here weakens the bound, none breaks it.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    if part >= whole {
        return bytes;
    }
    (u128::from(bytes) * u128::from(part) / u128::from(whole)) as u64
}
