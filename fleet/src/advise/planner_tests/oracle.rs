//! The planner against an integer programming solver: the model of the module header, written
//! down for `good_lp` and solved by `microlp`, one goal after the other.

use good_lp::{
    Expression, ProblemVariables, Solution as _, SolverModel as _, Variable, constraint, microlp,
    variable,
};

use super::instances::{Shape, fleet};
use crate::advise::planner::{Budget, Cost, Jvm, Plan, plan};

/// The model's variables: for each service that may move the ones of its destinations.
struct Model {
    variables: ProblemVariables,
    /// Source, service, destination.
    moves: Vec<(usize, usize, usize, Variable)>,
    left: Vec<(usize, Variable)>,
}

fn excess(jvm: &Jvm) -> u64 {
    jvm.held_bytes.saturating_sub(jvm.capacity_bytes)
}

fn model(fleet: &[Jvm]) -> Model {
    let mut variables = ProblemVariables::new();
    let mut moves = Vec::new();
    let mut left = Vec::new();
    for (source, jvm) in fleet.iter().enumerate() {
        if excess(jvm) == 0 {
            continue;
        }
        left.push((source, variables.add(variable().min(0))));
        for (index, service) in jvm.services.iter().enumerate() {
            for (destination, other) in fleet.iter().enumerate() {
                if excess(other) == 0 && !other.accounts.contains(&service.name) {
                    let moved = variables.add(variable().binary());
                    moves.push((source, index, destination, moved));
                }
            }
        }
    }
    Model {
        variables,
        moves,
        left,
    }
}

/// The optimum of one goal, with what the goals before it came to.
fn solve(fleet: &[Jvm], goal: usize, reached: &[u64]) -> u64 {
    let Model {
        variables,
        moves,
        left,
    } = model(fleet);
    let needs = |source: usize, service: usize| fleet[source].services[service].needs_bytes as f64;
    let goals: [Expression; 3] = [
        left.iter().map(|&(_, left)| left).sum(),
        moves.iter().map(|&(.., moved)| moved).sum(),
        moves
            .iter()
            .map(|&(source, service, _, moved)| needs(source, service) * moved)
            .sum(),
    ];
    let mut problem = variables.minimise(goals[goal].clone()).using(microlp);
    for (goal, &reached) in goals.iter().zip(reached) {
        // All coefficients are whole: half a unit is room for rounding, and for nothing else.
        problem.add_constraint(constraint!(goal.clone() <= reached as f64 + 0.5));
    }
    for &(source, left) in &left {
        let freed: Expression = moves
            .iter()
            .filter(|one| one.0 == source)
            .map(|&(_, service, _, moved)| {
                fleet[source].services[service].frees_bytes as f64 * moved
            })
            .sum();
        problem.add_constraint(constraint!(left + freed >= excess(&fleet[source]) as f64));
        for service in 0..fleet[source].services.len() {
            let places: Expression = moves
                .iter()
                .filter(|one| (one.0, one.1) == (source, service))
                .map(|one| one.3)
                .sum();
            problem.add_constraint(constraint!(places <= 1));
        }
    }
    for (destination, jvm) in fleet.iter().enumerate() {
        let arriving: Vec<_> = moves.iter().filter(|one| one.2 == destination).collect();
        let needed: Expression = arriving
            .iter()
            .map(|&&(source, service, _, moved)| needs(source, service) * moved)
            .sum();
        let room = jvm.capacity_bytes.saturating_sub(jvm.held_upper_bytes);
        problem.add_constraint(constraint!(needed <= room as f64));
        for (place, one) in arriving.iter().enumerate() {
            let name =
                |one: &(usize, usize, usize, Variable)| fleet[one.0].services[one.1].name.as_str();
            let namesakes: Vec<Variable> = arriving[place..]
                .iter()
                .filter(|other| name(other) == name(one))
                .map(|other| other.3)
                .collect();
            if namesakes.len() > 1 {
                let namesakes: Expression = namesakes.into_iter().sum();
                problem.add_constraint(constraint!(namesakes <= 1));
            }
        }
    }
    let solution = problem.solve().expect("the model has a solution: no move");
    solution.eval(&goals[goal]).round() as u64
}

/// The optimum.
pub(super) fn optimum(fleet: &[Jvm]) -> Cost {
    let unrelieved_bytes = solve(fleet, 0, &[]);
    let moves = solve(fleet, 1, &[unrelieved_bytes]);
    let needed_bytes = solve(fleet, 2, &[unrelieved_bytes, moves]);
    Cost {
        unrelieved_bytes,
        moves,
        needed_bytes,
    }
}

/// Whether the plan can be carried out, and costs what it says.
pub(super) fn verify(fleet: &[Jvm], plan: &Plan) {
    let mut left: Vec<u64> = fleet.iter().map(excess).collect();
    let mut fleet_after = fleet.to_vec();
    let mut cost = Cost::default();
    for (index, one) in plan.moves.iter().enumerate() {
        let service = &fleet[one.source].services[one.service];
        assert!(excess(&fleet[one.source]) > 0, "only pressed JVMs give");
        assert_eq!(excess(&fleet[one.destination]), 0, "no pressed JVM takes");
        assert!(
            plan.moves[..index]
                .iter()
                .all(|other| (other.source, other.service) != (one.source, one.service)),
            "a service moves once"
        );
        let destination = &mut fleet_after[one.destination];
        assert!(!destination.accounts.contains(&service.name), "no replicas");
        destination.accounts.push(service.name.clone());
        destination.held_upper_bytes += service.needs_bytes;
        assert!(destination.held_upper_bytes <= destination.capacity_bytes);
        left[one.source] = left[one.source].saturating_sub(service.frees_bytes);
        cost.moves += 1;
        cost.needed_bytes += service.needs_bytes;
    }
    cost.unrelieved_bytes = left.iter().sum();
    assert_eq!(plan.cost, cost);
    assert!(plan.bound <= plan.cost);
}

/// Shapes that the solver can do, from ample room to hardly any.
const SMALL: [Shape; 6] = [
    Shape::of(2, 3, 5).with_room(300).with_replicas(30),
    Shape::of(2, 4, 4).with_room(120).with_replicas(30),
    Shape::of(3, 3, 4).with_room(90).with_replicas(50),
    Shape::of(2, 3, 5).with_room(50),
    Shape::of(1, 4, 8).with_room(70).with_replicas(20),
    Shape::of(3, 2, 6).with_room(150).with_replicas(80),
];

#[test]
fn small_fleets_get_the_optimum_of_an_integer_programming_solver() {
    for shape in SMALL {
        for seed in 0..20 {
            let fleet = fleet(shape, seed);
            let plan = plan(&fleet, Budget::default());
            verify(&fleet, &plan);
            assert!(plan.is_optimal(), "{shape:?}, seed {seed}: {plan:?}");
            assert_eq!(plan.cost, optimum(&fleet), "{shape:?}, seed {seed}");
        }
    }
}
