//! Greedy plans, improved locally, for fleets that are too large or too full for a search.
//!
//! There are three starting points, because none is best everywhere: the covers of the single JVMs (few
//! moves, good if there is room), the services that free most per byte that they need (good if room is
//! scarce), and the services that free most (in between).

use std::cmp::Reverse;

use super::improvement::Improvement;
use super::problem::{Assignment, Problem};

/// The best of three, each improved with at most `steps`. `covers` are the items of the covers.
pub(super) fn best(problem: &Problem, covers: &[usize], steps: u64) -> Assignment {
    let count = problem.items.len();
    let item = |index: usize| &problem.items[index];

    let mut is_cover = vec![false; count];
    for &item in covers {
        is_cover[item] = true;
    }
    let mut cover: Vec<usize> = (0..count).collect();
    cover.sort_by_key(|&index| (!is_cover[index], Reverse(item(index).needs), index));

    let mut by_yield: Vec<usize> = (0..count).collect();
    by_yield.sort_by(|&a, &b| {
        let left = u128::from(item(b).frees) * u128::from(item(a).needs);
        let right = u128::from(item(a).frees) * u128::from(item(b).needs);
        left.cmp(&right).then(a.cmp(&b))
    });

    let mut by_size: Vec<usize> = (0..count).collect();
    by_size.sort_by_key(|&index| (Reverse(item(index).frees), index));

    [cover, by_yield, by_size]
        .into_iter()
        .map(|order| {
            let mut improvement = Improvement::begin(problem, &order, steps);
            improvement.run();
            improvement.best()
        })
        .min_by_key(|assignment| assignment.cost(problem))
        .unwrap_or_else(|| Assignment::empty(problem))
}
