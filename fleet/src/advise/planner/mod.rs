//! Plans which services to move where. Pure: it knows bytes and names, but neither Prometheus nor time.
//!
//! # The model
//!
//! A JVM is *pressed* if it is expected to hold more than its capacity; the difference is its
//! *excess*. Services leave pressed JVMs only, and go to other JVMs only. So no move has to wait for
//! another one, and any part of a plan keeps every JVM within its headroom.
//!
//! ```text
//! j in P     pressed JVMs, excess E_j > 0          d in D     the others, headroom H_d >= 0
//! s in S_j   services of j, of name m(s)           f_s        bytes it frees at least at its JVM
//! A_d        names of the accounts of d            n_s        bytes it needs at most elsewhere
//!
//! x_sd in {0, 1}   service s moves to d            r_j >= 0   excess that is left at j
//!
//! lexicographic minimum of   1. sum_j r_j          what stays unrelieved, bytes
//!                            2. sum_sd x_sd        moves
//!                            3. sum_sd n_s x_sd    bytes needed at the destinations
//! subject to
//!   sum_d x_sd <= 1                                  each s
//!   sum_s n_s x_sd <= H_d                            each d
//!   sum_{s: m(s) = m} x_sd <= [m not in A_d]         each d and name m: no two replicas in one JVM
//!   r_j >= E_j - sum_{s in S_j, d} f_s x_sd          each j in P
//! ```
//!
//! **Why this order.** Relief comes first, because it is the purpose of the plan. Moves come before
//! bytes: to move a service means to deploy it elsewhere, which is a risk and costs about the same
//! whatever the service holds, because no heap is copied. Bytes decide between plans with the same
//! number of moves: the lighter one leaves more headroom.
//!
//! # How it is solved
//!
//! 1. [`cover`]: each pressed JVM alone, as if there were room for everything: the fewest moves
//!    that relieve it, of these the fewest bytes. The sum of these answers bounds every plan from
//!    below. [`packing`] then looks for places; where all find one the bound is met, and the plan
//!    is proven optimal, however large the fleet.
//! 2. Else [`heuristic`]: three greedy plans, each improved by local exchanges.
//! 3. [`search`]: branch and bound over all services at once, beginning with the best plan so far,
//!    pruned by the relaxations of [`relaxation`] (integrality and the limits of single JVMs
//!    dropped). Where it ends within its [`Budget`], the plan is proven optimal.
//!
//! A plan without a proof comes with the best known bound. `planner_tests/oracle.rs` compares plans of
//! small fleets with those of an integer programming library. `cargo xtask bench planner` measures how
//! far the heuristic is from the optimum. *Short* is the excess that the plan leaves above the best
//! known bound, in percent of all excess; for proven plans it is the distance from the optimum. Random
//! fleets, on two cores of an AMD EPYC that had other work:
//!
//! | JVMs x services, pressed | room, of the excess | fleets | proven | short, mean | worst | longest |
//! | --- | ---: | ---: | ---: | ---: | ---: | ---: |
//! | 8 x 8, 3 | 300 % | 20 | 20 | 0.0 % | 0.0 % | 0.0 s |
//! | | 110 % | 20 | 20 | 0.5 % | 2.8 % | 0.3 s |
//! | | 60 % | 20 | 20 | 0.2 % | 1.7 % | 0.2 s |
//! | 15 x 10, 5 | 300 % | 20 | 18 | 0.0 % | 0.0 % | 1.1 s |
//! | | 110 % | 20 | 2 | 2.1 % | 4.2 % | 0.9 s |
//! | | 60 % | 20 | 0 | 1.8 % | 5.0 % | 0.6 s |
//! | 30 x 20, 10 | 300 % | 20 | 20 | 0.0 % | 0.0 % | 0.0 s |
//! | | 110 % | 20 | 0 | 1.1 % | 2.1 % | 0.7 s |
//! | | 60 % | 20 | 0 | 0.7 % | 1.2 % | 0.5 s |
//! | 1000 x 50, 300 | 300 % | 2 | 2 | 0.0 % | 0.0 % | 0.0 s |
//! | | 110 % | 2 | 0 | 1.5 % | 1.7 % | 0.9 s |
//! | | 60 % | 2 | 0 | 0.5 % | 0.5 % | 1.0 s |

mod cover;
mod fleet;
mod heuristic;
mod improvement;
mod packing;
mod problem;
mod relaxation;
mod search;

pub(crate) use fleet::{Budget, Cost, Jvm, Move, Plan, Service};
use problem::{Assignment, Problem};

/// The plan for a fleet.
pub(crate) fn plan(fleet: &[Jvm], budget: Budget) -> Plan {
    let problem = Problem::of(fleet);
    let cover = cover::all(&problem, budget.cover_steps);
    let mut bound = cover.bound.max(relaxation::root(&problem));
    if let Some(places) = packing::pack(&problem, &cover.items, budget.packing_steps) {
        let assignment = Assignment::from(places);
        // The covers may have run out of budget: then the bound is below them.
        if assignment.cost(&problem) == bound {
            return finished(&problem, assignment, bound);
        }
    }
    let mut best = heuristic::best(&problem, &cover.items, budget.improvement_steps);
    if best.cost(&problem) > bound {
        let (found, proven) = search::run(&problem, best, budget.search_steps);
        best = found;
        if proven {
            bound = best.cost(&problem);
        }
    }
    finished(&problem, best, bound)
}

/// The plan in the caller's numbers, spread over the destinations.
fn finished(problem: &Problem, mut assignment: Assignment, bound: Cost) -> Plan {
    packing::spread(problem, &mut assignment);
    let cost = assignment.cost(problem);
    let mut moves: Vec<Move> = assignment
        .placed()
        .map(|(item, bin)| Move {
            source: problem.sources[problem.items[item].source].jvm,
            service: problem.items[item].service,
            destination: problem.bins[bin].jvm,
        })
        .collect();
    moves.sort_unstable();
    Plan { moves, cost, bound }
}
