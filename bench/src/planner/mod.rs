//! How near the planner of `heapwarden advise` comes to the best plan, and how long it takes:
//! random fleets of the shapes that its tests use, up to a thousand JVMs.
//!
//! The planner is compiled from the command's sources: the command is a program, not a library.

#[path = "../../../fleet/src/advise/planner_tests/instances.rs"]
mod instances;
#[path = "../../../fleet/src/advise/planner/mod.rs"]
mod moves;

use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::stats::{median, range};
use crate::table::Table;
use instances::{Shape, excess_bytes, fleet};
use moves::{Budget, Jvm, Service, plan};

/// The arguments of `cargo xtask bench planner`.
#[derive(Args)]
pub(crate) struct Options {
    /// Random fleets of each shape with up to 30 JVMs; a tenth as many of the larger ones
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    fleets: u64,
}

/// Pressed JVMs, others, services of each.
const SIZES: [(usize, usize, usize); 4] = [(3, 5, 8), (5, 10, 10), (10, 20, 20), (300, 700, 50)];

/// The others' room in percent of the excess: ample, scarce, half of what is needed.
const ROOM_PERCENT: [u64; 3] = [300, 110, 60];

/// Runs all shapes and prints a table of them.
///
/// # Errors
/// Where the planner contradicts itself.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut table = Table::new(
        "Planner",
        &[
            "JVMs x services, pressed",
            "room",
            "fleets",
            "proven",
            "of these the heuristic has",
            "heuristic above the best bound, mean",
            "worst",
            "median s",
            "worst s",
        ],
    );
    for (pressed, others, services) in SIZES {
        let large = pressed + others > 30;
        let fleets = if large {
            options.fleets.div_ceil(10)
        } else {
            options.fleets
        };
        for room_percent in ROOM_PERCENT {
            eprintln!(
                "{pressed} of {} JVMs pressed, room {room_percent} %",
                pressed + others
            );
            let shape = Shape {
                unit: 1 << 20,
                ..Shape::of(pressed, others, services)
            };
            let shape = shape.with_room(room_percent).with_replicas(30);
            let mut row = vec![
                format!("{} x {services}, {pressed}", pressed + others),
                format!("{room_percent} %"),
                fleets.to_string(),
            ];
            row.extend(measured(shape, fleets)?);
            table.row(row);
        }
    }
    println!("{}", table.text());
    println!(
        "Room: of the JVMs that are not pressed, against what the pressed ones hold too much. \
         Above the best bound: excess that the heuristic leaves and no plan is known to have to, \
         in percent of all excess; where a plan is proven, that is its distance from the optimum."
    );
    Ok(())
}

/// The cells of a shape's row, from the fourth on.
fn measured(shape: Shape, fleets: u64) -> Result<Vec<String>> {
    let heuristic = Budget {
        packing_steps: 0,
        search_steps: 0,
        ..Budget::default()
    };
    let (mut proven, mut met) = (0, 0);
    let mut gaps = Vec::new();
    let mut seconds = Vec::new();
    for seed in 0..fleets {
        let fleet: Vec<Jvm> = fleet(shape, seed);
        let begin = Instant::now();
        let best = plan(&fleet, Budget::default());
        seconds.push(begin.elapsed().as_secs_f64());
        let near = plan(&fleet, heuristic);
        ensure!(
            near.cost.moves == near.moves.len() as u64,
            "the plan for fleet {seed} of {shape:?} does not cost what it says"
        );
        if best.is_optimal() {
            proven += 1;
            met += u64::from(near.cost == best.cost);
        }
        let gap = near.cost.unrelieved_bytes - best.bound.unrelieved_bytes;
        gaps.push(100.0 * gap as f64 / excess_bytes(&fleet).max(1) as f64);
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    Ok(vec![
        proven.to_string(),
        met.to_string(),
        format!("{mean:.2} %"),
        format!("{:.2} %", range(&gaps).1),
        format!("{:.2}", median(&seconds)),
        format!("{:.2}", range(&seconds).1),
    ])
}
