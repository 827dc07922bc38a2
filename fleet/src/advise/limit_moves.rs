//! Limits a plan to a number of moves. Pure.

use super::planner::{Cost, Jvm, Plan};

/// The plan with at most `most` moves, and the number of moves left out.
///
/// Any subset of a plan keeps every destination within its capacity. So the moves are taken greedily:
/// each time the one that relieves most of the remaining excess, and of equal ones the one that needs
/// less. This is not proven optimal for the number of moves.
pub(super) fn limit_moves(plan: Plan, fleet: &[Jvm], most: usize) -> (Plan, usize) {
    let Some(omitted) = plan.moves.len().checked_sub(most).filter(|n| *n > 0) else {
        return (plan, 0);
    };
    let excess = |jvm: &Jvm| jvm.held_bytes.saturating_sub(jvm.capacity_bytes);
    let mut left: Vec<u64> = fleet.iter().map(excess).collect();
    let mut moves = plan.moves;
    let mut kept = Vec::with_capacity(most);
    let mut needed_bytes: u64 = 0;
    while kept.len() < most {
        let best = (0..moves.len()).max_by_key(|index| {
            let one = moves[*index];
            let service = &fleet[one.source].services[one.service];
            let relief = service.frees_bytes.min(left[one.source]);
            (relief, std::cmp::Reverse(service.needs_bytes))
        });
        let Some(best) = best else { break };
        let one = moves.swap_remove(best);
        let service = &fleet[one.source].services[one.service];
        left[one.source] = left[one.source].saturating_sub(service.frees_bytes);
        needed_bytes = needed_bytes.saturating_add(service.needs_bytes);
        kept.push(one);
    }
    kept.sort_unstable();
    let cost = Cost {
        unrelieved_bytes: left.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
        moves: kept.len() as u64,
        needed_bytes,
    };
    let cut = Plan {
        moves: kept,
        cost,
        bound: plan.bound,
    };
    (cut, omitted)
}

#[cfg(test)]
mod tests {
    use super::super::planner::{Budget, Service, plan};
    use super::*;

    fn service(name: &str, bytes: u64) -> Service {
        Service {
            name: name.into(),
            frees_bytes: bytes,
            needs_bytes: bytes,
        }
    }

    /// Two pressed by 30 and by 12, and one with room for all.
    fn fleet() -> Vec<Jvm> {
        let pressed = |excess: u64, services: &[(&str, u64)]| Jvm {
            capacity_bytes: 100,
            held_bytes: 100 + excess,
            held_upper_bytes: 100 + excess,
            accounts: Vec::new(),
            services: services.iter().map(|(n, b)| service(n, *b)).collect(),
        };
        vec![
            pressed(30, &[("a", 20), ("b", 11)]),
            pressed(12, &[("c", 50)]),
            Jvm {
                capacity_bytes: 1000,
                ..Jvm::default()
            },
        ]
    }

    fn cut_to(most: usize) -> (Vec<String>, Cost, usize) {
        let fleet = fleet();
        let whole = plan(&fleet, Budget::default());
        assert_eq!(whole.cost.moves, 3);
        let (cut, omitted) = limit_moves(whole, &fleet, most);
        let name = |source: usize, service: usize| fleet[source].services[service].name.clone();
        let names = cut.moves.iter().map(|one| name(one.source, one.service));
        (names.collect(), cut.cost, omitted)
    }

    #[test]
    fn those_stay_that_relieve_most_of_what_is_above() {
        let cost = |unrelieved_bytes, moves, needed_bytes| Cost {
            unrelieved_bytes,
            moves,
            needed_bytes,
        };
        // `c` frees most, but no more than 12 of it is relief.
        assert_eq!(cut_to(1), (vec!["a".into()], cost(22, 1, 20), 2));
        let two = vec!["a".into(), "c".into()];
        assert_eq!(cut_to(2), (two, cost(10, 2, 70), 1));
        assert_eq!(cut_to(3).1, cost(0, 3, 81));
        assert_eq!(cut_to(9).2, 0);
    }
}
