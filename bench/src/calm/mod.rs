//! `calm`: whether a service notices its limit while it is below it.
//!
//! A program holds 50 to 99 % of its limit to the byte, and two threads of it make garbage at full speed. Its
//! throughput is that without limits, with the limit in `observe`, and with the limit in `enforce`.
//!
//! *By a reload* the three take turns in one JVM, in an order that changes, and a ratio is one of two turns that follow
//! each other: JVMs of one program differ by ten percent and more, turns of one JVM by much less. The program never
//! rests. Without limits the budget for evidence is not spent, so what comes after it may spend more: what limits cost
//! is rather overstated. *At the start* each has a JVM of its own, and a ratio is one of two JVMs of a round.

mod cases;
mod report;
mod results;
mod rig;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::jdk::{self, Jdk};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::saved;
use cases::{Given, Kind, Variant};
use results::{Cell, Results, Run};
use rig::Rig;

/// How it is run.
#[derive(Args)]
pub(crate) struct Options {
    /// Releases of JDKs, separated by commas [default: every one found]
    #[arg(long, value_delimiter = ',', value_name = "RELEASE")]
    jdk: Vec<u32>,

    /// Collectors, separated by commas [default: every one that the JDK has]
    #[arg(long, value_delimiter = ',')]
    collector: Vec<Kind>,

    /// Memory that the program holds, in percent of the limit
    #[arg(long, value_delimiter = ',', default_values_t = [50, 80, 90, 95, 99], value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=99))]
    shares: Vec<u32>,

    /// When the limit is given, separated by commas [default: both]
    #[arg(long, value_delimiter = ',')]
    given: Vec<Given>,

    /// Rounds; in each, three turns for each collector, share and way to give the limit
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Seconds in which operations are counted
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// Seconds of the same before that
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=600))]
    settle: u32,

    /// The agent's library [default: built now]
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// Writes the results to bench/results as Markdown and JSON
    #[arg(long)]
    save: bool,
}

/// Builds, measures, prints.
///
/// # Errors
/// If something cannot be built, or there is no such JVM. A run that fails is in the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let jdks = jdk::of_releases(&options.jdk)?;
    let vms = cases::vms(&jdks, &options.collector);
    ensure!(!vms.is_empty(), "no such JDK has any of these collectors");
    let given = match options.given.as_slice() {
        [] => Given::value_variants(),
        some => some,
    };
    let machine = Machine::here();
    println!("{machine}");
    println!("building the agent and the program");
    let rig = Rig::build(
        &jdk::choose(None)?,
        options.agent.as_deref(),
        options.settle,
        options.seconds,
    )?;
    let cells = vms.iter().flat_map(|vm| {
        let shares = options.shares.iter();
        shares.map(move |share| (vm, *share))
    });
    let cells: Vec<_> = cells.collect();
    let mut results = Results {
        jdks: jdks.iter().map(Jdk::name).collect(),
        machine,
        rounds: options.rounds,
        seconds: options.seconds,
        given: given.to_vec(),
        cells: cells
            .iter()
            .map(|(vm, share)| Cell {
                vm: vm.to_string(),
                share: *share,
                runs: Vec::new(),
            })
            .collect(),
        failures: Vec::new(),
    };
    let mut progress = Progress::of("turn", options.rounds * cells.len() as u32);
    let mut turn = 0;
    for ((vm, share), cell) in cells.iter().zip(&mut results.cells) {
        let failed = |variant: &dyn std::fmt::Display, error: anyhow::Error| {
            format!("{vm}, {share} %, {variant}: {error:#}")
        };
        if given.contains(&Given::Reload) {
            progress.show(turn, &format!("{vm}, {share} %, by turns"));
            let error = rig.run_by_turns(vm, *share, options.rounds, |run| cell.runs.push(run));
            (results.failures).extend(error.err().map(|error| failed(&"by turns", error)));
        }
        for round in 0..options.rounds {
            progress.show(turn, &format!("{vm}, {share} %"));
            turn += 1;
            if !given.contains(&Given::Start) {
                continue;
            }
            for variant in cases::in_turn(&Variant::all(Given::Start), round) {
                match rig.run(vm, *share, variant) {
                    Ok(figures) => cell.runs.push(Run {
                        round,
                        variant,
                        figures,
                    }),
                    Err(error) => results.failures.push(failed(&variant, error)),
                }
            }
        }
    }
    progress.done();
    saved::publish(&report::text(&results), options.save, || {
        report::save(&results)
    })
}
